// SPDX-License-Identifier: MIT
// Each allocation of each ioctl, and of each interposed function, fails in turn: the process lives, the call says
// ENOMEM and has changed nothing, and it succeeds afterwards. Run under `sdma emulate --gpus=2 --watch`.
#include "../../lib/device/kfd/raw_client.hpp"

#include "support/catch.hpp"

#include <dirent.h>
#include <fts.h>
#include <ftw.h>
#include <glob.h>
#include <linux/ioctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <new>
#include <set>
#include <vector>

using namespace sdma::raw;

namespace {

/// How many allocations of this thread succeed before one fails; negative: all.
thread_local long allocations_left = -1;
thread_local bool one_failed = false;

void* allocate(std::size_t bytes, std::size_t alignment = alignof(std::max_align_t)) {
  if (allocations_left == 0) {
    allocations_left = -1;  // only one fails, so that what follows it must not depend on another failure
    one_failed = true;
    throw std::bad_alloc();
  }
  if (allocations_left > 0) --allocations_left;
  auto* p = std::aligned_alloc(alignment, (bytes + alignment) / alignment * alignment);
  if (!p) throw std::bad_alloc();
  return p;
}

}  // namespace

// The node's library uses these as well, because the program comes first in the order of look-up.
void* operator new(std::size_t bytes) { return allocate(bytes); }
void* operator new(std::size_t bytes, std::align_val_t a) { return allocate(bytes, static_cast<std::size_t>(a)); }
void operator delete(void* p) noexcept { std::free(p); }
void operator delete(void* p, std::size_t) noexcept { std::free(p); }
void operator delete(void* p, std::align_val_t) noexcept { std::free(p); }
void operator delete(void* p, std::size_t, std::align_val_t) noexcept { std::free(p); }

namespace {

/// Runs `fn` with a failure at allocation `n`. The errno-like result of `fn`, and whether an allocation failed.
struct Attempt {
  int error{};
  bool failed{};
};
template <class Fn> Attempt attempt(long n, Fn fn) {
  one_failed = false;
  allocations_left = n;
  const int error = fn();
  allocations_left = -1;
  return {error, one_failed};
}

/// The node's open descriptors, except those of its threads.
int descriptors() {
  int n = 0;
  for (int fd = 0; fd < 1100; ++fd) {
    char link[32], target[64]{};
    std::snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    n += ::readlink(link, target, sizeof target - 1) > 0 && std::strstr(target, "/memfd:sdma");
  }
  return n;
}

/// What a program can learn about the node's state.
std::vector<std::uint64_t> state(Client& c) {
  std::vector<std::uint64_t> s;
  for (std::uint32_t g = 0; g < 2; ++g) {
    kfd::AvailableMemory a{.bytes = 0, .gpu_id = c.gpu_id(g), .pad = 0};
    REQUIRE(call(c.kfd, Nr::available_memory, a) == 0);
    s.push_back(a.bytes);
    for (const auto query : {sdma::drm::kVramUsage, sdma::drm::kGttUsage})
      REQUIRE(ask(c.render[g], query, s.emplace_back()) == 0);
  }
  for (std::uint32_t id = 0; id < 4; ++id) {
    const std::uint32_t units = 1;
    kfd::SetCuMask mask{.queue_id = id, .bits = 32, .mask = reinterpret_cast<std::uint64_t>(&units)};
    s.push_back(static_cast<std::uint64_t>(call(c.kfd, Nr::set_cu_mask, mask)));
    for (const auto first : {1u, 0x70000000u}) {
      kfd::EventId e{.event_id = first + id, .pad = 0};
      s.push_back(static_cast<std::uint64_t>(call(c.kfd, Nr::reset_event, e)));
    }
  }
  s.push_back(static_cast<std::uint64_t>(descriptors()));
  return s;
}

int calls_with_failures = 0;

/// `undo` follows each success, and leaves the state as it was.
void each_allocation(
    Client& c, const std::string& name, const std::function<int()>& fn, const std::function<void()>& undo = [] {}) {
  INFO(name);
  for (long n = 0;; ++n) {
    INFO(n);
    REQUIRE(n < 1000);
    const auto before = state(c);
    const auto [error, failed] = attempt(n, fn);
    if (failed) ++calls_with_failures;
    // An allocation may be one that the call can do without.
    CHECK((error == 0 || (failed && error == ENOMEM)));
    if (error == 0) undo();
    CHECK(state(c) == before);
    if (!failed) break;
  }
}

int sorts(const dirent** a, const dirent** b) { return std::strcmp((*a)->d_name, (*b)->d_name); }

}  // namespace

// Comes first, because the children of this process build the tree and the node from nothing.
TEST_CASE("the interposed functions; the first of them builds the tree and the node") {
  const std::vector<std::pair<std::string, std::function<bool()>>> functions{
      {"open", [] { return ::open("/dev/kfd", O_RDWR) >= 0; }},
      {"open64", [] { return ::open64("/dev/dri/renderD128", O_RDWR) >= 0; }},
      {"openat", [] { return ::openat(AT_FDCWD, "/sys/class/kfd/kfd/topology/generation_id", O_RDONLY) >= 0; }},
      {"openat in a folder",
       [] {
         const int folder = ::open("/sys/class/kfd/kfd/topology", O_RDONLY | O_DIRECTORY);
         return folder >= 0 && ::openat(folder, "generation_id", O_RDONLY) >= 0;
       }},
      {"fopen",
       [] {
         auto* f = std::fopen("/sys/class/kfd/kfd/topology/generation_id", "r");
         return f && std::fclose(f) == 0;
       }},
      {"stat",
       [] {
         struct stat s {};
         return ::stat("/dev/dri/renderD128", &s) == 0;
       }},
      {"lstat",
       [] {
         struct stat s {};
         return ::lstat("/sys/class/drm/card0", &s) == 0;
       }},
      {"fstat",
       [] {
         const int fd = ::open("/sys/class/kfd/kfd/topology", O_RDONLY | O_DIRECTORY);
         struct stat s {};
         return fd >= 0 && ::fstat(fd, &s) == 0;
       }},
      {"statx",
       [] {
         struct statx s {};
         return ::statx(AT_FDCWD, "/dev/dri/renderD128", 0, STATX_BASIC_STATS, &s) == 0;
       }},
      {"access", [] { return ::access("/dev/dri/renderD128", R_OK) == 0; }},
      {"faccessat", [] { return ::faccessat(AT_FDCWD, "/dev/dri/renderD128", R_OK, 0) == 0; }},
      {"readlink",
       [] {
         char room[256];
         return ::readlink("/sys/class/drm/card0", room, sizeof room) > 0;
       }},
      {"opendir",
       [] {
         auto* d = ::opendir("/sys/class/kfd/kfd/topology/nodes");
         return d && ::readdir(d) && ::closedir(d) == 0;
       }},
      {"fdopendir",
       [] {
         const int fd = ::open("/sys/class/kfd/kfd/topology/nodes", O_RDONLY | O_DIRECTORY);
         auto* d = fd < 0 ? nullptr : ::fdopendir(fd);
         const int error = errno;
         if (!d && fd >= 0) ::close(fd);
         errno = error;
         return d && ::closedir(d) == 0;
       }},
      {"scandir",
       [] {
         dirent** all = nullptr;
         const int n = ::scandir("/sys/class/kfd/kfd/topology/nodes", &all, nullptr, sorts);
         return n >= 4;
       }},
      {"realpath",
       [] {
         auto* p = ::realpath("/sys/class/drm/card0", nullptr);
         std::free(p);
         return p != nullptr;
       }},
      {"chdir and getcwd",
       [] {
         char room[256];
         return ::chdir("/sys/class/kfd/kfd/topology") == 0 && ::getcwd(room, sizeof room) && ::chdir("/") == 0;
       }},
      {"glob",
       [] {
         glob_t g{};
         const int r = ::glob("/sys/class/kfd/kfd/topology/nodes/*", GLOB_ERR, nullptr, &g);
         ::globfree(&g);
         if (r != 0) errno = ENOMEM;
         return r == 0;
       }},
      {"nftw",
       [] {
         return ::nftw(
                    "/sys/class/kfd/kfd/topology/nodes/0", [](const char*, const struct stat*, int, FTW*) { return 0; },
                    8, FTW_PHYS) == 0;
       }},
      {"fts",
       [] {
         char path[] = "/sys/class/kfd/kfd/topology/nodes/0";
         char* const paths[] = {path, nullptr};
         auto* f = ::fts_open(paths, FTS_PHYSICAL, nullptr);
         if (!f) return false;
         errno = 0;
         while (::fts_read(f)) {}
         const int error = errno;
         ::fts_close(f);
         errno = error;
         return error == 0;
       }},
      {"readdir of the machine",
       [] {
         auto* d = ::opendir("/");
         return d && ::readdir(d) && ::closedir(d) == 0;
       }},
      {"lseek, mmap and ioctl of a node",
       [] {
         const int fd = ::open("/dev/kfd", O_RDWR);
         kfd::GetVersion v{};
         return fd >= 0 && ::lseek(fd, 0, SEEK_CUR) == -1 && errno == ESPIPE && call(fd, Nr::get_version, v) == 0 &&
                ::mmap(nullptr, kfd::kDoorbellBytes, PROT_READ, MAP_SHARED, fd, std::int64_t{1} << 32) != MAP_FAILED;
       }},
  };
  enum : int { kWorked, kNoMemory, kLeft, kOther };
  for (const auto& [name, fn] : functions) {
    INFO(name);
    int failures = 0;
    const bool first = name == "open";
    if (!first) (void)::access("/dev/kfd", F_OK);
    // The tree has thousands of entries: each of the first allocations fails, then some of the others. The children
    // inherit the tree after the first function.
    for (long n = 0;; n += first ? 1 + n / 8 : 1) {
      const auto child = ::fork();
      if (child == 0) {
        bool done = false;
        const auto before = descriptors();
        const auto [error, failed] = attempt(n, [&, &call = fn] {
          errno = 0;
          done = call();
          return done ? 0 : errno;
        });
        if (!failed) ::_exit(done ? kWorked : kOther);
        if (done) ::_exit(kNoMemory);
        if (error != ENOMEM) ::_exit(kOther);
        // The first of several calls may have succeeded; otherwise, nothing stays open except the node.
        if (descriptors() > before + 8) ::_exit(kLeft);
        ::_exit(fn() ? kNoMemory : kOther);
      }
      int status = -1;
      REQUIRE(::waitpid(child, &status, 0) == child);
      INFO(n);
      REQUIRE(WIFEXITED(status));
      REQUIRE((WEXITSTATUS(status) == kWorked || WEXITSTATUS(status) == kNoMemory));
      if (WEXITSTATUS(status) == kWorked) break;
      ++failures;
    }
    if (name != "readdir of the machine") CHECK(failures > 0);
  }
}

TEST_CASE("each ioctl of the table, and each of its allocations") {
  Client c;
  std::set<unsigned> tried;
  const auto each = [&](Nr nr, auto args, int expected, const std::function<void(decltype(args)&)>& undo = {}) {
    tried.insert(static_cast<unsigned>(nr));
    auto a = args;
    each_allocation(
        c, "ioctl " + std::to_string(static_cast<unsigned>(nr)),
        [&] {
          a = args;
          const int error = call(c.kfd, nr, a);
          return error == expected ? 0 : error == 0 ? EPROTO : error;
        },
        [&] {
          if (undo) undo(a);
        });
  };
  const auto all = c.ids(3);
  const auto gpu = c.gpu_id(0);
  const auto word = [](const auto& x) { return reinterpret_cast<std::uint64_t>(&x); };
  const auto release = [&](std::uint64_t handle) {
    kfd::FreeMemory f{handle};
    CHECK(call(c.kfd, Nr::free_memory, f) == 0);
  };

  // Memory.
  each(Nr::alloc_memory,
       kfd::AllocMemory{
           .va = 0x7000'0000'0000, .bytes = 4 << 20, .handle = 0, .mmap_offset = 0, .gpu_id = gpu, .flags = kfd::kVram},
       0, {[&](auto& a) { release(a.handle); }});
  alignas(4096) static std::byte mine[4096];
  each(Nr::alloc_memory,
       kfd::AllocMemory{.va = word(mine),
                        .bytes = 4096,
                        .handle = 0,
                        .mmap_offset = word(mine),
                        .gpu_id = gpu,
                        .flags = kfd::kUserptr},
       0, {[&](auto& a) { release(a.handle); }});
  for (const std::uint32_t more : {0u, std::uint32_t{kfd::kAqlQueue}}) {
    kfd::AllocMemory m{.va = 0x7100'0000'0000,
                       .bytes = 8192,
                       .handle = 0,
                       .mmap_offset = 0,
                       .gpu_id = gpu,
                       .flags = kfd::kGtt | kfd::kWritable | more};
    REQUIRE(call(c.kfd, Nr::alloc_memory, m) == 0);
    const kfd::MapMemory both{.handle = m.handle, .gpu_ids = word(all[0]), .count = 2, .done = 0};
    each(Nr::map_memory, both, 0, {[&](auto&) {
           auto u = both;
           CHECK(call(c.kfd, Nr::unmap_memory, u) == 0);
         }});
    // After a failure in the middle, the call continues where it stopped.
    auto map = both;
    REQUIRE(call(c.kfd, Nr::map_memory, map) == 0);
    tried.insert(static_cast<unsigned>(Nr::unmap_memory));
    for (long n = 0, failed = 1; failed != 0; ++n) {
      auto u = both;
      const auto [error, any] = attempt(n, [&] { return call(c.kfd, Nr::unmap_memory, u); });
      failed = any;
      CHECK(error == (any ? ENOMEM : 0));
      if (error != 0) CHECK(call(c.kfd, Nr::unmap_memory, u) == 0);
      kfd::FreeMemory f{m.handle};
      auto again = both;
      REQUIRE(call(c.kfd, Nr::map_memory, again) == 0);
      CHECK(call(c.kfd, Nr::free_memory, f) == EBUSY);
    }
    auto u = both;
    REQUIRE(call(c.kfd, Nr::unmap_memory, u) == 0);
    release(m.handle);
  }
  auto shared = c.allocate(8192, 0, kfd::kVram);
  each(Nr::export_dmabuf, kfd::ExportDmabuf{.handle = shared.handle, .flags = O_CLOEXEC, .fd = 0}, 0,
       {[](auto& a) { ::close(static_cast<int>(a.fd)); }});
  kfd::ExportDmabuf out{.handle = shared.handle, .flags = O_CLOEXEC, .fd = 0};
  REQUIRE(call(c.kfd, Nr::export_dmabuf, out) == 0);
  kfd::GetDmabufInfo info{};
  info.fd = out.fd;
  each(Nr::get_dmabuf_info, info, 0);
  const kfd::ImportDmabuf in{.va = 0x7200'0000'0000, .handle = 0, .gpu_id = gpu, .fd = out.fd};
  each(Nr::import_dmabuf, in, 0, {[&](auto& a) { release(a.handle); }});
  kfd::ExportIpc ipc{.handle = shared.handle, .shared = {}, .gpu_id = gpu, .flags = 0};
  each(Nr::ipc_export, ipc, 0);
  REQUIRE(call(c.kfd, Nr::ipc_export, ipc) == 0);
  kfd::ImportIpc from{};
  from.va = in.va;
  from.gpu_id = gpu;
  std::memcpy(from.shared, ipc.shared, sizeof from.shared);
  each(Nr::ipc_import, from, 0, {[&](auto& a) { release(a.handle); }});
  // The exporter's object is gone, so an import has pages of its own.
  REQUIRE(c.free(shared) == 0);
  each(Nr::import_dmabuf, in, 0, {[&](auto& a) { release(a.handle); }});
  ::close(static_cast<int>(out.fd));
  each(Nr::free_memory, kfd::FreeMemory{12345}, EINVAL);

  // Queues of each type, on a GPU whose thread does not run yet, and on one whose thread runs.
  for (const std::uint32_t g : {0u, 1u, 0u})
    for (const auto type : {kfd::kQueueSdma, kfd::kQueueSdmaByEngine, kfd::kQueueCompute, kfd::kQueueComputeAql}) {
      auto ring = c.allocate(4096, g), next = c.allocate(8192, g), pointers = c.allocate(4096, g);
      kfd::CreateQueue q{};
      q.ring = ring.va;
      q.ring_bytes = 4096;
      q.rptr = pointers.va;
      q.wptr = pointers.va + 64;
      q.gpu_id = c.gpu_id(g);
      q.type = type;
      q.percentage = 100;
      const std::function<void(kfd::CreateQueue&)> destroy = [&](auto& a) {
        kfd::DestroyQueue d{.queue_id = a.queue_id, .pad = 0};
        CHECK(call(c.kfd, Nr::destroy_queue, d) == 0);
      };
      each(Nr::create_queue, q, 0, destroy);
      REQUIRE(call(c.kfd, Nr::create_queue, q) == 0);
      kfd::UpdateQueue u{.ring = next.va, .queue_id = q.queue_id, .ring_bytes = 8192, .percentage = 100, .priority = 7};
      if (type == kfd::kQueueSdma || type == kfd::kQueueSdmaByEngine)
        each(Nr::update_queue, u, 0, {[&](auto&) {
               kfd::UpdateQueue back{
                   .ring = ring.va, .queue_id = q.queue_id, .ring_bytes = 4096, .percentage = 100, .priority = 7};
               CHECK(call(c.kfd, Nr::update_queue, back) == 0);
             }});
      each(Nr::set_cu_mask, kfd::SetCuMask{.queue_id = q.queue_id, .bits = 32, .mask = word(q)}, 0);
      each(Nr::alloc_queue_gws, kfd::AllocQueueGws{.queue_id = q.queue_id, .count = 1, .first = 0, .pad = 0}, 0,
           {[&](auto& a) {
             a.count = 0;
             CHECK(call(c.kfd, Nr::alloc_queue_gws, a) == 0);
           }});
      // A destroyed queue cannot come back: destroy must not need memory.
      tried.insert(static_cast<unsigned>(Nr::destroy_queue));
      kfd::DestroyQueue d{.queue_id = q.queue_id, .pad = 0};
      CHECK(attempt(0, [&] { return call(c.kfd, Nr::destroy_queue, d); }).error == 0);
      // Nothing is pinned any more.
      for (const auto& m : {ring, next, pointers}) CHECK(c.free(m) == 0);
    }

  // Events. The page comes with the first.
  auto page = c.allocate(kfd::kSignalEvents * 8);
  const std::function<void(kfd::CreateEvent&)> destroy = [&](auto& a) {
    kfd::EventId e{.event_id = a.event_id, .pad = 0};
    CHECK(call(c.kfd, Nr::destroy_event, e) == 0);
  };
  kfd::CreateEvent first{};
  first.page_offset = page.handle;
  tried.insert(static_cast<unsigned>(Nr::create_event));
  for (long n = 0, failed = 1; failed != 0; ++n) {
    auto a = first;
    const auto r = attempt(n, [&] { return call(c.kfd, Nr::create_event, a); });
    failed = r.failed;
    REQUIRE(r.error == (r.failed ? ENOMEM : 0));
    if (r.error == 0) destroy(a);
  }
  kfd::CreateEvent signal{}, memory{};
  signal.auto_reset = 1;
  memory.type = kfd::kEventMemory;
  each(Nr::create_event, signal, 0, destroy);
  each(Nr::create_event, memory, 0, destroy);
  REQUIRE(call(c.kfd, Nr::create_event, signal) == 0);
  const kfd::EventId id{.event_id = signal.event_id, .pad = 0};
  each(Nr::set_event, id, 0);
  each(Nr::reset_event, id, 0);
  kfd::EventData data[3]{};
  for (auto& d : data) d.event_id = signal.event_id;
  tried.insert(static_cast<unsigned>(Nr::wait_events));
  for (long n = 0, failed = 1; failed != 0; ++n) {
    auto set = id;
    REQUIRE(call(c.kfd, Nr::set_event, set) == 0);
    kfd::WaitEvents w{.events = word(data), .count = 3, .wait_for_all = 0, .timeout_ms = 0, .result = 9};
    const auto r = attempt(n, [&] { return call(c.kfd, Nr::wait_events, w); });
    failed = r.failed;
    CHECK(r.error == (r.failed ? ENOMEM : 0));
    // A wait that failed has not taken the signal of the event, which resets itself.
    if (r.error != 0) CHECK(call(c.kfd, Nr::wait_events, w) == 0);
    CHECK(w.result == kfd::kWaitComplete);
  }
  each(Nr::destroy_event, kfd::EventId{.event_id = 4000, .pad = 0}, EINVAL);
  destroy(signal);

  // All others.
  each(Nr::get_version, kfd::GetVersion{}, 0);
  each(Nr::set_memory_policy, kfd::SetMemoryPolicy{.gpu_id = gpu}, 0);
  each(Nr::get_clock_counters, kfd::GetClockCounters{.gpu_id = gpu}, 0);
  each(Nr::get_process_apertures, kfd::GetApertures{}, 0);
  kfd::Aperture apertures[2]{};
  each(Nr::get_process_apertures_new, kfd::GetAperturesNew{.apertures = word(apertures), .nodes = 2, .pad = 0}, 0);
  each(Nr::set_scratch_backing_va, kfd::ScratchBacking{.va = 0, .gpu_id = gpu, .pad = 0}, 0);
  each(Nr::get_tile_config, kfd::GetTileConfig{.gpu_id = gpu}, 0);
  each(Nr::set_trap_handler, kfd::SetTrapHandler{.tba = 0, .tma = 0, .gpu_id = gpu, .pad = 0}, 0);
  each(Nr::acquire_vm, kfd::AcquireVm{.drm_fd = static_cast<std::uint32_t>(c.render[0]), .gpu_id = gpu}, 0);
  each(Nr::available_memory, kfd::AvailableMemory{.bytes = 0, .gpu_id = gpu, .pad = 0}, 0);
  each(Nr::set_xnack_mode, kfd::SetXnackMode{-1}, 0);
  each(Nr::runtime_enable, kfd::RuntimeEnable{.r_debug = 0, .mode = 0, .capabilities = 0}, 0);
  each(Nr::smi_events, kfd::SmiEvents{.gpu_id = gpu, .fd = 0}, 0, {[](auto& a) { ::close(static_cast<int>(a.fd)); }});
  for (const auto nr : {Nr::dbg_register, Nr::dbg_unregister, Nr::dbg_address_watch, Nr::dbg_wave_control, Nr::criu_op})
    each(nr, std::uint64_t{}, EPERM);
  for (const auto nr : {Nr::create_process, Nr::profiler}) each(nr, std::uint64_t{}, ENOTTY);  // of later versions
  struct SetAccess : kfd::Svm {
    kfd::SvmAttribute access{};
  };
  auto* const managed = ::mmap(nullptr, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  REQUIRE(managed != MAP_FAILED);
  SetAccess svm;
  svm.begin = reinterpret_cast<std::uint64_t>(managed);
  svm.bytes = 8192;
  svm.count = 1;
  svm.access = {.kind = kfd::SvmKind::access, .value = gpu};
  each(Nr::svm, svm, 0, {[&](auto&) {
         ::munmap(managed, 8192);  // and the access goes with it
         REQUIRE(::mmap(managed, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) ==
                 managed);
       }});
  each(Nr::get_queue_wave_state, kfd::QueueWaveState{.queue_id = 12345}, EFAULT);
  kfd::DebugTrap debug;
  debug.pid = static_cast<std::uint32_t>(::getpid());
  debug.enable.fd = static_cast<std::uint32_t>(c.kfd);
  const std::function<void(kfd::DebugTrap&)> disable = [&](auto& a) {
    a.op = static_cast<std::uint32_t>(kfd::DebugOp::disable);
    CHECK(call(c.kfd, Nr::dbg_trap, a) == 0);
  };
  each(Nr::dbg_trap, debug, 0, disable);
  for (auto nr = static_cast<unsigned>(Nr::get_version); nr < static_cast<unsigned>(Nr::end); ++nr) {
    INFO(nr);
    CHECK(tried.count(nr) == 1);
  }
  CHECK(calls_with_failures > 50);

  // DRM.
  each_allocation(c, "AMDGPU_INFO", [&] {
    std::uint32_t yes = 0;
    return ask(c.render[0], 0, yes);
  });
}

TEST_CASE("each call of a DRM node, and each of its allocations") {
  namespace drm = sdma::drm;
  Client c;
  const int fd = c.render[0];
  constexpr std::uint64_t kAt = 0x7300'0000'0000;
  const auto each = [&](drm::Nr nr, auto args, const std::function<void(decltype(args)&)>& undo = {}) {
    auto a = args;
    each_allocation(
        c, "drm " + std::to_string(static_cast<unsigned>(nr)),
        [&] {
          a = args;
          return drm_call(fd, nr, a);
        },
        [&] {
          if (undo) undo(a);
        });
  };
  const auto close = [&](std::uint32_t handle) {
    drm::GemClose a{.handle = handle, .pad = 0};
    CHECK(drm_call(fd, drm::kGemClose, a) == 0);
  };
  drm::GemCreate buffer{.bytes = 16384, .alignment = 0, .domains = drm::kDomainVram, .flags = 0};
  each(drm::kGemCreate, buffer, {[&](auto& a) { close(static_cast<std::uint32_t>(a.bytes)); }});
  REQUIRE(drm_call(fd, drm::kGemCreate, buffer) == 0);
  const auto handle = static_cast<std::uint32_t>(buffer.bytes);
  each(drm::kGemMmap, drm::GemMmap{handle});
  each(drm::kGemWaitIdle, drm::GemWaitIdle{.handle_then_status = handle, .flags_then_domain = 0, .timeout = 0});
  drm::GemMetadata metadata{};
  metadata.handle = handle;
  metadata.op = drm::GemMetadata::kSet;
  metadata.bytes = 200;
  each(drm::kGemMetadata, metadata);
  drm::Prime shared{.handle = handle, .flags = drm::kPrimeCloexec, .fd = -1};
  each(drm::kPrimeHandleToFd, shared, {[](auto& a) { ::close(a.fd); }});
  auto m = c.allocate(8192, 0, kfd::kVram);
  kfd::ExportDmabuf out{.handle = m.handle, .flags = O_CLOEXEC, .fd = 0};
  REQUIRE(call(c.kfd, Nr::export_dmabuf, out) == 0);
  const drm::Prime in{.handle = 0, .flags = 0, .fd = static_cast<int>(out.fd)};
  each(drm::kPrimeFdToHandle, in, {[&](auto& a) { close(a.handle); }});
  REQUIRE(c.free(m) == 0);
  each(drm::kPrimeFdToHandle, in, {[&](auto& a) { close(a.handle); }});
  ::close(static_cast<int>(out.fd));
  const auto va = [&](std::uint32_t operation, std::uint64_t at, std::uint64_t bytes) {
    return drm::GemVa{
        .handle = handle, .pad = 0, .operation = operation, .flags = 6, .va = at, .offset = 0, .bytes = bytes};
  };
  const auto done = [&](drm::GemVa a) { CHECK(drm_call(fd, drm::kGemVa, a) == 0); };
  each(drm::kGemVa, va(drm::kVaMap, kAt, 16384), {[&](auto&) { done(va(drm::kVaUnmap, kAt, 0)); }});
  for (const auto& cut : {va(drm::kVaClear, kAt + 4096, 4096), va(drm::kVaReplace, kAt + 4096, 4096)}) {
    done(va(drm::kVaMap, kAt, 16384));
    each(drm::kGemVa, cut, {[&](auto&) { done(va(drm::kVaReplace, kAt, 16384)); }});
    done(va(drm::kVaUnmap, kAt, 0));
  }
  done(va(drm::kVaMap, kAt, 4096));
  each(drm::kGemVa, va(drm::kVaUnmap, kAt, 0), {[&](auto&) { done(va(drm::kVaMap, kAt, 4096)); }});
  each(drm::kContext, drm::Context{.op = drm::Context::kAllocate}, {[&](auto& a) {
         drm::Context gone{.op = drm::Context::kFree, .flags = 0, .id = a.op};
         CHECK(drm_call(fd, drm::kContext, gone) == 0);
       }});
  // A handle with several mappings goes with all of them, or stays with all of them.
  done(va(drm::kVaMap, kAt + 8192, 4096));
  for (long n = 0, failed = 1; failed != 0; ++n) {
    drm::GemClose a{.handle = handle, .pad = 0};
    const auto [error, any] = attempt(n, [&] { return drm_call(fd, drm::kGemClose, a); });
    failed = any;
    CHECK(error == (any ? ENOMEM : 0));
    if (any) {
      done(va(drm::kVaUnmap, kAt, 0));
      done(va(drm::kVaUnmap, kAt + 8192, 0));
      done(va(drm::kVaMap, kAt, 4096));
      done(va(drm::kVaMap, kAt + 8192, 4096));
    }
  }
}
