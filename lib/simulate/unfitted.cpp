// SPDX-License-Identifier: MIT
// Where a fit to measured mechanisms starts: the machine, and the parameters that these mechanisms can determine.
#include "unfitted.hpp"

#include "sdma/simulate/mechanisms.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace sdma { inline namespace v0_3 {
namespace {

struct Unfitted {
  Cost cost{};
  double value{}, low{}, high{};
  std::string_view needs{};  ///< how the names of mechanisms begin that determine it; empty: all do
  std::string_view note{};
};
constexpr Unfitted kUnfitted[] = {
    {Cost::host_submit, 300, 1, 1e5, "submit_2_queues", "doorbells of one, two and four queues"},
    {Cost::host_issue, 300, 1, 1e5, "submit_2_copies", "two queues with a copy each"},
    {Cost::host_poll, 150, 1, 1e5, "engines_", "completions of two engines"},
    {Cost::host_atomic, 100, 1, 1e5, "atomic_", "atomics against fences"},
    {Cost::engine_packet, 300, 1, 1e5, "", "copies in a row"},
    {Cost::engine_control, 100, 1, 1e5, "", "one fence against eight"},
    {Cost::engine_window, 1 << 18, 4096, 1e9, "", "copies in a row"},
    {Cost::engine_rate, 100, 1e-3, 1e5, "", "large copies within a GPU"},
    {Cost::engine_broadcast, 0.7, 1e-3, 1, "broadcast_", "large broadcasts"},
    {Cost::engine_swap, 0.5, 1e-3, 2, "swap_", "large swaps"},
    {Cost::engine_swap_time, 500, 1, 1e5, "swap_", "small swaps"},
    {Cost::engine_latency, 1000, 1, 1e5, "", "small copies"},
    {Cost::engine_read_peer, 500, 1, 1e5, "copy_gpu1", "pulls against pushes"},
    {Cost::engine_release, 500, 1, 1e5, "", "fences"},
    {Cost::engine_poll, 1000, 1, 1e5, "", "a trigger against a doorbell"},
};

constexpr std::string_view kAssumed = "assumed",
                           kMeasured =
                               "the links' rates in this file are measured, one copy at a time; the uncertainty is "
                               "assumed, for several at once";
constexpr double kSeveral = 0.02;
/// A round of a collective is many mechanisms at once: how much it differs from them in four visits (docs/silicon.md).
constexpr double kComposed = 0.08;

/// What is not fitted, or only if it was measured. The time from a doorbell to the first packet cannot be separated
/// from that of the completion, so it is not fitted. Memories are assumed to be no bottleneck: the rates of links and
/// engines contain theirs.
struct Assumed {
  Cost cost{};
  double value{};
};
constexpr Assumed kAssumptions[] = {
    {Cost::host_build, 40},        {Cost::host_doorbell, 100},
    {Cost::host_store, 20},        {Cost::host_memory, 1e5},
    {Cost::pcie_flight, 200},      {Cost::xgmi_flight, 200},
    {Cost::hbm_rate, 1e6},         {Cost::engine_other_link, 1},
    {Cost::kernel_release, 1000},  {Cost::kernel_poll, 800},
    {Cost::host_issue, 0},         {Cost::host_atomic, 0},
    {Cost::engine_broadcast, 0.7}, {Cost::engine_swap, 0.5},
    {Cost::engine_swap_time, 0},   {Cost::engine_read_peer, 500},
    {Cost::host_submit, 300},      {Cost::host_poll, 150},
    {Cost::pcie_efficiency, 1},    {Cost::xgmi_efficiency, 1},
    {Cost::engine_second_down, 1}, {Cost::engine_far_down, 1},
    {Cost::engine_host_rate, 1e6}, {Cost::nic_flight, 1500},
    {Cost::nic_efficiency, 1},     {Cost::engine_page_size, 2 << 20},
    {Cost::engine_large_swap, 1},  {Cost::engine_command_size, 16 << 10},
    {Cost::kernel_workgroup, 1e6}, {Cost::kernel_link, 1},
    {Cost::nic_message, 263},      {Cost::hbm_weight, 1},
};

bool has_rows(const Measurements& m, std::string_view prefix) {
  return std::any_of(m.rows.begin(), m.rows.end(), [&](const auto& r) { return r.schedule.starts_with(prefix); });
}

/// The rate of a path between the two largest sizes that were copied over it, in bytes/ns.
std::optional<double> rate(const Measurements& m, const std::string& file) {
  const Observation *largest = nullptr, *before = nullptr;
  const auto bytes = [](const Observation& o) { return o.schedule->buffers.front().bytes; };
  for (std::size_t i = 0; i < m.rows.size(); ++i) {
    const auto& o = m.observations[i];
    if (m.rows[i].schedule != file + ".sdma" || o.schedule->buffers.empty()) continue;
    if (!largest || bytes(o) > bytes(*largest)) before = largest, largest = &o;
    else if ((!before || bytes(o) > bytes(*before)) && bytes(o) < bytes(*largest)) before = &o;
  }
  if (!before || !(largest->value > before->value)) return {};
  return static_cast<double>(bytes(*largest) - bytes(*before)) / (largest->value - before->value);
}

std::optional<double> rate(const Measurements& m, LinkEnd from, LinkEnd to) {
  const auto cpu = [](LinkEnd e) { return e.kind == LinkEnd::Kind::cpu; };
  if (cpu(from) && cpu(to)) return {};
  if (cpu(from)) return rate(m, "copy_host_gpu0");
  if (cpu(to)) return rate(m, "copy_gpu0_host");
  if (from.index == 0 && to.index == 1) return rate(m, "copy_gpu0_gpu1");
  return rate(m, fmt::format("push_gpu{}_gpu{}", from.index, to.index));
}

}  // namespace

void detail::free_parameters(const Topology& node, Measurements& m) {
  m.options.unlike = kComposed;
  for (const auto& s : kUnfitted) {
    if (!s.needs.empty() && !has_rows(m, s.needs)) continue;
    m.options.free.push_back({.cost = s.cost, .low = s.low, .high = s.high, .note = std::string(s.note)});
    m.start.emplace_back(s.cost, s.value);
  }
  // Rates that the topology states are raw: what is left of them for data is fitted.
  const auto states = [&](bool xgmi) {
    return std::any_of(node.links.begin(), node.links.end(),
                       [&](const Link& l) { return l.rate.known() && (l.type == LinkType::xgmi) == xgmi; });
  };
  for (const auto& [cost, xgmi, of] : {std::tuple{Cost::xgmi_efficiency, true, "large copies to a peer"},
                                       std::tuple{Cost::pcie_efficiency, false, "large copies to and from the host"}}) {
    if (!states(xgmi)) continue;
    m.options.free.push_back({.cost = cost, .low = 1e-4, .high = 1, .note = of});
    m.start.emplace_back(cost, 0.5);
  }
}

MachineDescription unfitted(const Topology& node, const Measurements& m) {
  MachineDescription out{.name = node.name, .topology = node};
  for (auto& p : out.parameters) p.source = kAssumed;
  for (const auto& a : kAssumptions) out.parameter(a.cost).value = a.value;
  bool measured = false;
  for (auto& l : out.topology.links) {
    if (l.rate.known()) continue;
    if (const auto r = rate(m, l.from, l.to); r) l.rate = Rate::gb_per_s(*r), measured = true;
  }
  if (measured)
    for (const auto c : {Cost::pcie_efficiency, Cost::xgmi_efficiency, Cost::nic_efficiency}) {
      out.parameter(c).source = kMeasured;
      out.parameter(c).uncertainty = kSeveral;
    }
  for (const auto& s : kUnfitted)
    if (out[s.cost] == 0 && s.needs.empty()) out.parameter(s.cost).value = s.value;
  return out;
}

}}  // namespace sdma::v0_3
