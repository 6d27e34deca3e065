// SPDX-License-Identifier: MIT
#pragma once
// A trace as a binary file, which costs its writer a few dozen bytes and nanoseconds per event. Internal.
//
//   Header                        64 bytes: what the file is, and how many events were lost. Alone, it is a recording
//                                 before its first event: its chunk is itself
//   Record, Record, ...           each begins at a multiple of 8 and is a multiple of 8 long. The file grows by chunks,
//                                 and no record crosses from one into the next: a length of 0 ends a chunk's records
//
//   kind       a trace::Kind: an event, with the members that its kind uses. kLane, kText, kRange: what later events
//              refer to, in the order of their numbers
//
//   [ bytes:16 | kind:8 | dwords:8 | lane:32 ][ ns:64 ][ position:64 ]                                     an event
//       packet_begin:  [ length:32 ][ dwords ... ][ name of the generation, 8 characters, if kNamed is in `dwords` ]
//       others that use more:  [ value:64 ][ address:64 ][ text:64 ]
//   [ bytes:16 | kind:8 | 0:8 | characters of the first text:32 ][ texts ... ]                             kLane, kText
//   [ bytes:16 | kind:8 | 0:8 | characters:32 ][ address:64 ][ bytes:64 ][ text ... ]                      kRange
//
// Numbers are little-endian. The first 8 bytes of a record are stored last, so a file of a process that was killed ends
// with a whole record. from_records reads what the writer wrote; any thread may call it.
// Errors: a Diagnostic with the position in the file.
#include "sdma/core/diagnostic.hpp"
#include "sdma/core/result.hpp"
#include "sdma/trace/trace.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <string_view>

namespace sdma { inline namespace v0_3 { namespace trace::detail {

inline constexpr std::string_view kRecordsMagic = "SDMAREC1";
struct RecordsHeader {
  std::array<char, 8> magic{};
  std::uint64_t chunk_bytes{}, lost{};
  std::array<char, 40> clock{};  ///< ends with a zero
};
static_assert(sizeof(RecordsHeader) == 64);
/// A longer name of a clock is cut.
inline RecordsHeader records_header(std::string_view clock, std::uint64_t chunk_bytes) noexcept {
  RecordsHeader h{.chunk_bytes = chunk_bytes};
  std::copy_n(kRecordsMagic.begin(), h.magic.size(), h.magic.begin());
  std::copy_n(clock.begin(), std::min(clock.size(), h.clock.size() - 1), h.clock.begin());
  return h;
}

inline constexpr std::uint8_t kNamed = 0x80;  ///< in RecordHead::dwords: not of the default generation
inline constexpr std::size_t kGenerationName = 8;
inline constexpr std::uint8_t kLane = 0xf0, kText = 0xf1, kRange = 0xf2;
struct RecordHead {
  std::uint16_t bytes{};
  std::uint8_t kind{}, dwords{};
  std::uint32_t number{};  ///< the lane of an event; the characters of a text
};
static_assert(sizeof(RecordHead) == 8);

/// Which events have a value, an address and a text after their position.
constexpr bool has_more(Kind k) noexcept {
  return k != Kind::doorbell && k != Kind::packet_begin && k != Kind::packet_end && k != Kind::queue_destroyed &&
         k != Kind::action_end;
}

inline bool is_records(std::string_view file) noexcept { return file.starts_with(kRecordsMagic); }
/// `name`: of the file, in errors.
Result<Trace, Diagnostic> from_records(std::string_view file, std::string_view name);

}}}  // namespace sdma::v0_3::trace::detail
