// SPDX-License-Identifier: MIT
// The one exported function: it finds all others.
#include "calls.hpp"
#include "settings.hpp"

#include <cstdint>
#include <cstring>

namespace stand_in {
namespace {

enum Found { kFound = 0, kNoSuchName = 1, kNotInThisVersion = 2 };

}  // namespace

extern "C" __attribute__((visibility("default"))) Status cuGetProcAddress_v2(const char* symbol, void** function,
                                                                             int version, std::uint64_t /*flags*/,
                                                                             int* found) {
  if (!symbol || !function || version > settings().version) return kInvalidValue;
  *function = nullptr;
  int what = kNoSuchName;
  for (const auto& calls :
       {device_calls(), stream_calls(), copy_calls(), memory_calls(), pointer_calls(), module_calls(), graph_calls()}) {
    for (const auto& e : calls) {
      if (std::strcmp(e.name, symbol) != 0 || what == kFound) continue;
      const bool here = version >= e.since && version < e.until;
      what = here ? kFound : kNotInThisVersion;
      if (here) *function = e.function;
    }
  }
  if (found) *found = what;
  return kSuccess;
}

}  // namespace stand_in
