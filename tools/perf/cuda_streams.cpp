// SPDX-License-Identifier: MIT
#include "gpu_streams.hpp"

#include "cuda_library.hpp"
#include "sdma/device/cuda.hpp"

#include <deque>

namespace collectives::perf {

using namespace sdma;

namespace {

using Context = CudaLibrary::Context;
using Stream = StreamDriver::Stream;

CudaLibrary::Stream of(Stream s) noexcept { return static_cast<CudaLibrary::Stream>(s); }

class CudaDriver final : public StreamDriver {
 public:
  CudaDriver(const CudaLibrary& c, Device& d, const Settings& s) : calls_(c), device_(d) {
    for (std::uint32_t i = 0; i < s.options.gpus; ++i) gpus_.push_back({.id = s.gpus.empty() ? GpuId{i} : s.gpus[i]});
  }
  Result<void, Diagnostic> retain() {
    for (auto& g : gpus_) {
      const auto ordinal = static_cast<int>(dynamic_cast<const CudaDevice&>(device_).gpus()[g.id.value].physical);
      if (auto r = good("cuDevicePrimaryCtxRetain", calls_.retain_context(&g.context, ordinal)); !r) return r;
    }
    return {};
  }

  const char* name() const noexcept override { return "CUDA"; }

  std::shared_ptr<void> current(std::size_t rank) noexcept override {
    (void)calls_.push_context(gpus_[rank].context);  // it is alive as long as the process
    return {nullptr, [this](std::nullptr_t) {
              Context old = nullptr;
              (void)calls_.pop_context(&old);
            }};
  }

  Result<Stream, Diagnostic> create(std::size_t) override {
    CudaLibrary::Stream s = nullptr;
    auto r = good("cuStreamCreateWithPriority", calls_.stream_create(&s, CudaLibrary::kNonBlocking, 0));
    if (!r) return std::move(r.error());
    return Stream{s};
  }
  Result<void, Diagnostic> wait(Stream s, GpuVa word, std::uint32_t value) override {
    return good("cuStreamWaitValue32", calls_.wait_value(of(s), word.value, value, CudaLibrary::kAtLeast));
  }
  Result<void, Diagnostic> write(Stream s, GpuVa word, std::uint32_t value) override {
    return good("cuStreamWriteValue32", calls_.write_value(of(s), word.value, value, 0));
  }
  Result<void, Diagnostic> copy(Stream s, GpuVa to, GpuVa from, std::size_t bytes) override {
    return good("cuMemcpyAsync", calls_.copy(to.value, from.value, bytes, of(s)));
  }
  Result<void, Diagnostic> state(Stream s) override {
    const auto status = calls_.stream_query(of(s));
    return good("cuStreamQuery", status == CudaLibrary::kNotReady ? CudaLibrary::kSuccess : status);
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
    Context context{};
  };

  Result<void, Diagnostic> good(const char* call, CudaLibrary::Status s) const { return calls_.good(call, s); }

  CudaLibrary calls_;
  Device& device_;
  std::vector<Gpu> gpus_{};
  std::deque<Memory> memory_{};
  std::deque<SignalMemory> words_{};
};

}  // namespace

Result<std::unique_ptr<StreamDriver>, Diagnostic> cuda_driver(Device& d, const Settings& s) {
  const auto calls = CudaLibrary::load();
  if (!calls) return calls.error();
  auto driver = std::make_unique<CudaDriver>(*calls, d, s);
  if (auto r = driver->retain(); !r) return std::move(r.error());
  return std::unique_ptr<StreamDriver>(std::move(driver));
}

}  // namespace collectives::perf
