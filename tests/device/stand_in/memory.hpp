// SPDX-License-Identifier: MIT
#pragma once
// All memory that commands may touch: pinned host memory and the GPUs' memory.
//
//   if (const auto p = find_memory(address, bytes, device, Use::read)) use(p->data, p->size);   // at most `bytes`
//
// A Piece keeps its bytes alive, so what frees memory never pulls it from under a command that has begun to use it.
// Any thread may use it.
#include "abi.hpp"

#include <memory>
#include <optional>

namespace stand_in {

/// Bytes of a range of addresses that are contiguous in this process.
struct Piece {
  std::shared_ptr<const void> keep{};
  std::byte* data{};
  std::size_t size{};
};

enum class Use { read, write };
enum class Where { gpu, pinned, pageable };

/// What kind of memory an address belongs to. A reserved address is the GPUs', mapped or not.
Where where(Pointer) noexcept;

/// The first bytes of the range, or nothing if this device may not use them so.
std::optional<Piece> find_memory(Pointer, std::size_t bytes, int device, Use);

/// Can this process read the byte? Only for pageable memory.
bool readable(Pointer) noexcept;

}  // namespace stand_in
