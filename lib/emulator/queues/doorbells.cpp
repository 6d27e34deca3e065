// SPDX-License-Identifier: MIT
#include "doorbells.hpp"

#include "../../kfd/abi.hpp"
#include "../options.hpp"
#include "../real.hpp"

#include "sdma/trace/trace.hpp"

#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <cinttypes>
#include <cstdio>
#include <ctime>

#ifndef UFFD_USER_MODE_ONLY
#define UFFD_USER_MODE_ONLY 1
#endif
#ifndef UFFD_FEATURE_WP_HUGETLBFS_SHMEM
#define UFFD_FEATURE_WP_HUGETLBFS_SHMEM (1 << 12)
#endif

namespace sdma::emulator {
namespace {

constexpr std::uint64_t kSlow = 100'000'000, kGrace = 20'000'000;  // ns

}  // namespace

Doorbells::Doorbells(const DoorbellPage& page) : page_(page), bell_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {}

Doorbells::~Doorbells() {
  if (fault_ >= 0) ::close(fault_);
  if (bell_ >= 0) ::close(bell_);
}

void Doorbells::knock() noexcept {
  const std::uint64_t one = 1;
  [[maybe_unused]] const auto n = ::write(bell_, &one, sizeof one);
}

bool Doorbells::open() noexcept {
  if (fault_ >= 0 || refused_) return fault_ >= 0;
  refused_ = true;
  if (options().watch != Watch::protect) return false;
  const auto fd = static_cast<int>(::syscall(SYS_userfaultfd, O_CLOEXEC | O_NONBLOCK | UFFD_USER_MODE_ONLY));
  if (fd < 0) return false;
  uffdio_api api{
      .api = UFFD_API, .features = UFFD_FEATURE_PAGEFAULT_FLAG_WP | UFFD_FEATURE_WP_HUGETLBFS_SHMEM, .ioctls = 0};
  if (SDMA_REAL(ioctl)(fd, UFFDIO_API, &api) != 0) {
    ::close(fd);
    return false;
  }
  refused_ = false;
  fault_ = fd;
  return true;
}

/// Registers the program's mappings of the page.
bool Doorbells::find() noexcept {
  ranges_.clear();
  struct stat s {};
  const auto at = page_.offset;
  if (SDMA_REAL(fstat)(page_.fd, &s) != 0) return false;
  auto* maps = SDMA_REAL(fopen)("/proc/self/maps", "re");
  if (!maps) return false;
  char line[512];
  while (std::fgets(line, sizeof line, maps)) {
    std::uint64_t begin = 0, end = 0, offset = 0, inode = 0;
    char flags[5]{};
    if (std::sscanf(line, "%" SCNx64 "-%" SCNx64 " %4s %" SCNx64 " %*s %" SCNu64, &begin, &end, flags, &offset,
                    &inode) != 5)
      continue;
    if (inode != s.st_ino || flags[1] != 'w' || offset + (end - begin) <= at || offset >= at + kfd::kDoorbellBytes)
      continue;
    if (begin == reinterpret_cast<std::uint64_t>(page_.view)) continue;
    uffdio_register r{};
    r.range = {begin, end - begin};
    r.mode = UFFDIO_REGISTER_MODE_WP;
    if (SDMA_REAL(ioctl)(fault_, UFFDIO_REGISTER, &r) == 0) ranges_.push_back({begin, end - begin});
  }
  std::fclose(maps);
  return !ranges_.empty();
}

bool Doorbells::protect(bool on) noexcept {
  bool all = true;
  for (const auto& r : ranges_) {
    uffdio_writeprotect w{};
    w.range = {r.begin, r.bytes};
    w.mode = on ? UFFDIO_WRITEPROTECT_MODE_WP : 0;
    if (SDMA_REAL(ioctl)(fault_, UFFDIO_WRITEPROTECT, &w) != 0) all = false;
  }
  armed_ = on;
  return all;
}

void Doorbells::take_faults() noexcept {
  uffd_msg message{};
  while (::read(fault_, &message, sizeof message) == sizeof message) {}
}

bool Doorbells::sleep(std::uint64_t nap, bool short_nap) noexcept {
  const bool watched = armed_;
  if (!armed_ && trace::now() >= open_until_ && open()) {
    const bool look = stale_.exchange(false, std::memory_order_acq_rel) || ranges_.empty();
    if (!look || find()) {
      if (protect(true)) return false;  // one more check finds a store from before the protection
      protect(false);
    }
    stale_.store(true);
  }
  const auto ns = watched && !short_nap ? kSlow : nap;
  pollfd fds[] = {{bell_, POLLIN, 0}, {fault_, POLLIN, 0}};
  const timespec t{.tv_sec = static_cast<time_t>(ns / 1'000'000'000), .tv_nsec = static_cast<long>(ns % 1'000'000'000)};
  const int ready = ::ppoll(fds, fault_ >= 0 ? 2 : 1, &t, nullptr);
  if (ready > 0 && (fds[0].revents & POLLIN) != 0) {
    std::uint64_t count = 0;
    [[maybe_unused]] const auto n = ::read(bell_, &count, sizeof count);
  }
  if (ready > 0 && armed_) {
    if (fault_ >= 0 && (fds[1].revents & POLLIN) != 0) {
      take_faults();
      // If the page were protected again too soon, the program's thread would fault again before it gets a processor.
      open_until_ = trace::now() + kGrace;
    }
    protect(false);
  }
  return ready > 0;
}

}  // namespace sdma::emulator
