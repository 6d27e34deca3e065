// SPDX-License-Identifier: MIT
#include "companions.hpp"

#include "blas.hpp"
#include "hip_streams.hpp"

#include <fmt/format.h>

#include <atomic>
#include <optional>
#include <random>

namespace collectives::perf {

using namespace sdma;
using namespace std::chrono_literals;

namespace {

using Clock = std::chrono::steady_clock;

constexpr std::uint32_t kInFlight = 3;
constexpr unsigned kProductWarmups = 3;
constexpr std::uint64_t kElement = 2;  ///< bytes
constexpr auto kNap = 100us;
constexpr std::size_t kPatternBytes = 4 << 20;

struct Gpu {
  GpuStream stream;
  Blas::Handle handle{};
  GpuVa a{}, b{}, c{};
  std::uint32_t issued = 0;
};

Diagnostic product_refused(std::string message) {
  return {
      .where = "--beside",
      .message = std::move(message),
      .hint =
          "use smaller matrices (--beside=gemm:4096), or another library (SDMA_CUBLAS_LIBRARY, SDMA_HIPBLAS_LIBRARY)"};
}

class Gemms final : public Product {
 public:
  Gemms(Blas b, std::unique_ptr<StreamDriver> d, const Settings& s, Watchdog& dog)
      : blas_(std::move(b)), driver_(std::move(d)), settings_(s), dog_(dog) {}
  ~Gemms() override { (void)stop(); }

  Result<void, Diagnostic> make() {
    const auto n = static_cast<std::uint64_t>(settings_.beside->n);
    for (std::size_t rank = 0; rank < settings_.options.gpus; ++rank) {
      auto stream = GpuStream::open(*driver_, rank);
      if (!stream) return std::move(stream.error());
      auto& g = gpus_.emplace_back(Gpu{.stream = *std::move(stream)});
      const auto here = g.stream.current();
      for (auto* m : {&g.a, &g.b, &g.c}) {
        const auto memory = driver_->allocate(rank, n * n * kElement);
        if (!memory) return memory.error();
        *m = *memory;
        if (auto r = fill(g, *m, n * n * kElement); !r) return r;
      }
      const auto bounded = dog_.watch("creating the handle of the matrix product", set_up_limit(settings_));
      if (auto r = good("Create", blas_.create(&g.handle)); !r) return r;
      if (auto r = good("SetStream", blas_.set_stream(g.handle, g.stream.handle())); !r) return r;
    }
    for (auto& g : gpus_) {
      for (unsigned i = 0; i < kProductWarmups; ++i)
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
  double alone() const override { return alone_; }
  Result<void, Diagnostic> begin() override {
    wrong_.reset();
    stop_ = failed_ = false;
    std::vector<std::uint32_t> before;
    for (const auto& g : gpus_) before.push_back(g.issued);
    feeder_ = std::thread([this] { feed(); });
    const auto limit = deadline();
    for (std::size_t i = 0; i < gpus_.size(); ++i)
      while (!failed_ && gpus_[i].stream.done().load() <= before[i]) {
        if (limit.passed()) return product_refused("a matrix product has not ended by the deadline");
        std::this_thread::sleep_for(kNap);
      }
    finished_at_begin_ = finished();
    begun_ = Clock::now();
    return {};
  }
  Result<double, Diagnostic> end() override {
    const std::chrono::duration<double> t = Clock::now() - begun_;
    const auto products = static_cast<double>(finished() - finished_at_begin_);
    if (auto wrong = stop()) return *std::move(wrong);
    const auto n = static_cast<double>(settings_.beside->n);
    constexpr double kTera = 1e12;
    return products * 2 * n * n * n / t.count() / kTera / static_cast<double>(gpus_.size());
  }

 private:
  Result<void, Diagnostic> good(const char* call, Blas::Status s) const {
    if (s == 0) return {};
    return product_refused(fmt::format("{}: {}", blas_.call(call), blas_.describe(s)));
  }
  /// The same pseudo-random numbers between -1 and 1, again and again.
  Result<void, Diagnostic> fill(Gpu& g, GpuVa m, std::uint64_t bytes) {
    static const auto pattern = [] {
      std::vector<std::byte> all(kPatternBytes);
      std::minstd_rand random;
      for (std::size_t i = 1; i < all.size(); i += kElement) {
        const auto r = random();
        // bf16: the sign, an exponent of 2^-3 to 2^-1, and a mantissa of 7 bits.
        const auto exponent = 124u + (r >> 8) % 3;
        all[i] = static_cast<std::byte>((r & 1) << 7 | exponent >> 1);
        all[i - 1] = static_cast<std::byte>((exponent & 1) << 7 | ((r >> 16) & 0x7f));
      }
      return all;
    }();
    for (std::uint64_t at = 0; at < bytes; at += pattern.size()) {
      const auto part = std::span(pattern).first(std::min<std::uint64_t>(pattern.size(), bytes - at));
      if (auto r = g.stream.upload(m + at, part, deadline()); !r) return r;
    }
    return {};
  }
  Result<void, Diagnostic> multiply(Gpu& g) {
    const auto here = g.stream.current();
    const auto bounded = dog_.watch("the call of a matrix product", set_up_limit(settings_));
    const auto n = static_cast<int>(settings_.beside->n);
    if (auto r = good("GemmEx", blas_.multiply(g.handle, n, g.a, g.b, g.c)); !r) return r;
    return g.stream.write(++g.issued);
  }
  /// Keeps each GPU supplied, until `stop_`.
  void feed() {
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
  std::optional<Diagnostic> stop() {
    if (!feeder_.joinable()) return {};
    stop_ = true;
    feeder_.join();
    if (wrong_) return wrong_;
    for (auto& g : gpus_)
      if (auto r = g.stream.await(g.issued, deadline()); !r) return std::move(r.error());
    return {};
  }
  std::uint64_t finished() const noexcept {
    std::uint64_t sum = 0;
    for (const auto& g : gpus_) sum += g.stream.done().load();
    return sum;
  }
  Deadline deadline() const noexcept { return Deadline::in(settings_.timeout); }

  Blas blas_;
  std::unique_ptr<StreamDriver> driver_;
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

}  // namespace

Result<std::unique_ptr<Product>, Diagnostic> Product::open(Device& d, const Settings& s, Watchdog& dog) {
  const auto library = [&] {
    const auto bounded = dog.watch("loading the library of the matrix product", set_up_limit(s));
    return Blas::find(s.where);
  }();
  if (!library) return library.error();
  const auto blas = Blas::load(*library, s.where);
  if (!blas) return blas.error();
  auto driver = is_amd(s.where) ? hip_driver(d, s, *library) : cuda_driver(d, s);
  if (!driver) return std::move(driver.error());
  auto gemms = std::make_unique<Gemms>(*blas, *std::move(driver), s, dog);
  if (auto r = gemms->make(); !r) return std::move(r.error());
  return std::unique_ptr<Product>(std::move(gemms));
}

}  // namespace collectives::perf
