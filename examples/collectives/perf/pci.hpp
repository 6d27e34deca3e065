// SPDX-License-Identifier: MIT
#pragma once
// The PCI addresses of a collective's GPUs: the name of a GPU that every vendor's library understands.
//
//   pci_addresses(device, settings)      // "0000:06:00.0" for each rank; ranks that share a GPU have one address
//
// Any thread. No errors; a device without PCI addresses has empty ones.
#include "sdma/device/device.hpp"
#include "settings.hpp"

#include <string>
#include <vector>

namespace collectives::perf {

std::vector<std::string> pci_addresses(const sdma::Device&, const Settings&);

}  // namespace collectives::perf
