// SPDX-License-Identifier: MIT
#include "blas.hpp"

namespace collectives::perf {

using namespace sdma;

Result<LoadedLibrary, Diagnostic> Blas::find(Where where) {
  if (is_amd(where))
    return LoadedLibrary::load({.option = "--beside",
                                .what = "hipBLAS",
                                .variable = "SDMA_HIPBLAS_LIBRARY",
                                .names = {"libhipblas.so.3", "libhipblas.so.2", "libhipblas.so.1", "libhipblas.so.0"},
                                .hint = "add its folder to LD_LIBRARY_PATH (ROCm has it in /opt/rocm/lib)"});
  return LoadedLibrary::load({.option = "--beside",
                              .what = "cuBLAS",
                              .variable = "SDMA_CUBLAS_LIBRARY",
                              .names = {"libcublas.so.13", "libcublas.so.12"},
                              .hint = "add its folder to LD_LIBRARY_PATH (CUDA has it in /usr/local/cuda/lib64)"});
}

Result<Blas, Diagnostic> Blas::load(LoadedLibrary library, Where where) {
  // cublasOperation_t, cudaDataType_t, cublasComputeType_t, cublasGemmAlgo_t.
  constexpr Numbers kCublas{.as_is = 0, .transposed = 1, .bf16 = 14, .sums_in_fp32 = 68, .algorithm = -1};
  // hipblasOperation_t, hipblasDatatype_t twice, hipblasGemmAlgo_t; then with hipDataType and hipblasComputeType_t.
  constexpr Numbers kHipblas{.as_is = 111, .transposed = 112, .bf16 = 168, .sums_in_fp32 = 151, .algorithm = 160};
  constexpr Numbers kHipblas2{.as_is = 111, .transposed = 112, .bf16 = 14, .sums_in_fp32 = 2, .algorithm = 160};
  Blas b;
  if (where == Where::cuda) {
    b.prefix_ = "cublas";
    b.numbers_ = kCublas;
    library.take(b.create, "cublasCreate_v2");
    library.take(b.set_stream, "cublasSetStream_v2");
    library.take(b.gemm_, "cublasGemmEx");
    library.take(b.error_, "cublasGetStatusString", false);
  } else {
    b.prefix_ = "hipblas";
    library.take(b.create, "hipblasCreate");
    library.take(b.set_stream, "hipblasSetStream");
    library.take(b.gemm_, "hipblasGemmEx_v2", false);
    b.numbers_ = b.gemm_ || library.name().find(".so.3") != std::string::npos ? kHipblas2 : kHipblas;
    if (!b.gemm_) library.take(b.gemm_, "hipblasGemmEx");
    library.take(b.error_, "hipblasStatusToString", false);
  }
  if (auto lacking = library.lacking()) return *lacking;
  return b;
}

Blas::Status Blas::multiply(Handle h, int n, GpuVa a, GpuVa b, GpuVa c) const {
  const float one = 1, zero = 0;
  const auto at = [](GpuVa va) { return reinterpret_cast<void*>(va.value); };
  const auto& x = numbers_;
  return gemm_(h, x.transposed, x.as_is, n, n, n, &one, at(a), x.bf16, n, at(b), x.bf16, n, &zero, at(c), x.bf16, n,
               x.sums_in_fp32, x.algorithm);
}

std::string Blas::describe(Status s) const { return error_ ? error_(s) : std::to_string(s); }

}  // namespace collectives::perf
