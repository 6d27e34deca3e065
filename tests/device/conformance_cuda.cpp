// SPDX-License-Identifier: MIT
// The conformance tests on NVIDIA GPUs, or on the stand-in for their
// driver: three logical GPUs, on as many physical ones as there are.
#include "conformance.hpp"
#include "sdma/device/cuda.hpp"

#include <cstdio>
#include <cstdlib>

using namespace sdma;

std::vector<DeviceUnderTest> devices_under_test() {
  const auto device = [](std::string name, bool batches) {
    return DeviceUnderTest{.name = std::move(name),
                           .open =
                               [batches] {
                                 auto d = CudaDevice::open({.gpus = 3, .batches = batches});
                                 if (!d) {
                                   std::fprintf(stderr, "%s\n", to_string(d.error()).c_str());
                                   std::exit(77);  // skipped: there is no GPU here
                                 }
                                 return std::unique_ptr<Device>(std::move(*d));
                               },
                           .shows_waiting = false,
                           .takes_back = false};
  };
  return {device("cuda", true), device("cuda, no batches", false)};
}
