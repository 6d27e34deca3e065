#pragma once
// The files that the node adds to the machine, kept in memory: nothing is written to disk, so nothing can be left behind.
//
//   const Entry* e = tree().find("/sys/class/kfd/kfd/topology/nodes/1/gpu_id");    // null: not ours, ask the machine
//   e->kind == Kind::text;  e->text == "19713\n"
//
//   /sys/devices/virtual/kfd/kfd/topology/...   also below /sys/class/kfd/kfd
//   /dev/kfd, /dev/dri/{renderD128,card0} ...
//   /sys/devices/pci0000:00/...                 each GPU as libdrm looks for it, with its links below /sys/class/drm,
//                                               /sys/dev/char and /sys/bus/pci
//   /proc/modules (the machine's with a line for amdgpu), /sys/module/amdgpu/...
//
// Built at the first look, never changed afterwards, never destroyed. Any thread.
#include "sdma/device/sysfs.hpp"

#include <map>
#include <set>
#include <string>
#include <string_view>

namespace sdma::emulator {

enum class Kind : std::uint8_t { directory, text, link, kfd, drm };

struct Entry {
  Kind kind{};
  std::uint32_t minor{};             ///< of a DRM node
  std::string text{};                ///< of a file; where a link goes, absolute
  std::set<std::string> children{};  ///< of a directory
  std::uint64_t inode{};             ///< made up, unique in the tree
};

class Tree {
 public:
  Tree();
  /// What lies at an absolute path, `.` and `..` and doubled slashes allowed; null: nothing of ours. Links on the way are
  /// followed; one at the end only if `follow`.
  const Entry* find(std::string_view path, bool follow = true) const;
  /// Could a path be ours? Cheap, for the many that are not.
  static bool concerns(const char* path) noexcept;
  const SysfsNode& node() const noexcept { return node_; }

 private:
  Entry& add(std::string path, Entry);
  void add_pci(std::size_t gpu);

  SysfsNode node_;
  std::map<std::string, Entry, std::less<>> entries_;
};

const Tree& tree();

/// "/a/b" of "//a/./c/../b/".
std::string normal(std::string_view path);

}  // namespace sdma::emulator
