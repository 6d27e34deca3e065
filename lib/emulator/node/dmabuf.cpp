// SPDX-License-Identifier: MIT
// Export and import of memory objects: as a DMABUF, a descriptor that is sent through a socket or inherited by a fork,
// or as an IPC handle, 16 bytes that can be sent in any way. The importer maps the same pages, in this process or in
// another, and no others.
//
//   DMABUF       a descriptor of the object's file (object_file.hpp)
//   IPC handle   process, its descriptor of the file, inode, nonce: the importer opens /proc/PID/fd/N
//
// An IPC handle is valid while the exporting process has the object. The kernel keeps the pages until the last holder
// has closed its descriptors and mappings.
//
// As in the kernel, a DMABUF of an object that GPUs may only read cannot be mapped for writing; an imported object may
// be written and executed, however the exporter allocated it; and the flags that the first export of an IPC handle
// passes are not the driver's, but the caller's: every import returns them. They are the file position of the
// exporter's descriptor (see kExported).
#include "../real.hpp"
#include "memory.hpp"
#include "user.hpp"

#include <fcntl.h>
#include <unistd.h>
#include <cerrno>
#include <cstdio>

namespace sdma::emulator {
namespace {

/// A file that is open during one call.
struct Opened {
  Opened(const char* path, int flags) noexcept : fd(SDMA_REAL(open)(path, flags | O_CLOEXEC)) {}
  ~Opened() {
    if (fd >= 0) ::close(fd);
  }
  Opened(const Opened&) = delete;
  Opened& operator=(const Opened&) = delete;
  const int fd;
};

/// The file position of an object's descriptor, once an IPC
/// handle names it: this bit, and the exporter's flags below it.
constexpr std::uint64_t kExported = std::uint64_t{1} << 32;

/// The position of descriptor `fd` of process `pid`, or 0.
std::uint64_t position_of(std::uint32_t pid, std::uint32_t fd) noexcept {
  char path[48];
  std::snprintf(path, sizeof path, "/proc/%u/fdinfo/%u", pid, fd);
  const Opened info(path, O_RDONLY);
  char text[64]{};
  unsigned long long at = 0;
  if (info.fd < 0 || SDMA_REAL(read)(info.fd, text, sizeof text - 1) <= 0) return 0;
  return std::sscanf(text, "pos: %llu", &at) == 1 ? at : 0;
}

}  // namespace

/// Creates an object over the bytes of another object of this process or of another.
int Memory::take(int fd, const ObjectInfo& info, std::uint32_t gpu_id, std::uint64_t va, Object* out) {
  const auto g = index(gpu_id);
  if (g == gpus() || info.gpu >= gpus() || va % kPage != 0) return EINVAL;
  if (!gpus_[g]->acquired) return ENODEV;
  const auto flags = (info.flags & (kfd::kVram | kfd::kGtt)) | kfd::kWritable | kfd::kExecutable;
  *out = {.va = va, .bytes = info.bytes, .gpu = info.gpu, .flags = flags};
  if (const int error = share_pages(fd, info, &out->pages)) return error;
  out->mmap_offset = out->pages->offset;
  out->host = out->pages->view;
  return 0;
}

int export_pages(const Pages& pages, bool writable, int flags) noexcept {
  const auto place = pages.place();
  if (place.fd < 0) return -EBADF;
  const int fd = open_object(place.fd, kOnlyIdentity | (flags & O_CLOEXEC));
  if (fd < 0) return -EMFILE;
  if (!writable) SDMA_REAL(lseek)(fd, kReadOnlyDmabuf, SEEK_SET);
  return fd;
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
  if (const int error = take(fd, *info, a.gpu_id, a.va, &o)) return error;
  a.handle = add(std::move(o)).handle;
  return 0;
}

int Memory::dmabuf_info(kfd::GetDmabufInfo& a) {
  const int fd = static_cast<int>(a.fd);
  const auto info = object_of(fd);
  if (!info || info->gpu >= gpus()) return is_open(fd) ? EINVAL : EBADF;
  const auto at = pages_.find({info->inode, info->nonce});
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
  auto& pages = *o->pages;
  const auto place = pages.place();
  if (place.fd < 0) return EBADF;
  if (!pages.ipc_flags) pages.ipc_flags = a.flags;
  if (SDMA_REAL(lseek)(place.fd, static_cast<off_t>(kExported | *pages.ipc_flags), SEEK_SET) < 0) return EBADF;
  a.shared[0] = static_cast<std::uint32_t>(::getpid());
  a.shared[1] = static_cast<std::uint32_t>(place.fd);
  a.shared[2] = static_cast<std::uint32_t>(pages.info.inode);
  a.shared[3] = pages.info.nonce;
  return 0;
}

int Memory::import_ipc(kfd::ImportIpc& a) {
  char path[48];
  std::snprintf(path, sizeof path, "/proc/%u/fd/%u", a.shared[0], a.shared[1]);
  const auto named = [&](const std::optional<ObjectInfo>& o) {
    return o && static_cast<std::uint32_t>(o->inode) == a.shared[2] && o->nonce == a.shared[3];
  };
  // Checked before it is opened, because opening another kind of file may have side effects.
  if (!named(object_of(path))) return EINVAL;
  const auto position = position_of(a.shared[0], a.shared[1]);
  const Opened file(path, O_RDWR);
  const auto info = object_of(file.fd);
  if (!named(info) || (position & kExported) == 0) return EINVAL;
  Object o;
  if (const int error = take(file.fd, *info, a.gpu_id, a.va, &o)) return error;
  auto& made = add(std::move(o));
  made.pages->ipc_flags = static_cast<std::uint32_t>(position);
  a.mmap_offset = made.mmap_offset;
  a.flags = *made.pages->ipc_flags;
  a.handle = made.handle;
  return 0;
}

}  // namespace sdma::emulator
