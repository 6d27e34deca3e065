// SPDX-License-Identifier: MIT
// KfdDevice in a library that was built without it: `open` always fails and says why.
#include "sdma/device/kfd.hpp"

namespace sdma { inline namespace v0_3 {
namespace {

Diagnostic without() {
  return {.where = "KfdDevice",
          .message = "this library was built without devices of the kernel driver",
          .hint = "build it with -Dkfd=enabled (Linux)"};
}

}  // namespace

Result<std::unique_ptr<KfdDevice>, Diagnostic> KfdDevice::open(const KfdOptions&) { return without(); }
std::vector<Diagnostic> KfdDevice::missing(const KfdOptions&) { return {without()}; }
KfdDevice::~KfdDevice() = default;

const std::vector<KfdGpu>& KfdDevice::gpus() const noexcept {
  static const std::vector<KfdGpu> none;
  return none;
}
std::string KfdDevice::version() const { return {}; }

}}  // namespace sdma::v0_3
