#include "product.hpp"

#include "cuda_streams.hpp"
#include "loaded_library.hpp"

#include <fmt/format.h>

#include <atomic>
#include <optional>
#include <random>

namespace collectives::perf {

using namespace sdma;
using namespace std::chrono_literals;

namespace {

using Status = int;
using Handle = struct HandleTag*;
using Clock = std::chrono::steady_clock;

// cublasOperation_t, cudaDataType_t, cublasComputeType_t, cublasGemmAlgo_t.
constexpr int kAsIs = 0, kTransposed = 1, kBf16 = 14, kSumsInFp32 = 68, kAnyAlgorithm = -1;
constexpr std::uint32_t kInFlight = 3;
constexpr unsigned kWarmups = 3;
constexpr std::uint64_t kElement = 2;  ///< bytes
constexpr auto kNap = 100us;
constexpr std::size_t kPatternBytes = 4 << 20;

struct Cublas {
  Status (*create)(Handle*){};
  Status (*set_stream)(Handle, CudaCalls::Stream){};
  Status (*gemm)(Handle, int transpose_a, int transpose_b, int m, int n, int k, const void* alpha, const void* a,
                 int type_a, int lda, const void* b, int type_b, int ldb, const void* beta, void* c, int type_c,
                 int ldc, int compute, int algorithm){};
  const char* (*error)(Status){};
};

struct Gpu {
  CudaStream stream;
  Handle handle{};
  Memory a{}, b{}, c{};
  std::uint32_t issued = 0;
};

Diagnostic refused(std::string message) {
  return {.where = "--beside",
          .message = std::move(message),
          .hint = "use smaller matrices (--beside=gemm:4096), or another cuBLAS (SDMA_CUBLAS_LIBRARY)"};
}

class Gemms final : public Product {
 public:
  Gemms(const Cublas& c, const Settings& s, Watchdog& dog) : cublas_(c), settings_(s), dog_(dog) {}
  ~Gemms() override { (void)stop(); }

  Result<void, Diagnostic> make(Device&, const CudaCalls&);
  double alone() const override { return alone_; }
  Result<void, Diagnostic> begin() override;
  Result<double, Diagnostic> end() override;

 private:
  Result<void, Diagnostic> good(const char* call, Status) const;
  Result<void, Diagnostic> fill(Gpu&, const Memory&);
  Result<void, Diagnostic> multiply(Gpu&);
  void feed();
  std::optional<Diagnostic> stop();
  std::uint64_t finished() const noexcept;
  Deadline deadline() const noexcept { return Deadline::in(settings_.timeout); }

  Cublas cublas_;
  const Settings& settings_;
  Watchdog& dog_;
  std::vector<Gpu> gpus_{};
  double alone_ = 0;

  std::thread feeder_{};
  std::atomic<bool> stop_ = false, failed_ = false;
  std::optional<Diagnostic> wrong_{};  ///< of the feeder; read it after it has ended
  std::uint64_t finished_at_begin_ = 0;
  Clock::time_point begun_{};
};

Result<void, Diagnostic> Gemms::good(const char* call, Status s) const {
  if (s == 0) return {};
  return refused(fmt::format("{}: {}", call, cublas_.error ? cublas_.error(s) : std::to_string(s)));
}

/// The same pseudo-random numbers between -1 and 1, again and again.
Result<void, Diagnostic> Gemms::fill(Gpu& g, const Memory& m) {
  static const auto pattern = [] {
    std::vector<std::byte> bytes(kPatternBytes);
    std::minstd_rand random;
    for (std::size_t i = 1; i < bytes.size(); i += kElement) {
      const auto r = random();
      // bf16: the sign, an exponent of 2^-3 to 2^-1, and a mantissa of 7 bits.
      const auto exponent = 124u + (r >> 8) % 3;
      bytes[i] = static_cast<std::byte>((r & 1) << 7 | exponent >> 1);
      bytes[i - 1] = static_cast<std::byte>((exponent & 1) << 7 | ((r >> 16) & 0x7f));
    }
    return bytes;
  }();
  for (std::uint64_t at = 0; at < m.bytes(); at += pattern.size()) {
    const auto part = std::span(pattern).first(std::min<std::uint64_t>(pattern.size(), m.bytes() - at));
    if (auto r = g.stream.upload(m.va().value + at, part, deadline()); !r) return r;
  }
  return {};
}

Result<void, Diagnostic> Gemms::make(Device& d, const CudaCalls& cuda) {
  const auto n = static_cast<std::uint64_t>(settings_.beside->n);
  std::uint32_t number = 0;
  for (const auto ordinal : cuda_ordinals(d, settings_)) {
    const GpuId gpu = settings_.gpus.empty() ? GpuId{number} : settings_.gpus[number];
    ++number;
    auto stream = CudaStream::open(cuda, d, ordinal);
    if (!stream) return std::move(stream.error());
    auto& g = gpus_.emplace_back(Gpu{.stream = *std::move(stream)});
    for (auto* m : {&g.a, &g.b, &g.c}) {
      auto memory = d.allocate({.where = gpu, .bytes = n * n * kElement, .host_access = false});
      if (!memory) return std::move(memory.error());
      *m = *std::move(memory);
      if (auto r = fill(g, *m); !r) return r;
    }
    const CudaStream::Current here(g.stream);
    const auto bounded = dog_.watch("cublasCreate", set_up_limit(settings_));
    if (auto r = good("cublasCreate", cublas_.create(&g.handle)); !r) return r;
    if (auto r = good("cublasSetStream", cublas_.set_stream(g.handle, g.stream.handle())); !r) return r;
  }
  for (auto& g : gpus_) {
    for (unsigned i = 0; i < kWarmups; ++i)
      if (auto r = multiply(g); !r) return r;
    if (auto r = g.stream.await(g.issued, deadline()); !r) return r;
  }
  if (auto r = begin(); !r) return r;
  std::this_thread::sleep_for(settings_.beside->measured);
  const auto rate = end();
  if (!rate) return rate.error();
  alone_ = *rate;
  return {};
}

Result<void, Diagnostic> Gemms::multiply(Gpu& g) {
  const auto n = static_cast<int>(settings_.beside->n);
  const float one = 1, zero = 0;
  const auto at = [](const Memory& m) { return reinterpret_cast<void*>(m.va().value); };
  const CudaStream::Current here(g.stream);
  const auto bounded = dog_.watch("cublasGemmEx", set_up_limit(settings_));
  if (auto r =
          good("cublasGemmEx", cublas_.gemm(g.handle, kTransposed, kAsIs, n, n, n, &one, at(g.a), kBf16, n, at(g.b),
                                            kBf16, n, &zero, at(g.c), kBf16, n, kSumsInFp32, kAnyAlgorithm));
      !r)
    return r;
  return g.stream.write(++g.issued);
}

/// Keeps each GPU supplied, until `stop_`.
void Gemms::feed() {
  while (!stop_) {
    bool busy = true;
    for (auto& g : gpus_) {
      if (g.issued - static_cast<std::uint32_t>(g.stream.done().load()) >= kInFlight) continue;
      busy = false;
      if (auto r = multiply(g); !r) {
        wrong_ = std::move(r.error());
        failed_ = true;
        return;
      }
    }
    if (busy) std::this_thread::sleep_for(kNap);
  }
}

/// Waits until nothing runs any more. Returns what went wrong since `begin`.
std::optional<Diagnostic> Gemms::stop() {
  if (!feeder_.joinable()) return {};
  stop_ = true;
  feeder_.join();
  if (wrong_) return wrong_;
  for (auto& g : gpus_)
    if (auto r = g.stream.await(g.issued, deadline()); !r) return std::move(r.error());
  return {};
}

std::uint64_t Gemms::finished() const noexcept {
  std::uint64_t sum = 0;
  for (const auto& g : gpus_) sum += g.stream.done().load();
  return sum;
}

Result<void, Diagnostic> Gemms::begin() {
  wrong_.reset();
  stop_ = failed_ = false;
  std::vector<std::uint32_t> before;
  for (const auto& g : gpus_) before.push_back(g.issued);
  feeder_ = std::thread([this] { feed(); });
  const auto limit = deadline();
  for (std::size_t i = 0; i < gpus_.size(); ++i)
    while (!failed_ && gpus_[i].stream.done().load() <= before[i]) {
      if (limit.passed()) return refused("a matrix product has not ended by the deadline");
      std::this_thread::sleep_for(kNap);
    }
  finished_at_begin_ = finished();
  begun_ = Clock::now();
  return {};
}

Result<double, Diagnostic> Gemms::end() {
  const std::chrono::duration<double> t = Clock::now() - begun_;
  const auto products = static_cast<double>(finished() - finished_at_begin_);
  if (auto wrong = stop()) return *std::move(wrong);
  const auto n = static_cast<double>(settings_.beside->n);
  constexpr double kTera = 1e12;
  return products * 2 * n * n * n / t.count() / kTera / static_cast<double>(gpus_.size());
}

}  // namespace

Result<std::unique_ptr<Product>, Diagnostic> Product::open(Device& d, const Settings& s, Watchdog& dog) {
  auto library = [&] {
    const auto bounded = dog.watch("loading cuBLAS", set_up_limit(s));
    return LoadedLibrary::load({.option = "--beside",
                                .what = "cuBLAS",
                                .variable = "SDMA_CUBLAS_LIBRARY",
                                .names = {"libcublas.so.13", "libcublas.so.12"},
                                .hint = "add its folder to LD_LIBRARY_PATH (CUDA has it in /usr/local/cuda/lib64)"});
  }();
  if (!library) return std::move(library.error());
  Cublas c;
  library->take(c.create, "cublasCreate_v2");
  library->take(c.set_stream, "cublasSetStream_v2");
  library->take(c.gemm, "cublasGemmEx");
  library->take(c.error, "cublasGetStatusString", false);
  if (auto lacking = library->lacking()) return *lacking;
  const auto cuda = CudaCalls::load();
  if (!cuda) return cuda.error();
  auto gemms = std::make_unique<Gemms>(c, s, dog);
  if (auto r = gemms->make(d, **cuda); !r) return std::move(r.error());
  return std::unique_ptr<Product>(std::move(gemms));
}

}  // namespace collectives::perf
