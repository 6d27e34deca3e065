#pragma once
// How a sleeping server learns that a program has stored a doorbell, which is a plain store to a shared page.
//
//   protect   The program's mappings of the page are write-protected (userfaultfd): its store stops in the kernel, which tells
//             us; the protection is taken off, the store is done, the server is awake. No cost while idle, no signal handler.
//   park      Naps of 20 us to 1 ms. Where the kernel refuses userfaultfd, and until the mapping is found.
//   spin      Never sleeps: see Server.
//
// Mappings are those that /proc/self/maps shows for the page's file and offset, however the program made them. They are looked
// up when the server falls asleep after queues came or went; a slow look every kSlow finds a mapping that was made later, and
// protects it from then on.
//
// `sleep` and `arm` are the server thread's; `knock` and `mappings_changed` anybody's. No errors: at worst, naps.
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace sdma::emulator {

/// The page of a GPU's doorbells: a piece of a file that the program maps, too.
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

  /// Until a doorbell is stored, a knock, or at most `nap` ns where nothing better is to be had or `short_nap` is asked for.
  /// Returns at once when it has just protected the page: look once more. True: a store was stopped, or somebody knocked; the
  /// store itself may be done a moment later.
  bool sleep(std::uint64_t nap, bool short_nap) noexcept;
  /// The server has work: the page is the program's again. If it was still protected, a doorbell came another way.
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
  std::uint64_t open_until_ = 0;  ///< ns: a store that was stopped gets its time to be done
  std::atomic<bool> stale_{true};
  std::vector<Range> ranges_;
};

}  // namespace sdma::emulator
