// SPDX-License-Identifier: MIT
#pragma once
// The matrix product of cuBLAS or hipBLAS, as one function: C = A^T B in bf16, with sums in fp32.
//
//   auto library = Blas::find(DeviceKind::cuda);                   // libcublas; DeviceKind::kfd: libhipblas
//   auto blas = Blas::load(*library, DeviceKind::cuda);
//   blas->create(&handle);   blas->set_stream(handle, stream);   blas->multiply(handle, n, a, b, c);
//
// hipBLAS has had two forms of hipblasGemmEx, which differ in the numbers of their data types. From 2.0 on, a function
// of the new form has a name of its own, hipblasGemmEx_v2; in libhipblas.so.3 the plain name means the new form. The
// numbers are from the vendors' headers. It has not run with a real hipBLAS yet.
//
// The calls are plain values. Errors: a Diagnostic of loading; numbers of the vendor, which `describe` explains.
#include "device/requested_library.hpp"
#include "gpu_streams.hpp"
#include "settings.hpp"

namespace collectives::perf {

using sdma::detail::RequestedLibrary;

class Blas {
 public:
  using Status = int;
  using Handle = struct HandleTag*;

  /// For `where` cuda or kfd.
  static sdma::Result<RequestedLibrary, sdma::Diagnostic> find(Where where) {
    if (is_amd(where))
      return RequestedLibrary::load(
          {.option = "--beside",
           .what = "hipBLAS",
           .variable = "SDMA_HIPBLAS_LIBRARY",
           .names = {"libhipblas.so.3", "libhipblas.so.2", "libhipblas.so.1", "libhipblas.so.0"},
           .hint = "add its folder to LD_LIBRARY_PATH (ROCm has it in /opt/rocm/lib)"});
    return RequestedLibrary::load({.option = "--beside",
                                   .what = "cuBLAS",
                                   .variable = "SDMA_CUBLAS_LIBRARY",
                                   .names = {"libcublas.so.13", "libcublas.so.12"},
                                   .hint = "add its folder to LD_LIBRARY_PATH (CUDA has it in /usr/local/cuda/lib64)"});
  }
  static sdma::Result<Blas, sdma::Diagnostic> load(RequestedLibrary library, Where where) {
    // cublasOperation_t, cudaDataType_t, cublasComputeType_t, cublasGemmAlgo_t.
    constexpr Numbers kCublas{.as_is = 0, .transposed = 1, .bf16 = 14, .sums_in_fp32 = 68, .algorithm = -1};
    // hipblasOperation_t, hipblasDatatype_t twice, hipblasGemmAlgo_t; then with hipDataType and hipblasComputeType_t.
    constexpr Numbers kHipblas{.as_is = 111, .transposed = 112, .bf16 = 168, .sums_in_fp32 = 151, .algorithm = 160};
    constexpr Numbers kHipblas2{.as_is = 111, .transposed = 112, .bf16 = 14, .sums_in_fp32 = 2, .algorithm = 160};
    Blas b;
    if (where == sdma::DeviceKind::cuda) {
      b.prefix_ = "cublas";
      b.numbers_ = kCublas;
      b.create = library["cublasCreate_v2"];
      b.set_stream = library["cublasSetStream_v2"];
      b.gemm_ = library["cublasGemmEx"];
      b.error_ = library.may("cublasGetStatusString");
    } else {
      b.prefix_ = "hipblas";
      b.create = library["hipblasCreate"];
      b.set_stream = library["hipblasSetStream"];
      b.gemm_ = library.may("hipblasGemmEx_v2");
      b.numbers_ = b.gemm_ || library.name().find(".so.3") != std::string::npos ? kHipblas2 : kHipblas;
      if (!b.gemm_) b.gemm_ = library["hipblasGemmEx"];
      b.error_ = library.may("hipblasStatusToString");
    }
    if (auto lacking = library.lacking()) return *lacking;
    return b;
  }

  Status (*create)(Handle*){};
  Status (*set_stream)(Handle, StreamDriver::Stream){};
  /// Three n x n matrices of bf16.
  Status multiply(Handle h, int n, sdma::GpuVa a, sdma::GpuVa b, sdma::GpuVa c) const {
    const float one = 1, zero = 0;
    const auto at = [](sdma::GpuVa va) { return reinterpret_cast<void*>(va.value); };
    const auto& x = numbers_;
    return gemm_(h, x.transposed, x.as_is, n, n, n, &one, at(a), x.bf16, n, at(b), x.bf16, n, &zero, at(c), x.bf16, n,
                 x.sums_in_fp32, x.algorithm);
  }
  std::string describe(Status s) const { return error_ ? error_(s) : std::to_string(s); }
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
