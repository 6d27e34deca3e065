// SPDX-License-Identifier: MIT
#include "share_server.hpp"

#include "../engine/signals_blocked.hpp"
#include "request.hpp"
#include "share_socket.hpp"

#include <fmt/format.h>

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>
#include <cerrno>
#include <cstring>
#include <system_error>

namespace sdma { inline namespace v0_3 { namespace detail {
namespace {

bool draw(void* to, std::size_t bytes) noexcept { return getrandom(to, bytes, 0) == static_cast<ssize_t>(bytes); }

}  // namespace

Diagnostic descriptor_error(std::string where, std::string_view call, int error) {
  rlimit limit{};
  getrlimit(RLIMIT_NOFILE, &limit);
  if (error == EMFILE)
    return {.where = std::move(where),
            .message = fmt::format("all {} descriptors of this process are in use", limit.rlim_cur),
            .hint = "raise the limit (ulimit -n), or share fewer and larger pieces of memory"};
  if (error == ENFILE)
    return {.where = std::move(where),
            .message = "all descriptors of the machine are in use",
            .hint = "raise /proc/sys/fs/file-max, or end other processes"};
  return {.where = std::move(where),
          .message = fmt::format("{}: {}", call, std::strerror(error)),
          .hint = "memory is shared through descriptors and abstract sockets: a sandbox may forbid them"};
}

Result<Descriptor, Diagnostic> shareable_pages(const std::string& where, std::uint64_t bytes) {
  Descriptor fd(memfd_create("sdma", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!fd) return descriptor_error(where, "memfd_create", errno);
  if (ftruncate(fd.get(), static_cast<off_t>(bytes)) != 0 ||
      fcntl(fd.get(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) != 0)
    return Diagnostic{.where = where,
                      .message = fmt::format("out of memory: {}", std::strerror(errno)),
                      .hint = "free memory, or request less",
                      .cause = Cause::no_memory};
  return fd;
}

FilePages map_pages(int file, std::uint64_t bytes, std::uint64_t alignment) noexcept {
  const auto all = bytes + alignment;
  void* const base = mmap(nullptr, all, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (base == MAP_FAILED) return {};
  auto* const at = reinterpret_cast<std::byte*>(round_up(reinterpret_cast<std::uintptr_t>(base), alignment));
  if (mmap(at, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, file, 0) == MAP_FAILED) {
    const int error = errno;
    munmap(base, all);
    errno = error;
    return {};
  }
  return {static_cast<std::byte*>(base), all, at};
}

Result<void, Diagnostic> ShareServer::start() {
  if (!draw(name_.data(), sizeof name_)) return descriptor_error("share", "getrandom", errno);
  listener_ = Descriptor(socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
  if (!listener_) return descriptor_error("share", "socket", errno);
  spare_ = Descriptor(open("/dev/null", O_RDONLY | O_CLOEXEC));
  if (!spare_) return descriptor_error("share", "open /dev/null", errno);
  const auto at = share::address(name_);
  if (bind(listener_.get(), at.get(), at.bytes()) != 0 || listen(listener_.get(), SOMAXCONN) != 0)
    return descriptor_error("share", "bind", errno);
  try {
    const SignalsBlocked blocked;
    thread_ = std::thread([this] { serve(); });
  } catch (const std::system_error&) {
    return Diagnostic{.where = "share",
                      .message = "the thread that serves handles cannot be started",
                      .hint = "raise the thread limit (ulimit -u)"};
  }
  pthread_setname_np(thread_.native_handle(), "sdma share");
  return {};
}

Result<SharedHandle, Diagnostic> ShareServer::offer(std::uint64_t block, const SharedObject& o, int fd) {
  const std::lock_guard lock(mutex_);
  if (const auto at = blocks_.find(block); at != blocks_.end()) return offers_.at(at->second).handle;
  if (ends_.load(std::memory_order_relaxed))
    return Diagnostic{.where = "share", .message = "the device is closed", .hint = "share memory of an open device"};
  if (!thread_.joinable())
    if (const auto started = start(); !started) return started.error();
  SharedHandle h{.version = SharedHandle::kVersion,
                 .process = static_cast<std::uint32_t>(getpid()),
                 .socket = name_,
                 .bytes = o.bytes};
  device_.copy(h.device.data(), h.device.size());
  if (!draw(&h.object, sizeof h.object)) return descriptor_error("share", "getrandom", errno);
  blocks_.emplace(block, h.object);
  offers_.emplace(h.object, Offer{o, fd, h});
  return h;
}

void ShareServer::withdraw(std::uint64_t block) noexcept {
  const std::lock_guard lock(mutex_);
  const auto at = blocks_.find(block);
  if (at == blocks_.end()) return;
  offers_.erase(at->second);
  blocks_.erase(at);
}

void ShareServer::stop() noexcept {
  std::thread last;
  {
    const std::lock_guard lock(mutex_);
    ends_.store(true, std::memory_order_relaxed);
    if (listener_) ::shutdown(listener_.get(), SHUT_RDWR);  // ends the accept
    last.swap(thread_);
  }
  if (last.joinable()) last.join();
  const std::lock_guard lock(mutex_);
  listener_ = Descriptor();
  spare_ = Descriptor();
}

void ShareServer::serve() noexcept {
  while (!ends_.load(std::memory_order_relaxed)) {
    Descriptor client(accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC));
    if (!client && (errno == EMFILE || errno == ENFILE)) {
      spare_ = Descriptor();
      client = Descriptor(accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC));
    }
    if (client) answer(client.get());
    else nap(std::chrono::milliseconds(1));
    client = Descriptor();
    if (!spare_) spare_ = Descriptor(open("/dev/null", O_RDONLY | O_CLOEXEC));
  }
}

void ShareServer::answer(int client) noexcept {
  if (!of_own_user(client)) return;
  const timeval patience{.tv_sec = share::kPatience.count(), .tv_usec = 0};
  setsockopt(client, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
  std::uint64_t object = 0;
  if (recv(client, &object, sizeof object, 0) != static_cast<ssize_t>(sizeof object)) return;
  const std::lock_guard lock(mutex_);
  const auto at = offers_.find(object);
  if (at == offers_.end()) (void)share::send(client, SharedObject{.withdrawn = 1}, -1);
  else (void)share::send(client, at->second.object, at->second.fd);
}

}}}  // namespace sdma::v0_3::detail
