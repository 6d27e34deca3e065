// SPDX-License-Identifier: MIT
// Interposes fts_open and the functions on its result, where one of the paths is in the tree or above it.
//
// The working directory never changes: as with FTS_NOCHDIR, fts_accpath is fts_path.
#include "../no_memory.hpp"
#include "../real.hpp"
#include "front.hpp"
#include "handles.hpp"
#include "paths.hpp"

#include <dirent.h>
#include <fts.h>
#include <sys/stat.h>
#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

namespace sdma::emulator { namespace {

using Order = int (*)(const FTSENT**, const FTSENT**);

/// One file, with the struct that the program gets. Its name follows the struct.
struct Item {
  std::string path;
  struct stat status {};
  std::unique_ptr<std::byte[]> room;
  FTSENT* entry() const noexcept { return reinterpret_cast<FTSENT*>(room.get()); }
};
using Items = std::vector<std::unique_ptr<Item>>;

/// The files of one directory, and which of them is current.
struct Level {
  Items items{};
  std::size_t at{};
};

class Walker {
 public:
  Walker(char* const* paths, int options, Order order) : options_(options), order_(order) {
    parent_ = item("", nullptr, FTS_ROOTPARENTLEVEL);
    Level roots;
    for (; *paths; ++paths) {
      std::string path(*paths);
      while (path.size() > 1 && path.ends_with('/')) path.pop_back();
      roots.items.push_back(item(path, parent_->entry(), FTS_ROOTLEVEL));
      examine(*roots.items.back(), (options & FTS_COMFOLLOW) != 0);
    }
    sort(roots.items);
    levels_.push_back(std::move(roots));
    started_ = false;
  }

  FTSENT* read() {
    if (levels_.empty()) return nullptr;
    if (!started_) {
      started_ = true;
      return current_or_up();
    }
    auto& now = current();
    auto* e = now.entry();
    const auto instruction = std::exchange(e->fts_instr, decltype(e->fts_instr){FTS_NOINSTR});
    if (instruction == FTS_AGAIN ||
        (instruction == FTS_FOLLOW && (e->fts_info == FTS_SL || e->fts_info == FTS_SLNONE))) {
      examine(now, instruction == FTS_FOLLOW);
      return e;
    }
    if (e->fts_info == FTS_D) {
      if (instruction == FTS_SKIP || ((options_ & FTS_XDEV) != 0 && e->fts_dev != root_device())) {
        next_.reset();
        e->fts_info = FTS_DP;
        return e;
      }
      if (!next_) next_ = std::make_unique<Level>(below(now));
      levels_.push_back(std::move(*next_));
      next_.reset();
      return current_or_up();
    }
    ++levels_.back().at;
    return current_or_up();
  }

  FTSENT* children() {
    if (!started_) return chained(levels_.front().items);
    if (levels_.empty() || current().entry()->fts_info != FTS_D) return nullptr;
    if (!next_) next_ = std::make_unique<Level>(below(current()));
    return chained(next_->items);
  }

 private:
  static std::unique_ptr<Item> item(std::string path, FTSENT* parent, int level) {
    auto i = std::make_unique<Item>();
    i->path = std::move(path);
    const auto slash = i->path.rfind('/');
    const auto name = slash == std::string::npos || i->path.size() == 1 ? i->path : i->path.substr(slash + 1);
    i->room = std::make_unique<std::byte[]>(sizeof(FTSENT) + name.size());
    auto* e = new (i->room.get()) FTSENT{};
    e->fts_parent = parent;
    e->fts_path = e->fts_accpath = i->path.data();
    e->fts_pathlen = static_cast<unsigned short>(i->path.size());
    e->fts_namelen = static_cast<unsigned short>(name.size());
    e->fts_level = static_cast<short>(level);
    e->fts_instr = FTS_NOINSTR;
    e->fts_statp = &i->status;
    std::memcpy(e->fts_name, name.c_str(), name.size() + 1);
    return i;
  }

  /// Sets what the file is. `follow`: the target of a link.
  void examine(Item& i, bool follow) const {
    auto& e = *i.entry();
    auto& s = i.status;
    e.fts_errno = 0;
    const bool logical = (options_ & FTS_LOGICAL) != 0 || follow;
    if ((logical ? ::stat(i.path.c_str(), &s) : ::lstat(i.path.c_str(), &s)) != 0) {
      e.fts_errno = errno;
      const bool dangling = logical && ::lstat(i.path.c_str(), &s) == 0;
      e.fts_info = dangling ? FTS_SLNONE : FTS_NS;
      if (dangling) e.fts_errno = 0;
      return;
    }
    e.fts_dev = s.st_dev;
    e.fts_ino = s.st_ino;
    e.fts_nlink = s.st_nlink;
    e.fts_info = S_ISDIR(s.st_mode) ? FTS_D : S_ISLNK(s.st_mode) ? FTS_SL : S_ISREG(s.st_mode) ? FTS_F : FTS_DEFAULT;
    if (e.fts_info != FTS_D) return;
    for (auto* p = e.fts_parent; p && p->fts_level >= FTS_ROOTLEVEL; p = p->fts_parent)
      if (p->fts_dev == e.fts_dev && p->fts_ino == e.fts_ino) {
        e.fts_cycle = p;
        e.fts_info = FTS_DC;
      }
  }

  Level below(Item& directory) const {
    Level l;
    auto* parent = directory.entry();
    struct Close {
      void operator()(DIR* d) const noexcept { ::closedir(d); }
    };
    const std::unique_ptr<DIR, Close> d(::opendir(directory.path.c_str()));
    if (!d) {
      parent->fts_info = FTS_DNR;
      parent->fts_errno = errno;
      return l;
    }
    while (const auto* e = ::readdir(d.get())) {
      const bool dot = std::strcmp(e->d_name, ".") == 0 || std::strcmp(e->d_name, "..") == 0;
      if (dot && (options_ & FTS_SEEDOT) == 0) continue;
      const auto* slash = directory.path.ends_with('/') ? "" : "/";
      l.items.push_back(item(directory.path + slash + e->d_name, parent, parent->fts_level + 1));
      if (dot) l.items.back()->entry()->fts_info = FTS_DOT;
      else examine(*l.items.back(), false);
    }
    sort(l.items);
    return l;
  }

  void sort(Items& items) const {
    if (!order_) return;
    std::sort(items.begin(), items.end(), [&](const auto& a, const auto& b) {
      const FTSENT *x = a->entry(), *y = b->entry();
      return order_(&x, &y) < 0;
    });
  }

  static FTSENT* chained(const Items& items) {
    for (std::size_t i = 0; i < items.size(); ++i)
      items[i]->entry()->fts_link = i + 1 < items.size() ? items[i + 1]->entry() : nullptr;
    return items.empty() ? (errno = 0, nullptr) : items.front()->entry();
  }

  Item& current() { return *levels_.back().items[levels_.back().at]; }
  dev_t root_device() const { return levels_.front().items[levels_.front().at]->status.st_dev; }

  /// The current file; after the last one of a directory, the directory itself again.
  FTSENT* current_or_up() {
    if (levels_.back().at < levels_.back().items.size()) return current().entry();
    levels_.pop_back();
    if (levels_.empty()) return errno = 0, nullptr;
    auto* e = current().entry();
    if (e->fts_info == FTS_D) e->fts_info = FTS_DP;
    return e;
  }

  const int options_;
  const Order order_;
  std::unique_ptr<Item> parent_;
  std::vector<Level> levels_;
  std::unique_ptr<Level> next_;  ///< of the current directory, if fts_children has read it
  bool started_{};
};

Handles<Walker, FTS>& walkers() noexcept { return Handles<Walker, FTS>::all(); }

}}  // namespace sdma::emulator

using namespace sdma::emulator;

SDMA_FRONT FTS* fts_open(char* const* paths, int options, Order order) {
  return guarded<FTS*>(nullptr, [&]() -> FTS* {
    bool concerned = false;
    for (auto* const* p = paths; *p; ++p) concerned = concerned || find_shared(AT_FDCWD, *p).entry;
    if (!concerned) return SDMA_REAL(fts_open)(paths, options, order);
    if ((options & (FTS_LOGICAL | FTS_PHYSICAL)) == 0) return errno = EINVAL, nullptr;
    return walkers().add(std::make_unique<Walker>(paths, options, order));
  });
}
SDMA_FRONT FTSENT* fts_read(FTS* f) {
  auto* w = walkers().find(f);
  return w ? guarded<FTSENT*>(nullptr, [&] { return w->read(); }) : SDMA_REAL(fts_read)(f);
}
SDMA_FRONT FTSENT* fts_children(FTS* f, int options) {
  auto* w = walkers().find(f);
  return w ? guarded<FTSENT*>(nullptr, [&] { return w->children(); }) : SDMA_REAL(fts_children)(f, options);
}
SDMA_FRONT int fts_set(FTS* f, FTSENT* e, int instruction) noexcept {
  if (!walkers().find(f)) return SDMA_REAL(fts_set)(f, e, instruction);
  e->fts_instr = static_cast<decltype(e->fts_instr)>(instruction);
  return 0;
}
SDMA_FRONT int fts_close(FTS* f) { return walkers().remove(f) ? 0 : SDMA_REAL(fts_close)(f); }

static_assert(sizeof(FTSENT) == sizeof(FTSENT64));
SDMA_SAME(fts64_open, fts_open)
SDMA_SAME(fts64_read, fts_read)
SDMA_SAME(fts64_children, fts_children)
SDMA_SAME(fts64_set, fts_set)
SDMA_SAME(fts64_close, fts_close)
