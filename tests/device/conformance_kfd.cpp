// SPDX-License-Identifier: MIT
// The conformance tests on a node of the kernel driver: real MI300X, or a software node that stands in for it. One
// device: what varies is the node under it, which whoever starts the program chooses.
#include "conformance.hpp"
#include "sdma/device/kfd.hpp"

#include <cstdio>
#include <cstdlib>

using namespace sdma;

std::vector<DeviceUnderTest> devices_under_test() {
  const auto open = [] {
    const char* library = std::getenv("SDMA_TEST_LIBHSAKMT");
    KfdOptions o;
    if (library) o.libhsakmt = library;
    auto d = KfdDevice::open(o);
    if (!d) {
      std::fprintf(stderr, "%s\n", to_string(d.error()).c_str());
      std::exit(77);  // skipped: there is no such node here
    }
    return std::unique_ptr<Device>(std::move(*d));
  };
  return {{.name = "kfd", .open = open, .watches_wptr = false, .names_the_packet = false}};
}
