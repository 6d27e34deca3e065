#include "files.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cerrno>
#include <cstring>
#include <filesystem>

namespace collectives::perf {

using sdma::Diagnostic;

namespace {

Diagnostic cannot(const std::string& path, int error) {
  const char* const hint = error == ENOENT   ? "is there such a folder?"
                           : error == ENOSPC ? "make room, or name another"
                                             : "";
  return {.rule = error == EPIPE ? std::string(kGone) : "",
          .where = path == "-" ? "stdout" : path,
          .message = std::string("cannot be written: ") + std::strerror(error),
          .hint = hint};
}

/// 0, or why not.
int write_all(int fd, std::string_view text) {
  while (!text.empty()) {
    const auto n = ::write(fd, text.data(), text.size());
    if (n > 0) text.remove_prefix(static_cast<std::size_t>(n));
    else if (n < 0 && errno != EINTR) return errno;
  }
  return 0;
}

/// A file beside the one that it is to become.
struct Beside {
  std::string target{}, path{};
  int fd = -1;
};

/// Not open, without an error: `path` is there and is no ordinary file.
sdma::Result<Beside, Diagnostic> make_beside(const std::string& path) {
  struct stat is {};
  if (::stat(path.c_str(), &is) == 0) {
    if (S_ISDIR(is.st_mode)) return cannot(path, EISDIR);
    if (!S_ISREG(is.st_mode)) return Beside{path};
    if (::access(path.c_str(), W_OK) != 0) return cannot(path, errno);
  }
  std::error_code error;
  Beside b{std::filesystem::weakly_canonical(path, error).string()};
  if (error) return cannot(path, error.value());
  b.path = b.target + ".XXXXXX";
  b.fd = ::mkostemp(b.path.data(), O_CLOEXEC);
  if (b.fd < 0) return cannot(path, errno);
  // As a file that was made in the usual way.
  const auto mask = ::umask(0);
  ::umask(mask);
  ::fchmod(b.fd, 0666 & ~mask);
  return b;
}

}  // namespace

sdma::Result<Rows, Diagnostic> Rows::open(const std::string& path) {
  if (path == "-") return Rows{STDOUT_FILENO, path};
  const int fd = ::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_APPEND | O_CLOEXEC, 0666);
  if (fd < 0) return cannot(path, errno);
  return Rows{fd, path};
}

Rows::Rows(Rows&& from) noexcept
    : fd_(std::exchange(from.fd_, -1)), path_(std::move(from.path_)), written_(from.written_) {}

Rows::~Rows() {
  if (fd_ > STDERR_FILENO) ::close(fd_);
}

sdma::Result<void, Diagnostic> Rows::add(std::string_view lines) {
  const int error = write_all(fd_, lines);
  if (error == 0) {
    written_ += lines.size();
    return {};
  }
  // A part of a line is worse than none. What cannot be shortened is no file.
  if (fd_ > STDERR_FILENO) [[maybe_unused]]
    const int ignored = ::ftruncate(fd_, static_cast<off_t>(written_));
  return cannot(path_, error);
}

sdma::Result<void, Diagnostic> Rows::close() {
  const int fd = std::exchange(fd_, -1);
  // Some file systems say only here that the disk is full.
  if (fd > STDERR_FILENO && ::close(fd) != 0) return cannot(path_, errno);
  return {};
}

sdma::Result<void, Diagnostic> can_save(const std::string& path) {
  const auto b = make_beside(path);
  if (!b) return b.error();
  if (b->fd >= 0) ::close(b->fd), ::unlink(b->path.c_str());
  return {};
}

sdma::Result<void, Diagnostic> save(const std::string& path, std::string_view text) {
  auto b = make_beside(path);
  if (!b) return std::move(b.error());
  if (b->fd < 0) {
    auto rows = Rows::open(path);
    if (!rows) return std::move(rows.error());
    if (auto e = rows->add(text); !e) return e;
    return rows->close();
  }
  int error = write_all(b->fd, text);
  if (::close(b->fd) != 0 && error == 0) error = errno;
  if (error == 0 && ::rename(b->path.c_str(), b->target.c_str()) != 0) error = errno;
  if (error == 0) return {};
  ::unlink(b->path.c_str());
  return cannot(path, error);
}

}  // namespace collectives::perf
