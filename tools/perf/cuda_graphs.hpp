// SPDX-License-Identifier: MIT
#pragma once
// The calls of libcuda that stream_order_perf makes: streams with kernels and copies, capture, graphs.
//
//   const auto cuda = CudaLibrary::load<CudaGraphs>();     // an error says what is missing
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
  using Graph = struct GraphTag*;
  using GraphExec = struct GraphExecTag*;

  /// A GPU, for one thread.
  struct Rank {
    Context context{};
    Stream stream{}, second{};
    sdma::detail::cuda::Function produce{};
  };

  Status (*begin_capture)(Stream, int mode) = find["cuStreamBeginCapture"];
  Status (*end_capture)(Stream, Graph*) = find["cuStreamEndCapture"];
  Status (*instantiate)(GraphExec*, Graph, unsigned long long flags) = find["cuGraphInstantiateWithFlags"];
  Status (*launch_graph)(GraphExec, Stream) = find["cuGraphLaunch"];
  Status (*destroy_graph)(Graph) = find["cuGraphDestroy"];
  Status (*destroy_exec)(GraphExec) = find["cuGraphExecDestroy"];

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
