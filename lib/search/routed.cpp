// SPDX-License-Identifier: MIT
// Queues, words, kernels and threads for the copies of routes.
#include "routed.hpp"

#include "steps.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <numeric>

namespace sdma { inline namespace v0_3 { namespace detail {
namespace {

constexpr std::uint64_t kAligned = 4096;
constexpr std::uint32_t kShare = 10;  ///< percent of the compute units that each kernel keeps busy

std::uint64_t part_of(const Task& t, std::uint32_t g) {
  const auto begin = g * chunk_of(t);
  return begin >= t.bytes ? 0 : std::min(chunk_of(t), t.bytes - begin);
}

class Routing {
 public:
  Routing(const Task& t, const Net& net, const std::vector<Item>& items, const Routes& routes, const QueueForm& form)
      : t_(t), net_(net), items_(items), form_(form), steps_(steps_of(t, net, routes, form.pieces)) {
    order(t, net, routes, steps_);
    by_start_.resize(steps_.size());
    std::iota(by_start_.begin(), by_start_.end(), std::size_t{});
    std::stable_sort(by_start_.begin(), by_start_.end(),
                     [&](auto a, auto b) { return steps_[a].start < steps_[b].start; });
    several_nodes_ = std::any_of(net.edges.begin(), net.edges.end(), [](const auto& e) { return e.network; });
  }

  Schedule make() {
    s_.gpus = t_.gpus;
    buffers();
    lanes();
    count();
    if (adds()) sums();
    for (auto& l : lanes_) fill(l);
    threads();
    expectations();
    return std::move(s_);
  }

 private:
  /// A queue: who executes which steps.
  struct Lane {
    std::uint32_t gpu{}, to{};  ///< `to`: of its first edge
    std::uint32_t slot{};
    bool network{}, one_edge{true};
    std::vector<std::size_t> steps{};
    std::size_t queue{};
  };
  /// A word with a number that grows, and the number that says that something is there.
  struct Seen {
    std::optional<GpuVa> word{};
    std::uint32_t value{};
  };
  /// What a kernel adds: its own bytes, and those that have come from others.
  struct Job {
    std::uint32_t gpu{};
    double start{};
    std::vector<std::size_t> from{};    ///< steps
    std::optional<std::size_t> then{};  ///< the step that passes the sum on
    std::size_t first{};                ///< a step of it
  };

  bool adds() const { return t_.collective == Synthesized::reduce_scatter; }
  const NetEdge& edge(std::size_t step) const { return net_.edges[steps_[step].edge]; }

  void buffers() {
    const auto add = [&](std::uint32_t g, const char* name, std::uint64_t bytes, Init init) {
      return s_.add_buffer({.place = Place::gpu(g),
                            .name = name,
                            .bytes = std::max<std::uint64_t>(bytes, 1),
                            .alignment = kAligned,
                            .init = init});
    };
    const auto all = t_.gpus * chunk_of(t_);
    for (std::uint32_t g = 0; g < t_.gpus; ++g) {
      const bool in_place = t_.collective == Synthesized::all_gather || t_.collective == Synthesized::broadcast;
      in_.push_back(add(g, in_place ? "buf" : "in", t_.bytes, Init::random));
      if (in_place) out_.push_back(in_.back());
      else if (adds()) out_.push_back(add(g, "out", part_of(t_, g), Init::poison));
      else out_.push_back(add(g, "out", all, Init::poison));
    }
    stage_.resize(t_.gpus);
    staged_.resize(t_.gpus);
    for (std::size_t i = 0; i < steps_.size(); ++i) place(i);
    for (std::uint32_t g = 0; g < t_.gpus; ++g) {
      if (staged_[g] > 0) stage_[g] = add(g, "stage", staged_[g], Init::poison);
      if (adds()) work_.push_back(add(g, "work", all, Init::poison));
    }
  }
  /// Room for what a step brings, if it is not the end of its way.
  void place(std::size_t i) {
    const auto& s = steps_[i];
    const bool passes = t_.collective == Synthesized::all_to_all && s.left > 0;
    if (!adds() && !passes) return;
    auto& used = staged_[edge(i).to];
    at_stage_[i] = used;
    used += (s.bytes + kGranule - 1) / kGranule * kGranule;
  }

  GpuVa source(std::size_t i) const {
    const auto& s = steps_[i];
    const auto& item = items_[s.item];
    const auto from = edge(i).from;
    switch (t_.collective) {
      case Synthesized::all_gather: return in_[from] + item.root * chunk_of(t_) + s.begin;
      case Synthesized::broadcast: return in_[from] + s.begin;
      case Synthesized::all_to_all:
        return s.after.empty() ? in_[from] + *item.to * chunk_of(t_) + s.begin
                               : stage_[from] + at_stage_.at(s.after.front());
      case Synthesized::reduce_scatter:
        return (s.after.empty() ? in_ : work_)[from] + item.root * chunk_of(t_) + s.begin;
    }
    return {};
  }
  GpuVa destination(std::size_t i) const {
    const auto& s = steps_[i];
    const auto& item = items_[s.item];
    const auto to = edge(i).to;
    if (const auto staged = at_stage_.find(i); staged != at_stage_.end()) return stage_[to] + staged->second;
    if (t_.collective == Synthesized::all_to_all) return out_[to] + item.root * chunk_of(t_) + s.begin;
    return t_.collective == Synthesized::broadcast ? in_[to] + s.begin : in_[to] + item.root * chunk_of(t_) + s.begin;
  }

  /// Which queue executes each step.
  void lanes() {
    std::vector<std::vector<std::uint32_t>> used(t_.gpus);  // edges, by distance
    for (const auto i : by_start_) {
      auto& mine = used[edge(i).from];
      if (!edge(i).network && std::find(mine.begin(), mine.end(), steps_[i].edge) == mine.end())
        mine.push_back(steps_[i].edge);
    }
    for (std::uint32_t g = 0; g < t_.gpus; ++g)
      std::sort(used[g].begin(), used[g].end(), [&](auto a, auto b) {
        const auto far = [&](auto e) { return (net_.edges[e].to + t_.gpus - g) % t_.gpus; };
        return far(a) < far(b);
      });
    std::map<std::uint32_t, std::uint32_t> turns;
    std::map<std::pair<std::uint32_t, std::uint32_t>, std::size_t> of_slot, of_network;
    for (const auto i : by_start_) {
      const auto& e = edge(i);
      const auto& mine = used[e.from];
      const auto rank = static_cast<std::uint32_t>(std::find(mine.begin(), mine.end(), steps_[i].edge) - mine.begin());
      const auto turn = turns[steps_[i].edge]++ % form_.ways;
      const auto engines = static_cast<std::uint32_t>(engines_of(e.from).size());
      const auto place = form_.queues > 0 ? rank % form_.queues : rank % engines * form_.ways + turn;
      const auto slot = form_.queues > 0 || form_.apart > 0 ? place % engines : place;
      auto& known = e.network ? of_network : of_slot;
      const auto [at, added] = known.try_emplace({e.from, e.network ? steps_[i].edge : slot}, lanes_.size());
      if (added) lanes_.push_back({.gpu = e.from, .to = e.to, .slot = slot, .network = e.network});
      auto& lane = lanes_[at->second];
      lane.one_edge = lane.one_edge && lane.to == e.to;
      lane.steps.push_back(i);
    }
    std::stable_sort(lanes_.begin(), lanes_.end(), [](const auto& a, const auto& b) { return a.gpu < b.gpu; });
    for (auto& l : lanes_) declare(l);
  }
  /// Those that face other GPUs; if there are none, all.
  std::vector<std::uint32_t> engines_of(std::uint32_t g) const {
    const auto& gpu = t_.machine->topology.gpus[g];
    const auto facing = gpu.live_engines() & ~gpu.live_host_engines();
    std::vector<std::uint32_t> out;
    for (std::uint32_t e = 0; e < 64; ++e)
      if (((facing != 0 ? facing : gpu.live_engines()) >> e & 1) != 0) out.push_back(e);
    return out;
  }
  void declare(Lane& l) {
    const auto turn = form_.queues > 0 || l.network ? 0 : l.slot % form_.ways;
    auto name = l.one_edge ? fmt::format("to{}", l.to) : fmt::format("q{}", l.slot);
    if (l.one_edge && !l.network && form_.ways > 1) name += fmt::format("_{}", turn);
    Schedule::Queue q{.place = Place::gpu(l.gpu), .name = name, .network = l.network};
    if (l.network) q.peer = Place::gpu(l.to);
    else give_engine(l, q);
    l.queue = s_.queues.size();
    s_.add_queue(std::move(q));
  }

  /// Queues of an edge that share an engine make their copies one after another: while one waits until its bytes have
  /// landed, the other's are under way. Those with engines of their own never wait for each other's polls.
  void give_engine(const Lane& l, Schedule::Queue& q) {
    const auto [known, first] =
        engine_.try_emplace({l.gpu, form_.queues > 0 || form_.apart > 0 ? l.slot : l.slot / form_.ways});
    auto& taken = taken_[l.gpu];
    const auto best = t_.machine->topology.engine_for(GpuId{l.gpu}, GpuId{l.to});
    const auto is_free = [&](std::uint32_t e) { return (taken >> e & 1) == 0; };
    if (first) {
      const auto all = engines_of(l.gpu);
      const auto other = std::find_if(all.begin(), all.end(), is_free);
      known->second = best && is_free(best->value) ? best->value : other != all.end() ? *other : all.front();
      taken |= std::uint64_t{1} << known->second;
    }
    if (best && best->value == known->second) q.peer = Place::gpu(l.to);
    else q.engine = known->second;
  }

  /// The words that say that steps have been made, for those who pass their bytes on.
  void count() {
    seen_.resize(steps_.size());
    if (adds()) return;
    for (const auto& l : lanes_) {
      std::map<std::uint32_t, Seen> to;
      for (const auto i : l.steps) {
        if (steps_[i].left == 0) continue;
        auto& word = to[edge(i).to];
        if (!word.word) word.word = signal(edge(i).to, fmt::format("from{}_{}", l.gpu, s_.queues[l.queue].name), 32);
        ++word.value;
        seen_[i] = word;
      }
    }
  }
  GpuVa signal(std::uint32_t gpu, std::string name, std::uint32_t bits) {
    return s_.add_signal({.place = Place::gpu(gpu), .name = std::move(name), .bits = bits});
  }
  GpuVa host_signal(std::string name) { return s_.add_signal({.name = std::move(name)}); }

  /// The kernels, and the words between them and the queues.
  void sums() {
    std::map<std::tuple<std::uint32_t, std::uint32_t, std::uint32_t, std::uint32_t>, Job> jobs;
    for (std::size_t i = 0; i < steps_.size(); ++i) {
      const auto& s = steps_[i];
      auto& j = jobs[{s.item, s.route, s.piece, edge(i).to}];
      j.gpu = edge(i).to;
      j.first = i;
      j.start = std::max(j.start, s.end);
      j.from.push_back(i);
      if (!s.after.empty()) jobs[{s.item, s.route, s.piece, edge(i).from}].then = i;
    }
    std::vector<Job> all;
    for (auto& [key, j] : jobs) all.push_back(std::move(j));
    std::stable_sort(all.begin(), all.end(), [](const auto& a, const auto& b) { return a.start < b.start; });
    std::vector<std::vector<const Job*>> of(t_.gpus);
    for (const auto& j : all) of[j.gpu].push_back(&j);
    arrivals_.resize(steps_.size());
    for (const auto& l : lanes_) {
      if (!l.network) continue;
      std::uint32_t n = 0;
      const auto word = signal(l.to, fmt::format("from{}_{}", l.gpu, s_.queues[l.queue].name), 32);
      for (const auto i : l.steps) arrivals_[i] = {word, ++n};
    }
    for (std::uint32_t g = 0; g < t_.gpus; ++g)
      for (std::uint32_t k = 0; k < form_.kernels && k < of[g].size(); ++k) kernel(g, k, of[g]);
  }
  void kernel(std::uint32_t g, std::uint32_t k, const std::vector<const Job*>& jobs) {
    std::optional<GpuVa> ready;
    std::uint32_t sums = 0;
    auto script = s_.add_kernel(Place::gpu(g), fmt::format("add{}", k));
    s_.kernels.back().share = kShare;
    for (std::size_t n = k; n < jobs.size(); n += form_.kernels) {
      const auto& j = *jobs[n];
      const auto& s = steps_[j.first];
      const auto at = items_[s.item].root * chunk_of(t_) + s.begin;
      Schedule::Sum sum{.any_order = true, .parts = {{in_[g] + at, s.bytes}}};
      std::uint32_t by_engines = 0;
      for (const auto i : j.from) by_engines += !edge(i).network;
      std::optional<GpuVa> word;
      if (by_engines > 0) word = signal(g, fmt::format("arrived{}_{}", k, n), 64);
      for (const auto i : j.from) {
        sum.parts.push_back({destination(i), s.bytes});
        if (edge(i).network) script.wait(*arrivals_[i].word, Compare::ge, arrivals_[i].value);
        else arrivals_[i] = {word, 0};
      }
      if (word) script.wait(*word, Compare::ge, by_engines);
      script.store({j.then ? work_[g] + at : out_[g] + s.begin, s.bytes}, std::move(sum));
      if (!j.then) continue;
      if (!ready) ready = signal(g, fmt::format("ready{}", k), 32);
      script.set(*ready, ++sums);
      seen_[*j.then] = {ready, sums};
    }
    script.add(completion(g, g), 1);
  }

  /// A word of the host that one more completion adds to: in several nodes, of the GPU whose bytes are there, otherwise
  /// one of a few, which take turns.
  GpuVa completion(std::uint32_t gpu, std::size_t turn) {
    const auto number = several_nodes_ ? gpu : static_cast<std::uint32_t>(turn % form_.words);
    auto& word = done_[number];
    if (!word) word = host_signal(fmt::format("done{}", number));
    ++expected_[number];
    return *word;
  }

  void fill(const Lane& l) {
    auto& q = s_.queues[l.queue];
    std::map<std::uint64_t, std::uint32_t> polled;
    std::vector<std::size_t> later;  // arrivals that are announced at the end, because nothing waits before it
    const bool waits = std::any_of(l.steps.begin(), l.steps.end(), [&](auto i) { return needs(i).word.has_value(); });
    for (std::size_t n = 0; n < l.steps.size(); ++n) {
      const auto i = l.steps[n];
      const auto& s = steps_[i];
      if (const auto need = needs(i); need.word && polled[need.word->value] < need.value) {
        q.put(PollMem{.addr = *need.word, .func = Compare::ge, .reference = need.value});
        polled[need.word->value] = need.value;
      }
      const auto next = n + 1 < l.steps.size() ? std::optional(l.steps[n + 1]) : std::nullopt;
      const bool pair = form_.pairs && next && !adds() && s.left == 0 && steps_[*next].left == 0 &&
                        source(i) == source(*next) && s.bytes == steps_[*next].bytes && !needs(*next).word;
      if (pair) {
        q.broadcast({.src = source(i), .dst1 = destination(i), .dst2 = destination(*next), .bytes = s.bytes});
        ++n;
      } else {
        q.copy({.src = source(i), .dst = destination(i), .bytes = s.bytes});
      }
      if (adds()) waits || form_.queues == 0 ? announce(q, i) : later.push_back(i);
      else if (seen_[i].word) q.put(Fence{.addr = *seen_[i].word, .value = seen_[i].value});
    }
    for (const auto i : later) announce(q, i);
    if (adds()) return;
    q.put(Atomic{.addr = completion(l.network ? l.to : l.gpu, l.queue), .value = 1});
  }
  void announce(Schedule::Queue& q, std::size_t i) {
    if (edge(i).network) q.put(Fence{.addr = *arrivals_[i].word, .value = arrivals_[i].value});
    else q.put(Atomic{.addr = *arrivals_[i].word, .value = 1});
  }
  /// What the bytes of a step wait for.
  Seen needs(std::size_t i) const {
    if (steps_[i].after.empty()) return {};
    return adds() ? seen_[i] : seen_[steps_[i].after.front()];
  }

  /// The first thread waits for everything; in several nodes, that of each GPU for what leads to it.
  void threads() {
    for (std::uint32_t g = 0; g < t_.gpus; ++g) {
      std::vector<const Lane*> mine;
      for (const auto& l : lanes_)
        if (l.gpu == g) mine.push_back(&l);
      const bool waits = several_nodes_ && expected_.count(g) != 0;
      if (mine.empty() && !waits) continue;
      auto script = s_.add_host(fmt::format("of_gpu{}", g));
      for (const auto* l : mine)
        if (form_.threads == Threads::each_gpu || l == mine.front()) script.submit(s_.queues[l->queue]);
      if (waits) script.wait(*done_[g], Compare::ge, expected_[g]);
      for (const auto* l : mine)
        if (form_.threads == Threads::each_queue && l != mine.front())
          s_.add_host(fmt::format("of_gpu{}_{}", g, s_.queues[l->queue].name)).submit(s_.queues[l->queue]);
    }
    if (several_nodes_) return;
    Schedule::Script first{s_, s_.hosts.front().actions};
    for (const auto& [number, word] : done_) first.wait(*word, Compare::ge, expected_[number]);
  }

  void expectations() {
    const auto chunk = chunk_of(t_);
    for (std::uint32_t d = 0; d < t_.gpus; ++d) {
      if (adds()) {
        const auto bytes = part_of(t_, d);
        if (bytes == 0) continue;
        Schedule::Sum sum{.any_order = true};
        for (std::uint32_t g = 0; g < t_.gpus; ++g) sum.parts.push_back({in_[g] + d * chunk, bytes});
        s_.expect_sum({out_[d], bytes}, std::move(sum));
        continue;
      }
      if (t_.collective == Synthesized::broadcast) {
        if (d != t_.root) s_.expect_old({in_[d], t_.bytes}, {in_[t_.root], t_.bytes});
        continue;
      }
      for (std::uint32_t i = 0; i < t_.gpus; ++i) {
        const bool gathers = t_.collective == Synthesized::all_gather;
        const auto bytes = part_of(t_, gathers ? i : d);
        if (i == d || bytes == 0) continue;
        s_.expect_old({(gathers ? in_ : out_)[d] + i * chunk, bytes}, {in_[i] + (gathers ? i : d) * chunk, bytes});
      }
    }
  }

  const Task& t_;
  const Net& net_;
  const std::vector<Item>& items_;
  const QueueForm form_;
  std::vector<Step> steps_;
  std::vector<std::size_t> by_start_{};
  bool several_nodes_ = false;
  Schedule s_{};
  std::vector<GpuVa> in_{}, out_{}, work_{}, stage_{};
  std::vector<std::uint64_t> staged_{};
  std::map<std::size_t, std::uint64_t> at_stage_{};
  std::vector<Lane> lanes_{};
  std::map<std::uint32_t, std::uint64_t> taken_{};
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::uint32_t> engine_{};
  std::vector<Seen> seen_{}, arrivals_{};
  std::map<std::uint32_t, std::optional<GpuVa>> done_{};
  std::map<std::uint32_t, std::uint32_t> expected_{};
};

}  // namespace

std::string to_text(const QueueForm& s) {
  std::string out = s.queues > 0  ? fmt::format("{} queue{} a GPU", s.queues, s.queues == 1 ? "" : "s")
                    : s.ways == 1 ? "a queue for each link"
                                  : fmt::format("{} queues{} for each link", s.ways, s.apart > 0 ? " and engines" : "");
  if (s.pieces > 1) out += fmt::format(", {} pieces", s.pieces);
  if (s.pairs) out += ", broadcasts";
  if (s.kernels > 1) out += fmt::format(", {} kernels a GPU", s.kernels);
  out += fmt::format(", {} word{}", s.words, s.words == 1 ? "" : "s");
  out += s.threads == Threads::each_gpu ? ", a thread for each GPU" : ", a thread for each queue";
  return out;
}

std::uint64_t chunk_of(const Task& t) {
  if (t.collective == Synthesized::broadcast) return t.bytes;
  const auto n = t.gpus;
  const auto even =
      t.collective == Synthesized::reduce_scatter ? (t.bytes / kElement + n - 1) / n * kElement : (t.bytes + n - 1) / n;
  const auto rounded = (even + kGranule - 1) / kGranule * kGranule;
  return rounded * (n - 1) < t.bytes ? rounded : even;
}

std::vector<Item> items_of(const Task& t) {
  std::vector<Item> out;
  if (t.collective == Synthesized::broadcast) return {{t.root, {}, t.bytes}};
  for (std::uint32_t g = 0; g < t.gpus; ++g) {
    if (t.collective != Synthesized::all_to_all) {
      if (part_of(t, g) > 0) out.push_back({g, {}, part_of(t, g)});
      continue;
    }
    for (std::uint32_t k = 1; k < t.gpus; ++k)
      if (const auto d = (g + k) % t.gpus; part_of(t, d) > 0) out.push_back({g, d, part_of(t, d)});
  }
  return out;
}

Schedule routed(const Task& t, const Net& net, const std::vector<Item>& items, const Routes& routes,
                const QueueForm& form) {
  return Routing(t, net, items, routes, form).make();
}

}}}  // namespace sdma::v0_3::detail
