#include "output.hpp"

#include "report.hpp"
#include "verb.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cerrno>
#include <cstring>
#include <filesystem>

namespace sdma::tool {
namespace {

namespace fs = std::filesystem;

constexpr int kNames = 1000;  ///< tried before a folder is taken for full of them

/// Where a program finds its own open files, with or without a name.
constexpr const char* kOpenFiles = "/proc/self/fd/";

std::string with_number(const std::string& target, int i) {
  return target + "." + std::to_string(::getpid()) + "-" + std::to_string(i);
}

bool same_file(const std::string& a, const std::string& b) {
  std::error_code none;
  if (fs::exists(a, none)) return fs::is_regular_file(a, none) && fs::equivalent(a, b, none);
  const auto whole = [&](const std::string& p) { return fs::weakly_canonical(fs::absolute(p, none), none); };
  return !fs::exists(b, none) && whole(a) == whole(b);
}

}  // namespace

Output::~Output() {
  if (fd_ > STDERR_FILENO) ::close(fd_);
  if (!beside_.empty()) ::unlink(beside_.c_str());
}

bool Output::fail(int error) {
  exit_code_ = error == EPIPE ? kPipe : kInput;
  text_.clear();
  if (error != EPIPE)
    report({.where = path_ == "-" ? "stdout" : path_,
            .message = std::string("cannot be written: ") + std::strerror(error),
            .hint = error == ENOENT   ? "is there such a folder?"
                    : error == ENOSPC ? "make room, or name another"
                                      : ""});
  return false;
}

/// A file beside the one that it is to become, without a name where the file system can do that. -1: there can be none.
int Output::open_beside() {
  struct stat is {};
  const bool there = ::stat(path_.c_str(), &is) == 0;
  if (there && (!S_ISREG(is.st_mode) || ::access(path_.c_str(), W_OK) != 0)) return -1;
  std::error_code error;
  target_ = fs::weakly_canonical(fs::absolute(path_, error), error).string();
  if (error || target_.empty()) return -1;
  const auto folder = fs::path(target_).parent_path().string();
  int fd = ::access(kOpenFiles, X_OK) == 0 ? ::open(folder.c_str(), O_TMPFILE | O_WRONLY | O_CLOEXEC, 0666) : -1;
  for (int i = 0; fd < 0 && i < kNames; ++i) {
    beside_ = with_number(target_, i);
    fd = ::open(beside_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (fd < 0) beside_.clear();
    if (fd < 0 && errno != EEXIST) break;
  }
  if (fd >= 0 && there) ::fchmod(fd, is.st_mode & 07777);
  return fd;
}

bool Output::open() {
  if (path_ == "-") return fd_ = STDOUT_FILENO, true;
  if (kind_ == Kind::whole) fd_ = open_beside();
  if (fd_ >= 0) return true;
  target_.clear();
  fd_ = ::open(path_.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
  return fd_ >= 0 || fail(errno);
}

bool Output::write_all(const char* bytes, std::size_t n) {
  if (exit_code_ != 0 || (fd_ < 0 && !open())) return false;
  for (std::size_t at = 0; at < n;) {
    const auto done = ::write(fd_, bytes + at, n - at);
    if (done > 0) at += static_cast<std::size_t>(done);
    else if (done < 0 && errno != EINTR) return fail(errno);
  }
  return true;
}

bool Output::flush() {
  if (!write_all(text_.data(), text_.size())) return false;
  text_.clear();
  return true;
}

/// A file without a name gets one, beside that which it is to have: a link replaces nothing. 0, or why not.
int Output::link_beside() {
  const auto open_file = kOpenFiles + std::to_string(fd_);
  for (int i = 0; beside_.empty(); ++i) {
    const auto name = with_number(target_, i);
    if (::linkat(AT_FDCWD, open_file.c_str(), AT_FDCWD, name.c_str(), AT_SYMLINK_FOLLOW) == 0) beside_ = name;
    else if (errno != EEXIST || i == kNames) return errno;
  }
  return 0;
}

bool Output::close() {
  if (!flush()) return false;
  if (const int error = target_.empty() ? 0 : link_beside(); error != 0) return fail(error);
  const int fd = std::exchange(fd_, -1);
  // Some file systems say only here that the disk is full.
  if (fd > STDERR_FILENO && ::close(fd) != 0) return fail(errno);
  if (!target_.empty() && ::rename(beside_.c_str(), target_.c_str()) != 0) return fail(errno);
  beside_.clear();
  return true;
}

bool overwrites(const std::vector<Written>& written, const std::vector<std::string>& inputs) {
  for (std::size_t i = 0; i < written.size(); ++i) {
    const auto& w = written[i];
    if (w.path.empty() || w.path == "-") continue;
    for (const auto& in : inputs)
      if (same_file(in == "-" ? "/dev/stdin" : in, w.path))
        return complain(w.option + " " + w.path + " is the input", "name another"), true;
    for (std::size_t k = 0; k < i; ++k)
      if (!written[k].path.empty() && same_file(written[k].path, w.path))
        return complain(w.option + " " + w.path + " is also the file of " + written[k].option, "name another"), true;
  }
  return false;
}

}  // namespace sdma::tool
