// SPDX-License-Identifier: MIT
// ROCr's asynchronous copies on the software node, compared with plain memcpy of the same bytes: bandwidth, and the
// latency of small copies. The time includes ROCr: from the call to the signal that a spinning host sees.
//
//   build/tools/sdma emulate --gpus=2 -- build/bench/bench-node-rocr
//
// Copies and memcpys take turns, under the same load. The best tenth is the time while no other program needs the
// processors; the median is shown beside it.
#include <hsa/hsa.h>
#include <hsa/hsa_ext_amd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

namespace {

void must(bool good, const char* what) {
  if (good) return;
  std::fprintf(stderr, "bench-node-rocr: %s failed\n", what);
  std::exit(1);
}
#define MUST(call) must((call) == HSA_STATUS_SUCCESS, #call)

struct Agent {
  hsa_agent_t agent{};
  hsa_amd_memory_pool_t pool{};
};
std::vector<Agent> cpus, gpus;

void find_agents() {
  MUST(hsa_iterate_agents(
      [](hsa_agent_t a, void*) {
        hsa_device_type_t type{};
        hsa_agent_get_info(a, HSA_AGENT_INFO_DEVICE, &type);
        Agent found{.agent = a};
        hsa_amd_agent_iterate_memory_pools(
            a,
            [](hsa_amd_memory_pool_t p, void* out) {
              hsa_amd_segment_t segment{};
              hsa_amd_memory_pool_get_info(p, HSA_AMD_MEMORY_POOL_INFO_SEGMENT, &segment);
              auto& pool = *static_cast<hsa_amd_memory_pool_t*>(out);
              if (segment == HSA_AMD_SEGMENT_GLOBAL && pool.handle == 0) pool = p;
              return HSA_STATUS_SUCCESS;
            },
            &found.pool);
        (type == HSA_DEVICE_TYPE_GPU ? gpus : cpus).push_back(found);
        return HSA_STATUS_SUCCESS;
      },
      nullptr));
  must(!cpus.empty() && !gpus.empty(), "finding a GPU");
}

char* allocate(const Agent& a, std::size_t bytes) {
  void* p = nullptr;
  MUST(hsa_amd_memory_pool_allocate(a.pool, bytes, 0, &p));
  std::vector<hsa_agent_t> all;
  for (const auto& g : gpus) all.push_back(g.agent);
  MUST(hsa_amd_agents_allow_access(static_cast<std::uint32_t>(all.size()), all.data(), nullptr, p));
  std::memset(p, 1, bytes);
  return static_cast<char*>(p);
}

using Clock = std::chrono::steady_clock;
template <class F> double us_of(F f) {
  const auto begin = Clock::now();
  f();
  return std::chrono::duration<double, std::micro>(Clock::now() - begin).count();
}
double quantile(std::vector<double> v, double part) {
  std::sort(v.begin(), v.end());
  return v[static_cast<std::size_t>(static_cast<double>(v.size() - 1) * part)];
}

void measure(const char* what, const Agent& to, const Agent& from, std::size_t bytes, int times) {
  auto *dst = allocate(to, bytes), *src = allocate(from, bytes);
  hsa_signal_t done{};
  MUST(hsa_signal_create(1, 0, nullptr, &done));
  const auto copy = [&] {
    hsa_signal_store_relaxed(done, 1);
    MUST(hsa_amd_memory_async_copy(dst, to.agent, src, from.agent, bytes, 0, nullptr, done));
    while (hsa_signal_wait_scacquire(done, HSA_SIGNAL_CONDITION_LT, 1, ~0ull, HSA_WAIT_STATE_ACTIVE) != 0) {}
  };
  copy();
  std::vector<double> ours, plain;
  for (int i = 0; i < times; ++i) {
    ours.push_back(us_of(copy));
    plain.push_back(us_of([&] {
      std::memcpy(dst, src, bytes);
      asm volatile("" ::"r"(dst) : "memory");
    }));
  }
  const auto size = bytes >= 1 << 20 ? std::to_string(bytes >> 20) + " MiB" : std::to_string(bytes) + " B";
  std::printf("%-12s %8s   %10.1f %10.1f   %10.1f %10.1f", what, size.c_str(), quantile(ours, 0.1), quantile(ours, 0.5),
              quantile(plain, 0.1), quantile(plain, 0.5));
  const auto rate = [&](double us) { return static_cast<double>(bytes) / us * 1e-3; };
  if (bytes >= 1 << 20) std::printf("   %6.2f %6.2f", rate(quantile(ours, 0.1)), rate(quantile(plain, 0.1)));
  std::printf("\n");
  hsa_signal_destroy(done);
  hsa_amd_memory_pool_free(dst);
  hsa_amd_memory_pool_free(src);
}

}  // namespace

int main() {
  MUST(hsa_init());
  find_agents();
  std::printf(
      "                        async copy, us         memcpy, us              best, GB/s\n"
      "                        best 10 %%     median   best 10 %%     median     copy memcpy\n");
  const struct {
    std::size_t bytes;
    int times;
  } sizes[] = {{64, 2000}, {4096, 2000}, {1 << 20, 200}, {64 << 20, 12}};
  for (const auto& [bytes, times] : sizes) {
    measure("host to GPU", gpus[0], cpus[0], bytes, times);
    measure("GPU to host", cpus[0], gpus[0], bytes, times);
    if (gpus.size() > 1) measure("GPU to GPU", gpus[1], gpus[0], bytes, times);
  }
  hsa_shut_down();
}
