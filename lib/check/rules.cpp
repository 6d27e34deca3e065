// The checker's rules, and the ordering rules that findings rest on.
#include "report.hpp"

#include <algorithm>
#include <array>

namespace sdma {
inline namespace v0 {
namespace {

constexpr auto error = Severity::error, warning = Severity::warning, note = Severity::note;

constexpr std::array kRules{
    ScheduleRule{"cond-exec-unordered", warning, "what a conditional execution reads has been waited for"},
    ScheduleRule{"data-as-flag", error, "what a poll waits for is written by a fence, an atomic or the host"},
    ScheduleRule{"deadlock", error, "no agents wait for each other for ever"},
    ScheduleRule{"early-completion", error, "a completion stands behind the data that it announces"},
    ScheduleRule{"engine-wait", warning, "what a poll waits for does not need the engine on which it waits"},
    ScheduleRule{"epoch-overflow", error, "the values of all epochs fit their fields"},
    ScheduleRule{"fence-race", error, "stores of two agents to one signal are in an order"},
    ScheduleRule{"foreign-completion", error, "a completion stands in the queue of the data that it announces"},
    ScheduleRule{"freed-while-polled", warning,
                 "who polls or writes a signal is past it when the last host thread ends"},
    ScheduleRule{"host-vram", warning, "the host touches no VRAM without a flush of its data path"},
    ScheduleRule{"indirect-unknown", note, "the packets of indirect buffers are known"},
    ScheduleRule{"kernel-scope", error, "kernels release and acquire at system scope"},
    ScheduleRule{"missed-value", error, "a value that a wait needs stays until the wait has seen it"},
    ScheduleRule{"never-met", error, "something writes what a wait waits for"},
    ScheduleRule{"never-submitted", warning, "every queue is submitted"},
    ScheduleRule{"no-pcie-atomics", error, "atomics to the host's memory go over a link that completes them"},
    ScheduleRule{"not-all-rounds", note, "all rounds of all repeats are looked at"},
    ScheduleRule{"not-shown", note, "all findings are shown"},
    ScheduleRule{"outside", error, "a packet stays inside of what it names"},
    ScheduleRule{"race", error, "accesses to the same bytes, one of them a write, are in an order"},
    ScheduleRule{"reset-while-polled", error, "a signal is reset when all who poll it are past"},
    ScheduleRule{"self-wait", error, "no queue waits for what it does afterwards"},
    ScheduleRule{"stale-wait", error, "a wait is not met by what was there before"},
    ScheduleRule{"unawaited", error, "somebody waits for every store, before the last host thread ends"},
    ScheduleRule{"unknown-value", warning, "what a signal holds can be followed"},
    ScheduleRule{"unmapped", error, "a packet touches what its GPU has mapped"},
    ScheduleRule{"unreachable-count", error, "a count that is waited for can be reached"},
    ScheduleRule{"unused-signal", warning, "somebody waits for every signal that is written"},
    ScheduleRule{"wide-poll", warning, "a word of 64 bits that is polled in halves is monotone"},
};
static_assert(std::is_sorted(kRules.begin(), kRules.end(), [](auto& a, auto& b) { return a.id < b.id; }));

constexpr std::array kOrdering{
    OrderingRule{"Q1", "relied on by the kernel", "copies and fills of one queue may overlap and finish in any order",
                 "copies=inorder"},
    OrderingRule{"Q2", "relied on by ROCr", "a write may overlap earlier and later copies", "write=ordered"},
    OrderingRule{"Q3", "relied on by ROCr", "a fence or atomic executes when all that is earlier in its queue is done",
                 ""},
    OrderingRule{"Q4", "relied on by ROCr", "fences and atomics of a queue keep their order", ""},
    OrderingRule{"Q5", "unknown", "a fence or atomic holds back nothing that is later", "fence=full"},
    OrderingRule{"Q6", "relied on by ROCr", "a satisfied poll holds back all that is later", ""},
    OrderingRule{"Q7", "relied on by the kernel", "a poll does not wait for earlier packets of its queue", "poll=full"},
    OrderingRule{"Q8", "relied on by ROCr", "a poll compares 32 bits: two of them are no snapshot of 64", ""},
    OrderingRule{"Q9", "unknown", "whether a queue goes on behind an expired poll is not said", "finite_poll=edge"},
    OrderingRule{"Q10", "inferred", "a timestamp is readable after a later fence or atomic", ""},
    OrderingRule{"Q12", "unknown", "cond_exec reads its word once, perhaps ahead of earlier packets",
                 "cond_exec=ordered"},
    OrderingRule{"Q13", "relied on by the kernel", "an indirect buffer is read from the doorbell on", ""},
    OrderingRule{"Q16", "follows from Q1 and Q2", "a word that a copy, fill or write stores is no flag", ""},
    OrderingRule{"X1", "documented", "queues of one engine are time slices, in no order", ""},
    OrderingRule{"X2", "unknown", "a waiting poll may keep its engine from the engine's other queues",
                 "poll_yields=yes"},
    OrderingRule{"X3", "relied on by ROCr",
                 "queues are ordered by a fence or atomic that a poll or the host has seen, by nothing else", ""},
    OrderingRule{"X5", "relied on by MORI", "a signal on another queue than the data says nothing", ""},
    OrderingRule{"X6", "relied on by ROCr",
                 "of two fences to one word the last wins; atomics need a link that completes them", ""},
    OrderingRule{"C3", "documented", "what a kernel wrote is for engines after a system-scope release", ""},
    OrderingRule{"C4", "documented", "what an engine wrote is for a kernel after a system-scope acquire", ""},
    OrderingRule{"C8", "relied on by ROCr", "what the host stores to VRAM needs an HDP flush before engines read it",
                 "host_link=xgmi"},
    OrderingRule{"C9", "inferred", "what engines store to VRAM needs an HDP flush before the host reads it",
                 "bar_read=free"},
    OrderingRule{"E4", "relied on by ROCr", "a signal outlives all who poll it or add to it", ""},
    OrderingRule{"E7", "relied on by runtimes", "each round is published anew: constant values repeat", ""},
    OrderingRule{"E8", "relied on by runtimes", "a signal is reset when all who poll it are past, or only grows", ""},
};

struct Option {
  std::string_view text;
  bool Profile::*member;
  bool value;
};
constexpr std::array kOptions{
    Option{"copies=inorder", &Profile::copies_in_order, true},
    Option{"copies=unordered", &Profile::copies_in_order, false},
    Option{"write=ordered", &Profile::writes_ordered, true},
    Option{"write=unordered", &Profile::writes_ordered, false},
    Option{"fence_covers=copies", &Profile::fence_covers_writes, false},
    Option{"fence_covers=all", &Profile::fence_covers_writes, true},
    Option{"fences=unordered", &Profile::fences_ordered, false},
    Option{"fences=ordered", &Profile::fences_ordered, true},
    Option{"fence=full", &Profile::fence_full, true},
    Option{"fence=release", &Profile::fence_full, false},
    Option{"poll=full", &Profile::poll_full, true},
    Option{"poll=acquire", &Profile::poll_full, false},
    Option{"finite_poll=edge", &Profile::finite_poll_edge, true},
    Option{"finite_poll=none", &Profile::finite_poll_edge, false},
    Option{"cond_exec=ordered", &Profile::cond_exec_ordered, true},
    Option{"cond_exec=unordered", &Profile::cond_exec_ordered, false},
    Option{"poll_yields=yes", &Profile::poll_yields, true},
    Option{"poll_yields=no", &Profile::poll_yields, false},
    Option{"pcie_atomics=yes", &Profile::pcie_atomics, true},
    Option{"pcie_atomics=no", &Profile::pcie_atomics, false},
    Option{"l2_probe=yes", &Profile::l2_probed, true},
    Option{"l2_probe=no", &Profile::l2_probed, false},
    Option{"host_link=xgmi", &Profile::host_link_xgmi, true},
    Option{"host_link=pcie", &Profile::host_link_xgmi, false},
    Option{"bar_read=free", &Profile::bar_read_free, true},
    Option{"bar_read=flush", &Profile::bar_read_free, false},
};
constexpr auto kOptionTexts = [] {
  std::array<std::string_view, kOptions.size()> t;
  for (std::size_t i = 0; i < t.size(); ++i) t[i] = kOptions[i].text;
  return t;
}();

}  // namespace

std::span<const ScheduleRule> schedule_rules() noexcept { return kRules; }
std::span<const OrderingRule> ordering_rules() noexcept { return kOrdering; }
std::span<const std::string_view> profile_options() noexcept { return kOptionTexts; }

bool Profile::set(std::string_view option) noexcept {
  for (const auto& o : kOptions)
    if (o.text == option) return this->*o.member = o.value, true;
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
