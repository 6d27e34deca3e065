// SPDX-License-Identifier: MIT
#pragma once
// The objects of one kind that a program holds through pointers of the C library's type, as it holds a directory as
// DIR*. A function that is interposed finds out with it whether a pointer is one of ours.
//
//   auto& listings = Handles<Listing, DIR>::all();
//   return listings.add(std::move(listing));        // the program's DIR*
//   if (auto* l = listings.find(dir)) ...           // ours; otherwise, the C library's function gets the pointer
//   const auto gone = listings.remove(dir);
//
// There is one set for each kind. It is never destroyed, because destructors of the program may still use its pointers.
//
// Any thread may call these functions; a program orders its calls for one object itself. add throws std::bad_alloc.
#include <algorithm>
#include <cstddef>
#include <memory>
#include <mutex>
#include <new>
#include <vector>

namespace sdma::emulator {

template <class Object, class Opaque> class Handles {
 public:
  static Handles& all() noexcept {
    alignas(Handles) static std::byte room[sizeof(Handles)];
    static auto* h = new (room) Handles;
    return *h;
  }

  Opaque* add(std::unique_ptr<Object> o) {
    const std::lock_guard lock(mutex_);
    objects_.push_back(o.get());
    return reinterpret_cast<Opaque*>(o.release());
  }
  /// Null: not one of ours.
  Object* find(const Opaque* p) noexcept {
    const std::lock_guard lock(mutex_);
    const auto at = place(p);
    return at == objects_.end() ? nullptr : *at;
  }
  /// Null: not one of ours.
  std::unique_ptr<Object> remove(const Opaque* p) noexcept {
    const std::lock_guard lock(mutex_);
    const auto at = place(p);
    if (at == objects_.end()) return nullptr;
    std::unique_ptr<Object> o(*at);
    objects_.erase(at);
    return o;
  }

 private:
  Handles() = default;
  auto place(const Opaque* p) noexcept {
    return std::find(objects_.begin(), objects_.end(), reinterpret_cast<const Object*>(p));
  }

  std::mutex mutex_{};
  std::vector<Object*> objects_{};
};

}  // namespace sdma::emulator
