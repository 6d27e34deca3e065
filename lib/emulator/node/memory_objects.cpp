// SPDX-License-Identifier: MIT
#include "memory_objects.hpp"

#include "../node_options.hpp"
#include "user.hpp"

#include "../../engine/execute.hpp"

#include <unistd.h>
#include <array>
#include <atomic>
#include <cstdio>
#include <ctime>

namespace sdma::emulator {
namespace {

constexpr std::uint32_t kTypes = kfd::kVram | kfd::kGtt | kfd::kUserptr | kfd::kDoorbell | kfd::kMmioRemap;

/// Says once why host memory is refused, because many programs report a bare ENOMEM, or crash.
void report_limit(const char* which, std::uint64_t bytes, std::uint64_t used, std::uint64_t limit,
                  const char* advice) noexcept {
  static std::atomic<bool> said{false};
  if (said.exchange(true)) return;
  constexpr double kMiB = 1 << 20;
  std::fprintf(
      stderr,
      "sdma emulator: no host memory for GPUs: %.1f MiB in addition to %.1f MiB in use would exceed the driver's "
      "limit %s, which is %.1f MiB on this machine%s\n",
      static_cast<double>(bytes) / kMiB, static_cast<double>(used) / kMiB, which, static_cast<double>(limit) / kMiB,
      advice);
}

}  // namespace

Pages::~Pages() {
  if (source) {
    if (view) Arena::drop(view, info.bytes);
    if (offset != 0) arena.forget(offset);
    let_go(source->fd, info.slot);
  } else if (offset != 0) {
    arena.release(offset);
  }
  const auto at = by_place.find({info.inode, info.offset});
  if (at != by_place.end() && at->second.expired()) by_place.erase(at);
}

Memory::Memory(Arena& a, SharedLimits& s, const SysfsNode& n) : arena_(a), shared_(s), node_(n) {
  std::uint64_t total = 0;
  for (const auto& c : n.topology.cpus) total += c.memory_bytes;
  limits_ = system_limits(total, options().no_system_mem_limit);
  for (std::uint32_t g = 0; g < n.gpus.size(); ++g) {
    gpus_.push_back(std::make_unique<GpuMemory>());
    doorbells_.push_back(a.view(doorbell_offset(g), kfd::kDoorbellBytes));
    registers_.push_back(a.view(register_offset(g), kPage));
  }
  shown_ = reinterpret_cast<Shown*>(a.view(kShownOffset, kPage));
  if (shown_) shown_->pid = static_cast<std::uint64_t>(::getpid());
  shown_queues_ = reinterpret_cast<ShownQueues*>(a.view(kShownQueuesOffset, page_up(sizeof(ShownQueues))));
}

Memory::~Memory() {
  for (auto* d : doorbells_) Arena::drop(d, kfd::kDoorbellBytes);
  for (auto* r : registers_) Arena::drop(r, kPage);
  if (event_page_) Arena::drop(reinterpret_cast<std::byte*>(event_page_), kEventPageBytes);
  if (shown_) Arena::drop(reinterpret_cast<std::byte*>(shown_), kPage);
  if (shown_queues_) Arena::drop(reinterpret_cast<std::byte*>(shown_queues_), page_up(sizeof(ShownQueues)));
}

void Memory::show_fault(std::uint32_t g, GpuVa page) noexcept {
  if (!shown_ || g >= shown_->faults.size() || shown_->faults[g].us != 0) return;
  timespec now{};
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  shown_->faults[g].page = page.value;
  const auto us = static_cast<std::uint64_t>(now.tv_sec) * 1'000'000 + static_cast<std::uint64_t>(now.tv_nsec) / 1000;
  __atomic_store_n(&shown_->faults[g].us, us, __ATOMIC_RELEASE);
}

std::uint32_t Memory::index(std::uint32_t gpu_id) const noexcept {
  std::uint32_t g = 0;
  while (g < node_.gpus.size() && node_.gpus[g].gpu_id != gpu_id) ++g;
  return g;
}

Object* Memory::find(std::uint64_t handle) noexcept {
  const auto it = objects_.find(handle);
  return it == objects_.end() ? nullptr : &it->second;
}

std::uint64_t Memory::available(std::uint32_t g) noexcept {
  shared_.reap();
  const auto all = vram_bytes(g), used = shared_.used(g).vram;
  return used < all ? (all - used) & ~std::uint64_t{(2 << 20) - 1} : 0;
}

Object& Memory::add(Object o) {
  o.handle = std::uint64_t{node_.gpus[o.gpu].gpu_id} << 32 | next_;
  auto& made = objects_.try_emplace(o.handle, std::move(o)).first->second;
  ++next_;
  return made;
}

/// Counts the memory that an object will use. Doorbells and registers use none.
int Memory::charge(const Object& o, Charge* out) noexcept {
  const auto bytes = o.doubled() ? page_up(o.bytes / 2) : o.bytes;
  auto& use = shared_.use(o.gpu);
  const bool vram = (o.flags & kfd::kVram) != 0, program = (o.flags & kfd::kUserptr) != 0;
  const auto used = [&](bool with_userptr) {
    if (vram) return shared_.used(o.gpu).vram;
    MemoryUse all;
    for (std::uint32_t g = 0; g < gpus(); ++g) all += shared_.used(g);
    return all.gtt + (with_userptr ? all.userptr : 0);
  };
  const auto fits = [&](std::uint64_t all, bool with_userptr, const char* which, const char* advice) {
    const auto exceeds = [&] { return used(with_userptr) > all || bytes > all - used(with_userptr); };
    if (!exceeds()) return true;
    shared_.reap();
    if (!exceeds()) return true;
    if (!vram) report_limit(which, bytes, used(with_userptr), all, advice);
    return false;
  };
  const auto most = vram ? vram_bytes(o.gpu) : limits_.all;
  if (!fits(most, true, "for GTT and USERPTR", "; sdma emulate --no-system-mem-limit lifts it")) return ENOMEM;
  if (!vram && !program && !fits(limits_.gtt, false, "for GTT", "")) return ENOMEM;
  Charge made(vram ? use.vram : program ? use.userptr : use.gtt, bytes);
  // Two processes that ask at the same time do not get more than there is.
  if (used(true) > most) return ENOMEM;
  *out = std::move(made);
  return 0;
}

int Memory::create_pages(std::uint64_t bytes, std::uint32_t gpu, std::uint32_t flags, Charge charge,
                         std::shared_ptr<Pages>* out) {
  auto pages = std::make_shared<Pages>(arena_, pages_);
  pages->offset = arena_.allocate(gpu, bytes);
  if (pages->offset == 0) return ENOMEM;
  pages->view = arena_.at(pages->offset);
  pages->info = {.bytes = bytes, .offset = pages->offset, .gpu = gpu, .flags = flags, .inode = arena_.inode()};
  pages_.insert_or_assign({pages->info.inode, pages->offset}, pages);
  pages->charge = std::move(charge);
  if (shown_) pages->shown = Charge((flags & kfd::kVram) != 0 ? shown_->vram[gpu] : shown_->gtt[gpu], bytes);
  *out = std::move(pages);
  return 0;
}

int Memory::share_pages(const ObjectInfo& info, const char* link, std::shared_ptr<Pages>* out) {
  if (const auto at = pages_.find({info.inode, info.offset}); at != pages_.end())
    if (auto known = at->second.lock()) return *out = std::move(known), 0;
  auto pages = std::make_shared<Pages>(arena_, pages_);
  auto& weak = pages_[{info.inode, info.offset}];
  if (info.inode == arena_.inode()) {
    if (!arena_.take_back(info.offset)) return EINVAL;
    pages->offset = info.offset;
    pages->view = arena_.at(info.offset);
  } else {
    auto source = arena_.source(link, info.inode);
    if (!source) return EMFILE;
    if (!hold(source->fd, info)) return EINVAL;
    pages->source = std::move(source);
    pages->info.slot = info.slot;
    pages->view = Arena::view(pages->source->fd, info.offset, info.bytes);
    if (!pages->view) return ENOMEM;
    pages->info.bytes = info.bytes;
    pages->offset = arena_.import(pages->source, info.offset, info.bytes);
  }
  pages->info = info;
  weak = pages;
  *out = std::move(pages);
  return 0;
}

int Memory::allocate(kfd::AllocMemory& a) {
  const auto g = index(a.gpu_id);
  if (g == gpus() || a.bytes == 0 || (a.flags & kTypes) == 0) return EINVAL;
  if (!gpus_[g]->acquired) return ENODEV;
  if (a.va % kPage != 0 || a.va + a.bytes < a.va || page_up(a.bytes) < a.bytes) return EINVAL;
  Object o{.va = a.va, .bytes = page_up(a.bytes), .gpu = g, .flags = a.flags};
  if ((a.flags & kfd::kDoorbell) != 0) {
    if (a.bytes != kfd::kDoorbellBytes) return EINVAL;
    o.mmap_offset = doorbell_offset(g);
    o.host = doorbells_[g];
  } else if ((a.flags & kfd::kMmioRemap) != 0) {
    if (a.bytes != kPage) return EINVAL;
    o.mmap_offset = register_offset(g);
    o.host = registers_[g];
  } else {
    Charge charged;
    const bool program = (a.flags & (kfd::kVram | kfd::kGtt)) == 0;
    if (program && (a.mmap_offset == 0 || a.mmap_offset % kPage != 0)) return EINVAL;
    if (const int error = charge(o, &charged)) return error;
    if (program) {
      if (const int error = check_pages(a.mmap_offset, o.bytes, (a.flags & kfd::kWritable) != 0)) return error;
      o.mmap_offset = a.mmap_offset;
      o.host = reinterpret_cast<std::byte*>(a.mmap_offset);
      o.charge = std::move(charged);
    } else {
      const auto bytes = page_up(o.doubled() ? o.bytes / 2 : o.bytes);
      const auto flags = o.flags & ~std::uint32_t{kfd::kAqlQueue};
      if (const int error = create_pages(bytes, g, flags, std::move(charged), &o.pages)) return error;
      o.mmap_offset = o.pages->offset;
      o.host = o.pages->view;
    }
  }
  a.mmap_offset = o.mmap_offset;
  a.handle = add(std::move(o)).handle;
  return 0;
}

int Memory::free(std::uint64_t handle) {
  auto* o = find(handle);
  if (!o) return EINVAL;
  if (o->mapped != 0 || o->pins != 0) return EBUSY;
  // The last holder of the pages frees them, so an import keeps an export alive.
  objects_.erase(handle);
  return 0;
}

int Memory::map_one(Object& o, std::uint32_t g) {
  if ((o.mapped >> g & 1) != 0) return 0;
  auto& space = gpus_[g]->space;
  const auto part = o.doubled() ? o.bytes / 2 : o.bytes;
  const auto owner = (o.flags & kfd::kVram) != 0 ? o.gpu : Mapping::kHost;
  Mapping m{.va = GpuVa{o.va}, .bytes = part, .host = o.host, .owner = owner, .gpus = std::uint64_t{1} << g};
  // Old clients set no access bits for doorbells, which are always writable.
  if ((o.flags & (kfd::kVram | kfd::kGtt | kfd::kUserptr)) != 0 && (o.flags & kfd::kWritable) == 0)
    m.access = Access::read;
  std::array both{m, m};
  both[1].va = m.va + part;
  if (const auto e = space.map(std::span(both).first(o.doubled() ? 2 : 1)); e != Errc::ok)
    return e == Errc::no_space ? ENOMEM : EINVAL;
  o.mapped |= std::uint64_t{1} << g;
  return 0;
}

int Memory::unmap_one(Object& o, std::uint32_t g) {
  const std::array both{GpuVa{o.va}, GpuVa{o.va + o.bytes / 2}};
  const auto e = gpus_[g]->space.unmap(std::span(both).first(o.doubled() ? 2 : 1), engine_patience());
  // Without memory for the new list of mappings, the engines keep the old one, and the object stays mapped.
  if (e == Errc::no_space) return ENOMEM;
  o.mapped &= ~(std::uint64_t{1} << g);
  return 0;
}

int Memory::map(kfd::MapMemory& a, std::span<const std::uint32_t> gpu_ids) {
  auto* o = find(a.handle);
  if (!o) return EINVAL;
  for (; a.done < a.count; ++a.done) {
    const auto g = index(gpu_ids[a.done]);
    if (g == gpus()) return EINVAL;
    if (!gpus_[g]->acquired) return ENODEV;
    if (const int error = map_one(*o, g)) return error;
  }
  return 0;
}

int Memory::unmap(kfd::MapMemory& a, std::span<const std::uint32_t> gpu_ids) {
  auto* o = find(a.handle);
  if (!o) return EINVAL;
  for (; a.done < a.count; ++a.done) {
    const auto g = index(gpu_ids[a.done]);
    if (g == gpus() || (o->mapped >> g & 1) == 0) return EINVAL;
    if (o->pins != 0) return EBUSY;
    if (const int error = unmap_one(*o, g)) return error;
  }
  return 0;
}

Object* Memory::exactly(std::uint32_t g, std::uint64_t va, std::uint64_t bytes) noexcept {
  for (auto& [handle, o] : objects_)
    if (o.va == va && (o.mapped >> g & 1) != 0 && (bytes == 0 || o.bytes == page_up(bytes))) return &o;
  return nullptr;
}

std::byte* Memory::host(std::uint32_t g, std::uint64_t va, std::uint64_t bytes) const noexcept {
  const auto m = gpus_[g]->space.find(GpuVa{va});
  if (!m || va - m->va.value + bytes > m->bytes) return nullptr;
  return m->host + (va - m->va.value);
}

}  // namespace sdma::emulator
