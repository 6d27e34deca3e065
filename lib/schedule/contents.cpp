// SPDX-License-Identifier: MIT
#include "contents.hpp"

#include "../core/same_bits.hpp"
#include "sums.hpp"
#include "symbols.hpp"

#include <cstring>

namespace sdma { inline namespace v0_3 { namespace detail {
namespace {

/// splitmix64: one step per word.
std::uint64_t next(std::uint64_t& state) noexcept {
  auto z = state += 0x9e3779b97f4a7c15;
  z = (z ^ z >> 33) * 0xff51afd7ed558ccd;
  z = (z ^ z >> 33) * 0xc4ceb9fe1a85ec53;
  return z ^ z >> 33;
}

/// Random bits as a number.
std::uint32_t as_number(std::uint32_t bits, Numbers as) noexcept {
  const bool half = as.type == SumType::bf16;
  const unsigned shift = half ? 16 : 0, fraction = half ? 7 : 23;
  if (as.exact) {
    const auto small = half ? static_cast<int>(bits % 8) - 4 : static_cast<int>(bits % 256) - 128;
    return same_bits<std::uint32_t>(static_cast<float>(small)) >> shift;
  }
  // The sign and the fraction stay, and the exponent is from -3 to 4.
  const auto sign_and_fraction = bits & (1u << (half ? 15 : 31) | ((1u << fraction) - 1));
  return sign_and_fraction | (124 + (bits >> fraction) % 8) << fraction;
}
std::uint64_t as_numbers(std::uint64_t word, Numbers as) noexcept {
  if (as.type == SumType::i32) return word;
  const unsigned bits = as.type == SumType::bf16 ? 16 : 32;
  std::uint64_t out = 0;
  for (unsigned at = 0; at < 64; at += bits)
    out |= std::uint64_t{as_number(static_cast<std::uint32_t>(word >> at & (~std::uint64_t{} >> (64 - bits))), as)}
           << at;
  return out;
}

void randomise(std::span<std::byte> out, std::uint64_t state, Numbers as) noexcept {
  next(state);
  for (std::size_t at = 0; at < out.size(); at += 8) {
    const auto word = as_numbers(next(state), as);
    std::memcpy(out.data() + at, &word, std::min<std::size_t>(8, out.size() - at));
  }
}

/// `number`: that of the buffer, so that no two buffers hold the same bytes.
void fill(std::span<std::byte> out, Init init, std::uint64_t seed, std::uint64_t number, Numbers as) noexcept {
  if (init != Init::random) {
    std::fill(out.begin(), out.end(), std::byte{init == Init::zero ? std::uint8_t{0} : kPoison});
    return;
  }
  randomise(out, seed * 0x2545f4914f6cdd1d + number, as);
}

/// Calls fn(k) for each buffer that is filled, in that order. An alias has the contents of the bytes that it is an
/// alias of, unless its own `init` says otherwise.
template <class Fn> void each_filled(const Schedule& s, Fn fn) {
  for (const bool alias : {false, true})
    for (std::size_t i = 0; i < s.buffers.size(); ++i)
      if (const auto& b = s.buffers[i]; b.at.has_value() == alias && !(alias && b.init == Init::poison)) fn(i);
}

}  // namespace

void fill(const Schedule& s, std::uint64_t seed, const std::function<std::span<std::byte>(std::size_t)>& bytes_of) {
  const auto as = numbers_of(s);
  each_filled(s, [&](std::size_t i) { fill(bytes_of(i), s.buffers[i].init, seed, i, as); });
}

Numbers numbers_of(const Schedule& s) {
  Numbers all;
  each_sum(s, [&](const Schedule::Sum& sum, const Schedule::Range&) {
    if (sum.type != SumType::i32) all = {sum.type, all.exact || sum.any_order};
  });
  return all;
}

void store(const Schedule::Action& a, std::uint64_t seed, std::uint64_t round, Numbers as,
           std::span<std::byte> out) noexcept {
  if (a.byte) {
    std::memset(out.data(), *a.byte, out.size());
    return;
  }
  auto state = seed ^ a.range.va.value;
  state = next(state) + round;
  randomise(out, next(state), as);
}

FirstContents::FirstContents(const Schedule& s) {
  const auto address = [&](const SymbolOffset& l) { return resolve(s, link_address(l)).value; };
  each_filled(s, [&](std::size_t i) {
    store(address({false, i, 0}), s.buffers[i].bytes, s.buffers[i].init == Init::zero, 0);
  });
  for (std::size_t i = 0; i < s.signals.size(); ++i)
    store(address({true, i, 0}), s.signals[i].bits / 8, true, s.signals[i].value);
}

void FirstContents::store(std::uint64_t begin, std::uint64_t bytes, bool known, std::uint64_t value) {
  if (bytes == 0) return;
  const auto end = begin + bytes;
  const auto split = [this](std::uint64_t at) {
    auto next = ranges_.lower_bound(at);
    if (next == ranges_.begin()) return;
    auto before = std::prev(next);
    if (before->second.end <= at) return;
    ranges_.emplace_hint(next, at, before->second);
    before->second.end = at;
  };
  split(begin);
  split(end);
  ranges_.erase(ranges_.lower_bound(begin), ranges_.lower_bound(end));
  Range r{.end = end, .known = known, .base = begin};
  std::memcpy(r.bytes.data(), &value, sizeof value);
  ranges_.insert_or_assign(begin, r);
}

std::optional<std::uint64_t> FirstContents::word(GpuVa va, std::size_t bytes) const noexcept {
  std::uint64_t out = 0;
  for (std::size_t i = 0; i < bytes; ++i) {
    const auto at = va.value + i;
    auto r = ranges_.upper_bound(at);
    if (r == ranges_.begin() || (--r)->second.end <= at || !r->second.known) return {};
    out |= std::uint64_t{static_cast<std::uint8_t>(value(at, r->second))} << (8 * i);
  }
  return out;
}

}}}  // namespace sdma::v0_3::detail
