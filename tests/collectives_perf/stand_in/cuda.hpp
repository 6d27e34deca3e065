// SPDX-License-Identifier: MIT
#pragma once
// The libcuda of tests/device/stand_in, as the libraries here use it: found when first needed, as the real ones do.
//
//   const auto copy = cuda_call<Status(Pointer, Pointer, std::size_t, Stream)>("cuMemcpyAsync");
//
// A call that is missing ends the test at once. Any thread.
#include "../../../lib/device/cuda/cuda_driver.hpp"
#include "setting.hpp"

#include <dlfcn.h>
#include <cstdio>
#include <cstdlib>

namespace stand_in {

namespace abi = sdma::detail::cuda;

inline void* find_call(const char* name) {
  using Find = abi::Status (*)(const char*, void**, int, std::uint64_t, int*);
  static const auto find = reinterpret_cast<Find>(dlsym(dlopen("libcuda.so.1", RTLD_NOW), "cuGetProcAddress_v2"));
  void* at = nullptr;
  int found = 0;
  if (!find || find(name, &at, 12000, 0, &found) != abi::kSuccess || !at) {
    std::fprintf(stderr, "stand-in: no %s\n", name);
    std::abort();
  }
  return at;
}

template <class F> F* cuda_call(const char* name) { return reinterpret_cast<F*>(find_call(name)); }

}  // namespace stand_in
