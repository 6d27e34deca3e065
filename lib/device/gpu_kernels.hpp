// SPDX-License-Identifier: MIT
#pragma once
// Kernels of one module on GPU 0, through the runtime that owns the process's GPUs: CUDA's driver, or HIP.
//
//   auto kernels = GpuKernels::load(GpuRuntime::hip, code_object);
//   kernels->start(kernels->stream(), "put_all_tiles", waves, 64, ring, tiles);   // arguments have the kernel's types
//   kernels->wait(kernels->stream());
//
// Both libraries have these functions, with other names and the same arguments. They are never unloaded, and nothing is
// freed before the process ends. wait() ends when the kernels do, so these have to end by themselves. Use one thread.
// Errors: a Diagnostic with the runtime's code.
#include "loaded_library.hpp"

#include <cstddef>
#include <functional>
#include <utility>
#include <vector>

namespace sdma { inline namespace v0_3 { namespace detail {

enum class GpuRuntime { cuda, hip };

class GpuKernels {
  using Status = int;
  struct Calls {
    LoadedLibrary library;
    bool hip = library.may("hipInit").at != nullptr;

    Symbol either(const char* of_cuda, const char* of_hip) { return library[hip ? of_hip : of_cuda]; }
    Symbol only(bool wanted, const char* name) { return wanted ? library[name] : Symbol{}; }
    Status (*init)(unsigned) = either("cuInit", "hipInit");
    Status (*stream)(void**, unsigned flags, int) = either("cuStreamCreateWithPriority", "hipStreamCreateWithPriority");
    Status (*wait)(void* stream) = either("cuStreamSynchronize", "hipStreamSynchronize");
    Status (*allocate)(void**, std::size_t) = either("cuMemAlloc_v2", "hipMalloc");
    Status (*module)(void**, const void*) = either("cuModuleLoadData", "hipModuleLoadData");
    Status (*function)(void**, void*, const char*) = either("cuModuleGetFunction", "hipModuleGetFunction");
    Status (*launch)(void*, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned shared, void* stream,
                     void** arguments, void** extra) = either("cuLaunchKernel", "hipModuleLaunchKernel");
    // HIP selects a GPU, and CUDA a context.
    Status (*select)(int) = only(hip, "hipSetDevice");
    Status (*retain)(void**, int) = only(!hip, "cuDevicePrimaryCtxRetain");
    Status (*push)(void*) = only(!hip, "cuCtxPushCurrent_v2");
  };

 public:
  using Done = Result<void, Diagnostic>;
  using Stream = void*;

  /// `module`: PTX, or a code object.
  static Result<GpuKernels, Diagnostic> load(GpuRuntime runtime, const std::string& module) {
    const bool hip = runtime == GpuRuntime::hip;
    GpuKernels k;
    std::string tried;
    for (const auto* name :
         hip ? std::vector{"libamdhip64.so", "libamdhip64.so.7", "libamdhip64.so.6", "libamdhip64.so.5"}
             : std::vector{"libcuda.so.1"}) {
      const auto calls = load_once<Calls>(name, "", [](const Calls& c) {
        return c.library.lacking() ? fmt::format("it has no function {}", c.library.lacking()) : std::string();
      });
      if (calls) k.calls_ = *calls;
      if (calls) break;
      tried += (tried.empty() ? "" : "; ") + to_string(calls.error());
    }
    if (!k.calls_)
      return Diagnostic{
          .where = "kernels",
          .message = std::move(tried),
          .hint = hip ? "install HIP, and add its folder to LD_LIBRARY_PATH" : "install the GPU's driver"};
    const auto& c = *k.calls_;
    void* context = nullptr;
    const auto stream = [&](Stream& s) { return c.stream(&s, kNonBlocking, 0); };
    const auto ready = k.all({{"init", [&] { return c.init(0); }},
                              {"the GPU", [&] { return hip ? c.select(0) : c.retain(&context, 0); }},
                              {"its context", [&] { return hip ? 0 : c.push(context); }},
                              {"a stream", [&] { return stream(k.stream_); }},
                              {"a stream", [&] { return stream(k.second_); }},
                              {"the module", [&] { return c.module(&k.module_, module.c_str()); }}});
    if (!ready) return ready.error();
    return k;
  }

  Stream stream() const noexcept { return stream_; }
  Stream second_stream() const noexcept { return second_; }
  /// Memory of the GPU.
  Result<void*, Diagnostic> allocate(std::size_t bytes) const {
    void* out = nullptr;
    if (const auto r = all({{"memory", [&] { return calls_->allocate(&out, bytes); }}}); !r) return r.error();
    return out;
  }
  template <class... A> Done start(Stream s, const char* kernel, unsigned blocks, unsigned threads, A... a) const {
    void *function = nullptr, *arguments[] = {&a...};
    const auto launch = [&] { return calls_->launch(function, blocks, 1, 1, threads, 1, 1, 0, s, arguments, nullptr); };
    return all({{kernel, [&] { return calls_->function(&function, module_, kernel); }}, {kernel, launch}});
  }
  /// Until what was started on the stream is complete.
  Done wait(Stream s) const {
    return all({{"the kernels", [&] { return calls_->wait(s); }}});
  }

 private:
  static constexpr unsigned kNonBlocking = 1;
  struct Step {
    const char* what;
    std::function<Status()> call;
  };
  /// One after another, until one fails.
  Done all(const std::vector<Step>& steps) const {
    for (const auto& step : steps)
      if (const Status s = step.call(); s != 0)
        return Diagnostic{.where = "kernels",
                          .message = fmt::format("{}: error {} of {}", step.what, s, calls_->hip ? "HIP" : "CUDA"),
                          .hint = "the runtime's header has the names of its errors"};
    return {};
  }

  const Calls* calls_{};
  Stream stream_{}, second_{};
  void* module_{};
};

}}}  // namespace sdma::v0_3::detail
