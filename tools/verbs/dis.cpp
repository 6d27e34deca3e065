// SPDX-License-Identifier: MIT
// sdma dis: dwords to text.
#include "generation.hpp"
#include "input.hpp"
#include "output.hpp"
#include "ring_text.hpp"
#include "sdma/dump/descriptors.hpp"
#include "sdma/stream/json.hpp"
#include "sdma/stream/text.hpp"
#include "shared_options.hpp"
#include "verb.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

namespace sdma::tool {
namespace {

enum class DisFormat { text, json, hex };

struct DisArguments {
  InputOptions input;
  DisFormat format = DisFormat::text;
  RingTextOptions ring;
  std::optional<std::uint64_t> rptr, wptr;
  std::vector<FileAt> buffers;
  std::string output = "-";

  bool has_positions() const noexcept {
    return rptr || wptr || ring.text.base != 0 || ring.consumed || !buffers.empty();
  }
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
    // The next piece may take long to come. If the reader has exited, the remaining dwords are skipped.
    return out.flush() ? used : dwords.size();
  });
  if (done) return out.close() ? kOk : out.exit_code();
  // Everything readable is printed, but no incomplete file is created.
  if (to_stdout && !out.flush()) return out.exit_code();
  report(done.error());
  return kInput;
}

/// A dump with its positions: those of the command line, else those of the dump.
int print_ring(Input& in, const DisArguments& given) {
  auto o = given;
  auto ring = in.ring();
  if (!ring) return report(ring.error()), kInput;
  if (o.rptr || o.wptr)
    ring->positions = {
        .rptr = o.rptr, .wptr = o.wptr, .first = first_position(ring->offset, ring->dwords.size(), o.rptr, o.wptr)};
  auto buffers = read_buffers(o.buffers);
  if (!buffers) return report(buffers.error()), kInput;
  o.ring.buffers = *std::move(buffers);
  o.ring.text.generation = ring->positions.generation;
  const auto placed = place_ring(ring->dwords, ring->positions, in.name());
  if (!placed) return report(placed.error()), kInput;
  report(placed->notes);
  if (o.format != DisFormat::hex)
    return write_text(o.output, o.format == DisFormat::json ? ring_json(*placed, o.ring)
                                                            : ring_text(*placed, ring->positions, o.ring));
  std::string text;
  HexLines lines;
  std::vector<std::uint32_t> all;
  for (const auto& part : placed->parts)
    if (is_shown(part, o.ring)) all.insert(all.end(), part.dwords.begin(), part.dwords.end());
  lines.append(text, all, true);
  return write_text(o.output, std::move(text));
}

/// What KFD's debugfs says about queues: fields, not packets.
int print_descriptors(const std::string& text, const std::string& name, const DisArguments& o) {
  const auto found = read_descriptors(text, name);
  if (!found) return report(found.error()), kInput;
  const auto note = [&](std::string message) {
    report({.severity = Severity::note, .where = name, .message = std::move(message)});
  };
  note("read as descriptors of queues, as KFD's debugfs prints them: not packets");
  const auto& queues = found->queues;
  if (std::any_of(queues.begin(), queues.end(), [](const auto& d) { return !d.registers; }))
    note("rptr and wptr of a descriptor may be old while its queue is mapped");
  if (std::any_of(queues.begin(), queues.end(), [](const auto& d) { return d.registers; }))
    note("that the registers come in the order of a descriptor is inferred");
  if (found->others != 0) note(fmt::format("left out {} queues of other engines", found->others));
  return write_text(o.output, o.format == DisFormat::json ? to_json(*found) : to_text(*found));
}

int dis_verb(const DisArguments& o) {
  std::vector<std::string> inputs{o.input.path};
  for (const auto& b : o.buffers) inputs.push_back(b.path);
  if (overwrites({{"-o", o.output}}, inputs)) return kUsage;
  auto in = Input::open(o.input);
  if (!in) return report(in.error()), kInput;
  auto descriptors = in->descriptors();
  if (!descriptors) return report(descriptors.error()), kInput;
  if (*descriptors) return print_descriptors(**descriptors, in->name(), o);
  // The bytes of a ring may be endless; everything else is read whole.
  if (in->is_placed() || o.has_positions()) return print_ring(*in, o);
  Output out{o.output};
  const bool to_stdout = o.output == "-";
  auto text = o.ring.text;
  text.generation = in->generation();
  switch (o.format) {
    case DisFormat::text: return print(*in, out, to_stdout, Disassembler{text});
    case DisFormat::json: return print(*in, out, to_stdout, JsonLines{0, text.generation});
    case DisFormat::hex: return print(*in, out, to_stdout, HexLines{});
  }
  return kUsage;
}

}  // namespace

void add_dis(VerbOptions& verb, Action& action) {
  const auto o = std::make_shared<DisArguments>();
  add_input(verb, o->input);
  add_choice<DisFormat>(verb, "--format", o->format,
                        {{"text", DisFormat::text}, {"json", DisFormat::json}, {"hex", DisFormat::hex}},
                        "output form: one packet per line (default), one object per line, or eight dwords per line");
  add_json(verb, [o] { o->format = DisFormat::json; });
  add_generation(verb, o->input.generation);
  verb.flag("--offsets", o->ring.text.offsets, "with text: show the offset of each packet in a comment");
  verb.flag("--raw", o->ring.text.raw, "with text: show the dwords of each packet in a comment");
  add_positions(verb, o->rptr, o->wptr);
  add_parsed(verb, "--base", o->ring.text.base, parse_size, "an address",
             "address of the first dword; positions are then shown as addresses")
      .type("VA");
  verb.flag("--consumed", o->ring.consumed,
            "with positions: print all packets that the engine has consumed, not only the last ones");
  add_buffers(verb, o->buffers,
              "file that holds the memory at VA, to print the indirect buffers there; may be repeated");
  verb.value("-o,--output", o->output, "output file; - is standard output").type("FILE");
  verb.exits({{kInput, "an error of the input or output; everything readable before it was printed"}});
  verb.manual("docs/text.md, docs/dumps.md");
  verb.footer(
      "Examples:\n"
      "  sdma dis ring.bin                        the packets of a ring, one per line\n"
      "  sdma dis --offsets --raw < dmesg.txt     hex text from a log\n"
      "  sdma dis --rptr=0x40 --wptr=0x80 ring.bin   what is pending, and what was read\n"
      "  sdma dis /sys/class/devcoredump/devcd1/data  the rings after a reset\n"
      "  sdma dis --format=json ring.bin | jq 'select(.packet == \"fence\").fields.addr'\n"
      "  sdma dis --gfx=gfx1100 ring.bin          packets of another GPU\n"
      "  sdma dis ring.bin | sdma as | cmp - ring.bin");
  action = [o] { return dis_verb(*o); };
}

}  // namespace sdma::tool
