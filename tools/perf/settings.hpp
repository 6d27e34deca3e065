// SPDX-License-Identifier: MIT
#pragma once
// The settings of a benchmark: sizes, ways, rounds, device and output files.
//
//   auto s = settings_of(request);                   // request.hpp: what the command line gives
//   for (auto bytes : sizes(*s)) for (auto way : s->ways) ...
//
// A way is a variant with or without prelaunch: "b2b", "b2b+pl", "auto", "auto+pl"; a schedule file
// (schedule_file.hpp): "my_ring.sdma:chunks=4"; over several nodes, an algorithm of share/sdma/collectives/nodes.sdma:
// "hierarchical"; or another library's collective: "nccl", "nccl-ce". These are plain
// values; any thread may use them. The files that ways refer to belong to the Settings, and are empty until `load` has
// given them their text. Errors: Diagnostics that name the option, the value, and valid values.
#include "collectives/options.hpp"
#include "request.hpp"
#include "sdma/core/node_sizes.hpp"
#include "sdma/core/number.hpp"
#include "sdma/core/result.hpp"
#include "sdma/core/units.hpp"
#include "sdma/engine/ordering.hpp"
#include "sdma/schedule/exchange.hpp"
#include "sdma/simulate/sweep.hpp"

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace collectives::perf {

/// What a user would take instead.
enum class Rival : std::uint8_t {
  none,
  nccl,     ///< NCCL's kernels
  nccl_ce,  ///< NCCL's copy-engine mode
  rccl,     ///< RCCL's kernels
  brought   ///< what a file of the user says: others.hpp
};

struct ScheduleFile;

struct Way {
  Variant variant{};
  bool prelaunch{};
  Rival rival{};               ///< unless `none`, the other members mean nothing
  const ScheduleFile* file{};  ///< of Settings::files; unless null, `variant` and `prelaunch` mean nothing
  friend bool operator==(const Way&, const Way&) = default;
};
/// "nccl-ce"; "" for none.
std::string_view name(Rival) noexcept;
/// The library whose rival it is: "NCCL" or "RCCL"; "theirs" for the times of a file.
std::string_view family_of(Rival) noexcept;
/// True if the way is one of the variants of options.hpp.
bool is_ours(const Way&) noexcept;
/// "b2b+pl"
std::string name(const Way&);

/// A device, or none: times from a machine description.
using Where = std::optional<sdma::DeviceKind>;
inline constexpr Where kSimulated = std::nullopt;
/// "soft", .. or "simulate".
std::string_view name(Where) noexcept;
/// AMD's GPUs, with HIP and what builds on it.
constexpr bool is_amd(Where w) noexcept { return w == sdma::DeviceKind::kfd || w == sdma::DeviceKind::rocr; }

/// A type of nccl-tests. DMA engines move bytes, so only counts depend on it.
struct ElementType {
  std::string_view name{};
  std::uint32_t bytes{};
};
inline constexpr ElementType kTypes[] = {{"uint8", 1},  {"int8", 1},     {"int32", 4},    {"uint32", 4},
                                         {"int64", 8},  {"uint64", 8},   {"half", 2},     {"float", 4},
                                         {"double", 8}, {"bfloat16", 2}, {"fp8_e4m3", 1}, {"fp8_e5m2", 1}};

/// A matrix product that runs meanwhile on every GPU.
struct Gemm {
  std::uint32_t n = 8192;                       ///< rows and columns of each matrix
  std::chrono::duration<double> measured{0.5};  ///< for each row
};

/// The cases that a table is to cover.
struct Tune {
  std::vector<Collective> collectives{};
  std::uint32_t gpus{};  ///< 0: from 2 to all GPUs of the machine
};

class Ranks;

struct Settings {
  /// Collective, number of GPUs and everything else that is the same for
  /// each size and way. `prelaunch` is the kind that "+pl" uses, never off.
  Options options{};
  std::vector<Way> ways{};
  std::vector<std::shared_ptr<ScheduleFile>> files{};
  ElementType type = kTypes[0];
  Format format = Format::table;
  std::vector<std::string> remarks{};              ///< sentences for the head of the table
  std::uint64_t least = 1 << 10, most = 64 << 20;  ///< bytes, both inclusive
  std::uint64_t factor = 2;                        ///< from one size to the next; 0: by `step`
  std::uint64_t step = 0;                          ///< bytes
  std::uint32_t iterations = 20, warmups = 5;
  std::uint32_t checks = 1;  ///< verified rounds, after the timed ones
  Where where = kSimulated;
  std::string caveat{};           ///< the caveat of the open device; "": its times are those of a GPU
  bool where_given = true;        ///< otherwise it is what there is: hardware, or the simulator
  bool completion_given = false;  ///< otherwise a device without atomics to the host gets fences
  sdma::Ordering order{};
  std::uint64_t seed = 0;
  std::vector<sdma::GpuId> gpus{};     ///< the node's GPU for each GPU of the collective; empty: the first ones
  std::uint32_t processes = 1;         ///< that share the GPUs evenly
  std::string command{};               ///< the options as given, without --gpus: the same in all processes
  sdma::NodeSizes ranks_per_node{};    ///< empty: all processes are of one node
  sdma::Transport* transport{};        ///< between nodes. Not owned
  Ranks* ranks{};                      ///< with several processes: this one's connection with the others. Not owned
  std::chrono::nanoseconds timeout{};  ///< time limit of a round
  std::chrono::microseconds settle{};  ///< spins that long before each start
  std::vector<Way> rivals{};           ///< if there are any, all ways of a size take turns
  std::optional<std::chrono::duration<double>> energy{};  ///< measured that long for each row; nothing: not measured
  std::optional<Gemm> beside{};
  std::string csv{}, save{}, plot{}, table{}, best{};  ///< files; "": none
  sdma::tool::FigureOptions figure{};                  ///< of `plot`
  std::string brought{};                               ///< a file of times to compare with; "": none
  std::string published{};                             ///< a table of measurements to show beside; "": none
  std::string machine{};                               ///< machine description to simulate: a file; "": MI300X
  std::optional<Tune> tune{};
  std::vector<sdma::SweepAxis> axes{};  ///< axes.hpp
};

/// Settings to run with, or an error with a hint. `found`: the hardware of this machine, for a request that names no
/// device. `launched`: the processes that a launcher has started.
sdma::Result<Settings, sdma::Diagnostic> settings_of(const Request&, std::optional<sdma::DeviceKind> found = {},
                                                     std::uint32_t launched = 1);
/// Does the request leave open on which device it runs? Then settings_of takes the one that was found.
bool asks_for_hardware(const Request&) noexcept;

/// All sizes from `least` to `most`, by factor or step.
std::vector<std::uint64_t> sizes(const Settings&);
/// The options to plan for one size and way.
Options options_of(const Settings&, const Way&, std::uint64_t bytes);
/// The count column in bytes, as in the benchmarks of RCCL: elements
/// of the largest part of a GPU; for a broadcast, all elements.
std::uint64_t count_of(const Options&);

/// "1K", "64M", "1000".
using sdma::size_text;

}  // namespace collectives::perf
