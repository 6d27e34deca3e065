// SPDX-License-Identifier: MIT
#pragma once
// Reads a value from bytes at an offset, which may be misaligned.
//
//   const auto items = field<std::uint32_t>(packet, 12);
//
// The caller makes sure that the bytes exist.
#include <cstddef>
#include <cstring>

namespace sdma::emulator {

template <class T> T field(const std::byte* at, std::size_t offset) noexcept {
  T v;
  std::memcpy(&v, at + offset, sizeof v);
  return v;
}

}  // namespace sdma::emulator
