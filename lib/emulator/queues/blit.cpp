// SPDX-License-Identifier: MIT
#include "blit.hpp"

#include "../rocr.hpp"
#include "field.hpp"

#include <array>
#include <cstring>

namespace sdma::emulator {
namespace {

constexpr std::size_t kCodeBytes = 96;    ///< enough to distinguish kernels
constexpr std::size_t kEntryOffset = 16;  ///< in a kernel object: the offset of its code, relative to the object

/// Decodes arguments with `phases` phases; row_bytes = 0: they do not have that form.
Rows copy_of(const std::byte* args, std::size_t phases, std::uint32_t items) noexcept {
  std::array<std::uint64_t, 5> src{}, dst{};
  for (std::size_t i = 0; i <= phases; ++i) {
    src[i] = field<std::uint64_t>(args, i * 16);
    dst[i] = field<std::uint64_t>(args, i * 16 + 8);
    if (src[i] < src[0] || src[i] - src[0] != dst[i] - dst[0] || (i != 0 && src[i] < src[i - 1])) return {};
  }
  if (field<std::uint32_t>(args, (phases + 1) * 16) != items) return {};
  return {.src = GpuVa{src[0]}, .dst = GpuVa{dst[0]}, .row_bytes = src[phases] - src[0]};
}

Rows fill_of(const std::byte* args, std::uint32_t items) noexcept {
  const auto begin = field<std::uint64_t>(args, 0), middle = field<std::uint64_t>(args, 8),
             end = field<std::uint64_t>(args, 16);
  if (begin > middle || middle > end || (end - begin) % 4 != 0 || field<std::uint32_t>(args, 28) != items) return {};
  Rows r{.dst = GpuVa{begin}, .row_bytes = end - begin, .pattern_bytes = 4};
  std::memcpy(r.pattern.data(), args + 24, r.pattern_bytes);
  return r;
}

}  // namespace

std::optional<Effect> rocr_blit(const std::byte* packet, AddressSpace::Reader& memory) noexcept {
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
