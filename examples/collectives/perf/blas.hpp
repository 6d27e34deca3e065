// SPDX-License-Identifier: MIT
#pragma once
// The matrix product of cuBLAS or hipBLAS, as one function: C = A^T B in bf16, with sums in fp32.
//
//   auto library = Blas::find(Where::cuda);                   // libcublas; Where::kfd: libhipblas
//   auto blas = Blas::load(*library, Where::cuda);
//   blas->create(&handle);   blas->set_stream(handle, stream);   blas->multiply(handle, n, a, b, c);
//
// hipBLAS has had two forms of hipblasGemmEx, which differ in the numbers of their data types. From 2.0 on, a function
// of the new form has a name of its own, hipblasGemmEx_v2; in libhipblas.so.3 the plain name means the new form. The
// numbers are from the vendors' headers. It has not run with a real hipBLAS yet.
//
// The calls are plain values. Errors: a Diagnostic of loading; numbers of the vendor, which `describe` explains.
#include "gpu_streams.hpp"
#include "loaded_library.hpp"
#include "settings.hpp"

namespace collectives::perf {

class Blas {
 public:
  using Status = int;
  using Handle = struct HandleTag*;

  /// For `where` cuda or kfd.
  static sdma::Result<LoadedLibrary, sdma::Diagnostic> find(Where);
  static sdma::Result<Blas, sdma::Diagnostic> load(LoadedLibrary, Where);

  Status (*create)(Handle*){};
  Status (*set_stream)(Handle, StreamDriver::Stream){};
  /// Three n x n matrices of bf16.
  Status multiply(Handle, int n, sdma::GpuVa a, sdma::GpuVa b, sdma::GpuVa c) const;
  std::string describe(Status) const;
  /// "cublasCreate", for messages.
  std::string call(const char* what) const { return prefix_ + what; }

 private:
  /// The vendor's numbers.
  struct Numbers {
    int as_is{}, transposed{}, bf16{}, sums_in_fp32{}, algorithm{};
  };
  using Gemm = Status(Handle, int transpose_a, int transpose_b, int m, int n, int k, const void* alpha, const void* a,
                      int type_a, int lda, const void* b, int type_b, int ldb, const void* beta, void* c, int type_c,
                      int ldc, int compute, int algorithm);

  Gemm* gemm_{};
  const char* (*error_)(Status){};
  Numbers numbers_{};
  std::string prefix_{};
};

}  // namespace collectives::perf
