#pragma once
// What a benchmark is asked for: sizes, ways, how often, where, and which files it leaves.
//
//   auto s = settings_of(given);                     // words, as a command line has them: options.hpp
//   for (auto bytes : sizes(*s)) for (auto way : s->ways) ...
//
// A way is a variant with or without prelaunch: "b2b", "b2b+pl", "auto", "auto+pl". Plain values, any thread. Errors:
// Diagnostics that name the option, the value, and what it may be.
#include "collectives/options.hpp"
#include "sdma/core/number.hpp"
#include "sdma/core/result.hpp"
#include "sdma/core/units.hpp"
#include "sdma/engine/pipeline.hpp"

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace collectives::perf {

struct Way {
  Variant variant{};
  bool prelaunch{};
  friend bool operator==(const Way&, const Way&) = default;
};
/// "b2b+pl"
std::string name(const Way&);

enum class Where : std::uint8_t {
  soft,
  kfd,
  simulate  ///< no device: times out of a described machine
};
std::string_view name(Where) noexcept;

/// All bytes are of one type: DMA engines move bytes.
inline constexpr std::string_view kType = "uint8";

/// What a table is wanted for.
struct Tune {
  std::vector<Collective> collectives{};
  std::uint32_t gpus{};  ///< 0: from 2 to all that the machine has
};

struct Settings {
  /// Collective, number of GPUs and all that is the same for each size and way. `prelaunch` is how "+pl" releases: not off.
  Options options{};
  std::vector<Way> ways{};
  std::uint64_t least = 1 << 10, most = 64 << 20;  ///< bytes, both inclusive
  std::uint64_t factor = 2;                        ///< from one size to the next; 0: by `step`
  std::uint64_t step = 0;                          ///< bytes
  std::uint32_t iterations = 20, warmups = 5;
  std::uint32_t checks = 1;  ///< rounds that are verified, apart from those that are timed
  Where where = Where::soft;
  sdma::Ordering order{};
  std::uint64_t seed = 0;
  std::vector<sdma::GpuId> gpus{};             ///< the node's, one for each of the collective's; empty: the first ones
  std::chrono::nanoseconds timeout{};          ///< of a round
  std::string csv{}, json{}, plot{}, table{};  ///< files; "": none
  std::string machine{};                       ///< what is simulated: a file; "": MI300X
  std::optional<Tune> tune{};
};

/// What was given, as text; "" where it was not.
struct Given {
  std::string collective{}, variants{}, least{}, most{}, factor{}, step{}, gpu_count{}, gpus{}, iterations{}, warmups{},
      checks{}, where{}, order{}, seed{}, timeout{}, root{};
  std::vector<std::pair<std::string, std::string>> set{};  ///< of Options, by name
  std::string csv{}, json{}, plot{}, table{}, machine{};
  bool tune = false;
};

/// The Settings that this means, or what is wrong with it.
sdma::Result<Settings, sdma::Diagnostic> settings_of(const Given&);

/// From `least`, by factor or step, up to `most`.
std::vector<std::uint64_t> sizes(const Settings&);
/// What is planned for one of them.
Options options_of(const Settings&, const Way&, std::uint64_t bytes);
/// As the benchmarks of RCCL count: elements of one GPU's part (its largest); of all for a broadcast.
std::uint64_t count_of(const Options&) noexcept;

/// "1K", "64M", "1000".
using sdma::size_text;

}  // namespace collectives::perf
