// SPDX-License-Identifier: MIT
// What only a device of the kernel driver promises: what is missing and what to do, who the GPU is, where pointers lie,
// what a fork leaves. Run on a node of three GPUs at least.
#include "sdma/device/kfd.hpp"

#include <dlfcn.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include "device/sysfs.hpp"

#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "forked.hpp"
#include "sdma/packets/copy.hpp"
#include "sdma/packets/sync.hpp"
#include "sdma/sync/wait.hpp"
#include "support/catch.hpp"

using namespace sdma;
namespace fs = std::filesystem;

namespace {

Deadline soon() { return Deadline::in(std::chrono::seconds(60)); }

/// Newer or older than the machine's, if the build has it.
const char* library() { return std::getenv("SDMA_TEST_LIBHSAKMT"); }
KfdOptions options() {
  KfdOptions o;
  if (library()) o.libhsakmt = library();
  return o;
}

struct Folder {
  fs::path path = fs::temp_directory_path() / ("sdma-kfd-" + std::to_string(getpid()));
  Folder() { fs::create_directories(path); }
  ~Folder() { fs::remove_all(path); }
  void write(const SysfsFiles& files) const {
    for (const auto& [name, text] : files) {
      fs::create_directories((path / name).parent_path());
      std::ofstream(path / name) << text;
    }
  }
};

/// The reason why it does not open, and that it says what to do.
std::string refused(const KfdOptions& o) {
  const auto missing = KfdDevice::missing(o);
  const auto d = KfdDevice::open(o);
  REQUIRE_FALSE(d);
  REQUIRE_FALSE(missing.empty());
  CHECK(to_string(missing.front()) == to_string(d.error()));
  CHECK_FALSE(d.error().hint.empty());
  return to_string(d.error());
}
bool contains(const std::string& text, const std::string& part) {
  INFO(text);
  CHECK(text.find(part) != std::string::npos);
  return text.find(part) != std::string::npos;
}

bool loads(const std::string& library) { return ::dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL) != nullptr; }

void replace(std::string& text, const std::string& what, const std::string& by) {
  const auto at = text.find(what);
  REQUIRE(at != std::string::npos);
  text.replace(at, what.size(), by);
}

}  // namespace

TEST_CASE("what is missing is said, and what to do", "[kfd]") {
  auto o = options();
  CHECK(KfdDevice::missing(o).empty());
  o.libhsakmt = "libnothing.so.1";
  CHECK(contains(refused(o), "libnothing.so.1"));
  o.libhsakmt = "libc.so.6";
  CHECK(contains(refused(o), "does not export hsaKmt"));
  o = options();
  o.kfd = "/dev/no-kfd";
  CHECK(contains(refused(o), "/dev/no-kfd: error: does not exist"));
  o = options();
  o.render = "/dev/dri/no-renderD";
  CHECK(contains(refused(o), "/dev/dri/no-renderD128: error: does not exist"));
  CHECK(KfdDevice::missing(o).size() >= 3);  // one a GPU
  o = options();
  o.topology = "/nowhere";
  CHECK(contains(refused(o), "/nowhere"));
  o.kfd = "/dev/no-kfd";
  CHECK(KfdDevice::missing(o).size() == 2);
}

TEST_CASE("permission denied: whose group it is", "[kfd]") {
  const Folder folder;
  const auto file = folder.path / "kfd";
  std::ofstream(file) << "";
  REQUIRE(::chmod(file.c_str(), 0) == 0);
  const auto child = fork();
  if (child == 0) {
    if (geteuid() == 0 && seteuid(65534) != 0) _exit(3);
    auto o = options();
    o.kfd = file.string();
    const auto missing = KfdDevice::missing(o);
    _exit(!missing.empty() && to_string(missing.front()).find("permission denied") != std::string::npos &&
                  missing.front().hint.find("group") != std::string::npos
              ? 0
              : 1);
  }
  int status = -1;
  REQUIRE(waitpid(child, &status, 0) == child);
  CHECK(WEXITSTATUS(status) == 0);
}

TEST_CASE("GPUs other than gfx94x and gfx950 are left out; a node without one does not open", "[kfd]") {
  auto files = *read_sysfs();
  const auto all = *from_sysfs(files);
  const auto of = [&](std::size_t g) -> std::string& {
    return files["nodes/" + std::to_string(all.gpus[g].kfd_node) + "/properties"];
  };
  replace(of(1), "gfx_target_version 90402", "gfx_target_version 90010");
  const Folder folder;
  folder.write(files);
  auto o = options();
  o.topology = folder.path.string();
  {
    auto d = KfdDevice::open(o);
    REQUIRE(d);
    const auto& t = (*d)->topology();
    REQUIRE(t.gpus.size() == all.gpus.size() - 1);
    CHECK((*d)->gpus()[1].kernel == all.gpus[2]);
    const auto* link = t.link(LinkEnd::gpu(0), LinkEnd::gpu(1));
    REQUIRE(link);
    CHECK(link->engine_mask == all.topology.link(LinkEnd::gpu(0), LinkEnd::gpu(2))->engine_mask);
    CHECK((*d)->create_queue({.gpu = GpuId{1}}));
  }
  for (std::size_t g = 0; g < all.gpus.size(); ++g)
    if (g != 1) replace(of(g), "gfx_target_version 90402", "gfx_target_version 90010");
  folder.write(files);
  CHECK(contains(refused(o), "no gfx94x or gfx950 GPU: this node has gfx90a"));
}

TEST_CASE("each GPU says who it is", "[kfd]") {
  const auto by_library = *KfdDevice::open(options());
  auto o = options();
  o.libdrm = GENERATE("libnothing.so.1", "", "libc.so.6");  // missing, not wanted, another library
  const auto d = *KfdDevice::open(o);
  REQUIRE(d->gpus().size() == d->topology().gpus.size());
  for (std::size_t i = 0; i < d->gpus().size(); ++i) {
    auto told = by_library->gpus()[i];
    if (loads(options().libdrm)) CHECK(told.source == options().libdrm);
    else WARN("no libdrm_amdgpu here");
    // Both ways give the same.
    const auto& g = d->gpus()[i];
    CHECK(g.source == "ioctl");
    CHECK(told.kernel == g.kernel);
    CHECK(told.sdma_firmware == g.sdma_firmware);
    CHECK(told.compute_firmware == g.compute_firmware);
    CHECK(told.clock_hz == g.clock_hz);
    CHECK(told.driver == g.driver);
    CHECK(g.driver.find("amdgpu 3.") == 0);
    CHECK(g.sdma_firmware != 0);
    CHECK(g.compute_firmware != 0);
    CHECK(g.clock_hz == 100'000'000);
    CHECK(g.kernel.gpu_id != 0);
  }
  CHECK(d->version().find("1.") == 0);
}

TEST_CASE("ring and pointers lie as the engine and its firmware need them", "[kfd]") {
  auto d = *KfdDevice::open(options());
  auto q = *d->create_queue({.ring_bytes = 8192});
  const auto& m = q.memory();
  CHECK(validate(m).empty());
  CHECK(reinterpret_cast<std::uintptr_t>(m.dwords.data()) % 4096 == 0);
  CHECK(m.doorbell);
  CHECK(*m.rptr == 0);
  CHECK(*m.wptr == 0);
  if (!library()) CHECK(reinterpret_cast<std::uintptr_t>(m.wptr) / 64 != reinterpret_cast<std::uintptr_t>(m.rptr) / 64);
  const auto watched = d->create_queue({.watch_wptr = true});
  REQUIRE_FALSE(watched);
  CHECK(contains(to_string(watched.error()), "do not watch wptr"));
}

TEST_CASE("an older driver takes no engine's name, and one that is too old nothing", "[kfd]") {
  if (!library()) return;
  const auto pretend = [](const char* minor) { REQUIRE(::setenv("SDMA_TEST_KFD_MINOR", minor, 1) == 0); };
  pretend("5");
  CHECK(contains(refused(options()), "too old"));
  pretend("16");
  {
    auto d = *KfdDevice::open(options());
    const auto exact = d->create_queue({.engine = EngineId{2}});
    REQUIRE_FALSE(exact);
    CHECK(contains(to_string(exact.error()), "any_xgmi"));
    CHECK(d->create_queue({.pick = EnginePick::any_xgmi}));
  }
  ::unsetenv("SDMA_TEST_KFD_MINOR");
}

TEST_CASE("two devices of one process share the node", "[kfd]") {
  auto a = *KfdDevice::open(options()), b = *KfdDevice::open(options());
  auto memory = *a->allocate({.bytes = 4096});
  std::memset(memory.host().data(), 7, 4096);
  auto done = *b->create_signal();
  {
    auto q = *b->create_queue({.engine = EngineId{5}});
    Ring<> ring{q.memory()};
    a.reset();  // its memory has a handle still
    REQUIRE(ring.submit(CopyLinear{.src = memory.va(), .dst = memory.va() + 2048, .bytes = 64},
                        Fence{.addr = done->va, .value = 1}) == Errc::ok);
    CHECK(wait(*done, Compare::eq, 1, soon(), ring));
  }
}

TEST_CASE("a tick is the host's time", "[kfd]") {
  auto d = *KfdDevice::open(options());
  const auto before = Deadline::Clock::now();
  const auto c = *d->clock(GpuId{1});
  const auto after = Deadline::Clock::now();
  CHECK(before <= c.host);
  CHECK(c.host <= after);
  CHECK(c.at(c.ticks) == c.host);
  CHECK(c.at(c.ticks + c.hz) == c.host + std::chrono::seconds(1));
}

TEST_CASE("a clock whose rate the driver does not give cannot be read", "[kfd]") {
  auto o = options();
  const auto* libdrm = std::getenv("SDMA_TEST_LIBDRM");
  if (!libdrm) {
    WARN("SDMA_TEST_LIBDRM names no library");
    return;
  }
  o.libdrm = libdrm;
  const auto d = *KfdDevice::open(o);
  CHECK(d->gpus()[1].source == libdrm);
  CHECK(d->gpus()[1].clock_hz == 0);
  CHECK(d->clock(GpuId{1}).error() == Errc::unknown);
  CHECK(d->clock(GpuId{99}).error() == Errc::bad_argument);
  CHECK((*KfdDevice::open(options()))->clock(GpuId{1}));
}

TEST_CASE("the child of a fork of a KFD device ends, and says what it cannot do", "[kfd]") {
  sdma::test::forked(*KfdDevice::open(options()), soon, [](int&) {});
}
