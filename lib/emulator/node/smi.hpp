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
#include <sys/types.h>
#include <array>
#include <cstdint>
#include <list>
#include <mutex>
#include <optional>

namespace sdma::emulator {

class Smi {
 public:
  Smi() = default;
  ~Smi();
  Smi(const Smi&) = delete;
  Smi& operator=(const Smi&) = delete;

  /// A descriptor of the events of a GPU, or a negative errno.
  int open(std::uint32_t gpu_id);
  /// The calling thread acquires a GPU: its faults have this thread's number and name.
  void acquired(std::uint32_t gpu_id) noexcept;
  void vm_fault(std::uint32_t gpu_id) noexcept;
  /// A program's write to a descriptor: bytes, or a negative errno; nullopt if it is not ours.
  std::optional<ssize_t> write(int fd, std::uint64_t from, std::size_t bytes) noexcept;

  /// Call them around a fork.
  void before_fork() noexcept { mutex_.lock(); }
  void after_fork() noexcept { mutex_.unlock(); }
  /// For a forked child, after before_fork: closes our ends of the pipes.
  void abandon() noexcept;

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
