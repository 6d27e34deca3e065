// SPDX-License-Identifier: MIT
// ROCr's virtual memory: addresses and memory are allocated apart, and mapped for chosen agents. Debian's ROCr 5.2.3
// does not have it; SDMA_TEST_ROCR names the folder of a newer one.
#include "support/catch.hpp"

#include <dlfcn.h>
#include <hsa/hsa.h>
#include <hsa/hsa_ext_amd.h>
#include <unistd.h>
#include <array>
#include <cstdlib>
#include <cstring>

namespace {

// As in the newer <hsa/hsa_ext_amd.h>.
struct AllocHandle {
  std::uint64_t handle;
};
enum Permission : int { kNone, kReadOnly, kWriteOnly, kReadWrite };
struct AccessOf {
  Permission permission;
  hsa_agent_t agent;
};
struct SvmAttribute {
  std::uint64_t name, value;
};
constexpr auto kSvmSupported = static_cast<hsa_system_info_t>(0x201),
               kVirtualMemory = static_cast<hsa_system_info_t>(0x205);
constexpr std::uint64_t kAgentAccessible = 0x200;

template <class F> F* function(const char* name) { return reinterpret_cast<F*>(::dlsym(RTLD_DEFAULT, name)); }
const auto reserve =
    function<hsa_status_t(void**, std::size_t, std::uint64_t, std::uint64_t)>("hsa_amd_vmem_address_reserve");
const auto unreserve = function<hsa_status_t(void*, std::size_t)>("hsa_amd_vmem_address_free");
const auto create = function<hsa_status_t(hsa_amd_memory_pool_t, std::size_t, int, std::uint64_t, AllocHandle*)>(
    "hsa_amd_vmem_handle_create");
const auto release = function<hsa_status_t(AllocHandle)>("hsa_amd_vmem_handle_release");
const auto map =
    function<hsa_status_t(void*, std::size_t, std::size_t, AllocHandle, std::uint64_t)>("hsa_amd_vmem_map");
const auto unmap = function<hsa_status_t(void*, std::size_t)>("hsa_amd_vmem_unmap");
const auto set_access =
    function<hsa_status_t(void*, std::size_t, const AccessOf*, std::size_t)>("hsa_amd_vmem_set_access");
const auto get_access = function<hsa_status_t(void*, Permission*, hsa_agent_t)>("hsa_amd_vmem_get_access");
const auto share = function<hsa_status_t(int*, AllocHandle, std::uint64_t)>("hsa_amd_vmem_export_shareable_handle");
const auto take = function<hsa_status_t(int, AllocHandle*)>("hsa_amd_vmem_import_shareable_handle");
const auto retain = function<hsa_status_t(AllocHandle*, void*)>("hsa_amd_vmem_retain_alloc_handle");
const auto set_svm =
    function<hsa_status_t(void*, std::size_t, SvmAttribute*, std::size_t)>("hsa_amd_svm_attributes_set");

constexpr std::size_t kBytes = 2 << 20;

#define GOOD(call) REQUIRE((call) == HSA_STATUS_SUCCESS)

struct Runtime {
  std::vector<hsa_agent_t> gpus{}, cpus{};
  std::vector<hsa_amd_memory_pool_t> pools{};  ///< of the GPUs
  hsa_amd_memory_pool_t host{};
  hsa_signal_t done{};

  Runtime() {
    GOOD(hsa_init());
    GOOD(hsa_iterate_agents(
        [](hsa_agent_t a, void* self) {
          hsa_device_type_t type{};
          (void)hsa_agent_get_info(a, HSA_AGENT_INFO_DEVICE, &type);
          auto& r = *static_cast<Runtime*>(self);
          (type == HSA_DEVICE_TYPE_GPU ? r.gpus : r.cpus).push_back(a);
          return HSA_STATUS_SUCCESS;
        },
        this));
    for (const auto g : gpus) pools.push_back(pool(g));
    host = pool(cpus[0]);
    GOOD(hsa_signal_create(1, 0, nullptr, &done));
  }
  ~Runtime() {
    (void)hsa_signal_destroy(done);
    (void)hsa_shut_down();
  }
  static hsa_amd_memory_pool_t pool(hsa_agent_t of) {
    hsa_amd_memory_pool_t found{};
    (void)hsa_amd_agent_iterate_memory_pools(
        of,
        [](hsa_amd_memory_pool_t p, void* out) {
          bool allocates = false;
          (void)hsa_amd_memory_pool_get_info(p, HSA_AMD_MEMORY_POOL_INFO_RUNTIME_ALLOC_ALLOWED, &allocates);
          if (!allocates) return HSA_STATUS_SUCCESS;
          *static_cast<hsa_amd_memory_pool_t*>(out) = p;
          return HSA_STATUS_INFO_BREAK;
        },
        &found);
    return found;
  }
  void copy(void* to, hsa_agent_t to_agent, const void* from, hsa_agent_t from_agent) const {
    hsa_signal_store_relaxed(done, 1);
    GOOD(hsa_amd_memory_async_copy(to, to_agent, from, from_agent, kBytes, 0, nullptr, done));
    CHECK(hsa_signal_wait_scacquire(done, HSA_SIGNAL_CONDITION_LT, 1, ~std::uint64_t{0}, HSA_WAIT_STATE_BLOCKED) == 0);
  }
};

}  // namespace

TEST_CASE("memory of each GPU at reserved addresses: the host and all GPUs go through the mappings") {
  REQUIRE((reserve && create && map && set_access && share && take && retain));
  const Runtime r;
  bool supported = false;
  GOOD(hsa_system_get_info(kVirtualMemory, &supported));
  CHECK(supported);
  std::vector<void*> at(r.gpus.size());
  std::vector<AllocHandle> memory(r.gpus.size());
  std::vector<AccessOf> everyone{{kReadWrite, r.cpus[0]}};
  for (const auto g : r.gpus) everyone.push_back({kReadWrite, g});
  for (std::size_t g = 0; g < r.gpus.size(); ++g) {
    GOOD(reserve(&at[g], 2 * kBytes, 0, 0));
    GOOD(create(r.pools[g], kBytes, 0, 0, &memory[g]));
    GOOD(map(at[g], kBytes, 0, memory[g], 0));
    GOOD(set_access(at[g], kBytes, everyone.data(), everyone.size()));
    Permission p{};
    GOOD(get_access(at[g], &p, r.gpus[0]));
    CHECK(p == kReadWrite);
  }
  auto* bytes = static_cast<std::uint8_t*>(at[0]);
  for (std::size_t i = 0; i < kBytes; ++i) bytes[i] = static_cast<std::uint8_t>(i * 7 + i / 4096);
  for (std::size_t g = 1; g < r.gpus.size(); ++g) r.copy(at[g], r.gpus[g], at[g - 1], r.gpus[g - 1]);
  void* host = nullptr;
  GOOD(hsa_amd_memory_pool_allocate(r.host, kBytes, 0, &host));
  GOOD(hsa_amd_agents_allow_access(static_cast<std::uint32_t>(r.gpus.size()), r.gpus.data(), nullptr, host));
  r.copy(host, r.cpus[0], at.back(), r.gpus.back());
  CHECK(std::memcmp(host, at[0], kBytes) == 0);
  CHECK(std::memcmp(at.back(), at[0], kBytes) == 0);

  // The same memory a second time, through a DMABUF.
  int fd = -1;
  AllocHandle imported{}, held{};
  GOOD(share(&fd, memory[0], 0));
  GOOD(take(fd, &imported));
  ::close(fd);
  auto* alias = bytes + kBytes;
  GOOD(map(alias, kBytes, 0, imported, 0));
  GOOD(set_access(alias, kBytes, everyone.data(), 2));
  CHECK(std::memcmp(alias, bytes, kBytes) == 0);
  std::memset(host, 0x3c, kBytes);
  r.copy(alias, r.gpus[0], host, r.cpus[0]);
  CHECK(bytes[kBytes - 1] == 0x3c);
  GOOD(unmap(alias, kBytes));
  GOOD(release(imported));
  GOOD(retain(&held, at[0]));
  GOOD(release(held));

  // Other memory at the same address.
  AllocHandle other{};
  GOOD(create(r.pools[0], kBytes, 0, 0, &other));
  GOOD(unmap(at[0], kBytes));
  GOOD(map(at[0], kBytes, 0, other, 0));
  GOOD(set_access(at[0], kBytes, everyone.data(), everyone.size()));
  CHECK(bytes[0] == 0);
  GOOD(release(other));  // mapped until it is unmapped
  bytes[0] = 1;
  r.copy(host, r.cpus[0], at[0], r.gpus[0]);
  CHECK(*static_cast<std::uint8_t*>(host) == 1);
  for (std::size_t g = 0; g < r.gpus.size(); ++g) {
    GOOD(unmap(at[g], kBytes));
    GOOD(release(memory[g]));
    GOOD(unreserve(at[g], 2 * kBytes));
  }
  GOOD(hsa_amd_memory_pool_free(host));
}

TEST_CASE("shared virtual memory gives an agent access to the program's own memory") {
  const Runtime r;
  bool supported = false;
  CHECK(hsa_system_get_info(kSvmSupported, &supported) == HSA_STATUS_SUCCESS);
  CHECK(supported);
  REQUIRE(set_svm);
  auto* p = std::aligned_alloc(4096, 4096);
  SvmAttribute a{kAgentAccessible, r.gpus[0].handle};
  CHECK(set_svm(p, 4096, &a, 1) == HSA_STATUS_SUCCESS);
  std::free(p);
}
