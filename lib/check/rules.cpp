// The checker's rules, and the ordering rules that findings rest on.
#include "report.hpp"

#include <algorithm>
#include <array>

namespace sdma {
inline namespace v0 {
namespace {

constexpr auto error = Severity::error, warning = Severity::warning, note = Severity::note;

constexpr std::array kRules{
    ScheduleRule{"cond-exec-unordered", warning, "a poll has waited for what a conditional execution reads"},
    ScheduleRule{"data-as-flag", error, "only fences, atomics and the host store to a word that is waited for"},
    ScheduleRule{"deadlock", error, "no agents wait for each other forever"},
    ScheduleRule{"early-completion", error, "a completion comes after the data that it announces"},
    ScheduleRule{"engine-wait", warning, "a poll does not depend on another queue of its engine"},
    ScheduleRule{"epoch-overflow", error, "the values of all epochs fit their fields"},
    ScheduleRule{"fence-race", error, "stores of two agents to one signal are ordered"},
    ScheduleRule{"foreign-completion", error, "a completion is in the queue of the data that it announces"},
    ScheduleRule{"freed-while-polled", warning,
                 "every poll of and store to a signal is complete when the last host thread ends"},
    ScheduleRule{"host-vram", warning, "the host does not access VRAM without an HDP flush"},
    ScheduleRule{"indirect-unknown", note, "the packets of indirect buffers are known"},
    ScheduleRule{"kernel-scope", error, "kernels release and acquire at system scope"},
    ScheduleRule{"missed-value", error, "a value that a wait needs stays until the wait has seen it"},
    ScheduleRule{"never-met", error, "something writes what a wait waits for"},
    ScheduleRule{"never-submitted", warning, "every queue is submitted"},
    ScheduleRule{"no-pcie-atomics", error, "atomics to the host's memory go over a link that completes them"},
    ScheduleRule{"not-all-rounds", note, "all rounds of all repeats are checked"},
    ScheduleRule{"not-shown", note, "all findings are shown"},
    ScheduleRule{"outside", error, "a packet stays inside the buffers and signals that it names"},
    ScheduleRule{"race", error, "accesses to the same bytes, at least one of them a write, are ordered"},
    ScheduleRule{"reset-while-polled", error, "a signal is reset only after all polls of it are complete"},
    ScheduleRule{"self-wait", error, "no queue waits for a post that comes later in the same queue"},
    ScheduleRule{"stale-wait", error, "an old value does not satisfy a wait"},
    ScheduleRule{"unawaited", error, "a host thread waits for every store before the last one ends"},
    ScheduleRule{"unknown-value", warning, "the value of a signal is known"},
    ScheduleRule{"unmapped", error, "a packet accesses only memory that its GPU has mapped"},
    ScheduleRule{"unreachable-count", error, "a count that is waited for can be reached"},
    ScheduleRule{"unused-signal", warning, "something waits for every signal that is written"},
    ScheduleRule{"wide-poll", warning, "a word of 64 bits that is polled in halves is monotone"},
};
static_assert(std::is_sorted(kRules.begin(), kRules.end(), [](auto& a, auto& b) { return a.id < b.id; }));

constexpr std::array kOrdering{
    OrderingRule{"Q1", "relied on by the kernel", "copies and fills of one queue may overlap and finish in any order",
                 "copies=inorder"},
    OrderingRule{"Q2", "relied on by ROCr", "a write may overlap earlier and later copies", "write=ordered"},
    OrderingRule{"Q3", "relied on by ROCr",
                 "a fence or atomic executes once everything earlier in its queue is complete", ""},
    OrderingRule{"Q4", "relied on by ROCr", "fences and atomics of a queue keep their order", ""},
    OrderingRule{"Q5", "unknown", "a fence or atomic does not hold back later packets", "fence=full"},
    OrderingRule{"Q6", "relied on by ROCr", "a poll holds back all later packets until it is satisfied", ""},
    OrderingRule{"Q7", "relied on by the kernel", "a poll does not wait for earlier packets of its queue", "poll=full"},
    OrderingRule{"Q8", "relied on by ROCr", "a poll compares 32 bits: two polls do not read 64 bits at one moment", ""},
    OrderingRule{"Q9", "unknown", "it is not documented whether a queue continues after an expired poll",
                 "finite_poll=edge"},
    OrderingRule{"Q10", "inferred", "a timestamp is readable after a later fence or atomic", ""},
    OrderingRule{"Q12", "unknown", "cond_exec reads its word once, perhaps before earlier packets have completed",
                 "cond_exec=ordered"},
    OrderingRule{"Q13", "relied on by the kernel", "an indirect buffer may be read as soon as the doorbell rings", ""},
    OrderingRule{"Q16", "follows from Q1 and Q2", "a word that a copy, fill or write stores is not a flag", ""},
    OrderingRule{"X1", "documented", "queues of one engine share it in time slices and are unordered", ""},
    OrderingRule{"X2", "unknown", "a waiting poll may keep its engine from the engine's other queues",
                 "poll_yields=yes"},
    OrderingRule{"X3", "relied on by ROCr",
                 "queues are ordered by a fence or atomic that a poll or the host has seen, by nothing else", ""},
    OrderingRule{"X5", "relied on by MORI", "a signal on a different queue from the data does not announce it", ""},
    OrderingRule{"X6", "relied on by ROCr",
                 "if two fences store to one word, the last wins; atomics need a link that completes them", ""},
    OrderingRule{"C3", "documented", "engines see a kernel's stores after its release at system scope", ""},
    OrderingRule{"C4", "documented", "a kernel sees an engine's stores after its acquire at system scope", ""},
    OrderingRule{"C8", "relied on by ROCr", "the host's stores to VRAM need an HDP flush before engines read them",
                 "host_link=xgmi"},
    OrderingRule{"C9", "inferred", "engines' stores to VRAM need an HDP flush before the host reads them",
                 "bar_read=free"},
    OrderingRule{"E4", "relied on by ROCr", "a signal outlives everything that polls it or adds to it", ""},
    OrderingRule{"E7", "relied on by runtimes", "each round is published again, so constant values repeat", ""},
    OrderingRule{"E8", "relied on by runtimes",
                 "a signal is reset only after all polls of it are complete, or it only grows", ""},
};

/// An option and its opposite. The first one stores `value` in the member.
struct Option {
  std::string_view text, opposite;
  bool Profile::*member;
  bool value;
};
constexpr Option kOptions[] = {
    {"copies=inorder", "copies=unordered", &Profile::copies_in_order, true},
    {"write=ordered", "write=unordered", &Profile::writes_ordered, true},
    {"fence_covers=copies", "fence_covers=all", &Profile::fence_covers_writes, false},
    {"fences=unordered", "fences=ordered", &Profile::fences_ordered, false},
    {"fence=full", "fence=release", &Profile::fence_full, true},
    {"poll=full", "poll=acquire", &Profile::poll_full, true},
    {"finite_poll=edge", "finite_poll=none", &Profile::finite_poll_edge, true},
    {"cond_exec=ordered", "cond_exec=unordered", &Profile::cond_exec_ordered, true},
    {"poll_yields=yes", "poll_yields=no", &Profile::poll_yields, true},
    {"pcie_atomics=yes", "pcie_atomics=no", &Profile::pcie_atomics, true},
    {"l2_probe=yes", "l2_probe=no", &Profile::l2_probed, true},
    {"host_link=xgmi", "host_link=pcie", &Profile::host_link_xgmi, true},
    {"bar_read=free", "bar_read=flush", &Profile::bar_read_free, true},
};
constexpr auto kOptionTexts = [] {
  std::array<std::string_view, 2 * std::size(kOptions)> t;
  auto* to = t.data();
  for (const auto& o : kOptions) *to++ = o.text, *to++ = o.opposite;
  return t;
}();

}  // namespace

std::span<const ScheduleRule> schedule_rules() noexcept { return kRules; }
std::span<const OrderingRule> ordering_rules() noexcept { return kOrdering; }
std::span<const std::string_view> profile_options() noexcept { return kOptionTexts; }

bool Profile::set(std::string_view option) noexcept {
  for (const auto& o : kOptions)
    if (o.text == option || o.opposite == option) return this->*o.member = (o.text == option) == o.value, true;
  return false;
}

namespace check_detail {

const OrderingRule* ordering_rule(std::string_view id) noexcept {
  for (const auto& r : kOrdering)
    if (r.id == id) return &r;
  return nullptr;
}

}  // namespace check_detail
}  // namespace v0
}  // namespace sdma
