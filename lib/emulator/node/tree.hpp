#pragma once
// The files that the node adds to the machine. They are in memory: nothing is written to disk, so nothing can be left over.
//
//   const Entry* e = tree().find("/sys/class/kfd/kfd/topology/nodes/1/gpu_id");    // null: not ours, so use the machine's
//   e->kind == Kind::text;  e->text == "19713\n"
//
//   /sys/devices/virtual/kfd/kfd/topology/...   also below /sys/class/kfd/kfd
//   /dev/kfd, /dev/dri/{renderD128,card0} ...
//   /sys/devices/pci0000:00/...                 each GPU as libdrm searches for it, with its links below /sys/class/drm,
//                                               /sys/dev/char and /sys/bus/pci
//   /proc/modules (the machine's with a line for amdgpu), /sys/module/amdgpu/...
//
// The tree is built at its first use, and is never changed or destroyed afterwards. Any thread may read it.
#include "sdma/device/sysfs.hpp"

#include <map>
#include <set>
#include <string>
#include <string_view>

namespace sdma::emulator {

enum class Kind : std::uint8_t { directory, text, link, kfd, drm };

struct Entry {
  Kind kind{};
  std::uint32_t minor{};             ///< for a DRM node
  std::string text{};                ///< contents of a file, or the absolute target of a link
  std::set<std::string> children{};  ///< for a directory
  std::uint64_t inode{};             ///< invented, unique in the tree
};

class Tree {
 public:
  Tree();
  /// The entry at an absolute path, which may contain `.`, `..` and doubled slashes; null: not in the tree. Follows links within
  /// the path, and a link at its end only if `follow`.
  const Entry* find(std::string_view path, bool follow = true) const;
  /// True if a path may be in the tree. Cheap, because most are not.
  static bool concerns(const char* path) noexcept;
  const SysfsNode& node() const noexcept { return node_; }

 private:
  void add(std::string path, Entry);
  void add_text(std::string path, std::string text);
  void add_link(std::string from, std::string to);
  void add_pci(std::size_t gpu);

  SysfsNode node_;
  std::map<std::string, Entry, std::less<>> entries_;
};

const Tree& tree();

}  // namespace sdma::emulator
