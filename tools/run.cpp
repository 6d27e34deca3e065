// sdma run: schedules, executed and judged.
#include "sdma/schedule/run.hpp"
#include "input.hpp"
#include "output.hpp"
#include "schedule_file.hpp"
#include "sdma/check/check.hpp"
#include "sdma/device/kfd.hpp"
#include "sdma/device/soft.hpp"
#include "verb.hpp"

#include <charconv>
#include <chrono>
#include <cstdio>

namespace sdma::tool {
namespace {

using namespace std::chrono_literals;

enum class Kind { soft, kfd };

struct Options {
  std::vector<std::string> paths;
  ParseOptions parse;
  Kind device = Kind::soft;
  std::vector<std::uint32_t> gpus;
  std::optional<Ordering> order;
  std::uint64_t seed = 0;
  std::chrono::nanoseconds timeout = 10s;
  std::vector<std::pair<std::string, std::string>> inputs, outputs;
  bool test = false;
};

Result<std::unique_ptr<Device>, Diagnostic> open(const Options& o, Ordering order) {
  const auto up = [](auto opened) -> Result<std::unique_ptr<Device>, Diagnostic> {
    if (!opened) return opened.error();
    return std::unique_ptr<Device>(std::move(*opened));
  };
  if (o.device == Kind::kfd) return up(KfdDevice::open());
  return up(SoftDevice::open({.ordering = order, .seed = o.seed}));
}

/// One of several files and orderings: what is wrong with it, on standard error.
class Job {
 public:
  Job(const Options& o, const std::string& path, const Schedule& s) : options_(o), path_(path), schedule_(s) {}

  int run(Ordering order) {
    auto device = open(options_, order);
    if (!device) return say(device.error()), kInput;
    BindOptions where;
    for (const auto g : options_.gpus) where.gpus.push_back(GpuId{g});
    auto bound = bind(schedule_, **device, where);
    if (!bound) {
      for (const auto& e : bound.error()) say(e);
      return kFindings;
    }
    RunOptions go{.timeout = options_.timeout, .seed = options_.seed};
    for (const auto& [name, file] : options_.inputs) {
      const auto text = read_text(file);
      if (!text) return report(text.error()), kInput;
      const auto* begin = reinterpret_cast<const std::byte*>(text->data());
      go.inputs.push_back({name, {begin, begin + text->size()}});
    }
    const auto wanted = outputs(*bound);
    if (!wanted) return kUsage;
    const auto result = sdma::run(*bound, go);
    elapsed_ = result.elapsed;
    for (auto f : result.findings) {
      f.message += context(order);
      say(f);
    }
    for (const auto& [range, file] : *wanted) {
      const auto bytes = bound->bytes(range);
      Output out{file};
      out.append(bytes.data(), bytes.size());
      if (!out.close()) return out.exit_code();
    }
    return result ? kOk : kFindings;
  }
  std::chrono::nanoseconds elapsed() const noexcept { return elapsed_; }

 private:
  void say(Diagnostic d) const {
    d.where = shown(path_) + (d.where.empty() ? "" : ": " + d.where);
    report(d);
  }
  /// Which of several orderings it was.
  std::string context(Ordering order) const {
    return options_.test && !options_.order && options_.device == Kind::soft
               ? " (--order=" + std::string(name(order)) + ")"
               : "";
  }
  using Outputs = std::vector<std::pair<Schedule::Range, std::string>>;
  std::optional<Outputs> outputs(const Bound& b) const {
    Outputs all;
    for (const auto& [name, file] : options_.outputs) {
      const auto& buffers = b.schedule().buffers;
      std::size_t i = 0;
      while (i < buffers.size() && name_of(b.schedule(), link_buffer(i)) != name) ++i;
      if (i == buffers.size()) {
        complain("--output " + name + ": there is no such buffer", "sdma fmt --flat lists them");
        return {};
      }
      all.push_back({{link_buffer(i), buffers[i].bytes}, file});
    }
    return all;
  }

  const Options& options_;
  const std::string& path_;
  const Schedule& schedule_;
  std::chrono::nanoseconds elapsed_{};
};

std::string in_ms(std::chrono::nanoseconds t) {
  char text[40];
  std::snprintf(text, sizeof text, "%.3f ms", std::chrono::duration<double, std::milli>(t).count());
  return text;
}

int one(const Options& o, const std::string& path, const Schedule& s, Output& out) {
  if (expects_finding(s)) {
    for (const auto& e : s.expectations)
      if (e.kind == Schedule::Expectation::Kind::finding)
        report({.where = shown(path),
                .message = "it expects a checker to find '" + e.rule + "', so it is wrong on purpose, and is not run"});
    return kFindings;
  }
  const auto order = o.order.value_or(Ordering::strict);
  Job job{o, path, s};
  const int code = job.run(order);
  if (code != kOk) return code;
  const auto n = s.expectations.size();
  out.text() += shown(path) + ": " +
                (n == 0   ? "ran, and expects nothing"
                 : n == 1 ? "1 expectation holds"
                          : std::to_string(n) + " expectations hold") +
                " (" + (o.device == Kind::kfd ? "kfd" : std::string(name(order))) + ", seed " + std::to_string(o.seed) +
                ", " + in_ms(job.elapsed()) + ")\n";
  return kOk;
}

/// What is wrong on purpose is never run: the checker has to find it, and no other error.
bool found(const Schedule& s, const SourceMap& map) {
  const auto result = check(s, {.map = &map});
  if (as_expected(s, result)) return true;
  for (const auto& f : result.findings) report(f.diagnostic);
  for (const auto& e : s.expectations)
    if (e.kind == Schedule::Expectation::Kind::finding)
      report({.where = map.file, .message = "the checker has to find '" + e.rule + "', and no other error"});
  return false;
}

int test(const Options& o, Output& out) {
  std::size_t passed = 0, failed = 0;
  for (const auto& path : o.paths) {
    const auto text = read_text(path);
    if (!text) report(text.error());
    SourceMap map;
    auto parse = o.parse;
    parse.map = &map;
    const auto s = text ? load_schedule(path, *text, parse) : std::nullopt;
    const bool wrong = s && expects_finding(*s);
    bool good = wrong ? found(*s, map) : s.has_value();
    // Engines behind a driver have the ordering that they have.
    for (const auto order : {Ordering::strict, Ordering::rocr, Ordering::adversarial})
      if (good && !wrong && (o.device == Kind::kfd ? order == Ordering::strict : !o.order || *o.order == order))
        good = Job{o, path, *s}.run(order) == kOk;
    out.text() += (good ? "passed: " : "FAILED: ") + shown(path) + "\n";
    ++(good ? passed : failed);
  }
  out.text() += std::to_string(passed) + " passed, " + std::to_string(failed) + " failed\n";
  return failed == 0 ? kOk : kFindings;
}

int run(const Options& o) {
  if (o.paths.size() > 1 && !o.test) return complain("one FILE at a time", "--test takes several"), kUsage;
  if (o.order && o.device == Kind::kfd)
    return complain("--order is of --device=soft", "sdma emulate --order=... chooses it for a software node"), kUsage;
  if (o.test && (!o.inputs.empty() || !o.outputs.empty()))
    return complain("--test takes no --input and no --output", "a test's contents are its init= and its seed"), kUsage;
  Output out{"-"};
  int code = kOk;
  if (o.test) {
    code = test(o, out);
  } else {
    const auto text = read_text(o.paths[0]);
    if (!text) return report(text.error()), kInput;
    const auto s = load_schedule(o.paths[0], *text, o.parse);
    if (!s) return kInput;
    code = one(o, o.paths[0], *s, out);
  }
  return out.close() ? code : out.exit_code();
}

/// "10s", "250ms", "50us".
void add_timeout(CLI::App& verb, std::chrono::nanoseconds& to) {
  const auto parse = [&to](const CLI::results_t& given) {
    const auto& text = given.back();
    std::int64_t n = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), n);
    const std::string_view unit(end, text.data() + text.size());
    const std::int64_t ns = unit == "s" ? 1'000'000'000 : unit == "ms" ? 1'000'000 : unit == "us" ? 1000 : 0;
    if (error != std::errc{} || ns == 0 || n < 1 || n > 1'000'000)
      throw CLI::ValidationError("--timeout", "'" + text + "' is no time: write 10s, 250ms or 50us");
    to = std::chrono::nanoseconds(n * ns);
    return true;
  };
  verb.add_option("--timeout", parse, "how long a run may take, 10s unless given")->type_name("TIME");
}

}  // namespace

void add_run(CLI::App& verb, Action& action) {
  const auto o = std::make_shared<Options>();
  verb.add_option("FILE", o->paths, "a schedule; with --test, several")->required();
  add_settings(verb, o->parse.set);
  add_choice<Kind>(verb, "--device", o->device, {{"soft", Kind::soft}, {"kfd", Kind::kfd}},
                   "where: a node in software, or that of the kernel driver");
  verb.add_option("--gpus", o->gpus, "the node's GPU for each of the schedule's: 2,3; else the same numbers")
      ->delimiter(',')
      ->allow_extra_args(false)
      ->type_name("N,N..");
  const auto order = std::make_shared<Ordering>();
  add_choice<Ordering>(verb, "--order", *order,
                       {{"strict", Ordering::strict}, {"rocr", Ordering::rocr}, {"adversarial", Ordering::adversarial}},
                       "how weakly packets are ordered; strict, with --test all three, unless given");
  verb.add_option("--seed", o->seed, "of random contents, and of what an ordering leaves open")->type_name("N");
  add_timeout(verb, o->timeout);
  add_paths(verb, "--input", o->inputs, "a buffer's first contents: a file's bytes; several times");
  add_paths(verb, "--output", o->outputs, "write a buffer to a file after the run; several times");
  verb.add_flag("--test", o->test, "run each file in all orderings, a line a file");
  verb.footer(
      "Exit code 1: an expectation failed, a wait did not end, a queue stopped. A file with `expect finding` is never "
      "run:\n"
      "--test checks it instead, and it passes if the finding is there (sdma check).\n"
      "Examples:\n"
      "  sdma run --set N=8 --set chunk=1M examples/schedules/2_allgather_b2b.sdma\n"
      "  sdma run --order=adversarial --seed=7 --gpus=2,5 copy.sdma\n"
      "  sdma run --input gpu0.in=in.bin --output gpu1.out=out.bin copy.sdma\n"
      "  sdma run --test examples/schedules/*.sdma\n"
      "  sdma emulate --gpus=8 -- sdma run --device=kfd examples/schedules/1_copy.sdma");
  const auto* const chosen = verb.get_option("--order");
  action = [o, order, chosen] {
    if (chosen->count() > 0) o->order = *order;
    return run(*o);
  };
}

}  // namespace sdma::tool
