#include "output.hpp"

#include "report.hpp"
#include "verb.hpp"

#include <fcntl.h>
#include <unistd.h>
#include <cerrno>
#include <cstring>

namespace sdma::tool {

Output::~Output() {
  if (fd_ > STDERR_FILENO) ::close(fd_);
}

bool Output::fail(int error) {
  exit_code_ = error == EPIPE ? kPipe : kInput;
  text_.clear();
  if (error != EPIPE)
    report({.where = path_ == "-" ? "stdout" : path_,
            .message = std::string("cannot be written: ") + std::strerror(error)});
  return false;
}

bool Output::flush() {
  if (exit_code_ != 0) return false;
  if (fd_ < 0) {
    fd_ = path_ == "-" ? STDOUT_FILENO : ::open(path_.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    if (fd_ < 0) return fail(errno);
  }
  for (std::size_t at = 0; at < text_.size();) {
    const auto n = ::write(fd_, text_.data() + at, text_.size() - at);
    if (n > 0) at += static_cast<std::size_t>(n);
    else if (n < 0 && errno != EINTR) return fail(errno);
  }
  text_.clear();
  return true;
}

bool Output::close() {
  if (!flush()) return false;
  const int fd = std::exchange(fd_, -1);
  // Some file systems say only here that the disk is full.
  if (fd > STDERR_FILENO && ::close(fd) != 0) return fail(errno);
  return true;
}

}  // namespace sdma::tool
