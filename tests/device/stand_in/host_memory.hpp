// SPDX-License-Identifier: MIT
#pragma once
// Pinned host memory (cuMemHostAlloc). The GPUs know it by its host address. Any thread may use it.
#include "memory.hpp"

#include <map>
#include <shared_mutex>

namespace stand_in {

class HostMemory {
 public:
  static HostMemory& get();

  Status allocate(void** out, std::size_t bytes);
  Status free(void*);
  std::optional<Piece> find(Pointer, std::size_t bytes) const noexcept;

 private:
  struct Pages;
  mutable std::shared_mutex mutex_;
  std::map<Pointer, std::shared_ptr<Pages>> all_;
};

}  // namespace stand_in
