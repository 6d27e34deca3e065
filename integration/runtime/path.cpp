// SPDX-License-Identifier: MIT
#include "path.hpp"

#include "divide.hpp"

#include "sdma/sync/recipes.hpp"
#include "sdma/sync/wait.hpp"

#include <algorithm>
#include <bit>

namespace runtime {

using namespace sdma;

namespace {

/// No command is shorter: a copy or a fill, a count and a completion.
constexpr std::size_t kLeastDwords = sdma::dwords_of<Fill, Fence, Fence>();

}  // namespace

CopyPath::CopyPath(const Engine& engine, const RingMemory& m, const Signal& progress)
    : engine_(engine), progress_(progress) {
  restart(m);
}

void CopyPath::restart(const RingMemory& m) {
  ring_.emplace(m);
  // Commands that the engine has read and not completed need records, too; if they are many, `open` waits for them.
  const Record known{.total = last_ == 0 ? 0 : record(last_).total};
  records_.assign(std::bit_ceil(std::max<std::size_t>(m.dwords.size() / kLeastDwords, 2) * 2), known);
  base_ = last_;
  progress_.set(low_half(last_));
  stopped_.store(false, std::memory_order_release);
}

std::uint64_t CopyPath::completed_locked() const noexcept {
  // Fewer than 2^32 commands are pending, so the low half is enough.
  return last_ - static_cast<std::uint32_t>(low_half(last_) - low_half(progress_.load()));
}
std::uint64_t CopyPath::completed() const noexcept {
  const std::lock_guard lock(mutex_);
  return completed_locked();
}
std::uint64_t CopyPath::pending_bytes() const noexcept {
  const std::lock_guard lock(mutex_);
  return record(last_).total - record(completed_locked()).total;
}

Result<CopyPath::Open> CopyPath::try_open(std::size_t dwords, const Record& r, std::uint64_t bytes) noexcept {
  const std::lock_guard lock(mutex_);
  if (stopped_.load(std::memory_order_relaxed)) return Errc::stopped;
  if (last_ + 1 - completed_locked() >= records_.size()) return Errc::no_space;
  const auto slot = ring_->reserve(dwords);
  if (!slot) return slot.error();
  writers_.fetch_add(1, std::memory_order_relaxed);
  auto& next = records_[(last_ + 1) & (records_.size() - 1)];
  next = r;
  next.total = record(last_).total + bytes;
  next.end = slot->end;
  return Open{*slot, ++last_};
}

Result<CopyPath::Open> CopyPath::open(std::size_t dwords, const Record& r, std::uint64_t bytes, Deadline d) noexcept {
  dwords = std::max(dwords, engine_.least);
  for (Backoff backoff;;) {
    const auto o = try_open(dwords, r, bytes);
    if (o || o.error() != Errc::no_space) return o;
    if (!backoff.step(d)) return Errc::timed_out;
  }
}

void CopyPath::close(const Open& o, const AnyWriter& w) noexcept {
  ring_->publish(o.slot, w.position_dwords());
  writers_.fetch_sub(1, std::memory_order_release);
}

Result<std::uint64_t> CopyPath::submit(const Command& command, Deadline d) noexcept {
  auto c = command;
  c.count = count(0);
  const auto dwords = dwords_of(engine_, c);
  if (!dwords) return dwords.error();
  const auto most = ring_->max_slot_anywhere();
  if (*dwords <= most || most == 0) return submit_one(c, *dwords, false, d);
  Result<std::uint64_t> number = Errc::too_large;
  const auto error = each_part(engine_, c, most, [&](const Command& part, bool last) {
    const auto n = dwords_of(engine_, part);
    number = n ? submit_one(part, *n, !last, d) : n.error();
    return number ? Errc::ok : number.error();
  });
  if (error != Errc::ok) return error;
  return number;
}

Result<std::uint64_t> CopyPath::submit_one(const Command& command, std::size_t dwords, bool drain,
                                           Deadline d) noexcept {
  auto c = command;
  const auto o = open(dwords, {.signal = c.out.handle, .drain = drain}, bytes_of(c), d);
  if (!o) return o.error();
  c.count = count(o->number);
  AnyWriter w{o->slot.dwords, {engine_.generation}};
  const auto error = encode(w, engine_, c);
  if (error != Errc::ok) {
    // The number is taken, so it is all that the engine gets.
    w = AnyWriter{o->slot.dwords, {engine_.generation}};
    complete_with_fence(w, c.count.word, c.count.value);
    const std::lock_guard lock(mutex_);
    records_[o->number & (records_.size() - 1)].drain = true;
  }
  close(*o, w);
  if (error != Errc::ok) return error;
  return o->number;
}

Errc CopyPath::wait(std::uint64_t number, Deadline d) const noexcept {
  for (Backoff backoff;;) {
    {
      const std::lock_guard lock(mutex_);
      if (number <= base_) return Errc::stopped;
      if (completed_locked() >= number) return Errc::ok;
    }
    if (stopped_.load(std::memory_order_acquire)) return Errc::stopped;
    if (!backoff.step(d)) return Errc::timed_out;
  }
}

Errc CopyPath::wait_idle(Deadline d) noexcept {
  const auto o = open(sdma::dwords_of<Fence>(), {.drain = true}, 0, d);
  if (!o) return o.error();
  AnyWriter w{o->slot.dwords, {engine_.generation}};
  complete_with_fence(w, count(o->number).word, count(o->number).value);
  close(*o, w);
  return wait(o->number, d);
}

Errc CopyPath::stop(Deadline d) noexcept {
  {
    const std::lock_guard lock(mutex_);
    stopped_.store(true, std::memory_order_release);
  }
  for (Backoff backoff; !quiet();)
    if (!backoff.step(d)) return Errc::timed_out;
  read_ = ring_->positions().read;
  return Errc::ok;
}

std::uint64_t CopyPath::first_unfinished() const noexcept {
  const auto moved = completed();
  return moved > base_ && read_ < record(moved).end ? moved : moved + 1;
}

}  // namespace runtime
