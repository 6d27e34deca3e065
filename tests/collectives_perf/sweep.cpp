// SPDX-License-Identifier: MIT
#include "perf/sweep.hpp"

#include "collectives/plan.hpp"
#include "sdma/device/soft.hpp"
#include "support.hpp"

#include <algorithm>
#include <atomic>
#include <memory>
#include <thread>

using namespace sdma;
using namespace collectives;
using namespace collectives::perf;
using test::settings;
using namespace std::chrono_literals;

namespace {

/// A node whose GPU `victim` finds one byte changed once a collective is over: hardware that copies wrongly.
class Wrong final : public ForwardingDevice {
 public:
  Wrong(Device& real, GpuId victim, std::size_t at) : ForwardingDevice(real), victim_(victim), at_(at) {}

  Result<Memory, Diagnostic> allocate(const MemoryRequest& r) override {
    auto m = ForwardingDevice::allocate(r);
    if (m && r.where == victim_) memory_ = m->host();
    return m;
  }
  /// Asked when the host has filled, which the collective writes over, and when it is about to compare.
  Errc flush_host_writes(GpuId g) const noexcept override {
    if (g == victim_) memory_[at_] ^= std::byte{1};
    return ForwardingDevice::flush_host_writes(g);
  }

 private:
  GpuId victim_;
  std::size_t at_;
  std::span<std::byte> memory_{};
};

/// Knows whether any of its queues has packets that have not been read.
class Watched final : public ForwardingDevice {
 public:
  explicit Watched(Device& real) : ForwardingDevice(real) {}
  Result<Queue, Diagnostic> create_queue(const QueueRequest& r) override {
    auto q = ForwardingDevice::create_queue(r);
    if (q) rings_.push_back(q->memory());
    return q;
  }
  /// Soon: a completion may be seen a little before the packet retires.
  bool idle_soon() const {
    for (const auto deadline = Deadline::in(60s); !deadline.passed(); std::this_thread::sleep_for(1ms))
      if (std::all_of(rings_.begin(), rings_.end(), [](const RingMemory& m) { return at(m.rptr) == at(m.wptr); }))
        return true;
    return false;
  }

 private:
  static std::uint64_t at(std::uint64_t* word) { return std::atomic_ref<std::uint64_t>(*word).load(); }
  std::vector<RingMemory> rings_{};
};

std::unique_ptr<SoftDevice> node(Ordering o = Ordering::strict) {
  auto d = SoftDevice::open({.gpus = 4, .ordering = o, .seed = 3});
  if (!d) FAIL(to_string(d.error()));
  return std::move(*d);
}

constexpr auto kAlways = [] { return true; };

Point measured(const Settings& s, Device& d, const Way& way, std::uint64_t bytes) {
  const auto p = measure(s, default_table(), d, {&way, 1}, bytes, {}, kAlways);
  if (!p) FAIL(to_string(p.error().front()));
  REQUIRE(p->size() == 1);
  return p->front();
}

}  // namespace

TEST_CASE("three GPUs, odd sizes, every collective and way: verified, and nothing wrong") {
  const auto device = node(Ordering::adversarial);
  for (const auto c : kCollectives) {
    const auto s = settings(fmt::format("--collective={} --gpus=3,0,2 -n 2 -w 1 -c 2 --device=soft", name(c)));
    for (const auto& way : s.ways)
      for (const std::uint64_t bytes : {1u, 1000u, 4099u}) {
        INFO(name(c) << " " << name(way) << " " << bytes);
        const auto p = measured(s, *device, way, bytes);
        CHECK(p.wrong == 0u);
        CHECK(p.first_wrong.empty());
        CHECK(p.us.mean > 0);
        CHECK(p.us.least <= p.us.median);
        CHECK(p.us.median <= p.us.most);
        CHECK(p.algbw == Approx(static_cast<double>(bytes) / p.us.mean / 1e3));
        // A division may leave a byte of an alltoallv to the last part.
        const double factor = c == Collective::alltoallv   ? bus_factor(options_of(s, way, bytes))
                              : c == Collective::broadcast ? 1.0
                                                           : 2.0 / 3;
        CHECK(p.busbw == Approx(p.algbw * factor));
      }
  }
}

TEST_CASE("one byte that differs is found in each round, and said where") {
  const auto real = node();
  const auto s = settings("-g 3 -n 1 -w 0 -c 3");
  Wrong device{*real, GpuId{1}, 5};
  const auto p = measured(s, device, {Variant::b2b, true}, 3000);
  CHECK(p.wrong == 3u);
  INFO(p.first_wrong);
  CHECK(p.first_wrong.find("gpu1.buf[5]") != std::string::npos);
}

TEST_CASE("not verified is not the same as nothing wrong") {
  const auto device = node();
  const auto s = settings("-g 2 -n 1 -c 0");
  CHECK_FALSE(measured(s, *device, {Variant::pcpy, false}, 100).wrong);
}

TEST_CASE("auto is what the table says") {
  const auto device = node();
  const auto s = settings("--variant=auto -g 2 -n 1 -w 0");
  const Table table = *parse_table("all_gather 2-8 any 1K bcst\nall_gather 2-8 any max b2b\n");
  for (const auto& [bytes, ran] : {std::pair{1024u, Variant::bcst}, std::pair{1025u, Variant::b2b}}) {
    const auto p = measure(s, table, *device, s.ways, bytes, {}, kAlways);
    REQUIRE(p);
    CHECK(p->front().ran == ran);
    CHECK(p->front().way == s.ways[0]);
  }
}

TEST_CASE("it ends where it is told to, and gives no half point") {
  const auto device = node();
  const auto s = settings("-g 2");
  int rounds = 0;
  const Way way{Variant::pcpy, false};
  const auto p = measure(s, default_table(), *device, {&way, 1}, 100, {}, [&] { return ++rounds < 10; });
  REQUIRE(p);
  CHECK(p->empty());
  CHECK(rounds == 10);
}

TEST_CASE("a round that does not end in time is an error with its size and way") {
  const auto device = node();
  const auto s = settings("-g 4 --timeout=1us");
  const Way way{Variant::b2b, false};
  const auto p = measure(s, default_table(), *device, {&way, 1}, 16 << 20, {}, kAlways);
  REQUIRE_FALSE(p);
  INFO(to_string(p.error().front()));
  CHECK(p.error().front().where.starts_with("b2b, 16M: "));
  CHECK(p.error().front().hint.find("--timeout") != std::string::npos);
}

namespace {

/// Notes each step of each contender.
class Noting final : public Contender {
 public:
  Noting(std::string name, std::vector<std::string>& log, const Watched& device)
      : name_(std::move(name)), log_(log), device_(device) {}

  Result<void, Diagnostic> fill(std::uint64_t) override { return {}; }
  Result<void, Diagnostic> arm(Deadline) override {
    // Nothing of ours waits on a GPU meanwhile.
    CHECK(device_.idle_soon());
    armed_ = std::chrono::steady_clock::now();
    return note("arm");
  }
  Result<void, Diagnostic> start(Deadline) override {
    settled_ = std::chrono::steady_clock::now() - armed_;
    return note("start");
  }
  Result<void, Diagnostic> wait(Deadline) override { return note("wait"); }
  Result<Check, Diagnostic> check() override { return Check{.wrong = 2, .first = "the first"}; }
  std::vector<std::string> notes() const override { return {"a note"}; }

  static inline std::chrono::nanoseconds settled_{};

 private:
  Result<void, Diagnostic> note(const char* what) {
    log_.push_back(name_ + " " + what);
    return {};
  }

  std::string name_;
  std::vector<std::string>& log_;
  const Watched& device_;
  std::chrono::steady_clock::time_point armed_{};
};

/// Time that passes only when a counter is read, so that no delay of a thread counts.
class ReadTime {
 public:
  std::chrono::steady_clock::time_point now() const {
    return std::chrono::steady_clock::time_point(std::chrono::milliseconds(ms_));
  }
  std::int64_t pass() { return ++ms_; }
  std::int64_t ms() const { return ms_; }

 private:
  std::atomic<std::int64_t> ms_{1};
};

/// Changes every 10 ms.
EnergyCounter ticking(const double& watts, ReadTime& time) {
  return [&, joules = 0.0, last = std::int64_t{0}]() mutable -> Result<double, Diagnostic> {
    for (const auto now = time.pass(); last + 10 <= now; last += 10) joules += watts * 0.01;
    return joules;
  };
}

class Counting final : public Product {
 public:
  double alone() const override { return 600; }
  Result<void, Diagnostic> begin() override {
    ++begun;
    return {};
  }
  Result<double, Diagnostic> end() override {
    ++ended;
    if (broken) return Diagnostic{.message = "the product failed"};
    return 500;
  }
  int begun = 0, ended = 0;
  bool broken = false;
};

Settings two_rivals() {
  auto s = settings("--variant=b2b+pl -g 2 -n 2 -w 1 --device=soft --settle=2000");
  s.rivals = {{.rival = Rival::nccl}, {.rival = Rival::nccl_ce}};
  return s;
}

}  // namespace

TEST_CASE("ways take turns, and one is armed only when the one before has ended") {
  const auto soft = node();
  Watched device{*soft};
  const auto s = two_rivals();
  std::vector<std::string> log;
  const Companions companions{
      .rival = [&](const Way& w, const Options& o) -> Result<std::unique_ptr<Contender>, Diagnostic> {
        CHECK(o.bytes == 100);
        log.push_back("prepare " + name(w));
        return std::unique_ptr<Contender>(std::make_unique<Noting>(name(w), log, device));
      }};
  auto ways = s.rivals;
  ways.insert(ways.begin() + 1, s.ways.front());
  const auto p = measure(s, default_table(), device, ways, 100, companions, kAlways);
  REQUIRE(p);
  REQUIRE(p->size() == 3);
  CHECK((*p)[1].wrong == 0u);
  CHECK((*p)[0].wrong == 2u);
  CHECK((*p)[0].first_wrong == "the first");
  CHECK((*p)[2].notes == std::vector<std::string>{"a note"});
  std::vector<std::string> expected{"prepare nccl", "prepare nccl-ce"};
  const auto rounds = [&](std::initializer_list<const char*> names) {
    for (const auto* n : names)
      for (const auto* step : {" arm", " start", " wait"}) expected.push_back(std::string(n) + step);
  };
  for (int i = 0; i < 3; ++i) rounds({"nccl", "nccl-ce"});
  rounds({"nccl", "nccl-ce"});  // verified
  CHECK(log == expected);
  CHECK(Noting::settled_ >= 2ms);
  CHECK((*p)[0].us.most < 2000);
}

TEST_CASE("energy is what the counters gained, less idle, for each round and byte") {
  const auto device = node();
  auto s = settings("--variant=b2b -g 2 -n 1 -w 0 -c 0");
  s.energy.emplace(0.01);
  double watts = 100;
  ReadTime time;
  EnergyCounters counters;
  for (int i = 0; i < 2; ++i) counters.push_back(ticking(watts, time));
  Watchdog dog;
  PowerMeter meter{std::move(counters), dog, 30s, [&] { return time.now(); }};
  REQUIRE(meter.measure_idle(std::chrono::duration<double>(0.001)));  // longer, if the counters need it
  CHECK(meter.idle() == Approx(200));
  watts = 400;
  // After the timed round, each round lasts until the counters have been read for 60 ms.
  bool timed = false;
  const auto p = measure(s, default_table(), *device, s.ways, 1000, {.power = &meter}, [&] {
    if (!std::exchange(timed, true)) return true;
    for (const auto until = time.ms() + 60; time.ms() < until;) std::this_thread::sleep_for(1ms);
    return true;
  });
  REQUIRE(p);
  const auto& e = p->front().energy;
  REQUIRE(e);
  CHECK(e->watts == Approx(600));
  CHECK(e->nanojoules_per_byte == Approx(e->joules * 1e9 / 1000));
  CHECK(e->joules > 0);
  // A time in which the counter does not change gives no energy, but a note and the times.
  watts = 0;
  const auto brief = measure(s, default_table(), *device, s.ways, 1000, {.power = &meter}, kAlways);
  REQUIRE(brief);
  CHECK_FALSE(brief->front().energy);
  CHECK(brief->front().notes.at(0).find("use a longer --energy-seconds") != std::string::npos);
}

TEST_CASE("a product runs beside each way, and ends before the next one") {
  const auto device = node();
  auto s = settings("--variant=b2b,b2b+pl -g 2 -n 1 -c 0");
  s.beside.emplace().measured = std::chrono::duration<double>(0.01);
  Counting product;
  const auto p = measure(s, default_table(), *device, s.ways, 1000, {.product = &product}, kAlways);
  REQUIRE(p);
  for (const auto& each : *p) {
    REQUIRE(each.beside);
    CHECK(each.beside->us > 0);
    CHECK(each.beside->product == 500);
    CHECK(each.beside->product_alone == 600);
  }
  CHECK((product.begun == 2 && product.ended == 2));
  product.broken = true;
  const auto failed = measure(s, default_table(), *device, s.ways, 1000, {.product = &product}, kAlways);
  REQUIRE_FALSE(failed);
  CHECK(failed.error().front().where == "b2b, 1000");
  CHECK(product.ended == 3);
}
