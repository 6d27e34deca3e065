// SPDX-License-Identifier: MIT
// Ways to change the text of a schedule that may remove a finding. They follow the mistakes that people make: a wait
// that is missing, comes too late, or waits for another value or signal; a credit that is missing; a constant where
// each round needs a value of its own; a signal that is set back; a completion that comes too early.
#include "engine_plan.hpp"
#include "team_changes.hpp"

#include <iterator>

namespace sdma { inline namespace v0_3 { namespace check_detail {
namespace {

class Changes : private TeamChanges {
 public:
  Changes(const SourceLines& text, const CheckFinding& f) : TeamChanges(text, f) {}

  std::vector<SourceLines> run() {
    const auto& rule = f_.diagnostic.rule;
    const auto is = [&](auto... names) { return ((rule == names) || ...); };
    if (!f_.edits.empty()) known();
    if (is("kernel-scope")) without_scope();
    if (is("ring-full")) larger_ring();
    if (is("engine-wait", "engine-refused")) other_engines();
    if (is("data-as-flag")) fence_instead();
    if (is("vram-fence", "host-vram")) host_signal();
    if (is("race", "cond-exec-unordered")) race();
    if (is("use-after-free", "use-before-alloc", "bad-lifetime")) lifetime();
    if (is("unawaited", "early-completion", "foreign-completion", "freed-while-polled")) completion();
    if (is("fence-race")) apart();
    if (is("never-submitted")) submit_all();
    if (is("stale-wait", "missed-value", "reset-while-polled", "unreachable-count", "never-met", "deadlock",
           "self-wait")) {
      wait_itself();
      if (rule == "deadlock" || f_.diagnostic.message.find("submitted") != std::string::npos) submit_all();
    }
    return std::move(out_);
  }

 private:
  void known() {
    change([&](SourceLines& t) {
      for (const auto& e : f_.edits) t.insert(text_.id(e.line), e.text);
    });
  }
  void without_scope() {
    for (const auto p : places_)
      if (auto line = text_.text(p); line.find(" scope=agent") != line.npos)
        replaced(p, line.erase(line.find(" scope=agent"), 12));
  }
  void larger_ring() {
    const auto& hint = f_.diagnostic.hint;
    const auto at = hint.find("ring=");
    if (at == hint.npos || places_.empty()) return;
    const auto size = hint.substr(at + 5, hint.find_first_of(" )", at) - at - 5);
    const auto header = text_.agent(places_.front()).begin;
    replaced(header, with_field(text_.text(header), "ring", size));
  }
  /// The engine that the node recommends for what the queue copies to, or one with another number.
  void other_engines() {
    for (const auto p : places_) {
      const auto header = text_.agent(p).begin;
      auto line = text_.text(header);
      auto place = field_of(text_.text(p), "dst");
      place = place.substr(0, place.find('.'));
      for (const auto* name : {" peer=", " engine="})
        if (const auto at = line.find(name); at != line.npos)
          line.erase(at, std::min(line.find(' ', at + 1), line.size()) - at);
      if (!place.empty() && line.find(" " + place + ".") == line.npos) replaced(header, line + " peer=" + place);
      for (int engine = 2; engine < 16; ++engine) replaced(header, fmt::format("{} engine={}", line, engine));
    }
  }
  void fence_instead() {
    for (const auto id : lines_with([](const std::string& k) { return k == "write" || k == "fill"; })) {
      const auto line = text_.text(id);
      auto value = field_of(line, "data");
      if (value.starts_with("[")) value = value.substr(1, value.find_first_of(" ]*") - 1);
      replaced(id, fmt::format("fence addr={} value={}", field_of(line, "dst"), value));
    }
  }
  /// The signal in VRAM becomes one of the host, in every line.
  void host_signal() {
    if (places_.empty()) return;
    const auto from = sync(places_.front()).signal;
    const auto dot = from.find('.');
    if (dot == from.npos || from.starts_with("host")) return;
    auto to = "host" + from.substr(dot);
    const auto source = text_.source();
    if (source.find(to) != source.npos) to += "_host";
    change([&](SourceLines& t) {
      for (const auto id : text_.all()) {
        auto line = text_.text(id);
        const auto old = line;
        for (auto at = line.find(from); at != line.npos; at = line.find(from, at + to.size()))
          line.replace(at, from.size(), to);
        if (line != old) t.replace(id, line);
      }
    });
  }

  void race() {
    if (places_.empty()) return;
    const auto a = places_.front(), b = places_.back();
    const auto one = text_.agent(a), two = text_.agent(b);
    const bool overwrites = f_.diagnostic.message.find("before") != std::string::npos &&
                            f_.diagnostic.message.find("has read it") != std::string::npos;
    const bool team = one.begin == two.begin;  // one text, that of a loop over the GPUs
    if (team && f_.locations.front().agent == f_.locations.back().agent) {
      word_of_own_gpu(a, b);
      every_line();
      return same_queue(a, b);
    }
    if (overwrites && !team) credits(a, b);
    if (!team) announced(a, b);
    values_of_waits(two, b);
    misplaced(a, b);
    each_of_team(a, b);
    for (const auto& s : signals_near(two, b)) rounds_of(s);
    other_signals(two, b);
    every_line();
    barrier(a, b);
    word_of_each_gpu(a, b, overwrites);
    if (!overwrites) word_of_each_gpu(b, a, true);  // perhaps the other order was meant
    if (team) return;
    if (!overwrites) own_signal(a, b, 0, "ready");
    if (!overwrites && has_rounds()) own_signal(a, b, 1, "free");
    // Perhaps the other order was meant.
    announced(b, a);
    own_signal(b, a, 0, "free");
  }
  /// The thread that frees waits for the use, or the user for the allocation.
  void lifetime() {
    if (places_.size() < 2) return;
    const auto a = places_.front(), b = places_.back();
    const auto ends = [](const std::string& k) { return k == "free" || k == "unmap" || k == "close"; };
    // Memory that is gone before the use begins: its end moves to the end of the thread, or after the use.
    if (ends(text_.keyword(a))) moved(a, text_.agent(a).end);
    if (text_.agent(a).begin == text_.agent(b).begin) return moved(a, text_.next(b));
    announced(a, b);
    values_of_waits(text_.agent(b), b);
    misplaced(a, b);
    own_signal(a, b, 0, "over");
  }
  /// A wait that comes too late, a post that comes too early.
  void misplaced(LineId a, LineId b) {
    const auto one = text_.agent(a), two = text_.agent(b);
    for (auto id = text_.next(b); id != 0 && id != two.end; id = text_.next(id))
      if (waits(text_.keyword(id))) moved(id, b);
    for (auto id = one.begin; id != 0 && id != a; id = text_.next(id))
      if (posts(text_.keyword(id))) moved(id, text_.next(a));
  }
  /// Of queues that a loop over the GPUs declares, each waits for a word of its own GPU, and posts where its data goes.
  void each_of_team(LineId a, LineId b) {
    const auto own = own_place(b);
    const auto insert_wait = [&](const std::string& condition, const std::string& signal, const std::string& value) {
      inserted(b, condition + wait_line(in_queue(b), signal, value));
    };
    for (const auto id : text_.inside(text_.agent(b)))
      if (waits(text_.keyword(id))) renamed(id, at_place(own, sync(id).signal));
    for (const auto id : text_.inside(text_.agent(a))) {
      const auto s = sync(id);
      if (!posts(text_.keyword(id)) || s.signal.find('{') == s.signal.npos) continue;
      renamed(id, at_place(destination(id), s.signal));
      const auto word = at_place(own, s.signal);
      const auto [condition, value] = earlier(b, 1);
      insert_wait(condition, word, value);
      insert_wait("", word, s.value);
      insert_wait("", word, count_at(b));
      if (const auto l = team(b); !l.name.empty())
        insert_wait(fmt::format("when {} > {}: ", l.name, l.from), word, s.value);
      if (const auto n = ends_at()) insert_wait("", word, *n);
    }
  }
  /// A post that announces the first access is there: the second one waits for it.
  void announced(LineId a, LineId b) {
    const auto end = text_.agent(a).end;
    std::size_t found = 0;
    for (auto id = text_.next(a); id != 0 && id != end; id = text_.next(id))
      if (const auto s = sync(id); posts(text_.keyword(id)) && found++ < 2) {
        inserted(b, wait_line(in_queue(b), s.signal, s.value));
        // As the thread waits for another such word.
        for (const auto w : text_.inside(text_.agent(b)))
          if (waits(text_.keyword(w)) && sync(w).signal != s.signal && alike(sync(w).signal, s.signal))
            inserted(b, with_signal(w, s.signal));
      }
  }
  /// A credit of the reader lets the writer continue: as late as possible, for as many slots as there are.
  void credits(LineId a, LineId b) {
    const bool loops = !loop(a).name.empty() && !loop(b).name.empty();
    for (int lag = loops ? 4 : 1; lag > 0; --lag) own_signal(a, b, lag, "credit");
    if (!loops && has_rounds()) own_signal(a, b, 0, "credit");
  }
  void own_signal(LineId a, LineId b, int lag, const std::string& name) {
    const auto from = count_at(a);
    const auto [condition, value] = lag > 0 ? earlier(b, lag) : std::pair(std::string(), count_at(b));
    change([&, condition = condition, value = value](SourceLines& t) {
      const auto signal = declared(t, name);
      t.insert(t.next(a), post_line(in_queue(a), signal, from));
      t.insert(b, condition + wait_line(in_queue(b), signal, value));
    });
  }
  void same_queue(LineId a, LineId b) {
    if (!in_queue(b)) return;
    for (auto id = text_.agent(a).begin; id != 0 && id != text_.agent(a).end; id = text_.next(id))
      if (text_.keyword(id) == "poll_mem") rounds_of(sync(id).signal);
    const auto h = host();
    if (has_rounds())
      for (const auto id : text_.inside(h))
        if (text_.keyword(id) == "wait") values_of(id);
    change([&](SourceLines& t) {
      const auto signal = declared(t, "before");
      t.insert(b, post_line(true, signal, count_at(b)));
      t.insert(b, wait_line(true, signal, count_at(b)));
    });
    if (a == b && h.begin != 0) each_wait_in_rounds(h);
  }
  /// A host that does not wait in its rounds waits there for what it waits for at the end.
  void each_wait_in_rounds(SourceLines::Block h) {
    for (const auto id : text_.inside(h))
      if (text_.keyword(id) == "repeat")
        for (const auto w : text_.inside(h))
          if (text_.keyword(w) == "wait" && text_.block(w).begin != id) {
            const auto s = sync(w);
            inserted(text_.block(text_.next(id)).end, wait_line(false, s.signal, "epoch"));
          }
    host_waits(h);
  }
  /// The ends of the blocks in which a host submits, and its own.
  std::vector<LineId> ends_of(SourceLines::Block h) const {
    std::vector<LineId> ends{h.end};
    for (const auto id : text_.inside(h))
      if (text_.keyword(id) == "submit" && text_.block(id).begin != h.begin)
        ends.insert(ends.begin(), text_.block(id).end);
    return ends;
  }
  /// The host waits for what queues store or count in words of its own.
  void host_waits(SourceLines::Block h) {
    std::set<std::string> known;
    for (const auto id : lines_with(posts)) {
      const auto s = sync(id);
      if (!in_queue(id) || !s.signal.starts_with("host.") || !known.insert(s.signal).second) continue;
      const auto all = team(id);
      const auto n = all.name.empty() ? s.value : all.to;
      for (const auto end : ends_of(h))
        if (text_.keyword(id) != "atomic") inserted(end, wait_line(false, s.signal, s.value));
        else if (s.value.starts_with('-')) inserted(end, fmt::format("wait {} == 0", s.signal));
        else inserted(end, wait_line(false, s.signal, in_rounds(n)));
    }
  }

  void completion() {
    const auto h = host();
    if (places_.empty() || h.begin == 0) return;
    const auto data = places_.front(), post = places_.back();
    const auto own = text_.agent(data);
    if (f_.diagnostic.rule == "early-completion") moved(data, text_.next(post));
    // The host waits for the post that is there, or for more of what it waits for.
    const auto ends = ends_of(h);
    for (const auto id : text_.inside(h))
      if (text_.keyword(id) == "wait" && posts(text_.keyword(post)) && sync(id).signal == sync(post).signal)
        values_of(id);
    for (const auto id : text_.inside(h))
      if (text_.keyword(id) == "wait") values_of(id);
    if (posts(text_.keyword(post)))
      for (const auto end : ends) {
        const auto s = sync(post);
        if (const auto n = ends_at()) inserted(end, fmt::format("wait {} == {}", s.signal, *n));
        if (text_.keyword(post) == "fence") inserted(end, fmt::format("wait {} >= {}", s.signal, s.value));
        if (text_.keyword(post) == "atomic") inserted(end, fmt::format("wait {} >= epoch", s.signal));
      }
    for (auto id = own.begin; id != 0 && id != data; id = text_.next(id))
      if (posts(text_.keyword(id))) moved(id, own.end);
    // A queue of every GPU counts in a word that the host does not wait for; or it has no completion, and gets one.
    const auto all = team(data);
    host_waits(h);
    for (const auto end : ends)
      change([&](SourceLines& t) {
        const auto signal = declared(t, "complete");
        const bool one = all.name.empty();
        t.insert(own.end, one ? post_line(true, signal, in_rounds("1"))
                              : fmt::format("atomic op=add_rtn_32 addr={} value=1", signal));
        t.insert(end, wait_line(false, signal, in_rounds(one ? "1" : all.to)));
      });
  }

  /// Two stores to one signal: a counter, or a signal each.
  void apart() {
    const auto signal = places_.empty() ? std::string() : sync(places_.back()).signal;
    if (signal.empty()) return;
    std::vector<LineId> stores;
    for (const auto id : lines_with(posts))
      if (sync(id).signal == signal && text_.keyword(id) == "fence") stores.push_back(id);
    const auto counted = [&](SourceLines& t) {
      for (const auto id : stores) t.replace(id, counting(signal));
    };
    for (const auto id : lines_with(waits))
      if (sync(id).signal == signal && !stores.empty())
        change([&](SourceLines& t) {
          counted(t);
          t.replace(
              id, with_value(id, has_rounds() ? fmt::format("{}*epoch", stores.size()) : std::to_string(stores.size()),
                             has_rounds()));
        });
    if (!stores.empty()) change(counted);
    if (const auto h = host(); h.begin != 0 && places_.size() > 1)
      change([&](SourceLines& t) {
        const auto own = declared(t, "second");
        auto line = text_.text(places_.back());
        t.replace(places_.back(), line.replace(line.find(signal), signal.size(), own));
        t.insert(h.end, wait_line(false, own, sync(places_.back()).value));
      });
    for (const auto p : places_)
      if (text_.keyword(p) == "set") change([&](SourceLines& t) { t.remove(p); });
    announced(places_.front(), places_.back());
    announced(places_.back(), places_.front());
  }

  void submit_all() {
    for (const auto id : lines_with([](const std::string& k) { return k == "submit"; })) replaced(id, "submit *");
  }
};

}  // namespace

std::vector<SourceLines> changes_for(const SourceLines& text, const CheckReport& r, const CheckFinding& f) {
  std::vector<SourceLines> all;
  if (f.diagnostic.rule == "engine-wait")
    for (const auto& plan : r.engine_plans)
      if (auto changed = with_engines(text, plan)) all.push_back(std::move(*changed));
  auto more = Changes{text, f}.run();
  all.insert(all.end(), std::make_move_iterator(more.begin()), std::make_move_iterator(more.end()));
  return all;
}

}}}  // namespace sdma::v0_3::check_detail
