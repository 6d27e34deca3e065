// Export and import of memory objects: as a DMABUF, a descriptor that is sent through a socket or inherited by a fork, or as an
// IPC handle, 16 bytes that can be sent in any way. The importer maps the same pages, in this process or in another, and no others.
//
//   DMABUF       a descriptor of the object's file (object_file.hpp)
//   IPC handle   process, its descriptor of the file, inode, nonce: the importer opens /proc/PID/fd/N
//
// An IPC handle is valid while the exporting process has the object. The kernel keeps the pages until the last holder has closed
// its descriptors and mappings.
#include "../real.hpp"
#include "memory.hpp"

#include <fcntl.h>
#include <unistd.h>
#include <cerrno>
#include <cstdio>

namespace sdma::emulator {
namespace {

/// A file that is open during one call.
struct Opened {
  explicit Opened(const char* path) noexcept : fd(SDMA_REAL(open)(path, O_RDWR | O_CLOEXEC)) {}
  ~Opened() {
    if (fd >= 0) ::close(fd);
  }
  Opened(const Opened&) = delete;
  Opened& operator=(const Opened&) = delete;
  const int fd;
};

}  // namespace

/// Creates an object over the bytes of another object of this process or of another.
int Memory::take(int fd, const ObjectInfo& info, std::uint32_t gpu_id, std::uint64_t va, Object* out) {
  const auto g = index(gpu_id);
  if (g == gpus() || info.gpu >= gpus() || va % kPage != 0) return EINVAL;
  if (!gpus_[g]->acquired) return ENODEV;
  *out = {.va = va, .bytes = info.bytes, .gpu = info.gpu, .flags = info.flags};
  for (auto& [handle, o] : objects_)
    if (o.pages && o.pages->info.inode == info.inode && o.pages->info.nonce == info.nonce) out->pages = o.pages;
  if (!out->pages) {
    out->pages = std::make_shared<Pages>(arena_, info);
    if (const int error = out->pages->open([fd] { return away(open_object(fd, O_RDWR | O_CLOEXEC)); })) return error;
  }
  out->mmap_offset = out->pages->offset;
  out->host = out->pages->view;
  return 0;
}

int Memory::export_dmabuf(kfd::ExportDmabuf& a) {
  const auto* o = find(a.handle);
  if (!o || !o->pages) return EINVAL;
  const auto place = arena_.find(o->pages->offset, kPage);
  if (!place) return EBADF;
  const int fd = open_object(place->fd, kOnlyIdentity | (static_cast<int>(a.flags) & O_CLOEXEC));
  if (fd < 0) return EMFILE;
  a.fd = static_cast<std::uint32_t>(fd);
  return 0;
}

int Memory::import_dmabuf(kfd::ImportDmabuf& a) {
  const int fd = static_cast<int>(a.fd);
  const auto info = object_of(fd);
  if (!info) return EINVAL;
  Object o;
  if (const int error = take(fd, *info, a.gpu_id, a.va, &o)) return error;
  a.handle = add(std::move(o)).handle;
  return 0;
}

int Memory::dmabuf_info(kfd::GetDmabufInfo& a) {
  const auto info = object_of(static_cast<int>(a.fd));
  if (!info || info->gpu >= gpus()) return EINVAL;
  a.bytes = info->bytes;
  a.gpu_id = node_.gpus[info->gpu].gpu_id;
  a.flags = info->flags;
  a.metadata_bytes = 0;
  return 0;
}

int Memory::export_ipc(kfd::ExportIpc& a) {
  const auto* o = find(a.handle);
  if (!o || !o->pages || index(a.gpu_id) == gpus()) return EINVAL;
  const auto place = arena_.find(o->pages->offset, kPage);
  if (!place) return EBADF;
  a.shared[0] = static_cast<std::uint32_t>(::getpid());
  a.shared[1] = static_cast<std::uint32_t>(place->fd);
  a.shared[2] = static_cast<std::uint32_t>(o->pages->info.inode);
  a.shared[3] = o->pages->info.nonce;
  a.flags = 0;
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
  const Opened file(path);
  const auto info = object_of(file.fd);
  if (!named(info)) return EINVAL;
  Object o;
  if (const int error = take(file.fd, *info, a.gpu_id, a.va, &o)) return error;
  a.mmap_offset = o.mmap_offset;
  a.flags = o.flags;
  a.handle = add(std::move(o)).handle;
  return 0;
}

}  // namespace sdma::emulator
