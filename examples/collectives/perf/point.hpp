#pragma once
// What was measured at one size in one way, and what follows from it.
//
//   time     microseconds from before the first group is written (prelaunch: before the trigger is stored) until the host has
//            seen the last completion; the mean of all timed rounds, as the columns of nccl-tests have it
//   algbw    size / time, in 10^9 bytes a second
//   busbw    algbw * bus_factor (plan.hpp): what the links of the busiest GPU carry
//
// Plain values, any thread, no errors.
#include "settings.hpp"

#include <optional>
#include <span>

namespace collectives::perf {

/// Microseconds.
struct Times {
  double mean{}, least{}, median{}, most{};
};
/// Requires one at least.
Times times_of(std::vector<double> microseconds);

struct Point {
  std::uint64_t bytes{}, count{};
  Way way{};      ///< as asked
  Variant ran{};  ///< what auto has chosen
  Times us{};
  double algbw{}, busbw{};               ///< GB/s
  std::optional<std::uint64_t> wrong{};  ///< elements that differ; nothing: nobody looked
  std::string first_wrong{};             ///< where, and what is there
  std::vector<std::string> notes{};      ///< what the variant could not do, and what it does instead
};

void set_bandwidths(Point&, double bus_factor) noexcept;

/// The point of this size and way; null if there is none.
const Point* find(std::span<const Point>, std::uint64_t bytes, const Way&) noexcept;
/// The base of speed-ups.
inline constexpr Way kBase{Variant::pcpy, false};
/// Times faster than pcpy without prelaunch at the same size, by medians: a round that somebody disturbed must not decide.
/// Nothing where pcpy was not measured.
std::optional<double> speed_up(std::span<const Point>, const Point&) noexcept;
/// Sizes and ways in the order in which they came.
std::vector<std::uint64_t> sizes_of(std::span<const Point>);
std::vector<Way> ways_of(std::span<const Point>);

}  // namespace collectives::perf
