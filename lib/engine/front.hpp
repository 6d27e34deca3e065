// SPDX-License-Identifier: MIT
#pragma once
// The front end of a queue: it fetches packets up to the doorbell, through prefetch and indirect buffers, and holds the
// current one. The pipeline and the simulator drive it.
//
//   FrontEnd front{config};
//   front.doorbell(position, chooser);
//   while (front.load()) { ... front.current() ...; front.consume(outcome); }
//   if (front.fault()) ...                                 // the queue stops; otherwise no packet is left
//
// It never reads a dword past the doorbell or past the end of an indirect buffer. The head of each packet is copied
// when it is fetched, so that it cannot change between the check and the use. A loaded packet has also been admitted
// (admit.hpp). If a function returns false and fault() is empty, there is no packet; otherwise fault() says which
// packet, where and why. A FrontEnd belongs to one thread; call load and consume inside a Section of the reader. Only
// the constructor allocates.
#include "sdma/engine/pipeline.hpp"
#include "window.hpp"

namespace sdma::inline v0::detail {

/// The current packet of the front end, and how it waits.
struct Current : Fetched {
  static constexpr std::uint32_t kForever = grammar::kRetryNames[0].value;

  GpuVa word{};                    ///< the word that it waits for, tests or posts to; an indirect buffer; zero: none
  bool may_wait = false;           ///< its word may hold up the queue
  bool waits = false;              ///< a read has found that the word does not have the awaited value
  bool passed = false;             ///< while it waits: rptr is already past it
  bool holds = false;              ///< while it waits: the engine serves no other queue
  std::uint32_t looks = kForever;  ///< while it waits: how many reads are left
  std::uint64_t landed{};          ///< strict: how many bytes of its work have landed
};

class FrontEnd {
 public:
  explicit FrontEnd(const PipelineConfig&);

  /// False: a bad_doorbell. `model`: null, or makes the choices about prefetch and full rings.
  bool doorbell(std::uint64_t position, Chooser* model) noexcept;
  /// Fetches and admits the next packet, unless that has been done. False: there is none, or a fault.
  bool load() noexcept;
  bool loaded() const noexcept { return have_; }
  /// Is there anything that `load` could fetch?
  bool available() const noexcept;
  Current& current() noexcept { return current_; }
  const Current& current() const noexcept { return current_; }

  /// Moves past the packet and acts on its outcome: skips dwords, or continues in an indirect buffer. False: a bad_ib.
  /// Requires loaded().
  bool consume(Outcome = Outcome::done) noexcept;

  /// Why doorbell, load or consume returned false; no fault if there was just no packet.
  const Fault& fault() const noexcept { return fault_; }
  /// A fault caused by a packet of this queue, complete except for its reason.
  Fault fault_of(const Fetched&, FaultKind) const noexcept;

  std::uint64_t read() const noexcept { return read_; }
  /// Positions from this one on are not read.
  std::uint64_t limit() const noexcept { return limit_; }

 private:
  static constexpr std::uint32_t kPrefetchedIb = 1024;  ///< dwords

  struct Frame {
    GpuVa base{};
    std::uint32_t dwords{}, at{};
    std::uint64_t skip{}, position{};
    bool prefetched{};
  };

  /// A private copy of an indirect buffer, and the packet that it was made for. The ring may change after the copy was
  /// made: a packet with another position, address or length does not use the copy.
  struct PrefetchedIb {
    std::unique_ptr<std::uint32_t[]> words{};
    std::uint64_t position = ~std::uint64_t{};
    GpuVa base{};
    std::uint32_t dwords{};
    bool is_of(const Indirect& ib, std::uint64_t at) const noexcept {
      return position == at && base == ib.base && dwords == ib.dwords;
    }
  };

  std::uint64_t ring_bytes() const noexcept { return ring_.size() * sizeof(std::uint32_t); }
  std::size_t slot(std::uint64_t position) const noexcept {
    return static_cast<std::size_t>(position / sizeof(std::uint32_t) % ring_.size());
  }
  bool fetch() noexcept;
  bool fail(FaultKind, GpuVa = {}, std::string_view rule = {}) noexcept;
  bool refuse_untyped() noexcept;
  void fill_in(Fault&, const Fetched&) const noexcept;
  bool branch(Outcome) noexcept;
  bool call(const Indirect&) noexcept;
  std::uint32_t copy_head(std::uint64_t available) noexcept;
  void take_payload() noexcept;
  void prefetch(std::uint64_t from, std::uint64_t to, Chooser& model) noexcept;
  void prefetch_ib(const Indirect&, std::uint64_t position, Chooser& model) noexcept;
  void skip_now() noexcept;

  std::span<const std::uint32_t> ring_;
  AddressSpace::Reader& reader_;
  std::unique_ptr<std::uint32_t[]> copy_;  ///< twice the ring: a packet across the ring's end lies here in one piece
  PrefetchedIb ib_copy_{};
  std::uint64_t read_ = 0, limit_ = 0, rung_ = 0, skip_ = 0;
  /// The part of the ring that copy_ holds. The front end reads it from there.
  std::uint64_t copied_from_ = 0, copied_to_ = 0;
  std::array<Frame, Pipeline::kMaxDepth> frames_{};
  std::uint32_t depth_ = 0;
  Current current_{};
  bool have_ = false;
  GpuId gpu_;
  EngineId engine_;
  std::uint64_t queue_;
  const Catalogue* packets_;
  Fault fault_{};
};

}  // namespace sdma::inline v0::detail
