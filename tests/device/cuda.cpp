// SPDX-License-Identifier: MIT
// What is particular to the CUDA device: its limits, its window of commands, shadows, polls that CUDA would compare
// differently, and what becomes of errors. On the stand-in for the driver, or on NVIDIA GPUs.
#include "sdma/device/cuda.hpp"
#include "../../lib/device/cuda/cuda_driver.hpp"
#include "conformance_support.hpp"
#include "sdma/stream/writer.hpp"

#include <dlfcn.h>

#include <cstdlib>
#include <thread>

namespace conformance {
namespace {

std::unique_ptr<CudaDevice> cuda(CudaOptions o = {.gpus = 2}) { return must(CudaDevice::open(o)); }

/// The reason of the fault that the queue's next packet causes.
template <class P> std::string refusal(CudaDevice& d, const P& p) {
  Lane lane(d);
  lane.submit(p);
  const auto f = d.wait_fault(soon());
  REQUIRE(f);
  CHECK(f->queue == lane.queue.id());
  CHECK(f->kind == FaultKind::unsupported);
  CHECK(describe(*f).find(std::string(f->rule)) != std::string::npos);
  return std::string(f->rule);
}

}  // namespace

TEST_CASE("cuda: many more prelaunched rounds than a stream holds", "[cuda]") {
  const auto d = cuda();
  constexpr std::uint32_t kRounds = 10'000;
  auto src = gpu_memory(*d, 0, 4096), dst = gpu_memory(*d, 1, 4096);
  auto go = must(d->create_signal()), back = must(d->create_signal());
  auto queue = must(d->create_queue({.engine = engine(*d, 2), .ring_bytes = 2u << 20}));
  Ring<> ring{queue.memory()};
  const auto begin = Deadline::Clock::now();
  for (std::uint32_t i = 1; i <= kRounds; ++i)
    REQUIRE(ring.submit(PollMem{.addr = go->va, .func = Compare::ge, .reference = i},
                        CopyLinear{.src = src.va(), .dst = dst.va(), .bytes = 64},
                        Fence{.addr = back->va, .value = i}) == Errc::ok);
  // No call waited for the stream, which stands at its first poll.
  CHECK(Deadline::Clock::now() - begin < std::chrono::seconds(20));
  CHECK(back->load() == 0);
  CHECK(ring.positions().read < ring.positions().committed);
  for (std::uint32_t i = 1; i <= 50; ++i) {
    go->set(i);
    REQUIRE(wait(*back, Compare::ge, i, soon(), ring));
    CHECK(back->load() == i);
  }
  go->set(kRounds);
  REQUIRE(wait(*back, Compare::eq, kRounds, soon(), ring));
  CHECK(d->parked() == 0);
}

TEST_CASE("cuda: a shadow moves only what was stored", "[cuda]") {
  const auto d = cuda();
  const std::uint32_t n = 3u << 20;  // several pieces
  auto a = gpu_memory(*d, 0, n);
  auto host = host_memory(*d, n);
  pattern(a.host(), 1);
  REQUIRE(d->flush_host_writes(GpuId{0}) == Errc::ok);
  Lane lane(*d);
  pattern(host.host(), 2);
  lane.submit(CopyLinear{.src = host.va(), .dst = a.va() + 1001, .bytes = 2000});
  REQUIRE(wait(*lane.done, Compare::ge, 1, soon(), lane.ring));
  // The host stores beside what the engine has stored, byte by byte, before it has seen that.
  a.host()[1000] = std::byte{0x77};
  a.host()[3001] = std::byte{0x78};
  REQUIRE(d->flush_host_writes(GpuId{0}) == Errc::ok);
  std::vector<std::byte> gpu(n);
  REQUIRE(d->peek(a.va(), gpu) == Errc::ok);
  CHECK(equal(gpu, a.host()));
  CHECK(gpu[1000] == std::byte{0x77});
  CHECK(gpu[3001] == std::byte{0x78});
  CHECK(equal(std::span(gpu).subspan(1001, 2000), host.host().first(2000)));
  pattern(host.host(), 1);
  CHECK(equal(std::span(gpu).first(1000), host.host().first(1000)));
  CHECK(equal(std::span(gpu).subspan(3002), host.host().subspan(3002)));
}

TEST_CASE("cuda: polls that CUDA would compare differently", "[cuda]") {
  const auto d = cuda();
  auto word = must(d->create_signal());
  const auto poll = [&](std::uint64_t value, PollMem p, bool met) {
    CAPTURE(value, p.func, p.reference, p.mask);
    word->set(value);
    p.addr = word->va;
    Lane lane(*d);
    lane.submit(p);
    CHECK(lane.finish(met ? soon() : briefly()) == met);
    if (met) return;
    for (const auto v : {0ull, 1ull, 7ull, 0xffffffffull}) {
      if (!holds(v & p.mask, p.func, p.reference)) continue;
      word->set(v);  // so that its stream is not parked
      CHECK(lane.finish());
      return;
    }
    FAIL("no value satisfies it");
  };
  poll(5, {.func = Compare::ge, .reference = 0xfffffff0}, false);  // cyclically, 5 is ahead
  poll(0xfffffff1, {.func = Compare::ge, .reference = 0xfffffff0}, true);
  poll(0xffffffff, {.func = Compare::ge, .reference = 1}, true);  // cyclically, it is before 1
  poll(0xffffffff, {.func = Compare::gt, .reference = 0}, true);
  poll(0, {.func = Compare::gt, .reference = 0}, false);
  poll(6, {.func = Compare::lt, .reference = 7}, true);
  poll(7, {.func = Compare::lt, .reference = 7}, false);
  poll(7, {.func = Compare::le, .reference = 7}, true);
  poll(1, {.func = Compare::ne, .reference = 0}, true);
  poll(0x17, {.func = Compare::eq, .reference = 7, .mask = 15}, true);
  poll(0, {.func = Compare::always, .reference = 9}, true);
  // A word that jumps while a stream waits: a fault, because the stream would wait for ever.
  word->set(0);
  {
    Lane lane(*d);
    lane.submit(PollMem{.addr = word->va, .func = Compare::ge, .reference = 1});
    CHECK_FALSE(lane.finish(briefly()));
    word->set(0xffffffff);
    const auto f = d->wait_fault(soon());
    REQUIRE(f);
    CHECK(f->queue == lane.queue.id());
    CHECK(f->rule.find("cyclically") != f->rule.npos);
    word->set(1);
  }
  CHECK(d->parked() == 0);
  // A word in a GPU's memory.
  auto memory = gpu_memory(*d, 0, 64);
  Lane waits(*d), stores(*d, {.engine = engine(*d, 1)});
  waits.submit(PollMem{.addr = memory.va(), .func = Compare::eq, .reference = 3},
               PollMem{.addr = memory.va(), .func = Compare::ge, .reference = 2});
  CHECK_FALSE(waits.finish(briefly()));
  stores.submit(Fence{.addr = memory.va(), .value = 3});
  CHECK(waits.finish());
}

TEST_CASE("cuda: packets", "[cuda]") {
  const auto d = cuda();
  const std::uint32_t n = 64 << 10;
  auto a = gpu_memory(*d, 0, n), b = gpu_memory(*d, 1, n);
  auto h = host_memory(*d, n), i = host_memory(*d, n);
  Lane lane(*d);
  pattern(h.host(), 3);
  lane.submit(CopyLinear{.src = h.va(), .dst = i.va(), .bytes = n - 3});  // between host buffers
  REQUIRE(lane.finish());
  CHECK(equal(i.host().first(n - 3), h.host().first(n - 3)));
  CHECK(all_are(i.host().last(3), 0));
  lane.submit(CopyBroadcast{.src = h.va(), .dst1 = a.va(), .dst2 = i.va() + 32, .bytes = 1000});
  REQUIRE(lane.finish());
  CHECK(equal(a.host().first(1000), h.host().first(1000)));
  CHECK(equal(i.host().subspan(32, 1000), h.host().first(1000)));
  pattern(a.host(), 4);
  pattern(b.host(), 5);
  const std::vector<std::byte> was_a(a.host().begin(), a.host().end()), was_b(b.host().begin(), b.host().end());
  lane.submit(CopySwap{.a = a.va(), .b = b.va(), .bytes = n});
  REQUIRE(lane.finish());
  CHECK(equal(a.host(), was_b));
  CHECK(equal(b.host(), was_a));
  lane.submit(Fill{.dst = a.va() + 4, .data = 0x11223344, .bytes = 400},
              Fill{.dst = b.va() + 2, .data = 0x5566, .bytes = 401, .unit = FillUnit::half},
              Fill{.dst = i.va() + 1, .data = 0x77, .bytes = 3, .unit = FillUnit::byte});
  REQUIRE(lane.finish());
  CHECK(a.as<std::uint32_t>()[1] == 0x11223344);
  CHECK(a.as<std::uint32_t>()[100] == 0x11223344);
  CHECK(a.host()[404] == was_b[404]);
  CHECK(b.as<std::uint16_t>()[1] == 0x5566);
  CHECK(b.host()[402] == std::byte{0x66});
  CHECK(b.host()[403] == was_a[403]);
  CHECK(all_are(i.host().subspan(1, 3), 0x77));
  std::vector<std::uint32_t> many(20'000);
  for (std::uint32_t k = 0; k < many.size(); ++k) many[k] = k * 2654435761u;
  auto big = gpu_memory(*d, 0, many.size() * 4);
  auto ring_of_its_own = must(d->create_queue({.ring_bytes = 1u << 20}));
  auto done = must(d->create_signal());
  Ring<> ring{ring_of_its_own.memory()};
  REQUIRE(ring.submit(Write{.dst = big.va(), .data = many}, Fence{.addr = done->va, .value = 1}) == Errc::ok);
  REQUIRE(wait(*done, Compare::eq, 1, soon(), ring));
  flush(*d);
  CHECK(std::memcmp(big.host().data(), many.data(), many.size() * 4) == 0);
  // A box with a pitch that is larger than its rows, to host memory and back.
  lane.submit(CopySubwindow{.src = big.va(),
                            .dst = i.va(),
                            .element_log2 = 2,
                            .src_pitch = 100,
                            .dst_pitch = 16,
                            .src_slice = 1000,
                            .dst_slice = 160,
                            .x = 10,
                            .y = 10,
                            .z = 3,
                            .src_x = 5,
                            .src_y = 2});
  REQUIRE(lane.finish());
  for (const std::uint32_t z : {0u, 2u})
    for (const std::uint32_t y : {0u, 9u})
      for (const std::uint32_t x : {0u, 9u})
        CHECK(i.as<std::uint32_t>()[z * 160 + y * 16 + x] == many[z * 1000 + (y + 2) * 100 + x + 5]);
  lane.submit(CopyStruct{.table = big.va(), .linear = i.va(), .start = 2, .count = 50, .stride = 3, .detile = true});
  REQUIRE(lane.finish());
  CHECK(i.as<std::uint32_t>()[49] == many[3 * 51]);
  lane.submit(FillMulti{.dst = big.va(), .stride = 64, .count = 10, .bytes = 8});
  REQUIRE(lane.finish());
  CHECK(big.as<std::uint32_t>()[16 * 9 + 1] == 0);
  CHECK(big.as<std::uint32_t>()[16 * 9 + 2] == many[16 * 9 + 2]);
  // Atomics in GPU memory, by kernels.
  auto word = gpu_memory(*d, 0, 64);
  word.as<std::uint64_t>()[0] = 100;
  word.as<std::uint32_t>()[2] = 7;
  lane.submit(Atomic{.addr = word.va(), .op = AtomicOp::sub_64, .value = 30},
              Atomic{.addr = word.va(), .op = AtomicOp::or_64, .value = 1ull << 40},
              Atomic{.addr = word.va() + 8, .op = AtomicOp::cmpswap_32, .value = 9, .compare = 7});
  REQUIRE(lane.finish());
  CHECK(word.as<std::uint64_t>()[0] == (70 | 1ull << 40));
  CHECK(word.as<std::uint32_t>()[2] == 9);
  // An indirect buffer, a condition.
  Writer ib({h.as<std::uint32_t>().data(), 64});
  REQUIRE(ib.put(Fence{.addr = i.va(), .value = 1234}) == Errc::ok);
  while (ib.written().size() % 8 != 0) REQUIRE(ib.put(Nop{}) == Errc::ok);
  i.as<std::uint32_t>()[1] = 5;
  const auto dwords = static_cast<std::uint32_t>(ib.written().size());
  lane.submit(Indirect{.base = h.va(), .dwords = dwords}, CondExec{.addr = i.va() + 4, .reference = 6, .dwords = 4},
              Fence{.addr = i.va() + 8, .value = 99}, CondExec{.addr = i.va() + 4, .reference = 5, .dwords = 4},
              Fence{.addr = i.va() + 12, .value = 98});
  REQUIRE(lane.finish());
  CHECK(i.as<std::uint32_t>()[0] == 1234);
  CHECK(i.as<std::uint32_t>()[2] != 99);
  CHECK(i.as<std::uint32_t>()[3] == 98);
}

TEST_CASE("cuda: what cannot be done is a fault with its reason", "[cuda]") {
  const auto d = cuda();
  auto gpu = gpu_memory(*d, 0, 4096);
  CHECK(refusal(*d, Indirect{.base = gpu.va(), .dwords = 8}).find("indirect buffer") != std::string::npos);
  CHECK(refusal(*d, CondExec{.addr = gpu.va(), .dwords = 2}).find("host memory") != std::string::npos);
  CHECK(refusal(*d, Semaphore{.addr = gpu.va(), .signal = true}).find("host memory") != std::string::npos);
  CHECK(refusal(*d, Atomic{.addr = gpu.va(), .op = AtomicOp::fmin_32}).find("kernel") != std::string::npos);
}

TEST_CASE("cuda: as many queues as streams may wait", "[cuda]") {
  const auto d = cuda({.gpus = 1});
  auto go = must(d->create_signal());
  std::vector<std::unique_ptr<Lane>> lanes;
  const auto& gpu = d->topology().gpus[0];
  REQUIRE(gpu.engines() * gpu.queues_per_engine == 30);
  for (std::uint32_t i = 0; i < 30; ++i) {
    lanes.push_back(std::make_unique<Lane>(*d, QueueRequest{.engine = EngineId{i % 6}, .ring_bytes = 4096}));
    if (i < 29) lanes.back()->submit(PollMem{.addr = go->va, .func = Compare::ge, .reference = 1});
  }
  // All but one wait, and that one is not held up.
  lanes.back()->submit(Nop{});
  CHECK(lanes.back()->finish());
  CHECK_FALSE(lanes.front()->finish(briefly()));
  CHECK_FALSE(d->create_queue({}));
  go->set(1);
  for (auto& l : lanes) CHECK(l->finish());
}

TEST_CASE("cuda: a queue that goes at a poll leaves its stream", "[cuda]") {
  const auto d = cuda();
  auto never = must(d->create_signal()), done = must(d->create_signal());
  auto src = host_memory(*d, 64), dst = gpu_memory(*d, 0, 64);
  {
    Lane stuck(*d);
    stuck.submit(PollMem{.addr = never->va, .func = Compare::ge, .reference = 1},
                 CopyLinear{.src = src.va(), .dst = dst.va(), .bytes = 64}, Fence{.addr = done->va, .value = 1});
    CHECK_FALSE(stuck.finish(briefly()));
  }
  CHECK(d->parked() == 1);
  // Its memory stays, whoever gives it back, and others go on.
  const auto was = src.va();
  src.reset();
  dst.reset();
  Lane lane(*d);
  auto other = host_memory(*d, 64);
  CHECK(other.va() != was);
  lane.submit(CopyLinear{.src = other.va(), .dst = other.va() + 32, .bytes = 32});
  CHECK(lane.finish());
}

TEST_CASE("cuda: a device says what it is", "[cuda]") {
  const auto d = cuda({.gpus = 5});
  CHECK(d->topology().gpus.size() == 5);
  CHECK(d->gpus().size() == 5);
  CHECK(d->physical_gpus() <= 5);
  CHECK(d->version().starts_with("CUDA "));
  const std::string gpu = d->gpus()[0].name;
  CHECK_FALSE(gpu.empty());
  // The name of the node counts GPUs that are there, not logical ones.
  const auto one = " x " + gpu, some = std::to_string(d->physical_gpus()) + one;
  CHECK(d->topology().name == (d->physical_gpus() < 5 ? "5 GPUs on " + some : some));
  CHECK(cuda({.gpus = 1})->topology().name == "1" + one);
  for (std::uint32_t a = 0; a < 5; ++a)
    for (std::uint32_t b = 0; b < 5; ++b) CHECK(d->topology().engine_for(GpuId{a}, GpuId{b}));
}

TEST_CASE("cuda: what is missing", "[cuda]") {
  const auto why = [](CudaOptions o) {
    const auto all = CudaDevice::missing(o);
    REQUIRE_FALSE(all.empty());
    const auto d = CudaDevice::open(o);
    REQUIRE_FALSE(d);
    CHECK(to_string(d.error()) == to_string(all.front()));
    CHECK_FALSE(all.front().hint.empty());
    return to_string(all.front());
  };
  CHECK(why({.libcuda = "libno-such.so"}).find("cannot be loaded") != std::string::npos);
  CHECK(why({.libcuda = "libc.so.6"}).find("cuGetProcAddress") != std::string::npos);
  CHECK(why({.gpus = 65}).find("65 GPUs") != std::string::npos);
  CHECK(why({.scan_interval = std::chrono::milliseconds(-1)}).find("scan_interval") != std::string::npos);
}

/// Run with an error injected into the driver: SDMA_STAND_IN_FAIL.
TEST_CASE("cuda: an error of the driver stops the GPU's queues", "[.][cuda-error]") {
  const auto d = cuda();
  auto src = host_memory(*d, 4096), dst = must(d->allocate({.where = GpuId{0}, .bytes = 4096, .host_access = false}));
  Lane bad(*d), near(*d, {.engine = engine(*d, 1)}), far(*d, {.gpu = GpuId{1}});
  for (int i = 0; i < 20 && !d->fault(bad.queue); ++i) {
    if (bad.ring.submit(CopyLinear{.src = src.va(), .dst = dst.va(), .bytes = 64}) != Errc::ok) break;
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  const auto f = d->wait_fault(soon());
  REQUIRE(f);
  CHECK(f->kind == FaultKind::driver_error);
  CHECK(f->gpu == GpuId{0});
  CHECK(describe(*f).find("CUDA_ERROR") != std::string::npos);
  for (const auto* q : {&bad.queue, &near.queue}) {
    REQUIRE(d->fault(*q));
    CHECK(d->fault(*q)->kind == FaultKind::driver_error);
  }
  CHECK_FALSE(d->fault(far.queue));
  CHECK(d->wait_fault(Deadline{}).error() == Errc::timed_out);
  CHECK_FALSE(wait(*near.done, Compare::ge, 1, briefly()));
  const auto refused = d->create_queue({.gpu = GpuId{0}});
  REQUIRE_FALSE(refused);
  CHECK(refused.error().message.find("stopped") != std::string::npos);
  (void)far.ring.submit(Fence{.addr = far.done->va, .value = 1});
  CHECK(wait(*far.done, Compare::eq, 1, soon(), far.ring));
}

TEST_CASE("cuda: host memory lies in what the driver has pinned, wherever that begins", "[cuda]") {
  namespace c = sdma::detail::cuda;
  const auto d = cuda();
  const auto& driver = *must(c::load_driver("libcuda.so.1"));
  c::Context context{}, former{};
  REQUIRE(driver.retain_context(&context, 0) == 0);
  // A program's small pieces, after which a driver's next piece begins inside a page. They stay, as above.
  REQUIRE(driver.push_context(context) == 0);
  for (int i = 0; i < 3; ++i) {
    void* small = nullptr;
    REQUIRE(driver.host_allocate(&small, 1000, c::kPortable | c::kDeviceMapped) == 0);
  }
  for (const std::uint64_t bytes : {64u, 4096u, 5000u, 100'000u}) {
    const auto m = must(d->allocate({.bytes = bytes, .purpose = Purpose::words}));
    CAPTURE(bytes);
    CHECK(m.va().value % 4096 == 0);
    c::Pointer begin = 0;
    std::size_t pinned = 0;
    REQUIRE(driver.pointer_attribute(&begin, c::kRangeStart, m.va().value) == 0);
    REQUIRE(driver.pointer_attribute(&pinned, c::kRangeBytes, m.va().value) == 0);
    CHECK(begin + pinned >= m.va().value + (bytes + 4095) / 4096 * 4096);
  }
  REQUIRE(driver.pop_context(&former) == 0);
}

TEST_CASE("cuda: memory of others is adopted, and stays theirs", "[cuda]") {
  const auto d = cuda();
  const auto& driver = *must(sdma::detail::cuda::load_driver("libcuda.so.1"));
  // The driver's primary context, which is cudaMalloc's.
  sdma::detail::cuda::Context context{}, former{};
  REQUIRE(driver.retain_context(&context, 0) == 0);
  const auto find = [&](auto& to, const char* name) {
    auto* const library = ::dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
    REQUIRE(library);
    using Find = int (*)(const char*, void**, int, std::uint64_t, int*);
    void* at = nullptr;
    REQUIRE(reinterpret_cast<Find>(::dlsym(library, "cuGetProcAddress_v2"))(name, &at, 12000, 0, nullptr) == 0);
    to = reinterpret_cast<std::remove_reference_t<decltype(to)>>(at);
  };
  int (*allocate)(unsigned long long*, std::size_t) = nullptr;
  int (*pin)(void*, std::size_t, unsigned) = nullptr;
  find(allocate, "cuMemAlloc");
  find(pin, "cuMemHostRegister");
  constexpr std::uint32_t kBytes = 100'000;
  unsigned long long theirs = 0;
  REQUIRE(driver.push_context(context) == 0);
  REQUIRE(allocate(&theirs, kBytes) == 0);
  // Neither is given back: that would wait for the streams which earlier tests have left at their polls.
  static auto* const kept = new std::vector<std::byte>(kBytes);
  auto& host = *kept;
  REQUIRE(pin(host.data(), kBytes, 3) == 0);
  REQUIRE(driver.pop_context(&former) == 0);
  std::vector<std::byte> back(kBytes);
  pattern(host, 3);
  {
    auto from = must(d->adopt(host.data(), kBytes));
    auto to = must(d->adopt(reinterpret_cast<void*>(theirs), kBytes));
    CHECK(from.host().data() == host.data());
    CHECK(to.host().empty());
    const auto twice = d->adopt(reinterpret_cast<void*>(theirs + 64), 64);
    REQUIRE_FALSE(twice);
    CHECK(twice.error().message.find("overlaps") != std::string::npos);
    auto last = gpu_memory(*d, 1, kBytes);
    Lane first(*d), second(*d, {.gpu = GpuId{1}});
    first.submit(CopyLinear{.src = from.va(), .dst = to.va(), .bytes = kBytes});
    REQUIRE(first.finish());
    second.submit(CopyLinear{.src = to.va(), .dst = last.va(), .bytes = kBytes});  // another GPU reads it
    REQUIRE(second.finish());
    CHECK(equal(last.host(), host));
    CHECK(d->peek(to.va(), back) == Errc::ok);
    CHECK(equal(back, host));
  }
  CHECK(d->peek(GpuVa{theirs}, std::span(back).first(1)) == Errc::unmapped);
  const auto refusal_of = [](const auto& r) {
    REQUIRE_FALSE(r);
    CHECK_FALSE(r.error().hint.empty());
    return r.error().message;
  };
  CHECK(refusal_of(d->adopt(nullptr, 1)) == "the range is empty");
  CHECK(refusal_of(d->adopt(reinterpret_cast<void*>(theirs), kBytes + (4u << 20))).find("its allocation has") == 0);
  CHECK(refusal_of(d->adopt(back.data(), 64)) == "CUDA does not know this memory");
  auto again = must(d->adopt(host.data(), kBytes));  // it was given back
  again.reset();
}

}  // namespace conformance
