// SPDX-License-Identifier: MIT
// Buffers of a DRM file: handles, sharing, and the mappings that engines use. Run under `sdma emulate --gpus=2`.
#include "gem.hpp"

#include <sys/wait.h>
#include <algorithm>
#include <array>

using namespace gem;
using sdma::Ring;

namespace {

constexpr std::uint64_t kPage = 4096;

std::uint64_t used(int fd, std::uint32_t query) {
  std::uint64_t bytes = 0;
  REQUIRE(ask(fd, query, bytes) == 0);
  return bytes;
}

int imported(int fd, int dmabuf, std::uint32_t& handle) {
  drm::Prime p{.handle = 0, .flags = 0, .fd = dmabuf};
  const int error = drm_call(fd, drm::kPrimeFdToHandle, p);
  handle = p.handle;
  return error;
}
int exported(int fd, std::uint32_t handle, std::uint32_t flags, int& dmabuf) {
  drm::Prime p{.handle = handle, .flags = flags, .fd = -1};
  const int error = drm_call(fd, drm::kPrimeHandleToFd, p);
  dmabuf = p.fd;
  return error;
}

}  // namespace

TEST_CASE("a buffer is created, mapped for the host, described and closed") {
  const int fd = client().render[0];
  const auto vram = used(fd, drm::kVramUsage), gtt = used(fd, drm::kGttUsage);
  const auto a = create(fd, 3 * kPage + 1, drm::kDomainVram, drm::kCpuAccessRequired | drm::kVramCleared);
  const auto b = create(fd, kPage, drm::kDomainGtt);
  CHECK(a != b);
  CHECK(used(fd, drm::kVramUsage) == vram + 4 * kPage);
  CHECK(used(fd, drm::kGttUsage) == gtt + kPage);
  auto* at = host(fd, a, 4 * kPage);
  CHECK(at[0] == 0);
  at[1] = 7;
  drm::GemCreate info{};
  drm::GemOp op{.handle = a, .op = drm::GemOp::kGetCreateInfo, .value = reinterpret_cast<std::uint64_t>(&info)};
  CHECK(drm_call(fd, drm::kGemOp, op) == 0);
  CHECK(info.bytes == 4 * kPage);
  CHECK(info.domains == drm::kDomainVram);
  CHECK(info.flags == (drm::kCpuAccessRequired | drm::kVramCleared));
  op.value = 8;
  CHECK(drm_call(fd, drm::kGemOp, op) == EFAULT);
  drm::GemWaitIdle wait{.handle_then_status = b, .flags_then_domain = 0, .timeout = 0};
  CHECK(drm_call(fd, drm::kGemWaitIdle, wait) == 0);
  CHECK(wait.handle_then_status == 0);
  CHECK(wait.flags_then_domain == drm::kDomainGtt);
  CHECK(gem::close(fd, a) == 0);
  CHECK(used(fd, drm::kVramUsage) == vram);
  CHECK(gem::close(fd, a) == EINVAL);
  CHECK(at[1] == 7);  // the host's mapping keeps the pages
  ::munmap(at, 4 * kPage);
  CHECK(gem::close(fd, b) == 0);
  CHECK(used(fd, drm::kGttUsage) == gtt);
}

TEST_CASE("calls with wrong buffers get the kernel's errno") {
  const int fd = client().render[0];
  constexpr std::uint32_t kNone = 12345;
  drm::GemMmap map{kNone};
  CHECK(drm_call(fd, drm::kGemMmap, map) == ENOENT);
  drm::GemOp op{.handle = kNone, .op = 0, .value = 0};
  CHECK(drm_call(fd, drm::kGemOp, op) == ENOENT);
  drm::GemWaitIdle wait{.handle_then_status = kNone, .flags_then_domain = 0, .timeout = 0};
  CHECK(drm_call(fd, drm::kGemWaitIdle, wait) == ENOENT);
  const auto refused = [&](std::uint64_t bytes, std::uint64_t domains, std::uint64_t flags) {
    drm::GemCreate a{.bytes = bytes, .alignment = 0, .domains = domains, .flags = flags};
    return drm_call(fd, drm::kGemCreate, a);
  };
  CHECK(refused(kPage, drm::kDomainVram, 1u << 5) == EINVAL);   // contiguous: not for programs
  CHECK(refused(kPage, drm::kDomainVram, 1u << 10) == EINVAL);  // encrypted: not with this memory
  CHECK(refused(kPage, 0x40, 0) == EINVAL);                     // doorbells
  CHECK(refused(kPage, 0x08, 0) == ENOMEM);                     // there is no memory of this kind
  CHECK(refused(0, drm::kDomainVram, 0) == EINVAL);
  CHECK(refused(std::uint64_t{1} << 40, drm::kDomainVram, 0) == ENOMEM);
  CHECK(refused(std::uint64_t{1} << 46, drm::kDomainGtt, 0) == ENOMEM);
  const auto hidden = create(fd, kPage, drm::kDomainVram, drm::kNoCpuAccess);
  map.handle_then_offset = hidden;
  CHECK(drm_call(fd, drm::kGemMmap, map) == EPERM);
  CHECK(gem::close(fd, hidden) == 0);
  // Handles belong to a file.
  const int other = ::open("/dev/dri/renderD128", O_RDWR | O_CLOEXEC);
  const auto a = create(fd, kPage);
  map.handle_then_offset = a;
  CHECK(drm_call(other, drm::kGemMmap, map) == ENOENT);
  const int dup = ::dup(fd);  // of the same file
  CHECK(drm_call(dup, drm::kGemMmap, map) == 0);
  ::close(dup);
  ::close(other);
  CHECK(gem::close(fd, a) == 0);
}

TEST_CASE("metadata is kept, for DMABUFs as well") {
  const int fd = client().render[0];
  const auto a = create(fd, kPage);
  drm::GemMetadata m{};
  m.handle = a;
  m.op = drm::GemMetadata::kSet;
  m.flags = 3;
  m.tiling = 0x77;
  m.bytes = 8;
  m.data[1] = 0x1234;
  CHECK(drm_call(fd, drm::kGemMetadata, m) == 0);
  m.bytes = sizeof m.data + 1;
  CHECK(drm_call(fd, drm::kGemMetadata, m) == EINVAL);
  m = {};
  m.handle = a;
  m.op = 9;
  CHECK(drm_call(fd, drm::kGemMetadata, m) == EPERM);
  m.op = drm::GemMetadata::kGet;
  CHECK(drm_call(fd, drm::kGemMetadata, m) == 0);
  CHECK(m.flags == 3);
  CHECK(m.tiling == 0x77);
  CHECK(m.bytes == 8);
  CHECK(m.data[1] == 0x1234);
  int dmabuf = -1;
  CHECK(exported(fd, a, drm::kPrimeCloexec | drm::kPrimeWritable, dmabuf) == 0);
  std::array<std::uint32_t, 2> data{};
  kfd::GetDmabufInfo info{};
  info.fd = static_cast<std::uint32_t>(dmabuf);
  info.metadata = reinterpret_cast<std::uint64_t>(data.data());
  info.metadata_bytes = 4;
  CHECK(call(client().kfd, Nr::get_dmabuf_info, info) == EINVAL);
  CHECK(info.metadata_bytes == 8);  // so that the caller can make room
  CHECK(call(client().kfd, Nr::get_dmabuf_info, info) == 0);
  CHECK(data[1] == 0x1234);
  CHECK(info.flags == kfd::kVram);
  ::close(dmabuf);
  CHECK(gem::close(fd, a) == 0);
}

TEST_CASE("engines go through the mappings of GEM_VA") {
  const int fd = client().render[0];
  const auto at = reserve(8 * kPage);
  const auto a = create(fd, 4 * kPage), b = create(fd, kPage, drm::kDomainGtt);
  auto* bytes = host(fd, a, 4 * kPage);
  auto* other = host(fd, b, kPage);
  for (std::uint32_t page = 0; page < 4; ++page) bytes[page * 1024] = 100 + page;
  other[0] = 200;
  auto word = client().allocate(kPage);
  const auto read = [&](std::uint64_t from) -> std::uint32_t {
    *word.as<std::uint32_t>() = 0;
    return copied(0, word.va, from) ? *word.as<std::uint32_t>() : 0;
  };
  CHECK(va(fd, drm::kVaMap, a, at, 4 * kPage) == 0);
  CHECK(read(at + 2 * kPage) == 102);
  *word.as<std::uint32_t>() = 55;
  CHECK(copied(0, at + kPage, word.va));
  CHECK(bytes[1024] == 55);
  CHECK(va(fd, drm::kVaMap, a, at + 4 * kPage, kPage, 3 * kPage) == 0);  // a second time, in part
  CHECK(read(at + 4 * kPage) == 103);

  CHECK(va(fd, drm::kVaMap, b, at, kPage) == EINVAL);       // taken
  CHECK(va(fd, drm::kVaMap, b, word.va, kPage) == EINVAL);  // by KFD
  CHECK(va(fd, drm::kVaReplace, b, at + kPage, kPage) == 0);
  CHECK(read(at + kPage) == 200);
  CHECK(read(at) == 100);  // what remains of the piece that was cut
  CHECK(read(at + 3 * kPage) == 103);
  CHECK(va(fd, drm::kVaClear, 0, at + 2 * kPage, kPage) == 0);
  CHECK(read(at + 3 * kPage) == 103);
  CHECK(va(fd, drm::kVaMap, b, at + 2 * kPage, kPage) == 0);
  CHECK(read(at + 2 * kPage) == 200);
  // What was mapped by KFD cannot lie over it either.
  kfd::AllocMemory k{
      .va = at, .bytes = kPage, .handle = 0, .mmap_offset = 0, .gpu_id = client().gpu_id(0), .flags = kfd::kGtt};
  REQUIRE(call(client().kfd, Nr::alloc_memory, k) == 0);
  CHECK(client().map({.va = at, .bytes = kPage, .handle = k.handle, .offset = 0}, 1) == EINVAL);
  kfd::FreeMemory f{k.handle};
  CHECK(call(client().kfd, Nr::free_memory, f) == 0);

  CHECK(va(fd, drm::kVaUnmap, b, at, kPage) == ENOENT);  // a is there
  CHECK(va(fd, drm::kVaUnmap, a, at, kPage) == 0);
  CHECK(va(fd, drm::kVaUnmap, a, at, kPage) == ENOENT);
  CHECK(va(fd, drm::kVaMap, b, at, kPage) == 0);
  // A handle takes its mappings along, all of them.
  CHECK(gem::close(fd, b) == 0);
  CHECK(va(fd, drm::kVaMap, a, at, 3 * kPage) == 0);
  CHECK(gem::close(fd, a) == 0);
  const auto c = create(fd, 8 * kPage);
  CHECK(va(fd, drm::kVaMap, c, at, 8 * kPage) == 0);
  CHECK(gem::close(fd, c) == 0);
  ::munmap(bytes, 4 * kPage);
  ::munmap(other, kPage);
  CHECK(client().free(word) == 0);
}

TEST_CASE("GEM_VA checks its arguments") {
  const int fd = client().render[0];
  const auto at = reserve(4 * kPage);
  const auto a = create(fd, 2 * kPage);
  CHECK(va(fd, drm::kVaMap, 999, at, kPage) == ENOENT);
  CHECK(va(fd, drm::kVaMap, a, at + 8, kPage) == EINVAL);
  CHECK(va(fd, drm::kVaMap, a, at, 8) == EINVAL);
  CHECK(va(fd, drm::kVaMap, a, at, kPage, 8) == EINVAL);
  CHECK(va(fd, drm::kVaMap, a, at, 0) == EINVAL);
  CHECK(va(fd, drm::kVaMap, a, at, 3 * kPage) == EINVAL);  // more than the buffer has
  CHECK(va(fd, drm::kVaMap, a, at, kPage, 2 * kPage) == EINVAL);
  CHECK(va(fd, drm::kVaMap, a, 1 << 20, kPage) == EINVAL);                 // the driver's
  CHECK(va(fd, drm::kVaMap, a, std::uint64_t{1} << 47, kPage) == EINVAL);  // no address
  CHECK(va(fd, drm::kVaMap, a, 0xffff'ffff'ffff'f000, kPage) == EINVAL);   // the driver's
  CHECK(va(fd, drm::kVaMap, a, at, kPage, ~std::uint64_t{0} - 4095) == EINVAL);
  CHECK(va(fd, 0, a, at, kPage) == EINVAL);
  CHECK(va(fd, 5, a, at, kPage) == EINVAL);
  CHECK(va(fd, drm::kVaMap, a, at, kPage, 0, 1u << 20) == EINVAL);
  CHECK(va(fd, drm::kVaMap, 0, at, kPage, 0, drm::kVaPartiallyResident) == EINVAL);
  CHECK(va(fd, drm::kVaClear, 0, at + 8, kPage) == EINVAL);
  CHECK(va(fd, drm::kVaClear, 0, at, kPage) == 0);  // nothing is there
  CHECK(va(fd, drm::kVaUnmap, a, at, kPage) == ENOENT);
  CHECK(gem::close(fd, a) == 0);
}

TEST_CASE("a buffer of KFD and a DMABUF of it are one buffer, with one handle per file") {
  auto& c = client();
  const int fd = c.render[0], peer = c.render[1];
  auto m = c.allocate(2 * kPage, 0, kfd::kVram, 1);
  kfd::ExportDmabuf out{.handle = m.handle, .flags = O_CLOEXEC, .fd = 0};
  REQUIRE(call(c.kfd, Nr::export_dmabuf, out) == 0);
  const int dmabuf = static_cast<int>(out.fd);
  std::uint32_t first = 0, again = 0, theirs = 0;
  CHECK(imported(fd, dmabuf, first) == 0);
  CHECK(imported(fd, dmabuf, again) == 0);
  CHECK(first == again);
  CHECK(imported(peer, dmabuf, theirs) == 0);
  const auto at = reserve(2 * kPage);
  CHECK(va(peer, drm::kVaMap, theirs, at, 2 * kPage) == 0);
  m.as<std::uint32_t>()[1024] = 42;
  CHECK(copied(1, at, at + kPage));  // by the peer, which KFD has not mapped it for
  CHECK(*m.as<std::uint32_t>() == 42);
  CHECK(imported(fd, -1, again) == EBADF);
  CHECK(imported(fd, fd, again) == EINVAL);
  int back = -1;
  CHECK(exported(fd, 999, drm::kPrimeCloexec, back) == ENOENT);
  CHECK(exported(fd, first, 4, back) == EINVAL);
  REQUIRE(exported(fd, first, drm::kPrimeCloexec, back) == 0);
  CHECK(::mmap(nullptr, kPage, PROT_READ | PROT_WRITE, MAP_SHARED, back, 0) == MAP_FAILED);
  CHECK(errno == EACCES);
  ::close(back);
  const auto always = create(fd, kPage, drm::kDomainVram, drm::kVmAlwaysValid);
  CHECK(exported(fd, always, drm::kPrimeCloexec, back) == EPERM);
  CHECK(gem::close(fd, always) == 0);
  // Another process maps what it gets.
  const auto child = ::fork();
  if (child == 0) {
    Client mine;
    std::uint32_t h = 0;
    drm::GemMmap map{};
    bool good = imported(mine.render[0], dmabuf, h) == 0 && imported(fd, dmabuf, again) == EBADF;
    map.handle_then_offset = h;
    good = good && drm_call(mine.render[0], drm::kGemMmap, map) == 0;
    auto* p = static_cast<std::uint32_t*>(::mmap(nullptr, kPage, PROT_READ | PROT_WRITE, MAP_SHARED, mine.render[0],
                                                 static_cast<off_t>(map.handle_then_offset)));
    good = good && p != MAP_FAILED && p[0] == 42;
    if (good) p[1] = 43;
    ::_exit(good ? 0 : 1);
  }
  int status = -1;
  REQUIRE(::waitpid(child, &status, 0) == child);
  CHECK(status == 0);
  CHECK(m.as<std::uint32_t>()[1] == 43);
  // The handles keep the pages when KFD has freed the object.
  const auto used_by_both = used(fd, drm::kVramUsage);
  CHECK(c.free(m) == 0);
  CHECK(used(fd, drm::kVramUsage) == used_by_both);
  CHECK(gem::close(fd, first) == 0);
  CHECK(copied(1, at + 8, at));
  CHECK(gem::close(peer, theirs) == 0);
  ::close(dmabuf);
  CHECK(used(fd, drm::kVramUsage) == used_by_both - 2 * kPage);
}

TEST_CASE("a queue may have its ring in a buffer that GEM_VA maps, and holds the mapping") {
  auto& c = client();
  const int fd = c.render[0];
  const auto a = create(fd, kPage, drm::kDomainGtt);
  auto* ring = host(fd, a, kPage);
  const auto at = reinterpret_cast<std::uint64_t>(ring);
  REQUIRE(va(fd, drm::kVaMap, a, at, kPage) == 0);
  auto pointers = c.allocate(kPage);
  kfd::CreateQueue q{};
  q.ring = at;
  q.ring_bytes = kPage;
  q.rptr = pointers.va;
  q.wptr = pointers.va + 64;
  q.gpu_id = c.gpu_id(0);
  q.type = kfd::kQueueSdma;
  q.percentage = 100;
  REQUIRE(call(c.kfd, Nr::create_queue, q) == 0);
  CHECK(va(fd, drm::kVaUnmap, a, at, kPage) == EBUSY);
  CHECK(va(fd, drm::kVaClear, 0, at, kPage) == EBUSY);
  kfd::DestroyQueue d{.queue_id = q.queue_id, .pad = 0};
  CHECK(call(c.kfd, Nr::destroy_queue, d) == 0);
  CHECK(va(fd, drm::kVaUnmap, a, at, kPage) == 0);
  CHECK(gem::close(fd, a) == 0);
  ::munmap(ring, kPage);
  CHECK(c.free(pointers) == 0);
}

TEST_CASE("a file that is not acquired has mappings of its own, and goes with its last descriptor") {
  auto& c = client();
  const int fd = c.render[0];
  const auto before = used(fd, drm::kVramUsage);
  const int other = ::open("/dev/dri/renderD128", O_RDWR | O_CLOEXEC);
  const int dup = ::dup(other);
  const auto theirs = create(other, kPage), ours = create(fd, kPage);
  host(fd, ours, kPage)[0] = 5;
  const auto at = reserve(kPage);
  CHECK(va(other, drm::kVaMap, theirs, at, kPage) == 0);
  CHECK(va(fd, drm::kVaMap, ours, at, kPage) == 0);  // another address space
  auto word = c.allocate(kPage);
  CHECK(copied(0, word.va, at));
  CHECK(*word.as<std::uint32_t>() == 5);
  ::close(other);
  ::close(::open("/dev/dri/renderD128", O_RDWR | O_CLOEXEC));
  CHECK(used(fd, drm::kVramUsage) == before + 2 * kPage);  // the dup is left
  ::close(dup);
  ::close(::open("/dev/dri/renderD128", O_RDWR | O_CLOEXEC));
  CHECK(used(fd, drm::kVramUsage) == before + kPage);
  CHECK(gem::close(fd, ours) == 0);
  CHECK(c.free(word) == 0);
}

TEST_CASE("contexts have ids and clocks") {
  const int fd = client().render[0];
  using drm::Context;
  const auto ask_for = [&](Context a) { return drm_call(fd, drm::kContext, a); };
  Context a{.op = Context::kAllocate};
  REQUIRE(drm_call(fd, drm::kContext, a) == 0);
  const auto id = a.op;
  CHECK(id != 0);
  CHECK(ask_for({.op = Context::kAllocate, .flags = 1}) == EINVAL);
  a = {.op = Context::kQueryState2, .flags = 0, .id = id};
  CHECK(drm_call(fd, drm::kContext, a) == 0);
  CHECK((a.op == 0 && a.flags == 0 && a.id == 0 && a.priority == 0));  // no reset
  CHECK(ask_for({.op = Context::kSetClocks, .flags = 5, .id = id}) == EINVAL);
  CHECK(ask_for({.op = Context::kSetClocks, .flags = 4, .id = id}) == 0);
  a = {.op = Context::kGetClocks, .flags = 0, .id = id};
  CHECK(drm_call(fd, drm::kContext, a) == 0);
  CHECK(a.op == 4);
  CHECK(ask_for({.op = Context::kFree, .flags = 0, .id = id}) == 0);
  CHECK(ask_for({.op = Context::kFree, .flags = 0, .id = id}) == EINVAL);
  CHECK(ask_for({.op = Context::kQueryState, .flags = 0, .id = id}) == EINVAL);
  CHECK(ask_for({.op = 99}) == EINVAL);
}
