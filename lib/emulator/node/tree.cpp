// SPDX-License-Identifier: MIT
#include "tree.hpp"

#include "../inside.hpp"
#include "../node_options.hpp"
#include "../real.hpp"
#include "tree/parts.hpp"
#include "tree_files.hpp"

#include <fmt/format.h>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <algorithm>
#include <cstring>
#include <filesystem>

namespace sdma::emulator {
namespace {

constexpr std::uint64_t kFirstInode = 0x5d0a0000;

/// NUMA nodes of this machine with processors. The tree lists them as CPUs, because programs bind memory to those.
std::uint32_t numa_nodes() {
  std::uint32_t n = 0;
  while (SDMA_REAL(access)(fmt::format("/sys/devices/system/node/node{}", n).c_str(), F_OK) == 0) ++n;
  return n == 0 ? 1 : n;
}

Topology shown() {
  const auto& o = options();
  auto t = *node_of(product_like(o.gfx), o.gpus);
  const auto cpus = numa_nodes();
  const auto pages = static_cast<std::uint64_t>(::sysconf(_SC_PHYS_PAGES));
  t.cpus.assign(cpus, {.name = "host", .memory_bytes = pages * 4096 / cpus});
  for (auto& g : t.gpus) {
    g.memory_bytes = o.vram_bytes;
    if (o.engines == 0) continue;
    g.xgmi_engines = o.engines - std::min(o.engines, g.host_engines);
    g.host_engines = std::min(o.engines, g.host_engines);
  }
  for (auto& l : t.links) {
    l.engine_mask &= Gpu::first(t.gpus.front().engines());
    if (l.from.kind == LinkEnd::Kind::cpu) l.from.index %= cpus;
    if (l.to.kind == LinkEnd::Kind::cpu) l.to.index %= cpus;
  }
  return t;
}

/// A directory that belongs to no driver.
bool common(std::string_view path) {
  static const auto* all = [] {
    auto* names = new std::set<std::string, std::less<>>;  // never destroyed, like the tree
    tree_texts().fill("shared", FileValues(), [&](const detail::FileText& f) { names->insert(f.path); });
    return names;
  }();
  constexpr std::string_view kBus = "/sys/devices/pci";  // of the machine's bus with that number
  return path.empty() || all->count(path) != 0 || path.starts_with("/sys/devices/system") ||
         (path.starts_with(kBus) && path.find('/', kBus.size()) == path.npos);
}

/// Removes the last name of a path.
void ascend(std::string& path) { path.resize(path.empty() ? 0 : path.rfind('/')); }

/// The device of the machine's file system that would contain a path.
dev_t file_system_of(std::string_view path) {
  const auto device = [](const char* mount) {
    struct stat s {};
    return SDMA_REAL(fstatat)(AT_FDCWD, mount, &s, 0) == 0 ? s.st_dev : 0;
  };
  static const dev_t sys = device("/sys"), dev = device("/dev"), proc = device("/proc");
  return path.starts_with("/dev") ? dev : path.starts_with("/proc") ? proc : sys;
}

bool below(const char* path, std::string_view directory) noexcept {
  const auto n = directory.size();
  return std::strncmp(path, directory.data(), n) == 0 && (path[n] == 0 || path[n] == '/');
}

}  // namespace

bool Tree::concerns(const char* path) noexcept {
  if (!path || path[0] != '/') return false;
  for (const auto directory : {"/sys", "/dev/kfd", "/dev/dri", "/proc/modules", "/proc/self/maps"})
    if (below(path, directory)) return true;
  for (const auto listed : {"/dev", "/dev/", "/proc", "/proc/", "/"})
    if (std::strcmp(path, listed) == 0) return true;
  if (below(path, "/proc") && std::strstr(path, "/fd")) return true;  // of a process: a device, perhaps
  return std::strstr(path, "/..") || std::strstr(path, "//") || std::strstr(path, "/./");
}

void Tree::add(std::string path, Entry e) {
  e.inode = kFirstInode + entries_.size();
  e.device = file_system_of(path);
  entries_.emplace(path, std::move(e));
  while (!path.empty()) {
    const auto child = path.substr(path.rfind('/') + 1);
    ascend(path);
    auto [it, fresh] = entries_.try_emplace(
        path, Entry{.kind = Kind::directory, .inode = kFirstInode + entries_.size(), .device = file_system_of(path)});
    it->second.children.insert(child);
    if (!fresh) break;
    const auto* name = path.empty() ? "/" : path.c_str();
    it->second.shared = common(path) && SDMA_REAL(access)(name, F_OK) == 0;
  }
}
void Tree::add_text(std::string path, std::string text) {
  add(std::move(path), {.kind = Kind::text, .text = std::move(text)});
}
void Tree::add_live(std::string path, std::string (*live)(std::uint64_t), std::uint64_t argument) {
  add(std::move(path), {.kind = Kind::text, .live = live, .argument = argument});
}
void Tree::add_link(std::string path, std::string_view target) {
  // As in sysfs, a link names its target, even if that is a directory above it.
  const std::filesystem::path to(target), from = std::filesystem::path(path).parent_path();
  auto text = (to.parent_path().lexically_relative(from) / to.filename()).lexically_normal().string();
  add(std::move(path), {.kind = Kind::link, .text = std::move(text)});
}

void Tree::fill(std::string_view section, const FileValues& values, std::string_view directory) {
  tree_texts().fill(section, values, [&](detail::FileText f) {
    auto path = f.path.starts_with('/') ? std::move(f.path) : fmt::format("{}/{}", directory, f.path);
    if (f.kind == detail::FileText::Kind::link) return add_link(std::move(path), f.text);
    const bool text = f.kind == detail::FileText::Kind::file;
    add(std::move(path), {.kind = text ? Kind::text : Kind::directory, .text = std::move(f.text)});
  });
}

Tree::Tree() : node_(numbered(shown(), static_cast<std::uint32_t>(::sysconf(_SC_NPROCESSORS_CONF)))) {
  add_kfd(*this);
  add_processes(*this);
  add_debugfs(*this);
  add_maps(*this);
  add_caches(*this);
  for (std::size_t g = 0; g < node_.gpus.size(); ++g) {
    const TreeGpu gpu{*this, g};
    add_pci(gpu);
    add_gpu(gpu);
  }
}

const Entry* Tree::at(std::string_view path) const {
  const auto it = entries_.find(path);
  return it != entries_.end() ? &it->second : find_process_entry(path);
}

Tree::Resolved Tree::resolve(std::string_view path, bool follow) const {
  constexpr int kMostLinks = 40;  // as in the kernel
  std::string rest(path);
  Resolved r{.entry = at("")};
  for (int links = 0; links < kMostLinks;) {
    const auto begin = rest.find_first_not_of('/');
    if (begin == rest.npos) {
      if (r.path.empty()) r.path = "/";
      return r;
    }
    const auto end = std::min(rest.find('/', begin), rest.size());
    const auto name = rest.substr(begin, end - begin);
    rest.erase(0, end);
    if (name == ".") continue;
    if (name == "..") {
      ascend(r.path);
      r.entry = at(r.path);
      continue;
    }
    // Nothing lies below a file.
    if (r.entry && r.entry->kind != Kind::directory) return {};
    r.path.append("/").append(name);
    r.entry = at(r.path);
    r.crossed = r.crossed || (r.entry && !r.entry->shared);
    const bool last = rest.find_first_not_of('/') == rest.npos;
    if (!r.entry || r.entry->kind != Kind::link || (last && !follow && rest.empty())) continue;
    ++links;
    rest.insert(0, r.entry->text);
    if (rest.starts_with('/')) r.path.clear();  // a descriptor in /proc
    else ascend(r.path);
    r.entry = at(r.path);
  }
  return {};
}

const Entry* Tree::find(std::string_view path, bool follow) const {
  const auto* e = resolve(path, follow).entry;
  return e && !e->shared ? e : nullptr;
}

detail::FileTexts tree_texts() noexcept { return detail::FileTexts(kTreeFiles); }

const Tree& tree() {
  static const auto* t = [] {
    const Inside work;
    return new Tree;  // never destroyed, like engine threads
  }();
  return *t;
}

}  // namespace sdma::emulator
