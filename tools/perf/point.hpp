// SPDX-License-Identifier: MIT
#pragma once
// The measurements of one size in one way, and values derived from them.
//
//   time     microseconds from before the first group is written (prelaunch: before the trigger is stored) until the
//            host has seen the last completion; the mean of all timed rounds, as in the columns of nccl-tests
//   algbw    size / time, in 10^9 bytes per second
//   busbw    algbw * bus_factor (plan.hpp): the rate of the links of the busiest GPU
//
// These are plain values; any thread may use them. No errors.
#include "sdma/simulate/simulate.hpp"
#include "settings.hpp"

#include <optional>
#include <span>

namespace collectives::perf {

/// Microseconds. Half of the rounds are from `lower` to `upper`, a quarter is shorter, a quarter longer.
struct Times {
  double mean{}, least{}, median{}, most{}, lower{}, upper{};
};
/// Requires at least one value.
Times times_of(std::vector<double> microseconds);

/// What the GPUs of the collective use together, above what they use when idle.
struct Energy {
  double joules{};               ///< per round
  double nanojoules_per_byte{};  ///< of `moved_bytes`
  double watts{};
  /// Simulated: the bounds of `joules`, which no source narrows.
  std::optional<sdma::Bounds> bounds{};
};

/// The same way while every GPU multiplies matrices.
struct Beside {
  double us{};                        ///< median of the rounds
  double product_alone{}, product{};  ///< TFLOP/s of a GPU, mean
};

struct Point {
  std::uint64_t bytes{}, count{};  ///< of the collective; elements of `type`
  std::string_view type = kTypes[0].name;
  Way way{};      ///< as requested
  Variant ran{};  ///< the variant that auto has chosen
  Times us{};
  double algbw{}, busbw{};  ///< GB/s
  bool in_place = true;
  std::string at{};                      ///< the values of --sweep: "engine.window_bytes=16K"
  std::optional<std::uint64_t> wrong{};  ///< bytes that differ; nothing: not verified
  std::string first_wrong{};             ///< position and value of the first
  std::vector<std::string> notes{};      ///< fallbacks of the variant
  /// Simulated, of the fastest way with and without prelaunch: ways that are slower within the model's uncertainty.
  std::vector<Way> ties{};
  std::optional<Energy> energy{};
  std::optional<Beside> beside{};
  std::optional<sdma::Spread> spread{};          ///< simulated, with intervals
  std::optional<double> speed_up_uncertainty{};  ///< half of the 68 % interval of `speed_up`, if that is simulated
};

/// The errors of a way at a size, which their places name.
std::vector<sdma::Diagnostic> failed(std::vector<sdma::Diagnostic>, const Way&, std::uint64_t bytes);

/// True if the result of this collective replaces its input.
bool is_in_place(const Options&) noexcept;

/// Bytes that go from one GPU to another in a round, all GPUs together. busbw counts those of the busiest GPU: for
/// all_gather and all_to_all, one n-th of these.
std::uint64_t moved_bytes(const Options&);

void set_bandwidths(Point&, double bus_factor) noexcept;

/// The point of this size and way; null if there is none.
const Point* find(std::span<const Point>, std::uint64_t bytes, const Way&) noexcept;
/// The baseline of speed-ups.
inline constexpr Way kBase{Variant::pcpy, false};
/// The speed-up over pcpy without prelaunch at the same size. It compares medians, so that one disturbed round does not
/// change it. Nothing if pcpy was not measured.
std::optional<double> speed_up(std::span<const Point>, const Point&) noexcept;
/// Sizes and ways in the order of their first appearance.
std::vector<std::uint64_t> sizes_of(std::span<const Point>);
std::vector<Way> ways_of(std::span<const Point>);

}  // namespace collectives::perf
