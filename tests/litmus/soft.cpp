// SPDX-License-Identifier: MIT
#include "soft.hpp"

#include <cstdlib>

namespace sdma::litmus {

SoftWorld::SoftWorld(const Program& p, Ordering ordering, Chooser& chooser, bool all_parts)
    : program_(p), chooser_(chooser), weak_(ordering == Ordering::adversarial), queues_(p.engines.size()) {
  auto* const bytes = reinterpret_cast<std::byte*>(memory_.data());
  constexpr auto kHostBytes = kVram * kPitch;
  const Mapping both[] = {
      {.va = kBase, .bytes = kHostBytes, .host = bytes},
      {.va = va(kVram), .bytes = sizeof memory_ - kHostBytes, .host = bytes + kHostBytes, .owner = 0}};
  if (space_.map(both) != Errc::ok) std::abort();
  for (std::size_t i = 0; i < queues_.size(); ++i) {
    auto& q = queues_[i];
    q.engine = p.engines[i];
    q.pipeline = std::make_unique<Pipeline>(PipelineConfig{.ring = q.dwords,
                                                           .rptr = &q.rptr,
                                                           .reader = &reader_,
                                                           .engine = EngineId{q.engine},
                                                           .queue = i,
                                                           .ordering = ordering,
                                                           .chooser = &chooser,
                                                           .pieces = all_parts ? 8 : p.parts.pieces,
                                                           .prefetch = all_parts || p.parts.prefetch,
                                                           .late_rptr = all_parts || p.parts.late_rptr,
                                                           .split_stores = all_parts || p.parts.split_stores,
                                                           .holding_polls = all_parts || p.parts.holding_polls,
                                                           .poll_timeout = PollTimeout::either});
  }
}

bool SoftWorld::may_step(std::size_t queue) {
  for (std::size_t i = 0; i < queues_.size(); ++i)
    if (i != queue && queues_[i].engine == queues_[queue].engine && queues_[i].pipeline->holds_engine()) return false;
  return queues_[queue].pipeline->ready();
}

bool SoftWorld::host_may_step() {
  if (next_step_ == program_.steps.size()) return false;
  const auto queue = program_.steps[next_step_].when_stalled;
  return queue == Step::kAnyTime || !queues_[queue].pipeline->ready();
}

std::string SoftWorld::run() {
  program_.steps[next_step_++].perform(*this);
  for (;;) {
    // Who may step: queues, then the host, then the lines of the L2 that may be evicted.
    std::array<std::size_t, 64> who{};
    std::uint32_t n = 0;
    for (std::size_t i = 0; i < queues_.size(); ++i)
      if (may_step(i)) who[n++] = i;
    if (host_may_step()) who[n++] = queues_.size();
    for (std::size_t i = 0; i < lines_.size(); ++i)
      if (lines_[i].dirty) who[n++] = queues_.size() + 1 + i;
    if (n == 0) return program_.outcome(*this);
    const auto next = who[chooser_.choose(Choice::schedule, n)];
    if (next < queues_.size()) {
      queues_[next].pipeline->step(1);
    } else if (next == queues_.size()) {
      program_.steps[next_step_++].perform(*this);
    } else {
      const auto word = next - queues_.size() - 1;
      memory_[word * kPitch / 4] = lines_[word].value;
      lines_[word].dirty = false;
    }
  }
}

// In strict and rocr the L2 is not there: every load and store goes to memory.
std::uint32_t SoftWorld::kernel_load(std::uint32_t word) {
  auto& line = lines_[word];
  const bool probed = line.valid && !line.dirty && chooser_.choose(Choice::schedule, 2) == 1;
  if (!weak_ || !line.valid || probed) line = {true, false, load(word)};
  return line.value;
}

void SoftWorld::kernel_store(std::uint32_t word, std::uint32_t value) {
  if (weak_) lines_[word] = {true, true, value};
  else store(word, value);
}

void SoftWorld::put(std::uint32_t queue, std::span<const std::uint32_t> dwords) {
  auto& q = queues_[queue];
  for (auto d : dwords) {
    q.dwords[q.wptr / 4 % kRing] = d;
    q.wptr += 4;
  }
}

}  // namespace sdma::litmus
