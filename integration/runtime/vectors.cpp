// SPDX-License-Identifier: MIT
#include "vectors.hpp"

#include "sdma/core/number.hpp"
#include "sdma/queue/ring.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <span>

namespace runtime {
namespace {

using namespace sdma;

constexpr std::uint64_t kSignalBytes = 128;
/// A signal of the runtime is 2 while a command that blocks is pending, and 1 when it is complete.
constexpr std::int64_t kBlocking = 2;
constexpr std::uint64_t kTurns[] = {63, 62};

SignalView signal(std::uint64_t index, std::uint64_t value) {
  const auto at = kSignals + kSignalBytes * index;
  return {.value_word = at + 8,
          .value = static_cast<std::int64_t>(value),
          .event_mailbox_ptr = 0,
          .event_id = 0,
          .start_stamp = at + 64,
          .end_stamp = at + 96,
          .handle = index};
}

/// The parts of a text between separators. A text that ends with one has no empty part after it.
std::vector<std::string_view> parts(std::string_view text, char separator) {
  std::vector<std::string_view> all;
  while (!text.empty()) {
    const auto end = std::min(text.find(separator), text.size());
    all.push_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return all;
}

std::optional<std::uint64_t> hex(std::string_view text) {
  return text.starts_with("0x") ? parse_count(text) : parse_count("0x" + std::string(text));
}

/// One line, word by word. The first word that cannot be read is kept.
class Line {
 public:
  explicit Line(std::string_view text) {
    for (const auto word : parts(text, ' '))
      if (const auto equals = word.find('='); equals != word.npos)
        words_.insert_or_assign(word.substr(0, equals), word.substr(equals + 1));
      else if (!word.empty()) fail(word);
  }
  const std::string& bad() const { return bad_; }
  void fail(std::string_view word) {
    if (bad_.empty()) bad_ = word;
  }

  std::string_view word(std::string_view name, bool needed = true) {
    const auto it = words_.find(name);
    if (it != words_.end()) return it->second;
    if (needed) fail(std::string(name) + "=");
    return {};
  }
  std::uint64_t number(std::string_view name) { return take(name, word(name), parse_count); }
  std::uint64_t hex_number(std::string_view name) { return take(name, word(name), hex); }
  std::vector<std::uint64_t> numbers(std::string_view name, std::size_t count) {
    std::vector<std::uint64_t> all;
    for (const auto part : parts(word(name), ',')) all.push_back(take(name, part, parse_count));
    if (all.size() != count) fail(std::string(name) + "=");
    all.resize(count);
    return all;
  }
  std::vector<SignalView> signals(std::string_view name) {
    std::vector<SignalView> all;
    for (const auto part : parts(word(name, false), ',')) {
      const auto colon = std::min(part.find(':'), part.size());
      const auto value = colon == part.size() ? 0 : take(name, part.substr(colon + 1), hex);
      all.push_back(signal(take(name, part.substr(0, colon), parse_count), value));
    }
    return all;
  }

 private:
  template <class Parse> std::uint64_t take(std::string_view name, std::string_view text, Parse parse) {
    const auto v = parse(text);
    if (!v) fail(fmt::format("{}={}", name, text));
    return v.value_or(0);
  }
  std::map<std::string_view, std::string_view> words_;
  std::string bad_;
};

Volume volume(const std::vector<std::uint64_t>& n) {
  return {.base = GpuVa{n[0]}, .pitch = n[1], .slice = n[2], .x = n[3], .y = n[4], .z = n[5]};
}

/// The engine and link of a command, as the file names them: each has turns of its own.
using Turns = std::map<std::array<std::string_view, 4>, std::size_t>;

void read_work(Line& l, Vector& v) {
  if (v.kind == "fill") {
    v.fill = LinearFill{.dst = GpuVa{l.number("dst")},
                        .value = static_cast<std::uint32_t>(l.hex_number("value")),
                        .dwords = l.number("count")};
  } else if (v.kind == "box") {
    const auto size = l.numbers("box", 3);
    v.box = Box{volume(l.numbers("src", 6)), volume(l.numbers("dst", 6)), size[0], size[1], size[2]};
  } else if (v.kind == "copy" || v.kind == "copy_blocking") {
    v.copies = {{GpuVa{l.number("src")}, GpuVa{l.number("dst")}, l.number("bytes")}};
  } else {
    l.fail("kind=" + v.kind);
  }
}

void read_result(Line& l, std::string_view text, Vector& v) {
  const auto words = parts(text, ' ');
  if (words.empty()) return l.fail("=>");
  v.refused = words[0] != "0";
  for (const auto word : std::span(words).subspan(1)) {
    const auto dword = hex(word);
    if (!dword || *dword >> 32 != 0) return l.fail(word);
    v.dwords.push_back(static_cast<std::uint32_t>(*dword));
  }
}

Vector read_vector(Line& l, std::string_view result, Turns& turns) {
  Vector v;
  v.isa = l.word("isa");
  v.kind = l.word("kind");
  const auto target = target_version(v.isa);
  const HostLink link{.atomics = l.number("atomics") != 0, .xgmi_to_host = l.number("xgmi") != 0};
  const auto engine = target ? engine_of(*target, link) : std::nullopt;
  if (!engine) l.fail("isa=" + v.isa);
  v.engine = engine.value_or(Engine{});
  if (const auto cap = l.hex_number("cap"); cap != 0) v.engine.longest_copy = static_cast<std::uint32_t>(cap);
  read_work(l, v);
  if (v.fill || v.kind == "copy_blocking") {
    auto& turn = turns[{l.word("isa"), l.word("atomics"), l.word("xgmi"), l.word("cap")}];
    v.out = signal(kTurns[turn++ % std::size(kTurns)], kBlocking);
  } else {
    v.after = l.signals("deps");
    const auto out = l.signals("out");
    if (out.size() != 1) l.fail("out=");
    else v.out = out[0];
  }
  v.out.event_mailbox_ptr = l.number("mailbox");
  v.out.event_id = static_cast<std::uint32_t>(l.number("event"));
  const auto gang = l.signals("gang");
  const bool leads = l.number("leads") != 0;
  if (leads) v.members = gang;
  v.stamps = l.number("profiling") != 0 && (leads || gang.empty());
  read_result(l, result, v);
  return v;
}

}  // namespace

Command Vector::command() const {
  Command c{.work = {}, .after = after, .members = members, .out = out, .stamps = stamps};
  if (fill) c.work = *fill;
  else if (box) c.work = *box;
  else c.work = std::span(copies);
  return c;
}

Result<std::vector<Vector>, Diagnostic> read_vectors(std::string_view name, std::string_view text) {
  std::vector<Vector> all;
  Turns turns;
  std::size_t number = 0;
  for (const auto line : parts(text, '\n')) {
    ++number;
    if (line.empty() || line.starts_with('#')) continue;
    constexpr std::string_view kArrow = " => ";
    const auto arrow = std::min(line.find(kArrow), line.size());
    Line words{line.substr(0, arrow)};
    auto v = read_vector(words, line.substr(std::min(arrow + kArrow.size(), line.size())), turns);
    if (!words.bad().empty())
      return Diagnostic{.where = fmt::format("{}:{}", name, number),
                        .message = fmt::format("\"{}\" is missing or cannot be read", words.bad()),
                        .hint = "integration/runtime/vectors.hpp describes a line"};
    v.line = number;
    all.push_back(std::move(v));
  }
  return all;
}

std::optional<Difference> compare(const Vector& v) {
  const auto command = v.command();
  const auto length = dwords_of(v.engine, command);
  std::vector<std::uint32_t> written(length ? std::max(*length, v.engine.least) : 0);
  AnyWriter w{written, {v.engine.generation}};
  if (!length || encode(w, v.engine, command) != Errc::ok) {
    if (v.refused) return {};
    return Difference{};
  }
  fill_nops(std::span(written).subspan(w.position_dwords()));
  const auto [theirs, ours] = std::mismatch(v.dwords.begin(), v.dwords.end(), written.begin(), written.end());
  if (!v.refused && theirs == v.dwords.end() && ours == written.end()) return {};
  return Difference{static_cast<std::size_t>(ours - written.begin()), std::move(written)};
}

std::string to_string(const Vector& v, const Difference& d) {
  const auto where = fmt::format("line {}: {} on {}: ", v.line, v.kind, v.isa);
  if (v.refused) return where + "the runtime refused it, and this path writes it";
  if (d.written.empty()) return where + "this path refuses it";
  if (d.at == d.written.size() || d.at == v.dwords.size())
    return fmt::format("{}{} dwords, and {} here", where, v.dwords.size(), d.written.size());
  return fmt::format("{}dword {} is {:#010x}, and {:#010x} here", where, d.at, v.dwords[d.at], d.written[d.at]);
}

}  // namespace runtime
