// SPDX-License-Identifier: MIT
// Findings about a single packet, signal or kernel.
#include "../schedule/extent.hpp"
#include "../schedule/lifetimes.hpp"
#include "reporter.hpp"
#include "sdma/packets/footprint.hpp"
#include "sdma/stream/rules.hpp"

#include <algorithm>
#include <array>
#include <utility>

namespace sdma { inline namespace v0_3 { namespace check_detail {
namespace {

// For a single stream these rules are guesses; for a schedule the order is known.
constexpr std::array<std::string_view, 5> kOfOrder{"cond-exec-unordered", "data-as-flag", "indirect-user-queue",
                                                   "no-completion", "unordered"};
/// Does refused.cpp report this rule, at addresses without aliases?
bool of_addresses(std::string_view rule, const PacketInfo& info) noexcept {
  return rule == "alignment" || rule == "overlap" ||
         std::any_of(info.rules.begin(), info.rules.end(), [&](const auto& r) { return r.id == rule; });
}

class Packets {
 public:
  Packets(const Model& m, Reporter& r) : m_(m), s_(m.schedule), r_(r) {}

  void run() {
    for (std::uint32_t q = 0; q < m_.queue_count(); ++q) {
      stream(q);
      const auto& p = m_.programs[q];
      for (std::uint32_t i = 0; i < p.items.size(); ++i) item(q, i, p.items[i]);
      overflow(q);
      if (m_.agents[q].submits == 0 && detail::submits_queues(s_) && !m_.truncated && !p.items.empty())
        r_.add({.rule = "never-submitted",
                .places = {{q, 1}},
                .message = r_.agent(q) + " is never submitted",
                .hint = "submit it in a host block, or remove it"});
    }
    for (std::uint32_t a = m_.queue_count(); a < m_.agents.size(); ++a) thread(a);
    signals();
  }

 private:
  /// The rules of a stream, which know nothing about other queues.
  void stream(std::uint32_t q) {
    const auto& items = m_.programs[q].items;
    epoch_words_.clear();
    for (const auto& i : items)
      if (i.what == What::poll && i.sync.value.factor != 0) epoch_words_.insert(i.sync.address);
    for (auto& d : check_stream(s_.queues[q].dwords, {.file = "", .max_findings = 0})) {
      if (std::find(kOfOrder.begin(), kOfOrder.end(), d.rule) != kOfOrder.end()) continue;
      const auto offset = d.at.offset == FilePosition::kNoOffset ? 0 : d.at.offset;
      const auto at =
          std::partition_point(items.begin(), items.end(), [&](const Item& i) { return i.dword * 4ull <= offset; });
      const auto position = static_cast<std::uint32_t>(at - items.begin());
      if (const auto* item = m_.item_at(q, position);
          item && item->info && (of_addresses(d.rule, *item->info) || known_better(q, position - 1, *item, d.rule)))
        continue;
      if (r_.first_of_line({q, position}, d.rule) && r_.admit(d.rule))
        r_.store({.rule = d.rule,
                  .places = {{q, std::max(position, 1u)}},
                  .message = std::move(d.message),
                  .hint = std::move(d.hint)});
    }
  }

  /// A stream rule about a poll does not know epochs, nor what other agents store.
  bool known_better(std::uint32_t q, std::uint32_t i, const Item& item, std::string_view rule) const {
    if (!rule.starts_with("poll-")) return false;
    if (item.skipped) return true;
    if (item.what != What::poll || item.sync.word == kNone) return false;
    if (epoch_words_.contains(item.sync.address)) return true;
    // The search for agents that never proceed reports the poll, if it is one of them.
    if (rule == "poll-never")
      return std::any_of(m_.stuck.begin(), m_.stuck.end(), [&](const auto& s) {
        const auto& step = m_.agents[s.agent].steps[s.step];
        return s.agent == q && step.kind == Step::Kind::poll && step.source == i;
      });
    return rule == "poll-repeated" && !kept(item);
  }
  /// Does a word that has satisfied this condition satisfy it forever?
  bool kept(const Item& item) const {
    const auto& w = m_.words[item.sync.word];
    if (item.sync.func != Compare::ge && item.sync.func != Compare::gt) return w.chains.empty();
    const auto stores = std::count_if(w.chains.begin(), w.chains.end(), [](const Chain& c) { return c.stores; });
    return !w.unmodelled && !w.copied && item.sync.mask == ~0u && stores <= 1 &&
           std::all_of(w.chains.begin(), w.chains.end(), [](const Chain& c) { return c.up && c.rising; });
  }

  void item(std::uint32_t q, std::uint32_t i, const Item& item) {
    const Position here{q, i + 1};
    const auto view = Reader{std::span(s_.queues[q].dwords).subspan(item.dword)}.next();
    // One cause, whatever the buffers hold.
    const bool indirect = item.what == What::indirect;
    if (indirect && !m_.profile.indirect_works && !std::exchange(indirect_, true))
      r_.add({.rule = "indirect-user-queue",
              .places = {here},
              .message = r_.agent(q) +
                         " has an indirect buffer: Linux never sets IB_ENABLE for a queue of KFD, so whether "
                         "its engine executes the packets there is not known, and they are not checked",
              .hint = "write the packets into the queue; sdma contact finds out what a machine does, and --assume "
                      "indirect=works removes this warning",
              .rests_on = {"Q13"}});
    if (indirect && m_.profile.indirect_works)
      r_.add({.rule = "indirect-unknown",
              .places = {here},
              .message = "the packets in this indirect buffer are not checked",
              .hint = "check its bytes separately with sdma check, or write its packets into the queue",
              .rests_on = {"Q13"}});
    if (const auto n = item.info && view.whole() && !item.skipped ? skipped(*item.info, view.dwords) : 0; n > 0)
      condition(here, item, view, "the " + std::to_string(n) + " dwords after this packet");
    bool outside = false;
    detail::outside(s_, view, [&](const detail::Outside& o) {
      outside = true;
      auto d = detail::describe(s_, view, o, "");
      r_.add({.rule = "outside", .places = {here}, .message = std::move(d.message), .hint = std::move(d.hint)});
    });
    const auto& touches = m_.programs[q].touches;
    if (!outside) mapped(s_.queues[q].place, here, std::span(touches).subspan(item.touch, item.touches));
    if (item.sync.word != kNone &&
        (item.sync.op == Op::unknown || (item.what == What::post && m_.words[item.sync.word].unmodelled)))
      r_.add({.rule = "unknown-value",
              .places = {here},
              .message = "the checker does not model the value that this packet leaves in " +
                         r_.word(m_.words[item.sync.word]) + ", so waits for it order nothing",
              .hint = "use add to count, and a fence or swap to announce; anything else needs an order of all posts"});
  }

  void condition(Position here, const Item& item, const PacketView& view, const std::string& dwords) {
    if (item.outcome == Item::Outcome::unknown)
      return r_.add({.rule = "cond-exec-assumed",
                     .places = {here},
                     .message = dwords + " are assumed to execute",
                     .hint = "check the schedule a second time without them",
                     .rests_on = {"Q12"}});
    const auto met = item.outcome == Item::Outcome::met;
    const auto c = decode<CondExec>(view.dwords);
    const auto begin = m_.canonical(c.addr);
    r_.add({.rule = "cond-exec-constant",
            .places = {here},
            .message = dwords + (met ? " always" : " never") +
                       " execute: " + r_.range(begin, begin + sizeof c.reference) + (met ? " always" : " never") +
                       " holds " + std::to_string(c.reference),
            .hint = met ? "omit the condition"
                        : "store " + std::to_string(c.reference) + " to the word, or omit the packets"});
  }

  /// The buffer or signal whose bytes lie at a canonical address.
  std::optional<SymbolOffset> home(std::uint64_t address) const { return find_symbol(s_, GpuVa{address}); }

  /// May a GPU access these bytes?
  void mapped(Place place, Position here, std::span<const Touch> touches) {
    for (const auto& t : touches) {
      const auto l = home(t.begin);
      if (!l) {
        if (m_.options.open || named(t.begin)) continue;
        return r_.add({.rule = "unmapped",
                       .places = {here},
                       .message = r_.range(t.begin, t.end) + " is in neither a buffer nor a signal",
                       .hint = "name a buffer or signal: a numeric address is not mapped"});
      }
      if (l->signal) continue;
      const auto& map = s_.buffers[l->index].map;
      if (lifetimes_[l->index].mapped.test(place.index)) continue;  // lifetimes.cpp knows when
      if (map.empty() || std::find(map.begin(), map.end(), place) != map.end()) continue;
      return r_.add({.rule = "unmapped",
                     .places = {here},
                     .message = to_string(place) + " has not mapped " + name_of(s_, SymbolOffset{false, l->index, 0}),
                     .hint = "add " + to_string(place) + " to its map=, or omit map=, which maps it for all GPUs"});
    }
  }
  /// Does a declaration give this address a name?
  bool named(std::uint64_t address) const {
    const auto all = detail::symbols(s_);
    return std::any_of(all.begin(), all.end(), [&](const auto& l) {
      const auto& at = detail::at_of(s_, l);
      return at && address - at->value < bytes_of(s_, l);
    });
  }

  void overflow(std::uint32_t q) {
    const auto submits = m_.agents[q].submits;
    if (submits == 0) return;
    // A value grows or shrinks with the epoch, so the first epoch or the last one has the extreme.
    auto epoch = submits;
    auto dwords = s_.queues[q].dwords;
    const auto* bad = store_epoch(s_.queues[q], epoch, dwords);
    if (!bad) bad = store_epoch(s_.queues[q], epoch = 1, dwords);
    if (!bad) return;
    const auto& items = m_.programs[q].items;
    const auto at =
        std::partition_point(items.begin(), items.end(), [&](const Item& i) { return i.dword < bad->packet; });
    r_.add({.rule = "epoch-overflow",
            .places = {{q, static_cast<std::uint32_t>(at - items.begin()) + 1}},
            .message = "'" + std::string(bad->field) + "' does not fit its field in epoch " + std::to_string(epoch),
            .hint = "restart the schedule before that epoch; negative values cannot be compared"});
  }

  /// The rules about what a host thread or a kernel accesses, each action once, and those about its values.
  void thread(std::uint32_t a) {
    const bool kernel = m_.agents[a].kind == Agent::Kind::kernel;
    std::set<std::uint32_t> seen, wide;
    for (const auto& s : m_.agents[a].steps) {
      const Position here{a, s.position};
      if (s.too_wide && wide.insert(s.source).second) too_wide(here, s);
      const bool word = s.sync && s.sync->word != kNone && !rptr_of(s.sync->address);
      if ((!word && s.kind != Step::Kind::touch) || !seen.insert(s.source).second) continue;
      if (!kernel && word) host_word(here, s);
      if (!kernel) continue;
      const auto touches = word ? std::vector<Touch>{{s.sync->address, s.sync->address + s.sync->bytes, Mode::poll}}
                                : m_.touches(m_.action(a, s));
      mapped(s_.kernels[m_.agents[a].index].place, here, touches);
      if (!word) shifted_sum(here, touches);
    }
  }
  void host_word(Position here, const Step& s) {
    const auto place = m_.place_at(s.sync->address).value_or(Place::host());
    const bool wait = s.kind == Step::Kind::poll || s.kind == Step::Kind::sample;
    if (place.is_host() || m_.profile.host_link_xgmi || (wait && m_.profile.bar_read_free)) return;
    r_.add({.rule = "host-vram",
            .places = {here},
            .message = r_.agent(here.agent) + (wait ? " reads " : " stores to ") + r_.word(m_.words[s.sync->word]) +
                       " in the memory of " + to_string(place) + " without a flush",
            .hint = "put the signal in host memory: engines can poll it and store to it there too",
            .rests_on = {wait ? "C9" : "C8"}});
  }
  /// A run stops at such an action.
  void too_wide(Position here, const Step& s) {
    const auto round = s.epoch == 0 ? "" : " in round " + std::to_string(s.epoch);
    r_.add({.rule = "epoch-overflow",
            .places = {here},
            .message = r_.agent(here.agent) + ": " + std::to_string(s.value) + " does not fit the 32 bits of " +
                       r_.word(m_.words[s.sync->word]) + round,
            .hint = "declare the signal with bits=64, or end the schedule before that round"});
  }
  /// Lanes add in no order, so one may store its sum before another has loaded what was there.
  void shifted_sum(Position here, const std::vector<Touch>& touches) {
    for (const auto& to : touches)
      for (const auto& from : touches) {
        const bool same = from.begin == to.begin && from.end == to.end;
        if (to.mode != Mode::write || from.mode != Mode::read || same || from.begin >= to.end || to.begin >= from.end)
          continue;
        const auto common = r_.range(std::max(from.begin, to.begin), std::min(from.end, to.end));
        return r_.add({.rule = "overlap",
                       .places = {here},
                       .message = r_.agent(here.agent) + " stores a sum to " + r_.range(to.begin, to.end) +
                                  ", a shifted part of its own input " + r_.range(from.begin, from.end) +
                                  ": its lanes are in no order",
                       .hint = "store the sum to other bytes, or to exactly those of a part",
                       .overlap = common});
      }
  }

  void signals() {
    for (const auto& w : m_.words) {
      const auto l = home(w.address);
      if (w.polled || w.chains.empty() || !l || !l->signal || m_.open) continue;
      const auto expected = std::any_of(s_.expectations.begin(), s_.expectations.end(), [&](const auto& e) {
        return e.kind != Schedule::Expectation::Kind::finding &&
               (m_.canonical(e.left.va) - w.address < w.bytes || m_.canonical(e.right.va) - w.address < w.bytes);
      });
      const auto agent = w.chains.front().agent;
      if (expected || looked_at(w) || mailbox(agent)) continue;
      const auto& post = m_.post(w.chains.front(), 0);
      Finding f{
          .rule = "unused-signal",
          .message = r_.word(w) + " is written (" + r_.place({agent, post.position}) + "), but nothing waits for it",
          .hint = "wait for it, or remove it"};
      const auto* map = m_.options.map;
      if (map && l->index < map->signals.size()) f.at = r_.position(map->signals[l->index]);
      else f.where = m_.options.file + ": signal " + r_.word(w);
      r_.add(std::move(f));
    }
  }
  bool looked_at(const Word& w) const {
    return std::any_of(m_.programs.begin(), m_.programs.end(), [&](const Program& p) {
      return std::any_of(p.touches.begin(), p.touches.end(), [&](const Touch& t) {
        const bool looks = t.mode == Mode::read || t.mode == Mode::condition || t.mode == Mode::constant;
        return looks && t.begin < w.address + w.bytes && w.address < t.end;
      });
    });
  }
  /// Does the queue use TRAP? Then it may store to a mailbox, which the kernel reads.
  bool mailbox(std::uint32_t agent) const {
    return agent < m_.queue_count() && std::any_of(m_.programs[agent].items.begin(), m_.programs[agent].items.end(),
                                                   [](const Item& i) { return i.info == &info_of<Trap>(); });
  }

  const Model& m_;
  const Schedule& s_;
  Reporter& r_;
  const std::vector<detail::Lifetime> lifetimes_ = detail::lifetimes(s_);
  std::set<std::pair<std::uint32_t, std::uint32_t>> host_;
  bool indirect_ = false;                ///< an indirect packet has been reported
  std::set<std::uint64_t> epoch_words_;  ///< what the queue polls for a value that depends on the epoch
};

}  // namespace

void find_in_packets(const Model& m, Reporter& r) { Packets{m, r}.run(); }

}}}  // namespace sdma::v0_3::check_detail
