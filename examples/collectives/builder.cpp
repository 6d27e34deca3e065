// SPDX-License-Identifier: MIT
#include "builder.hpp"

#include <algorithm>

namespace collectives {

using namespace sdma;

namespace {

std::string gpu_name(std::uint32_t g) { return "gpu" + std::to_string(g); }
constexpr std::uint64_t kBroadcastModulo = 32, kSwapAlignment = 64;

}  // namespace

Builder::Builder(const Options& o) : groups_(o.gpus) {
  plan_.options = o;
  plan_.schedule.gpus = o.gpus;
  plan_.counts.resize(o.gpus);
  if (o.prelaunch == Prelaunch::shared) plan_.triggers = {go_ = plan_.schedule.add_signal({.name = "go"})};
  if (o.completion == Completion::atomic) done_ = plan_.schedule.add_signal({.name = "done"});
}

std::vector<GpuVa> Builder::buffers(const char* name, std::uint64_t bytes) {
  const auto& o = options();
  std::vector<GpuVa> all;
  for (std::uint32_t i = 0; i < o.gpus; ++i) {
    const auto offset = offset_of(o, i);
    all.push_back(plan_.schedule.add_buffer({.place = Place::gpu(i),
                                             .name = name,
                                             .bytes = offset + bytes,
                                             .alignment = o.alignment,
                                             .init = Init::random}) +
                  offset);
  }
  return all;
}

void Builder::moved(std::uint32_t src, std::uint32_t dst, GpuVa from, GpuVa to, std::uint64_t bytes) {
  if (bytes != 0) plan_.moves.push_back({src, dst, from, to, bytes});
}

Builder::Queue& Builder::begin_group(std::uint32_t gpu, std::uint32_t peer) {
  const auto& o = options();
  auto& s = plan_.schedule;
  const auto k = groups_[gpu]++;
  const auto id = std::to_string(gpu) + "_" + std::to_string(k);
  if (o.prelaunch == Prelaunch::per_group) plan_.triggers.push_back(go_ = s.add_signal({.name = "go" + id}));
  if (o.completion != Completion::atomic)
    plan_.completions.push_back(
        done_ = s.add_signal({.name = "done" + id, .bits = o.completion == Completion::fence ? 32u : 64u}));
  Queue q{
      .place = Place::gpu(gpu), .name = std::string(name(o.variant)) + std::to_string(k), .ring_bytes = o.ring_bytes};
  if (o.engines.empty()) q.peer = Place::gpu(peer);
  else q.engine = o.engines[k % o.engines.size()];
  auto& added = s.add_queue(std::move(q));
  if (o.prelaunch != Prelaunch::off)
    added.put<&PollMem::reference>({.addr = go_, .func = Compare::ge}, kEpoch), ++plan_.counts[gpu].polls;
  return added;
}

void Builder::end_group(Queue& q) {
  auto& count = plan_.counts[q.place.index];
  ++count.doorbells;
  ++count.completions;
  switch (options().completion) {
    case Completion::atomic: q.put(Atomic{.addr = done_, .op = AtomicOp::add_rtn_64, .value = 1}); break;
    case Completion::fence: q.put<&Fence::value>({.addr = done_}, kEpoch); break;
    // The low half is stored last, and waiters wait for it. Once it is
    // seen, nothing stores to the word any more, and it may be freed.
    case Completion::two_fences:
      q.put(Fence{.addr = done_ + 4, .value = 0}).put<&Fence::value>({.addr = done_}, kEpoch);
      ++count.completions;
      break;
  }
  for (Reader r{q.dwords}; r;) {
    const auto v = r.next();
    if (v.is<CopyLinear>() || v.is<CopyBroadcast>() || v.is<CopySwap>()) ++count.data;
  }
}

void Builder::copy(Queue& q, const Transfer& t) {
  q.copy({.src = t.from, .dst = t.to, .bytes = t.bytes, .chunk = options().packet_bytes});
}

void Builder::send(std::uint32_t gpu, std::vector<Transfer> all) {
  std::erase_if(all, [](const Transfer& t) { return t.bytes == 0; });
  switch (options().variant) {
    case Variant::bcst: return in_pairs(gpu, std::move(all));
    case Variant::b2b: return back_to_back(gpu, all);
    case Variant::pcpy:
    case Variant::swap:  // ranges that cannot be exchanged in place
    case Variant::automatic: return each_alone(gpu, all);
  }
}

void Builder::each_alone(std::uint32_t gpu, std::span<const Transfer> all) {
  for (const auto& t : all) {
    auto& q = begin_group(gpu, t.peer);
    copy(q, t);
    end_group(q);
  }
}

void Builder::back_to_back(std::uint32_t gpu, std::span<const Transfer> all) {
  const auto most = options().peers_per_engine == 0 ? all.size() : options().peers_per_engine;
  for (; !all.empty(); all = all.subspan(std::min(most, all.size()))) {
    auto& q = begin_group(gpu, all.front().peer);
    for (const auto& t : all.first(std::min(most, all.size()))) copy(q, t);
    end_group(q);
  }
}

void Builder::in_pairs(std::uint32_t gpu, std::vector<Transfer> all) {
  std::size_t alone = 0;
  const auto sent = all.size();
  while (!all.empty()) {
    const auto first = all.front();
    all.erase(all.begin());
    const auto second = std::find_if(all.begin(), all.end(),
                                     [&](const Transfer& t) { return alike(first.to, t.to, kBroadcastModulo); });
    if (second == all.end()) {
      auto& q = begin_group(gpu, first.peer);
      copy(q, first);
      end_group(q);
      ++alone;
      continue;
    }
    auto& q = begin_group(gpu, second->peer);
    q.broadcast({.src = first.from,
                 .dst1 = first.to,
                 .dst2 = second->to,
                 .bytes = first.bytes,
                 .chunk = options().packet_bytes});
    end_group(q);
    all.erase(second);
  }
  if (alone > sent % 2)
    fell_back(
        "bcst: the two destinations of a packet must be equal modulo 32, but some buffers differ in offset or "
        "alignment: each peer without a partner gets a copy",
        gpu_name(gpu) + " sends " + std::to_string(alone) + " copies");
}

bool Builder::alike(GpuVa a, GpuVa b, std::uint64_t n) const noexcept {
  return options().alignment >= n && (a.value ^ b.value) % n == 0;
}

void Builder::exchange(std::uint32_t gpu, std::uint32_t peer, GpuVa a, GpuVa b, std::uint64_t sent,
                       std::uint64_t received) {
  const auto common = std::min(sent, received);
  if (sent == 0 && received == 0) return;
  auto& q = begin_group(gpu, peer);
  Part middle{};
  if (alike(a, b, kSwapAlignment)) {
    const auto head = std::min(common, (kSwapAlignment - a.value % kSwapAlignment) % kSwapAlignment);
    middle = {head, (common - head) / kSwapAlignment * kSwapAlignment};
  }
  if (middle.bytes != 0)
    q.swap({.a = a + middle.begin, .b = b + middle.begin, .bytes = middle.bytes, .chunk = options().packet_bytes});
  const auto end = middle.begin + middle.bytes;
  if (sent > common) copy(q, {peer, a + common, b + common, sent - common});
  if (received > common) copy(q, {peer, b + common, a + common, received - common});
  std::vector<Part> edges;
  if (middle.bytes == 0 && common != 0) edges = {{0, common}};
  else {
    if (middle.begin != 0) edges.push_back({0, middle.begin});
    if (end != common) edges.push_back({end, common - end});
  }
  if (!edges.empty()) {
    exchange_by_copies(q, gpu, a, b, edges);
    const auto pair = gpu_name(gpu) + " with " + gpu_name(peer);
    if (middle.bytes == 0)
      fell_back(
          "swap: the two addresses must be multiples of 64, or equal modulo 64 and 64 bytes apart: three copies "
          "through a staging buffer replace the swap",
          pair);
    else
      fell_back(
          "swap: addresses or lengths are not multiples of 64: three copies through a staging buffer move the bytes at "
          "the edges",
          pair);
  }
  end_group(q);
}

void Builder::exchange_by_copies(Queue& q, std::uint32_t gpu, GpuVa a, GpuVa b, std::span<const Part> parts) {
  std::uint64_t bytes = 0;
  for (const auto& p : parts) bytes += p.bytes;
  auto& s = plan_.schedule;
  const auto id = std::to_string(groups_[gpu] - 1);
  const auto stage =
      s.add_buffer({.place = Place::gpu(gpu), .name = "stage" + id, .bytes = bytes, .map = {Place::gpu(gpu)}});
  const auto word = s.add_signal({.place = Place::gpu(gpu), .name = "barrier" + id, .bits = 32});
  const auto each = [&](auto from, auto to) {
    std::uint64_t at = 0;
    for (const auto& p : parts) {
      copy(q, {gpu, from(p, at), to(p, at), p.bytes});
      at += p.bytes;
    }
  };
  const auto of = [](GpuVa base) { return [base](const Part& p, std::uint64_t) { return base + p.begin; }; };
  const auto staged = [&](const Part&, std::uint64_t at) { return stage + at; };
  each(of(a), staged);
  barrier(q, word, 2 * kEpoch - 1);
  each(of(b), of(a));
  barrier(q, word, 2 * kEpoch);
  each(staged, of(b));
}

void Builder::barrier(Queue& q, GpuVa word, EpochValue v) {
  q.put<&Fence::value>({.addr = word}, v).put<&PollMem::reference>({.addr = word, .func = Compare::eq}, v);
}

void Builder::fell_back(const std::string& reason, const std::string& example) {
  auto at = std::find_if(reasons_.begin(), reasons_.end(), [&](const auto& r) { return r.first == reason; });
  if (at == reasons_.end()) at = reasons_.insert(at, {reason, {}});
  at->second.push_back(example);
}

void Builder::host() {
  auto& s = plan_.schedule;
  const auto& o = options();
  if (s.queues.empty()) return;
  auto main = s.add_host("main");
  const auto trigger = [&](auto& script, EpochValue v) {
    for (const auto t : plan_.triggers) script.set(t, v);
  };
  const auto wait = [&](auto& script, EpochValue v) {
    for (const auto c : plan_.completions)
      script.wait(c, Compare::ge, v * static_cast<std::int64_t>(plan_.done_a_round));
  };
  const auto last = static_cast<std::int64_t>(o.epochs);
  if (o.prelaunch == Prelaunch::off) {
    if (last > 1)
      main.repeat(o.epochs, [&](auto& round) {
        round.submit_all();
        wait(round, kEpoch);
      });
    else {
      main.submit_all();
      wait(main, 1);
    }
    return;
  }
  main.submit_all();
  if (last > 1)
    main.repeat(o.epochs - 1, [&](auto& round) {
      trigger(round, kEpoch);
      wait(round, kEpoch);
      round.submit_all();
    });
  trigger(main, last);
  wait(main, last);
}

void Builder::expectations() {
  auto& s = plan_.schedule;
  const bool exchanged = options().variant == Variant::swap;
  for (const auto& m : plan_.moves) {
    // Bytes that are exchanged twice are back in place; the excess of the longer side is copied in each round.
    const auto back = exchanged && options().epochs % 2 == 0 ? std::min(m.bytes, part_of(options(), m.src).bytes) : 0;
    if (back != 0) s.expect_old({m.to, back}, {m.to, back});
    if (back != m.bytes) s.expect_old({m.to + back, m.bytes - back}, {m.from + back, m.bytes - back});
  }
}

Plan Builder::finish() && {
  if (options().completion != Completion::atomic) plan_.done_a_round = 1;
  else if (!plan_.schedule.queues.empty()) {
    plan_.completions = {done_};
    plan_.done_a_round = plan_.schedule.queues.size();
  }
  host();
  expectations();
  for (const auto& [reason, whom] : reasons_)
    plan_.notes.push_back(reason + " (" + whom.front() +
                          (whom.size() > 1 ? ", and " + std::to_string(whom.size() - 1) + " more" : "") + ")");
  return std::move(plan_);
}

}  // namespace collectives
