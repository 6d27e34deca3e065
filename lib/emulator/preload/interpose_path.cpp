// SPDX-License-Identifier: MIT
// Interposes the functions that resolve or expand a path inside the C library: realpath, glob, ftw. They call
// the C library's own stat and opendir, which cannot be intercepted, so they are replaced where files of the
// tree are concerned.
#include "../no_memory.hpp"
#include "../real.hpp"
#include "front.hpp"
#include "paths.hpp"
#include "working_directory.hpp"

#include <dirent.h>
#include <ftw.h>
#include <glob.h>
#include <linux/limits.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <set>
#include <string>
#include <utility>

using namespace sdma::emulator;

namespace {

/// `real`: the C library's function, for a path. `to` has room for PATH_MAX bytes, or is null.
template <class Real> char* canonical(const char* path, char* to, Real real) {
  return guarded<char*>(nullptr, [&]() -> char* {
    const auto found = find_entry(AT_FDCWD, path);
    if (!found.entry) return real(found.name(path));
    const auto bytes = found.path.size() + 1;
    if (bytes > PATH_MAX) return errno = ENAMETOOLONG, nullptr;
    auto* at = to ? to : static_cast<char*>(std::malloc(bytes));
    if (!at) return errno = ENOMEM, nullptr;
    return static_cast<char*>(std::memcpy(at, found.path.c_str(), bytes));
  });
}

/// Whether a pattern can match files of the tree.
bool matches_the_tree(const char* pattern) {
  for (const auto* directory : {"/sys", "/dev", "/proc"})
    if (std::strstr(pattern, directory)) return true;
  return pattern[0] == '/' || !working_directory().path.empty();
}

/// glob reads directories with functions of ours, which it offers to callers.
int expand(const char* pattern, int flags, int (*error)(const char*, int), glob_t* g) {
  if (!pattern || !g || (flags & GLOB_ALTDIRFUNC) != 0 || !matches_the_tree(pattern))
    return SDMA_REAL(glob)(pattern, flags, error, g);
  g->gl_opendir = [](const char* path) -> void* { return ::opendir(path); };
  g->gl_closedir = [](void* d) { ::closedir(static_cast<DIR*>(d)); };
  g->gl_readdir = reinterpret_cast<dirent* (*)(void*)>(::readdir);
  g->gl_stat = ::stat;
  g->gl_lstat = ::lstat;
  const int r = SDMA_REAL(glob)(pattern, flags | GLOB_ALTDIRFUNC, error, g);
  g->gl_flags &= ~GLOB_ALTDIRFUNC;
  return r;
}

using Visit = int (*)(const char*, const struct stat*, int, FTW*);
using SimpleVisit = int (*)(const char*, const struct stat*, int);

/// nftw, on ours and the machine's directories.
class Walk {
 public:
  Walk(Visit visit, SimpleVisit simple, int flags) : visit_(visit), simple_(simple), flags_(flags) {}

  int from(std::string path) {
    while (path.size() > 1 && path.ends_with('/')) path.pop_back();
    const auto slash = path.rfind('/');
    const int r = enter(path, slash == path.npos ? 0 : static_cast<int>(slash) + 1, 0);
    const bool skipped = (flags_ & FTW_ACTIONRETVAL) != 0 && (r == FTW_SKIP_SUBTREE || r == FTW_SKIP_SIBLINGS);
    return skipped ? 0 : r;
  }

 private:
  int call(const std::string& path, const struct stat& s, int type, int base, int level) {
    if (simple_) return simple_(path.c_str(), &s, type == FTW_SLN ? FTW_NS : type);
    FTW at{.base = base, .level = level};
    if ((flags_ & FTW_CHDIR) != 0 && base > 0) (void)!::chdir(path.substr(0, static_cast<std::size_t>(base)).c_str());
    return visit_(path.c_str(), &s, type, &at);
  }

  int enter(const std::string& path, int base, int level) {
    struct stat s {};
    const bool physical = (flags_ & FTW_PHYS) != 0;
    if ((physical ? ::lstat(path.c_str(), &s) : ::stat(path.c_str(), &s)) != 0) {
      if (level == 0) return -1;
      const bool dangling = !physical && ::lstat(path.c_str(), &s) == 0 && S_ISLNK(s.st_mode);
      return call(path, s, dangling ? FTW_SLN : FTW_NS, base, level);
    }
    if (level == 0) device_ = s.st_dev;
    else if ((flags_ & FTW_MOUNT) != 0 && s.st_dev != device_) return 0;
    if (!S_ISDIR(s.st_mode)) return call(path, s, S_ISLNK(s.st_mode) ? FTW_SL : FTW_F, base, level);
    if (!physical && !entered_.emplace(s.st_dev, s.st_ino).second) return 0;
    struct Close {
      void operator()(DIR* d) const noexcept { ::closedir(d); }
    };
    std::unique_ptr<DIR, Close> d(::opendir(path.c_str()));
    if (!d) return call(path, s, FTW_DNR, base, level);
    const bool last = (flags_ & FTW_DEPTH) != 0;
    if (const int r = last ? 0 : call(path, s, FTW_D, base, level)) return r;
    const auto prefix = path.ends_with('/') ? path : path + "/";
    while (const auto* e = ::readdir(d.get())) {
      if (std::strcmp(e->d_name, ".") == 0 || std::strcmp(e->d_name, "..") == 0) continue;
      const int r = enter(prefix + e->d_name, static_cast<int>(prefix.size()), level + 1);
      if (r == 0) continue;
      const bool acts = (flags_ & FTW_ACTIONRETVAL) != 0;
      if (acts && r == FTW_SKIP_SIBLINGS) break;
      if (!acts || r != FTW_SKIP_SUBTREE) return r;
    }
    d.reset();
    return last ? call(path, s, FTW_DP, base, level) : 0;
  }

  const Visit visit_;
  const SimpleVisit simple_;
  const int flags_;
  dev_t device_{};
  std::set<std::pair<dev_t, ino_t>> entered_;
};

template <class Real> int walk(const char* path, Visit visit, SimpleVisit simple, int flags, Real real) {
  return guarded(-1, [&] {
    const auto found = find_shared(AT_FDCWD, path);
    if (!found.entry) return real(found.name(path));
    if ((flags & FTW_CHDIR) == 0) return Walk(visit, simple, flags).from(path);
    const int before = ::open(".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    const int r = Walk(visit, simple, flags).from(found.path);
    if (before >= 0) {
      (void)!::fchdir(before);
      ::close(before);
    }
    return r;
  });
}
static_assert(sizeof(struct stat) == sizeof(struct stat64));

}  // namespace

// The functions with underscores are those that programs compiled with _FORTIFY_SOURCE call.
extern "C" char* __realpath_chk(const char*, char*, std::size_t);
SDMA_FRONT char* realpath(const char* path, char* to) noexcept {
  return canonical(path, to, [&](const char* file) { return SDMA_REAL(realpath)(file, to); });
}
SDMA_FRONT char* __realpath_chk(const char* path, char* to, std::size_t room) {
  return canonical(path, to, [&](const char* file) { return SDMA_REAL(__realpath_chk)(file, to, room); });
}
SDMA_FRONT char* canonicalize_file_name(const char* path) noexcept {
  return canonical(path, nullptr, [&](const char* file) { return SDMA_REAL(canonicalize_file_name)(file); });
}

SDMA_FRONT int glob(const char* pattern, int flags, int (*error)(const char*, int), glob_t* g) {
  return expand(pattern, flags, error, g);
}
SDMA_SAME(glob64, glob)

SDMA_FRONT int nftw(const char* path, Visit visit, int descriptors, int flags) {
  return walk(path, visit, nullptr, flags,
              [&](const char* file) { return SDMA_REAL(nftw)(file, visit, descriptors, flags); });
}
SDMA_SAME(nftw64, nftw)
SDMA_FRONT int ftw(const char* path, SimpleVisit visit, int descriptors) {
  return walk(path, nullptr, visit, 0, [&](const char* file) { return SDMA_REAL(ftw)(file, visit, descriptors); });
}
SDMA_SAME(ftw64, ftw)
