// SPDX-License-Identifier: MIT
#pragma once
// The calls of libcuda that all users of streams here make, found when they are needed.
//
//   auto cuda = CudaLibrary::load();                    // an error says what is missing
//   cuda->good("cuStreamQuery", cuda->stream_query(s))  // nothing, or what CUDA calls the error
//   Status (*launch)(..) = (*cuda)["cuLaunchKernel"];   // another function
//   if (auto d = cuda->lacking()) return *d;
//
// The ABI is that of 12.0, asked for by cuGetProcAddress. The library is never unloaded. Plain values; any thread.
// Errors: Diagnostics with CUDA's text.
#include "loaded_library.hpp"
#include "sdma/core/diagnostic.hpp"
#include "sdma/core/result.hpp"

#include <cstddef>
#include <cstdint>
#include <optional>

namespace collectives::perf {

class CudaLibrary {
  using GetProcAddress = int (*)(const char*, void**, int version, std::uint64_t flags, int* found);
  static GetProcAddress get_proc_address() noexcept;

  GetProcAddress find_ = get_proc_address();  // null: the library cannot be loaded. Finds the members after it.
  const char* lacking_ = nullptr;

 public:
  using Status = int;
  using Pointer = std::uint64_t;
  using Context = struct ContextTag*;
  using Stream = void*;
  static constexpr Status kSuccess = 0, kNotReady = 600;
  static constexpr unsigned kNonBlocking = 1, kAtLeast = 0, kEqual = 1;  ///< flags of streams, and of waits

  Status (*error_name)(Status, const char**) = (*this)["cuGetErrorName"];
  Status (*error_string)(Status, const char**) = (*this)["cuGetErrorString"];
  Status (*retain_context)(Context*, int ordinal) = (*this)["cuDevicePrimaryCtxRetain"];
  Status (*push_context)(Context) = (*this)["cuCtxPushCurrent"];
  Status (*pop_context)(Context*) = (*this)["cuCtxPopCurrent"];
  Status (*stream_create)(Stream*, unsigned flags, int priority) = (*this)["cuStreamCreateWithPriority"];
  Status (*stream_query)(Stream) = (*this)["cuStreamQuery"];
  Status (*wait_value)(Stream, Pointer, std::uint32_t, unsigned flags) = (*this)["cuStreamWaitValue32"];
  Status (*write_value)(Stream, Pointer, std::uint32_t, unsigned flags) = (*this)["cuStreamWriteValue32"];
  Status (*copy)(Pointer dst, Pointer src, std::size_t, Stream) = (*this)["cuMemcpyAsync"];

  static sdma::Result<CudaLibrary, sdma::Diagnostic> load();

  Symbol operator[](const char* symbol);
  /// That the library cannot be loaded, or the last function that was not found.
  std::optional<sdma::Diagnostic> lacking() const;
  sdma::Result<void, sdma::Diagnostic> good(const char* call, Status) const;
};

}  // namespace collectives::perf
