// SPDX-License-Identifier: MIT
// Errors that a schedule built in C++ can have, and one parsed from text cannot.
#include "../stream/packet_line.hpp"
#include "extent.hpp"
#include "lifetimes.hpp"
#include "link.hpp"
#include "sdma/core/number.hpp"
#include "sdma/schedule/text.hpp"
#include "sums.hpp"
#include "symbols.hpp"

#include <algorithm>
#include <bit>
#include <set>

namespace sdma { inline namespace v0_3 {
namespace {

using namespace detail;

bool is_name(std::string_view s) noexcept {
  return !s.empty() && is_letter(s[0]) && s != "epoch" &&
         std::all_of(s.begin(), s.end(), [](char c) { return is_letter(c) || is_digit(c); });
}

class Check {
 public:
  explicit Check(const Schedule& s) noexcept : s_(s) {}

  std::vector<Diagnostic> run() {
    if (s_.gpus > Schedule::kMostGpus)
      add("gpus", "a schedule can have at most " + std::to_string(Schedule::kMostGpus) + " GPUs, not " +
                      std::to_string(s_.gpus));
    for (std::size_t i = 0; i < s_.buffers.size(); ++i) buffer(i);
    for (std::size_t i = 0; i < s_.signals.size(); ++i) signal(i);
    for (const auto& q : s_.queues) queue(q);
    std::set<std::string> hosts;
    for (const auto& h : s_.hosts) {
      if (!is_name(h.name))
        add("host " + h.name, "this is not a valid name", "use letters, digits and _, and do not begin with a digit");
      if (!hosts.insert(h.name).second) add("host " + h.name, "the name is already used");
      if (h.rank && *h.rank > 63) add("host " + h.name, "its rank must be from 0 to 63");
      actions("host " + h.name, h.actions, 1, false);
    }
    for (const auto& k : s_.kernels) {
      const auto where = "kernel " + to_string(k.place) + "." + k.name;
      name(where, k.place, k.name, kernels_);
      if (k.place.is_host()) add(where, "a kernel runs on a GPU");
      if (k.share > 100) add(where, "its share of the compute units must be from 0 to 100 percent");
      if (k.workgroups > kMostWorkgroups)
        add(where, "it has more than " + std::to_string(kMostWorkgroups) + " workgroups");
      actions(where, k.actions, 1, true);
    }
    for (const auto& e : s_.expectations) expectation(e);
    return std::move(found_);
  }

 private:
  void add(std::string where, std::string message, std::string hint = "") {
    found_.push_back({.where = std::move(where), .message = std::move(message), .hint = std::move(hint)});
  }

  void name(const std::string& where, Place p, const std::string& name, std::set<std::string>& names) {
    if (!p.is_host() && p.index >= s_.gpus)
      add(where, to_string(p) + " is not in this schedule: gpus " + std::to_string(s_.gpus));
    if (!is_name(name))
      add(where, "'" + name + "' is not a valid name", "use letters, digits and _, and do not begin with a digit");
    else if (!names.insert(to_string(p) + "." + name).second) add(where, "the name is already used");
  }

  void alias(const std::string& where, const SymbolOffset& symbol) {
    const auto bytes = bytes_of(s_, symbol);
    if (const auto wrong = wrong_alias(s_, symbol); !wrong.empty()) return add(where, std::string(wrong));
    for (auto at = at_of(s_, symbol); at;) {
      const auto l = find_symbol(s_, *at);
      if (!l) return;
      if (bytes > bytes_of(s_, *l) - l->offset)
        return add(where, size_text(bytes) + " bytes at " + name_of(s_, *at) + " end beyond that buffer or signal");
      at = at_of(s_, *l);
    }
  }

  void buffer(std::size_t i) {
    const auto& b = s_.buffers[i];
    const SymbolOffset symbol{false, i, 0};
    const auto where = title(s_, symbol);
    name(where, b.place, b.name, memory_);
    if (b.bytes == 0 || b.bytes > kLinkStride)
      add(where, "a buffer must have 1 to 2^40 bytes, not " + std::to_string(b.bytes));
    if (!std::has_single_bit(b.alignment) || b.alignment > std::uint64_t{1} << 30)
      add(where, "an alignment must be a power of two up to 1G, not " + std::to_string(b.alignment));
    for (const auto p : b.map)
      if (!p.is_host() && p.index >= s_.gpus) add(where, "map: " + to_string(p) + " is not in this schedule");
    alias(where, symbol);
  }
  void signal(std::size_t i) {
    const auto& g = s_.signals[i];
    const SymbolOffset symbol{true, i, 0};
    const auto where = title(s_, symbol);
    name(where, g.place, g.name, memory_);
    if (g.bits != 32 && g.bits != 64) add(where, "a signal must have 32 or 64 bits, not " + std::to_string(g.bits));
    else if (g.bits == 32 && g.value > 0xffffffff) add(where, "its value does not fit in 32 bits");
    alias(where, symbol);
  }

  void queue(const Schedule::Queue& q) {
    const auto where = "queue " + queue_name(q);
    name(where, q.place, q.name, queues_);
    if (q.place.is_host()) add(where, "a queue belongs to a GPU");
    if (q.peer && !q.peer->is_host() && q.peer->index >= s_.gpus)
      add(where, "peer: " + to_string(*q.peer) + " is not in this schedule");
    if (q.from_host && q.peer != Place::host()) add(where, "from_host needs the host as the peer");
    if (q.network && (!q.peer || q.peer->is_host() || q.peer == q.place || q.from_host))
      add(where, "the network leads to another GPU: give it as the peer");
    if (q.peer && q.engine != 0) add(where, "it has both a peer and an engine: give only one");
    if (q.engine > 63) add(where, "there is no engine " + std::to_string(q.engine) + ": engines are 0 to 63");
    if (q.ring_bytes != 0 && !is_ring_size(q.ring_bytes))
      add(where, "a ring must be a power of two from 1K to 1G, not " + std::to_string(q.ring_bytes));
    else if (auto d = too_large(q)) add(where, std::move(d->message), std::move(d->hint));
    if (!q.refused.empty()) add(where, "a packet was refused: " + q.refused, "check(packet) says which field is wrong");
    packets(where, q);
  }

  void packets(const std::string& where, const Schedule::Queue& q) {
    auto epoch = q.epochs.begin();
    for (Reader r{q.dwords}; r;) {
      const auto begin = r.position_dwords();
      const auto v = r.next();
      outside(s_, v, [&](const Outside& o) {
        add(where + " at dword " + std::to_string(begin), describe(s_, v, o, "").message);
      });
      for (; epoch != q.epochs.end() && epoch->packet == begin && v.whole(); ++epoch) {
        const auto* field = find_field(*v.info, epoch->field);
        const bool narrow = std::max(epoch->value.factor, epoch->value.constant) <= kMostPerEpoch &&
                            std::min(epoch->value.factor, epoch->value.constant) >= -kMostPerEpoch;
        if (!field || field->kind != Kind::value || stored(*field, v.dwords.data()) != 0 || epoch->value.factor == 0 ||
            !narrow)
          add(where + " at dword " + std::to_string(begin),
              "'" + std::string(epoch->field) + "' cannot depend on the epoch");
      }
    }
    if (epoch != q.epochs.end())
      add(where,
          "'" + std::string(epoch->field) + "' at dword " + std::to_string(epoch->packet) + " is not in a packet",
          "epochs must be in the order of their packets");
  }

  void actions(const std::string& where, const std::vector<Schedule::Action>& all, int depth, bool kernel) {
    if (depth > 32) return add(where, "repeats are nested too deeply: 32 levels are allowed");
    const auto outer = samples_.size();
    for (const auto& a : all) action(where, a, depth, kernel);
    samples_.resize(outer);
  }
  void action(const std::string& where, const Schedule::Action& a, int depth, bool kernel) {
    using What = Schedule::Action::Kind;
    for (const auto q : a.queues)
      if (q >= s_.queues.size()) add(where, "submits a queue that is not in this schedule");
    if (a.kind == What::submit && a.queues.empty()) add(where, "submits no queue");
    if (a.kind == What::rptr && a.queues.size() != 1) add(where, "waits for the rptr of no queue, or of several");
    if (!kernel && a.kind == What::compute) add(where, "only a kernel computes");
    if (a.kind == What::compute && a.ns == 0 && a.hbm != 0) add(where, "moves bytes in no time");
    if (!kernel && !a.system_scope) add(where, "only a kernel has another scope than the system");
    if ((a.kind == What::load || a.kind == What::store) && !inside(a.range))
      add(where, "loads or stores bytes that are in neither a buffer nor a signal");
    if (a.kind == What::expect) bytes(where, a.range, a.right, a.sum);
    if (a.kind == What::store && a.sum) sum(where, a.range, a.sum);
    if (a.sum && a.kind != What::expect && (a.kind != What::store || !kernel)) add(where, "only a kernel's store adds");
    const bool samples = a.kind == What::sample;
    if (a.kind == What::set || a.kind == What::wait || a.kind == What::add || samples) {
      const auto l = find_symbol(s_, a.signal);
      if (!l || !l->signal || l->offset != 0)
        add(where, "sets, adds to, waits for or samples something that is not a signal");
      else if (depth == 1 && a.value.plus.factor != 0) add(where, "'epoch' is allowed only in a repeat");
    }
    if (samples && !is_name(a.value.sample)) add(where, "'" + a.value.sample + "' is not a valid name for a sample");
    if (samples && a.value.plus != EpochValue{}) add(where, "adds to a sample: the action that uses it does that");
    if (samples) samples_.push_back(a.value.sample);
    else if (!a.value.sample.empty() && std::find(samples_.begin(), samples_.end(), a.value.sample) == samples_.end())
      add(where, "uses '" + a.value.sample + "', which it has not sampled before");
    if (a.kind == What::wait && (a.func == Compare::always || a.func > Compare::gt))
      add(where, "waits without a valid comparison");
    if (is_lifetime(a)) lifetime(where, a, kernel);
    actions(where, a.body, depth + 1, kernel);
  }
  void lifetime(const std::string& where, const Schedule::Action& a, bool kernel) {
    const std::string word(lifetime_word(a.kind));
    if (kernel) add(where, "'" + word + "' belongs in a host thread: kernels do not manage memory");
    const auto l = find_symbol(s_, a.buffer);
    if (!l || l->signal || l->offset != 0) return add(where, "'" + word + "' is about something that is not a buffer");
    using What = Schedule::Action::Kind;
    const bool maps = a.kind == What::map || a.kind == What::unmap;
    if (maps && (a.gpu.is_host() || a.gpu.index >= s_.gpus))
      add(where, "'" + word + "' is for a GPU that is not in this schedule");
    if (auto wrong = wrong_lifetime(s_, a.kind, l->index))
      add(where, std::move(wrong->message), std::move(wrong->hint));
  }

  bool inside(const Schedule::Range& r) const {
    const auto l = find_symbol(s_, r.va);
    return l && r.bytes != 0 && r.bytes <= bytes_of(s_, *l) - l->offset;
  }

  void sum(const std::string& where, const Schedule::Range& left, const Schedule::Sum& sum) {
    for (const auto& p : sum.parts) {
      if (!inside(p)) return add(where, "adds bytes that are in neither a buffer nor a signal");
      if (p.bytes != left.bytes)
        return add(where, "a part of " + size_text(p.bytes) + " bytes is added to a sum of " + size_text(left.bytes));
    }
    if (const auto wrong = wrong_sum(sum, left.bytes, floats_); !wrong.empty()) add(where, std::string(wrong));
    if (sum.type != Schedule::Sum::Type::i32) floats_ = sum;
  }

  void bytes(const std::string& where, const Schedule::Range& left, const Schedule::Range& right,
             const Schedule::Sum& of) {
    if (of && inside(left)) return sum(where, left, of);
    if (!inside(left) || !inside(right)) add(where, "compares bytes that are in neither a buffer nor a signal");
    else if (left.bytes != right.bytes)
      add(where, size_text(left.bytes) + " bytes are compared with " + size_text(right.bytes));
  }

  void expectation(const Schedule::Expectation& e) {
    using What = Schedule::Expectation::Kind;
    const std::string where = "expect";
    if (e.kind == What::finding) {
      if (e.rule.empty()) add(where, "a finding needs the id of a rule");
      return;
    }
    const auto l = find_symbol(s_, e.left.va);
    if (e.kind == What::value) {
      if (!l || !l->signal || e.left.bytes != bytes_of(s_, *l) || l->offset != 0)
        add(where, "a number is compared with something that is not a signal");
    } else {
      bytes(where, e.left, e.right, e.sum);
    }
  }

  const Schedule& s_;
  std::set<std::string> memory_, queues_, kernels_;  ///< names in use: of buffers and signals, of queues, of kernels
  std::vector<std::string_view> samples_;            ///< that the thread has at this action
  Schedule::Sum floats_;                             ///< the last sum of numbers that are not integers
  std::vector<Diagnostic> found_;
};

}  // namespace

std::vector<Diagnostic> problems(const Schedule& s) { return Check{s}.run(); }

}}  // namespace sdma::v0_3
