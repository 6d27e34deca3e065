// SPDX-License-Identifier: MIT
#pragma once
// Memory of zeros whose pages exist only once they are accessed, and are given back as a whole. Internal.
//
//   LazyPages pages{1 << 30};
//   if (!pages) ...                                     // no address space is left
//   pages.data()[n] = ...;                              // takes a page
//   pages.clear();                                      // all zero again, and no page taken
//
// Where std::size_t has 32 bits, the pages are taken at once.
#include <sys/mman.h>
#include <cstddef>
#include <cstring>
#include <utility>

namespace sdma { inline namespace v0_3 { namespace detail {

class LazyPages {
 public:
  LazyPages() = default;
  explicit LazyPages(std::size_t bytes) : bytes_(bytes) {
    if (bytes == 0) return;
    auto* at = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (at != MAP_FAILED) at_ = static_cast<std::byte*>(at);
  }
  LazyPages(LazyPages&& o) noexcept : at_(std::exchange(o.at_, nullptr)), bytes_(std::exchange(o.bytes_, 0)) {}
  LazyPages& operator=(LazyPages&& o) noexcept {
    std::swap(at_, o.at_);
    std::swap(bytes_, o.bytes_);
    return *this;
  }
  ~LazyPages() {
    if (at_) munmap(at_, bytes_);
  }

  /// Is it there? An empty one is not.
  explicit operator bool() const noexcept { return at_ != nullptr; }
  std::byte* data() const noexcept { return at_; }
  /// Requires that it is there.
  void clear() noexcept {
    if (sizeof(std::size_t) < 8 || madvise(at_, bytes_, MADV_DONTNEED) != 0) std::memset(at_, 0, bytes_);
  }

 private:
  std::byte* at_{};
  std::size_t bytes_{};
};

}}}  // namespace sdma::v0_3::detail
