// SPDX-License-Identifier: MIT
// Functions of the C library that resolve or walk paths, in the tree and across its border with the machine's files.
#include "support/catch.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <fts.h>
#include <ftw.h>
#include <glob.h>
#include <spawn.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <unistd.h>
#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <memory>
#include <set>
#include <string>
#include <vector>

namespace {

constexpr const char *kTopology = "/sys/class/kfd/kfd/topology", *kReal = "/sys/devices/virtual/kfd/kfd/topology";
using Names = std::set<std::string>;

/// Leaves the working directory as it was.
struct Home {
  int fd = ::open(".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  ~Home() {
    (void)!::fchdir(fd);
    ::close(fd);
  }
};

std::string owned(char* p) {
  const std::unique_ptr<char, decltype(&std::free)> freed(p, &std::free);
  return p ? p : "";
}
std::string resolved(const char* path) { return owned(::realpath(path, nullptr)); }
std::string here() {
  char room[PATH_MAX];
  return ::getcwd(room, sizeof room) ? room : "";
}
std::string first_line(int fd) {
  char room[256];
  const auto n = ::read(fd, room, sizeof room);
  ::close(fd);
  const std::string text(room, n > 0 ? static_cast<std::size_t>(n) : 0);
  return text.substr(0, text.find('\n'));
}

Names listed(DIR* d) {
  Names out;
  if (!d) return out;
  while (const auto* e = ::readdir(d)) out.insert(e->d_name);
  ::closedir(d);
  return out;
}

/// All files below a directory, in the way of std::filesystem, which uses openat and fdopendir.
Names below(const std::string& root) {
  Names out{root};
  for (const auto& e : std::filesystem::recursive_directory_iterator(root)) out.insert(e.path().string());
  return out;
}

/// What is ours in shared memory. Other programs come and go there.
Names shared_by_us() {
  auto all = listed(::opendir("/dev/shm"));
  std::erase_if(all, [](const std::string& name) { return name.find("sdma") == name.npos; });
  return all;
}

Names visited;
int last_type = 0;
int visit(const char* path, const struct stat* s, int type, FTW* at) {
  visited.insert(path);
  last_type = type;
  CHECK(std::strchr(path + at->base, '/') == nullptr);
  CHECK((type == FTW_F || type == FTW_D || type == FTW_SL || type == FTW_DP));
  CHECK(S_ISDIR(s->st_mode) == (type == FTW_D || type == FTW_DP));
  return 0;
}

std::string output_of(const char* command) {
  std::string out;
  auto* f = ::popen(command, "r");
  for (int c; f && (c = std::fgetc(f)) != EOF;) out += static_cast<char>(c);
  if (f) ::pclose(f);
  return out;
}

}  // namespace

TEST_CASE("realpath follows the links of the tree") {
  CHECK(resolved(kTopology) == kReal);
  CHECK(resolved("/sys/class/drm/card1/device/driver") == "/sys/bus/pci/drivers/amdgpu");
  CHECK(resolved("/sys/class/drm/card1/device/..") == "/sys/devices/pci0000:18");
  CHECK(resolved("/sys/class/kfd/..") == "/sys/class");
  CHECK(resolved("/sys/bus/pci/devices/0000:10:00.0/drm/card0/../../hwmon/hwmon0/device/vendor") ==
        "/sys/devices/pci0000:10/0000:10:00.0/vendor");
  CHECK(owned(::canonicalize_file_name("/sys/dev/char/226:128/device")) == "/sys/devices/pci0000:10/0000:10:00.0");
  char room[PATH_MAX];
  REQUIRE(::realpath("//sys//class/./kfd/kfd/", room) == room);
  CHECK(std::string(room) == "/sys/devices/virtual/kfd/kfd");
  CHECK(resolved("/sys/class/kfd/none").empty());
  CHECK(errno == ENOENT);
  CHECK(resolved("/sys/class/kfd/kfd/dev/none").empty());
  // The machine's paths are as before.
  CHECK(resolved("/usr/./bin/..") == "/usr");
  CHECK(std::filesystem::canonical("/sys/class/drm/renderD128/device") == "/sys/devices/pci0000:10/0000:10:00.0");
}

TEST_CASE("nftw, ftw and fts visit what readdir lists") {
  const auto all = below(kReal);
  REQUIRE(all.size() > 100);
  visited.clear();
  REQUIRE(::nftw(kReal, visit, 8, FTW_PHYS) == 0);
  CHECK(visited == all);
  visited.clear();
  REQUIRE(::nftw64(kReal, reinterpret_cast<__nftw64_func_t>(visit), 8, FTW_PHYS | FTW_DEPTH | FTW_MOUNT) == 0);
  CHECK(visited == all);
  CHECK(last_type == FTW_DP);
  visited.clear();
  REQUIRE(::ftw(
              kReal, [](const char* path, const struct stat*, int) { return visited.insert(path), 0; }, 8) == 0);
  CHECK(visited == all);
  CHECK(::nftw(
            kReal, [](const char*, const struct stat*, int, FTW* at) { return at->level == 2 ? 7 : 0; }, 8, FTW_PHYS) ==
        7);
  // Links lead to each directory once, although they form circles. Processes may end meanwhile.
  visited.clear();
  const auto any = [](const char* path, const struct stat*, int, FTW*) { return visited.insert(path), 0; };
  REQUIRE(::nftw("/sys/class/kfd", any, 8, 0) == 0);
  CHECK(visited.count("/sys/class/kfd/kfd/topology/nodes/1/gpu_id") == 1);
  CHECK(::nftw("/sys/class/kfd/none", visit, 8, 0) == -1);

  std::string root(kReal), other = "/sys/class/drm";
  char* const paths[] = {root.data(), nullptr};
  Names pre, post;
  auto* f = ::fts_open(paths, FTS_PHYSICAL | FTS_NOCHDIR, nullptr);
  REQUIRE(f);
  while (const auto* e = ::fts_read(f)) {
    CHECK(std::string(e->fts_path).ends_with(e->fts_name));
    CHECK(e->fts_statp->st_ino == e->fts_ino);
    (e->fts_info == FTS_DP ? post : pre).insert(e->fts_path);
  }
  CHECK(errno == 0);
  REQUIRE(::fts_close(f) == 0);
  CHECK(pre == all);
  CHECK(post.count(kReal) == 1);

  char* const two[] = {root.data(), other.data(), nullptr};
  f = ::fts_open(two, FTS_LOGICAL,
                 [](const FTSENT** a, const FTSENT** b) { return -std::strcmp((*a)->fts_name, (*b)->fts_name); });
  REQUIRE(f);
  auto* e = ::fts_read(f);
  REQUIRE(e);
  CHECK(std::string(e->fts_name) == "topology");
  REQUIRE(::fts_children(f, 0));
  CHECK(std::string(::fts_children(f, 0)->fts_name) == "system_properties");
  ::fts_set(f, e, FTS_SKIP);
  CHECK(::fts_read(f)->fts_info == FTS_DP);
  e = ::fts_read(f);
  CHECK(std::string(e->fts_path) == other);
  e = ::fts_read(f);
  REQUIRE(e);
  CHECK(std::string(e->fts_name) == "version");
  CHECK(e->fts_level == 1);
  REQUIRE(::fts_close(f) == 0);
}

TEST_CASE("glob matches files of the tree and of the machine") {
  const auto matches = [](const std::string& pattern, int flags = 0) {
    glob_t g{};
    std::vector<std::string> out;
    if (::glob(pattern.c_str(), flags, nullptr, &g) == 0) out.assign(g.gl_pathv, g.gl_pathv + g.gl_pathc);
    CHECK((g.gl_flags & GLOB_ALTDIRFUNC) == 0);
    ::globfree(&g);
    return out;
  };
  const std::string topology(kTopology);
  CHECK(matches(topology + "/nodes/[01]/gpu_id") ==
        std::vector<std::string>{topology + "/nodes/0/gpu_id", topology + "/nodes/1/gpu_id"});
  CHECK(matches("/dev/{kfd,null,none*}", GLOB_BRACE) == std::vector<std::string>{"/dev/kfd", "/dev/null"});
  CHECK(matches("/sys/class/*/card0/device/vendor") == std::vector<std::string>{"/sys/class/drm/card0/device/vendor"});
  CHECK(matches("/sys/class/kfd/none*").empty());
  CHECK(matches("/us?") == std::vector<std::string>{"/usr"});
  glob64_t g{};
  REQUIRE(::glob64("/sys/class/drm/renderD*", GLOB_MARK, nullptr, &g) == 0);
  CHECK(std::string(g.gl_pathv[0]) == "/sys/class/drm/renderD128/");
  ::globfree64(&g);
  const Home home;
  REQUIRE(::chdir(kTopology) == 0);
  CHECK(matches("n*/0/name") == std::vector<std::string>{"nodes/0/name"});
}

TEST_CASE("a working directory in the tree") {
  const auto before = shared_by_us();
  const Home home;
  REQUIRE(::chdir(kTopology) == 0);
  CHECK(here() == kReal);
  CHECK(owned(::getcwd(nullptr, 0)) == kReal);
  CHECK(owned(::get_current_dir_name()) == kReal);
  char small[8];
  CHECK(::getcwd(small, sizeof small) == nullptr);
  CHECK(errno == ERANGE);
  CHECK(std::filesystem::current_path() == kReal);
  struct stat s {};
  CHECK(::stat("nodes/1", &s) == 0);
  CHECK(S_ISDIR(s.st_mode));
  CHECK(::access("generation_id", R_OK) == 0);
  CHECK(first_line(::open("nodes/0/gpu_id", O_RDONLY)) == "0");
  CHECK(listed(::opendir(".")) == Names{".", "..", "generation_id", "nodes", "system_properties"});
  CHECK(resolved("nodes/../..") == "/sys/devices/virtual/kfd/kfd");
  CHECK(::open("none", O_RDONLY) == -1);
  CHECK(::chdir("generation_id") == -1);
  CHECK(errno == ENOTDIR);
  CHECK(shared_by_us() == before);

  SECTION("is inherited by a program, and by a child of vfork, whose own does not change it") {
    CHECK(output_of("/bin/pwd; cat nodes/0/gpu_id; cd nodes/1; /bin/pwd; cd /; /bin/pwd") ==
          std::string(kReal) + "\n0\n" + kReal + "/nodes/1\n/\n");
    const auto child = ::vfork();
    if (child == 0) ::_exit(::chdir("/") == 0 && ::access("usr", F_OK) == 0 ? 0 : 1);
    int status = -1;
    ::waitpid(child, &status, 0);
    CHECK(status == 0);
    CHECK(here() == kReal);
  }
  SECTION("leads back to the machine") {
    REQUIRE(::chdir("../../..") == 0);
    CHECK(here() == "/sys/devices/virtual");
    CHECK(::access("kfd/kfd/topology/nodes", F_OK) == 0);
    CHECK(listed(::opendir(".")).count("kfd") == 1);
    REQUIRE(::chdir("kfd/kfd") == 0);
    CHECK(here() == "/sys/devices/virtual/kfd/kfd");
    CHECK(::access("../../../../../dev/null", W_OK) == 0);
    CHECK(first_line(::open("../../../../../proc/self/comm", O_RDONLY)) ==
          first_line(::open("/proc/self/comm", O_RDONLY)));
    REQUIRE(::chdir("/usr/bin") == 0);
    CHECK(here() == "/usr/bin");
    CHECK(::access("../../sys/class/kfd/kfd/dev", F_OK) == 0);
    CHECK(::access("kfd", F_OK) == -1);
  }
  SECTION("of an open directory") {
    const int fd = ::open("nodes/1", O_RDONLY | O_DIRECTORY);
    REQUIRE(::chdir("/") == 0);
    CHECK(::access("sys/class/kfd/kfd", F_OK) == 0);
    REQUIRE(::fchdir(fd) == 0);
    CHECK(here() == std::string(kReal) + "/nodes/1");
    ::close(fd);
    CHECK(::access("gpu_id", F_OK) == 0);
  }
}

TEST_CASE("paths that are relative to an open directory, of the tree or of the machine") {
  for (const auto& [folder, to_topology] : {std::pair<const char*, std::string>{kTopology, ""},
                                            {"/sys/class", "kfd/kfd/topology/"},
                                            {"/", "sys/class/kfd/kfd/topology/"},
                                            {"/sys/class/kfd/kfd/topology/nodes", "../"}}) {
    INFO(folder);
    const int fd = ::open(folder, O_RDONLY | O_DIRECTORY);
    REQUIRE(fd >= 0);
    const auto id = to_topology + "nodes/1/gpu_id";
    struct stat a {
    }, b{};
    CHECK(::fstatat(fd, id.c_str(), &a, 0) == 0);
    REQUIRE(::stat((std::string(kReal) + "/nodes/1/gpu_id").c_str(), &b) == 0);
    CHECK(a.st_ino == b.st_ino);
    CHECK(a.st_dev == b.st_dev);
    CHECK(::faccessat(fd, id.c_str(), R_OK, 0) == 0);
    CHECK(::faccessat(fd, id.c_str(), W_OK, 0) == -1);
    const int file = ::openat(fd, id.c_str(), O_RDONLY);
    REQUIRE(::fstat(file, &b) == 0);
    CHECK(a.st_ino == b.st_ino);
    CHECK(a.st_dev == b.st_dev);
    CHECK(first_line(file) != "");
    dirent** all = nullptr;
    const int n = ::scandirat(fd, (to_topology + "nodes").c_str(), &all, nullptr, alphasort);
    CHECK(n >= 5);
    for (int i = 0; i < n; ++i) std::free(all[i]);
    std::free(all);
    ::close(fd);
  }
  const int fd = ::open("/sys/class/kfd", O_RDONLY | O_DIRECTORY);
  char room[128];
  const auto n = ::readlinkat(fd, "kfd", room, sizeof room);
  REQUIRE(n > 0);
  CHECK(std::string(room, static_cast<std::size_t>(n)) == "../../devices/virtual/kfd/kfd");
  CHECK(::faccessat(fd, "../../../dev/null", R_OK, 0) == 0);
  CHECK(::faccessat(fd, "../drm/card0", F_OK, 0) == 0);
  ::close(fd);
}

TEST_CASE("directories of the machine list its files and those of the tree") {
  auto dev = listed(::opendir("/dev"));
  CHECK(dev.count("null") == 1);
  CHECK(dev.count("kfd") == 1);
  CHECK(dev.count("dri") == 1);
  CHECK(listed(::opendir("/dev/")) == dev);
  CHECK(listed(::fdopendir(::open("/dev", O_RDONLY | O_DIRECTORY))) == dev);
  CHECK(listed(::opendir("/dev/../dev")) == dev);
  dirent** all = nullptr;
  const int n = ::scandir("/dev", &all, nullptr, nullptr);
  CHECK(n == static_cast<int>(dev.size()));  // each once
  for (int i = 0; i < n; ++i) std::free(all[i]);
  std::free(all);
  const auto devices = listed(::opendir("/sys/bus/pci/devices"));
  CHECK(devices.count("0000:10:00.0") == 1);
  CHECK(listed(::opendir("/sys/class")).count("kfd") == 1);
  CHECK(listed(::opendir("/sys/class")).count("net") == 1);

  auto* d = ::opendir("/dev");
  REQUIRE(d);
  struct stat s {};
  REQUIRE(::fstat(::dirfd(d), &s) == 0);
  CHECK(S_ISDIR(s.st_mode));
  CHECK(::fstatat(::dirfd(d), "kfd", &s, 0) == 0);
  CHECK(S_ISCHR(s.st_mode));
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
  dirent e{}, *next = nullptr;
  Names again;
  while (::readdir_r(d, &e, &next) == 0 && next) again.insert(e.d_name);
#pragma GCC diagnostic pop
  CHECK(again == dev);
  ::closedir(d);
}

TEST_CASE("a file of the tree has no attributes, and lies in the file system of its directory") {
  struct statfs of_file {
  }, of_sys{};
  REQUIRE(::statfs("/sys/class/drm/card0", &of_file) == 0);
  REQUIRE(::statfs("/sys", &of_sys) == 0);
  CHECK(of_file.f_type == of_sys.f_type);
  char room[16];
  CHECK(::getxattr("/dev/kfd", "security.selinux", room, sizeof room) == -1);
  CHECK(errno == ENODATA);
  CHECK(::llistxattr("/sys/class/drm/card0", room, sizeof room) == 0);
  CHECK(::euidaccess("/dev/kfd", R_OK | W_OK) == 0);
  CHECK(::open("/sys/class/drm/card0", O_RDONLY | O_NOFOLLOW) == -1);
  CHECK(errno == ELOOP);
  auto* f = std::fopen("/proc/self/comm", "r");
  REQUIRE(f);
  REQUIRE(std::freopen("/sys/class/kfd/kfd/topology/nodes/0/gpu_id", "r", f) == f);
  CHECK(std::fgetc(f) == '0');
  std::fclose(f);
}
