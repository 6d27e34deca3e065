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
#include "admit.hpp"
#include "pipeline.hpp"
#include "sdma/core/atomic_ref.hpp"
#include "window.hpp"

#include <algorithm>
#include <atomic>
#include <cstring>

namespace sdma { inline namespace v0_3 { namespace detail {

/// The current packet of the front end, and how it waits.
struct Current : Fetched {
  static constexpr std::uint32_t kForever = grammar::kRetryNames[0].value;

  GpuVa word{};                    ///< the word that it waits for, tests or posts to; an indirect buffer; zero: none
  bool may_wait = false;           ///< its word may hold up the queue
  bool stalls = false;             ///< the queue never gets past it
  bool waits = false;              ///< a read has found that the word does not have the awaited value
  bool passed = false;             ///< while it waits: rptr is already past it
  bool holds = false;              ///< while it waits: the engine serves no other queue
  std::uint32_t looks = kForever;  ///< while it waits: how many reads are left
  std::uint64_t landed{};          ///< strict: how many bytes of its work have landed
};

class FrontEnd {
 public:
  explicit FrontEnd(const PipelineConfig& c)
      : ring_(c.ring),
        reader_(*c.reader),
        own_copy_(c.copy.empty() ? new std::uint32_t[2 * c.ring.size()] : nullptr),
        copy_(c.copy.empty() ? own_copy_.get() : c.copy.data()),
        gpu_(c.gpu),
        engine_(c.engine),
        queue_(c.queue),
        indirect_(c.indirect),
        packets_(&catalogue(c.generation)) {
    if (c.ordering == Ordering::adversarial && c.prefetch) ib_copy_.words.reset(new std::uint32_t[kPrefetchedIb]);
    if (c.rptr) read_ = atomic_ref(*c.rptr).load(std::memory_order_acquire);
    limit_ = rung_ = copied_from_ = copied_to_ = read_;
    fault_.generation = c.generation;
  }

  /// Begins anew at the first dword of the ring. Requires a ring of its own, whose positions begin anew as well.
  void restart() noexcept {
    read_ = limit_ = rung_ = skip_ = copied_from_ = copied_to_ = 0;
    ib_copy_.position = ~std::uint64_t{};
    depth_ = 0;
    have_ = false;
    current_ = {};
    fault_ = {};
    fault_.generation = packets_->generation();
  }

  /// False: a bad_doorbell. `model`: null, or makes the choices about prefetch and full rings.
  bool doorbell(std::uint64_t position, Chooser* model) noexcept {
    if (position == rung_) return true;
    const std::string_view why = position % sizeof(std::uint32_t) != 0 ? "alignment"
                                 : position < rung_                    ? "backwards"
                                 : position - read_ > ring_bytes()     ? "beyond-ring"
                                                                       : "";
    if (!why.empty()) {
      fault_ = fault_of({}, FaultKind::bad_doorbell);
      fault_.rule = why;
      fault_.position = position;
      return false;
    }
    rung_ = position;
    // Positions a whole ring apart are equal to a front end that counts modulo the ring.
    const bool full = position - read_ == ring_bytes();
    if (full && model && !have_ && model->choose(Choice::full_ring, 2) == 1) {
      limit_ = read_;
      return true;
    }
    const auto from = limit_;
    limit_ = position;
    if (model && ib_copy_.words && model->choose(Choice::prefetch, 2) == 1) {
      if (copied_to_ != from) copied_from_ = std::max(from, read_);
      prefetch(std::max(from, read_), position, *model);
    }
    return true;
  }
  /// Fetches and admits the next packet, unless that has been done. False: there is none, or a fault.
  bool load() noexcept {
    if (have_) return true;
    if (!fetch()) return false;
    if (indirect_ != IndirectBuffers::run && is<Indirect>(*current_.info)) [[unlikely]]
      return have_ = load_disabled();
    bool good = false;
    typed(current_, reader_, [&](const auto& p) {
      current_.role = role(p);
      current_.word = word(p).va;
      current_.may_wait = may_wait(p);
      current_.stalls = false;
      good = admit(p, reader_, fault_);
      return Outcome::done;
    });
    have_ = good;
    if (!good) [[unlikely]]
      fill_in(fault_, current_);
    return good;
  }
  bool loaded() const noexcept { return have_; }
  /// Is there anything that `load` could fetch?
  bool available() const noexcept {
    if (have_) return true;
    for (auto d = depth_; d > 0; --d)
      if (const auto& f = frames_[d - 1]; f.dwords - f.at > f.skip) return true;
    return limit_ - read_ > skip_ * sizeof(std::uint32_t);
  }
  Current& current() noexcept { return current_; }
  const Current& current() const noexcept { return current_; }

  /// Moves past the packet and acts on its outcome: skips dwords, or continues in an indirect buffer. False: a bad_ib.
  /// Requires loaded().
  bool consume(Outcome outcome = Outcome::done) noexcept {
    have_ = current_.waits = false;
    current_.landed = 0;
    if (depth_ != 0) frames_[depth_ - 1].at += current_.length;
    else read_ += std::uint64_t{4} * current_.length;
    if (outcome != Outcome::skip && outcome != Outcome::call) [[likely]]
      return true;
    return branch(outcome);
  }

  /// Why doorbell, load or consume returned false; no fault if there was just no packet.
  const Fault& fault() const noexcept { return fault_; }
  /// A fault caused by a packet of this queue, complete except for its reason.
  Fault fault_of(const Fetched& at, FaultKind kind) const noexcept {
    Fault f;
    f.kind = kind;
    fill_in(f, at);
    return f;
  }

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
  bool fetch() noexcept {
    skip_now();
    const auto left =
        depth_ ? frames_[depth_ - 1].dwords - frames_[depth_ - 1].at : (limit_ - read_) / sizeof(std::uint32_t);
    if (left == 0) return false;
    current_.depth = static_cast<std::uint8_t>(depth_);
    current_.position = depth_ ? frames_[0].position : read_;
    current_.offset = depth_ ? std::uint64_t{4} * frames_[depth_ - 1].at : 0;
    current_.length = 0;
    const auto got = copy_head(left);
    if (got == 0) return fail(FaultKind::unmapped, frames_[depth_ - 1].base);
    current_.info = packets_->identify({current_.head.data(), got});
    if (!current_.info || current_.info->foreign) {
      current_.length = 1;
      return fail(FaultKind::unknown_packet);
    }
    const auto length = current_.info->head <= got ? current_.info->length(current_.head.data()) : left + 1;
    if (length > left) {
      current_.length = got;
      return fail(FaultKind::truncated_packet);
    }
    current_.length = static_cast<std::uint32_t>(length);
    if (!current_.info->typed) [[unlikely]]
      return refuse_untyped();
    take_payload();
    return true;
  }
  /// An INDIRECT that does not run: its buffer is not read.
  bool load_disabled() noexcept {
    if (indirect_ == IndirectBuffers::fault)
      return fail(FaultKind::bad_ib, decode<Indirect>(current_.head, *current_.info).base, "disabled");
    current_.role = role(Indirect{});
    current_.word = {};
    current_.may_wait = current_.stalls = indirect_ == IndirectBuffers::stall;
    return true;
  }
  bool fail(FaultKind kind, GpuVa va = {}, std::string_view rule = {}) noexcept {
    fault_ = fault_of(current_, kind);
    fault_.va = va;
    fault_.rule = rule;
    return false;
  }
  /// A packet that this generation has, and that software cannot execute.
  bool refuse_untyped() noexcept {
    if (current_.info->fields_unknown)
      return fail(FaultKind::unsupported, {}, "its fields are not described for this generation");
    if (current_.info->privilege == Privilege::kernel) return fail(FaultKind::privileged);
    return fail(FaultKind::unsupported, {}, "software does not execute this packet");
  }
  void fill_in(Fault& f, const Fetched& at) const noexcept {
    f.gpu = gpu_;
    f.engine = engine_;
    f.queue = queue_;
    f.generation = packets_->generation();
    f.position = at.position;
    f.offset = at.offset;
    f.depth = at.depth;
    f.dword_count = static_cast<std::uint8_t>(std::min<std::size_t>(at.length, f.dwords.size()));
    std::copy_n(at.head.begin(), f.dword_count, f.dwords.begin());
  }
  /// After a control packet. Dwords to skip that are not published yet are skipped when they are.
  bool branch(Outcome outcome) noexcept {
    bool good = true;
    typed(current_, reader_, [&](const auto& p) {
      if (outcome == Outcome::skip) (depth_ != 0 ? frames_[depth_ - 1].skip : skip_) += skipped(p);
      else if constexpr (std::is_same_v<decltype(p), const Indirect&>) good = call(p);
      return Outcome::done;
    });
    return good;
  }
  bool call(const Indirect& ib) noexcept {
    if (depth_ == frames_.size()) return fail(FaultKind::bad_ib, ib.base, "depth");
    if (!reader_.at(ib.base, std::uint64_t{4} * ib.dwords, Access::read))
      return fail(FaultKind::bad_ib, ib.base, "one-mapping");
    const auto position = current_.position;
    frames_[depth_] = {.base = ib.base,
                       .dwords = ib.dwords,
                       .position = position,
                       .prefetched = depth_ == 0 && ib_copy_.is_of(ib, position)};
    ++depth_;
    return true;
  }
  /// Loads the dwords that all decisions use. Returns their number; 0: the indirect buffer is no longer mapped.
  std::uint32_t copy_head(std::uint64_t left) noexcept {
    const auto n = std::min<std::uint64_t>(left, current_.head.size());
    const std::uint32_t* from = nullptr;
    if (depth_ != 0) {
      const auto& f = frames_[depth_ - 1];
      const auto* base =
          f.prefetched
              ? ib_copy_.words.get()
              : reinterpret_cast<const std::uint32_t*>(reader_.at(f.base, std::uint64_t{4} * f.dwords, Access::read));
      if (!base) return 0;
      from = base + f.at;
    } else if (read_ >= copied_from_ && read_ + n * sizeof(std::uint32_t) <= copied_to_) {
      from = copy_ + slot(read_);
    } else if (const auto first = ring_.size() - slot(read_); first >= n) {
      from = ring_.data() + slot(read_);
    } else {
      std::copy_n(ring_.begin() + static_cast<std::ptrdiff_t>(slot(read_)), first, current_.head.begin());
      std::copy_n(ring_.begin(), n - first, current_.head.begin() + static_cast<std::ptrdiff_t>(first));
    }
    if (n == current_.head.size() && from) [[likely]]
      std::memcpy(current_.head.data(), from, sizeof current_.head);
    else {
      if (from) std::copy_n(from, n, current_.head.begin());
      std::fill(current_.head.begin() + static_cast<std::ptrdiff_t>(n), current_.head.end(), 0u);
    }
    return static_cast<std::uint32_t>(n);
  }
  /// Where the dwords after the fixed part are, until the packet has landed.
  void take_payload() noexcept {
    current_.payload = Fetched::Payload::none;
    current_.payload_dwords = 0;
    current_.in_ring = false;
    const auto& info = *current_.info;
    if (!info.counted || info.counted->kind != Kind::payload) [[likely]]
      return;
    current_.payload_dwords = current_.length - info.fixed;
    if (current_.length <= current_.head.size()) {
      current_.payload = Fetched::Payload::head;
      return;
    }
    if (depth_ != 0) {
      const auto& f = frames_[depth_ - 1];
      current_.payload = Fetched::Payload::va;
      current_.va = f.base + std::uint64_t{4} * (f.at + info.fixed);
      return;
    }
    current_.payload = Fetched::Payload::pointer;
    current_.in_ring = true;
    const auto at = slot(read_);
    if (read_ >= copied_from_ && read_ + std::uint64_t{4} * current_.length <= copied_to_) {
      current_.pointer = copy_ + at + info.fixed;
    } else if (at + current_.length <= ring_.size()) {
      current_.pointer = ring_.data() + at + info.fixed;
    } else {
      for (std::size_t i = 0; i < current_.length; ++i) copy_[at + i] = ring_[(at + i) % ring_.size()];
      current_.pointer = copy_ + at + info.fixed;
    }
  }
  /// Copies [from, to) of the ring, twice, so that every packet in it lies in one piece.
  void prefetch(std::uint64_t from, std::uint64_t to, Chooser& model) noexcept {
    for (auto at = from; at < to; at += sizeof(std::uint32_t))
      copy_[slot(at)] = copy_[slot(at) + ring_.size()] = ring_[slot(at)];
    copied_to_ = to;
    Reader packets{{copy_ + slot(from), static_cast<std::size_t>((to - from) / sizeof(std::uint32_t))}, *packets_};
    while (packets) {
      const auto at = from + packets.position_dwords() * sizeof(std::uint32_t);
      const auto view = packets.next();
      if (view.is<Indirect>() && indirect_ == IndirectBuffers::run)
        prefetch_ib(decode<Indirect>(view.dwords, *view.info), at, model);
    }
  }
  void prefetch_ib(const Indirect& ib, std::uint64_t position, Chooser& model) noexcept {
    const bool busy = ib_copy_.position != ~std::uint64_t{} && (ib_copy_.position >= read_ || depth_ != 0);
    if (busy || ib.dwords == 0 || ib.dwords > kPrefetchedIb || model.choose(Choice::prefetch, 2) == 0) return;
    const AddressSpace::Reader::Section section{reader_};
    const auto* from = reader_.at(ib.base, std::uint64_t{4} * ib.dwords, Access::read);
    if (!from) return;
    std::memcpy(ib_copy_.words.get(), from, std::size_t{4} * ib.dwords);
    ib_copy_.position = position;
    ib_copy_.base = ib.base;
    ib_copy_.dwords = ib.dwords;
  }
  void skip_now() noexcept {
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

  std::span<const std::uint32_t> ring_;
  AddressSpace::Reader& reader_;
  std::unique_ptr<std::uint32_t[]> own_copy_;  ///< null if the config has one
  std::uint32_t* copy_;  ///< twice the ring: a packet across the ring's end lies here in one piece
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
  IndirectBuffers indirect_;
  const Catalogue* packets_;
  Fault fault_{};
};

}}}  // namespace sdma::v0_3::detail
