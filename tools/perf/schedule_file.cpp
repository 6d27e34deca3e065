// SPDX-License-Identifier: MIT
#include "schedule_file.hpp"

#include "point.hpp"
#include "ranks.hpp"
#include "sdma/schedule/run.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <map>

namespace collectives::perf {

using namespace sdma;

namespace {

using Failure = std::vector<Diagnostic>;

constexpr std::string_view kSuffix = ".sdma";
constexpr std::string_view kGpus = "N", kBytes = "bytes";

std::string_view path_of(std::string_view word) noexcept {
  const auto at = word.find(std::string(kSuffix) + ":");
  return at == word.npos ? word : word.substr(0, at + kSuffix.size());
}

bool is_letter(char c) noexcept { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }
bool is_digit(char c) noexcept { return c >= '0' && c <= '9'; }

/// Calls `word` for each name in the expression and `other` for
/// everything between names. A number such as 64K is not a name.
template <class Word, class Other> void split(std::string_view expression, Word word, Other other) {
  while (!expression.empty()) {
    std::size_t n = 0;
    while (n < expression.size() && (is_letter(expression[n]) || is_digit(expression[n]))) ++n;
    if (n != 0 && is_letter(expression[0])) word(expression.substr(0, n));
    else other(expression.substr(0, n = std::max<std::size_t>(n, 1)));
    expression.remove_prefix(n);
  }
}

bool uses(std::string_view expression, std::string_view name) {
  bool found = false;
  split(
      expression, [&](std::string_view w) { found = found || w == name; }, [](std::string_view) {});
  return found;
}

/// The address that an alias stands for, and the buffer there.
struct Origin {
  const Schedule::Buffer* buffer{};
  GpuVa va{};
};
std::optional<Origin> origin(const Schedule& s, GpuVa va) {
  for (auto left = s.buffers.size() + 1; left != 0; --left) {
    const auto at = find_symbol(s, va);
    if (!at || at->signal) return {};
    const auto& b = s.buffers[at->index];
    if (!b.at) return Origin{&b, va};
    va = *b.at + at->offset;
  }
  return {};
}

/// The bytes that must come from the random buffer of another GPU, each counted once.
std::uint64_t covered(const Schedule& s) {
  std::map<std::uint64_t, std::uint64_t> ranges;  // by begin: end
  for (const auto& e : s.expectations) {
    if (e.kind != Schedule::Expectation::Kind::bytes) continue;
    const auto to = origin(s, e.left.va), from = origin(s, e.right.va);
    if (!to || !from || to->buffer->place.is_host() || from->buffer->place.is_host()) continue;
    if (to->buffer->place == from->buffer->place || from->buffer->init != Init::random) continue;
    auto& end = ranges[to->va.value];
    end = std::max(end, to->va.value + e.left.bytes);
  }
  std::uint64_t bytes = 0, reached = 0;
  for (const auto& [begin, end] : ranges) {
    bytes += end > reached ? end - std::max(begin, reached) : 0;
    reached = std::max(reached, end);
  }
  return bytes;
}

bool sets(const std::vector<Schedule::Action>& all) {
  return std::any_of(all.begin(), all.end(),
                     [](const Schedule::Action& a) { return a.kind == Schedule::Action::Kind::set || sets(a.body); });
}

class FromFile final : public Contender {
 public:
  FromFile(Bound bound, std::string label, bool alone)
      : bound_(std::move(bound)), label_(std::move(label)), alone_(alone) {}

  Result<void, Diagnostic> fill(std::uint64_t seed) override {
    seed_ = seed;
    filled_ = false;
    return {};
  }
  /// The first round after `fill` fills the buffers and compares them; the others only move bytes.
  Result<void, Diagnostic> wait(Deadline d) override {
    const bool first = !std::exchange(filled_, true);
    const auto left = std::max(d.at - Deadline::Clock::now(), Deadline::Clock::duration{1});
    auto r = run(
        bound_,
        {.time_limit = std::chrono::duration_cast<std::chrono::nanoseconds>(left), .seed = seed_, .contents = first});
    if (!r && r.wrong == 0) return std::move(r.findings.front());
    // Each rank has host threads of its own, and the slowest one counts.
    const auto round = alone_ ? r.round : r.elapsed;
    if (round.count() == 0)
      return Diagnostic{.where = label_,
                        .message = "no wait of its first host thread ends a round, so it cannot be timed",
                        .hint = "let the host wait for the completion: wait host.done == N"};
    us_ = std::chrono::duration<double, std::micro>(round).count();
    if (first) check_ = {r.wrong, r ? "" : r.findings.front().where + ": " + r.findings.front().message};
    return {};
  }
  std::optional<double> microseconds() const override { return us_; }
  Result<Check, Diagnostic> check() override { return check_; }
  std::vector<std::string> notes() const override {
    return {label_ + ": only the bytes that its expectations name are verified"};
  }

 private:
  Bound bound_;
  std::string label_;
  bool alone_;  ///< there is one rank
  std::uint64_t seed_ = 0;
  bool filled_ = false;
  double us_ = 0;
  Check check_{};
};

}  // namespace

void replace(std::vector<ParamSetting>& all, ParamSetting one) {
  std::erase_if(all, [&](const ParamSetting& s) { return s.name == one.name; });
  all.push_back(std::move(one));
}

bool names_file(std::string_view word) noexcept {
  const auto path = path_of(word);
  return path.ends_with(kSuffix);
}

Result<ScheduleFile, Diagnostic> schedule_file(std::string_view word, const std::vector<ParamSetting>& map,
                                               const std::vector<std::shared_ptr<ScheduleFile>>& others) {
  const auto path = path_of(word);
  ScheduleFile f{.path = std::string(path), .set = map};
  auto rest = word.substr(path.size());
  for (const auto settings = std::string(rest); !rest.empty();) {
    rest.remove_prefix(1);
    const auto one = rest.substr(0, rest.find(':'));
    const auto equals = one.find('=');
    if (equals == one.npos || equals == 0 || equals + 1 == one.size())
      return Diagnostic{.where = "--variant",
                        .message = fmt::format("'{}' of {} is not PARAM=VALUE", one, path),
                        .hint = fmt::format("write {}:chunks=4, or {}:chunk=bytes/N", path, path)};
    replace(f.set, {std::string(one.substr(0, equals)), std::string(one.substr(equals + 1))});
    rest.remove_prefix(one.size());
  }
  const auto folderless = std::filesystem::path(path).filename().string() + std::string(word.substr(path.size()));
  const bool taken = std::any_of(others.begin(), others.end(),
                                 [&](const auto& o) { return o->label == folderless && o->path != path; });
  f.label = taken ? std::string(word) : folderless;
  return f;
}

Result<void, Failure> load(ScheduleFile& f, std::string text) {
  f.text = std::move(text);
  SourceMap map;
  const auto s = parse_schedule(f.text, f.path, {.read = files_beside(f.path), .map = &map});
  if (!s) return s.error();
  f.triggered = std::any_of(s->hosts.begin(), s->hosts.end(), [](const auto& h) { return sets(h.actions); });
  f.params = map.params;
  const auto has = [&](std::string_view name) {
    return std::find(map.params.begin(), map.params.end(), name) != map.params.end();
  };
  const auto given = f.set;
  const auto said = [&](std::string_view what, bool exactly) {
    return std::any_of(given.begin(), given.end(), [&](const ParamSetting& one) {
      return one.name == what || (exactly ? one.value == what : uses(one.value, what));
    });
  };
  const auto its =
      map.params.empty() ? std::string("it has no params") : fmt::format("its params: {}", fmt::join(map.params, ", "));
  for (const auto& one : given)
    if (!has(one.name))
      return Failure{{.where = f.path,
                      .message = fmt::format("it has no param '{}'", one.name),
                      .hint = its + "; a setting for one file only follows its name: ring.sdma:chunk=bytes/N"}};
  if (!said(kGpus, true)) {
    if (!has(kGpus))
      return Failure{{.where = f.path,
                      .message = "no param says how many GPUs it has",
                      .hint = fmt::format("declare `param N = 4`, or name another: --map gpus=N ({})", its)}};
    f.set.push_back({std::string(kGpus), std::string(kGpus)});
  }
  if (!said(kBytes, false)) {
    if (!has(kBytes))
      return Failure{
          {.where = f.path,
           .message = "no param says how many bytes it moves",
           .hint = fmt::format("declare `param bytes = 1M`, or name another: --map chunk=bytes/N ({})", its)}};
    f.set.push_back({std::string(kBytes), std::string(kBytes)});
  }
  return {};
}

bool set_param(ScheduleFile& f, const std::string& name, const std::string& value) {
  if (std::find(f.params.begin(), f.params.end(), name) == f.params.end()) return false;
  replace(f.set, {name, value});
  return true;
}

bool prelaunched(const Way& w) noexcept { return w.file ? w.file->triggered : w.prelaunch; }

std::string with_numbers(std::string_view expression, std::uint32_t gpus, std::uint64_t bytes) {
  std::string text;
  split(
      expression,
      [&](std::string_view w) {
        text += w == kGpus ? std::to_string(gpus) : w == kBytes ? std::to_string(bytes) : std::string(w);
      },
      [&](std::string_view other) { text += other; });
  return text;
}

Result<Schedule, Failure> schedule_of(const ScheduleFile& f, const Options& o) {
  ParseOptions p{.read = files_beside(f.path)};
  for (const auto& s : f.set) p.set.push_back({s.name, with_numbers(s.value, o.gpus, o.bytes)});
  auto s = parse_schedule(f.text, f.path, p);
  if (!s) return std::move(s.error());
  const auto refuse = [&](std::string message, std::string hint) {
    return Failure{{.where = f.label, .message = std::move(message), .hint = std::move(hint)}};
  };
  if (expects_finding(*s))
    return refuse("it contains a deliberate error for the checker, so it is not run", "sdma check reports the error");
  if (s->gpus != o.gpus)
    return refuse(fmt::format("it has {} GPUs, not {}", s->gpus, o.gpus),
                  "let the param N say how many: gpus N, or name another param: --map gpus=N");
  const auto moves = moved_bytes(o), named = covered(*s);
  if (s->expectations.empty())
    return refuse("it has no expectations, so its data cannot be verified",
                  "say what must be true in the end: expect gpu1.buf[0..+chunk] == old gpu0.buf[0..+chunk]");
  if (named < moves)
    return refuse(
        fmt::format(
            "its expectations cover {} bytes that come from random buffers of other GPUs, but {} of {} moves {}", named,
            name(o.collective), size_text(o.bytes), moves),
        "so it does other work than the variants beside it: correct its params (--map), its expectations, or the size, "
        "which the number of GPUs may have to divide");
  return s;
}

Result<std::unique_ptr<Contender>, Failure> prepare_file(const ScheduleFile& f, const Options& o, Device& d,
                                                         const Settings& settings) {
  auto s = schedule_of(f, o);
  if (!s) return std::move(s.error());
  auto bound = bind(*s, d, bind_options(settings));
  if (!bound) return std::move(bound.error());
  return std::unique_ptr<Contender>(std::make_unique<FromFile>(*std::move(bound), f.label, !settings.ranks));
}

}  // namespace collectives::perf
