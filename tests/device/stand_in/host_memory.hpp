// SPDX-License-Identifier: MIT
#pragma once
// Pinned host memory (cuMemHostAlloc, cuMemHostRegister). The GPUs know it by its host address. Any thread may use it.
#include "memory.hpp"

#include <map>
#include <shared_mutex>

namespace stand_in {

class HostMemory {
 public:
  static HostMemory& get();

  Status allocate(void** out, std::size_t bytes);
  /// Memory of the program, which stays when it is freed here.
  Status pin(void*, std::size_t bytes);
  Status free(void*);
  /// Has `pin` been called for memory that begins here?
  bool registered(void*) const noexcept;
  std::optional<std::pair<Pointer, std::size_t>> range(Pointer) const noexcept;
  std::optional<Piece> find(Pointer, std::size_t bytes) const noexcept;

 private:
  struct Pages;
  mutable std::shared_mutex mutex_;
  std::map<Pointer, std::shared_ptr<Pages>> all_;
};

}  // namespace stand_in
