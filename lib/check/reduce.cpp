// SPDX-License-Identifier: MIT
// Tries smaller texts, and keeps those that still have the finding. Each pass tries all changes of one kind; the passes
// are repeated until none of them changes anything.
#include "sdma/check/reduce.hpp"

#include "../core/words.hpp"
#include "../schedule/parser.hpp"
#include "sdma/core/number.hpp"
#include "source_lines.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace sdma { inline namespace v0_3 {
namespace {

using check_detail::SourceLines;

/// A line, or a block with its lines.
struct Node {
  std::string line{};
  std::vector<Node> inside{};
  std::string end{};  ///< "end", of a block
  bool block() const noexcept { return !end.empty(); }
};

/// The lines of a text without comments and empty lines, as a tree.
std::vector<Node> tree(std::string_view source) {
  const SourceLines lines(source);
  std::vector<std::vector<Node>> open(1);
  for (const auto id : lines.all()) {
    auto line = lines.text(id);
    if (line.empty()) continue;
    const auto keyword = lines.keyword(id);
    if (keyword == "end" && open.size() > 1) {
      auto inside = std::move(open.back());
      open.pop_back();
      open.back().back().inside = std::move(inside);
      open.back().back().end = std::move(line);
      continue;
    }
    open.back().push_back({.line = std::move(line)});
    if (detail::opens_block(keyword)) open.emplace_back();
  }
  return std::move(open.front());
}

void write(const std::vector<Node>& nodes, std::size_t indent, std::string& out) {
  for (const auto& n : nodes) {
    out += fmt::format("{:{}}{}\n", "", indent, n.line);
    write(n.inside, indent + 2, out);
    if (n.block()) out += fmt::format("{:{}}{}\n", "", indent, n.end);
  }
}
std::string text_of(const std::vector<Node>& nodes) {
  std::string out;
  write(nodes, 0, out);
  return out;
}
std::size_t count(std::string_view text) {
  return static_cast<std::size_t>(std::count(text.begin(), text.end(), '\n'));
}

std::vector<std::string> words_of(std::string_view line) {
  std::vector<std::string> out;
  for (auto word = detail::take_word(line); !word.empty(); word = detail::take_word(line)) out.emplace_back(word);
  return out;
}
std::string joined(const std::vector<std::string>& words) {
  std::string out;
  for (const auto& w : words) out += (out.empty() ? "" : " ") + w;
  return out;
}

class Reducer {
 public:
  Reducer(std::string_view file, ParseOptions parse, CheckOptions check, const ReduceOptions& options)
      : file_(file), parse_(std::move(parse)), check_(std::move(check)), options_(options), rule_(options.rule) {
    check_.max_mended = 0;
    check_.max_findings = 0;
  }

  Result<ReducedText, std::vector<Diagnostic>> run(std::string_view text) {
    ReducedText out;
    auto whole = check_text(text, file_, parse_, check_);
    if (!whole) return std::move(whole.error());
    open_ = is_open(whole->report);
    if (auto wrong = choose(whole->report)) return std::vector{*std::move(wrong)};
    out.original = whole->schedule;
    nodes_ = tree(text);
    out.lines_before = count(text_of(nodes_));
    write_settings();
    reduce();
    auto best = text_of(nodes_);
    // Loops hide what one of their rounds does alone.
    const bool settings = !parse_.set.empty();
    if (const auto written = check_text(best, file_, parse_, check_)) {
      parse_.set.clear();
      nodes_ = tree(to_text(written->schedule));
      if (settings && over_) {
        best = text_of(nodes_);
      } else if (holds()) {
        reduce();
        if (const auto flat = text_of(nodes_); settings || count(flat) < count(best)) best = flat;
      }
    }
    auto checked = check_text(best, file_, parse_, check_);
    if (!checked) return std::move(checked.error());
    out.text = std::move(best);
    out.checked = *std::move(checked);
    out.rule = rule_;
    out.tries = tries_;
    out.least = !over_ && tries_ < options_.max_tries;
    return out;
  }

 private:
  Diagnostic wrong(std::string message, std::string hint) const {
    return {.where = std::string(file_), .message = std::move(message), .hint = std::move(hint)};
  }
  /// Which finding it is; an error if there is none.
  std::optional<Diagnostic> choose(const CheckReport& r) {
    std::vector<std::string> rules;
    for (const auto& f : r.findings) {
      const auto& d = f.diagnostic;
      if (rule_.empty() ? d.severity != Severity::note : d.rule == rule_) {
        rule_ = d.rule;
        severity_ = d.severity;
        return {};
      }
      if (std::find(rules.begin(), rules.end(), d.rule) == rules.end()) rules.emplace_back(d.rule);
    }
    if (rule_.empty()) return wrong("the checker finds nothing wrong, so there is nothing to reduce", "");
    if (rules.empty()) return wrong("the checker does not find '" + rule_ + "', nor anything else", "");
    std::string all;
    for (const auto& rule : rules) all += (all.empty() ? "" : ", ") + rule;
    return wrong("the checker does not find '" + rule_ + "'", "it finds " + all);
  }

  static bool is_open(const CheckReport& r) {
    return std::any_of(r.findings.begin(), r.findings.end(),
                       [](const CheckFinding& f) { return f.diagnostic.rule == "open-schedule"; });
  }
  bool holds() {
    over_ = over_ || tries_ >= options_.max_tries || (options_.proceed && !options_.proceed(tries_));
    if (over_) return false;
    ++tries_;
    const auto r = check_text(text_of(nodes_), file_, parse_, check_);
    return r && (open_ || !is_open(r->report)) &&
           std::any_of(r->report.findings.begin(), r->report.findings.end(), [&](const CheckFinding& f) {
             return f.diagnostic.rule == rule_ && f.diagnostic.severity == severity_;
           });
  }
  /// Replaces `part` of the tree. False, and nothing is changed, if the finding is gone.
  template <class T> bool attempt(T& part, T smaller) {
    std::swap(part, smaller);
    if (holds()) return changed_ = true;
    std::swap(part, smaller);
    return false;
  }

  /// Writes the values of --set into the text, where it has a line for them.
  void write_settings() {
    for (auto s = parse_.set.begin(); s != parse_.set.end();) {
      const auto given = *s;
      auto line = std::find_if(nodes_.begin(), nodes_.end(), [&](const Node& n) {
        const auto words = words_of(n.line);
        return words.size() > 3 && words[0] == "param" && words[1] == given.name;
      });
      if (line == nodes_.end()) {
        ++s;
        continue;
      }
      const auto before = line->line;
      const auto of = before.find(" of [");
      line->line = fmt::format("param {} = {}{}", given.name, given.value, of == before.npos ? "" : before.substr(of));
      const auto at = s - parse_.set.begin();
      s = parse_.set.erase(s);
      if (holds()) continue;
      line->line = before;
      s = parse_.set.insert(parse_.set.begin() + at, given) + 1;
    }
  }

  void reduce() {
    do {
      changed_ = false;
      thin(nodes_);
      unwrap(nodes_);
      lower(nodes_);
      shorten(nodes_);
    } while (changed_ && !over_);
  }

  /// Removes runs of nodes, long ones first, then does the same inside of each block.
  void thin(std::vector<Node>& nodes) {
    for (auto size = nodes.size(); size > 0; size /= 2)
      for (auto end = nodes.size(); end > 0;) {
        const auto begin = end - std::min(size, end);
        auto fewer = nodes;
        fewer.erase(fewer.begin() + static_cast<std::ptrdiff_t>(begin),
                    fewer.begin() + static_cast<std::ptrdiff_t>(end));
        attempt(nodes, std::move(fewer));
        end = std::min(begin, nodes.size());
      }
    for (auto& n : nodes) thin(n.inside);
  }

  /// Puts the lines of a block in its place.
  void unwrap(std::vector<Node>& nodes) {
    for (std::size_t i = 0; i < nodes.size(); ++i) {
      unwrap(nodes[i].inside);
      if (!nodes[i].block()) continue;
      auto flat = nodes;
      const auto at = flat.erase(flat.begin() + static_cast<std::ptrdiff_t>(i));
      flat.insert(at, nodes[i].inside.begin(), nodes[i].inside.end());
      attempt(nodes, std::move(flat));
    }
  }

  /// Fewer rounds, GPUs, and smaller params.
  void lower(std::vector<Node>& nodes) {
    for (auto& n : nodes) {
      const auto keyword = n.line.substr(0, n.line.find(' '));
      for (const auto* k : {"repeat", "for", "gpus", "param", "let"})
        if (keyword == k) lower(n.line);
      lower(n.inside);
    }
  }
  void lower(std::string& line) {
    for (std::size_t at = 0; at < line.size();) {
      const auto begin = line.find_first_of("0123456789", at);
      if (begin == line.npos) return;
      auto end = begin;
      while (end < line.size() && (std::isalnum(static_cast<unsigned char>(line[end])) != 0 || line[end] == '_')) ++end;
      at = end;
      const bool name =
          begin > 0 && (std::isalnum(static_cast<unsigned char>(line[begin - 1])) != 0 || line[begin - 1] == '_');
      const auto n = parse_size(std::string_view(line).substr(begin, end - begin));
      if (name || !n) continue;
      for (const auto less : {std::uint64_t{1}, std::uint64_t{2}, *n / 2, *n - 1}) {
        if (less >= *n) continue;
        const auto number = size_text(less);
        if (!attempt(line, line.substr(0, begin) + number + line.substr(end))) continue;
        at = begin + number.size();
        break;
      }
    }
  }

  /// Removes words: fields that have a default, queues of a submit.
  void shorten(std::vector<Node>& nodes) {
    for (auto& n : nodes) {
      for (auto i = words_of(n.line).size(); i-- > 1;) {
        auto words = words_of(n.line);
        words.erase(words.begin() + static_cast<std::ptrdiff_t>(i));
        attempt(n.line, joined(words));
      }
      shorten(n.inside);
    }
  }

  const std::string_view file_;
  ParseOptions parse_;
  CheckOptions check_;
  const ReduceOptions& options_;
  std::string rule_;
  Severity severity_{};
  bool open_ = false;  ///< the whole text leaves to others what submits its queues
  std::vector<Node> nodes_;
  std::size_t tries_ = 0;
  bool changed_ = false;
  bool over_ = false;  ///< no more texts are checked
};

}  // namespace

Result<ReducedText, std::vector<Diagnostic>> reduce_text(std::string_view text, std::string_view file,
                                                         const ParseOptions& parse, const CheckOptions& options,
                                                         const ReduceOptions& reduce) {
  return Reducer{file, parse, options, reduce}.run(text);
}

}}  // namespace sdma::v0_3
