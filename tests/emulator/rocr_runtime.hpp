// SPDX-License-Identifier: MIT
#pragma once
// ROCr's agents, memory and signals, as the tests use them.
#include "support/catch.hpp"

#include <hsa/hsa.h>
#include <hsa/hsa_ext_amd.h>
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <new>
#include <utility>
#include <vector>

namespace rocr {

/// A call of ROCr that succeeds.
#define GOOD(call) REQUIRE((call) == HSA_STATUS_SUCCESS)

struct Agent {
  hsa_agent_t agent{};
  hsa_amd_memory_pool_t pool{};                ///< the first that programs may allocate from
  std::vector<hsa_amd_memory_pool_t> pools{};  ///< all of these
};

struct Runtime {
  Agent cpu{};
  std::vector<Agent> gpus{};

  Runtime() {
    GOOD(hsa_init());
    GOOD(hsa_iterate_agents(
        [](hsa_agent_t a, void* self) {
          hsa_device_type_t type{};
          hsa_agent_get_info(a, HSA_AGENT_INFO_DEVICE, &type);
          auto& r = *static_cast<Runtime*>(self);
          Agent found{.agent = a};
          hsa_amd_agent_iterate_memory_pools(
              a,
              [](hsa_amd_memory_pool_t p, void* out) {
                bool allocates = false;
                hsa_amd_memory_pool_get_info(p, HSA_AMD_MEMORY_POOL_INFO_RUNTIME_ALLOC_ALLOWED, &allocates);
                if (allocates) static_cast<std::vector<hsa_amd_memory_pool_t>*>(out)->push_back(p);
                return HSA_STATUS_SUCCESS;
              },
              &found.pools);
          if (!found.pools.empty()) found.pool = found.pools.front();
          if (type == HSA_DEVICE_TYPE_GPU) r.gpus.push_back(found);
          else if (r.cpu.agent.handle == 0) r.cpu = found;
          return HSA_STATUS_SUCCESS;
        },
        this));
    REQUIRE(!gpus.empty());
  }
  ~Runtime() { hsa_shut_down(); }
  Runtime(const Runtime&) = delete;
  Runtime& operator=(const Runtime&) = delete;

  std::vector<hsa_agent_t> gpu_agents() const {
    std::vector<hsa_agent_t> all;
    for (const auto& g : gpus) all.push_back(g.agent);
    return all;
  }
  /// Memory of a pool that all agents may touch. nullptr after a failure; threads call this, too.
  std::uint8_t* try_allocate(hsa_amd_memory_pool_t pool, std::size_t bytes) const {
    void* p = nullptr;
    const auto all = gpu_agents();
    if (hsa_amd_memory_pool_allocate(pool, bytes, 0, &p) != HSA_STATUS_SUCCESS) return nullptr;
    const auto shared = hsa_amd_agents_allow_access(static_cast<std::uint32_t>(all.size()), all.data(), nullptr, p);
    return shared == HSA_STATUS_SUCCESS ? static_cast<std::uint8_t*>(p) : nullptr;
  }
  std::uint8_t* allocate(const Agent& a, std::size_t bytes) const {
    auto* p = try_allocate(a.pool, bytes);
    REQUIRE(p);
    return p;
  }
};

struct Signal {
  hsa_signal_t s{};
  explicit Signal(hsa_signal_value_t value = 1) {
    if (hsa_signal_create(value, 0, nullptr, &s) != HSA_STATUS_SUCCESS) throw std::bad_alloc();
  }
  ~Signal() { hsa_signal_destroy(s); }
  Signal(Signal&& from) noexcept : s(std::exchange(from.s, {})) {}
  Signal& operator=(Signal&&) = delete;
  hsa_signal_value_t value() const { return hsa_signal_load_scacquire(s); }
  /// True when the signal is 0; false after about 20 s.
  bool done(hsa_wait_state_t how = HSA_WAIT_STATE_BLOCKED) const {
    return hsa_signal_wait_scacquire(s, HSA_SIGNAL_CONDITION_LT, 1, 20'000'000'000, how) == 0;
  }
};

/// False if a copy could not be started or has not ended; threads call this, too.
inline bool copied(void* dst, const Agent& to, const void* src, const Agent& from, std::size_t bytes) {
  const Signal done;
  return hsa_amd_memory_async_copy(dst, to.agent, src, from.agent, bytes, 0, nullptr, done.s) == HSA_STATUS_SUCCESS &&
         done.done();
}
inline void copy(void* dst, const Agent& to, const void* src, const Agent& from, std::size_t bytes) {
  REQUIRE(copied(dst, to, src, from, bytes));
}

inline std::vector<std::uint8_t> pattern(std::size_t bytes, std::uint32_t seed) {
  std::vector<std::uint8_t> v(bytes);
  for (auto& b : v) b = static_cast<std::uint8_t>((seed = seed * 1664525 + 1013904223) >> 24);
  return v;
}

}  // namespace rocr
