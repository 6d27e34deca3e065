// SPDX-License-Identifier: MIT
#pragma once
// What buffers and signals hold before anything runs: run and simulate store it, and check asks for it. Internal.
//
//   fill(schedule, seed, bytes_of);                     stores the contents of every buffer
//   FirstContents first{schedule};
//   store(action, seed, round, numbers, bytes);         what a thread or a kernel stores in a round
//   first.word(resolve(schedule, signal), 4)            the value of a word; nullopt: it is not known
//   first.each_known(fn)                                every range whose bytes are known
//
//   order of stores   buffers | aliases of buffers that have an init= | signals, in the order of their declarations
//
// Each is stored over the ones before it, so the last declaration of a byte decides. The bytes of init=random depend on
// the seed, and poison stands for bytes that a schedule must not rely on: neither is known. If the schedule has sums,
// random bytes are numbers that can be added (`Numbers`).
//
// Pure functions without errors; FirstContents allocates.
#include "sdma/schedule/schedule.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <span>

namespace sdma { inline namespace v0_3 { namespace detail {

/// Gives each buffer its initial contents. `bytes_of(k)`: the bytes of buffer k.
void fill(const Schedule&, std::uint64_t seed, const std::function<std::span<std::byte>(std::size_t)>& bytes_of);

/// What random bytes are in a schedule: any bytes, if it adds no floating-point numbers (i32). Otherwise numbers of
/// this type. If a sum leaves its order open (`exact`), they are small integers, so that every order gives the same
/// bytes: of f32, for sums of up to 2^17 parts, of bf16, of up to 64. If none does, they are numbers of similar size,
/// whose sums are rounded: another order shows.
struct Numbers {
  Schedule::Sum::Type type = Schedule::Sum::Type::i32;
  bool exact{};
};
Numbers numbers_of(const Schedule&);

/// The bytes that an action stores in this round. Random ones depend on the seed, on the range and on the round.
/// Requires that it is not a sum.
void store(const Schedule::Action&, std::uint64_t seed, std::uint64_t round, Numbers, std::span<std::byte>) noexcept;

class FirstContents {
 public:
  explicit FirstContents(const Schedule&);

  /// The value of a word of at most 8 bytes at an address without aliases; nullopt if any of its bytes is not known.
  std::optional<std::uint64_t> word(GpuVa, std::size_t bytes) const noexcept;
  /// Calls fn(begin, bytes, value) for each range of known bytes; the value repeats every 8 bytes.
  template <class Fn> void each_known(Fn fn) const {
    for (const auto& [begin, r] : ranges_)
      if (r.known) fn(begin, r.end - begin, value(begin, r));
  }

 private:
  struct Range {
    std::uint64_t end{};
    bool known{};
    std::array<std::byte, 9> bytes{};  ///< the first 8 bytes, and what all other bytes hold
    std::uint64_t base{};              ///< the address of its first byte
  };
  void store(std::uint64_t begin, std::uint64_t bytes, bool known, std::uint64_t value);
  /// The 8 bytes from `at`; of a signal, zero after its end.
  static std::uint64_t value(std::uint64_t at, const Range& r) noexcept {
    std::uint64_t out = 0;
    for (std::uint64_t i = 0; i < 8; ++i) {
      const auto k = static_cast<std::size_t>(std::min<std::uint64_t>(at - r.base + i, 8));
      out |= std::to_integer<std::uint64_t>(r.bytes[k]) << (8 * i);
    }
    return out;
  }

  std::map<std::uint64_t, Range> ranges_;
};

}}}  // namespace sdma::v0_3::detail
