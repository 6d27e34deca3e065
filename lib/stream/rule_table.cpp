// SPDX-License-Identifier: MIT
// The rules about a stream: ids, severities and sentences. rules.cpp checks them.
#include "sdma/stream/rules.hpp"

#include <algorithm>
#include <array>

namespace sdma { inline namespace v0_3 {
namespace {

constexpr auto kStreamRules = [] {
  using enum Severity;
  return std::array{
      StreamRule{"alignment", error, "an address or offset does not have the alignment that its packet requires",
                 "move it to a multiple of the alignment"},
      StreamRule{"cache-policy-set", warning, "a packet sets cache policy bits, which are 0 in all public code",
                 "omit the policy, unless you have measured its effect"},
      StreamRule{
          "cond-exec-unordered", warning, "a conditional execution reads a word that no poll has waited for",
          "before the cond_exec, store the word with a fence or atomic and wait for it with poll_mem: the engine "
          "may read it early"},
      StreamRule{
          "condition-splits-packet", error, "a condition skips a part of a packet",
          "let its dwords end where a packet ends: if the condition is not met, the engine reads the rest of the "
          "packet as a packet"},
      StreamRule{"copy-chunk-misaligned", note, "a long copy is split at an offset that is not a multiple of 64 bytes",
                 "use chunks of 0x3fffffc0 bytes (or 0x3fffc0): every chunk then has the alignment of the first"},
      StreamRule{"data-as-flag", warning, "a copy, fill or write stores to a word that a poll waits for",
                 "store the flag with a fence or atomic: other stores may overtake the data that they announce"},
      StreamRule{"endian-swap-set", warning, "a packet swaps the bytes of its data, but hosts are little-endian",
                 "omit the swap"},
      StreamRule{"fill-data-cut", warning, "the data of a fill has bits beyond its unit",
                 "use unit=dword for a pattern of 32 bits"},
      StreamRule{
          "finite-poll", warning, "a poll can expire, because it does not retry forever",
          "use retry=forever and give the host's wait a deadline: user space does not learn that a poll expired"},
      StreamRule{"gcr-disputed", warning, "a gcr sets bits whose meaning is disputed",
                 "leave them 0, as all public code does: one of them makes the addresses of the range physical"},
      StreamRule{"ib-alignment", error,
                 "an indirect packet does not end on a multiple of 8 dwords, or the length of its buffer is not a "
                 "multiple of 8 dwords",
                 "put nop packets before the packet, or after the packets in the buffer"},
      StreamRule{"indirect-user-queue", warning,
                 "a user queue has an indirect packet, and the driver does not enable them there",
                 "write the packets into the ring; sdma contact finds out what a machine does, and --assume "
                 "indirect=works removes this warning"},
      StreamRule{"no-completion", warning, "no fence or atomic follows a packet that stores",
                 "end the stream with a fence or an atomic: nothing else shows that the stores are complete"},
      StreamRule{"nop-payload", warning, "a nop skips dwords that are not 0",
                 "check the length of the nop: if it is too long, the engine skips the packets after it"},
      StreamRule{"nop-skips-packets", error, "a nop skips packets that complete something",
                 "correct the length of the nop: nothing executes what it skips, and waits for it never end"},
      StreamRule{"not-all-accesses", warning, "some accesses to memory are not compared",
                 "check the stream in parts, cut where a poll waits for what was stored"},
      StreamRule{"overlap", error, "the ranges of one packet overlap",
                 "copy through a third buffer, or in pieces with a fence and a poll between them"},
      StreamRule{"poll-always", note, "every value satisfies a poll, so it waits for nothing",
                 "compare bits that the mask leaves, or write func=always"},
      StreamRule{"poll-never", error, "no value can satisfy a poll, so it never ends",
                 "give the reference no bit outside the mask, and compare with a value that the masked word can pass"},
      StreamRule{"poll-repeated", note, "an earlier poll has already waited for what a poll waits for",
                 "remove the poll, or wait for a later value: two waits for different events need different values or "
                 "words"},
      StreamRule{"privileged", error, "a packet of a user queue needs kernel privileges",
                 "remove it: a user queue stops at this packet, and user space is not notified"},
      StreamRule{"range", error, "a field holds a value that is not documented", "choose a documented value"},
      StreamRule{"reserved-bits", warning, "a packet sets bits that no document describes", "clear them"},
      StreamRule{"signal-polled", warning,
                 "a poll waits for the word that its own packet, or the packet just before it, signals",
                 "poll another word, or wait on another queue or the host: a runtime's source says that the engine "
                 "hangs, because the poll never sees that signal"},
      StreamRule{"swap-length", warning, "the length of a swap is not a multiple of 64 bytes",
                 "round the length up to a multiple of 64, or copy the rest: other lengths are not documented"},
      StreamRule{
          "trap-without-mailbox-fence", error, "no fence before a trap stores the context of the trap",
          "put fence addr=MAILBOX value=CONTEXT before the trap: the kernel drops an interrupt whose mailbox is empty"},
      StreamRule{"truncated", error, "the stream ends inside a packet",
                 "give the whole stream, or cut it between packets"},
      StreamRule{"unchecked-packet", warning, "the fields of a packet are not known, so they are not checked",
                 "check its dwords by hand"},
      StreamRule{"unknown-code", error, "an enumerated field holds a code that has no meaning", "choose a named code"},
      StreamRule{
          "unknown-packet", error, "a dword does not begin a packet of this engine",
          "the queue would stop here; check that the input begins with a packet, and that it is in the right format"},
      StreamRule{"unordered", warning,
                 "a packet reads or overwrites what an earlier packet writes, and nothing orders the two",
                 "put fence addr=W value=N and poll_mem addr=W func=eq reference=N between them"},
      StreamRule{"wraps-ring", error, "a packet lies across the end of the ring",
                 "fill the end of the ring with nop packets, and put this packet at the start"},
  };
}();
static_assert(std::is_sorted(kStreamRules.begin(), kStreamRules.end(), [](auto& a, auto& b) { return a.id < b.id; }));

}  // namespace

std::span<const StreamRule> stream_rules() noexcept { return kStreamRules; }

}}  // namespace sdma::v0_3
