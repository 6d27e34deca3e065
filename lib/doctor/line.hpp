// SPDX-License-Identifier: MIT
#pragma once
// The packets of one queue in the order of execution, with their positions. Internal.
//
//   Line line = read_line(queue, 0, memory);
//   for (const auto& p : line.packets) use(p.view, p.position, p.consumed);
//   line.packets[line.head]                      // the packet at rptr, if any is pending
//
// Packets of an indirect buffer that can be read follow their INDIRECT, with its position. A packet that the end of the
// ring or wptr cuts is the last one of its line.
#include "sdma/doctor/snapshot.hpp"
#include "sdma/stream/reader.hpp"

#include <deque>
#include <optional>
#include <string>
#include <vector>

namespace sdma { inline namespace v0_3 { namespace doctor {

/// Dwords of all indirect buffers of a queue that are read.
inline constexpr std::size_t kMostIndirect = std::size_t{1} << 16;

struct Packet {
  PacketView view{};
  std::uint64_t position{};
  bool consumed{};  ///< rptr is after it
  bool inside{};    ///< in an indirect buffer
  bool wraps{};     ///< it begins before the end of the ring and ends after it
  bool unread{};    ///< an INDIRECT whose buffer the snapshot does not have, or which is beyond kMostIndirect
  bool beyond{};    ///< the latter
};

struct Line {
  Line() = default;
  Line(Line&&) = default;  // and no copy: the views refer to `dwords`

  const QueueSnapshot* queue{};
  std::size_t index{};
  std::deque<std::vector<std::uint32_t>> dwords{};  ///< what the views refer to
  std::vector<Packet> packets{};
  std::size_t head{};           ///< index of the packet at rptr; packets.size(): none is pending
  std::uint64_t bytes{};        ///< of the ring; 0: not known
  bool placed = false;          ///< rptr and wptr are known and do not contradict each other
  bool incomplete = false;      ///< pending packets are missing: the snapshot does not have their dwords
  std::string contradiction{};  ///< why it is not placed

  bool pending() const noexcept { return placed && queue->wptr.value != queue->rptr.value; }
  /// The packet before rptr, apart from NOPs, in which the engine may still be: of an indirect buffer, its first one.
  /// `head` if there is none.
  std::size_t last_read() const noexcept;
  /// The first buffer of those packets, or of a pending one, that the snapshot does not have.
  std::optional<std::size_t> unread_buffer() const noexcept;
};

Line read_line(const QueueSnapshot&, std::size_t index, const Snapshot&);

/// Reads words and, if the process lives, its memory.
Errc read_memory(const Snapshot&, GpuVa, std::span<std::byte> out);

}}}  // namespace sdma::v0_3::doctor
