// SPDX-License-Identifier: MIT
#include "sdma/schedule/bind.hpp"

#include "../stream/print.hpp"
#include "bound.hpp"
#include "join.hpp"
#include "lifetimes.hpp"
#include "recorded.hpp"
#include "refused.hpp"
#include "sdma/core/number.hpp"
#include "symbols.hpp"

#include <algorithm>
#include <bit>
#include <map>
#include <set>

namespace sdma { inline namespace v0_3 {
namespace {

using namespace detail;

class Linker {
 public:
  Linker(const Schedule& s, Device& d, const BindOptions& o)
      : out_(std::make_unique<Bound::Impl>(s, d)), s_(out_->schedule), device_(d), options_(o) {}

  Result<Bound, std::vector<Diagnostic>> run() {
    errors_ = problems(s_);
    if (errors_.empty()) gpus();
    if (errors_.empty())
      for (auto& r : refused(s_, device_.topology(), gpus_, elsewhere_))
        add(std::move(r.where), std::move(r.message), std::move(r.hint));
    if (errors_.empty()) place_all();
    if (errors_.empty())
      for (std::size_t i = 0; i < s_.queues.size() && errors_.empty(); ++i) queue(i);
    if (errors_.empty()) return Bound{std::move(out_)};
    if (out_->team) out_->team->stop();
    return std::move(errors_);
  }

 private:
  void add(std::string where, std::string message, std::string hint = "") {
    errors_.push_back({.where = std::move(where), .message = std::move(message), .hint = std::move(hint)});
  }
  GpuId gpu(Place p) const noexcept { return gpus_[p.index]; }
  std::optional<GpuId> owner(Place p) const { return p.is_host() ? std::nullopt : std::optional(gpu(p)); }

  void gpus() {
    errors_ = wrong_ranks(s_, options_);
    if (!errors_.empty()) return;
    const Ranks ranks{s_, options_.ranks, options_.ranks_per_node};
    const bool renumber = options_.ranks_per_node.grouped() && device_.topology().gpus.size() < s_.gpus;
    std::uint32_t first = 0;  // of its node
    for (std::uint32_t g = 0; g < s_.gpus; ++g) {
      const auto node = [&](std::uint32_t gpu) { return ranks.node(ranks.of(Place::gpu(gpu))); };
      if (node(g) != node(first)) first = g;
      if (node(g) != ranks.node(options_.rank)) elsewhere_.set(g);
      gpus_.push_back(GpuId{renumber ? g - first : g});
    }
    if (!options_.gpus.empty()) gpus_ = options_.gpus;
  }

  void place_all() {
    out_->buffers.resize(s_.buffers.size());
    out_->signals.resize(s_.signals.size());
    const auto all = symbols(s_);
    if (options_.ranks != 1) errors_ = join(*out_, options_, gpus_);
    else
      for (const auto& l : all)
        if (!at_of(s_, l) && errors_.empty()) l.signal ? signal(l) : buffer(l);
    for (std::size_t b = 0; b < s_.buffers.size() && errors_.empty(); ++b)
      if (lives_apart(b)) view(b);
    if (errors_.empty())
      for (const auto& l : all) alias(l);
    if (errors_.empty()) waits();
    if (!errors_.empty()) return;
    out_->names = names_of(s_, [this](const SymbolOffset& l) { return out_->home(l).va; });
    for (const auto& l : all) {
      if (!out_->home(l).host) continue;  // of another node
      const auto va = out_->home(l).va.value;
      if (!l.signal && va % s_.buffers[l.index].alignment != 0)
        add(title(s_, l),
            "it must be aligned to " + size_text(s_.buffers[l.index].alignment) + " bytes, but its address is " +
                hex_text(va),
            "move the bytes that it is an alias of");
    }
  }

  /// Adds the error of a device, if it is one.
  template <class T> bool made(const std::string& where, Result<T, Diagnostic>& r) {
    if (r) return true;
    r.error().where = where + ": " + r.error().where;
    errors_.push_back(std::move(r.error()));
    return false;
  }

  void buffer(const SymbolOffset& l) {
    auto request = request_for(s_.buffers[l.index], gpus_);
    for (std::size_t b = 0; b < s_.buffers.size(); ++b)
      request.shareable = request.shareable || (lives_apart(b) && buffers_of(s_, link_buffer(b)).back() == l.index);
    auto m = device_.allocate(request);
    if (!made(title(s_, l), m)) return;
    if (request.shareable) pools_[l.index] = out_->memory.size();
    if (m->host().empty())
      return add(title(s_, l), "the host cannot access this memory, but has to fill and compare it");
    out_->home(l) = {m->va(), m->host().data()};
    out_->memory.push_back(std::move(*m));
  }

  /// Is this a block of a pool that threads allocate or free, on a device that can take it from engines?
  bool lives_apart(std::size_t b) const {
    const auto& life = lives_[b];
    return (life.allocated || life.freed) && s_.buffers[b].at && options_.ranks == 1 && device_.takes_memory() &&
           !s_.buffers[buffers_of(s_, link_buffer(b)).back()].at;
  }
  /// A block is at an address of its own, where engines see the bytes of its pool. So what is taken from those that use
  /// its name is not taken from those that use the pool's, or the name of the next block there.
  void view(std::size_t b) {
    const auto root = buffers_of(s_, link_buffer(b)).back();
    const auto where = title(s_, {false, b, 0});
    const auto& pool = out_->memory[pools_.at(root)];
    const auto request = request_for(s_.buffers[root], gpus_);
    auto handle = device_.export_dmabuf(pool);
    if (!made(where, handle)) return;
    auto seen = device_.import_dmabuf(
        {.fd = handle->fd(), .bytes = pool.bytes(), .where = request.where, .gpus = request.gpus});
    if (!made(where, seen)) return;
    // Rules about addresses hold in both, or in neither.
    const auto apart = seen->va().value - pool.va().value;
    if (std::any_of(s_.buffers.begin(), s_.buffers.end(), [&](const auto& o) { return apart % o.alignment != 0; }))
      return;
    const auto offset = resolve(s_, link_buffer(b)) - link_buffer(root);
    out_->buffers[b] = {seen->va() + offset, seen->host().data() + offset};
    views_.insert(b);
    out_->memory.push_back(std::move(*seen));
  }

  void signal(const SymbolOffset& l) {
    const auto& g = s_.signals[l.index];
    auto m = device_.create_signal({.where = owner(g.place), .value = g.value});
    if (!made(title(s_, l), m)) return;
    out_->home(l) = {(*m)->va, reinterpret_cast<std::byte*>((*m)->word)};
    out_->words.push_back(std::move(*m));
  }

  /// Where an address leads without aliases, except those that are at an address of their own.
  GpuVa seen_at(GpuVa va) const {
    for (int i = 0; i <= kMostAliases; ++i) {
      const auto l = find_symbol(s_, va);
      if (!l || !at_of(s_, *l) || (!l->signal && views_.count(l->index) != 0)) break;
      va = *at_of(s_, *l) + l->offset;
    }
    return va;
  }
  /// A fixed address, in memory that the caller provides.
  std::optional<Bound::Impl::Home> external(GpuVa at, std::uint64_t bytes) const {
    for (const auto& m : options_.external)
      if (at >= m.va && at - m.va <= m.host.size() && bytes <= m.host.size() - (at - m.va))
        return Bound::Impl::Home{at, m.host.data() + (at - m.va)};
    return {};
  }
  void alias(const SymbolOffset& l) {
    if (!at_of(s_, l) || (!l.signal && views_.count(l.index) != 0)) return;
    const auto va = seen_at(*at_of(s_, l));
    if (const auto to = find_symbol(s_, va)) {
      const auto& home = out_->home(*to);
      out_->home(l) = {home.va + to->offset, home.host ? home.host + to->offset : nullptr};
    } else if (const auto given = external(va, bytes_of(s_, l))) {
      out_->home(l) = *given;
    } else {
      add(name_of(s_, l), "it has the fixed address " + hex_text(va.value) + ", which no device can provide",
          "provide the memory (BindOptions::external), or omit at= and let the device choose");
    }
  }
  void waits() {
    auto word = out_->words.begin();
    for (std::size_t i = 0; i < s_.signals.size(); ++i) {
      const auto& home = out_->signals[i];
      if (s_.signals[i].at) out_->waits.push_back({.word = reinterpret_cast<std::uint64_t*>(home.host), .va = home.va});
      else out_->waits.push_back(out_->team ? out_->words_at.at(i) : **word++);
    }
  }

  /// A software engine that no other queue uses: a poll of the network holds up no copy of an engine.
  Result<EngineId> stand_in(const Schedule::Queue& q) const {
    auto free = device_.kernels_stand_in() ? device_.topology().gpus[gpu(q.place).value].live_engines() : 0;
    for (const auto& other : s_.queues)
      if (other.place == q.place && !other.network)
        free &= ~(std::uint64_t{1} << engine_of(other, links_, gpus_)->value);
    for (const auto& other : s_.queues) {
      if (&other == &q) break;
      if (other.place == q.place && other.network) free &= free - 1;
    }
    if (free == 0) return Errc::no_space;
    return EngineId{static_cast<std::uint32_t>(std::countr_zero(free))};
  }

  void queue(std::size_t i) {
    const auto& q = s_.queues[i];
    if (out_->team && out_->team->ranks().of(q.place) != options_.rank) return void(out_->programs.emplace_back());
    const auto where = "queue " + queue_name(q);
    if (q.network && out_->network) return network_queue(i);
    const auto engine = q.network ? stand_in(q) : engine_of(q, links_, gpus_);
    if (!engine)
      return add(where, "this device has no network between nodes, and no engine is free that could stand in for it",
                 "run it on the software device, with fewer queues of a GPU");
    auto opened =
        device_.create_queue({.gpu = gpu(q.place), .engine = *engine, .ring_bytes = ring_bytes(q), .name = q.name});
    if (!made(where, opened)) return;
    add_program(std::move(*opened)).linked =
        link_queue(q, home(), [&](const PacketView& was, std::span<const std::uint32_t> now) {
          check_rules(where, was, now, static_cast<std::size_t>(was.dwords.data() - q.dwords.data()));
        });
  }
  std::function<GpuVa(GpuVa)> home() const {
    return [this](GpuVa link) {
      const auto l = find_symbol(s_, link);
      return l ? out_->home(*l).va + l->offset : link;
    };
  }
  Bound::Impl::Program& add_program(Queue queue) {
    auto& p = *out_->programs.emplace_back(std::make_unique<Bound::Impl::Program>());
    p.queue = std::move(queue);
    p.ring.emplace(p.queue.memory());
    return p;
  }
  /// All that it writes has another address than what is read there.
  void network_queue(std::size_t i) {
    const auto& q = s_.queues[i];
    auto& linked = add_program(out_->network->queue(i, gpu(q.place), ring_bytes(q))).linked;
    linked = link_queue(q, home(), [](const PacketView&, std::span<const std::uint32_t>) {});
    for (Reader was{q.dwords}; was;) {
      const auto at = was.position_dwords();
      const auto v = was.next();
      if (!v.is<Fence>() && !v.is<Atomic>()) continue;
      each_address(v, [&](const FieldInfo& f, GpuVa link) {
        store(f, out_->network->shadow(link).value, linked.dwords.data() + at);
      });
    }
  }

  /// Rules that held in link space, where every symbol has the largest alignment, must also hold at the real addresses.
  void check_rules(const std::string& where, const PacketView& v, std::span<const std::uint32_t> moved,
                   std::size_t at) {
    const auto broken = [&](std::span<const std::uint32_t> d) {
      Violation b;
      visit(*v.info, d, [&](const auto& packet) { b = check(packet); });
      return b;
    };
    const auto now = broken(moved);
    if (!now || broken(v.dwords)) return;
    add(where + " at dword " + std::to_string(at),
        std::string(v.info->name) + (now.field.empty() ? "" : " " + std::string(now.field)) + ": the rule '" +
            std::string(now.rule) + "' does not hold at the addresses of its buffers",
        "declare the alignment that it needs: write align= on each buffer");
  }

  std::unique_ptr<Bound::Impl> out_;
  const Schedule& s_;
  Device& device_;
  const BindOptions& options_;
  std::vector<GpuId> gpus_;
  GpuSet elsewhere_{};  ///< GPUs in other nodes
  const LinkIndex links_{device_.topology()};
  const std::vector<Lifetime> lives_ = lifetimes(s_);
  std::map<std::size_t, std::size_t> pools_;  ///< buffers with such blocks: where in Impl::memory they are
  std::set<std::size_t> views_;               ///< blocks that are at an address of their own
  std::vector<Diagnostic> errors_;
};

}  // namespace

Result<Bound, std::vector<Diagnostic>> bind(const Schedule& s, Device& d, const BindOptions& o) {
  return Linker{s, d, o}.run();
}

}}  // namespace sdma::v0_3
