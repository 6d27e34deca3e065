#pragma once
// What is wrong with a stream of packets: things that an engine would misdo, and things that nobody means.
//
//   for (const Diagnostic& d : check_stream(dwords, {.file = "ring.bin", .ring_bytes = 1 << 20})) print(to_string(d));
//
//   ring.bin:0x0040: error[alignment]: fence addr 0x1002 is no multiple of 4
//     fence addr=0x1002 value=1
//     hint: move it to a multiple of the alignment
//
// Each rule has an id, a severity and a sentence (`stream_rules`), and a section in docs/rules.md with the reason. The rules of
// the packets themselves ("broadcast-modulo-32", ...) come from their layouts. error: the engine does not do what was meant;
// warning: nothing says that it does, or public code avoids it; note: for the reader.
//
// What is earlier and later is the order of the stream, and what orders what is the ordering rules of one queue: fences and
// atomics release what is earlier, a poll holds back what is later, nothing else orders. Of other queues and of the host the
// checker knows nothing: a poll behind a fence may have waited for somebody who saw that fence.
//
// Allocates; no shared state, so any thread may use it; throws nothing but what the allocator throws.
#include "sdma/core/diagnostic.hpp"
#include "sdma/stream/reader.hpp"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace sdma {
inline namespace v0 {

/// A rule over a stream, or one that all packets share.
struct StreamRule {
  std::string_view id;
  Severity severity;
  std::string_view text;  ///< what must hold, a sentence
  std::string_view hint;  ///< what to do where it does not
};
/// All of them, sorted by id; the packets' own rules are in `PacketInfo::rules`.
std::span<const StreamRule> stream_rules() noexcept;

struct StreamCheckOptions {
  std::string file = "stream";   ///< what diagnostics call it
  std::uint64_t ring_bytes = 0;  ///< of the ring that the stream lies in; 0: it lies in none, and nothing wraps
  std::uint64_t base = 0;        ///< offset of the first dword, in bytes: a ring position
  bool user_queue = true;        ///< false: a queue of the kernel, which may send privileged packets
  std::size_t most = 20;         ///< diagnostics a rule; a note says how many more there were. 0: all
};

/// Checks a stream that arrives in pieces, as Disassembler has it.
class StreamChecker {
 public:
  explicit StreamChecker(StreamCheckOptions);
  ~StreamChecker();
  StreamChecker(StreamChecker&&) noexcept;
  StreamChecker& operator=(StreamChecker&&) noexcept;

  /// Appends what is wrong with the packets of `in` and returns how many dwords they took; with `last`, all.
  std::size_t append(std::vector<Diagnostic>& out, std::span<const std::uint32_t> in, bool last);

 private:
  class State;
  std::unique_ptr<State> state_;
};

/// The whole stream.
std::vector<Diagnostic> check_stream(std::span<const std::uint32_t>, const StreamCheckOptions& = {});

}  // namespace v0
}  // namespace sdma
