#pragma once
// Many queues as one object: buffers, signals and queues by name, what host threads do, and what must be true afterwards.
//
//   Schedule s{.gpus = 2};
//   const GpuVa in = s.add_buffer({.place = Place::gpu(0), .name = "in", .bytes = 64 << 10, .init = Init::random});
//   const GpuVa out = s.add_buffer({.place = Place::gpu(1), .name = "out", .bytes = 64 << 10});
//   const GpuVa done = s.add_signal({.name = "done"});                            // in host memory, 64 bits, 0
//   Schedule::Queue& q = s.add_queue({.place = Place::gpu(0), .name = "push", .peer = Place::gpu(1)});
//   q.copy({.src = in, .dst = out, .bytes = 64 << 10}).put(Atomic{.addr = done, .value = 1});
//   s.add_host("main").submit(q).wait(done, Compare::eq, 1);
//   s.expect_equal({out, 64 << 10}, {in, 64 << 10});
//   bind(s, device), run(...)                                                      // schedule/bind.hpp, schedule/run.hpp
//
// A schedule is an object file. Addresses in it are those of link space, and packets are ordinary packets:
//
//   buffer k    (k + 1) << 40            so `out + 4096` is a GpuVa like any other, and a packet that holds it is moved
//   signal k    1 << 63 | (k + 1) << 40  when the schedule is bound to a device. Any other address stays as it is.
//
// Epochs. A queue may be submitted again and again; `epoch` is how many times it has been, from 1. A value of a packet may be
// a * epoch + b: q.put<&PollMem::reference>(PollMem{.addr = go, .func = Compare::ge}, kEpoch). In `dwords` the bits of such a
// field are zero, and `epochs` says what they become. A queue without epochs has constant packets, whatever its epoch.
//
// All of it is plain data, to be read and compared: text.hpp prints it, bind.hpp links it. References that add_queue and
// add_host return stay good. Values: one thread writes, or many read. Allocates; throws nothing but what the allocator does.
// Errors: a packet that no engine would take is left out and named by `problems`, and so is what contradicts itself;
// nothing is bound or run while there are problems.
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

namespace sdma {
inline namespace v0 {

/// Whose memory, or whose engine: the host, or a GPU by its number in the schedule, from 0.
struct Place {
  static constexpr std::uint32_t kHost = ~0u;
  std::uint32_t index = kHost;
  static constexpr Place host() noexcept { return {}; }
  static constexpr Place gpu(std::uint32_t i) noexcept { return {i}; }
  constexpr bool is_host() const noexcept { return index == kHost; }
  friend constexpr auto operator<=>(Place, Place) = default;
};
/// "host", "gpu3".
std::string to_string(Place);

/// factor * epoch + constant.
struct EpochValue {
  std::int64_t factor{}, constant{};
  constexpr EpochValue() = default;
  constexpr EpochValue(std::int64_t f, std::int64_t c) noexcept : factor(f), constant(c) {}
  /// A number is a value that no epoch changes; 64 bits of it count, whatever their sign.
  template <std::integral T> constexpr EpochValue(T c) noexcept : constant(static_cast<std::int64_t>(c)) {}
  /// 64 bits, two's complement: what is beyond them is lost.
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

/// What a buffer holds before the run.
enum class Init : std::uint8_t {
  poison,  ///< every byte kPoison: what nobody has written
  random,  ///< by the seed of the run and the number of the buffer
  zero,
};
inline constexpr std::uint8_t kPoison = 0xdb;

struct Schedule {
  struct Buffer {
    Place place{};
    std::string name{};           ///< letters, digits, _; no digit first
    std::uint64_t bytes{};        ///< 1 to 2^40
    std::uint64_t alignment = 1;  ///< what packets rely on, in bytes: a power of two
    std::optional<GpuVa> at{};    ///< an alias of other bytes (link space), or a fixed address that only names a dump's
    std::vector<Place> map{};     ///< the GPUs that may touch it; empty: all. The host always fills and reads it
    Init init = Init::poison;
    friend bool operator==(const Buffer&, const Buffer&) = default;
  };

  /// An aligned word of 4 or 8 bytes.
  struct Signal {
    Place place{};
    std::string name{};
    std::uint64_t value{};      ///< to begin with
    std::uint32_t bits = 64;    ///< 32 or 64
    std::optional<GpuVa> at{};  ///< as Buffer::at
    friend bool operator==(const Signal&, const Signal&) = default;
  };

  /// A field of a packet that depends on the epoch.
  struct EpochField {
    std::size_t packet{};      ///< its first dword in Queue::dwords
    std::string_view field{};  ///< its name, out of the registry
    EpochValue value{};
    friend bool operator==(const EpochField&, const EpochField&) = default;
  };

  /// An engine's work. `put` and the like append; what is refused is said by problems().
  struct Queue {
    Place place{};  ///< a GPU
    std::string name{};
    std::optional<Place> peer{};  ///< the engine that the node recommends for it; else `engine`
    std::uint32_t engine{};
    std::uint64_t ring_bytes{};           ///< 0: bind chooses
    std::vector<std::uint32_t> dwords{};  ///< in link space
    std::vector<EpochField> epochs{};     ///< in the order of their packets
    std::string refused{};                ///< the first packet that was not taken, "" if all were

    template <Packet P> Queue& put(const P& p) {
      return add(
          length(p), [&](Writer& w) { return w.put(p); }, layout<P>.name);
    }
    /// A packet one value of which is a * epoch + b. `Member` is a value: PollMem::reference, Fence::value, Atomic::value.
    template <auto Member> Queue& put(typename Field<Member>::Owner p, EpochValue v) {
      p.*Member = {};
      const auto before = dwords.size();
      put(p);
      if (dwords.size() != before) mark(before, detail_name<Member>(), v);
      return *this;
    }
    /// Long ones become several packets, as Writer makes them.
    Queue& copy(const Writer::Copy& c) {
      return add(
          dwords_for<CopyLinear>(c.bytes, c.chunk), [&](Writer& w) { return w.copy(c); }, "copy");
    }
    Queue& broadcast(const Writer::Broadcast& c) {
      return add(
          dwords_for<CopyBroadcast>(c.bytes, c.chunk), [&](Writer& w) { return w.broadcast(c); }, "broadcast");
    }
    Queue& swap(const Writer::Swap& c) {
      return add(
          dwords_for<CopySwap>(c.bytes, c.chunk), [&](Writer& w) { return w.swap(c); }, "swap");
    }
    Queue& fill(const Writer::Fill& c) {
      return add(
          dwords_for<Fill>(c.bytes, c.chunk), [&](Writer& w) { return w.fill(c); }, "fill");
    }
    friend bool operator==(const Queue&, const Queue&) = default;

   private:
    template <auto Member> static constexpr std::string_view detail_name() noexcept {
      using P = typename Field<Member>::Owner;
      std::string_view name;
      detail::each<P>([&]<std::size_t I>() {
        if constexpr (std::is_same_v<detail::FieldOf<P, I>, Field<Member>>) {
          static_assert(detail::field<P, I>.kind == Kind::value, "an epoch may stand in a value only");
          name = detail::field<P, I>.name;
        }
      });
      return name;
    }
    template <Packet P> static constexpr std::size_t dwords_for(std::uint64_t bytes, std::uint32_t chunk) noexcept {
      const auto packets = bytes == 0 || chunk == 0 ? 1 : (bytes - 1) / chunk + 1;
      return static_cast<std::size_t>(packets) * layout<P>.length.fixed;
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

  /// What a host thread does next.
  struct Action {
    enum class Kind : std::uint8_t { submit, set, wait, repeat };
    Kind kind{};
    std::vector<std::size_t> queues{};  ///< submit: indices, in this order, a doorbell each
    GpuVa signal{};                     ///< set, wait: in link space
    Compare func = Compare::eq;         ///< wait
    EpochValue value{};                 ///< set, wait; the epoch is the round of the innermost repeat, from 1
    std::uint64_t rounds{};             ///< repeat
    std::vector<Action> body{};         ///< repeat
    friend bool operator==(const Action&, const Action&) = default;
  };

  /// Appends actions; refers to the schedule, which must stay where it is meanwhile.
  class Script {
   public:
    Script(const Schedule& s, std::vector<Action>& to) noexcept : schedule_(s), to_(to) {}
    Script& submit(const Queue&);  ///< a queue of this schedule
    Script& submit_all();          ///< all that there are now
    Script& set(GpuVa signal, EpochValue);
    Script& wait(GpuVa signal, Compare, EpochValue);
    /// `fn(Script&)` appends what is done in each round.
    template <class Fn> Script& repeat(std::uint64_t rounds, Fn fn) {
      Action a{.kind = Action::Kind::repeat, .rounds = rounds};
      Script inner{schedule_, a.body};
      fn(inner);
      to_.push_back(std::move(a));
      return *this;
    }

   private:
    const Schedule& schedule_;
    std::vector<Action>& to_;
  };

  struct Host {
    std::string name{};
    std::vector<Action> actions{};
    friend bool operator==(const Host&, const Host&) = default;
  };

  struct Range {
    GpuVa va{};  ///< in link space
    std::uint64_t bytes{};
    friend bool operator==(const Range&, const Range&) = default;
  };

  /// Checked when all host threads have ended.
  struct Expectation {
    enum class Kind : std::uint8_t {
      bytes,    ///< `left` holds what `right` holds: now, or, with `old`, before anything ran
      value,    ///< the signal at `left` holds `value`
      finding,  ///< a checker must report `rule`; such a schedule is never run
    };
    Kind kind{};
    Range left{}, right{};
    bool old{};
    std::uint64_t value{};
    std::string rule{};
    friend bool operator==(const Expectation&, const Expectation&) = default;
  };

  std::uint32_t gpus{};  ///< 0 to 64
  std::vector<Buffer> buffers{};
  std::vector<Signal> signals{};
  std::deque<Queue> queues{};
  std::deque<Host> hosts{};
  std::vector<Expectation> expectations{};

  /// Where the buffer begins, in link space.
  GpuVa add_buffer(Buffer);
  GpuVa add_signal(Signal);
  Queue& add_queue(Queue);
  Script add_host(std::string name);
  void expect_equal(Range left, Range right) { expectations.push_back({.left = left, .right = right}); }
  void expect_old(Range left, Range right) { expectations.push_back({.left = left, .right = right, .old = true}); }
  void expect_value(GpuVa signal, std::uint64_t value);

  friend bool operator==(const Schedule&, const Schedule&) = default;
};

/// Link space.
inline constexpr std::uint64_t kLinkStride = std::uint64_t{1} << 40, kLinkSignals = std::uint64_t{1} << 63;
constexpr GpuVa link_buffer(std::size_t k) noexcept { return GpuVa{(k + 1) * kLinkStride}; }
constexpr GpuVa link_signal(std::size_t k) noexcept { return GpuVa{kLinkSignals + (k + 1) * kLinkStride}; }

/// A buffer or a signal, and a place in it.
struct Located {
  bool signal{};
  std::size_t index{};
  std::uint64_t offset{};  ///< may be the symbol's end
};
/// What a link address means; nothing if it is no buffer's and no signal's.
std::optional<Located> locate(const Schedule&, GpuVa);
/// "gpu1.buf", "host.done".
std::string name_of(const Schedule&, const Located&);
std::uint64_t bytes_of(const Schedule&, const Located&);
/// "gpu1.buf[64K]"; "" where locate finds nothing.
std::string name_of(const Schedule&, GpuVa);

/// The values of a packet's fields at an epoch: where all of them fit, their bits are stored in `dwords`, a copy of
/// Queue::dwords (moved or not). Else nothing is stored, and the field that does not fit is returned: nothing is truncated.
const Schedule::EpochField* store_epoch(const Schedule::Queue&, std::uint64_t epoch, std::span<std::uint32_t> dwords);

/// What is wrong with a schedule: nothing, if it came out of a text. Names, places and GPUs that do not exist, packets that
/// touch bytes outside of their symbol, packets that were refused, actions and expectations that make no sense.
std::vector<Diagnostic> problems(const Schedule&);

/// Does the schedule say that a checker must find something? Then it is not to be run.
bool expects_finding(const Schedule&);

}  // namespace v0
}  // namespace sdma
