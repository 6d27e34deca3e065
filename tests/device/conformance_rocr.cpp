// SPDX-License-Identifier: MIT
// The conformance tests on a device over ROCr: the machine's ROCr, or the library that SDMA_TEST_LIBHSA names.
#include "conformance.hpp"
#include "sdma/device/rocr.hpp"

#include <cstdio>
#include <cstdlib>

using namespace sdma;

std::vector<DeviceUnderTest> devices_under_test() {
  const auto open = [] {
    const char* library = std::getenv("SDMA_TEST_LIBHSA");
    auto d = RocrDevice::open({.libhsa = library ? library : ""});
    if (!d) {
      std::fprintf(stderr, "%s\n", to_string(d.error()).c_str());
      std::exit(library ? 1 : 77);  // skipped: there is no such node here
    }
    return std::unique_ptr<Device>(std::move(*d));
  };
  return {{.name = "rocr", .open = open, .watches_wptr = false, .names_the_packet = false}};
}
