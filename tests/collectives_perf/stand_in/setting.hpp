// SPDX-License-Identifier: MIT
#pragma once
// What the stand-ins have in common: numbers of the environment, and exported functions. Any thread. No errors.
#include <cstdlib>

namespace stand_in {

/// A number of the environment, or `otherwise`.
inline long setting(const char* name, long otherwise) {
  const char* text = std::getenv(name);
  return text ? std::strtol(text, nullptr, 10) : otherwise;
}

}  // namespace stand_in

#define STAND_IN_EXPORT extern "C" __attribute__((visibility("default")))
