#include "front.hpp"

#include <algorithm>
#include <atomic>
#include <cstring>

namespace sdma {
inline namespace v0 {
namespace detail {

FrontEnd::FrontEnd(const PipelineConfig& c)
    : ring_(c.ring), reader_(*c.reader), copy_(std::make_unique_for_overwrite<std::uint32_t[]>(2 * c.ring.size())) {
  if (c.ordering == Ordering::adversarial && c.prefetch)
    ib_copy_ = std::make_unique_for_overwrite<std::uint32_t[]>(kPrefetchedIb);
  if (c.rptr) read_ = std::atomic_ref(*c.rptr).load(std::memory_order_acquire);
  limit_ = rung_ = copied_from_ = copied_to_ = read_;
}

std::string_view FrontEnd::doorbell(std::uint64_t position, Chooser* model) noexcept {
  if (position == rung_) return {};
  if (position % sizeof(std::uint32_t) != 0) return "alignment";
  if (position < rung_) return "backwards";
  if (position - read_ > ring_bytes()) return "beyond-ring";
  rung_ = position;
  // Positions a whole ring apart are equal to a front end that counts modulo the ring.
  const bool full = position - read_ == ring_bytes();
  if (full && model && !have_ && model->choose(Choice::full_ring, 2) == 1) {
    limit_ = read_;
    return {};
  }
  const auto from = limit_;
  limit_ = position;
  if (model && ib_copy_ && model->choose(Choice::prefetch, 2) == 1) {
    if (copied_to_ != from) copied_from_ = std::max(from, read_);
    prefetch(std::max(from, read_), position, *model);
  }
  return {};
}

/// Copies [from, to) of the ring, twice, so that every packet in it lies in one piece.
void FrontEnd::prefetch(std::uint64_t from, std::uint64_t to, Chooser& model) noexcept {
  for (auto at = from; at < to; at += sizeof(std::uint32_t))
    copy_[slot(at)] = copy_[slot(at) + ring_.size()] = ring_[slot(at)];
  copied_to_ = to;
  Reader packets{{copy_.get() + slot(from), (to - from) / sizeof(std::uint32_t)}};
  while (packets) {
    const auto at = from + packets.position() * sizeof(std::uint32_t);
    const auto view = packets.next();
    if (view.is<Indirect>()) prefetch_ib(decode<Indirect>(view.dwords), at, model);
  }
}

void FrontEnd::prefetch_ib(const Indirect& ib, std::uint64_t position, Chooser& model) noexcept {
  const bool busy = ib_position_ != ~std::uint64_t{} && (ib_position_ >= read_ || depth_ != 0);
  if (busy || ib.dwords == 0 || ib.dwords > kPrefetchedIb || model.choose(Choice::prefetch, 2) == 0) return;
  const AddressSpace::Reader::Section section{reader_};
  const auto* from = reader_.at(ib.base, std::uint64_t{4} * ib.dwords, Access::read);
  if (!from) return;
  std::memcpy(ib_copy_.get(), from, std::size_t{4} * ib.dwords);
  ib_position_ = position;
}

bool FrontEnd::available() const noexcept {
  if (have_) return true;
  for (auto d = depth_; d > 0; --d)
    if (const auto& f = frames_[d - 1]; f.dwords - f.at > f.skip) return true;
  return limit_ - read_ > skip_ * sizeof(std::uint32_t);
}

void FrontEnd::skip_now() noexcept {
  while (depth_ > 0) {
    auto& f = frames_[depth_ - 1];
    const auto n = static_cast<std::uint32_t>(std::min<std::uint64_t>(f.skip, f.dwords - f.at));
    f.at += n;
    f.skip -= n;
    if (f.at < f.dwords) return;
    --depth_;  // a skip ends with its buffer
  }
  const auto n = std::min(skip_, (limit_ - read_) / sizeof(std::uint32_t));
  read_ += n * sizeof(std::uint32_t);
  skip_ -= n;
}

bool FrontEnd::fetch() noexcept {
  if (have_) return true;
  skip_now();
  const auto left =
      depth_ ? frames_[depth_ - 1].dwords - frames_[depth_ - 1].at : (limit_ - read_) / sizeof(std::uint32_t);
  if (left == 0) return false;
  next_.depth = static_cast<std::uint8_t>(depth_);
  next_.position = depth_ ? frames_[0].position : read_;
  next_.offset = depth_ ? std::uint64_t{4} * frames_[depth_ - 1].at : 0;
  next_.length = 0;
  const auto got = copy_head(left);
  if (got == 0) {
    why_ = FaultKind::unmapped;
    next_.va = frames_[depth_ - 1].base;
    return false;
  }
  next_.info = identify({next_.head.data(), got});
  if (!next_.info || next_.info->recognised_only) {
    why_ = FaultKind::unknown_packet;
    next_.length = 1;
    return false;
  }
  const auto length = next_.info->head <= got ? next_.info->length(next_.head.data()) : left + 1;
  if (length > left) {
    why_ = FaultKind::truncated_packet;
    next_.length = got;
    return false;
  }
  next_.length = static_cast<std::uint32_t>(length);
  take_payload();
  have_ = true;
  return true;
}

/// The dwords that any decision is made from. Gives how many there are; 0: the indirect buffer is no longer mapped.
std::uint32_t FrontEnd::copy_head(std::uint64_t left) noexcept {
  const auto n = std::min<std::uint64_t>(left, next_.head.size());
  const std::uint32_t* from = nullptr;
  if (depth_ != 0) {
    const auto& f = frames_[depth_ - 1];
    const auto* base =
        f.prefetched
            ? ib_copy_.get()
            : reinterpret_cast<const std::uint32_t*>(reader_.at(f.base, std::uint64_t{4} * f.dwords, Access::read));
    if (!base) return 0;
    from = base + f.at;
  } else if (read_ >= copied_from_ && read_ + n * sizeof(std::uint32_t) <= copied_to_) {
    from = copy_.get() + slot(read_);
  } else if (const auto first = ring_.size() - slot(read_); first >= n) {
    from = ring_.data() + slot(read_);
  } else {
    std::copy_n(ring_.begin() + static_cast<std::ptrdiff_t>(slot(read_)), first, next_.head.begin());
    std::copy_n(ring_.begin(), n - first, next_.head.begin() + static_cast<std::ptrdiff_t>(first));
  }
  if (n == next_.head.size() && from) [[likely]]
    std::memcpy(next_.head.data(), from, sizeof next_.head);
  else {
    if (from) std::copy_n(from, n, next_.head.begin());
    std::fill(next_.head.begin() + static_cast<std::ptrdiff_t>(n), next_.head.end(), 0u);
  }
  return static_cast<std::uint32_t>(n);
}

/// Where the dwords behind the fixed part are, until the packet has landed.
void FrontEnd::take_payload() noexcept {
  next_.payload = Fetched::Payload::none;
  next_.payload_dwords = 0;
  next_.in_ring = false;
  const auto& info = *next_.info;
  if (!info.counted || info.counted->kind != Kind::payload) [[likely]]
    return;
  next_.payload_dwords = next_.length - info.fixed;
  if (next_.length <= next_.head.size()) {
    next_.payload = Fetched::Payload::head;
    return;
  }
  if (depth_ != 0) {
    const auto& f = frames_[depth_ - 1];
    next_.payload = Fetched::Payload::va;
    next_.va = f.base + std::uint64_t{4} * (f.at + info.fixed);
    return;
  }
  next_.payload = Fetched::Payload::pointer;
  next_.in_ring = true;
  const auto at = slot(read_);
  if (read_ >= copied_from_ && read_ + std::uint64_t{4} * next_.length <= copied_to_) {
    next_.pointer = copy_.get() + at + info.fixed;
  } else if (at + next_.length <= ring_.size()) {
    next_.pointer = ring_.data() + at + info.fixed;
  } else {
    for (std::size_t i = 0; i < next_.length; ++i) copy_[at + i] = ring_[(at + i) % ring_.size()];
    next_.pointer = copy_.get() + at + info.fixed;
  }
}

void FrontEnd::consume() noexcept {
  have_ = false;
  if (depth_ != 0) frames_[depth_ - 1].at += next_.length;
  else read_ += std::uint64_t{4} * next_.length;
}

void FrontEnd::skip(std::uint32_t dwords) noexcept { (depth_ != 0 ? frames_[depth_ - 1].skip : skip_) += dwords; }

std::string_view FrontEnd::call(const Indirect& ib, std::uint64_t position) noexcept {
  if (depth_ == frames_.size()) return "depth";
  if (!reader_.at(ib.base, std::uint64_t{4} * ib.dwords, Access::read)) return "one-mapping";
  frames_[depth_] = {.base = ib.base,
                     .dwords = ib.dwords,
                     .position = depth_ ? frames_[0].position : position,
                     .prefetched = depth_ == 0 && ib_copy_ && position == ib_position_};
  ++depth_;
  return {};
}

}  // namespace detail
}  // namespace v0
}  // namespace sdma
