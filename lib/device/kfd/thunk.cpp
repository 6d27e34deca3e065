// SPDX-License-Identifier: MIT
#include "thunk.hpp"

#include <fmt/format.h>

namespace sdma { inline namespace v0_3 { namespace detail::thunk {

const char* message(Status s) noexcept {
  switch (s) {
    case kSuccess: return "no error";
    case 1: return "the driver refused";
    case 2: return "library and driver are incompatible";
    case 3: return "a parameter is invalid";
    case 4: return "a handle is invalid";
    case 5: return "there is no such node";
    case kNoMemory: return "no memory";
    case kTooSmall: return "a buffer is too small";
    case 10: return "not implemented";
    case 11: return "not supported on this node";
    case 12: return "not available right now";
    case 13: return "out of resources";
    case 20: return "the driver is not open";
    case 21: return "the driver does not answer";
    case kAlreadyOpened: return "the driver is already open";
    case 30: return "the wait failed";
    case 31: return "the wait timed out";
    case 37: return "an address is not aligned";
  }
  return "an unknown status";
}

Result<const Thunk*, Diagnostic> load_thunk(const std::string& name) {
  constexpr const char* kHint =
      "install it (Debian: libhsakmt1; ROCm: hsakmt or rocr-runtime), or give its path in KfdOptions::libhsakmt";
  return load_once<Thunk>(name, kHint, [](const Thunk& t) {
    const auto* lacking = t.library.lacking();
    return lacking ? fmt::format("does not export {}, so it may not be libhsakmt", lacking) : "";
  });
}

}}}  // namespace sdma::v0_3::detail::thunk
