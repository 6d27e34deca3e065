// SPDX-License-Identifier: MIT
#include "hip_streams.hpp"

#include <fmt/format.h>

namespace collectives::perf {

using namespace sdma;

namespace {

constexpr std::uint32_t kAllBits = ~0u;
constexpr HipCalls::Status kAlreadyEnabled = 704;  ///< hipErrorPeerAccessAlreadyEnabled

Diagnostic hip_refused(std::string message) {
  return {.where = "HIP",
          .message = std::move(message),
          .hint = "rocminfo shows whether ROCr finds the GPU; AMD_LOG_LEVEL=3 lets HIP print more"};
}

void* at(GpuVa a) noexcept { return reinterpret_cast<void*>(a.value); }
GpuVa va(const void* p) noexcept { return GpuVa{reinterpret_cast<std::uint64_t>(p)}; }

class HipDriver final : public StreamDriver {
 public:
  explicit HipDriver(const HipCalls& c) : calls_(c) {}

  Result<void, Diagnostic> find(const std::vector<std::string>& addresses) {
    for (const auto& a : addresses) {
      int ordinal = -1;
      if (auto r = good("hipDeviceGetByPCIBusId", calls_.device_by_pci(&ordinal, a.c_str())); !r) {
        r.error().message += fmt::format(" (the GPU at {})", a);
        r.error().hint = "HIP_VISIBLE_DEVICES and ROCR_VISIBLE_DEVICES can hide a GPU from HIP: unset them";
        return r;
      }
      ordinals_.push_back(ordinal);
    }
    return {};
  }

  const char* name() const noexcept override { return "HIP"; }

  std::shared_ptr<void> current(std::size_t rank) noexcept override {
    int former = 0;
    (void)calls_.get_device(&former);
    (void)calls_.set_device(ordinals_[rank]);  // `find` knows that it exists
    return {nullptr, [this, former](std::nullptr_t) { (void)calls_.set_device(former); }};
  }

  Result<Stream, Diagnostic> create(std::size_t rank) override {
    for (const auto peer : ordinals_) {
      int can = 0;
      if (peer == ordinals_[rank] || calls_.can_access_peer(&can, ordinals_[rank], peer) != HipCalls::kSuccess || !can)
        continue;
      const auto s = calls_.enable_peer(peer, 0);
      if (auto r = good("hipDeviceEnablePeerAccess", s == kAlreadyEnabled ? HipCalls::kSuccess : s); !r)
        return std::move(r.error());
    }
    Stream s = nullptr;
    if (auto r = good("hipStreamCreateWithFlags", calls_.stream_create(&s, HipCalls::kNonBlocking)); !r)
      return std::move(r.error());
    return s;
  }
  Result<void, Diagnostic> wait(Stream s, GpuVa word, std::uint32_t value) override {
    return good("hipStreamWaitValue32", calls_.wait_value(s, at(word), value, HipCalls::kAtLeast, kAllBits));
  }
  Result<void, Diagnostic> write(Stream s, GpuVa word, std::uint32_t value) override {
    return good("hipStreamWriteValue32", calls_.write_value(s, at(word), value, 0));
  }
  Result<void, Diagnostic> copy(Stream s, GpuVa to, GpuVa from, std::size_t bytes) override {
    return good("hipMemcpyAsync", calls_.copy(at(to), at(from), bytes, HipCalls::kByAddresses, s));
  }
  Result<void, Diagnostic> state(Stream s) override {
    const auto status = calls_.stream_query(s);
    return good("hipStreamQuery", status == HipCalls::kNotReady ? HipCalls::kSuccess : status);
  }
  Result<Pinned, Diagnostic> pin(std::size_t bytes) override {
    void* p = nullptr;
    auto r = good("hipHostMalloc", calls_.allocate_host(&p, bytes, HipCalls::kPortable | HipCalls::kCoherent));
    if (!r) return std::move(r.error());
    return Pinned{.host = {static_cast<std::byte*>(p), bytes}, .va = va(p)};
  }
  Result<Signal, Diagnostic> word() override {
    void* p = nullptr;
    const auto s = calls_.allocate_signal(&p, sizeof(std::uint64_t), HipCalls::kSignalMemory);
    if (auto r = good("hipExtMallocWithFlags", s); !r) return std::move(r.error());
    const Signal word{.word = static_cast<std::uint64_t*>(p), .va = va(p)};
    word.set(0);
    return word;
  }
  Result<GpuVa, Diagnostic> allocate(std::size_t, std::size_t bytes) override {
    void* p = nullptr;
    if (auto r = good("hipMalloc", calls_.allocate(&p, bytes)); !r) return std::move(r.error());
    return va(p);
  }

 private:
  Result<void, Diagnostic> good(const char* call, HipCalls::Status s) const {
    if (s == HipCalls::kSuccess) return {};
    // In old versions, the text of an error is its name.
    const std::string_view code = calls_.error_name(s), text = calls_.error_string(s);
    return hip_refused(code == text ? fmt::format("{}: {}", call, code) : fmt::format("{}: {}: {}", call, code, text));
  }

  HipCalls calls_;
  std::vector<int> ordinals_{};
};

}  // namespace

Result<void, Diagnostic> start_hip(RequestedLibrary library) {
  HipCalls::Status (*start)(unsigned flags) = library["hipInit"];
  const char* (*text)(HipCalls::Status) = library["hipGetErrorString"];
  if (auto d = library.lacking()) return *d;
  if (const auto s = start(0); s != HipCalls::kSuccess) return hip_refused(fmt::format("hipInit: {}", text(s)));
  return {};
}

Result<std::unique_ptr<StreamDriver>, Diagnostic> hip_driver(const Device& d, const Settings& s,
                                                             const RequestedLibrary& library) {
  const HipCalls calls{library};
  if (auto lacking = calls.library.lacking()) return *std::move(lacking);
  auto driver = std::make_unique<HipDriver>(calls);
  if (auto r = driver->find(pci_addresses(d, s)); !r) return std::move(r.error());
  return std::unique_ptr<StreamDriver>(std::move(driver));
}

}  // namespace collectives::perf
