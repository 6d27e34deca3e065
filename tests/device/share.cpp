// SPDX-License-Identifier: MIT
// Memory and signals of several processes on software devices: what one stores the other sees, and what is left when a
// process ends.
#include "sdma/device/memory.hpp"

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/un.h>

#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include "process.hpp"
#include "sdma/device/soft.hpp"
#include "sdma/queue/ring.hpp"
#include "sdma/sync/wait.hpp"
#include "support/catch.hpp"

using namespace sdma;
using test::at_most;
using test::descriptors;
using test::Process;
using test::Socket;
using test::soon;

namespace {

constexpr std::uint64_t kBytes = 64 * 1024;

std::unique_ptr<SoftDevice> device(std::uint32_t gpus = 2) { return *SoftDevice::open({.gpus = gpus}); }
Memory shareable(Device& d, std::uint64_t bytes = kBytes, std::optional<GpuId> where = {}) {
  return *d.allocate({.where = where, .bytes = bytes, .shareable = true});
}
bool all_are(const Memory& m, int value) {
  for (const auto b : m.host())
    if (b != static_cast<std::byte>(value)) return false;
  return true;
}
std::size_t mappings() {
  auto* const f = std::fopen("/proc/self/maps", "r");
  std::size_t n = 0;
  for (int c = std::fgetc(f); c != EOF; c = std::fgetc(f)) n += c == '\n';
  std::fclose(f);
  return n;
}
/// A process that shares one piece of memory, filled with `value`, until it is sent a byte.
Process owner(int value, std::uint64_t bytes = kBytes) {
  return Process([=](Socket s) {
    auto d = device();
    auto m = shareable(*d, bytes);
    std::memset(m.host().data(), value, m.host().size());
    s.send(*d->share(m));
    return s.receive<char>() ? 0 : 1;
  });
}

}  // namespace

TEST_CASE("an engine of one process copies into memory of another, and its completion ends a wait there") {
  Process other([](Socket s) {
    auto d = device();
    const auto to = *s.receive<SharedHandle>(), words = *s.receive<SharedHandle>();
    auto target = *d->open_shared(to), word = *d->open_shared(words);
    const auto go = *d->signal_at(word, 0), done = *d->signal_at(word, 64);
    auto mine = *d->allocate({.where = GpuId{1}, .bytes = kBytes});
    std::memset(mine.host().data(), 0x5a, kBytes);
    auto q = *d->create_queue({.gpu = GpuId{1}});
    Ring<> ring{q.memory()};
    // The engine waits for a store of the other process's host.
    if (ring.submit(PollMem{.addr = go.low_va(), .func = Compare::ge, .reference = 7},
                    CopyLinear{.src = mine.va(), .dst = target.va(), .bytes = kBytes},
                    Atomic{.addr = done.va, .value = 1}) != Errc::ok)
      return 1;
    s.send('r');
    return wait(done, Compare::eq, 2, soon(), ring) ? 0 : 2;
  });
  auto d = device();
  auto m = shareable(*d, kBytes, GpuId{0}), words = shareable(*d, 4096);
  const auto go = *d->signal_at(words, 0), done = *d->signal_at(words, 64);
  other.socket().send(*d->share(m));
  other.socket().send(*d->share(words));
  REQUIRE(other.socket().receive<char>() == 'r');
  CHECK_FALSE(all_are(m, 0x5a));
  go.set(7);
  REQUIRE(wait(done, Compare::eq, 1, soon()));
  CHECK(all_are(m, 0x5a));
  done.add(1);
  CHECK(other.ended() == 0);
}

TEST_CASE("a handle names one object: sharing again gives the same, and opening it twice maps the same bytes") {
  auto d = device();
  auto m = shareable(*d, 100);
  const auto h = *d->share(m);
  CHECK(*d->share(m) == h);
  CHECK(h.version == SharedHandle::kVersion);
  CHECK(h.bytes == 100);
  CHECK(h.process == static_cast<std::uint32_t>(getpid()));
  auto twin = *d->open_shared(h), again = *d->open_shared(h);
  CHECK(twin.va() != m.va());
  twin.host()[99] = std::byte{3};
  CHECK(m.host()[99] == std::byte{3});
  CHECK(again.host()[99] == std::byte{3});
  CHECK(d->origin(twin.va() + 99) == MemoryOwner{static_cast<std::uint32_t>(getpid()), false});
  CHECK_FALSE(d->origin(twin.va() + 100));
  CHECK_FALSE(d->origin(m.va()));
  m.reset();
  CHECK(twin.host()[99] == std::byte{3});
}

TEST_CASE("memory that cannot be shared, and words that are no signals, are refused") {
  auto d = device(), other = device();
  auto plain = *d->allocate({.bytes = 16}), m = shareable(*d, 16);
  auto first = shareable(*other, 16), same_number = shareable(*other, 16);
  REQUIRE(same_number.id() == m.id());
  const auto refused = [](const auto& r, const char* why) {
    REQUIRE_FALSE(r);
    CHECK(r.error().message == why);
    CHECK_FALSE(r.error().hint.empty());
  };
  refused(d->share(plain), "this memory cannot be shared");
  refused(other->share(m), "this memory cannot be shared");
  auto opened = *other->open_shared(*d->share(m));
  refused(other->share(opened), "this memory cannot be shared");
  refused(d->signal_at(m, 4), "the offset is not a multiple of 8");
  refused(d->signal_at(m, 16), "the memory has 16 bytes");
  CHECK(d->signal_at(m, 8));
  auto hidden = *d->allocate({.where = GpuId{0}, .bytes = 16, .host_access = false});
  refused(d->signal_at(hidden), "the host cannot reach this memory");
}

TEST_CASE("a handle that names nothing here is an error, and never other memory") {
  auto other = owner(0x11);
  const auto h = *other.socket().receive<SharedHandle>();
  auto d = device(1);
  const auto refused = [&](const SharedHandle& bad, const std::string& why) {
    const auto r = d->open_shared(bad);
    REQUIRE_FALSE(r);
    CHECK(r.error().message == why);
    CHECK_FALSE(r.error().hint.empty());
  };
  const auto process = "process " + std::to_string(other.pid());
  const auto with = [&](auto change) {
    auto bad = h;
    change(bad);
    return bad;
  };
  refused({}, "the handle has version 0, and this library reads 1");
  refused(with([](auto& b) {
            b.device = {'k', 'f', 'd'};
          }),
          "the handle is of a device of the kind 'kfd', and this one is 'soft'");
  refused(with([](auto& b) { b.object ^= 1; }), process + " has given this memory back");
  refused(with([](auto& b) { b.bytes -= 1; }), "the handle says 65535 bytes, its owner 65536");
  const auto gone = process + " does not share this memory any more: it has ended or closed its device";
  refused(with([](auto& b) { b.socket[1] ^= 1; }), gone);
  CHECK(d->open_shared(h));
  CHECK(other.killed() == 128 + SIGKILL);
  refused(h, gone);
}

TEST_CASE("a handle is good while its owner holds the memory and keeps the device open") {
  auto d = device(), user = device(1);
  auto m = shareable(*d), kept = shareable(*d), far = shareable(*d, kBytes, GpuId{1});
  const auto h = *d->share(m), k = *d->share(kept);
  CHECK(user->open_shared(*d->share(far)).error().message.find("gpu1") != std::string::npos);
  m.reset();
  CHECK(user->open_shared(h).error().message.ends_with("has given this memory back"));
  auto next = shareable(*d);
  CHECK(*d->share(next) != h);
  d.reset();
  CHECK(user->open_shared(k).error().message.ends_with("it has ended or closed its device"));
}

TEST_CASE("memory stays when its owner is killed, and a wait for the owner ends with its name") {
  auto other = owner(0x22);
  auto d = device();
  auto m = *d->open_shared(*other.socket().receive<SharedHandle>());
  const auto pid = static_cast<std::uint32_t>(other.pid());
  CHECK(d->origin(m.va()) == MemoryOwner{pid, false});
  CHECK(other.killed() == 128 + SIGKILL);
  CHECK(all_are(m, 0x22));
  const auto stall = wait(*d->signal_at(m), Compare::eq, 1, Deadline::in(std::chrono::milliseconds(5)));
  REQUIRE_FALSE(stall);
  CHECK(d->origin(m.va()) == MemoryOwner{pid, true});
  auto q = *d->create_queue({});
  Ring<> ring{q.memory()};
  REQUIRE(ring.submit(Fill{.dst = m.va(), .data = 0x33333333, .bytes = kBytes}, Fence{.addr = m.va(), .value = 9}) ==
          Errc::ok);
  CHECK(wait(*d->signal_at(m), Compare::eq, 0x3333333300000009, soon(), ring));
}

TEST_CASE("a process that is killed in the middle of a copy leaves its peers' memory and devices in order") {
  constexpr std::uint64_t kMany = 8 << 20;
  Process other([](Socket s) {
    auto d = device();
    auto target = *d->open_shared(*s.receive<SharedHandle>());
    auto mine = *d->allocate({.bytes = kMany});
    std::memset(mine.host().data(), 0x44, kMany);
    auto q = *d->create_queue({});
    Ring<> ring{q.memory()};
    for (bool said = false;;) {
      const auto e = ring.submit(CopyLinear{.src = mine.va(), .dst = target.va(), .bytes = kMany});
      if (e != Errc::ok && e != Errc::no_space) return 1;
      if (e == Errc::no_space && !std::exchange(said, true)) s.send('c');  // the engine is at work until it is killed
    }
  });
  auto d = device();
  auto m = shareable(*d, kMany);
  other.socket().send(*d->share(m));
  REQUIRE(other.socket().receive<char>() == 'c');
  CHECK(other.killed() == 128 + SIGKILL);
  auto q = *d->create_queue({});
  Ring<> ring{q.memory()};
  auto done = *d->create_signal();
  REQUIRE(ring.submit(Fill{.dst = m.va(), .data = 0x55555555, .bytes = kMany}, Fence{.addr = done->va, .value = 1}) ==
          Errc::ok);
  REQUIRE(wait(*done, Compare::eq, 1, soon(), ring));
  CHECK(all_are(m, 0x55));
}

TEST_CASE("the child of a fork cannot use its parent's device to share; its own opens the parent's handles") {
  auto d = device();
  auto m = shareable(*d);
  const auto h = *d->share(m);
  Process child([&](Socket) {
    auto own = device();
    auto opened = own->open_shared(h);
    if (d->share(m) || d->open_shared(h) || d->origin(m.va()) || !opened) return 1;
    opened->host()[0] = std::byte{1};
    return 0;
  });
  CHECK(child.ended() == 0);
  CHECK(m.host()[0] == std::byte{1});
}

TEST_CASE("processes of other users neither open memory nor serve it") {
  if (geteuid() != 0) return;  // only root can become another user
  Process other([](Socket s) {
    const auto h = s.receive<SharedHandle>();
    if (!h || setuid(65534) != 0) return 1;
    auto d = device();
    const auto opened = d->open_shared(*h);
    if (opened || opened.error().message != "the process that serves this handle belongs to another user") return 2;
    // One that does not check.
    const int raw = socket(AF_UNIX, SOCK_SEQPACKET, 0);
    sockaddr_un at{.sun_family = AF_UNIX, .sun_path = {}};
    const auto n =
        std::snprintf(at.sun_path + 1, sizeof at.sun_path - 1, "sdma-share-%016llx%016llx",
                      static_cast<unsigned long long>(h->socket[0]), static_cast<unsigned long long>(h->socket[1]));
    if (connect(raw, reinterpret_cast<sockaddr*>(&at),
                static_cast<socklen_t>(sizeof at.sun_family + 1 + static_cast<std::size_t>(n))) != 0)
      return 3;
    (void)send(raw, &h->object, sizeof h->object, MSG_NOSIGNAL);
    char answer[256];
    return recv(raw, answer, sizeof answer, 0) > 0 ? 4 : 0;
  });
  auto d = device();
  auto m = shareable(*d);
  other.socket().send(*d->share(m));
  CHECK(other.ended() == 0);
}

TEST_CASE("a program that is executed gets no descriptor of shared memory") {
  const auto before = descriptors();
  auto d = device();
  auto m = shareable(*d), twin = *d->open_shared(*d->share(m));
  const auto now = descriptors();
  CHECK(now.size() >= before.size() + 4);  // the pages, the socket, the one kept for accept, the owner's process
  for (const auto fd : now)
    if (std::find(before.begin(), before.end(), fd) == before.end()) CHECK((fcntl(fd, F_GETFD) & FD_CLOEXEC) != 0);
}

TEST_CASE("64 processes open one object at once") {
  std::vector<Process> all;
  for (int i = 0; i < 64; ++i)
    all.emplace_back([](Socket s) {
      auto d = device(1);
      const auto h = s.receive<SharedHandle>();
      auto m = h ? d->open_shared(*h) : Result<Memory, Diagnostic>(Diagnostic{});
      if (!m) return 1;
      d->signal_at(*m)->add(1);
      return 0;
    });
  auto d = device(1);
  auto m = shareable(*d);
  for (const auto& p : all) p.socket().send(*d->share(m));
  for (auto& p : all) CHECK(p.ended() == 0);
  CHECK(d->signal_at(m)->load() == 64);
}

TEST_CASE("10,000 objects, shared and given back in turn, leave nothing") {
  Process other([](Socket s) {
    auto d = device(1);
    const auto check = [&](std::uint32_t i) {
      const auto h = s.receive<SharedHandle>();
      auto m = h ? d->open_shared(*h) : Result<Memory, Diagnostic>(Diagnostic{});
      if (!m || m->as<std::uint32_t>()[0] != i) return false;
      s.send('n');
      return true;
    };
    if (!check(0)) return 1;
    const auto fds = descriptors().size(), maps = mappings();
    for (std::uint32_t i = 1; i < 10'000; ++i)
      if (!check(i)) return 1;
    return descriptors().size() == fds && mappings() <= maps + 8 ? 0 : 2;
  });
  auto d = device(1);
  std::size_t fds = 0, maps = 0;
  for (std::uint32_t i = 0; i < 10'000; ++i) {
    auto m = shareable(*d, 4096);
    m.as<std::uint32_t>()[0] = i;
    other.socket().send(*d->share(m));
    if (other.socket().receive<char>() != 'n') break;
    m.reset();
    if (i == 0) fds = descriptors().size(), maps = mappings();
  }
  CHECK(other.ended() == 0);
  CHECK(at_most(fds));
  CHECK(mappings() <= maps + 8);  // of the allocator
}

TEST_CASE("at the limit of descriptors, an error names it, and an owner still answers") {
  Process other([](Socket s) {
    auto d = device(1);
    auto m = shareable(*d);
    const auto h = *d->share(m);
    const rlimit limit{.rlim_cur = 64, .rlim_max = 64};
    setrlimit(RLIMIT_NOFILE, &limit);
    const std::string full = "all 64 descriptors of this process are in use";
    std::vector<Memory> all;
    for (;;) {
      auto more = d->allocate({.bytes = 4096, .shareable = true});
      if (!more && more.error().message != full) return 1;
      if (!more) break;
      if (all.size() == 64) return 2;
      all.push_back(std::move(*more));
    }
    const auto opened = d->open_shared(h);
    if (opened || opened.error().message != full) return 3;
    s.send(h);
    return s.receive<char>() ? 0 : 4;
  });
  auto d = device(1);
  const auto h = other.socket().receive<SharedHandle>();
  REQUIRE(h);
  for (int i = 0; i < 100; ++i) CHECK(d->open_shared(*h));
  other.socket().send('e');
  CHECK(other.ended() == 0);
}

TEST_CASE("a DMABUF of shareable memory is the same bytes, for as long as one of its mappings is left") {
  const auto d = device();
  auto m = shareable(*d);
  auto b = d->export_dmabuf(m);
  REQUIRE(b);
  CHECK((b->fd() >= 0 && b->offset() == 0 && b->bytes() == kBytes));
  auto other = device();
  auto n = other->import_dmabuf({.fd = b->fd(), .bytes = kBytes, .where = GpuId{1}});
  REQUIRE(n);
  std::memset(m.host().data(), 0x33, kBytes);
  CHECK(all_are(*n, 0x33));
  const auto fd = b->fd();
  Dmabuf moved = std::move(*b);
  CHECK((b->fd() == -1 && moved.fd() == fd));
  moved = Dmabuf{};
  CHECK(fcntl(fd, F_GETFD) == -1);  // it was closed
  m.reset();
  CHECK(all_are(*n, 0x33));
  // An engine of the other device copies from it.
  auto to = *other->allocate({.bytes = kBytes});
  auto done = *other->create_signal();
  auto q = *other->create_queue({.gpu = GpuId{0}});
  Ring<> ring{q.memory()};
  REQUIRE(ring.submit(CopyLinear{.src = n->va(), .dst = to.va(), .bytes = kBytes},
                      Atomic{.addr = done->va, .value = 1}) == Errc::ok);
  REQUIRE(wait(*done, Compare::eq, 1, soon(), ring));
  CHECK(all_are(to, 0x33));
}

TEST_CASE("what is no DMABUF, and what a device cannot name, is refused with a reason") {
  const auto d = device();
  const auto m = *d->allocate({.bytes = kBytes});
  const auto refused = [](const auto& r, const char* why) {
    REQUIRE_FALSE(r);
    CHECK_THAT(to_string(r.error()), Catch::Contains(why));
    CHECK_FALSE(r.error().hint.empty());
  };
  refused(d->export_dmabuf(m), "cannot be shared");
  const auto s = shareable(*d);
  const auto b = *d->export_dmabuf(s);
  refused(d->import_dmabuf({.fd = -1, .bytes = 64}), "not open");
  refused(d->import_dmabuf({.fd = b.fd(), .bytes = 0}), "0 bytes");
  refused(d->import_dmabuf({.fd = b.fd(), .bytes = 2 * kBytes}), "has only");
  refused(d->import_dmabuf({.fd = b.fd(), .offset = 64, .bytes = 64}), "offset 0");
  refused(d->import_dmabuf({.fd = b.fd(), .bytes = 64, .where = GpuId{7}}), "no gpu7");
  const auto before = descriptors();
  for (int i = 0; i < 3; ++i) CHECK(d->export_dmabuf(s));
  CHECK(descriptors() == before);
  refused(d->export_ipc(s), "no IPC");
  refused(d->import_ipc(IpcHandle{}), "no IPC");
}
