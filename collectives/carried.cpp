// SPDX-License-Identifier: MIT
// Rounds that streams carry themselves: their copies are in the streams.
//
// One turn. A stream writes its word "here" and holds until the GPUs that its copies touch are there; so it overwrites
// nothing that is still read. It writes "done" after its copies, and holds until the copies that touch its memory are
// done. Words are compared for equality: a peer changes "here" only after this stream's "done" of the same round, and
// "done" only after its next "here".
//
// Two turns. A peer copies into buffer t again in round v + 2. Before, it has held until round v + 1 of this stream was
// done, which this stream writes after everything that it did with round v. That is so if each GPU that writes to
// another also gets something from it, which `make_carried` asks for. A peer may be one round ahead, so neighbours have
// words of their own: it changes the word of turn t again only after this stream's round v + 1.
//
// examples/schedules/12_carried.sdma is both, which `sdma check` proves.
#include "run.hpp"
#include "sdma/stream/reader.hpp"

#include <algorithm>

namespace collectives {

using namespace sdma;

void Run::make_carried() {
  const auto& queues = plan_.schedule.queues;
  const auto n = plan_.options.gpus;
  if (plan_.options.completion != Completion::fence) return;
  carried_.resize(n);
  std::vector<bool> touches(std::size_t{n} * n);
  for (std::size_t q = 0; q < queues.size(); ++q) {
    const auto g = queues[q].place.index;
    auto& mine = carried_[g];
    mine.words = {bound_.address(plan_.triggers[g]), bound_.address(plan_.completions[q])};
    const auto piece = [&](GpuVa to, GpuVa from, std::uint64_t bytes) {
      mine.copies.push_back({bound_.address(to), bound_.address(from), bytes});
    };
    for (Reader r{queues[q].dwords}; r;) {
      const auto v = r.next();
      if (v.is<PollMem>()) {
        const auto at = std::find(plan_.triggers.begin(), plan_.triggers.end(), decode<PollMem>(v.dwords).addr);
        touches[g * n + static_cast<std::size_t>(at - plan_.triggers.begin())] = true;
      } else if (v.is<CopyLinear>()) {
        const auto c = decode<CopyLinear>(v.dwords);
        piece(c.dst, c.src, c.bytes);
      } else if (v.is<CopyBroadcast>()) {
        const auto c = decode<CopyBroadcast>(v.dwords);
        piece(c.dst1, c.src, c.bytes);
        piece(c.dst2, c.src, c.bytes);
      } else if (!v.is<Fence>() && not_carried_.empty()) {
        not_carried_ = queue_name(q) + " has a packet that is not a copy";
      }
    }
  }
  for (std::uint32_t g = 0; g < n; ++g)
    for (std::uint32_t p = 0; p < n; ++p) {
      if (p == g) continue;
      const bool to = touches[std::size_t{g} * n + p], from = touches[std::size_t{p} * n + g];
      if (to) carried_[g].reached.push_back(bound_.address(plan_.triggers[p]));
      if (from) carried_[g].reached_by.push_back(carried_[p].words);
      if (to != from && plan_.options.turns == 2 && not_carried_.empty())
        not_carried_ = "with two turns, GPUs that send each other something do so both ways, and " +
                       to_string(Place::gpu(to ? p : g)) + " sends nothing to " + to_string(Place::gpu(to ? g : p));
    }
}

std::vector<GpuVa> Run::carried_words(std::uint32_t gpu, std::uint64_t round) const {
  const auto& mine = carried_[gpu];
  const auto done = done_of(round);
  std::vector<GpuVa> all;
  if (!mine.copies.empty()) all.push_back(mine.words[done]);
  for (const auto& peer : mine.reached_by) all.push_back(peer[done]);
  return all;
}

Result<void, Diagnostic> Run::carry(std::uint32_t gpu, const StreamCalls& s, std::uint32_t value, std::uint64_t round,
                                    bool copies) {
  if (!not_carried_.empty())
    return Diagnostic{.where = "the stream of " + to_string(Place::gpu(gpu)),
                      .message = "it cannot carry this plan: " + not_carried_,
                      .hint = "leave StreamCalls::copy out: queues then copy"};
  const auto& mine = carried_[gpu];
  streams_[gpu].carries = true;
  const auto does = [&](auto call, GpuVa word) -> Result<void, Diagnostic> {
    if (const auto status = call(s.stream, word, value); status != 0)
      return refused(gpu, {.status = status, .word = word});
    return {};
  };
  if (plan_.options.turns == 1) {
    if (!mine.reached_by.empty())
      if (auto r = does(s.write, bound_.address(plan_.triggers[gpu])); !r) return r;
    for (const auto here : mine.reached)
      if (auto r = does(s.hold, here); !r) return r;
  }
  const auto offset = turn_of(round) * stride();
  for (const auto& c : mine.copies)
    if (const auto status = copies ? s.copy(s.stream, c.to + offset, c.from + offset, c.bytes) : 0; status != 0)
      return Diagnostic{.where = "the stream of " + to_string(Place::gpu(gpu)),
                        .message = "its runtime refused a copy of " + std::to_string(c.bytes) + " bytes to " +
                                   bound_.name(c.to + offset) + ", with status " + std::to_string(status)};
  const auto done = done_of(round);
  if (!mine.copies.empty())
    if (auto r = does(s.write, mine.words[done]); !r) return r;
  for (const auto& peer : mine.reached_by)
    if (auto r = does(s.hold, peer[done]); !r) return r;
  return {};
}

}  // namespace collectives
