// SPDX-License-Identifier: MIT
#include "settings.hpp"

#include <algorithm>
#include <cstdlib>

namespace stand_in {
namespace {

const char* text_of(const char* name) {
  const char* text = std::getenv(name);
  return text && *text ? text : nullptr;
}
int number_of(const char* name, int otherwise) {
  const char* text = text_of(name);
  return text ? std::atoi(text) : otherwise;
}

}  // namespace

const Settings& settings() {
  static const auto* const all = [] {
    auto* s = new Settings;
    s->gpus = std::clamp(number_of("SDMA_STAND_IN_GPUS", s->gpus), 0, 64);
    s->version = number_of("SDMA_STAND_IN_VERSION", s->version);
    if (const char* seed = text_of("SDMA_STAND_IN_SEED")) s->seed = std::strtoull(seed, nullptr, 0);
    if (const char* failures = text_of("SDMA_STAND_IN_FAIL")) s->failures = failures;
    return s;
  }();
  return *all;
}

unsigned connections_now() {
  return static_cast<unsigned>(std::clamp(number_of("CUDA_DEVICE_MAX_CONNECTIONS", 8), 1, 32));
}

}  // namespace stand_in
