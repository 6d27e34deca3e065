// SPDX-License-Identifier: MIT
#include "cuda_graphs.hpp"

#include <algorithm>

namespace collectives::perf {

using namespace sdma;

namespace {

constexpr unsigned kThreads = 256, kMostBlocks = 132;

/// produce(to, words, value): to[i] = value + i, in strides of the grid.
constexpr const char* kProduce = R"(.version 7.0
.target sm_70
.address_size 64
.visible .entry produce(.param .u64 to, .param .u64 words, .param .u64 value)
{
  .reg .b64 %to, %n, %value, %i, %a, %step;
  .reg .b32 %block, %thread, %size, %grid, %x;
  .reg .pred %done;
  ld.param.u64 %to, [to];
  ld.param.u64 %n, [words];
  ld.param.u64 %value, [value];
  mov.u32 %block, %ctaid.x;
  mov.u32 %thread, %tid.x;
  mov.u32 %size, %ntid.x;
  mov.u32 %grid, %nctaid.x;
  mul.wide.u32 %i, %block, %size;
  cvt.u64.u32 %a, %thread;
  add.u64 %i, %i, %a;
  mul.wide.u32 %step, %size, %grid;
NEXT:
  setp.ge.u64 %done, %i, %n;
  @%done bra END;
  add.u64 %a, %value, %i;
  cvt.u32.u64 %x, %a;
  shl.b64 %a, %i, 2;
  add.u64 %a, %to, %a;
  st.global.u32 [%a], %x;
  add.u64 %i, %i, %step;
  bra NEXT;
END:
  ret;
}
)";

}  // namespace

Result<CudaGraphs::Rank, Diagnostic> CudaGraphs::rank(int ordinal) const {
  Rank r;
  detail::cuda::Module module{};
  Result<void, Diagnostic> first;
  const auto must = [&](const char* call, Status s) { first = first ? good(call, s) : std::move(first); };
  must("cuDevicePrimaryCtxRetain", retain_context(&r.context, ordinal));
  must("cuCtxPushCurrent", push_context(r.context));
  must("cuStreamCreateWithPriority", stream_create(&r.stream, kNonBlocking, 0));
  must("cuStreamCreateWithPriority", stream_create(&r.second, kNonBlocking, 0));
  must("cuModuleLoadData", load_module(&module, kProduce));
  if (first) must("cuModuleGetFunction", function(&r.produce, module, "produce"));
  if (!first) return std::move(first.error());
  return r;
}

CudaGraphs::Status CudaGraphs::produce(const Rank& r, Pointer to, std::uint64_t words, std::uint64_t value) const {
  const auto blocks = static_cast<unsigned>(std::clamp<std::uint64_t>(words / 1024, 1, kMostBlocks));
  std::uint64_t at = to;
  void* arguments[] = {&at, &words, &value};
  return launch(r.produce, blocks, 1, 1, kThreads, 1, 1, 0, r.stream, arguments, nullptr);
}

StreamCalls CudaOrdered::calls() noexcept {
  return {.stream = this,
          .write =
              [](void* s, GpuVa word, std::uint32_t value) noexcept {
                const auto& o = *static_cast<CudaOrdered*>(s);
                return o.cuda->write_value(o.stream, word.value, value, 0);
              },
          .hold =
              [](void* s, GpuVa word, std::uint32_t value) noexcept {
                const auto& o = *static_cast<CudaOrdered*>(s);
                return o.cuda->wait_value(o.stream, word.value, value, CudaLibrary::kEqual);
              }};
}

}  // namespace collectives::perf
