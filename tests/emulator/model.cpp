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
#include <cerrno>
#include <chrono>
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

/// A model with an aperture of 16 MiB, all of it announced but the last MiB.
struct Model {
  static constexpr std::uint64_t kBytes = 16 << 20, kKnown = 15 << 20;
  const hsakmt_model_functions& f = functions();
  hsakmt_model* m = f.create();
  std::byte* base =
      static_cast<std::byte*>(::mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  Model() {
    REQUIRE(m);
    f.set_global_aperture(m, base, kBytes);
    f.alloced_memory(m, base, kKnown, 0);
  }
  ~Model() {
    f.destroy(m);
    ::munmap(base, kBytes);
  }
  template <class T> T* at(std::uint64_t offset) const { return reinterpret_cast<T*>(base + offset); }
  GpuVa va(std::uint64_t offset) const { return GpuVa{reinterpret_cast<std::uint64_t>(base + offset)}; }
  /// Ring and pointers of queue n: the first MiB.
  hsakmt_model_queue_info info(std::uint32_t n) const {
    const auto begin = va(n * 8192ull).value;
    return {.ring = begin,
            .ring_bytes = 4096,
            .write_pointer = begin + 4096,
            .read_pointer = begin + 4096 + 64,
            .node = 1,
            .queue_id = n};
  }
  /// No doorbell: the write pointer is all there is.
  Ring<> ring(std::uint32_t n) {
    const auto i = info(n);
    REQUIRE(f.register_queue(m, &i) == 0);
    return Ring<>(RingMemory{.dwords = {at<std::uint32_t>(n * 8192ull), 1024},
                             .rptr = at<std::uint64_t>(n * 8192ull + 4096 + 64),
                             .wptr = at<std::uint64_t>(n * 8192ull + 4096),
                             .doorbell = nullptr,
                             .caching = Caching::write_back});
  }
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
         f.set_set_event && f.destroy_queue));
}

TEST_CASE("a copy, a fence, and an event, through a ring that wraps around") {
  Model m;
  std::atomic<std::uint32_t> event{0};
  m.f.set_set_event(
      m.m, [](void* data, std::uint32_t id) { static_cast<std::atomic<std::uint32_t>*>(data)->store(id); }, &event);
  auto ring = m.ring(0);
  std::memset(m.base + kData, 0x5a, 1 << 20);
  for (std::uint32_t i = 1; i <= 300; ++i) {
    const auto until = Deadline::in(10s);
    while (ring.submit(CopyLinear{.src = m.va(kData), .dst = m.va(kData + (2 << 20)), .bytes = 1 << 12},
                       Fence{.addr = m.va(kWords), .value = i}) == Errc::no_space)
      REQUIRE_FALSE(until.passed());
  }
  REQUIRE(ring.submit(Trap{.context = 42}) == Errc::ok);
  CHECK(reaches(m.at<std::uint32_t>(kWords), 300));
  CHECK(std::memcmp(m.base + kData, m.base + kData + (2 << 20), 1 << 12) == 0);
  const auto until = Deadline::in(10s);
  while (event != 42 && !until.passed()) std::this_thread::sleep_for(50us);
  CHECK(event == 42);
}

TEST_CASE("queues wait for each other, and one that waits forever can be destroyed") {
  Model m;
  auto a = m.ring(0), b = m.ring(1);
  for (std::uint32_t i = 1; i <= 50; ++i) {
    while (a.submit(PollMem{.addr = m.va(kWords + 64), .reference = i - 1}, Fence{.addr = m.va(kWords), .value = i}) !=
           Errc::ok)
      std::this_thread::yield();
    while (b.submit(PollMem{.addr = m.va(kWords), .reference = i}, Fence{.addr = m.va(kWords + 64), .value = i}) !=
           Errc::ok)
      std::this_thread::yield();
  }
  CHECK(reaches(m.at<std::uint32_t>(kWords + 64), 50));
  REQUIRE(a.submit(PollMem{.addr = m.va(kWords + 128), .reference = 1},
                   Fence{.addr = m.va(kWords + 192), .value = 1}) == Errc::ok);
  CHECK(m.f.destroy_queue(m.m, 0) == 0);
  CHECK(m.f.destroy_queue(m.m, 0) == EINVAL);
  *m.at<std::uint32_t>(kWords + 128) = 1;
  REQUIRE(b.submit(Fence{.addr = m.va(kWords), .value = 77}) == Errc::ok);
  CHECK(reaches(m.at<std::uint32_t>(kWords), 77));
  CHECK(*m.at<std::uint32_t>(kWords + 192) == 0);
}

TEST_CASE("memory that was not announced, or was freed, stops the queue that touches it, and no other") {
  Model m;
  auto a = m.ring(0), b = m.ring(1);
  REQUIRE(a.submit(CopyLinear{.src = m.va(kData), .dst = m.va(Model::kKnown), .bytes = 64},
                   Fence{.addr = m.va(kWords), .value = 1}) == Errc::ok);
  REQUIRE(b.submit(Fence{.addr = m.va(kWords + 4), .value = 1}) == Errc::ok);
  CHECK(reaches(m.at<std::uint32_t>(kWords + 4), 1));
  CHECK(*m.at<std::uint32_t>(kWords) == 0);
}

TEST_CASE("queues that cannot be, and a model that leaves no thread") {
  const auto before = threads();
  {
    Model m;
    const auto with = [&](auto&& change) {
      auto i = m.info(3);
      change(i);
      return m.f.register_queue(m.m, &i);
    };
    CHECK(with([](auto& i) { i.ring_bytes = 6000; }) == EINVAL);
    CHECK(with([](auto& i) { i.ring_bytes = 512; }) == EINVAL);
    CHECK(with([&](auto& i) { i.ring = m.va(Model::kKnown).value; }) == EFAULT);
    CHECK(with([](auto& i) { i.write_pointer = 8; }) == EFAULT);
    CHECK(with([](auto& i) { i.read_pointer += 4; }) == EFAULT);
    CHECK(with([](auto&) {}) == 0);
    CHECK(with([](auto&) {}) == EEXIST);
    CHECK(threads() == before + 1);
  }
  CHECK(threads() == before);
}
