#pragma once
// Who decides what the ordering model leaves open: a seed, or a search through everything.
//
//   Seeded random{42};                       // the software device: one run, repeatable
//   Enumerator all;                          // litmus tests, explorers: every run
//   do { outcome(run(all)); } while (all.next());
//
// A Pipeline asks `choose(what, n)` wherever it may do one of n things and takes the answer for what happens. Two runs with
// the same answers are the same run. Not shared between threads. No errors.
#include <cstdint>
#include <vector>

namespace sdma {
inline namespace v0 {

/// What a choice is about, so that a chooser can prefer, count or fix some of them.
enum class Choice : std::uint8_t {
  front,         ///< 1: the next packet, 0: something that is in flight
  action,        ///< which of the effects in flight lands next
  prefetch,      ///< 1: fetch what the doorbell has published, now
  write_rptr,    ///< 1: tell the host how far the engine has read
  rptr_at_poll,  ///< 1: rptr stands behind the poll that waits, 0: before it
  poll_holds,    ///< 1: this waiting poll keeps the engine from its other queues
  full_ring,     ///< 1: a ring that is full to the last byte is taken for empty
  at_fault,      ///< 1: one more effect lands before the fault stops the queue
  poll_expired,  ///< 1: the queue goes on behind a poll that has expired
  schedule,      ///< which queue, or host thread, makes the next step: asked by schedulers, not by a Pipeline
};

class Chooser {
 public:
  virtual ~Chooser() = default;
  /// A number in [0, n). Requires n > 0.
  virtual std::uint32_t choose(Choice what, std::uint32_t n) noexcept = 0;
};

/// Pseudo-random and repeatable: the same seed gives the same answers everywhere.
class Seeded final : public Chooser {
 public:
  explicit Seeded(std::uint64_t seed) noexcept : state_(seed * 0x9e3779b97f4a7c15 + 1) {}
  std::uint32_t choose(Choice, std::uint32_t n) noexcept override {
    state_ = state_ * 6364136223846793005 + 1442695040888963407;  // Knuth's MMIX generator: the high bits are good
    return static_cast<std::uint32_t>((state_ >> 33) % n);
  }

 private:
  std::uint64_t state_;
};

/// Every sequence of answers, one a run, depth first. Runs must be finite and depend on the answers alone.
class Enumerator final : public Chooser {
 public:
  std::uint32_t choose(Choice, std::uint32_t n) noexcept override;
  /// Ends a run. True: another one follows, with other answers.
  [[nodiscard]] bool next() noexcept;
  std::uint64_t runs() const noexcept { return runs_; }

 private:
  struct Step {
    std::uint32_t taken, of;
  };
  std::vector<Step> path_;
  std::size_t at_ = 0;
  std::uint64_t runs_ = 0;
};

}  // namespace v0
}  // namespace sdma
