// SPDX-License-Identifier: MIT
#pragma once
// Many queues as one object: buffers, signals and queues by name, the actions
// of host threads and of compute kernels, and what must be true in the end.
//
//   Schedule s{.gpus = 2};
//   const GpuVa in = s.add_buffer({.place = Place::gpu(0), .name = "in", .bytes = 64 << 10, .init = Init::random});
//   const GpuVa out = s.add_buffer({.place = Place::gpu(1), .name = "out", .bytes = 64 << 10});
//   const GpuVa done = s.add_signal({.name = "done"});                      // in host memory, 64 bits, 0
//   Schedule::Queue& q = s.add_queue({.place = Place::gpu(0), .name = "push", .peer = Place::gpu(1)});
//   q.copy({.src = in, .dst = out, .bytes = 64 << 10}).put(Atomic{.addr = done, .value = 1});
//   s.add_host("main").submit(q).wait(done, Compare::eq, 1);
//   s.expect_equal({out, 64 << 10}, {in, 64 << 10});
//   if (auto bound = bind(s, device)) run(*bound);                          // schedule/bind.hpp, schedule/run.hpp
//
// A schedule is like an object file. Its packets are ordinary packets, and the addresses in them are in link space:
//
//   buffer k    (k + 1) << 40
//   signal k    1 << 63 | (k + 1) << 40
//
// So `out + 4096` is a GpuVa like any other, and binding the schedule to a device relocates the packets that hold it.
// An address outside link space stays as it is.
//
// Epochs. A queue may be submitted any number of times; its epoch is the number of the submit, from 1. A value in a
// packet may be a * epoch + b: q.put<&PollMem::reference>(PollMem{.addr = go, .func = Compare::ge}, kEpoch). In
// `dwords`, the bits of such a field are zero, and `epochs` defines their values. The packets of a queue without epoch
// values never change.
//
// Kernels. A compute kernel that runs beside the queues is an agent with actions, as a host thread is: it computes,
// waits, loads, stores, sets, and may submit queues. check/ examines its order, simulate/ its time, and `run` lets a
// thread stand in for it on a device in software:
//   s.add_kernel(Place::gpu(0), "gemm").repeat(4, [&](auto& k) {
//     k.compute(20000).store({in, 4096}).set(tile, kEpoch);
//   });
//
// Sums. A kernel adds ranges, element by element. With a fixed order, the bytes are always the same; with an open
// order, floating-point numbers may be rounded differently each time:
//   Schedule::Sum ab{.type = Schedule::Sum::Type::f32, .parts = {{a, n}, {b, n}}};
//   s.add_kernel(Place::gpu(0), "add").store({out, n}, ab);
//   s.expect_sum({out, n}, ab);
//
// Lifetimes. A buffer exists throughout, unless a host thread allocates or frees it; the same holds for mappings and
// for handles of other processes. check/ finds what uses memory that is not there, and `run` stops it on a device in
// software:
//   s.add_host("main").alloc(stage).submit(q).wait(done, Compare::eq, 1).free(stage);
//
// A schedule is plain data that you can read and compare; text.hpp prints it, and bind.hpp links it. References that
// add_queue, add_host and add_kernel return stay valid.
// Threads: one may write, or many may read. Allocates, and throws only what the allocator throws.
// Errors: a packet that no engine would accept is left out, and `problems` names it; `problems` also names
// contradictions. A schedule with problems cannot be bound or run.
#include "sdma/core/diagnostic.hpp"
#include "sdma/packets/registry.hpp"
#include "sdma/stream/reader.hpp"
#include "sdma/stream/writer.hpp"

#include <compare>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace sdma { inline namespace v0_3 {

/// The owner of memory or of an engine: the host, or a GPU by its number in the schedule, from 0.
struct Place {
  static constexpr std::uint32_t kHost = ~0u;  ///< the index of the host
  std::uint32_t index = kHost;                 ///< a GPU's number, or `kHost`
  /// The host.
  static constexpr Place host() noexcept { return {}; }
  /// The GPU with this number.
  static constexpr Place gpu(std::uint32_t i) noexcept { return {i}; }
  /// Is it the host?
  constexpr bool is_host() const noexcept { return index == kHost; }
  friend constexpr auto operator<=>(Place, Place) = default;
};
/// "host", "gpu3".
std::string to_string(Place);

/// A value that may depend on the epoch: factor * epoch + constant.
struct EpochValue {
  std::int64_t factor{}, constant{};  ///< the value is factor * epoch + constant
  constexpr EpochValue() = default;
  constexpr EpochValue(std::int64_t f, std::int64_t c) noexcept : factor(f), constant(c) {}
  /// A plain number does not depend on the epoch. Its 64 bits are used as they are, signed or unsigned.
  template <std::integral T> constexpr EpochValue(T c) noexcept : constant(static_cast<std::int64_t>(c)) {}
  /// The value in this epoch: 64 bits, two's complement; wraps on overflow.
  constexpr std::uint64_t at(std::uint64_t epoch) const noexcept {
    return static_cast<std::uint64_t>(factor) * epoch + static_cast<std::uint64_t>(constant);
  }
  friend constexpr EpochValue operator*(EpochValue v, std::int64_t n) noexcept {
    return {v.factor * n, v.constant * n};
  }
  friend constexpr EpochValue operator*(std::int64_t n, EpochValue v) noexcept { return v * n; }
  friend constexpr EpochValue operator+(EpochValue v, std::int64_t n) noexcept { return {v.factor, v.constant + n}; }
  friend constexpr EpochValue operator-(EpochValue v, std::int64_t n) noexcept { return {v.factor, v.constant - n}; }
  friend constexpr bool operator==(EpochValue, EpochValue) = default;
};
inline constexpr EpochValue kEpoch{1, 0};

/// A value that a host thread or a kernel sets, adds or waits for: `plus`, and what the thread has sampled before, if
/// `sample` names it. `sampled("n") + 4` is the text `n + 4`.
struct ActionValue {
  EpochValue plus{};
  std::string sample{};  ///< the name that Action::Kind::sample gave; "": there is none
  ActionValue() = default;
  ActionValue(EpochValue v) noexcept : plus(v) {}
  template <std::integral T> ActionValue(T c) noexcept : plus(c) {}
  /// The value in this epoch, if the sample was `seen`: 64 bits, two's complement; wraps on overflow.
  std::uint64_t at(std::uint64_t epoch, std::uint64_t seen) const noexcept { return plus.at(epoch) + seen; }
  friend ActionValue operator+(ActionValue v, EpochValue n) noexcept {
    v.plus = {v.plus.factor + n.factor, v.plus.constant + n.constant};
    return v;
  }
  friend ActionValue operator-(ActionValue v, EpochValue n) noexcept { return std::move(v) + n * -1; }
  friend bool operator==(const ActionValue&, const ActionValue&) = default;
};
/// The value that the thread sampled last under this name.
inline ActionValue sampled(std::string name) {
  ActionValue v;
  v.sample = std::move(name);
  return v;
}

/// What a buffer holds before the run.
enum class Init : std::uint8_t {
  poison,  ///< every byte is kPoison, which marks bytes that nothing has written
  random,  ///< depends on the seed of the run and the number of the buffer
  zero,    ///< every byte is 0
};
inline constexpr std::uint8_t kPoison = 0xdb;  ///< each byte of a buffer with Init::poison

struct Schedule {
  static constexpr std::uint32_t kMostGpus = 1024;  ///< the most GPUs that a schedule can have
  /// Memory of a GPU or of the host.
  struct Buffer {
    Place place{};                ///< where it is
    std::string name{};           ///< letters, digits and _; does not begin with a digit
    std::uint64_t bytes{};        ///< 1 to 2^40
    std::uint64_t alignment = 1;  ///< in bytes, a power of two: the alignment that packets rely on
    /// An address in link space makes this an alias of the bytes there; any other address is fixed, as in a dump.
    std::optional<GpuVa> at{};
    std::vector<Place> map{};  ///< the GPUs that may access it; empty: all. The host always has access
    Init init = Init::poison;  ///< what it holds at first
    friend bool operator==(const Buffer&, const Buffer&) = default;
  };

  /// An aligned word of 4 or 8 bytes.
  struct Signal {
    Place place{};              ///< where it is
    std::string name{};         ///< after the place: host.NAME
    std::uint64_t value{};      ///< the initial value
    std::uint32_t bits = 64;    ///< 32 or 64
    std::optional<GpuVa> at{};  ///< as Buffer::at
    friend bool operator==(const Signal&, const Signal&) = default;
  };

  /// A field of a packet that depends on the epoch.
  struct EpochField {
    std::size_t packet{};      ///< index of the packet's first dword in Queue::dwords
    std::string_view field{};  ///< the name of the field, from the registry
    EpochValue value{};        ///< what the field holds, for each epoch
    friend bool operator==(const EpochField&, const EpochField&) = default;
  };

  /// The packets for one engine. `put`, `copy` and similar functions append packets; problems() reports what they
  /// refuse.
  struct Queue {
    Place place{};                ///< a GPU
    std::string name{};           ///< after the place: gpu0.NAME
    std::optional<Place> peer{};  ///< selects the engine that the node recommends for this peer; none: `engine`
    /// With the host as the peer: the engine that reads from the host, not the one that writes to it. Runtimes keep one
    /// engine for each direction (Topology::engine_for).
    bool from_host = false;
    /// No engine executes it, but the network between the peer's node and its own: a thread of the host passes each
    /// packet on (docs/nodes.md). A fence or atomic takes effect when the bytes of all earlier copies are there.
    bool network = false;
    std::uint32_t engine{};      ///< the number of the engine; used only without a peer
    std::uint64_t ring_bytes{};  ///< 0: bind chooses
    /// Each packet that moves data is published with a doorbell of its own, together with the packets that follow
    /// it; the first also with those before it. Otherwise, one doorbell publishes as many packets as fit into
    /// half of the ring.
    bool doorbell_each = false;
    std::vector<std::uint32_t> dwords{};  ///< in link space
    std::vector<EpochField> epochs{};     ///< in the order of their packets
    std::string refused{};                ///< the first packet that was refused, "" if none was

    template <Packet P> Queue& put(const P& p) {
      return add(
          length(p), [&](Writer& w) { return w.put(p); }, grammar::layout<P>.name);
    }
    /// Appends a packet in which one value is a * epoch + b. `Member` is that value: PollMem::reference, Fence::value,
    /// Atomic::value.
    template <auto Member> Queue& put(typename grammar::Field<Member>::Owner p, EpochValue v) {
      constexpr auto field = detail::field_of<Member>();
      static_assert(field.kind == Kind::value, "an epoch is allowed only in a value");
      p.*Member = {};
      const auto before = dwords.size();
      put(p);
      if (dwords.size() != before) mark(before, field.name, v);
      return *this;
    }
    /// A long copy becomes several packets, as with Writer.
    Queue& copy(const Writer::Copy& c) {
      return add(
          dwords_for<CopyLinear>(c.bytes, c.chunk), [&](Writer& w) { return w.copy(c); }, "copy");
    }
    /// Appends a broadcast; a long one becomes several packets.
    Queue& broadcast(const Writer::Broadcast& c) {
      return add(
          dwords_for<CopyBroadcast>(c.bytes, c.chunk), [&](Writer& w) { return w.broadcast(c); }, "broadcast");
    }
    /// Appends an exchange of two ranges; a long one becomes several packets.
    Queue& swap(const Writer::Swap& c) {
      return add(
          dwords_for<CopySwap>(c.bytes, c.chunk), [&](Writer& w) { return w.swap(c); }, "swap");
    }
    /// Appends a fill; a long one becomes several packets.
    Queue& fill(const Writer::Fill& c) {
      return add(
          dwords_for<Fill>(c.bytes, c.chunk), [&](Writer& w) { return w.fill(c); }, "fill");
    }
    friend bool operator==(const Queue&, const Queue&) = default;

   private:
    template <Packet P> static constexpr std::size_t dwords_for(std::uint64_t bytes, std::uint32_t chunk) noexcept {
      const auto packets = bytes == 0 || chunk == 0 ? 1 : (bytes - 1) / chunk + 1;
      return static_cast<std::size_t>(packets) * grammar::layout<P>.length.fixed;
    }
    template <class Fn> Queue& add(std::size_t room, Fn write, std::string_view what) {
      const auto before = dwords.size();
      dwords.resize(before + room);
      Writer w{std::span(dwords).subspan(before)};
      const auto e = write(w);
      dwords.resize(before + w.written().size());
      if (e != Errc::ok && refused.empty()) refuse(what, e);
      return *this;
    }
    void mark(std::size_t packet, std::string_view field, EpochValue);
    void refuse(std::string_view what, Errc);
  };

  /// Consecutive bytes in link space.
  struct Range {
    GpuVa va{};             ///< in link space
    std::uint64_t bytes{};  ///< its length
    friend bool operator==(const Range&, const Range&) = default;
  };

  /// Ranges that are added element by element. Each addition rounds to the type.
  struct Sum {
    /// What an element is.
    enum class Type : std::uint8_t {
      f32,   ///< 4 bytes, IEEE 754
      bf16,  ///< 2 bytes: the upper half of an f32
      i32,   ///< 4 bytes: an integer, which wraps
    };
    Type type{};                 ///< of the parts and of the result
    bool any_order{};            ///< the order of the additions is left open; if not, ((first + second) + third) + ..
    std::vector<Range> parts{};  ///< of equal length; empty: this is not a sum
    /// The bytes of an element.
    std::uint64_t element() const noexcept { return type == Type::bf16 ? 2 : 4; }
    /// Is this a sum?
    explicit operator bool() const noexcept { return !parts.empty(); }
    friend bool operator==(const Sum&, const Sum&) = default;
  };

  /// One action of a host thread or of a kernel.
  struct Action {
    /// `submit`: publishes queues; `set`: stores a value to a signal; `add`: adds one to it; `wait`: waits until a
    /// comparison with it is true; `sample`: reads it and names what it holds; `repeat`: performs `body` several times;
    /// `compute`: keeps a kernel busy; `load`, `store`: access bytes; `expect`: bytes must equal others at this moment;
    /// `rptr`: waits until a queue's rptr shows that all that was submitted has been read. That completes nothing.
    /// Only in a host thread: `alloc`, `free`: a buffer begins and ceases to exist; `map`, `unmap`: a GPU gains and
    /// loses access to it; `export_handle`, `close_handle`: all GPUs but its own reach it only between these two.
    enum class Kind : std::uint8_t {
      submit,
      set,
      wait,
      repeat,
      add,
      compute,
      load,
      store,
      expect,
      sample,
      rptr,
      alloc,
      free,
      map,
      unmap,
      export_handle,
      close_handle,
    };
    Kind kind{};                        ///< which action it is
    std::vector<std::size_t> queues{};  ///< submit: queues by index, in this order, one doorbell each. rptr: one queue
    GpuVa signal{};                     ///< set, wait, add, sample: an address in link space
    Compare func = Compare::eq;         ///< wait
    /// set, wait, add: the epoch is the round of the innermost repeat, from 1. sample: `value.sample` is the name that
    /// what the signal holds now gets, until the end of the block or the next sample of that name
    ActionValue value{};
    std::uint64_t rounds{};      ///< repeat
    std::vector<Action> body{};  ///< repeat
    std::uint64_t ns{};          ///< compute, only in a kernel: how long it takes alone
    std::uint64_t
        hbm{};  ///< compute: the bytes that it meanwhile exchanges with its GPU's memory; only simulations know them
    Range range{};  ///< load, store, expect: the bytes
    Range right{};  ///< expect: the bytes that `range` must equal at this moment
    bool old{};     ///< expect: it must equal what `right` held before the run
    /// store: what each byte becomes. Without a value, random contents,
    /// which depend on the seed of the run, the range and the round.
    std::optional<std::uint8_t> byte{};
    Sum sum{};  ///< store, only in a kernel: what `range` becomes. expect: what it must equal, in place of `right`
    /// Only in a kernel: a wait or a sample is followed by an acquire at system scope, and a release at system
    /// scope comes before a set and an add. If not, the scope is the GPU (`scope=agent`), and the checker says
    /// what that breaks.
    bool system_scope = true;
    GpuVa buffer{};  ///< alloc, free, map, unmap, export_handle, close_handle: where the buffer begins in link space
    Place gpu{};     ///< map, unmap: the GPU
    friend bool operator==(const Action&, const Action&) = default;
  };

  /// Appends actions. A Script refers to the schedule, which must stay at its address meanwhile.
  class Script {
   public:
    Script(const Schedule& s, std::vector<Action>& to) noexcept : schedule_(s), to_(to) {}
    Script& submit(const Queue&);  ///< a queue of this schedule
    Script& submit_all();          ///< all queues that the schedule has now
    /// Stores the value to the signal.
    Script& set(GpuVa signal, ActionValue);
    /// Waits until the comparison of the signal with the value is true.
    Script& wait(GpuVa signal, Compare, ActionValue);
    Script& wait_rptr(const Queue&);         ///< until the engine has read all that was submitted to this queue
    Script& add(GpuVa signal, ActionValue);  ///< an atomic addition
    /// Reads the signal now. `sampled(name)` is the value in the actions that follow, also in a repeat.
    Script& sample(std::string name, GpuVa signal);
    Script& compute(std::uint64_t ns, std::uint64_t hbm = 0);  ///< only in a kernel
    Script& load(Range);                                       ///< reads the bytes
    /// Stores `byte` to each byte of the range; without it, random contents.
    Script& store(Range, std::optional<std::uint8_t> byte = {});
    /// Adds the parts and stores the sum; only in a kernel.
    Script& store(Range range, Sum sum) {
      to_.push_back({.kind = Action::Kind::store, .range = range, .sum = std::move(sum)});
      return *this;
    }
    // The lifetime of a buffer; only in a host thread.
    Script& alloc(GpuVa buffer);          ///< from here on the buffer exists, and holds what Buffer::init says
    Script& free(GpuVa buffer);           ///< it no longer exists, and nothing may use it
    Script& map(GpuVa buffer, Place);     ///< the GPU may access it
    Script& unmap(GpuVa buffer, Place);   ///< the GPU may no longer access it
    Script& export_handle(GpuVa buffer);  ///< GPUs other than its own may access it
    Script& close_handle(GpuVa buffer);   ///< only its own may
    Script& expect_equal(Range left, Range right);  ///< at this moment
    Script& expect_old(Range left, Range right);    ///< compares with what `right` held before the run
    /// `fn(Script&)` appends the actions of each round.
    template <class Fn> Script& repeat(std::uint64_t rounds, Fn fn) {
      Action a{.kind = Action::Kind::repeat, .rounds = rounds};
      Script inner{schedule_, a.body};
      fn(inner);
      to_.push_back(std::move(a));
      return *this;
    }

   private:
    Script& lifetime(Action::Kind, GpuVa buffer, Place gpu);
    const Schedule& schedule_;
    std::vector<Action>& to_;
  };

  /// A host thread.
  struct Host {
    std::string name{};             ///< of the thread
    std::vector<Action> actions{};  ///< in order
    /// The rank that it belongs to, if several processes bind the schedule (bind.hpp); nullopt: divided evenly.
    std::optional<std::uint32_t> rank{};
    friend bool operator==(const Host&, const Host&) = default;
  };

  /// How a kernel tells another GPU that its stores are there. For a simulation alone: the order of stores, `set`,
  /// `add` and `wait` is the same.
  enum class Protocol : std::uint8_t {
    plain,   ///< a release before each `set`, an acquire after each `wait`
    simple,  ///< the same, by workgroups that wait for each other at each step
    ll,      ///< each word that is stored carries a flag: twice the bytes, and neither release nor acquire
    /// Hardware counts stores as they reach the memory, which adds: neither a release nor an acquire, and within the
    /// memory of its own GPU its sums take no time.
    tracked,
  };

  /// A compute kernel on a GPU. It starts when the host threads do.
  struct Kernel {
    Place place{};                  ///< a GPU
    std::string name{};             ///< of the kernel
    std::vector<Action> actions{};  ///< in order
    /// The part of the GPU's compute units that it keeps busy while it computes or adds, in percent: 0 to 100. Kernels
    /// that together need more than all are slowed alike. 0: others do the work, such as the memory.
    std::uint32_t share = 100;
    /// How many workgroups move its bytes: they limit its rate (simulate/machine.hpp). 0: it is not said.
    std::uint32_t workgroups = 0;
    Protocol protocol{};  ///< between GPUs
    friend bool operator==(const Kernel&, const Kernel&) = default;
  };

  /// A condition that a run checks after all host threads and kernels have ended.
  struct Expectation {
    /// What is expected.
    enum class Kind : std::uint8_t {
      bytes,    ///< `left` holds what `right` holds; with `old`, what `right` held before the run
      value,    ///< the signal at `left` holds `value`
      finding,  ///< the checker must report `rule`; such a schedule is never run
    };
    Kind kind{};            ///< what is expected
    Range left{}, right{};  ///< bytes: what is compared; value: `left` begins at the signal
    bool old{};             ///< bytes: compare with what `right` held before the run
    std::uint64_t value{};  ///< value: what the signal must hold
    std::string rule{};     ///< finding: the id of the checker's rule
    Sum sum{};  ///< bytes: what `left` holds, in place of `right`; with `old`, of what the parts held before the run
    friend bool operator==(const Expectation&, const Expectation&) = default;
  };

  std::uint32_t gpus{};                     ///< 0 to kMostGpus
  std::vector<Buffer> buffers{};            ///< by index
  std::vector<Signal> signals{};            ///< by index
  std::deque<Queue> queues{};               ///< by index; references stay valid
  std::deque<Host> hosts{};                 ///< by index; references stay valid
  std::deque<Kernel> kernels{};             ///< by index; references stay valid
  std::vector<Expectation> expectations{};  ///< in the order in which they were added

  /// Returns the address of the buffer's first byte, in link space.
  GpuVa add_buffer(Buffer);
  /// Returns the address of the signal, in link space.
  GpuVa add_signal(Signal);
  /// Adds a queue, and returns the schedule's copy of it.
  Queue& add_queue(Queue);
  /// Adds a host thread. The Script that it returns appends the actions.
  Script add_host(std::string name);
  /// Adds a kernel on a GPU. The Script that it returns appends the actions.
  Script add_kernel(Place, std::string name);
  /// Expects `left` to hold, in the end, what `right` holds then.
  void expect_equal(Range left, Range right) { expectations.push_back({.left = left, .right = right}); }
  /// Expects `left` to hold, in the end, what `right` held before the run.
  void expect_old(Range left, Range right) { expectations.push_back({.left = left, .right = right, .old = true}); }
  /// Expects `left` to hold, in the end, the sum of what the parts held before the run.
  void expect_sum(Range left, Sum sum) { expectations.push_back({.left = left, .old = true, .sum = std::move(sum)}); }
  /// Expects the signal to hold `value` in the end.
  void expect_value(GpuVa signal, std::uint64_t value);

  friend bool operator==(const Schedule&, const Schedule&) = default;
};

/// The layout of link space.
inline constexpr std::uint64_t kLinkStride = std::uint64_t{1} << 40, kLinkSignals = std::uint64_t{1} << 63;
/// Where the k-th buffer begins in link space.
constexpr GpuVa link_buffer(std::size_t k) noexcept { return GpuVa{(k + 1) * kLinkStride}; }
/// Where the k-th signal is in link space.
constexpr GpuVa link_signal(std::size_t k) noexcept { return GpuVa{kLinkSignals + (k + 1) * kLinkStride}; }

/// A buffer or a signal, and an offset in it.
struct SymbolOffset {
  bool signal{};           ///< true: a signal; false: a buffer
  std::size_t index{};     ///< into Schedule::signals or Schedule::buffers
  std::uint64_t offset{};  ///< in bytes; may be the end of the symbol
};
/// The symbol at a link address; nullopt if the address belongs to no buffer and no signal.
std::optional<SymbolOffset> find_symbol(const Schedule&, GpuVa);
/// "gpu1.buf", "host.done".
std::string name_of(const Schedule&, const SymbolOffset&);
/// The size of the whole buffer or signal, in bytes; `offset` does not matter.
std::uint64_t bytes_of(const Schedule&, const SymbolOffset&);
/// "gpu1.buf[64K]"; "" if find_symbol finds nothing.
std::string name_of(const Schedule&, GpuVa);

/// Stores the epoch values of a queue into `dwords`, a copy of Queue::dwords, relocated or not. If one of the values
/// does not fit its field, stores nothing and returns that field: nothing is truncated. Returns null on success.
[[nodiscard]] const Schedule::EpochField* store_epoch(const Schedule::Queue&, std::uint64_t epoch,
                                                      std::span<std::uint32_t> dwords);

/// What is wrong with a schedule; empty for one that was parsed from text. Reports names, places and GPUs that do not
/// exist; packets that access bytes outside their symbol, are larger than half their ring, or were refused; and actions
/// and expectations that make no sense.
[[nodiscard]] std::vector<Diagnostic> problems(const Schedule&);

/// Does the schedule expect a finding from the checker? Such a schedule must not be run.
[[nodiscard]] bool expects_finding(const Schedule&);

}}  // namespace sdma::v0_3
