// SPDX-License-Identifier: MIT
#pragma once
// A queue without a device: an address space, a ring, and a pipeline that reads it.
//
//   Rig rig;                                              // memory at 0x100000 and 0x200000, GPU 0
//   rig.put(CopyLinear{.src = rig.a(0), .dst = rig.b(64), .bytes = 16});
//   rig.go();                                             // doorbell, and steps until nothing is left
#include "engine/pipeline.hpp"
#include "sdma/stream/writer.hpp"
#include "support/catch.hpp"

#include <cstring>
#include <memory>
#include <random>
#include <vector>

namespace sdma::test {

inline constexpr std::uint64_t kSize = 1 << 16;
inline constexpr std::byte kPoison{0xcd};

/// Host memory under a GPU address that differs from the host's.
struct Memory {
  explicit Memory(GpuVa at, std::uint64_t bytes = kSize) : va(at), words(bytes / 8, 0xcdcdcdcdcdcdcdcd) {}
  std::byte* data() { return reinterpret_cast<std::byte*>(words.data()); }
  std::uint64_t size() const { return words.size() * 8; }
  template <class T> T& at(GpuVa where) { return *reinterpret_cast<T*>(data() + (where - va)); }
  Mapping mapping() { return {.va = va, .bytes = size(), .host = data()}; }
  std::vector<std::byte> copy() { return {data(), data() + size()}; }
  void randomise(std::uint32_t seed) {
    std::mt19937_64 random(seed);
    for (auto& w : words) w = random();
  }

  GpuVa va;
  std::vector<std::uint64_t> words;
};

struct RigOptions {
  Ordering ordering = Ordering::strict;
  std::uint64_t seed = 1;
  std::size_t ring_dwords = 4096;
  PipelineConfig more{};  ///< everything that is not about memory and ordering
};

struct Rig {
  using Options = RigOptions;

  explicit Rig(const Options& o = {}) : ring(o.ring_dwords), reader(space, GpuId{0}) {
    REQUIRE(space.map(first.mapping()) == Errc::ok);
    REQUIRE(space.map(second.mapping()) == Errc::ok);
    auto c = o.more;
    c.ring = ring;
    c.rptr = &rptr;
    c.reader = &reader;
    c.queue = 7;
    c.ordering = o.ordering;
    c.seed = o.seed;
    pipeline = std::make_unique<Pipeline>(c);
  }

  GpuVa a(std::uint64_t offset) const { return first.va + offset; }
  GpuVa b(std::uint64_t offset) const { return second.va + offset; }
  template <class T = std::uint32_t> T& at(GpuVa va) { return (va < second.va ? first : second).at<T>(va); }

  void put_dword(std::uint32_t d) {
    ring[wptr / 4 % ring.size()] = d;
    wptr += 4;
  }
  template <Packet P> void put_unchecked(const P& p) {
    std::vector<std::uint32_t> d(length(p));
    encode_to(p, d.data());
    for (auto w : d) put_dword(w);
  }
  template <Packet P> void put(const P& p) {
    REQUIRE(check(p).rule == "");
    put_unchecked(p);
  }
  /// Steps until there is nothing to do. A step too many is an error.
  Progress run(std::uint32_t budget = 16) {
    pipeline->doorbell(wptr);
    return drain(budget);
  }
  Progress drain(std::uint32_t budget = 16) {
    for (int i = 0; i < 1'000'000; ++i)
      if (const auto p = pipeline->step(budget); p != Progress::progressed) return p;
    FAIL("the pipeline does not come to rest");
    return Progress::stopped;
  }
  /// Everything that was put is executed.
  void go() {
    REQUIRE(run() == Progress::idle);
    REQUIRE(rptr == wptr);
  }
  /// The queue stops, and nothing was written.
  Fault fails() {
    const auto one = first.copy(), two = second.copy();
    REQUIRE(run() == Progress::stopped);
    REQUIRE(pipeline->fault());
    CHECK((one == first.copy()));
    CHECK((two == second.copy()));
    CHECK(pipeline->step(1) == Progress::stopped);
    return *pipeline->fault();
  }

  AddressSpace space;
  Memory first{GpuVa{0x100000}}, second{GpuVa{0x200000}};
  std::vector<std::uint32_t> ring;
  std::uint64_t rptr = 0, wptr = 0;
  AddressSpace::Reader reader;
  std::unique_ptr<Pipeline> pipeline;
};

/// Memory must be `before`, except for [at, at + bytes.size()) which must be `bytes`.
class Expected {
 public:
  explicit Expected(Memory& m) : memory_(m), bytes_(m.copy()) {}
  std::byte& operator[](GpuVa va) { return bytes_.at(va - memory_.va); }
  template <class T> void put(GpuVa va, T v) { std::memcpy(&bytes_.at(va - memory_.va), &v, sizeof v); }
  bool holds() const { return std::memcmp(memory_.data(), bytes_.data(), bytes_.size()) == 0; }

 private:
  Memory& memory_;
  std::vector<std::byte> bytes_;
};

}  // namespace sdma::test
