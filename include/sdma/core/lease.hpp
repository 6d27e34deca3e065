// SPDX-License-Identifier: MIT
#pragma once
// A resource that is returned to its owner exactly once. Every handle holds one: Memory, SignalMemory, Event, Queue.
//
//   Lease l{[](void* pool, std::uint64_t id) noexcept { static_cast<Pool*>(pool)->free(id); }, &pool, 7};
//   Lease m = std::move(l);                  // now m holds it, and l is empty
//   m.reset();                               // or the destructor: pool.free(7)
//
// A Lease is move-only and allocates nothing. One thread at a time may use it. No errors.
#include "sdma/core/standard.hpp"

#include <cstdint>
#include <utility>

namespace sdma { inline namespace v0_3 {

class Lease {
 public:
  /// Called once, with the constructor's `owner` and `id`.
  using Return = void (*)(void* owner, std::uint64_t id) noexcept;

  Lease() = default;
  Lease(Return give_back, void* owner, std::uint64_t id) noexcept : return_(give_back), owner_(owner), id_(id) {}
  Lease(Lease&& o) noexcept : return_(std::exchange(o.return_, nullptr)), owner_(o.owner_), id_(o.id_) {}
  Lease& operator=(Lease&& o) noexcept {
    if (this == &o) return *this;
    reset();
    return_ = std::exchange(o.return_, nullptr);
    owner_ = o.owner_;
    id_ = o.id_;
    return *this;
  }
  ~Lease() { reset(); }
  /// Returns the resource now, if the Lease holds one.
  void reset() noexcept {
    if (return_) std::exchange(return_, nullptr)(owner_, id_);
  }
  explicit operator bool() const noexcept { return return_ != nullptr; }
  [[nodiscard]] std::uint64_t id() const noexcept { return id_; }  ///< reset and moves do not change it

 private:
  Return return_ = nullptr;
  void* owner_ = nullptr;
  std::uint64_t id_ = 0;
};

}}  // namespace sdma::v0_3
