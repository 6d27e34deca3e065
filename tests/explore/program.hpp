// SPDX-License-Identifier: MIT
#pragma once
// A schedule as the explorer executes it: cells of memory, streams of packets, scripts of hosts.
//
//   const Program p = compile(schedule, profile);
//   if (!p.unsupported.empty()) ...         the explorer does not model something: p.unsupported says what
//
// A cell is a run of bytes that every access takes whole. A cell is a *sync* cell if a poll, fence, atomic, condition
// or host action uses it; any other cell holds *data*. Epochs are unrolled: a stream holds the packets of all submits
// of a queue. All addresses have been replaced by cells.
#include "sdma/check/check.hpp"
#include "sdma/schedule/schedule.hpp"

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace sdma::explore {

/// A set of cells.
__extension__ typedef unsigned __int128 Mask;
inline constexpr std::size_t kMostCells = 128, kMostPackets = 64, kMostMoves = 64, kMostQueues = 8, kMostHosts = 4;
constexpr Mask bit(std::size_t i) noexcept { return Mask{1} << i; }

struct Cell {
  std::uint64_t va{}, bytes{};
  bool sync{};     ///< a sync cell
  bool buffer{};   ///< its final value is part of the result
  bool unknown{};  ///< its first value is not known and matters: the explorer tries several
  std::uint64_t value{};
  std::uint64_t tag{};                      ///< a value of its own, so that copied data can be told apart
  std::vector<std::uint64_t> candidates{};  ///< first values to try, if it is unknown
};

/// A word of a poll, post or host action: consecutive cells.
struct Word {
  std::uint16_t first{}, cells{};
  std::uint8_t bytes{};
};

/// A part of a data packet or of a thread's store: the contents of one cell, a constant, or a sum of cells become the
/// contents of another cell.
struct Move {
  std::int16_t from = -1;  ///< -1: `value`, or a sum
  std::int16_t to = 0;
  std::int16_t slot = -1;  ///< where the loaded value waits for its store
  std::uint8_t queue{}, packet{};
  bool load_at_start{};  ///< it reads data, so the time at which it loads does not matter
  std::uint64_t value{};
  std::uint16_t part = 0, parts = 0;  ///< of a sum: its cells of 4 bytes, in Program::parts
  Schedule::Sum::Type type{};         ///< of a sum
};

/// The sum of two cells of 4 bytes. One that is rounded is a number that nothing but these two give, in either order.
constexpr std::uint32_t plus(Schedule::Sum::Type type, std::uint32_t a, std::uint32_t b) noexcept {
  if (type == Schedule::Sum::Type::i32) return a + b;
  auto x = std::uint64_t{a < b ? a : b} << 32 | (a < b ? b : a);
  for (int i = 0; i < 2; ++i) {
    x = (x ^ x >> 29) * 0xbf58476d1ce4e5b9u;
    x += 1 + static_cast<std::uint64_t>(type);
  }
  return static_cast<std::uint32_t>(x >> 32);
}

struct Packet {
  enum class Kind : std::uint8_t { nothing, data, release, poll, condition, selection };
  enum class Op : std::uint8_t { store, add, swap, bit_and, bit_or, bit_xor, umin, umax, cmpswap, inc, dec };
  Kind kind{};
  Op op{};
  Compare func{};
  bool is_write{};    ///< a WRITE: Q2
  bool is_swap{};     ///< it loads everything before it stores anything
  bool is_stamp{};    ///< a TIMESTAMP: Q10
  bool in_vram{};     ///< a release whose word is in a GPU's memory: Q3
  bool returns{};     ///< a release by the network whose word is not in the peer's node
  bool undefined{};   ///< its source and its destination overlap: Q15
  bool may_expire{};  ///< a finite poll
  bool stable{};      ///< a poll that stays satisfied, whatever the others still post
  Word word{};
  std::uint64_t value{}, compare{};
  std::uint32_t mask = ~0u;
  Mask data_read{}, data_write{}, sync_read{}, sync_write{};
  std::uint64_t lives = 0;              ///< that it needs, until it is complete
  std::uint16_t now = 0, nows = 0;      ///< its moves between data cells: Program::now
  std::uint16_t later = 0, laters = 0;  ///< its moves from or to sync cells: Program::later
  std::uint16_t skip_to{};              ///< a condition: the next packet if it fails
  std::uint32_t dword{}, epoch{}, dwords{};
  std::uint64_t ring_end{};  ///< the ring position after it
};

struct Stream {
  std::vector<Packet> packets{};
  struct Piece {
    std::uint16_t packets{};   ///< how many it publishes
    std::uint64_t ring_end{};  ///< the ring position after it
  };
  std::vector<Piece> pieces{};
  std::uint64_t ring{};
  bool may_fill{};  ///< the ring is too small for the whole stream
  bool has_conditions{};
  bool network{};  ///< no engine executes it
  std::uint32_t engine{};
  std::uint64_t sharers = 0;  ///< bit q: queue q shares its engine, and a waiting poll holds the engine
  std::uint64_t releases = 0, data = 0, writes = 0, stamps = 0, to_host = 0;
  std::uint64_t lasting =
      0;  ///< data packets that use data cells: only a release or a full poll shows that they are complete
  std::uint64_t moves = 0;  ///< the bits of its moves in Program::later
  // For each position, what the packets from there on do.
  std::vector<Mask> polls{}, posts{}, move_reads{}, move_writes{}, data_reads{}, data_writes{};
};

/// Something that begins and ends: a buffer, a GPU's mapping of it, the handle by which other GPUs reach it.
struct Life {
  enum class Kind : std::uint8_t { memory, mapping, handle };
  Kind kind{};
  std::size_t buffer{};
  Place gpu{};      ///< of a mapping
  bool by_alloc{};  ///< a mapping that comes with the memory
};
struct Lives {
  std::vector<Life> all{};
  std::uint64_t first = 0;  ///< those that are there before anything runs
  /// The lives that an access through this name needs.
  std::uint64_t of(const Schedule&, GpuVa, Place user) const;
};

/// An action of a thread or a kernel. An access to data takes two: it is in flight after the first.
struct Action {
  enum class Kind : std::uint8_t { submit, set, add, wait, sample, rptr, access, accessed, life };
  Kind kind{};
  std::uint8_t queue{};
  bool first{}, last{};        ///< of the pieces of a submit
  bool wide{};                 ///< set, add, wait: the value does not fit its word of 4 bytes, so that a run stops
  bool stable{};               ///< as Packet::stable
  bool agent_scope{};          ///< of a kernel: `word` is the copy in its GPU's L2
  std::int16_t sample = -1;    ///< sample: where the state keeps it; set, add, wait: what is added to the value
  std::int16_t expected = -1;  ///< access: an expectation that holds now, in Program::now_expected
  Compare func{};
  Word word{};
  Mask cells{};
  std::uint64_t value{};
  Mask data_read{}, data_write{};
  std::uint16_t now = 0, nows = 0;  ///< as Packet::now
  std::uint64_t lives = 0;          ///< that it needs
  // life: the lives that it begins and ends, those that have to be there and not to be there before, and the bytes that
  // get their first contents.
  std::uint64_t sets = 0, clears = 0, must = 0, must_not = 0;
  std::pair<std::uint64_t, std::uint64_t> begins{};
};
struct Script {
  int gpu = -1;  ///< of a kernel
  std::vector<Action> actions{};
  std::vector<Mask> reads{}, writes{};            ///< for each position, what the actions from there on do
  std::vector<Mask> data_reads{}, data_writes{};  ///< with cells of data
  std::vector<std::uint64_t> submits{};           ///< bit q: submits queue q
};

/// An expectation: the cells of both ranges, which are split alike. A value has no right one, a sum several.
struct Expected {
  const Schedule::Expectation* expectation{};
  Word left{}, right{};
  std::vector<Word> parts{};
  Schedule::Sum::Type type{};  ///< of these parts
  bool old{};
  std::uint64_t lives = 0;  ///< that it needs at the end
};

/// A word that kernels access at the scope of their GPU, and the copy in the GPU's L2.
struct Shadow {
  int gpu{};
  Word memory{}, copy{};
};

struct Program {
  const Schedule* schedule{};
  Profile profile{};
  std::string unsupported{};
  std::string refused{};  ///< what an agent accesses and cannot reach
  std::vector<Cell> cells{};
  std::vector<Move> now{}, later{};
  std::size_t slots = 0;
  std::vector<Stream> queues{};
  std::vector<Script> hosts{};  ///< and kernels
  bool has_kernels{}, has_network{};
  std::vector<Shadow> shadows{};
  Lives lives{};
  std::vector<std::int16_t> parts{};  ///< of sums
  std::vector<Expected> expectations{}, now_expected{};
  Mask buffers{};    ///< cells of buffers
  Mask commuting{};  ///< sync cells whose posts and waits commute: they only grow, or only shrink
  std::uint64_t shift(const Word& w, std::size_t i) const noexcept {
    return (cells[w.first + i].va - cells[w.first].va) * 8;
  }
  static Mask mask(const Word& w) noexcept { return ((Mask{1} << w.cells) - 1) << w.first; }
};

Program compile(const Schedule&, const Profile&);
/// The node that it is for: with the network, two nodes of two GPUs; with four GPUs, a ring; else "", eight MI300X.
std::string_view layout_of(const Schedule&) noexcept;
/// "host main", "kernel gpu0.add": by number in Program::hosts.
std::string thread_name(const Schedule&, std::size_t);

// Internal to compile.
namespace detail {

/// A part of a data packet, in bytes.
struct Part {
  enum class From : std::uint8_t { copy, bytes, pattern };
  From from{};
  std::uint64_t source{}, to{}, bytes{};
  std::vector<std::uint8_t> content{};  ///< bytes, pattern: repeated
};
struct RawPacket {
  Packet packet{};
  std::vector<Part> parts{};
  std::uint64_t word_va{};
  std::uint32_t skip = 0;
};
/// The address that aliases lead to.
std::uint64_t canonical(const Schedule&, GpuVa);
/// The packets of one submit; sets `unsupported` at a packet that the explorer does not model.
std::vector<RawPacket> decode_submit(const Schedule&, const Schedule::Queue&, std::uint32_t epoch,
                                     std::string& unsupported);
/// Splits memory into cells. `ranges`: bytes that are accessed; `copies`: pairs of ranges of equal length.
struct Range {
  std::uint64_t begin{}, end{};
};
struct Copied {
  std::uint64_t from{}, to{}, bytes{};
};
bool make_cells(const Schedule&, const std::vector<Range>& ranges, const std::vector<Copied>& copies,
                std::vector<Cell>& out);
/// The first cell of a range, and how many cells it has.
Word cells_of(const std::vector<Cell>&, std::uint64_t va, std::uint64_t bytes);
/// Finds the cells that commute, the polls that are stable, and first values to try.
void classify(Program&);
/// Lays out the packets of a submit, from number `begin` on. False if one is larger than half the ring.
bool lay_out(Stream&, std::size_t begin);
void share_engines(Program&);
bool find_lives(const Schedule&, Lives&);
Action life_action(const Schedule&, const Lives&, const Schedule::Action&);
/// What an agent accesses and cannot reach: memory that its GPU has not mapped, or to which it has no link; or "".
std::string unreachable(const Schedule&);
/// The node of a word that network queues post to; nothing if no agent of a node says where it is.
std::optional<std::uint32_t> node_of(const Schedule&, std::uint64_t va);
/// Fills in what the packets and actions from each position on use.
void suffixes(Program&);

}  // namespace detail
}  // namespace sdma::explore
