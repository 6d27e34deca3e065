// SPDX-License-Identifier: MIT
// Makes a schedule of an algorithm. Each step becomes nodes: a copy by a queue, or a sum by a kernel. A send and its
// receive are one copy by the queue of the sender, which both tbs go through:
//
//   tb 0 of gpu0   s -------+----- s          gpu0.tb0   copy  fence  poll  copy  fence
//                           |                                           |
//   tb 1 of gpu1       r ---+-- re            gpu1.tb1_sum    wait  store sum  set
//
// What a node needs is complete before it begins: the node before it in each of its tbs, and their dependencies. With
// slots, a send copies into a slot of the receiver, and the receive is a copy of its own out of the slot.
#include "algorithm.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <set>

namespace sdma::msccl {
namespace {

constexpr std::size_t kNone = ~std::size_t{0};

/// "3*chunk"
std::string bytes_of_chunks(std::int64_t n) { return n < 2 ? n == 0 ? "0" : "chunk" : fmt::format("{}*chunk", n); }

/// Chunks of one buffer.
struct Chunks {
  std::size_t gpu{};
  std::string buffer{};  ///< its name on that GPU
  std::int64_t at{}, count{};

  bool overlaps(const Chunks& o) const {
    return gpu == o.gpu && buffer == o.buffer && at < o.at + o.count && o.at < at + count;
  }
  std::string begin() const {
    return fmt::format("gpu{}.{}{}", gpu, buffer, at == 0 ? "" : "[" + bytes_of_chunks(at) + "]");
  }
  std::string range() const {
    return fmt::format("gpu{}.{}[{}..+{}]", gpu, buffer, bytes_of_chunks(at), bytes_of_chunks(count));
  }
};

/// A node that has to be complete before another one begins, and the line that says so.
struct Need {
  std::size_t node{};
  std::uint32_t line{};
};
struct Node {
  std::string name{};
  std::uint32_t line{};
  std::size_t agent{}, place{};  ///< who executes it, and its number there
  std::vector<Chunks> reads{};   ///< one: a copy; two: a sum
  Chunks writes{};
  std::vector<Need> needs{};
  std::set<std::size_t> told{};  ///< the GPUs where a word says that it is complete
};
/// A queue or a kernel of a tb.
struct Agent {
  std::size_t gpu{}, block{};
  std::vector<std::size_t> nodes{};
  std::string engine{};  ///< of a queue, its words
};
class Lowering {
 public:
  Lowering(const Algorithm& a, const Choices& c)
      : a_(a),
        c_(*collective(a.collective)),
        slots_(static_cast<std::int64_t>(c.slots)),
        in_place_(c.in_place.value_or(!a.out_of_place)) {}

  Result<Text, Wrong> run(const Choices& c) {
    if (c.in_place && (*c.in_place ? !a_.in_place || !c_.in_place : !a_.out_of_place))
      return Wrong{.all = {a_.error(a_.line, fmt::format("inplace={}, but the file says that no such call may use it",
                                                         *c.in_place ? 1 : 0))}};
    each([&](const StepId& s) { make(s); });
    each_block([&](std::size_t g, std::size_t b) { chain(g, b); });
    for (std::size_t n = 0; n < nodes_.size(); ++n) {
      auto& agent = agents_[nodes_[n].agent];
      nodes_[n].place = agent.nodes.size();
      agent.nodes.push_back(n);
    }
    for (std::size_t i = 0; i < agents_.size(); ++i) plan(i);
    choose_engines();
    out_.made.blocking = slots_ == 0;
    head();
    for (std::size_t i = 0; i < agents_.size(); ++i) is_kernel(i) ? kernel(i) : queue(i);
    tail();
    return std::move(out_);
  }

 private:
  struct Made {
    std::size_t out = kNone, in = kNone, add = kNone;  ///< its send, its receive if that is a node, its sum
  };

  template <class F> void each_block(F f) {
    for (std::size_t g = 0; g < a_.gpus.size(); ++g)
      for (std::size_t b = 0; b < a_.gpus[g].blocks.size(); ++b) f(g, b);
  }
  template <class F> void each(F f) {
    each_block([&](std::size_t g, std::size_t b) {
      for (std::size_t s = 0; s < a_.gpus[g].blocks[b].steps.size(); ++s)
        if (a_.gpus[g].blocks[b].steps[s].type) f(StepId{g, b, s});
    });
  }

  static bool is_kernel(std::size_t agent) { return agent % 2 == 1; }
  std::size_t agent_of(std::size_t g, std::size_t b, bool kernel) {
    const auto [at, is_new] = first_agent_.try_emplace({g, b}, agents_.size());
    if (is_new) agents_.insert(agents_.end(), 2, {.gpu = g, .block = b});
    return at->second + kernel;
  }
  Made& made(const StepId& s) { return made_[{s.gpu, s.block, s.step}]; }

  /// Chunks that the file names. In place, the smaller of two buffers is a piece of the larger one.
  Chunks place(std::size_t g, const BufferPlace& p, std::int64_t count) const {
    if (p.buffer == 's') return {g, "scratch", p.offset, count};
    const bool piece = p.buffer == 'i' ? c_.in_piece : c_.out_piece;
    const auto own = in_place_ && piece ? static_cast<std::int64_t>(g) * part() : 0;
    return {g, in_place_ ? "buf" : p.buffer == 'i' ? "in" : "out", p.offset + own, count};
  }
  std::int64_t part() const { return a_.chunks / static_cast<std::int64_t>(a_.gpus.size()); }
  /// Memory of a tb that the file does not have: slots, each with room for the largest of its steps.
  Chunks beside(std::size_t g, std::size_t b, const char* what, std::int64_t slot, std::int64_t count) {
    const auto name = fmt::format("tb{}_{}", b, what);
    const auto largest = a_.gpus[g].blocks[b].largest;
    auto& room = beside_[{g, b, name}];
    room = std::max(room, (slot + 1) * largest);
    return {g, name, slot * largest, count};
  }
  /// Where a send of another GPU puts what this step receives.
  Chunks incoming(const StepId& id) {
    const auto& s = a_.at(id);
    if (slots_ > 0) return beside(id.gpu, id.block, "slots", static_cast<std::int64_t>(s.received) % slots_, s.count);
    return s.type->adds ? beside(id.gpu, id.block, "in", 0, s.count) : place(id.gpu, s.target, s.count);
  }

  std::size_t node(const StepId& id, const char* suffix, bool kernel, std::vector<Chunks> reads, Chunks writes) {
    nodes_.push_back({.name = fmt::format("g{}t{}s{}{}", id.gpu, id.block, id.step, suffix),
                      .line = a_.at(id).line,
                      .agent = agent_of(id.gpu, id.block, kernel),
                      .reads = std::move(reads),
                      .writes = std::move(writes)});
    return nodes_.size() - 1;
  }

  /// The nodes of a step: it receives, adds, and sends, in this order.
  void make(const StepId& id) {
    const auto& s = a_.at(id);
    auto& m = made(id);
    const auto source = place(id.gpu, s.source, s.count), target = place(id.gpu, s.target, s.count);
    if (s.type->receives && slots_ > 0 && !s.type->adds) m.in = node(id, "r", false, {incoming(id)}, target);
    const bool keeps = s.type->writes_target || !s.type->adds;
    const auto result = keeps ? target : beside(id.gpu, id.block, "sum", 0, s.count);
    if (s.type->adds)
      m.add = s.type->receives ? node(id, "a", true, {source, incoming(id)}, result)
                               : node(id, "a", true, {target, source}, result);
    else if (!s.type->receives && !s.type->sends) m.in = node(id, "", false, {source}, target);
    if (!s.type->sends) return;
    out_.made.receives.emplace(s.line, a_.at(s.to).line);
    m.out = node(id, "", false, {s.type->receives ? result : source}, incoming(s.to));
  }
  /// The nodes that a tb goes through in a step.
  std::vector<std::size_t> through(const StepId& id) {
    const auto& s = a_.at(id);
    const auto m = made(id);
    std::vector<std::size_t> all;
    if (s.type->receives && slots_ == 0) all.push_back(made(s.from).out);
    for (const auto n : {m.in, m.add, m.out})
      if (n != kNone) all.push_back(n);
    return all;
  }

  void chain(std::size_t g, std::size_t b) {
    const auto& steps = a_.gpus[g].blocks[b].steps;
    std::vector<Need> ahead;  // what the next node needs
    for (std::size_t s = 0; s < steps.size(); ++s) {
      const auto& step = steps[s];
      const StepId id{g, b, s};
      if (step.dep_block >= 0)
        ahead.push_back(
            {through({g, static_cast<std::size_t>(step.dep_block), static_cast<std::size_t>(step.dep_step)}).back(),
             step.line});
      if (!step.type) continue;
      if (slots_ > 0 && step.type->receives)
        nodes_[made(id).in != kNone ? made(id).in : made(id).add].needs.push_back({made(step.from).out, step.line});
      for (const auto n : through(id)) {
        auto& needs = nodes_[n].needs;
        needs.insert(needs.end(), ahead.begin(), ahead.end());
        ahead = {{n, step.line}};
      }
      ahead.back().line = s + 1 < steps.size() ? steps[s + 1].line : step.line;
      if (slots_ > 0 && step.type->sends) slot(id);
    }
  }
  /// A send into a slot needs that what was there has been received.
  void slot(const StepId& id) {
    const auto& s = a_.at(id);
    if (static_cast<std::int64_t>(s.sent) < slots_) return;
    const auto& sends = sends_of(id);
    const auto& before = a_.at(sends[s.sent - static_cast<std::size_t>(slots_)]);
    const auto& m = made(before.to);
    nodes_[made(id).out].needs.push_back({m.in != kNone ? m.in : m.add, s.line});
  }
  const std::vector<StepId>& sends_of(const StepId& id) {
    auto& all = sends_[{id.gpu, id.block}];
    const auto& steps = a_.gpus[id.gpu].blocks[id.block].steps;
    if (all.empty())
      for (std::size_t s = 0; s < steps.size(); ++s)
        if (steps[s].type && steps[s].type->sends) all.push_back({id.gpu, id.block, s});
    return all;
  }

  /// Decides for what each node of an agent waits, and so which words there are.
  void plan(std::size_t agent) {
    const auto gpu = agents_[agent].gpu;
    std::map<std::size_t, std::size_t> covered;  // of another agent, how many nodes are known to be complete
    std::vector<std::size_t> open;               // nodes of this queue that may be in flight
    for (const auto n : agents_[agent].nodes) {
      auto& all = waits_[n];
      const auto wait = [&](std::size_t other, std::uint32_t line) {
        nodes_[other].told.insert(gpu);
        all.push_back({other, line});
      };
      for (const auto& need : nodes_[n].needs) {
        const auto& other = nodes_[need.node];
        if (other.agent == agent && other.place < nodes_[n].place) continue;
        auto& done = covered[other.agent];
        if (other.agent != agent && other.place < done) continue;
        done = other.place + 1;
        wait(need.node, need.line);
      }
      if (is_kernel(agent)) continue;
      // A fence covers all copies before it, and a poll on its word holds back those after it.
      if (std::any_of(open.begin(), open.end(), [&](std::size_t o) { return conflict(nodes_[o], nodes_[n]); }))
        wait(open.back(), nodes_[n].line), open.clear();
      open.push_back(n);
    }
  }
  static bool conflict(const Node& x, const Node& y) {
    const auto touches = [](const Node& n, const Chunks& c) {
      return n.writes.overlaps(c) ||
             std::any_of(n.reads.begin(), n.reads.end(), [&](const auto& r) { return r.overlaps(c); });
    };
    return touches(y, x.writes) || touches(x, y.writes);
  }

  void line(std::uint32_t at, const std::string& text) {
    for (std::size_t begin = 0; begin < text.size();) {
      const auto end = std::min(text.find('\n', begin), text.size());
      out_.text.append(text, begin, end - begin) += '\n';
      out_.made.lines.push_back(at);
      begin = end + 1;
    }
  }
  std::string word(std::size_t node, std::size_t gpu) const { return fmt::format("gpu{}.{}", gpu, nodes_[node].name); }

  void head() {
    const auto n = a_.gpus.size();
    const auto at = a_.line;
    line(at, "sdma 1");
    line(at,
         fmt::format("# {} of MSCCL, {}; {}", a_.collective, in_place_ ? "in place" : "out of place",
                     slots_ == 0 ? "a send waits for its receive" : fmt::format("{} slots per connection", slots_)));
    line(at, fmt::format("param bytes = {}*4K  # of the larger buffer of a GPU: {} chunks", a_.chunks, a_.chunks));
    if (c_.expects.find("root") != c_.expects.npos) {
      line(at, "param root = 0");
      line(at, fmt::format("require root < {} \"root={{root}} is not one of {} GPUs\"", n, n));
    }
    line(at,
         fmt::format("require bytes > 0 \"bytes=0 moves nothing\"\n"
                     "require bytes % {} == 0 \"bytes={{bytes}} is not {} chunks of whole dwords: a multiple of {}\"",
                     a_.chunks * 4, a_.chunks, a_.chunks * 4));
    line(at, fmt::format("let N = {}\nlet chunk = bytes/{}", n, a_.chunks));
    if (c_.has_pieces) line(at, fmt::format("let part = {}\nlet own = {}", bytes_of_chunks(part()), in_place_ ? 1 : 0));
    line(at, "gpus N");
    if (in_place_) {
      line(at, fmt::format("buffer gpu*.buf bytes={} init=random", bytes_of_chunks(a_.chunks)));
    } else {
      line(at, fmt::format("buffer gpu*.in bytes={} init=random", bytes_of_chunks(in_chunks(a_))));
      line(at, fmt::format("buffer gpu*.out bytes={}", bytes_of_chunks(out_chunks(a_))));
    }
    for (std::size_t g = 0; g < n; ++g)
      if (const auto& gpu = a_.gpus[g]; gpu.scratch > 0)
        line(gpu.line, fmt::format("buffer gpu{}.scratch bytes={}", g, bytes_of_chunks(gpu.scratch)));
    for (const auto& [key, room] : beside_) {
      const auto& [g, b, name] = key;
      line(a_.gpus[g].blocks[b].line, fmt::format("buffer gpu{}.{} bytes={}", g, name, bytes_of_chunks(room)));
    }
    for (std::size_t i = 0; i < nodes_.size(); ++i)
      for (const auto gpu : nodes_[i].told)
        line(nodes_[i].line, fmt::format("signal {} value=0 bits=32", word(i, gpu)));
    line(at, "signal host.done value=0");
  }

  void choose_engines() {
    for (std::size_t g = 0; g < a_.gpus.size(); ++g) {
      std::vector<std::size_t> queues;
      std::vector<QueueNeed> needs;
      for (std::size_t i = 0; i < agents_.size(); i += 2) {
        const auto& q = agents_[i];
        if (q.gpu != g || q.nodes.empty()) continue;
        const auto waits = [&](std::size_t n) { return !waits_[n].empty(); };
        queues.push_back(i);
        needs.push_back({a_.gpus[g].blocks[q.block].send, std::any_of(q.nodes.begin(), q.nodes.end(), waits)});
      }
      const auto words = engines(g, a_.gpus.size(), needs);
      for (std::size_t k = 0; k < queues.size(); ++k) agents_[queues[k]].engine = words[k];
    }
  }

  void queue(std::size_t i) {
    const auto& q = agents_[i];
    if (q.nodes.empty()) return;
    const auto at = a_.gpus[q.gpu].blocks[q.block].line;
    line(at, fmt::format("queue gpu{}.tb{} {}  # line {}", q.gpu, q.block, q.engine, at));
    for (const auto n : q.nodes) {
      const auto& node = nodes_[n];
      for (const auto& w : waits_[n])
        line(w.line, fmt::format("  poll_mem addr={} func=eq reference=1", word(w.node, q.gpu)));
      line(node.line, fmt::format("  copy_linear bytes={} src={} dst={}  # line {}", bytes_of_chunks(node.writes.count),
                                  node.reads[0].begin(), node.writes.begin(), node.line));
      for (const auto gpu : node.told) line(node.line, fmt::format("  fence addr={} value=1", word(n, gpu)));
    }
    line(at, "  atomic op=add_rtn_64 addr=host.done value=1\nend");
    ++ends_;
  }

  void kernel(std::size_t i) {
    const auto& k = agents_[i];
    if (k.nodes.empty()) return;
    const auto at = a_.gpus[k.gpu].blocks[k.block].line;
    line(at, fmt::format("kernel gpu{}.tb{}_sum  # line {}", k.gpu, k.block, at));
    for (const auto n : k.nodes) {
      const auto& node = nodes_[n];
      for (const auto& w : waits_[n]) line(w.line, fmt::format("  wait {} == 1", word(w.node, k.gpu)));
      line(node.line, fmt::format("  store {} = sum({}, {}) type=f32  # line {}", node.writes.range(),
                                  node.reads[0].range(), node.reads[1].range(), node.line));
      for (const auto gpu : node.told) line(node.line, fmt::format("  set {} = 1", word(n, gpu)));
    }
    line(at, "  add host.done += 1\nend");
    ++ends_;
    kernels_.push_back(fmt::format("gpu{}.tb{}_sum (line {})", k.gpu, k.block, nodes_[k.nodes[0]].line));
  }

  void tail() {
    if (ends_ > 0) line(a_.line, fmt::format("host main\n  submit *\n  wait host.done == {}\nend", ends_));
    std::string expects(c_.expects);
    const auto name = [&](const std::string& from, const std::string& to) {
      for (auto at = expects.find(from); at != expects.npos; at = expects.find(from, at))
        expects.replace(at, from.size(), to);
    };
    name("IN", in_place_ ? "buf" : "in");
    name("OUT", in_place_ ? "buf" : "out");
    line(a_.line, expects);
    if (kernels_.empty()) return;
    constexpr std::size_t kMost = 8;
    const auto more = kernels_.size() > kMost ? kernels_.size() - kMost : 0;
    kernels_.resize(kernels_.size() - more);
    out_.made.notes.push_back(
        {.rule = "algorithm-sums",
         .severity = Severity::note,
         .where = a_.file,
         .message = fmt::format("engines do not add, so steps that reduce are kernels with sums: {}{}",
                                fmt::join(kernels_, ", "), more > 0 ? fmt::format(" and {} more", more) : "")});
  }

  const Algorithm& a_;
  const Collective& c_;
  const std::int64_t slots_;
  const bool in_place_;
  Text out_;
  std::vector<Node> nodes_;
  std::vector<Agent> agents_;  ///< of each tb, its queue and its kernel
  std::map<std::pair<std::size_t, std::size_t>, std::size_t> first_agent_;
  std::map<std::tuple<std::size_t, std::size_t, std::size_t>, Made> made_;
  std::map<std::pair<std::size_t, std::size_t>, std::vector<StepId>> sends_;
  std::map<std::size_t, std::vector<Need>> waits_;                                    ///< of each node
  std::map<std::tuple<std::size_t, std::size_t, std::string>, std::int64_t> beside_;  ///< chunks of memory of tbs
  std::vector<std::string> kernels_;
  std::size_t ends_ = 0;
};

}  // namespace

Result<Text, Wrong> lower(const Algorithm& a, const Choices& c) { return Lowering(a, c).run(c); }

}  // namespace sdma::msccl
