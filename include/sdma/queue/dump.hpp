#pragma once
// A ring on disk: its positions and its dwords, for whoever debugs a queue that stands still, later and elsewhere.
//
//   save(dump(ring, gpu, engine, "all-gather, rank 3"), "stuck.ring");
//
//   auto d = load_dump("stuck.ring");                      // or from_bytes(what was read from a pipe, "<stdin>")
//   auto p = pending(*d);                                  // what the engine has still to read, in order, unwrapped
//   for (Reader r{p->dwords}; r;) {
//     auto offset = p->ring_offset(r.position());          // bytes from the ring's begin
//     auto packet = r.next();
//   }
//
// A tool that takes several kinds of input asks is_dump(bytes) first, disassembles `pending` (or all of `dwords`, for
// what has been read already), and maps an index back with ring_offset. A dump is taken as it is found, so positions may
// contradict each other: from_bytes accepts them, pending says so.
//
//   offset   0 "SDMARING"   8 version, 1   12 bytes of this header, 72
//           16 read   24 committed   32 reserved   40 wptr   48 doorbell      bytes, 64 bits each
//           56 gpu   60 engine   64 bytes of the label   68 dwords of the ring
//           72 the label, filled with zeros to a multiple of 4; then the dwords. All little-endian.
//
// `dump` reads words that others write: what stands between committed and reserved is unfinished, and what is published
// while it copies may be missing. It allocates, as all here does. Values: any thread. Errors are Diagnostics: rule "dump",
// where "name:0xOFFSET".
#include "sdma/core/diagnostic.hpp"
#include "sdma/core/units.hpp"
#include "sdma/queue/ring.hpp"

#include <cstddef>
#include <string>
#include <vector>

namespace sdma {
inline namespace v0 {

struct RingDump {
  std::uint64_t read{}, committed{}, reserved{};  ///< bytes, as Ring::positions
  std::uint64_t wptr{}, doorbell{};               ///< as they stand in memory; doorbell: 0 where there is none
  GpuId gpu{};
  EngineId engine{};
  std::string label{};  ///< whatever helps to find it again; 4096 bytes at most
  std::vector<std::uint32_t> dwords{};
};

inline constexpr std::size_t kMaxDumpLabel = 4096;
inline constexpr std::size_t kMaxDumpDwords = std::size_t{1} << 28;  ///< 1 GiB: more is no ring

namespace detail {
RingDump snapshot(const RingMemory&, std::uint64_t read, std::uint64_t committed, std::uint64_t reserved);
}  // namespace detail

/// A copy of the ring as it stands. The label is cut to kMaxDumpLabel bytes.
template <Producers K, class Order>
RingDump dump(const Ring<K, Order>& ring, GpuId gpu = {}, EngineId engine = {}, std::string_view label = {}) {
  const auto p = ring.positions();
  auto d = detail::snapshot(ring.memory(), p.read, p.committed, p.reserved);
  d.gpu = gpu;
  d.engine = engine;
  d.label = label.substr(0, kMaxDumpLabel);
  return d;
}

/// The dwords from `read` to `wptr`.
struct Pending {
  std::vector<std::uint32_t> dwords{};
  std::uint64_t read{};  ///< position of the first
  std::size_t ring_dwords{};

  /// Where dword `index` lies: bytes from the begin of the ring. Requires ring_dwords != 0.
  std::size_t ring_offset(std::size_t index) const noexcept { return (read / 4 + index) % ring_dwords * 4; }
};
/// What the engine has still to read. A Diagnostic where the positions cannot be those of this ring: not a multiple of 4,
/// read ahead of wptr, or a whole ring behind it.
Result<Pending, Diagnostic> pending(const RingDump&, std::string_view name = "ring");

std::vector<std::byte> to_bytes(const RingDump&);
/// Does a dump begin so?
bool is_dump(std::span<const std::byte>) noexcept;
/// Reads what to_bytes wrote. Everything that is not exactly that is refused; never more is allocated than was given.
Result<RingDump, Diagnostic> from_bytes(std::span<const std::byte>, std::string_view name);

/// Writes a file, whole or not at all: what was there stays until the new one is on disk. A pipe or a device is written to.
Result<void, Diagnostic> save(const RingDump&, const std::string& path);
Result<RingDump, Diagnostic> load_dump(const std::string& path);

}  // namespace v0
}  // namespace sdma
