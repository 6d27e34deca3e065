// sdma trace: what was recorded, as a picture or as its lines.
#include "output.hpp"
#include "sdma/trace/write.hpp"
#include "verb.hpp"

namespace sdma::tool {
namespace {

enum class Format { perfetto, jsonl };

struct Options {
  std::string input = "-", output = "-";
  Format format = Format::perfetto;
};

int run(const Options& o) {
  const auto t = trace::load_json_lines(o.input);
  if (!t) return report(t.error()), kInput;
  Output out{o.output};
  out.text() = o.format == Format::perfetto ? trace::to_perfetto(*t) : trace::to_json_lines(*t);
  if (!out.close()) return out.exit_code();
  if (t->lost == 0) return kOk;
  report({.severity = Severity::warning,
          .where = o.input == "-" ? "standard input" : o.input,
          .message = std::to_string(t->lost) + " events were lost when it was recorded",
          .hint = "give the recorder more room"});
  return kFindings;
}

}  // namespace

void add_trace(CLI::App& verb, Action& action) {
  const auto o = std::make_shared<Options>();
  verb.add_option("FILE", o->input, "a trace as JSON Lines; - is standard input")->type_name("");
  add_choice<Format>(verb, "--format", o->format, {{"perfetto", Format::perfetto}, {"jsonl", Format::jsonl}},
                     "for ui.perfetto.dev, which is the default; or its lines, checked and written anew");
  verb.add_option("-o,--output", o->output, "where to write; - is standard output")->type_name("FILE");
  verb.footer(
      "Examples:\n"
      "  sdma trace run.jsonl -o run.json          open it in ui.perfetto.dev\n"
      "  sdma trace --format=jsonl run.jsonl       is it whole?");
  action = [o] { return run(*o); };
}

}  // namespace sdma::tool
