#pragma once
// What each packet does: an overload a packet, in the order of Packets. The engine's chapter of the manual.
//
//   Machine m{.memory = reader, .state = state, .ticks = {}, .engine = EngineId{2}};
//   execute(CopyLinear{.src = a, .dst = b, .bytes = 64}, m);              // Outcome::done
//   execute(PollMem{.addr = flag, .reference = 1}, m);                    // done, or not_yet: ask again later
//   execute(copy, m, Part{16, 32});                                       // only these bytes of its work
//
// A data packet's work is a row of bytes, and any part of it may be done alone, in any order: `work(p)` says how many. That
// is how a copy falls into pieces. A copy, a broadcast and a swap load before they store, and may do so separately: `load`
// into a Stage, then `store`, for each place that they store to.
//
// Nothing is ordered or checked here: who may (rights, fields, footprint) is the pipeline's question, and asked before. An
// overlapping copy gives some bytes. What is not mapped is Outcome::lost, what was done before that stays done.
//
// As memory sees it: a fence, a semaphore's store and a timestamp are release stores of their width, never torn; an atomic
// is one lock-free read-modify-write, acquire and release; a poll is an acquire load; the rest is plain.
// Choices where nothing is documented:
//   copy_struct       an element is a dword
//   copy_dirty_page   software memory has no dirty bits: every page counts as dirty, and is copied
//   semaphore         64 bits: a signal adds one (write_one: stores 1), a wait takes one away as soon as there is one
//   pre_exec          bit (engine mod 8) of `devices` selects an engine
//   hdp_flush         software memory has no data path to flush: nothing
//   dummy_trap        no handler takes it: nothing
//   fmin, fmax        minimumNumber and maximumNumber of IEEE 754: a number beats a NaN, -0 is less than +0
//   fcmpswap          compares as numbers: -0 equals +0, a NaN equals nothing; *_flush_denorm takes denormals for zeros
//   registers, dirty bits, physical addresses, page tables: unsupported, or for the kernel: there is no overload to call
//
// Threads: a Machine belongs to one thread and is used inside a Section of its Reader. noexcept, no allocation.
#include "sdma/engine/memory.hpp"
#include "sdma/packets/footprint.hpp"

namespace sdma {
inline namespace v0 {

/// The node's clock in ticks of 10 ns (100 MHz), all engines alike: the host's, or a virtual one.
struct TickSource {
  std::uint64_t (*now)(void* context) noexcept = nullptr;  ///< null: the host's steady clock
  void* context = nullptr;
};
/// The host's steady clock in ticks of 10 ns.
std::uint64_t host_ticks() noexcept;
inline std::uint64_t ticks(const TickSource& t) noexcept { return t.now ? t.now(t.context) : host_ticks(); }

/// What the queues of one engine share.
struct EngineState {
  std::uint64_t local_clock = 0;  ///< added to the node's clock: what TimestampSet sets and TimestampLocal stores
};

/// What a packet can reach.
struct Machine {
  AddressSpace::Reader& memory;
  EngineState& state;
  TickSource ticks{};
  EngineId engine{};
  void* context = nullptr;
  void (*trap)(void* context, std::uint32_t trap_context) noexcept = nullptr;
};

enum class Outcome : std::uint8_t {
  done,
  not_yet,  ///< a word does not have its value: nothing was changed
  skip,     ///< the condition fails: the next `dwords` dwords are not executed
  call,     ///< go on in the indirect buffer
  lost,     ///< memory that it needs is not mapped
};

/// Bytes [begin, end) of a packet's work.
struct Part {
  std::uint64_t begin{}, end{};
};

/// What was loaded and is not stored yet: at most kBytes of each source.
struct Stage {
  static constexpr std::size_t kBytes = 64;
  std::array<std::byte, kBytes> first{}, second{};
};

// clang-format off
/// Bytes of work: those that are stored, a broadcast's once, a swap's once.
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

/// A packet whose work falls into parts.
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

/// All of it.
template <Divisible P> Outcome execute(const P& p, Machine& m) noexcept { return execute(p, m, Part{0, work(p)}); }

/// What software cannot execute for a user queue. A packet is either here or has an `execute`.
template <class P> inline constexpr bool kRefused = layout<P>.privilege == Privilege::kernel;
template <> inline constexpr bool kRefused<PollReg> = true;
template <> inline constexpr bool kRefused<PollRegToMem> = true;
template <> inline constexpr bool kRefused<PollDirtyBits> = true;
template <> inline constexpr bool kRefused<PollVerify> = true;

/// How many places a packet stores what it has loaded to, each of which may be seen without the others; 0: load and store
/// are not apart.
template <class P> inline constexpr unsigned kStores = 0;
template <> inline constexpr unsigned kStores<CopyLinear> = 1;
template <> inline constexpr unsigned kStores<CopyBroadcast> = 2;
template <> inline constexpr unsigned kStores<CopySwap> = 2;

/// The loads of a part, and the stores to the place `which`. Require part.end - part.begin <= Stage::kBytes.
Outcome load(const CopyLinear&, Machine&, Part, Stage&) noexcept;
Outcome load(const CopyBroadcast&, Machine&, Part, Stage&) noexcept;
Outcome load(const CopySwap&, Machine&, Part, Stage&) noexcept;
Outcome store(const CopyLinear&, Machine&, Part, const Stage&, unsigned which) noexcept;
Outcome store(const CopyBroadcast&, Machine&, Part, const Stage&, unsigned which) noexcept;
Outcome store(const CopySwap&, Machine&, Part, const Stage&, unsigned which) noexcept;

/// What an atomic leaves in memory where `old` was. 32-bit operations look at the low 32 bits and give no others.
std::uint64_t apply(AtomicOp, std::uint64_t old, std::uint64_t value, std::uint64_t compare) noexcept;
/// Is `op` a compare and swap, which may fail?
bool compares(AtomicOp op) noexcept;
/// Of a compare and swap: does `old` equal `compare`, as the operation compares?
bool matches(AtomicOp op, std::uint64_t old, std::uint64_t compare) noexcept;

namespace detail {
template <class P>
concept Executable = requires(const P& p, Machine& m) {
  execute(p, m);
};
template <class... P> consteval bool all_execute(PacketList<P...>) { return ((Executable<P> != kRefused<P>)&&...); }
static_assert(all_execute(Packets{}), "a packet of the registry has no execution, or two fates");
}  // namespace detail

}  // namespace v0
}  // namespace sdma
