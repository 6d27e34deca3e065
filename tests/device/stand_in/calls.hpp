// SPDX-License-Identifier: MIT
#pragma once
// The functions that the stand-in offers, by name, as cuGetProcAddress finds them.
//
//   Entry{"cuStreamQuery", function<"cuStreamQuery", stream_query>()}
//
// Around each function: it returns kNotInitialized before cuInit (unless
// `Before` allows it), injected failures come true, and no exception leaves.
#include "failures.hpp"

#include <algorithm>
#include <new>
#include <span>

namespace stand_in {

struct Entry {
  const char* name;
  void* function;
  int since = 0, until = 1'000'000;  ///< the versions of the ABI for which it is the function of that name
};

struct Name {
  char text[40]{};
  template <std::size_t N> consteval Name(const char (&t)[N]) { std::copy_n(t, N, text); }
};
enum class Before { refused, allowed };

bool initialised() noexcept;

template <Name N, Before B, class... A, class F> Status call(F f, A... a) noexcept {
  try {
    if (B == Before::refused && !initialised()) return kNotInitialized;
    if (const auto code = count_call(N.text)) return code;
    return f(a...);
  } catch (const std::bad_alloc&) {
    return kOutOfMemory;
  } catch (...) {
    return kUnknown;
  }
}

template <class... A> using Pure = Status (*)(A...);

template <Name N, auto F, Before B = Before::refused> void* function() {
  const auto wrap = []<class... A>(Pure<A...>) -> Pure<A...> {
    return +[](A... a) -> Status { return call<N, B, A...>(F, a...); };
  };
  return reinterpret_cast<void*>(wrap(F));
}

std::span<const Entry> device_calls();
std::span<const Entry> stream_calls();
std::span<const Entry> copy_calls();
std::span<const Entry> memory_calls();
std::span<const Entry> pointer_calls();
std::span<const Entry> module_calls();
std::span<const Entry> graph_calls();

}  // namespace stand_in
