// SPDX-License-Identifier: MIT
#pragma once
// The stream of a GPU's events for monitors (SMI_EVENTS): lines from a descriptor that a program reads and polls.
//
//   ioctl(kfd, SMI_EVENTS, {gpu_id, &fd});  write(fd, &mask, 8);  poll(fd, POLLIN);  read(fd, line, sizeof line)
//
//   "1 4d2:my_program\n"      event 1, a VM fault: thread and name of the program
//                             that acquired the GPU, numbers in hexadecimal
//
//   mask     bit n-1 selects event n; 0 at first. Only VM faults happen here: nothing throttles, resets or migrates,
//            and each process sees its own faults only. So bit 63, all processes, changes nothing
//   read     never blocks: EAGAIN. The kernel keeps 1024 bytes per descriptor, and drops a line that does not fit
//
// The descriptor is the end of a pipe for reading, so that poll, select and the C library's streams work on it. A write
// to it fails in the kernel with EBADF; only then does the interposed `write` find that it is ours.
//
// Threads: any thread may call anything, engine threads included; only `open` allocates.
#include "../real.hpp"
#include "object_file.hpp"
#include "user.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <unistd.h>
#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <list>
#include <mutex>
#include <optional>

namespace sdma::emulator {

inline constexpr std::uint32_t kVmFault = 1;
inline constexpr int kQueueBytes = 1024;
constexpr std::uint64_t bit_of(std::uint32_t event) noexcept { return std::uint64_t{1} << (event - 1); }
/// True if the program has closed all descriptors of a pipe.
inline bool abandoned(int writer) noexcept {
  pollfd p{.fd = writer, .events = 0, .revents = 0};
  return ::poll(&p, 1, 0) == 1 && (p.revents & POLLERR) != 0;
}

class Smi {
 public:
  Smi() = default;
  ~Smi() { abandon(); }
  Smi(const Smi&) = delete;
  Smi& operator=(const Smi&) = delete;

  /// A descriptor of the events of a GPU, or a negative errno.
  int open(std::uint32_t gpu_id) {
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
  /// The calling thread acquires a GPU: its faults have this thread's number and name.
  void acquired(std::uint32_t gpu_id) noexcept {
    const std::lock_guard lock(mutex_);
    const auto place =
        std::find_if(tasks_.begin(), tasks_.end(), [&](const Task& t) { return t.thread == 0 || t.gpu_id == gpu_id; });
    if (place == tasks_.end() || place->thread != 0) return;  // the first to acquire it remains
    *place = {.gpu_id = gpu_id, .thread = static_cast<std::uint32_t>(::gettid())};
    ::prctl(PR_GET_NAME, place->name);
  }
  void vm_fault(std::uint32_t gpu_id) noexcept {
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
  /// A program's write to a descriptor: bytes, or a negative errno; nullopt if it is not ours.
  std::optional<ssize_t> write(int fd, std::uint64_t from, std::size_t bytes) noexcept {
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

  /// Call them around a fork.
  void before_fork() noexcept { mutex_.lock(); }
  void after_fork() noexcept { mutex_.unlock(); }
  /// For a forked child, after before_fork: closes our ends of the pipes.
  void abandon() noexcept {
    for (const auto& c : clients_) ::close(c.writer);
    clients_.clear();
  }

 private:
  struct Client {
    std::uint32_t gpu_id{};
    int writer = -1;
    dev_t dev{};
    ino_t inode{};
    std::uint64_t mask{};
  };
  struct Task {
    std::uint32_t gpu_id{}, thread{};
    char name[16]{};
  };

  std::mutex mutex_;
  std::list<Client> clients_{};
  std::array<Task, 8> tasks_{};
};

}  // namespace sdma::emulator
