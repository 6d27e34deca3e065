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
// A copy is held back until a command of another kind, a copy that overlaps it, a full batch, or `send`: so runs of
// copies become one call. `send` before rptr moves. A single copy goes out as a copy: a batch of one costs more
// (docs/silicon.md).
//
// One thread at a time, with the GPU's context current. Nothing allocates after construction. Internal. Errors: those
// of the GPU (PhysicalGpu::error); every function then does nothing.
#include "gpu.hpp"
#include "sdma/core/atomic_ref.hpp"
#include "sdma/core/units.hpp"

#include <array>
#include <cstddef>
#include <cstdint>

namespace sdma { inline namespace v0_3 { namespace detail::cuda {

constexpr bool overlap(Pointer a, std::size_t a_bytes, Pointer b, std::size_t b_bytes) noexcept {
  return a < b + b_bytes && b < a + a_bytes;
}

/// CU_MEMCPY_FLAG_PREFER_OVERLAP_WITH_COMPUTE.
inline constexpr unsigned kBesideKernels = 1;

struct CommandParts {
  Stream stream{};
  std::uint32_t* progress{};  ///< pinned, zero
  std::byte* payload{};       ///< pinned: kPayloadBytes
  GpuVa staging{};            ///< GPU memory: kStagingBytes
  bool batches = true;
};

class Commands {
 public:
  /// A stream holds 1,020 commands; one more call blocks (measured on H100, driver 580).
  static constexpr std::uint32_t kWindow = 512, kReport = 64, kBatch = 64;
  static constexpr std::uint64_t kStagingBytes = 8u << 20, kPayloadBytes = 64u << 10;

  Commands(PhysicalGpu& g, const CommandParts& p) noexcept : gpu_(g), parts_(p) {}

  const CommandParts& parts() const noexcept { return parts_; }
  /// May `n` more commands be issued now? Reports, so that it will be true at some time.
  bool room(std::uint32_t n) noexcept {
    if (issued() - reported_ >= kReport) report();
    if (issued() + n - finished_ <= kWindow) return true;
    if (issued() + n - progress() <= kWindow) return true;
    report();
    return false;
  }
  std::uint64_t issued() const noexcept { return issued_ + held_; }
  /// Are the first `n` commands complete? Only what was reported is known to be.
  bool finished(std::uint64_t n) noexcept { return progress() >= n; }
  /// How many commands are known to be complete.
  std::uint64_t progress() noexcept {
    // The word holds the low half of a number that is at most kWindow ahead of what was seen before.
    const auto low = atomic_ref(*parts_.progress).load(std::memory_order_acquire);
    finished_ += static_cast<std::uint32_t>(low - static_cast<std::uint32_t>(finished_));
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
  }

  void copy(GpuVa dst, GpuVa src, std::uint64_t bytes) noexcept {
    if (held_ == kBatch || overlaps_held(dst.value, src.value, bytes)) send();
    dst_[held_] = dst.value;
    src_[held_] = src.value;
    bytes_[held_] = bytes;
    ++held_;
  }
  /// Not held back, and never a part of a batch.
  void copy_alone(GpuVa dst, GpuVa src, std::uint64_t bytes) noexcept {
    send();
    count(gpu_.driver().copy(dst.value, src.value, bytes, parts_.stream));
  }
  void copy_2d(const Copy2D& c) noexcept {
    send();
    count(gpu_.driver().copy_2d(&c, parts_.stream));
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

  /// Issues the copies that are held back.
  void send() noexcept {
    const auto n = held_;
    held_ = 0;
    if (n == 0) return;
    const auto& d = gpu_.driver();
    if (n == 1 || !parts_.batches || (!d.copy_batch_13_0 && !d.copy_batch_12_8)) {
      for (std::uint32_t i = 0; i < n; ++i) count(d.copy(dst_[i], src_[i], bytes_[i], parts_.stream));
      return;
    }
    const BatchAttributes how{.flags = kBesideKernels};
    const std::size_t from = 0;
    std::size_t failed = 0;
    const auto s =
        d.copy_batch_13_0
            ? d.copy_batch_13_0(dst_.data(), src_.data(), bytes_.data(), n, &how, &from, 1, parts_.stream)
            : d.copy_batch_12_8(dst_.data(), src_.data(), bytes_.data(), n, &how, &from, 1, &failed, parts_.stream);
    if (gpu_.good(s)) issued_ += n;
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
    if (!gpu_.good(s)) return;
    ++issued_;
  }
  bool overlaps_held(Pointer dst, Pointer src, std::size_t bytes) const noexcept {
    for (std::uint32_t i = 0; i < held_; ++i)
      if (overlap(dst, bytes, dst_[i], bytes_[i]) || overlap(dst, bytes, src_[i], bytes_[i]) ||
          overlap(src, bytes, dst_[i], bytes_[i]))
        return true;
    return false;
  }

  PhysicalGpu& gpu_;
  const CommandParts parts_;
  std::uint64_t issued_ = 0, reported_ = 0, finished_ = 0;
  std::uint64_t payload_taken_ = 0, payload_until_ = 0;  ///< the command after which the payload is free
  std::uint32_t held_ = 0;
  std::array<Pointer, kBatch> dst_{}, src_{};
  std::array<std::size_t, kBatch> bytes_{};
};

}}}  // namespace sdma::v0_3::detail::cuda
