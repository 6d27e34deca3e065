// SPDX-License-Identifier: MIT
// sdma check: errors in a ring, a set of rings, or a schedule.
#include "sdma/check/check.hpp"
#include "check_sweep.hpp"
#include "findings.hpp"
#include "generation.hpp"
#include "input.hpp"
#include "interrupt.hpp"
#include "json/check.hpp"
#include "msccl/check_source.hpp"
#include "output.hpp"
#include "repeat.hpp"
#include "sdma/core/number.hpp"
#include "sdma/stream/rules.hpp"
#include "shared_options.hpp"
#include "verb.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <utility>

namespace sdma::tool {
namespace {

struct CheckArguments {
  InputOptions input;
  std::vector<std::string> more;  // further files
  ParseOptions parse;
  CheckSweep sweep;
  Profile profile;
  std::string topology;
  std::vector<GpuId> gpus;
  StreamCheckOptions check;
  std::size_t max_packets = CheckOptions{}.max_packets;
  bool kernel = false, rules = false, covered = false, strict = false, cuda = false;
  FindingsForm form = FindingsForm::text;
  bool json() const noexcept { return form == FindingsForm::json; }
};

/// Lists each id once, because a rule for one stream may also be a rule for a whole schedule.
int list_rules(bool json) {
  if (json) return write_text("-", json::document(json::check_rules()));
  std::string out;
  const auto in_schedule = [](const ScheduleRule& r) {
    return fmt::format("{}: schedule: {}", rule_class(r.severity), r.text);
  };
  std::vector<std::string_view> both;
  for (const auto& r : stream_rules()) {
    out += fmt::format("{}: {}: {}", r.id, rule_class(r.severity), r.text);
    for (const auto& s : schedule_rules())
      if (s.id == r.id) out += "; " + in_schedule(s), both.push_back(r.id);
    out += "\n";
  }
  for (const auto& r : schedule_rules())
    if (std::find(both.begin(), both.end(), r.id) == both.end()) out += fmt::format("{}: {}\n", r.id, in_schedule(r));
  for (const auto& p : kPackets)
    for (const auto& r : p.rules)
      out += fmt::format("{}: {}: {}: {}\n", r.id, rule_class(Severity::error), p.name, r.text);
  return write_text("-", std::move(out));
}

int list_covered(bool json) {
  if (json) return write_text("-", json::document(json::covered()));
  std::string out;
  for (const auto& c : covered()) out += fmt::format("{}: {}\n", c.id, c.text);
  return write_text("-", std::move(out));
}

/// Warnings with one cause have one rule and one hint: as text, the first says how many there are, and in which lines.
void add_warning(Findings& to, const CheckReport& report, const CheckFinding& f) {
  const auto alike = [&](const CheckFinding& g) {
    return g.diagnostic.severity == f.diagnostic.severity && g.diagnostic.rule == f.diagnostic.rule &&
           g.diagnostic.hint == f.diagnostic.hint;
  };
  const auto& all = report.findings;
  if (&*std::find_if(all.begin(), all.end(), alike) != &f) return;
  auto d = f.diagnostic;
  std::set<std::uint64_t> lines;
  for (const auto& g : all)
    if (alike(g)) lines.insert(g.diagnostic.at.line);
  if (const auto more = std::count_if(all.begin(), all.end(), alike) - 1; more > 0)
    d.excerpt += fmt::format(
        "{}  and {} more like it{}", d.excerpt.empty() ? "" : "\n", more,
        *lines.begin() == 0 ? "" : fmt::format(", in line{} {}", lines.size() > 1 ? "s" : "", fmt::join(lines, ", ")));
  to.add(d);
}

int judge(Findings& to, const Schedule& s, const CheckOptions& options, const CheckReport& report) {
  for (const auto& f : report.findings)
    if (to.is_text() && f.diagnostic.severity == Severity::warning && !f.diagnostic.hint.empty())
      add_warning(to, report, f);
    else to.add(f.diagnostic, [&] { return json::of(f); });
  const auto code = exit_of(s, report);
  to.answer([&] { return json::answer_of(report, options, s); });
  if (code != kRefuted) to.say(json::summary(report, options, s));
  else
    for (const auto& rule : json::expected_findings(s))
      to.unmet({.rule = "expected-finding",
                .where = options.file,
                .message = "expected to find '" + rule + "' and no other error",
                .hint = "correct the schedule, or its lines 'expect finding'"});
  return code;
}

/// The node whose engines and links the checker assumes; null: MI300X.
Result<std::optional<Topology>, Diagnostic> topology(const CheckArguments& o) {
  constexpr std::uint32_t kMostOfCuda = 64;  // CudaOptions::gpus
  if (o.cuda) return std::optional(cuda_layout(kMostOfCuda));
  if (o.topology.empty()) return std::optional<Topology>();
  if (names_layout(o.topology)) {
    auto t = layout(o.topology);
    if (!t) return t.error();
    return std::optional<Topology>(*std::move(t));
  }
  const auto text = read_node(o.topology, "sdma topology --json");
  if (!text) return text.error();
  auto t = topology_from_json(*text, o.topology);
  if (!t) return std::move(t.error());
  return std::optional<Topology>(std::move(*t));
}

/// XML of MSCCL of which no schedule can be made.
int no_schedule(Findings& to, const CheckOptions& options, const msccl::Wrong& wrong) {
  CheckReport report;
  for (const auto& d : wrong.all) report.findings.push_back({.diagnostic = d});
  if (wrong.refuted) return judge(to, {}, options, report);
  for (const auto& d : wrong.all) to.add(d);
  to.answer([&] { return json::unread(options.file, wrong.all.size()); });
  return kInput;
}

/// By its name or its beginning: a ring may be large.
bool holds_schedule(const std::string& path, const Input& in) {
  return is_schedule_name(path) || is_schedule(in.beginning()) || msccl::begins(in.beginning());
}

/// Returns nothing if the file is not a schedule. `after`: what is complete already, for a message.
std::optional<int> check_schedule(Findings& to, const CheckArguments& o, const CheckOptions& options,
                                  const std::string& path, Input& in, const std::string& after = "") {
  if (o.input.form != Form::automatic || !holds_schedule(path, in)) return {};
  if (o.input.generation || o.check.ring_bytes != 0 || o.check.base != 0 || o.kernel)
    return complain("--gfx, --sdma, --ring-bytes, --base and --kernel are for rings, and this is a schedule",
                    "a schedule is checked for sDMA 4.4.2, as user queues");
  auto text = in.whole_text();
  if (!text) return to.unread(text.error()), kInput;
  auto parse = o.parse;
  parse.read = files_beside(path);
  msccl::Made made;
  const auto written = *text;
  const auto given = parse.set;
  if (const auto wrong = msccl::make_schedule(*text, shown(path), parse.set, made))
    return no_schedule(to, options, *wrong);
  for (const auto& n : made.notes) to.add(n);
  if (!o.sweep.values.empty()) {
    parse.set = given;
    return check_swept(o.sweep, options, written, std::move(parse), o.json());
  }
  const Doing checking("checking " + shown(path) + after);
  const auto s = msccl::check_source({*text, made}, shown(path), parse, options);
  if (s) {
    auto with_map = options;
    with_map.map = &s->map;
    return judge(to, s->schedule, with_map, s->report);
  }
  for (const auto& d : s.error()) to.add(d);
  to.answer([&] { return json::unread(options.file, s.error().size()); });
  return kInput;
}

/// An input, opened once: standard input cannot be read again.
struct Named {
  std::string path;
  Result<Input, Diagnostic> in;
  bool is_schedule() const { return in ? holds_schedule(path, *in) : is_schedule_name(path); }
};

/// Several schedules, one after another. The code is that of the worst: one that cannot be read, one that is refuted,
/// one that is not decided.
int check_schedules(Findings& to, const CheckArguments& o, CheckOptions options, std::span<Named> all) {
  if (!o.sweep.values.empty())
    return complain("--sweep is for one schedule, and these are " + std::to_string(all.size()), "name one FILE");
  constexpr int kWorst[] = {kUsage, kInput, kRefuted, kUndecided, kOk};
  const auto rank = [&](int code) { return std::find(std::begin(kWorst), std::end(kWorst), code); };
  int worst = kOk;
  std::size_t done = 0;
  for (auto& [path, in] : all) {
    options.file = shown(path);
    to.begin(options.file);
    int code = kInput;
    const auto after = fmt::format(", after {} of {} files", done++, all.size());
    if (in) code = *check_schedule(to, o, options, path, *in, after);
    else to.unread(in.error());
    if (rank(code) < rank(worst)) worst = code;
    if (code == kUsage || !to.flush()) break;
  }
  return worst;
}

/// Several schedules, each for itself; or several dumps, as the queues of one schedule.
int check_together(Findings& to, const CheckArguments& o, const CheckOptions& options) {
  std::vector<RingDump> dumps;
  auto paths = o.more;
  paths.insert(paths.begin(), o.input.path);
  if (reads_stdin_twice(paths)) return kUsage;
  std::vector<Named> all;
  for (const auto& path : paths) all.push_back({path, Input::open({.path = path, .schedules = true})});
  const auto schedules = std::count_if(all.begin(), all.end(), [](const Named& n) { return n.is_schedule(); });
  // What cannot be opened has no kind. It is an error of its own, whatever the others are.
  const auto rings = std::count_if(all.begin(), all.end(), [](const Named& n) { return n.in && !n.is_schedule(); });
  if (schedules != 0 && rings == 0) return check_schedules(to, o, options, all);
  const auto opened = std::all_of(all.begin(), all.end(), [](const Named& n) { return n.in.has_value(); });
  for (const auto& n : all)
    if (!n.in) to.begin(shown(n.path)), to.unread(n.in.error());
  if (!opened) return kInput;
  if (schedules != 0) {
    const auto first = [&](bool schedule) {
      return std::find_if(all.begin(), all.end(), [=](const Named& n) { return n.is_schedule() == schedule; })->path;
    };
    return report({.where = first(false),
                   .message = "this is not a schedule, and " + first(true) + " is one",
                   .hint = "check schedules in one call, and ring dumps in another one"}),
           kUsage;
  }
  for (const auto& path : paths) {
    to.begin(shown(path));
    auto d = load_dump(path);
    if (!d) return to.unread(d.error()), kInput;
    dumps.push_back(std::move(*d));
  }
  to.begin(options.file);
  auto s = schedule_of(dumps);
  if (!s) return to.unread(s.error()), kInput;
  for (std::size_t i = 0; i < paths.size(); ++i) {
    auto& name = s->queues[i].name;
    const auto at = paths[i].rfind('/') + 1;
    name.clear();
    for (const char c : paths[i].substr(at)) name += c == '.' || c == '-' ? '_' : c;
  }
  auto open = options;
  open.open = true;
  open.profile.indirect_works = open.profile.indirect_works || o.kernel;
  return judge(to, *s, open, sdma::check(*s, open));
}

/// A bundle says what it was checked with.
int check_bundle(const CheckArguments& o, Input& in) {
  if (!o.parse.set.empty() || !o.sweep.values.empty() || !o.topology.empty() || !o.gpus.empty() || o.cuda ||
      o.form == FindingsForm::sarif || !(o.profile == Profile{}))
    return complain("a bundle has its own node, values and assumptions, and is only repeated",
                    "sdma check BUNDLE, without other options but --json");
  const auto text = in.whole_text();
  if (!text) return report(text.error()), kInput;
  return repeat(in.name(), *text, o.json());
}

int check_verb(const CheckArguments& o) {
  if (o.rules) return list_rules(o.json());
  if (o.covered) return list_covered(o.json());
  if (o.form == FindingsForm::sarif && !o.sweep.values.empty())
    return complain("--sarif reports on files, and --sweep on values of a param", "leave one of them out");
  if (o.cuda && !o.topology.empty())
    return complain("--limits=cuda and --topology both say which node it is", "give one of them");
  const auto node = topology(o);
  if (!node) return report(node.error()), kInput;
  const CheckOptions whole{.profile = o.profile,
                           .file = shown(o.input.path),
                           .topology = *node ? &**node : nullptr,
                           .gpus = o.gpus,
                           .max_findings = o.check.max_findings,
                           .max_packets = o.max_packets,
                           .strict = o.strict};
  Findings to{o.form};
  to.begin(whole.file);
  if (!o.more.empty()) {
    const int code = check_together(to, o, whole);
    return code == kUsage ? code : to.close(code);
  }
  auto in = Input::open(o.input);
  if (!in) return to.unread(in.error()), to.close(kInput);
  if (o.input.form == Form::automatic && is_bundle(in->beginning())) return check_bundle(o, *in);
  if (const auto code = check_schedule(to, o, whole, o.input.path, *in))
    return *code == kUsage || !o.sweep.values.empty() ? *code : to.close(*code);
  if (!o.sweep.values.empty()) return complain("--sweep is for schedules, and this is a ring", "leave it out");
  auto options = o.check;
  options.file = in->name();
  options.user_queue = !o.kernel;
  options.strict = o.strict;
  options.generation = in->generation();
  RingPart pending;
  // A dump with positions says where its pending dwords lie: rules about alignment count from the ring's start.
  if (in->is_placed()) {
    auto part = in->pending();
    if (!part) return to.unread(part.error()), to.close(kInput);
    pending = *std::move(part);
    options.generation = in->generation();
    if (options.base == 0) options.base = pending.at;
    // What is left of a packet whose beginning is missing was not written so by the program.
    if (pending.lost() > 0 && pending.gaps.front().inside_packet) options.base += pending.lost() * 4;
  }
  StreamChecker checker{options};
  json::StreamAnswer answer{.file = options.file};
  if (in->generation_assumed()) answer.assumed = options.generation;
  const auto show = [&](std::vector<Diagnostic>& found) {
    for (auto& d : found) {
      if (d.rule == "indirect-user-queue" && (o.profile.indirect_works || in->of_kernel())) continue;
      answer.errors += d.severity == Severity::error;
      answer.warnings += d.severity == Severity::warning;
      to.add(d);
    }
    return to.flush();
  };
  const auto examine = [&](std::span<const std::uint32_t> dwords, bool last) {
    std::vector<Diagnostic> found;
    const auto used = checker.append(found, dwords, last);
    answer.bytes += std::uint64_t{used} * 4;
    return show(found) ? used : dwords.size();
  };
  Result<void, Diagnostic> done;
  if (in->is_placed()) {
    const std::span<const std::uint32_t> all{pending.dwords};
    std::size_t at = 0;
    for (const auto& g : pending.gaps) {
      examine(all.subspan(at, g.at - at), false);
      at = g.at + g.dwords;
      if (g.inside_packet) continue;  // it is in `base`
      std::vector<Diagnostic> found;
      checker.skip(found, all.subspan(g.at, g.dwords));
      show(found);
    }
    examine(all.subspan(at), true);
  } else {
    done = for_each_piece(*in, examine);
  }
  // If a part of the input could not be read, there is no verdict.
  if (done) {
    to.answer([&] { return json::of(answer); });
    if (answer.verdict() != Verdict::refuted) to.say(json::summary(answer));
  } else {
    to.unread(done.error());
  }
  return to.close(done ? static_cast<int>(exit_of(answer.verdict())) : kInput);
}

/// A number that must be a multiple of `unit`.
template <class T>
Option add_number(VerbOptions& verb, const std::string& name, T& value, unsigned unit, const std::string& doc) {
  const auto take = [&value, unit](const std::string& given) -> std::string {
    const auto n = parse_size(given);
    if (!n) return "'" + given + "' is not a number from 0 to 2^64 - 1: write 4096, 0x1000, 4K, 1M or 2G";
    if (*n % unit != 0) return given + " is not a multiple of " + std::to_string(unit);
    if (!std::in_range<T>(*n)) return given + " is larger than this program can hold";
    return value = static_cast<T>(*n), "";
  };
  return verb.parsed(name, take, doc).type("N");
}

}  // namespace

void add_check(VerbOptions& verb, Action& action) {
  const auto o = std::make_shared<CheckArguments>();
  o->input.schedules = true;
  add_input(verb, o->input);
  verb.values("FILES", o->more,
              "more schedules, each checked separately; or more ring dumps, checked as the queues of one schedule");
  add_settings(verb, o->parse.set);
  verb.parsed(
          "--sweep", [o](const std::string& given) { return take_sweep(given, o->sweep); },
          "check the schedule with each value of a param: each whole number of 2..8, 4K..1M*4, or 2,3,5")
      .type("NAME=A..B");
  const auto assumed = add_profile(verb, o->profile);
  verb.value("--topology", o->topology,
             "the node: a file from sdma topology --json, or a layout such as mi308x:8 or ring:8 (default: 8 MI300X)")
      .type("FILE");
  add_parsed(verb, "--gpus", o->gpus, parse_gpus,
             "a choice of at most 64 GPUs: write 8 for the first 8, or 2,5 for these two; each may appear once",
             "GPUs of the node that the schedule uses, as for sdma run (default: the numbers in the schedule)")
      .type("N|N,N..");
  add_choice<bool>(
      verb, "--limits", o->cuda, {{"amd", false}, {"cuda", true}},
      "device family whose limits must hold: amd, for every AMD device (default), or cuda, for NVIDIA GPUs with at "
      "most 30 queues each");
  verb.renamed("--device", "--limits");
  add_json(verb, [o] { o->form = FindingsForm::json; });
  verb.call(
      "--sarif", [o] { o->form = FindingsForm::sarif; }, "print one SARIF 2.1.0 log, for code hosts (docs/check.md)");
  add_choice<FindingsForm>(
      verb, "--format", o->form,
      {{"text", FindingsForm::text}, {"json", FindingsForm::json}, {"sarif", FindingsForm::sarif}},
      "form of findings: text on standard error (default), one object per line on standard output, or one SARIF log");
  add_number(verb, "--ring-bytes", o->check.ring_bytes, 4,
             "size of the ring in bytes (64K, 1M), to find packets that cross its end (default: 0, unknown)");
  add_number(verb, "--base", o->check.base, 4, "ring position of the first dword, in bytes (default: 0)");
  add_number(verb, "--max-findings", o->check.max_findings, 1,
             "maximum number of findings to show per rule; 0 shows all")
      .shown("20");
  add_count(
      verb, "--max-packets", o->max_packets, 1, std::uint64_t{1} << 40,
      "maximum number of packets of all submits to examine; the limits of memory and work are proportional to it");
  add_generation(verb, o->input.generation);
  verb.flag("--strict", o->strict, "treat advice, such as an unused signal, as an error");
  verb.flag("--kernel", o->kernel, "check a queue of the kernel: allow privileged packets");
  verb.flag("--rules", o->rules, "list the rules and exit");
  verb.flag("--covered", o->covered, "list what the argument of a proof covers and exit");
  verb.exits(
      {{kOk,
        "proved, or only the findings that the schedule expects; for one stream of packets, no error and no warning"},
       {kRefuted,
        "an error; for a schedule that expects findings: one is missing, or there is another error; of a bundle,\n"
        "something differs"},
       {kInput, "errors in the text of a schedule, or an error of the input or output"},
       {kUndecided, "no error, but a warning says what is assumed, not known or not examined"}});
  verb.manual("docs/check.md, docs/rules.md, docs/museum.md, docs/msccl.md");
  verb.footer(
      "docs/rules.md explains each rule; docs/ordering.md explains --profile and --assume.\n"
      "Examples:\n"
      "  sdma check --set N=8 examples/schedules/2_allgather_b2b.sdma\n"
      "  sdma check --sarif schedules/*.sdma > sdma.sarif\n"
      "  sdma check --sweep N=2..8 examples/schedules/2_allgather_b2b.sdma\n"
      "  sdma check --gpus=0,3 copy.sdma\n"
      "  sdma check --limits=cuda copy.sdma\n"
      "  sdma check --set bytes=1M allgather.xml\n"
      "  sdma check --assume fence=full --json relay.sdma\n"
      "  sdma check ring.bin\n"
      "  sdma check --gfx=gfx90a ring.bin\n"
      "  sdma check --ring-bytes=1M --base=0x3ff00 --input=hex dmesg.txt\n"
      "  sdma check --json ring.bin | jq -r '.rule // empty' | sort | uniq -c");
  action = [o, assumed] {
    assumed();
    return check_verb(*o);
  };
}

}  // namespace sdma::tool
