#pragma once
// Paths and descriptors of the tree, shared by the interposed functions. Any thread may call these functions. Errors
// are in errno.
#include "../node/tree.hpp"

#include <string>
#include <string_view>

namespace sdma::emulator {

struct Found {
  const Entry* entry{};
  std::string path{};
};

/// The entry that `path` names relative to `dirfd`, as for openat; the link itself if links are not followed.
Found find_entry(int dirfd, const char* path, bool follow = true);
/// Opens an entry; -1 and errno as for open.
int open_entry(std::string_view path, const Entry&, int flags);
/// The inode of a text of the tree that is open as `fd`; 0 for any other descriptor.
std::uint64_t file_inode(int fd);
/// The path of a directory of the tree that is open as `fd`; "" for any other descriptor.
std::string directory_path(int fd);

}  // namespace sdma::emulator
