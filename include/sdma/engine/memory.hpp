#pragma once
// What GPUs see at their addresses: mappings, made by the control side, looked up by engines without a lock.
//
//   AddressSpace space;
//   space.map({.va = GpuVa{0x7f0000000000}, .bytes = 1 << 20, .host = memory, .owner = 3, .gpus = 0xff});
//
//   AddressSpace::Reader reader{space, GpuId{0}};     // one an engine thread, or one a pipeline
//   {
//     AddressSpace::Reader::Section section{reader};  // a few ns: once a batch of packets, not once an access
//     std::byte* p = reader.at(va, 64, Access::write);  // null: not mapped, for this GPU, in one piece
//   }
//   space.unmap(va, Deadline::in(1s));                // back when no engine can still touch `memory`
//
//   va      0x7f0000000000       0x7f0000100000                     a region may cross from one mapping into the next;
//           |  host A, owner 3   |  host B, owner host   |   hole   an access to the hole is a fault, never a store
//
// A VA may equal the host's address and need not. Mappings do not overlap; va, bytes and host are multiples of 8, so that an
// aligned word lies in one mapping and is as aligned for the host as for the engine.
//
// Threads: map, unmap and drain lock and allocate: control side, any thread. A Reader belongs to one thread; its lookups
// neither lock nor allocate. Between the ends of a Section the mappings that it saw stay as they were: an unmapped one may
// still be seen, and `unmap` waits for it; a new one is seen by the next Section or after `refresh`.
// Errors: Errc::bad_argument, unmapped, timed_out.
#include "sdma/core/deadline.hpp"
#include "sdma/core/result.hpp"
#include "sdma/packets/region.hpp"

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

namespace sdma {
inline namespace v0 {

/// One piece of memory under its GPU address.
struct Mapping {
  static constexpr std::uint32_t kHost = ~0u;  ///< owner: the host's memory
  GpuVa va{};
  std::uint64_t bytes{};
  std::byte* host{};            ///< where the bytes are; the caller keeps them until unmap has returned
  std::uint32_t owner = kHost;  ///< the GPU in whose memory they lie, or kHost
  std::uint64_t gpus = ~0ull;   ///< bit g: GPU g may touch it
  Access access = Access::read_write;
};

class AddressSpace {
 public:
  class Reader;

  AddressSpace();
  ~AddressSpace();  ///< no Reader may be left
  AddressSpace(const AddressSpace&) = delete;
  AddressSpace& operator=(const AddressSpace&) = delete;

  /// bad_argument: empty, not in multiples of 8, no host memory, beyond the end of the addresses, or over another mapping.
  Errc map(const Mapping&);
  /// Takes away the mapping that begins at `va` (unmapped: none does) and waits for every engine that may still use it.
  /// timed_out: it is gone for all who begin now, and somebody may still be inside: keep the memory and `drain` again.
  Errc unmap(GpuVa va, Deadline);
  /// Lets another set of GPUs touch the mapping that begins at `va`; waits as unmap does.
  Errc share(GpuVa va, std::uint64_t gpus, Deadline);
  /// Waits until no engine uses anything that was unmapped before.
  Errc drain(Deadline);

  /// The mapping that holds `va`. A copy: for the control side, for reports, for tests.
  Result<Mapping> find(GpuVa va) const;
  std::vector<Mapping> mappings() const;

 private:
  /// Never changed once it can be seen. `serial` counts up, so that a cache knows the one it was filled from.
  struct Snapshot {
    std::uint64_t serial{};
    std::vector<Mapping> sorted{};
  };
  template <class Change> Errc change(Change) noexcept;
  bool oldest_left(std::uint64_t serial) noexcept;
  Errc wait_for(std::uint64_t serial, Deadline) noexcept;

  mutable std::mutex mutex_;
  std::atomic<const Snapshot*> current_;
  std::atomic<std::uint64_t> serial_;                   ///< of current_, stored after it
  std::vector<std::unique_ptr<const Snapshot>> alive_;  ///< the current one last, before it those that may be in use
  std::vector<Reader*> readers_;
};

/// An engine's way in. See Section: no lookup outside of one.
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

  /// Leaves and enters again: what was mapped meanwhile is seen from here on, and nothing found before may be used.
  void refresh() noexcept {
    leave();
    enter();
  }
  /// The host address of `bytes` bytes at `va`; null unless one mapping holds them all and allows the access.
  std::byte* at(GpuVa va, std::uint64_t bytes, Access a) noexcept {
    const auto s = run(va, bytes, a);
    return s.size() == bytes ? s.data() : nullptr;
  }
  /// As many of the `bytes` bytes at `va` as lie in one piece of host memory; empty: the first is not mapped.
  std::span<std::byte> run(GpuVa va, std::uint64_t bytes, Access a) noexcept {
    for (const auto& m : hits_)
      if (va.value - m.va.value < m.bytes && allows(m.access, a)) return piece(m, va, bytes);
    return search(va, bytes, a);
  }
  /// Is every byte of `r` mapped? Sets `*missing` to the first that is not.
  [[nodiscard]] bool covers(const Region& r, GpuVa* missing = nullptr) noexcept;
  GpuId gpu() const noexcept { return gpu_; }

 private:
  friend class AddressSpace;
  static std::span<std::byte> piece(const Mapping& m, GpuVa va, std::uint64_t bytes) noexcept {
    const auto at = va - m.va, left = m.bytes - at;
    return {m.host + at, bytes < left ? bytes : left};
  }
  void enter() noexcept;
  void leave() noexcept { inside_.store(0, std::memory_order_release); }
  std::span<std::byte> search(GpuVa va, std::uint64_t bytes, Access a) noexcept;
  bool covers_run(GpuVa va, std::uint64_t bytes, Access a, GpuVa* missing) noexcept;

  AddressSpace& space_;
  GpuId gpu_;
  alignas(64) std::atomic<std::uint64_t> inside_{0};  ///< serial of a snapshot no newer than what is used; 0: none is
  const Snapshot* seen_{};
  std::uint64_t serial_{};         ///< of the snapshot that `hits_` comes from
  std::array<Mapping, 4> hits_{};  ///< the last mappings found, this GPU's only
  std::uint32_t oldest_{};
};

}  // namespace v0
}  // namespace sdma
