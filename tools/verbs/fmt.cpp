// SPDX-License-Identifier: MIT
// sdma fmt: formats or expands schedules and packet streams.
#include "input.hpp"
#include "json/json.hpp"
#include "msccl/msccl.hpp"
#include "output.hpp"
#include "sdma/stream/text.hpp"
#include "shared_options.hpp"
#include "verb.hpp"

#include <algorithm>
#include <memory>

namespace sdma::tool {
namespace {

struct FmtArguments {
  std::vector<std::string> paths{"-"};
  ParseOptions parse;
  bool flat = false, check = false, write = false, json = false;
};

/// The formatted text; nothing if the text has errors, which are then reported.
std::optional<std::string> formatted(const std::string& path, const std::string& text, const FmtArguments& o) {
  if (msccl::begins(text)) {
    if (o.write || o.check) {
      report({.where = shown(path),
              .message = "this is XML of MSCCL, of which a schedule is made, and not a text to format",
              .hint = "leave --write and --check out, and redirect the output"});
      return {};
    }
    auto made = text;
    auto parse = o.parse;
    if (!o.flat) return make_schedule(path, made, parse.set) ? std::optional(format_source(made)) : std::nullopt;
  }
  if (is_schedule_name(path) || is_schedule(text) || msccl::begins(text)) {
    const auto s = load_schedule(path, text, o.parse);
    if (!s) return {};
    return o.flat ? to_text(*s) : format_source(text);
  }
  if (!o.parse.set.empty()) {
    report({.where = shown(path), .message = "a stream of packets has no params", .hint = "--set is for schedules"});
    return {};
  }
  const auto dwords = assemble(text, shown(path));
  if (dwords) return o.flat ? disassemble(*dwords) : format_source(text);
  return report(dwords.error()), std::nullopt;
}

/// The answer with --json: of each file, whether formatting changes
/// it and, unless a file or --check wants it elsewhere, its text.
class Answer {
 public:
  void add_unread(const std::string& path) { add(path, nullptr, false); }
  void add_changed(const std::string& path, bool changed, bool written) { add(path, changed, written); }
  void add_text(const std::string& path, bool changed, const std::string& text) {
    add(path, changed, false)["text"] = text;
  }
  std::string text() const { return json::document({{"files", files_}}); }

 private:
  json::Json& add(const std::string& path, json::Json changed, bool written) {
    files_.push_back({{"file", shown(path)}, {"changed", std::move(changed)}, {"written", written}});
    return files_.back();
  }
  json::Json files_ = json::Json::array();
};

int fmt_verb(const FmtArguments& o) {
  if (reads_stdin_twice(o.paths)) return kUsage;
  int worst = kOk;
  Output out{"-"};
  Answer answer;
  for (const auto& path : o.paths) {
    const auto text = read_text(path);
    if (!text) {
      report(text.error());
      answer.add_unread(path);
      worst = kInput;
      continue;
    }
    const auto good = formatted(path, *text, o);
    const bool changed = good && *good != *text;
    if (!good) {
      answer.add_unread(path);
      worst = kInput;
    } else if (o.check) {
      answer.add_changed(path, changed, false);
      if (!changed) continue;
      worst = std::max<int>(worst, kRefuted);
      if (o.json) continue;
      report({.where = shown(path),
              .message = o.flat ? "sdma fmt --flat would change this file" : "sdma fmt would change this file",
              .hint = o.flat ? "sdma fmt --flat --write expands it" : "sdma fmt --write formats it"});
    } else if (o.write && path != "-") {
      answer.add_changed(path, changed, changed);
      if (!changed) continue;
      Output file{path};
      file.text() = *good;
      if (!file.close()) return file.exit_code();
    } else if (o.json) {
      answer.add_text(path, changed, *good);
    } else {
      out.text() += *good;
      if (!out.drain()) return out.exit_code();
    }
  }
  if (o.json) out.text() = answer.text();
  return out.close() ? worst : out.exit_code();
}

}  // namespace

void add_fmt(VerbOptions& verb, Action& action) {
  const auto o = std::make_shared<FmtArguments>();
  verb.values("FILE", o->paths,
              "schedules or packet streams, or XML of MSCCL, of which it prints the schedule; - is standard input "
              "(default)");
  verb.flag("--flat", o->flat, "expand loops, drop comments, and write everything in the canonical form");
  add_settings(verb, o->parse.set);
  const auto check = verb.flag("--check", o->check, "print nothing, and exit with 1 if a file would change");
  verb.flag("--write", o->write, "replace the files instead of writing to standard output").excludes(check);
  verb.flag("--json", o->json, "print one object: for each file, whether it changes, and its text");
  verb.exits(
      {{kRefuted, "--check: a file would change"}, {kInput, "errors in a text, or an error of the input or output"}});
  verb.manual("docs/schedules.md, docs/msccl.md");
  verb.footer(
      "Examples:\n"
      "  sdma fmt ag.sdma\n"
      "  sdma fmt --check examples/schedules/*.sdma\n"
      "  sdma fmt --flat --set N=8 ag.sdma              what the loops expand to\n"
      "  sdma fmt allgather.xml > ag.sdma               the schedule of XML of MSCCL\n"
      "  diff <(sdma fmt --flat a.sdma) <(sdma fmt --flat b.sdma)");
  action = [o] { return fmt_verb(*o); };
}

}  // namespace sdma::tool
