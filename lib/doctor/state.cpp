// SPDX-License-Identifier: MIT
// Faults of a queue that do not depend on its packets: a fault, an exception, a destroyed queue, an engine, positions,
// a doorbell.
#include "../core/page.hpp"
#include "../device/product.hpp"
#include "../kfd/abi.hpp"
#include "../packets/overlap.hpp"
#include "case.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace sdma { inline namespace v0_3 { namespace doctor {
namespace {

/// How many engines a GPU has if that is not known: those of MI300X.
constexpr std::uint32_t kEngines = product_of(90402u)->host_engines + product_of(90402u)->xgmi_engines;
constexpr auto kMapIt =
    "map the memory for this GPU before the packet is submitted, and keep it mapped until the completion was seen";

/// KFD's exception codes; bit n - 1 of the status is the exception with code n.
struct ExceptionCode {
  std::uint32_t code;
  std::string_view name;
  HangClass what;
};
constexpr ExceptionCode kExceptions[] = {
    {1, "queue wave abort", HangClass::fault},
    {2, "queue wave trap", HangClass::fault},
    {4, "queue wave illegal instruction", HangClass::fault},
    {5, "queue wave memory violation", HangClass::fault},
    {6, "queue wave aperture violation", HangClass::fault},
    {30, "queue preemption error", HangClass::unknown},
    {32, "device queue delete", HangClass::destroyed},
    {33, "device memory violation", HangClass::fault},
    {34, "device RAS error", HangClass::fault},
    {35, "device fatal halt", HangClass::fault},
    {49, "process device remove", HangClass::fault},
};

class StateExaminer {
 public:
  StateExaminer(const Line& line, const Snapshot& s) : line_(line), q_(*line.queue), snapshot_(s) {}

  std::optional<Finding> run() {
    if (q_.rptr_first && q_.rptr && *q_.rptr_first != *q_.rptr) return {};
    f_.queue = line_.index;
    if (line_.head < line_.packets.size()) at(line_.head);
    if (faulted() || page_fault() || destroyed() || no_engine() || positions()) return std::move(f_);
    return {};
  }

 private:
  void at(std::size_t packet) {
    const auto& p = line_.packets[packet];
    f_.at = Place{line_.index, p.position, packet_text(p.view)};
  }
  bool is(HangClass what, Basis basis, std::string to_do) {
    f_.what = what;
    f_.basis = basis;
    f_.to_do = std::move(to_do);
    return true;
  }
  static std::string from(Source s) { return fmt::format("the {}", name(s)); }

  /// The packet near rptr that touches the page of an address.
  std::optional<std::size_t> packet_that_touches(GpuVa va) const {
    constexpr std::size_t kSearched = 32;
    const Region page{.va = GpuVa{va.value / detail::kPage * detail::kPage}, .bytes = detail::kPage};
    std::optional<std::size_t> found;
    for (auto i = line_.head < kSearched ? 0 : line_.head - kSearched; i < line_.packets.size(); ++i) {
      const auto& v = line_.packets[i].view;
      if (!v.whole()) continue;
      bool touches = false;
      footprint(*v.info, v.dwords, [&](const Region& r) { touches = touches || detail::meet(r, page); });
      // The last packet before rptr, or the first after it: those that may be in flight.
      if (touches) found = i;
      if (found && i >= line_.head) break;
    }
    return found;
  }
  void blame(GpuVa va) {
    if (const auto i = packet_that_touches(va)) {
      at(*i);
      say(f_, Basis::inferred, fmt::format("This packet touches the page of {:#x}.", va.value),
          "the footprints of the packets around rptr");
    } else {
      say(f_, Basis::seen, fmt::format("No packet around rptr touches the page of {:#x}.", va.value),
          "the dwords of the ring");
    }
  }

  bool faulted() {
    if (q_.fault && (*q_.fault || !q_.fault_text.empty())) {
      const auto& fault = *q_.fault;
      say(f_, Basis::seen,
          fmt::format("The engine stopped the queue: {}.", q_.fault_text.empty() ? describe(fault) : q_.fault_text),
          from(q_.fault.from));
      bool found = false;
      if (fault.anonymous) blame(fault.va);
      else
        for (std::size_t i = 0; i < line_.packets.size() && !found; ++i)
          if (line_.packets[i].position == fault.position) {
            at(i);
            found = true;
          }
      switch (fault.kind) {
        case FaultKind::none:  // for a reason that has no class
          return is(HangClass::unknown, Basis::guessed, "correct what the engine reports, and create the queue again");
        case FaultKind::unknown_packet:
          if (found) return false;  // the packets say more
          return is(HangClass::unknown_opcode, Basis::seen, "look for the code that writes this ring at that position");
        case FaultKind::truncated_packet:
          if (found) return false;
          return is(HangClass::wptr_inside_packet, Basis::seen, "store wptr in bytes, after whole packets");
        case FaultKind::poll_timeout:
          return is(HangClass::poll_expired, Basis::seen,
                    "let polls retry forever (retry=forever), and put the deadline on the host's wait");
        case FaultKind::bad_doorbell:
          return is(fault.rule == "alignment" ? HangClass::wptr_inside_packet : HangClass::overrun, Basis::seen,
                    "ring the byte position that was stored to wptr");
        default: return is(HangClass::fault, Basis::seen, kMapIt);
      }
    }
    if (!q_.exceptions || *q_.exceptions == 0) return false;
    for (const auto& e : kExceptions) {
      if ((*q_.exceptions & kfd::exception_bit(e.code)) == 0) continue;
      say(f_, Basis::seen, fmt::format("The driver reports the exception \"{}\" (code {}).", e.name, e.code),
          from(q_.exceptions.from));
      if (e.what == HangClass::unknown) continue;
      return is(
          e.what, Basis::seen,
          "read the kernel's log for the address of the fault; create the queue again, because its state is lost");
    }
    return false;
  }

  /// A page fault of the process. After one, the driver runs no queue of the process on that GPU any more.
  bool page_fault() {
    if (!has_work()) return false;
    const auto here = [&](const PageFault& p) { return !p.gpu || !q_.gpu || p.gpu.value == q_.gpu.value; };
    const auto& all = snapshot_.page_faults;
    const auto own =
        std::find_if(all.begin(), all.end(), [&](auto& p) { return here(p) && packet_that_touches(p.page); });
    auto p = own != all.end() ? own : std::find_if(all.begin(), all.end(), here);
    if (p == all.end()) return false;
    // Whose queue this is is not known: a fault of another process says nothing about it.
    const auto others = [&](const PageFault& f) {
      return here(f) && (f.process != p->process || (f.from == p->from && f.origin != p->origin));
    };
    if (own == all.end() && std::any_of(all.begin(), all.end(), others)) return false;
    say(f_, Basis::seen, fmt::format("The driver reports a page fault at {}.", in_words(*p)), p->from);
    blame(p->page);
    if (own != all.end()) return is(HangClass::fault, Basis::seen, kMapIt);
    say(f_, Basis::inferred, "After a page fault, no queue of the process runs on that GPU any more.",
        "the driver evicts all of them");
    return is(HangClass::fault, p->gpu && q_.gpu ? Basis::inferred : Basis::guessed,
              "find the queue whose packet touches that page; this one only stands with it");
  }

  bool has_work() const {
    return (q_.rptr && q_.wptr && *q_.rptr != *q_.wptr) || (q_.rptr && q_.doorbell && *q_.doorbell > *q_.rptr);
  }

  bool destroyed() {
    if (!q_.destroyed || !*q_.destroyed || !has_work()) return false;
    say(f_, Basis::seen, fmt::format("{} was destroyed while packets were pending.", q_.name), from(q_.destroyed.from));
    say(f_, Basis::inferred, "No engine will execute these packets.", "the driver removes a destroyed queue");
    return is(HangClass::destroyed, Basis::seen, "wait for the last completion of a queue before you destroy it");
  }

  bool no_engine() {
    if (!q_.engine || !has_work()) return false;
    const auto n = q_.engines ? *q_.engines : kEngines;
    if (q_.engine.value.value < n) return false;
    say(f_, q_.engines ? Basis::seen : Basis::inferred,
        fmt::format("The queue is on engine {}, but its GPU has the engines 0 to {}.", q_.engine.value.value, n - 1),
        q_.engines ? from(q_.engines.from) : "MI300X has 16 engines");
    return is(HangClass::no_such_engine, q_.engines ? Basis::seen : Basis::inferred,
              "choose the engine with Topology::engine_for, or let the driver choose it");
  }

  /// Positions, apart from a doorbell that was not rung: an engine may be short of it.
  bool positions() {
    if (!q_.rptr || !q_.wptr) return false;
    const auto r = *q_.rptr, w = *q_.wptr;
    constexpr auto kOneOwner =
        "a ring has one owner: look for a second producer, or for code that computes free space from an rptr that it "
        "did not load again";
    if (w % 4 != 0) {
      say(f_, Basis::seen, fmt::format("wptr is {:#x}, which is not a multiple of 4: it lies inside a dword.", w),
          from(q_.wptr.from));
      return is(HangClass::wptr_inside_packet, Basis::seen, "store wptr in bytes, after whole packets");
    }
    if (q_.positions_wrap) return false;
    if (q_.reserved && *q_.reserved > r && line_.bytes != 0 && *q_.reserved - r >= line_.bytes) {
      say(f_, Basis::seen,
          fmt::format(
              "The producer has reserved up to {:#x}, which is {:#x} bytes ahead of rptr {:#x}, but the ring has "
              "{:#x}.",
              *q_.reserved, *q_.reserved - r, r, line_.bytes),
          from(q_.reserved.from));
      return is(HangClass::overrun, Basis::seen, kOneOwner);
    }
    if (line_.bytes != 0 && w > r && w - r >= line_.bytes) {
      say(f_, Basis::seen,
          fmt::format("wptr {:#x} is {:#x} bytes ahead of rptr {:#x}, but the ring has {:#x}: packets were overwritten "
                      "before the engine read them.",
                      w, w - r, r, line_.bytes),
          from(q_.wptr.from));
      return is(HangClass::overrun, Basis::seen, kOneOwner);
    }
    constexpr auto kOrder = "store wptr in memory before every doorbell: the driver restarts a queue from it";
    if (q_.doorbell && *q_.doorbell > w) {
      say(f_, Basis::seen,
          fmt::format("The doorbell was rung with {:#x}, but wptr in memory is {:#x}.", *q_.doorbell, w),
          from(q_.doorbell.from));
      return is(HangClass::wptr_not_stored, Basis::seen, rung_for_another() ? kOwnDoorbell : kOrder);
    }
    if (r > w) {
      if (q_.doorbell && *q_.doorbell < r) {
        say(f_, Basis::seen,
            fmt::format(
                "rptr {:#x} is ahead of wptr {:#x} and of the doorbell {:#x}: the positions contradict each other.", r,
                w, *q_.doorbell),
            from(q_.rptr.from));
        return is(HangClass::overrun, Basis::guessed, kOneOwner);
      }
      say(f_, Basis::inferred,
          fmt::format(
              "The engine has read up to {:#x}, so the doorbell was rung with at least that, but wptr in memory is "
              "{:#x}.",
              r, w),
          "an engine reads only up to its doorbell");
      return is(HangClass::wptr_not_stored, Basis::inferred, rung_for_another() ? kOwnDoorbell : kOrder);
    }
    if (q_.committed && *q_.committed > w) {
      say(f_, Basis::seen,
          fmt::format("The producer has published up to {:#x}, but wptr in memory is {:#x}.", *q_.committed, w),
          from(q_.committed.from));
      return is(HangClass::wptr_not_stored, Basis::seen, kOrder);
    }
    return false;
  }

  /// The producer of another queue has rung this one's doorbell.
  bool rung_for_another() {
    for (const auto& other : snapshot_.queues) {
      if (&other == &q_ || !rings_doorbell_of(other, q_)) continue;
      say(f_, Basis::inferred,
          fmt::format(
              "{:#x} is the wptr of {}, whose own engine was not sent there: its producer has rung this doorbell.",
              *other.wptr, other.name),
          "the positions of both queues");
      return true;
    }
    return false;
  }

  const Line& line_;
  const QueueSnapshot& q_;
  const Snapshot& snapshot_;
  Finding f_;
};

}  // namespace

std::optional<Finding> examine_state(const Line& line, const Snapshot& s) { return StateExaminer{line, s}.run(); }

}}}  // namespace sdma::v0_3::doctor
