// SPDX-License-Identifier: MIT
#pragma once
// A ring as a file, with its positions and dwords, so that you can examine a stuck queue later and elsewhere.
//
//   save(dump(ring, gpu, engine, "all-gather, rank 3"), "stuck.ring");
//
//   auto d = load_dump("stuck.ring");                      // or from_bytes(bytes, "<stdin>") for what came from a pipe
//   auto p = pending(*d);                                  // what the engine has not read yet, in order and unwrapped
//   for (Reader r{p->dwords}; r;) {
//     auto offset = p->ring_offset(r.position_dwords());    // bytes from the start of the ring
//     auto packet = r.next();
//   }
//
// A tool that accepts several kinds of input calls is_dump(bytes) first, and then disassembles `pending` (or all of
// `dwords`, to include what the engine has already read). A dump records what was found, so its positions may
// contradict each other. from_bytes accepts such a dump, and `pending` reports the contradiction.
//
//   offset    0 "SDMARING"   8 version: 1   12 length of this header: 72 bytes
//            16 read   24 committed   32 reserved   40 wptr   48 doorbell      in bytes, 64 bits each
//            56 gpu   60 engine   64 length of the label, in bytes   68 length of the ring, in dwords
//            72 the label, padded with zeros to a multiple of 4; then the dwords of the ring
//
// All numbers are little-endian.
//
// `dump` reads memory while others write it: dwords between committed and reserved are unfinished, and packets that are
// published while it copies may be missing. Everything here allocates. Dumps are plain values; any thread may use them.
// Errors: Diagnostics whose rule is "dump" and whose `where` is "name:0xOFFSET".
#include "sdma/core/diagnostic.hpp"
#include "sdma/core/units.hpp"
#include "sdma/queue/ring.hpp"

#include <cstddef>
#include <string>
#include <vector>

namespace sdma { inline namespace v0_3 {

/// The contents and positions of a ring at one moment.
struct RingDump {
  std::uint64_t read{}, committed{}, reserved{};  ///< bytes, as Ring::positions
  std::uint64_t wptr{}, doorbell{};               ///< the values in memory; doorbell is 0 if the ring has none
  GpuId gpu{};                                    ///< the GPU whose engine serves it
  EngineId engine{};                              ///< the engine that serves it
  std::string label{};                            ///< free text that identifies the dump; at most 4096 bytes
  std::vector<std::uint32_t> dwords{};            ///< the whole ring
};

inline constexpr std::size_t kMaxDumpLabel = 4096;                   ///< the most bytes of a label
inline constexpr std::size_t kMaxDumpDwords = std::size_t{1} << 28;  ///< 1 GiB: larger than any ring

namespace detail {
RingDump snapshot(const RingMemory&, std::uint64_t read, std::uint64_t committed, std::uint64_t reserved);
}  // namespace detail

/// A copy of the ring in its current state. The label is cut to kMaxDumpLabel bytes.
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
  std::vector<std::uint32_t> dwords{};  ///< those that the engine has not read
  std::uint64_t read{};                 ///< position of the first dword
  std::size_t ring_dwords{};            ///< the ring's size in dwords

  /// Where dword `index` lies, in bytes from the start of the ring. Requires ring_dwords != 0.
  std::size_t ring_offset(std::size_t index) const noexcept {
    return static_cast<std::size_t>((read / 4 + index) % ring_dwords * 4);
  }
};
/// What the engine has not read yet. Returns a Diagnostic if the positions are impossible for this ring: one is not a
/// multiple of 4, or `read` is ahead of wptr, or `read` lags wptr by a whole ring or more.
Result<Pending, Diagnostic> pending(const RingDump&, std::string_view name = "ring");

/// The dump as the bytes of a .ring file.
std::vector<std::byte> to_bytes(const RingDump&);
/// Do these bytes begin like a dump?
bool is_dump(std::span<const std::byte>) noexcept;
/// Reads what to_bytes wrote, and refuses anything else. Allocates at most the size of its input.
Result<RingDump, Diagnostic> from_bytes(std::span<const std::byte>, std::string_view name);

/// Writes a file, whole or not at all (core/file.hpp). `path`: "-" is standard output.
Result<void, Diagnostic> save(const RingDump&, const std::string& path);
Result<RingDump, Diagnostic> load_dump(const std::string& path);

}}  // namespace sdma::v0_3
