// Export and import of memory objects: as a DMABUF, a descriptor that is sent through a socket or inherited by a fork, or as an
// IPC handle, 16 bytes that can be sent in any way. The importer maps the same pages, in this process or in another.
//
//   DMABUF       a descriptor of the arena whose position is kDmabuf | number of the object
//   IPC handle   process, its descriptor of the arena, number, nonce: the importer opens /proc/PID/fd/N
//   both         number -> Passed, a record in the exported arena: offset, size and GPU
//
// An IPC handle is valid while the exporting process lives. Exported pages are never punched, because nothing counts their
// mappings in other processes. They are freed with the last descriptor and mapping of their arena.
#include "../real.hpp"
#include "memory.hpp"

#include "sdma/engine/execute.hpp"

#include <fcntl.h>
#include <unistd.h>
#include <cerrno>
#include <cstdio>

namespace sdma::emulator {
namespace {

constexpr std::uint32_t number_of(std::uint64_t handle) noexcept { return static_cast<std::uint32_t>(handle); }

/// The record of a DMABUF of this process or another.
bool passed_as(std::uint32_t fd, std::uint32_t* number, Passed* p) noexcept {
  const auto d = descriptor_of(static_cast<int>(fd), nullptr);
  if (!d || !is_dmabuf(*d)) return false;
  *number = emulator::number(*d);
  return read_passed(static_cast<int>(fd), *number, p);
}

}  // namespace

int Memory::pass_on(Object& o, Passed* p) {
  const auto number = number_of(o.handle);
  if (!o.pages || o.pages->foreign >= 0) return EINVAL;
  o.pages->keep = true;
  if (read_passed(arena_.fd(), number, p)) return 0;
  *p = {.nonce = host_ticks() << 1 | 1,
        .offset = o.pages->offset,
        .bytes = o.pages->bytes,
        .gpu = o.gpu,
        .flags = o.flags & ~std::uint32_t{kfd::kAqlQueue}};
  return write_passed(arena_.fd(), number, *p) ? 0 : ENOMEM;
}

/// Creates an object over imported pages.
int Memory::take(int arena, std::uint32_t number, const Passed& p, std::uint32_t gpu_id, std::uint64_t va,
                 Object* out) {
  const auto g = index(gpu_id);
  if (g == gpus() || p.gpu >= gpus() || va % kPage != 0) return EINVAL;
  if (!gpus_[g]->acquired) return ENODEV;
  *out = {.va = va, .bytes = p.bytes, .mmap_offset = p.offset, .gpu = p.gpu, .flags = p.flags};
  if (const auto d = descriptor_of(arena, &arena_); d && d->ours) {
    for (auto& [handle, o] : objects_)
      if (number_of(handle) == number && o.pages) out->pages = o.pages;
    // The exporter may have freed its object by now, but the pages remain.
    if (!out->pages) {
      out->pages = std::make_shared<Pages>(arena_, p.offset, p.bytes);
      out->pages->keep = true;
      out->pages->view = arena_.view(p.offset, p.bytes);
    }
  } else {
    const int fd = SDMA_REAL(fcntl)(arena, F_DUPFD_CLOEXEC, 900);
    if (fd < 0) return EMFILE;
    out->mmap_offset = arena_.reserve(p.bytes);
    arena_.stand_for(out->mmap_offset, p.bytes, {fd, p.offset});
    out->pages = std::make_shared<Pages>(arena_, out->mmap_offset, p.bytes);
    out->pages->foreign = fd;
    out->pages->view = Arena::view_of({fd, p.offset}, p.bytes);
  }
  out->host = out->pages->view;
  return out->host ? 0 : ENOMEM;
}

int Memory::export_dmabuf(kfd::ExportDmabuf& a) {
  auto* o = find(a.handle);
  Passed p;
  if (!o) return EINVAL;
  if (const int error = pass_on(*o, &p)) return error;
  const int fd = arena_.open_node(kDmabuf | number_of(o->handle), static_cast<int>(a.flags) | O_RDWR);
  if (fd < 0) return EMFILE;
  a.fd = static_cast<std::uint32_t>(fd);
  return 0;
}

int Memory::import_dmabuf(kfd::ImportDmabuf& a) {
  Passed p;
  std::uint32_t number = 0;
  if (!passed_as(a.fd, &number, &p)) return EINVAL;
  Object o;
  if (const int error = take(static_cast<int>(a.fd), number, p, a.gpu_id, a.va, &o)) return error;
  add(std::move(o), &a.handle);
  return 0;
}

int Memory::dmabuf_info(kfd::GetDmabufInfo& a) {
  Passed p;
  std::uint32_t number = 0;
  if (!passed_as(a.fd, &number, &p) || p.gpu >= gpus()) return EINVAL;
  a.bytes = p.bytes;
  a.gpu_id = node_.gpus[p.gpu].gpu_id;
  a.flags = p.flags;
  a.metadata_bytes = 0;
  return 0;
}

int Memory::export_ipc(kfd::ExportIpc& a) {
  auto* o = find(a.handle);
  Passed p;
  if (!o || index(a.gpu_id) == gpus()) return EINVAL;
  if (const int error = pass_on(*o, &p)) return error;
  a.shared[0] = static_cast<std::uint32_t>(::getpid());
  a.shared[1] = static_cast<std::uint32_t>(arena_.fd());
  a.shared[2] = number_of(o->handle);
  a.shared[3] = static_cast<std::uint32_t>(p.nonce);
  a.flags = 0;
  return 0;
}

int Memory::import_ipc(kfd::ImportIpc& a) {
  char path[48];
  std::snprintf(path, sizeof path, "/proc/%u/fd/%u", a.shared[0], a.shared[1]);
  // Checked before it is opened, because opening another kind of file may have side effects.
  const int fd = names_arena(path) ? SDMA_REAL(open)(path, O_RDWR | O_CLOEXEC) : -1;
  if (fd < 0) return EINVAL;
  Passed p;
  Object o;
  int error = EINVAL;
  if (read_passed(fd, a.shared[2], &p) && static_cast<std::uint32_t>(p.nonce) == a.shared[3])
    error = take(fd, a.shared[2], p, a.gpu_id, a.va, &o);
  ::close(fd);
  if (error != 0) return error;
  a.mmap_offset = o.mmap_offset;
  a.flags = o.flags;
  add(std::move(o), &a.handle);
  return 0;
}

}  // namespace sdma::emulator
