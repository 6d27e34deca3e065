// SPDX-License-Identifier: MIT
// sdma as: text to dwords.
#include "generation.hpp"
#include "input.hpp"
#include "json/json.hpp"
#include "output.hpp"
#include "sdma/stream/json.hpp"
#include "sdma/stream/text.hpp"
#include "verb.hpp"

#include <fmt/format.h>

#include <unistd.h>

#include <iterator>

namespace sdma::tool {
namespace {

enum class From { text, json };
enum class To { binary, hex, json };

struct AsArguments {
  std::string path = "-", output;  ///< an empty output: standard output, but not a terminal
  From input = From::text;
  To format = To::binary;
  std::optional<Generation> generation;
};

void append_hex(std::string& out, std::span<const std::uint32_t> dwords) {
  for (std::size_t i = 0; i < dwords.size(); ++i)
    out += fmt::format("{:08x}{}", dwords[i], i % 8 == 7 || i + 1 == dwords.size() ? '\n' : ' ');
}

/// One object on a line, whose dwords are written like those of dis --json, so that as --input=json reads it back.
bool write_json(Output& out, const std::string& file, Generation g, std::span<const std::uint32_t> dwords) {
  out.text() = json::line(
      {{"file", file}, {"generation", name_of(g)}, {"bytes", std::uint64_t{dwords.size()} * 4}, {"dwords", nullptr}});
  constexpr std::string_view kEnd = "null}\n";
  out.text().resize(out.text().size() - kEnd.size());
  for (std::size_t i = 0; i < dwords.size(); ++i) {
    fmt::format_to(std::back_inserter(out.text()), "{}\"{:#010x}\"", i == 0 ? "[" : ",", dwords[i]);
    if (!out.drain()) return false;
  }
  out.text() += dwords.empty() ? "[]}\n" : "]}\n";
  return true;
}

int as_verb(const AsArguments& o) {
  if (overwrites({{"-o", o.output}}, {o.path})) return kUsage;
  auto text = read_text(o.path);
  if (!text) return report(text.error()), kInput;
  if (o.format == To::binary && o.output.empty() && ::isatty(STDOUT_FILENO) == 1)
    return complain("the ring's bytes would go to a terminal",
                    "-o FILE writes them to a file, --format=hex shows them as text, and -o - writes them anyway");
  const auto name = shown(o.path);
  const auto dwords = o.input == From::text ? assemble(*text, name, {.generation = chosen(o.generation)})
                                            : from_json_lines(*text, name);
  if (!dwords) return report(dwords.error()), kInput;
  Output out{o.output.empty() ? "-" : o.output};
  switch (o.format) {
    case To::hex: append_hex(out.text(), *dwords); break;
    case To::json:
      if (!write_json(out, name, chosen(o.generation), *dwords)) return out.exit_code();
      break;
    case To::binary: out.write(dwords->data(), dwords->size() * 4);
  }
  return out.close() ? kOk : out.exit_code();
}

}  // namespace

void add_as(VerbOptions& verb, Action& action) {
  const auto o = std::make_shared<AsArguments>();
  verb.value("FILE", o->path, "input file; - is standard input (default)");
  add_choice<From>(verb, "--input", o->input, {{"text", From::text}, {"json", From::json}},
                   "contents of FILE: packet lines (default), or the output of dis --json or as --json");
  add_choice<To>(verb, "--format", o->format, {{"binary", To::binary}, {"hex", To::hex}, {"json", To::json}},
                 "output form: the ring's bytes (default), eight dwords per line, or one object");
  add_json(verb, [o] { o->format = To::json; });
  add_generation(verb, o->generation);
  verb.value("-o,--output", o->output, "output file, unchanged if the text has errors; - is standard output")
      .type("FILE");
  verb.exits({{kInput, "errors in the text, or an error of the input or output"}});
  verb.manual("docs/text.md");
  verb.footer(
      "A text can produce at most 1 GiB of packets, all of which are held in memory.\n"
      "Examples:\n"
      "  sdma as ring.packets -o ring.bin\n"
      "  echo 'fence addr=0x7f0000001008 value=1' | sdma as --format=hex\n"
      "  printf 'for i in 0..4\\n trap context=i\\nend\\n' | sdma as | sdma dis");
  action = [o] { return as_verb(*o); };
}

}  // namespace sdma::tool
