// SPDX-License-Identifier: MIT
// The conformance tests on software devices: three orderings, several seeds, VAs that are or are not the host's.
#include "conformance.hpp"
#include "sdma/device/soft.hpp"

using namespace sdma;

std::vector<DeviceUnderTest> devices_under_test() {
  std::vector<DeviceUnderTest> out;
  const auto add = [&](Ordering ordering, std::uint64_t seed, GpuVa va_base) {
    const SoftOptions options{.gpus = 3, .ordering = ordering, .seed = seed, .va_base = va_base};
    out.push_back(
        {.name = std::string(name(ordering)) + " seed " + std::to_string(seed) + (va_base.value ? " own VAs" : ""),
         .open = [options] { return std::unique_ptr<Device>(std::move(*SoftDevice::open(options))); }});
  };
  add(Ordering::strict, 0, GpuVa{});
  add(Ordering::strict, 0, GpuVa{1ull << 40});
  for (const std::uint64_t seed : {1u, 2u}) add(Ordering::rocr, seed, GpuVa{});
  for (const std::uint64_t seed : {1u, 2u, 3u}) add(Ordering::adversarial, seed, GpuVa{});
  add(Ordering::adversarial, 4, GpuVa{1ull << 40});
  return out;
}
