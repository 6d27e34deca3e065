#pragma once
// Paths and descriptors of the tree: what the functions in front of the C library's share. Any thread; errors in errno.
#include "../node/tree.hpp"

#include <string>
#include <string_view>

namespace sdma::emulator {

struct Found {
  const Entry* entry{};
  std::string path{};
};

/// What `path` names, seen from `dirfd` as openat would; the link itself if it is one and not to be followed.
Found find_entry(int dirfd, const char* path, bool follow = true);
/// Opens it; -1 and errno as open would.
int open_entry(std::string_view path, const Entry&, int flags);
/// The inode of a text of ours that is open as `fd`; 0 if it is none.
std::uint64_t file_inode(int fd);
/// The path of a directory of ours that is open as `fd`; "" if it is none.
std::string directory_path(int fd);

}  // namespace sdma::emulator
