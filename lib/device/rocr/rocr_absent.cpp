// SPDX-License-Identifier: MIT
// RocrDevice in a library that was built without it: `open` always fails and says why.
#include "sdma/device/rocr.hpp"

namespace sdma { inline namespace v0_3 {
namespace {

Diagnostic without() {
  return {.where = "RocrDevice",
          .message = "this library was built without devices of the kernel driver",
          .hint = "build it with -Dkfd=enabled (Linux)"};
}

}  // namespace

Result<std::unique_ptr<RocrDevice>, Diagnostic> RocrDevice::open(const RocrOptions&) { return without(); }
std::vector<Diagnostic> RocrDevice::missing(const RocrOptions&) { return {without()}; }
RocrDevice::~RocrDevice() = default;

Result<Memory, Diagnostic> RocrDevice::adopt(void*, std::uint64_t, std::uint64_t) { return without(); }
RocrQueues RocrDevice::queues() const noexcept { return {}; }
std::string RocrDevice::version() const { return {}; }

}}  // namespace sdma::v0_3
