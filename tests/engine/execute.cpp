// SPDX-License-Identifier: MIT
// Each packet's effect, and that nothing else was written: against a byte by byte model, in all three orderings.
#include "engine/rig.hpp"

#include <set>

using namespace sdma;
using namespace sdma::test;

namespace {

const auto kOrderings = {Ordering::strict, Ordering::rocr, Ordering::adversarial};

/// Puts one packet and runs it, in each ordering; `model` says what it should leave.
template <Packet P, class Model> void check_packet(const P& p, Model model, std::uint32_t seed = 1) {
  for (auto ordering : kOrderings) {
    Rig rig{{.ordering = ordering, .seed = seed}};
    rig.first.randomise(seed);
    rig.second.randomise(seed + 1);
    Expected one{rig.first}, two{rig.second};
    const auto byte = [&](GpuVa va) -> std::byte& { return va < rig.second.va ? one[va] : two[va]; };
    model(byte);
    rig.put(p);
    rig.put(Fence{.addr = rig.b(kSize - 4), .value = 1});
    two.put(rig.b(kSize - 4), 1u);
    rig.go();
    CHECK(one.holds());
    CHECK(two.holds());
  }
}

const GpuVa kA{0x100000}, kB{0x200000};

}  // namespace

TEST_CASE("copy_linear: any byte, any length") {
  for (std::uint32_t n :
       {1u, 2u, 3u, 4u, 7u, 8u, 9u, 15u, 31u, 32u, 33u, 63u, 64u, 65u, 255u, 4095u, 4096u, 4097u, 30000u})
    for (std::uint64_t from : {0u, 1u, 5u, 64u})
      for (std::uint64_t to : {0u, 3u, 8u, 127u})
        check_packet(CopyLinear{.src = kA + from, .dst = kB + to, .bytes = n}, [&](auto byte) {
          for (std::uint32_t i = 0; i < n; ++i) byte(kB + to + i) = byte(kA + from + i);
        });
}

TEST_CASE("copy_linear reaches the last byte of its memory, and no further") {
  check_packet(CopyLinear{.src = kA + (kSize - 5), .dst = kA, .bytes = 5}, [](auto byte) {
    for (std::uint32_t i = 0; i < 5; ++i) byte(kA + i) = byte(kA + (kSize - 5 + i));
  });
}

TEST_CASE("copies go on from one mapping into the next") {
  for (auto ordering : kOrderings) {
    Rig rig{{.ordering = ordering}};
    Memory left{GpuVa{0x300000}, 64}, right{GpuVa{0x300040}, 64};
    left.randomise(1), right.randomise(2);
    REQUIRE(rig.space.map(left.mapping()) == Errc::ok);
    REQUIRE(rig.space.map(right.mapping()) == Errc::ok);
    rig.put(CopyLinear{.src = GpuVa{0x300009}, .dst = rig.a(1), .bytes = 100});
    rig.put(CopySwap{.a = GpuVa{0x300000}, .b = rig.b(0), .bytes = 128});
    Expected one{rig.first}, two{rig.second};
    for (std::uint64_t i = 0; i < 128; ++i) {
      const auto& b = (i < 64 ? left : right).at<std::byte>(GpuVa{0x300000 + i});
      if (i >= 9 && i < 109) one[rig.a(1 + i - 9)] = b;
      two[rig.b(i)] = b;
    }
    if (ordering == Ordering::strict) {
      rig.go();
      CHECK(one.holds());
      CHECK(two.holds());
      CHECK(left.words == std::vector<std::uint64_t>(8, 0xcdcdcdcdcdcdcdcd));
      CHECK(right.words == left.words);
    }
  }
}

TEST_CASE("copy_broadcast writes both destinations") {
  for (std::uint32_t n : {1u, 33u, 4096u, 4097u, 10000u})
    check_packet(CopyBroadcast{.src = kA + 3, .dst1 = kB + 5, .dst2 = kB + (32 * 1000 + 5), .bytes = n},
                 [&](auto byte) {
                   for (std::uint32_t i = 0; i < n; ++i) byte(kB + 5 + i) = byte(kB + (32005 + i)) = byte(kA + 3 + i);
                 });
}

TEST_CASE("copy_swap exchanges") {
  for (std::uint32_t n : {1u, 63u, 64u, 65u, 128u, 4096u, 5000u})
    check_packet(CopySwap{.a = kA + 64, .b = kB + 256, .bytes = n}, [&](auto byte) {
      for (std::uint32_t i = 0; i < n; ++i) std::swap(byte(kA + 64 + i), byte(kB + 256 + i));
    });
}

TEST_CASE("copy_dirty_page takes every page for dirty") {
  for (bool all : {false, true})
    check_packet(CopyDirtyPage{.src = kA + 9, .dst = kB + 17, .bytes = 9000, .all = all}, [&](auto byte) {
      for (std::uint32_t i = 0; i < 9000; ++i) byte(kB + 17 + i) = byte(kA + 9 + i);
    });
}

TEST_CASE("copy_struct gathers and scatters dwords") {
  for (bool gather : {false, true})
    check_packet(
        CopyStruct{.table = kA + 8, .linear = kB + 12, .start = 5, .count = 100, .stride = 7, .detile = gather},
        [&](auto byte) {
          for (std::uint32_t i = 0; i < 100; ++i)
            for (std::uint32_t k = 0; k < 4; ++k) {
              auto &element = byte(kA + 8 + (5 + i) * 28 + k), &packed = byte(kB + 12 + i * 4 + k);
              if (gather) packed = element;
              else element = packed;
            }
        });
  check_packet(CopyStruct{.table = kA, .linear = kB, .count = 0, .stride = 1}, [](auto) {});
}

TEST_CASE("copy_subwindow moves a box and nothing around it") {
  std::mt19937 random(5);
  const auto up_to = [&](std::uint32_t n) { return static_cast<std::uint32_t>(random() % (n + 1)); };
  for (std::uint32_t round = 0; round < 200; ++round) {
    CopySubwindow p{
        .src = kA + 4 * up_to(3), .dst = kB + 4 * up_to(3), .element_log2 = static_cast<std::uint8_t>(up_to(4))};
    p.x = 1 + up_to(20), p.y = 1 + up_to(5), p.z = 1 + up_to(3);
    p.src_x = static_cast<std::uint16_t>(up_to(4)), p.dst_x = static_cast<std::uint16_t>(up_to(4));
    p.src_y = static_cast<std::uint16_t>(up_to(2)), p.dst_y = static_cast<std::uint16_t>(up_to(2));
    p.src_z = static_cast<std::uint16_t>(up_to(2)), p.dst_z = static_cast<std::uint16_t>(up_to(2));
    p.src_pitch = 4 * (6 + up_to(3)), p.dst_pitch = 4 * (6 + up_to(3));
    p.src_slice = p.src_pitch * (9 + up_to(2)), p.dst_slice = p.dst_pitch * (9 + up_to(2));
    if ((std::uint64_t{p.dst_slice} * 6 << p.element_log2) > kSize ||
        (std::uint64_t{p.src_slice} * 6 << p.element_log2) > kSize)
      continue;
    check_packet(
        p,
        [&](auto byte) {
          const std::uint64_t e = 1u << p.element_log2;
          for (std::uint64_t z = 0; z < p.z; ++z)
            for (std::uint64_t y = 0; y < p.y; ++y)
              for (std::uint64_t b = 0; b < p.x * e; ++b)
                byte(p.dst + ((p.dst_z + z) * p.dst_slice + (p.dst_y + y) * p.dst_pitch + p.dst_x) * e + b) =
                    byte(p.src + ((p.src_z + z) * p.src_slice + (p.src_y + y) * p.src_pitch + p.src_x) * e + b);
        },
        round + 1);
  }
}

TEST_CASE("write stores its dwords, few and many, also across the end of the ring") {
  for (std::size_t n : {1u, 2u, 12u, 13u, 100u, 1000u}) {
    std::vector<std::uint32_t> data(n);
    for (std::size_t i = 0; i < n; ++i) data[i] = static_cast<std::uint32_t>(0x1000 + i);
    const Write w{.dst = kA + 8, .data = data};
    check_packet(w, [&](auto byte) {
      for (std::size_t i = 0; i < n; ++i)
        for (unsigned k = 0; k < 4; ++k) byte(kA + (8 + 4 * i + k)) = static_cast<std::byte>(data[i] >> (8 * k));
    });
    for (auto ordering : kOrderings) {
      Rig rig{{.ordering = ordering, .ring_dwords = 2048}};
      for (std::uint32_t left = 2048 - 30; left > 0; --left) rig.put(Nop{});
      rig.go();
      rig.put(w);
      rig.go();
      CHECK(std::memcmp(rig.first.data() + 8, data.data(), 4 * n) == 0);
      CHECK(rig.at(rig.a(8 + 4 * n)) == 0xcdcdcdcd);
    }
  }
}

TEST_CASE("fill repeats bytes, halves and dwords; a dword fill rounds as the packet says") {
  for (auto unit : {FillUnit::byte, FillUnit::half, FillUnit::dword})
    for (std::uint32_t data : {0x11223344u, 0xa5a5a5a5u, 0u})
      for (std::uint32_t n : {1u, 2u, 3u, 4u, 5u, 255u, 256u, 257u, 1001u, 4096u, 4093u}) {
        const Fill p{.dst = kB + 64, .data = data, .bytes = n, .unit = unit};
        check_packet(p, [&](auto byte) {
          const std::uint32_t step = unit == FillUnit::byte ? 1 : unit == FillUnit::half ? 2 : 4;
          const std::uint32_t covered = unit == FillUnit::dword ? (n + 3) / 4 * 4 : n;
          for (std::uint32_t i = 0; i < covered; ++i)
            byte(kB + 64 + i) = static_cast<std::byte>(data >> (8 * (i % step)));
        });
      }
}

TEST_CASE("fill_multi clears runs, touching and overlapping ones too") {
  for (std::uint32_t stride : {0u, 1u, 8u, 10u, 16u, 100u})
    for (std::uint32_t count : {0u, 1u, 2u, 9u})
      for (std::uint32_t n : {0u, 1u, 10u})
        check_packet(FillMulti{.dst = kA + 3, .stride = stride, .count = count, .bytes = n}, [&](auto byte) {
          for (std::uint32_t r = 0; r < count; ++r)
            for (std::uint32_t i = 0; i < n; ++i) byte(kA + 3 + std::uint64_t{r} * stride + i) = std::byte{0};
        });
}

TEST_CASE("fence and timestamp store their width") {
  check_packet(Fence{.addr = kA + 4, .value = 0x11223344}, [](auto byte) {
    for (unsigned k = 0; k < 4; ++k) byte(kA + 4 + k) = static_cast<std::byte>(0x11223344u >> (8 * k));
  });
  for (auto ordering : kOrderings) {
    RigOptions o{.ordering = ordering};
    o.more.ticks.now = [](void*) noexcept -> std::uint64_t { return 0x1122334455667788; };
    Rig rig{o};
    Expected want{rig.first};
    rig.put(Timestamp{.addr = rig.a(32)});
    want.put(rig.a(32), std::uint64_t{0x1122334455667788});
    rig.put(TimestampSet{.value = 1000});
    rig.put(TimestampLocal{.addr = rig.a(40)});
    want.put(rig.a(40), std::uint64_t{1000});
    rig.go();
    CHECK(want.holds());
  }
}

TEST_CASE("the host's clock counts in ticks of 10 ns and the local one from where it was set") {
  const auto before = std::chrono::steady_clock::now();
  Rig rig;
  rig.put(Timestamp{.addr = rig.a(0)});
  rig.put(TimestampSet{.value = 0});
  rig.put(TimestampLocal{.addr = rig.a(32)});
  rig.put(Timestamp{.addr = rig.a(64)});
  rig.go();
  const auto ticks = [](auto t) {
    return static_cast<std::uint64_t>(
        std::chrono::duration_cast<std::chrono::nanoseconds>(t.time_since_epoch()).count() / 10);
  };
  const auto one = rig.at<std::uint64_t>(rig.a(0)), local = rig.at<std::uint64_t>(rig.a(32)),
             two = rig.at<std::uint64_t>(rig.a(64));
  CHECK(ticks(before) <= one);
  CHECK(one <= two);
  CHECK(two <= ticks(std::chrono::steady_clock::now()));
  CHECK(local <= two - one);
}

TEST_CASE("poll compares masked and unsigned, with every function") {
  for (std::uint32_t value : {0u, 1u, 5u, 0x80000000u, 0xffffffffu})
    for (std::uint32_t mask : {0xffffffffu, 0xffu, 0u})
      for (std::uint32_t reference : {0u, 5u, 0x80000000u})
        for (unsigned f = 0; f < 7; ++f) {
          const auto v = value & mask;
          const bool met[] = {
              true, v<reference, v <= reference, v == reference, v != reference, v >= reference, v> reference};
          Rig rig;
          rig.at(rig.a(0)) = value;
          rig.put(PollMem{.addr = rig.a(0), .func = static_cast<Compare>(f), .reference = reference, .mask = mask});
          rig.put(Fence{.addr = rig.a(8), .value = 1});
          Expected want{rig.first};
          if (met[f]) want.put(rig.a(8), 1u);
          CHECK(rig.run() == (met[f] ? Progress::idle : Progress::waiting));
          CHECK(want.holds());
        }
}

TEST_CASE("a semaphore counts signals and lets as many waits pass") {
  for (auto ordering : kOrderings) {
    Rig rig{{.ordering = ordering}};
    rig.at<std::uint64_t>(rig.a(0)) = 0;
    rig.put(Semaphore{.addr = rig.a(0)});
    rig.put(Fence{.addr = rig.a(8), .value = 1});
    CHECK(rig.run() == Progress::waiting);
    CHECK(rig.pipeline->waits_for() == rig.a(0));
    rig.at<std::uint64_t>(rig.a(0)) = 2;
    CHECK(rig.drain() == Progress::idle);
    CHECK(rig.at<std::uint64_t>(rig.a(0)) == 1);
    rig.put(Semaphore{.addr = rig.a(0), .signal = true});
    rig.go();
    CHECK(rig.at<std::uint64_t>(rig.a(0)) == 2);
    rig.put(Semaphore{.addr = rig.a(0), .write_one = true, .signal = true});
    rig.go();
    CHECK(rig.at<std::uint64_t>(rig.a(0)) == 1);
  }
}

TEST_CASE("trap tells its context; nop, hdp_flush and dummy_trap touch nothing") {
  struct Seen {
    std::vector<std::uint32_t> contexts;
  } seen;
  for (auto ordering : kOrderings) {
    seen.contexts.clear();
    RigOptions o{.ordering = ordering};
    o.more.hooks = {.context = &seen, .trap = [](void* s, std::uint64_t queue, std::uint32_t context) noexcept {
                      if (queue == 7) static_cast<Seen*>(s)->contexts.push_back(context);
                    }};
    Rig rig{o};
    Expected one{rig.first};
    rig.put(Trap{.context = 5});
    rig.put(Nop{.dwords = 100});
    std::fill_n(rig.ring.begin() + 3, 99, 0xffffffff);  // behind the trap and the header: skipped, whatever it is
    rig.put(HdpFlush{});
    rig.put(DummyTrap{.context = 6});
    rig.put(Trap{.context = 0x0fffffff});
    rig.go();
    CHECK(one.holds());
    CHECK(seen.contexts == std::vector<std::uint32_t>{5, 0x0fffffff});
  }
}

TEST_CASE("parts of a packet's work add up to the packet, whatever their order") {
  std::mt19937 random(9);
  AddressSpace space;
  Memory a{kA}, b{kB};
  REQUIRE(space.map(a.mapping()) == Errc::ok);
  REQUIRE(space.map(b.mapping()) == Errc::ok);
  AddressSpace::Reader reader{space, GpuId{0}};
  const AddressSpace::Reader::Section section{reader};
  EngineState state;
  Machine m{.memory = reader, .state = state};
  const std::array<std::uint32_t, 5> data{1, 2, 3, 4, 5};
  const auto in_parts = [&](const auto& p) {
    const auto start = [&] { a.randomise(1), b.randomise(2); };
    start();
    REQUIRE(execute(p, m) == Outcome::done);
    const auto a_whole = a.copy(), b_whole = b.copy();
    start();
    std::set<std::uint64_t> cuts{0, work(p)};
    for (int i = 0; i < 5; ++i) cuts.insert(random() % work(p));
    std::vector<Part> parts;
    for (auto i = cuts.begin(); std::next(i) != cuts.end(); ++i) parts.push_back({*i, *std::next(i)});
    std::shuffle(parts.begin(), parts.end(), random);
    for (const auto& part : parts) REQUIRE(execute(p, m, part) == Outcome::done);
    CHECK((a.copy() == a_whole));
    CHECK((b.copy() == b_whole));
  };
  for (int round = 0; round < 50; ++round) {
    in_parts(CopyLinear{.src = kA + 1, .dst = kB + 2, .bytes = 333});
    in_parts(CopyBroadcast{.src = kA, .dst1 = kB, .dst2 = kB + 6400, .bytes = 5000});
    in_parts(CopySwap{.a = kA, .b = kB + 64, .bytes = 1000});
    in_parts(CopyDirtyPage{.src = kA, .dst = kB, .bytes = 77});
    in_parts(CopyStruct{.table = kA, .linear = kB, .count = 50, .stride = 3});
    in_parts(CopyStruct{.table = kA, .linear = kB, .count = 50, .stride = 3, .detile = true});
    in_parts(CopySubwindow{.src = kA,
                           .dst = kB,
                           .element_log2 = 1,
                           .src_pitch = 32,
                           .dst_pitch = 64,
                           .src_slice = 320,
                           .dst_slice = 640,
                           .x = 9,
                           .y = 7,
                           .z = 3});
    in_parts(Write{.dst = kA, .data = data});
    in_parts(Fill{.dst = kA + 4, .data = 0x11223344, .bytes = 999});
    in_parts(Fill{.dst = kA + 4, .data = 0x11223344, .bytes = 999, .unit = FillUnit::half});
    in_parts(FillMulti{.dst = kB + 1, .stride = 30, .count = 9, .bytes = 7});
  }
}
