// SPDX-License-Identifier: MIT
#pragma once
// How a sleeping server notices that a program has stored a doorbell, which is a plain store to a shared page.
//
//   protect   The program's mappings of the page are write-protected (userfaultfd). A store blocks in the kernel, which
//             notifies us. We remove the protection, the store completes, and the server is awake. There is no cost
//             while idle, and no signal handler.
//   park      Sleeps of 20 us to 1 ms. Used if the kernel refuses userfaultfd, and until the mapping is found.
//   spin      Never sleeps: see Server.
//
// Mappings are those that /proc/self/maps shows for the page's file and offset, however the program created them. They
// are looked up when the server goes to sleep after queues were created or destroyed. Another look-up every kSlow finds
// later mappings, and protects them from then on.
//
// The server thread calls `sleep` and `awake`; any thread may call `knock` and `mappings_changed`. No errors: at worst,
// the server polls, with short sleeps.
#include "../../core/descriptor.hpp"
#include "../../core/maps.hpp"
#include "../../kfd/abi.hpp"
#include "../node_options.hpp"
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
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <ctime>
#include <vector>

#ifndef UFFD_USER_MODE_ONLY
#define UFFD_USER_MODE_ONLY 1
#endif
#ifndef UFFD_FEATURE_WP_HUGETLBFS_SHMEM
#define UFFD_FEATURE_WP_HUGETLBFS_SHMEM (1 << 12)
#endif

namespace sdma::emulator {

inline constexpr std::uint64_t kSlow = 100'000'000, kGrace = 20'000'000;  // ns

/// The page of a GPU's doorbells: a range of a file that the program also maps.
struct DoorbellPage {
  int fd = -1;
  std::uint64_t offset{};
  const std::byte* view{};  ///< our own mapping, which is never protected
};

class Doorbells {
 public:
  explicit Doorbells(const DoorbellPage& page) : page_(page), bell_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {}
  ~Doorbells() {
    if (fault_ >= 0) ::close(fault_);
    if (bell_ >= 0) ::close(bell_);
  }
  Doorbells(const Doorbells&) = delete;
  Doorbells& operator=(const Doorbells&) = delete;

  /// Sleeps until a doorbell is stored or `knock` is called; at most `nap` ns if the page is not protected or with
  /// `short_nap`. Returns at once after it has protected the page, so that the caller checks once more. True: a store
  /// was blocked, or `knock` was called. The store itself may complete a moment later.
  bool sleep(std::uint64_t nap, bool short_nap) noexcept {
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
    const timespec t{.tv_sec = static_cast<time_t>(ns / 1'000'000'000),
                     .tv_nsec = static_cast<long>(ns % 1'000'000'000)};
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
  /// Removes the protection because the server has work. If the page was still protected, a doorbell came another way.
  void awake() noexcept {
    if (armed_) {
      protect(false);
      stale_.store(true, std::memory_order_relaxed);
    }
  }
  void knock() noexcept {
    const std::uint64_t one = 1;
    [[maybe_unused]] const auto n = ::write(bell_, &one, sizeof one);
  }
  void mappings_changed() noexcept { stale_.store(true, std::memory_order_release); }

 private:
  struct Range {
    std::uint64_t begin, bytes;
  };
  bool open() noexcept {
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
  bool find() noexcept {
    ranges_.clear();
    struct stat s {};
    const auto at = page_.offset;
    if (SDMA_REAL(fstat)(page_.fd, &s) != 0) return false;
    const detail::Descriptor maps(SDMA_REAL(open)("/proc/self/maps", O_RDONLY | O_CLOEXEC));
    detail::each_mapping(maps.get(), [&](const detail::MapsLine& m) {
      const auto bytes = m.to - m.from;
      if (m.inode != s.st_ino || !m.writable() || m.offset + bytes <= at || m.offset >= at + kfd::kDoorbellBytes ||
          m.from == reinterpret_cast<std::uint64_t>(page_.view))
        return true;
      uffdio_register r{};
      r.range = {m.from, bytes};
      r.mode = UFFDIO_REGISTER_MODE_WP;
      if (SDMA_REAL(ioctl)(fault_, UFFDIO_REGISTER, &r) == 0) ranges_.push_back({m.from, bytes});
      return true;
    });
    return !ranges_.empty();
  }
  bool protect(bool on) noexcept {
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
  void take_faults() noexcept {
    uffd_msg message{};
    while (::read(fault_, &message, sizeof message) == sizeof message) {}
  }

  const DoorbellPage page_;
  int bell_ = -1;   ///< eventfd of knocks
  int fault_ = -1;  ///< userfaultfd
  bool refused_ = false, armed_ = false;
  std::uint64_t open_until_ = 0;  ///< ns: until then, a blocked store has time to complete
  std::atomic<bool> stale_{true};
  std::vector<Range> ranges_;
};

}  // namespace sdma::emulator
