// SPDX-License-Identifier: MIT
#pragma once
// Checks a stream of packets for mistakes: packets that an engine would not execute as intended, and unusual ones.
//
//   for (const Diagnostic& d : check_stream(dwords, {.file = "ring.bin", .ring_bytes = 1 << 20})) print(to_string(d));
//
//   ring.bin:0x0040: error[alignment]: fence addr 0x1002 is not a multiple of 4
//     fence addr=0x1002 value=1
//     hint: move it to a multiple of the alignment
//
// Each rule has an id, a severity and a sentence (`stream_rules`), and a section with its reason in docs/rules.md.
// Rules of single packets ("broadcast-modulo-32", ...) come from the packets' layouts.
//
//   error      the engine does not do what was intended
//   warning    no document says that the engine does what was intended, or the checker cannot know
//   note       advice about speed or tidiness
//
// "Earlier" and "later" mean the order of the stream. The ordering model is that of a single queue: fences and atomics
// release earlier packets, a poll holds back later packets, and nothing else orders packets. The checker knows nothing
// about other queues or the host, so it assumes that they behave well: a poll after a fence may have waited for an
// agent that saw that fence.
//
// Allocates, and throws only what the allocator throws. There is no shared state; any thread may call these functions.
#include "sdma/core/diagnostic.hpp"
#include "sdma/stream/reader.hpp"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace sdma { inline namespace v0_3 {

/// A rule about a stream, or a rule that all packets share.
struct StreamRule {
  std::string_view id;    ///< Diagnostic::rule of its findings
  Severity severity;      ///< of its findings; rule_class says what it does to a verdict
  std::string_view text;  ///< what is wrong, without a full stop
  std::string_view hint;  ///< what to do about a finding, a phrase
};
/// All of them, sorted by id; the packets' own rules are in `PacketInfo::rules`.
std::span<const StreamRule> stream_rules() noexcept;

/// What a check of a stream assumes.
struct StreamCheckOptions {
  std::string file = "stream";   ///< what diagnostics call it
  std::uint64_t ring_bytes = 0;  ///< size of the ring that holds the stream; 0: there is no ring, and nothing wraps
  std::uint64_t base = 0;        ///< offset of the first dword, in bytes; in a ring, its position
  bool user_queue = true;        ///< false: a kernel queue, which may hold privileged packets
  Generation generation = kDefaultGeneration;  ///< of the engine that the packets are for
  std::size_t max_findings = 20;               ///< diagnostics per rule; a note counts the others. 0: no limit
  bool strict = false;                         ///< advice is an error
};

/// Checks a stream that arrives in pieces. Call it as you would a Disassembler (stream/text.hpp).
class StreamChecker {
 public:
  explicit StreamChecker(StreamCheckOptions);
  ~StreamChecker();
  StreamChecker(StreamChecker&&) noexcept;
  StreamChecker& operator=(StreamChecker&&) noexcept;

  /// Appends what is wrong with the packets of `in` and returns how many dwords they took. With `last`, it takes all.
  std::size_t append(std::vector<Diagnostic>& out, std::span<const std::uint32_t> in, bool last);
  /// Appends one finding about dwords that belong to no packet, and continues after them. Call it between two packets.
  void skip(std::vector<Diagnostic>& out, std::span<const std::uint32_t> in);

 private:
  class State;
  std::unique_ptr<State> state_;
};

/// Checks a whole stream.
[[nodiscard]] std::vector<Diagnostic> check_stream(std::span<const std::uint32_t>, const StreamCheckOptions& = {});

}}  // namespace sdma::v0_3
