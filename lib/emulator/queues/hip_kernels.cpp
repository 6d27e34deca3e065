// SPDX-License-Identifier: MIT
#include "hip_kernels.hpp"

#include "code_object.hpp"
#include "field.hpp"

#include <algorithm>
#include <array>

namespace sdma::emulator {
namespace {

constexpr std::size_t kMostBytes = 1024;  ///< of the arguments of any kernel here

/// A dispatch: its grid, and the visible arguments by number.
struct KernelCall {
  std::array<std::uint64_t, 3> grid{};
  std::array<std::byte, kMostBytes> bytes{};
  std::array<std::uint32_t, 12> offsets{}, sizes{};
  AddressSpace::Reader& memory;

  /// Argument `i`; `part`: of a vector of 64-bit numbers.
  std::uint64_t operator()(std::size_t i, std::size_t part = 0) const noexcept {
    const auto* at = bytes.data() + offsets[i] + part * 8;
    return sizes[i] == 4 ? field<std::uint32_t>(at, 0) : field<std::uint64_t>(at, 0);
  }
  GpuVa va(std::size_t i) const noexcept { return GpuVa{(*this)(i)}; }
  std::uint64_t items(std::uint64_t wanted, std::size_t dimension = 0) const noexcept {
    return std::min(wanted, grid[dimension]);
  }
};

using Make = HipKernel (*)(const KernelCall&) noexcept;

HipKernel refuse(const char* why) noexcept { return {.refusal = why}; }
HipKernel make(const Rows& r) noexcept { return {.effect = Effect(r)}; }

/// Reads `count` elements of the pattern.
const char* read_pattern(Rows& r, GpuVa at, std::uint64_t count, std::uint64_t element,
                         AddressSpace::Reader& memory) noexcept {
  if (count == 0) return "an empty pattern";
  if (count > r.pattern.size() / element) return "a pattern that is too long";
  r.pattern_bytes = static_cast<std::uint32_t>(count * element);
  const auto* from = memory.at(at, r.pattern_bytes, Access::read);
  if (!from) return "a pattern that is not mapped for this GPU";
  std::copy_n(from, r.pattern_bytes, r.pattern.begin());
  return nullptr;
}

/// Four pointers lead to one buffer, as elements of 1, 2, 4 and 8 bytes. The widest one that is not null is used.
std::size_t widest(const KernelCall& c) noexcept {
  std::size_t i = 3;
  while (i > 0 && c(i) == 0) --i;
  return i;
}

// bufUChar bufUShort bufUInt bufULong pattern patternSize offset size
HipKernel fill(const KernelCall& c) noexcept {
  const auto i = widest(c);
  const auto element = std::uint64_t{1} << i;
  Rows r{.dst = c.va(i) + c(6) * element};
  if (const auto* why = read_pattern(r, c.va(4), c(5), element, c.memory)) return refuse(why);
  r.row_bytes = c.items(c(7)) * r.pattern_bytes;
  return make(r);
}

// bufUChar bufUShort bufUInt bufULong pattern patternSize offset width height pitch
HipKernel fill_rows(const KernelCall& c) noexcept {
  const auto i = widest(c);
  const auto element = std::uint64_t{1} << i;
  if (c(5) != 1) return refuse("a pattern whose elements overlap");
  Rows r{.dst = c.va(i) + c(6) * element, .rows = c.items(c(8), 1), .dst_row = c(9) * element};
  if (const auto* why = read_pattern(r, c.va(4), 1, element, c.memory)) return refuse(why);
  r.row_bytes = c.items(c(7)) * element;
  return make(r);
}

/// True if items that begin at their number times `each` and advance by `next` reach all of `count` elements.
bool reaches(std::uint64_t count, std::uint64_t items, std::uint64_t each, std::uint64_t next) noexcept {
  return count <= items * each || next == items * each;
}

// buf pattern pattern_size alignment end_ptr next_chunk
HipKernel fill_chunks(const KernelCall& c) noexcept {
  const auto width = c(3);
  const auto element = width == 16 || width == 8 || width == 4 || width == 2 ? width : 1;
  Rows r{.dst = c.va(0)};
  if (const auto* why = read_pattern(r, c.va(1), c(2), element, c.memory)) return refuse(why);
  const auto bytes = c(4) > c(0) ? c(4) - c(0) : 0;
  const auto patterns = bytes / r.pattern_bytes + (bytes % r.pattern_bytes != 0);
  if (!reaches(patterns * c(2), c.grid[0], c(2), c(5))) return refuse("chunks that leave gaps");
  r.row_bytes = patterns * r.pattern_bytes;
  return make(r);
}

// srcI dstI srcOrigin dstOrigin size remain
HipKernel copy(const KernelCall& c) noexcept {
  constexpr std::uint64_t kBytes = 8, kDword = 4;  // `remain` of a copy by bytes
  const auto size = c(4), remain = c(5), items = c.items(size);
  Rows r{.src = c.va(0) + c(2), .dst = c.va(1) + c(3)};
  if (remain == kBytes) r.row_bytes = items;
  else if (items != 0) r.row_bytes = items < size ? items * kDword : (items - 1) * kDword + remain;
  return make(r);
}

// src dst size remainder aligned_size end_ptr next_chunk
HipKernel copy_chunks(const KernelCall& c) noexcept {
  const std::uint64_t element = c(4) == 16 ? 16 : 4;
  const auto bytes = c(5) > c(1) ? c(5) - c(1) : 0;
  const auto elements = bytes / element + (bytes % element != 0);
  if (!reaches(elements, c.grid[0], 1, c(6))) return refuse("chunks that leave gaps");
  if (c(3) > c(2) || (c(3) != 0 && elements * element != c(2) - c(3)))
    return refuse("a remainder elsewhere than at the end");
  return make({.src = c.va(0), .dst = c.va(1), .row_bytes = elements * element + c(3)});
}

// src dst srcOrigin dstOrigin size alignment
HipKernel copy_aligned(const KernelCall& c) noexcept {
  const std::uint64_t element = c(5) == 16 ? 16 : 4;
  return make({.src = c.va(0) + c(2) * element, .dst = c.va(1) + c(3) * element, .row_bytes = c.items(c(4)) * element});
}

// src dst srcRect dstRect size: vectors of row pitch, slice pitch, begin; and of width, height, depth, alignment
HipKernel copy_rows(const KernelCall& c, std::uint64_t element) noexcept {
  return make({.src = c.va(0) + c(2, 2) * element,
               .dst = c.va(1) + c(3, 2) * element,
               .row_bytes = c.items(c(4, 0)) * element,
               .rows = c.items(c(4, 1), 1),
               .slices = c.items(c(4, 2), 2),
               .src_row = c(2, 0) * element,
               .src_slice = c(2, 1) * element,
               .dst_row = c(3, 0) * element,
               .dst_slice = c(3, 1) * element});
}
HipKernel copy_rect(const KernelCall& c) noexcept { return copy_rows(c, 1); }
HipKernel copy_rect_aligned(const KernelCall& c) noexcept { return copy_rows(c, c(4, 3) == 16 ? 16 : 4); }

// ptrInt ptrUlong value, and in some versions sizeBytes
HipKernel stream_write(const KernelCall& c) noexcept {
  const bool wide = c(0) == 0;
  return {.effect = Effect(Store{.at = c.va(wide ? 1 : 0), .value = c(2), .wide = wide})};
}

// ptrInt ptrUlong value flags mask
HipKernel stream_wait(const KernelCall& c) noexcept {
  const bool wide = c(0) == 0;
  if (c(3) > 3) return refuse("a comparison that is not known");
  return {.effect = Effect(Wait{.at = c.va(wide ? 1 : 0),
                                .value = c(2),
                                .mask = c(4),
                                .until = static_cast<Wait::Until>(c(3)),
                                .wide = wide})};
}

/// One version of a kernel: the names of its arguments, with their sizes.
struct Version {
  std::string_view kernel, arguments;
  Make make;
};
constexpr std::array kVersions{
    Version{"fillBufferAligned", "bufUChar:8 bufUShort:8 bufUInt:8 bufULong:8 pattern:8 patternSize:4 offset:8 size:8",
            fill},
    Version{"fillBufferAligned", "buf:8 pattern:8 pattern_size:4 alignment:4 end_ptr:8 next_chunk:4", fill_chunks},
    Version{"fillBufferAligned2D",
            "bufUChar:8 bufUShort:8 bufUInt:8 bufULong:8 pattern:8 patternSize:4 offset:8 width:8 height:8 pitch:8",
            fill_rows},
    Version{"copyBuffer", "srcI:8 dstI:8 srcOrigin:8 dstOrigin:8 size:8 remain:4", copy},
    Version{"copyBuffer", "src:8 dst:8 size:8 remainder:4 aligned_size:4 end_ptr:8 next_chunk:4", copy_chunks},
    Version{"copyBufferAligned", "src:8 dst:8 srcOrigin:8 dstOrigin:8 size:8 alignment:4", copy_aligned},
    Version{"copyBufferRect", "src:8 dst:8 srcRect:32 dstRect:32 size:32", copy_rect},
    Version{"copyBufferRectAligned", "src:8 dst:8 srcRect:32 dstRect:32 size:32", copy_rect_aligned},
    Version{"streamOpsWrite", "ptrInt:8 ptrUlong:8 value:8 sizeBytes:8", stream_write},
    Version{"streamOpsWrite", "ptrInt:8 ptrUlong:8 value:8", stream_write},
    Version{"streamOpsWait", "ptrInt:8 ptrUlong:8 value:8 flags:8 mask:8", stream_wait},
};
constexpr std::string_view kPrefix = "__amd_rocclr_";

/// Are the visible arguments those of the list? Then the call gets their places.
bool match(const Arguments& a, std::string_view list, KernelCall& c) noexcept {
  std::size_t n = 0;
  for (std::size_t i = 0; i < a.count; ++i) {
    const auto& each = a.all[i];
    if (each.hidden) continue;
    const auto item = list.substr(0, list.find(' '));
    list.remove_prefix(std::min(list.size(), item.size() + 1));
    const auto colon = item.find(':');
    if (item.empty() || n == c.offsets.size() || each.view() != item.substr(0, colon)) return false;
    std::uint32_t bytes = 0;
    for (const char digit : item.substr(colon + 1)) bytes = bytes * 10 + static_cast<std::uint32_t>(digit - '0');
    if (each.bytes != bytes || std::uint64_t{each.offset} + bytes > a.bytes) return false;
    c.offsets[n] = each.offset;
    c.sizes[n++] = bytes;
  }
  return list.empty();
}

}  // namespace

HipKernel hip_kernel(std::string_view name, const std::byte* packet, AddressSpace::Reader& memory) noexcept {
  if (!name.starts_with(kPrefix)) return {};
  const auto own = name.substr(kPrefix.size());
  if (std::none_of(kVersions.begin(), kVersions.end(), [&](const Version& v) { return v.kernel == own; })) return {};
  const auto a = arguments_of(GpuVa{field<std::uint64_t>(packet, 32)}, name, memory);
  if (!a) return refuse("its code object does not describe its arguments");
  if (a->bytes > kMostBytes) return refuse("it has more arguments than any known version");
  KernelCall c{.memory = memory};
  for (std::size_t d = 0; d < c.grid.size(); ++d) c.grid[d] = field<std::uint32_t>(packet, 12 + d * 4);
  const auto* bytes = memory.at(GpuVa{field<std::uint64_t>(packet, 40)}, a->bytes, Access::read);
  if (!bytes) return refuse("its arguments are not mapped for this GPU");
  std::copy_n(bytes, a->bytes, c.bytes.begin());
  for (std::size_t i = 0; i < a->count; ++i) {
    const auto& each = a->all[i];
    if (each.offset_of_grid && std::uint64_t{each.offset} + 8 <= a->bytes &&
        field<std::uint64_t>(c.bytes.data(), each.offset) != 0)
      return refuse("its grid does not begin at zero");
  }
  for (const auto& v : kVersions)
    if (v.kernel == own && match(*a, v.arguments, c)) return v.make(c);
  return refuse("its arguments have a layout that is not known");
}

}  // namespace sdma::emulator
