// SPDX-License-Identifier: MIT
#include "msccl.hpp"
#include "algorithm.hpp"
#include "sdma/core/number.hpp"

#include <algorithm>

namespace sdma::msccl {
namespace {

constexpr StepType kStepTypes[] = {
    {"s", false, false, true, true, false},   {"r", true, false, false, false, true},
    {"cpy", false, false, false, true, true}, {"re", false, true, false, true, true},
    {"rcs", true, false, true, false, true},  {"rrc", true, true, false, true, true},
    {"rrs", true, true, true, true, false},   {"rrcs", true, true, true, true, true},
};

constexpr Collective kCollectives[] = {
    {"allgather", true, true, false, true,
     "for i in 0..N\n  expect gpu*.OUT[i*part..+part] == old gpu{i}.IN[own*i*part..+part]\nend\n"},
    {"alltoall", true, false, false, true,
     "for r in 0..N\n  for i in 0..N\n    expect gpu{r}.OUT[i*part..+part] == old gpu{i}.IN[r*part..+part]\n  end\n"
     "end\n"},
    {"reducescatter", true, false, true, true,
     "for r in 0..N\n  expect gpu{r}.OUT[own*r*part..+part] == old sum(gpu{k}.IN[r*part..+part] for k in 0..N) "
     "type=f32 order=free\nend\n"},
    {"allreduce", false, false, false, true,
     "for r in 0..N\n  expect gpu{r}.OUT == old sum(gpu{k}.IN for k in 0..N) type=f32 order=free\nend\n"},
    {"broadcast", false, false, false, true, "expect gpu*.OUT == old gpu{root}.IN\n"},
    {"reduce", false, false, false, true,
     "expect gpu{root}.OUT == old sum(gpu{k}.IN for k in 0..N) type=f32 order=free\n"},
    {"gather", true, true, false, false,
     "for i in 0..N\n  expect gpu{root}.OUT[i*part..+part] == old gpu{i}.IN\nend\n"},
    {"scatter", true, false, true, false,
     "for r in 0..N\n  expect gpu{r}.OUT == old gpu{root}.IN[r*part..+part]\nend\n"},
};

/// The rest of a text after what may precede the first element.
std::string_view after_prolog(std::string_view text) noexcept {
  constexpr std::pair<std::string_view, std::string_view> kParts[] = {{"<?", "?>"}, {"<!--", "-->"}, {"<!", ">"}};
  for (;;) {
    text.remove_prefix(std::min(text.find_first_not_of(" \t\r\n"), text.size()));
    const auto part =
        std::find_if(std::begin(kParts), std::end(kParts), [&](const auto& p) { return text.starts_with(p.first); });
    if (part == std::end(kParts)) return text;
    const bool declares = part->second == ">";
    // Entities in a document type have brackets of their own: what follows them is found by its name.
    const auto end = declares ? text.find("<algo") : text.find(part->second);
    if (end == text.npos) return {};
    text.remove_prefix(declares ? end : end + part->second.size());
  }
}

}  // namespace

const StepType* step_type(std::string_view name) noexcept {
  const auto at =
      std::find_if(std::begin(kStepTypes), std::end(kStepTypes), [&](const StepType& t) { return t.name == name; });
  return at == std::end(kStepTypes) ? nullptr : at;
}
const Collective* collective(std::string_view name) noexcept {
  const auto at = std::find_if(std::begin(kCollectives), std::end(kCollectives),
                               [&](const Collective& c) { return c.name == name; });
  return at == std::end(kCollectives) ? nullptr : at;
}

std::int64_t in_chunks(const Algorithm& a) noexcept {
  const auto* c = collective(a.collective);
  return c && c->in_piece ? a.chunks / static_cast<std::int64_t>(a.gpus.size()) : a.chunks;
}
std::int64_t out_chunks(const Algorithm& a) noexcept {
  const auto* c = collective(a.collective);
  return c && c->out_piece ? a.chunks / static_cast<std::int64_t>(a.gpus.size()) : a.chunks;
}

bool begins(std::string_view text) noexcept {
  constexpr std::string_view kRoot = "<algo";
  const auto rest = after_prolog(text);
  return rest.starts_with(kRoot) && rest.size() > kRoot.size() &&
         std::string_view(" \t\r\n/>").find(rest[kRoot.size()]) != std::string_view::npos;
}

#if !SDMA_WITH_EXPAT
Result<Algorithm, Wrong> read_algorithm(std::string_view, const std::string& file) {
  return Wrong{.all = {{.where = file,
                        .message = "this is XML of MSCCL, and this program was built without expat",
                        .hint = "build it with libexpat1-dev"}}};
}
#endif

Result<Text, Wrong> translate(std::string_view xml, const std::string& file, const Choices& choices) {
  auto a = read_algorithm(xml, file);
  if (!a) return std::move(a.error());
  if (auto wrong = connect(*a)) return *std::move(wrong);
  return lower(*a, choices);
}

std::optional<Wrong> make_schedule(std::string& text, const std::string& file, std::vector<ParseOptions::Setting>& set,
                                   Made& made) {
  constexpr std::uint64_t kMostSlots = 1024;
  if (!begins(text)) return {};
  Choices choices;
  std::optional<Wrong> wrong;
  std::erase_if(set, [&](const ParseOptions::Setting& s) {
    if (!is_choice(s.name)) return false;
    const bool slots = s.name == "slots";
    const auto n = parse_size(s.value);
    if (!n || *n > (slots ? kMostSlots : 1))
      wrong = Wrong{.all = {{.where = "set " + s.name,
                             .message = "'" + s.value + "' is not a number from 0 to " +
                                        std::to_string(slots ? kMostSlots : 1)}}};
    else if (slots) choices.slots = *n;
    else choices.in_place = *n == 1;
    return true;
  });
  if (wrong) return wrong;
  auto result = translate(text, file, choices);
  if (!result) return std::move(result.error());
  text = std::move(result->text);
  made = std::move(result->made);
  return {};
}

Result<Schedule, std::vector<Diagnostic>> read_schedule(std::string text, const std::string& file, ParseOptions options,
                                                        Made* made) {
  Made own;
  auto& of_text = made ? *made : own;
  if (auto wrong = make_schedule(text, file, options.set, of_text)) return std::move(wrong->all);
  auto s = parse_schedule(text, file, options);
  if (!s) of_text.move_lines(s.error());
  else if (options.map) of_text.move_lines(*options.map);
  return s;
}

void Made::move_lines(SourceMap& map) const {
  if (!*this) return;
  const auto move = [&](SourceMap::Location& l) {
    if (l.line > 0 && l.line <= lines.size()) l.line = lines[l.line - 1];
    l.column = 0;
  };
  for (auto* all : {&map.buffers, &map.signals}) std::for_each(all->begin(), all->end(), move);
  for (auto& actions : map.actions) std::for_each(actions.begin(), actions.end(), move);
  for (auto& queue : map.packets)
    for (auto& p : queue) move(p.location);
}
void Made::move_lines(std::vector<Diagnostic>& all) const {
  for (auto& d : all) {
    if (d.at.line == 0 || d.at.line > lines.size()) continue;
    d.at.line = lines[static_cast<std::size_t>(d.at.line) - 1];
    d.at.column = 0;
    d.where = to_string(d.at);
    d.excerpt.clear();
  }
}

}  // namespace sdma::msccl
