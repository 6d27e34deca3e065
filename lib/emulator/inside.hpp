// SPDX-License-Identifier: MIT
#pragma once
// Marks the node's own work, in which the functions that it interposes pass through. What a C library function,
// another preloaded library (fakeroot) or an allocator calls on behalf of the node must not enter the node again.
//
//   const Inside work;
//   if (!work.first()) return {};    // called from within our own work
//
// One flag per thread, without allocation. Nothing here fails.
namespace sdma::emulator {

class Inside {
 public:
  Inside() noexcept : first_(!inside_) { inside_ = true; }
  ~Inside() {
    if (first_) inside_ = false;
  }
  Inside(const Inside&) = delete;
  Inside& operator=(const Inside&) = delete;
  bool first() const noexcept { return first_; }

 private:
  // Without this model, the first access in a thread could allocate.
  [[gnu::tls_model("initial-exec")]] static inline constinit thread_local bool inside_ = false;
  const bool first_;
};

}  // namespace sdma::emulator
