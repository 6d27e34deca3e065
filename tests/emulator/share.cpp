// Memory of one process in another: DMABUFs through a socket, IPC handles as bytes, copies by the receiver's engines. Part of the
// program of ioctl.cpp.
#include "raw.hpp"

#include "sdma/packets/copy.hpp"
#include "sdma/packets/sync.hpp"
#include "support/catch.hpp"

#include <sys/socket.h>
#include <sys/wait.h>
#include <cstring>
#include <functional>
#include <thread>

using namespace raw;
using namespace sdma;

namespace {

constexpr std::uint64_t kBytes = 1 << 20;

void send_fd(int socket, int fd) {
  char byte = 0;
  iovec data{&byte, 1};
  alignas(cmsghdr) char room[CMSG_SPACE(sizeof fd)]{};
  msghdr m{};
  m.msg_iov = &data;
  m.msg_iovlen = 1;
  m.msg_control = room;
  m.msg_controllen = sizeof room;
  auto* c = CMSG_FIRSTHDR(&m);
  c->cmsg_level = SOL_SOCKET;
  c->cmsg_type = SCM_RIGHTS;
  c->cmsg_len = CMSG_LEN(sizeof fd);
  std::memcpy(CMSG_DATA(c), &fd, sizeof fd);
  REQUIRE(::sendmsg(socket, &m, 0) == 1);
}

int receive_fd(int socket) {
  char byte = 0;
  iovec data{&byte, 1};
  alignas(cmsghdr) char room[CMSG_SPACE(sizeof(int))]{};
  msghdr m{};
  m.msg_iov = &data;
  m.msg_iovlen = 1;
  m.msg_control = room;
  m.msg_controllen = sizeof room;
  int fd = -1;
  if (::recvmsg(socket, &m, 0) == 1 && CMSG_FIRSTHDR(&m)) std::memcpy(&fd, CMSG_DATA(CMSG_FIRSTHDR(&m)), sizeof fd);
  return fd;
}

/// Runs `fn` in a child that has a node of its own; the line of the first check that failed, 0: none.
int in_child(const std::function<int(Client&)>& fn) {
  const auto child = ::fork();
  if (child == 0) {
    Client c;
    ::_exit(fn(c));
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
            ++word;  // another process, descriptor, object or nonce
            EXPECT(call(mine.kfd, Nr::ipc_import, in) == EINVAL);
            --word;
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
