// SPDX-License-Identifier: MIT
#include "transfer.hpp"

#include "waits.hpp"

#include <algorithm>
#include <atomic>
#include <cstring>

namespace stand_in {
namespace {

constexpr std::size_t kWord = 4, kWords = 4;  ///< up to 16 bytes move as words

struct Run {
  Pointer dst, src;
  std::size_t bytes;
};

std::optional<Piece> find(const Side& side, Pointer at, std::size_t bytes, int device, Use use) {
  if (side.pageable) return Piece{.keep = {}, .data = reinterpret_cast<std::byte*>(at), .size = bytes};
  return find_memory(at, bytes, device, use);
}

bool as_words(const void* at, std::size_t bytes) {
  return bytes <= kWord * kWords && bytes % kWord == 0 && reinterpret_cast<std::uintptr_t>(at) % kWord == 0;
}
std::atomic_ref<std::uint32_t> word(std::byte* at) { return std::atomic_ref(*reinterpret_cast<std::uint32_t*>(at)); }

/// GPU memory may be read while another stream writes it, as on a GPU: the
/// thread sanitizer does not watch that. It watches accesses to host memory.
__attribute__((no_sanitize("thread"))) void unwatched(std::byte* to, const std::byte* from, std::size_t bytes) {
#if defined(__x86_64__)
  asm volatile("rep movsb" : "+D"(to), "+S"(from), "+c"(bytes) : : "memory");  // a call of memcpy would be watched
#else
  for (std::size_t i = 0; i < bytes; ++i) to[i] = from[i];
#endif
}
void move_bytes(std::byte* to, bool to_gpu, const std::byte* from, bool from_gpu, std::size_t bytes) {
  if (!to_gpu && !from_gpu) {
    std::memmove(to, from, bytes);
    return;
  }
  std::array<std::byte, 4096> block;
  for (std::size_t done = 0; done < bytes; done += block.size()) {
    const auto n = std::min(block.size(), bytes - done);
    if (from_gpu) unwatched(block.data(), from + done, n);
    else std::memcpy(block.data(), from + done, n);
    if (to_gpu) unwatched(to + done, block.data(), n);
    else std::memcpy(to + done, block.data(), n);
  }
}

void move(std::byte* to, bool to_gpu, std::byte* from, bool from_gpu, std::size_t bytes) {
  if (!as_words(to, bytes) || !as_words(from, bytes)) return move_bytes(to, to_gpu, from, from_gpu, bytes);
  std::array<std::uint32_t, kWords> words{};
  for (std::size_t i = 0; i < bytes / kWord; ++i) words[i] = word(from + i * kWord).load(std::memory_order_acquire);
  for (std::size_t i = 0; i < bytes / kWord; ++i) word(to + i * kWord).store(words[i], std::memory_order_release);
}

/// `phase`: how far the pattern is.
void fill(std::byte* to, bool to_gpu, const std::array<unsigned char, 4>& pattern, std::size_t phase,
          std::size_t bytes) {
  std::array<unsigned char, kWord> turned{};
  for (std::size_t i = 0; i < kWord; ++i) turned[i] = pattern[(phase + i) % kWord];
  if (!as_words(to, bytes)) {
    std::array<std::byte, 4096> block;
    for (std::size_t i = 0; i < block.size(); ++i) block[i] = std::byte{turned[i % kWord]};
    for (std::size_t done = 0; done < bytes; done += block.size())
      move_bytes(to + done, to_gpu, block.data(), false, std::min(block.size(), bytes - done));
    return;
  }
  std::uint32_t value = 0;
  std::memcpy(&value, turned.data(), sizeof value);
  for (std::size_t i = 0; i < bytes / kWord; ++i) word(to + i * kWord).store(value, std::memory_order_release);
}

/// All rows; a single large row is cut into pieces if the order is adversarial.
std::vector<Run> runs_of(Order& order, const Side& dst, const Side& src, std::size_t width, std::size_t height) {
  std::vector<Run> runs;
  const auto pieces = order.adversarial() && height == 1 && width > 64 ? 1 + order.up_to(8) : 1;
  for (std::size_t row = 0; row < height; ++row) {
    for (std::size_t i = 0; i < pieces; ++i) {
      const auto begin = width / pieces * i, end = i + 1 == pieces ? width : width / pieces * (i + 1);
      runs.push_back({dst.at + row * dst.pitch + begin, src.at + row * src.pitch + begin, end - begin});
    }
  }
  order.shuffle(runs);
  return runs;
}

/// Calls fn(run) for each, with pauses at a few places.
template <class Fn> Status each(Order& order, const std::vector<Run>& runs, Fn fn) {
  const auto stride = runs.size() / 8 + 1;
  for (std::size_t i = 0; i < runs.size(); ++i) {
    if (i % stride == stride - 1) order.pause_within_command();
    if (const auto code = fn(runs[i])) return code;
  }
  return kSuccess;
}

Status move_all(Stream& s, const Copy& c) {
  const auto device = s.context.device();
  return each(s.order, runs_of(s.order, c.dst, c.src, c.width, c.height), [&](Run r) {
    while (r.bytes != 0) {
      const auto from = find(c.src, r.src, r.bytes, device, Use::read);
      const auto to = find(c.dst, r.dst, r.bytes, device, Use::write);
      if (!from || !to) return kIllegalAddress;
      const auto n = std::min(from->size, to->size);
      move(to->data, where(r.dst) == Where::gpu, from->data, where(r.src) == Where::gpu, n);
      r = {r.dst + n, r.src + n, r.bytes - n};
    }
    return kSuccess;
  });
}

}  // namespace

Status execute(Stream& s, const Copy& c) {
  const auto code = move_all(s, c);
  Waits::get().nudge();
  return code;
}

Status execute(Stream& s, std::vector<Copy> copies) {
  s.order.shuffle(copies);
  for (const auto& c : copies)
    if (const auto code = move_all(s, c)) return code;
  Waits::get().nudge();
  return kSuccess;
}

Status execute(Stream& s, const Fill& f) {
  const auto device = s.context.device();
  const auto code = each(s.order, runs_of(s.order, f.dst, f.dst, f.width, f.height), [&](Run r) {
    // Rows of their own have the same byte everywhere.
    auto phase = (r.dst - f.dst.at) % kWord;
    while (r.bytes != 0) {
      const auto to = find(f.dst, r.dst, r.bytes, device, Use::write);
      if (!to) return kIllegalAddress;
      fill(to->data, where(r.dst) == Where::gpu, f.pattern, phase, to->size);
      phase = (phase + to->size) % kWord;
      r = {r.dst + to->size, 0, r.bytes - to->size};
    }
    return kSuccess;
  });
  Waits::get().nudge();
  return code;
}

}  // namespace stand_in
