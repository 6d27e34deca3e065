// SPDX-License-Identifier: MIT
#include "companions.hpp"

#include "blas.hpp"
#include "hip_streams.hpp"
#include "nccl_calls.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>

namespace collectives::perf {

using namespace sdma;

namespace {

constexpr std::chrono::duration<double> kIdle{1};

}  // namespace

/// cuBLAS before NCCL, because NCCL creates streams: the fewer streams there are, the fewer share a connection. Idle
/// power when nothing runs any more.
Result<void, Diagnostic> OpenCompanions::open(Device& d) {
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
    auto addresses = pci_addresses(d, settings_);
    std::sort(addresses.begin(), addresses.end());
    addresses.erase(std::unique(addresses.begin(), addresses.end()), addresses.end());
    return settings_.where == sdma::DeviceKind::cuda ? detail::nvml_counters("--energy", addresses)
                                                     : detail::hwmon_counters("--energy", addresses);
  }();
  if (!counters) return std::move(counters.error());
  power_.emplace(*std::move(counters), dog_, settings_.timeout);
  return power_->measure_idle(kIdle);
}

Companions OpenCompanions::all() {
  Companions c{.power = power_ ? &*power_ : nullptr, .product = product_.get()};
  if (nccl_) c.rival = nccl_->prepare;
  return c;
}

std::string OpenCompanions::remarks() const {
  std::string text;
  if (nccl_) {
    const bool both = settings_.rivals.size() > 1;
    text += fmt::format("# Against {}: {} is its kernels{}. All ways of a size take turns, round by round.\n",
                        nccl_->version, name(settings_.rivals.front()), both ? ", nccl-ce its copy-engine mode" : "");
    if (!nccl_->note.empty()) text += "# note: " + nccl_->note + "\n";
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

Result<void, Diagnostic> OpenCompanions::prepare(const Settings& s) {
  // The rivals' kernels are loaded at once: a kernel that is loaded at its first use would block while a stream waits.
  if (!s.rivals.empty()) {
    ::setenv("CUDA_MODULE_LOADING", "EAGER", 0);
    ::setenv("HIP_ENABLE_DEFERRED_LOADING", "0", 0);
  }
  if (!is_amd(s.where) || (s.rivals.empty() && !s.beside)) return {};
  Watchdog dog;
  const auto bounded = dog.watch("starting HIP", set_up_limit(s));
  const auto library = s.beside ? Blas::find(s.where) : NcclCalls::find(s.rivals.front().rival);
  return library ? start_hip(*library) : Result<void, Diagnostic>(library.error());
}

Result<std::unique_ptr<OpenCompanions>, Diagnostic> OpenCompanions::open(Device& d, const Settings& s) {
  std::unique_ptr<OpenCompanions> opened(new OpenCompanions(s));
  if (auto r = opened->open(d); !r) return std::move(r.error());
  return opened;
}

}  // namespace collectives::perf
