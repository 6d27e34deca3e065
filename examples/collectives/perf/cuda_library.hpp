// SPDX-License-Identifier: MIT
#pragma once
// The calls of libcuda that all users of streams here make, found when they are needed.
//
//   auto cuda = CudaLibrary::load();                    // an error says what is missing
//   cuda->good("cuStreamQuery", cuda->stream_query(s))  // nothing, or what CUDA calls the error
//   cuda->take(launch, "cuLaunchKernel");               // another function
//   if (auto d = cuda->lacking()) return *d;
//
// The ABI is that of 12.0, asked for by cuGetProcAddress. The library is never unloaded. Plain values; any thread.
// Errors: Diagnostics with CUDA's text.
#include "sdma/core/diagnostic.hpp"
#include "sdma/core/result.hpp"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <type_traits>

namespace collectives::perf {

struct CudaLibrary {
  using Status = int;
  using Pointer = std::uint64_t;
  using Context = struct ContextTag*;
  using Stream = void*;
  static constexpr Status kSuccess = 0, kNotReady = 600;
  static constexpr unsigned kNonBlocking = 1, kAtLeast = 0, kEqual = 1;  ///< flags of streams, and of waits

  Status (*error_name)(Status, const char**){};
  Status (*error_string)(Status, const char**){};
  Status (*retain_context)(Context*, int ordinal){};
  Status (*push_context)(Context){};
  Status (*pop_context)(Context*){};
  Status (*stream_create)(Stream*, unsigned flags, int priority){};
  Status (*stream_query)(Stream){};
  Status (*wait_value)(Stream, Pointer, std::uint32_t, unsigned flags){};
  Status (*write_value)(Stream, Pointer, std::uint32_t, unsigned flags){};
  Status (*copy)(Pointer dst, Pointer src, std::size_t, Stream){};

  static sdma::Result<CudaLibrary, sdma::Diagnostic> load();

  template <class F> void take(F*& to, const char* symbol) { to = reinterpret_cast<F*>(find(symbol)); }
  /// The last function that was not found.
  std::optional<sdma::Diagnostic> lacking() const;
  sdma::Result<void, sdma::Diagnostic> good(const char* call, Status) const;

 private:
  using GetProcAddress = Status (*)(const char*, void**, int version, std::uint64_t flags, int* found);
  void* find(const char* symbol);

  GetProcAddress find_{};
  const char* lacking_ = nullptr;
};

}  // namespace collectives::perf
