// SPDX-License-Identifier: MIT
// What each packet becomes: commands of the queue's stream, or work of the device's thread. In the order of Packets.
#include "cuda_node.hpp"
#include "cuda_queue.hpp"
#include "kernels.hpp"
#include "sdma/core/atomic_ref.hpp"

#include <algorithm>
#include <cstring>

namespace sdma { inline namespace v0_3 { namespace detail::cuda {
namespace {

constexpr std::string_view kCrosses = "its bytes do not lie in one allocation";
constexpr std::uint64_t kMostPitch = 0x7fffffff;  // of a 2D copy
constexpr std::uint32_t kWrittenDwords = 8;       // of a WRITE that becomes written values
constexpr std::uint64_t kThreadPart = 4u << 20;   // what the thread moves before it serves other queues

/// The clock of TIMESTAMP packets, for those of an engine's own clock: the host's real time is what GPUs count.
std::uint64_t ticks_now(void*) noexcept {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  return static_cast<std::uint64_t>(std::chrono::duration_cast<std::chrono::nanoseconds>(now).count()) / 10;
}

/// `n` rows of a box from row `at` on.
GpuVa row(const Region& r, std::uint64_t at) noexcept {
  return r.va + at / r.rows * r.slice_pitch + at % r.rows * r.pitch;
}

}  // namespace

/// Everything in the thread, with the library's own execution of the packet: for packets whose memory is the host's.
template <class P> Issued CudaQueue::by_thread(const P& p) noexcept {
  bool host = true;
  footprint(p, [&](const Region& r) {
    host = host && (r.bytes == 0 || (on_host(r.va, r.access) && one_allocation(r.va, hull(r), r.access)));
  });
  if (!host) return refuse("its words must be in host memory, in one allocation: streams cannot do this");
  if (!thread_is_next()) return Issued::thread;
  Machine m{.memory = reader_, .state = state_, .ticks = {.now = ticks_now}, .engine = parts_.engine};
  if constexpr (Divisible<P>) {
    while (at_ < work(p)) {
      const auto end = std::min(at_ + kThreadPart, work(p));
      if (const auto o = execute(p, m, Part{at_, end}); o != Outcome::done) return outcome(o);
      at_ = end;
      if (at_ < work(p)) return Issued::thread;
    }
    return Issued::done;
  } else {
    const auto o = execute(p, m);
    outcome_ = o;
    return outcome(o);
  }
}

Issued CudaQueue::outcome(Outcome o) noexcept {
  if (o == Outcome::not_yet) return Issued::thread;
  if (o != Outcome::lost) return Issued::done;
  why_ = {.kind = FaultKind::unmapped};
  return Issued::refused;
}

/// The packets that have no overload of their own: by the thread if software executes them, otherwise never admitted.
template <class P> Issued CudaQueue::issue(const P& p) noexcept {
  if constexpr (kRefused<P>) return refuse("software does not execute it");
  else return by_thread(p);
}

Issued CudaQueue::issue(const CopyLinear& p) noexcept {
  if (!one_allocation(p.src, p.bytes, Access::read) || !one_allocation(p.dst, p.bytes, Access::write))
    return refuse(kCrosses);
  if (!on_host(p.src, Access::read) || !on_host(p.dst, Access::write)) {
    if (!commands_.room(1)) return Issued::room;
    commands_.copy(p.dst, p.src, p.bytes);
    return Issued::done;
  }
  while (at_ < p.bytes) {  // the driver copies between host buffers while its caller waits, so they meet in GPU memory
    if (!commands_.room(2)) return Issued::room;
    const auto n = std::min(p.bytes - at_, Commands::kStagingBytes);
    const auto staging = commands_.parts().staging;
    commands_.copy_alone(staging, p.src + at_, n);
    commands_.copy_alone(p.dst + at_, staging, n);
    at_ += n;
  }
  return Issued::done;
}

Issued CudaQueue::issue(const CopyBroadcast& p) noexcept {
  // `at_` counts the bytes of both copies, so that a full stream does not repeat the first.
  const std::uint64_t bytes = p.bytes, at = at_;
  for (std::uint64_t i = at / bytes; i < 2; ++i) {
    at_ = i == at / bytes ? at % bytes : 0;
    const auto issued = issue(CopyLinear{.src = p.src, .dst = i == 0 ? p.dst1 : p.dst2, .bytes = p.bytes});
    if (issued != Issued::done) {
      at_ += i * bytes;
      return issued;
    }
  }
  return Issued::done;
}

Issued CudaQueue::issue(const CopyDirtyPage& p) noexcept {
  return issue(CopyLinear{.src = p.src, .dst = p.dst, .bytes = p.bytes});
}

Issued CudaQueue::issue(const CopySwap& p) noexcept {
  if (!one_allocation(p.a, p.bytes, Access::read_write) || !one_allocation(p.b, p.bytes, Access::read_write))
    return refuse(kCrosses);
  if (on_host(p.a, Access::read) && on_host(p.b, Access::read)) return by_thread(p);
  while (at_ < p.bytes) {
    if (!commands_.room(3)) return Issued::room;
    const auto n = std::min(p.bytes - at_, Commands::kStagingBytes);
    const auto staging = commands_.parts().staging;
    commands_.copy_alone(staging, p.a + at_, n);
    commands_.copy_alone(p.a + at_, p.b + at_, n);
    commands_.copy_alone(p.b + at_, staging, n);
    at_ += n;
  }
  return Issued::done;
}

/// Two boxes of the same rows. `at_` counts rows.
Issued CudaQueue::issue_box(const Region& from, const Region& to) noexcept {
  if (from.bytes == 0) return Issued::done;
  const bool flat = from.rows == 1;  // its slices are the rows
  const std::uint64_t rows = flat ? from.slices : from.rows, all = std::uint64_t{from.rows} * from.slices;
  const auto src_pitch = flat ? from.slice_pitch : from.pitch, dst_pitch = flat ? to.slice_pitch : to.pitch;
  const bool regular = std::min(src_pitch, dst_pitch) >= from.bytes;
  const bool crosses_link = on_host(from.va, Access::read) != on_host(to.va, Access::write);
  while (at_ < all) {
    if (!commands_.room(4)) return Issued::room;
    Copy2D c{.src = row(from, at_).value,
             .src_pitch = src_pitch,
             .dst = row(to, at_).value,
             .dst_pitch = dst_pitch,
             .width = from.bytes,
             .height = regular ? std::min<std::uint64_t>(rows - at_ % rows, 1u << 20) : 1};
    // Nothing was measured for rows within GPUs: they are strided, if they can be.
    const bool can_be_2d = c.height > 1 && std::max(src_pitch, dst_pitch) <= kMostPitch;
    const bool strided = can_be_2d && !crosses_link;
    if (!strided) c.height = std::min<std::size_t>(c.height, HeldBoxes::kRows);
    if (!one_allocation(GpuVa{c.src}, c.width + (c.height - 1) * src_pitch, Access::read) ||
        !one_allocation(GpuVa{c.dst}, c.width + (c.height - 1) * dst_pitch, Access::write))
      return refuse(kCrosses);
    if (strided) commands_.copy_2d(c);
    else if (c.height == 1) commands_.copy(GpuVa{c.dst}, GpuVa{c.src}, c.width);
    else commands_.copy_rows(c, can_be_2d && !held_up());
    at_ += c.height;
  }
  return Issued::done;
}

Issued CudaQueue::issue(const CopySubwindow& p) noexcept {
  const auto from = source(p), to = destination(p);
  if (on_host(from.va, Access::read) && on_host(to.va, Access::write)) return by_thread(p);
  return issue_box(from, to);
}

Issued CudaQueue::issue(const CopyStruct& p) noexcept {
  if (p.count == 0) return Issued::done;
  auto array = table(p), flat = linear(p);
  if (on_host(array.va, array.access) && on_host(flat.va, flat.access)) return by_thread(p);
  flat.rows = p.count;
  flat.bytes = flat.pitch = array.bytes;
  return p.detile ? issue_box(array, flat) : issue_box(flat, array);
}

Issued CudaQueue::issue(const Write& p) noexcept {
  if (!one_allocation(p.dst, p.data.size_bytes(), Access::write)) return refuse(kCrosses);
  if (p.data.size() <= kWrittenDwords) {
    if (!commands_.room(kWrittenDwords)) return Issued::room;
    for (std::size_t i = 0; i < p.data.size(); ++i) commands_.write(p.dst + 4 * i, p.data[i]);
    return Issued::done;
  }
  const bool host = on_host(p.dst, Access::write);
  while (at_ < p.data.size_bytes()) {
    if (!commands_.room(2)) return Issued::room;
    const auto n = std::min<std::uint64_t>(p.data.size_bytes() - at_, Commands::kPayloadBytes);
    auto* const payload = commands_.payload(n);
    if (!payload) return Issued::room;
    std::memcpy(payload, reinterpret_cast<const std::byte*>(p.data.data()) + at_, n);
    const GpuVa from{reinterpret_cast<std::uintptr_t>(payload)};
    if (host) commands_.copy_alone(commands_.parts().staging, from, n);
    commands_.copy_alone(p.dst + at_, host ? commands_.parts().staging : from, n);
    commands_.payload_used();
    at_ += n;
  }
  return Issued::done;
}

Issued CudaQueue::issue(const Indirect& p) noexcept {
  if (p.dwords != 0 && !on_host(p.base, Access::read)) return refuse("an indirect buffer must be in host memory");
  outcome_ = Outcome::call;
  return Issued::done;
}

Issued CudaQueue::issue(const Fence& p) noexcept {
  if (!commands_.room(1)) return Issued::room;
  commands_.write(p.addr, p.value);
  return Issued::done;
}

Issued CudaQueue::issue(const Trap& p) noexcept {
  if (interrupts_.full() || !commands_.room(1)) return Issued::room;
  commands_.send();
  interrupts_.push({.command = commands_.issued(), .context = p.context});
  commands_.report();
  return Issued::done;
}

/// Is CUDA's wait the same as this poll, for every value that the word can be expected to have?
bool CudaQueue::stream_can_wait(const PollMem& p) noexcept {
  if (!parts_.stream_waits || p.mask != ~std::uint32_t{0} || p.retry != Current::kForever) return false;
  if (waits_.full()) drop_met_waits();
  if (waits_.full()) return false;
  const bool host = on_host(p.addr, Access::read);
  if (!host && reader_.owner(p.addr, Access::read) != parts_.gpu.value) return false;
  if (p.func == Compare::eq) return true;
  const bool grows = p.func == Compare::ge || (p.func == Compare::gt && p.reference != ~std::uint32_t{0});
  if (!host || !grows) return false;
  // CUDA's compare is that of sDMA as long as the word stays less than 2^31 ahead of the bound: `watch_polls` looks.
  const std::uint32_t bound = p.reference + (p.func == Compare::gt);
  auto* const at = reinterpret_cast<std::uint32_t*>(reader_.at(p.addr, 4, Access::read));
  return bound <= 0x80000000 && atomic_ref(*at).load(std::memory_order_acquire) < 0x80000000;
}

Issued CudaQueue::issue(const PollMem& p) noexcept {
  if (must_hold({.func = p.func, .reference = p.reference, .mask = p.mask})) return Issued::done;
  if (!stream_can_wait(p)) return poll_by_thread(p);
  if (!commands_.room(1)) return Issued::room;
  const bool host = on_host(p.addr, Access::read), equal = p.func == Compare::eq;
  const std::uint32_t bound = p.reference + (p.func == Compare::gt);
  commands_.wait(p.addr, bound, equal ? kWaitEqual : kWaitGreaterOrEqual);
  waits_.push({.command = commands_.issued(),
               .word = host ? reinterpret_cast<const std::uint32_t*>(reader_.at(p.addr, 4, Access::read)) : nullptr,
               .bound = bound,
               .equal = equal});
  return Issued::done;
}

Issued CudaQueue::poll_by_thread(const PollMem& p) noexcept {
  if (!thread_is_next()) return Issued::thread;
  std::uint32_t value = 0;
  if (on_host(p.addr, Access::read)) {
    auto* const at = reader_.at(p.addr, 4, Access::read);
    value = atomic_ref(*reinterpret_cast<std::uint32_t*>(at)).load(std::memory_order_acquire);
  } else {  // the mapping stays while this Section lasts
    const std::lock_guard own(gpu_.control());
    auto* const bounce = gpu_.bounce(0);
    if (!gpu_.copy_now(reinterpret_cast<Pointer>(bounce), p.addr.value, sizeof value, Deadline::in(kAnswer)))
      return Issued::thread;
    std::memcpy(&value, bounce, sizeof value);
  }
  if (holds(value & p.mask, p.func, p.reference)) return Issued::done;
  if (p.retry == Current::kForever || ++at_ < std::max<std::uint64_t>(p.retry, 1)) return Issued::thread;
  why_ = {.kind = FaultKind::poll_timeout};
  why_.va = p.addr;
  return Issued::refused;
}

/// What the host has stored to shadows goes to the GPU.
Issued CudaQueue::issue(const HdpFlush&) noexcept {
  if (!thread_is_next()) return Issued::thread;
  (void)node_.push_shadows(parts_.gpu);
  return Issued::done;
}

Issued CudaQueue::issue(const Atomic& p) noexcept {
  const bool host = on_host(p.addr, Access::read_write);
  if (host && !gpu_.host_atomics()) return by_thread(p);
  const auto kernel = kernel_of(p.op, p.value);
  if (host && (!kernel.name || p.loop)) return by_thread(p);
  if (!kernel.name) return refuse("no kernel does this atomic operation");
  if (p.loop) return refuse("a looping atomic must be on host memory");
  if (!commands_.room(1)) return Issued::room;
  commands_.launch(gpu_.kernel(kernel.name), {p.addr.value, kernel.operand, p.compare});
  return Issued::done;
}

Issued CudaQueue::issue(const Fill& p) noexcept {
  const auto bytes = bytes_written(p);
  if (!one_allocation(p.dst, bytes, Access::write)) return refuse(kCrosses);
  if (!commands_.room(2)) return Issued::room;
  switch (p.unit) {
    case FillUnit::byte: commands_.fill_8(p.dst, static_cast<std::uint8_t>(p.data), bytes); break;
    case FillUnit::half:
      if (bytes >= 2) commands_.fill_16(p.dst, static_cast<std::uint16_t>(p.data), bytes / 2);
      if (bytes % 2 != 0) commands_.fill_8(p.dst + (bytes - 1), static_cast<std::uint8_t>(p.data), 1);
      break;
    case FillUnit::dword: commands_.fill_32(p.dst, p.data, bytes / 4); break;
  }
  return Issued::done;
}

Issued CudaQueue::issue(const FillMulti& p) noexcept {
  const auto to = destination(p);
  while (at_ < to.rows && to.bytes != 0) {
    if (!commands_.room(1)) return Issued::room;
    const bool whole = to.rows > 1 && to.pitch >= to.bytes && to.pitch <= kMostPitch;
    const auto n = whole ? std::min<std::uint64_t>(to.rows - at_, 1u << 20) : 1;
    const auto dst = to.va + at_ * to.pitch;
    if (!one_allocation(dst, to.bytes + (n - 1) * to.pitch, Access::write)) return refuse(kCrosses);
    if (n == 1) commands_.fill_8(dst, 0, to.bytes);
    else commands_.clear_2d(dst, to.pitch, to.bytes, n);
    at_ += n;
  }
  return Issued::done;
}

Issued CudaQueue::issue(const Timestamp& p) noexcept {
  if (!commands_.room(1)) return Issued::room;
  commands_.launch(gpu_.timestamp(), {p.addr.value, 0, 0});
  return Issued::done;
}

Issued CudaQueue::issue_current() noexcept {
  auto issued = Issued::done;
  typed(front_.current(), reader_, [&](const auto& p) {
    issued = issue(p);
    return Outcome::done;
  });
  return issued;
}

}}}  // namespace sdma::v0_3::detail::cuda
