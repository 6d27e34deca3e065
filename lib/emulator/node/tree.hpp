// SPDX-License-Identifier: MIT
#pragma once
// The files that the node adds to the machine. They are in memory: nothing is written to disk or left over.
//
//   const Entry* e = tree().find("/sys/class/kfd/kfd/topology/nodes/1/gpu_id");  // null: use the machine's
//   e->kind == Kind::text;  contents(*e) == "19713\n"
//
// tree.txt lists them. These sources fill in its values, and add what changes or is not text:
//
//   /sys/devices/virtual/kfd/kfd/topology/...   also below /sys/class/kfd/kfd         tree/kfd.cpp
//   /sys/devices/virtual/kfd/kfd/proc/PID       processes that use a node             tree/processes.cpp
//   /sys/kernel/debug/kfd/mqds                  their queues, for root               tree/debugfs.cpp
//   /dev/kfd, /dev/dri/{renderD128,card0} ...   and their links below /sys/class      tree/kfd.cpp, gpu.cpp
//   /sys/devices/pci0000:10/0000:10:00.0/...    each GPU, linked from /sys/bus/pci    tree/pci.cpp
//     mem_info_*, pp_dpm_*, gpu_metrics,        what the driver adds to the device    tree/gpu.cpp, metrics.cpp
//     ip_discovery, xgmi_*, fw_version, ...
//   /sys/devices/system/node/node0/cpu0/cache   where the machine has none            tree/caches.cpp
//   /proc/modules, /sys/module/amdgpu/...       the driver's module                   tree/kfd.cpp
//   /proc/self/maps                             mappings of the node by their names   tree/maps.cpp
//   /proc/PID/fd/N, fdinfo/N                    descriptors of devices                tree/processes.cpp
//
// Some directories are the machine's and contain files of ours, such as /sys/class. They are `shared`: `find` does not
// return them, and only a listing shows both.
//
// The tree is built at its first use, and is never changed or destroyed afterwards, except for the directories of
// processes, which are added when a program asks for them. Any thread may read it.
#include "../../core/file_texts.hpp"
#include "../../device/sysfs.hpp"

#include <sys/types.h>
#include <map>
#include <set>
#include <string>
#include <string_view>

namespace sdma::emulator {

using detail::FileValues;

enum class Kind : std::uint8_t { directory, text, link, kfd, drm };

struct Entry {
  Kind kind{};
  bool root_only{};                  ///< a file that only root may open
  bool shared{};                     ///< a directory that the machine has, too
  std::uint32_t minor{};             ///< for a DRM node
  std::string text{};                ///< contents of a file, or the target of a link, relative to the link's directory
  std::set<std::string> children{};  ///< for a directory
  std::uint64_t inode{};             ///< invented, unique in the tree
  dev_t device{};                    ///< of the file system that would contain it
  /// For a file or directory whose contents change, the function that returns them, and its argument.
  std::string (*live)(std::uint64_t argument){};
  std::set<std::string> (*live_children)(){};
  std::uint64_t argument{};
};

inline std::string contents(const Entry& e) { return e.live ? e.live(e.argument) : e.text; }
inline std::set<std::string> children(const Entry& e) { return e.live_children ? e.live_children() : e.children; }

class Tree {
 public:
  Tree();
  struct Resolved {
    const Entry* entry{};  ///< null: not in the tree
    std::string path{};    ///< absolute, without `.`, `..` and links of the tree; "": there is no such path
    bool crossed{};        ///< leads through the tree, so the kernel cannot follow it
  };
  /// Follows links of the tree within the path, and one at its end only if `follow`; not links of the machine.
  Resolved resolve(std::string_view absolute_path, bool follow = true) const;
  /// As `resolve`, for entries that hide those of the machine: null for a shared directory.
  const Entry* find(std::string_view absolute_path, bool follow = true) const;
  /// True if a path may be in the tree. Cheap, because most are not.
  static bool concerns(const char* path) noexcept;
  const SysfsNode& node() const noexcept { return node_; }

  /// For the parts of the tree, while it is built. `add` creates the directories above a path. `target` is absolute.
  void add(std::string path, Entry);
  void add_text(std::string path, std::string text);
  void add_live(std::string path, std::string (*live)(std::uint64_t argument), std::uint64_t argument);
  void add_link(std::string path, std::string_view target);
  /// The files of a section of tree.txt. A path that does not begin with `/` is below `directory`.
  void fill(std::string_view section, const FileValues&, std::string_view directory = "");

 private:
  const Entry* at(std::string_view canonical_path) const;

  SysfsNode node_;
  std::map<std::string, Entry, std::less<>> entries_;
};

const Tree& tree();
/// tree.txt.
detail::FileTexts tree_texts() noexcept;

}  // namespace sdma::emulator
