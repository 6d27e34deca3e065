// SPDX-License-Identifier: MIT
#include "gpu_streams.hpp"

#include "sdma/device/cuda.hpp"

#include <dlfcn.h>
#include <fmt/format.h>

#include <deque>

namespace collectives::perf {

using namespace sdma;

namespace {

using Status = int;
using Context = struct ContextTag*;
using Stream = StreamDriver::Stream;

constexpr const char* kLibrary = "libcuda.so.1";
constexpr int kAbi = 12000;  ///< of the functions, for cuGetProcAddress
constexpr Status kSuccess = 0, kNotReady = 600;
constexpr unsigned kNonBlocking = 1, kAtLeast = 0;

using GetProcAddress = Status (*)(const char*, void**, int version, std::uint64_t flags, int* found);

struct CudaCalls {
  Status (*error_name)(Status, const char**){};
  Status (*error_string)(Status, const char**){};
  Status (*retain_context)(Context*, int ordinal){};
  Status (*push_context)(Context){};
  Status (*pop_context)(Context*){};
  Status (*stream_create)(Stream*, unsigned flags, int priority){};
  Status (*stream_query)(Stream){};
  Status (*wait_value)(Stream, std::uint64_t at, std::uint32_t, unsigned flags){};
  Status (*write_value)(Stream, std::uint64_t at, std::uint32_t, unsigned flags){};
  Status (*copy)(std::uint64_t dst, std::uint64_t src, std::size_t, Stream){};
};

Diagnostic refused(std::string message) {
  return {.where = "CUDA", .message = std::move(message), .hint = "nvidia-smi shows whether the GPU works"};
}

Result<CudaCalls, Diagnostic> load() {
  CudaCalls c;
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
  take(c.error_string, "cuGetErrorString");
  take(c.retain_context, "cuDevicePrimaryCtxRetain");
  take(c.push_context, "cuCtxPushCurrent");
  take(c.pop_context, "cuCtxPopCurrent");
  take(c.stream_create, "cuStreamCreateWithPriority");
  take(c.stream_query, "cuStreamQuery");
  take(c.wait_value, "cuStreamWaitValue32");
  take(c.write_value, "cuStreamWriteValue32");
  take(c.copy, "cuMemcpyAsync");
  if (lacking) return refused(fmt::format("{} has no function {}", kLibrary, lacking));
  return c;
}

class CudaDriver final : public StreamDriver {
 public:
  CudaDriver(const CudaCalls& c, Device& d, const Settings& s) : calls_(c), device_(d) {
    const auto& gpus = dynamic_cast<const CudaDevice&>(d).gpus();
    for (std::uint32_t i = 0; i < s.options.gpus; ++i) {
      const auto id = s.gpus.empty() ? GpuId{i} : s.gpus[i];
      gpus_.push_back({.id = id, .ordinal = static_cast<int>(gpus[id.value].physical)});
    }
  }
  Result<void, Diagnostic> retain() {
    for (auto& g : gpus_)
      if (auto r = good("cuDevicePrimaryCtxRetain", calls_.retain_context(&g.context, g.ordinal)); !r) return r;
    return {};
  }

  const char* name() const noexcept override { return "CUDA"; }
  std::size_t ranks() const noexcept override { return gpus_.size(); }
  int ordinal(std::size_t rank) const noexcept override { return gpus_[rank].ordinal; }

  int enter(std::size_t rank) noexcept override {
    (void)calls_.push_context(gpus_[rank].context);  // it is alive as long as the process
    return 0;
  }
  void leave(int) noexcept override {
    Context old = nullptr;
    (void)calls_.pop_context(&old);
  }

  Result<Stream, Diagnostic> create(std::size_t) override {
    Stream s = nullptr;
    auto r = good("cuStreamCreateWithPriority", calls_.stream_create(&s, kNonBlocking, 0));
    if (!r) return std::move(r.error());
    return s;
  }
  Result<void, Diagnostic> wait(Stream s, GpuVa word, std::uint32_t value) override {
    return good("cuStreamWaitValue32", calls_.wait_value(s, word.value, value, kAtLeast));
  }
  Result<void, Diagnostic> write(Stream s, GpuVa word, std::uint32_t value) override {
    return good("cuStreamWriteValue32", calls_.write_value(s, word.value, value, 0));
  }
  Result<void, Diagnostic> copy(Stream s, GpuVa to, GpuVa from, std::size_t bytes) override {
    return good("cuMemcpyAsync", calls_.copy(to.value, from.value, bytes, s));
  }
  Result<void, Diagnostic> state(Stream s) override {
    const auto status = calls_.stream_query(s);
    return good("cuStreamQuery", status == kNotReady ? kSuccess : status);
  }
  Result<Pinned, Diagnostic> pin(std::size_t bytes) override {
    auto m = device_.allocate({.bytes = bytes});
    if (!m) return std::move(m.error());
    const auto& kept = memory_.emplace_back(*std::move(m));
    return Pinned{.host = kept.host(), .va = kept.va()};
  }
  Result<Signal, Diagnostic> word() override {
    auto w = device_.create_signal();
    if (!w) return std::move(w.error());
    return *words_.emplace_back(*std::move(w));
  }
  Result<GpuVa, Diagnostic> allocate(std::size_t rank, std::size_t bytes) override {
    auto m = device_.allocate({.where = gpus_[rank].id, .bytes = bytes, .host_access = false});
    if (!m) return std::move(m.error());
    return memory_.emplace_back(*std::move(m)).va();
  }

 private:
  struct Gpu {
    GpuId id{};
    int ordinal{};
    Context context{};
  };

  Result<void, Diagnostic> good(const char* call, Status s) const {
    if (s == kSuccess) return {};
    const char *code = nullptr, *text = nullptr;
    if (calls_.error_name(s, &code) != kSuccess || !code) return refused(fmt::format("{}: error {}", call, s));
    if (calls_.error_string(s, &text) != kSuccess || !text) return refused(fmt::format("{}: {}", call, code));
    return refused(fmt::format("{}: {}: {}", call, code, text));
  }

  CudaCalls calls_;
  Device& device_;
  std::vector<Gpu> gpus_{};
  std::deque<Memory> memory_{};
  std::deque<SignalMemory> words_{};
};

}  // namespace

Result<std::unique_ptr<StreamDriver>, Diagnostic> cuda_driver(Device& d, const Settings& s) {
  const auto calls = load();
  if (!calls) return calls.error();
  auto driver = std::make_unique<CudaDriver>(*calls, d, s);
  if (auto r = driver->retain(); !r) return std::move(r.error());
  return std::unique_ptr<StreamDriver>(std::move(driver));
}

}  // namespace collectives::perf
