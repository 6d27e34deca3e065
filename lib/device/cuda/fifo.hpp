// SPDX-License-Identifier: MIT
#pragma once
// A queue of at most N things in the memory of its owner: Fifo<Mark, 64> marks; marks.push({..}); marks.front().
//
// push requires !full(); front, back and pop require count != 0. One thread at a time. No errors. Internal.
#include <array>
#include <cstddef>

namespace sdma { inline namespace v0_3 { namespace detail::cuda {

template <class T, std::size_t N> struct Fifo {
  std::array<T, N> all{};
  std::size_t first = 0, count = 0;
  bool full() const noexcept { return count == N; }
  T& front() noexcept { return all[first]; }
  const T& back() const noexcept { return all[(first + count - 1) % N]; }
  void push(const T& t) noexcept { all[(first + count++) % N] = t; }
  void pop() noexcept {
    first = (first + 1) % N;
    --count;
  }
};

}}}  // namespace sdma::v0_3::detail::cuda
