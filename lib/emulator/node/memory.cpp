#include "memory.hpp"

#include "user.hpp"

#include <unistd.h>
#include <cerrno>

namespace sdma::emulator {
namespace {

constexpr std::uint32_t kTypes = kfd::kVram | kfd::kGtt | kfd::kUserptr | kfd::kDoorbell | kfd::kMmioRemap;

/// How long an unmapping waits for engines to leave, which they do after a few packets.
Deadline patience() noexcept { return Deadline::in(std::chrono::seconds(60)); }

}  // namespace

Pages::~Pages() {
  if (view) Arena::drop(view, bytes);
  if (foreign >= 0) {
    arena.stands_no_more(offset);
    ::close(foreign);
  } else if (view && !keep) {
    arena.punch(offset, bytes);
  }
}

Memory::Memory(Arena& a, const SysfsNode& n) : arena_(a), node_(n) {
  for (std::uint32_t g = 0; g < n.gpus.size(); ++g) {
    gpus_.push_back(std::make_unique<GpuMemory>());
    doorbells_.push_back(a.view(doorbell_offset(g), kfd::kDoorbellBytes));
    registers_.push_back(a.view(register_offset(g), kPage));
  }
}

Memory::~Memory() {
  for (auto* d : doorbells_) Arena::drop(d, kfd::kDoorbellBytes);
  for (auto* r : registers_) Arena::drop(r, kPage);
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

std::uint64_t Memory::available(std::uint32_t g) const noexcept {
  const auto all = node_.topology.gpus[g].memory_bytes, used = gpus_[g]->used;
  return used < all ? (all - used) & ~std::uint64_t{(2 << 20) - 1} : 0;
}

/// As in the kernel: all but a sixteenth of the machine's memory.
std::uint64_t Memory::host_bytes() const noexcept {
  std::uint64_t all = 0;
  for (const auto& c : node_.topology.cpus) all += c.memory_bytes;
  return all / 16 * 15;
}

void Memory::add(Object o, std::uint64_t* handle) {
  o.handle = std::uint64_t{node_.gpus[o.gpu].gpu_id} << 32 | next_++;
  *handle = o.handle;
  objects_.emplace(o.handle, std::move(o));
}

int Memory::make_pages(Object& o) {
  const auto bytes = page_up(o.doubled() ? o.bytes / 2 : o.bytes);
  const bool vram = (o.flags & kfd::kVram) != 0;
  auto& used = vram ? gpus_[o.gpu]->used : host_used_;
  const auto all = vram ? node_.topology.gpus[o.gpu].memory_bytes : host_bytes();
  if (used > all || bytes > all - used) return ENOMEM;
  o.pages = std::make_shared<Pages>(arena_, arena_.reserve(bytes), bytes);
  o.pages->view = arena_.view(o.pages->offset, bytes);
  if (!o.pages->view) return ENOMEM;
  o.host = o.pages->view;
  o.mmap_offset = o.pages->offset;
  o.pages->counted = true;
  used += bytes;
  return 0;
}

int Memory::allocate(kfd::AllocMemory& a) {
  const auto g = index(a.gpu_id);
  if (g == gpus() || a.bytes == 0 || (a.flags & kTypes) == 0) return EINVAL;
  if (!gpus_[g]->acquired) return ENODEV;
  if (a.va % kPage != 0 || a.bytes > std::uint64_t{1} << 46 || a.va + a.bytes < a.va) return EINVAL;
  Object o{.va = a.va, .bytes = page_up(a.bytes), .gpu = g, .flags = a.flags};
  if ((a.flags & kfd::kDoorbell) != 0) {
    if (a.bytes != kfd::kDoorbellBytes) return EINVAL;
    o.mmap_offset = doorbell_offset(g);
    o.host = doorbells_[g];
  } else if ((a.flags & kfd::kMmioRemap) != 0) {
    if (a.bytes != kPage) return EINVAL;
    o.mmap_offset = register_offset(g);
    o.host = registers_[g];
  } else if ((a.flags & kfd::kUserptr) != 0) {
    if (a.mmap_offset == 0 || a.mmap_offset % kPage != 0) return EINVAL;
    if (const int error = check_pages(a.mmap_offset, o.bytes, (a.flags & kfd::kWritable) != 0)) return error;
    o.mmap_offset = a.mmap_offset;
    o.host = reinterpret_cast<std::byte*>(a.mmap_offset);
  } else if (const int error = make_pages(o)) {
    return error;
  }
  a.mmap_offset = o.mmap_offset;
  add(std::move(o), &a.handle);
  return 0;
}

int Memory::free(std::uint64_t handle) {
  auto* o = find(handle);
  if (!o) return EINVAL;
  if (o->mapped != 0 || o->pins != 0) return EBUSY;
  // The last object of the pages frees them, so an import keeps an export alive.
  if (o->pages && o->pages.use_count() == 1 && o->pages->counted)
    ((o->flags & kfd::kVram) != 0 ? gpus_[o->gpu]->used : host_used_) -= o->pages->bytes;
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
  if (space.map(m) != Errc::ok) return EINVAL;
  if (o.doubled()) {
    m.va = m.va + part;
    if (space.map(m) != Errc::ok) {
      (void)space.unmap(GpuVa{o.va}, patience());
      return EINVAL;
    }
  }
  o.mapped |= std::uint64_t{1} << g;
  return 0;
}

void Memory::unmap_one(Object& o, std::uint32_t g) {
  auto& space = gpus_[g]->space;
  (void)space.unmap(GpuVa{o.va}, patience());
  if (o.doubled()) (void)space.unmap(GpuVa{o.va + o.bytes / 2}, patience());
  o.mapped &= ~(std::uint64_t{1} << g);
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
    unmap_one(*o, g);
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
