// SPDX-License-Identifier: MIT
// Ways to change the text of a schedule that may remove a finding. They follow the mistakes that people make: a wait
// that is missing, comes too late, or waits for another value or signal; a credit that is missing; a constant where
// each round needs a value of its own; a signal that is set back; a completion that comes too early.
#include "changer.hpp"

#include <set>

namespace sdma::inline v0::check_detail {
namespace {

class Changes : private Changer {
 public:
  Changes(const SourceLines& text, const CheckFinding& f) : Changer(text, f) {}

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
    if (is("unawaited", "early-completion", "foreign-completion", "freed-while-polled")) completion();
    if (is("fence-race")) apart();
    if (is("never-submitted")) submit_all();
    if (is("stale-wait", "missed-value", "reset-while-polled", "unreachable-count", "never-met", "deadlock",
           "self-wait"))
      wait_itself();
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
    if (one.begin == two.begin) return same_queue(a, b);
    if (overwrites) credits(a, b);
    announced(a, b);
    values_of_waits(two, b);
    // A wait that comes too late, a post that comes too early.
    for (auto id = text_.next(b); id != 0 && id != two.end; id = text_.next(id))
      if (waits(text_.keyword(id))) moved(id, b);
    for (auto id = one.begin; id != 0 && id != a; id = text_.next(id))
      if (posts(text_.keyword(id))) moved(id, text_.next(a));
    for (const auto& s : signals_near(two, b)) rounds_of(s);
    if (!overwrites) own_signal(a, b, 0, "ready");
    if (!overwrites && has_rounds()) own_signal(a, b, 1, "free");
    other_signals(two, b);
    // Perhaps the other order was meant.
    announced(b, a);
    own_signal(b, a, 0, "free");
  }
  /// A post that announces the first access is there: the second one waits for it.
  void announced(LineId a, LineId b) {
    const auto end = text_.agent(a).end;
    std::size_t found = 0;
    for (auto id = text_.next(a); id != 0 && id != end; id = text_.next(id))
      if (posts(text_.keyword(id)) && found++ < 2) inserted(b, wait_line(in_queue(b), sync(id).signal, sync(id).value));
  }
  /// A credit of the reader lets the writer continue: as late as possible, for as many slots as there are.
  void credits(LineId a, LineId b) {
    const bool loops = !loop(a).name.empty() && !loop(b).name.empty();
    for (int lag = loops ? 4 : 1; lag > 0; --lag) own_signal(a, b, lag, "credit");
    if (!loops && has_rounds()) own_signal(a, b, 0, "credit");
  }
  void own_signal(LineId a, LineId b, int lag, const std::string& name) {
    const auto from = count_at(a);
    const auto l = loop(b);
    auto value = count_at(b);
    std::string condition;
    if (lag > 0 && !l.name.empty()) {
      condition =
          l.from == "0" ? fmt::format("when {} >= {}: ", l.name, lag) : fmt::format("when {} > {}: ", l.name, lag);
      value = l.from == "0" && lag == 1 ? l.name : fmt::format("{}-{}", l.name, l.from == "0" ? lag - 1 : lag);
    } else if (lag > 0 && value == "epoch") {
      value = "epoch-1";
    }
    change([&](SourceLines& t) {
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
  }

  /// Waits of a thread before a line: their values are one too small, or those of another post.
  void values_of_waits(SourceLines::Block agent, LineId before) {
    for (const auto id : text_.inside(agent)) {
      if (id == before) break;
      if (waits(text_.keyword(id))) values_of(id);
    }
  }
  void values_of(LineId wait) {
    const auto s = sync(wait);
    if (s.signal.empty()) return;
    const auto n = number(s.value);
    replaced(wait, with_value(wait, n ? std::to_string(*n + 1) : s.value + "+1"));
    std::set<std::string> values;
    for (const auto id : lines_with(posts))
      if (const auto p = sync(id); p.signal == s.signal && values.insert(p.value).second) {
        if (f_.diagnostic.rule == "never-met") replaced(id, with_value(id, s.value));
        replaced(wait, with_value(wait, p.value));
        replaced(wait, with_value(wait, p.value, true));
      }
    if (const auto end = ends_at()) {
      replaced(wait, with_value(wait, *end));
      replaced(wait, with_value(wait, *end, true));
    }
    if (has_rounds() && n) {
      replaced(wait, with_value(wait, *n == 1 ? "epoch" : fmt::format("{}*epoch", *n), true));
      if (const auto end = ends_at(); end && number(*end))
        for (const auto id : lines_with([](const std::string& k) { return k == "repeat"; }))
          if (const auto rounds = number(text_.text(id).substr(7));
              rounds && *rounds > 0 && *number(*end) % *rounds == 0)
            replaced(wait, with_value(wait, fmt::format("{}*epoch", *number(*end) / *rounds), true));
    }
  }
  std::vector<std::string> signals_near(SourceLines::Block agent, LineId before) const {
    std::vector<std::string> all;
    for (const auto id : text_.inside(agent)) {
      if (id == before) break;
      if (!waits(text_.keyword(id))) continue;
      const auto s = sync(id).signal;
      if (std::find(all.begin(), all.end(), s) == all.end()) all.push_back(s);
    }
    return all;
  }
  /// The thread waits for a signal that something else posts.
  void other_signals(SourceLines::Block agent, LineId before) {
    std::set<std::string> posted;
    for (const auto id : lines_with(posts)) posted.insert(sync(id).signal);
    for (const auto id : text_.inside(agent)) {
      if (waits(text_.keyword(id)))
        for (const auto& s : posted) {
          auto line = text_.text(id);
          const auto own = sync(id).signal;
          if (s != own) replaced(id, line.replace(line.find(own), own.size(), s));
        }
      if (id == before) break;
    }
  }

  /// Each round has values of its own: stores of 1, 2, .. N become N*epoch-N+1 .. N*epoch, a wait for K one for the
  /// same, and stores of 0 go.
  void rounds_of(const std::string& signal) {
    if (!has_rounds() || signal.empty()) return;
    std::int64_t most = 0;
    std::vector<LineId> all, resets;
    for (const auto id : text_.all()) {
      const auto k = text_.keyword(id);
      if ((!posts(k) && !waits(k)) || sync(id).signal != signal) continue;
      if (k == "atomic" || k == "add") return;
      const auto n = number(sync(id).value);
      if (!n || *n < 0) return;
      most = std::max(most, *n);
      (*n == 0 && posts(k) ? resets : all).push_back(id);
    }
    if (most == 0) return;
    change([&](SourceLines& t) {
      for (const auto id : all) {
        const auto n = *number(sync(id).value);
        const auto value = most == 1 && n == 1 ? std::string("epoch")
                           : n == most         ? fmt::format("{}*epoch", most)
                                               : fmt::format("{}*epoch-{}", most, most - n);
        t.replace(id, with_value(id, value, waits(text_.keyword(id))));
      }
      for (const auto id : resets) t.remove(id);
    });
  }

  void completion() {
    const auto h = host();
    if (places_.empty() || h.begin == 0) return;
    const auto data = places_.front(), post = places_.back();
    const auto own = text_.agent(data);
    if (f_.diagnostic.rule == "early-completion") moved(data, text_.next(post));
    // The host waits for the post that is there, or for more of what it waits for.
    std::vector<LineId> ends{h.end};
    for (const auto id : text_.inside(h))
      if (text_.keyword(id) == "submit" && text_.block(id).begin != h.begin)
        ends.insert(ends.begin(), text_.block(id).end);
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
    // The queue has no completion: it gets one.
    for (const auto end : ends)
      change([&](SourceLines& t) {
        const auto value = has_rounds() ? "epoch" : "1";
        const auto signal = declared(t, "complete");
        t.insert(own.end, post_line(true, signal, value));
        t.insert(end, wait_line(false, signal, value));
      });
  }

  /// Two stores to one signal: a counter, or a signal each.
  void apart() {
    const auto signal = places_.empty() ? std::string() : sync(places_.back()).signal;
    if (signal.empty()) return;
    std::vector<LineId> stores;
    for (const auto id : lines_with(posts))
      if (sync(id).signal == signal && text_.keyword(id) == "fence") stores.push_back(id);
    bool narrow = false;
    for (const auto id : lines_with([](const std::string& k) { return k == "signal"; }))
      narrow =
          narrow || (text_.text(id).starts_with("signal " + signal + " ") && field_of(text_.text(id), "bits") == "32");
    const auto counted = [&](SourceLines& t) {
      for (const auto id : stores)
        t.replace(id, fmt::format("atomic op=add_rtn_{} addr={} value=1", narrow ? 32 : 64, signal));
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

  void wait_itself() {
    std::vector<LineId> waiting;
    for (const auto p : places_)
      if (waits(text_.keyword(p)) && std::find(waiting.begin(), waiting.end(), p) == waiting.end())
        waiting.push_back(p);
    // A signal that is set back.
    for (const auto p : places_)
      if (posts(text_.keyword(p)) && number(sync(p).value) == 0) {
        rounds_of(sync(p).signal);
        const auto block = text_.block(p);
        moved(p, block.end);
        change([&](SourceLines& t) { t.remove(p); });
      }
    for (const auto w : waiting) rounds_of(sync(w).signal);
    for (const auto w : waiting) {
      const auto s = sync(w);
      // It counts past the value.
      if (s.sign == "eq") replaced(w, with_field(text_.text(w), "func", "ge"));
      if (s.sign == "==") replaced(w, fmt::format("wait {} >= {}", s.signal, s.value));
      if (const auto at = s.value.find("epoch-"); at != s.value.npos && s.value != "epoch-1")
        replaced(w, with_value(w, "epoch-1"));
      values_of(w);
      order(w);
      missing_post(w);
    }
    for (const auto w : waiting) other_signals(text_.agent(w), w);
    if (f_.diagnostic.message.find("submitted") != std::string::npos || f_.diagnostic.rule == "deadlock") submit_all();
  }
  /// The wait comes too early: what it needs comes after it in the same thread or queue.
  void order(LineId w) {
    const auto block = text_.agent(w);
    for (auto id = text_.next(w); id != 0 && id != block.end; id = text_.next(id)) {
      const auto k = text_.keyword(id);
      if (posts(k) || k == "submit") {
        moved(id, w);
        moved(w, text_.next(id));
      }
    }
  }
  /// Nothing posts: the host sets the signal after its submit, or a queue announces at its end.
  void missing_post(LineId w) {
    const auto s = sync(w);
    for (const auto id : lines_with(posts))
      if (sync(id).signal == s.signal) return;
    const auto h = host();
    for (const auto id : text_.inside(h))
      if (text_.keyword(id) == "submit") inserted(text_.next(id), fmt::format("set {} = {}", s.signal, s.value));
    for (const auto id : lines_with([](const std::string& k) { return k == "queue"; }))
      if (const auto b = text_.block(text_.next(id)); b.begin == id && b.begin != text_.agent(w).begin)
        inserted(b.end, fmt::format("fence addr={} value={}", s.signal, s.value));
  }
};

}  // namespace

std::vector<SourceLines> changes_for(const SourceLines& text, const CheckFinding& f) { return Changes{text, f}.run(); }

}  // namespace sdma::inline v0::check_detail
