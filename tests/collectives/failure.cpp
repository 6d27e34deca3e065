// SPDX-License-Identifier: MIT
// A queue that fails in the middle: an error that names it, and not a byte of what had not been released.
#include "support.hpp"

namespace collectives::test {
namespace {

/// Behind the first copy of a queue, one from where there is no memory.
void break_queue(Plan& p, std::size_t queue) {
  auto& q = p.schedule.queues[queue];
  Schedule::Queue broken{.place = q.place, .name = q.name, .peer = q.peer};
  bool done = false;
  for (Reader r{q.dwords}; r;) {
    const auto at = r.position_dwords();
    const auto v = r.next();
    for (const auto& e : q.epochs)
      if (e.packet == at) broken.epochs.push_back({broken.dwords.size(), e.field, e.value});
    broken.dwords.insert(broken.dwords.end(), v.dwords.begin(), v.dwords.end());
    if (done || !v.is<CopyLinear>()) continue;
    broken.put(CopyLinear{.src = GpuVa{0x1000}, .dst = p.inputs[q.place.index], .bytes = 64});
    done = true;
  }
  REQUIRE(done);
  q = broken;
}

std::size_t queue_of(const Plan& p, const std::string& name) {
  for (std::size_t q = 0; q < p.schedule.queues.size(); ++q)
    if (to_string(p.schedule.queues[q].place) + "." + p.schedule.queues[q].name == name) return q;
  FAIL(name);
  return 0;
}

bool all_poison(std::span<const std::byte> bytes) {
  for (const auto b : bytes)
    if (b != std::byte{kPoison}) return false;
  return true;
}

}  // namespace

TEST_CASE("a fault in the middle of a collective names its queue") {
  for (const auto order : kOrderings)
    for (const auto v : {Variant::pcpy, Variant::b2b}) {
      const auto d = node(order, 5);
      auto p = planned({.collective = Collective::all_gather, .variant = v, .gpus = 4, .bytes = 4096});
      const std::string name = v == Variant::pcpy ? "gpu2.pcpy1" : "gpu2.b2b0";
      break_queue(p, queue_of(p, name));
      auto r = prepared(p, *d);
      r.fill(1);
      REQUIRE(r.start(soon()));
      const auto e = r.wait(soon());
      REQUIRE_FALSE(e);
      CHECK(e.error().where == name);
      CHECK(e.error().message.find("copy_linear") != std::string::npos);
      CHECK(e.error().message.find("0x1000") != std::string::npos);
    }
}

TEST_CASE("after a fault no group runs that was not released") {
  for (const auto order : kOrderings) {
    const auto d = node(order, 6);
    auto p = planned({.collective = Collective::all_gather,
                      .variant = Variant::pcpy,
                      .prelaunch = Prelaunch::per_group,
                      .completion = Completion::fence,
                      .gpus = 4,
                      .bytes = 4096});
    const auto broken = queue_of(p, "gpu1.pcpy1");
    break_queue(p, broken);
    auto r = prepared(p, *d);
    r.fill(2);
    for (std::size_t q = 0; q < p.schedule.queues.size(); ++q)
      if (p.schedule.queues[q].place == Place::gpu(1)) r.trigger(q);
    for (const auto* name : {"gpu1.pcpy0", "gpu1.pcpy2"}) {
      const auto word = find_symbol(p.schedule, p.completions[queue_of(p, name)])->index;
      CHECK(wait(r.bound().signal(word), Compare::eq, 1, soon(), r.bound().ring(queue_of(p, name))));
    }
    CHECK(r.bound().value(find_symbol(p.schedule, p.completions[broken])->index) == 0);
    // Everybody's slots but that of gpu1, whose groups were let go.
    for (std::uint32_t g = 0; g < 4; ++g)
      for (std::uint32_t part = 0; part < 4; ++part)
        if (part != 1 && part != g) CHECK(all_poison(r.bound().bytes({p.outputs[g] + part * 1024, 1024})));
    REQUIRE(r.start(soon()));
    const auto e = r.wait(soon());
    REQUIRE_FALSE(e);
    CHECK(e.error().where == "gpu1.pcpy1");
  }
}

TEST_CASE("rounds that were published and not triggered leave every buffer as it is") {
  const auto d = node(Ordering::adversarial, 7);
  auto r = prepared(planned({.collective = Collective::all_gather,
                             .variant = Variant::b2b,
                             .prelaunch = Prelaunch::shared,
                             .gpus = 5,
                             .bytes = 5000}),
                    *d);
  REQUIRE(r.refill(soon(), 3));
  CHECK(rounds(r, 2) == "");
  r.fill(9);
  std::this_thread::sleep_for(5ms);
  const auto c = r.check();
  // All that is to come is missing: N - 1 parts a GPU.
  CHECK(c.wrong == 4 * 5000);
  CHECK(c.first.find("poison") != std::string::npos);
}

TEST_CASE("a wait that does not end names what stands, and why") {
  const auto d = node();
  auto p = planned({.collective = Collective::all_gather, .variant = Variant::b2b, .gpus = 3, .bytes = 300});
  // gpu1 waits for a word that nobody stores.
  const auto never = p.schedule.add_signal({.name = "never"});
  Schedule::Queue q{.place = Place::gpu(1), .name = "b2b0", .peer = Place::gpu(2)};
  q.put(PollMem{.addr = never, .func = Compare::eq, .reference = 1});
  q.dwords.insert(q.dwords.end(), p.schedule.queues[1].dwords.begin(), p.schedule.queues[1].dwords.end());
  p.schedule.queues[1] = q;
  auto r = prepared(p, *d);
  REQUIRE(r.start(soon()));
  // The other two may be late.
  const std::string two = "its value is 2 at the deadline, not 3";
  auto e = r.wait(Deadline::in(200ms));
  for (const auto last = soon(); !e && e.error().message != two && !last.passed();) e = r.wait(Deadline::in(200ms));
  REQUIRE_FALSE(e);
  CHECK(e.error().where == "host.done");
  CHECK(e.error().message == two);
  CHECK(e.error().excerpt.find("gpu1.b2b0: ") != std::string::npos);
  CHECK(e.error().excerpt.find("host.never") != std::string::npos);
  CHECK(e.error().excerpt.find("gpu0") == std::string::npos);
  CHECK(e.error().hint.find("a poll of a word that nothing writes. gpu1.b2b0 ") != std::string::npos);
}

TEST_CASE("a start without a published round is an error, not a wait") {
  const auto d = node();
  auto r = prepared(planned({.variant = Variant::pcpy, .prelaunch = Prelaunch::shared, .gpus = 2, .bytes = 64}), *d);
  REQUIRE(r.start(soon()));
  REQUIRE(r.wait(soon()));
  const auto e = r.start(soon());
  REQUIRE_FALSE(e);
  CHECK(e.error().hint == "call refill first");
  REQUIRE(r.refill(soon()));
  CHECK(r.start(soon()));
  CHECK(r.wait(soon()));
}

}  // namespace collectives::test
