// SPDX-License-Identifier: MIT
#include "pci.hpp"

#include "sdma/device/cuda.hpp"
#include "sdma/device/kfd.hpp"

#include <fmt/format.h>

namespace collectives::perf {

using namespace sdma;

std::vector<std::string> pci_addresses(const Device& d, const Settings& s) {
  std::vector<std::string> all;
  for (std::uint32_t i = 0; i < s.options.gpus; ++i) {
    const auto g = s.gpus.empty() ? i : s.gpus[i].value;
    auto& address = all.emplace_back();
    if (const auto* const cuda = dynamic_cast<const CudaDevice*>(&d)) address = cuda->gpus()[g].pci;
    if (const auto* const kfd = dynamic_cast<const KfdDevice*>(&d)) {
      const auto& k = kfd->gpus()[g].kernel;
      address = fmt::format("{:04x}:{:02x}:{:02x}.{:x}", k.domain, k.location_id >> 8, k.location_id >> 3 & 31,
                            k.location_id & 7);
    }
  }
  return all;
}

}  // namespace collectives::perf
