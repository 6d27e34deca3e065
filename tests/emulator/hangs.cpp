// SPDX-License-Identifier: MIT
// Programs of an unmodified runtime that hang on purpose. The tests of `sdma doctor` examine them from outside.
//
//   hangs dependency|queues N|released|idle
//
//   dependency     a copy waits for a signal that nothing sets
//   queues N       N such copies, in as many sDMA queues as the runtime uses
//   released       a copy waits for a signal, which a thread sets after half a second
//   idle           a copy is complete, and the program waits for input
#include "attachable.hpp"

#include <hsa/hsa.h>
#include <hsa/hsa_ext_amd.h>
#include <unistd.h>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

namespace {

struct Found {
  std::vector<hsa_agent_t> gpus{};
  std::vector<hsa_amd_memory_pool_t> pools{};  ///< of each GPU
  hsa_agent_t cpu{};
  hsa_amd_memory_pool_t host{};
};

hsa_status_t take_pool(hsa_amd_memory_pool_t p, void* out) {
  bool allocates = false;
  hsa_amd_memory_pool_get_info(p, HSA_AMD_MEMORY_POOL_INFO_RUNTIME_ALLOC_ALLOWED, &allocates);
  if (!allocates) return HSA_STATUS_SUCCESS;
  *static_cast<hsa_amd_memory_pool_t*>(out) = p;
  return HSA_STATUS_INFO_BREAK;
}

hsa_status_t take_agent(hsa_agent_t a, void* out) {
  auto& f = *static_cast<Found*>(out);
  hsa_device_type_t type{};
  hsa_agent_get_info(a, HSA_AGENT_INFO_DEVICE, &type);
  hsa_amd_memory_pool_t pool{};
  hsa_amd_agent_iterate_memory_pools(a, take_pool, &pool);
  if (type == HSA_DEVICE_TYPE_GPU) {
    f.gpus.push_back(a);
    f.pools.push_back(pool);
  } else if (f.cpu.handle == 0) {
    f.cpu = a;
    f.host = pool;
  }
  return HSA_STATUS_SUCCESS;
}

void check(hsa_status_t s) {
  if (s == HSA_STATUS_SUCCESS) return;
  std::fprintf(stderr, "the runtime refuses a call: %d\n", static_cast<int>(s));
  std::exit(3);
}

void say(const char* what) {
  std::printf("%d %s\n", static_cast<int>(::getpid()), what);
  std::fflush(stdout);
}

void wait_for(hsa_signal_t s) {
  while (hsa_signal_wait_scacquire(s, HSA_SIGNAL_CONDITION_LT, 1, UINT64_MAX, HSA_WAIT_STATE_BLOCKED) >= 1) {}
}

}  // namespace

int main(int argc, char** argv) {
  let_others_attach();
  const std::string how = argc > 1 ? argv[1] : "";
  const int copies = how == "queues" && argc > 2 ? std::atoi(argv[2]) : 1;
  constexpr std::size_t kBytes = 4096;
  check(hsa_init());
  Found f;
  check(hsa_iterate_agents(take_agent, &f));
  void* from = nullptr;
  check(hsa_amd_memory_pool_allocate(f.host, kBytes, 0, &from));
  check(hsa_amd_agents_allow_access(static_cast<std::uint32_t>(f.gpus.size()), f.gpus.data(), nullptr, from));
  std::memset(from, 0x3c, kBytes);
  hsa_signal_t never{}, done{};
  check(hsa_signal_create(1, 0, nullptr, &never));
  check(hsa_signal_create(copies, 0, nullptr, &done));
  for (int i = 0; i < copies; ++i) {
    const auto g = static_cast<std::size_t>(i) % f.gpus.size();
    void* to = nullptr;
    check(hsa_amd_memory_pool_allocate(f.pools[g], kBytes, 0, &to));
    check(hsa_amd_memory_async_copy(to, f.gpus[g], from, f.cpu, kBytes, how == "idle" ? 0 : 1,
                                    how == "idle" ? nullptr : &never, done));
  }
  std::thread release;
  if (how == "released")
    release = std::thread([never] {
      std::this_thread::sleep_for(std::chrono::milliseconds(500));
      hsa_signal_store_screlease(never, 0);
    });
  if (how != "idle") {
    say("waits");
    wait_for(done);
    say("complete");
  } else {
    wait_for(done);
    say("idle");
    (void)std::getchar();
  }
  if (release.joinable()) release.join();
  check(hsa_shut_down());
  return 0;
}
