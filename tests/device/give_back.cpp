// SPDX-License-Identifier: MIT
// Giving memory back waits for nobody, and nobody waits for what another thread or process has to do meanwhile. The one
// that is slow goes on only after the other call has returned, so that no test depends on the clock.
#include <sys/mman.h>
#include <sys/socket.h>

#include <thread>

#include "../../lib/device/share_socket.hpp"
#include "../../lib/device/soft_node.hpp"
#include "sdma/device/soft.hpp"
#include "support/catch.hpp"

using namespace sdma;
using detail::Descriptor;

namespace {

constexpr std::uint64_t kBytes = 4096;

bool is_mapped(std::byte* page) { return msync(page, kBytes, MS_ASYNC) == 0; }

/// Another thread allocates memory and gives it back.
void allocate_and_free(Device& d) {
  std::thread([&] { (*d.allocate({.where = GpuId{0}, .bytes = kBytes})).reset(); }).join();
}

/// A device whose engines are Readers of the test.
struct Node {
  detail::SoftNode* node = new detail::SoftNode({.gpus = 1}, *mi300x(1));
  Node() = default;
  Node(const Node&) = delete;
  Node& operator=(const Node&) = delete;
  ~Node() { detail::SoftNode::shut_down(node); }
};

}  // namespace

TEST_CASE("memory that an engine is using is freed without a wait, and its pages go later") {
  const Node d;
  auto used = *d.node->allocate({.where = GpuId{0}, .bytes = kBytes}), last = *d.node->allocate({.bytes = kBytes});
  AddressSpace::Reader engine(d.node->space(), GpuId{0});
  std::byte* page = nullptr;
  {
    const AddressSpace::Reader::Section busy(engine);
    page = engine.at(used.va(), kBytes, Access::write);
    REQUIRE(page);
    const auto va = used.va();
    used.reset();
    std::byte byte{};
    CHECK(d.node->peek(va, {&byte, 1}) == Errc::unmapped);
    allocate_and_free(*d.node);
    REQUIRE(is_mapped(page));
    page[kBytes - 1] = std::byte{7};  // the rest of its copy
  }
  CHECK(is_mapped(page));
  last.reset();
  CHECK_FALSE(is_mapped(page));
}

TEST_CASE("freed memory does not count among a GPU's, though an engine is still using it") {
  const Node d;
  const auto all = d.node->topology().gpus[0].memory_bytes;
  auto most = *d.node->allocate({.where = GpuId{0}, .bytes = all});
  CHECK_FALSE(d.node->allocate({.where = GpuId{0}, .bytes = kBytes}));
  AddressSpace::Reader engine(d.node->space(), GpuId{0});
  const AddressSpace::Reader::Section busy(engine);
  most.reset();
  CHECK(d.node->allocate({.where = GpuId{0}, .bytes = all}));
}

TEST_CASE("memory that an engine still uses when its device goes is given back with it") {
  std::byte* page = nullptr;
  {
    const Node d;
    auto used = *d.node->allocate({.bytes = kBytes});
    AddressSpace::Reader engine(d.node->space(), GpuId{0});
    const AddressSpace::Reader::Section busy(engine);
    page = used.host().data();
    used.reset();
    CHECK(is_mapped(page));
  }
  CHECK_FALSE(is_mapped(page));
}

TEST_CASE("an owner that does not answer holds up no other thread") {
  auto d = *SoftDevice::open({.gpus = 1});
  const auto pages = *detail::shareable_pages("test", kBytes);
  const SharedHandle h{.version = SharedHandle::kVersion,
                       .process = static_cast<std::uint32_t>(getpid()),
                       .device = {'s', 'o', 'f', 't'},
                       .socket = {0x7e57, static_cast<std::uint64_t>(getpid())},
                       .object = 1,
                       .bytes = kBytes};
  const Descriptor listener(socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
  const auto at = detail::share::address(h.socket);
  REQUIRE(bind(listener.get(), at.get(), at.bytes()) == 0);
  REQUIRE(listen(listener.get(), 2) == 0);
  const auto asked = [&] {
    Descriptor client(accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC));
    std::uint64_t object = 0;
    (void)!recv(client.get(), &object, sizeof object, 0);
    return client;
  };
  bool opened = false;
  std::thread opener([&] { opened = d->open_shared(h).has_value(); });
  (void)detail::share::send(asked().get(), {.bytes = kBytes, .gpus = 1, .bells = 2}, pages.get());
  {
    const auto silent = asked();  // for the bells
    allocate_and_free(*d);
    char end = 0;
    CHECK(recv(silent.get(), &end, 1, MSG_PEEK | MSG_DONTWAIT) == -1);  // it still waits for the answer
  }
  opener.join();
  CHECK(opened);
}
