// SPDX-License-Identifier: MIT
// What programs of others do that a client of libhsakmt does not: they find functions another way, wait while signals
// arrive, create events without a page, and read how their memory is mapped.
#include "../../lib/device/kfd/raw_client.hpp"

#include "support/catch.hpp"

#include <dlfcn.h>
#include <elf.h>
#include <linux/dma-buf.h>
#include <poll.h>
#include <pthread.h>
#include <spawn.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <algorithm>
#include <array>
#include <atomic>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <functional>
#include <string>
#include <thread>

using namespace sdma::raw;

namespace {

/// The flags in /proc/self/smaps of the mapping that begins at an address.
std::string flags_of(const void* at) {
  std::ifstream maps("/proc/self/smaps");
  char begin[32];
  std::snprintf(begin, sizeof begin, "%lx-", reinterpret_cast<unsigned long>(at));
  bool found = false;
  for (std::string line; std::getline(maps, line);) {
    found = found || line.starts_with(begin);
    if (found && line.starts_with("VmFlags:")) return line + " ";
  }
  return {};
}

std::uint32_t event(Client& c, bool auto_reset = true) {
  kfd::CreateEvent e{};
  e.auto_reset = auto_reset;
  REQUIRE(call(c.kfd, Nr::create_event, e) == 0);
  CHECK(e.page_offset == std::uint64_t{1} << 63);
  return e.event_id;
}

std::atomic<int> handled{0};

/// Waits for an event while another thread interrupts the wait until `over` returns true or the wait has ended.
int wait_interrupted(Client& c, kfd::WaitEvents& w, int flags, const std::function<bool()>& over) {
  struct sigaction s {};
  s.sa_handler = [](int) { ++handled; };
  s.sa_flags = flags;
  handled = 0;
  // Catch2 has handlers of its own, and the node does not know which one of several ran.
  std::array<struct sigaction, 32> before{};
  const struct sigaction none {};
  for (int n = 1; n < 32; ++n) ::sigaction(n, &none, &before[static_cast<std::size_t>(n)]);
  REQUIRE(::sigaction(SIGUSR1, &s, nullptr) == 0);
  std::atomic<bool> ended{false};
  const auto waiter = ::pthread_self();
  std::thread other([&] {
    while (!ended && !over()) {
      ::pthread_kill(waiter, SIGUSR1);
      ::usleep(1000);
    }
  });
  const int error = call(c.kfd, Nr::wait_events, w);
  ended = true;
  other.join();
  for (int n = 1; n < 32; ++n) ::sigaction(n, &before[static_cast<std::size_t>(n)], nullptr);
  return error;
}

}  // namespace

TEST_CASE("mmap that a program finds in the C library's own handle maps the node's memory") {
  Client c;
  void* const libc = ::dlopen("libc.so.6", RTLD_NOW);
  REQUIRE(libc != nullptr);
  const auto map = reinterpret_cast<decltype(&::mmap)>(::dlsym(libc, "mmap"));
  REQUIRE(map != nullptr);
  auto m = c.allocate(8192);
  auto* at = map(nullptr, 8192, PROT_READ | PROT_WRITE, MAP_SHARED, c.render[0], static_cast<off_t>(m.offset));
  REQUIRE(at != MAP_FAILED);
  m.host()[5000] = std::byte{7};
  CHECK(static_cast<std::byte*>(at)[5000] == std::byte{7});
  ::munmap(at, 8192);
  CHECK(c.free(m) == 0);
  // Everything else is found as before, and leaves no error behind.
  CHECK(reinterpret_cast<decltype(&::getpid)>(::dlsym(libc, "getpid"))() == ::getpid());
  CHECK(::dlerror() == nullptr);
  CHECK(::dlsym(libc, "no_such_function") == nullptr);
  CHECK(::dlerror() != nullptr);
  CHECK(::dlsym(RTLD_DEFAULT, "mmap") == reinterpret_cast<void*>(map));
}

TEST_CASE("devices that are opened, asked and mapped by number are the node's") {
  Client c;
  const auto number = [](const char* path) {
    return static_cast<int>(::syscall(SYS_openat, AT_FDCWD, path, O_RDWR | O_CLOEXEC));
  };
  const int fd = number("/dev/kfd"),
            render = number(("/dev/dri/renderD" + std::to_string(c.node.gpus[0].render_minor)).c_str());
  REQUIRE(fd >= 0);
  REQUIRE(render >= 0);
  kfd::GetVersion v{};
  CHECK(::syscall(SYS_ioctl, fd, kfd::request<kfd::GetVersion>(Nr::get_version, kfd::kOut), &v) == 0);
  CHECK(v.major == 1);
  auto m = c.allocate(4096);
  const auto at = ::syscall(SYS_mmap, nullptr, 4096, PROT_READ, MAP_SHARED, render, m.offset);
  REQUIRE(at != -1);
  *m.host() = std::byte{9};
  CHECK(*reinterpret_cast<std::byte*>(at) == std::byte{9});
  CHECK(flags_of(reinterpret_cast<void*>(at)).find(" dd ") != std::string::npos);
  ::munmap(reinterpret_cast<void*>(at), 4096);
  CHECK(::syscall(SYS_open, "/sys/class/kfd/kfd/topology/generation_id", O_RDONLY) >= 0);
  // Everything else is the kernel's, bad pointers included.
  CHECK(::syscall(SYS_getpid) == ::getpid());
  CHECK((::syscall(SYS_openat, AT_FDCWD, 16, O_RDONLY) == -1 && errno == EFAULT));
  CHECK((::syscall(SYS_open, "/dev/no such file", O_RDONLY) == -1 && errno == ENOENT));
  ::close(fd);
  ::close(render);
  CHECK(c.free(m) == 0);
}

TEST_CASE("a program that is linked statically and names the device is named on stderr") {
  char folder[] = "/tmp/sdma-static-XXXXXX";
  REQUIRE(::mkdtemp(folder) != nullptr);
  const std::string around = std::string(folder) + "/around", quiet = std::string(folder) + "/quiet";
  for (const auto& path : {around, quiet}) {
    Elf64_Ehdr h{};
    std::memcpy(h.e_ident, ELFMAG, SELFMAG);
    h.e_ident[EI_CLASS] = ELFCLASS64;
    h.e_type = ET_EXEC;
    std::ofstream(path, std::ios::binary).write(reinterpret_cast<const char*>(&h), sizeof h)
        << (path == around ? "/dev/kfd" : "/dev/null");
    REQUIRE(::chmod(path.c_str(), 0755) == 0);
  }
  char arg[] = "it", *argv[] = {arg, nullptr};
  pid_t made = 0;
  const std::function<void(const char*, const char*)> ways[] = {
      [&](auto path, auto) { ::execve(path, argv, environ); },
      [&](auto path, auto) { ::execv(path, argv); },
      [&](auto, auto name) { ::execvp(name, argv); },
      [&](auto, auto name) { ::execvpe(name, argv, environ); },
      [&](auto path, auto) { ::execl(path, "it", "with", "more", nullptr); },
      [&](auto, auto name) { ::execlp(name, "it", nullptr); },
      [&](auto path, auto) { ::execle(path, "it", nullptr, environ); },
      [&](auto path, auto) { ::posix_spawn(&made, path, nullptr, nullptr, argv, environ); },
      [&](auto, auto name) { ::posix_spawnp(&made, name, nullptr, nullptr, argv, environ); },
  };
  for (std::size_t i = 0; i < std::size(ways); ++i)
    for (const auto& path : {around, quiet}) {
      INFO(i << " " << path);
      int ends[2]{};
      REQUIRE(::pipe(ends) == 0);
      const auto child = ::fork();
      if (child == 0) {
        ::dup2(ends[1], 2);
        ::close(ends[1]);
        ::close(ends[0]);
        ::setenv("PATH", (std::string("/nowhere:") + folder).c_str(), 1);
        ways[i](path.c_str(), path.c_str() + std::strlen(folder) + 1);
        ::_exit(0);
      }
      ::close(ends[1]);
      std::string said;
      char room[512];
      for (ssize_t n; (n = ::read(ends[0], room, sizeof room)) > 0;) said.append(room, static_cast<std::size_t>(n));
      ::close(ends[0]);
      ::waitpid(child, nullptr, 0);
      const auto expected = "sdma emulator: '" + around + "' is linked statically: it does not find the node's GPUs\n";
      CHECK(said.starts_with(expected) == (path == around));
      CHECK((said.find("sdma emulator") != said.npos) == (path == around));
    }
  ::unlink(around.c_str());
  ::unlink(quiet.c_str());
  ::rmdir(folder);
}

TEST_CASE("a library that is loaded with RTLD_DEEPBIND opens the node's device") {
  void* const library = ::dlopen(SDMA_STRANGER, RTLD_NOW | RTLD_DEEPBIND);
  REQUIRE(library != nullptr);
  const auto opens = reinterpret_cast<int (*)(const char*)>(::dlsym(library, "opens"));
  REQUIRE(opens != nullptr);
  const int fd = opens("/dev/kfd");
  CHECK(fd >= 0);
  kfd::GetVersion v{};
  CHECK(call(fd, Nr::get_version, v) == 0);
  ::close(fd);
}

TEST_CASE("a program that brings no page of events gets one: 256 slots, which it can map") {
  Client c;
  const auto id = event(c);
  auto* page = static_cast<std::uint64_t*>(::mmap(nullptr, kfd::kSignalEvents * 8, PROT_READ | PROT_WRITE, MAP_SHARED,
                                                  c.kfd, static_cast<off_t>(std::uint64_t{1} << 63)));
  REQUIRE(page != MAP_FAILED);
  CHECK(page[id] == ~std::uint64_t{0});
  auto m = c.allocate(kfd::kSignalEvents * 8);
  kfd::CreateEvent late{};
  late.page_offset = m.handle;
  CHECK(call(c.kfd, Nr::create_event, late) == EINVAL);  // there is a page already
  CHECK(c.free(m) == 0);
  std::vector<std::uint32_t> more;
  kfd::CreateEvent e{};
  int error = 0;
  while (more.size() < 300 && (error = call(c.kfd, Nr::create_event, e)) == 0) {
    more.push_back(e.event_id);
    e = {};
  }
  CHECK(error == ENOSPC);
  CHECK(more.back() == 255);
  for (const auto n : more) {
    kfd::EventId gone{.event_id = n};
    CHECK(call(c.kfd, Nr::destroy_event, gone) == 0);
  }
  CHECK(flags_of(page).find(" dd ") != std::string::npos);
  ::munmap(page, kfd::kSignalEvents * 8);
}

TEST_CASE("a signal ends a wait for events, and takes none away; a handler with SA_RESTART lets it continue") {
  Client c;
  const auto id = event(c), never = event(c);
  kfd::EventData data[2]{};
  data[0].event_id = id;
  data[1].event_id = never;
  for (const auto timeout : {~0u, 600'000u}) {
    kfd::WaitEvents w{.events = reinterpret_cast<std::uint64_t>(data), .count = 2, .wait_for_all = 1};
    w.timeout_ms = timeout;
    kfd::EventId set{.event_id = id};
    REQUIRE(call(c.kfd, Nr::set_event, set) == 0);
    CHECK(wait_interrupted(c, w, 0, [] { return false; }) == EINTR);
    CHECK(handled > 0);
    CHECK(w.timeout_ms <= timeout);
    CHECK(w.timeout_ms > timeout / 2);
    // The event that the wait had taken is signalled again.
    w.count = 1;
    w.timeout_ms = 0;
    CHECK(call(c.kfd, Nr::wait_events, w) == 0);
    CHECK(w.result == kfd::kWaitComplete);
    w.timeout_ms = timeout;
    CHECK(wait_interrupted(c, w, SA_RESTART, [&] {
            if (handled < 3) return false;
            call(c.kfd, Nr::set_event, set);
            return true;
          }) == 0);
    CHECK(w.result == kfd::kWaitComplete);
  }
}

TEST_CASE("mappings have the driver's flags: no core dump contains them, and a child inherits memory alone") {
  Client c;
  auto m = c.allocate(1 << 20, 0, kfd::kVram);
  Queue q(c, 0, kfd::kQueueSdma);
  REQUIRE(q.error == 0);
  CHECK(flags_of(m.host()).find(" dd ") != std::string::npos);
  CHECK(flags_of(m.host()).find(" dc ") == std::string::npos);
  CHECK(flags_of(c.doorbells[0]).find(" dd ") != std::string::npos);
  CHECK(flags_of(c.doorbells[0]).find(" dc ") != std::string::npos);
  q.destroy();
  CHECK(c.free(m) == 0);
  // Nor do the node's own views of it.
  std::ifstream maps("/proc/self/smaps");
  bool ours = false;
  for (std::string line; std::getline(maps, line);) {
    if (line.find("/memfd:sdma-") != std::string::npos) ours = true;
    if (!ours || !line.starts_with("VmFlags:")) continue;
    ours = false;
    INFO(line);
    CHECK((line + " ").find(" dd ") != std::string::npos);
  }
}

TEST_CASE("a DMABUF can be synchronised, named and polled") {
  Client c;
  auto m = c.allocate(4096, 0, kfd::kVram);
  kfd::ExportDmabuf out{.handle = m.handle, .flags = O_CLOEXEC, .fd = 0};
  REQUIRE(call(c.kfd, Nr::export_dmabuf, out) == 0);
  const int fd = static_cast<int>(out.fd);
  const auto sync = [&](std::uint64_t flags) {
    dma_buf_sync s{.flags = flags};
    return ::ioctl(fd, DMA_BUF_IOCTL_SYNC, &s) == 0 ? 0 : errno;
  };
  CHECK(sync(DMA_BUF_SYNC_START | DMA_BUF_SYNC_RW) == 0);
  CHECK(sync(DMA_BUF_SYNC_END | DMA_BUF_SYNC_READ) == 0);
  CHECK(sync(DMA_BUF_SYNC_START) == EINVAL);
  CHECK(sync(DMA_BUF_SYNC_RW | 64) == EINVAL);
  CHECK((::ioctl(fd, DMA_BUF_IOCTL_SYNC, nullptr) == -1 && errno == EFAULT));
  CHECK(::ioctl(fd, DMA_BUF_SET_NAME, "weights") == 0);
  CHECK((::ioctl(fd, DMA_BUF_SET_NAME, std::string(40, 'x').c_str()) == -1 && errno == EINVAL));
  CHECK((::ioctl(fd, DMA_BUF_SET_NAME, nullptr) == -1 && errno == EFAULT));
  CHECK((::ioctl(fd, _IO('b', 77)) == -1 && errno == ENOTTY));
  pollfd p{.fd = fd, .events = POLLIN | POLLOUT, .revents = 0};
  CHECK(::poll(&p, 1, 0) == 1);
  CHECK(p.revents == (POLLIN | POLLOUT));
  ::close(fd);
  CHECK(c.free(m) == 0);
}

TEST_CASE("an inactive compute queue has no waves; other queues are refused") {
  Client c;
  Queue aql(c, 0, kfd::kQueueComputeAql), sdma(c, 0, kfd::kQueueSdma);
  REQUIRE(aql.error == 0);
  REQUIRE(sdma.error == 0);
  std::uint32_t header[4] = {9, 9, 9, 9};
  const auto ask = [&](std::uint32_t id, void* to) {
    kfd::QueueWaveState a{.control_stack = reinterpret_cast<std::uint64_t>(to),
                          .control_stack_used = 9,
                          .save_area_used = 9,
                          .queue_id = id};
    const int error = call(c.kfd, Nr::get_queue_wave_state, a);
    if (error == 0) CHECK((a.control_stack_used == 0 && a.save_area_used == 0));
    return error;
  };
  CHECK(ask(aql.id, header) == EINVAL);  // active
  kfd::UpdateQueue off{};
  off.queue_id = aql.id;
  REQUIRE(call(c.kfd, Nr::update_queue, off) == 0);
  CHECK(ask(aql.id, header) == 0);
  CHECK((header[0] == 0 && header[1] == 0 && header[3] == 0));
  CHECK(ask(aql.id, nullptr) == EFAULT);
  CHECK(ask(sdma.id, header) == EINVAL);
  CHECK(ask(12345, header) == EFAULT);
}

TEST_CASE("GPUs have the engines that the node was asked for", "[engines]") {
  Client c;
  const auto& gpu = c.node.topology.gpus[0];
  const bool one = std::getenv("SDMA_EMULATE_ENGINES") != nullptr;
  CHECK(gpu.engines() == (one ? 1u : 16u));
  for (const auto& l : c.node.topology.links) CHECK((l.engine_mask >> gpu.engines()) == 0);
  CHECK(Queue(c, 0, kfd::kQueueSdmaByEngine, gpu.engines() - 1).error == 0);
  CHECK(Queue(c, 0, kfd::kQueueSdmaByEngine, gpu.engines()).error == EINVAL);
  std::vector<std::unique_ptr<Queue>> all;
  do all.push_back(std::make_unique<Queue>(c, 0, kfd::kQueueSdma));
  while (all.back()->error == 0 && all.size() < 100);
  CHECK(all.back()->error == ENOMEM);
  CHECK(all.size() == gpu.host_engines * 8u + 1);
  CHECK(Queue(c, 0, kfd::kQueueSdmaXgmi).error == (one ? ENOMEM : 0));
}

TEST_CASE("a buffer costs neither a descriptor nor a mapping of its own; freed memory goes back to the machine") {
  Client c;
  const auto lines = [] {
    std::ifstream maps("/proc/self/maps");
    return std::count(std::istreambuf_iterator<char>(maps), {}, '\n');
  };
  std::vector<std::uint64_t> handles;
  const auto before = lines();
  constexpr std::uint64_t kVa = 0x7000'0000'0000;
  for (std::uint64_t i = 0; i < 3000; ++i) {
    kfd::AllocMemory a{.va = kVa + i * 4096,
                       .bytes = 4096,
                       .handle = 0,
                       .mmap_offset = 0,
                       .gpu_id = c.gpu_id(0),
                       .flags = kfd::kVram | kfd::kWritable};
    REQUIRE(call(c.kfd, Nr::alloc_memory, a) == 0);
    handles.push_back(a.handle);
  }
  CHECK(lines() - before < 20);
  for (const auto h : handles) {
    kfd::FreeMemory f{h};
    REQUIRE(call(c.kfd, Nr::free_memory, f) == 0);
  }
  // The file that the memory is in occupies as much as before.
  auto small = c.allocate(4096);
  const auto blocks = [&] {
    kfd::ExportIpc out{.handle = small.handle, .shared = {}, .gpu_id = c.gpu_id(0), .flags = 0};
    REQUIRE(call(c.kfd, Nr::ipc_export, out) == 0);
    struct stat s {};
    REQUIRE(::fstat(static_cast<int>(out.shared[1]), &s) == 0);
    return s.st_blocks;
  };
  const auto used = blocks();
  auto large = c.allocate(16 << 20, 0, kfd::kVram);
  std::memset(large.host(), 1, large.bytes);
  CHECK(blocks() - used >= (16 << 20) / 512);
  CHECK(c.free(large) == 0);
  auto later = c.allocate(4096);  // looks for memory that nothing has any more
  CHECK(blocks() - used < 2048);
  CHECK(c.free(later) == 0);
  CHECK(c.free(small) == 0);
}

TEST_CASE("an export that others hold keeps its bytes, and no longer") {
  Client c;
  auto m = c.allocate(1 << 20, 0, kfd::kVram);
  std::memset(m.host(), 0x5a, m.bytes);
  kfd::ExportDmabuf out{.handle = m.handle, .flags = O_CLOEXEC, .fd = 0};
  REQUIRE(call(c.kfd, Nr::export_dmabuf, out) == 0);
  const int fd = static_cast<int>(out.fd);
  CHECK(c.free(m) == 0);
  auto* at = static_cast<std::byte*>(::mmap(nullptr, m.bytes, PROT_READ, MAP_SHARED, fd, 0));
  REQUIRE(at != MAP_FAILED);
  ::close(fd);
  auto other = c.allocate(4096);  // time to look for objects that nothing holds
  CHECK(at[m.bytes - 1] == std::byte{0x5a});
  ::munmap(at, m.bytes);
  CHECK(c.free(other) == 0);
}

#ifdef __x86_64__
namespace {

std::atomic<int> hooked_maps{0}, hooked_unmaps{0}, depth{0};

/// As a library that watches memory does it: the call goes on by number.
void* watched_mmap(void* at, std::size_t bytes, int rights, int flags, int fd, off_t offset) {
  if (++depth > 100) std::abort();  // the call has come back to its hook
  ++hooked_maps;
  const long p = ::syscall(SYS_mmap, at, bytes, rights, flags, fd, offset);
  --depth;
  return reinterpret_cast<void*>(p);
}
int watched_munmap(void* at, std::size_t bytes) {
  if (++depth > 100) std::abort();
  ++hooked_unmaps;
  const auto result = static_cast<int>(::syscall(SYS_munmap, at, bytes));
  --depth;
  return result;
}

/// Puts a jump to `hook` in place of the first instructions of a function; ends by putting them back.
class Hook {
 public:
  Hook(const char* name, void* hook) : at_(static_cast<unsigned char*>(::dlsym(RTLD_DEFAULT, name))) {
    unsigned char jump[kBytes] = {0x49, 0xbb, 0, 0, 0, 0, 0, 0, 0, 0, 0x41, 0xff, 0xe3};  // mov r11, hook; jmp r11
    std::memcpy(jump + 2, &hook, sizeof hook);
    std::memcpy(before_, at_, kBytes);
    write(jump);
  }
  ~Hook() { write(before_); }
  Hook(const Hook&) = delete;
  Hook& operator=(const Hook&) = delete;

 private:
  static constexpr std::size_t kBytes = 13;
  void write(const unsigned char* from) {
    const auto page = reinterpret_cast<std::uintptr_t>(at_) & ~std::uintptr_t{4095};
    REQUIRE(::mprotect(reinterpret_cast<void*>(page), 8192, PROT_READ | PROT_WRITE | PROT_EXEC) == 0);
    std::memcpy(at_, from, kBytes);
    REQUIRE(::mprotect(reinterpret_cast<void*>(page), 8192, PROT_READ | PROT_EXEC) == 0);
  }
  unsigned char* at_;
  unsigned char before_[kBytes]{};
};

}  // namespace

TEST_CASE("a library that watches mmap and munmap finds the node behind its own hooks") {
  const Hook map("mmap", reinterpret_cast<void*>(&watched_mmap));
  const Hook unmap("munmap", reinterpret_cast<void*>(&watched_munmap));
  Client c;
  auto memory = c.allocate(1 << 20);
  REQUIRE(memory.va != 0);
  std::memset(memory.host(), 7, memory.bytes);
  const int before = hooked_unmaps;
  CHECK(c.free(memory) == 0);
  CHECK(hooked_maps > 0);
  CHECK(hooked_unmaps > before);
}
#endif
