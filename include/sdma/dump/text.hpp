// SPDX-License-Identifier: MIT
#pragma once
// Dumps of rings as people have them, in text: from a log, a debugger, a hex viewer, a register tool, the kernel.
//
//   auto dumps = read_text_dump(text, "dmesg.txt");       // or a Diagnostic: file, line, column, what to do
//   for (const TextDump& d : dumps->dumps) use(d.form, d.dwords, d.rptr, d.wptr);
//
//   00000000: 00000005 00001008 00007f00 00000001         xxd -e, print_hex_dump; any number of dwords a line
//   0000000 00000005 00001008 00007f00 00000001           od -tx4 (octal), od -Ax -tx4, od -Ad -tx4
//   00000000  05 00 00 00 08 10 00 00  |........|         hexdump -C, xxd -g1, od -tx1; `*` repeats the previous line
//   00000000: 0500 0000 0810 0000  ........               xxd: groups of 2, 4, 8 bytes in byte order
//   0000000 0005 0000 1008 0000                           hexdump, od -x: words of 16 bits
//   0x7ffff7fb1000 <ring+16>: 0x00000005 0x00001008       gdb x/4xw, x/2xg, x/16xb
//   [  12.345678] amdgpu 0000:c1:00.0: 0x0040: 5 1008     a log with time stamps and labels
//   0x0004 0x00001008   [0001] 0x1008   3 0x0c 0x1008     an index, an offset, an address,
//                                                         or two of them, however marked
//   sdma0.ring[  12] == 0x00001008    r.D                 umr: `r` and `w` mark the read and the write pointer; one
//                                                         dump a ring
//   ring name: sdma0 / Rptr: 0x1c0 Wptr: 0x1c8 / 0x4 0x5  the kernel's devcoredump: one dump a ring, and the
//                                                         indirect buffers of the job that hung
//   {0x00000005, 0x1008u, 0x7f00}                         C; gdb's `$1 = {0x5, 0x0 <repeats
//                                                         7 times>}`, which is written out
//
// What terminals, editors, mail and Markdown add is removed first:
// colours, byte order marks, UTF-16, no-break blanks, `> `, tables.
//
// The layout is found from the whole text, not from one line: which columns grow as offsets do, how wide the others
// are, and which order of bytes a column of characters shows. A column is an offset only if the numbers say so, or if
// it is marked as one (`:`, brackets, `==`). What the text was taken for is in `form`, so that a reader can object.
//
// Lines of other text between the lines of the dump are skipped and counted. A line that has numbers as the dump has
// them, but does not fit, is an error, and so is a gap in the offsets: nothing that may be data is dropped silently.
//
// A ring that says how many dwords it has must have them: a text that was cut off is an error. umr's decoded stream
// leaves out parts of the packets, so it is refused by name. The kernel's descriptors of queues are not a dump either:
// descriptors.hpp reads them.
//
// Everything here allocates, in proportion to its input. `*` repeats at most 1 GiB in all. There is no shared state;
// any thread may call these functions. Errors: one Diagnostic with file:line:column.
#include "sdma/core/diagnostic.hpp"
#include "sdma/core/result.hpp"
#include "sdma/packets/generation.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace sdma { inline namespace v0_3 {

/// One dump of a text.
struct TextDump {
  std::string ring{};                           ///< the ring's name, if the text has it
  std::string form{};                           ///< what the text was taken for, as a phrase
  std::vector<std::uint32_t> dwords{};          ///< in the order of the text
  std::optional<std::uint64_t> first{};         ///< address or offset of the first dword in bytes, if the text has it
  std::optional<std::uint64_t> rptr{}, wptr{};  ///< in bytes, counted as `first` is, if the text has them
  std::size_t line{};                           ///< of the first dword; lines count from 1
  std::optional<Generation> generation{};       ///< of the engines, if the text names them, the GPU or the product
};

/// Memory that a text has besides rings: an indirect buffer of a devcoredump.
struct DumpedBuffer {
  std::uint64_t va{};                   ///< of the first dword
  std::vector<std::uint32_t> dwords{};  ///< its contents
};

/// The dumps that a text contains.
struct TextDumps {
  std::vector<TextDump> dumps{};        ///< at least one
  std::vector<DumpedBuffer> buffers{};  ///< in the order of the text
  std::vector<Diagnostic> notes{};      ///< what was skipped, and what was left out
};

/// Is this UTF-16, of which read_text_dump reads the letters of ASCII?
/// Bytes of a ring are not, because its packets have larger numbers.
bool is_wide_text(std::string_view bytes) noexcept;

/// The rule of the error about a text that is a kernel's log and has no dump. Lines of such a log are never dwords.
inline constexpr std::string_view kLogWithoutDump = "log";

/// The dumps of a text. `name`: the name of the text in errors. A text without any dwords is one empty dump.
Result<TextDumps, Diagnostic> read_text_dump(std::string_view text, std::string_view name);

}}  // namespace sdma::v0_3
