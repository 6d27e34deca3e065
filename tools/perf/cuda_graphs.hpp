// SPDX-License-Identifier: MIT
#pragma once
// The calls of libcuda that sdma streams makes: streams with kernels and copies, capture, graphs.
//
//   const auto cuda = CudaLibrary::load<CudaGraphs>();     // an error says what is missing
//   CudaGraphs::Rank r = *cuda->rank(0);             // its context current in this thread, streams, and a kernel
//   cuda->good("cuMemcpyAsync", cuda->copy(to, from, bytes, r.stream));
//
// Open the CUDA device before `rank`: device.md says why. One thread uses a Rank. Errors: those of cuda_library.hpp.
// Streams and modules stay for the life of the process.
#include "cuda_library.hpp"
#include "device/cuda/kernels.hpp"
#include "sdma/sync/stream_order.hpp"

#include <algorithm>
#include <cstdint>

namespace collectives::perf {

inline constexpr unsigned kThreads = 256, kMostBlocks = 132;

/// produce(to, words, value): to[i] = value + i.
inline constexpr const char* kProduceWord = R"(  .reg .b32 %x;
  add.u64 %a, %value, %i;
  cvt.u32.u64 %x, %a;
  shl.b64 %a, %i, 2;
  add.u64 %a, %to, %a;
  st.global.u32 [%a], %x;
)";

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

  sdma::Result<Rank, sdma::Diagnostic> rank(int ordinal) const {
    Rank r;
    sdma::detail::cuda::Module module{};
    sdma::Result<void, sdma::Diagnostic> first;
    const auto must = [&](const char* call, Status s) { first = first ? good(call, s) : std::move(first); };
    must("cuDevicePrimaryCtxRetain", retain_context(&r.context, ordinal));
    must("cuCtxPushCurrent", push_context(r.context));
    must("cuStreamCreateWithPriority", stream_create(&r.stream, kNonBlocking, 0));
    must("cuStreamCreateWithPriority", stream_create(&r.second, kNonBlocking, 0));
    const auto text = sdma::detail::cuda::kPtxHeader +
                      sdma::detail::cuda::grid_kernel("produce", {"to", "words", "value"}, "words", kProduceWord);
    must("cuModuleLoadData", load_module(&module, text.c_str()));
    if (first) must("cuModuleGetFunction", function(&r.produce, module, "produce"));
    if (!first) return std::move(first.error());
    return r;
  }
  /// A kernel that stores value + i in word i.
  Status produce(const Rank& r, Pointer to, std::uint64_t words, std::uint64_t value) const {
    const auto blocks = static_cast<unsigned>(std::clamp<std::uint64_t>(words / 1024, 1, kMostBlocks));
    std::uint64_t at = to;
    void* arguments[] = {&at, &words, &value};
    return launch(r.produce, blocks, 1, 1, kThreads, 1, 1, 0, r.stream, arguments, nullptr);
  }
};

/// For sdma::StreamOrder: a stream, and the calls that it is given with. Keep it as long as its calls are used.
struct CudaOrdered {
  const CudaGraphs* cuda{};
  CudaGraphs::Stream stream{};
  sdma::StreamCalls calls() noexcept {
    return {.stream = this,
            .write =
                [](void* s, sdma::GpuVa word, std::uint32_t value) noexcept {
                  const auto& o = *static_cast<CudaOrdered*>(s);
                  return o.cuda->write_value(o.stream, word.value, value, 0);
                },
            .hold =
                [](void* s, sdma::GpuVa word, std::uint32_t value) noexcept {
                  const auto& o = *static_cast<CudaOrdered*>(s);
                  return o.cuda->wait_value(o.stream, word.value, value, CudaLibrary::kEqual);
                }};
  }
  /// The same for rounds that the stream carries itself.
  sdma::StreamCalls carrying() noexcept {
    auto c = calls();
    c.copy = [](void* s, sdma::GpuVa to, sdma::GpuVa from, std::uint64_t bytes) noexcept {
      const auto& o = *static_cast<CudaOrdered*>(s);
      return o.cuda->copy(to.value, from.value, bytes, o.stream);
    };
    return c;
  }
};

}  // namespace collectives::perf
