// SPDX-License-Identifier: MIT
// What is wrong with an algorithm in every execution: places outside buffers, sends that nothing receives, dependencies
// on what never announces itself. What depends on the order (races, deadlocks, contents) is the checker's.
#include "algorithm.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <tuple>

namespace sdma::msccl {
namespace {

class Connector {
 public:
  explicit Connector(Algorithm& a) : a_(a) {}

  std::optional<Wrong> run() {
    if (auto none = no_form()) return none;
    sizes();
    for (std::size_t g = 0; g < a_.gpus.size(); ++g)
      for (std::size_t b = 0; b < a_.gpus[g].blocks.size(); ++b) block(g, b);
    for (auto& [key, c] : connections_) pair(key, c);
    if (wrong_.all.empty()) return {};
    wrong_.refuted = true;
    std::stable_sort(wrong_.all.begin(), wrong_.all.end(),
                     [](const auto& x, const auto& y) { return x.at.line < y.at.line; });
    constexpr std::size_t kMost = 20;
    if (const auto n = wrong_.all.size(); n > kMost) {
      wrong_.all.resize(kMost);
      wrong_.all.push_back({.rule = kWrongAlgorithm,
                            .where = a_.file,
                            .message = fmt::format("{} more errors are not shown", n - kMost),
                            .hint = fmt::format("correct these {} first", kMost)});
    }
    return std::move(wrong_);
  }

 private:
  using Connection = std::tuple<std::int64_t, std::int64_t, std::int64_t>;  ///< from, to, channel
  struct Ends {
    std::vector<StepId> sends{}, receives{};
  };

  std::optional<Wrong> no_form() const {
    const auto* c = collective(a_.collective);
    const auto refuse = [&](std::string message, std::string hint) {
      return Wrong{.all = {a_.error(a_.line, std::move(message), std::move(hint))}};
    };
    if (!c)
      return refuse(fmt::format("coll '{}' has no form here: what it should leave in the buffers is not known",
                                a_.collective.substr(0, 40)),
                    "allgather, alltoall, allreduce, reducescatter, broadcast, reduce, gather and scatter have one");
    if (a_.in_place && !a_.out_of_place && !c->in_place)
      return refuse(fmt::format("{} in place has no form here", c->name), "set outofplace=1 if it may be called so");
    return {};
  }
  void error(std::uint32_t line, std::string message, std::string hint = {}) {
    wrong_.all.push_back(a_.error(line, std::move(message), std::move(hint)));
    wrong_.all.back().rule = kWrongAlgorithm;
  }

  void sizes() {
    const auto n = static_cast<std::int64_t>(a_.gpus.size());
    if (collective(a_.collective)->has_pieces && a_.chunks % n != 0)
      return error(a_.line, fmt::format("nchunksperloop={} is not a multiple of {} GPUs: {} gives each GPU a part",
                                        a_.chunks, n, a_.collective));
    std::int64_t most = 0;
    for (const auto& g : a_.gpus) {
      most = std::max({most, g.in, g.out});
      for (const auto& [name, has, may] :
           {std::tuple("i_chunks", g.in, in_chunks(a_)), {"o_chunks", g.out, out_chunks(a_)}})
        if (has > may)
          error(g.line, fmt::format("{}={}, but {} with nchunksperloop={} has {} chunks there", name, has,
                                    a_.collective, a_.chunks, may));
    }
    if (most < a_.chunks)
      error(a_.line,
            fmt::format("nchunksperloop={}, but no GPU has more than {} chunks of input or output", a_.chunks, most));
  }

  void block(std::size_t g, std::size_t b) {
    const auto& block = a_.gpus[g].blocks[b];
    for (const auto& [peer, direction] : {std::pair(block.send, "sends to"), {block.receive, "receives from"}}) {
      if (peer < 0) continue;
      const auto [first, is_new] = lines_.try_emplace({g, peer, block.channel, *direction}, block.line);
      if (!is_new)
        error(
            block.line,
            fmt::format("the tb of line {} {} gpu{} on channel {}, too", first->second, direction, peer, block.channel),
            "two tbs must not share peer, channel and direction: use another channel");
    }
    for (std::size_t s = 0; s < block.steps.size(); ++s) step({g, b, s});
  }

  void step(const StepId& id) {
    const auto& block = a_.gpus[id.gpu].blocks[id.block];
    auto& s = a_.gpus[id.gpu].blocks[id.block].steps[id.step];
    depends(id, s);
    if (!s.type) return;
    const auto g = static_cast<std::int64_t>(id.gpu);
    for (const auto& [uses, peer, name] :
         {std::tuple(s.type->sends, block.send, "send"), {s.type->receives, block.receive, "recv"}})
      if (uses && peer < 0)
        error(s.line, fmt::format("{} needs a peer, but its tb (line {}) has {}=-1", s.type->name, block.line, name));
    if (s.type->sends && block.send >= 0) {
      auto& all = connections_[{g, block.send, block.channel}].sends;
      s.sent = all.size(), all.push_back(id);
    }
    if (s.type->receives && block.receive >= 0) {
      auto& all = connections_[{block.receive, g, block.channel}].receives;
      s.received = all.size(), all.push_back(id);
    }
    if (s.type->reads_source) inside(id.gpu, s, s.source, "srcoff");
    if (s.type->writes_target) inside(id.gpu, s, s.target, "dstoff");
  }

  void inside(std::size_t gpu, const Step& s, const BufferPlace& p, const char* name) {
    const auto& g = a_.gpus[gpu];
    const auto has = p.buffer == 'i' ? g.in : p.buffer == 'o' ? g.out : g.scratch;
    if (p.offset < 0 || p.offset + s.count > has)
      error(s.line,
            fmt::format("{}={} cnt={} ends outside buffer {} of gpu{}, which has {} chunk{}", name, p.offset, s.count,
                        p.buffer, gpu, has, has == 1 ? "" : "s"),
            fmt::format("{}_chunks on line {} gives its size", p.buffer, g.line));
  }

  void depends(const StepId& id, const Step& s) {
    const auto& blocks = a_.gpus[id.gpu].blocks;
    const auto& steps = blocks[id.block].steps;
    if (!s.type && (id.step + 1 == steps.size() || steps[id.step + 1].dep_block < 0))
      return error(s.line, "the step after this nop has no dependency of its own, so none is added to it",
                   "a nop passes its dependency on to the next step, which needs depid and deps itself");
    if (s.dep_block < 0 && s.dep_step < 0) return;
    const auto b = static_cast<std::size_t>(s.dep_block), n = static_cast<std::size_t>(s.dep_step);
    if (s.dep_block < 0 || s.dep_step < 0 || b >= blocks.size() || n >= blocks[b].steps.size())
      return error(s.line, fmt::format("depid={} deps={} is not a step of gpu{}", s.dep_block, s.dep_step, id.gpu));
    const auto& target = blocks[b].steps[n];
    if (!target.type)
      error(s.line, fmt::format("it depends on the nop of line {}, which never announces itself", target.line));
    else if (!target.publishes)
      error(s.line,
            fmt::format("it depends on step {} of tb {} (line {}), which has hasdep=0: the wait ends late, or never", n,
                        b, target.line),
            fmt::format("write hasdep=\"1\" on line {}", target.line));
  }

  void pair(const Connection& key, const Ends& c) {
    const auto [from, to, channel] = key;
    const auto both = std::min(c.sends.size(), c.receives.size());
    for (std::size_t i = 0; i < both; ++i) {
      auto& s = mutable_at(c.sends[i]);
      auto& r = mutable_at(c.receives[i]);
      s.to = c.receives[i];
      r.from = c.sends[i];
      if (s.count != r.count)
        error(s.line,
              fmt::format("it sends cnt={}, and what receives it (line {}) has cnt={}", s.count, r.line, r.count));
    }
    if (both < c.sends.size())
      error(a_.at(c.sends[both]).line,
            fmt::format("nothing receives it: gpu{} has {} of the {} receives from gpu{} on channel {}", to, both,
                        c.sends.size(), from, channel));
    if (both < c.receives.size())
      error(a_.at(c.receives[both]).line,
            fmt::format("nothing sends it: gpu{} has {} of the {} sends to gpu{} on channel {}", from, both,
                        c.receives.size(), to, channel));
  }
  Step& mutable_at(const StepId& s) { return a_.gpus[s.gpu].blocks[s.block].steps[s.step]; }

  Algorithm& a_;
  Wrong wrong_;
  std::map<std::tuple<std::size_t, std::int64_t, std::int64_t, char>, std::uint32_t> lines_;  ///< of tbs
  std::map<Connection, Ends> connections_;
};

}  // namespace

std::optional<Wrong> connect(Algorithm& a) { return Connector{a}.run(); }

}  // namespace sdma::msccl
