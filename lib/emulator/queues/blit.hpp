// SPDX-License-Identifier: MIT
#pragma once
// ROCr's own copy and fill kernels. ROCr uses shaders instead of sDMA to move bytes within a GPU, to fill memory, and
// to load the code of a program (for example when HIP initialises).
//
//   recognised   the file of the loaded ROCr contains the code of the kernel object, byte for byte, and the arguments
//                have the form of a blit: ranges of equal length, and as many work items as the dispatch has
//
//   copy, aligned      src0 dst0 src1 dst1 src2 dst2 src3 dst3 src_end dst_end items     phases one after another
//   copy, misaligned   src0 dst0 src1 dst1 src_end dst_end items
//   fill               dst0 dst1 dst_end value items
//
// Call it inside a Section of the reader. No allocation after the first call.
#include "../rocr.hpp"
#include "effect.hpp"
#include "field.hpp"

#include <array>
#include <cstring>
#include <optional>

namespace sdma::emulator {

inline constexpr std::size_t kCodeBytes = 96;    ///< enough to distinguish kernels
inline constexpr std::size_t kEntryOffset = 16;  ///< in a kernel object: the offset of its code, relative to the object
/// Decodes arguments with `phases` phases; row_bytes = 0: they do not have that form.
inline Rows copy_of(const std::byte* args, std::size_t phases, std::uint32_t items) noexcept {
  std::array<std::uint64_t, 5> src{}, dst{};
  for (std::size_t i = 0; i <= phases; ++i) {
    src[i] = field<std::uint64_t>(args, i * 16);
    dst[i] = field<std::uint64_t>(args, i * 16 + 8);
    if (src[i] < src[0] || src[i] - src[0] != dst[i] - dst[0] || (i != 0 && src[i] < src[i - 1])) return {};
  }
  if (field<std::uint32_t>(args, (phases + 1) * 16) != items) return {};
  return {.src = GpuVa{src[0]}, .dst = GpuVa{dst[0]}, .row_bytes = src[phases] - src[0]};
}

inline Rows fill_of(const std::byte* args, std::uint32_t items) noexcept {
  const auto begin = field<std::uint64_t>(args, 0), middle = field<std::uint64_t>(args, 8),
             end = field<std::uint64_t>(args, 16);
  if (begin > middle || middle > end || (end - begin) % 4 != 0 || field<std::uint32_t>(args, 28) != items) return {};
  Rows r{.dst = GpuVa{begin}, .row_bytes = end - begin, .pattern_bytes = 4};
  std::memcpy(r.pattern.data(), args + 24, r.pattern_bytes);
  return r;
}

/// `packet`: the 64 bytes of a kernel dispatch. nullopt: another kernel.
inline std::optional<Effect> rocr_blit(const std::byte* packet, AddressSpace::Reader& memory) noexcept {
  constexpr std::size_t kArgBytes = 96;
  const GpuVa object{field<std::uint64_t>(packet, 32)}, arguments{field<std::uint64_t>(packet, 40)};
  const auto items = field<std::uint32_t>(packet, 12);
  const auto* header = memory.at(object, 64, Access::read);
  if (!header) return {};
  const auto* code = memory.at(object + field<std::uint64_t>(header, kEntryOffset), kCodeBytes, Access::read);
  if (!code || !search_rocr({code, kCodeBytes}).found) return {};
  const auto* args = memory.at(arguments, kArgBytes, Access::read);
  if (!args) return {};
  auto rows = copy_of(args, 4, items);
  if (rows.row_bytes == 0) rows = copy_of(args, 2, items);
  if (rows.row_bytes == 0) rows = fill_of(args, items);
  return rows.row_bytes == 0 ? std::nullopt : std::optional(Effect(rows));
}

}  // namespace sdma::emulator
