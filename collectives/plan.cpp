// SPDX-License-Identifier: MIT
#include "plan.hpp"

#include "source.hpp"
#include "table.hpp"

#include <algorithm>

namespace collectives {

using namespace sdma;

namespace {

/// The GPU of an address, or the host.
Place place_of(const Schedule& s, GpuVa va) {
  const auto at = *find_symbol(s, va);
  return at.signal ? s.signals[at.index].place : s.buffers[at.index].place;
}

/// What a queue does in one round.
struct Group {
  Counts counts{};
  std::uint32_t broadcasts{}, swaps{};
  std::optional<Place> other{};  ///< a GPU that its copies read or write besides its own
};
Group group_of(const Schedule& s, const Schedule::Queue& q) {
  Group g{.counts = {.doorbells = 1}};
  const auto of_host = [&](GpuVa va) { return place_of(s, va).is_host() ? 1u : 0u; };
  for (Reader r{q.dwords}; r;) {
    const auto v = r.next();
    if (v.is<PollMem>()) g.counts.polls += of_host(decode<PollMem>(v.dwords).addr);
    else if (v.is<Fence>()) g.counts.completions += of_host(decode<Fence>(v.dwords).addr);
    else if (v.is<Atomic>()) ++g.counts.completions;
    else ++g.counts.data;
    if (v.is<CopyBroadcast>()) ++g.broadcasts;
    if (v.is<CopySwap>()) ++g.swaps;
    if (!v.is<CopyLinear>()) continue;
    const auto c = decode<CopyLinear>(v.dwords);
    for (const auto va : {c.src, c.dst})
      if (const auto place = place_of(s, va); place != q.place) g.other = place;
  }
  return g;
}

/// The fallbacks of the plan's groups, each reason once, with an example.
std::vector<std::string> notes_of(const Plan& p, const std::vector<Group>& groups) {
  std::vector<std::pair<std::string, std::vector<std::string>>> reasons;
  const auto note = [&](const char* reason, std::string example) {
    auto at = std::find_if(reasons.begin(), reasons.end(), [&](const auto& r) { return r.first == reason; });
    if (at == reasons.end()) at = reasons.insert(at, {reason, {}});
    at->second.push_back(std::move(example));
  };
  const auto& s = p.schedule;
  for (std::uint32_t gpu = 0; gpu < s.gpus && p.options.variant == Variant::bcst; ++gpu) {
    std::uint32_t alone = 0;
    for (std::size_t q = 0; q < groups.size(); ++q)
      alone += s.queues[q].place == Place::gpu(gpu) && groups[q].broadcasts == 0;
    if (alone > (s.gpus - 1) % 2)
      note(
          "bcst: the two destinations of a packet must be equal modulo 32, but some buffers differ in offset or "
          "alignment: each peer without a partner gets a copy",
          to_string(Place::gpu(gpu)) + " sends " + std::to_string(alone) + " copies");
  }
  for (std::size_t q = 0; q < groups.size() && p.options.variant == Variant::swap; ++q) {
    const auto& queue = s.queues[q];
    const auto stage = "stage" + queue.name.substr(name(Variant::swap).size());
    if (std::none_of(s.buffers.begin(), s.buffers.end(),
                     [&](const auto& b) { return b.place == queue.place && b.name == stage; }))
      continue;
    note(groups[q].swaps == 0
             ? "swap: the two addresses must be multiples of 64, or equal modulo 64 and 64 bytes apart: three copies "
               "through a staging buffer replace the swap"
             : "swap: addresses or lengths are not multiples of 64: three copies through a staging buffer move the "
               "bytes at the edges",
         to_string(queue.place) + " with " + to_string(*groups[q].other));
  }
  std::vector<std::string> all;
  for (const auto& [reason, whom] : reasons)
    all.push_back(reason + " (" + whom.front() +
                  (whom.size() > 1 ? ", and " + std::to_string(whom.size() - 1) + " more" : "") + ")");
  return all;
}

/// The schedule of these options. Its text may repeat as much as they ask for.
Result<Schedule, Diagnostic> schedule_of(const Options& o) {
  auto source = source_of(o);
  auto s = parse_schedule(source.text, source.name,
                          {.set = std::move(source.set), .max_rounds = 1u << 30, .max_text = std::size_t{1} << 40});
  if (!s) return std::move(s.error().front());
  return *std::move(s);
}

std::vector<Move> moves_of(const Schedule& s) {
  std::vector<Move> all;
  for (const auto& e : s.expectations)
    all.push_back({place_of(s, e.right.va).index, place_of(s, e.left.va).index, e.right.va, e.left.va, e.left.bytes});
  return all;
}

/// The bytes of each GPU that are input.
std::vector<Schedule::Range> given_of(const Plan& p) {
  const auto& o = p.options;
  std::vector<Schedule::Range> all;
  const auto sent = o.collective == Collective::alltoallv ? sent_parts(o) : std::vector<Part>{};
  for (std::uint32_t g = 0; g < o.gpus; ++g) {
    const bool parts = o.collective == Collective::all_gather || o.collective == Collective::gather;
    auto [begin, bytes] = parts ? part_of(o, g) : Part{0, o.bytes};
    if (o.collective == Collective::alltoallv) {
      const auto last = sent[std::size_t{g} * o.gpus + o.gpus - 1];
      bytes = last.begin + last.bytes;
    } else if (!parts && g != o.root && o.collective != Collective::all_to_all) {
      bytes = 0;
    }
    if (bytes != 0) all.push_back({p.inputs[g] + begin, bytes});
  }
  return all;
}

}  // namespace

Result<Plan, Diagnostic> plan(const Options& asked) {
  if (auto why = refusal(asked)) return *std::move(why);
  Plan p{.options = asked};
  auto& o = p.options;
  if (o.variant == Variant::automatic) o.variant = choose(default_table(), o);
  auto s = schedule_of(o);
  if (!s) return std::move(s.error());
  p.schedule = *std::move(s);

  for (std::uint32_t g = 0; g < o.gpus; ++g) p.inputs.push_back(link_buffer(g) + offset_of(o, g));
  p.outputs = p.inputs;
  if (o.collective == Collective::alltoallv || (o.collective == Collective::all_to_all && o.variant != Variant::swap))
    for (std::uint32_t g = 0; g < o.gpus; ++g) p.outputs[g] = link_buffer(o.gpus + g) + offset_of(o, g);
  p.given = given_of(p);
  // After an even number of exchanges, the expectations are that nothing has moved.
  if (o.variant == Variant::swap && o.epochs % 2 == 0) {
    auto once = o;
    once.epochs = 1;
    auto moving = schedule_of(once);
    if (!moving) return std::move(moving.error());
    p.moves = moves_of(*moving);
  } else {
    p.moves = moves_of(p.schedule);
  }
  for (std::size_t i = 0; i < p.schedule.signals.size(); ++i) {
    const std::string_view name = p.schedule.signals[i].name;
    if (name.starts_with("go")) p.triggers.push_back(link_signal(i));
    if (name.starts_with("done") && !p.schedule.queues.empty()) p.completions.push_back(link_signal(i));
  }
  p.done_a_round = o.completion == Completion::atomic ? p.schedule.queues.size() : 1;

  p.counts.resize(o.gpus);
  std::vector<Group> groups;
  for (const auto& q : p.schedule.queues) {
    const auto& c = groups.emplace_back(group_of(p.schedule, q)).counts;
    auto& sum = p.counts[q.place.index];
    sum = {sum.data + c.data, sum.completions + c.completions, sum.doorbells + c.doorbells, sum.polls + c.polls};
  }
  p.notes = notes_of(p, groups);
  return p;
}

double bus_factor(const Options& o) {
  if (o.collective == Collective::broadcast) return 1;
  if (o.collective != Collective::alltoallv) return static_cast<double>(o.gpus - 1) / o.gpus;
  std::vector<std::uint64_t> exchanged(2 * std::size_t{o.gpus});  // sent, then received
  const auto parts = sent_parts(o);
  for (std::size_t i = 0; i < parts.size(); ++i)
    if (const auto from = i / o.gpus, to = i % o.gpus; from != to)
      exchanged[from] += parts[i].bytes, exchanged[o.gpus + to] += parts[i].bytes;
  const auto most = *std::max_element(exchanged.begin(), exchanged.end());
  return static_cast<double>(most) / static_cast<double>(o.bytes);
}

}  // namespace collectives
