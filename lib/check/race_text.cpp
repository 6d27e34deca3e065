// SPDX-License-Identifier: MIT
// What a finding says about a race: which access was meant to come first, and what would order the two.
#include "edits.hpp"
#include "races.hpp"

namespace sdma { inline namespace v0_3 { namespace check_detail {
namespace {

class RaceText {
 public:
  RaceText(const Model& m, Reporter& r) : m_(m), r_(r) {}

  void report(const Race& race) {
    auto a = race.a, b = race.b;
    if (swapped(race)) std::swap(a, b);
    const Position first{a.agent, a.position}, second{b.agent, b.position};
    const auto bytes = r_.range(race.begin, race.end);
    Finding f{.rule = race.rule, .places = {first, second}, .overlap = bytes};
    f.notes = {describe_access(a, race.begin, race.end), describe_access(b, race.begin, race.end)};
    const auto one = r_.agent(a.agent), two = r_.agent(b.agent);
    const auto who = a.agent == b.agent ? r_.place(second) + " of " + two : two;
    const auto other = a.agent == b.agent ? r_.place(first) : one;
    if (race.rule == "race") {
      if (!writes(b.mode)) f.message = who + " may read " + bytes + " before " + other + " has written it";
      else if (!writes(a.mode)) f.message = who + " may overwrite " + bytes + " before " + other + " has read it";
      else f.message = other + " and " + who + " write " + bytes + ", and either may be last";
    } else if (race.rule == "kernel-scope") {
      const bool stays = m_.agents[a.agent].kind == Agent::Kind::kernel && m_.released(a.agent, a.position) == kNone;
      f.message = stays || m_.agents[b.agent].kind != Agent::Kind::kernel
                      ? who + " accesses " + bytes + ", but " + other +
                            " has not released it at system scope: the data may still be in an L2"
                      : who + " reads " + bytes + " without an acquire at system scope: an L2 may hold old data";
      f.hint = stays
                   ? "put buffer_wbl2 sc1 and s_waitcnt vmcnt(0) before the store that announces it, or end the kernel"
                   : "put buffer_inv sc0 sc1 after the wait, or launch the kernel after the wait";
    } else if (race.rule == "network-unflushed") {
      f.message = who + " reads " + bytes + ", which the network (" + other +
                  ") has stored in VRAM: without a flush there, it may read old bytes";
      f.hint = "let the network flush before it changes a word (network_data=flushed), or receive into host memory";
    } else if (race.rule == "data-as-flag") {
      const auto& data = a.mode == Mode::poll ? b : a;
      const auto& poll = a.mode == Mode::poll ? a : b;
      f.message = r_.agent(poll.agent) + " waits for " + bytes + ", which " + r_.agent(data.agent) + " stores as data";
      f.hint =
          "store the flag with a fence or atomic: it waits for all earlier packets of its queue, and a data store does "
          "not";
    } else if (race.rule == "fence-race") {
      f.message = one + " and " + two + " store to " + bytes + ", and either may be last";
      f.hint = "give each its own signal, or let both add to one signal with atomic op=add_rtn_64";
    } else {
      f.message = r_.agent(b.agent) + " may read " + bytes + " before or after it is written";
      f.hint = "put a fence to the word and a poll_mem on it before the cond_exec, which may read early";
    }
    f.more.push_back("overlap " + bytes +
                     (race.rule == "kernel-scope" || race.rule == "network-unflushed"
                          ? ""
                          : "; nothing orders " + r_.place(first) + " before " + r_.place(second)));
    if (read(first.agent))
      f.more.push_back("the rptr of " + r_.agent(first.agent) +
                       " says which packets have been read, and never that one is complete (H8)");
    if (race.more > 0)
      f.more.push_back("and " + std::to_string(race.more) + " more between the same two, in other ranges or rounds");
    f.rests_on = rests_on(race.rule, a, b);
    if (f.hint.empty()) {
      auto proposal = edge(m_, r_, first, second);
      f.hint = std::move(proposal.hint), f.edit = std::move(proposal.edit);
      if (race.seen_earlier && !f.edit)
        f.hint = "a credit is missing: " + one + " has to say that it has read the bytes; " + f.hint;
    }
    if (race.rule == "race" && a.agent != b.agent && !writes(b.mode) && filled(race.begin))
      f.hint += " (if " + r_.place(second) + " is meant to read the old contents, order them the other way round)";
    r_.store(std::move(f));
  }

 private:
  std::string describe_access(const Ref& r, std::uint64_t begin, std::uint64_t end) const {
    std::uint64_t from = begin, to = end;
    if (const auto* item = m_.item_at(r.agent, r.position)) {
      const auto& touches = m_.programs[r.agent].touches;
      for (auto i = item->touch; i < item->touch + item->touches; ++i)
        if (touches[i].mode == r.mode && touches[i].begin <= begin && begin < touches[i].end)
          from = touches[i].begin, to = touches[i].end;
    } else if (const auto* step = m_.step_at(r.agent, r.position); step && step->kind == Step::Kind::touch) {
      const auto& action = m_.action(r.agent, *step);
      auto ranges = action.sum.parts;
      if (r.mode == Mode::write) ranges.clear();
      ranges.insert(ranges.end(), {action.right, action.range});
      for (const auto& range : ranges)
        if (const auto at = m_.canonical(range.va); at <= begin && begin - at < range.bytes) {
          from = at, to = at + range.bytes;
          break;
        }
    }
    // In the order of Mode.
    constexpr std::string_view kVerbs[] = {"reads ",    "writes ", "waits for ", "stores ",
                                           "modifies ", "tests ",  "tests "};
    return std::string(kVerbs[static_cast<std::size_t>(r.mode)]) + r_.range(from, to);
  }

  /// Has this host thread submitted the packet before its own access?
  bool submitted_before(const Ref& host, const Ref& packet) const {
    const Step* begin = nullptr;
    for (const auto& s : m_.agents[packet.agent].steps) {
      if (s.position > packet.position) break;
      if (s.kind == Step::Kind::begin) begin = &s;
    }
    return begin && begin->target == host.agent && begin->target_position < host.position;
  }

  /// Given two unordered accesses: was the one that came second here meant to be first? Earlier rounds are meant to
  /// come first, and so is a queue whose rptr something waits for. If the bytes have contents, a packet is meant to
  /// come before what the thread that has submitted it does later. An access that reads bytes that nothing has written
  /// yet is meant to read what the other writes. Otherwise the order in the file decides.
  bool swapped(const Race& race) const {
    if (race.rule == "kernel-scope" || race.rule == "network-unflushed") return false;
    const auto &a = race.a, &b = race.b;
    if (a.agent == b.agent) return false;
    const auto queue = [&](const Ref& r) { return m_.agents[r.agent].kind == Agent::Kind::queue; };
    const auto one = m_.round_at(a.agent, a.position), two = m_.round_at(b.agent, b.position);
    if (race.rule == "race" && one != 0 && two != 0 && one != two) return one > two;
    if (race.rule == "race" && queue(a) != queue(b) && filled(race.begin)) {
      if (queue(b) && submitted_before(a, b)) return true;
      if (queue(a) && submitted_before(b, a)) return false;
    }
    if (race.rule == "race" && race.seen_earlier) return true;
    if (race.rule == "race" && read(a.agent) != read(b.agent)) return read(b.agent);
    if (race.rule == "race" && writes(a.mode) != writes(b.mode)) return !writes(a.mode) && !race.reads_written;
    return a.agent > b.agent && queue(a);
  }
  /// Has something waited for the rptr of this queue, as for a completion?
  bool read(std::uint32_t agent) const { return agent < m_.queue_count() && m_.programs[agent].rptr; }
  /// Does the byte have defined contents before anything runs?
  bool filled(std::uint64_t at) const {
    const auto l = find_symbol(m_.schedule, GpuVa{at});
    return l && !l->signal && m_.schedule.buffers[l->index].init != Init::poison;
  }

  std::vector<std::string_view> rests_on(std::string_view rule, const Ref& a, const Ref& b) const {
    if (rule == "network-unflushed") return {"C7"};
    if (a.mode == Mode::poll || b.mode == Mode::poll) return {"Q16"};
    if (a.mode == Mode::condition || b.mode == Mode::condition) return {"Q12"};
    if (a.agent == b.agent) {
      const auto* one = m_.item_at(a.agent, a.position);
      const auto* two = m_.item_at(b.agent, b.position);
      if (!one || !two) return {"Q1"};
      if (two->what == What::indirect) return {"Q13"};
      if (one->what == What::stamp) return {"Q10"};
      std::vector<std::string_view> ids{one->what == What::write || two->what == What::write ? "Q2" : "Q1"};
      const auto* fence = m_.next_post(a.agent, a.position);
      if (one->what == What::post) ids = {"Q5"};
      else if (fence && fence->position < b.position) ids.push_back("Q5");
      return ids;
    }
    const auto queue = [&](const Ref& r) { return r.agent < m_.queue_count(); };
    if (queue(a) && queue(b) && m_.programs[a.agent].engine == m_.programs[b.agent].engine) return {"X1", "X3"};
    if (!queue(a) && m_.agents[a.agent].kind == Agent::Kind::kernel) return {"C3"};
    if (!queue(b) && m_.agents[b.agent].kind == Agent::Kind::kernel)
      return rule == "kernel-scope" && m_.profile.kernels_are_dies ? std::vector<std::string_view>{"C4", "C5"}
                                                                   : std::vector<std::string_view>{"C4"};
    if (rule == "fence-race") return {"X6", "X3"};
    return {"X3"};
  }

  const Model& m_;
  Reporter& r_;
};

}  // namespace

void describe(const Model& m, Reporter& r, const Race& race) { RaceText{m, r}.report(race); }

}}}  // namespace sdma::v0_3::check_detail
