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
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace sdma::emulator {

/// The page of a GPU's doorbells: a range of a file that the program also maps.
struct DoorbellPage {
  int fd = -1;
  std::uint64_t offset{};
  const std::byte* view{};  ///< our own mapping, which is never protected
};

class Doorbells {
 public:
  explicit Doorbells(const DoorbellPage&);
  ~Doorbells();
  Doorbells(const Doorbells&) = delete;
  Doorbells& operator=(const Doorbells&) = delete;

  /// Sleeps until a doorbell is stored or `knock` is called; at most `nap` ns if the page is not protected or with
  /// `short_nap`. Returns at once after it has protected the page, so that the caller checks once more. True: a store
  /// was blocked, or `knock` was called. The store itself may complete a moment later.
  bool sleep(std::uint64_t nap, bool short_nap) noexcept;
  /// Removes the protection because the server has work. If the page was still protected, a doorbell came another way.
  void awake() noexcept {
    if (armed_) {
      protect(false);
      stale_.store(true, std::memory_order_relaxed);
    }
  }
  void knock() noexcept;
  void mappings_changed() noexcept { stale_.store(true, std::memory_order_release); }

 private:
  struct Range {
    std::uint64_t begin, bytes;
  };
  bool open() noexcept;
  bool find() noexcept;
  bool protect(bool on) noexcept;
  void take_faults() noexcept;

  const DoorbellPage page_;
  int bell_ = -1;   ///< eventfd of knocks
  int fault_ = -1;  ///< userfaultfd
  bool refused_ = false, armed_ = false;
  std::uint64_t open_until_ = 0;  ///< ns: until then, a blocked store has time to complete
  std::atomic<bool> stale_{true};
  std::vector<Range> ranges_;
};

}  // namespace sdma::emulator
