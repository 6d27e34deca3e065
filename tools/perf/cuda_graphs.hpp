// SPDX-License-Identifier: MIT
#pragma once
// The calls of libcuda that stream_order_perf makes: streams with kernels and copies, capture, graphs.
//
//   const auto cuda = CudaGraphs::load();            // an error says what is missing
//   CudaGraphs::Rank r = *cuda->rank(0);             // its context current in this thread, streams, and a kernel
//   cuda->good("cuMemcpyAsync", cuda->copy(to, from, bytes, r.stream));
//
// Open the CUDA device before `rank`: device.md says why. One thread uses a Rank. Errors: those of cuda_library.hpp.
// Streams and modules stay for the life of the process.
#include "cuda_library.hpp"
#include "sdma/sync/stream_order.hpp"

#include <cstddef>
#include <cstdint>

namespace collectives::perf {

struct CudaGraphs : CudaLibrary {
  using Module = struct ModuleTag*;
  using Function = struct FunctionTag*;
  using Graph = struct GraphTag*;
  using GraphExec = struct GraphExecTag*;

  /// A GPU, for one thread.
  struct Rank {
    Context context{};
    Stream stream{}, second{};
    Function produce{};
  };

  Status (*load_module)(Module*, const void* text) = (*this)["cuModuleLoadData"];
  Status (*function)(Function*, Module, const char* name) = (*this)["cuModuleGetFunction"];
  Status (*launch)(Function, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x, unsigned block_y,
                   unsigned block_z, unsigned shared_bytes, Stream, void** arguments,
                   void** extra) = (*this)["cuLaunchKernel"];
  Status (*begin_capture)(Stream, int mode) = (*this)["cuStreamBeginCapture"];
  Status (*end_capture)(Stream, Graph*) = (*this)["cuStreamEndCapture"];
  Status (*instantiate)(GraphExec*, Graph, unsigned long long flags) = (*this)["cuGraphInstantiateWithFlags"];
  Status (*launch_graph)(GraphExec, Stream) = (*this)["cuGraphLaunch"];
  Status (*destroy_graph)(Graph) = (*this)["cuGraphDestroy"];
  Status (*destroy_exec)(GraphExec) = (*this)["cuGraphExecDestroy"];

  static sdma::Result<CudaGraphs, sdma::Diagnostic> load();
  sdma::Result<Rank, sdma::Diagnostic> rank(int ordinal) const;
  /// A kernel that stores value + i in word i.
  Status produce(const Rank&, Pointer to, std::uint64_t words, std::uint64_t value) const;
};

/// For sdma::StreamOrder: a stream, and the calls that it is given with. Keep it as long as its calls are used.
struct CudaOrdered {
  const CudaGraphs* cuda{};
  CudaGraphs::Stream stream{};
  sdma::StreamCalls calls() noexcept;
};

}  // namespace collectives::perf
