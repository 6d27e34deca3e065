// SPDX-License-Identifier: MIT
#pragma once
// A schedule as the checker sees it: agents, their steps, and the words through which they synchronise. Internal.
//
//   agent     a queue, a host thread or a kernel; it has positions 1, 2, ... in program order
//   item      a packet, decoded once; each submit of its queue has it at position (epoch - 1) * items + i + 1
//   step      an action that other agents may notice: begin (a doorbell), poll, post (fence, atomic, set), submit,
//             flag (data with a known value for a word that is waited for, see flags.cpp), read (rptr has moved: what
//             waits for it learns nothing about the queue's packets), life (memory is allocated, freed, mapped ..)
//   word      memory that is polled or posted to; it has a chain for each agent that writes it, in that agent's order
//
// Addresses are in link space, with aliases resolved. Rows are vector clocks; order.cpp computes them.
//
//   a row    | agent 0 | agent 1 | .. | post 0 | post 1 | ..                          | queue 0 | ..
//              until which position      has it landed? Only for posts that land in no   until which position copies,
//              all data and posts        order with the other posts of their queue:      fills and writes have landed,
//              have landed               flags, and fences if they are unordered         posts perhaps not (Q2)
#include "../core/wide.hpp"
#include "../device/link_index.hpp"
#include "../schedule/symbols.hpp"
#include "sdma/check/check.hpp"

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace sdma { inline namespace v0_3 { namespace check_detail {

using sdma::detail::Wide;
inline constexpr std::uint32_t kNone = ~0u;

/// The part of a value that a word of 4 or 8 bytes holds.
constexpr std::uint64_t truncate(std::uint32_t bytes, std::uint64_t value) noexcept {
  return bytes == 4 ? static_cast<std::uint32_t>(value) : value;
}

/// The role of a packet.
enum class What : std::uint8_t { none, copy, write, stamp, post, poll, indirect, condition };
/// How bytes are accessed. `constant`: by a condition whose outcome is known. What the bytes hold does not matter then,
/// but they have to be there.
enum class Mode : std::uint8_t { read, write, poll, store, modify, condition, constant };

struct Touch {
  std::uint64_t begin{}, end{};
  Mode mode{};
};
/// What a post does to its word. `other`: an atomic whose result depends on what the word holds, as that of an OR or of
/// a compare-and-swap does. `unknown`: nothing is known about the result.
enum class Op : std::uint8_t { store, add, other, unknown };

/// Operations of one kind differ only in their width and in whether they return the old value.
constexpr AtomicOp plain(AtomicOp op) noexcept { return static_cast<AtomicOp>(static_cast<unsigned>(op) % 32); }

/// A poll or a post, by a packet, a host action or a step of a kernel.
struct Sync {
  std::uint32_t word = kNone;
  Op op = Op::store;
  std::uint8_t bytes = 4;
  bool high = false;    ///< it uses bytes 4 to 7 of a word of 8
  bool finite = false;  ///< a poll that may expire
  Compare func = Compare::always;
  std::uint32_t mask = ~0u;
  std::uint64_t address{};
  EpochValue value{};
  AtomicOp atomic = AtomicOp::write_64;  ///< of Op::other
  std::uint64_t compare{};               ///< of a compare-and-swap
};

struct Item {
  const PacketInfo* info{};
  std::uint32_t dword{}, dwords{};
  What what{};
  /// Is a condition met in every execution, or in none?
  enum class Outcome : std::uint8_t { unknown, met, never } outcome{};
  bool skipped = false;                  ///< in every execution
  bool modifies = false;                 ///< it reads and writes its word in one step: an atomic
  std::uint32_t touch = 0, touches = 0;  ///< into Program::touches
  Sync sync{};

  /// A copy, a fill or a write.
  bool moves() const noexcept { return what == What::copy || what == What::write; }
  /// Does it store data to a word, with a known value? It is a step of the kind `flag`.
  bool flag() const noexcept { return sync.word != kNone && moves(); }
};

/// The packets that each submit of a queue publishes.
struct Program {
  bool network = false;  ///< the network executes it, and no engine
  std::vector<Item> items;
  std::vector<Touch> touches;
  std::vector<std::uint32_t> writes;  ///< positions of the WRITEs
  std::vector<std::uint32_t>
      barriers;  ///< positions of the packets that wait for all earlier ones: COND_EXECs (Q12), NOPs (Q18)
  std::size_t acquires = 0, posts = 0, stored_flags = 0;  ///< of the items
  /// Of the items, if the network executes them and some land apart (network.cpp): `apart`, in no order with later
  /// posts; `returns`, certainly after whatever has come back to the sender's node before.
  std::vector<bool> apart, returns;
  std::uint64_t engine{};        ///< queues with the same value share an engine
  bool flags = false;            ///< a WRITE of it is a flag
  std::optional<Sync> rptr;      ///< something waits for it: each submit adds one to this word when it has been read
  std::uint32_t column = kNone;  ///< where rows say until which position copies, fills and writes have landed
};

struct Step {
  enum class Kind : std::uint8_t { begin, poll, post, flag, submit, touch, sample, read, life };
  Kind kind{};
  /// A poll that is assumed to be satisfied, because the value that it waits for is unknown.
  bool assumed_satisfied = false;
  Op op = Op::store;      ///< of a post: what it does to its word, as build_chains has found
  bool whole = false;     ///< of a post: `value` is that of the whole word, however wide the post is
  bool too_wide = false;  ///< of a thread: its value does not fit its word of 4 bytes, so that a run stops here
  std::uint32_t position{};
  std::uint32_t source{};           ///< a queue's item; an action of a host or a kernel, in the order of a SourceMap
  std::uint32_t epoch{};            ///< of a submit, or of the innermost repeat
  std::uint32_t target{};           ///< submit: the queue. begin: the agent that submits; kNone: any
  std::uint32_t target_position{};  ///< begin: the position of the submit in that agent
  std::uint32_t row = kNone;        ///< the clock of the last acquire at or before this step; kNone: all zero
  std::uint32_t time = kNone;       ///< when it happened in the followed execution
  std::uint32_t column = kNone;     ///< of a post that lands on its own: where rows say that it has landed
  std::uint32_t covered = kNone;    ///< of such a post: it has also landed if the agent has got to this position
  const Sync* sync{};
  /// What a sample reads in the followed execution. A step that uses a sample adds it to its own value (samples.cpp).
  std::uint64_t value{};
  std::uint64_t left{};          ///< of a post: what its word held after it in the followed execution
  std::uint32_t sample = kNone;  ///< the index of the agent's step whose value is still to be added
  std::uint32_t uses = 0;        ///< of a sample: how many steps use it

  bool posts() const noexcept { return kind == Kind::post || kind == Kind::flag || kind == Kind::read; }
};

/// The word that stands for the rptr of a queue. It counts submits, and lies outside the memory of any schedule.
inline constexpr std::uint64_t kRptrWords = 0xffff'f000'0000'0000;
/// The queue whose rptr is at this address; nullopt for other words.
constexpr std::optional<std::size_t> rptr_of(std::uint64_t address) noexcept {
  return address < kRptrWords ? std::nullopt : std::optional(static_cast<std::size_t>((address - kRptrWords) / 8));
}

/// A place: a position of an agent.
struct Position {
  std::uint32_t agent{}, position{};
};

struct Agent {
  enum class Kind : std::uint8_t { queue, host, kernel };
  Kind kind{};
  std::uint32_t index{};  ///< into the schedule's queues, hosts or kernels
  std::vector<Step> steps{};
  std::uint32_t submits = 0;
  bool shared = false;  ///< a queue that several host threads submit
};

struct Chain {
  std::uint32_t agent{};
  std::vector<std::uint32_t> steps{};           ///< indices of the agent's steps
  std::vector<Wide> sums;                       ///< sums[i] is the sum of the first i additions
  bool apart = false;                           ///< its only post lands in no order with the agent's other posts
  bool stores = false, up = true, down = true;  ///< up: no addition is negative; down: none is positive
  bool rising = true;                           ///< no store is less than the one before it
  bool low_rising = true;                       ///< the same about the low 4 bytes alone
};

struct Word {
  std::uint64_t address{}, init{};
  std::uint32_t bytes = 4;
  bool known = true;        ///< `init` is known; if not, it may satisfy any wait
  bool unmodelled = false;  ///< it is written in a way that is not modelled
  bool copied = false;      ///< a copy, fill or write stores to it
  bool stores = false, adds = false, polled = false;
  bool halves = false;  ///< of a word of 8 bytes: a post changes 4 of them
  /// The value after a post depends on what the word held before: its posts are stores of what each left in the
  /// followed execution. That holds for every execution if they are in order (find_disorder).
  bool in_order = false;
  bool monotone = false;  ///< every wait for it, once satisfied, stays so: its posts are MAX, or all MIN
  std::vector<Chain> chains{};
  Wide most = -1;  ///< what it holds after all posts, if each adds something that is not negative; else -1
};

/// Limits of memory and work, in proportion to CheckOptions::max_packets.
struct Limits {
  explicit Limits(std::size_t max_packets) : packets(max_packets) {}
  std::size_t packets;                                            ///< in all submits, and rounds
  std::size_t clocks() const noexcept { return 32 * packets; }    ///< entries, of 4 bytes each
  std::size_t accesses() const noexcept { return 4 * packets; }   ///< to rows of bytes, in all submits
  std::size_t compared() const noexcept { return 16 * packets; }  ///< ranges of bytes, with an access
  std::size_t edges() const noexcept { return 8 * packets; }      ///< between waits that share engines
  std::size_t pairs() const noexcept { return 256 * packets; }    ///< of chains of posts
  std::size_t rows() const noexcept { return packets / 8; }       ///< of boxes
  std::size_t pieces() const noexcept { return 4 * packets; }     ///< of memory, whose contents are followed
};

class Model {
 public:
  Model(const Schedule& s, const CheckOptions& o);
  /// Builds the chains of all words again, after the followed execution has found the values of posts.
  void build_chains_again();
  /// Marks the words whose posts are not in the order on which their values rest. True if there are any.
  bool find_disorder();
  /// The words that are stored to and added to; if some are taken to be in order, those of them that are.
  std::vector<std::uint32_t> mixed_words() const;

  const Schedule& schedule;
  const CheckOptions& options;
  const Profile profile;
  const Limits limits;
  const Topology node;                  ///< its engines and links are assumed
  const detail::LinkIndex links{node};  ///< of it
  std::vector<GpuId> gpus;              ///< the node's GPU for each GPU of the schedule
  std::vector<Program> programs;
  std::vector<Agent> agents;  ///< queues, then hosts, then kernels
  std::vector<Word> words;
  /// The clocks, one row after another: in a row, a number for each agent, up to which position it is known complete.
  std::vector<std::uint32_t> rows;
  /// A part of the execution that ran without interruption: all positions of `agent` up to `until`.
  struct Run {
    std::uint32_t agent, until;
  };
  std::vector<Run> runs;
  struct Acquire {
    std::uint32_t agent, step;
  };
  std::vector<Acquire> acquires;  ///< begins and polls, by time
  struct Stuck {
    std::uint32_t agent, step;
  };
  std::vector<Stuck> stuck;
  std::size_t packets = 0, waits = 0, samples = 0;
  bool truncated = false;  ///< not all rounds were unrolled
  std::size_t needed = 0;  ///< the limit of packets with which all rounds would be
  /// A limit of find_order that is exceeded.
  struct Exceeded {
    std::string what{};
    std::size_t packets = 0;  ///< the limit of packets that would do; 0: not known
    bool fixed = false;       ///< no other limit of packets changes it
  };
  std::vector<Exceeded> exceeded;
  std::size_t box_rows = 0;  ///< how many rows the boxes have, if that exceeds the limit; else 0
  bool open = false;
  std::vector<std::uint32_t> taken_in_order;  ///< words that are stored to and added to, by number, sorted

  GpuId gpu_of(Place p) const noexcept { return gpus[p.index]; }
  /// Does the node have this place?
  bool exists(Place p) const noexcept {
    return p.is_host() || (p.index < gpus.size() && gpu_of(p).value < node.gpus.size());
  }
  std::uint32_t queue_count() const noexcept { return static_cast<std::uint32_t>(programs.size()); }
  const Item* item_at(std::uint32_t agent, std::uint32_t position) const noexcept;
  std::uint32_t epoch_at(std::uint32_t agent, std::uint32_t position) const noexcept;
  /// The round that a position belongs to: the epoch of a queue, or
  /// a host's round of its innermost repeat; 0 if it has no rounds.
  std::uint32_t round_at(std::uint32_t agent, std::uint32_t position) const noexcept;
  /// The first post of queue `agent` at or after `position`, in the same submit; null if there is none.
  const Step* next_post(std::uint32_t agent, std::uint32_t position) const noexcept;
  /// The last post at or before `position`, in the same submit; null if there is none.
  const Step* previous_post(std::uint32_t agent, std::uint32_t position) const noexcept;
  /// The post of `agent` at `position`; null if there is none. (A begin has the position of the packet before it.)
  const Step* post_at(std::uint32_t agent, std::uint32_t position) const noexcept;
  /// The last step of `agent` at or before `position`; null if there is none.
  const Step* step_at(std::uint32_t agent, std::uint32_t position) const noexcept;

  /// May the first value of the word satisfy the wait? An unknown value may, except in a dump, which shows the middle
  /// of an execution: there the check assumes that it does not, and says so.
  bool may_satisfy(const Step& wait, const Word& w) const noexcept;
  /// Are both kernels, of one GPU? Then agent scope orders what they do.
  bool on_one_gpu(std::uint32_t kernel, std::uint32_t other) const noexcept;
  /// C3: where a kernel first releases at system scope after `position`; kNone if nowhere. `gpu`: or at its GPU's.
  std::uint32_t released(std::uint32_t kernel, std::uint32_t position, bool gpu = false) const noexcept;
  /// C4: a kernel's last acquire at system scope at or before `position`; null if there is none. `gpu`: as above.
  const Step* acquired(std::uint32_t kernel, std::uint32_t position, bool gpu = false) const noexcept;
  /// The bytes that an action of a thread loads, adds, compares and stores; not the word of a wait or a post.
  std::vector<Touch> touches(const Schedule::Action&) const;
  /// Has a schedule a queue that the network executes?
  bool has_network() const noexcept { return network_; }
  /// Are GPUs of the schedule in several nodes?
  bool several_nodes() const noexcept {
    for (std::uint32_t g = 1; g < schedule.gpus; ++g)
      if (exists(Place::gpu(g)) && exists(Place::gpu(0)) &&
          node.gpus[gpu_of(Place::gpu(g)).value].node != node.gpus[gpu_of(Place::gpu(0)).value].node)
        return true;
    return false;
  }
  /// Does this post land in no order with the posts of its queue that come later?
  bool lands_apart(const Program& p, std::size_t item) const noexcept {
    return (!profile.fences_ordered && !profile.fence_full) || (item < p.apart.size() && p.apart[item]);
  }
  /// The action of a step of a host or a kernel.
  const Schedule::Action& action(std::uint32_t agent, const Step& s) const noexcept {
    return *actions_[agent - queue_count()][s.source];
  }
  /// Where a byte lies; nothing if no symbol has it.
  std::optional<Place> place_at(std::uint64_t address) const {
    const auto home = find_symbol(schedule, GpuVa{address});
    return home ? std::optional(detail::place_of(schedule, *home)) : std::nullopt;
  }
  /// The address without aliases.
  std::uint64_t canonical(GpuVa va) const noexcept { return detail::resolve(schedule, va).value; }
  const Step& post(const Chain& c, std::size_t i) const noexcept { return agents[c.agent].steps[c.steps[i]]; }
  const std::uint32_t* row(std::uint32_t r) const noexcept { return r == kNone ? zeros_.data() : &rows[r * width()]; }
  /// The row of an agent when it arrives at a step.
  const std::uint32_t* row_before(std::uint32_t agent, std::uint32_t step) const noexcept {
    return row(step == 0 ? kNone : agents[agent].steps[step - 1].row);
  }
  /// Sets `out` to what an agent knows on its arrival at a step: its row so far, and what it has itself waited for.
  void arrive(std::uint32_t agent, std::uint32_t step, std::vector<std::uint32_t>& out) const;
  std::size_t width() const noexcept { return agents.size() + columns_; }
  /// Has the wait at `position` of `agent` been satisfied before `step` of agent `self` begins?
  bool after(std::uint32_t self, const Step& step, std::uint32_t agent, std::uint32_t position) const noexcept {
    return self == agent ? step.position >= position : row(step.row)[agent] >= position;
  }
  /// Does this row say that a post of `agent` has landed?
  bool landed(const std::uint32_t* row, std::uint32_t agent, const Step& post) const noexcept {
    if (post.column == kNone) return row[agent] >= post.position;
    return row[post.column] != 0 || row[agent] >= post.covered ||
           (post.kind == Step::Kind::flag && moved(row, agent) >= post.position);
  }
  /// Does a post of `agent` land before `step` of agent `self`?
  bool after(std::uint32_t self, const Step& step, std::uint32_t agent, const Step& post) const noexcept {
    if (self == agent && post.column == kNone) return step.position >= post.position;
    if (self == agent && post.covered <= (step.kind == Step::Kind::post ? step.position : barrier(self, step.position)))
      return true;
    return landed(row(step.row), agent, post);
  }
  /// Have the bytes of the packet at `position` of `agent` landed? The row says so about packets that a fence or, if
  /// writes are ordered, a flag covers. `known`: until which position a fence covers them; at least row[agent].
  bool landed(const std::uint32_t* row, std::uint32_t known, std::uint32_t agent,
              std::uint32_t position) const noexcept;
  /// Until which position the copies, fills and writes of a queue have landed because of a flag (Q2).
  std::uint32_t moved(const std::uint32_t* row, std::uint32_t agent) const noexcept {
    const auto column = agent < programs.size() ? programs[agent].column : kNone;
    return column == kNone ? 0 : row[column];
  }
  /// Until which position of its queue everything lands before a flag does: 0, except under stronger assumptions.
  std::uint32_t before_flag(std::uint32_t agent, const Step& flag) const noexcept;
  /// The last WRITE of a queue at or before `position`; 0 if there is none.
  std::uint32_t last_write(std::uint32_t agent, std::uint32_t position) const noexcept {
    return last_of(programs[agent].writes, agent, position);
  }
  /// Q12: the last COND_EXEC of a queue at or before `position` that waits for all earlier packets; 0 if there is none.
  std::uint32_t barrier(std::uint32_t agent, std::uint32_t position) const noexcept {
    return last_of(programs[agent].barriers, agent, position);
  }
  /// Where a queue next waits for all its earlier packets, after `position`; kNone if nowhere.
  std::uint32_t drained(std::uint32_t agent, std::uint32_t position) const noexcept;

 private:
  std::uint32_t last_of(const std::vector<std::uint32_t>& places, std::uint32_t agent,
                        std::uint32_t position) const noexcept;
  std::uint32_t next_barrier(std::uint32_t agent, std::uint32_t position) const noexcept;
  std::size_t first_step_after(std::uint32_t agent, std::uint32_t position) const noexcept;
  void read(std::size_t queue);
  void read_network();
  void evaluate_conditions();
  void find_flags();
  void cover_columns();
  void sync_of(const Schedule::Queue&, const PacketView&, Item&);
  void assign_engines();
  void unroll();
  /// What a whole schedule takes, counted without unrolling it.
  struct Needs {
    double packets = 0, acquires = 0, columns = 0, accesses = 0;
    std::vector<double> submits{};  ///< by queue
  };
  void count(const std::vector<Schedule::Action>&, double times, Needs&) const;
  using Named = std::map<std::string_view, std::uint32_t>;  ///< the step of the last sample of each name
  void perform(std::uint32_t agent, const std::vector<Schedule::Action>&, std::uint32_t& action, std::uint32_t epoch,
               Named&);
  void submit(std::uint32_t agent, std::uint32_t queue, std::uint32_t action, std::uint32_t epoch);
  Sync sync_of(const Schedule::Action&) const;
  void join_words();
  std::uint32_t add_word(const Sync&);
  void set_first_values();
  void build_chains();
  void find_algebra();
  void copied(const Touch&);

  bool executed_ = false;  ///< the followed execution is known
  bool network_ = false;
  std::vector<std::uint32_t> zeros_;
  std::size_t columns_ = 0, acquires_ = 0, accesses_ = 0, rows_ = 0, rounds_ = 0;
  // For each host and each kernel: its actions in the order of a SourceMap, and what they synchronise with.
  std::vector<std::vector<const Schedule::Action*>> actions_;
  std::vector<std::vector<Sync>> action_syncs_;
  std::map<std::uint64_t, std::uint32_t> word_of_;  ///< by address
  std::vector<std::uint64_t> wide_;                 ///< addresses of words of 8 bytes
};

/// The bytes that a poll or a sample reads of a word that holds this value.
std::uint64_t part(const Step&, const Word&, std::uint64_t value) noexcept;
/// Is the condition of a waiting step true if the word holds this value?
bool satisfied(const Step&, const Word&, std::uint64_t value) noexcept;
/// The value that a word has to reach for the wait, if it can only rise to it: no post subtracts or stores, and the
/// word does not wrap. nullopt for other words and waits, and if the first value is enough.
std::optional<Wide> least_of(const Step& wait, const Word&) noexcept;
/// The value of a word after a post.
std::uint64_t value_after(const Step&, const Word&, std::uint64_t value) noexcept;
/// Does the value that this post leaves satisfy the wait, if nothing else has been added to the word?
inline bool satisfies(const Step& wait, const Word& w, const Step& post) noexcept {
  return satisfied(wait, w, value_after(post, w, w.init));
}
/// The addend of an addition, with its sign.
Wide addend(const Step&) noexcept;
/// Does this post satisfy the poll, or bring a counter closer to the value that the poll waits for?
bool contributes(const Step& poll, const Word&, const Step& post) noexcept;

// The passes over a model, in this order.
void execute(Model&);     ///< follows one execution: fills in times, runs, acquires, stuck
void find_order(Model&);  ///< computes the clocks

}}}  // namespace sdma::v0_3::check_detail
