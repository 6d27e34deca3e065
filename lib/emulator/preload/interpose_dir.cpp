// Interposes opendir and the functions on its result, for directories of the tree. A small set holds our DIR*; all others are
// passed to the C library.
#include "../no_memory.hpp"
#include "../real.hpp"
#include "front.hpp"
#include "open_entry.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <unistd.h>
#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <mutex>
#include <new>
#include <string>
#include <vector>

namespace sdma::emulator {
namespace {

struct Listing {
  int fd = -1;
  std::vector<std::pair<std::string, const Entry*>> names{};
  std::size_t at = 0;
  dirent entry{};
};
static_assert(sizeof(dirent) == sizeof(dirent64));

/// Never destroyed, because destructors of the program may still close directories.
struct Open {
  std::mutex mutex;
  std::vector<Listing*> all;
};
Open& open_listings() noexcept {
  alignas(Open) static std::byte room[sizeof(Open)];
  static auto* o = new (room) Open;
  return *o;
}

Listing* ours(DIR* d) {
  auto& o = open_listings();
  const std::lock_guard lock(o.mutex);
  auto* l = reinterpret_cast<Listing*>(d);
  return std::find(o.all.begin(), o.all.end(), l) == o.all.end() ? nullptr : l;
}

/// On success, the listing owns the descriptor.
DIR* list(const std::string& path, const Entry& e, int fd) {
  auto l = std::make_unique<Listing>();
  l->names = {{".", &e}, {"..", &e}};
  for (const auto& child : e.children) l->names.emplace_back(child, tree().find(path + "/" + child, false));
  auto& o = open_listings();
  const std::lock_guard lock(o.mutex);
  o.all.push_back(l.get());
  l->fd = fd;
  return reinterpret_cast<DIR*>(l.release());
}

DIR* list_path(const Found& found) {
  const int fd = open_entry(found.path, *found.entry, O_RDONLY | O_CLOEXEC | O_DIRECTORY);
  if (fd < 0) return nullptr;
  auto* d = guarded<DIR*>(nullptr, [&] { return list(found.path, *found.entry, fd); });
  if (!d) ::close(fd);
  return d;
}

unsigned char type_of(const Entry& e) {
  return e.kind == Kind::directory ? DT_DIR : e.kind == Kind::text ? DT_REG : e.kind == Kind::link ? DT_LNK : DT_CHR;
}

dirent* next(Listing& l) {
  if (l.at == l.names.size()) return nullptr;
  const auto& [name, e] = l.names[l.at++];
  l.entry = {};
  l.entry.d_ino = e->inode;
  l.entry.d_off = static_cast<off_t>(l.at);
  l.entry.d_reclen = sizeof l.entry;
  l.entry.d_type = type_of(*e);
  name.copy(l.entry.d_name, sizeof l.entry.d_name - 1);
  return &l.entry;
}

using Filter = int (*)(const dirent*);
using Compare = int (*)(const dirent**, const dirent**);

/// scandir for a directory of the tree.
int scan(const char* path, dirent*** out, Filter filter, Compare compare) {
  struct Close {
    void operator()(DIR* d) const noexcept { ::closedir(d); }
  };
  struct Free {
    void operator()(void* p) const noexcept { std::free(p); }
  };
  const std::unique_ptr<DIR, Close> dir(::opendir(path));
  if (!dir) return -1;
  auto* l = ours(dir.get());
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

}  // namespace
}  // namespace sdma::emulator

using namespace sdma::emulator;

SDMA_FRONT DIR* opendir(const char* path) {
  bool is_ours = true;
  auto* d = guarded<DIR*>(nullptr, [&]() -> DIR* {
    const auto found = find_entry(AT_FDCWD, path);
    if (found.entry) return list_path(found);
    is_ours = false;
    return nullptr;
  });
  return is_ours ? d : SDMA_REAL(opendir)(path);
}
SDMA_FRONT DIR* fdopendir(int fd) {
  bool is_ours = true;
  auto* d = guarded<DIR*>(nullptr, [&]() -> DIR* {
    const auto path = directory_path(fd);
    const auto* e = path.empty() ? nullptr : tree().find(path);
    if (e) return list(path, *e, fd);
    is_ours = false;
    return nullptr;
  });
  return is_ours ? d : SDMA_REAL(fdopendir)(fd);
}
SDMA_FRONT int closedir(DIR* d) {
  auto* l = ours(d);
  if (!l) return SDMA_REAL(closedir)(d);
  {
    auto& o = open_listings();
    const std::lock_guard lock(o.mutex);
    std::erase(o.all, l);
  }
  if (l->fd >= 0) ::close(l->fd);
  delete l;
  return 0;
}
SDMA_FRONT dirent* readdir(DIR* d) {
  auto* l = ours(d);
  return l ? next(*l) : SDMA_REAL(readdir)(d);
}
SDMA_FRONT dirent64* readdir64(DIR* d) {
  auto* l = ours(d);
  return l ? reinterpret_cast<dirent64*>(next(*l)) : SDMA_REAL(readdir64)(d);
}
SDMA_FRONT void rewinddir(DIR* d) noexcept {
  auto* l = ours(d);
  if (l) l->at = 0;
  else SDMA_REAL(rewinddir)(d);
}
SDMA_FRONT long telldir(DIR* d) noexcept {
  auto* l = ours(d);
  return l ? static_cast<long>(l->at) : SDMA_REAL(telldir)(d);
}
SDMA_FRONT void seekdir(DIR* d, long at) noexcept {
  auto* l = ours(d);
  if (l) l->at = std::min(static_cast<std::size_t>(at), l->names.size());
  else SDMA_REAL(seekdir)(d, at);
}
SDMA_FRONT int dirfd(DIR* d) noexcept {
  auto* l = ours(d);
  return l ? l->fd : SDMA_REAL(dirfd)(d);
}
SDMA_FRONT int scandir(const char* path, dirent*** out, Filter filter, Compare compare) {
  enum : int { kNotOurs = -2 };
  const int n =
      guarded(-1, [&] { return find_entry(AT_FDCWD, path).entry ? scan(path, out, filter, compare) : int{kNotOurs}; });
  return n == kNotOurs ? SDMA_REAL(scandir)(path, out, filter, compare) : n;
}
// The two are one struct on 64-bit machines: asserted above.
SDMA_FRONT int scandir64(const char* path, dirent64*** out, int (*filter)(const dirent64*),
                         int (*compare)(const dirent64**, const dirent64**)) {
  return ::scandir(path, reinterpret_cast<dirent***>(out), reinterpret_cast<Filter>(filter),
                   reinterpret_cast<Compare>(compare));
}
