// SPDX-License-Identifier: MIT
// Reads the text of a program: docs/litmus.md is the manual of its form. Lines with packets are those of docs/text.md,
// and `assemble` reads them, with each word of the program as a name for an address.
#include "../core/nearest.hpp"
#include "../core/words.hpp"
#include "../stream/lexer.hpp"
#include "../stream/source.hpp"
#include "litmus.hpp"
#include "sdma/core/number.hpp"
#include "sdma/stream/reader.hpp"
#include "sdma/stream/text.hpp"

#include <algorithm>
#include <array>
#include <set>
#include <utility>

namespace sdma::litmus {
namespace {

using namespace detail;

/// Where words lie in assembled packets: `placed` replaces these addresses by those of a World.
constexpr std::uint64_t kNames = std::uint64_t{1} << 40;

std::vector<std::uint32_t> placed(const World& w, std::vector<std::uint32_t> dwords) {
  for (Reader r{dwords}; r;) {
    auto* const at = dwords.data() + r.position_dwords();
    const auto v = r.next();
    if (!v.whole() || v.info->fields_unknown) continue;
    for (const auto& f : v.info->fields) {
      if (f.kind != Kind::address) continue;
      const auto offset = value_of(f, at) - kNames;
      if (offset >= World::kWords * World::kPitch) continue;
      const auto word = static_cast<std::uint32_t>(offset / World::kPitch);
      store(f, w.va(word).value + offset % World::kPitch, at);
    }
  }
  return dwords;
}

class ProgramReader {
 public:
  ProgramReader(std::string_view text, std::string_view file) : source_(text, file), rest_(text) {}

  Result<Program, std::vector<Diagnostic>> read() {
    while (!source_.full(offset(rest_)) && next_line())
      if (!peek().empty()) statement();
    for (const auto& s : kStatements)
      if ((s.rules & kNeeded) && source_.count() == 0 && !given_.contains(&s))
        fail(rest_, "there is no line '" + std::string(s.word()) + "'", "add: " + std::string(s.form));
    if (source_.count() == 0) return std::move(program_);
    auto errors = source_.take_errors();
    // Those of packets are among them. One without a line says how many are not shown, and comes last.
    const auto before = [](const auto& a, const auto& b) { return a.at.line - 1 < b.at.line - 1; };
    std::stable_sort(errors.begin(), errors.end(), before);
    return errors;
  }

 private:
  using Value = std::function<std::uint32_t(World&)>;
  struct Name {
    std::string_view kind, text;
    std::uint32_t room;      ///< for dwords
    std::uint32_t index{};   ///< in a World
    std::uint32_t filled{};  ///< of the room
  };
  /// What follows the word of a statement.
  struct Arguments {
    std::vector<std::string_view> texts{};
    std::vector<std::uint32_t> index{};  ///< of names
    Name* name = nullptr;                ///< the last of them
    std::vector<Value> values{};
    std::uint32_t number{};
  };
  enum Rules { kAny = 0, kOnce = 1, kNeeded = 2, kOwn = 4, kKernel = 8 };  // kOwn: `read` reads its arguments
  struct Statement {
    std::string_view form;  ///< its word, and its arguments
    void (*read)(ProgramReader&, Arguments&);
    int rules = kAny;
    std::string_view word() const { return form.substr(0, form.find(' ')); }
  };
  static const std::array<Statement, 20> kStatements;

  // All texts are parts of the source: `fail` finds the place of each.
  std::size_t offset(std::string_view part) const {
    return static_cast<std::size_t>(part.data() - source_.text().data());
  }
  bool fail(std::string_view at, const std::string& message, std::string hint) {
    source_.error(offset(at), message, std::move(hint));
    return false;
  }
  bool expected(std::string_view what, std::string_view got, const std::string& meant = "") {
    const auto shown = got.empty() ? "the end of the line" : "'" + std::string(got) + "'";
    return fail(got, "expected " + std::string(what) + ", got " + shown + meant, "write: " + std::string(form_));
  }

  /// The words of the next line: blanks separate them, quotes keep blanks, # begins a comment.
  bool next_line() {
    if (rest_.empty()) return false;
    if (!words_.empty()) before_ += '\n';
    line_ = take_line(rest_);
    words_.clear();
    next_ = 0;
    for (auto left = trimmed(line_); !left.empty() && left.front() != '#'; left = trimmed(left)) {
      const auto quote = left.front() == '"' ? left.find('"', 1) : left.npos;
      words_.push_back(left.substr(0, quote == left.npos ? left.find_first_of(kBlanks) : quote + 1));
      left.remove_prefix(words_.back().size());
    }
    words_.push_back(line_.substr(line_.size()));
    return true;
  }
  /// "" at the end of the line.
  std::string_view peek() const { return words_[next_]; }
  std::string_view take() { return words_[next_ + 1 < words_.size() ? next_++ : next_]; }
  bool line_ends() { return peek().empty() || expected("the end of the line", peek()); }

  void statement() {
    const auto word = take();
    const auto s =
        std::find_if(kStatements.begin(), kStatements.end(), [&](const auto& x) { return x.word() == word; });
    if (s == kStatements.end()) {
      std::vector<std::string_view> known;
      for (const auto& x : kStatements) known.push_back(x.word());
      fail(word, "no line of a program begins with '" + std::string(word) + "'" + did_you_mean(word, known),
           "packets lie between 'put QUEUE' and 'end'");
      return;
    }
    if (!given_.insert(s).second && (s->rules & kOnce))
      fail(word, "a second line '" + std::string(word) + "'", "keep one of them");
    form_ = s->form;
    program_.kernel = program_.kernel || (s->rules & kKernel);
    Arguments a;
    if ((s->rules & kOwn) || (arguments(form_.substr(word.size()), a) && line_ends())) s->read(*this, a);
  }
  bool arguments(std::string_view kinds, Arguments& a) {
    for (auto kind = take_word(kinds); !kind.empty(); kind = take_word(kinds))
      if (!argument(kind, a)) return false;
    return true;
  }
  /// `kind`: what a form calls it.
  bool argument(std::string_view kind, Arguments& a) {
    const auto got = take();
    if (kind == "VALUE") return a.values.emplace_back(value(got)) != nullptr;
    if (kind == "QUEUE" || kind == "WORD" || kind == "QUEUE|WORD") {
      a.name = find(got, kind);
      if (a.name) a.index.push_back(a.name->index);
      return a.name;
    }
    if (kind.ends_with("=N")) {
      const auto key = kind.substr(0, kind.size() - 1);
      const auto n = got.starts_with(key) ? parse_count(got.substr(key.size())) : std::nullopt;
      a.number = static_cast<std::uint32_t>(n.value_or(0));
      return (n && *n < 256) || expected(std::string(kind) + ", from 0 to 255", got);
    }
    const bool quoted = got.size() > 2 && got.front() == '"' && got.back() == '"';
    if (got.empty() || quoted != (kind.front() == '"')) return expected(kind, got);
    a.texts.push_back(quoted ? got.substr(1, got.size() - 2) : got);
    return true;
  }
  /// A number, what a word holds, or the rptr of a queue, in dwords; null after an error.
  Value value(std::string_view text) {
    constexpr std::string_view kRptr = ".rptr";
    if (const auto n = parse_count(text); n && *n <= ~0u)
      return [n = static_cast<std::uint32_t>(*n)](World&) { return n; };
    const bool rptr = text.ends_with(kRptr);
    const auto* of = rptr ? find(text.substr(0, text.size() - kRptr.size()), "QUEUE")
                          : find(text, "a number of 32 bits, a WORD or a queue's .rptr");
    if (!of) return nullptr;
    return [i = of->index, rptr](World& w) { return rptr ? static_cast<std::uint32_t>(w.rptr(i) / 4) : w.load(i); };
  }
  /// `what` has the kinds that the name may be of. Null after an error.
  Name* find(std::string_view text, std::string_view what) {
    std::vector<std::string_view> known;
    for (auto& n : names_) {
      if (what.find(n.kind) == what.npos) continue;
      if (n.text == text) return &n;
      known.push_back(n.text);
    }
    expected(what, text, did_you_mean(text, known));
    return nullptr;
  }
  bool declare(Name n, std::size_t index, std::size_t most) {
    const auto letter = [](char c) { return is_letter(c) || is_digit(c); };
    const auto same = [&](const Name& other) { return other.text == n.text; };
    const auto quoted = "'" + std::string(n.text) + "'";
    if (is_digit(n.text.front()) || !std::all_of(n.text.begin(), n.text.end(), letter))
      return expected("a name of letters, digits and _", n.text);
    if (std::any_of(names_.begin(), names_.end(), same))
      return fail(n.text, quoted + " is already defined", "choose another name");
    if (index >= most)
      return fail(n.text, "there is no room for " + quoted,
                  "a program has at most 8 queues, 14 words in host memory and 2 in VRAM");
    n.index = static_cast<std::uint32_t>(index);
    names_.push_back(n);
    return true;
  }
  void new_queue(const Arguments& a) {
    auto& engines = program_.engines;
    if (declare({.kind = "QUEUE", .text = a.texts[0], .room = World::kRing}, engines.size(), 8))
      engines.push_back(a.number);
  }
  void new_word(std::string_view name, std::uint32_t& index, std::uint32_t most) {
    if (!declare({.kind = "WORD", .text = name, .room = World::kPitch / 4}, index, most)) return;
    before_ += "let " + std::string(name) + " = " + std::to_string(kNames + index * World::kPitch);
    program_.words.emplace_back(name, index++);
    program_.vram = vram_words_ > World::kVram;
  }
  void act(std::function<void(World&)> action) { program_.steps.back().actions.push_back(std::move(action)); }
  void patch(const Arguments& a) {
    const auto dword = parse_count(a.texts[0]).value_or(World::kRing);
    if (dword >= a.name->filled)
      return void(expected("one of the " + std::to_string(a.name->filled) + " dwords that were put", a.texts[0]));
    act([a, ring = a.name->kind == "QUEUE", at = static_cast<std::uint32_t>(dword)](World& w) {
      ring ? w.patch(a.index[0], at, a.values[0](w)) : w.store_dword(a.index[0], at, a.values[0](w));
    });
  }
  void put(Arguments& a) {
    const auto begin = words_.front();
    const bool good = argument("QUEUE|WORD", a) && line_ends();
    // The lines before the packets are empty, or define words: so each line has its number in errors.
    std::string text = before_ + '\n';
    for (int depth = 1; next_line();) {
      if (peek() == "for" || peek() == "if") ++depth;
      if (peek() == "end" && --depth == 0) {
        take();
        if (line_ends() && good) fill(*a.name, text);
        return;
      }
      text.append(line_) += '\n';
    }
    fail(begin, "this 'put' has no 'end'", "add a line 'end' after its packets");
  }
  void fill(Name& to, const std::string& text) {
    const AssembleOptions limits{.max_dwords = to.room - to.filled, .max_rounds = World::kRing, .max_text = 64 * 1024};
    auto dwords = assemble(text, source_.file(), limits);
    if (!dwords) {
      for (auto& e : dwords.error()) source_.add(std::move(e));
      return;
    }
    const auto at = std::exchange(to.filled, to.filled + static_cast<std::uint32_t>(dwords->size()));
    act([ring = to.kind == "QUEUE", i = to.index, at, dwords = std::move(*dwords)](World& w) {
      const auto now = placed(w, dwords);
      if (ring) return w.put(i, now);
      for (std::uint32_t k = 0; k < now.size(); ++k) w.store_dword(i, at + k, now[k]);
    });
  }
  void outcome(Arguments& a) {
    if (!argument("\"NAME\"", a)) return;
    Expected o{.name = std::string(a.texts[0])};
    if (program_.find(o.name)) fail(a.texts[0], "a second line for this outcome", "choose another name");
    for (; peek() == "strict" || peek() == "rocr"; take()) (peek() == "strict" ? o.strict : o.rocr) = true;
    for (std::string_view joint = "if"; !peek().empty(); joint = "and")
      if (const auto got = take(); got != joint)
        return void(expected(joint, got, did_you_mean(got, {"strict", "rocr", joint})));
      else if (!condition(o)) return;
    program_.outcomes.push_back(std::move(o));
  }
  bool condition(Expected& o) {
    Arguments a;
    if (!arguments("VALUE SIGN VALUE", a)) return false;
    const auto sign = a.texts[0];
    if (sign != "==" && sign != "!=") return expected("== or !=", sign);
    o.conditions.push_back([a, equal = sign == "=="](World& w) { return (a.values[0](w) == a.values[1](w)) == equal; });
    return true;
  }

  Source source_;
  std::string_view rest_, line_{}, form_{};
  std::vector<std::string_view> words_{};  // of the line, and "" at its end
  std::size_t next_ = 0;
  std::string before_{};  // the lines so far, as packets see them
  std::vector<Name> names_{};
  std::set<const Statement*> given_{};
  std::uint32_t host_words_ = 0, vram_words_ = World::kVram;
  Program program_{};
};

// clang-format off
const std::array<ProgramReader::Statement, 20> ProgramReader::kStatements{{
    {"program RULE NAME", [](auto& r, auto& a) { r.program_.rule = a.texts[0], r.program_.name = a.texts[1]; }, kOnce | kNeeded},
    {"question \"TEXT\"", [](auto& r, auto& a) { r.program_.question = a.texts[0]; }, kOnce | kNeeded},
    {"queue NAME engine=N", [](auto& r, auto& a) { r.new_queue(a); }, kNeeded},
    {"word NAME", [](auto& r, auto& a) { r.new_word(a.texts[0], r.host_words_, World::kVram); }},
    {"vram NAME", [](auto& r, auto& a) { r.new_word(a.texts[0], r.vram_words_, World::kWords); }},
    {"prefetch", [](auto& r, auto&) { r.program_.parts.prefetch = true; }},
    {"late_rptr", [](auto& r, auto&) { r.program_.parts.late_rptr = true; }},
    {"holding_polls", [](auto& r, auto&) { r.program_.parts.holding_polls = true; }},
    {"split_stores", [](auto& r, auto&) { r.program_.parts.split_stores = true; }},
    {"cut pieces=N", [](auto& r, auto& a) { r.program_.parts.pieces = a.number; }},
    {"put QUEUE|WORD", [](auto& r, auto& a) { r.put(a); }, kOwn},
    {"ring QUEUE", [](auto& r, auto& a) { r.act([a](World& w) { w.ring(a.index[0]); }); }},
    {"store WORD VALUE", [](auto& r, auto& a) { r.act([a](World& w) { w.store(a.index[0], a.values[0](w)); }); }},
    {"patch QUEUE|WORD DWORD VALUE", [](auto& r, auto& a) { r.patch(a); }},
    {"kernel_store WORD VALUE", [](auto& r, auto& a) { r.act([a](World& w) { w.kernel_store(a.index[0], a.values[0](w)); }); }, kKernel},
    {"kernel_load WORD WORD", [](auto& r, auto& a) { r.act([a](World& w) { w.store(a.index[1], w.kernel_load(a.index[0])); }); }, kKernel},
    {"pause", [](auto& r, auto&) { r.program_.steps.emplace_back(); }},
    {"settle QUEUE", [](auto& r, auto& a) { r.program_.steps.push_back({.when_stalled = a.index[0]}); }},
    {"release WORD", [](auto& r, auto& a) { r.program_.release = a.index[0]; }, kOnce},
    {"outcome \"NAME\" [strict] [rocr] [if VALUE == VALUE and ..]", [](auto& r, auto& a) { r.outcome(a); }, kNeeded | kOwn},
}};
// clang-format on

}  // namespace

Result<Program, std::vector<Diagnostic>> read_program(std::string_view text, std::string_view file) {
  return ProgramReader{text, file}.read();
}

}  // namespace sdma::litmus
