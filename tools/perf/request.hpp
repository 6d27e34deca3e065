// SPDX-License-Identifier: MIT
#pragma once
// What the command line of `sdma perf` asks for: each option as a value of its type. settings_of (settings.hpp) makes
// the settings of a benchmark of it, or says what does not go together.
//
//   Request r{.variant = "pcpy,b2b+pl", .most = 1 << 20};
//   auto s = settings_of(r);
//
// What is empty was not given. Plain values; any thread may use them.
#include "collectives/options.hpp"
#include "figure.hpp"
#include "sdma/core/node_sizes.hpp"
#include "sdma/core/units.hpp"
#include "sdma/device/open.hpp"
#include "sdma/engine/ordering.hpp"
#include "sdma/schedule/text.hpp"

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace collectives::perf {

enum class Format : std::uint8_t {
  table,
  nccl_tests,  ///< the 13 columns of nccl-tests, for one way
  json         ///< all results as one object, at the end
};

/// Options of nccl-tests that mean little to DMA engines: what scripts give is accepted. settings_of says what has no
/// effect.
struct Habits {
  std::optional<std::uint32_t> threads{};  ///< -t
  std::string type{}, operation{};         ///< -d, -o
  std::uint32_t blocking = 1, agg_iters = 1, average = 1, cudagraph = 0, report_cputime = 0, parallel_init = 0;
};

/// A param of a schedule file and its value, an expression of N and bytes; or an option of schedules and its value.
using ParamSetting = sdma::ParseOptions::Setting;

struct Request {
  std::optional<Collective> collective{};
  std::string variant{};  ///< names with commas
  std::vector<ParamSetting> map{}, set{};
  std::string matrix{};  ///< a file

  std::optional<std::uint64_t> bytes{}, least{}, most{}, factor{}, step{};
  std::uint32_t iterations = 20, warmups = 5, checks = 1, root = 0;

  std::optional<std::uint32_t> ngpus{}, ranks{};
  std::string meet{};  ///< HOST:PORT, where the ranks of a launcher meet
  std::string gpus{};  ///< a count, or numbers with commas
  std::optional<sdma::NodeSizes> ranks_per_node{};
  Habits habits{};

  std::optional<sdma::DeviceKind> device{};  ///< none: simulate, if `device_given`
  bool device_given = false;
  std::optional<sdma::Ordering> order{};
  std::optional<std::uint64_t> seed{};
  std::string machine{};
  std::vector<std::string> sweep{};
  bool tune = false;
  std::chrono::nanoseconds timeout = std::chrono::seconds(30);

  std::optional<std::uint32_t> settle{};  ///< microseconds
  std::string against{}, beside{};
  bool energy = false;
  std::optional<double> energy_seconds{}, beside_seconds{};

  Format format = Format::table;
  sdma::tool::FigureOptions figure{};                               ///< of `plot`
  std::string csv{}, save{}, plot{}, table{}, best{}, published{};  ///< files
  std::string command{};  ///< the options as given, without --gpus: the same in all ranks
};

}  // namespace collectives::perf
