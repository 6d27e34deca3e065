// SPDX-License-Identifier: MIT
#pragma once
// What changes.cpp knows about the text of a schedule, and the steps of which its changes consist. Internal.
//
// A value is taken from the text, as "r+1" of "fence addr=gpu1.full value=r+1", so that it is right in every round of a
// loop that both lines have.
#include "../core/words.hpp"
#include "mends.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace sdma { inline namespace v0_3 { namespace check_detail {

inline bool posts(std::string_view keyword) noexcept {
  return keyword == "fence" || keyword == "atomic" || keyword == "set" || keyword == "add";
}
inline bool waits(std::string_view keyword) noexcept { return keyword == "poll_mem" || keyword == "wait"; }
inline std::optional<std::int64_t> number(std::string_view s) noexcept { return detail::whole_number<std::int64_t>(s); }

/// A line that waits or posts, in whichever form: "poll_mem addr=S func=ge reference=V", "wait S >= V", "set S = V".
struct SyncLine {
  std::string signal{}, sign{}, value{};
};

/// The changes that one finding suggests: each is the whole text, with a few lines changed.
class Changer {
 protected:
  Changer(const SourceLines& text, const CheckFinding& f) : text_(text), f_(f) {
    for (const auto& l : f.locations) places_.push_back(text.id(l.line));
    std::erase(places_, 0u);
  }

  SyncLine sync(LineId id) const {
    const auto line = text_.text(id), word = text_.keyword(id);
    if (word == "poll_mem") return {field_of(line, "addr"), field_of(line, "func"), field_of(line, "reference")};
    if (word == "fence" || word == "atomic") return {field_of(line, "addr"), "", field_of(line, "value")};
    if (word != "wait" && word != "set" && word != "add") return {};
    const auto at = line.find(word + " ") + word.size() + 1;
    const auto signal = line.substr(at, line.find(' ', at) - at);
    for (const auto* sign : {" >= ", " <= ", " == ", " != ", " += ", " > ", " < ", " = "})
      if (const auto s = line.find(sign); s != line.npos) {
        auto value = line.substr(s + std::string_view(sign).size());
        return {signal, std::string(sign).substr(1, std::string_view(sign).size() - 2),
                value.substr(0, value.find(' '))};
      }
    return {};
  }
  bool in_queue(LineId id) const { return text_.keyword(text_.agent(id).begin) == "queue"; }
  bool counts(LineId id) const { return text_.keyword(id) == "atomic" || text_.keyword(id) == "add"; }
  std::string wait_line(bool queue, const std::string& signal, const std::string& value) const {
    return queue ? fmt::format("poll_mem addr={} func=ge reference={}", signal, value)
                 : fmt::format("wait {} >= {}", signal, value);
  }
  std::string with_value(LineId id, const std::string& value, bool at_least = false) const {
    const auto line = text_.text(id);
    if (text_.keyword(id) == "poll_mem")
      return with_field(at_least ? with_field(line, "func", "ge") : line, "reference", value);
    if (text_.keyword(id) == "fence" || text_.keyword(id) == "atomic") return with_field(line, "value", value);
    const auto s = sync(id);
    return fmt::format("{} {} {} {}", text_.keyword(id), s.signal, at_least ? ">=" : s.sign, value);
  }
  std::vector<LineId> lines_with(auto has) const {
    std::vector<LineId> found;
    for (const auto id : text_.all())
      if (has(text_.keyword(id))) found.push_back(id);
    return found;
  }
  /// The loop around a line inside its queue or thread: "r", "0" and "R" of "for r in 0..R"; "" if there is none.
  struct Loop {
    std::string name{}, from{}, to{};
  };
  Loop loop(LineId id) const {
    for (auto b = text_.block(id); b.begin != 0; b = text_.block(b.begin)) {
      const auto line = text_.text(b.begin);
      if (line.starts_with("for ")) {
        const auto in = line.find(" in "), dots = line.find("..");
        if (in == line.npos || dots == line.npos) return {};
        return {line.substr(4, in - 4), line.substr(in + 4, dots - in - 4), line.substr(dots + 2)};
      }
      if (text_.keyword(b.begin) == "queue" || text_.keyword(b.begin) == "host") return {};
    }
    return {};
  }
  /// The loop that declares a queue for each GPU, "for i in 0..N" around "queue gpu{i}.ring"; "" if there is none.
  Loop team(LineId id) const { return loop(text_.agent(id).begin); }
  /// "gpu{i}" of "gpu{i}.flag".
  static std::string place_of(const std::string& name) { return name.substr(0, name.find('.')); }
  static std::string at_place(const std::string& place, const std::string& name) {
    return name.find('.') == name.npos || place.empty() ? name : place + name.substr(name.find('.'));
  }
  /// The name with `by` in the place of each expression: "flag{i}" of "flag{(i+1)%N}" and "{i}".
  static std::string with_braces(std::string name, std::string_view by) {
    if (by.empty()) return name;
    for (auto at = name.find('{'); at != name.npos; at = name.find('{', at + by.size()))
      name.replace(at, name.find('}', at) - at + 1, by);
    return name;
  }
  /// May both be one word, which two of a team name each from its own GPU: "gpu{i}.flag" and "gpu{(i+1)%N}.flag"?
  static bool alike(const std::string& a, const std::string& b) {
    return a == b || (a.find('{') != a.npos && with_braces(a, "{}") == with_braces(b, "{}"));
  }
  /// The GPU of the queue or the kernel around a line.
  std::string own_place(LineId id) const {
    const auto header = text_.text(text_.agent(id).begin);
    return place_of(header.substr(std::min(header.find(' ') + 1, header.size())));
  }
  /// Where the last copy at or before a line of its queue puts its bytes.
  std::string destination(LineId id) const {
    std::string place;
    for (const auto l : text_.inside(text_.agent(id))) {
      if (const auto dst = field_of(text_.text(l), "dst"); !dst.empty()) place = place_of(dst);
      if (l == id) break;
    }
    return place;
  }
  /// 4 of 3, "r+1" of "r", "r" of "r-1", "N-1" of "N-2"; with -1, the other way round.
  static std::string stepped(const std::string& value, int by) {
    if (const auto n = number(value)) return std::to_string(*n + by);
    auto at = value.find_last_of("+-");
    const auto n = at == value.npos ? std::nullopt : number(value.substr(at + 1));
    if (!n || at == 0) at = value.size();
    const auto sum = at == value.size() ? by : (value[at] == '-' ? -*n : *n) + by;
    return value.substr(0, at) + (sum == 0 ? "" : fmt::format("{:+}", sum));
  }
  /// A queue's line that adds one to a signal.
  std::string counting(const std::string& signal) const {
    bool narrow = false;
    for (const auto id : lines_with([](const std::string& k) { return k == "signal"; })) {
      const auto line = text_.text(id);
      const auto declares = line.substr(7, line.find(' ', 7) - 7);
      narrow = narrow || (at_place(place_of(signal), declares) == signal && field_of(line, "bits") == "32");
    }
    return fmt::format("atomic op=add_rtn_{} addr={} value=1", narrow ? 32 : 64, signal);
  }
  bool has_rounds() const {
    return !lines_with([](const std::string& k) { return k == "repeat"; }).empty();
  }
  /// A value that is new each time a line is executed: r+1 in a loop, epoch in rounds, else 1.
  std::string count_at(LineId id) const {
    const auto l = loop(id);
    if (l.name.empty()) return has_rounds() ? "epoch" : "1";
    return l.from == "0" ? l.name + "+1" : l.from == "1" ? l.name : fmt::format("{}-{}+1", l.name, l.from);
  }
  /// The condition and the value of a wait in a round for what the round `lag` before it has announced.
  std::pair<std::string, std::string> earlier(LineId id, int lag) const {
    const auto l = loop(id);
    if (l.name.empty()) return {"", has_rounds() ? "epoch-1" : "1"};
    if (l.from != "0") return {fmt::format("when {} > {}: ", l.name, lag), fmt::format("{}-{}", l.name, lag)};
    return {fmt::format("when {} >= {}: ", l.name, lag), lag == 1 ? l.name : fmt::format("{}-{}", l.name, lag - 1)};
  }
  /// A value for every round: "4*epoch", "(N-1)*epoch"; the value itself if there are none.
  std::string in_rounds(const std::string& n) const {
    if (!has_rounds()) return n;
    return n == "1" ? "epoch" : n.find_first_of("+-/%") == n.npos ? n + "*epoch" : "(" + n + ")*epoch";
  }
  /// The final count that the finding names: "ends at 8", "wait host.done == 8".
  std::optional<std::string> ends_at() const {
    for (const auto* said : {"ends at ", " == ", "func=eq reference="})
      for (const auto* in : {&f_.diagnostic.hint, &f_.diagnostic.message})
        if (const auto at = in->find(said); at != in->npos) {
          const auto begin = at + std::string_view(said).size();
          const auto end = in->find_first_not_of("0123456789", begin);
          if (auto n = in->substr(begin, end - begin); !n.empty()) return n;
        }
    return {};
  }
  /// The host thread that submits, or the first one.
  SourceLines::Block host() const {
    for (const auto id : lines_with([](const std::string& k) { return k == "submit"; }))
      if (const auto b = text_.agent(id); text_.keyword(b.begin) == "host") return b;
    return {};
  }

  template <class Fn> void change(Fn fn) {
    auto text = text_;
    fn(text);
    out_.push_back(std::move(text));
  }
  void inserted(LineId before, const std::string& line) {
    change([&](SourceLines& t) { t.insert(before, line); });
  }
  void replaced(LineId id, const std::string& line) {
    if (line != text_.text(id)) change([&](SourceLines& t) { t.replace(id, line); });
  }
  /// The line as it waits for, or posts to, another signal.
  std::string with_signal(LineId id, const std::string& signal) const {
    auto line = text_.text(id);
    const auto own = sync(id).signal;
    return own.empty() ? line : line.replace(line.find(own), own.size(), signal);
  }
  void renamed(LineId id, const std::string& signal) { replaced(id, with_signal(id, signal)); }
  void moved(LineId id, LineId before) {
    if (before == 0 || before == id || text_.next(id) == before) return;
    change([&](SourceLines& t) {
      const auto line = t.text(id);
      t.insert(before, line);
      t.remove(id);
    });
  }
  /// Declares a signal of the host that the text does not have, and returns its name.
  std::string declared(SourceLines& t, const std::string& name) const { return declared(t, "host.", "", name); }
  /// Declares a signal of each GPU that the text does not have, and returns its name after the place: ".ready".
  std::string declared_for_all(SourceLines& t, const std::string& name) const { return declared(t, ".", "gpu*", name); }
  /// The line of a queue, a host or a kernel that announces something.
  std::string post_line(bool queue, const std::string& signal, const std::string& value) const {
    return queue ? fmt::format("fence addr={} value={}", signal, value) : fmt::format("set {} = {}", signal, value);
  }

  const SourceLines& text_;
  const CheckFinding& f_;
  std::vector<LineId> places_;
  std::vector<SourceLines> out_;

 private:
  /// Declares `place`, `prefix` and the name, with a number where the text has it; returns `prefix` and the name.
  static std::string declared(SourceLines& t, std::string_view prefix, std::string_view place,
                              const std::string& name) {
    const auto source = t.source();
    auto full = fmt::format("{}{}", prefix, name);
    for (int i = 2; source.find(full) != source.npos; ++i) full = fmt::format("{}{}{}", prefix, name, i);
    for (const auto id : t.all())
      if (const auto k = t.keyword(id); k == "queue" || k == "host" || k == "kernel" || k == "for" || k == "if")
        if (t.block(id).begin == 0) {
          t.insert(id, fmt::format("signal {}{} value=0 bits=32", place, full));
          return full;
        }
    return full;
  }
};

}}}  // namespace sdma::v0_3::check_detail
