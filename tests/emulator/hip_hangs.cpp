// SPDX-License-Identifier: MIT
// Programs of an unmodified HIP that hang on purpose, without a kernel of their own. The tests of `sdma doctor` examine
// them from outside.
//
//   hip_hangs callback|value|event|process|released
//
//   callback    a copy follows a host callback that never returns
//   value       a copy follows hipStreamWaitValue32 on a word that nothing writes
//   event       a copy on a second stream waits for an event of the first, which follows such a callback
//   process     a stream waits for an event that another process has recorded, which was killed before it could
//               complete: HIP waits in the host's thread, and submits nothing
//   released    as callback, but the callback returns after half a second
#define __HIP_PLATFORM_AMD__
#include "attachable.hpp"

#include <hip/hip_runtime_api.h>

#include <sys/wait.h>
#include <unistd.h>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <thread>

namespace {

constexpr std::size_t kBytes = 1 << 20;

void check(hipError_t e, const char* call) {
  if (e == hipSuccess) return;
  std::fprintf(stderr, "%s: %s\n", call, hipGetErrorString(e));
  std::_Exit(3);
}
#define GOOD(call) check((call), #call)

void say(const char* what) {
  std::printf("%d %s\n", static_cast<int>(::getpid()), what);
  std::fflush(stdout);
}

void never(hipStream_t, hipError_t, void*) {
  for (;;) ::pause();
}
void later(hipStream_t, hipError_t, void*) { std::this_thread::sleep_for(std::chrono::milliseconds(500)); }

struct Streams {
  hipStream_t first{}, second{};
  void *host{}, *device{};
  Streams() {
    GOOD(hipStreamCreate(&first));
    GOOD(hipStreamCreate(&second));
    GOOD(hipHostMalloc(&host, kBytes, 0));
    GOOD(hipMalloc(&device, kBytes));
    std::memset(host, 0x3c, kBytes);
  }
  void copy(hipStream_t s) const { GOOD(hipMemcpyAsync(device, host, kBytes, hipMemcpyHostToDevice, s)); }
};

/// The other process: records an event after a callback that never returns, hands it over, and waits to be killed.
[[noreturn]] void record_event(const Streams& s) {
  hipEvent_t e{};
  hipIpcEventHandle_t handle{};
  GOOD(hipEventCreateWithFlags(&e, hipEventInterprocess | hipEventDisableTiming));
  GOOD(hipIpcGetEventHandle(&handle, e));
  GOOD(hipStreamAddCallback(s.first, never, nullptr, 0));
  s.copy(s.first);
  GOOD(hipEventRecord(e, s.first));
  if (::write(STDOUT_FILENO, &handle, sizeof handle) != sizeof handle) std::_Exit(3);
  for (;;) ::pause();
}

/// The event of a process that has been killed since.
hipEvent_t event_of_another_process(const char* program) {
  int link[2];
  if (::pipe(link) != 0) std::_Exit(3);
  const pid_t child = ::fork();
  if (child == 0) {
    ::dup2(link[1], STDOUT_FILENO);
    ::execl(program, program, "recorder", nullptr);
    std::_Exit(3);
  }
  ::close(link[1]);
  hipIpcEventHandle_t handle{};
  if (child < 0 || ::read(link[0], &handle, sizeof handle) != sizeof handle) std::_Exit(3);
  hipEvent_t e{};
  GOOD(hipIpcOpenEventHandle(&e, handle));
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
  return e;
}

}  // namespace

int main(int argc, char** argv) {
  let_others_attach();
  const std::string how = argc > 1 ? argv[1] : "";
  Streams s;
  if (how == "recorder") record_event(s);
  auto waits = s.first;
  s.copy(s.first);
  if (how == "callback" || how == "released") {
    GOOD(hipStreamAddCallback(s.first, how == "released" ? later : never, nullptr, 0));
    say("waits");
    s.copy(s.first);
  } else if (how == "value") {
    void* word = nullptr;
    GOOD(hipExtMallocWithFlags(&word, 8, hipMallocSignalMemory));
    *static_cast<std::uint64_t*>(word) = 0;
    GOOD(hipStreamWaitValue32(s.first, word, 1, hipStreamWaitValueGte, 0xffffffff));
    say("waits");
    s.copy(s.first);
  } else if (how == "event") {
    hipEvent_t e{};
    GOOD(hipEventCreate(&e));
    GOOD(hipStreamAddCallback(s.first, never, nullptr, 0));
    say("waits");
    s.copy(s.first);
    GOOD(hipEventRecord(e, s.first));
    GOOD(hipStreamWaitEvent(s.second, e, 0));
    s.copy(s.second);
    waits = s.second;
  }
  if (how == "process") {
    const auto e = event_of_another_process(argv[0]);
    say("waits");
    GOOD(hipStreamWaitEvent(s.first, e, 0));
    s.copy(s.first);
  }
  GOOD(hipStreamSynchronize(waits));
  say("complete");
  return 0;
}
