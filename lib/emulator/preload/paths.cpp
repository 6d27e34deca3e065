// SPDX-License-Identifier: MIT
#include "paths.hpp"

#include "../inside.hpp"
#include "../node/node.hpp"
#include "../real.hpp"
#include "override.hpp"
#include "working_directory.hpp"

#include "sdma/core/number.hpp"

#include <fmt/format.h>

#include <linux/limits.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cerrno>

namespace sdma::emulator {
namespace {

constexpr const char* kDirectoryName = "sdma-dir";
constexpr std::string_view kDirectoryLink = "/memfd:sdma-dir ";  ///< where the entry of its descriptor leads
constexpr std::string_view kFileName = "sdma-file-";             ///< followed by its inode and device, for fstat

int filled_memfd(const char* name, std::string_view text, int flags) {
  if (!size_permitted(text.size())) return -1;
  const int fd = ::memfd_create(name, MFD_ALLOW_SEALING | ((flags & O_CLOEXEC) != 0 ? MFD_CLOEXEC : 0u));
  if (fd < 0) return fd;
  if (::write(fd, text.data(), text.size()) != static_cast<ssize_t>(text.size())) {
    ::close(fd);
    errno = ENOMEM;
    return -1;
  }
  SDMA_REAL(lseek)(fd, 0, SEEK_SET);
  SDMA_REAL(fcntl)(fd, F_ADD_SEALS, F_SEAL_WRITE | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL);
  return fd;
}

int fail(int error) {
  errno = error;
  return -1;
}

/// The directory at which a relative path begins.
OpenDirectory base_of(int dirfd, const char* path) {
  if (dirfd == AT_FDCWD) {
    auto d = working_directory(path[0] == '.' && path[1] == '.');
    return {std::move(d.path), d.in_tree};
  }
  if (dirfd < 0) return {};
  return open_directory(dirfd);
}

}  // namespace

OpenDirectory open_directory(int fd) {
  const int before = errno;
  char room[PATH_MAX];
  const auto n = SDMA_REAL(readlink)(FdLink(fd).path, room, sizeof room);
  const std::string_view target(room, n > 0 ? static_cast<std::size_t>(n) : 0);
  OpenDirectory d;
  if (target.starts_with(kDirectoryLink)) {
    const auto bytes = ::pread(fd, room, sizeof room, 0);
    d = {.path = std::string(room, bytes > 0 ? static_cast<std::size_t>(bytes) : 0), .in_tree = bytes > 0};
  } else if (target == "/" || target.starts_with("/sys") || target.starts_with("/dev") || target.starts_with("/proc")) {
    d.path = target;
  }
  errno = before;
  return d;
}

Found find_shared(int dirfd, const char* path, bool follow) {
  const Inside work;
  if (!path || !work.first()) return {};
  OpenDirectory base;
  std::string absolute;
  if (path[0] != '/') {
    base = base_of(dirfd, path);
    if (base.path.empty()) return {};
    if (path[0] == 0 && !(base.in_tree && dirfd != AT_FDCWD)) return {};
    absolute = base.path + (path[0] == 0 || base.path.ends_with('/') ? "" : "/") + path;
    path = absolute.c_str();
  }
  if (!base.in_tree && !Tree::concerns(path)) return {};
  auto r = tree().resolve(path, follow);
  if (r.path.empty()) return {};
  const bool outside = (base.in_tree || r.crossed) && (!r.entry || r.entry->shared);
  return {.entry = r.entry, .path = std::move(r.path), .outside = outside};
}

Found find_entry(int dirfd, const char* path, bool follow) {
  auto f = find_shared(dirfd, path, follow);
  if (f.entry && f.entry->shared) f.entry = nullptr;
  return f;
}

bool may_read(const Entry& e) noexcept { return !e.root_only || ::geteuid() == 0; }

int open_entry(std::string_view path, const Entry& e, int flags) {
  const Inside work;
  const bool writes = (flags & O_ACCMODE) != O_RDONLY;
  if ((flags & O_CREAT) != 0 && (flags & O_EXCL) != 0) return fail(EEXIST);
  switch (e.kind) {
    case Kind::directory: return writes ? fail(EISDIR) : filled_memfd(kDirectoryName, path, flags);
    case Kind::text:
      if ((flags & O_DIRECTORY) != 0) return fail(ENOTDIR);
      return writes || !may_read(e)
                 ? fail(EACCES)
                 : filled_memfd(fmt::format("{}{}-{}", kFileName, e.inode, e.device).c_str(), contents(e), flags);
    case Kind::link: return fail(ELOOP);  // O_NOFOLLOW: any other link has been followed already
    case Kind::kfd:
    case Kind::drm: break;
  }
  if ((flags & O_DIRECTORY) != 0) return fail(ENOTDIR);
  if (e.kind == Kind::kfd) override_old_runtime();
  auto* n = Node::get();
  if (!n) return fail(ENOMEM);
  return e.kind == Kind::drm ? n->open_drm(e.minor, flags) : n->open_kfd(flags);
}

std::optional<Entry> open_text(int fd) {
  char room[64];
  auto name = memfd_name(FdLink(fd).path, room);
  if (!name.starts_with(kFileName)) return std::nullopt;
  name.remove_prefix(kFileName.size());
  const auto dash = name.find('-');
  if (dash == name.npos) return std::nullopt;
  return Entry{.kind = Kind::text,
               .inode = parse_count(name.substr(0, dash)).value_or(0),
               .device = parse_count(name.substr(dash + 1)).value_or(0)};
}

std::string directory_path(int fd) {
  auto d = open_directory(fd);
  return d.in_tree ? std::move(d.path) : std::string();
}

}  // namespace sdma::emulator
