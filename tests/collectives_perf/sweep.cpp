#include "perf/sweep.hpp"

#include "sdma/device/soft.hpp"
#include "support.hpp"

#include <memory>

using namespace sdma;
using namespace collectives;
using namespace collectives::perf;
using test::settings;

namespace {

/// A node whose GPU `victim` finds one byte changed once a collective is over: hardware that copies wrongly.
class Wrong final : public Device {
 public:
  Wrong(Device& real, GpuId victim, std::size_t at) : real_(real), victim_(victim), at_(at) {}

  const Topology& topology() const noexcept override { return real_.topology(); }
  Result<Memory, Diagnostic> allocate(const MemoryRequest& r) override {
    auto m = real_.allocate(r);
    if (m && r.where == victim_) memory_ = m->host();
    return m;
  }
  Result<SignalMemory, Diagnostic> create_signal(const SignalRequest& r) override { return real_.create_signal(r); }
  Result<Event, Diagnostic> create_event() override { return real_.create_event(); }
  Result<Queue, Diagnostic> create_queue(const QueueRequest& r) override { return real_.create_queue(r); }
  Errc wait_event(const Event& e, Deadline d) noexcept override { return real_.wait_event(e, d); }
  Result<Fault> wait_fault(Deadline d) noexcept override { return real_.wait_fault(d); }
  std::optional<Fault> fault(const Queue& q) const noexcept override { return real_.fault(q); }
  Errc peek(GpuVa va, std::span<std::byte> to) const noexcept override { return real_.peek(va, to); }
  Result<Clock> clock(GpuId g) const noexcept override { return real_.clock(g); }
  /// Asked when the host has filled, which the collective writes over, and when it is about to compare.
  Errc flush_host_writes(GpuId g) const noexcept override {
    if (g == victim_) memory_[at_] ^= std::byte{1};
    return real_.flush_host_writes(g);
  }

 private:
  Device& real_;
  GpuId victim_;
  std::size_t at_;
  std::span<std::byte> memory_{};
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
    const auto s = settings(
        {.collective = std::string(name(c)), .gpus = "3,0,2", .iterations = "2", .warmups = "1", .checks = "2"});
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
        CHECK(p.busbw == Approx(p.algbw * (c == Collective::broadcast ? 1.0 : 2.0 / 3)));
      }
  }
}

TEST_CASE("one byte that differs is found in each round, and said where") {
  const auto real = node();
  const auto s = settings({.gpu_count = "3", .iterations = "1", .warmups = "0", .checks = "3"});
  Wrong device{*real, GpuId{1}, 5};
  const auto p = measured(s, device, {Variant::b2b, true}, 3000);
  CHECK(p.wrong == 3u);
  INFO(p.first_wrong);
  CHECK(p.first_wrong.find("gpu1.buf[5]") != std::string::npos);
}

TEST_CASE("not verified is not the same as nothing wrong") {
  const auto device = node();
  const auto s = settings({.gpu_count = "2", .iterations = "1", .checks = "0"});
  CHECK_FALSE(measured(s, *device, {Variant::pcpy, false}, 100).wrong);
}

TEST_CASE("auto is what the table says") {
  const auto device = node();
  const auto s = settings({.variants = "auto", .gpu_count = "2", .iterations = "1", .warmups = "0"});
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
  const auto s = settings({.gpu_count = "2"});
  int rounds = 0;
  const Way way{Variant::pcpy, false};
  const auto p = measure(s, default_table(), *device, {&way, 1}, 100, {}, [&] { return ++rounds < 10; });
  REQUIRE(p);
  CHECK(p->empty());
  CHECK(rounds == 10);
}

TEST_CASE("a round that does not end in time is an error with its size and way") {
  const auto device = node();
  const auto s = settings({.gpu_count = "4", .timeout = "1us"});
  const Way way{Variant::b2b, false};
  const auto p = measure(s, default_table(), *device, {&way, 1}, 16 << 20, {}, kAlways);
  REQUIRE_FALSE(p);
  INFO(to_string(p.error().front()));
  CHECK(p.error().front().where.starts_with("b2b, 16M: "));
  CHECK(p.error().front().hint.find("--timeout") != std::string::npos);
}
