// SPDX-License-Identifier: MIT
#pragma once
// Packets as text, and text as packets: one line per packet, exact to the bit.
//
//   to_text(Reader{dwords}.next())  ==  "copy_linear bytes=4K src=0x7f1122334000 dst=0x7f5566778000"
//   disassemble(dwords)                 a line for each packet of the stream
//   *assemble(disassemble(x)) == x      for ANY dwords x: reserved bits, unknown opcodes and cut-off packets included
//
// docs/text.md describes the language. In short:
//   fields     by name, in a fixed order; values as people read them: `bytes=4K`, `value=-1`, `retry=forever`, `tmz`
//   defaults   optional fields that hold their default are left out
//   reserved   set bits that no field describes: `dw2|=0x400000`
//   foreign    `.dword 0x00000111 ...  # gcr of 5.0 to 7.1, not of 4.4.2`: only other generations have the packet
//   unknown    `.dword 0x00000003`; a packet that the end of the stream cuts off becomes its dwords, one per line
//   repeated   `nop times=64`: four or more equal packets of one dword
// Text written by hand may also use comments, `let`, `for` ... `end`, expressions and `{splices}`, and may give fields
// in any order.
//
// Each line that `disassemble` writes determines its dwords by itself, so you may cut out lines, reorder them and
// assemble them again.
//
// Errors: disassembling cannot fail. Assembling reports all errors of a text at once, each with file:line:column, the
// source line, a caret and a hint. Allocates, and throws only what the allocator throws. There is no shared state; any
// thread may call these functions.
#include "sdma/core/diagnostic.hpp"
#include "sdma/core/result.hpp"
#include "sdma/stream/reader.hpp"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace sdma { inline namespace v0_3 {

/// Appends the line of one packet, without a newline. A packet that is cut off takes one line for each dword.
void append_text(std::string& out, const PacketView&);
std::string to_text(const PacketView&);

/// What an address is called, or "" if it has no name.
using AddressName = std::function<std::string(GpuVa)>;
/// The line of one packet, with names for those addresses that have one: "copy_linear bytes=4K src=gpu0.in
/// dst=gpu1.buf[64K]". The assembler does not read such a line; a schedule does, if the names are its own.
std::string to_text(const PacketView&, const AddressName&);

/// What the text of a stream contains, and where the stream begins.
struct TextOptions {
  bool offsets = false;                        ///< adds to each line, as a comment, where the packet begins, in bytes
  bool raw = false;                            ///< adds to each line, as a comment, the packet's first 16 dwords
  std::uint64_t base = 0;                      ///< offset of the first dword, in bytes
  Generation generation = kDefaultGeneration;  ///< of the engine that the packets are for
};

/// The text of a stream that arrives in pieces of any size:
///
///   Disassembler d;
///   for (const auto& piece : pieces) {
///     auto taken = d.append(text, piece, is_last);     // dwords: put piece[taken, end) before the next piece
///   }
class Disassembler {
 public:
  explicit Disassembler(const TextOptions& o = {}) noexcept
      : options_(o), packets_(&catalogue(o.generation)), at_(o.base) {}

  /// Appends lines for the packets of `in` and returns how many dwords they took. The remaining dwords are the
  /// beginning of a packet that is still incomplete; with `last`, no dwords remain. Do not call it again after a call
  /// with `last`.
  std::size_t append(std::string& out, std::span<const std::uint32_t> in, bool last);
  /// Appends the lines of one packet that a caller has found;
  /// equal packets are held back until another one or `end` comes.
  void append(std::string& out, const PacketView&);
  /// Ends the text: appends the packets that are held back.
  void end(std::string& out) { flush(out); }

 private:
  struct Run {  // equal packets of one dword that have not been written yet
    std::uint32_t dword{};
    bool raw{};
    std::size_t count{};
  };
  void add(std::string& out, std::uint32_t dword, bool raw);
  void flush(std::string& out);
  void line_end(std::string& out, std::span<const std::uint32_t> dwords);

  TextOptions options_;
  const Catalogue* packets_;
  std::uint64_t at_;  // offset of the first dword that has no line yet
  Run run_;
};

/// The text of a whole stream. Each line ends with a newline.
std::string disassemble(std::span<const std::uint32_t>, const TextOptions& = {});

/// Limits of the output, because a small text can request a large one.
struct AssembleOptions {
  std::size_t max_dwords = std::size_t{1} << 28;      ///< the most dwords of the result: 1 GiB
  std::uint64_t max_rounds = std::uint64_t{1} << 26;  ///< of all loops together: 4 GiB, at 64 bytes each
  std::uint64_t max_text = std::uint64_t{1} << 31;    ///< bytes of text that the rounds of loops repeat
  Generation generation = kDefaultGeneration;         ///< whose packets the text names, and whose dwords it becomes
};

/// The dwords of a text, or all of its errors (the first 100). `file`: the name of the text in errors.
Result<std::vector<std::uint32_t>, std::vector<Diagnostic>> assemble(std::string_view text,
                                                                     std::string_view file = "text",
                                                                     const AssembleOptions& = {});

}}  // namespace sdma::v0_3
