// SPDX-License-Identifier: MIT
// Seven copies that complete together: as seven commands of the original, and as one command of the patched blit.
//
//   batch          prints dwords, traps, fences and atomics of both; ends with 1 unless the batch has one of each
//
// A submission is one store to the doorbell, and so is a step of wptr. After every command, the rig compares the two.
#include "rig.hpp"

#include "sdma/packets/registry.hpp"

#include <sys/mman.h>
#include <cstdio>
#include <map>
#include <string>

int main() {
  constexpr std::size_t kCopies = 7;
  rig::SignalMemory internals[2], dependency, out;
  dependency.value = 1;
  out.value = 1;
  out.mailbox = 4096;
  rig::Copy copies[kCopies];
  for (std::size_t i = 0; i != kCopies; ++i)
    copies[i] = {reinterpret_cast<void*>(0x10000000 + i * 0x100000), reinterpret_cast<void*>(0x20000000 + i * 0x100000),
                 65536};

  bool good = true;
  for (const bool batch : {false, true}) {
    rig::State state{.ring = static_cast<char*>(
                         ::mmap(nullptr, rig::kRingBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0))};
    state.internals = internals;
    auto blit = (batch ? rig::ours : rig::theirs)(state);
    std::map<std::string, int> count;
    int doorbells = 0;
    for (std::size_t i = 0; i != (batch ? 1 : kCopies); ++i) {
      const auto before = state.doorbell;
      if (blit->batch(copies + i, batch ? kCopies : 1, {&dependency}, out) != 0) return 1;
      doorbells += state.doorbell != before && state.doorbell == state.wptr;
    }
    std::span<const std::uint32_t> d{reinterpret_cast<const std::uint32_t*>(state.ring), state.wptr / 4};
    const auto dwords = d.size();
    while (!d.empty()) {
      const auto* p = sdma::identify(d);
      if (!p) return 1;
      ++count[std::string(p->name)];
      d = d.subspan(p->length(d.data()));
    }
    std::printf("%-22s %d doorbells, %d traps, %d polls, %d copies, %zu dwords\n",
                batch ? "one batch of 7 copies:" : "7 commands:", doorbells, count["trap"], count["poll_mem"],
                count["copy_linear"], dwords);
    if (batch) good = doorbells == 1 && count["trap"] == 1 && count["atomic"] == 1 && count["copy_linear"] == kCopies;
  }
  return !good;
}
