#include "companions.hpp"

#include "hwmon.hpp"
#include "nccl.hpp"
#include "nvml.hpp"
#include "sdma/device/cuda.hpp"
#include "sdma/device/kfd.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>

namespace collectives::perf {

using namespace sdma;

namespace {

constexpr std::chrono::duration<double> kIdle{1};

/// "0000:06:00.0" for each GPU of the collective; logical GPUs that share one have one address together.
std::vector<std::string> pci_addresses(const Device& d, const Settings& s) {
  std::vector<std::string> all;
  for (std::uint32_t i = 0; i < s.options.gpus; ++i) {
    const auto g = s.gpus.empty() ? i : s.gpus[i].value;
    std::string address;
    if (const auto* const cuda = dynamic_cast<const CudaDevice*>(&d)) address = cuda->gpus()[g].pci;
    if (const auto* const kfd = dynamic_cast<const KfdDevice*>(&d)) {
      const auto& k = kfd->gpus()[g].kernel;
      address = fmt::format("{:04x}:{:02x}:{:02x}.{:x}", k.domain, k.location_id >> 8, k.location_id >> 3 & 31,
                            k.location_id & 7);
    }
    if (std::find(all.begin(), all.end(), address) == all.end()) all.push_back(std::move(address));
  }
  return all;
}

class Opened final : public OpenCompanions {
 public:
  explicit Opened(const Settings& s) : settings_(s) {}

  /// cuBLAS before NCCL, because NCCL creates streams: the fewer streams there are, the fewer share a connection. Idle
  /// power when nothing runs any more.
  Result<void, Diagnostic> open(Device& d) {
    if (settings_.beside) {
      auto p = Product::open(d, settings_, dog_);
      if (!p) return std::move(p.error());
      product_ = *std::move(p);
    }
    if (!settings_.rivals.empty()) {
      auto n = Nccl::open(d, settings_, dog_);
      if (!n) return std::move(n.error());
      nccl_ = *std::move(n);
    }
    if (!settings_.energy) return {};
    auto counters = [&] {
      const auto bounded = dog_.watch("opening the energy counters", settings_.timeout);
      const auto addresses = pci_addresses(d, settings_);
      return settings_.where == Where::cuda ? nvml_counters(addresses) : hwmon_counters(addresses);
    }();
    if (!counters) return std::move(counters.error());
    power_.emplace(*std::move(counters), dog_, settings_.timeout);
    return power_->measure_idle(kIdle);
  }

  Companions all() override {
    Companions c{.power = power_ ? &*power_ : nullptr, .product = product_.get()};
    if (nccl_) c.rival = [this](const Way& w, const Options& o) { return nccl_->prepare(w, o); };
    return c;
  }
  std::vector<Way> rivals() const override { return nccl_ ? nccl_->ways() : std::vector<Way>{}; }
  std::optional<double> idle_watts() const override { return power_ ? std::optional(power_->idle()) : std::nullopt; }

  std::string remarks() const override {
    std::string text;
    if (nccl_) {
      text += fmt::format(
          "# Against {}: nccl is its kernels, nccl-ce its copy-engine mode. All ways of a size take turns, "
          "round by round.\n",
          nccl_->version());
      if (!nccl_->note().empty()) text += "# note: " + nccl_->note() + "\n";
    }
    if (power_)
      text += fmt::format(
          "# Energy: of all GPUs together, less the {:.1f} W that they use when idle; {} s for each row. "
          "Bytes moved are those that go\n# from one GPU to another, all GPUs together.\n",
          power_->idle(), settings_.energy->count());
    if (product_)
      text += fmt::format(
          "# Beside: bf16 products of {0} x {0} matrices on every GPU, {1:.1f} TFLOP/s per GPU alone; {2} s "
          "for each row.\n",
          settings_.beside->n, product_->alone(), settings_.beside->measured.count());
    return text;
  }

 private:
  const Settings& settings_;
  Watchdog dog_{};
  std::unique_ptr<Nccl> nccl_{};
  std::unique_ptr<Product> product_{};
  std::optional<PowerMeter> power_{};
};

}  // namespace

void OpenCompanions::prepare_environment(const Settings& s) {
  // NCCL's kernels are loaded at once: a kernel that is loaded at its first use would block while a stream waits.
  if (!s.rivals.empty()) ::setenv("CUDA_MODULE_LOADING", "EAGER", 0);
}

Result<std::unique_ptr<OpenCompanions>, Diagnostic> OpenCompanions::open(Device& d, const Settings& s) {
  auto opened = std::make_unique<Opened>(s);
  if (auto r = opened->open(d); !r) return std::move(r.error());
  return std::unique_ptr<OpenCompanions>(std::move(opened));
}

}  // namespace collectives::perf
