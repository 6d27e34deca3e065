#pragma once
// Packets as text, and text as packets: one line a packet, bit for bit.
//
//   to_text(Reader{dwords}.next())  ==  "copy_linear bytes=4K src=0x7f1122334000 dst=0x7f5566778000"
//   disassemble(dwords)             ==  a line for each packet of the stream
//   *assemble(disassemble(x)) == x      for ANY dwords x: reserved bits, unknown opcodes and cut-off packets included
//
// The language is docs/text.md. In short:
//   fields     in one order, by name, a value as its meaning: `bytes=4K`, `value=-1`, `func=ge`, `retry=forever`, `tmz`
//   left out   what holds its default
//   reserved   bits that nothing describes: `dw2|=0x400000`
//   unknown    `.dword 0x00000003`; a packet that the end cuts off: its dwords, one a line
//   repeated   `nop times=64`: four or more equal packets of one dword
// What one writes by hand may also have comments, `let`, `for` ... `end`, expressions and `{splices}`; any order of fields.
//
// Each line determines its dwords alone, so lines can be cut out, reordered and put together again.
// Errors: disassembling has none. Assembling reports all errors of a text at once, each with file:line:column, the line,
// a caret and a hint. Allocates; holds no shared state, so any thread may use it. Nothing here throws but the allocator.
#include "sdma/core/diagnostic.hpp"
#include "sdma/core/result.hpp"
#include "sdma/stream/reader.hpp"

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace sdma {
inline namespace v0 {

/// Appends the line of one packet, without a newline. A packet that is cut off takes a line for each dword.
void append_text(std::string& out, const PacketView&);
std::string to_text(const PacketView&);

struct TextOptions {
  bool offsets = false;    ///< behind each line a comment: where the packet begins, in bytes
  bool raw = false;        ///< behind each line a comment: its dwords (the first 16)
  std::uint64_t base = 0;  ///< offset of the first dword, in bytes
};

/// Text of a stream that arrives in pieces of any size:
///
///   Disassembler d;
///   for (piece : pieces) keep what lies behind `d.append(text, piece, is_last)` dwords, and give it again in front of the next
class Disassembler {
 public:
  explicit Disassembler(const TextOptions& o = {}) noexcept : options_(o), at_(o.base) {}

  /// Appends lines for the packets of `in` and returns how many dwords they took. What is left begins a packet whose end has
  /// not arrived; with `last` nothing is left. Requires no further call after `last`.
  std::size_t append(std::string& out, std::span<const std::uint32_t> in, bool last);

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
  std::uint64_t at_;  // of the first dword that has no line yet
  Run run_;
};

/// The whole stream, each line with its newline.
std::string disassemble(std::span<const std::uint32_t>, const TextOptions& = {});

/// What bounds an assembly: a small text can ask for much.
struct AssembleOptions {
  std::size_t max_dwords = std::size_t{1} << 28;
  std::uint32_t max_rounds = 1u << 20;  ///< of one `for`, and of all inner loops of one outermost `for`
};

/// The dwords of a text, or every error of it (the first 100). `file` is what the errors call it.
Result<std::vector<std::uint32_t>, std::vector<Diagnostic>> assemble(std::string_view text,
                                                                     std::string_view file = "text",
                                                                     const AssembleOptions& = {});

}  // namespace v0
}  // namespace sdma
