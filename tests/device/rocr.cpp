// SPDX-License-Identifier: MIT
// What only a device over ROCr promises: who makes the queues, what is missing and what to do, adopted host memory,
// what a fork leaves. Run on a node of three GPUs, with Debian's ROCr or with the library that SDMA_TEST_LIBHSA names.
#include "sdma/device/rocr.hpp"

#include "device/sysfs.hpp"
#include "sdma/device/kfd.hpp"

#include <dlfcn.h>
#include <sys/mman.h>
#include <unistd.h>

#include <array>
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

Deadline in_time() { return Deadline::in(std::chrono::seconds(60)); }

const char* libhsa() { return std::getenv("SDMA_TEST_LIBHSA"); }
RocrOptions with_library() { return {.libhsa = libhsa() ? libhsa() : ""}; }
std::unique_ptr<RocrDevice> opened() {
  auto d = RocrDevice::open(with_library());
  if (!d) FAIL(to_string(d.error()));
  return std::move(*d);
}

std::string reason(const RocrOptions& o) {
  const auto missing = RocrDevice::missing(o);
  const auto d = RocrDevice::open(o);
  REQUIRE_FALSE(d);
  REQUIRE_FALSE(missing.empty());
  CHECK(to_string(missing.front()) == to_string(d.error()));
  CHECK_FALSE(d.error().hint.empty());
  return to_string(d.error());
}
template <class R> std::string reason_of(const R& r) {
  REQUIRE_FALSE(r);
  CHECK_FALSE(r.error().hint.empty());
  return to_string(r.error());
}
void check_in(const std::string& part, const std::string& text) {
  INFO(text);
  CHECK(text.find(part) != std::string::npos);
}

/// Copies with an engine; false if it did not end.
bool copied(Device& d, GpuVa from, GpuVa to, std::uint32_t bytes, GpuId gpu = {}) {
  auto done = *d.create_signal();
  auto q = *d.create_queue({.gpu = gpu});
  Ring<> ring{q.memory()};
  if (ring.submit(CopyLinear{.src = from, .dst = to, .bytes = bytes}, Fence{.addr = done->va, .value = 1}) != Errc::ok)
    return false;
  return wait(*done, Compare::eq, 1, in_time(), ring).has_value();
}

/// What the test's library does differently while this exists.
struct Wish {
  explicit Wish(const char* what) { REQUIRE(::setenv("SDMA_TEST_QUEUES", what, 1) == 0); }
  ~Wish() { ::unsetenv("SDMA_TEST_QUEUES"); }
};

}  // namespace

TEST_CASE("who makes the queues of a ROCr device", "[rocr]") {
  const auto d = opened();
  CHECK(d->queues() == (libhsa() ? RocrQueues::runtime : RocrQueues::thunk));
  check_in("1.", d->version());
  CHECK(d->topology() == from_sysfs(*read_sysfs())->topology);
  auto q = *d->create_queue({.engine = EngineId{5}, .ring_bytes = 8192, .priority = -3});
  CHECK(validate(q.memory()).empty());
  CHECK(q.memory().dwords.size_bytes() == 8192);
  CHECK(q.memory().least_dwords == 1);
  CHECK(q.engine() == EngineId{5});
}

TEST_CASE("a ROCr device says what is missing, and what to do", "[rocr]") {
  CHECK(RocrDevice::missing(with_library()).empty());
  check_in("libnothing.so.1: error: cannot be loaded", reason({.libhsa = "libnothing.so.1"}));
  check_in("does not export hsa_", reason({.libhsa = "libc.so.6"}));
  auto o = with_library();
  o.topology = "/nowhere";
  check_in("/nowhere", reason(o));
  o = with_library();
  o.kfd = "/dev/no-kfd";
  check_in("/dev/no-kfd: error: does not exist", reason_of(RocrDevice::open(o)));
}

TEST_CASE("GPUs without sDMA engines, or with others than gfx9, are left out of a ROCr device", "[rocr]") {
  auto files = *read_sysfs();
  const auto all = *from_sysfs(files);
  const auto change = [&](std::size_t g, const std::string& what, const std::string& by) {
    auto& text = files["nodes/" + std::to_string(all.gpus[g].kfd_node) + "/properties"];
    const auto at = text.find(what);
    REQUIRE(at != std::string::npos);
    text.replace(at, text.find('\n', at) - at, by);
  };
  const auto folder = fs::temp_directory_path() / ("sdma-rocr-" + std::to_string(getpid()));
  const auto write = [&] {
    for (const auto& [name, text] : files) {
      fs::create_directories((folder / name).parent_path());
      std::ofstream(folder / name) << text;
    }
  };
  auto o = with_library();
  o.topology = folder.string();
  change(0, "gfx_target_version ", "gfx_target_version 110000");
  change(1, "gfx_target_version ", "gfx_target_version 90500");
  write();
  {
    auto d = *RocrDevice::open(o);
    REQUIRE(d->topology().gpus.size() == all.gpus.size() - 1);
    CHECK(d->topology().gpus[0].generation() == Generation::v4_4_5);
    CHECK(d->create_queue({.gpu = GpuId{1}}));
  }
  change(1, "gfx_target_version ", "gfx_target_version 90000");
  write();
  {
    auto d = *RocrDevice::open(o);
    auto q = *d->create_queue({});
    CHECK(q.memory().least_dwords == 64);
    auto done = *d->create_signal();
    Ring<> ring{q.memory()};
    REQUIRE(ring.submit(Fence{.addr = done->va, .value = 1}) == Errc::ok);
    CHECK(wait(*done, Compare::eq, 1, in_time(), ring));
    CHECK(ring.positions().committed == 256);
  }
  for (const std::size_t g : {1u, 2u})
    for (const auto* count : {"num_sdma_engines ", "num_sdma_xgmi_engines "})
      change(g, count, std::string(count) + "0");
  write();
  check_in("no gfx9 GPU with sDMA engines, but gfx1100 with 16 sDMA engines, gfx900 with 0", reason(o));
  fs::remove_all(folder);
}

TEST_CASE("a ROCr whose queues cannot be used", "[rocr]") {
  if (!libhsa()) return;
  {
    const Wish wish("version-2");
    check_in("version 2 of the interface", reason(with_library()));
  }
  const auto d = opened();
  {
    const Wish wish("old-driver");
    check_in("KFD 1.17", reason_of(d->create_queue({.engine = EngineId{2}})));
  }
  {
    const Wish wish("forwarded");
    check_in("not a hardware doorbell", reason_of(d->create_queue({})));
  }
  auto q = *d->create_queue({});
  CHECK_FALSE(d->fault(q));
  {
    const Wish wish("destroyed");
    REQUIRE(d->fault(q));
    check_in("another library has destroyed the queue", describe(*d->fault(q)));
  }
}

TEST_CASE("the host's memory is adopted, and stays its owner's", "[rocr]") {
  constexpr std::uint32_t kBytes = 1 << 16;
  const auto d = opened();
  auto* const mine =
      static_cast<std::byte*>(::mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  std::memset(mine, 7, kBytes);
  for (int round = 0; round < 2; ++round) {
    auto adopted = d->adopt(mine, kBytes);
    REQUIRE(adopted);
    CHECK(adopted->host().data() == mine);
    CHECK(adopted->bytes() == kBytes);
    auto to = *d->allocate({.where = GpuId{0}, .bytes = kBytes});
    REQUIRE(copied(*d, adopted->va(), to.va(), kBytes));
    std::array<std::byte, 64> seen{};
    CHECK(d->peek(to.va() + (kBytes - 64), seen) == Errc::ok);
    CHECK(seen[63] == std::byte{7});
    CHECK(d->peek(adopted->va() + 1, seen) == Errc::ok);
    const auto at = adopted->va();
    adopted->reset();
    CHECK(d->peek(at, seen) == Errc::unmapped);
    mine[5] = std::byte{7};  // still there
  }
  ::munmap(mine, kBytes);
}

TEST_CASE("memory of this ROCr is adopted where it lies, in parts that overlap", "[rocr]") {
  const auto d = opened(), other = opened();
  auto memory = *other->allocate({.where = GpuId{1}, .bytes = 8192, .gpus = 6});
  auto part = *d->adopt(memory.host().data() + 4096, 64, 1);
  auto all = *d->adopt(memory.host().data(), 8192, 1);
  CHECK(all.va() == memory.va());
  CHECK(part.va() == memory.va() + 4096);
  auto from = *d->allocate({.bytes = 4096});
  std::memset(from.host().data(), 9, 4096);
  REQUIRE(copied(*d, from.va(), part.va() + 2, 62));         // GPU 0, which had no access
  REQUIRE(copied(*d, from.va(), memory.va(), 8, GpuId{2}));  // GPU 2, whose access stays
  std::array<std::byte, 1> seen{};
  CHECK(d->peek(all.va() + 4096 + 63, seen) == Errc::ok);
  CHECK(seen[0] == std::byte{9});
  part.reset();
  CHECK(d->peek(all.va() + 4096 + 63, seen) == Errc::ok);
}

TEST_CASE("what cannot be adopted", "[rocr]") {
  const auto d = opened();
  auto memory = *d->allocate({.where = GpuId{0}, .bytes = 4096});
  check_in("the range is empty", reason_of(d->adopt(nullptr, 5)));
  check_in("the range is empty", reason_of(d->adopt(memory.host().data(), 0)));
  check_in("no GPU may access it", reason_of(d->adopt(memory.host().data(), 1, 8)));
  check_in("its allocation has 4096 bytes", reason_of(d->adopt(memory.host().data() + 1, 4096)));
  check_in("does not know this memory", reason_of(d->adopt(reinterpret_cast<void*>(0x10000), 4096)));
}

TEST_CASE("a KFD device beside a ROCr that has its own libhsakmt names the device over ROCr", "[rocr-own]") {
  REQUIRE(::dlopen(std::getenv("SDMA_TEST_OWN"), RTLD_NOW | RTLD_LOCAL));
  const auto text = reason_of(KfdDevice::open());
  check_in("--device=rocr", text);
  CHECK(to_string(KfdDevice::missing().front()) == text);
  check_in("ROCm 10.0.0", reason_of(RocrDevice::open({.libhsa = std::getenv("SDMA_TEST_OWN")})));
}

TEST_CASE("engines that ROCr recommends between GPUs replace the kernel's", "[rocr-stand-in]") {
  const auto d = opened();
  CHECK(*d->topology().engine_for(GpuId{0}, GpuId{1}) == EngineId{7});
  const auto kernel = from_sysfs(*read_sysfs())->topology;
  CHECK(*d->topology().engine_for(GpuId{0}, HostDirection::to_host) ==
        *kernel.engine_for(GpuId{0}, HostDirection::to_host));
}

TEST_CASE("queues of the earlier form have ROCr's size", "[rocr-stand-in]") {
  const auto d = *RocrDevice::open({.libhsa = std::getenv("SDMA_TEST_EARLIER")});
  REQUIRE(d->queues() == RocrQueues::earlier);
  auto a = *d->allocate({.bytes = 4096}), b = *d->allocate({.where = GpuId{0}, .bytes = 4096});
  std::memset(a.host().data(), 5, 4096);
  REQUIRE(copied(*d, a.va(), b.va(), 4096));
  CHECK(b.host()[4095] == std::byte{5});
  auto q = *d->create_queue({.engine = EngineId{6}, .ring_bytes = 1024});
  CHECK(q.memory().dwords.size_bytes() == 64 * 1024);
  CHECK(q.engine() == EngineId{6});
  check_in("a ring of 65536 bytes", reason_of(d->create_queue({.ring_bytes = 1 << 20})));
}

TEST_CASE("without a render node, the rate of a GPU's clock is unknown, and it cannot be read", "[rocr]") {
  auto o = with_library();
  o.render = "/nowhere/renderD";
  const auto d = RocrDevice::open(o);
  REQUIRE(d);
  CHECK((*d)->clock(GpuId{1}).error() == Errc::unknown);
  CHECK(opened()->clock(GpuId{1}));
}

TEST_CASE("the child of a fork of a ROCr device ends, and says what it cannot do", "[rocr]") {
  auto d = opened();
  auto& device = *d;
  auto theirs = *d->allocate({.bytes = 4096});
  auto adopted = *d->adopt(theirs.host().data(), 64);
  sdma::test::forked(std::move(d), in_time, [&](int& bad) {
    bad += device.adopt(&bad, 4).has_value();
    adopted.reset();
    theirs.reset();
  });
}
