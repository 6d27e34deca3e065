// SPDX-License-Identifier: MIT
#pragma once
// The memory that GPUs see at their virtual addresses. The control path creates mappings, and engines look them up
// without a lock.
//
//   AddressSpace space;
//   space.map({.va = GpuVa{0x7f0000000000}, .bytes = 1 << 20, .host = memory, .owner = 3, .gpus = 0xff});
//
//   AddressSpace::Reader reader{space, GpuId{0}};     // one per engine thread, or one per pipeline
//   {
//     AddressSpace::Reader::Section section{reader};  // a few ns: once per batch of packets, not per access
//     std::byte* p = reader.at(va, 64, Access::write);  // null: not mapped for this GPU in one piece
//   }
//   space.unmap(va, Deadline::in(1s));                // returns once no engine can touch `memory`
//
//   va      0x7f0000000000       0x7f0000100000                     a region may cross from one mapping into the next;
//           |  host A, owner 3   |  host B, owner host   |   hole   an access to the hole is a fault and stores nothing
//
// A VA may equal the host's address, but need not. Mappings do not overlap. va, bytes and host are multiples of 8, so
// that an aligned word lies in one mapping and is also aligned for the host.
//
// Threads: any thread may call map, unmap, share and drain, but they lock and allocate, so they are for the control
// path. A Reader belongs to one thread; its lookups neither lock nor allocate. A Section sees the mappings as they were
// when it began. It may still use a mapping that is being unmapped, and `unmap` waits for it. The next Section, or the
// same Section after `refresh`, sees new mappings.
// Errors: Errc::bad_argument, unmapped, timed_out; no_space: there is no memory for the new list, and nothing has
// changed.
#include "sdma/core/deadline.hpp"
#include "sdma/core/result.hpp"
#include "sdma/packets/region.hpp"

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <vector>

namespace sdma { inline namespace v0_3 {

/// One piece of memory and its GPU address.
struct Mapping {
  static constexpr std::uint32_t kHost = ~0u;  ///< owner: the host's memory
  GpuVa va{};                                  ///< the first address
  std::uint64_t bytes{};                       ///< its size
  std::byte* host{};  ///< where the bytes are; the caller keeps them until unmap, or a later drain, returns ok
  std::uint32_t owner = kHost;         ///< the GPU in whose memory they lie, or kHost
  std::uint64_t gpus = ~0ull;          ///< bit g: GPU g may access it
  Access access = Access::read_write;  ///< what engines may do there
};

class AddressSpace {
 public:
  class Reader;

  AddressSpace();
  ~AddressSpace();  ///< all Readers must have been destroyed
  AddressSpace(const AddressSpace&) = delete;
  AddressSpace& operator=(const AddressSpace&) = delete;

  /// Adds a mapping. bad_argument: the mapping is empty, is not in multiples of 8, has no host memory, ends after the
  /// last address, or overlaps another mapping.
  [[nodiscard]] Errc map(const Mapping& m) { return map({&m, 1}); }
  /// Adds several at once, or none.
  [[nodiscard]] Errc map(std::span<const Mapping>);
  /// Removes the mapping that begins at `va` and waits for every engine that may still use it. unmapped: no mapping
  /// begins there. timed_out: new Sections do not see the mapping, but an engine may still be using it: keep the
  /// memory, and call `drain`.
  [[nodiscard]] Errc unmap(GpuVa va, Deadline d) { return unmap({&va, 1}, d); }
  /// Removes several at once, or none.
  [[nodiscard]] Errc unmap(std::span<const GpuVa> all, Deadline d) { return replace(all, {}, d); }
  /// Removes some mappings and adds others, in one step: an access finds either all old ones or all new ones. Errors as
  /// for unmap and map; then nothing has changed, except after timed_out.
  [[nodiscard]] Errc replace(std::span<const GpuVa> removed, std::span<const Mapping> added, Deadline);
  /// Waits until no engine uses a mapping that was removed before the call. timed_out: an engine may still use one.
  [[nodiscard]] Errc drain(Deadline);

  /// A copy of the mapping that holds `va`, for the control path, reports and tests. unmapped: there is none.
  Result<Mapping> find(GpuVa va) const;
  /// A copy of all mappings, sorted by address.
  std::vector<Mapping> mappings() const;

 private:
  /// A Snapshot is never changed once engines can see it. `serial` counts up, so that a cache knows which snapshot
  /// filled it.
  /// Snapshots share the runs in which they do not differ, so a change costs little even with 100,000 mappings.
  struct Run {
    GpuVa first{};
    std::shared_ptr<const std::vector<Mapping>> sorted{};  ///< not empty
  };
  struct Snapshot {
    std::uint64_t serial{};
    std::vector<Run> runs{};
  };
  static std::size_t runs_to(const std::vector<Run>&, GpuVa) noexcept;
  static const Mapping* lookup(const std::vector<Run>&, GpuVa) noexcept;
  static Errc build(std::vector<Run>&, std::span<const Mapping> sorted);
  static Errc insert(std::vector<Run>&, std::span<const Mapping>);
  static Errc erase(std::vector<Run>&, GpuVa);
  static void store(std::vector<Run>&, std::size_t at, std::span<const Mapping> sorted);
  template <class Change> Errc change(Change) noexcept;
  bool oldest_left(std::uint64_t serial) noexcept;
  Errc wait_for(std::uint64_t serial, Deadline) noexcept;

  mutable std::mutex mutex_;
  std::atomic<const Snapshot*> current_;
  std::atomic<std::uint64_t> serial_;                   ///< the serial of current_; stored after current_
  std::vector<std::unique_ptr<const Snapshot>> alive_;  ///< those that may still be in use, then the current one
  std::vector<Reader*> readers_;
};

/// Looks up memory for an engine. Use it only inside a Section.
class AddressSpace::Reader {
 public:
  Reader(AddressSpace&, GpuId);
  ~Reader();
  Reader(const Reader&) = delete;
  Reader& operator=(const Reader&) = delete;

  class Section {
   public:
    explicit Section(Reader& r) noexcept : r_(r) { r_.enter(); }
    ~Section() { r_.leave(); }
    Section(const Section&) = delete;
    Section& operator=(const Section&) = delete;

   private:
    Reader& r_;
  };

  /// Ends the Section and begins another, which sees mappings that were created meanwhile. Do not use pointers that
  /// were found before the call.
  void refresh() noexcept {
    leave();
    enter();
  }
  /// The host address of `bytes` bytes at `va`; null unless one mapping holds them all and allows the access.
  std::byte* at(GpuVa va, std::uint64_t bytes, Access a) noexcept {
    const auto s = run(va, bytes, a);
    return s.size() == bytes ? s.data() : nullptr;
  }
  /// As many of the `bytes` bytes at `va` as lie in one piece of host memory; empty if the first byte is not mapped or
  /// does not allow the access.
  std::span<std::byte> run(GpuVa va, std::uint64_t bytes, Access a) noexcept {
    for (const auto& m : hits_)
      if (va.value - m.va.value < m.bytes && allows(m.access, a)) return piece(m, va, bytes);
    return search(va, bytes, a);
  }
  /// In whose memory the byte at `va` lies: Mapping::owner; nullopt if it is not mapped or does not allow the access.
  std::optional<std::uint32_t> owner(GpuVa va, Access a) noexcept {
    for (int again = 0; again < 2; ++again) {
      for (const auto& m : hits_)
        if (va.value - m.va.value < m.bytes && allows(m.access, a)) return m.owner;
      if (search(va, 1, a).empty()) break;
    }
    return {};
  }
  /// Is every byte of `r` mapped? Sets `*missing` to the first that is not.
  [[nodiscard]] bool covers(const Region& r, GpuVa* missing = nullptr) noexcept;
  /// The GPU as which this Reader accesses memory.
  GpuId gpu() const noexcept { return gpu_; }

 private:
  friend class AddressSpace;
  static std::span<std::byte> piece(const Mapping& m, GpuVa va, std::uint64_t bytes) noexcept {
    const auto at = va - m.va, left = m.bytes - at;
    return {m.host + at, static_cast<std::size_t>(bytes < left ? bytes : left)};  // the host holds the mapping
  }
  void enter() noexcept;
  void leave() noexcept { inside_.store(0, std::memory_order_release); }
  std::span<std::byte> search(GpuVa va, std::uint64_t bytes, Access a) noexcept;
  bool covers_run(GpuVa va, std::uint64_t bytes, Access a, GpuVa* missing) noexcept;

  AddressSpace& space_;
  GpuId gpu_;
  /// The serial of a snapshot that is not newer than the one in use; 0: none is in use.
  alignas(64) std::atomic<std::uint64_t> inside_{0};
  const Snapshot* seen_{};
  std::uint64_t serial_{};         ///< of the snapshot that `hits_` comes from
  std::array<Mapping, 4> hits_{};  ///< the mappings that were found last, all of them accessible to this GPU
  std::uint32_t oldest_{};
};

}}  // namespace sdma::v0_3
