#pragma once
// Packets as JSON Lines: one object a packet, for jq, Python and whatever else reads JSON.
//
//   {"offset":0,"packet":"fence","fields":{"addr":"0x7f0000001008","value":"0x1","l2_policy":0,"llc_policy":false},
//    "dwords":["0x00000005","0x00001008","0x00007f00","0x00000001"]}                                    (one line)
//
//   offset     where the packet begins, in bytes
//   packet     its name; null where no packet begins so, or where the end cuts it off: then `truncated` has the name
//   fields     all of them, always, also those that text leaves out. By the kind of the field, never by its value:
//              counts and bytes are numbers, flags are booleans, enumerants are their names (a code without a name is a
//              number), and addresses, values, masks and lists of dwords are "0x..." strings: 64 bits fit in no JSON number
//   reserved   {"4":"0x3"}: the set bits of dword 4 that nothing describes; left out where none is set
//   dwords     the packet itself, each dword "0x" and eight digits. Reading back takes these and nothing else
//
// Errors: writing has none; reading reports every line that is no such object. Allocates; no shared state.
#include "sdma/core/diagnostic.hpp"
#include "sdma/core/result.hpp"
#include "sdma/stream/reader.hpp"

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace sdma {
inline namespace v0 {

/// Appends the object of one packet, without a newline.
void append_json(std::string& out, const PacketView&, std::uint64_t offset);

/// JSON Lines of a stream that arrives in pieces, as Disassembler has it.
class JsonLines {
 public:
  explicit JsonLines(std::uint64_t base = 0) noexcept : at_(base) {}
  /// Appends a line for each packet of `in` and returns how many dwords they took; with `last`, all.
  std::size_t append(std::string& out, std::span<const std::uint32_t> in, bool last);

 private:
  std::uint64_t at_;
};

/// The whole stream; `base` is the offset of its first dword, in bytes.
std::string to_json_lines(std::span<const std::uint32_t>, std::uint64_t base = 0);

/// The dwords of JSON Lines, or every error (the first 100). `file` is what the errors call the text.
Result<std::vector<std::uint32_t>, std::vector<Diagnostic>> from_json_lines(std::string_view text,
                                                                            std::string_view file = "json");

}  // namespace v0
}  // namespace sdma
