// SPDX-License-Identifier: MIT
// What is particular to memory that a CUDA device shares: its descriptors, pinned pages that cannot be unpinned while a
// stream waits, and processes that number their GPUs differently.
#include "sdma/device/cuda.hpp"
#include "sdma/packets/registry.hpp"

#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include "conformance_support.hpp"
#include "process.hpp"

namespace conformance {
namespace {

/// Those of pages that processes share.
std::size_t mappings() {
  std::size_t n = 0;
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);) n += line.find("memfd:sdma") != line.npos;
  return n;
}
/// Are none mapped? A stream may still be about to say that it has ended; what a device frees then is unpinned with the
/// next pages that one of the process frees.
bool none_mapped(CudaDevice& d) {
  for (const auto end = soon(); mappings() > 0; std::this_thread::yield()) {
    if (end.passed()) return false;
    auto m = must(d.allocate({.bytes = 4096, .shareable = true}));
  }
  return true;
}

}  // namespace

TEST_CASE("cuda: a handle opened in its own process shows the same bytes, in GPU memory and in the host's",
          "[.cuda-share]") {
  const auto d = must(CudaDevice::open({.gpus = 2}));
  auto gpu = must(d->allocate({.where = GpuId{1}, .bytes = 5000, .shareable = true}));
  auto twin = must(d->open_shared(must(d->share(gpu))));
  CHECK(twin.va() != gpu.va());
  Lane lane(*d);
  lane.submit(Fill{.dst = gpu.va(), .data = 0x44444444, .bytes = 4996});
  REQUIRE(lane.finish());
  CHECK(all_are(twin.host().first(4996), 0x44));
  std::memset(twin.host().data(), 0x45, 5000);
  lane.submit(Fence{.addr = twin.va(), .value = 0x46464646});
  REQUIRE(lane.finish());
  CHECK(all_are(gpu.host().first(4), 0x46));
  CHECK(all_are(gpu.host().subspan(4), 0x45));
  auto late = must(d->open_shared(must(d->share(gpu))));
  CHECK(all_are(late.host().subspan(4), 0x45));
  auto hidden = must(d->allocate({.where = GpuId{0}, .bytes = 64, .host_access = false, .shareable = true}));
  CHECK(must(d->open_shared(must(d->share(hidden)))).host().empty());
  // Words of a GPU are the host's, which sees only its own memory at once.
  auto words = must(d->allocate(
      {.where = GpuId{1}, .bytes = 4096, .alignment = 1 << 16, .purpose = Purpose::words, .shareable = true}));
  CHECK(words.va().value % (1 << 16) == 0);
  auto opened = must(d->open_shared(must(d->share(words))));
  lane.submit(Fence{.addr = opened.va() + 64, .value = 7});
  CHECK(wait(must(d->signal_at(words, 64)), Compare::eq, 7, soon()));
  for (const auto* m : {&twin, &opened}) CHECK(d->share(*m).error().message == "this memory cannot be shared");
}

TEST_CASE("cuda: shared pages are given back without waiting for a stream that waits, and unpinned later",
          "[.cuda-share]") {
  // The stream is of another device, so nothing that this one knows of can touch the pages.
  const auto d = must(CudaDevice::open({.gpus = 2})), other = must(CudaDevice::open({.gpus = 2}));
  REQUIRE(none_mapped(*d));  // those of another test
  auto go = must(other->create_signal());
  Lane lane(*other);
  lane.submit(PollMem{.addr = go->low_va(), .func = Compare::ge, .reference = 1});
  { auto m = must(d->allocate({.bytes = 4096, .shareable = true})); }
  CHECK(mappings() == 1);
  go->set(1);
  REQUIRE(lane.finish());
  CHECK(none_mapped(*d));
}

TEST_CASE("cuda: 10,000 objects, shared and given back in turn, leave nothing", "[.cuda-share]") {
  const auto d = must(CudaDevice::open({.gpus = 2}));
  std::size_t fds = 0;
  for (std::uint32_t i = 0; i < 5000; ++i) {
    auto page = must(d->allocate({.bytes = 4096, .shareable = true}));
    auto gpu = must(d->allocate({.where = GpuId{i % 2}, .bytes = 4096, .shareable = true}));
    page.as<std::uint32_t>()[0] = i;
    for (const auto* m : {&page, &gpu}) {
      auto twin = must(d->open_shared(must(d->share(*m))));
      if (twin.as<std::uint32_t>()[0] != (m == &page ? i : 0)) FAIL(i);
    }
    page.reset();
    gpu.reset();
    if (i == 0) fds = sdma::test::descriptors().size();
  }
  CHECK(sdma::test::at_most(fds));
  CHECK(none_mapped(*d));
}

TEST_CASE("cuda: at the limit of descriptors, an error names it", "[.cuda-share]") {
  const auto d = must(CudaDevice::open({.gpus = 2}));
  auto opened = must(d->allocate({.bytes = 4096, .shareable = true}));
  const auto handle = must(d->share(opened));
  auto gpu = must(d->allocate({.where = GpuId{1}, .bytes = 4096, .shareable = true}));
  rlimit before{};
  REQUIRE(getrlimit(RLIMIT_NOFILE, &before) == 0);
  const auto full = sdma::test::descriptors().size() + 8;
  const rlimit limit{.rlim_cur = full, .rlim_max = before.rlim_max};
  REQUIRE(setrlimit(RLIMIT_NOFILE, &limit) == 0);
  std::vector<int> all;
  for (int fd; (fd = open("/dev/null", O_RDONLY)) >= 0;) all.push_back(fd);
  const auto names = [&](const auto& r) {
    return !r && r.error().message == "all " + std::to_string(full) + " descriptors of this process are in use";
  };
  CHECK(names(d->share(gpu)));
  CHECK(names(d->allocate({.bytes = 4096, .shareable = true})));
  CHECK(names(d->open_shared(handle)));
  for (const int fd : all) close(fd);
  CHECK(d->share(gpu));
  REQUIRE(setrlimit(RLIMIT_NOFILE, &before) == 0);
}

TEST_CASE("cuda: 64 processes open one object at once", "[.share][.crowd]") {
  std::vector<sdma::test::Process> all;
  for (int i = 0; i < 64; ++i)
    all.emplace_back([](sdma::test::Socket s) {
      const auto d = must(CudaDevice::open({.gpus = 2}));
      const auto page = s.receive<SharedHandle>(), gpu = s.receive<SharedHandle>();
      if (!gpu) return 1;
      auto words = must(d->open_shared(*page));
      if (!all_are(must(d->open_shared(*gpu)).host(), 0x21)) return 2;
      must(d->signal_at(words)).add(1);
      return 0;
    });
  const auto d = must(CudaDevice::open({.gpus = 2}));
  auto page = must(d->allocate({.bytes = 4096, .shareable = true}));
  auto gpu = must(d->allocate({.where = GpuId{1}, .bytes = 4096, .shareable = true}));
  std::memset(gpu.host().data(), 0x21, 4096);
  flush(*d);
  for (const auto& p : all)
    for (const auto* m : {&page, &gpu}) p.socket().send(must(d->share(*m)));
  for (auto& p : all) CHECK(p.ended() == 0);
  CHECK(must(d->signal_at(page)).load() == 64);
}

TEST_CASE("cuda: memory of a GPU that the opener numbers differently is refused", "[.share][.numbers]") {
  sdma::test::Process other([](sdma::test::Socket s) {
    for (const auto* name : {"SDMA_STAND_IN_GPUS", "CUDA_VISIBLE_DEVICES"})
      setenv(name, *name == 'S' ? "1" : "0", 1);  // gpu1 is then on the first GPU, too
    const auto d = must(CudaDevice::open({.gpus = 2}));
    const auto near = s.receive<SharedHandle>(), far = s.receive<SharedHandle>();
    if (!far || !d->open_shared(*near)) return 1;
    const auto opened = d->open_shared(*far);
    return !opened && opened.error().message == "gpu1 is another GPU in that process" ? 0 : 2;
  });
  const auto d = must(CudaDevice::open({.gpus = 2}));
  if (d->physical_gpus() < 2) return;  // both processes number one GPU in the same way
  auto near = must(d->allocate({.where = GpuId{0}, .bytes = 64, .shareable = true}));
  auto far = must(d->allocate({.where = GpuId{1}, .bytes = 64, .shareable = true}));
  for (const auto* m : {&near, &far}) other.socket().send(must(d->share(*m)));
  CHECK(other.ended() == 0);
}

}  // namespace conformance
