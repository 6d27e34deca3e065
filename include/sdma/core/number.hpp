// SPDX-License-Identifier: MIT
#pragma once
// Numbers as people write them: counts, sizes with a unit, times, GPUs, and sizes of nodes.
//
//   parse_count("0x14")   == 20                    parse_size("64K")   == 65536          parse_time("250ms") == 250ms
//   parse_gpus("3")       -> {0, 1, 2}             parse_gpus("5,2")   -> {5, 2}         parse_gpus("5,")    -> {5}
//   size_text(65536)      == "64K"                 size_text(1000)     == "1000"
//
// K, M and G are powers of 1024. The whole text must be a number: blanks, signs, fractions, and values that do not fit
// in 64 bits are refused. All options, environment variables and files of this project are read with these functions,
// so one spelling works everywhere. The functions are pure, and any thread may call them; only parse_gpus,
// parse_node_sizes and size_text allocate. They do not return error messages, because only the caller knows where the
// text came from and which values make sense there.
#include "sdma/core/node_sizes.hpp"
#include "sdma/core/units.hpp"

#include <bit>
#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace sdma { inline namespace v0_3 {

/// "20" or "0x14".
[[nodiscard]] std::optional<std::uint64_t> parse_count(std::string_view) noexcept;
/// "4096", "0x1000", "4K", "1M" or "2G"; in bytes. Zero is allowed.
[[nodiscard]] std::optional<std::uint64_t> parse_size(std::string_view) noexcept;
/// A finite decimal number, with a fraction and an exponent if the text has them: 48, 0.755, 1e3.
[[nodiscard]] std::optional<double> parse_real(std::string_view) noexcept;
/// "10s", "250ms" or "50us", from 1 to 1,000,000 of the unit.
[[nodiscard]] std::optional<std::chrono::nanoseconds> parse_time(std::string_view) noexcept;

/// The value of an option --gpus: "3" selects the first three GPUs of the node; "5,2" selects these two, in this order;
/// "5," selects GPU 5 alone. Refuses a count of zero, more than 64 GPUs, and a GPU that is named twice.
[[nodiscard]] std::optional<std::vector<GpuId>> parse_gpus(std::string_view);

/// The ranks or GPUs of nodes: "4" or "3,2", numbers from 1 to 64.
[[nodiscard]] std::optional<NodeSizes> parse_node_sizes(std::string_view);

/// A size in the largest unit that divides it. `unit` is 'K', 'M' or 'G', or 0 for bytes.
struct ScaledSize {
  std::uint64_t count{};  ///< how many units
  /// 'K', 'M' or 'G' (powers of 1024); 0: bytes.
  char unit{};
};
/// `bytes` in the largest unit that divides it.
constexpr ScaledSize scaled(std::uint64_t bytes) noexcept {
  const auto unit = bytes == 0 ? 0u : static_cast<unsigned>(std::countr_zero(bytes)) / 10;
  const auto steps = unit < 3 ? unit : 3;
  return {bytes >> (10 * steps), "\0KMG"[steps]};
}
/// The shortest text that parse_size reads back.
std::string size_text(std::uint64_t bytes);

}}  // namespace sdma::v0_3
