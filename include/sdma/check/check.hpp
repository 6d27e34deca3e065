// SPDX-License-Identifier: MIT
#pragma once
// Finds races, deadlocks and missing waits in a schedule before it runs: the result is a proof that there are none, or
// a counterexample.
//
//   SourceMap map;
//   auto s = parse_schedule(text, "relay.sdma", {.map = &map});
//   CheckReport r = check(*s, {.map = &map});
//   for (const auto& f : r.findings) puts(to_string(f.diagnostic).c_str());
//
//   relay.sdma:11:3: error[race]: gpu1.second may read gpu1.buf before gpu0.first has written it
//     7:  gpu0.first   copy_linear bytes=4K src=gpu0.buf dst=gpu1.buf        writes gpu1.buf[0..+4K]
//     11: gpu1.second  copy_linear bytes=4K src=gpu1.buf[2K] dst=gpu2.buf    reads  gpu1.buf[2K..+2K]
//     overlap gpu1.buf[2K..+2K]; nothing orders line 7 before line 11
//     rests on X3 (relied on by ROCr): only a fence or atomic that a poll or the host has seen orders two queues
//     hint: line 8 announces it; before line 11 add: poll_mem addr=host.arrived func=eq reference=1
//
// check_text has the text, so it can apply its hints as changes of lines and check the result: "before line 11 insert:
// poll_mem addr=host.arrived func=eq reference=1; with this line the schedule is proved".
//
// The ordering rules are those of docs/ordering.md, and nothing stronger. A Profile says which rules to assume:
// `conservative` is that page itself, `rocr` adds what shipping runtimes rely on (a fence holds back later packets),
// `strict` assumes that each queue executes in order, and `cuda` assumes what a CudaDevice does. Every finding names
// the rules that it rests on, how well established they are, and the option that removes them.
//
//   events      packets of every submit of every queue, actions of host threads and kernels
//   edges       program order of a host; doorbell -> packets; release -> poll, if the poll cannot pass without it
//   race        two accesses to a byte, at least one a write, with no path of edges from the end of one to the other
//   deadlock    one execution is followed to its end; a proof for each wait shows that no other execution gets stuck
//   ring-full   the same execution with rings of their real size: does each submit get room?
//   lifetimes   does each use of memory come after its allocation and before its free, and so for mappings and handles?
//   results     if nothing else is wrong, every execution leaves the same bytes: are they those that are expected?
//
// The check is exact for flags (fence, set, swap) and for counters (add and sub). docs/check.md says where it is
// conservative, and what it does not analyse: packets in an indirect buffer, other atomics, how long anything takes. If
// a schedule has no host threads, the check assumes that an unknown program submits every queue once. That program may
// also set signals, and its waits are not checked.
//
// Cost: near-linear in packets; vector clocks take 4 bytes per wait and agent (queue, host thread, kernel). Allocates,
// and throws only what the allocator throws. There is no shared state; any thread may call these functions. Errors are
// findings.
#include "sdma/core/diagnostic.hpp"
#include "sdma/device/topology.hpp"
#include "sdma/queue/dump.hpp"
#include "sdma/schedule/text.hpp"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace sdma { inline namespace v0_3 {

/// What a check relies on. Each option changes one rule of docs/ordering.md; the defaults are the rules themselves.
struct Profile {
  bool copies_in_order = false;     ///< Q1: copies=inorder    copies and fills of a queue take effect in order
  bool writes_ordered = false;      ///< Q2: write=ordered     so do writes
  bool fence_covers_writes = true;  ///< Q3: fence_covers=copies makes it false: a fence says nothing about writes
  /// Q3: vram_fence=covers    a fence whose word is in VRAM says that earlier data in host memory is complete
  bool vram_fence_covers = false;
  bool fences_ordered = true;      ///< Q4: fences=unordered  makes it false
  bool fence_full = false;         ///< Q5: fence=full        nothing later starts before a fence or atomic has landed
  bool poll_full = false;          ///< Q7: poll=full         a poll also waits for earlier packets
  bool finite_poll_edge = false;   ///< Q9: finite_poll=edge  a poll that may expire orders like one that cannot
  bool cond_exec_ordered = false;  ///< Q12: cond_exec=ordered COND_EXEC reads its word after earlier packets
  bool nop_drains = false;   ///< Q18: nop=drain        a NOP waits for all earlier packets, and holds back later ones
  bool poll_yields = false;  ///< X2: poll_yields=yes   a waiting poll lets other queues use its engine
  bool pcie_atomics = true;  ///< X6: pcie_atomics=no   makes it false: atomics to host memory do not work
  bool l2_probed = false;    ///< C2: l2_probe=yes      stores of engines invalidate lines of an L2
  bool host_link_xgmi = false;  ///< C8: host_link=xgmi    the host's stores to VRAM need no flush
  bool bar_read_free = false;   ///< C9: bar_read=free     the host's loads from VRAM need no flush
  /// pinned=moves makes it false: under XNACK, the driver may unmap host memory that a thread has mapped
  bool pinned_stays = true;
  /// C7: network_data=unflushed  makes it false: the network may change a word before engines and kernels see its bytes
  bool network_flushes = true;
  bool kernels_are_dies = false;  ///< C5: kernel=die        a kernel is one die: its waits acquire for no other die
  bool indirect_works = false;    ///< Q13: indirect=works   user queues execute indirect buffers

  /// The default: the rules of docs/ordering.md, and no assumption beyond them.
  static constexpr Profile conservative() noexcept { return {}; }
  /// Also assumes what ROCr relies on: fence=full, poll_yields=yes and vram_fence=covers.
  static constexpr Profile rocr() noexcept {
    Profile p;
    p.fence_full = p.poll_yields = p.vram_fence_covers = true;
    return p;
  }
  /// Also assumes that copies, writes, polls and COND_EXEC take effect in the order of the queue.
  static constexpr Profile strict() noexcept {
    Profile p = rocr();
    p.copies_in_order = p.writes_ordered = p.poll_full = p.finite_poll_edge = p.cond_exec_ordered = true;
    return p;
  }
  /// A CUDA stream executes in order; only the copies of one batch have no order (docs/ordering.md, "On CUDA streams").
  static constexpr Profile cuda() noexcept {
    Profile p = strict();
    p.copies_in_order = false;
    return p;
  }
  /// Sets one option: "copies=inorder", "poll_yields=no", ... Returns false if there is no such option or value.
  [[nodiscard]] bool set(std::string_view option) noexcept;
  friend bool operator==(const Profile&, const Profile&) = default;
};
/// Every "option=value" that Profile::set accepts.
std::span<const std::string_view> profile_options() noexcept;

/// What to assume, and how much to examine.
struct CheckOptions {
  Profile profile{};              ///< the ordering rules that proofs may rest on
  std::string file = "schedule";  ///< the schedule's name in findings, if there is no map
  /// The source lines of the packets, from parse_schedule. If the text leaves
  /// choices open, nothing is proved: check_text checks their other alternatives, too.
  const SourceMap* map{};
  const Topology* topology{};  ///< the node's engines and links; null: eight MI300X
  /// The node's GPU for each GPU of the schedule; empty: the same numbers. A proof holds for this placement: on other
  /// GPUs, a peer may be served by another engine, which another queue may hold.
  std::vector<GpuId> gpus{};
  std::size_t max_findings = 20;  ///< findings per rule; a note says how many more there were. 0: all
  /// The most packets that are checked, in all submits; the limits of the check's memory and work are proportional to
  /// it (about 1 GiB by default). If a limit is exceeded, a warning says which value would do, and nothing is proved.
  std::size_t max_packets = std::size_t{1} << 22;
  /// The schedule is part of a larger system, as dumps are. If no agent of the schedule can satisfy a poll, the check
  /// assumes that an outside agent does. An address outside every buffer and signal belongs to outside memory.
  bool open = false;
  bool strict = false;                 ///< advice is an error
  std::size_t max_alternatives = 256;  ///< of a text with choices: how many check_text checks
  /// check_text tries changes of the text, to find hints that fix it, if it has at most this many packets. 0: never.
  std::size_t max_mended = 5000;
  /// Entries of covered() on which this check must not rely: what needs one is not proved.
  std::vector<std::string> without{};
};

/// A thing that the argument of a proof covers. Whatever is in a schedule and in no entry leaves it unproved, with a
/// finding that names the thing.
struct CoveredThing {
  std::string_view id;    ///< "post add", "packet copy_linear"
  std::string_view text;  ///< what is covered
};
/// All of them, sorted by id. docs/check.md shows them.
std::span<const CoveredThing> covered() noexcept;

/// A rule about a schedule. docs/rules.md has a section for each.
struct ScheduleRule {
  std::string_view id;    ///< its name in findings and in docs/rules.md
  Severity severity;      ///< of its findings; rule_class says what it does to a verdict
  std::string_view text;  ///< what a finding means, a sentence
};
/// All of them, sorted by id.
std::span<const ScheduleRule> schedule_rules() noexcept;

/// A rule of docs/ordering.md, on which findings may rest.
struct OrderingRule {
  std::string_view id, strength;  ///< "Q5", "unknown"
  std::string_view text;          ///< what the rule states, in one sentence
  std::string_view option;        ///< the option that removes it, "" if none does
};
/// A change of one line of a schedule's text. If a finding has several, all count lines as they are before the first.
struct CheckEdit {
  /// What to do with the line.
  enum class Kind : std::uint8_t {
    insert,   ///< a line before it
    replace,  ///< it by the text
    remove    ///< it
  };
  std::uint32_t line{};      ///< what to replace or remove, or the line before which to insert; from 1
  Kind kind = Kind::insert;  ///< what to do
  std::string text{};        ///< "poll_mem addr=gpu1.arrived func=eq reference=1"; "" if the line is removed
};
/// "insert", "replace", "remove".
std::string_view name(CheckEdit::Kind) noexcept;

/// What the checker found: an error, a warning or a note, with the places that take part.
struct CheckFinding {
  /// The location of a packet, an action or a step.
  struct Location {
    std::string agent{};     ///< "gpu0.push", "host main", "kernel gpu0.gemm"
    std::uint32_t line{};    ///< 0: not known
    std::uint64_t offset{};  ///< of a packet: bytes from the start of its queue's packets
    std::uint64_t
        epoch{};  ///< of a packet: the epoch of its queue; of a host or kernel action: the round of its repeat, or 0
    std::string text{};  ///< the packet or the action
  };
  Diagnostic diagnostic{};                      ///< severity, rule, place, message and hint
  std::vector<Location> locations{};            ///< the packets and actions that take part
  std::string overlap{};                        ///< "gpu1.buf[2K..+2K]", "" if the finding is not about bytes
  std::vector<const OrderingRule*> rests_on{};  ///< the ordering rules that the finding relies on
  /// What the hint proposes, if lines of the text say all of it.
  std::vector<CheckEdit> edits{};
  /// How many errors and warnings are left after these edits: check_text has made them and checked the result, and this
  /// finding is gone. 0: the schedule is then proved. nullopt: not tried.
  std::optional<std::size_t> remaining{};
};

/// What a check has shown. Whatever was not examined is not proved.
enum class Verdict : std::uint8_t {
  proved,  ///< no execution that the rules allow has a race, a deadlock or a missing wait; each meets the expectations
  unproved,  ///< nothing wrong was found, but a finding says what was assumed, or was not examined
  refuted,   ///< there is an error
};
/// "proved", "unproved", "refuted".
std::string_view name(Verdict) noexcept;
/// refuted if there are errors; else unproved if there are warnings; else proved. Notes change no verdict.
constexpr Verdict verdict_of(std::uint64_t errors, std::uint64_t warnings) noexcept {
  return errors > 0 ? Verdict::refuted : warnings > 0 ? Verdict::unproved : Verdict::proved;
}

/// An engine for each queue of a schedule, with which polls that hold their engines may no longer wait for each other.
struct EnginePlan {
  /// A queue, and its engine in the plan.
  struct Queue {
    std::uint32_t line{};                 ///< of its first packet
    std::string context{};                ///< that of the line's loops: " [i=0 j=1]"
    std::uint32_t place{};                ///< its GPU
    std::optional<std::uint32_t> peer{};  ///< the GPU of its peer=, if that names one
    EngineId engine{}, now{};             ///< that of the plan, and the one that it has
    bool network = false;                 ///< the network executes it, and no engine
  };
  std::vector<Queue> queues{};  ///< those of the schedule, in its order
};

struct [[nodiscard]] CheckReport {
  std::vector<CheckFinding> findings{};  ///< errors first
  std::size_t packets{}, waits{};        ///< how many the check covered, in all submits
  /// How many expectations hold in every execution. They are examined if the schedule is otherwise proved.
  std::size_t expectations{};
  /// In a proved schedule: lines whose copies put bytes that nothing reads before other bytes replace all of them.
  /// Nothing is wrong with that, but a change of a text that brings it about may have lost a message.
  std::vector<std::uint32_t> unread{};
  /// With a finding of the rule engine-wait: plans that may remove it, the best first. None of them has been checked.
  std::vector<EnginePlan> engine_plans{};
  /// What the schedule has, as the ids of covered() name it: a proof rests on these entries.
  std::vector<std::string> relies_on{};
  /// The options on which the verdict rests, as Profile::set takes them: those that the profile adds to the rules,
  /// except where the schedule has something that drops them (the network), and defaults that this schedule needs.
  std::vector<std::string> assumes{};
  /// The number of findings that are errors.
  std::size_t errors() const noexcept;
  /// The number of findings that are warnings.
  std::size_t warnings() const noexcept;
  /// verdict_of the numbers of errors and warnings.
  Verdict verdict() const noexcept;
  /// Is the verdict `proved`? Advice does not prevent it.
  bool proved() const noexcept { return verdict() == Verdict::proved; }
};

/// Checks every submit of every queue.
CheckReport check(const Schedule&, const CheckOptions& = {});

/// What check_text has checked.
struct CheckedText {
  Schedule schedule{};   ///< the first of those with the worst verdict
  SourceMap map{};       ///< its lines
  CheckReport report{};  ///< about it; a message ends with the choices that were taken, unless they are the defaults
  std::size_t alternatives{1};  ///< how many ways to take the choices of the text were checked
};
/// Checks all ways to take the choices that a text leaves open. If there are more than CheckOptions::max_alternatives,
/// nothing is proved. Errors are those of the text.
Result<CheckedText, std::vector<Diagnostic>> check_text(std::string_view text, std::string_view file,
                                                        const ParseOptions& = {}, const CheckOptions& = {});

/// Makes a schedule from a set of dumped rings. Each ring becomes a queue with the packets that its engine has not read
/// yet. Addresses stay as they are in the packets, so check the schedule with `open`. Returns a Diagnostic if a dump
/// contradicts itself.
Result<Schedule, Diagnostic> schedule_of(std::span<const RingDump>);

/// Does the report contain every finding that the schedule expects (`expect finding`), and no other error?
[[nodiscard]] bool as_expected(const Schedule&, const CheckReport&);

}}  // namespace sdma::v0_3
