// SPDX-License-Identifier: MIT
#pragma once
// One command of a copy path: what it waits for, what it moves, what it completes. Its dwords are those of
// ROCr (README.md).
//
//   const LinearCopy copies[] = {{a, b, 4096}, {c, d, 1 << 20}};
//   Command c{.work = std::span(copies), .after = dependencies, .out = view(signal), .stamps = profiling};
//   auto dwords = dwords_of(engine, c);                         // exact
//   AnyWriter w{slot.dwords, {engine.generation}};
//   encode(w, engine, c);
//
//   poll each dependency that is not 0 yet    its high half, if that is not 0, then its low half
//   stamp the start, flush HDP, invalidate caches
//   the copies, the fill or the tiles of the box
//   write caches back, stamp the end
//   for each member of a gang: poll its signal until it is 1, and make it 0
//   store `count`, if it has a word
//   complete `out`: decrement it, and wake who sleeps on it
//
// Copies of one command may overlap in time, and so may tiles: nothing in a command may depend on what it moves itself.
// A gang is one copy over several engines (gang.hpp); its leader names the members' signals in `members`.
//
// Errors of dwords_of: Errc::bad_argument (nothing to do, or a box that `check` refuses), Errc::too_large
// (kMostDwords), Errc::bad_packet (a signal is misaligned, an event id does not fit its field, or an operation waits or
// posts as no packet can). Errors of encode, of
// which nothing may be published then: bad_packet (a copy passes the end of memory, a fill is misaligned, a pitch does
// not fit its field), no_space. Pure functions; any thread may call them. Nothing allocates or waits.
#include "box.hpp"
#include "engine.hpp"
#include "signal.hpp"

#include <cstddef>
#include <span>
#include <variant>

namespace runtime {

struct LinearCopy {
  sdma::GpuVa src{}, dst{};
  std::uint64_t bytes{};  ///< of any length, and not 0
};

struct LinearFill {
  sdma::GpuVa dst{};       ///< 4-byte aligned
  std::uint32_t value{};   ///< each dword
  std::uint64_t dwords{};  ///< how many; not 0
};

/// A number that the engine stores when the work is complete, before `out` is completed.
struct Count {
  sdma::GpuVa word{};     ///< 4-byte aligned; 0: nothing is stored
  std::uint32_t value{};  ///< what is stored
};

/// An operation of a batch, as of hsa_amd_memory_async_batch_copy: it waits, moves bytes and posts on its own. Those of
/// a queue begin in order, and may overlap; a `post` follows the bytes of all operations before it. An engine of these
/// generations reads no address from memory, so an operation with an indirect source or destination has no form here.
struct Operation {
  enum class Kind : std::uint8_t { linear, broadcast, swap };  ///< swap: `src` and `dst` exchange their bytes
  Kind kind{};
  sdma::GpuVa src{}, dst{}, dst2{};  ///< dst2: of a broadcast, equal to dst modulo 32. Of a swap: 64-byte aligned
  std::uint64_t bytes{};             ///< not 0
  /// Before: until (word & mask) `func` value. A poll compares 32 bits, so either a half of the mask is 0, or `func` is
  /// eq and the word monotone. No word: nothing.
  struct Wait {
    sdma::GpuVa word{};  ///< 8-byte aligned
    sdma::Compare func = sdma::Compare::eq;
    std::uint64_t value{}, mask = ~std::uint64_t{0};
  } wait{};
  /// After: what is done to a 64-bit word. Sums need an engine with atomics. No word: nothing.
  struct Post {
    enum class How : std::uint8_t { write, add, subtract };
    sdma::GpuVa word{};  ///< 8-byte aligned
    How how{};
    std::uint64_t value{};
  } post{};
};

struct Command {
  /// One copy or a batch, a batch of operations, a fill, a box.
  std::variant<std::span<const LinearCopy>, LinearFill, Box, std::span<const Operation>> work{};
  std::span<const SignalView> after{};    ///< what it waits for: each until it is 0
  std::span<const SignalView> members{};  ///< of the gang that it leads
  SignalView out{};                       ///< what it completes
  bool stamps = false;                    ///< store the time before and after the work to the stamps of `out`
  Count count{};                          ///< ROCr has no such fence: path.hpp adds it
};

/// The longest command, in dwords: more than any ring has.
inline constexpr std::size_t kMostDwords = std::size_t{1} << 28;

/// How many bytes it moves.
std::uint64_t bytes_of(const Command&) noexcept;
/// How many dwords `encode` writes.
sdma::Result<std::size_t> dwords_of(const Engine&, const Command&) noexcept;
/// Writes the command. The Writer's generation must be the engine's.
sdma::Errc encode(sdma::AnyWriter&, const Engine&, const Command&) noexcept;

}  // namespace runtime
