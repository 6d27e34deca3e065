// SPDX-License-Identifier: MIT
#pragma once
// The memory of a simulated schedule: every buffer and signal at its link address, in pages that take no memory until
// they are accessed. Internal.
//
//   LinkMemory memory{schedule};
//   memory.watch(word, 8);                              // for each queue's packets
//   memory.buffers(contents);                           // then, once: the buffers are mapped
//   auto& reader = memory.reader(gpu);                  // what that GPU may access
//   memory.watched(region)                              // does any poll, wait or condition read a word in it?
//   memory.home(va)                                     // the place that the memory belongs to
//
// `resolve` replaces an alias by the address of the bytes that it is an alias of. Errors: `findings`.
//
// Where std::size_t has 32 bits, the buffers may be larger than the address space, and pages take memory at once.
// There, a buffer whose bytes do not matter shares a few MiB with all others of its kind: its addresses are valid, and
// what is stored there gets lost.
//
//   va    | buffer of 40 MiB    |          bytes matter if a word of the buffer is watched, if a packet that does not
//         |  16  |  16  |   8   |          just move bytes accesses it, or one that also touches such a word
//   host  | shared, 16 MiB |
#include "../schedule/symbols.hpp"
#include "sdma/engine/memory.hpp"
#include "sdma/schedule/schedule.hpp"

#include <deque>
#include <memory>
#include <vector>

namespace sdma::inline v0::detail {

class LinkMemory {
 public:
  explicit LinkMemory(const Schedule&);
  ~LinkMemory();
  LinkMemory(const LinkMemory&) = delete;
  LinkMemory& operator=(const LinkMemory&) = delete;

  /// Is memory too scarce for every buffer to have bytes of its own?
  static constexpr bool kScarce = sizeof(std::size_t) < 8;
  /// The regions of a packet, resolved; `moves`: it only moves bytes. Needed if memory is scarce, before `buffers`.
  void accesses(std::vector<Region>, bool moves);
  /// Maps the buffers. `all`: each byte matters. Call it once, after `watch` and `accesses` and before any access.
  void buffers(bool all);

  std::vector<Diagnostic>& findings() noexcept { return findings_; }
  AddressSpace::Reader& reader(std::uint32_t gpu) noexcept { return readers_[gpu]; }

  GpuVa resolve(GpuVa va) const noexcept { return detail::resolve(s_, va); }
  /// Requires a resolved address.
  Place home(GpuVa) const noexcept;
  /// The byte at a resolved address; null if there is none.
  std::byte* at(GpuVa) noexcept;
  std::uint64_t value(std::size_t signal) noexcept;
  void set(std::size_t signal, std::uint64_t) noexcept;

  /// Requires a resolved address.
  void watch(GpuVa va, std::uint64_t bytes);
  bool watched(const Region&) const noexcept;

 private:
  struct Piece {
    std::byte* host{};
    std::size_t bytes{};
  };
  void alias(const SymbolOffset&);
  void buffer(const SymbolOffset&);
  void shared(const SymbolOffset&);
  bool matters(const SymbolOffset&) const;
  void no_room(const SymbolOffset&);
  void map(const SymbolOffset&, std::byte* host, std::size_t bytes, const std::vector<Place>& gpus);
  void map(const SymbolOffset&, std::vector<Mapping>, const std::vector<Place>& gpus);

  const Schedule& s_;
  std::vector<Diagnostic> findings_;
  std::vector<Piece> buffers_, signals_;
  std::vector<std::uint64_t> words_;  ///< signals' memory
  AddressSpace space_;
  std::deque<AddressSpace::Reader> readers_;
  std::vector<std::pair<std::uint64_t, std::uint64_t>> watched_;  ///< ranges of buffers
  std::vector<std::pair<std::vector<Region>, bool>> accesses_;    ///< of `accesses`
  std::vector<std::uint64_t> shared_;                             ///< the bytes that do not matter
};

}  // namespace sdma::inline v0::detail
