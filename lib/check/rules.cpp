// SPDX-License-Identifier: MIT
// The checker's rules, and the ordering rules that findings rest on.
#include "reporter.hpp"

#include <algorithm>
#include <array>

namespace sdma { inline namespace v0_3 {
namespace {

constexpr auto error = Severity::error, warning = Severity::warning, note = Severity::note;

constexpr std::array kRules{
    ScheduleRule{"bad-lifetime", error, "allocations, mappings or handles of a buffer contradict each other"},
    ScheduleRule{"cond-exec-assumed", warning, "conditional packets are assumed to execute"},
    ScheduleRule{"cond-exec-constant", note, "a condition is met in every execution, or in none"},
    ScheduleRule{"data-as-flag", error, "a copy, fill or write stores to a word that something waits for"},
    ScheduleRule{"deadlock", error, "agents wait for each other forever"},
    ScheduleRule{"early-completion", error, "a completion comes before the data that it announces"},
    ScheduleRule{"engine-choice", note, "packets use an engine that serves another link"},
    ScheduleRule{"engine-refused", error, "a queue is on an engine that does not exist, is dead, or has no room"},
    ScheduleRule{"engine-wait", error, "a poll waits for another queue of its own engine"},
    ScheduleRule{"epoch-overflow", error, "the value of an epoch does not fit its field"},
    ScheduleRule{"fence-race", error, "two agents store to one signal, and nothing orders the stores"},
    ScheduleRule{"foreign-completion", error, "a completion is in a different queue from the data that it announces"},
    ScheduleRule{"freed-while-polled", warning,
                 "a poll of a signal, or a store to it, may still run when the last host thread ends"},
    ScheduleRule{"host-vram", warning, "the host accesses VRAM without an HDP flush"},
    ScheduleRule{"indirect-unknown", warning, "the packets of an indirect buffer are not checked"},
    ScheduleRule{"kernel-scope", error, "a kernel does not release or acquire at system scope"},
    ScheduleRule{"loop-needs-compare", error, "an atomic is to retry until its compare succeeds, but does not compare"},
    ScheduleRule{"missed-value", error, "the value that a wait needs may change before the wait sees it"},
    ScheduleRule{"network-unflushed", error,
                 "an engine or a kernel reads what the network has stored, without a flush"},
    ScheduleRule{"never-met", error, "nothing stores the value that a wait needs"},
    ScheduleRule{"never-submitted", warning, "a queue is never submitted"},
    ScheduleRule{
        "no-link", error,
        "a packet or a kernel accesses the memory of a GPU to which there is no link, or a kernel a doorbell there"},
    ScheduleRule{"no-pcie-atomics", error, "an atomic goes over a link that does not complete atomics"},
    ScheduleRule{"no-such-gpu", error, "the node has not all GPUs of the schedule"},
    ScheduleRule{"not-all-accesses", warning, "some accesses to memory are not compared"},
    ScheduleRule{"not-all-choices", warning, "only the first alternative of each open choice is checked"},
    ScheduleRule{"not-all-engines", warning, "waits that may hold their engines are not all compared"},
    ScheduleRule{"not-all-order", warning, "a limit is exceeded, and the order of posts and waits is not computed"},
    ScheduleRule{"not-all-rings", warning, "not every way in which a ring could block a submit is examined"},
    ScheduleRule{"not-all-rounds", warning, "some rounds of a repeat are not checked"},
    ScheduleRule{"not-covered", warning, "the argument of a proof does not cover a thing in the schedule"},
    ScheduleRule{"not-shown", note, "some findings are not shown"},
    ScheduleRule{"open-schedule", warning, "what the rest of the system does is assumed"},
    ScheduleRule{"other-node", error, "an engine, a host thread or a kernel reaches into another machine"},
    ScheduleRule{"outside", error, "a packet accesses memory outside the buffers and signals that it names"},
    ScheduleRule{"pinned-range", warning, "the driver may unmap a pinned range while an engine uses it"},
    ScheduleRule{"race", error, "two accesses to the same bytes, at least one of them a write, are not ordered"},
    ScheduleRule{"reset-while-polled", error, "a signal is reset before all polls of it are complete"},
    ScheduleRule{"ring-full", error, "a submit waits forever for room in its ring"},
    ScheduleRule{"self-wait", error, "a queue waits for a post that comes later in the same queue"},
    ScheduleRule{"shared-engine", note, "queues of different directions or peers share an engine"},
    ScheduleRule{"stale-wait", error, "an old value can satisfy a wait"},
    ScheduleRule{"unawaited", error, "the last host thread may end before a store is complete"},
    ScheduleRule{"unknown-result", warning, "an expectation is about bytes that are not followed"},
    ScheduleRule{"unknown-sample", warning, "what a thread samples depends on timing"},
    ScheduleRule{"unknown-value", warning, "the value of a signal is not known"},
    ScheduleRule{"unmapped", error, "a packet accesses memory that its GPU has not mapped"},
    ScheduleRule{"unreachable-count", error, "a wait needs a count that is never reached"},
    ScheduleRule{"unused-signal", note, "nothing waits for a signal that is written"},
    ScheduleRule{"use-after-free", error,
                 "memory is freed, unmapped or its handle closed, and a use of it is not complete before"},
    ScheduleRule{"use-before-alloc", error,
                 "memory is used, and nothing says that it is allocated, mapped or exported by then"},
    ScheduleRule{"vram-fence", error, "a fence or atomic in VRAM announces data in host memory"},
    ScheduleRule{"wide-poll", error, "a 64-bit word that is not monotone is polled in halves"},
    ScheduleRule{"wrong-result", error, "an expectation does not hold after any execution"},
};
static_assert(std::is_sorted(kRules.begin(), kRules.end(), [](auto& a, auto& b) { return a.id < b.id; }));

constexpr std::array kOrdering{
    OrderingRule{"Q1", "relied on by the kernel", "copies and fills of one queue may overlap and finish in any order",
                 "copies=inorder"},
    OrderingRule{"Q2", "relied on by ROCr", "a write may overlap earlier and later copies", "write=ordered"},
    OrderingRule{"Q3", "relied on by ROCr",
                 "a fence or atomic executes after all earlier packets of its queue are complete", ""},
    OrderingRule{"Q4", "relied on by ROCr", "fences and atomics of a queue keep their order", ""},
    OrderingRule{"Q5", "unknown", "a fence or atomic does not hold back later packets", "fence=full"},
    OrderingRule{"Q6", "relied on by ROCr", "a poll holds back all later packets until it is satisfied", ""},
    OrderingRule{"Q7", "relied on by the kernel", "a poll does not wait for earlier packets of its queue", "poll=full"},
    OrderingRule{"Q8", "relied on by ROCr",
                 "a poll compares 32 bits, so two polls do not read both halves of a 64-bit word at the same moment",
                 ""},
    OrderingRule{"Q9", "unknown", "whether a queue continues after a poll expires is not documented",
                 "finite_poll=edge"},
    OrderingRule{"Q10", "inferred", "a timestamp is readable after a later fence or atomic", ""},
    OrderingRule{"Q12", "unknown", "cond_exec reads its word once, perhaps before earlier packets have completed",
                 "cond_exec=ordered"},
    OrderingRule{"Q13", "relied on by the kernel",
                 "an engine may read an indirect buffer as soon as the doorbell rings, if its queue executes any",
                 "indirect=works"},
    OrderingRule{"Q16", "follows from Q1 and Q2", "a word that a copy, fill or write stores cannot serve as a flag",
                 ""},
    OrderingRule{"X1", "documented", "queues of one engine run in time slices and are not ordered", ""},
    OrderingRule{"X2", "unknown", "a waiting poll may block the other queues of its engine", "poll_yields=yes"},
    OrderingRule{"X3", "relied on by ROCr", "only a fence or atomic that a poll or the host has seen orders two queues",
                 ""},
    OrderingRule{"X5", "relied on by MORI", "a signal does not announce data that another queue moved", ""},
    OrderingRule{"X6", "relied on by ROCr",
                 "if two fences store to one word, the last wins; atomics need a link that completes them", ""},
    OrderingRule{"C3", "documented", "engines see a kernel's stores after its release at system scope", ""},
    OrderingRule{"C4", "documented", "a kernel sees an engine's stores after its acquire at system scope", ""},
    OrderingRule{"C5", "documented", "an acquire by one wave is none for waves of another die", ""},
    OrderingRule{"C7", "observed by MORI",
                 "engines and kernels may read old bytes of VRAM after a NIC has stored new ones",
                 "network_data=flushed"},
    OrderingRule{"C8", "relied on by ROCr", "the host's stores to VRAM need an HDP flush before engines read them",
                 "host_link=xgmi"},
    OrderingRule{"C9", "inferred", "engines' stores to VRAM need an HDP flush before the host reads them",
                 "bar_read=free"},
    OrderingRule{"E4", "relied on by ROCr", "a signal must outlive every packet that polls it or adds to it", ""},
    OrderingRule{"E7", "relied on by runtimes",
                 "each round publishes the same packets again, so constant values repeat", ""},
    OrderingRule{"E8", "relied on by runtimes",
                 "a signal may be reset only after all polls of it are complete; one that only grows needs no reset",
                 ""},
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
    {"vram_fence=covers", "vram_fence=unknown", &Profile::vram_fence_covers, true},
    {"fences=unordered", "fences=ordered", &Profile::fences_ordered, false},
    {"fence=full", "fence=release", &Profile::fence_full, true},
    {"poll=full", "poll=acquire", &Profile::poll_full, true},
    {"finite_poll=edge", "finite_poll=none", &Profile::finite_poll_edge, true},
    {"cond_exec=ordered", "cond_exec=unordered", &Profile::cond_exec_ordered, true},
    {"nop=drain", "nop=none", &Profile::nop_drains, true},
    {"poll_yields=yes", "poll_yields=no", &Profile::poll_yields, true},
    {"pcie_atomics=yes", "pcie_atomics=no", &Profile::pcie_atomics, true},
    {"l2_probe=yes", "l2_probe=no", &Profile::l2_probed, true},
    {"host_link=xgmi", "host_link=pcie", &Profile::host_link_xgmi, true},
    {"bar_read=free", "bar_read=flush", &Profile::bar_read_free, true},
    {"pinned=moves", "pinned=stays", &Profile::pinned_stays, false},
    {"network_data=unflushed", "network_data=flushed", &Profile::network_flushes, false},
    {"kernel=die", "kernel=gpu", &Profile::kernels_are_dies, true},
    {"indirect=works", "indirect=unknown", &Profile::indirect_works, true},
};
constexpr auto kOptionTexts = [] {
  std::array<std::string_view, 2 * std::size(kOptions)> t;
  auto* to = t.data();
  for (const auto& o : kOptions) *to++ = o.text, *to++ = o.opposite;
  return t;
}();

}  // namespace

std::span<const ScheduleRule> schedule_rules() noexcept { return kRules; }
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
}}  // namespace sdma::v0_3
