// SPDX-License-Identifier: MIT
// The model interface, loaded as libhsakmt loads it: by name, for one function, and everything else through its table.
// Run with HSA_MODEL_LIB=/.../libsdma-model.so.
#include "../../lib/emulator/model/interface.hpp"
#include "sdma/core/deadline.hpp"
#include "sdma/packets/copy.hpp"
#include "sdma/packets/poll.hpp"
#include "sdma/packets/sync.hpp"
#include "sdma/queue/ring.hpp"

#include "support/catch.hpp"

#include <dlfcn.h>
#include <sys/mman.h>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <thread>

using namespace sdma;
using namespace std::chrono_literals;

namespace {

const hsakmt_model_functions& functions() {
  static const auto* const table = [] {
    void* library = ::dlopen(std::getenv("HSA_MODEL_LIB"), RTLD_NOW);
    const char* error = library ? nullptr : ::dlerror();
    INFO((error ? error : ""));
    REQUIRE(library);
    const auto get =
        reinterpret_cast<decltype(&get_hsakmt_model_functions)>(::dlsym(library, "get_hsakmt_model_functions"));
    REQUIRE(get);
    return get();
  }();
  return *table;
}

/// A GPU whose aperture is 16 MiB. GPU addresses from 64 KiB are announced, except the last MiB.
struct Model {
  static constexpr std::uint64_t kBytes = 16 << 20, kFirst = 64 << 10, kEnd = 15 << 20;
  const hsakmt_model_functions& f = functions();
  hsakmt_model* m = f.create();
  std::byte* base =
      static_cast<std::byte*>(::mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  explicit Model(bool announces = true) : announces_(announces) {
    REQUIRE(m);
    f.set_global_aperture(m, base, kBytes);
    if (announces) f.alloced_memory(m, pointer(kFirst), kEnd - kFirst, 0);
  }
  ~Model() {
    if (announces_) f.freed_memory(m, pointer(kFirst), kEnd - kFirst);
    f.destroy(m);
    ::munmap(base, kBytes);
  }
  Model(const Model&) = delete;
  Model& operator=(const Model&) = delete;
  /// GPU addresses travel as pointers.
  static void* pointer(std::uint64_t va) { return reinterpret_cast<void*>(va); }
  template <class T> T* at(std::uint64_t va) const { return reinterpret_cast<T*>(base + va); }
  /// Ring and pointers of queue n: below 1 MiB.
  static hsakmt_model_queue_info info(std::uint32_t n, std::uint64_t* doorbell = nullptr) {
    const auto begin = kFirst + n * 8192ull;
    return {.ring_base_address = begin,
            .write_pointer_address = begin + 4096,
            .read_pointer_address = begin + 4096 + 64,
            .doorbell = doorbell,
            .ring_size = 4096,
            .queue_type = 1};
  }
  hsakmt_model_queue* add(std::uint32_t n, std::uint64_t* doorbell = nullptr) const {
    auto i = info(n, doorbell);
    auto* q = f.register_queue(m, &i);
    REQUIRE(q);
    return q;
  }
  /// `wptr`: null for the one that the queue has.
  Ring<> ring(std::uint32_t n, std::uint64_t* wptr = nullptr, std::uint64_t* doorbell = nullptr) const {
    const auto i = info(n);
    return Ring<>(RingMemory{.dwords = {at<std::uint32_t>(i.ring_base_address), 1024},
                             .rptr = at<std::uint64_t>(i.read_pointer_address),
                             .wptr = wptr ? wptr : at<std::uint64_t>(i.write_pointer_address),
                             .doorbell = doorbell,
                             .caching = Caching::write_back});
  }

 private:
  bool announces_;
};

constexpr std::uint64_t kWords = 1 << 20, kData = 2 << 20;

bool reaches(const std::uint32_t* word, std::uint32_t value) {
  const auto until = Deadline::in(10s);
  while (!until.passed()) {
    if (__atomic_load_n(word, __ATOMIC_ACQUIRE) == value) return true;
    std::this_thread::sleep_for(50us);
  }
  return false;
}

std::size_t threads() {
  std::size_t n = 0;
  for ([[maybe_unused]] const auto& t : std::filesystem::directory_iterator("/proc/self/task")) ++n;
  return n;
}

}  // namespace

TEST_CASE("the table is whole and says its version") {
  const auto& f = functions();
  CHECK(f.version_major == 0);
  CHECK(f.version_minor == 4);
  CHECK((f.create && f.destroy && f.set_global_aperture && f.alloced_memory && f.freed_memory && f.register_queue &&
         f.set_notify_event && f.set_wait_event && f.set_set_event && f.destroy_queue));
}

TEST_CASE("the table has the binary form of version 0.4") {
  CHECK(sizeof(hsakmt_model_functions) == 8 + 10 * sizeof(void*));
  CHECK(offsetof(hsakmt_model_functions, set_global_aperture) == 24);
  CHECK(offsetof(hsakmt_model_functions, set_notify_event) == 48);
  CHECK(offsetof(hsakmt_model_functions, register_queue) == 64);
  CHECK(offsetof(hsakmt_model_functions, destroy_queue) == 80);
  CHECK(sizeof(hsakmt_model_queue_info) == 40);
  CHECK(offsetof(hsakmt_model_queue_info, doorbell) == 24);
  CHECK(offsetof(hsakmt_model_queue_info, queue_type) == 36);
}

TEST_CASE("a copy, a fence, and an event, through a ring that wraps around") {
  Model m;
  std::atomic<std::uint32_t> event{0};
  m.f.set_set_event(
      m.m, [](void* data, unsigned id) { static_cast<std::atomic<std::uint32_t>*>(data)->store(id); }, &event);
  m.add(0);
  auto ring = m.ring(0);
  std::memset(m.base + kData, 0x5a, 1 << 20);
  for (std::uint32_t i = 1; i <= 300; ++i) {
    const auto until = Deadline::in(10s);
    while (ring.submit(CopyLinear{.src = GpuVa{kData}, .dst = GpuVa{kData + (2 << 20)}, .bytes = 1 << 12},
                       Fence{.addr = GpuVa{kWords}, .value = i}) == Errc::no_space)
      REQUIRE_FALSE(until.passed());
  }
  REQUIRE(ring.submit(Trap{.context = 42}) == Errc::ok);
  CHECK(reaches(m.at<std::uint32_t>(kWords), 300));
  CHECK(std::memcmp(m.base + kData, m.base + kData + (2 << 20), 1 << 12) == 0);
  const auto until = Deadline::in(10s);
  while (event != 42 && !until.passed()) std::this_thread::sleep_for(50us);
  CHECK(event == 42);
}

TEST_CASE("a doorbell is enough, and the value that an earlier queue left in it rings nothing") {
  Model m;
  std::uint64_t doorbell = 4096, private_wptr = 0;
  m.add(0, &doorbell);
  auto ring = m.ring(0, &private_wptr, &doorbell);
  REQUIRE(ring.submit(Fence{.addr = GpuVa{kWords}, .value = 5}) == Errc::ok);
  CHECK(reaches(m.at<std::uint32_t>(kWords), 5));
}

TEST_CASE("queues wait for each other, and one that waits forever can be destroyed") {
  Model m;
  auto* const waits = m.add(0);
  m.add(1);
  auto a = m.ring(0), b = m.ring(1);
  for (std::uint32_t i = 1; i <= 50; ++i) {
    while (a.submit(PollMem{.addr = GpuVa{kWords + 64}, .reference = i - 1},
                    Fence{.addr = GpuVa{kWords}, .value = i}) != Errc::ok)
      std::this_thread::yield();
    while (b.submit(PollMem{.addr = GpuVa{kWords}, .reference = i}, Fence{.addr = GpuVa{kWords + 64}, .value = i}) !=
           Errc::ok)
      std::this_thread::yield();
  }
  CHECK(reaches(m.at<std::uint32_t>(kWords + 64), 50));
  REQUIRE(a.submit(PollMem{.addr = GpuVa{kWords + 128}, .reference = 1},
                   Fence{.addr = GpuVa{kWords + 192}, .value = 1}) == Errc::ok);
  m.f.destroy_queue(m.m, waits);
  *m.at<std::uint32_t>(kWords + 128) = 1;
  REQUIRE(b.submit(Fence{.addr = GpuVa{kWords}, .value = 77}) == Errc::ok);
  CHECK(reaches(m.at<std::uint32_t>(kWords), 77));
  CHECK(*m.at<std::uint32_t>(kWords + 192) == 0);
}

TEST_CASE("memory that was not announced, or was freed, stops the queue that touches it, and no other") {
  Model m;
  constexpr std::uint64_t kFreed = Model::kEnd + (512 << 10);
  m.f.alloced_memory(m.m, Model::pointer(kFreed), 4096, 0);
  m.f.freed_memory(m.m, Model::pointer(kFreed), 4096);
  for (std::uint32_t n = 0; n != 3; ++n) m.add(n);
  auto never = m.ring(0), freed = m.ring(1), good = m.ring(2);
  REQUIRE(never.submit(CopyLinear{.src = GpuVa{kData}, .dst = GpuVa{Model::kEnd}, .bytes = 64},
                       Fence{.addr = GpuVa{kWords}, .value = 1}) == Errc::ok);
  REQUIRE(freed.submit(CopyLinear{.src = GpuVa{kData}, .dst = GpuVa{kFreed}, .bytes = 64},
                       Fence{.addr = GpuVa{kWords}, .value = 1}) == Errc::ok);
  REQUIRE(good.submit(Fence{.addr = GpuVa{kWords + 4}, .value = 1}) == Errc::ok);
  CHECK(reaches(m.at<std::uint32_t>(kWords + 4), 1));
  CHECK(*m.at<std::uint32_t>(kWords) == 0);
}

TEST_CASE("each GPU reaches what was announced to another, through its own aperture") {
  Model owner, other(false);
  std::memset(other.base + kData, 0x77, 4096);
  other.add(4);
  auto ring = other.ring(4);
  REQUIRE(ring.submit(CopyLinear{.src = GpuVa{kData}, .dst = GpuVa{kData + 4096}, .bytes = 4096},
                      Fence{.addr = GpuVa{kWords}, .value = 3}) == Errc::ok);
  CHECK(reaches(other.at<std::uint32_t>(kWords), 3));
  CHECK(std::memcmp(other.base + kData, other.base + kData + 4096, 4096) == 0);
  CHECK(*owner.at<std::uint32_t>(kWords) == 0);
}

TEST_CASE("queues that cannot be, and a model that leaves no thread") {
  const auto before = threads();
  {
    Model m;
    const auto with = [&](auto&& change) {
      auto i = Model::info(3);
      change(i);
      return m.f.register_queue(m.m, &i);
    };
    CHECK_FALSE(with([](auto& i) { i.ring_size = 6000; }));
    CHECK_FALSE(with([](auto& i) { i.ring_size = 512; }));
    CHECK_FALSE(with([](auto& i) { i.ring_base_address = Model::kEnd; }));
    CHECK_FALSE(with([](auto& i) { i.write_pointer_address = 8; }));
    CHECK_FALSE(with([](auto& i) { i.read_pointer_address += 4; }));
    CHECK_FALSE(with([](auto& i) { i.queue_type = 3; }));
    CHECK(threads() == before);
    CHECK(with([](auto&) {}));
    CHECK(threads() == before + 1);
  }
  CHECK(threads() == before);
}

TEST_CASE("packets of a compute queue are not executed") {
  Model m;
  auto i = Model::info(0);
  i.queue_type = 2;
  auto* const q = m.f.register_queue(m.m, &i);
  REQUIRE(q);
  m.add(1);
  auto ring = m.ring(1);
  __atomic_store_n(m.at<std::uint64_t>(i.write_pointer_address), 1, __ATOMIC_RELEASE);
  REQUIRE(ring.submit(Fence{.addr = GpuVa{kWords}, .value = 1}) == Errc::ok);
  CHECK(reaches(m.at<std::uint32_t>(kWords), 1));
  CHECK(*m.at<std::uint64_t>(i.read_pointer_address) == 0);
  m.f.destroy_queue(m.m, q);
}
