// SPDX-License-Identifier: MIT
// What a device must do whose memory other processes may open. Run each test alone, by its tag, because some libraries
// do not work in the child of a process that has used them.
#include "sdma/packets/registry.hpp"

#include "conformance_support.hpp"
#include "process.hpp"

namespace conformance {

using sdma::test::Process;
using sdma::test::Socket;

TEST_CASE("an engine of one process copies into memory of another, and its completion ends a wait there",
          "[.share][.copy]") {
  constexpr std::uint64_t kBytes = 70'000;
  const auto under = devices_under_test().front();
  {
    Process other([&](Socket s) {
      const auto d = under.open();
      const auto to = *s.receive<SharedHandle>(), words = *s.receive<SharedHandle>(), late = *s.receive<SharedHandle>();
      auto target = must(d->open_shared(to)), word = must(d->open_shared(words));
      const auto go = must(d->signal_at(word, 0)), done = must(d->signal_at(word, 64));
      auto mine = gpu_memory(*d, 1, kBytes);
      pattern(mine.host(), 3);
      Lane lane(*d, {.gpu = GpuId{1}});
      lane.submit(PollMem{.addr = go.low_va(), .func = Compare::ge, .reference = 7},
                  CopyLinear{.src = mine.va(), .dst = target.va(), .bytes = kBytes},
                  Atomic{.addr = done.va, .value = 1});
      s.send('r');
      if (!lane.finish() || s.receive<char>() != 'w') return 1;
      if (!d->open_shared(late).error().message.ends_with("has given this memory back")) return 2;
      s.send('k');
      return s.receive<char>() ? 3 : 4;  // it is killed here
    });
    const auto d = under.open();
    auto m = must(d->allocate({.where = GpuId{0}, .bytes = kBytes, .alignment = 1 << 16, .shareable = true}));
    auto words = must(d->allocate({.bytes = 4096, .purpose = Purpose::words, .shareable = true}));
    auto withdrawn = must(d->allocate({.bytes = 4096, .shareable = true}));
    const auto go = must(d->signal_at(words, 0)), done = must(d->signal_at(words, 64));
    for (const auto* each : {&m, &words, &withdrawn}) other.socket().send(must(d->share(*each)));
    withdrawn.reset();
    CHECK(must(d->share(m)) == must(d->share(m)));
    CHECK(d->share(gpu_memory(*d, 0, 64)).error().message == "this memory cannot be shared");
    REQUIRE(other.socket().receive<char>() == 'r');
    go.set(7);
    REQUIRE(wait(done, Compare::eq, 1, soon()));
    flush(*d);
    std::vector<std::byte> should(kBytes);
    pattern(should, 3);
    CHECK(equal(m.host(), should));
    other.socket().send('w');
    CHECK(other.socket().receive<char>() == 'k');
    CHECK(other.killed() == 128 + SIGKILL);
    Lane lane(*d);
    lane.submit(Fill{.dst = m.va(), .data = 0x55555555, .bytes = 4096});
    REQUIRE(lane.finish());
    CHECK(all_are(m.host().first(4096), 0x55));
  }
}

TEST_CASE("memory stays when its owner is killed", "[.share][.killed]") {
  const auto under = devices_under_test().front();
  {
    Process owner([&](Socket s) {
      const auto d = under.open();
      auto m = must(d->allocate({.where = GpuId{1}, .bytes = 4096, .shareable = true}));
      std::memset(m.host().data(), 0x21, 4096);
      flush(*d);
      s.send(must(d->share(m)));
      return s.receive<char>() ? 3 : 4;  // it is killed here
    });
    const auto d = under.open();
    const auto h = *owner.socket().receive<SharedHandle>();
    auto m = must(d->open_shared(h));
    const auto pid = static_cast<std::uint32_t>(owner.pid());
    CHECK(d->origin(m.va()) == MemoryOwner{pid, false});
    CHECK(owner.killed() == 128 + SIGKILL);
    CHECK(d->origin(m.va() + 4095) == MemoryOwner{pid, true});
    CHECK(all_are(m.host(), 0x21));
    Lane lane(*d);
    lane.submit(Fill{.dst = m.va(), .data = 0x66666666, .bytes = 4096});
    REQUIRE(lane.finish());
    CHECK(all_are(m.host(), 0x66));
    CHECK(d->open_shared(h).error().message.ends_with("it has ended or closed its device"));
    m.reset();
    CHECK_FALSE(d->origin(GpuVa{8}));
  }
}

}  // namespace conformance
