// SPDX-License-Identifier: MIT
// GEM: buffers as handles of a DRM file, how they are shared, and where GPUs see them.
//
// A buffer of KFD and a buffer of GEM are the same pages. A buffer that was created for VRAM is in GTT if VRAM
// has no room, as in the kernel. Metadata and placements belong to the pages of this process: another process
// does not see them.
#include "drm_file.hpp"
#include "user.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace sdma::emulator {
namespace {

using namespace drm;

constexpr std::uint64_t kCreateFlags =
    kCpuAccessRequired | kNoCpuAccess | kCpuGttUswc | kVramCleared | kVmAlwaysValid | kExplicitSync | kDiscardable;

/// GPU addresses: 48 bits, sign-extended, without what the driver keeps at both ends.
constexpr std::uint64_t kHoleBegin = 0x0000'8000'0000'0000, kHoleEnd = 0xffff'8000'0000'0000,
                        kAddressBits = 0x0000'ffff'ffff'ffff, kReservedBottom = 2 << 20, kReservedTop = 6 << 20;

GemCreate created(const Pages& p) noexcept {
  const bool vram = (p.info.flags & kfd::kVram) != 0;
  auto domains = p.domains, flags = p.create_flags;
  if (domains == 0) {  // allocated by KFD
    domains = vram ? kDomainVram : kDomainGtt;
    flags = vram && (p.info.flags & kfd::kPublic) != 0 ? std::uint64_t{kCpuAccessRequired} : 0;
  }
  return {.bytes = p.info.bytes, .alignment = kPage, .domains = domains, .flags = flags};
}

bool in_range(const GemVa& a) noexcept {
  if (a.va < kReservedBottom || (a.va >= kHoleBegin && a.va < kHoleEnd)) return false;
  const auto from = a.va & kAddressBits;
  std::uint64_t end = 0;
  return !__builtin_add_overflow(from, a.bytes, &end) && end <= kAddressBits + 1 - kReservedTop;
}

constexpr bool aligned(const GemVa& a) noexcept {
  return (a.va | a.offset | a.bytes) % kPage == 0 && a.bytes != 0 && a.offset + a.bytes >= a.offset;
}

constexpr Access access_of(std::uint32_t flags) noexcept {
  return static_cast<Access>(((flags & kVaReadable) != 0 ? 1 : 0) | ((flags & kVaWriteable) != 0 ? 2 : 0));
}

}  // namespace

const std::shared_ptr<Pages>* DrmFile::find(std::uint32_t handle) const noexcept {
  const auto it = handles_.find(handle);
  return it == handles_.end() ? nullptr : &it->second;
}

template <class Map> std::uint32_t DrmFile::free_id(const Map& used) noexcept {
  std::uint32_t id = 1;
  for (auto it = used.begin(); it != used.end() && it->first == id; ++it) ++id;
  return id;
}

int DrmFile::create(GemCreate& a) {
  if ((a.flags & ~kCreateFlags) != 0 || (a.domains & ~std::uint64_t{0x3f}) != 0) return EINVAL;
  if ((a.domains & kDomainsOfEngines) != 0) return (a.flags & kVmAlwaysValid) != 0 ? EINVAL : ENOMEM;
  const auto bytes = page_up(a.bytes);
  if (bytes == 0) return EINVAL;
  auto& shared = memory_.shared();
  auto& use = shared.use(gpu_);
  shared.reap();
  const auto of_all = shared.used(gpu_);
  const auto all = memory_.vram_bytes(gpu_), used = of_all.vram + of_all.gem_vram;
  if ((a.domains & kDomainVram) != 0 && (a.domains & kDomainGtt) == 0 && bytes >= all) return ENOMEM;
  if ((a.domains & kDomainVram) == 0 && bytes >= memory_.limits().gtt) return ENOMEM;
  const bool vram = (a.domains & kDomainVram) != 0 && used <= all && bytes <= all - used;
  if (!vram && bytes > memory_.limits().gtt) return ENOMEM;
  const bool visible = vram && (a.flags & kCpuAccessRequired) != 0;
  std::uint32_t kind = vram ? kfd::kVram : kfd::kGtt;
  if (visible) kind |= kfd::kPublic;
  std::shared_ptr<Pages> pages;
  if (const int error = memory_.create_pages(bytes, gpu_, kind | kfd::kWritable | kfd::kExecutable,
                                             Charge(vram ? use.gem_vram : use.gem_gtt, bytes), &pages))
    return error;
  pages->domains = a.domains == 0 ? std::uint64_t{kDomainCpu} : a.domains;
  pages->create_flags = a.flags;
  const auto handle = free_id(handles_);
  handles_.emplace(handle, std::move(pages));
  a = {.bytes = handle};
  return 0;
}

int DrmFile::close(std::uint32_t handle) {
  const auto it = handles_.find(handle);
  if (it == handles_.end()) return EINVAL;
  if (const int error = vm_.remove(*it->second)) return error;
  handles_.erase(it);
  return 0;
}

int DrmFile::mmap_offset(GemMmap& a) const {
  const auto* p = find(static_cast<std::uint32_t>(a.handle_then_offset));
  if (!p) return ENOENT;
  if (((*p)->create_flags & kNoCpuAccess) != 0) return EPERM;
  a.handle_then_offset = (*p)->offset;
  return 0;
}

int DrmFile::export_fd(Prime& a) const {
  if ((a.flags & ~(kPrimeCloexec | kPrimeWritable)) != 0) return EINVAL;
  const auto* p = find(a.handle);
  if (!p) return ENOENT;
  if (((*p)->create_flags & kVmAlwaysValid) != 0) return EPERM;
  const int fd = export_pages(**p, (a.flags & kPrimeWritable) != 0, static_cast<int>(a.flags));
  if (fd < 0) return -fd;
  a.fd = fd;
  return 0;
}

int DrmFile::import_fd(Prime& a) {
  const auto info = object_of(a.fd);
  if (!info || info->gpu >= memory_.gpus()) return is_open(a.fd) ? EINVAL : EBADF;
  std::shared_ptr<Pages> pages;
  if (const int error = memory_.share_pages(*info, FdLink(a.fd).path, &pages)) return error;
  const auto known = std::find_if(handles_.begin(), handles_.end(), [&](const auto& h) { return h.second == pages; });
  a.handle = known != handles_.end() ? known->first : free_id(handles_);
  if (known == handles_.end()) handles_.emplace(a.handle, std::move(pages));
  return 0;
}

int DrmFile::metadata(GemMetadata& a) const {
  const auto* p = find(a.handle);
  if (!p) return ENOENT;
  auto& m = (*p)->metadata;
  if (a.op == GemMetadata::kGet) {
    a.flags = m.flags;
    a.tiling = m.tiling;
    a.bytes = static_cast<std::uint32_t>(m.bytes.size());
    std::memcpy(a.data, m.bytes.data(), m.bytes.size());
    return 0;
  }
  if (a.op != GemMetadata::kSet) return EPERM;
  if (a.bytes > sizeof a.data) return EINVAL;
  const auto data = std::as_bytes(std::span(a.data)).first(a.bytes);
  m = {.flags = a.flags, .tiling = a.tiling, .bytes = {data.begin(), data.end()}};
  return 0;
}

/// Nothing but queues of KFD uses buffers here, and the kernel does not wait for those either.
int DrmFile::wait_idle(GemWaitIdle& a) const {
  const auto* p = find(a.handle_then_status);
  if (!p) return ENOENT;
  const bool vram = ((*p)->info.flags & kfd::kVram) != 0;
  a = {.handle_then_status = 0, .flags_then_domain = vram ? kDomainVram : kDomainGtt, .timeout = a.timeout};
  return 0;
}

int DrmFile::operate(const GemOp& a) const {
  const auto* p = find(a.handle);
  if (!p) return ENOENT;
  if (a.op == GemOp::kGetCreateInfo) {
    const auto info = created(**p);
    return to_user(a.value, &info, sizeof info) ? 0 : EFAULT;
  }
  if (a.op != GemOp::kSetPlacement) return EINVAL;
  (*p)->domains = a.value & (kDomainCpu | kDomainGtt | kDomainVram);
  return 0;
}

int DrmFile::va(const GemVa& a) {
  constexpr std::uint32_t kValid =
      kVaDelayUpdate | kVaReadable | kVaWriteable | kVaExecutable | kVaMemoryTypes | kVaNoAlloc;
  if (!in_range(a) || (a.flags & ~kValid) != 0) return EINVAL;
  if (a.operation < kVaMap || a.operation > kVaReplace) return EINVAL;
  if (a.operation == kVaClear) return aligned(a) ? vm_.clear(a.va, a.bytes) : EINVAL;
  const auto* p = find(a.handle);
  if (!p) return ENOENT;
  if (a.operation == kVaUnmap) return vm_.unmap(a.va, **p);
  if (!aligned(a) || a.offset + a.bytes > (*p)->info.bytes) return EINVAL;
  GpuVm::Piece piece{.bytes = a.bytes, .offset = a.offset, .pages = *p, .access = access_of(a.flags)};
  return a.operation == kVaMap ? vm_.map(a.va, std::move(piece)) : vm_.replace(a.va, std::move(piece));
}

}  // namespace sdma::emulator
