// SPDX-License-Identifier: MIT
#include "sdma/engine/fault.hpp"

#include "sdma/packets/catalogue.hpp"

#include <fmt/format.h>

namespace sdma { inline namespace v0_3 {

namespace {

constexpr const char* kVmFault =
    "a VM fault, which evicts all queues of the process on this GPU and raises a memory event";

struct Row {
  FaultKind kind;
  const char *name, *on_hardware;
};
constexpr Row kRows[] = {
    {FaultKind::none, "none", "nothing"},
    {FaultKind::unmapped, "unmapped", kVmFault},
    {FaultKind::read_only, "read_only", kVmFault},
    {FaultKind::unknown_packet, "unknown_packet", "no event: the queue stalls"},
    {FaultKind::truncated_packet, "truncated_packet", "no event: the engine waits for the missing dwords"},
    {FaultKind::privileged, "privileged",
     "at most a line in the kernel's log: the queue stalls, or continues without it"},
    {FaultKind::misaligned, "misaligned", "not documented: low bits of the address may be ignored"},
    {FaultKind::bad_field, "bad_field", "not documented"},
    {FaultKind::overlap, "overlap", "not documented: the destination may hold anything"},
    {FaultKind::unsupported, "unsupported", "nothing: hardware supports it"},
    {FaultKind::poll_timeout, "poll_timeout",
     "an interrupt that the kernel prints at debug level; whether the queue continues is not known"},
    {FaultKind::bad_ib, "bad_ib", "not documented"},
    {FaultKind::bad_doorbell, "bad_doorbell", "an interrupt, or a write pointer that moves backwards, or nothing"},
    {FaultKind::driver_error, "driver_error", "nothing: it is an error of CUDA's driver, or one that ROCr reports"},
    {FaultKind::reset, "reset", "an exception event: all queues of the process on this GPU are lost"},
};
constexpr Row row(FaultKind k) noexcept {
  for (const auto& r : kRows)
    if (r.kind == k) return r;
  return {k, "unknown", "not documented"};
}

}  // namespace

std::string_view name(FaultKind k) noexcept { return row(k).name; }
std::string_view on_hardware(FaultKind k) noexcept { return row(k).on_hardware; }

namespace {

std::string what(const Fault& f) {
  const auto verb = f.access == Access::read ? "read" : f.access == Access::write ? "write" : "read and write";
  const auto field =
      f.field.empty() ? std::string{} : fmt::format(" ({}{}{})", f.field, f.rule.empty() ? "" : ": ", f.rule);
  switch (f.kind) {
    case FaultKind::unmapped: return fmt::format("cannot {} {:#x}: not mapped for this GPU", verb, f.va.value);
    case FaultKind::read_only: return fmt::format("cannot {} {:#x}: mapped for reading only", verb, f.va.value);
    case FaultKind::unknown_packet: return "does not begin a packet that this engine executes";
    case FaultKind::truncated_packet:
      return f.depth ? "the indirect buffer ends inside this packet" : "the doorbell lies inside this packet";
    case FaultKind::privileged: return fmt::format("is reserved for the kernel{}", field);
    case FaultKind::misaligned: return fmt::format("has a misaligned address{}", field);
    case FaultKind::bad_field:
      return fmt::format("has a field out of range or breaks a rule{}",
                         f.field.empty() && !f.rule.empty() ? fmt::format(" ({})", f.rule) : field);
    case FaultKind::overlap:
      return fmt::format("source and destination overlap, or the destination overlaps itself, at {:#x}", f.va.value);
    case FaultKind::unsupported:
      if (f.field.empty() && !f.rule.empty()) return fmt::format("this device does not support it: {}", f.rule);
      return fmt::format("the software engine does not support it{}", field);
    case FaultKind::poll_timeout: return fmt::format("expired before the word at {:#x} satisfied it", f.va.value);
    case FaultKind::bad_ib:
      return fmt::format("the indirect buffer at {:#x} {}", f.va.value,
                         f.rule == "depth"         ? "is nested too deeply: the software engine follows four levels"
                         : f.rule == "one-mapping" ? "does not lie in one mapping of this GPU"
                         : f.rule == "disabled"    ? "is not executed: the queue has them disabled"
                                                   : "cannot be followed");
    case FaultKind::bad_doorbell:
      return f.rule == "alignment"     ? "is not a multiple of 4"
             : f.rule == "backwards"   ? "is less than the previous one: positions never go backwards"
             : f.rule == "beyond-ring" ? "is ahead of rptr by more than the size of the ring"
                                       : "is not a position of this ring";
    case FaultKind::driver_error: return fmt::format("the driver reported {}, and the GPU's queues are lost", f.rule);
    case FaultKind::reset: return "the engine or the GPU was reset, and its queues are lost";
    case FaultKind::none: break;
  }
  return "no fault";
}

}  // namespace

std::string describe(const Fault& f) {
  if (!f) return "no fault";
  if (f.anonymous)
    return fmt::format(
        "gpu {}: {}", f.gpu.value,
        f.kind == FaultKind::unmapped    ? fmt::format("an access to {:#x}, which is not mapped", f.va.value)
        : f.kind == FaultKind::read_only ? fmt::format("a store to {:#x}, which is read-only", f.va.value)
                                         : what(f));
  std::string subject = "doorbell";
  if (f.kind != FaultKind::bad_doorbell) {
    const auto* info = catalogue(f.generation).identify({f.dwords.data(), f.dword_count});
    subject = info ? label(*info) : f.dword_count ? fmt::format("dword {:#010x}", f.dwords.front()) : "packet";
  }
  const auto in_buffer =
      f.depth ? fmt::format(" in its indirect buffer (depth {}) at {:#x}", f.depth, f.offset) : std::string{};
  return fmt::format("gpu {} engine {} queue {} at {:#x}{}: {}: {}", f.gpu.value, f.engine.value, f.queue, f.position,
                     in_buffer, subject, what(f));
}

}}  // namespace sdma::v0_3
