// SPDX-License-Identifier: MIT
#include "sdma/core/number.hpp"

#include "words.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstdlib>

namespace sdma { inline namespace v0_3 {
namespace {

constexpr std::uint64_t kMostGpus = 64;  // a set of GPUs is a word of 64 bits

using detail::whole_number;

}  // namespace

std::optional<std::uint64_t> parse_count(std::string_view text) noexcept {
  return text.starts_with("0x") ? whole_number<std::uint64_t>(text.substr(2), 16) : whole_number<std::uint64_t>(text);
}

std::optional<std::uint64_t> parse_size(std::string_view text) noexcept {
  if (text.empty() || text.starts_with("0x")) return parse_count(text);
  const auto unit = std::string_view("KMG").find(text.back());
  if (unit == text.npos) return whole_number<std::uint64_t>(text);
  const auto shift = 10 * (unit + 1);
  const auto n = whole_number<std::uint64_t>(text.substr(0, text.size() - 1));
  if (!n || *n > ~std::uint64_t{} >> shift) return {};
  return *n << shift;
}

std::optional<double> parse_real(std::string_view text) noexcept {
  double v = 0;
#ifdef __cpp_lib_to_chars
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), v);
  if (error != std::errc{} || end != text.data() + text.size()) return {};
#else
  // strtod also takes spaces, a plus sign, hexadecimal digits and words.
  std::array<char, 128> copy{};
  if (text.empty() || text.size() >= copy.size() || text.front() == '+' ||
      text.find_first_not_of("0123456789.eE+-") != text.npos)
    return {};
  std::copy(text.begin(), text.end(), copy.begin());
  char* end = nullptr;
  v = std::strtod(copy.data(), &end);
  if (end != copy.data() + text.size()) return {};
#endif
  return std::isfinite(v) ? std::optional(v) : std::nullopt;
}

std::optional<std::chrono::nanoseconds> parse_time(std::string_view text) noexcept {
  const auto at = std::min(text.find_first_not_of("0123456789"), text.size());
  const auto unit = text.substr(at);
  const std::int64_t ns = unit == "s" ? 1'000'000'000 : unit == "ms" ? 1'000'000 : unit == "us" ? 1000 : 0;
  const auto n = whole_number<std::uint64_t>(text.substr(0, at));
  if (!n || ns == 0 || *n < 1 || *n > 1'000'000) return {};
  return std::chrono::nanoseconds(static_cast<std::int64_t>(*n) * ns);
}

std::optional<std::vector<GpuId>> parse_gpus(std::string_view text) {
  std::vector<GpuId> all;
  if (text.find(',') == text.npos) {
    const auto n = parse_count(text);
    if (!n || *n < 1 || *n > kMostGpus) return {};
    for (std::uint32_t g = 0; g < *n; ++g) all.push_back({g});
    return all;
  }
  if (text.ends_with(',')) text.remove_suffix(1);  // "5,": one GPU, not five
  for (const auto word : detail::between_commas(text)) {
    const auto n = parse_count(word);
    if (!n || *n >= kMostGpus) return {};
    const GpuId gpu{static_cast<std::uint32_t>(*n)};
    if (std::find(all.begin(), all.end(), gpu) != all.end()) return {};
    all.push_back(gpu);
  }
  return all;
}

std::optional<NodeSizes> parse_node_sizes(std::string_view text) {
  NodeSizes out;
  for (const auto word : detail::between_commas(text)) {
    const auto n = parse_count(word);
    if (!n || *n < 1 || *n > kMostGpus) return {};
    out.sizes.push_back(static_cast<std::uint32_t>(*n));
  }
  return out;
}

std::string size_text(std::uint64_t bytes) {
  const auto s = scaled(bytes);
  auto text = std::to_string(s.count);
  if (s.unit != 0) text += s.unit;
  return text;
}

}}  // namespace sdma::v0_3
