// SPDX-License-Identifier: MIT
// Joules of a device: what its counters say while it is idle, copies, multiplies matrices, or does both.
#include "measure_joules.hpp"

#include "companions.hpp"
#include "interrupt.hpp"
#include "output.hpp"
#include "sdma/simulate/mechanisms.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <thread>

namespace collectives::perf {
namespace {

using namespace sdma;
using sdma::tool::Doing;
using Clock = std::chrono::steady_clock;

/// Terms that these rows tell apart. Engines move all bytes, so theirs are a part of the memory's.
constexpr std::pair<Power, Power> kTogether[] = {
    {Power::gpu_idle, Power::xcd_idle},      {Power::gpu_idle, Power::iod_idle},
    {Power::gpu_idle, Power::hbm_idle},      {Power::hbm_byte, Power::engine_byte},
    {Power::hbm_byte, Power::engine_active}, {Power::pcie_byte, Power::host_byte}};
constexpr Power kTold[] = {Power::hbm_byte, Power::pcie_byte, Power::xgmi_byte, Power::nic_byte};

class JoulesRows {
 public:
  JoulesRows(Device& d, const JoulesMeasurement& o, const Companions& with)
      : device_(d), options_(o), with_(with), machine_(unfitted(d.topology(), {})) {
    // Only bytes are counted, so any rate will do where none is known.
    for (auto& l : machine_.topology.links)
      if (!l.rate.known()) l.rate = Rate::gb_per_s(1);
    for (auto& s : machine_.topology.shared)
      if (!s.rate.known()) s.rate = Rate::gb_per_s(1);
  }

  Result<EnergyMeasurements, std::vector<Diagnostic>> run() {
    std::vector<Mechanism> copies;
    for (auto& m : mechanisms(device_.topology(), {.most_bytes = options_.bytes}))
      if (m.file.starts_with("copy_") || m.file.starts_with("engines_")) copies.push_back(std::move(m));
    // Of each schedule, the two largest.
    std::vector<const Mechanism*> kept;
    for (std::size_t i = 0; i < copies.size(); ++i)
      if (i + 2 >= copies.size() || copies[i + 2].file != copies[i].file) kept.push_back(&copies[i]);
    if (auto r = row("idle", {}, false); !r) return std::move(r.error());
    for (const auto* m : kept)
      if (auto r = row(m->id(), m, false); !r) return std::move(r.error());
    for (const bool again : {false, true})
      if (with_.product)
        if (auto r = row(again ? "gemm again" : "gemm", {}, true); !r) return std::move(r.error());
    for (const auto* m : kept)
      if (with_.product)
        if (auto r = row("gemm, " + m->id(), m, true); !r) return std::move(r.error());
    if (auto r = row("idle again", {}, false); !r) return std::move(r.error());
    return table();
  }

 private:
  struct Measured {
    EnergyMeasurements::Row row{};
    Activity activity{};
  };

  Result<void, std::vector<Diagnostic>> row(const std::string& name, const Mechanism* m, bool product) {
    doing_.now("measuring the joules of " + name);
    const auto one = [](Diagnostic d) { return std::vector{std::move(d)}; };
    if (product)
      if (auto r = with_.product->begin(); !r) return one(r.error());
    with_.power->begin();
    Measured out{.row = {.name = name, .judged = m && product}};
    double rounds = 0;
    const auto begin = Clock::now();
    const auto spent = [&] { return std::chrono::duration<double>(Clock::now() - begin).count(); };
    for (MeasureOptions o{.passes = 1, .rounds = 1, .warmups = 0}; spent() < options_.seconds;) {
      if (interrupted != 0) return one({.message = "interrupted"});
      if (!m) {
        std::this_thread::sleep_for(std::chrono::milliseconds(20));
        continue;
      }
      const auto from = spent();
      const auto t = measure(device_, {m, 1}, o);
      if (!t) return t.error();
      rounds += o.rounds;
      // A quarter of a second each, so that binding the schedule takes little of it.
      constexpr double kPiece = 0.25;
      if (spent() - from < kPiece / 2) o.rounds = std::min(o.rounds * 2, 1U << 20);
    }
    out.row.seconds = spent();
    const auto watts = with_.power->end();
    const auto gpus = static_cast<double>(device_.topology().gpus.size());
    if (product) {
      const auto rate = with_.product->end();
      if (!rate) return one(rate.error());
      out.activity[static_cast<std::size_t>(Power::kernel_active)] =
          out.row.seconds * gpus * *rate / with_.product->alone();
    }
    if (!watts) return one(watts.error());
    out.row.joules = *watts * out.row.seconds;
    if (m) {
      const auto s = simulate(*m->schedule, machine_);
      if (!s) return s.error();
      for (const auto p : kTold)
        out.activity[static_cast<std::size_t>(p)] = s->activity[static_cast<std::size_t>(p)] * rounds;
    }
    rows_.push_back(std::move(out));
    return {};
  }

  EnergyMeasurements table() {
    EnergyMeasurements out{.source = fmt::format("{}, by the counters of its GPUs", device_.topology().name)};
    out.includes.assign(std::begin(kTogether), std::end(kTogether));
    std::vector<Power> columns;
    for (const auto p : {Power::hbm_byte, Power::pcie_byte, Power::xgmi_byte, Power::nic_byte, Power::kernel_active})
      if (std::any_of(rows_.begin(), rows_.end(),
                      [&](const auto& r) { return r.activity[static_cast<std::size_t>(p)] > 0; }))
        columns.push_back(p);
    out.columns.emplace_back(name(Power::gpu_idle));
    for (const auto p : columns) out.columns.emplace_back(name(p));
    for (auto& r : rows_) {
      r.row.amounts = {r.row.seconds * static_cast<double>(device_.topology().gpus.size())};
      for (const auto p : columns) r.row.amounts.push_back(r.activity[static_cast<std::size_t>(p)]);
      out.rows.push_back(std::move(r.row));
    }
    return out;
  }

  Device& device_;
  const JoulesMeasurement& options_;
  const Companions with_;
  MachineDescription machine_;
  std::vector<Measured> rows_{};
  Doing doing_{"measuring joules"};
};

}  // namespace

Result<EnergyMeasurements, std::vector<Diagnostic>> measure_joules(DeviceKind kind, const JoulesMeasurement& o) {
  const auto one = [](Diagnostic d) { return std::vector{std::move(d)}; };
  if (kind == DeviceKind::soft)
    return one({.where = "--joules",
                .message = "the software device has no counter of joules",
                .hint = "use --device=cuda or --device=kfd, or a table: --joules FILE"});
  Settings s{.where = kind, .timeout = std::chrono::seconds(30)};
  s.energy.emplace(o.seconds);
  if (o.product) s.beside.emplace();
  if (auto r = OpenCompanions::prepare(s); !r) return one(r.error());
  auto device = open_device(kind);
  if (!device) return one(device.error());
  s.options.gpus = static_cast<std::uint32_t>((*device)->topology().gpus.size());
  auto with = OpenCompanions::open(**device, s);
  if (!with) return one(with.error());
  return JoulesRows{**device, o, (*with)->all()}.run();
}

}  // namespace collectives::perf
