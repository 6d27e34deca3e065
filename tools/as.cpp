// sdma as: text to dwords.
#include "generation.hpp"
#include "input.hpp"
#include "output.hpp"
#include "sdma/stream/json.hpp"
#include "sdma/stream/text.hpp"
#include "verb.hpp"

#include <fmt/format.h>

#include <iterator>

namespace sdma::tool {
namespace {

enum class From { text, json };
enum class To { binary, hex };

struct Options {
  std::string path = "-", output = "-";
  From input = From::text;
  To format = To::binary;
  Generation generation = kDefaultGeneration;
};

void append_hex(std::string& out, std::span<const std::uint32_t> dwords) {
  for (std::size_t i = 0; i < dwords.size(); ++i)
    out += fmt::format("{:08x}{}", dwords[i], i % 8 == 7 || i + 1 == dwords.size() ? '\n' : ' ');
}

int run(const Options& o) {
  if (overwrites({{"-o", o.output}}, {o.path})) return kUsage;
  auto text = read_text(o.path);
  if (!text) return report(text.error()), kInput;
  const auto name = shown(o.path);
  const auto dwords =
      o.input == From::text ? assemble(*text, name, {.generation = o.generation}) : from_json_lines(*text, name);
  if (!dwords) {
    for (const auto& e : dwords.error()) report(e);
    return kInput;
  }
  Output out{o.output};
  if (o.format == To::hex) append_hex(out.text(), *dwords);
  else out.write(dwords->data(), dwords->size() * 4);
  return out.close() ? kOk : out.exit_code();
}

}  // namespace

void add_as(VerbOptions& verb, Action& action) {
  const auto o = std::make_shared<Options>();
  verb.value("FILE", o->path, "input file; - is standard input").shown("-");
  add_choice<From>(verb, "--input", o->input, {{"text", From::text}, {"json", From::json}},
                   "contents of FILE: packet lines (default), or the output of dis --format=json");
  add_choice<To>(verb, "--format", o->format, {{"binary", To::binary}, {"hex", To::hex}},
                 "output form: the ring's bytes (default), or eight dwords per line");
  add_generation(verb, o->generation);
  verb.value("-o,--output", o->output, "output file, unchanged if the text has errors; - is standard output")
      .type("FILE");
  verb.footer(
      "A text can produce at most 1 GiB of packets, all of which are held in memory.\n"
      "Examples:\n"
      "  sdma as ring.sdma -o ring.bin\n"
      "  echo 'fence addr=0x7f0000001008 value=1' | sdma as --format=hex\n"
      "  printf 'for i in 0..4\\n copy_linear bytes=4K src=0x10000+i*4K dst=0x20000+i*4K\\nend\\n' | sdma as | sdma "
      "dis");
  action = [o] { return run(*o); };
}

}  // namespace sdma::tool
