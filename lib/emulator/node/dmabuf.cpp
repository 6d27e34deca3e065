// SPDX-License-Identifier: MIT
// Export and import of memory objects: as a DMABUF, a descriptor that is sent through a socket or inherited by a fork,
// or as an IPC handle, 16 bytes that can be sent in any way. The importer maps the same pages, in this process or in
// another, and no others.
//
//   DMABUF       a descriptor that names the object's record (object_file.hpp)
//   IPC handle   process, its descriptor of the arena, number and nonce of the record: the importer opens
//                /proc/PID/fd/N
//
// An IPC handle is valid while the exporting process has the object. The pages stay until the last holder has closed
// its descriptors and mappings.
//
// As in the kernel, a DMABUF of an object that GPUs may only read cannot be mapped for writing; an imported object may
// be written and executed, however the exporter allocated it; and the flags that the first export of an IPC handle
// passes are not the driver's, but the caller's: every import returns them. They are in the record.
#include "../../core/descriptor.hpp"
#include "../real.hpp"
#include "node.hpp"
#include "user.hpp"

#include <fcntl.h>
#include <linux/dma-buf.h>
#include <unistd.h>
#include <cerrno>
#include <cstdio>

namespace sdma::emulator {

/// Creates an object over the bytes of another object of this process or of another.
int Memory::take(const ObjectInfo& info, const char* link, std::uint32_t gpu_id, std::uint64_t va, Object* out) {
  const auto g = index(gpu_id);
  if (g == gpus() || info.gpu >= gpus() || va % kPage != 0) return EINVAL;
  if (!gpus_[g]->acquired) return ENODEV;
  const auto flags = (info.flags & (kfd::kVram | kfd::kGtt)) | kfd::kWritable | kfd::kExecutable;
  *out = {.va = va, .bytes = info.bytes, .gpu = info.gpu, .flags = flags};
  if (const int error = share_pages(info, link, &out->pages)) return error;
  out->mmap_offset = out->pages->offset;
  out->host = out->pages->view;
  return 0;
}

/// The number of the record of pages; 0: the program has closed the arena, or there is no room.
std::uint32_t record_of(const Pages& p) noexcept { return p.source ? p.info.slot : p.arena.record(p.offset, p.info); }

int export_pages(const Pages& pages, bool writable, int flags) noexcept {
  const auto slot = record_of(pages);
  if (slot == 0) return -EBADF;
  const int fd = open_dmabuf(pages.file(), slot, writable, flags);
  return fd < 0 ? -EMFILE : fd;
}

int Memory::export_dmabuf(kfd::ExportDmabuf& a) {
  const auto* o = find(a.handle);
  if (!o) return EINVAL;
  if (!o->pages) return (o->flags & kfd::kUserptr) != 0 ? EPERM : EINVAL;
  const int fd = export_pages(*o->pages, (o->flags & kfd::kWritable) != 0, static_cast<int>(a.flags));
  if (fd < 0) return -fd;
  a.fd = static_cast<std::uint32_t>(fd);
  return 0;
}

int Memory::import_dmabuf(kfd::ImportDmabuf& a) {
  const int fd = static_cast<int>(a.fd);
  const auto info = object_of(fd);
  if (!info) return is_open(fd) ? EINVAL : EBADF;
  Object o;
  if (const int error = take(*info, FdLink(fd).path, a.gpu_id, a.va, &o)) return error;
  a.handle = add(std::move(o)).handle;
  return 0;
}

int Memory::dmabuf_info(kfd::GetDmabufInfo& a) {
  const int fd = static_cast<int>(a.fd);
  const auto info = object_of(fd);
  if (!info || info->gpu >= gpus()) return is_open(fd) ? EINVAL : EBADF;
  const auto at = pages_.find({info->inode, info->offset});
  const auto pages = at == pages_.end() ? nullptr : at->second.lock();
  const std::span<const std::byte> metadata = pages ? pages->metadata.bytes : std::span<const std::byte>();
  const auto room = a.metadata_bytes;
  a.metadata_bytes = static_cast<std::uint32_t>(metadata.size());
  if (a.metadata != 0 && room < metadata.size()) return EINVAL;
  a.bytes = info->bytes;
  a.gpu_id = node_.gpus[info->gpu].gpu_id;
  const bool vram = (info->flags & kfd::kVram) != 0;
  a.flags = vram ? info->flags & (kfd::kVram | kfd::kPublic) : std::uint32_t{kfd::kGtt};
  return a.metadata == 0 || to_user(a.metadata, metadata.data(), metadata.size()) ? 0 : EFAULT;
}

int Memory::export_ipc(kfd::ExportIpc& a) {
  const auto* o = find(a.handle);
  if (!o || !o->pages || index(a.gpu_id) == gpus()) return EINVAL;
  const int file = o->pages->file();
  auto record = read_record(file, record_of(*o->pages));
  if (!record) return EBADF;
  if (record->ipc == 0) {
    record->ipc = 1;
    record->ipc_flags = a.flags;
    if (!write_record(file, *record)) return EBADF;
  }
  a.shared[0] = static_cast<std::uint32_t>(::getpid());
  a.shared[1] = static_cast<std::uint32_t>(file);
  a.shared[2] = record->slot;
  a.shared[3] = record->nonce;
  return 0;
}

int Memory::import_ipc(kfd::ImportIpc& a) {
  char path[48], room[64];
  std::snprintf(path, sizeof path, "/proc/%u/fd/%u", a.shared[0], a.shared[1]);
  // Checked before it is opened, because opening another kind of file may have side effects.
  if (memfd_name(path, room) != kArenaName) return EINVAL;
  const sdma::detail::Descriptor file(SDMA_REAL(open)(path, O_RDONLY | O_CLOEXEC));
  const auto info = read_record(file.get(), a.shared[2]);
  if (!info || info->nonce != a.shared[3] || info->ipc == 0) return EINVAL;
  Object o;
  if (const int error = take(*info, path, a.gpu_id, a.va, &o)) return error;
  auto& made = add(std::move(o));
  a.mmap_offset = made.mmap_offset;
  a.flags = info->ipc_flags;
  a.handle = made.handle;
  return 0;
}

/// Both sides of a mapping are always coherent, so there is nothing to synchronise, and nothing shows a name.
int dmabuf_ioctl(unsigned long request, void* argument) noexcept {
  const auto user = reinterpret_cast<std::uint64_t>(argument);
  if (request == DMA_BUF_IOCTL_SYNC) {
    dma_buf_sync s{};
    if (!from_user(&s, user, sizeof s)) return EFAULT;
    const bool direction = (s.flags & DMA_BUF_SYNC_RW) != 0;
    return (s.flags & ~std::uint64_t{DMA_BUF_SYNC_VALID_FLAGS_MASK}) == 0 && direction ? 0 : EINVAL;
  }
  if (request != DMA_BUF_SET_NAME && request != DMA_BUF_SET_NAME_A && request != DMA_BUF_SET_NAME_B) return ENOTTY;
  for (std::uint64_t i = 0; i < DMA_BUF_NAME_LEN; ++i) {
    char c = 0;
    if (!from_user(&c, user + i, 1)) return EFAULT;
    if (c == 0) return 0;
  }
  return EINVAL;
}

}  // namespace sdma::emulator
