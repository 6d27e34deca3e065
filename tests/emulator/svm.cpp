// SPDX-License-Identifier: MIT
// SVM: attributes of ranges of the program's own memory, and engines that copy there.
#include "../../lib/device/kfd/raw_client.hpp"

#include "sdma/packets/copy.hpp"
#include "sdma/packets/sync.hpp"
#include "support/catch.hpp"

#include <chrono>
#include <cstdlib>
#include <cstring>
#include <thread>
#include <vector>

using namespace sdma::raw;
using namespace sdma;
using kfd::SvmAttribute, kfd::SvmKind, kfd::SvmOp;

namespace {

constexpr std::uint64_t kPage = 4096;

/// 0 or the errno. `attributes` hold the answers of SvmOp::get.
int svm(Client& c, SvmOp op, const void* begin, std::uint64_t bytes, std::vector<SvmAttribute>& attributes,
        std::size_t passed = ~std::size_t{0}) {
  std::vector<std::uint64_t> room(3 + attributes.size());
  kfd::Svm a{.begin = reinterpret_cast<std::uint64_t>(begin), .bytes = bytes, .op = op};
  a.count = static_cast<std::uint32_t>(attributes.size());
  std::memcpy(room.data(), &a, sizeof a);
  if (!attributes.empty()) std::memcpy(room.data() + 3, attributes.data(), 8 * attributes.size());
  const auto size = sizeof a + 8 * std::min(passed, attributes.size());
  const int result = ::ioctl(c.kfd, kfd::request(Nr::svm, kfd::kBoth, size), room.data());
  if (!attributes.empty()) std::memcpy(static_cast<void*>(attributes.data()), room.data() + 3, 8 * attributes.size());
  return result == 0 ? 0 : errno;
}
int set(Client& c, const void* begin, std::uint64_t bytes, std::vector<SvmAttribute> attributes) {
  return svm(c, SvmOp::set, begin, bytes, attributes);
}
SvmAttribute get(Client& c, const void* begin, std::uint64_t bytes, SvmAttribute a) {
  std::vector<SvmAttribute> all{a};
  REQUIRE(svm(c, SvmOp::get, begin, bytes, all) == 0);
  return all[0];
}

std::byte* pages(std::uint64_t n, int rights = PROT_READ | PROT_WRITE) {
  auto* at = ::mmap(nullptr, n * kPage, rights, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  REQUIRE(at != MAP_FAILED);
  return static_cast<std::byte*>(at);
}
GpuVa va(const std::byte* at) { return GpuVa{reinterpret_cast<std::uint64_t>(at)}; }

bool reaches(const std::uint32_t* word, std::uint32_t value) {
  for (const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(60);
       std::chrono::steady_clock::now() < end;) {
    if (__atomic_load_n(word, __ATOMIC_ACQUIRE) == value) return true;
    std::this_thread::yield();
  }
  return false;
}

}  // namespace

TEST_CASE("engines copy to and from memory to which they have access") {
  Client c;
  auto words = c.allocate(4096);
  std::memset(words.host(), 0, words.bytes);
  auto vram = c.allocate(64 * kPage, 0, kfd::kVram);
  auto *from = pages(64), *to = pages(64);
  for (std::uint64_t i = 0; i < 64 * kPage; ++i) from[i] = static_cast<std::byte>(i * 7 >> 3);
  for (auto* range : {from, to})
    REQUIRE(set(c, range, 64 * kPage,
                {{SvmKind::access_in_place, c.gpu_id(0)}, {SvmKind::prefetch_location, c.gpu_id(0)}}) == 0);
  Queue q(c, 0, kfd::kQueueSdma);
  Ring<> ring(q.memory());
  // Attributes of a part divide the range; copies go across.
  REQUIRE(set(c, from + 10 * kPage, kPage, {{SvmKind::granularity, 5}}) == 0);
  REQUIRE(ring.submit(CopyLinear{.src = va(from), .dst = vram.gpu(), .bytes = 64 * kPage}) == Errc::ok);
  REQUIRE(ring.submit(CopyLinear{.src = vram.gpu(), .dst = va(to), .bytes = 64 * kPage}) == Errc::ok);
  REQUIRE(ring.submit(Fence{.addr = words.gpu(), .value = 1}) == Errc::ok);
  REQUIRE(reaches(words.as<std::uint32_t>(), 1));
  CHECK(std::memcmp(from, to, 64 * kPage) == 0);
  CHECK(get(c, from, 64 * kPage, {SvmKind::granularity, 0}).value == 5);
  CHECK(get(c, from, 10 * kPage, {SvmKind::granularity, 0}).value == 9);
  // The memory comes back without access: it is other memory.
  ::munmap(to, 64 * kPage);
  REQUIRE(::mmap(to, 64 * kPage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == to);
  CHECK(get(c, to, 64 * kPage, {SvmKind::access, c.gpu_id(0)}).kind == SvmKind::no_access);
  CHECK(get(c, from, 64 * kPage, {SvmKind::access, c.gpu_id(0)}).kind == SvmKind::access_in_place);
  q.destroy();
  ::munmap(from, 64 * kPage);
  ::munmap(to, 64 * kPage);
  c.free(vram);
  c.free(words);
}

TEST_CASE("memory that the C library has unmapped by itself leaves no access behind") {
  Client c;
  // So large that free() unmaps it, without calling munmap by its name.
  auto* block = std::malloc(256 << 20);
  REQUIRE(block != nullptr);
  auto* at = static_cast<std::byte*>(block) + (kPage - reinterpret_cast<std::uintptr_t>(block) % kPage);
  REQUIRE(set(c, at, 8 * kPage, {{SvmKind::access_in_place, c.gpu_id(0)}}) == 0);
  std::free(block);
  auto* again = ::mmap(at, 4 * kPage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
  REQUIRE(again == at);
  CHECK(get(c, at, 4 * kPage, {SvmKind::access, c.gpu_id(0)}).kind == SvmKind::no_access);
  // An object, too, may be mapped for the GPU there.
  kfd::AllocMemory a{.va = va(at).value,
                     .bytes = 4 * kPage,
                     .handle = 0,
                     .mmap_offset = 0,
                     .gpu_id = c.gpu_id(0),
                     .flags = kfd::kGtt | kfd::kWritable};
  REQUIRE(call(c.kfd, Nr::alloc_memory, a) == 0);
  Memory object{.va = a.va, .bytes = a.bytes, .handle = a.handle, .offset = a.mmap_offset};
  CHECK(c.map(object, 1) == 0);
  CHECK(c.free(object) == 0);
}

TEST_CASE("attributes of several ranges are what all of them have") {
  Client c;
  auto* at = pages(8);
  const auto g0 = c.gpu_id(0), g1 = c.gpu_id(1);
  CHECK(get(c, at, 8 * kPage, {SvmKind::preferred_location, 0}).value == kfd::kSvmUndefined);
  CHECK(get(c, at, 8 * kPage, {SvmKind::set_flags, 0}).value == (kfd::kSvmHostAccess | kfd::kSvmCoherent));
  REQUIRE(set(c, at, 4 * kPage, {{SvmKind::access, g0}, {SvmKind::access, g1}, {SvmKind::preferred_location, g0}}) ==
          0);
  CHECK(get(c, at, 4 * kPage, {SvmKind::access, g1}).kind == SvmKind::access);
  CHECK(get(c, at, 8 * kPage, {SvmKind::access, g1}).kind == SvmKind::no_access);
  CHECK(get(c, at, 4 * kPage, {SvmKind::preferred_location, 0}).value == g0);
  CHECK(get(c, at, 8 * kPage, {SvmKind::preferred_location, 0}).value == kfd::kSvmUndefined);
  REQUIRE(set(c, at + 2 * kPage, 4 * kPage,
              {{SvmKind::access_in_place, g0},
               {SvmKind::no_access, g1},
               {SvmKind::set_flags, kfd::kSvmGpuReadOnly},
               {SvmKind::clear_flags, kfd::kSvmCoherent}}) == 0);
  CHECK(get(c, at, 4 * kPage, {SvmKind::access, g0}).kind == SvmKind::access);
  CHECK(get(c, at + 2 * kPage, 4 * kPage, {SvmKind::access, g0}).kind == SvmKind::access_in_place);
  CHECK(get(c, at + 2 * kPage, 2 * kPage, {SvmKind::access, g1}).kind == SvmKind::no_access);
  CHECK(get(c, at, 2 * kPage, {SvmKind::access, g1}).kind == SvmKind::access);
  CHECK(get(c, at + 2 * kPage, kPage, {SvmKind::set_flags, 0}).value == (kfd::kSvmHostAccess | kfd::kSvmGpuReadOnly));
  CHECK(get(c, at, 4 * kPage, {SvmKind::set_flags, 0}).value == kfd::kSvmHostAccess);
  CHECK((get(c, at, 4 * kPage, {SvmKind::clear_flags, 0}).value & kfd::kSvmGpuReadOnly) == 0);
  CHECK(get(c, at + 5 * kPage, kPage, {SvmKind::prefetch_location, 0}).value == kfd::kSvmUndefined);
  ::munmap(at, 8 * kPage);
}

TEST_CASE("bad arguments have the kernel's errno") {
  Client c;
  auto* at = pages(2);
  const auto g = c.gpu_id(0);
  std::vector<SvmAttribute> one{{SvmKind::access, g}}, two{{SvmKind::access, g}, {SvmKind::access, g}};
  CHECK(svm(c, SvmOp::set, at + 8, kPage, one) == EINVAL);
  CHECK(svm(c, SvmOp::set, at, 100, one) == EINVAL);
  CHECK(svm(c, SvmOp::set, at, 0, one) == EINVAL);
  CHECK(svm(c, SvmOp::set, nullptr, kPage, one) == EINVAL);
  CHECK(svm(c, static_cast<SvmOp>(2), at, kPage, one) == EINVAL);
  CHECK(svm(c, SvmOp::set, at, kPage, two, 1) == EINVAL);  // fewer attributes than it says
  CHECK(set(c, at, kPage, {{SvmKind::access, 77}}) == EINVAL);
  CHECK(set(c, at, kPage, {{SvmKind::prefetch_location, 77}}) == EINVAL);
  CHECK(set(c, at, kPage, {{static_cast<SvmKind>(8), 0}}) == EINVAL);
  one = {{SvmKind::access_in_place, g}};
  CHECK(svm(c, SvmOp::get, at, kPage, one) == EINVAL);
  ::munmap(at + kPage, kPage);
  CHECK(set(c, at, 2 * kPage, {{SvmKind::access, g}}) == EFAULT);
  // A range that an object has.
  auto m = c.allocate(kPage);
  CHECK(set(c, m.host(), kPage, {{SvmKind::access, g}}) == EADDRINUSE);
  c.free(m);
  ::munmap(at, kPage);
}
