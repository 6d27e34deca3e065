// sdma dis: dwords to text.
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

enum class Format { text, json, hex };

struct Options {
  InputOptions input;
  Format format = Format::text;
  TextOptions text;
  std::string output = "-";
};

/// Eight dwords per line, each line with its offset. --input=hex reads this form back.
class HexLines {
 public:
  std::size_t append(std::string& out, std::span<const std::uint32_t> in, bool last) {
    const auto n = last ? in.size() : in.size() / 8 * 8;
    for (std::size_t i = 0; i < n; ++i) {
      if (i % 8 == 0) out += fmt::format("{:08x}:", at_ + 4 * i);
      out += fmt::format(" {:08x}", in[i]);
      if (i % 8 == 7 || i + 1 == n) out += '\n';
    }
    at_ += 4 * n;
    return n;
  }

 private:
  std::uint64_t at_ = 0;
};

template <class Printer> int print(Input& in, Output& out, bool to_stdout, Printer printer) {
  auto done = for_each_piece(in, [&](std::span<const std::uint32_t> dwords, bool last) {
    const auto used = printer.append(out.text(), dwords, last);
    // If the reader has exited, the remaining dwords are skipped, and the loop below ends.
    return out.drain() ? used : dwords.size();
  });
  if (done) return out.close() ? kOk : out.exit_code();
  // Everything readable is printed, but no incomplete file is created.
  if (to_stdout && !out.flush()) return out.exit_code();
  report(done.error());
  return kInput;
}

int run(const Options& o) {
  if (overwrites({{"-o", o.output}}, {o.input.path})) return kUsage;
  auto in = Input::open(o.input.path, o.input.form);
  if (!in) return report(in.error()), kInput;
  Output out{o.output};
  const bool to_stdout = o.output == "-";
  switch (o.format) {
    case Format::text: return print(*in, out, to_stdout, Disassembler{o.text});
    case Format::json: return print(*in, out, to_stdout, JsonLines{0, o.text.generation});
    case Format::hex: return print(*in, out, to_stdout, HexLines{});
  }
  return kUsage;
}

}  // namespace

void add_dis(VerbOptions& verb, Action& action) {
  const auto o = std::make_shared<Options>();
  add_input(verb, o->input);
  add_choice<Format>(verb, "--format", o->format,
                     {{"text", Format::text}, {"json", Format::json}, {"hex", Format::hex}},
                     "output form: one packet per line (default), one object per line, or eight dwords per line");
  add_json(verb, [o] { o->format = Format::json; });
  add_generation(verb, o->text.generation);
  verb.flag("--offsets", o->text.offsets, "with text: show the offset of each packet in a comment");
  verb.flag("--raw", o->text.raw, "with text: show the dwords of each packet in a comment");
  verb.value("-o,--output", o->output, "output file; - is standard output").type("FILE");
  verb.footer(
      "Examples:\n"
      "  sdma dis ring.bin                        the packets of a ring, one per line\n"
      "  sdma dis --offsets --raw < dmesg.txt     hex text from a log\n"
      "  sdma dis --format=json ring.bin | jq 'select(.packet == \"fence\").fields.addr'\n"
      "  sdma dis --gfx=gfx1100 ring.bin          packets of another GPU\n"
      "  sdma dis ring.bin | sdma as | cmp - ring.bin");
  action = [o] { return run(*o); };
}

}  // namespace sdma::tool
