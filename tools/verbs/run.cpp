// SPDX-License-Identifier: MIT
// sdma run: executes schedules and checks their expectations.
#include "input.hpp"
#include "interrupt.hpp"
#include "json/check.hpp"
#include "output.hpp"
#include "run_job.hpp"
#include "sdma/check/check.hpp"
#include "shared_options.hpp"
#include "verb.hpp"

#include <fmt/format.h>

#include <chrono>

namespace sdma::tool {
namespace {

/// Lines for people or, with --json, one object.
class RunAnswer {
 public:
  explicit RunAnswer(const RunArguments& o) : json_(o.json) {}

  void say(const std::string& line) {
    if (!json_) out_.text() += line + "\n";
  }
  void add(json::RunFile file) {
    if (json_) files_.push_back(std::move(file));
    else report(file.findings);
  }
  /// Prints it. Returns this code, or that of an error of the output.
  int close(int code) {
    if (json_) out_.text() = json::document(json::of(files_, interrupted == 0));
    return out_.close() ? code : out_.exit_code();
  }

 private:
  bool json_;
  Output out_{"-"};
  std::vector<json::RunFile> files_{};
};

int one(const RunArguments& o, const std::string& path, const Schedule& s, const SourceMap& map, RunAnswer& answer) {
  if (expects_finding(s)) {
    for (const auto& rule : json::expected_findings(s))
      report({.where = shown(path),
              .message = "not run: it contains a deliberate error, '" + rule + "', for sdma check to find"});
    return kInput;
  }
  const auto order = o.order.value_or(Ordering::strict);
  Job job{o, path, s, map};
  const int code = job.run(order);
  // Then it ran, but its trace is not complete.
  const bool ran = code == kOk || code == kUndecided;
  answer.add({.file = shown(path), .passed = ran, .expects_nothing = s.expectations.empty(), .runs = {job.answer()}});
  if (!ran) return code;
  const auto n = s.expectations.size();
  answer.say(fmt::format("{}: {} ({}{}, seed {}, {:.3f} ms)", shown(path),
                         n == 0   ? "ran; it has no expectations"
                         : n == 1 ? "1 expectation holds"
                                  : fmt::format("{} expectations hold", n),
                         o.ranks == 1 ? "" : fmt::format("{} ranks, ", o.ranks),
                         software(o) ? name(order) : name(o.device), o.seed,
                         std::chrono::duration<double, std::milli>(job.elapsed()).count()));
  return code;
}

/// A schedule that is wrong on purpose is never run: the checker must find that error alone. If not, what it found.
std::vector<Diagnostic> unexpected(const Schedule& s, const SourceMap& map) {
  const auto result = check(s, {.map = &map});
  std::vector<Diagnostic> all;
  if (as_expected(s, result)) return all;
  for (const auto& f : result.findings) all.push_back(f.diagnostic);
  for (const auto& rule : json::expected_findings(s))
    all.push_back({.where = map.file, .message = "expected sdma check to find '" + rule + "' and no other error"});
  return all;
}

int test(const RunArguments& o, RunAnswer& answer) {
  std::size_t passed = 0, failed = 0, idle = 0;
  bool unread = false;
  for (const auto& path : o.paths) {
    const auto text = read_text(path);
    if (!text) unread = true, report(text.error());
    SourceMap map;
    const auto s = text ? load_schedule(path, *text, o.parse, &map) : std::nullopt;
    json::RunFile file{.file = shown(path), .passed = s.has_value()};
    if (s && expects_finding(*s)) {
      file.expects = json::expected_findings(*s);
      file.findings = unexpected(*s, map);
      file.passed = file.findings.empty();
    } else if (s) {
      // The ordering of a driver's engines cannot be chosen.
      for (const auto order : {Ordering::strict, Ordering::rocr, Ordering::adversarial}) {
        if (!file.passed || !(software(o) ? !o.order || *o.order == order : order == Ordering::strict)) continue;
        Job job{o, path, *s, map};
        file.passed = job.run(order) == kOk;
        file.runs.push_back(job.answer());
        if (interrupted != 0) break;
      }
    }
    file.expects_nothing = s && s->expectations.empty();
    if (interrupted != 0) {
      answer.add(std::move(file));
      break;
    }
    const bool nothing = file.passed && file.expects_nothing;
    answer.say((!file.passed ? "FAILED: " : nothing ? "expects nothing: " : "passed: ") + shown(path));
    ++(!file.passed ? failed : nothing ? idle : passed);
    answer.add(std::move(file));
  }
  if (interrupted != 0)
    return stopped(fmt::format("{} of {} files were run: {} passed", passed + failed + idle, o.paths.size(), passed));
  answer.say(fmt::format("{} passed, {} failed{}", passed, failed,
                         idle > 0 ? fmt::format(", {} expect{} nothing", idle, idle == 1 ? "s" : "") : ""));
  return unread ? kInput : failed > 0 ? kRefuted : idle > 0 ? kUndecided : kOk;
}

std::vector<Written> written(const RunArguments& o) {
  std::vector<Written> all{{"--trace", o.trace}};
  for (const auto& [name, path] : o.outputs) all.push_back({"--output " + name, path});
  return all;
}

std::vector<std::string> read(const RunArguments& o) {
  auto all = o.paths;
  for (const auto& [name, path] : o.inputs) all.push_back(path);
  return all;
}

int run_verb(const RunArguments& o, Option events) {
  if (o.paths.size() > 1 && !o.test) return complain("more than one FILE", "--test takes several");
  if (o.order && !software(o))
    return complain("--order needs --device=soft", "sdma emulate --order=... sets it for a software node");
  if (o.test && (!o.inputs.empty() || !o.outputs.empty()))
    return complain("--test does not take --input or --output",
                    "init= and --seed determine the contents of the buffers");
  if (!o.trace.empty() && o.test)
    return complain("--test does not take --trace", "run one FILE without --test to record a trace");
  if (!o.trace.empty() && o.ranks > 1)
    return complain("--ranks does not take --trace", "a trace is of one process: run FILE without --ranks");
  if (!o.ranks_per_node.count(o.ranks))
    return complain(fmt::format("--ranks={} does not make whole nodes of {}", o.ranks, to_string(o.ranks_per_node)),
                    "let the processes of the nodes add up to --ranks");
  if (events.given() && o.trace.empty()) return complain("--events needs --trace", "add --trace=run.jsonl");
  if (o.trace == "-") return complain("--trace needs a file, not -", "standard output is for the report");
  if (reads_stdin_twice(o.paths) || overwrites(written(o), read(o))) return kUsage;
  RunAnswer answer{o};
  int code = kOk;
  if (o.test) {
    keep_what_is_known();
    code = test(o, answer);
  } else {
    const auto text = read_text(o.paths[0]);
    if (!text) return report(text.error()), kInput;
    SourceMap map;
    const auto s = load_schedule(o.paths[0], *text, o.parse, &map);
    if (!s) return kInput;
    keep_what_is_known();
    code = one(o, o.paths[0], *s, map, answer);
    // Without a device, or after an error of a file, there is no answer.
    if (code == kInterrupted) (void)stopped("the run was stopped");
    else if (code != kOk && code != kRefuted && code != kUndecided) return code;
  }
  return answer.close(code);
}

}  // namespace

void add_run(VerbOptions& verb, Action& action) {
  const auto o = std::make_shared<RunArguments>();
  verb.values("FILE", o->paths, "a schedule, or several with --test").required();
  add_settings(verb, o->parse.set);
  add_device(verb, o->device, "device to run on", "soft");
  add_parsed(verb, "--gpus", o->gpus, parse_gpus,
             "a choice of at most 64 GPUs: write 8 for the first 8, or 2,5 for these two; each may appear once",
             "GPUs of the node to use. N: the first N; 5,2: these, one for each GPU of the schedule (default: the "
             "numbers in the schedule). With --device=cuda, GPUs that the machine lacks share those that it has")
      .type("N|N,N..");
  add_count(
      verb, "--ranks", o->ranks, 1, 64,
      "processes that run the schedule together, at most one per GPU. The GPUs are divided among them in order; rank= "
      "assigns a host thread");
  add_parsed(
      verb, "--ranks-per-node", o->ranks_per_node, parse_node_sizes,
      "a list of numbers from 1 to 64: write 4 for nodes of four, or 3,2 for a node of three and one of two",
      "processes per node, the same for all nodes or one number for each; repeated until the sum is --ranks. Nodes "
      "share no memory, and queues with network=1 send bytes between them")
      .type("N|N,N..");
  const auto order = std::make_shared<Ordering>();
  const auto chosen = add_choice<Ordering>(
      verb, "--order", *order,
      {{"strict", Ordering::strict}, {"rocr", Ordering::rocr}, {"adversarial", Ordering::adversarial}},
      "ordering of packets, from strongest to weakest (default: strict; with --test, all three)");
  add_count(verb, "--seed", o->seed, 0, ~std::uint64_t{},
            "seed for random contents and for choices that the ordering leaves open");
  add_parsed(verb, "--timeout", o->timeout, parse_time, "a time: write 10s, 250ms or 50us",
             "time limit per run: 10s, 250ms, 50us (default: 10s)")
      .type("TIME");
  add_pairs(verb, "--input", "NAME=PATH", o->inputs, "fill a buffer from a file before the run; may be repeated");
  add_pairs(verb, "--output", "NAME=PATH", o->outputs, "write a buffer to a file after the run; may be repeated");
  verb.value("--trace", o->trace,
             std::string(kTraceDoc) +
                 "; except on soft, it has only the packets of the last round, timed by TIMESTAMP packets")
      .type("PATH");
  const auto events =
      add_count(verb, "--events", o->events, 1, trace::Recorder::kMostEvents,
                "events that --trace has room for, 128 bytes each; later ones are lost, and the answer says so");
  verb.flag("--test", o->test, "run each file in all orderings and print one line per file");
  verb.flag("--json", o->json,
            "print one object: for each file and ordering, which expectations hold, queues, bytes and times");
  verb.exits(
      {{kOk, "all expectations hold"},
       {kRefuted,
        "an expectation failed, a wait timed out, a queue stopped, or a rank ended; with --test, a file failed"},
       {kInput,
        "errors in the schedule, a schedule that is wrong on purpose or does not fit the node, no device, or an error\n"
        "of the input or output, also of one file of --test"},
       {kUndecided, "with --test: no file failed, but a file expects nothing; with --trace: events were lost"},
       {kInterrupted, "Ctrl-C ended the run; its report is printed, and its trace written"}});
  verb.manual("docs/device.md");
  verb.footer(
      "With --order=adversarial, data lands in any order that hardware may choose, and queues, host threads and "
      "kernels are delayed: at doorbells, between packets and before actions, until all others have finished or are "
      "stuck. Between nodes, messages are late and pass each other. --seed selects the delays. A race may need several seeds. "
      "In one process, the same seed makes the same run; with --ranks, the timing of the processes also matters.\n"
      "A file with `expect finding` is not run. --test checks it instead; it passes if sdma check reports that finding "
      "and no other error.\n"
      "Examples:\n"
      "  sdma run --set N=8 --set chunk=1M examples/schedules/2_allgather_b2b.sdma\n"
      "  sdma run --order=adversarial --seed=7 --gpus=2,5 copy.sdma\n"
      "  sdma run --input gpu0.in=in.bin --output gpu1.out=out.bin copy.sdma\n"
      "  sdma run --test examples/schedules/*.sdma\n"
      "  sdma run --ranks=4 --set N=8 share/sdma/collectives/all_gather.sdma\n"
      "  sdma run --ranks=8 --ranks-per-node=4 share/sdma/collectives/nodes.sdma\n"
      "  sdma run --trace run.jsonl copy.sdma && sdma trace run.jsonl -o run.html\n"
      "  sdma emulate --gpus=8 -- sdma run --device=kfd examples/schedules/1_copy.sdma\n"
      "  sdma run --device=cuda --test examples/schedules/*.sdma");
  action = [o, order, chosen, events] {
    if (chosen.given()) o->order = *order;
    return run_verb(*o, events);
  };
}

}  // namespace sdma::tool
