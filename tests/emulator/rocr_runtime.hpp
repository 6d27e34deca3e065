#pragma once
// ROCr's agents, memory and signals, as the tests use them; and a second process, for tests that need one.
#include "support/catch.hpp"

#include <hsa/hsa.h>
#include <hsa/hsa_ext_amd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>
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

/// This program again, in a process of its own, with one (hidden) test. The child reads and writes the other end of `link()` as
/// descriptor kLink.
class Child {
 public:
  static constexpr int kLink = 100;
  explicit Child(const char* test) {
    int ends[2]{};
    REQUIRE(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) == 0);
    link_ = ends[0];
    pid_ = ::fork();
    if (pid_ == 0) {
      ::dup2(ends[1], kLink);
      ::execl("/proc/self/exe", "child", test, static_cast<char*>(nullptr));
      ::_exit(126);
    }
    ::close(ends[1]);
  }
  ~Child() {
    ::close(link_);
    (void)status();
  }
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;
  int link() const { return link_; }
  /// How it ended, as waitpid says it.
  int status() {
    if (pid_ > 0) ::waitpid(std::exchange(pid_, 0), &status_, 0);
    return status_;
  }

 private:
  int link_ = -1;
  pid_t pid_ = -1;
  int status_ = -1;
};

template <class T> void send(int link, const T& value) { REQUIRE(::write(link, &value, sizeof value) == sizeof value); }
template <class T> T receive(int link) {
  T value{};
  REQUIRE(::read(link, &value, sizeof value) == sizeof value);
  return value;
}

}  // namespace rocr
