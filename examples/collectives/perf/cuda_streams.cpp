#include "cuda_streams.hpp"

#include "sdma/device/cuda.hpp"
#include "sdma/sync/wait.hpp"

#include <dlfcn.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstring>

namespace collectives::perf {

using namespace sdma;
using namespace std::chrono_literals;

namespace {

constexpr const char* kLibrary = "libcuda.so.1";
constexpr int kAbi = 12000;  ///< of the functions, for cuGetProcAddress
constexpr CudaCalls::Status kSuccess = 0, kNotReady = 600;
constexpr unsigned kNonBlocking = 1, kAtLeast = 0;
constexpr std::size_t kBounceBytes = 4 << 20;
constexpr auto kSlice = 20ms;

using GetProcAddress = CudaCalls::Status (*)(const char*, void**, int version, std::uint64_t flags, int* found);

Diagnostic refused(std::string message) {
  return {.where = "CUDA", .message = std::move(message), .hint = "nvidia-smi shows whether the GPU works"};
}

}  // namespace

Result<const CudaCalls*, Diagnostic> CudaCalls::load() {
  static CudaCalls c;
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
  return &c;
}

std::string CudaCalls::describe(Status s) const {
  const char *code = nullptr, *text = nullptr;
  if (error_name(s, &code) != kSuccess || !code) return fmt::format("error {}", s);
  return error_string(s, &text) == kSuccess && text ? fmt::format("{}: {}", code, text) : code;
}

CudaStream::Current::Current(const CudaStream& s) noexcept : calls_(*s.calls_) {
  (void)calls_.push_context(s.context_);  // it is alive as long as the process
}
CudaStream::Current::~Current() {
  CudaCalls::Context old = nullptr;
  (void)calls_.pop_context(&old);
}

Result<void, Diagnostic> CudaStream::done_with(const char* call, CudaCalls::Status s) const {
  if (s == kSuccess) return {};
  return refused(fmt::format("{}: {}", call, calls_->describe(s)));
}

Result<CudaStream, Diagnostic> CudaStream::open(const CudaCalls& c, Device& d, int ordinal) {
  CudaStream s(c);
  if (auto r = s.done_with("cuDevicePrimaryCtxRetain", c.retain_context(&s.context_, ordinal)); !r)
    return std::move(r.error());
  const Current here(s);
  if (auto r = s.done_with("cuStreamCreateWithPriority", c.stream_create(&s.stream_, kNonBlocking, 0)); !r)
    return std::move(r.error());
  for (auto* word : {&s.done_, &s.copied_}) {
    auto w = d.create_signal();
    if (!w) return std::move(w.error());
    *word = *std::move(w);
  }
  auto bounce = d.allocate({.bytes = kBounceBytes});
  if (!bounce) return std::move(bounce.error());
  s.bounce_ = *std::move(bounce);
  return s;
}

Result<void, Diagnostic> CudaStream::wait_for(const Signal& word, std::uint32_t value) const {
  return done_with("cuStreamWaitValue32", calls_->wait_value(stream_, word.low().value, value, kAtLeast));
}

Result<void, Diagnostic> CudaStream::write(std::uint32_t value) const {
  return done_with("cuStreamWriteValue32", calls_->write_value(stream_, done_->low().value, value, 0));
}

Result<void, Diagnostic> CudaStream::state() const {
  const Current here(*this);
  const auto s = calls_->stream_query(stream_);
  return done_with("cuStreamQuery", s == kNotReady ? kSuccess : s);
}

Result<void, Diagnostic> CudaStream::await(std::uint32_t value, Deadline d) const {
  for (;;) {
    const auto slice = Deadline::in(kSlice);
    if (sdma::wait(*done_, Compare::ge, value, slice.at < d.at ? slice : d)) return {};
    if (auto r = state(); !r) return r;
    if (d.passed())
      return refused(fmt::format("the stream has not come to its end by the deadline: its word is {}, not {}",
                                 done_->load(), value));
  }
}

Result<void, Diagnostic> CudaStream::copy(std::uint64_t to, std::uint64_t from, std::size_t bytes, Deadline d) {
  const Current here(*this);
  if (auto r = done_with("cuMemcpyAsync", calls_->copy(to, from, bytes, stream_)); !r) return r;
  ++copies_;
  if (auto r = done_with("cuStreamWriteValue32", calls_->write_value(stream_, copied_->low().value, copies_, 0)); !r)
    return r;
  if (sdma::wait(*copied_, Compare::ge, copies_, d)) return {};
  if (auto r = state(); !r) return r;
  return refused("a copy has not ended by the deadline");
}

Result<void, Diagnostic> CudaStream::upload(std::uint64_t to, std::span<const std::byte> bytes, Deadline d) {
  for (std::size_t at = 0; at < bytes.size(); at += kBounceBytes) {
    const auto part = bytes.subspan(at, std::min(kBounceBytes, bytes.size() - at));
    std::memcpy(bounce_.host().data(), part.data(), part.size());
    if (auto r = copy(to + at, bounce_.va().value, part.size(), d); !r) return r;
  }
  return {};
}

Result<void, Diagnostic> CudaStream::download(std::span<std::byte> bytes, std::uint64_t from, Deadline d) {
  for (std::size_t at = 0; at < bytes.size(); at += kBounceBytes) {
    const auto part = bytes.subspan(at, std::min(kBounceBytes, bytes.size() - at));
    if (auto r = copy(bounce_.va().value, from + at, part.size(), d); !r) return r;
    std::memcpy(part.data(), bounce_.host().data(), part.size());
  }
  return {};
}

std::vector<int> cuda_ordinals(const Device& d, const Settings& s) {
  std::vector<int> all;
  const auto& gpus = dynamic_cast<const CudaDevice&>(d).gpus();
  for (std::uint32_t i = 0; i < s.options.gpus; ++i)
    all.push_back(static_cast<int>(gpus[s.gpus.empty() ? i : s.gpus[i].value].physical));
  return all;
}

}  // namespace collectives::perf
