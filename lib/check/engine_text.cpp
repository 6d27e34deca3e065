// SPDX-License-Identifier: MIT
// A plan of engines as text: what the headers of queues say, which may stand for many queues each.
#include "../core/words.hpp"
#include "engine_plan.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>

namespace sdma { inline namespace v0_3 { namespace check_detail {
namespace {

using Row = EnginePlan::Queue;
/// Lists are written out up to this length.
constexpr std::int64_t kMostListed = 256;

/// Something in a header that has a number for each of its queues: a variable of a loop, the GPU, the peer.
struct Variable {
  std::string text{};
  bool loop{};
  std::vector<std::int64_t> values{};
};

class Header {
 public:
  Header(std::string line, std::vector<const Row*> rows) : line_(std::move(line)), rows_(std::move(rows)) {
    const auto place = line_.find(' ') == line_.npos ? std::string() : line_.substr(line_.find(' ') + 1);
    loops();
    add(index_of(place), [](const Row& r) -> std::optional<std::uint32_t> { return r.place; });
    add(index_of(field_of(line_, "peer")), [](const Row& r) { return r.peer; });
  }

  /// The engines as a number or an expression; "" if there is none.
  std::string expression() const {
    const auto first = std::int64_t{rows_.front()->engine.value};
    if (same([&](std::size_t) { return first; })) return std::to_string(first);
    for (std::int64_t n = 0; n <= 16; ++n)
      for (const auto& v : variables_) {
        const auto of = [&](std::size_t i) { return n == 0 ? v.values[i] : v.values[i] % n; };
        const auto base = first - of(0);
        if (n == 1 || base < 0 || !same([&](std::size_t i) { return base + of(i); })) continue;
        const auto text = v.loop ? v.text : "(" + v.text + ")";
        return (base == 0 ? "" : fmt::format("{}+", base)) + (n == 0 ? text : fmt::format("{}%{}", text, n));
      }
    return {};
  }

  /// The engines as a list, and the expression that takes one of it: by one variable, if it says which, or by all.
  std::optional<std::pair<std::string, std::string>> list(const std::string& name) const {
    std::vector<const Variable*> all;
    for (const auto& v : variables_)
      if (v.loop) all.push_back(&v);
    for (const auto* v : all)
      if (const auto one = listed(name, {v})) return one;
    return listed(name, all);
  }

 private:
  std::optional<std::pair<std::string, std::string>> listed(const std::string& name,
                                                            const std::vector<const Variable*>& by) const {
    std::int64_t size = 1;
    std::string index;
    std::vector<std::int64_t> at(rows_.size());
    for (const auto* v : by) {
      const auto [low, high] = std::minmax_element(v->values.begin(), v->values.end());
      const auto count = *high - *low + 1;
      size *= count;
      if (size > kMostListed) return {};
      if (count == 1) continue;
      const auto own = *low == 0 ? v->text : fmt::format("({}-{})", v->text, *low);
      if (index.find('+') != index.npos) index = "(" + index + ")";
      index = index.empty() ? own : fmt::format("{}*{}+{}", index, count, own);
      for (std::size_t i = 0; i < at.size(); ++i) at[i] = at[i] * count + v->values[i] - *low;
    }
    if (index.empty()) return {};
    std::vector<std::optional<std::uint32_t>> engines(static_cast<std::size_t>(size));
    for (std::size_t i = 0; i < at.size(); ++i) {
      auto& e = engines[static_cast<std::size_t>(at[i])];
      if (e && *e != rows_[i]->engine.value) return {};
      e = rows_[i]->engine.value;
    }
    std::string text;
    for (const auto& e : engines) text += (text.empty() ? "" : ", ") + std::to_string(e.value_or(0));
    return std::pair(fmt::format("let {} = [{}]", name, text), fmt::format("{}[{}]", name, index));
  }
  template <class Fn> bool same(Fn engine) const {
    for (std::size_t i = 0; i < rows_.size(); ++i)
      if (engine(i) != std::int64_t{rows_[i]->engine.value}) return false;
    return true;
  }
  /// "(i+1)%N" of "gpu{(i+1)%N}.ring".
  static std::string index_of(const std::string& place) {
    const auto begin = place.find('{'), end = place.find('}');
    return begin == place.npos || end == place.npos || place.find('.') < begin
               ? std::string()
               : place.substr(begin + 1, end - begin - 1);
  }
  template <class Fn> void add(const std::string& text, Fn value) {
    Variable v{.text = text};
    for (const auto* r : rows_)
      if (const auto n = value(*r)) v.values.push_back(*n);
    if (!text.empty() && v.values.size() == rows_.size()) variables_.push_back(std::move(v));
  }
  /// The variables of " [i=0 j=1]" that differ.
  void loops() {
    std::map<std::string, std::vector<std::int64_t>> all;
    std::vector<std::string> order;
    for (const auto* r : rows_) {
      const auto& c = r->context;
      if (c.size() < 3) return;
      auto rest = std::string_view(c).substr(2, c.size() - 3);
      while (!rest.empty()) {
        const auto word = detail::take_word(rest);
        const auto equals = word.find('=');
        const auto n = equals == word.npos ? std::nullopt : detail::whole_number<std::int64_t>(word.substr(equals + 1));
        if (!n) continue;
        auto& values = all[std::string(word.substr(0, equals))];
        if (values.empty()) order.emplace_back(word.substr(0, equals));
        values.push_back(*n);
      }
    }
    for (const auto& name : order) {
      const auto& values = all[name];
      if (values.size() == rows_.size()) variables_.push_back({.text = name, .loop = true, .values = values});
    }
  }

  std::string line_;
  std::vector<const Row*> rows_;
  std::vector<Variable> variables_;
};

}  // namespace

std::optional<SourceLines> with_engines(const SourceLines& text, const EnginePlan& plan) {
  std::map<LineId, std::vector<const Row*>> headers;
  for (const auto& q : plan.queues)
    if (!q.network) headers[text.agent(text.id(q.line)).begin].push_back(&q);
  auto out = text;
  const auto source = text.source();
  std::size_t lists = 0;
  for (const auto& [id, rows] : headers) {
    if (id == 0) return {};
    if (std::all_of(rows.begin(), rows.end(), [](const Row* r) { return r->engine == r->now; })) continue;
    const auto line = text.text(id);
    const Header header{line, rows};
    auto engine = header.expression();
    if (engine.empty()) {
      auto name = std::string("engines");
      do {
        if (lists++ > 0) name = fmt::format("engines{}", lists);
      } while (source.find(name) != source.npos);
      const auto list = header.list(name);
      if (!list) return {};
      auto outermost = id;
      for (auto b = text.block(id); b.begin != 0; b = text.block(b.begin)) outermost = b.begin;
      out.insert(outermost, list->first);
      engine = list->second;
    }
    auto with = line;
    if (const auto at = with.find(" engine="); at != with.npos)
      with.erase(at, std::min(with.find(' ', at + 1), with.size()) - at);
    const auto changed = with + " engine=" + engine;
    if (changed != line) out.replace(id, changed);
  }
  return out;
}

}}}  // namespace sdma::v0_3::check_detail
