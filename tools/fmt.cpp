// sdma fmt: formats or expands schedules and packet streams.
#include "input.hpp"
#include "output.hpp"
#include "schedule_file.hpp"
#include "sdma/stream/text.hpp"
#include "verb.hpp"

#include <algorithm>
#include <memory>

namespace sdma::tool {
namespace {

struct Options {
  std::vector<std::string> paths{"-"};
  ParseOptions parse;
  bool flat = false, check = false, write = false;
};

/// The formatted text; nothing if the text has errors, which are then reported.
std::optional<std::string> formatted(const std::string& path, const std::string& text, const Options& o) {
  if (is_schedule(text)) {
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
  for (const auto& e : dwords.error()) report(e);
  return {};
}

int run(const Options& o) {
  int worst = kOk;
  Output out{"-"};
  for (const auto& path : o.paths) {
    const auto text = read_text(path);
    if (!text) {
      report(text.error());
      worst = kInput;
      continue;
    }
    const auto good = formatted(path, *text, o);
    if (!good) {
      worst = kInput;
    } else if (o.check) {
      if (*good == *text) continue;
      report({.where = shown(path),
              .message = o.flat ? "sdma fmt --flat would change this file" : "sdma fmt would change this file",
              .hint = o.flat ? "sdma fmt --flat --write expands it" : "sdma fmt --write formats it"});
      worst = std::max<int>(worst, kFindings);
    } else if (o.write && path != "-") {
      if (*good == *text) continue;
      Output file{path};
      file.text() = *good;
      if (!file.close()) return file.exit_code();
    } else {
      out.text() += *good;
      if (!out.drain()) return out.exit_code();
    }
  }
  return out.close() ? worst : out.exit_code();
}

}  // namespace

void add_fmt(VerbOptions& verb, Action& action) {
  const auto o = std::make_shared<Options>();
  verb.values("FILE", o->paths, "schedules or packet streams; - is standard input").shown("-");
  verb.flag("--flat", o->flat, "expand loops, drop comments, and write everything in the canonical form");
  add_settings(verb, o->parse.set);
  const auto check = verb.flag("--check", o->check, "print nothing, and exit with 1 if a file would change");
  verb.flag("--write", o->write, "replace the files instead of writing to standard output").excludes(check);
  verb.footer(
      "Examples:\n"
      "  sdma fmt ag.sdma\n"
      "  sdma fmt --check examples/schedules/*.sdma\n"
      "  sdma fmt --flat --set N=8 ag.sdma              what the loops expand to\n"
      "  diff <(sdma fmt --flat a.sdma) <(sdma fmt --flat b.sdma)");
  action = [o] { return run(*o); };
}

}  // namespace sdma::tool
