// SPDX-License-Identifier: MIT
#pragma once
// Paths and descriptors of the tree, shared by the interposed functions.
//
//   const auto found = find_entry(AT_FDCWD, "/sys/class/kfd/kfd/dev");
//   if (found.entry) ...                                               // ours, at found.path
//   else real(found.dirfd(dirfd), found.name(path));                   // the machine's
//
// A relative path begins at a directory of the tree that is open, at one of the machine that contains files of ours, or
// at the working directory. The working directory may be in the tree, too (working_directory.hpp).
//
// Any thread may call these functions. They allocate. Errors are in errno.
#include "../node/tree.hpp"

#include <fcntl.h>
#include <optional>
#include <string>
#include <string_view>

namespace sdma::emulator {

struct Found {
  const Entry* entry{};
  std::string path{};  ///< absolute, without links of the tree
  /// The entry is not ours, and the kernel cannot find it, because the path leads through the tree: use `path`.
  bool outside{};

  int dirfd(int given) const noexcept { return outside ? AT_FDCWD : given; }
  const char* name(const char* given) const noexcept { return outside ? path.c_str() : given; }
};

/// The entry that `path` names relative to `dirfd`, as for openat; the link itself if links are not followed.
Found find_entry(int dirfd, const char* path, bool follow = true);
/// The same, but also directories of the machine that contain files of ours.
Found find_shared(int dirfd, const char* path, bool follow = true);
/// Opens an entry; -1 and errno as for open.
int open_entry(std::string_view path, const Entry&, int flags);
/// Whether this user may open a file for reading.
bool may_read(const Entry&) noexcept;
/// The kind, inode and device of a text of the tree that is open as `fd`; nullopt for any other descriptor.
std::optional<Entry> open_text(int fd);
/// A directory of the tree, or one of the machine in which files of ours may be; any other has an empty path.
struct OpenDirectory {
  std::string path{};
  bool in_tree{};
};
OpenDirectory open_directory(int fd);
/// The path of a directory of the tree that is open as `fd`; "" for any other descriptor.
std::string directory_path(int fd);

}  // namespace sdma::emulator
