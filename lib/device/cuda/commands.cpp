// SPDX-License-Identifier: MIT
#include "commands.hpp"
#include "sdma/core/atomic_ref.hpp"

namespace sdma::inline v0::detail::cuda {
namespace {

constexpr bool overlap(Pointer a, std::size_t a_bytes, Pointer b, std::size_t b_bytes) noexcept {
  return a < b + b_bytes && b < a + a_bytes;
}
/// CU_MEMCPY_FLAG_PREFER_OVERLAP_WITH_COMPUTE.
constexpr unsigned kBesideKernels = 1;

}  // namespace

void Commands::count(Status s) noexcept {
  if (!gpu_.good(s)) return;
  ++issued_;
}

std::uint64_t Commands::progress() noexcept {
  // The word holds the low half of a number that is at most kWindow ahead of what was seen before.
  const auto low = atomic_ref(*parts_.progress).load(std::memory_order_acquire);
  finished_ += static_cast<std::uint32_t>(low - static_cast<std::uint32_t>(finished_));
  return finished_;
}

void Commands::report() noexcept {
  send();
  if (reported_ == issued_) return;
  // The number includes this command itself: the word is written when everything before it is complete.
  const auto number = issued_ + 1;
  count(gpu_.driver().write_value(parts_.stream, reinterpret_cast<Pointer>(parts_.progress),
                                  static_cast<std::uint32_t>(number), 0));
  reported_ = issued_;
}

bool Commands::room(std::uint32_t n) noexcept {
  if (issued() - reported_ >= kReport) report();
  if (issued() + n - finished_ <= kWindow) return true;
  if (issued() + n - progress() <= kWindow) return true;
  report();
  return false;
}

bool Commands::overlaps_held(Pointer dst, Pointer src, std::size_t bytes) const noexcept {
  for (std::uint32_t i = 0; i < held_; ++i)
    if (overlap(dst, bytes, dst_[i], bytes_[i]) || overlap(dst, bytes, src_[i], bytes_[i]) ||
        overlap(src, bytes, dst_[i], bytes_[i]))
      return true;
  return false;
}

void Commands::copy(GpuVa dst, GpuVa src, std::uint64_t bytes) noexcept {
  if (held_ == kBatch || overlaps_held(dst.value, src.value, bytes)) send();
  dst_[held_] = dst.value;
  src_[held_] = src.value;
  bytes_[held_] = bytes;
  ++held_;
}

void Commands::copy_alone(GpuVa dst, GpuVa src, std::uint64_t bytes) noexcept {
  send();
  count(gpu_.driver().copy(dst.value, src.value, bytes, parts_.stream));
}

void Commands::send() noexcept {
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

void Commands::copy_2d(const Copy2D& c) noexcept {
  send();
  count(gpu_.driver().copy_2d(&c, parts_.stream));
}
void Commands::fill_8(GpuVa va, std::uint8_t v, std::uint64_t n) noexcept {
  send();
  count(gpu_.driver().set_8(va.value, v, n, parts_.stream));
}
void Commands::fill_16(GpuVa va, std::uint16_t v, std::uint64_t n) noexcept {
  send();
  count(gpu_.driver().set_16(va.value, v, n, parts_.stream));
}
void Commands::fill_32(GpuVa va, std::uint32_t v, std::uint64_t n) noexcept {
  send();
  count(gpu_.driver().set_32(va.value, v, n, parts_.stream));
}
void Commands::clear_2d(GpuVa va, std::uint64_t pitch, std::uint64_t width, std::uint64_t height) noexcept {
  send();
  count(gpu_.driver().set_2d(va.value, pitch, 0, width, height, parts_.stream));
}
void Commands::write(GpuVa va, std::uint32_t v) noexcept {
  send();
  count(gpu_.driver().write_value(parts_.stream, va.value, v, 0));
}
void Commands::wait(GpuVa va, std::uint32_t v, unsigned how) noexcept {
  send();
  count(gpu_.driver().wait_value(parts_.stream, va.value, v, how));
}

void Commands::launch(Function f, std::array<std::uint64_t, 3> a) noexcept {
  send();
  void* arguments[] = {&a[0], &a[1], &a[2]};
  count(gpu_.driver().launch(f, 1, 1, 1, 1, 1, 1, 0, parts_.stream, arguments, nullptr));
}

std::byte* Commands::payload(std::uint64_t bytes) noexcept {
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

bool Commands::idle() noexcept {
  if (gpu_.error() != kSuccess) return false;
  const auto s = gpu_.driver().stream_query(parts_.stream);
  return s != kNotReady && gpu_.good(s);
}

}  // namespace sdma::inline v0::detail::cuda
