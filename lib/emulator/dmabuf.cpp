// Memory objects as descriptors that may be passed on: DMABUFs. One is a descriptor of the arena whose position names the
// object; the importing side maps the same pages.
#include "memory.hpp"

#include "node.hpp"

#include <cerrno>

namespace sdma::emulator {
namespace {

/// Positions above this name a DMABUF: the handle's number. Minors of render nodes are small.
constexpr std::uint64_t kDmabuf = std::uint64_t{1} << 40;

}  // namespace

int Memory::export_dmabuf(kfd::ExportDmabuf& a) {
  auto* o = find(a.handle);
  if (!o || !o->pages) return EINVAL;
  const int fd = arena_.open_node(kDmabuf | (o->handle & 0xffffffff), static_cast<int>(a.flags) | 2 /* O_RDWR */);
  if (fd < 0) return ENOMEM;
  o->pages->keep = true;
  a.fd = static_cast<std::uint32_t>(fd);
  return 0;
}

Object* Memory::exported(std::uint32_t fd) noexcept {
  const auto d = device_of(static_cast<int>(fd));
  if (!d || !d->node || (d->minor & kDmabuf) == 0) return nullptr;
  for (auto& [handle, o] : objects_)
    if ((handle & 0xffffffff) == (d->minor & ~kDmabuf)) return &o;
  return nullptr;
}

int Memory::import_dmabuf(kfd::ImportDmabuf& a) {
  const auto g = index(a.gpu_id);
  const auto* from = exported(a.fd);
  if (g == gpus() || !from || a.va % kPage != 0) return EINVAL;
  Object o = *from;
  o.va = a.va;
  o.mapped = o.pins = 0;
  add(std::move(o), &a.handle);
  return 0;
}

int Memory::dmabuf_info(kfd::GetDmabufInfo& a) {
  const auto* o = exported(a.fd);
  if (!o) return EINVAL;
  a.bytes = o->bytes;
  a.gpu_id = node_.gpus[o->gpu].gpu_id;
  a.flags = o->flags;
  a.metadata_bytes = 0;
  return 0;
}

}  // namespace sdma::emulator
