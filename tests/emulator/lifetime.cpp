// SPDX-License-Identifier: MIT
// How programs end, and what they leave. cases/ runs it under `sdma emulate`.
//
//   lifetime copy|fork|exit|kill|wait|children
#include "../../lib/device/kfd/raw_client.hpp"
#include "attachable.hpp"
#include "sdma/packets/copy.hpp"
#include "sdma/packets/poll.hpp"
#include "sdma/packets/sync.hpp"

#include <sys/wait.h>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <string>

using namespace sdma::raw;
using namespace sdma;

namespace {

/// Copies through a queue of a fresh client; 0 if it is right.
int copies() {
  Client c;
  auto data = c.allocate(1 << 20, 0, kfd::kVram);
  auto words = c.allocate(4096);
  Queue q(c, 0, kfd::kQueueSdma);
  if (q.error != 0) return 10;
  std::memset(data.host(), 0x3c, 1 << 19);
  Ring<> ring(q.memory());
  if (ring.submit(CopyLinear{.src = data.gpu(), .dst = data.gpu(1 << 19), .bytes = 1 << 19},
                  Fence{.addr = words.gpu(), .value = 1}) != Errc::ok)
    return 11;
  for (int i = 0; i < 10'000 && __atomic_load_n(words.as<std::uint32_t>(), __ATOMIC_ACQUIRE) != 1; ++i) ::usleep(1000);
  return std::memcmp(data.host(), data.host() + (1 << 19), 1 << 19) == 0 ? 0 : 12;
}

int wait_for(pid_t child) {
  int status = 0;
  ::waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

/// Engines at work forever: copies, and a poll that is never met.
void busy() {
  static Client c;
  static auto data = c.allocate(64 << 20, 0, kfd::kVram);
  static Queue q(c, 0, kfd::kQueueSdma), p(c, 0, kfd::kQueueSdmaXgmi);
  static Ring<> ring(q.memory()), polls(p.memory());
  for (int i = 0; i < 40; ++i)
    (void)ring.submit(CopyLinear{.src = data.gpu(), .dst = data.gpu(32 << 20), .bytes = 32 << 20});
  (void)polls.submit(PollMem{.addr = data.gpu(), .reference = 1});
}

int forked() {
  Client c;
  if (const int error = copies()) return error;
  const pid_t child = ::fork();
  if (child == 0) {
    kfd::GetVersion v{};
    if (call(c.kfd, Nr::get_version, v) != EBADF) ::_exit(20);  // the parent's descriptor
    ::_exit(copies());                                          // one of its own
  }
  if (const int error = copies()) return error;
  return wait_for(child);
}

int children() {
  pid_t all[4];
  for (auto& p : all)
    if ((p = ::fork()) == 0) ::_exit(copies());
  int result = 0;
  for (auto p : all) result |= wait_for(p);
  return result;
}

}  // namespace

int main(int argc, char** argv) {
  let_others_attach();
  const std::string how = argc > 1 ? argv[1] : "";
  if (how == "copy") return copies();
  if (how == "fork") return forked();
  if (how == "children") return children();
  busy();
  if (how == "exit") return 0;
  if (how == "kill") ::raise(SIGKILL);
  if (how == "wait") {
    std::puts("waits");  // a signal that comes from here on finds engines at work
    std::fflush(stdout);
    ::pause();
  }
  return 1;
}
