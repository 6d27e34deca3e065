// SPDX-License-Identifier: MIT
#include "sdma/queue/dump.hpp"

#include "memory.hpp"
#include "sdma/packets/sync.hpp"
#include "sdma/stream/reader.hpp"
#include "support/catch.hpp"
#include "support/folder.hpp"

#include <fstream>

using namespace sdma;
using test::Folder;
using test::Memory;

namespace {

RingDump sample() {
  RingDump d{.read = 1008,
             .committed = 1040,
             .reserved = 1072,
             .wptr = 1040,
             .doorbell = 1040,
             .gpu = {3},
             .engine = {14},
             .label = "a label"};
  for (std::uint32_t i = 0; i < 256; ++i) d.dwords.push_back(0x01020300 + i);
  return d;
}
bool same(const RingDump& a, const RingDump& b) {
  return a.read == b.read && a.committed == b.committed && a.reserved == b.reserved && a.wptr == b.wptr &&
         a.doorbell == b.doorbell && a.gpu == b.gpu && a.engine == b.engine && a.label == b.label &&
         a.dwords == b.dwords;
}

}  // namespace

TEST_CASE("a dump is what it was, after bytes and back") {
  auto d = sample();
  for (std::size_t n = 0; n < 9; ++n) {
    d.label.assign(n, 'x');
    const auto back = from_bytes(to_bytes(d), "ring.bin");
    REQUIRE(back);
    CHECK(same(d, *back));
  }
  d.dwords.clear();
  CHECK(same(d, *from_bytes(to_bytes(d), "ring.bin")));
  d.label.assign(5000, 'x');
  CHECK(from_bytes(to_bytes(d), "ring.bin")->label.size() == kMaxDumpLabel);
}

TEST_CASE("the bytes of a dump are those of the format, on any machine") {
  const auto b = to_bytes(sample());
  CHECK(b.size() == 72 + 8 + 1024);
  const auto at = [&](std::size_t i) { return std::to_integer<int>(b[i]); };
  CHECK((at(0) == 'S' && at(7) == 'G' && at(8) == 1 && at(12) == 72));
  CHECK((at(16) == 0xf0 && at(17) == 0x03 && at(24) == 0x10 && at(25) == 0x04));
  CHECK((at(56) == 3 && at(60) == 14 && at(64) == 7 && at(68) == 0 && at(69) == 1));
  CHECK((at(72) == 'a' && at(79) == 0));
  CHECK((at(80) == 0x00 && at(81) == 0x03 && at(82) == 0x02 && at(83) == 0x01 && at(84) == 0x01));
}

TEST_CASE("whatever is not a dump is refused, where it is wrong") {
  auto b = to_bytes(sample());
  const auto refuses = [&](const char* where, const char* message) {
    const auto r = from_bytes(b, "ring.bin");
    REQUIRE_FALSE(r);
    CHECK(r.error().rule == "dump");
    CHECK(r.error().where == std::string("ring.bin:") + where);
    CHECK_THAT(r.error().message, Catch::Contains(message));
  };
  const auto poke = [&](std::size_t i, int v) { b[i] = static_cast<std::byte>(v); };
  SECTION("empty") {
    b.clear();
    refuses("0x0000", "not a ring dump");
  }
  SECTION("magic") {
    poke(3, 'a');
    refuses("0x0000", "not a ring dump");
  }
  SECTION("magic only") {
    b.resize(8);
    refuses("0x0008", "after 8 of 72 bytes");
  }
  SECTION("half a header") {
    b.resize(71);
    refuses("0x0047", "after 71 of 72 bytes");
  }
  SECTION("version") {
    poke(8, 2);
    refuses("0x0008", "version 2");
  }
  SECTION("header") {
    poke(12, 80);
    refuses("0x000c", "80 bytes");
  }
  SECTION("label") {
    poke(65, 0x11);
    refuses("0x0040", "label has 4359 bytes");
  }
  SECTION("huge ring") {
    poke(71, 0xff);
    refuses("0x0044", "dwords; at most 268435456 are allowed");
  }
  SECTION("larger ring than bytes") {
    poke(71, 0x0f);
    refuses("0x0450", "ends after 1104 of");
  }
  SECTION("cut off") {
    b.resize(b.size() - 1);
    refuses("0x044f", "ends after 1103 of 1104 bytes");
  }
  SECTION("more") {
    b.resize(b.size() + 3);
    refuses("0x0450", "3 extra bytes after");
  }
  SECTION("filling") {
    poke(79, 1);
    refuses("0x004f", "zeros");
  }
}

TEST_CASE("no byte of a dump, changed or cut off, does harm") {
  const auto good = to_bytes(sample());
  for (std::size_t n = 0; n < good.size(); ++n) CHECK_FALSE(from_bytes(std::span(good).first(n), "x").has_value());
  for (std::size_t i = 0; i < 84; ++i)
    for (int bit = 0; bit < 8; ++bit) {
      auto b = good;
      b[i] ^= static_cast<std::byte>(1 << bit);
      if (const auto d = from_bytes(b, "x")) {
        CHECK(to_bytes(*d) == b);
        (void)pending(*d);
      }
    }
}

TEST_CASE("what is pending comes in order, over the ring's end, and knows where it lay") {
  const auto p = pending(sample());
  REQUIRE(p);
  CHECK(p->dwords == std::vector<std::uint32_t>{0x010203fc, 0x010203fd, 0x010203fe, 0x010203ff, 0x01020300, 0x01020301,
                                                0x01020302, 0x01020303});
  CHECK((p->ring_offset(0) == 1008 && p->ring_offset(3) == 1020 && p->ring_offset(4) == 0 && p->ring_offset(7) == 12));
  auto d = sample();
  d.read = d.wptr;
  CHECK(pending(d)->dwords.empty());
  d.dwords.clear();
  CHECK(pending(d)->dwords.empty());
}

TEST_CASE("positions that are none of this ring are told") {
  auto d = sample();
  const auto refuses = [&](const char* message) {
    const auto p = pending(d, "ring.bin");
    REQUIRE_FALSE(p);
    CHECK_THAT(to_string(p.error()), Catch::Contains(message));
  };
  SECTION("odd read") {
    d.read += 2;
    refuses("ring.bin:0x0010: error[dump]: read is 0x3f2, not a multiple of 4");
  }
  SECTION("odd wptr") {
    d.wptr += 1;
    refuses("ring.bin:0x0028: error[dump]: wptr is 0x411, not a multiple of 4");
  }
  SECTION("ahead") {
    d.read = 2000;
    refuses("ahead of wptr");
  }
  SECTION("behind") {
    d.wptr += 1024;
    refuses("lags wptr");
  }
  SECTION("no dwords") {
    d.dwords.clear();
    refuses("a whole ring of 0 dwords or more");
  }
  SECTION("far") {
    d.wptr = ~std::uint64_t{3};
    refuses("a whole ring");
  }
}

TEST_CASE("a ring is dumped, saved, loaded, and read packet by packet") {
  Memory m(256, 1000);
  Ring<> ring(m.ring());
  REQUIRE(ring.submit(Fence{.addr = GpuVa{0x1000}, .value = 7}, Trap{.context = 9}) == Errc::ok);
  const Folder folder;
  const auto path = folder / "a.ring";
  REQUIRE(save(dump(ring, GpuId{2}, EngineId{5}, "stuck"), path));
  const auto d = load_dump(path);
  REQUIRE(d);
  CHECK((d->read == 1000 && d->committed == 1024 && d->reserved == 1024 && d->wptr == 1024 && d->doorbell == 1024));
  CHECK((d->gpu == GpuId{2} && d->engine == EngineId{5} && d->label == "stuck"));
  CHECK(d->dwords == std::vector<std::uint32_t>(m.dwords.begin(), m.dwords.end()));
  const auto p = pending(*d);
  REQUIRE(p);
  Reader r{p->dwords};
  CHECK(r.next().is<Fence>());
  CHECK(p->ring_offset(r.position_dwords()) == 1016);
  CHECK(r.next().is<Trap>());
  CHECK_FALSE(r);
}

TEST_CASE("a file is replaced whole or left alone") {
  const Folder folder;
  const auto path = folder / "a.ring";
  REQUIRE(save(sample(), path));
  auto other = sample();
  other.label = "another";
  REQUIRE(save(other, path));
  CHECK(load_dump(path)->label == "another");
  CHECK(folder.files() == 1);

  SECTION("when the file cannot be written whole") {
    const auto r = [&] {
      const test::FullAfter full{500};
      return save(sample(), path);
    }();
    REQUIRE_FALSE(r);
    CHECK_THAT(to_string(r.error()), Catch::Contains("cannot be written: File too large"));
  }
  SECTION("when there is no such folder") {
    const auto r = save(sample(), folder / "none/a.ring");
    REQUIRE_FALSE(r);
    CHECK_THAT(r.error().message, Catch::Contains("No such file"));
  }
  CHECK(load_dump(path)->label == "another");
  CHECK(folder.files() == 1);
}

TEST_CASE("a full device is told, and files that are no dumps") {
  const auto full = save(sample(), "/dev/full");
  REQUIRE_FALSE(full);
  CHECK_THAT(full.error().message, Catch::Contains("No space left"));
  const Folder folder;
  CHECK_THAT(load_dump(folder / "none").error().message, Catch::Contains("No such file"));
  CHECK_THAT(load_dump(folder.path.string()).error().message, Catch::Contains("directory"));
  const auto path = folder / "a.ring";
  std::ofstream(path) << "SDMARING";
  CHECK(load_dump(path).error().where == path + ":0x0008");
  auto bytes = to_bytes(sample());
  bytes.push_back({});
  std::ofstream(path).write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
  CHECK_THAT(load_dump(path).error().message, Catch::Contains("1 extra bytes after"));
}
