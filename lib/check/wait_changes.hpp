// SPDX-License-Identifier: MIT
#pragma once
// Changes of lines that wait: for another value or another signal, earlier, in a value of each round. Internal.
#include "changer.hpp"

#include <set>

namespace sdma { inline namespace v0_3 { namespace check_detail {

class WaitChanges : protected Changer {
 protected:
  using Changer::Changer;

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
    const auto& rule = f_.diagnostic.rule;
    const bool never = rule == "never-met" || rule == "deadlock" || rule == "self-wait" || rule == "unreachable-count";
    // Any value satisfies a wait for at least 0.
    if (!never || !n || *n > 1) replaced(wait, with_value(wait, stepped(s.value, never ? -1 : 1)));
    std::set<std::string> values;
    for (const auto id : lines_with(posts))
      if (const auto p = sync(id); alike(p.signal, s.signal) && values.insert(p.value).second) {
        if (never) replaced(id, with_value(id, s.value));
        if (never && text_.keyword(id) != "atomic") replaced(id, with_value(id, count_at(id)));
        if (never && text_.keyword(id) == "fence") replaced(id, counting(p.signal));
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
        for (const auto& s : posted) renamed(id, s);
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
      if ((!posts(k) && !waits(k)) || !alike(sync(id).signal, signal)) continue;
      if (counts(id)) return;
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
      posts_of_team(w);
      values_of(w);
      order(w);
      missing_post(w);
    }
    for (const auto w : waiting) other_signals(text_.agent(w), w);
  }
  /// What is to satisfy a wait posts to the word of another GPU: not where its data goes, or not its own.
  void posts_of_team(LineId w) {
    renamed(w, at_place(own_place(w), sync(w).signal));
    for (const auto id : lines_with(posts))
      if (const auto p = sync(id).signal; alike(p, sync(w).signal) && p.find('{') != p.npos) {
        renamed(id, at_place(destination(id), p));
        renamed(id, at_place(own_place(id), p));
      }
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
    const auto queues = lines_with([](const std::string& k) { return k == "queue"; });
    bool posted = false;
    for (const auto id : lines_with(posts)) {
      if (!alike(sync(id).signal, s.signal)) continue;
      posted = true;
      // One queue counts, and another does not.
      for (const auto q : queues)
        if (const auto end = text_.block(text_.next(q)).end; counts(id) && text_.agent(id).begin != q)
          inserted(end, in_queue(id) ? text_.text(id) : counting(s.signal));
    }
    if (posted) return;
    // Each of a team announces its copy where its data goes, and a kernel what it has stored where it is.
    for (const auto id : lines_with([](const std::string& k) { return k.starts_with("copy") || k == "store"; })) {
      if (team(id).name.empty()) continue;
      const auto own = own_place(id), place = in_queue(id) ? destination(id) : own;
      const auto index = own.substr(std::min(own.find('{'), own.size()));
      for (const auto& signal : {at_place(place, s.signal), at_place(place, with_braces(s.signal, index))}) {
        inserted(text_.next(id), post_line(in_queue(id), signal, count_at(id)));
        if (in_queue(id)) inserted(text_.next(id), counting(signal));
      }
    }
    const auto h = host();
    for (const auto id : text_.inside(h))
      if (text_.keyword(id) == "submit") inserted(text_.next(id), fmt::format("set {} = {}", s.signal, s.value));
    for (const auto id : queues)
      if (const auto b = text_.block(text_.next(id)); b.begin == id && b.begin != text_.agent(w).begin) {
        inserted(b.end, fmt::format("fence addr={} value={}", s.signal, s.value));
        inserted(b.end, counting(s.signal));
      }
  }
};

}}}  // namespace sdma::v0_3::check_detail
