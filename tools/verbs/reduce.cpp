// SPDX-License-Identifier: MIT
// sdma reduce: the smallest schedule that still has a finding.
#include "input.hpp"
#include "interrupt.hpp"
#include "json/check.hpp"
#include "output.hpp"
#include "shared_options.hpp"
#include "verb.hpp"

#include <fmt/format.h>

#include <memory>

namespace sdma::tool {
namespace {

struct ReduceArguments {
  std::string path = "-", output = "-";
  ParseOptions parse;
  Profile profile;
  ReduceOptions reduce;
  bool json = false;
};

/// "47 of 64 lines, 54 of 56 queues"
std::string removed(const ReducedText& r) {
  std::string out;
  for (const auto& [what, n] : json::sizes(r))
    if (n.first > n.second)
      out += fmt::format("{}{} of {} {}", out.empty() ? "" : ", ", n.first - n.second, n.first,
                         what == "gpus" ? "GPUs" : what);
  return out.empty() ? "nothing" : out;
}

int reduce_verb(ReduceArguments& o) {
  if (overwrites({{"-o", o.output}}, {o.path})) return kUsage;
  auto text = read_text(o.path);
  if (!text) return report(text.error()), kInput;
  auto parse = o.parse;
  if (!make_schedule(o.path, *text, parse.set)) return kInput;
  const auto file = shown(o.path);
  if (!is_schedule_name(o.path) && !is_schedule(*text))
    return report(
               {.where = file, .message = "this is not a schedule", .hint = "the first line of a schedule is sdma 1"}),
           kInput;
  parse.read = files_beside(o.path);
  keep_what_is_known();
  const auto r = [&] {
    Doing reducing("reducing");
    o.reduce.proceed = [&](std::size_t tries) {
      reducing.show([&] { return fmt::format("{}: {} texts checked", file, tries); });
      return interrupted == 0;
    };
    return reduce_text(*text, file, parse, {.profile = o.profile}, o.reduce);
  }();
  if (!r) return report(r.error()), kInput;
  const bool cut = interrupted != 0 && !r->least;
  auto answer = o.json ? json::of(*r, file) : json::Json();
  if (o.json && cut) answer["complete"] = false;
  if (const auto code = write_text(o.output, o.json ? json::document(answer) : r->text); code != kOk) return code;
  report({.severity = Severity::note,
          .where = file,
          .message = fmt::format("{} is left; removed: {} (checked texts: {})", r->rule, removed(*r), r->tries)});
  if (r->least) return kOk;
  if (cut) return stopped(fmt::format("{} texts were checked, and a smaller one may exist", r->tries));
  report({.severity = Severity::warning,
          .where = file,
          .message = fmt::format("the search has ended after {} texts, so a smaller one may exist", r->tries),
          .hint = "--tries allows more"});
  return kUndecided;
}

}  // namespace

void add_reduce(VerbOptions& verb, Action& action) {
  const auto o = std::make_shared<ReduceArguments>();
  verb.value("FILE", o->path, "schedule; - is standard input (default)");
  add_settings(verb, o->parse.set);
  verb.value("--rule", o->reduce.rule, "rule of the finding to keep (default: that of the first error or warning)")
      .type("NAME");
  const auto assumed = add_profile(verb, o->profile);
  add_count(verb, "--tries", o->reduce.max_tries, 1, 10'000'000, "maximum number of texts to check");
  verb.value("-o,--output", o->output, "output file for the text").type("PATH").shown("-");
  verb.flag("--json", o->json, "print one object: the text, and the sizes of both texts");
  verb.exits({{kOk, "the smallest text is printed"},
              {kInput, "errors in the text, nothing to reduce, or an error of the input or output"},
              {kUndecided, "--tries ended the search; the smallest text so far is printed"},
              {kInterrupted, "Ctrl-C ended the search; the smallest text so far is printed"}});
  verb.manual("docs/check.md#the-smallest-schedule");
  verb.footer(
      "docs/check.md describes how a text is made smaller.\n"

      "Examples:\n"
      "  sdma reduce --set N=8 ag.sdma\n"
      "  sdma reduce --rule=race ag.sdma -o least.sdma\n"
      "  sdma reduce ag.sdma | sdma check -");
  action = [o, assumed] {
    assumed();
    return reduce_verb(*o);
  };
}

}  // namespace sdma::tool
