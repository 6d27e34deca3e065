// SPDX-License-Identifier: MIT
#include "cuda_graphs.hpp"

#include <dlfcn.h>
#include <fmt/format.h>

#include <algorithm>
#include <type_traits>

namespace collectives::perf {

using namespace sdma;

namespace {

constexpr const char* kLibrary = "libcuda.so.1";
constexpr int kAbi = 12000;
constexpr unsigned kNonBlocking = 1, kEqual = 1, kThreads = 256, kMostBlocks = 132;

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

Diagnostic refused(std::string message) {
  return {.where = "CUDA", .message = std::move(message), .hint = "nvidia-smi shows whether the GPU works"};
}

}  // namespace

Result<CudaGraphs, Diagnostic> CudaGraphs::load() {
  using GetProcAddress = Status (*)(const char*, void**, int version, std::uint64_t flags, int* found);
  CudaGraphs c;
  void* library = dlopen(kLibrary, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
  const auto find = library ? reinterpret_cast<GetProcAddress>(dlsym(library, "cuGetProcAddress_v2")) : nullptr;
  if (!find) return refused(fmt::format("{} cannot be loaded", kLibrary));
  const char* lacking = nullptr;
  const auto take = [&](auto& to, const char* symbol) {
    void* at = nullptr;
    int found = 0;
    if (find(symbol, &at, kAbi, 0, &found) != kSuccess || !at) lacking = symbol;
    to = reinterpret_cast<std::remove_reference_t<decltype(to)>>(at);
  };
  take(c.error_name, "cuGetErrorName");
  take(c.retain_context, "cuDevicePrimaryCtxRetain");
  take(c.set_context, "cuCtxPushCurrent");
  take(c.stream_create, "cuStreamCreateWithPriority");
  take(c.stream_query, "cuStreamQuery");
  take(c.wait_value, "cuStreamWaitValue32");
  take(c.write_value, "cuStreamWriteValue32");
  take(c.copy, "cuMemcpyAsync");
  take(c.load_module, "cuModuleLoadData");
  take(c.function, "cuModuleGetFunction");
  take(c.launch, "cuLaunchKernel");
  take(c.begin_capture, "cuStreamBeginCapture");
  take(c.end_capture, "cuStreamEndCapture");
  take(c.instantiate, "cuGraphInstantiateWithFlags");
  take(c.launch_graph, "cuGraphLaunch");
  take(c.destroy_graph, "cuGraphDestroy");
  take(c.destroy_exec, "cuGraphExecDestroy");
  if (lacking) return refused(fmt::format("{} has no function {}", kLibrary, lacking));
  return c;
}

Result<void, Diagnostic> CudaGraphs::good(const char* call, Status s) const {
  if (s == kSuccess) return {};
  const char* text = nullptr;
  if (error_name(s, &text) != kSuccess || !text) return refused(fmt::format("{}: error {}", call, s));
  return refused(fmt::format("{}: {}", call, text));
}

Result<CudaGraphs::Rank, Diagnostic> CudaGraphs::rank(int ordinal) const {
  Rank r;
  Module module{};
  Result<void, Diagnostic> first;
  const auto must = [&](const char* call, Status s) { first = first ? good(call, s) : std::move(first); };
  must("cuDevicePrimaryCtxRetain", retain_context(&r.context, ordinal));
  must("cuCtxPushCurrent", set_context(r.context));
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
                return o.cuda->wait_value(o.stream, word.value, value, kEqual);
              }};
}

}  // namespace collectives::perf
