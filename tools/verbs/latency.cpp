// SPDX-License-Identifier: MIT
// sdma latency: the four phases of one DMA copy from a GPU to another, by size.
//
//   CPU   |--- control ---|                                                   | sees it
//         build, publish  doorbell                                            |
//   engine                |--- schedule ---| TS  copy  TS | ATOMIC  TS  FENCE |
//                                          |--- copy -----|------- sync ------|
//
//   control    the time to build and publish the packets, by the CPU's clock
//   schedule   from the doorbell to the first TIMESTAMP; Device::clock converts the engine's clock to the CPU's
//   copy       between the two TIMESTAMPs around it, minus the time of a TIMESTAMP itself, which is calibrated first
//   sync       from then until the CPU has seen the completion
//
// A timestamp is a plain store, so it is read after a later fence has been seen, outside the measured time.
#include "core/median.hpp"
#include "json/json.hpp"
#include "must.hpp"
#include "sdma/core/number.hpp"
#include "sdma/simulate/simulate.hpp"
#include "sdma/sync/recipes.hpp"
#include "shared_options.hpp"

#include <fmt/format.h>

#include <array>
#include <memory>
#include <optional>

namespace sdma::tool {
namespace {

using detail::median;

constexpr std::chrono::seconds kPhasePatience{60};

struct LatencyArguments {
  std::uint64_t least = 1 << 10, most = 64 << 20, factor = 4, rounds = 20, warm = 5;
  GpuId src{0}, dst{1};
  std::optional<DeviceKind> device = DeviceKind::soft;
  MachineOptions machine{};
  std::string csv{};
  bool json = false;
};

using Microseconds = std::chrono::duration<double, std::micro>;

/// In microseconds.
struct Phases {
  double control{}, schedule{}, copy{}, sync{};
  double total() const { return control + schedule + copy + sync; }
};

class PhaseBench {
 public:
  static constexpr std::size_t kStamps = 64;

  PhaseBench(Device& d, GpuId src, GpuId dst, std::uint64_t most)
      : device_(d),
        src_(src),
        from_(must(d.allocate({.where = src, .bytes = most}))),
        to_(must(d.allocate({.where = dst, .bytes = most}))),
        stamps_(must(d.allocate({.bytes = kStamps * 8, .purpose = Purpose::words}))),
        done_(must(d.create_signal())),
        settled_(must(d.create_signal())),
        queue_(must(d.create_queue({.gpu = src, .engine = *d.topology().engine_for(src, dst), .ring_bytes = 1 << 20}))),
        ring_(queue_.memory()) {
    overhead_ = calibrate();
  }

  /// The time of one TIMESTAMP, in ticks: the median of the differences between many in a row.
  double calibrate() {
    const auto slot = must(ring_.reserve(kStamps * dwords_of<Timestamp>() + dwords_of<Fence>()));
    Writer w{slot.dwords};
    for (std::size_t i = 0; i < kStamps; ++i) must(w.put(Timestamp{.addr = stamp(i)}));
    must(complete_with_fence(w, settled_->va, ++round_));
    ring_.publish(slot, w.written().size());
    settle();
    std::vector<double> steps;
    for (std::size_t i = 1; i < kStamps; ++i) steps.push_back(static_cast<double>(ticks(i) - ticks(i - 1)));
    return median(steps);
  }

  Phases once(std::uint64_t bytes) {
    const auto begin = Deadline::Clock::now();
    const auto slot = must(ring_.reserve(dwords_of(Writer::Copy{.bytes = bytes}) +
                                         dwords_of<Timestamp, Timestamp, Timestamp, Atomic, Fence>()));
    Writer w{slot.dwords};
    const auto n = ++round_;
    must(w.put(Timestamp{.addr = stamp(0)}));
    must(w.copy({.src = from_.va(), .dst = to_.va(), .bytes = bytes}));
    must(w.put(Timestamp{.addr = stamp(1)}));
    if (atomics()) must(complete_with_atomic(w, done_->va, 1));
    else must(complete_with_fence(w, done_->va, ++completed_));
    must(w.put(Timestamp{.addr = stamp(2)}));
    must(complete_with_fence(w, settled_->va, n));
    ring_.publish(slot, w.written().size());
    const auto rung = Deadline::Clock::now();
    const auto r =
        wait(*done_, Compare::ge, atomics() ? ++completed_ : completed_, Deadline::in(kPhasePatience), ring_);
    const auto seen = Deadline::Clock::now();
    if (!r) fail(r.error(), device_, kPhasePatience);
    settle();
    const auto now = clock();
    const auto tick = 1e6 / static_cast<double>(now.hz), copy = static_cast<double>(ticks(1) - ticks(0)) - overhead_;
    return {.control = Microseconds(rung - begin).count(),
            .schedule = Microseconds(now.at(ticks(0)) - rung).count(),
            .copy = std::max(copy, 0.0) * tick,
            .sync = Microseconds(seen - now.at(ticks(1))).count()};
  }

  double overhead_ns() const { return overhead_ * 1e9 / static_cast<double>(clock().hz); }
  EngineId engine() const noexcept { return queue_.engine(); }

 private:
  Clock clock() const {
    const auto c = device_.clock(src_);
    if (!c)
      fail(Diagnostic{.where = fmt::format("gpu{}", src_.value),
                      .message = fmt::format("its clock cannot be read: {}", message(c.error()))});
    return *c;
  }
  bool atomics() const { return device_.topology().completion(src_, {}) == Completion::atomic; }
  GpuVa stamp(std::size_t i) const { return stamps_.va() + i * 8; }
  std::uint64_t ticks(std::size_t i) const { return stamps_.as<std::uint64_t>()[i]; }
  void settle() {
    const auto r = wait(*settled_, Compare::eq, round_, Deadline::in(kPhasePatience), ring_);
    if (!r) fail(r.error(), device_, kPhasePatience);
  }

  Device& device_;
  GpuId src_;
  Memory from_, to_, stamps_;
  SignalMemory done_, settled_;
  Queue queue_;
  Ring<> ring_;
  std::uint32_t round_ = 0, completed_ = 0;
  double overhead_ = 0;
};

/// The phases that the model gives one copy, which are those of simulate.hpp.
Phases simulated(const MachineDescription& m, GpuId src, GpuId dst, std::uint64_t bytes) {
  Schedule s{.gpus = std::max(src, dst).value + 1};
  const auto from = s.add_buffer({.place = Place::gpu(src.value), .name = "from", .bytes = bytes}),
             to = s.add_buffer({.place = Place::gpu(dst.value), .name = "to", .bytes = bytes}),
             done = s.add_signal({.name = "done"});
  auto& q = s.add_queue({.place = Place::gpu(src.value), .name = "copy", .peer = Place::gpu(dst.value)});
  q.copy({.src = from, .dst = to, .bytes = bytes});
  if (m.topology.completion(src, {}) == Completion::atomic)
    q.put(Atomic{.addr = done, .op = AtomicOp::add_rtn_64, .value = 1});
  else q.put<&Fence::value>({.addr = done}, kEpoch);
  auto main = s.add_host("main");
  main.submit(q);
  main.wait(done, Compare::ge, 1);
  const auto t = simulate(s, m);
  if (!t) fail(t.error().front());
  const auto us = [&](Phase p) { return t->phase_ns[static_cast<std::size_t>(p)] / 1e3; };
  return {us(Phase::control), us(Phase::schedule), us(Phase::copy), us(Phase::sync)};
}

/// What one size takes: medians of the measured rounds.
template <class Once> Phases median_phases(const LatencyArguments& o, Once once) {
  std::array<std::vector<double>, 4> all;
  for (std::uint64_t i = 0; i < o.warm + o.rounds; ++i) {
    const Phases p = once();
    if (i < o.warm) continue;
    all[0].push_back(p.control), all[1].push_back(p.schedule), all[2].push_back(p.copy), all[3].push_back(p.sync);
  }
  return {median(all[0]), median(all[1]), median(all[2]), median(all[3])};
}

std::string row_of(std::uint64_t bytes, const Phases& m) {
  const auto part = [&](double v) { return 100 * v / m.total(); };
  return fmt::format("{:>12} {:>10.2f} {:>9.2f} {:>9.2f} {:>9.2f} {:>9.2f}   {:>3.0f} {:>3.0f} {:>3.0f} {:>3.0f}\n",
                     bytes, m.total(), m.control, m.schedule, m.copy, m.sync, part(m.control), part(m.schedule),
                     part(m.copy), part(m.sync));
}

/// Prints each size as soon as it is known.
template <class Once>
int print_phases(const LatencyArguments& o, const std::string& what, json::Json answer, Once once) {
  Output out{"-", Output::Kind::live};
  std::optional<Output> csv;
  if (!o.csv.empty()) csv.emplace(o.csv, Output::Kind::live).text() += "bytes,control_us,schedule_us,copy_us,sync_us\n";
  if (!o.json)
    out.text() += fmt::format("{}\n\n{:>12} {:>10} {:>9} {:>9} {:>9} {:>9}   {}\n", what, "bytes", "total us",
                              "control", "schedule", "copy", "sync", "in % of the sum");
  json::Json rows = json::Json::array();
  for (auto bytes = o.least; bytes <= o.most; bytes *= o.factor) {
    const auto m = median_phases(o, [&] { return once(bytes); });
    if (o.json)
      rows.push_back({{"bytes", bytes},
                      {"control_us", m.control},
                      {"schedule_us", m.schedule},
                      {"copy_us", m.copy},
                      {"sync_us", m.sync}});
    else out.text() += row_of(bytes, m);
    if (csv)
      csv->text() += fmt::format("{},{:.3f},{:.3f},{:.3f},{:.3f}\n", bytes, m.control, m.schedule, m.copy, m.sync);
    if (!out.flush()) return out.exit_code();
    if (csv && !csv->flush()) return csv->exit_code();
  }
  answer["rows"] = std::move(rows);
  if (o.json) out.text() += json::document(answer);
  if (csv && !csv->close()) return csv->exit_code();
  return out.close() ? kOk : out.exit_code();
}

int latency_verb(const LatencyArguments& o) {
  if (o.device && o.machine.given())
    return complain("--machine, --parameter and --through are for --device=simulate", "add --device=simulate");
  if (o.most < o.least)
    return complain(fmt::format("-e: {} is less than -b, {}", size_text(o.most), size_text(o.least)), "exchange them");
  if (o.src == o.dst) return complain("--src and --dst are one GPU", "name two: --src 0 --dst 1");
  const auto have = [&](const Topology& t) {
    if (const auto g = std::max(o.src, o.dst); g.value >= t.gpus.size())
      fail(Diagnostic{.where = fmt::format("gpu{}", g.value),
                      .message = fmt::format("the node has {} GPUs", t.gpus.size()),
                      .hint = "GPUs are numbered from 0; sdma topology shows them"});
  };
  json::Json answer{{"from", o.src.value}, {"to", o.dst.value}, {"device", o.device ? name(*o.device) : "simulate"}};
  if (!o.device) {
    const auto m = load_machine(o.machine);
    if (!m) return exit_code(o.machine);
    have(m->topology);
    answer["device_text"] = m->name;
    answer["defaults"] = defaults_of(*m);
    return print_phases(o,
                        fmt::format("gpu{} to gpu{}, simulated: {}; no engine ran", o.src.value, o.dst.value, m->name),
                        answer, [&](std::uint64_t bytes) { return simulated(*m, o.src, o.dst, bytes); });
  }
  const auto device = must(open_device(*o.device));
  have(device->topology());
  if (const auto note = caveat(*device); !note.empty())
    report({.severity = Severity::note, .where = std::string(name(*o.device)), .message = note});
  PhaseBench bench{*device, o.src, o.dst, o.most};
  answer["device_text"] = device->topology().name;
  answer["engine"] = bench.engine().value;
  answer["timestamp_ns"] = bench.overhead_ns();
  return print_phases(o,
                      fmt::format("gpu{} engine {} to gpu{}; a TIMESTAMP takes {:.0f} ns, which is subtracted",
                                  o.src.value, bench.engine().value, o.dst.value, bench.overhead_ns()),
                      answer, [&](std::uint64_t bytes) { return bench.once(bytes); });
}

}  // namespace

void add_latency(VerbOptions& verb, Action& action) {
  const auto o = std::make_shared<LatencyArguments>();
  add_size(verb, "-b,--minbytes", o->least, "smallest size (default: 1K)");
  add_size(verb, "-e,--maxbytes", o->most, "largest size (default: 64M)");
  add_count(verb, "-f,--stepfactor", o->factor, 2, 1'000'000'000, "factor from one size to the next");
  add_count(verb, "-n,--iters", o->rounds, 1, 1'000'000, "measured rounds per size");
  add_count(verb, "-w,--warmup_iters", o->warm, 0, 1'000'000, "rounds before the measured ones");
  add_count(verb, "--src", o->src.value, 0, 63, "GPU that has the bytes, and whose engine copies them");
  add_count(verb, "--dst", o->dst.value, 0, 63, "GPU that gets them");
  add_device(verb, o->device, "device to use", "the phases of the critical path in simulated time", "soft");
  add_machine(verb, o->machine);
  verb.value("--csv", o->csv, "also write each row as CSV, as soon as it is known").type("FILE");
  verb.flag("--json", o->json, "print an object with all rows");
  verb.exits({{kOk, "measured"}, {kRefuted, "a wait that gave up"}});
  verb.manual("docs/collectives.md");
  verb.footer(
      "Phases: control, the host builds and publishes packets; schedule, from the doorbell to the engine's first packet;\n"
      "copy; sync, until the host has seen the completion. Medians, and their shares of the total.\n"
      "Examples:\n"
      "  sdma latency --device=kfd\n"
      "  sdma latency --device=simulate -b 4K -e 4K --machine=mi355x:2 --src=1 --dst=0");
  action = [o] { return to_the_end([&] { return latency_verb(*o); }); };
}

}  // namespace sdma::tool
