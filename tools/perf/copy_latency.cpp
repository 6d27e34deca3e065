// SPDX-License-Identifier: MIT
// The four phases of one DMA copy from a GPU to another, by size.
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
#include "arguments.hpp"
#include "core/median.hpp"
#include "examples/support.hpp"
#include "sdma/core/file.hpp"
#include "sdma/simulate/simulate.hpp"
#include "sdma/sync/recipes.hpp"
#include "simulated_machine.hpp"

#include <fmt/format.h>

#include <array>
#include <memory>
#include <optional>

using namespace sdma;
using namespace std::chrono_literals;
using detail::median;
using example::fail;
using example::must;
using tool::Arguments;

namespace {

constexpr auto kPatience = 60s;
constexpr char kUsage[] =
    "usage: copy_latency [OPTION VALUE]...\n"
    "Prints the phases of one copy from a GPU to another, by size: medians, and their shares of the total.\n"
    "  -b SIZE -e SIZE -f FACTOR    smallest size, largest size, and factor (default: 1K, 64M, 4)\n"
    "  -n N -w N                    measured and warm-up rounds per size (default: 20, 5)\n"
    "  --src G --dst G              source and destination GPU (default: 0, 1)\n"
    "  --device D                   soft (default), kfd, cuda or rocr, or simulate: phases of the critical path\n"
    "  --machine M                  simulate this machine: a file, also of sdma topology --json, or a layout\n"
    "  --through T                  simulate rings of one's own (rings, default), or calls of HIP on MI300X (hip)\n"
    "  --csv FILE                   also write the table as CSV\n";

using Microseconds = std::chrono::duration<double, std::micro>;

/// In microseconds.
struct Phases {
  double control{}, schedule{}, copy{}, sync{};
  double total() const { return control + schedule + copy + sync; }
};

class Bench {
 public:
  static constexpr std::size_t kStamps = 64;

  Bench(Device& d, GpuId src, GpuId dst, std::uint64_t most)
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
    const auto slot = must(ring_.reserve(kStamps * kDwordsOf<Timestamp> + kCompleteWithFenceDwords));
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
    const auto packets = bytes / kChunk + 1;
    const auto begin = Deadline::Clock::now();
    const auto slot = must(ring_.reserve(packets * kDwordsOf<CopyLinear> + kDwordsOf<Timestamp, Timestamp, Timestamp> +
                                         kCompleteWithAtomicDwords + kCompleteWithFenceDwords));
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
    const auto r = wait(*done_, Compare::ge, atomics() ? ++completed_ : completed_, Deadline::in(kPatience), ring_);
    const auto seen = Deadline::Clock::now();
    if (!r) fail(r.error(), device_, kPatience);
    settle();
    const auto clock = device_.clock(src_);
    if (!clock) fail("the GPU's clock cannot be read");
    const auto tick = 1e6 / static_cast<double>(clock->hz), copy = static_cast<double>(ticks(1) - ticks(0)) - overhead_;
    return {.control = Microseconds(rung - begin).count(),
            .schedule = Microseconds(clock->at(ticks(0)) - rung).count(),
            .copy = std::max(copy, 0.0) * tick,
            .sync = Microseconds(seen - clock->at(ticks(1))).count()};
  }

  double overhead_ns() const {
    const auto clock = device_.clock(src_);
    return clock ? overhead_ * 1e9 / static_cast<double>(clock->hz) : 0;
  }
  EngineId engine() const noexcept { return queue_.engine(); }

 private:
  bool atomics() const { return device_.topology().completion(src_, {}) == Completion::atomic; }
  GpuVa stamp(std::size_t i) const { return stamps_.va() + i * 8; }
  std::uint64_t ticks(std::size_t i) const { return stamps_.as<std::uint64_t>()[i]; }
  void settle() {
    const auto r = wait(*settled_, Compare::eq, round_, Deadline::in(kPatience), ring_);
    if (!r) fail(r.error(), device_, kPatience);
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
  if (!t) fail(to_string(t.error().front()));
  const auto us = [&](Phase p) { return t->phase_ns[static_cast<std::size_t>(p)] / 1e3; };
  return {us(Phase::control), us(Phase::schedule), us(Phase::copy), us(Phase::sync)};
}

}  // namespace

int main(int argc, char** argv) {
  Arguments a{argc, argv, kUsage};
  const auto begin = a.size("-b", 1 << 10), end = a.size("-e", 64 << 20), factor = a.size("-f", 4, 2);
  const auto rounds = a.size("-n", 20), warm = a.size("-w", 5, 0);
  const GpuId src{static_cast<std::uint32_t>(a.size("--src", 0, 0, 63))};
  const GpuId dst{static_cast<std::uint32_t>(a.size("--dst", 1, 0, 63))};
  const auto csv = a.word("--csv", "");
  const tool::SimulatedMachine of{a};
  const auto kind = a.device_or("simulate");
  a.done();
  if (kind && !of.option().empty()) a.fail(of.option() + " is for --device=simulate");
  const auto check = [&](const Topology& t) {
    if (std::max(src, dst).value >= t.gpus.size()) fail("this node has no such GPU");
  };

  std::unique_ptr<Device> device;
  std::optional<Bench> bench;
  std::optional<MachineDescription> machine;
  if (kind) {
    device = must(open_device(*kind));
    check(device->topology());
    bench.emplace(*device, src, dst, std::max(begin, end));
    std::printf("gpu%u engine %u to gpu%u; a TIMESTAMP takes %.0f ns, which is subtracted\n\n", src.value,
                bench->engine().value, dst.value, bench->overhead_ns());
  } else {
    machine = of.open();
    check(machine->topology);
    std::printf("gpu%u to gpu%u, simulated: %s; no engine ran\n\n", src.value, dst.value, machine->name.c_str());
  }
  std::printf("%12s %10s %9s %9s %9s %9s   %s\n", "bytes", "total us", "control", "schedule", "copy", "sync",
              "in % of the sum");
  FileWriter file{csv, FileWriter::Kind::live};
  const auto write_row = [&](const std::string& row) {
    if (csv.empty()) return;
    if (const auto written = file.write(row); !written) fail(to_string(written.error()));
  };
  write_row("bytes,control_us,schedule_us,copy_us,sync_us\n");
  for (auto bytes = begin; bytes <= end; bytes *= factor) {
    std::array<std::vector<double>, 4> all;
    for (std::uint64_t i = 0; i < warm + rounds; ++i) {
      const auto p = bench ? bench->once(bytes) : simulated(*machine, src, dst, bytes);
      if (i < warm) continue;
      all[0].push_back(p.control), all[1].push_back(p.schedule), all[2].push_back(p.copy), all[3].push_back(p.sync);
    }
    const Phases m{median(all[0]), median(all[1]), median(all[2]), median(all[3])};
    const auto part = [&](double v) { return 100 * v / m.total(); };
    std::printf("%12lu %10.2f %9.2f %9.2f %9.2f %9.2f   %3.0f %3.0f %3.0f %3.0f\n", static_cast<unsigned long>(bytes),
                m.total(), m.control, m.schedule, m.copy, m.sync, part(m.control), part(m.schedule), part(m.copy),
                part(m.sync));
    write_row(fmt::format("{},{:.3f},{:.3f},{:.3f},{:.3f}\n", bytes, m.control, m.schedule, m.copy, m.sync));
  }
  if (!csv.empty())
    if (const auto closed = file.close(); !closed) fail(to_string(closed.error()));
  return example::printed();
}
