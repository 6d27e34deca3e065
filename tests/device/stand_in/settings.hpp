// SPDX-License-Identifier: MIT
#pragma once
// What the environment says of the stand-in. Read once, at the first use, except for the connections.
//
//   SDMA_STAND_IN_GPUS=2        the number of GPUs; 0: cuInit fails
//   SDMA_STAND_IN_VERSION=13000 CUDA 13.0
//   SDMA_STAND_IN_SEED=7        adversarial order, by this seed; unset: prompt
//   SDMA_STAND_IN_FAIL=...      injected failures: failures.hpp
//   CUDA_DEVICE_MAX_CONNECTIONS=8, at most 32; read by cuInit, as the driver does
#include <cstdint>
#include <optional>
#include <string>

namespace stand_in {

struct Settings {
  int gpus = 2;
  int version = 13000;
  std::optional<std::uint64_t> seed{};
  std::string failures{};
};

const Settings& settings();

/// What CUDA_DEVICE_MAX_CONNECTIONS says now.
unsigned connections_now();

}  // namespace stand_in
