// SPDX-License-Identifier: MIT
// The exhibits of the museum that need the C++ interface. The page shows the lines between `// exhibit NAME VERSION`
// and `// end`; museum.py compares what `says` reports with what the table expects.
#include "queue/memory.hpp"
#include "sdma/check/check.hpp"
#include "sdma/device/soft.hpp"
#include "sdma/packets/sync.hpp"
#include "sdma/sync/describe.hpp"
#include "sdma/sync/submission.hpp"
#include "sdma/sync/wait.hpp"
#include "support/catch.hpp"

#include <cstdlib>
#include <fstream>
#include <sstream>

using namespace sdma;
using namespace std::chrono_literals;

namespace {

/// What the library reports about a version of an exhibit; an empty text if there is nothing to report. Appends its
/// first line and its hint, which contain no addresses, to the file that SDMA_MUSEUM_SAYS names.
void says(const std::string& exhibit, const std::string& text) {
  const bool bug = exhibit.ends_with(".bug");
  INFO(exhibit << ": " << text);
  CHECK(text.empty() != bug);
  const char* path = std::getenv("SDMA_MUSEUM_SAYS");
  if (!path) return;
  std::ofstream file(path, std::ios::app);
  std::istringstream lines(text);
  std::string line;
  for (bool first = true; std::getline(lines, line); first = false)
    if (first || line.starts_with("  hint:")) file << exhibit << '\t' << line << '\n';
  if (text.empty()) file << exhibit << "\t\n";
}
std::string text_of(Errc e) { return e == Errc::ok ? "" : std::string(message(e)); }
std::string text_of(const CheckReport& r) {
  return r.findings.empty() && r.verdict() == Verdict::proved ? "" : to_string(r.findings.at(0).diagnostic);
}

}  // namespace

TEST_CASE("overrun: a submission that is longer than what is left of the ring") {
  test::Memory m(256);
  Ring<> ring{m.ring()};
  const Fence fence{.addr = GpuVa{0x1000}, .value = 1};
  for (int i = 0; i < 63; ++i) REQUIRE(ring.submit(fence) == Errc::ok);
  SECTION("bug") {
    // exhibit overrun bug
    const auto p = ring.positions();
    const bool room = p.committed - p.read < ring.memory().dwords.size_bytes();  // true: one fence would fit
    const auto e = room ? ring.submit(fence, fence, fence) : Errc::no_space;
    // end
    CHECK(room);
    CHECK(ring.positions().committed == p.committed);
    says("overrun.bug", text_of(e));
  }
  SECTION("fix") {
    m.rptr = 63 * 16;  // what the engine has read by now
    // exhibit overrun fix
    Submission s{ring, 12, Deadline::in(1s)};  // waits until the engine has read enough for all of it
    auto e = Errc::ok;
    for (int i = 0; i < 3 && e == Errc::ok; ++i) e = s.put(fence);
    if (e == Errc::ok) e = s.publish();
    // end
    says("overrun.fix", text_of(e));
  }
}

TEST_CASE("one_word: rptr and wptr at one address") {
  test::Memory m(256);
  SECTION("bug") {
    // exhibit one_word bug
    auto memory = m.ring();
    memory.rptr = &m.wptr;  // the engine writes 16 bytes here
    // end
    says("one_word.bug", std::string(validate(memory)));
  }
  SECTION("fix") {
    // exhibit one_word fix
    auto memory = m.ring();
    memory.rptr = &m.rptr;
    // end
    says("one_word.fix", std::string(validate(memory)));
  }
}

TEST_CASE("no_acquire: a kernel reads what an engine has stored") {
  Schedule s{.gpus = 2};
  const auto in = s.add_buffer({.place = Place::gpu(0), .name = "in", .bytes = 4096});
  const auto scratch = s.add_buffer({.place = Place::gpu(1), .name = "scratch", .bytes = 4096});
  const auto arrived = s.add_signal({.name = "arrived"});
  auto& q = s.add_queue({.place = Place::gpu(0), .name = "put", .peer = Place::gpu(1)});
  q.copy({.src = in, .dst = scratch, .bytes = 4096}).put(Atomic{.addr = arrived, .value = 1});
  s.add_host("main").submit(q).wait(arrived, Compare::eq, 1);
  using Kind = Schedule::Action::Kind;
  auto& reduce = s.kernels.emplace_back(Schedule::Kernel{.place = Place::gpu(1), .name = "reduce"});
  SECTION("bug") {
    // exhibit no_acquire bug
    reduce.actions = {
        {.kind = Kind::wait, .signal = arrived, .value = 1, .system_scope = false},  // a fence, but no buffer_inv
        {.kind = Kind::load, .range = {scratch, 4096}}};
    // end
    says("no_acquire.bug", text_of(check(s)));
  }
  SECTION("fix") {
    // exhibit no_acquire fix
    reduce.actions = {{.kind = Kind::wait, .signal = arrived, .value = 1},
                      {.kind = Kind::load, .range = {scratch, 4096}}};
    // end
    says("no_acquire.fix", text_of(check(s)));
  }
}

TEST_CASE("two_owners: a layer below appends packets to a ring that has an owner") {
  test::Memory m(256);
  Ring<> ring{m.ring()};
  const Fence fence{.addr = GpuVa{0x1000}, .value = 1};
  const Trap trap{.context = 1};
  SECTION("bug") {
    // exhibit two_owners bug
    REQUIRE(ring.submit(fence) == Errc::ok);
    encode_to(trap, m.dwords.data() + m.wptr / 4);  // the layer below
    m.doorbell = m.wptr += 8;
    // end
    says("two_owners.bug", describe(inspect(ring)));
  }
  SECTION("fix") {
    // exhibit two_owners fix
    REQUIRE(ring.submit(fence, trap) == Errc::ok);  // all packets go through the ring
    // end
    m.rptr = m.wptr;  // the engine has read all of them
    const auto r = inspect(ring);
    says("two_owners.fix", r.read == r.committed && r.committed == r.wptr ? "" : describe(r));
  }
}

TEST_CASE("lost_doorbell: wptr is right, and the engine does not know it") {
  const auto device = SoftDevice::open({.gpus = 1});
  REQUIRE(device);
  Device& d = **device;
  const auto done = *d.create_signal();
  std::uint64_t lost = 0;
  SECTION("bug") {
    // exhibit lost_doorbell bug
    const auto queue = *d.create_queue({});
    auto memory = queue.memory();
    memory.doorbell = &lost, memory.on_doorbell = nullptr;  // as if it rang while the power state changes
    Ring<> ring{memory};
    REQUIRE(ring.submit(Fence{.addr = done->va, .value = 1}) == Errc::ok);
    const auto v = wait(*done, Compare::eq, 1, Deadline::in(20ms), ring);
    // end
    CHECK(lost == ring.positions().committed);
    says("lost_doorbell.bug", v ? "" : describe(v.error()));
  }
  SECTION("fix") {
    // exhibit lost_doorbell fix
    const auto queue = *d.create_queue({.watch_wptr = true});  // the engine learns wptr in another way
    auto memory = queue.memory();
    Ring<> ring{memory};
    REQUIRE(ring.submit(Fence{.addr = done->va, .value = 1}) == Errc::ok);
    const auto v = wait(*done, Compare::eq, 1, Deadline::in(20s), ring);
    // end
    says("lost_doorbell.fix", v ? "" : describe(v.error()));
  }
}

TEST_CASE("rptr_stays: the engine reads packets and does not write rptr back") {
  test::Memory m(256);
  Ring<> ring{m.ring()};
  const auto lap = [&] {
    for (int i = 0; i < 63; ++i) REQUIRE(ring.submit(Fence{.addr = GpuVa{0x1000}, .value = 1}) == Errc::ok);
  };
  SECTION("bug") {
    // exhibit rptr_stays bug
    lap();  // the engine executes all of it, and rptr in memory keeps the value 0
    const auto slot = reserve(ring, 16, Deadline::in(5ms));  // without a deadline, the producer would hang here
    // end
    CHECK(slot.error() == Errc::timed_out);
    says("rptr_stays.bug", describe(inspect(ring)));
  }
  SECTION("fix") {
    // exhibit rptr_stays fix
    lap();
    m.rptr = m.wptr;  // written back by the engine
    const auto slot = reserve(ring, 16, Deadline::in(5ms));
    // end
    says("rptr_stays.fix", slot ? "" : describe(inspect(ring)));
  }
}
