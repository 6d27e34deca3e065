// SPDX-License-Identifier: MIT
// Programs for a whole ROCr on the software node: four threads that copy
// at once, and an all-gather over all GPUs. Every byte is verified.
//
//   LD_LIBRARY_PATH=FOLDER sdma emulate --gpus=8 -- node
#include <hsa/hsa.h>
#include <hsa/hsa_ext_amd.h>

#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <thread>
#include <vector>

namespace {

void must(hsa_status_t status, const char* what) {
  if (status == HSA_STATUS_SUCCESS) return;
  const char* text = "";
  hsa_status_string(status, &text);
  std::printf("%s: %s\n", what, text);
  std::exit(1);
}

struct Agent {
  hsa_agent_t agent{};
  hsa_amd_memory_pool_t pool{};
};
Agent cpu;
std::vector<Agent> gpus;

hsa_status_t found(hsa_agent_t agent, void*) {
  Agent a{agent, {}};
  hsa_amd_agent_iterate_memory_pools(
      agent,
      [](hsa_amd_memory_pool_t p, void* out) {
        hsa_amd_segment_t segment{};
        hsa_amd_memory_pool_get_info(p, HSA_AMD_MEMORY_POOL_INFO_SEGMENT, &segment);
        auto& pool = *static_cast<hsa_amd_memory_pool_t*>(out);
        if (segment == HSA_AMD_SEGMENT_GLOBAL && pool.handle == 0) pool = p;
        return HSA_STATUS_SUCCESS;
      },
      &a.pool);
  hsa_device_type_t type{};
  hsa_agent_get_info(agent, HSA_AGENT_INFO_DEVICE, &type);
  if (type == HSA_DEVICE_TYPE_GPU) gpus.push_back(a);
  else if (cpu.agent.handle == 0) cpu = a;
  return HSA_STATUS_SUCCESS;
}

std::uint8_t* allocate(const Agent& a, std::size_t bytes) {
  void* p = nullptr;
  must(hsa_amd_memory_pool_allocate(a.pool, bytes, 0, &p), "hsa_amd_memory_pool_allocate");
  std::vector<hsa_agent_t> all;
  for (const auto& g : gpus) all.push_back(g.agent);
  must(hsa_amd_agents_allow_access(static_cast<std::uint32_t>(all.size()), all.data(), nullptr, p),
       "hsa_amd_agents_allow_access");
  return static_cast<std::uint8_t*>(p);
}

struct Signal {
  hsa_signal_t s{};
  Signal() { must(hsa_signal_create(1, 0, nullptr, &s), "hsa_signal_create"); }
  ~Signal() { hsa_signal_destroy(s); }
  Signal(const Signal&) = delete;
  Signal& operator=(const Signal&) = delete;
  void wait() const {
    if (hsa_signal_wait_scacquire(s, HSA_SIGNAL_CONDITION_LT, 1, 30'000'000'000, HSA_WAIT_STATE_BLOCKED) == 0) return;
    std::printf("a copy did not complete in 30 s\n");
    std::exit(1);
  }
};

void copy(void* dst, const Agent& to, const void* src, const Agent& from, std::size_t bytes, const Signal& done,
          const Signal* after = nullptr) {
  must(hsa_amd_memory_async_copy(dst, to.agent, src, from.agent, bytes, after ? 1 : 0, after ? &after->s : nullptr,
                                 done.s),
       "hsa_amd_memory_async_copy");
}

std::uint8_t byte_of(std::size_t i, unsigned seed) {
  return static_cast<std::uint8_t>((i * 2654435761u >> 11) + seed * 97 + i / 4096);
}

void same(const std::uint8_t* p, std::size_t bytes, unsigned seed, const char* where) {
  for (std::size_t i = 0; i != bytes; ++i)
    if (p[i] != byte_of(i, seed)) {
      std::printf("%s: byte %zu of piece %u differs\n", where, i, seed);
      std::exit(1);
    }
}

/// Each thread sends a buffer to a GPU and back; the second copy waits for the first in its ring.
void threads(int count, int rounds) {
  constexpr std::size_t kBytes = 100'003;
  std::vector<std::thread> all;
  for (int t = 0; t != count; ++t)
    all.emplace_back([=] {
      const auto& gpu = gpus[static_cast<std::size_t>(t) % gpus.size()];
      auto *in = allocate(cpu, kBytes), *there = allocate(gpu, kBytes), *out = allocate(cpu, kBytes);
      for (int r = 0; r != rounds; ++r) {
        const auto seed = static_cast<unsigned>(t * rounds + r);
        for (std::size_t i = 0; i != kBytes; ++i) in[i] = byte_of(i, seed);
        std::memset(out, 0, kBytes);
        const Signal sent, back;
        copy(there, gpu, in, cpu, kBytes, sent);
        copy(out, cpu, there, gpu, kBytes, back, &sent);
        back.wait();
        same(out, kBytes, seed, "threads");
      }
      for (auto* p : {in, there, out}) hsa_amd_memory_pool_free(p);
    });
  for (auto& t : all) t.join();
}

/// Every GPU sends its piece to all others.
void all_gather(std::size_t bytes) {
  std::vector<std::uint8_t*> whole;
  for (const auto& g : gpus) whole.push_back(allocate(g, bytes * gpus.size()));
  auto* host = allocate(cpu, bytes * gpus.size());
  for (std::size_t g = 0; g != gpus.size(); ++g) {
    for (std::size_t i = 0; i != bytes; ++i) host[i] = byte_of(i, static_cast<unsigned>(g));
    const Signal sent;
    copy(whole[g] + g * bytes, gpus[g], host, cpu, bytes, sent);
    sent.wait();
  }
  {
    const std::vector<Signal> done(gpus.size() * gpus.size());
    for (std::size_t from = 0; from != gpus.size(); ++from)
      for (std::size_t to = 0; to != gpus.size(); ++to)
        if (from != to)
          copy(whole[to] + from * bytes, gpus[to], whole[from] + from * bytes, gpus[from], bytes,
               done[from * gpus.size() + to]);
    for (std::size_t from = 0; from != gpus.size(); ++from)
      for (std::size_t to = 0; to != gpus.size(); ++to)
        if (from != to) done[from * gpus.size() + to].wait();
  }
  for (std::size_t g = 0; g != gpus.size(); ++g) {
    const Signal back;
    copy(host, cpu, whole[g], gpus[g], bytes * gpus.size(), back);
    back.wait();
    for (std::size_t piece = 0; piece != gpus.size(); ++piece)
      same(host + piece * bytes, bytes, static_cast<unsigned>(piece), "all-gather");
  }
}

}  // namespace

int main() {
  must(hsa_init(), "hsa_init");
  must(hsa_iterate_agents(found, nullptr), "hsa_iterate_agents");
  threads(4, 20);
  all_gather(200'000);
  std::printf("four threads, and an all-gather over %zu GPUs: every byte is right\n", gpus.size());
  hsa_shut_down();
}
