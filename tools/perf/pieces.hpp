// SPDX-License-Identifier: MIT
#pragma once
// Where NCCL's collectives have their data: what each rank is given, what must not survive, and what must arrive.
//
//   for (const auto& p : pieces(options)) ...      // a part of count_of(options) bytes, a whole broadcast, or, in an
//                                                  // alltoallv, what one rank sends to another
//
//                 rank 0 (root)     rank 1            calls
//   all_gather    to: [A] [.]       to: [.] [B]       from = to + rank * part                in place
//   all_to_all    from: [A A']      from: [B B']      to is another buffer
//   alltoallv     the same, in slots of count_of(options) bytes; by ncclSend and ncclRecv
//   broadcast     to: [A]           to: [.]           from = to                              in place
//   scatter       from: [A A']      to: [.]           to has one part in every rank
//   gather        to: [A] [.]       from: [B]         from = to + root * part at the root    in place there
//
// In symmetric windows, the copy-engine mode takes a rank's offset of `to` for that of all ranks, so scatter is not in
// place at the root, as it could be otherwise.
//
// A piece begins as `given` bytes of the pattern or as poison, and ends as bytes of a rank's pattern, or does not
// matter. Pure functions; any thread. No errors.
#include "settings.hpp"

#include <cstdint>
#include <optional>
#include <vector>

namespace collectives::perf {

enum BufferRole : std::uint8_t { kFrom, kTo, kBuffers };

struct Place {
  BufferRole buffer{};
  std::uint64_t offset{};  ///< bytes
};

/// Bytes of a rank's pattern.
struct Origin {
  std::size_t rank{};
  std::uint64_t offset{};
};

/// One part in one rank's memory.
struct Piece {
  std::size_t rank{};
  Place at{};
  std::optional<Origin> before{}, after{};  ///< nothing before: poison; nothing after: not checked
  std::uint64_t bytes{};
  std::size_t other{};  ///< alltoallv: the rank that it is sent to, or comes from
};

/// Bytes that each buffer needs.
std::uint64_t buffer_of(const Options&);
std::vector<Piece> pieces(const Options&);
/// The addresses that the call of this rank takes.
struct Operands {
  Place from{}, to{};
};
Operands operands(const Options&, std::size_t rank);

}  // namespace collectives::perf
