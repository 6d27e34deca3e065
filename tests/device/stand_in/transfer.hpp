// SPDX-License-Identifier: MIT
#pragma once
// Copies and memsets, as the command of a stream executes them: rows of bytes, in the order that the stream chooses.
//
// kIllegalAddress: the device cannot access a byte; those before it, and others, may be changed by then. Small pieces
// that are aligned change as words, because programs keep counters there.
#include "memory.hpp"
#include "stream.hpp"

#include <array>
#include <cstdint>
#include <vector>

namespace stand_in {

/// The end of a copy.
struct Side {
  Pointer at{};
  std::size_t pitch{};
  bool pageable = false;
};
struct Copy {
  Side dst{}, src{};
  std::size_t width{}, height = 1;
};
/// The same 1, 2 or 4 bytes again and again; the pattern repeats them to 4.
struct Fill {
  Side dst{};
  std::array<unsigned char, 4> pattern{};
  std::size_t width{}, height = 1;
};

Status execute(Stream&, const Copy&);
Status execute(Stream&, const Fill&);
/// Copies of a batch, in any order.
Status execute(Stream&, std::vector<Copy>);

}  // namespace stand_in
