// SPDX-License-Identifier: MIT
#pragma once
// Changes of several lines, for collectives that are one text for all GPUs. Internal.
//
//   a word for each GPU      for i in 0..N                                a says in the GPU where the bytes are that it
//                              queue gpu{i}.a  .. fence gpu{p}.ready      is done, and b waits there: a flag if b reads
//                              queue gpu{i}.b  poll gpu{i}.ready ..       the bytes, a credit if it overwrites them
//   the same in every line   all posts move after the data that they announce; all waits ask for the count of their
//                            round; all flags have a value of their own in each round of a loop
//   a barrier of the host    all queues of one phase count, and the host waits before it submits the next
#include "wait_changes.hpp"

namespace sdma { inline namespace v0_3 { namespace check_detail {

class TeamChanges : protected WaitChanges {
 protected:
  using WaitChanges::WaitChanges;

  /// `a` has to come before `b`. `reads`: `a` reads bytes that `b` overwrites.
  void word_of_each_gpu(LineId a, LineId b, bool reads) {
    for (const auto& from : places(a, !reads))
      for (const auto& to : places(b, reads)) word_of_each_gpu(a, b, reads, from, to);
  }
  void word_of_each_gpu(LineId a, LineId b, bool reads, const std::string& from, const std::string& to) {
    for (const auto& post : levels(a, true))
      for (const auto& wait : levels(b, false)) {
        const auto one = loop(post.at), two = loop(wait.at);
        if (one.from != two.from || one.to != two.to) continue;
        const bool rounds = !one.name.empty();
        for (int lag = reads && rounds ? 4 : 0; lag >= (reads && rounds ? 1 : 0); --lag)
          for (const auto& condition : conditions(b)) each(from, to, post, wait, lag, condition);
      }
  }
  /// The queue itself waits in a word of its GPU until what it has done is complete.
  void word_of_own_gpu(LineId a, LineId b) {
    const auto own = own_place(b);
    for (const auto before : {text_.next(a), b})
      change([&](SourceLines& t) {
        const auto signal = own + declared_for_all(t, "before");
        const auto value = count_at(before == b ? b : a);
        t.insert(before, post_line(true, signal, value));
        t.insert(before, wait_line(true, signal, value));
      });
  }

  /// Changes that are the same in every line of their kind.
  void every_line() {
    posts_behind_data();
    waits_at_sources();
    counts_of_rounds();
    flags_of_rounds();
  }

  /// The host waits between two phases until all queues of the first are complete.
  void barrier(LineId a, LineId b) {
    if (!in_queue(a) || !in_queue(b)) return;
    const auto all = team(a);
    for (const auto id : text_.inside(host()))
      if (text_.keyword(id) == "submit")
        change([&](SourceLines& t) {
          const auto signal = declared(t, "phase");
          t.insert(text_.agent(a).end, fmt::format("atomic op=add_rtn_32 addr={} value=1", signal));
          t.insert(id, wait_line(false, signal, in_rounds(all.name.empty() ? "1" : all.to)));
        });
  }

 private:
  /// A place to insert a line, and the line whose loop counts there.
  struct Level {
    LineId before{}, at{};
  };
  /// Before a line or, for a post, after it; then before or after the blocks around it in its queue or thread.
  std::vector<Level> levels(LineId id, bool post) const {
    std::vector<Level> all{{post ? text_.next(id) : id, id}};
    const auto agent = text_.agent(id).begin;
    for (auto b = text_.block(id); b.begin != 0 && b.begin != agent; b = text_.block(b.begin))
      all.push_back({post ? text_.next(b.end) : b.begin, b.begin});
    return all;
  }
  /// The GPU of the bytes that a line writes or reads, "gpu{i}", or that of its kernel; then, of lines that are
  /// executed in its place, as after an `else`.
  std::vector<std::string> places(LineId id, bool writes) const {
    std::vector<std::string> all;
    const auto add = [&](const std::string& place) {
      if (place.starts_with("gpu") && std::find(all.begin(), all.end(), place) == all.end()) all.push_back(place);
    };
    const auto of = [&](LineId l) { return place_of(field_of(text_.text(l), writes ? "dst" : "src")); };
    add(in_queue(id) ? of(id) : own_place(id));
    if (const auto b = text_.block(id); text_.keyword(b.begin) == "if")
      for (const auto l : text_.inside(b)) add(of(l));
    return all;
  }
  /// What decides in the text who takes part, and whether a variable of the lines around is more than 0.
  std::vector<std::string> conditions(LineId id) const {
    std::vector<std::string> all{""};
    const auto add = [&](std::string c) {
      if (!c.empty() && std::find(all.begin(), all.end(), c) == all.end()) all.push_back(std::move(c));
    };
    for (const auto l : text_.inside(text_.agent(id))) {
      const auto line = text_.text(l);
      if (line.starts_with("when ")) add(line.substr(5, line.find(": ") - 5));
      else if (const auto at = line.find("if "); at == 0 || line.starts_with("else if ")) add(line.substr(at + 3));
    }
    for (auto b = text_.agent(id); b.begin != 0; b = text_.block(b.begin)) {
      if (const auto l = loop(b.begin); !l.name.empty()) add(l.name + " > 0");
      const auto around = text_.block(b.begin);
      for (const auto l : text_.inside(around))
        if (const auto line = text_.text(l); text_.block(l).begin == around.begin && line.starts_with("let "))
          add(line.substr(4, line.find(' ', 4) - 4) + " > 0");
    }
    return all;
  }
  void each(const std::string& from, const std::string& to, Level post, Level wait, int lag,
            const std::string& condition) {
    const auto value = lag > 0 ? earlier(wait.at, lag) : std::pair(std::string(), count_at(wait.at));
    auto when = value.first;  // "when r >= 2: "
    if (!condition.empty())
      when = when.empty() ? "when " + condition + ": "
                          : fmt::format("when ({})*({}) == 1: ", condition, when.substr(5, when.size() - 7));
    change([&](SourceLines& t) {
      const auto name = declared_for_all(t, lag > 0 ? "credit" : "ready");
      t.insert(post.before, post_line(in_queue(post.at), from + name, count_at(post.at)));
      t.insert(wait.before, when + wait_line(in_queue(wait.at), to + name, value.second));
    });
  }

  void posts_behind_data() {
    change([&](SourceLines& t) {
      for (const auto id : lines_with(posts)) {
        const auto data = text_.next(id);
        if (data == 0 || text_.agent(data).begin != text_.agent(id).begin) continue;
        if (!text_.keyword(data).starts_with("copy") && text_.keyword(data) != "store") continue;
        t.insert(text_.next(data), text_.text(id));
        t.remove(id);
      }
    });
  }
  /// Each wait is for the word of the GPU from which the next copy of its queue reads.
  void waits_at_sources() {
    change([&](SourceLines& t) {
      for (const auto id : lines_with(waits))
        for (auto l = text_.next(id); in_queue(id) && l != 0 && l != text_.agent(id).end; l = text_.next(l)) {
          const auto source = place_of(field_of(text_.text(l), "src"));
          if (source.empty()) continue;
          const auto line = with_signal(id, at_place(source, sync(id).signal));
          if (line != text_.text(id)) t.replace(id, line);
          break;
        }
    });
  }
  bool in_repeat(LineId id) const {
    for (auto b = text_.block(id); b.begin != 0; b = text_.block(b.begin))
      if (text_.keyword(b.begin) == "repeat") return true;
    return false;
  }
  void counts_of_rounds() {
    change([&](SourceLines& t) {
      for (const auto id : lines_with(waits))
        if (const auto value = sync(id).value; in_repeat(id) && value.find("epoch") == value.npos)
          t.replace(id, with_value(id, in_rounds(value), true));
    });
  }
  /// "gpu1.full" of "gpu1.full{r%2}" and "gpu1.full0".
  static std::string stem(std::string signal) {
    if (const auto brace = signal.find('{', signal.find('.')); brace != signal.npos) signal.resize(brace);
    while (!signal.empty() && signal.back() >= '0' && signal.back() <= '9') signal.pop_back();
    return signal;
  }
  /// What is announced with one value in all rounds of a loop gets one for each; a word of several, one of its own.
  void flags_of_rounds() {
    change([&](SourceLines& t) {
      std::set<std::string> changed;
      for (const auto id : lines_with(posts)) {
        const auto s = sync(id);
        const auto l = loop(id);
        if (counts(id) || !number(s.value) || l.name.empty()) continue;
        const auto turns = s.signal.find("{" + l.name + "%");
        const auto after = turns + l.name.size() + 2;
        t.replace(id, with_value(id, turns == s.signal.npos
                                         ? count_at(id)
                                         : fmt::format("{}/{}+1", l.name,
                                                       s.signal.substr(after, s.signal.find('}', after) - after))));
        changed.insert(stem(s.signal));
      }
      for (const auto id : lines_with(waits))
        if (const auto s = sync(id); number(s.value) && !loop(id).name.empty() && changed.contains(stem(s.signal)))
          t.replace(id, with_value(id, count_at(id), true));
    });
  }
};

}}}  // namespace sdma::v0_3::check_detail
