// SPDX-License-Identifier: MIT
#pragma once
// Packets as JSON Lines: one object per packet, for jq, Python and anything else that reads JSON.
//
//   {"offset":0,"packet":"fence","fields":{"addr":"0x7f0000001008","value":"0x1","l2_policy":0,"llc_policy":false},
//    "dwords":["0x00000005","0x00001008","0x00007f00","0x00000001"]}                                    (one line)
//
//   offset     where the packet begins, in bytes
//   packet     its name; null for a dword that does not begin a known packet, for a
//              packet that the end of the stream cuts off (then `truncated` holds the
//              name), and for a packet that only other generations have (`foreign`). A packet
//              whose fields are not described has its name, no fields, and `undescribed`
//   fields     every field, including those that text leaves out. The JSON type depends on the field, never on its
//              value: counts and bytes are numbers, flags are booleans, enumerants are names (a number if the code has
//              no name); addresses, values, masks and lists of dwords are "0x..." strings: a JSON number does not hold
//              64 bits
//   reserved   {"4":"0x3"}: set bits of dword 4 that no field describes; absent if there are none
//   dwords     the packet itself, each dword as "0x" and eight digits. Reading back uses only this member
//
// Errors: writing cannot fail; reading reports every line that is not such an object. Allocates, and throws only what
// the allocator throws. There is no shared state; any thread may call these functions.
#include "sdma/core/diagnostic.hpp"
#include "sdma/core/result.hpp"
#include "sdma/stream/reader.hpp"

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace sdma { inline namespace v0_3 {

/// Appends the object of one packet, without a newline. `members`: members at its end, each with a comma before it.
void append_json(std::string& out, const PacketView&, std::uint64_t offset, std::string_view members = {});

/// Writes JSON Lines for a stream that arrives in pieces. Call it as you would a Disassembler (stream/text.hpp).
class JsonLines {
 public:
  explicit JsonLines(std::uint64_t base = 0, Generation g = kDefaultGeneration) noexcept
      : packets_(&catalogue(g)), at_(base) {}
  /// Appends a line for each packet of `in` and returns how many dwords they took. With `last`, it takes all dwords.
  std::size_t append(std::string& out, std::span<const std::uint32_t> in, bool last);

 private:
  const Catalogue* packets_;
  std::uint64_t at_;
};

/// The whole stream; `base` is the offset of its first dword, in bytes.
std::string to_json_lines(std::span<const std::uint32_t>, std::uint64_t base = 0, Generation = kDefaultGeneration);

/// The dwords that JSON Lines hold, or all errors (the first 100). `file`: the name of the text in errors.
Result<std::vector<std::uint32_t>, std::vector<Diagnostic>> from_json_lines(std::string_view text,
                                                                            std::string_view file = "json");

}}  // namespace sdma::v0_3
