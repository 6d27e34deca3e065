// SPDX-License-Identifier: MIT
#pragma once
// The commands of one stream: copies (in batches where that helps), written values, waits, kernels; and those finished.
//
//   Commands c(gpu, parts);
//   if (!c.room(3)) return ...;                      // three more commands would exceed the window
//   c.copy(dst, src, bytes);  c.write(va, 1);        // never block; an error stops the GPU
//   c.report();                                      // everything issued so far will be seen as finished when it is
//   c.finished(c.issued());
//
// A command is a call of the driver, and a batch of copies is one. A copy is held back until a command of another kind,
// a copy that overlaps it, a full batch, or `send`: so runs of copies become one call. `send` before rptr moves. A
// single copy goes out as a copy: a batch of one costs more (docs/silicon.md).
//
//   batch [report] batch [report] ..     the stream says what is done: so it is known, without a call, whether the
//                                        engine has enough to do. Reports hold the engine up for a moment, so the more
//                                        it has to do, the rarer they are
//
// Boxes are held back, too, while their shapes are equal. Then their rows become copies, plane by plane, or, while the
// engine is short of work, each box becomes a strided copy (cost.hpp).
//
// If the driver refuses a batch (it takes none in a capture, and none on the legacy stream), its copies are issued one
// by one, and so are all later ones: `CudaIssued::refused` counts it.
//
// One thread at a time, with the GPU's context current. Nothing allocates after construction. Internal. Errors: those
// of the GPU (PhysicalGpu::error); every function then does nothing.
#include "cost.hpp"
#include "fifo.hpp"
#include "gpu.hpp"
#include "held_boxes.hpp"
#include "held_copies.hpp"
#include "sdma/core/atomic_ref.hpp"
#include "sdma/core/units.hpp"
#include "sdma/device/cuda.hpp"

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <utility>

namespace sdma { inline namespace v0_3 { namespace detail::cuda {

/// CU_MEMCPY_FLAG_PREFER_OVERLAP_WITH_COMPUTE.
inline constexpr unsigned kBesideKernels = 1;

/// What all queues of a device have issued: CudaIssued, while they count.
struct Counters {
  using Counter = std::atomic<std::uint64_t>;
  Counter calls{0}, copies{0}, batches{0}, boxes{0}, rows{0}, refused{0}, wakes{0};
  static void add(Counter& c, std::uint64_t n = 1) noexcept { c.fetch_add(n, std::memory_order_relaxed); }
  CudaIssued now() const noexcept {
    const auto get = [](const Counter& c) { return c.load(std::memory_order_relaxed); };
    return {.calls = get(calls),
            .copies = get(copies),
            .batches = get(batches),
            .boxes = get(boxes),
            .rows = get(rows),
            .refused = get(refused),
            .wakes = get(wakes)};
  }
};

struct CommandParts {
  Stream stream{};
  std::uint32_t* progress{};  ///< pinned, zero
  std::byte* payload{};       ///< pinned: kPayloadBytes
  GpuVa staging{};            ///< GPU memory: kStagingBytes
  bool batches = true;
  Counters* counters{};
};

class Commands {
 public:
  /// A stream holds 1,020 calls; one more blocks (measured on H100 and H200, driver 580). The window leaves room for
  /// what is held back and for reports. A stream holds about 26,000 copies in batches (H200).
  static constexpr std::uint32_t kWindow = 768, kReport = 64, kMostCopies = 12288;
  static constexpr std::uint64_t kStagingBytes = 8u << 20, kPayloadBytes = 64u << 10;

  Commands(PhysicalGpu& g, const CommandParts& p) noexcept
      : gpu_(g), parts_(p), batches_(p.batches && (g.driver().copy_batch_13_0 || g.driver().copy_batch_12_8)) {}

  const CommandParts& parts() const noexcept { return parts_; }
  /// May `n` more commands be issued now? Reports, so that it will be true at some time.
  bool room(std::uint32_t n) noexcept {
    if (issued() - reported_ >= kReport) report();
    const auto fits = [&] { return issued() + n - finished_ <= kWindow && sent_.copies - done_.copies <= kMostCopies; };
    if (fits()) return true;
    progress();
    if (fits()) return true;
    report();
    return false;
  }
  /// How many have been issued, and at most will be for what is held back.
  std::uint64_t issued() const noexcept {
    const auto held = held_.count() + boxes_.count() * boxes_.rows();
    return issued_ + (batches_ ? (held + HeldCopies::kMost - 1) / HeldCopies::kMost + boxes_.count() : held);
  }
  /// Are the first `n` commands complete? Only what was reported is known to be.
  bool finished(std::uint64_t n) noexcept { return progress() >= n; }
  /// How many commands are known to be complete.
  std::uint64_t progress() noexcept {
    // The word holds the low half of a number that is at most kWindow ahead of what was seen before.
    const auto low = atomic_ref(*parts_.progress).load(std::memory_order_acquire);
    finished_ += static_cast<std::uint32_t>(low - static_cast<std::uint32_t>(finished_));
    for (; marks_.count != 0 && marks_.front().command <= finished_; marks_.pop()) done_ = marks_.front().load;
    if (finished_ >= issued_) done_ = sent_;
    return finished_;
  }
  /// Asks the stream to say so when everything that has been issued is complete.
  void report() noexcept {
    send();
    if (reported_ == issued_) return;
    // The number includes this command itself: the word is written when everything before it is complete.
    const auto number = issued_ + 1;
    count(gpu_.driver().write_value(parts_.stream, reinterpret_cast<Pointer>(parts_.progress),
                                    static_cast<std::uint32_t>(number), 0));
    reported_ = issued_;
    if (!marks_.full()) marks_.push({number, sent_});
    marked_ = sent_.ns;
  }

  void copy(GpuVa dst, GpuVa src, std::uint64_t bytes) noexcept {
    send_boxes();
    hold(dst.value, src.value, bytes);
  }
  /// A box with rows that do not overlap. `strided`: it may become a strided copy.
  void copy_rows(const Copy2D& c, bool strided) noexcept {
    if (!boxes_.take(c)) {
      send_boxes();
      (void)boxes_.take(c);
    }
    strided_ = strided;
    if (boxes_.full()) send_boxes();
  }
  /// Not held back, and never a part of a batch.
  void copy_alone(GpuVa dst, GpuVa src, std::uint64_t bytes) noexcept {
    send();
    copy_now(dst.value, src.value, bytes);
  }
  void copy_2d(const Copy2D& c) noexcept {
    send();
    count(gpu_.driver().copy_2d(&c, parts_.stream));
    Counters::add(parts_.counters->boxes);
    Counters::add(parts_.counters->rows, c.height);
    sent_.ns += kStridedNs + c.height * copy_ns(c.width);
    mark();
  }
  void fill_8(GpuVa va, std::uint8_t v, std::uint64_t n) noexcept {
    send();
    count(gpu_.driver().set_8(va.value, v, n, parts_.stream));
  }
  void fill_16(GpuVa va, std::uint16_t v, std::uint64_t n) noexcept {
    send();
    count(gpu_.driver().set_16(va.value, v, n, parts_.stream));
  }
  void fill_32(GpuVa va, std::uint32_t v, std::uint64_t n) noexcept {
    send();
    count(gpu_.driver().set_32(va.value, v, n, parts_.stream));
  }
  void clear_2d(GpuVa va, std::uint64_t pitch, std::uint64_t width, std::uint64_t height) noexcept {
    send();
    count(gpu_.driver().set_2d(va.value, pitch, 0, width, height, parts_.stream));
  }
  void write(GpuVa va, std::uint32_t v) noexcept {
    send();
    count(gpu_.driver().write_value(parts_.stream, va.value, v, 0));
  }
  void wait(GpuVa va, std::uint32_t v, unsigned how) noexcept {
    send();
    count(gpu_.driver().wait_value(parts_.stream, va.value, v, how));
  }
  /// A kernel of one thread with these 64-bit arguments.
  void launch(Function f, std::array<std::uint64_t, 3> a) noexcept {
    send();
    void* arguments[] = {&a[0], &a[1], &a[2]};
    count(gpu_.driver().launch(f, 1, 1, 1, 1, 1, 1, 0, parts_.stream, arguments, nullptr));
  }

  /// Issues what is held back.
  void send() noexcept {
    send_boxes();
    send_copies();
  }
  /// Room for `bytes` of payload in pinned memory, until the commands that are issued before `payload_used`; null: come
  /// back when earlier commands are complete.
  std::byte* payload(std::uint64_t bytes) noexcept {
    if (payload_taken_ + bytes > kPayloadBytes) {
      if (!finished(payload_until_)) {
        report();
        return nullptr;
      }
      payload_taken_ = 0;
    }
    auto* const at = parts_.payload + payload_taken_;
    payload_taken_ += (bytes + 63) / 64 * 64;
    return at;
  }
  void payload_used() noexcept { payload_until_ = issued(); }
  /// Has the stream ended all of its commands? An error counts as not.
  bool idle() noexcept {
    if (gpu_.error() != kSuccess) return false;
    const auto s = gpu_.driver().stream_query(parts_.stream);
    return s != kNotReady && gpu_.good(s);
  }

 private:
  void count(Status s) noexcept {
    Counters::add(parts_.counters->calls);
    if (gpu_.good(s)) ++issued_;
  }
  /// Has the engine so little left to do that it may end before the host has issued another batch? Only what was
  /// reported is known to be done. False while copies are held back.
  bool starving() noexcept {
    if (held_.count() != 0) return false;
    progress();
    return sent_.ns - done_.ns < kBusyNs;
  }
  void hold(Pointer dst, Pointer src, std::size_t bytes) noexcept {
    if (held_.clashes(dst, src, bytes)) send_copies();
    held_.add(dst, src, bytes);
    if (held_.full()) send_copies();
  }
  void send_boxes() noexcept {
    const auto n = boxes_.count();
    if (n == 0 || std::exchange(sending_, true)) return;
    std::uint32_t first = 0;
    if (strided_ && boxes_.rows() >= kFewestStridedRows)
      for (; first < n && starving(); ++first) copy_2d(boxes_.whole(first));
    for (std::uint64_t r = 0; r < boxes_.rows(); ++r)
      for (auto i = first; i < n; ++i) {
        const auto c = boxes_.row(r, i);
        hold(c.dst, c.src, c.bytes);
      }
    boxes_.clear();
    sending_ = false;
  }
  void send_copies() noexcept {
    const auto n = held_.count();
    if (n == 0) return;
    if (n == 1 || !batches_ || !send_batch())
      for (std::uint32_t i = 0; i < n; ++i) copy_now(held_.dst()[i], held_.src()[i], held_.bytes()[i]);
    sent_.copies += n;
    for (std::uint32_t i = 0; i < n; ++i) sent_.ns += copy_ns(held_.bytes()[i]);
    held_.clear();
    if (n == HeldCopies::kMost) mark();
  }
  void copy_now(Pointer dst, Pointer src, std::size_t bytes) noexcept {
    Counters::add(parts_.counters->copies);
    count(gpu_.driver().copy(dst, src, bytes, parts_.stream));
  }
  /// False: the driver has refused it, and nothing is issued.
  bool send_batch() noexcept {
    const BatchAttributes how{.flags = kBesideKernels};
    const std::size_t from = 0, n = held_.count();
    std::size_t failed = 0;
    const auto& d = gpu_.driver();
    const auto s =
        d.copy_batch_13_0
            ? d.copy_batch_13_0(held_.dst(), held_.src(), held_.bytes(), n, &how, &from, 1, parts_.stream)
            : d.copy_batch_12_8(held_.dst(), held_.src(), held_.bytes(), n, &how, &from, 1, &failed, parts_.stream);
    batches_ = s != kInvalidValue && s != kNotSupported && s != kCaptureUnsupported;
    if (!batches_) {
      Counters::add(parts_.counters->calls);
      Counters::add(parts_.counters->refused);
      return false;
    }
    count(s);
    Counters::add(parts_.counters->batches);
    Counters::add(parts_.counters->copies, n);
    return true;
  }
  /// A report of which `starving` learns, if it is time for one.
  void mark() noexcept {
    const bool much = sent_.ns - done_.ns >= 8 * kBusyNs;
    if (sent_.ns - marked_ >= (much ? 8 * kBusyNs : kBusyNs / 2) && !marks_.full()) report();
  }
  struct Load {
    std::uint64_t ns{};      ///< of the engine, by cost.hpp
    std::uint64_t copies{};  ///< in batches or alone
  };
  /// When that command is complete, so is all that.
  struct Mark {
    std::uint64_t command{};
    Load load{};
  };

  PhysicalGpu& gpu_;
  const CommandParts parts_;
  std::uint64_t issued_ = 0, reported_ = 0, finished_ = 0;
  std::uint64_t payload_taken_ = 0, payload_until_ = 0;  ///< the command after which the payload is free
  HeldCopies held_{};                                    ///< earlier than those of boxes_
  HeldBoxes boxes_{};
  bool batches_, strided_ = false, sending_ = false;
  Load sent_{}, done_{};  ///< issued, and known to be complete
  std::uint64_t marked_ = 0;
  Fifo<Mark, 64> marks_{};
};

}}}  // namespace sdma::v0_3::detail::cuda
