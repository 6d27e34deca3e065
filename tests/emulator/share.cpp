// SPDX-License-Identifier: MIT
// Memory of one process in another: DMABUFs through a socket, IPC handles as
// bytes, copies by the receiver's engines. Part of the program of ioctl.cpp.
#include "../../lib/device/kfd/raw_client.hpp"
#include "../../lib/emulator/real.hpp"
#include "send_fd.hpp"

#include "sdma/packets/copy.hpp"
#include "sdma/packets/sync.hpp"
#include "support/catch.hpp"
#include "support/end_child.hpp"

#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <algorithm>
#include <array>
#include <cstring>
#include <filesystem>
#include <functional>
#include <thread>
#include <utility>

using namespace sdma::raw;
using namespace sdma;

namespace {

constexpr std::uint64_t kBytes = 1 << 20;

/// Runs `fn` in a child that has a node of its own; the line of the first check that failed, 0: none.
int in_child(const std::function<int(Client&)>& fn) {
  const auto child = ::fork();
  if (child == 0) {
    end_child([&] {
      Client c;
      return fn(c);
    });
  }
  int status = -1;
  REQUIRE(::waitpid(child, &status, 0) == child);
  REQUIRE(WIFEXITED(status));
  return WEXITSTATUS(status);
}
#define EXPECT(condition) \
  if (!(condition)) return __LINE__ & 0xff

/// Copies what GPU 1 sees at `from` to `to` with a queue of its own.
bool copied(Client& c, GpuVa to, GpuVa from) {
  auto word = c.allocate(4096);
  Queue q(c, 1, kfd::kQueueSdma);
  Ring<> ring(q.memory());
  if (ring.submit(CopyLinear{.src = from, .dst = to, .bytes = kBytes}, Fence{.addr = word.gpu(), .value = 1}) !=
      Errc::ok)
    return false;
  for (int i = 0; i < 10'000 && __atomic_load_n(word.as<std::uint32_t>(), __ATOMIC_ACQUIRE) == 0; ++i) ::usleep(1000);
  return *word.as<std::uint32_t>() == 1;
}

/// How many descriptors this process has.
std::ptrdiff_t descriptors() {
  const std::filesystem::directory_iterator all("/proc/self/fd");
  return std::distance(begin(all), end(all));
}

}  // namespace

TEST_CASE("a DMABUF goes through a socket; the receiver's engine reads and writes what the sender has") {
  int pair[2];
  REQUIRE(::socketpair(AF_UNIX, SOCK_STREAM, 0, pair) == 0);
  Client c;
  auto m = c.allocate(kBytes, 0, kfd::kVram);
  REQUIRE(m.va != 0);
  std::memset(m.host(), 0x3c, kBytes);
  kfd::ExportDmabuf out{.handle = m.handle, .flags = O_CLOEXEC, .fd = 0};
  REQUIRE(call(c.kfd, Nr::export_dmabuf, out) == 0);
  send_fd(pair[0], static_cast<int>(out.fd));
  CHECK(in_child([&](Client& mine) -> int {
          const int fd = receive_fd(pair[1]);
          EXPECT(fd >= 0);
          // A size, and a beginning of its own.
          EXPECT(::lseek(fd, 0, SEEK_END) == static_cast<off_t>(kBytes));
          EXPECT(::lseek(fd, 0, SEEK_SET) == 0);
          EXPECT(::lseek(fd, 4096, SEEK_SET) == -1 && errno == EINVAL);
          kfd::GetDmabufInfo info{};
          info.fd = static_cast<std::uint32_t>(fd);
          EXPECT(call(mine.kfd, Nr::get_dmabuf_info, info) == 0);
          EXPECT(info.bytes == kBytes && info.gpu_id == mine.gpu_id(0) && (info.flags & kfd::kVram) != 0);
          auto* plain = ::mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
          EXPECT(plain != MAP_FAILED);
          EXPECT(static_cast<char*>(plain)[kBytes - 1] == 0x3c);
          EXPECT(::mmap(nullptr, kBytes, PROT_READ, MAP_SHARED, fd, 4096) == MAP_FAILED && errno == EINVAL);
          // Far from everything that this process has.
          kfd::ImportDmabuf in{.va = 0x7000'0000'0000, .handle = 0, .gpu_id = mine.gpu_id(1), .fd = info.fd};
          EXPECT(call(mine.kfd, Nr::import_dmabuf, in) == 0);
          const Memory there{.va = in.va, .bytes = kBytes, .handle = in.handle};
          EXPECT(mine.map(there, 2) == 0);
          auto local = mine.allocate(kBytes, 1, kfd::kVram);
          EXPECT(copied(mine, local.gpu(), there.gpu()));
          EXPECT(local.host()[0] == std::byte{0x3c} && local.host()[kBytes - 1] == std::byte{0x3c});
          std::memset(local.host(), 0x5a, kBytes);
          EXPECT(copied(mine, there.gpu(), local.gpu()));
          EXPECT(mine.unmap(there, 2) == 0);
          kfd::FreeMemory f{in.handle};
          EXPECT(call(mine.kfd, Nr::free_memory, f) == 0);
          return 0;
        }) == 0);
  CHECK(m.host()[0] == std::byte{0x5a});
  CHECK(m.host()[kBytes - 1] == std::byte{0x5a});
  // The descriptor keeps the pages when the object is gone; they are counted once.
  kfd::AvailableMemory before{.bytes = 0, .gpu_id = c.gpu_id(0), .pad = 0}, after = before;
  CHECK(c.free(m) == 0);
  REQUIRE(call(c.kfd, Nr::available_memory, before) == 0);
  kfd::ImportDmabuf in{.va = 0x7000'0000'0000, .handle = 0, .gpu_id = c.gpu_id(0), .fd = out.fd};
  REQUIRE(call(c.kfd, Nr::import_dmabuf, in) == 0);
  kfd::FreeMemory f{in.handle};
  CHECK(call(c.kfd, Nr::free_memory, f) == 0);
  REQUIRE(call(c.kfd, Nr::available_memory, after) == 0);
  CHECK(before.bytes == after.bytes);
  for (const int fd : {pair[0], pair[1], static_cast<int>(out.fd)}) ::close(fd);
}

TEST_CASE("a DMABUF gives its object and nothing else; a device has no bytes but those at offsets of objects") {
  Client c;
  auto secret = c.allocate(kBytes), passed = c.allocate(4096, 0, kfd::kVram), later = c.allocate(kBytes);
  REQUIRE(later.va != 0);
  std::memset(secret.host(), 0x77, kBytes);
  std::memset(later.host(), 0x77, kBytes);
  std::memset(passed.host(), 0x3c, 4096);
  kfd::ExportDmabuf out{.handle = passed.handle, .flags = O_CLOEXEC, .fd = 0};
  REQUIRE(call(c.kfd, Nr::export_dmabuf, out) == 0);
  const int fd = static_cast<int>(out.fd);
  std::array<std::byte, 4096> bytes{};
  iovec v{bytes.data(), bytes.size()};
  for (const int d : {fd, c.kfd, c.render[0]}) {
    const auto refused = [](ssize_t n) { return n == -1 && errno == EINVAL; };
    CHECK(refused(::read(d, bytes.data(), bytes.size())));
    CHECK(refused(::write(d, bytes.data(), bytes.size())));
    CHECK(refused(::pread(d, bytes.data(), bytes.size(), 0)));
    CHECK(refused(::pwrite(d, bytes.data(), bytes.size(), 0)));
    CHECK(refused(::readv(d, &v, 1)));
    CHECK(refused(::writev(d, &v, 1)));
    // What is not intercepted fails in the kernel.
    CHECK(::ftruncate(d, 0) == -1);
    CHECK(::syscall(SYS_pwrite64, d, bytes.data(), bytes.size(), 0) == -1);
  }
  CHECK(::syscall(SYS_pread64, fd, bytes.data(), bytes.size(), 0) == -1);
  // The instruction itself, which nothing intercepts, finds no DMABUF, and otherwise the same memory as mmap.
  const auto map = [](int file, std::uint64_t offset) {
    return sdma::emulator::machine_call(SYS_mmap, 0, 4096, PROT_READ, MAP_SHARED, file, static_cast<long>(offset));
  };
  CHECK(map(fd, 0) == -1);
  const auto found = map(c.render[0], passed.offset);
  REQUIRE(found != -1);
  CHECK(reinterpret_cast<std::byte*>(found)[4095] == std::byte{0x3c});
  ::munmap(reinterpret_cast<void*>(found), 4096);
  auto* at = static_cast<std::byte*>(::mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0));
  REQUIRE(at != MAP_FAILED);
  CHECK(at[4095] == std::byte{0x3c});
  passed.host()[1] = std::byte{1};  // shared both ways, although the program mapped its memory before the export
  CHECK(at[1] == std::byte{1});
  at[2] = std::byte{2};
  CHECK(passed.host()[2] == std::byte{2});
  CHECK(::mmap(nullptr, 8192, PROT_READ, MAP_SHARED, fd, 0) == MAP_FAILED);
  // A device is mapped at the offsets of its objects only, and at most to their end.
  CHECK(::mmap(nullptr, kBytes + 4096, PROT_READ, MAP_SHARED, c.render[0], static_cast<off_t>(secret.offset)) ==
        MAP_FAILED);
  CHECK(errno == EINVAL);
  CHECK(c.free(secret) == 0);
  CHECK(::mmap(nullptr, 4096, PROT_READ, MAP_SHARED, c.render[0], static_cast<off_t>(secret.offset)) == MAP_FAILED);
  // The position of a device is nothing that a program sets.
  CHECK(::lseek(c.render[0], 4096, SEEK_SET) == 0);
  CHECK(::lseek(c.kfd, 4096, SEEK_SET) == -1);
  kfd::GetVersion version{};
  CHECK(call(c.kfd, Nr::get_version, version) == 0);
  CHECK(call(c.render[0], Nr::get_version, version) == ENOTTY);
  ::munmap(at, 4096);
  ::close(fd);
  CHECK(c.free(passed) == 0);
  CHECK(c.free(later) == 0);
}

TEST_CASE("a forked child holds no memory of its parent, and objects do not use up the program's descriptors") {
  Client c;
  rlimit limit{};
  REQUIRE(::getrlimit(RLIMIT_NOFILE, &limit) == 0);
  const rlimit few{.rlim_cur = 64, .rlim_max = limit.rlim_max};
  REQUIRE(::setrlimit(RLIMIT_NOFILE, &few) == 0);
  std::vector<Memory> many;
  const auto before = descriptors();
  for (int i = 0; i < 300; ++i) many.push_back(c.allocate(4096));
  CHECK(descriptors() == before);
  CHECK(std::all_of(many.begin(), many.end(), [](const Memory& m) { return m.va != 0; }));
  const int own = ::open("/dev/null", O_RDONLY);
  CHECK(own >= 0);
  CHECK(own < 64);
  ::close(own);
  // The node's own numbers are above a soft limit that can be raised.
  const rlimit all{.rlim_cur = limit.rlim_max, .rlim_max = limit.rlim_max};
  REQUIRE(::setrlimit(RLIMIT_NOFILE, &all) == 0);
  kfd::ExportIpc out{.handle = many[0].handle, .shared = {}, .gpu_id = c.gpu_id(0), .flags = 0};
  REQUIRE(call(c.kfd, Nr::ipc_export, out) == 0);
  const int number = static_cast<int>(out.shared[1]);
  struct stat arena {};
  REQUIRE(::fstat(number, &arena) == 0);
  CHECK(in_child([&](Client&) -> int {
          struct stat now {};
          EXPECT(::fstat(number, &now) != 0 || now.st_ino != arena.st_ino);
          return 0;
        }) == 0);
  // A program may close what it does not know, and get the number for a file of its own, which stays open.
  const int null = ::open("/dev/null", O_RDONLY), saved = ::dup(number);
  REQUIRE(::dup2(null, number) == number);
  CHECK(call(c.kfd, Nr::ipc_export, out) == EBADF);
  for (auto& m : many) CHECK(c.free(m) == 0);
  CHECK(::fcntl(number, F_GETFD) >= 0);
  REQUIRE(::dup2(saved, number) == number);
  ::close(saved);
  ::close(null);
  REQUIRE(::setrlimit(RLIMIT_NOFILE, &limit) == 0);
}

TEST_CASE("an IPC handle: another process maps the same pages, and a handle that is none is refused") {
  Client c;
  auto m = c.allocate(kBytes, 1, kfd::kVram);
  std::memset(m.host(), 0x11, kBytes);
  kfd::ExportIpc out{.handle = m.handle, .shared = {}, .gpu_id = c.gpu_id(1), .flags = 0};
  REQUIRE(call(c.kfd, Nr::ipc_export, out) == 0);
  CHECK(in_child([&](Client& mine) -> int {
          auto* at = ::mmap(nullptr, kBytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
          kfd::ImportIpc in{};
          in.va = reinterpret_cast<std::uint64_t>(at);
          in.gpu_id = mine.gpu_id(1);
          std::memcpy(in.shared, out.shared, sizeof in.shared);
          for (auto& word : in.shared) {
            // Another process, descriptor, object or nonce. The next process id may be a thread or a child with the
            // same descriptors, but init has none of ours.
            const auto right = std::exchange(word, &word == in.shared ? 1 : word + 1);
            EXPECT(call(mine.kfd, Nr::ipc_import, in) == EINVAL);
            word = right;
          }
          EXPECT(call(mine.kfd, Nr::ipc_import, in) == 0);
          const Memory there{.va = in.va, .bytes = kBytes, .handle = in.handle, .offset = in.mmap_offset};
          EXPECT(::mmap(at, kBytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, mine.render[1],
                        static_cast<off_t>(in.mmap_offset)) == at);
          EXPECT(there.host()[0] == std::byte{0x11} && there.host()[kBytes - 1] == std::byte{0x11});
          EXPECT(mine.map(there, 2) == 0);
          auto local = mine.allocate(kBytes);
          std::memset(local.host(), 0x22, kBytes);
          EXPECT(copied(mine, there.gpu(), local.gpu()));
          EXPECT(there.host()[kBytes - 1] == std::byte{0x22});
          EXPECT(mine.free(there) == 0);
          return 0;
        }) == 0);
  CHECK(m.host()[0] == std::byte{0x22});
  CHECK(m.host()[kBytes - 1] == std::byte{0x22});
  kfd::ExportIpc bad{.handle = 12345, .shared = {}, .gpu_id = c.gpu_id(1), .flags = 0};
  CHECK(call(c.kfd, Nr::ipc_export, bad) == EINVAL);
  CHECK(c.free(m) == 0);
}

TEST_CASE("an IPC handle carries the flags of its first export to every importer") {
  Client c;
  auto m = c.allocate(kBytes, 0, kfd::kVram);
  kfd::ExportIpc out{.handle = m.handle, .shared = {}, .gpu_id = c.gpu_id(0), .flags = 0xa5a5'1234};
  REQUIRE(call(c.kfd, Nr::ipc_export, out) == 0);
  CHECK(out.flags == 0xa5a5'1234);
  // The handle exists already, so these flags have no effect.
  kfd::ExportIpc again{.handle = m.handle, .shared = {}, .gpu_id = c.gpu_id(0), .flags = 7};
  REQUIRE(call(c.kfd, Nr::ipc_export, again) == 0);
  CHECK(std::equal(std::begin(out.shared), std::end(out.shared), again.shared));
  CHECK(in_child([&](Client& mine) -> int {
          kfd::ImportIpc in{};
          in.gpu_id = mine.gpu_id(0);
          std::memcpy(in.shared, out.shared, sizeof in.shared);
          EXPECT(call(mine.kfd, Nr::ipc_import, in) == 0);
          EXPECT(in.flags == 0xa5a5'1234);
          // An importer that exports the object passes them on.
          kfd::ExportIpc further{.handle = in.handle, .shared = {}, .gpu_id = mine.gpu_id(0), .flags = 9};
          EXPECT(call(mine.kfd, Nr::ipc_export, further) == 0);
          kfd::ImportIpc back{};
          back.gpu_id = mine.gpu_id(0);
          std::memcpy(back.shared, further.shared, sizeof back.shared);
          EXPECT(call(mine.kfd, Nr::ipc_import, back) == 0);
          EXPECT(back.flags == 0xa5a5'1234);
          return 0;
        }) == 0);
  CHECK(c.free(m) == 0);
}

TEST_CASE("a DMABUF has a kind, and rights of its own") {
  Client c;
  const auto allocate = [&](std::uint32_t flags) {
    kfd::AllocMemory a{
        .va = 0x7000'0000'0000, .bytes = 4096, .handle = 0, .mmap_offset = 0, .gpu_id = c.gpu_id(0), .flags = flags};
    REQUIRE(call(c.kfd, Nr::alloc_memory, a) == 0);
    return a.handle;
  };
  const auto exported = [&](std::uint64_t handle) {
    kfd::ExportDmabuf out{.handle = handle, .flags = O_CLOEXEC, .fd = 0};
    REQUIRE(call(c.kfd, Nr::export_dmabuf, out) == 0);
    return static_cast<int>(out.fd);
  };
  const auto flags = [&](int fd) {
    kfd::GetDmabufInfo info{};
    info.fd = static_cast<std::uint32_t>(fd);
    REQUIRE(call(c.kfd, Nr::get_dmabuf_info, info) == 0);
    CHECK(info.bytes == 4096);
    CHECK(info.gpu_id == c.gpu_id(0));
    CHECK(info.metadata_bytes == 0);
    return info.flags;
  };
  const auto freed = [&](std::uint64_t handle) {
    kfd::FreeMemory f{handle};
    return call(c.kfd, Nr::free_memory, f);
  };
  // Not what it was allocated with: its kind alone, and whether the host may access it.
  const auto readable = allocate(kfd::kVram | kfd::kPublic | kfd::kExecutable);
  const auto writable = allocate(kfd::kGtt | kfd::kPublic | kfd::kWritable);
  const int r = exported(readable), w = exported(writable);
  CHECK(flags(r) == (kfd::kVram | kfd::kPublic));
  CHECK(flags(w) == kfd::kGtt);
  const auto mapped = [](int fd, int rights, int sharing) {
    auto* p = ::mmap(nullptr, 4096, rights, sharing, fd, 0);
    const int error = p == MAP_FAILED ? errno : 0;
    if (error == 0) ::munmap(p, 4096);
    return error;
  };
  CHECK(mapped(r, PROT_READ, MAP_SHARED) == 0);
  CHECK(mapped(r, PROT_READ | PROT_WRITE, MAP_PRIVATE) == 0);
  CHECK(mapped(r, PROT_READ | PROT_WRITE, MAP_SHARED) == EACCES);
  CHECK(mapped(w, PROT_READ | PROT_WRITE, MAP_SHARED) == 0);
  // GPUs may write to what was imported, whatever the exporter's GPUs may do.
  auto word = c.allocate(4096);
  *word.as<std::uint32_t>(8) = 77;
  kfd::ImportDmabuf in{.va = 0x7000'0001'0000, .handle = 0, .gpu_id = c.gpu_id(0), .fd = static_cast<std::uint32_t>(r)};
  REQUIRE(call(c.kfd, Nr::import_dmabuf, in) == 0);
  const Memory imported{.va = in.va, .bytes = 4096, .handle = in.handle, .offset = 0};
  REQUIRE(c.map(imported, 1) == 0);
  {
    Queue q(c, 0, kfd::kQueueSdma);
    Ring<> ring(q.memory());
    REQUIRE(ring.submit(CopyLinear{.src = word.gpu(8), .dst = imported.gpu(16), .bytes = 4},
                        Fence{.addr = word.gpu(), .value = 1}) == Errc::ok);
    for (int i = 0; i < 10'000 && __atomic_load_n(word.as<std::uint32_t>(), __ATOMIC_ACQUIRE) == 0; ++i) ::usleep(1000);
    CHECK(*word.as<std::uint32_t>() == 1);
  }
  auto* at = static_cast<std::uint32_t*>(::mmap(nullptr, 4096, PROT_READ, MAP_SHARED, r, 0));
  REQUIRE(at != MAP_FAILED);
  CHECK(at[4] == 77);
  ::munmap(at, 4096);
  ::close(r);
  ::close(w);
  // Memory of the program cannot be exported.
  auto* own = ::mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  kfd::AllocMemory u{.va = 0x7000'0002'0000,
                     .bytes = 4096,
                     .handle = 0,
                     .mmap_offset = reinterpret_cast<std::uint64_t>(own),
                     .gpu_id = c.gpu_id(0),
                     .flags = kfd::kUserptr | kfd::kWritable};
  REQUIRE(call(c.kfd, Nr::alloc_memory, u) == 0);
  kfd::ExportDmabuf none{.handle = u.handle, .flags = 0, .fd = 0};
  CHECK(call(c.kfd, Nr::export_dmabuf, none) == EPERM);
  ::munmap(own, 4096);
  CHECK(c.unmap(imported, 1) == 0);
  for (const auto h : {readable, writable, in.handle, u.handle}) CHECK(freed(h) == 0);
  CHECK(c.free(word) == 0);
}
