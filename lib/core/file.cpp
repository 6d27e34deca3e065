#include "sdma/core/file.hpp"

#include "write_all.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <utility>

namespace sdma::inline v0 {
namespace {

namespace fs = std::filesystem;

constexpr int kNamesTried = 1000;  // after so many taken names the folder counts as full

/// The folder with a process's own open files, with or without a name.
constexpr const char* kOpenFiles = "/proc/self/fd/";

std::string with_number(const std::string& target, int i) {
  return target + "." + std::to_string(::getpid()) + "-" + std::to_string(i);
}

/// The descriptor that a path means, or -1. It is used as it is: opening the path again would start at offset 0 of a file that
/// others append to.
int standard_descriptor(std::string_view path) {
  return path == "-" || path == "/dev/stdout" ? STDOUT_FILENO : path == "/dev/stderr" ? STDERR_FILENO : -1;
}
bool is_standard(int fd) { return fd <= STDERR_FILENO; }

/// Returns 0 or an errno. Some file systems report a full disk only here, and some do not support it.
int on_disk(int fd) { return ::fsync(fd) == 0 || errno == EINVAL || errno == EROFS ? 0 : errno; }

}  // namespace

namespace detail {

int write_all(int fd, std::string_view bytes, std::optional<std::uint64_t> at) noexcept {
  while (!bytes.empty()) {
    const auto n = at ? ::pwrite(fd, bytes.data(), bytes.size(), static_cast<off_t>(*at))
                      : ::write(fd, bytes.data(), bytes.size());
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return n == 0 ? EIO : errno;  // 0: a file system that neither writes nor says why
    bytes.remove_prefix(static_cast<std::size_t>(n));
    if (at) *at += static_cast<std::uint64_t>(n);
  }
  return 0;
}

}  // namespace detail

FileWriter::~FileWriter() {
  if (!is_standard(fd_)) ::close(fd_);
  if (!beside_.empty()) ::unlink(beside_.c_str());
}

Diagnostic FileWriter::failed(int error) {
  if (kind_ == Kind::whole) error_ = error;
  return {.rule = error == EPIPE ? std::string(kReaderGone) : "",
          .where = path_ == "-" ? "stdout" : path_,
          .message = std::string("cannot be written: ") + std::strerror(error),
          .hint = error == ENOENT   ? "create the folder first, or correct the path"
                  : error == ENOSPC ? "free some space, or write to another disk"
                                    : ""};
}

/// Opens a new file in the folder of the old one, without a name if the file system supports that. Returns -1 and sets errno if
/// it cannot.
int FileWriter::open_beside(bool there) {
  std::error_code error;
  target_ = fs::weakly_canonical(fs::absolute(path_, error), error).string();
  if (error || target_.empty()) return errno = error ? error.value() : ENOENT, -1;
  const auto folder = fs::path(target_).parent_path().string();
  int fd = ::access(kOpenFiles, X_OK) == 0 ? ::open(folder.c_str(), O_TMPFILE | O_WRONLY | O_CLOEXEC, 0666) : -1;
  for (int i = 0; fd < 0 && i < kNamesTried; ++i) {
    beside_ = with_number(target_, i);
    fd = ::open(beside_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (fd < 0) beside_.clear();
    if (fd < 0 && errno != EEXIST) break;
  }
  struct stat is {};
  if (fd < 0 || !there || ::stat(path_.c_str(), &is) != 0) return fd;
  // Only root may give a file away; without that right the new file belongs to this process.
  [[maybe_unused]] const int ignored = ::fchown(fd, is.st_uid, is.st_gid);
  ::fchmod(fd, is.st_mode & 07777);
  return fd;
}

Result<void, Diagnostic> FileWriter::open() {
  if (error_ != 0) return failed(error_);
  if (fd_ >= 0) return {};
  fd_ = standard_descriptor(path_);
  if (fd_ == STDOUT_FILENO) std::fflush(stdout);  // what the program printed earlier comes first
  if (fd_ >= 0) return {};
  struct stat is {};
  const bool there = ::stat(path_.c_str(), &is) == 0;
  if (kind_ == Kind::whole && (!there || S_ISREG(is.st_mode))) {
    if (there && ::access(path_.c_str(), W_OK) != 0) return failed(errno);
    fd_ = open_beside(there);
    if (fd_ >= 0) return {};
    target_.clear();
    // Missing rights to the folder are the only reason to write over the old file.
    if (errno != EACCES && errno != EPERM && errno != EROFS) return failed(errno);
  }
  in_place_ = true;
  const int live = kind_ == Kind::live ? O_APPEND | O_TRUNC : 0;
  fd_ = ::open(path_.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC | live, 0666);
  if (fd_ < 0) return failed(errno);
  return {};
}

Result<void, Diagnostic> FileWriter::write(std::string_view bytes) {
  if (auto e = open(); !e) return e;
  // A pipe or a device has no length and answers EINVAL.
  if (in_place_ && written_ == 0 && ::ftruncate(fd_, 0) != 0 && errno != EINVAL) return failed(errno);
  const int error = detail::write_all(fd_, bytes);
  if (error == 0) {
    written_ += bytes.size();
    return {};
  }
  if (kind_ == Kind::live && !is_standard(fd_)) [[maybe_unused]]
    const int ignored = ::ftruncate(fd_, static_cast<off_t>(written_));
  return failed(error);
}

/// Gives the file without a name a temporary one, because a link cannot replace a file. Returns 0 or an errno.
int FileWriter::link_beside() {
  const auto open_file = kOpenFiles + std::to_string(fd_);
  for (int i = 0; beside_.empty(); ++i) {
    const auto name = with_number(target_, i);
    if (::linkat(AT_FDCWD, open_file.c_str(), AT_FDCWD, name.c_str(), AT_SYMLINK_FOLLOW) == 0) beside_ = name;
    else if (errno != EEXIST || i == kNamesTried) return errno;
  }
  return 0;
}

Result<void, Diagnostic> FileWriter::close() {
  // Opens the file if nothing was written, and cuts one in place.
  if (auto e = write({}); !e) return e;
  const bool renames = !target_.empty();
  int error = renames ? on_disk(fd_) : 0;
  if (error == 0 && renames) error = link_beside();
  const int fd = std::exchange(fd_, -1);
  if (!is_standard(fd) && ::close(fd) != 0 && error == 0) error = errno;
  if (error == 0 && renames && ::rename(beside_.c_str(), target_.c_str()) != 0) error = errno;
  if (error != 0) return failed(error);
  beside_.clear();
  error_ = EBADF;  // for a write after this
  return {};
}

FileReader::~FileReader() {
  if (!is_standard(fd_)) ::close(fd_);
}

Result<bool, Diagnostic> FileReader::read(std::string& out, std::size_t most) {
  const auto failed = [&](std::string what, int error) {
    return Diagnostic{.where = path_ == "-" ? "stdin" : path_, .message = what + ": " + std::strerror(error)};
  };
  if (fd_ < 0) fd_ = path_ == "-" ? STDIN_FILENO : ::open(path_.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd_ < 0) return failed("cannot be opened", errno);
  const auto before = out.size();
  out.resize(before + most);
  ssize_t n = 0;
  do n = ::read(fd_, out.data() + before, most);
  while (n < 0 && errno == EINTR);
  const int error = errno;
  out.resize(before + static_cast<std::size_t>(n > 0 ? n : 0));
  if (n < 0) return failed("cannot be read", error);
  return n > 0;
}

Result<std::string, Diagnostic> read_file(const std::string& path) {
  constexpr std::size_t kPiece = std::size_t{1} << 20;
  FileReader in{path};
  std::string out;
  for (;;) {
    const auto more = in.read(out, kPiece);
    if (!more) return more.error();
    if (!*more) return out;
  }
}

Result<void, Diagnostic> save_file(const std::string& path, std::string_view bytes) {
  FileWriter out{path};
  if (auto e = out.write(bytes); !e) return e;
  return out.close();
}

}  // namespace sdma::inline v0
