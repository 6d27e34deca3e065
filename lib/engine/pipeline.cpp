// SPDX-License-Identifier: MIT
#include "pipeline.hpp"

#include "admit.hpp"
#include "allowance.hpp"
#include "front.hpp"
#include "sdma/core/atomic_ref.hpp"
#include "sleepiness.hpp"
#include "window.hpp"

#include <algorithm>
#include <atomic>
#include <optional>
#include <utility>

namespace sdma { inline namespace v0_3 {

using detail::Allowance;
using detail::Current;
using detail::Fetched;
using detail::Flight;
using detail::FrontEnd;
using detail::Sleepiness;
using detail::Window;

std::string_view name(Ordering o) noexcept {
  return o == Ordering::strict ? "strict" : o == Ordering::rocr ? "rocr" : "adversarial";
}

class Pipeline::Impl {
 public:
  explicit Impl(const PipelineConfig& c)
      : c_(c),
        seeded_(c.seed),
        chooser_(c.chooser ? *c.chooser : seeded_),
        front_(c),
        window_(c.window),
        machine_{.memory = *c.reader,
                 .state = c.state ? *c.state : own_state_,
                 .ticks = c.ticks,
                 .engine = c.engine,
                 .context = this,
                 .trap = &Impl::trap},
        sleepiness_(c.seed, 1, c.chooser),
        rung_(front_.limit()),
        published_(front_.read()) {}

  void doorbell(std::uint64_t position) noexcept {
    if (fault_ || failing_) return;
    if (asleep_ && position >= rung_) {
      rung_ = position;  // of several doorbells, the queue sees the last when it is awake
      return;
    }
    if (asleep_) see_doorbell();  // one that goes backwards is a fault, as it is while the queue is awake
    const bool again = position == rung_;
    rung_ = position;
    if (!again && sleeps() && sleepiness_.falls_asleep()) asleep_ = true;
    else see_doorbell();
  }

  bool asleep() const noexcept { return asleep_; }
  void awaken() noexcept {
    if (!std::exchange(asleep_, false) || fault_ || failing_) return;
    see_doorbell();
  }

  Progress step(std::uint32_t budget) noexcept {
    if (fault_) return Progress::stopped;
    const AddressSpace::Reader::Section section{*c_.reader};
    left_ = {};
    const bool worked = c_.ordering == Ordering::strict ? step_strict(budget) : step_weak(budget);
    if (!fault_ || !weak())
      publish(worked);  // also after a fault: rptr then gives the packet at which the queue stopped
    if (fault_) return Progress::stopped;
    if (worked) return Progress::progressed;
    return asleep_ || at().waits || !window_.empty() ? Progress::waiting : Progress::idle;
  }

  bool ready() noexcept {
    if (fault_) return false;
    const AddressSpace::Reader::Section section{*c_.reader};
    if (failing_ || window_.effects(machine_) != 0) return true;
    if (rptr_target() != published_ && c_.rptr) return true;
    if (asleep_ || !front_.available()) return false;
    if (!front_.loaded()) return true;
    if (at().waits) return at().looks != Current::kForever || (!at().stalls && detail::met(at(), machine_));
    return !goes_to_window(at().role) || !window_.full();
  }

  bool holds_engine() const noexcept { return at().waits && at().holds; }
  GpuVa waits_for() noexcept {
    if (at().waits) return at().word;
    const AddressSpace::Reader::Section section{*c_.reader};
    return window_.waits_for(machine_);
  }
  const Fault* fault() const noexcept { return fault_ ? &fault_ : nullptr; }
  const Counters& counters() const noexcept { return counters_; }
  std::uint64_t moved() const noexcept { return left_.used(); }
  std::uint64_t position() const noexcept { return front_.read(); }

 private:
  bool weak() const noexcept { return c_.ordering == Ordering::adversarial; }
  /// The current packet of the front end.
  Current& at() noexcept { return front_.current(); }
  const Current& at() const noexcept { return front_.current(); }

  bool sleeps() const noexcept { return weak() && c_.sleeps; }

  void see_doorbell() noexcept {
    const auto limit = front_.limit();
    if (!front_.doorbell(rung_, weak() ? &chooser_ : nullptr)) stop(front_.fault());
    counters_.doorbells += front_.limit() != limit;
  }

  // --- The front end's side: the next packet starts.

  /// Does the queue sleep here, between two packets? Decided once for each packet, before it is fetched.
  bool sleeps_before_packet() noexcept {
    if (asleep_ || !sleeps() || decided_ || front_.loaded() || !front_.available()) return asleep_;
    decided_ = true;
    return asleep_ = sleepiness_.falls_asleep();
  }

  /// Is there a packet to start? False: there is none, or the queue has stopped.
  bool load() noexcept {
    if (front_.load()) [[likely]]
      return true;
    if (front_.fault()) fail(front_.fault());
    return false;
  }

  /// Packets that land later. All others execute when the front end reaches them.
  bool goes_to_window(Role r) const noexcept {
    if (c_.ordering == Ordering::strict) return false;
    return r == Role::data || (weak() && (r == Role::release || r == Role::stamp || r == Role::notify));
  }
  /// In rocr, releases and timestamps come after all earlier packets and before all later ones.
  bool needs_drain(Role r) const noexcept { return !weak() && (r == Role::release || r == Role::stamp); }

  /// May the front end start the loaded packet? Reads its word if it waits for one.
  bool may_start() noexcept {
    auto& next = at();
    if (goes_to_window(next.role)) return !window_.full();
    if (needs_drain(next.role) && !window_.empty()) return false;
    if (!next.may_wait) return true;
    if (next.waits && next.looks != Current::kForever) return true;  // a read that counts towards expiry is an action
    if (!next.stalls && detail::met(next, machine_)) return true;
    if (!next.waits) {
      begin_wait();
      event(c_.hooks.begin, next);
    }
    return next.looks != Current::kForever;
  }

  void begin_wait() noexcept {
    auto& next = at();
    next.waits = true;
    next.looks = is<PollMem>(*next.info) ? decode<PollMem>(next.head, *next.info).retry : Current::kForever;
    next.passed = weak() && c_.late_rptr && chooser_.choose(Choice::rptr_at_poll, 2) == 1;
    next.holds = weak() && c_.holding_polls && chooser_.choose(Choice::poll_holds, 2) == 1;
  }

  /// Starts, and usually finishes, the loaded packet. Requires may_start().
  void start() noexcept {
    const auto& next = at();
    if (!next.waits && next.landed == 0) event(c_.hooks.begin, next);
    if (goes_to_window(next.role)) return launch(next);
    std::uint64_t bytes = 0;
    bool unfinished = false;
    auto outcome = detail::typed(next, *c_.reader, [&](const auto& p) {
      using P = std::remove_cvref_t<decltype(p)>;
      if constexpr (kRefused<P>) {
        return Outcome::lost;
      } else if constexpr (Divisible<P>) {
        const auto part = left_.take(p, {next.landed, work(p)});
        bytes = part.end;
        unfinished = part.end != work(p);
        return execute(p, machine_, part);
      } else {
        return execute(p, machine_);
      }
    });
    if (outcome == Outcome::lost) return lose(next);
    if (outcome == Outcome::not_yet) return retry();
    if (outcome == Outcome::call && c_.indirect == IndirectBuffers::ignore) outcome = Outcome::done;
    if (unfinished) {
      at().landed = bytes;
      return;
    }
    counters_.bytes += bytes;
    finish(outcome);
  }

  void finish(Outcome outcome = Outcome::done) noexcept {
    event(c_.hooks.end, at());
    ++counters_.packets;
    decided_ = false;
    if (!front_.consume(outcome)) fail(front_.fault());
    raise();
  }

  void launch(const Fetched& next) noexcept {
    auto& f = window_.push(next);
    detail::typed(next, *c_.reader, [&](const auto& p) {
      using P = std::remove_cvref_t<decltype(p)>;
      if constexpr (Divisible<P>) {
        f.work = work(p);
        const auto most = weak() ? std::clamp(c_.pieces, 1u, 64u) : 1u;
        f.pieces = static_cast<std::uint32_t>(std::min<std::uint64_t>(most, std::max<std::uint64_t>(f.work, 1)));
        f.todo = ~std::uint64_t{} >> (64 - f.pieces);
        if (weak() && c_.split_stores) f.places = kStores<P>;
      }
      if (weak()) place(f, p);
      return Outcome::done;
    });
    ++counters_.packets;
    decided_ = false;
    (void)front_.consume();  // no branch: it cannot fail
    lingered_ = 0;
  }

  /// Whether a packet stores to host memory only (data), or to VRAM (a release).
  template <class P> void place(detail::Flight& f, const P& p) noexcept {
    bool host = false, vram = false;
    footprint(p, [&](const Region& r) {
      if (r.access == Access::read) return;
      const auto owner = c_.reader->owner(r.va, r.access);
      (owner == Mapping::kHost ? host : vram) = true;
    });
    f.to_host = f.role == Role::data && host && !vram;
    f.in_vram = f.role == Role::release && vram;
  }

  /// A read that found another value. After the last one, a finite poll expires: its queue stops, or continues.
  void retry() noexcept {
    if (!at().waits) begin_wait();
    if (at().looks == Current::kForever) return;
    if (at().looks > 1) {
      --at().looks;
      return;
    }
    auto f = front_.fault_of(at(), FaultKind::poll_timeout);
    f.va = at().word;
    const bool keep_running = c_.poll_timeout == PollTimeout::keep_running ||
                              (c_.poll_timeout == PollTimeout::either && chooser_.choose(Choice::poll_expired, 2) == 1);
    if (!keep_running) return fail(f);
    if (c_.hooks.fault) c_.hooks.fault(c_.hooks.context, f);
    finish();
  }

  // --- The window's side: effects in flight land.

  void land(std::uint32_t k) noexcept {
    const auto landed = window_.land(k, machine_, left_);
    if (landed.outcome == Outcome::lost) return lose(*landed.flight);
    if (!landed.last) return;
    counters_.bytes += landed.flight->work;
    event(c_.hooks.end, *landed.flight);
    window_.drop(landed.index);
  }

  /// One effect of the packets before a fault. In rocr all of them land, in adversarial any part; then the queue stops.
  void land_before_fault() noexcept {
    const auto n = window_.effects(machine_);
    if (n == 0 || (weak() && chooser_.choose(Choice::at_fault, 2) == 0)) return stop(failing_);
    land(chooser_.choose(Choice::action, n));
  }

  bool step_strict(std::uint32_t budget) noexcept {
    bool worked = false;
    for (; budget > 0 && !left_.spent() && load() && may_start(); --budget) {
      start();
      if (fault_) return true;
      worked = true;
    }
    return worked;
  }

  bool step_weak(std::uint32_t budget) noexcept {
    bool worked = false;
    for (; budget > 0 && !left_.spent(); --budget) {
      const bool can_start = !failing_ && !sleeps_before_packet() && load() && may_start();
      if (fault_) return true;
      if (failing_) {
        land_before_fault();
        worked = true;
        continue;
      }
      const auto effects = window_.empty() ? 0 : window_.effects(machine_);
      if (!can_start && effects == 0) break;
      worked = true;
      if (!can_start && lingered_ < c_.linger && weak() && !window_.full()) {
        ++lingered_;
        break;  // a long step would end the lingering at once
      }
      if (can_start && (effects == 0 || chooser_.choose(Choice::front, 2) == 1)) start();
      else land(chooser_.choose(Choice::action, effects));
      if (fault_) return true;
    }
    return worked;
  }

  // --- Publishing to the host.

  std::uint64_t rptr_target() const noexcept {
    const bool passed = at().waits && at().passed && at().depth == 0;
    return window_.oldest_in_ring(front_.read() + (passed ? std::uint64_t{4} * at().length : 0));
  }
  void publish(bool worked) noexcept {
    const auto target = rptr_target();
    if (!c_.rptr || target == published_) return;
    if (weak() && c_.late_rptr && worked && chooser_.choose(Choice::write_rptr, 2) == 0) return;
    atomic_ref(*c_.rptr).store(target, std::memory_order_release);
    published_ = target;
  }

  void event(void (*hook)(void*, const PacketEvent&) noexcept, const Fetched& f) noexcept {
    if (!hook) [[likely]]
      return;
    const auto n = std::min<std::size_t>(f.length, f.head.size());
    const PacketEvent e{.queue = c_.queue,
                        .position = f.position,
                        .ticks = ticks(c_.ticks),
                        .depth = f.depth,
                        .view = {f.info, {f.head.data(), n}, false}};
    hook(c_.hooks.context, e);
  }
  static void trap(void* self, std::uint32_t context) noexcept {
    auto& i = *static_cast<Impl*>(self);
    if (!i.weak()) i.trap_ = context;
    else if (i.c_.hooks.trap) i.c_.hooks.trap(i.c_.hooks.context, i.c_.queue, context);
  }
  /// Raises the interrupt of the trap that has just finished. Unless the ordering is adversarial, rptr comes first, so
  /// a program that wakes finds the trap consumed.
  void raise() noexcept {
    if (!trap_) [[likely]]
      return;
    publish(true);
    const auto context = *std::exchange(trap_, {});
    if (c_.hooks.trap) c_.hooks.trap(c_.hooks.context, c_.queue, context);
  }

  /// Memory that was mapped when the packet was admitted is no longer mapped.
  void lose(const Fetched& f) noexcept {
    auto why = front_.fault_of(f, FaultKind::none);
    detail::typed(f, *c_.reader, [&](const auto& p) {
      why.kind = detail::unmapped(p, *c_.reader, why);
      return Outcome::done;
    });
    if (!why) why.kind = FaultKind::unmapped, why.va = f.va;
    stop(why);
  }
  /// The queue stops at the current packet of the front end, once earlier packets have landed.
  void fail(const Fault& f) noexcept {
    if (window_.empty()) return stop(f);
    failing_ = f;
  }
  void stop(const Fault& f) noexcept {
    if (fault_) return;
    fault_ = f;
    window_.clear();
    at().waits = false;
    if (c_.hooks.fault) c_.hooks.fault(c_.hooks.context, fault_);
  }

  PipelineConfig c_;
  Seeded seeded_;
  Chooser& chooser_;
  EngineState own_state_{};
  FrontEnd front_;
  Window window_;
  Machine machine_;
  Sleepiness sleepiness_;
  bool asleep_ = false;
  bool decided_ = false;                 ///< whether to sleep before the next packet
  std::uint64_t rung_;                   ///< the last doorbell; the front end has not seen it if the queue sleeps
  std::uint64_t published_;              ///< the value of rptr
  std::optional<std::uint32_t> trap_{};  ///< the context of a trap whose interrupt has not been raised yet
  std::uint32_t lingered_ = 0;
  Fault failing_{};  ///< the queue stops with it when the effects before it have landed
  Fault fault_{};
  Allowance left_{};  ///< that of the present step
  Counters counters_{};
};

Pipeline::Pipeline(const PipelineConfig& c) : impl_(std::make_unique<Impl>(c)) {}
Pipeline::~Pipeline() = default;

void Pipeline::doorbell(std::uint64_t position) noexcept { impl_->doorbell(position); }
Progress Pipeline::step(std::uint32_t budget) noexcept { return impl_->step(budget); }
bool Pipeline::ready() noexcept { return impl_->ready(); }
bool Pipeline::asleep() const noexcept { return impl_->asleep(); }
void Pipeline::awaken() noexcept { impl_->awaken(); }
bool Pipeline::holds_engine() const noexcept { return impl_->holds_engine(); }
GpuVa Pipeline::waits_for() const noexcept { return impl_->waits_for(); }
const Fault* Pipeline::fault() const noexcept { return impl_->fault(); }
const Pipeline::Counters& Pipeline::counters() const noexcept { return impl_->counters(); }
std::uint64_t Pipeline::moved() const noexcept { return impl_->moved(); }
std::uint64_t Pipeline::position() const noexcept { return impl_->position(); }

}}  // namespace sdma::v0_3
