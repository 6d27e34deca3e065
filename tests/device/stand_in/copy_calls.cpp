// SPDX-License-Identifier: MIT
// Copies, batches of copies, and memsets.
#include "calls.hpp"
#include "handles.hpp"
#include "transfer.hpp"

#include <cstring>

namespace stand_in {
namespace {

/// False: pageable memory that is not there.
bool take_side(Side& side, std::size_t last_byte) {
  side.pageable = where(side.at) == Where::pageable;
  return !side.pageable || (readable(side.at) && readable(side.at + last_byte));
}

bool on_host(const Side& s) { return s.pageable || where(s.at) == Where::pinned; }

/// Copies between host memory, and all that touch pageable memory, end before the call returns.
bool blocks(const Copy& c) { return c.dst.pageable || c.src.pageable || (on_host(c.dst) && on_host(c.src)); }

Status take_sides(Copy& c) {
  const auto last = [&](const Side& s) { return (c.height - 1) * s.pitch + c.width - 1; };
  return take_side(c.dst, last(c.dst)) && take_side(c.src, last(c.src)) ? kSuccess : kInvalidValue;
}

Status enqueue(const std::shared_ptr<Stream>& s, Copy c) {
  if (c.width == 0 || c.height == 0) return kSuccess;
  if (const auto code = take_sides(c)) return code;
  return s->connection.enqueue(
      s, [c](Stream& here) { return execute(here, c); }, false, blocks(c));
}

Status copy(Pointer dst, Pointer src, std::size_t bytes, abi::Stream handle) {
  std::shared_ptr<Stream> s;
  if (const auto code = find_stream(handle, &s)) return code;
  return enqueue(s, {.dst = {.at = dst}, .src = {.at = src}, .width = bytes});
}

Status copy_2d(const abi::Copy2D* c, abi::Stream handle) {
  std::shared_ptr<Stream> s;
  if (const auto code = find_stream(handle, &s)) return code;
  if (!c || c->src_type != abi::Copy2D::kUnified || c->dst_type != abi::Copy2D::kUnified) return kInvalidValue;
  if (c->src_pitch < c->src_x + c->width || c->dst_pitch < c->dst_x + c->width) return kInvalidValue;
  return enqueue(s, {.dst = {.at = c->dst + c->dst_y * c->dst_pitch + c->dst_x, .pitch = c->dst_pitch},
                     .src = {.at = c->src + c->src_y * c->src_pitch + c->src_x, .pitch = c->src_pitch},
                     .width = c->width,
                     .height = c->height});
}

/// Each entry says from which copy on its attributes hold; the first from copy 0.
bool attributes_right(std::size_t count, const abi::BatchAttributes* attributes, const std::size_t* from,
                      std::size_t n) {
  if (!attributes || !from || n == 0 || n > count || from[0] != 0) return false;
  for (std::size_t i = 0; i < n; ++i) {
    // In stream order, or any: the stand-in takes stream order for both. Not: during the call.
    const auto order = attributes[i].src_access_order;
    if ((order != 1 && order != 3) || from[i] >= count || (i != 0 && from[i] <= from[i - 1])) return false;
  }
  return true;
}

Status batch(const Pointer* dst, const Pointer* src, const std::size_t* bytes, std::size_t count,
             const abi::BatchAttributes* attributes, const std::size_t* from, std::size_t n, abi::Stream handle) {
  if (!handle || handle == abi::kLegacyStream) return kInvalidValue;
  std::shared_ptr<Stream> s;
  if (const auto code = find_stream(handle, &s)) return code;
  if (s->connection.captures(*s)) return kCaptureUnsupported;  // the capture goes on
  if (!dst || !src || !bytes || count == 0 || !attributes_right(count, attributes, from, n)) return kInvalidValue;
  std::vector<Copy> copies;
  bool waits = false;
  for (std::size_t i = 0; i < count; ++i) {
    Copy c{.dst = {.at = dst[i]}, .src = {.at = src[i]}, .width = bytes[i]};
    if (c.width == 0) return kInvalidValue;
    if (const auto code = take_sides(c)) return code;
    waits = waits || c.dst.pageable || c.src.pageable;
    copies.push_back(c);
  }
  return s->connection.enqueue(
      s, [copies = std::move(copies)](Stream& here) { return execute(here, copies); }, false, waits);
}

Status batch_12_8(const Pointer* dst, const Pointer* src, const std::size_t* bytes, std::size_t count,
                  const abi::BatchAttributes* attributes, const std::size_t* from, std::size_t n, std::size_t* failed,
                  abi::Stream handle) {
  const auto code = batch(dst, src, bytes, count, attributes, from, n, handle);
  // No single copy is to blame.
  if (code != kSuccess && failed) *failed = SIZE_MAX;
  return code;
}

/// `unit`: the bytes that repeat.
template <class T>
Status fill(Pointer dst, std::size_t pitch, T unit, std::size_t count, std::size_t height, abi::Stream handle) {
  std::shared_ptr<Stream> s;
  if (const auto code = find_own_stream(handle, &s)) return code;
  if (dst % sizeof(T) != 0 || where(dst) == Where::pageable) return kInvalidValue;
  Fill f{.dst = {.at = dst, .pitch = pitch}, .width = count * sizeof(T), .height = height};
  for (std::size_t i = 0; i < f.pattern.size(); i += sizeof unit) std::memcpy(f.pattern.data() + i, &unit, sizeof unit);
  if (f.width == 0 || f.height == 0) return kSuccess;
  return s->connection.enqueue(s, [f](Stream& here) { return execute(here, f); });
}

Status set_8(Pointer dst, unsigned char v, std::size_t n, abi::Stream s) { return fill(dst, 0, v, n, 1, s); }
Status set_16(Pointer dst, unsigned short v, std::size_t n, abi::Stream s) { return fill(dst, 0, v, n, 1, s); }
Status set_32(Pointer dst, unsigned v, std::size_t n, abi::Stream s) { return fill(dst, 0, v, n, 1, s); }
Status set_2d(Pointer dst, std::size_t pitch, unsigned char v, std::size_t width, std::size_t height, abi::Stream s) {
  return pitch < width ? kInvalidValue : fill(dst, pitch, v, width, height, s);
}

}  // namespace

std::span<const Entry> copy_calls() {
  static const Entry all[] = {
      {"cuMemcpyAsync", function<"cuMemcpyAsync", copy>()},
      {"cuMemcpy2DAsync", function<"cuMemcpy2DAsync", copy_2d>()},
      {"cuMemcpyBatchAsync", function<"cuMemcpyBatchAsync", batch_12_8>(), 12080, 13000},
      {"cuMemcpyBatchAsync", function<"cuMemcpyBatchAsync", batch>(), 13000},
      {"cuMemsetD8Async", function<"cuMemsetD8Async", set_8>()},
      {"cuMemsetD16Async", function<"cuMemsetD16Async", set_16>()},
      {"cuMemsetD32Async", function<"cuMemsetD32Async", set_32>()},
      {"cuMemsetD2D8Async", function<"cuMemsetD2D8Async", set_2d>()},
  };
  return all;
}

}  // namespace stand_in
