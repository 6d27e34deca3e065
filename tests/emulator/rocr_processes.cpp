// SPDX-License-Identifier: MIT
// Programs of several processes on ROCr: memory and signals that they share, all kinds of children, and faults, which
// end a process's work on a GPU. Hidden tests are the other processes. Part of the program of rocr.cpp.
#include "child.hpp"
#include "rocr_runtime.hpp"

#include <dlfcn.h>
#include <fcntl.h>
#include <atomic>
#include <chrono>
#include <csignal>
#include <cstring>
#include <functional>
#include <thread>

using namespace rocr;
using namespace std::chrono_literals;

namespace {

constexpr std::size_t kBytes = 18 * 4096;  // whole pages, as IPC requires

/// What a process needs to find the memory and the signal of another one.
struct Shared {
  hsa_amd_ipc_memory_t memory{};
  hsa_amd_ipc_signal_t signal{};
  bool has_signal{};
  std::uint32_t number{};
};
constexpr std::size_t place(std::uint32_t number) { return 10'000 * (number + 1) + 1; }

std::atomic<std::uint64_t> fault_at{0};

/// Copies from `bad`, which must be a VM fault.
void faults(const Runtime& r, void* bad, const Agent& owner) {
  GOOD(hsa_amd_register_system_event_handler(
      [](const hsa_amd_event_t* e, void*) {
        if (e->event_type == HSA_AMD_GPU_MEMORY_FAULT_EVENT) fault_at = e->memory_fault.virtual_address;
        return HSA_STATUS_SUCCESS;
      },
      nullptr));
  const auto& g = r.gpus.back();
  auto* vram = r.allocate(g, kBytes);
  const Signal done;
  GOOD(hsa_amd_memory_async_copy(vram, g.agent, bad, owner.agent, kBytes, 0, nullptr, done.s));
  for (int i = 0; i < 10'000 && fault_at == 0; ++i) std::this_thread::sleep_for(1ms);
  const auto at = reinterpret_cast<std::uint64_t>(bad);
  CHECK(fault_at >= at / 4096 * 4096);
  CHECK(fault_at < at + kBytes);
  CHECK(done.value() == 1);  // the copy never completes
}

}  // namespace

TEST_CASE("(process) reads and writes the memory of its parent", "[.]") {
  const auto s = receive<Shared>(Child::kLink);
  const Runtime r;
  const auto& g = r.gpus[s.number % r.gpus.size()];
  void* p = nullptr;
  GOOD(hsa_amd_ipc_memory_attach(&s.memory, kBytes, 1, &g.agent, &p));
  auto* host = r.allocate(r.cpu, kBytes);
  copy(host, r.cpu, p, g, kBytes);
  const auto expected = pattern(kBytes, 100);
  CHECK(std::memcmp(host, expected.data(), kBytes) == 0);
  hsa_amd_pointer_info_t i{};
  i.size = sizeof i;
  GOOD(hsa_amd_pointer_info(p, &i, nullptr, nullptr, nullptr));
  CHECK(i.type == HSA_EXT_POINTER_TYPE_IPC);
  CHECK(i.sizeInBytes >= kBytes);
  const auto mine = pattern(1000, s.number);
  std::memcpy(host, mine.data(), mine.size());
  copy(static_cast<std::uint8_t*>(p) + place(s.number), g, host, r.cpu, mine.size());
  GOOD(hsa_amd_ipc_memory_detach(p));
  if (s.has_signal) {
    hsa_signal_t signal{};
    GOOD(hsa_amd_ipc_signal_attach(&s.signal, &signal));
    hsa_signal_subtract_screlease(signal, 1);
    GOOD(hsa_signal_destroy(signal));
  }
  send(Child::kLink, 'x');
}

TEST_CASE("three processes in turn read and write a GPU's memory, and count down a signal") {
  Child first("(process) reads and writes the memory of its parent"),
      second("(process) reads and writes the memory of its parent"),
      third("(process) reads and writes the memory of its parent");
  const Runtime r;
  auto *vram = r.allocate(r.gpus[0], kBytes), *host = r.allocate(r.cpu, kBytes), *back = r.allocate(r.cpu, kBytes);
  const auto data = pattern(kBytes, 100);
  std::memcpy(host, data.data(), kBytes);
  Shared s;
  GOOD(hsa_amd_ipc_memory_create(vram, kBytes, &s.memory));
  // ROCr of 2025 attaches a signal without an agent, and then reads the agent.
  s.has_signal = ::dlsym(RTLD_DEFAULT, "hsa_amd_vmem_map") == nullptr;
  hsa_signal_t signal{};
  GOOD(hsa_amd_signal_create(3, 0, nullptr, HSA_AMD_SIGNAL_IPC, &signal));
  if (s.has_signal) GOOD(hsa_amd_ipc_signal_create(signal, &s.signal));
  for (auto* child : {&first, &second, &third}) {
    copy(vram, r.gpus[0], host, r.cpu, kBytes);
    send(child->link(), s);
    CHECK(receive<char>(child->link()) == 'x');
    if (s.has_signal)
      CHECK(hsa_signal_wait_scacquire(signal, HSA_SIGNAL_CONDITION_LT, 3 - s.number, 20'000'000'000,
                                      HSA_WAIT_STATE_BLOCKED) == 2 - s.number);
    copy(back, r.cpu, vram, r.gpus[0], kBytes);
    const auto theirs = pattern(1000, s.number);
    CHECK(std::memcmp(back + place(s.number), theirs.data(), theirs.size()) == 0);
    CHECK(std::memcmp(back, data.data(), place(s.number)) == 0);
    CHECK(child->status() == 0);
    ++s.number;
  }
  GOOD(hsa_signal_destroy(signal));
  for (auto* p : {vram, host, back}) GOOD(hsa_amd_memory_pool_free(p));
}

TEST_CASE("(process) copies", "[.]") {
  const Runtime r;
  auto *vram = r.allocate(r.gpus[0], kBytes), *host = r.allocate(r.cpu, kBytes);
  const auto data = pattern(kBytes, 5);
  std::memcpy(host, data.data(), kBytes);
  copy(vram, r.gpus[0], host, r.cpu, kBytes);
  std::memset(host, 0, kBytes);
  copy(host, r.cpu, vram, r.gpus[0], kBytes);
  CHECK(std::memcmp(host, data.data(), kBytes) == 0);
}

TEST_CASE("children of every kind leave their parent's memory and engines alone") {
  const Runtime r;
  auto *vram = r.allocate(r.gpus[0], kBytes), *host = r.allocate(r.cpu, kBytes);
  const auto data = pattern(kBytes, 1);
  std::memcpy(host, data.data(), kBytes);
  copy(vram, r.gpus[0], host, r.cpu, kBytes);
  const struct {
    const char* name;
    std::function<int()> work;  ///< in the child; its exit status
    int status;                 ///< as waitpid says it
  } kinds[] = {
      {"ends at once", [] { return 0; }, 0},
      {"becomes a program that copies",
       [] {
         ::execl("/proc/self/exe", "child", "(process) copies", static_cast<char*>(nullptr));
         return 1;
       },
       0},
      {"opens the device",
       [] {
         const int fd = ::open("/dev/kfd", O_RDWR | O_CLOEXEC);
         return fd >= 0 && ::close(fd) == 0 ? 0 : 2;
       },
       0},
      {"has a child of its own",
       [] {
         const pid_t p = ::fork();
         if (p == 0) ::_exit(0);
         int status = -1;
         return ::waitpid(p, &status, 0) == p ? status : 3;
       },
       0},
      {"is killed", [] { return ::kill(::getpid(), SIGKILL); }, SIGKILL},
  };
  for (const auto& k : kinds) {
    CAPTURE(k.name);
    const pid_t child = ::fork();
    if (child == 0) ::_exit(k.work());
    int status = -1;
    std::memset(host, 0, kBytes);
    copy(host, r.cpu, vram, r.gpus[0], kBytes);
    REQUIRE(::waitpid(child, &status, 0) == child);
    CHECK(status == k.status);
    CHECK(std::memcmp(host, data.data(), kBytes) == 0);
    std::memset(host, 0, kBytes);
    copy(host, r.cpu, vram, r.gpus[0], kBytes);
    CHECK(std::memcmp(host, data.data(), kBytes) == 0);
  }
  for (auto* p : {vram, host}) GOOD(hsa_amd_memory_pool_free(p));
}

TEST_CASE("(process) an address without memory", "[.]") {
  const Runtime r;
  faults(r, reinterpret_cast<void*>(0x123456789000), r.cpu);
}
TEST_CASE("(process) an address after the end of an object", "[.]") {
  const Runtime r;
  constexpr std::size_t kObject = 2 << 20;
  // The thunk keeps a page without memory after every object. Further on, another object may lie.
  faults(r, r.allocate(r.gpus.back(), kObject) + kObject, r.cpu);
}
TEST_CASE("(process) memory of another GPU without access", "[.]") {
  const Runtime r;
  void* p = nullptr;
  GOOD(hsa_amd_memory_pool_allocate(r.gpus[0].pool, kBytes, 0, &p));
  if (r.gpus.size() > 1) faults(r, p, r.gpus.back());
}

TEST_CASE("a copy from memory that the GPU may not read is a fault with an address, and the copy does not complete") {
  for (const auto* kind : {"(process) an address without memory", "(process) an address after the end of an object",
                           "(process) memory of another GPU without access"}) {
    CAPTURE(kind);
    CHECK(Child(kind).status() == 0);
  }
}

// For gpucore.sh, which reads the files that the runtime leaves behind.
TEST_CASE("a copy from nowhere", "[.]") {
  const Runtime r;
  const auto& g = r.gpus.front();
  auto* vram = r.allocate(g, kBytes);
  const Signal done;
  GOOD(hsa_amd_memory_async_copy(vram, g.agent, reinterpret_cast<void*>(0x123456789000), g.agent, 65536, 0, nullptr,
                                 done.s));
  // The runtime ends the process.
  hsa_signal_wait_scacquire(done.s, HSA_SIGNAL_CONDITION_LT, 1, 10'000'000'000, HSA_WAIT_STATE_BLOCKED);
}
