// SPDX-License-Identifier: MIT
// Interposes opendir and the functions on its result, for directories of the tree.
#include "../no_memory.hpp"
#include "../real.hpp"
#include "front.hpp"
#include "handles.hpp"
#include "paths.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <unistd.h>
#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <new>
#include <string>
#include <vector>

namespace sdma::emulator { namespace {

struct Name {
  std::string name{};
  ino_t inode{};
  unsigned char type{};
};

/// A directory of the tree, or one of the machine that contains files of ours.
struct Listing {
  int fd = -1;
  DIR* machine{};  ///< owns `fd` if it is not null
  std::vector<Name> names{};
  std::size_t at = 0;
  dirent entry{};
};
static_assert(sizeof(dirent) == sizeof(dirent64));  // one struct: SDMA_SAME

Handles<Listing, DIR>& listings() noexcept { return Handles<Listing, DIR>::all(); }

unsigned char type_of(const Entry& e) {
  return e.kind == Kind::directory ? DT_DIR : e.kind == Kind::text ? DT_REG : e.kind == Kind::link ? DT_LNK : DT_CHR;
}

struct CloseDir {
  void operator()(DIR* d) const noexcept { SDMA_REAL(closedir)(d); }
};

/// The names of the tree, and those of the machine that the tree does not hide.
std::vector<Name> names_in(const std::string& path, const Entry& e, DIR* machine) {
  std::vector<Name> out;
  if (!machine) out = {{".", e.inode, DT_DIR}, {"..", e.inode, DT_DIR}};
  std::map<std::string, const Entry*, std::less<>> ours;
  for (const auto& name : children(e))
    // The machine has a shared directory, too.
    if (const auto* child = tree().resolve(path + "/" + name, false).entry; child && !child->shared) ours[name] = child;
  while (const auto* m = machine ? SDMA_REAL(readdir)(machine) : nullptr)
    if (ours.find(m->d_name) == ours.end()) out.push_back({m->d_name, m->d_ino, m->d_type});
  for (const auto& [name, child] : ours) out.push_back({name, child->inode, type_of(*child)});
  return out;
}

/// On success, the listing owns the descriptor, or the machine's directory.
DIR* list(const std::string& path, const Entry& e, int fd, DIR* machine) {
  auto l = std::make_unique<Listing>();
  l->fd = fd;
  l->machine = machine;
  l->names = names_in(path, e, machine);
  return listings().add(std::move(l));
}

DIR* list_machine(const std::string& path, const Entry& e, DIR* machine) {
  if (!machine) return nullptr;
  return guarded<DIR*>(nullptr, [&] { return list(path, e, SDMA_REAL(dirfd)(machine), machine); });
}

DIR* list_path(const Found& found) {
  if (found.entry->shared) {
    std::unique_ptr<DIR, CloseDir> machine(SDMA_REAL(opendir)(found.path.c_str()));
    auto* d = list_machine(found.path, *found.entry, machine.get());
    if (d) machine.release();
    return d;
  }
  const int fd = open_entry(found.path, *found.entry, O_RDONLY | O_CLOEXEC | O_DIRECTORY);
  if (fd < 0) return nullptr;
  auto* d = guarded<DIR*>(nullptr, [&] { return list(found.path, *found.entry, fd, nullptr); });
  if (!d) ::close(fd);
  return d;
}

/// The directory that is open as `fd`, if files of ours are in it.
Found listed(int fd) {
  auto path = open_directory(fd).path;
  if (path.empty()) return {};
  const auto* e = tree().resolve(path).entry;
  return {.entry = e && e->kind == Kind::directory ? e : nullptr, .path = std::move(path)};
}

dirent* next(Listing& l) {
  if (l.at == l.names.size()) return nullptr;
  const auto& n = l.names[l.at++];
  l.entry = {};
  l.entry.d_ino = n.inode;
  l.entry.d_off = static_cast<off_t>(l.at);
  l.entry.d_reclen = sizeof l.entry;
  l.entry.d_type = n.type;
  n.name.copy(l.entry.d_name, sizeof l.entry.d_name - 1);
  return &l.entry;
}

using Filter = int (*)(const dirent*);
using Compare = int (*)(const dirent**, const dirent**);

/// scandir for a listing, which it closes.
int scan(DIR* d, dirent*** out, Filter filter, Compare compare) {
  struct CloseListing {
    void operator()(DIR* p) const noexcept { ::closedir(p); }
  };
  struct Free {
    void operator()(void* p) const noexcept { std::free(p); }
  };
  const std::unique_ptr<DIR, CloseListing> dir(d);
  if (!dir) return -1;
  auto* l = listings().find(dir.get());
  std::vector<std::unique_ptr<dirent, Free>> kept;
  kept.reserve(l->names.size());
  const auto copied = [](const void* from, std::size_t bytes) {
    auto* to = std::malloc(bytes);
    if (!to) throw std::bad_alloc();
    return from ? std::memcpy(to, from, bytes) : to;
  };
  while (auto* e = next(*l))
    if (!filter || filter(e) != 0) kept.emplace_back(static_cast<dirent*>(copied(e, sizeof *e)));
  if (compare)
    std::sort(kept.begin(), kept.end(), [&](const auto& a, const auto& b) {
      const dirent *x = a.get(), *y = b.get();
      return compare(&x, &y) < 0;
    });
  *out = static_cast<dirent**>(copied(nullptr, std::max<std::size_t>(kept.size(), 1) * sizeof(dirent*)));
  for (std::size_t i = 0; i < kept.size(); ++i) (*out)[i] = kept[i].release();
  return static_cast<int>(kept.size());
}

}}  // namespace sdma::emulator

using namespace sdma::emulator;

SDMA_FRONT DIR* opendir(const char* path) {
  return guarded<DIR*>(nullptr, [&]() -> DIR* {
    const auto found = find_shared(AT_FDCWD, path);
    return found.entry ? list_path(found) : SDMA_REAL(opendir)(found.name(path));
  });
}
SDMA_FRONT DIR* fdopendir(int fd) {
  return guarded<DIR*>(nullptr, [&]() -> DIR* {
    const auto found = listed(fd);
    if (!found.entry) return SDMA_REAL(fdopendir)(fd);
    if (!found.entry->shared) return list(found.path, *found.entry, fd, nullptr);
    // If this fails, the caller keeps the descriptor: a copy is read.
    const int copy = SDMA_REAL(fcntl)(fd, F_DUPFD_CLOEXEC, 0);
    std::unique_ptr<DIR, CloseDir> machine(copy < 0 ? nullptr : SDMA_REAL(fdopendir)(copy));
    if (!machine) return copy < 0 ? nullptr : (::close(copy), nullptr);
    auto* d = list_machine(found.path, *found.entry, machine.get());
    if (!d) return nullptr;
    machine.release();
    listings().find(d)->fd = fd;
    return d;
  });
}
SDMA_FRONT int closedir(DIR* d) {
  const auto l = listings().remove(d);
  if (!l) return SDMA_REAL(closedir)(d);
  if (l->machine) {
    if (l->fd != SDMA_REAL(dirfd)(l->machine)) ::close(l->fd);
    SDMA_REAL(closedir)(l->machine);
  } else if (l->fd >= 0) {
    ::close(l->fd);
  }
  return 0;
}
SDMA_FRONT dirent* readdir(DIR* d) {
  auto* l = listings().find(d);
  return l ? next(*l) : SDMA_REAL(readdir)(d);
}
SDMA_SAME(readdir64, readdir)
// Deprecated, but programs call them.
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
SDMA_FRONT int readdir_r(DIR* d, dirent* to, dirent** result) {
  auto* l = listings().find(d);
  if (!l) return SDMA_REAL(readdir_r)(d, to, result);
  const auto* e = next(*l);
  *result = e ? static_cast<dirent*>(std::memcpy(to, e, sizeof *e)) : nullptr;
  return 0;
}
SDMA_SAME(readdir64_r, readdir_r)
#pragma GCC diagnostic pop
SDMA_FRONT void rewinddir(DIR* d) noexcept {
  auto* l = listings().find(d);
  if (!l) return SDMA_REAL(rewinddir)(d);
  l->at = 0;
}
SDMA_FRONT long telldir(DIR* d) noexcept {
  auto* l = listings().find(d);
  return l ? static_cast<long>(l->at) : SDMA_REAL(telldir)(d);
}
SDMA_FRONT void seekdir(DIR* d, long at) noexcept {
  auto* l = listings().find(d);
  if (l) l->at = std::min(static_cast<std::size_t>(at), l->names.size());
  else SDMA_REAL(seekdir)(d, at);
}
SDMA_FRONT int dirfd(DIR* d) noexcept {
  auto* l = listings().find(d);
  return l ? l->fd : SDMA_REAL(dirfd)(d);
}
SDMA_FRONT int scandir(const char* path, dirent*** out, Filter filter, Compare compare) {
  return ::scandirat(AT_FDCWD, path, out, filter, compare);
}
SDMA_FRONT int scandirat(int dirfd, const char* path, dirent*** out, Filter filter, Compare compare) {
  return guarded(-1, [&] {
    const auto found = find_shared(dirfd, path);
    if (!found.entry) return SDMA_REAL(scandirat)(found.dirfd(dirfd), found.name(path), out, filter, compare);
    auto* d = list_path(found);
    return d ? scan(d, out, filter, compare) : -1;
  });
}
SDMA_SAME(scandir64, scandir)
SDMA_SAME(scandirat64, scandirat)
