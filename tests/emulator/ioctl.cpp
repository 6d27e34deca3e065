// SPDX-License-Identifier: MIT
// What the node answers to ioctls, good and bad, of a program without a library. Run under `sdma emulate --gpus=2`.
#include "../../lib/device/kfd/raw_client.hpp"

#include "support/catch.hpp"

#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <array>
#include <cstring>
#include <thread>

using namespace sdma::raw;
using sdma::GpuId;

TEST_CASE("the devices look like devices") {
  struct stat s {};
  REQUIRE(::stat("/dev/kfd", &s) == 0);
  CHECK(S_ISCHR(s.st_mode));
  const int fd = ::open("/dev/dri/renderD129", O_RDWR);
  REQUIRE(fd >= 0);
  REQUIRE(::fstat(fd, &s) == 0);
  CHECK(S_ISCHR(s.st_mode));
  CHECK(major(s.st_rdev) == 226);
  CHECK(minor(s.st_rdev) == 129);
  const int dup = ::dup(fd);
  ::close(fd);
  REQUIRE(::fstat(dup, &s) == 0);
  CHECK(minor(s.st_rdev) == 129);
  ::close(dup);
  CHECK(::open("/dev/dri/renderD130", O_RDWR) == -1);
  CHECK(errno == ENOENT);
  CHECK(::open("/dev/kfd", O_RDWR | O_CREAT | O_EXCL, 0600) == -1);
  CHECK(errno == EEXIST);
  CHECK(::open("/sys/devices/virtual/kfd/kfd/topology/generation_id", O_RDWR) == -1);
  CHECK(errno == EACCES);
}

TEST_CASE("sizes are the caller's") {
  Client c;
  kfd::GetVersion v{};
  REQUIRE(call(c.kfd, Nr::get_version, v) == 0);
  CHECK(v.major == 1);
  CHECK(v.minor >= 17);
  v = {7, 7};
  REQUIRE(call(c.kfd, Nr::get_version, v, 4) == 0);  // an older struct: what it does not know stays
  CHECK(v.major == 1);
  CHECK(v.minor == 7);
  std::array<std::uint32_t, 4> longer{7, 7, 7, 7};
  REQUIRE(call(c.kfd, Nr::get_version, longer) == 0);
  CHECK(longer[3] == 0);  // the driver knows no more of it, and it goes out only: nothing of the caller's comes back
}

TEST_CASE("bad ioctls get the kernel's errno") {
  Client c;
  CHECK(::ioctl(c.kfd, _IOC(_IOC_READ, 'K', 0, 8), nullptr) == -1);
  CHECK(errno == EINVAL);
  CHECK(::ioctl(c.kfd, _IOC(_IOC_READ, 'K', 0xa0, 8), nullptr) == -1);
  CHECK(errno == ENOTTY);
  for (void* wild : {static_cast<void*>(nullptr), reinterpret_cast<void*>(8), reinterpret_cast<void*>(~0ull << 12)}) {
    CHECK(::ioctl(c.kfd, _IOC(_IOC_READ, 'K', 1, 8), wild) == -1);
    CHECK(errno == EFAULT);
    CHECK(::ioctl(c.kfd, _IOC(_IOC_READ | _IOC_WRITE, 'K', 2, 96), wild) == -1);
    CHECK(errno == EFAULT);
  }
  const int other = ::open("/dev/null", O_RDWR);
  CHECK(::ioctl(other, _IOC(_IOC_READ, 'K', 1, 8), nullptr) == -1);
  CHECK(errno == ENOTTY);
  ::close(other);

  kfd::AllocMemory a{.va = 0x10000, .bytes = 4096, .handle = 0, .mmap_offset = 0, .gpu_id = 1, .flags = kfd::kVram};
  CHECK(call(c.kfd, Nr::alloc_memory, a) == EINVAL);  // no such GPU
  a.gpu_id = c.gpu_id(0);
  a.bytes = 0;
  CHECK(call(c.kfd, Nr::alloc_memory, a) == EINVAL);
  a.bytes = 4096;
  a.flags = kfd::kWritable;
  CHECK(call(c.kfd, Nr::alloc_memory, a) == EINVAL);  // memory of no kind
  a.flags = kfd::kUserptr;
  CHECK(call(c.kfd, Nr::alloc_memory, a) == EINVAL);  // of no address
  a.flags = kfd::kDoorbell;
  CHECK(call(c.kfd, Nr::alloc_memory, a) == EINVAL);  // the doorbells are 8 KiB
  a.flags = kfd::kVram;
  a.bytes = 1ull << 45;
  CHECK(call(c.kfd, Nr::alloc_memory, a) == ENOMEM);
  a.flags = kfd::kGtt;  // more than the machine has
  CHECK(call(c.kfd, Nr::alloc_memory, a) == ENOMEM);
  kfd::FreeMemory f{0x123456789};
  CHECK(call(c.kfd, Nr::free_memory, f) == EINVAL);

  auto m = c.allocate(8192);
  REQUIRE(m.va != 0);
  kfd::FreeMemory mapped{m.handle};
  CHECK(call(c.kfd, Nr::free_memory, mapped) == EBUSY);
  kfd::MapMemory map{.handle = m.handle, .gpu_ids = 8, .count = 1, .done = 0};
  CHECK(call(c.kfd, Nr::map_memory, map) == EFAULT);
  map.count = 0;
  CHECK(call(c.kfd, Nr::map_memory, map) == EINVAL);
  const std::uint32_t nobody = 99;
  map = {.handle = m.handle, .gpu_ids = reinterpret_cast<std::uint64_t>(&nobody), .count = 1, .done = 0};
  CHECK(call(c.kfd, Nr::map_memory, map) == EINVAL);
  CHECK(c.unmap(m, 1) == 0);
  CHECK(c.unmap(m, 1) == EINVAL);  // not mapped there any more
  // The second of two GPUs does not exist: the call reports how far it has come, and continues there.
  std::uint32_t ids[]{c.gpu_id(0), nobody};
  map = {.handle = m.handle, .gpu_ids = reinterpret_cast<std::uint64_t>(ids), .count = 2, .done = 0};
  CHECK(call(c.kfd, Nr::map_memory, map) == EINVAL);
  CHECK(map.done == 1);
  ids[1] = c.gpu_id(1);
  CHECK(call(c.kfd, Nr::map_memory, map) == 0);
  CHECK(map.done == 2);
  CHECK(c.unmap(m, 3) == 0);
  CHECK(c.free(m) == 0);

  kfd::AcquireVm vm{.drm_fd = 9999, .gpu_id = c.gpu_id(0)};
  CHECK(call(c.kfd, Nr::acquire_vm, vm) == EINVAL);
  vm.drm_fd = static_cast<std::uint32_t>(c.kfd);
  CHECK(call(c.kfd, Nr::acquire_vm, vm) == EBUSY);
  kfd::EventId e{.event_id = 4000, .pad = 0};
  CHECK(call(c.kfd, Nr::set_event, e) == EINVAL);
  CHECK(call(c.kfd, Nr::reset_event, e) == EINVAL);
  CHECK(call(c.kfd, Nr::destroy_event, e) == EINVAL);
  kfd::DestroyQueue q{.queue_id = 77, .pad = 0};
  CHECK(call(c.kfd, Nr::destroy_queue, q) == EINVAL);
  kfd::UpdateQueue u{.ring = 0, .queue_id = 77, .ring_bytes = 0, .percentage = 100, .priority = 7};
  CHECK(call(c.kfd, Nr::update_queue, u) == EFAULT);
  u.percentage = 101;
  CHECK(call(c.kfd, Nr::update_queue, u) == EINVAL);
  kfd::SetXnackMode x{1};
  CHECK(call(c.kfd, Nr::set_xnack_mode, x) == EPERM);
  x.enabled = -1;
  CHECK(call(c.kfd, Nr::set_xnack_mode, x) == 0);
  CHECK(x.enabled == 0);
}

TEST_CASE("any number with any size and a wild pointer is an error, and the number's own direction counts") {
  Client c;
  constexpr unsigned kLast = static_cast<unsigned>(Nr::dbg_trap);
  for (unsigned nr = 1; nr < 256; ++nr)
    for (const unsigned size : {1u, 8u, 96u, 4000u, (1u << _IOC_SIZEBITS) - 1})
      for (const auto wild : {std::uint64_t{0}, std::uint64_t{4096}, std::uint64_t{1} << 47, ~std::uint64_t{0}}) {
        CHECK(::ioctl(c.kfd, _IOC(_IOC_READ | _IOC_WRITE, 'K', nr, size), wild) == -1);
        const bool known =
            nr <= kLast || nr == static_cast<unsigned>(Nr::ipc_import) || nr == static_cast<unsigned>(Nr::ipc_export);
        CHECK(errno == (known ? EFAULT : ENOTTY));
      }
  // No room at all is no bad pointer: all arguments are zero.
  for (unsigned nr = 1; nr <= kLast; ++nr) {
    // An event without a page would take away the place of the page that later tests bring.
    if (nr == static_cast<unsigned>(Nr::wait_events) || nr == static_cast<unsigned>(Nr::create_event)) continue;
    const int r = ::ioctl(c.kfd, _IOC(_IOC_NONE, 'K', nr, 0), nullptr);
    CHECK((r == 0 || errno == EINVAL || errno == EPERM || errno == ENODEV || errno == EFAULT || errno == ESRCH));
  }
  // The caller's direction bits are not what counts.
  kfd::GetVersion v{};
  CHECK(::ioctl(c.kfd, _IOC(_IOC_WRITE, 'K', 1, sizeof v), &v) == 0);
  CHECK(v.major == 1);
  // KFD looks at the number alone, whoever's letter it carries; DRM looks at the letter.
  CHECK(::ioctl(c.kfd, _IOC(_IOC_READ, 'd', 0, 64), &v) == -1);
  CHECK(errno == EINVAL);
  CHECK(::ioctl(c.render[0], _IOC(_IOC_READ, 'K', 1, 8), &v) == -1);
  CHECK(errno == ENOTTY);
}

TEST_CASE("memory of the program is looked at before it is taken") {
  Client c;
  constexpr std::size_t kBytes = 16384;
  auto* p =
      static_cast<std::byte*>(::mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  const auto take = [&](std::uint32_t rights) {
    kfd::AllocMemory a{.va = reinterpret_cast<std::uint64_t>(p),
                       .bytes = kBytes,
                       .handle = 0,
                       .mmap_offset = reinterpret_cast<std::uint64_t>(p),
                       .gpu_id = c.gpu_id(0),
                       .flags = kfd::kUserptr | rights};
    const int error = call(c.kfd, Nr::alloc_memory, a);
    kfd::FreeMemory f{a.handle};
    if (error == 0) CHECK(call(c.kfd, Nr::free_memory, f) == 0);
    return error;
  };
  CHECK(take(kfd::kWritable) == 0);
  REQUIRE(::mprotect(p + 8192, 4096, PROT_READ) == 0);
  CHECK(take(kfd::kWritable) == EPERM);
  CHECK(take(0) == 0);
  REQUIRE(::mprotect(p + 8192, 4096, PROT_NONE) == 0);
  CHECK(take(0) == EFAULT);
  REQUIRE(::munmap(p + 4096, 4096) == 0);
  CHECK(take(0) == EFAULT);
  ::munmap(p, kBytes);
}

TEST_CASE("what a queue or a process has once, it gets once") {
  Client c;
  Queue q(c, 0, kfd::kQueueComputeAql);
  REQUIRE(q.error == 0);
  kfd::AllocQueueGws gws{.queue_id = q.id, .count = 0, .first = 9, .pad = 0};
  CHECK(call(c.kfd, Nr::alloc_queue_gws, gws) == EINVAL);  // nothing to give back
  gws.count = 1;
  CHECK(call(c.kfd, Nr::alloc_queue_gws, gws) == 0);
  CHECK(gws.first == 0);
  CHECK(call(c.kfd, Nr::alloc_queue_gws, gws) == EBUSY);
  gws.count = 0;
  CHECK(call(c.kfd, Nr::alloc_queue_gws, gws) == 0);
  const std::uint32_t units = 1;
  kfd::SetCuMask mask{.queue_id = q.id, .bits = 32, .mask = reinterpret_cast<std::uint64_t>(&units)};
  CHECK(call(c.kfd, Nr::set_cu_mask, mask) == 0);
  mask.bits = 33;
  CHECK(call(c.kfd, Nr::set_cu_mask, mask) == EINVAL);
  mask = {.queue_id = q.id, .bits = 32, .mask = 8};
  CHECK(call(c.kfd, Nr::set_cu_mask, mask) == EFAULT);
  kfd::RuntimeEnable r{.r_debug = 0, .mode = 1, .capabilities = 0};
  CHECK(call(c.kfd, Nr::runtime_enable, r) == EEXIST);  // a queue is older than the runtime
  REQUIRE(q.destroy() == 0);
  CHECK(call(c.kfd, Nr::runtime_enable, r) == 0);
  const Queue later(c, 0, kfd::kQueueSdma);
  REQUIRE(later.error == 0);
  CHECK(call(c.kfd, Nr::runtime_enable, r) == EBUSY);
  r.mode = 0;
  CHECK(call(c.kfd, Nr::runtime_enable, r) == 0);
  CHECK(call(c.kfd, Nr::runtime_enable, r) == 0);
}

TEST_CASE("a descriptor goes on under another number") {
  Client c;
  const int other = ::dup(c.kfd);
  ::close(c.kfd);
  c.kfd = ::fcntl(other, F_DUPFD_CLOEXEC, 500);
  ::close(other);
  REQUIRE(c.kfd >= 500);
  auto m = c.allocate(4096);
  CHECK(m.va != 0);
  CHECK(c.free(m) == 0);
}

TEST_CASE("render nodes say what GPU they are, and take no submissions") {
  Client c;
  const auto ask = [&](std::uint32_t query, auto& out, std::uint32_t type = 0) {
    return sdma::raw::ask(c.render[1], query, out, type);
  };
  std::uint32_t word = 0;
  CHECK(ask(0x00, word) == 0);
  CHECK(word == 1);  // acceleration works
  CHECK(ask(0x03, word, 2) == 0);
  CHECK(word == c.node.topology.gpus[1].engines());
  CHECK(ask(0x03, word, 0) == 0);
  CHECK(word == 0);  // no graphics
  std::array<std::uint32_t, 2> firmware{};
  CHECK(ask(0x0e, firmware, 0x0b) == 0);
  CHECK(firmware[0] == c.node.gpus[1].sdma_firmware);
  std::array<std::uint32_t, 16> device{};
  CHECK(ask(0x16, device) == 0);
  CHECK(device[0] == c.node.gpus[1].device_id);
  std::array<std::uint64_t, 3> sizes{};
  CHECK(ask(0x14, sizes) == 0);
  CHECK(sizes[0] == c.node.topology.gpus[1].memory_bytes);
  CHECK(ask(0x7f, word) == EINVAL);
  CHECK(sdma::raw::ask(c.render[1], {.pointer = 8, .bytes = 4}) == EFAULT);
  for (const unsigned nr : {0x40u, 0x42u, 0x44u, 0x09u, 0xffu}) {  // buffers, contexts, submissions
    std::array<std::uint64_t, 8> args{};
    CHECK(::ioctl(c.render[1], _IOC(_IOC_READ | _IOC_WRITE, 'd', nr, sizeof args), args.data()) == -1);
    CHECK(errno == EINVAL);
  }
}

TEST_CASE("apertures: how many, and as many as there is room for") {
  Client c;
  kfd::GetAperturesNew a{};
  REQUIRE(call(c.kfd, Nr::get_process_apertures_new, a) == 0);
  REQUIRE(a.nodes == 2);
  std::array<kfd::Aperture, 2> out{};
  a = {.apertures = reinterpret_cast<std::uint64_t>(out.data()), .nodes = 1, .pad = 0};
  REQUIRE(call(c.kfd, Nr::get_process_apertures_new, a) == 0);
  CHECK(a.nodes == 1);
  CHECK(out[0].gpu_id == c.gpu_id(0));
  CHECK(out[0].gpuvm_limit >= (1ull << 47) - 1);
  CHECK(out[1].gpu_id == 0);
}

TEST_CASE("memory: what was allocated is what is mapped, counted and given back") {
  Client c;
  const auto available = [&] {
    kfd::AvailableMemory a{.bytes = 0, .gpu_id = c.gpu_id(1), .pad = 0};
    REQUIRE(call(c.kfd, Nr::available_memory, a) == 0);
    return a.bytes;
  };
  const auto before = available();
  auto m = c.allocate(8 << 20, 1, kfd::kVram);
  REQUIRE(m.va != 0);
  CHECK(before - available() == 8 << 20);
  std::memset(m.host(), 0x5a, m.bytes);
  CHECK(m.host()[m.bytes - 1] == std::byte{0x5a});
  REQUIRE(c.free(m) == 0);
  CHECK(available() == before);
}

TEST_CASE("a page of mailboxes that cannot be one") {
  Client c;
  constexpr std::uint64_t kBytes = kfd::kSignalEvents * 8;
  kfd::CreateEvent e{};
  const auto with = [&](const Memory& m) {
    e = {};
    e.page_offset = m.handle;
    return call(c.kfd, Nr::create_event, e);
  };
  auto small = c.allocate(kBytes / 2), vram = c.allocate(kBytes, 0, kfd::kVram);
  CHECK(with(small) == EINVAL);
  CHECK(with(vram) == EINVAL);
  // An AQL ring of this size has half the pages.
  auto doubled = c.allocate(kBytes, 0, kfd::kGtt | kfd::kAqlQueue);
  REQUIRE(doubled.va != 0);
  CHECK(with(doubled) == EINVAL);
  CHECK(with(Memory{.handle = 12345}) == EINVAL);
  CHECK(c.free(small) == 0);
  CHECK(c.free(vram) == 0);
  CHECK(c.free(doubled) == 0);
}

TEST_CASE("events: set, reset, auto reset, waiting for one and for all, and until the time is over") {
  Client c;
  auto page = c.allocate(kfd::kSignalEvents * 8);
  const auto create = [&](bool auto_reset, std::uint64_t handle) {
    kfd::CreateEvent e{};
    e.page_offset = handle;
    e.auto_reset = auto_reset;
    REQUIRE(call(c.kfd, Nr::create_event, e) == 0);
    CHECK(e.page_offset != 0);
    CHECK(e.trigger_data == e.event_id);
    return e.event_id;
  };
  const auto a = create(false, page.handle), b = create(true, 0);
  const auto wait = [&](std::vector<std::uint32_t> ids, bool all, std::uint32_t ms) {
    std::vector<kfd::EventData> data(ids.size());
    for (std::size_t i = 0; i < ids.size(); ++i) data[i].event_id = ids[i];
    kfd::WaitEvents w{.events = reinterpret_cast<std::uint64_t>(data.data()),
                      .count = static_cast<std::uint32_t>(ids.size()),
                      .wait_for_all = all,
                      .timeout_ms = ms,
                      .result = 9};
    const int error = call(c.kfd, Nr::wait_events, w);
    return error == 0 ? static_cast<int>(w.result) : -error;
  };
  const auto set = [&](std::uint32_t id) {
    kfd::EventId e{.event_id = id, .pad = 0};
    REQUIRE(call(c.kfd, Nr::set_event, e) == 0);
  };
  CHECK(wait({a}, false, 0) == kfd::kWaitTimeout);
  CHECK(wait({a}, false, 5) == kfd::kWaitTimeout);
  set(a);
  CHECK(wait({a}, false, 0) == kfd::kWaitComplete);
  CHECK(wait({a}, false, 0) == kfd::kWaitComplete);  // stays until it is reset
  CHECK(wait({a, b}, true, 5) == kfd::kWaitTimeout);
  CHECK(wait({a, b}, false, 5) == kfd::kWaitComplete);
  set(b);
  CHECK(wait({a, b}, true, 0) == kfd::kWaitComplete);
  CHECK(wait({b}, false, 0) == kfd::kWaitTimeout);  // resets itself
  kfd::EventId r{.event_id = a, .pad = 0};
  REQUIRE(call(c.kfd, Nr::reset_event, r) == 0);
  CHECK(wait({a}, false, 0) == kfd::kWaitTimeout);
  CHECK(wait({a, 4000}, false, 0) == -EINVAL);

  int error = -1;
  std::thread later([&] {
    kfd::EventId e{.event_id = a, .pad = 0};
    error = call(c.kfd, Nr::set_event, e);
  });
  const int result = wait({a}, false, 0xffffffff);
  later.join();
  CHECK(error == 0);
  CHECK(result == kfd::kWaitComplete);
  REQUIRE(call(c.kfd, Nr::destroy_event, r) == 0);
  CHECK(call(c.kfd, Nr::destroy_event, r) == EINVAL);
}

TEST_CASE("a wait ends when its event is destroyed") {
  Client c;
  kfd::CreateEvent e{};
  e.type = kfd::kEventMemory;
  REQUIRE(call(c.kfd, Nr::create_event, e) == 0);
  kfd::EventData data{};
  data.event_id = e.event_id;
  kfd::WaitEvents w{.events = reinterpret_cast<std::uint64_t>(&data),
                    .count = 1,
                    .wait_for_all = 0,
                    .timeout_ms = 0xffffffff,
                    .result = 0};
  int error = -1;
  std::thread waiting([&] { error = call(c.kfd, Nr::wait_events, w); });
  kfd::EventId id{.event_id = e.event_id, .pad = 0};
  ::usleep(20'000);
  REQUIRE(call(c.kfd, Nr::destroy_event, id) == 0);
  waiting.join();
  CHECK((error == EIO || error == EINVAL));  // EINVAL: destroyed before the wait began
}

TEST_CASE("memory of the program under another GPU address, exported and imported") {
  Client c;
  auto m = c.allocate(16384, 0, kfd::kVram);
  kfd::ExportDmabuf out{.handle = m.handle, .flags = O_CLOEXEC, .fd = 0};
  REQUIRE(call(c.kfd, Nr::export_dmabuf, out) == 0);
  kfd::GetDmabufInfo info{};
  info.fd = out.fd;
  REQUIRE(call(c.kfd, Nr::get_dmabuf_info, info) == 0);
  CHECK(info.bytes == 16384);
  CHECK(info.gpu_id == c.gpu_id(0));
  kfd::ImportDmabuf in{.va = m.va + (1ull << 40), .handle = 0, .gpu_id = c.gpu_id(1), .fd = out.fd};
  REQUIRE(call(c.kfd, Nr::import_dmabuf, in) == 0);
  CHECK(in.handle != m.handle);
  kfd::FreeMemory f{in.handle};
  CHECK(call(c.kfd, Nr::free_memory, f) == 0);
  info.fd = in.fd = static_cast<std::uint32_t>(c.kfd);  // open, but not a DMABUF
  CHECK(call(c.kfd, Nr::get_dmabuf_info, info) == EINVAL);
  CHECK(call(c.kfd, Nr::import_dmabuf, in) == EINVAL);
  ::close(static_cast<int>(out.fd));
  info.fd = in.fd = out.fd;
  CHECK(call(c.kfd, Nr::get_dmabuf_info, info) == EBADF);
  CHECK(call(c.kfd, Nr::import_dmabuf, in) == EBADF);
  CHECK(c.free(m) == 0);
}
