// SPDX-License-Identifier: MIT
// engine/memory: who sees what at which address, and that nobody sees it after unmap.
#include "engine/address_space.hpp"

#include "support/catch.hpp"

#include <algorithm>
#include <array>
#include <thread>

using namespace sdma;
using namespace std::chrono_literals;

namespace {

const auto kSoon = 10s;

struct Block {
  alignas(64) std::array<std::byte, 4096> bytes{};
  Mapping at(std::uint64_t va, std::uint64_t n = 4096) { return {.va = GpuVa{va}, .bytes = n, .host = bytes.data()}; }
};

}  // namespace

TEST_CASE("a mapping is refused when it cannot be one, or lies on another") {
  AddressSpace space;
  Block a, b;
  CHECK(space.map(a.at(0x1000)) == Errc::ok);
  CHECK(space.map(a.at(0x5000, 0)) == Errc::bad_argument);
  CHECK(space.map(a.at(0x5004)) == Errc::bad_argument);
  CHECK(space.map(a.at(0x5000, 12)) == Errc::bad_argument);
  CHECK(space.map({.va = GpuVa{0x5000}, .bytes = 8, .host = nullptr}) == Errc::bad_argument);
  CHECK(space.map({.va = GpuVa{0x5000}, .bytes = 8, .host = a.bytes.data() + 4}) == Errc::bad_argument);
  CHECK(space.map(a.at(0xffff'ffff'ffff'f000)) == Errc::bad_argument);
  for (std::uint64_t va : {0x8u, 0x1000u, 0x1ff8u}) CHECK(space.map(b.at(va)) == Errc::bad_argument);
  CHECK(space.map(b.at(0x2000)) == Errc::ok);
  CHECK(space.map(b.at(0x0)) == Errc::ok);
  CHECK(space.mappings().size() == 3);
}

TEST_CASE("find gives the mapping that holds an address") {
  AddressSpace space;
  Block a;
  REQUIRE(space.map(a.at(0x1000)) == Errc::ok);
  CHECK(!space.find(GpuVa{0xfff}));
  CHECK(space.find(GpuVa{0x1000})->host == a.bytes.data());
  CHECK(space.find(GpuVa{0x1fff})->owner == Mapping::kHost);
  CHECK(space.find(GpuVa{0x2000}).error() == Errc::unmapped);
}

TEST_CASE("a reader finds whole runs, pieces of runs, and nothing beyond") {
  AddressSpace space;
  Block a, b;
  REQUIRE(space.map(a.at(0x1000)) == Errc::ok);
  REQUIRE(space.map(b.at(0x2000)) == Errc::ok);
  AddressSpace::Reader r{space, GpuId{0}};
  const AddressSpace::Reader::Section section{r};
  for (int twice = 0; twice < 2; ++twice) {  // searched, then remembered
    CHECK(r.at(GpuVa{0x1000}, 4096, Access::read_write) == a.bytes.data());
    CHECK(r.at(GpuVa{0x1ffe}, 2, Access::write) == a.bytes.data() + 0xffe);
    CHECK(r.at(GpuVa{0x1ffe}, 3, Access::write) == nullptr);  // mapped, in two pieces
    CHECK(r.run(GpuVa{0x1ffe}, 3, Access::write).size() == 2);
    CHECK(r.at(GpuVa{0xfff}, 1, Access::read) == nullptr);
    CHECK(r.at(GpuVa{0x3000}, 1, Access::read) == nullptr);
    CHECK(r.run(GpuVa{0x2ff0}, 100, Access::read).size() == 16);
  }
}

TEST_CASE("a mapping is for the GPUs of its mask and for the access that it allows") {
  AddressSpace space;
  Block a;
  auto m = a.at(0x1000);
  m.gpus = 1u << 3;
  m.access = Access::read;
  REQUIRE(space.map(m) == Errc::ok);
  AddressSpace::Reader third{space, GpuId{3}}, second{space, GpuId{2}}, far{space, GpuId{64}};
  const AddressSpace::Reader::Section s3{third}, s2{second}, sf{far};
  CHECK(third.at(GpuVa{0x1000}, 8, Access::read));
  CHECK(!third.at(GpuVa{0x1000}, 8, Access::write));
  CHECK(!third.at(GpuVa{0x1000}, 8, Access::read_write));
  CHECK(!second.at(GpuVa{0x1000}, 8, Access::read));
  CHECK(!far.at(GpuVa{0x1000}, 8, Access::read));
}

TEST_CASE("only the GPUs of a mapping may touch it") {
  AddressSpace space;
  Block a;
  auto m = a.at(0x1000);
  m.gpus = 1;
  REQUIRE(space.map(m) == Errc::ok);
  AddressSpace::Reader other{space, GpuId{5}}, own{space, GpuId{0}};
  const AddressSpace::Reader::Section in_other{other}, in_own{own};
  CHECK(!other.at(GpuVa{0x1000}, 1, Access::read));
  CHECK(own.at(GpuVa{0x1000}, 1, Access::read));
}

TEST_CASE("boxes are covered row by row, holes and wrap-around included") {
  AddressSpace space;
  Block a, b;
  REQUIRE(space.map(a.at(0x10000)) == Errc::ok);
  REQUIRE(space.map(b.at(0x12000)) == Errc::ok);
  AddressSpace::Reader r{space, GpuId{0}};
  const AddressSpace::Reader::Section s{r};
  GpuVa missing;
  const auto box = [](std::uint64_t va, std::uint64_t bytes, std::uint32_t rows, std::uint64_t pitch,
                      std::uint32_t slices, std::uint64_t slice_pitch) {
    return Region{GpuVa{va}, bytes, Access::read, rows, pitch, slices, slice_pitch};
  };
  CHECK(r.covers(box(0x10000, 4096, 1, 0, 1, 0)));
  CHECK(!r.covers(box(0x10000, 4097, 1, 0, 1, 0), &missing));
  CHECK(missing == GpuVa{0x11000});
  CHECK(r.covers(box(0x10000, 4096, 2, 0x2000, 1, 0)));  // steps over the hole
  CHECK(!r.covers(box(0x10000, 4096, 3, 0x1000, 1, 0), &missing));
  CHECK(missing == GpuVa{0x11000});
  CHECK(r.covers(box(0x10000, 16, 4, 0x100, 2, 0x2000)));
  CHECK(!r.covers(box(0x10000, 16, 4, 0x100, 3, 0x2000), &missing));
  CHECK(missing == GpuVa{0x14000});
  CHECK(r.covers(box(0x10000, 16, ~0u, 0, 1, 0)));  // the same row, over and over
  CHECK(!r.covers(box(0x10000, ~0ull, 1, 0, 1, 0)));
  CHECK(!r.covers(box(0xffff'ffff'ffff'fff8, 16, 1, 0, 1, 0)));
  CHECK(!r.covers(box(0x10000, 16, 3, 1ull << 63, 1, 0)));
}

TEST_CASE("unmap waits for who is inside, and no longer") {
  AddressSpace space;
  Block a;
  REQUIRE(space.map(a.at(0x1000)) == Errc::ok);
  AddressSpace::Reader r{space, GpuId{0}};
  {
    const AddressSpace::Reader::Section s{r};
    REQUIRE(r.at(GpuVa{0x1000}, 1, Access::read));
    CHECK(space.unmap(GpuVa{0x1000}, Deadline{}) == Errc::timed_out);
    CHECK(r.at(GpuVa{0x1000}, 1, Access::read));  // what this Section saw stays
    CHECK(space.drain(Deadline{}) == Errc::timed_out);
    CHECK(space.unmap(GpuVa{0x1000}, Deadline{}) == Errc::unmapped);
    r.refresh();
    CHECK(!r.at(GpuVa{0x1000}, 1, Access::read));
    CHECK(space.drain(Deadline{}) == Errc::ok);
  }
  const AddressSpace::Reader::Section s{r};
  CHECK(!r.at(GpuVa{0x1000}, 1, Access::read));
}

TEST_CASE("a new mapping at an old address is not mistaken for the old one") {
  AddressSpace space;
  Block a, b;
  AddressSpace::Reader r{space, GpuId{0}};
  for (int i = 0; i < 100; ++i) {
    auto& block = i % 2 ? a : b;
    REQUIRE(space.map(block.at(0x1000)) == Errc::ok);
    {
      const AddressSpace::Reader::Section s{r};
      REQUIRE(r.at(GpuVa{0x1000}, 8, Access::read) == block.bytes.data());
    }
    REQUIRE(space.unmap(GpuVa{0x1000}, Deadline::in(kSoon)) == Errc::ok);
  }
}

TEST_CASE("replace removes and adds in one step, or changes nothing") {
  AddressSpace space;
  Block a, b;
  const auto before = a.at(0x1000), head = a.at(0x1000, 2048), middle = b.at(0x1800);
  REQUIRE(space.map(before) == Errc::ok);
  const std::array old{GpuVa{0x1000}};
  const std::array missing{GpuVa{0x1000}, GpuVa{0x9000}};
  const std::array parts{head, middle}, overlapping{head, b.at(0x1400)};
  CHECK(space.replace(missing, parts, Deadline::in(kSoon)) == Errc::unmapped);
  CHECK(space.replace(old, overlapping, Deadline::in(kSoon)) == Errc::bad_argument);
  CHECK(space.find(GpuVa{0x1fff})->host == a.bytes.data());
  std::atomic<bool> stop{false}, missed{false};
  std::thread engine([&] {
    AddressSpace::Reader r{space, GpuId{0}};
    while (!stop) {
      const AddressSpace::Reader::Section s{r};
      if (r.at(GpuVa{0x1000}, 8, Access::read) != a.bytes.data()) missed = true;
    }
  });
  const std::array both{GpuVa{0x1000}, GpuVa{0x1800}};
  for (int i = 0; i < 200; ++i) {
    REQUIRE(space.replace(old, parts, Deadline::in(60s)) == Errc::ok);
    CHECK(space.find(GpuVa{0x1800})->host == b.bytes.data());
    REQUIRE(space.replace(both, {&before, 1}, Deadline::in(60s)) == Errc::ok);
  }
  stop = true;
  engine.join();
  CHECK_FALSE(missed);
  CHECK(space.mappings().size() == 1);
}

TEST_CASE("engines look up while memory comes and goes; freed memory is never touched") {
  AddressSpace space;
  std::atomic<bool> stop{false};
  std::atomic<std::uint64_t> found{0};
  std::vector<std::thread> engines;
  for (std::uint32_t g = 0; g < 3; ++g)
    engines.emplace_back([&, g] {
      AddressSpace::Reader r{space, GpuId{g}};
      while (!stop.load(std::memory_order_relaxed)) {
        std::uint64_t here = 0;
        {
          const AddressSpace::Reader::Section s{r};
          for (int i = 0; i < 8; ++i)
            if (auto* p = r.at(GpuVa{0x1000}, 8, Access::write)) {
              std::atomic_ref(*reinterpret_cast<std::uint64_t*>(p)).fetch_add(1, std::memory_order_relaxed);
              ++here;
            }
        }
        found.fetch_add(here, std::memory_order_relaxed);
        if (here == 0) std::this_thread::yield();  // on few cores only this lets the next mapping come soon
      }
    });
  for (int i = 0; i < 300 || found == 0; ++i) {
    auto memory = std::make_unique<std::uint64_t[]>(512);
    REQUIRE(space.map({.va = GpuVa{0x1000}, .bytes = 4096, .host = reinterpret_cast<std::byte*>(memory.get())}) ==
            Errc::ok);
    std::this_thread::yield();
    REQUIRE(space.unmap(GpuVa{0x1000}, Deadline::in(60s)) == Errc::ok);
    memory[0] = 0;  // a plain store: a race, if anybody is still there
  }
  stop = true;
  for (auto& t : engines) t.join();
}

TEST_CASE("many mappings are found, and none overlaps another, in whatever order they come and go") {
  constexpr std::uint64_t kMany = 3000, kStep = 64;
  AddressSpace space;
  std::array<std::uint64_t, 8> host{};
  const auto map = [&](std::uint64_t va, std::uint64_t bytes) {
    return space.map({.va = GpuVa{va}, .bytes = bytes, .host = reinterpret_cast<std::byte*>(host.data())});
  };
  const auto place = [](std::uint64_t i) { return (i * 1009 % kMany + 1) * kStep; };  // 1009 and 3000 have no divisor
  for (std::uint64_t i = 0; i < kMany; ++i) REQUIRE(map(place(i), 32) == Errc::ok);
  for (std::uint64_t i = 0; i < kMany; ++i) {
    const auto va = place(i);
    CHECK(map(va - 8, 16) == Errc::bad_argument);
    CHECK(map(va + 24, 8) == Errc::bad_argument);
    CHECK(space.find(GpuVa{va + 31})->va == GpuVa{va});
    CHECK(!space.find(GpuVa{va + 32}));
  }
  CHECK(map(32, kMany * kStep) == Errc::bad_argument);
  for (std::uint64_t i = 0; i < kMany; i += 2) REQUIRE(space.unmap(GpuVa{place(i)}, Deadline::in(60s)) == Errc::ok);
  for (std::uint64_t i = 0; i < kMany; ++i) CHECK(space.find(GpuVa{place(i)}).has_value() == (i % 2 == 1));
  const auto left = space.mappings();
  CHECK(left.size() == kMany / 2);
  CHECK(std::is_sorted(left.begin(), left.end(), [](const Mapping& a, const Mapping& b) { return a.va < b.va; }));
}
