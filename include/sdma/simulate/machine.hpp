// SPDX-License-Identifier: MIT
#pragma once
// A machine to simulate: its topology, and what each operation on it costs. A machine is data, so a JSON file can
// describe another node.
//
//   MachineDescription m = *mi300x_machine();                       // share/machines/mi300x.json, part of the library
//   auto other = machine_from_json(text, "mine.json");              // or a machine of your own
//   auto ring = layout_machine("ring:16");                          // or a layout without hardware
//   m.set("engine.poll_ns", 1000);                                  // or an experiment: what if engines polled faster?
//
//   host thread            PCIe            engine                            xGMI              memory
//   build_ns per packet    flight_ns  ->   fetch_ns                          flight_ns
//   submit_ns per submit   efficiency      packet_ns per data packet         efficiency        hbm.bytes_per_ns
//   doorbell_ns            (of the         window_bytes in flight            (of the link's    host.memory_bytes_per_ns
//   store_ns per set       link's rate)    bytes_per_ns                      rate)
//   poll_ns per wait                       latency_ns until it has landed
//   atomic_ns per word                     release_ns, poll_ns
//
// The topology gives the raw rates of links; a parameter here says what fraction of that rate is left for data. Each
// parameter has a unit, an uncertainty and a source: a public fact, "fitted" (by fit.hpp to measurements),
// or "assumed". Parameters that were fitted together can be known together much better than alone: the covariance of
// the fit says how their errors go together, as a lower triangle in the file. A file without one is valid.
//
//   "covariance": {"parameters": ["engine.latency_ns", "engine.release_ns"], "rows": [[476100], [-467793, 462400]]}
//
// What a value was taken from says nothing of the model when the model gives it back. So a parameter names the sources
// of the measurements that it was taken from, and a measurement of such a source is `fitted`, whatever its weight; all
// others are predicted. How far both are off, for schedules of one pattern, is part of the file:
//
//   "engine.bytes_per_ns": {"value": 48.35, ..., "taken_from": ["ROCm/system-acceptance-docs"]}
//   "judged": {"one source": {"model_error": 0.11, "fitted": {"cells": 85, "mean": 0.07, "worst": 0.56}}}
//
// "energy" has the terms of energy.hpp, each with its bounds, its level and its source. It may be left out, and so may
// each term.
//
//   "energy": {"gpu.idle_watts": {"value": 150, "low": 131, "high": 180, "level": "board",
//                                 "includes": ["xcd.idle_watts", "iod.idle_watts"], "source": "..."}}
//
// Nothing unknown gets a number in silence. `defaults_of` lists what a file leaves out, and what is used instead. What
// a file gives as unknown, such as the rate of a link ("mb_per_s": 0), has no default: `simulate` refuses a schedule
// that depends on it.
//
// Plain values that allocate; one thread may write, or many may read. Errors: a Diagnostic names the file, the key and
// the problem: a parameter is missing, unknown or negative, or has no source.
#include "sdma/core/diagnostic.hpp"
#include "sdma/core/result.hpp"
#include "sdma/device/topology.hpp"
#include "sdma/simulate/energy.hpp"

#include <array>
#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace sdma { inline namespace v0_3 {

/// One parameter of a machine. Times are in ns, rates in bytes per ns (which is GB/s), fractions from 0 to 1.
enum class Cost : std::uint8_t {
  host_build,     ///< time for a thread to write one packet into a ring
  host_submit,    ///< time to find the queue, reserve and publish: once per submit
  host_doorbell,  ///< time that the store to the doorbell holds up the thread
  host_issue,   ///< time per packet that the doorbell holds up the thread while the engine already works: 0 on hardware
                ///< that fetches packets itself
  host_store,   ///< time for a `set`
  host_poll,    ///< time for a `wait` to see that the word has its value
  host_atomic,  ///< time that one atomic occupies its word in host memory: atomics on one word are serialised
  host_memory,  ///< rate of the host's memory
  pcie_flight,  ///< latency, one way, between host memory and an engine
  pcie_efficiency,    ///< fraction of the link's rate
  xgmi_flight,        ///< latency, one way, between two GPUs
  xgmi_efficiency,    ///< fraction of the link's rate
  nic_flight,         ///< latency, one way, between two GPUs over a link that is neither PCIe nor xGMI: a switch, a NIC
  nic_efficiency,     ///< fraction of such a link's rate
  hbm_rate,           ///< rate of one GPU's memory, reads and writes together
  engine_fetch,       ///< time from the doorbell to the front end's start, without flight and ring round trip
  engine_doorbell,    ///< time of the front end for the first packet of a doorbell that arrived while it was busy
  engine_packet,      ///< time of the front end for a packet that moves data
  engine_control,     ///< time of the front end for any other packet
  engine_window,      ///< bytes that an engine can have in flight
  engine_rate,        ///< rate that an engine sustains, however many links it feeds
  engine_broadcast,   ///< fraction of that rate that a broadcast's two destinations get together
  engine_swap,        ///< what a swap's two directions get together, as a part of that rate: may be above 1
  engine_other_link,  ///< fraction of that rate to a peer for which the node recommends another engine
  engine_latency,     ///< time from the request for the last byte until it has landed and is acknowledged
  engine_read_peer,   ///< additional time if bytes are read from another GPU
  engine_swap_time,   ///< additional time of a swap
  engine_release,     ///< fence, atomic: time from the landing of the last earlier packet until the word leaves
  engine_poll,        ///< time from a change of a polled word until the engine reads it again, without the flight
  engine_host_rate,   ///< rate that an engine sustains between a GPU and its host
  engine_second_down,     ///< fraction of that rate that a GPU's second host engine gets towards the host
  engine_far_down,        ///< the same for engines from 8 on
  engine_broadcast_time,  ///< additional time of the front end for a broadcast
  engine_peer_copies,     ///< copies that an engine can have in flight to one peer; 0: no limit but the window
  engine_occupied,        ///< time that a fence or atomic occupies the front end, from when it is sent
  engine_page,            ///< additional time of a copy for each page that no engine of the GPU has accessed before
  engine_page_size,       ///< bytes of such a page
  kernel_release,         ///< time for a compute kernel to make its stores visible at system scope
  kernel_poll,            ///< time for a compute kernel to see that a word has changed, with a system-scope acquire
  engine_large_swap,      ///< fraction of engine_swap that swaps of 64 MiB and more get
  engine_command,         ///< time that an engine is kept from other copies after one that a runtime chains by a signal
  engine_command_size,    ///< bytes of the largest copy that a runtime leaves to a kernel instead, and does not chain
  kernel_workgroup,       ///< rate at which one workgroup of a kernel moves bytes from or to other GPUs
  kernel_link,            ///< fraction of what engines get of a link that is left for such kernels
  kernel_step,            ///< protocol=simple: additional time of each `set` and `add` of a kernel
  kernel_ll,              ///< protocol=ll: time of each `set` and `add`, instead of a release and an acquire
  nic_message,            ///< time that the thread of a network's queue needs to pass on a message
  kernel_tracked,  ///< protocol=tracked: time of each `set`, `add` and `wait`, in place of a release and an acquire
  hbm_weight,      ///< how many times as much of a full memory a `compute` gets as a copy; 1: both the same
};
inline constexpr std::size_t kCosts = 49;  ///< how many costs there are
/// The rates that MachineDescription::set knows beside the parameters.
struct LinkRate {
  std::string_view name;  ///< in GB/s, of all links of this type
  LinkType type;          ///< which links
  Cost efficiency;        ///< the fraction of this rate that is left for data
};
/// A row for each type of links.
inline constexpr std::array<LinkRate, 3> kLinkRates{{{"xgmi.rate", LinkType::xgmi, Cost::xgmi_efficiency},
                                                     {"pcie.rate", LinkType::pcie, Cost::pcie_efficiency},
                                                     {"nic.rate", LinkType::other, Cost::nic_efficiency}}};
/// The row with this name; null if there is none.
constexpr const LinkRate* link_rate(std::string_view name) noexcept {
  for (const auto& r : kLinkRates)
    if (r.name == name) return &r;
  return nullptr;
}
/// The row of links of this type.
constexpr const LinkRate& link_rate(LinkType type) noexcept {
  for (const auto& r : kLinkRates)
    if (r.type == type) return r;
  return kLinkRates.back();
}
/// "engine.poll_ns"; `cost_named` is the inverse, and also knows the names that 0.2 had.
std::string_view name(Cost) noexcept;
/// "ns", "bytes", "bytes/ns", "fraction", "ratio" (a fraction that may be above 1), "copies".
std::string_view unit(Cost) noexcept;
/// The index of the parameter with this name; kCosts if there is none.
std::size_t cost_named(std::string_view) noexcept;

/// What the copies of a schedule have in common. Schedules of one pattern are off for the same reasons. If several
/// hold, the last of them counts.
enum class CopyPattern : std::uint8_t {
  pair,         ///< each GPU exchanges bytes with one peer, or with none
  own_sources,  ///< a GPU sends other bytes to each of several peers, or fetches them: all-to-all, scatter, gather
  one_source,   ///< a GPU sends the same bytes to several peers: all-gather, broadcast
  swaps,        ///< bytes are swapped
  host,         ///< bytes come from the host, or go there
  relay,        ///< an engine waits for a word that another engine writes: a ring, a pipeline
  network,      ///< bytes cross the network between nodes
};
inline constexpr std::size_t kPatterns = 7;  ///< how many patterns there are
/// "a pair", "one source", ...
std::string_view name(CopyPattern) noexcept;

/// How far a machine is off for published measurements of schedules of one pattern: times, and ratios of times.
struct Judged {
  /// Some measurements, each a cell of a table. Errors are predicted / measured - 1: 0.09 is 9 %.
  struct Cells {
    std::uint32_t cells{};  ///< how many
    double mean{};          ///< the mean size of their errors
    double worst{};         ///< the largest
    friend bool operator==(const Cells&, const Cells&) = default;
  };
  CopyPattern pattern{};  ///< of the schedules
  Cells fitted{};         ///< of sources from which a parameter was taken
  Cells predicted{};      ///< of all others
  double model_error{};   ///< instead of MachineDescription::model_error, for schedules of this pattern; 0: not known
  friend bool operator==(const Judged&, const Judged&) = default;
};

/// The value of a parameter, how certain it is, and where it comes from.
struct Parameter {
  double value{};        ///< in the parameter's unit: unit(Cost)
  double uncertainty{};  ///< in the parameter's unit: the true value may be larger or smaller by this much
  std::string source{};  ///< where the value comes from, for people: "fitted: ..."
  std::optional<double> alternative{};  ///< what it may be instead, where a mechanism is on or off
  std::string when{};                   ///< what is the case then: "an engine has one copy to a peer in flight"
  /// The sources of the measurements that the value was taken from, as tables write them, or how they begin.
  std::vector<std::string> taken_from{};
  /// Does the machine's file leave it out? Then `value` is the default.
  bool absent() const noexcept { return source.starts_with("not in the file"); }
  /// Was it fitted to measurements?
  bool fitted() const noexcept { return source.starts_with("fitted"); }
  /// The best value of its fit was the least or the most that it may be. So the true value may lie beyond it, and
  /// neither the uncertainty nor an interval says how far.
  bool at_bound = false;
  friend bool operator==(const Parameter&, const Parameter&) = default;
};

/// How the errors of parameters that were fitted together depend on each other.
struct Covariance {
  std::vector<Cost> of{};        ///< the parameters, each once
  std::vector<double> values{};  ///< a square matrix in their order, row by row, in the product of both units
  /// Leaves a parameter out: its error is independent of the others'.
  void drop(Cost);
  friend bool operator==(const Covariance&, const Covariance&) = default;
};

/// Where a machine was read from.
struct MachineOrigin {
  std::string file{};  ///< "" if it was not read
  /// The shipped file that all parameters are from, if the machine is a node alone: "mi300x.json".
  std::string parameters{};
  /// Always: machines that differ in it alone are equal.
  friend bool operator==(const MachineOrigin&, const MachineOrigin&) noexcept { return true; }
};

struct MachineDescription {
  std::string name{};   ///< what reports call the machine
  std::string notes{};  ///< for people: the origin of the numbers
  /// GPUs, engines and links.
  Topology topology{};
  std::array<Parameter, kCosts> parameters{};  ///< indexed by Cost
  /// What is left of a fit's errors, relative to the part of a time in which neither bytes move nor kernels compute: 68
  /// % of the times and ratios that it was fitted to are off by less. 0: not known.
  double model_error{};
  /// What is known of schedules of one pattern; each pattern at most once.
  std::vector<Judged> judged{};
  /// Of fitted parameters; their `uncertainty` is for each alone. The errors of all others are independent.
  Covariance covariance{};
  EnergyTerms energy{};    ///< what its work costs in joules; nothing if its file does not say so
  MachineOrigin origin{};  ///< for messages

  double operator[](Cost c) const noexcept { return parameters[static_cast<std::size_t>(c)].value; }
  Parameter& parameter(Cost c) noexcept { return parameters[static_cast<std::size_t>(c)]; }
  /// The parameter for a cost.
  const Parameter& parameter(Cost c) const noexcept { return parameters[static_cast<std::size_t>(c)]; }
  /// Was a parameter taken from this source of a measurement (Measurements::Row)? Then the measurement is fitted.
  bool fitted_to(std::string_view source) const noexcept;
  /// What is known of this pattern; null: nothing.
  const Judged* judgement(CopyPattern) const noexcept;
  /// The model_error for schedules of this pattern: its own, or that of the machine.
  double error_of(CopyPattern) const noexcept;
  /// Sets a parameter or a term of the energy by name. `xgmi.rate`, `pcie.rate` and `nic.rate` are the raw rates of all
  /// links of that type, in GB/s. What was set is exact from now on. bad_argument: there is no such parameter, or it
  /// cannot have this value.
  [[nodiscard]] Errc set(std::string_view parameter, double value) noexcept;
  friend bool operator==(const MachineDescription&, const MachineDescription&) = default;
};

/// A node of 1 to 8 MI300X, with the parameters of share/machines/mi300x.json.
Result<MachineDescription, Diagnostic> mi300x_machine(std::uint32_t gpus = 8);
/// The node of that name (topology.hpp), such as "mesh:16": with the parameters of share/machines/mi355x.json for
/// MI350X and MI355X, and with those of mi300x.json for all others.
Result<MachineDescription, Diagnostic> layout_machine(std::string_view layout);
/// The machine that a user names: a layout, or a file ("-": standard input), which `read` reads, or else read_file;
/// "" is a node of eight MI300X.
Result<MachineDescription, Diagnostic> machine_named(
    const std::string& name, const std::function<Result<std::string, Diagnostic>(const std::string&)>& read = {});
/// The text of mi300x.json.
std::string_view mi300x_machine_json() noexcept;

/// How a program copies, if not by rings of its own. The costs are public for MI300X only; docs/simulate.md compares
/// them with public figures.
enum class Through : std::uint8_t {
  rings,      ///< rings of its own
  hip,        ///< HIP: a submit is a call; one of several copies is a batch, hipMemcpyBatchAsync
  hip_calls,  ///< HIP without batches: a call for each packet, if Schedule::Queue::doorbell_each is set
  hsa,        ///< ROCr's hsa_amd_memory_async_batch_copy: copies back to back in a ring, with a signal each
};
/// The machine now copies that way: the costs of a call (host.submit_ns, for each submit), of an entry of a batch
/// (host.build_ns, for each packet), and of HIP's order of copies on a stream (engine.command_ns).
void through(MachineDescription&, Through);

/// The machine that `text` describes, a machine file; or the node of a topology as to_json(Topology) writes it, with
/// the parameters of its generation, which has to be known. `file`: the name of the text in errors. Parameters that
/// earlier files lack may be missing: then their mechanisms are off, engines reach the host at engine.bytes_per_ns, and
/// links that are neither PCIe nor xGMI are like xGMI. The topology in it is {"mi300x": 8}, the name of a layout such
/// as "ring:8" (topology.hpp), or an object as to_json(Topology) writes it.
Result<MachineDescription, Diagnostic> machine_from_json(std::string_view text, std::string_view file = "machine");
std::string to_json(const MachineDescription&);

/// What was not said about the machine, and what is used instead: "engine.page_ns=0: not in the file: off". The
/// defaults of parameters are those of a file that lacks them (`machine_from_json`).
std::vector<std::string> defaults_of(const MachineDescription&);

/// For people: each parameter with its uncertainty and its source. Ends with a newline.
std::string to_table(const MachineDescription&);

}}  // namespace sdma::v0_3
