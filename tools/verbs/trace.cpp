// SPDX-License-Identifier: MIT
// sdma trace: shows a recording as a picture, as JSON Lines or as text, or follows one as it is made.
#include "core/plural.hpp"
#include "input.hpp"
#include "interrupt.hpp"
#include "output.hpp"
#include "recordings.hpp"
#include "sdma/schedule/text.hpp"
#include "sdma/trace/page.hpp"
#include "sdma/trace/write.hpp"
#include "shared_options.hpp"
#include "trace/records.hpp"
#include "verb.hpp"

#include <fmt/format.h>

#include <fcntl.h>
#include <unistd.h>
#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <optional>

namespace sdma::tool {
namespace {

struct TraceArguments {
  std::vector<std::string> inputs{};
  std::string output = "-";
  std::optional<trace::Form> format{};
  bool follow = false, schedule = false;
  std::string names{};
  std::vector<std::uint32_t> gpus{};
  std::optional<Generation> generation{};  ///< of the GPUs of a log of the HIP runtime

  std::string input() const { return inputs.empty() ? "-" : inputs.front(); }
  /// The requested form, or the one that the output's name selects.
  trace::Form chosen() const { return format.value_or(trace::form_of(output)); }
};

int complain_about(const std::string& input, int error) {
  report({.where = shown(input), .message = std::string("cannot be read: ") + std::strerror(error)});
  return kInput;
}

/// True if no writer has the file open: only then does the kernel grant a read lease. False also without leases.
bool abandoned(int fd) {
  if (::fcntl(fd, F_SETLEASE, F_RDLCK) != 0) return false;
  ::fcntl(fd, F_SETLEASE, F_UNLCK);
  return true;
}

/// Shows events as they are written, until their writer has closed the file.
int follow(const TraceArguments& o) {
  constexpr useconds_t kPause = 20'000;
  Doing following("following " + shown(o.input()));
  const bool piped = o.input() == "-";
  const int fd = piped ? STDIN_FILENO : ::open(o.input().c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return complain_about(o.input(), errno);
  trace::LinesReader recording(shown(o.input()));
  Output out{o.output, Output::Kind::live};
  std::uint64_t first_ns = 0;
  std::array<char, 65'536> buffer{};
  std::size_t read_events = 0;
  for (bool last = false;;) {
    const auto n = ::read(fd, buffer.data(), buffer.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return complain_about(o.input(), errno);
    if (n == 0 && (piped || last)) return out.close() ? kOk : out.exit_code();
    if (n == 0) {
      // Read once more after the writer has closed the file.
      last = abandoned(fd);
      if (!last) ::usleep(kPause);
      continue;
    }
    const std::string_view more(buffer.data(), static_cast<std::size_t>(n));
    if (read_events == 0 && trace::detail::is_records(more))
      return complain("'" + shown(o.input()) + "' is a binary recording, which --follow does not read",
                      "omit --follow, or record to a .jsonl file"),
             kInput;
    const auto t = recording.feed(more);
    if (!t) return report(t.error()), kInput;
    for (const auto& e : t->events) {
      if (first_ns == 0) first_ns = e.ns;
      out.text() += trace::to_line(*t, e, first_ns);
    }
    read_events += t->events.size();
    following.now(fmt::format("following {}, after {}", shown(o.input()), plural(read_events, "event")));
    if (!out.flush()) return out.exit_code();
  }
}

/// What else a file is that is not a trace: something that this program reads in another way.
std::optional<Diagnostic> other_than_trace(const std::string& input) {
  const auto begin = beginning_of(input).value_or("");
  if (is_schedule(begin))
    return Diagnostic{.where = shown(input),
                      .message = "this is a schedule, and not a trace",
                      .hint =
                          "sdma simulate --trace=run.html FILE predicts a trace; sdma run --trace=run.jsonl FILE "
                          "records one"};
  if (begins_recording(begin))
    return Diagnostic{.where = shown(input),
                      .message = "this is a recording in the form of another tool",
                      .hint =
                          "ui.perfetto.dev opens a Chrome trace; sdma trace --schedule FILE writes a schedule of the "
                          "copies in a recording"};
  return {};
}

/// Reads a recording, and adds the names of --names to its own.
Result<trace::Trace, Diagnostic> load(const TraceArguments& o, const std::string& input) {
  const Doing reading("reading " + shown(input));
  auto t = trace::load_json_lines(input);
  if (!t)
    if (auto other = other_than_trace(input)) return *std::move(other);
  if (t && !o.gpus.empty()) t = trace::of_gpus(*std::move(t), o.gpus);
  if (!t || o.names.empty()) return t;
  auto names = load_names(o.names);
  if (!names) return names.error();
  names->add(t->names);
  t->names = std::move(*names);
  return t;
}

int tell_lost(const std::string& input, std::uint64_t lost) {
  report(
      lost_events(shown(input), lost,
                  "record again: sdma run --events=N keeps N events, and sdma simulate keeps all; sdma emulate loses "
                  "them on a full disk"));
  return kUndecided;
}

/// The copies that another tool has recorded, as a schedule.
int schedule(const TraceArguments& o) {
  CopiesOptions options{.generation = o.generation};
  for (std::size_t i = 1; i < o.inputs.size(); ++i) {
    auto text = read_text(o.inputs[i]);
    if (!text) return report(text.error()), kInput;
    options.calls.push_back({.file = shown(o.inputs[i]), .text = *std::move(text)});
  }
  const auto copies = load_copies(o.input(), options);
  if (!copies) return report(copies.error()), kInput;
  if (const int code = write_text(o.output, schedule_text(*copies)); code != kOk) return code;
  tell_assumed(*copies);
  const auto wrong = contradictions(*copies);
  report(wrong);
  return wrong.empty() ? kOk : kUndecided;
}

/// One trace, or two side by side.
int page(const TraceArguments& o) {
  std::vector<trace::PageTrace> traces;
  for (const auto& input : o.inputs.empty() ? std::vector{o.input()} : o.inputs) {
    auto t = load(o, input);
    if (!t) return report(t.error()), kInput;
    traces.push_back({shown(input), *std::move(t)});
  }
  int status = write_text(o.output, trace::to_page(traces));
  if (status != kOk) return status;
  for (const auto& t : traces)
    if (t.trace.lost != 0) status = tell_lost(t.name, t.trace.lost);
  return status;
}

int trace_verb(const TraceArguments& o) {
  if (!o.schedule && o.inputs.size() > trace::kPageTraces) {
    report({.where = o.inputs[trace::kPageTraces],
            .message = "too many traces",
            .hint = "an HTML page shows at most two, side by side"});
    return kUsage;
  }
  if (!o.schedule && o.inputs.size() > 1 && (o.follow || o.chosen() != trace::Form::html)) {
    report({.where = o.inputs[1],
            .message = "only an HTML page can show two traces",
            .hint = o.follow ? "give one FILE" : "add --format=html, or give one FILE"});
    return kUsage;
  }
  if (o.schedule && (o.follow || o.format || !o.names.empty()))
    return complain("--schedule takes no --format, --follow or --names", "sdma trace --help");
  if (o.generation && !o.schedule)
    return complain("--gfx goes with --schedule", "a trace names the version of its packets itself");
  if (!o.gpus.empty() && (o.follow || o.schedule))
    return complain("--gpu does not go with --follow or --schedule", "sdma trace --help");
  if (!o.names.empty() && o.follow)
    return complain("--follow does not take --names", "sdma emulate --names=FILE names addresses from the beginning");
  if (o.follow && o.format.value_or(trace::Form::text) != trace::Form::text)
    return complain("--follow shows text only", "omit --format");
  auto read = o.inputs.empty() ? std::vector{o.input()} : o.inputs;
  if (!o.names.empty()) read.push_back(o.names);
  if (reads_stdin_twice(read)) return kUsage;
  if (overwrites({{"-o", o.output}}, read)) return kUsage;
  if (o.follow) return follow(o);
  if (o.schedule) return schedule(o);
  if (o.chosen() == trace::Form::html) return page(o);
  const auto t = load(o, o.input());
  if (!t) return report(t.error()), kInput;
  if (const int code = write_text(o.output, trace::to_string(*t, o.chosen())); code != kOk) return code;
  return t->lost == 0 ? kOk : tell_lost(o.input(), t->lost);
}

}  // namespace

void add_trace(VerbOptions& verb, Action& action) {
  const auto o = std::make_shared<TraceArguments>();
  verb.values("FILE", o->inputs,
              "a trace in JSON Lines or a binary recording, or two for an HTML page; with --schedule, a recording of "
              "copies, and after rocprofv3's CSV the tables of its ranges and calls, which need not be named if they "
              "lie beside it; - is standard input")
      .type("");
  add_choice<std::optional<trace::Form>>(
      verb, "--format", o->format,
      {{"perfetto", trace::Form::perfetto},
       {"html", trace::Form::html},
       {"jsonl", trace::Form::jsonl},
       {"text", trace::Form::text}},
      "output form: JSON for ui.perfetto.dev (default), an HTML page (default for -o NAME.html), validated "
      "JSON Lines (default for -o NAME.jsonl), or text");
  verb.call(
      "--json", [o] { o->format = trace::Form::jsonl; }, "short for --format=jsonl");
  verb.flag("--follow", o->follow, "print events as text while they are recorded, until the writer ends");
  verb.flag(
      "--schedule", o->schedule,
      "write a schedule of the copies that another tool has recorded: rocprofv3 (JSON, CSV, a database of rocpd), a "
      "Chrome trace, or a log of AMD_LOG_LEVEL=4");
  add_parsed(
      verb, "--gfx", o->generation,
      [](const std::string& s) { return s.starts_with("gfx") ? generation_of(s) : std::nullopt; },
      "a known target: write gfx90a, gfx942, gfx1100 or the like",
      "with --schedule: GPU of a log of the HIP runtime, whose numbers of engines are ROCr's")
      .type("TARGET");
  verb.value("--names", o->names, "names for addresses: a file with one line FIRST..+SIZE NAME per range").type("FILE");
  add_shown_gpus(verb, o->gpus);
  verb.value("-o,--output", o->output, "output file; - is standard output").type("FILE");
  verb.exits(
      {{kUndecided, "written, but events were lost during recording, or times of the file contradict the schedule"}});
  verb.manual("docs/trace.md");
  verb.footer(
      "Examples:\n"
      "  sdma trace run.jsonl -o run.json          open it in ui.perfetto.dev\n"
      "  sdma trace run.jsonl -o run.html          open it in a browser\n"
      "  sdma trace run.bin -o run.jsonl           a binary recording of sdma emulate\n"
      "  sdma trace model.jsonl run.jsonl -o both.html  side by side\n"
      "  sdma trace --follow run.jsonl             events as they happen\n"
      "  sdma trace --schedule kineto.json -o copies.sdma\n"
      "  sdma trace --format=jsonl run.jsonl       check that it is complete");
  action = [o] { return trace_verb(*o); };
}

}  // namespace sdma::tool
