#pragma once
// The front end of a queue: from the doorbell's dwords to the next packet, through prefetch and indirect buffers.
//
//   FrontEnd front{config};
//   front.doorbell(position, chooser);
//   while (front.fetch(reader)) { ... front.next() ...; front.consume(); }     // false: nothing there, or why() is set
//   front.skip(n);  front.call(indirect);                                      // what control packets do, after consume
//
// Never reads a dword behind the doorbell, nor behind an indirect buffer's end. The head of each packet is copied when it is
// fetched: it cannot change between the check and the use. One thread; allocates at construction only.
#include "sdma/engine/pipeline.hpp"
#include "window.hpp"

namespace sdma {
inline namespace v0 {
namespace detail {

class FrontEnd {
 public:
  explicit FrontEnd(const PipelineConfig&);

  /// "", or why it is a bad_doorbell, as Fault::rule has it. `model`: null, or who decides about prefetch and full rings.
  std::string_view doorbell(std::uint64_t position, Chooser* model) noexcept;
  /// Has the next packet been fetched, or is it now? False: none is there, or `why()` says what is wrong with it.
  bool fetch() noexcept;
  bool fetched() const noexcept { return have_; }
  /// Is there anything that `fetch` could fetch?
  bool available() const noexcept;
  const Fetched& next() const noexcept { return next_; }
  FaultKind why() const noexcept { return why_; }

  /// Steps over the packet. Requires fetched().
  void consume() noexcept;
  /// Steps over the `dwords` dwords behind it: as many as are there now, the rest when they are.
  void skip(std::uint32_t dwords) noexcept;
  /// Goes on in an indirect buffer. `position`: of the INDIRECT. "", or why it is a bad_ib, as Fault::rule has it.
  std::string_view call(const Indirect&, std::uint64_t position) noexcept;

  std::uint64_t read() const noexcept { return read_; }
  /// The whole ring's bytes and how the engine sees it: positions behind this one are not read.
  std::uint64_t limit() const noexcept { return limit_; }

 private:
  static constexpr std::uint32_t kPrefetchedIb = 1024;  ///< dwords

  struct Frame {
    GpuVa base{};
    std::uint32_t dwords{}, at{};
    std::uint64_t skip{}, position{};
    bool prefetched{};
  };

  std::uint64_t ring_bytes() const noexcept { return ring_.size() * sizeof(std::uint32_t); }
  std::size_t slot(std::uint64_t position) const noexcept { return position / sizeof(std::uint32_t) % ring_.size(); }
  std::uint32_t copy_head(std::uint64_t available) noexcept;
  void take_payload() noexcept;
  void prefetch(std::uint64_t from, std::uint64_t to, Chooser& model) noexcept;
  void prefetch_ib(const Indirect&, std::uint64_t position, Chooser& model) noexcept;
  void skip_now() noexcept;

  std::span<const std::uint32_t> ring_;
  AddressSpace::Reader& reader_;
  std::unique_ptr<std::uint32_t[]> copy_;  ///< twice the ring: a packet across the ring's end lies here in one piece
  std::unique_ptr<std::uint32_t[]> ib_copy_;
  std::uint64_t ib_position_ = ~std::uint64_t{};  ///< of the INDIRECT whose buffer is in ib_copy_
  std::uint64_t read_ = 0, limit_ = 0, rung_ = 0, skip_ = 0;
  std::uint64_t copied_from_ = 0, copied_to_ = 0;  ///< what copy_ holds of the ring: read instead of it
  std::array<Frame, Pipeline::kMaxDepth> frames_{};
  std::uint32_t depth_ = 0;
  Fetched next_{};
  bool have_ = false;
  FaultKind why_ = FaultKind::none;
};

}  // namespace detail
}  // namespace v0
}  // namespace sdma
