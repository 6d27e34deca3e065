// SPDX-License-Identifier: MIT
#include "smi.hpp"

#include "../real.hpp"
#include "object_file.hpp"
#include "user.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <algorithm>
#include <cerrno>
#include <cstdio>

namespace sdma::emulator {
namespace {

constexpr std::uint32_t kVmFault = 1;
constexpr int kQueueBytes = 1024;

constexpr std::uint64_t bit_of(std::uint32_t event) noexcept { return std::uint64_t{1} << (event - 1); }

/// True if the program has closed all descriptors of a pipe.
bool abandoned(int writer) noexcept {
  pollfd p{.fd = writer, .events = 0, .revents = 0};
  return ::poll(&p, 1, 0) == 1 && (p.revents & POLLERR) != 0;
}

}  // namespace

Smi::~Smi() { abandon(); }

void Smi::abandon() noexcept {
  for (const auto& c : clients_) ::close(c.writer);
  clients_.clear();
}

int Smi::open(std::uint32_t gpu_id) {
  const std::lock_guard lock(mutex_);
  std::erase_if(clients_, [](const Client& c) { return abandoned(c.writer) && ::close(c.writer) == 0; });
  auto& c = clients_.emplace_back(Client{.gpu_id = gpu_id});
  int ends[2]{};
  struct stat s {};
  if (::pipe2(ends, O_NONBLOCK) != 0) {
    const int error = errno;
    clients_.pop_back();
    return -error;
  }
  c.writer = away(ends[1]);
  (void)SDMA_REAL(fcntl)(c.writer, F_SETFD, FD_CLOEXEC);
  (void)SDMA_REAL(fstat)(ends[0], &s);
  c.dev = s.st_dev;
  c.inode = s.st_ino;
  return ends[0];
}

void Smi::acquired(std::uint32_t gpu_id) noexcept {
  const std::lock_guard lock(mutex_);
  const auto place =
      std::find_if(tasks_.begin(), tasks_.end(), [&](const Task& t) { return t.thread == 0 || t.gpu_id == gpu_id; });
  if (place == tasks_.end() || place->thread != 0) return;  // the first to acquire it remains
  *place = {.gpu_id = gpu_id, .thread = static_cast<std::uint32_t>(::gettid())};
  ::prctl(PR_GET_NAME, place->name);
}

void Smi::vm_fault(std::uint32_t gpu_id) noexcept {
  const std::lock_guard lock(mutex_);
  const auto task =
      std::find_if(tasks_.begin(), tasks_.end(), [&](const Task& t) { return t.gpu_id == gpu_id && t.thread != 0; });
  if (task == tasks_.end()) return;
  char line[64];
  const int bytes = std::snprintf(line, sizeof line, "%x %x:%s\n", kVmFault, task->thread, task->name);
  for (const auto& c : clients_) {
    int queued = 0;
    if (c.gpu_id != gpu_id || (c.mask & bit_of(kVmFault)) == 0 || abandoned(c.writer)) continue;
    if (::ioctl(c.writer, FIONREAD, &queued) == 0 && queued + bytes <= kQueueBytes)
      (void)!SDMA_REAL(write)(c.writer, line, static_cast<std::size_t>(bytes));
  }
}

std::optional<ssize_t> Smi::write(int fd, std::uint64_t from, std::size_t bytes) noexcept {
  struct stat s {};
  if (SDMA_REAL(fstat)(fd, &s) != 0 || !S_ISFIFO(s.st_mode)) return std::nullopt;
  const std::lock_guard lock(mutex_);
  const auto c = std::find_if(clients_.begin(), clients_.end(),
                              [&](const Client& x) { return x.dev == s.st_dev && x.inode == s.st_ino; });
  if (c == clients_.end()) return std::nullopt;
  std::uint64_t mask = 0;
  if (bytes < sizeof mask || !from_user(&mask, from, sizeof mask)) return -EFAULT;
  c->mask = mask;
  return static_cast<ssize_t>(sizeof mask);
}

}  // namespace sdma::emulator
