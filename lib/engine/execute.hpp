// SPDX-License-Identifier: MIT
#pragma once
// What each packet does when an engine executes it: one overload of `execute` per packet, in the order of Packets.
//
//   Machine m{.memory = reader, .state = state, .ticks = {}, .engine = EngineId{2}};
//   execute(CopyLinear{.src = a, .dst = b, .bytes = 64}, m);              // Outcome::done
//   execute(PollMem{.addr = flag, .reference = 1}, m);                    // done, or not_yet: retry later
//   execute(copy, m, Part{16, 32});                                       // only these bytes of its work
//
// The work of a data packet is a sequence of `work(p)` bytes. Parts of it may be executed separately, in any order;
// this is how a pipeline splits a copy into pieces. A copy, a broadcast and a swap load before they store. Their loads
// and stores can also be executed separately: `load` into a Stage, then `store` once per destination.
//
// Nothing is ordered or checked here; the pipeline checks privilege, fields and footprint first. The result of an
// overlapping copy is unspecified. If memory is not mapped, the outcome is Outcome::lost, and earlier stores of the
// packet remain.
//
// Accesses to memory: a fence, a semaphore's store and a timestamp are release stores of their width, never torn; an
// atomic is one lock-free read-modify-write, acquire and release; a poll is an acquire load; all other accesses are
// plain. Where nothing is documented, this engine makes these choices:
//   copy_struct       an element is a dword
//   copy_dirty_page   software memory has no dirty bits: every page counts as dirty, and is copied
//   semaphore         64 bits: a signal adds one (write_one: stores 1),
//                     a wait subtracts one as soon as the value is not 0
//   pre_exec          bit (engine mod 8) of `devices` selects an engine
//   hdp_flush         does nothing: software memory has no data path to flush
//   dummy_trap        does nothing: it has no handler
//   fmin, fmax        minimumNumber and maximumNumber of IEEE 754: a number wins against a NaN, and -0 is less than +0
//   fcmpswap          compares as numbers: -0 equals +0, a NaN equals nothing; *_flush_denorm treats denormals as zeros
//   registers, dirty bits, physical addresses, page tables: unsupported, or privileged: there is no overload
//
// Threads: a Machine belongs to one thread. Use it inside a Section of its Reader. Nothing here throws or allocates.
#include "address_space.hpp"
#include "sdma/packets/footprint.hpp"

namespace sdma { inline namespace v0_3 {

/// The node's clock in ticks of 10 ns (100 MHz), the same for all engines: the host's, or a virtual one.
struct TickSource {
  std::uint64_t (*now)(void* context) noexcept = nullptr;  ///< null: the host's steady clock
  void* context = nullptr;                                 ///< passed to `now`
};
inline constexpr std::uint64_t kTicksPerSecond = 100'000'000;
/// The host's steady clock in these ticks.
std::uint64_t host_ticks() noexcept;
inline std::uint64_t ticks(const TickSource& t) noexcept { return t.now ? t.now(t.context) : host_ticks(); }

/// The state that the queues of one engine share.
struct EngineState {
  std::uint64_t local_clock = 0;  ///< TimestampLocal adds it to the node's clock; TimestampSet sets it
};

/// Everything that a packet can access.
struct Machine {
  AddressSpace::Reader& memory;  ///< through which packets load and store
  EngineState& state;            ///< shared by all queues of this engine
  TickSource ticks{};            ///< the node's clock
  EngineId engine{};             ///< the engine that executes; PRE_EXE selects by its number modulo 8
  void* context = nullptr;       ///< passed to `trap`
  /// Called by a TRAP; null: nothing happens.
  void (*trap)(void* context, std::uint32_t trap_context) noexcept = nullptr;
};

enum class Outcome : std::uint8_t {
  done,     ///< executed
  not_yet,  ///< the word does not have the awaited value yet: nothing was changed
  skip,     ///< the condition fails: the next `dwords` dwords are not executed
  call,     ///< continue in the indirect buffer
  lost,     ///< memory that it needs is not mapped
};

/// Bytes [begin, end) of a packet's work.
struct Part {
  std::uint64_t begin{}, end{};  ///< in bytes; `end` is not included
};

/// Bytes that are loaded and not stored yet: at most kBytes of each source.
struct Stage {
  static constexpr std::size_t kBytes = 64;         ///< the most bytes of each source
  std::array<std::byte, kBytes> first{}, second{};  ///< of the first and of the second source
};

// clang-format off
/// The bytes of a packet's work: those that it stores. A broadcast and a swap count each byte once, although they store
/// it twice or in both directions.
constexpr std::uint64_t work(const CopyLinear& p) noexcept { return p.bytes; }
constexpr std::uint64_t work(const CopyBroadcast& p) noexcept { return p.bytes; }
constexpr std::uint64_t work(const CopyStruct& p) noexcept { return std::uint64_t{4} * p.count; }
constexpr std::uint64_t work(const CopySubwindow& p) noexcept { return (std::uint64_t{p.x} << (p.element_log2 & 7)) * p.y * p.z; }
constexpr std::uint64_t work(const CopyDirtyPage& p) noexcept { return p.bytes; }
constexpr std::uint64_t work(const CopySwap& p) noexcept { return p.bytes; }
constexpr std::uint64_t work(const Write& p) noexcept { return p.data.size_bytes(); }
constexpr std::uint64_t work(const Fill& p) noexcept { return bytes_written(p); }
constexpr std::uint64_t work(const FillMulti& p) noexcept { return destination(p).bytes * destination(p).rows; }
// clang-format on

/// A packet whose work can be split into parts.
template <class P>
concept Divisible = requires(const P& p) {
  work(p);
};

Outcome execute(const Nop&, Machine&) noexcept;
Outcome execute(const CopyLinear&, Machine&, Part) noexcept;
Outcome execute(const CopyBroadcast&, Machine&, Part) noexcept;
Outcome execute(const CopyStruct&, Machine&, Part) noexcept;
Outcome execute(const CopySubwindow&, Machine&, Part) noexcept;
Outcome execute(const CopyDirtyPage&, Machine&, Part) noexcept;
Outcome execute(const CopySwap&, Machine&, Part) noexcept;
Outcome execute(const Write&, Machine&, Part) noexcept;
Outcome execute(const Indirect&, Machine&) noexcept;
Outcome execute(const Fence&, Machine&) noexcept;
Outcome execute(const Trap&, Machine&) noexcept;
Outcome execute(const Semaphore&, Machine&) noexcept;
Outcome execute(const PollMem&, Machine&) noexcept;
Outcome execute(const HdpFlush&, Machine&) noexcept;
Outcome execute(const CondExec&, Machine&) noexcept;
Outcome execute(const Atomic&, Machine&) noexcept;
Outcome execute(const Fill&, Machine&, Part) noexcept;
Outcome execute(const FillMulti&, Machine&, Part) noexcept;
Outcome execute(const TimestampSet&, Machine&) noexcept;
Outcome execute(const TimestampLocal&, Machine&) noexcept;
Outcome execute(const Timestamp&, Machine&) noexcept;
Outcome execute(const PreExec&, Machine&) noexcept;
Outcome execute(const DummyTrap&, Machine&) noexcept;
Outcome execute(const Gcr&, Machine&) noexcept;

/// Executes all of the packet's work.
template <Divisible P> Outcome execute(const P& p, Machine& m) noexcept { return execute(p, m, Part{0, work(p)}); }

/// True for packets that software cannot execute for a user queue. All others have an `execute`.
template <class P> inline constexpr bool kRefused = grammar::layout<P>.privilege == Privilege::kernel;
template <> inline constexpr bool kRefused<PollReg> = true;
template <> inline constexpr bool kRefused<PollRegToMem> = true;
template <> inline constexpr bool kRefused<PollDirtyBits> = true;
template <> inline constexpr bool kRefused<PollVerify> = true;
template <> inline constexpr bool kRefused<MemIncr> = true;

/// How many destinations a packet has, if its loads and stores can be separate. A reader may see the bytes in one
/// destination before they are in the other. 0: load and store are one step.
template <class P> inline constexpr unsigned kStores = 0;
template <> inline constexpr unsigned kStores<CopyLinear> = 1;
template <> inline constexpr unsigned kStores<CopyBroadcast> = 2;
template <> inline constexpr unsigned kStores<CopySwap> = 2;

/// `load` performs the loads of a part, and `store` its stores to destination `which`. Both require part.end -
/// part.begin <= Stage::kBytes.
Outcome load(const CopyLinear&, Machine&, Part, Stage&) noexcept;
Outcome load(const CopyBroadcast&, Machine&, Part, Stage&) noexcept;
Outcome load(const CopySwap&, Machine&, Part, Stage&) noexcept;
Outcome store(const CopyLinear&, Machine&, Part, const Stage&, unsigned which) noexcept;
Outcome store(const CopyBroadcast&, Machine&, Part, const Stage&, unsigned which) noexcept;
Outcome store(const CopySwap&, Machine&, Part, const Stage&, unsigned which) noexcept;

/// The value that an atomic stores in place of `old`. 32-bit operations use and return only the low 32 bits.
std::uint64_t apply(AtomicOp, std::uint64_t old, std::uint64_t value, std::uint64_t compare) noexcept;
/// Is `op` a compare-and-swap, which may fail?
bool compares(AtomicOp op) noexcept;
/// For a compare-and-swap: does `old` equal `compare` by the comparison of this operation?
bool matches(AtomicOp op, std::uint64_t old, std::uint64_t compare) noexcept;

namespace detail {
template <class P>
concept Executable = requires(const P& p, Machine& m) {
  execute(p, m);
};
template <class... P> consteval bool all_execute(PacketList<P...>) { return ((Executable<P> != kRefused<P>)&&...); }
static_assert(all_execute(Packets{}), "a packet of the registry has neither an execute() nor a refusal, or has both");
}  // namespace detail

}}  // namespace sdma::v0_3
