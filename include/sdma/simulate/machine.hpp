#pragma once
// A machine to simulate: its topology, and what everything on it costs. Data, so that another node is another file.
//
//   MachineDescription m = *mi300x_machine();                       // share/machines/mi300x.json, which the library carries
//   auto other = machine_from_json(text, "mine.json");              // or one of your own
//   m.set("engine.poll_ns", 1000);                                  // or a question: what if engines polled faster?
//
//   host thread            PCIe            engine                            xGMI                memory
//   build_ns a packet      flight_ns  ->   fetch_ns                          flight_ns
//   group_ns a submit      efficiency      packet_ns a data packet           efficiency          hbm.bytes_per_ns
//   doorbell_ns            (of the         window_bytes in flight            (of the link's      host.memory_bytes_per_ns
//   store_ns a set         link's rate)    bytes_per_ns                      rate)
//   look_ns a wait                         latency_ns until it has landed
//   atomic_ns a word                       release_ns, poll_ns
//
// Rates of links come out of the topology; here is what part of them bytes get. Each parameter says its unit, how uncertain it is
// and where it comes from: a public fact, "fitted" (to the two tables that docs/simulate.md names), or "assumed".
//
// Plain values that allocate; one thread writes, or many read. Errors: a Diagnostic with file, key and what is wrong: a
// parameter that is missing, unknown, negative, or without a source.
#include "sdma/core/diagnostic.hpp"
#include "sdma/core/result.hpp"
#include "sdma/device/topology.hpp"

#include <array>
#include <cstddef>
#include <string>
#include <string_view>

namespace sdma {
inline namespace v0 {

/// What a machine description says of one thing. Times in ns, rates in bytes per ns (which is GB/s), parts from 0 to 1.
enum class Cost : std::uint8_t {
  host_build,         ///< a thread writes one packet into a ring
  host_group,         ///< and finds the queue, reserves, publishes: once a submit
  host_doorbell,      ///< the store to the doorbell, until the thread goes on
  host_store,         ///< a `set`
  host_look,          ///< a `wait` sees a word that has its value
  host_atomic,        ///< one word of host memory takes so long for each atomic: they come one after another
  host_memory,        ///< rate of the host's memory
  pcie_flight,        ///< one way between host memory and an engine
  pcie_efficiency,    ///< of the link's rate
  xgmi_flight,        ///< one way between two GPUs
  xgmi_efficiency,    ///< of the link's rate
  hbm_rate,           ///< of one GPU, reads and writes together
  engine_fetch,       ///< doorbell seen until the front end begins, besides a flight and the ring's round trip
  engine_packet,      ///< front end, a packet that moves data
  engine_control,     ///< front end, any other
  engine_window,      ///< bytes that an engine has in flight
  engine_rate,        ///< that an engine sustains, however many links it feeds
  engine_broadcast,   ///< part of that rate that a broadcast's two destinations get together
  engine_swap,        ///< part of that rate that a swap's two directions get together
  engine_other_link,  ///< part of that rate to a peer for which the node recommends another engine
  engine_latency,     ///< last byte asked for until it has landed and is acknowledged
  engine_read_peer,   ///< in addition where bytes are read from another GPU
  engine_release,     ///< fence, atomic: everything landed until the word leaves
  engine_poll,        ///< a word that is polled has changed until the engine has looked again, besides a flight
  kernel_release,     ///< a compute kernel makes its stores visible at system scope
  kernel_look,        ///< a compute kernel sees a word that has changed, with a system-scope acquire
};
inline constexpr std::size_t kCosts = 26;
/// "engine.poll_ns"; and back by `cost_named`.
std::string_view name(Cost) noexcept;
/// "ns", "bytes", "bytes/ns", "part".
std::string_view unit(Cost) noexcept;
/// kCosts where there is none of that name.
std::size_t cost_named(std::string_view) noexcept;

struct Parameter {
  double value{};
  double uncertainty{};  ///< in the parameter's unit: it may as well be so much more or less
  std::string source{};
  bool fitted() const noexcept { return source.starts_with("fitted"); }
  friend bool operator==(const Parameter&, const Parameter&) = default;
};

struct MachineDescription {
  std::string name{};
  std::string notes{};
  Topology topology{};
  std::array<Parameter, kCosts> parameters{};

  double operator[](Cost c) const noexcept { return parameters[static_cast<std::size_t>(c)].value; }
  Parameter& parameter(Cost c) noexcept { return parameters[static_cast<std::size_t>(c)]; }
  const Parameter& parameter(Cost c) const noexcept { return parameters[static_cast<std::size_t>(c)]; }
  /// By name; bad_argument: no such parameter, or no such value.
  Errc set(std::string_view parameter, double value) noexcept;
  friend bool operator==(const MachineDescription&, const MachineDescription&) = default;
};

/// Nodes of MI300X, 1 to 8 of them, with the parameters of share/machines/mi300x.json.
Result<MachineDescription, Diagnostic> mi300x_machine(std::uint32_t gpus = 8);
/// The text of that file.
std::string_view mi300x_machine_json() noexcept;

/// `file` is what errors call it. The topology: {"mi300x": 8}, or an object as to_json(Topology) writes it.
Result<MachineDescription, Diagnostic> machine_from_json(std::string_view text, std::string_view file = "machine");
std::string to_json(const MachineDescription&);

/// For people: each parameter with its uncertainty and its source. Ends with a newline.
std::string to_table(const MachineDescription&);

}  // namespace v0
}  // namespace sdma
