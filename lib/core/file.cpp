// SPDX-License-Identifier: MIT
#include "sdma/core/file.hpp"

#include "write_all.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>

namespace sdma { inline namespace v0_3 {
namespace {

namespace fs = std::filesystem;

constexpr int kNamesTried = 1000;  // after so many taken names the folder counts as full

/// The folder with a process's own open files, with or without a name.
constexpr const char* kOpenFiles = "/proc/self/fd/";

std::string with_process(const std::string& target) { return target + "." + std::to_string(::getpid()); }

/// `path`, then path-1, path-2 ...: the names that are tried until one is free. Stops when `take` returns 0 or another
/// errno than EEXIST, and returns that errno. `take` may change the path.
template <class Take> int first_free(const std::string& path, Take take) {
  int error = EEXIST;
  for (int i = 0; i < kNamesTried && error == EEXIST; ++i) error = take(i == 0 ? path : path + "-" + std::to_string(i));
  return error;
}

bool is_link(const std::string& path) {
  struct stat is {};
  return ::lstat(path.c_str(), &is) == 0 && S_ISLNK(is.st_mode);
}

/// The descriptor that a path means, or -1. It is used as it is: opening
/// the path again would start at offset 0 of a file that others append to.
int standard_descriptor(std::string_view path) {
  return path == "-" || path == "/dev/stdout" ? STDOUT_FILENO : path == "/dev/stderr" ? STDERR_FILENO : -1;
}
bool is_standard(int fd) { return fd <= STDERR_FILENO; }

/// Returns 0 or an errno. Some file systems report a full disk only here, and some do not support it.
int on_disk(int fd) { return ::fsync(fd) == 0 || errno == EINVAL || errno == EROFS ? 0 : errno; }

}  // namespace

Result<FreshFile, Diagnostic> create_fresh(const std::string& path) {
  FreshFile made;
  const int error = first_free(path, [&](const std::string& name) {
    made = {.fd = ::open(name.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0666), .path = name};
    return made.fd < 0 ? errno : 0;
  });
  if (error != 0)
    return Diagnostic{.where = path, .message = std::string("cannot be created: ") + std::strerror(error)};
  return made;
}

FileWriter::~FileWriter() {
  if (!is_standard(fd_)) ::close(fd_);
  if (!beside_.empty()) ::unlink(beside_.c_str());
}

Diagnostic FileWriter::failed(int error) {
  if (kind_ == Kind::whole) error_ = error;
  const bool output = path_ == "-";
  return {.rule = error == EPIPE ? std::string(kReaderGone) : "",
          .where = output ? "" : path_,
          .message = std::string(output ? "cannot write to stdout: " : "cannot be written: ") + std::strerror(error),
          .hint = error == ENOENT               ? "create the folder first, or correct the path"
                  : in_place_ && error != EPIPE ? "the old contents are lost: this file can only be written in place"
                  : error == ENOSPC             ? "free some space, or write to another disk"
                                                : ""};
}

/// Opens the file that a path names, as a shell's redirection does: the kernel follows symbolic links, and refuses
/// those that it considers unsafe. Nothing changes yet. Returns 0 or an errno; ENOENT: there is no such file.
int FileWriter::open_old() {
  fd_ = ::open(path_.c_str(), O_WRONLY | O_CLOEXEC);
  if (fd_ >= 0 || errno != ENOENT || !is_link(path_)) return fd_ >= 0 ? 0 : errno;
  // A link to a file that does not exist. Only the kernel knows whether that file may be created here.
  fd_ = ::open(path_.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0666);
  return fd_ >= 0 ? 0 : errno;
}

/// Opens a new file in the folder of `target_`, without a name if the file system supports that. Returns 0 or an errno.
int FileWriter::open_beside() {
  const auto folder = fs::path(target_).parent_path();
  fd_ = ::access(kOpenFiles, X_OK) == 0 ? ::open(folder.c_str(), O_TMPFILE | O_WRONLY | O_CLOEXEC, 0666) : -1;
  if (fd_ >= 0) return 0;
  return first_free(with_process(target_), [&](const std::string& name) {
    fd_ = ::open(name.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (fd_ < 0) return errno;
    beside_ = name;
    return 0;
  });
}

/// Makes a new file that can replace the open one, if no user's rights change by that. Returns 0, or an errno: EPERM,
/// if the open file must be written itself.
int FileWriter::open_instead() {
  struct stat old {
  }, is{};
  if (::fstat(fd_, &old) != 0) return errno;
  // The owner of a file, and whom its list of rights names, keep what they have.
  if (!S_ISREG(old.st_mode) || old.st_uid != ::geteuid()) return EPERM;
  if (::fgetxattr(fd_, "system.posix_acl_access", nullptr, 0) >= 0) return EPERM;
  std::error_code none;
  target_ = fs::read_symlink(kOpenFiles + std::to_string(fd_), none).string();
  if (::lstat(target_.c_str(), &is) != 0 || is.st_dev != old.st_dev || is.st_ino != old.st_ino) return EPERM;
  if (const int error = open_beside()) return error;
  if (::fstat(fd_, &is) != 0) return errno;
  if (is.st_gid != old.st_gid && ::fchown(fd_, static_cast<uid_t>(-1), old.st_gid) != 0) return EPERM;
  // Only the rights to read, write and execute: a write clears the other bits, and so does a replacement.
  return ::fchmod(fd_, old.st_mode & 0777) == 0 ? 0 : errno;
}

/// After open_old: chooses between a new file and the open one. Returns 0 or an errno.
int FileWriter::choose() {
  const int old_fd = fd_;
  const int error = open_instead();
  if (error == 0) return ::close(old_fd), 0;
  if (fd_ != old_fd && fd_ >= 0) ::close(fd_);
  if (!beside_.empty()) ::unlink(beside_.c_str());
  beside_.clear();
  target_.clear();
  fd_ = old_fd;
  struct stat old {};
  in_place_ = ::fstat(fd_, &old) == 0 && S_ISREG(old.st_mode);
  // Missing rights are the only reason to write over the old file.
  return error == EACCES || error == EPERM || error == EROFS ? 0 : error;
}

Result<void, Diagnostic> FileWriter::open() {
  if (error_ != 0) return failed(error_);
  if (fd_ >= 0) return {};
  fd_ = standard_descriptor(path_);
  if (fd_ == STDOUT_FILENO) std::fflush(stdout);  // what the program printed earlier comes first
  if (fd_ >= 0) return {};
  int error = 0;
  if (kind_ == Kind::live) {
    fd_ = ::open(path_.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC | O_APPEND | O_TRUNC, 0666);
    error = fd_ < 0 ? errno : 0;
  } else if (error = open_old(); error == ENOENT) {
    std::error_code none;
    target_ = fs::absolute(path_, none).string();
    is_new_ = true;
    error = open_beside();
  } else if (error == 0) {
    error = choose();
  }
  if (error != 0) return failed(error);
  return {};
}

Result<void, Diagnostic> FileWriter::write(std::string_view bytes) {
  if (auto e = open(); !e) return e;
  if (in_place_ && written_ == 0 && ::ftruncate(fd_, 0) != 0) return failed(errno);
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
  if (!beside_.empty()) return 0;
  const auto open_file = kOpenFiles + std::to_string(fd_);
  return first_free(with_process(target_), [&](const std::string& name) {
    if (::linkat(AT_FDCWD, open_file.c_str(), AT_FDCWD, name.c_str(), AT_SYMLINK_FOLLOW) != 0) return errno;
    beside_ = name;
    return 0;
  });
}

/// Gives the new file its name. Returns 0 or an errno.
int FileWriter::rename_beside() {
  // A file that appeared meanwhile is replaced only if `open` would have replaced it.
  if (is_new_) {
#ifdef RENAME_NOREPLACE  // Linux
    if (::renameat2(AT_FDCWD, beside_.c_str(), AT_FDCWD, target_.c_str(), RENAME_NOREPLACE) == 0) return 0;
#endif
    struct stat is {};
    const bool there = ::lstat(target_.c_str(), &is) == 0;
    if (there && (!S_ISREG(is.st_mode) || is.st_uid != ::geteuid())) return EEXIST;
  }
  return ::rename(beside_.c_str(), target_.c_str()) == 0 ? 0 : errno;
}

Result<void, Diagnostic> FileWriter::close() {
  // Opens the file if nothing was written, and cuts one in place.
  if (auto e = write({}); !e) return e;
  const bool renames = !target_.empty();
  int error = renames ? on_disk(fd_) : 0;
  if (error == 0 && renames) error = link_beside();
  const int fd = std::exchange(fd_, -1);
  if (!is_standard(fd) && ::close(fd) != 0 && error == 0) error = errno;
  if (error == 0 && renames) error = rename_beside();
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

}}  // namespace sdma::v0_3
