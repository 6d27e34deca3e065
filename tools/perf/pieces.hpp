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
#include "collectives/plan.hpp"
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
inline std::uint64_t buffer_of(const Options& o) {
  return o.collective == Collective::broadcast ? count_of(o) : count_of(o) * o.gpus;
}

inline std::vector<Piece> pieces(const Options& o) {
  const std::size_t n = o.gpus, root = o.root;
  const auto part = count_of(o);
  std::vector<Piece> all;
  for (std::size_t rank = 0; rank < n; ++rank) switch (o.collective) {
      case Collective::all_gather:
        for (std::size_t p = 0; p < n; ++p) {
          const Origin origin{p, p * part};
          all.push_back({rank, {kTo, p * part}, p == rank ? std::optional(origin) : std::nullopt, origin});
        }
        break;
      case Collective::all_to_all:
      case Collective::alltoallv:
        for (std::size_t p = 0; p < n; ++p) {
          all.push_back({rank, {kFrom, p * part}, Origin{rank, p * part}, Origin{rank, p * part}});
          all.push_back({rank, {kTo, p * part}, {}, Origin{p, rank * part}});
        }
        break;
      case Collective::broadcast: {
        const Origin origin{root, 0};
        all.push_back({rank, {kTo, 0}, rank == root ? std::optional(origin) : std::nullopt, origin});
        break;
      }
      case Collective::scatter:
        all.push_back({rank, {kTo, 0}, {}, Origin{root, rank * count_of(o)}});
        for (std::size_t p = 0; rank == root && p < n; ++p)
          all.push_back({rank, {kFrom, p * part}, Origin{root, p * part}, Origin{root, p * part}});
        break;
      case Collective::gather:
        if (rank != root) all.push_back({rank, {kFrom, 0}, Origin{rank, 0}, Origin{rank, 0}});
        for (std::size_t p = 0; rank == root && p < n; ++p)
          all.push_back(
              {rank, {kTo, p * part}, p == root ? std::optional(Origin{root, 0}) : std::nullopt, Origin{p, 0}});
        break;
    }
  for (auto& p : all) p.bytes = part;
  if (o.collective != Collective::alltoallv) return all;
  const auto sent = sent_parts(o);
  for (auto& p : all) {
    p.other = p.at.offset / part;
    p.bytes = sent[p.at.buffer == kFrom ? p.rank * n + p.other : p.other * n + p.rank].bytes;
  }
  std::erase_if(all, [&](const Piece& p) { return p.bytes == 0 || (p.other == p.rank && !o.own_part); });
  return all;
}

/// The addresses that the call of a rank takes.
struct Operands {
  Place from{}, to{};
};
inline Operands operands(const Options& o, std::size_t rank) {
  const auto part = count_of(o);
  const bool root = rank == o.root;
  switch (o.collective) {
    case Collective::all_gather: return {{kTo, rank * part}, {kTo, 0}};
    case Collective::all_to_all:
    case Collective::alltoallv: return {{kFrom, 0}, {kTo, 0}};
    case Collective::broadcast: return {{kTo, 0}, {kTo, 0}};
    case Collective::scatter: return {{kFrom, 0}, {kTo, 0}};
    case Collective::gather: return {root ? Place{kTo, rank * part} : Place{kFrom, 0}, {kTo, 0}};
  }
  return {};
}

}  // namespace collectives::perf
