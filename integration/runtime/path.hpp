// SPDX-License-Identifier: MIT
#pragma once
// The copy path of one queue: commands from any thread, with exact pending bytes, a wait for idle and recovery.
//
//   CopyPath path{*engine_of(target, link), queue.memory(), progress};   // progress: 8 bytes, alone on their line
//   const LinearCopy copy[] = {{a, b, bytes}};
//   auto number = path.submit({.work = std::span(copy), .after = deps, .out = view(signal)}, Deadline::in(1s));
//   path.pending_bytes();                             // to choose the engine with the least work
//   path.wait(*number, deadline);                     // a copy that blocks, without a signal to wait for
//   path.wait_idle(deadline);                         // then the queue may be destroyed
//
// Progress. Before a command completes its signal, it stores its number to the low half of the word `progress`. rptr
// would not do: it says what the engine has read, and a gigabyte may then be in flight. A thread that sees the signal
// of a command complete no longer finds its bytes pending. wait_idle submits a number alone, which is stored after all
// that.
//
// Threads. A lock covers the number and the slot, so that numbers are in the order of the ring; it covers neither the
// wait for room, nor the encoding, nor the doorbell. Packets are written by many threads at once.
//
// Recovery. A fault or a hang ends a queue, and with it what it had not completed:
//
//   path.stop(deadline);                              // submit and wait return Errc::stopped; the ring has no writer
//   queue = Queue{};                                  // destroyed: the engine no longer touches anything
//   path.recover(new_queue.memory(), [&](const CopyPath::Unfinished& u) {
//     if (!u.moved) hsa_signal_store_screlease({u.signal}, -1);           // the bytes are undefined: an error
//     else if (still_pending(u.signal)) hsa_signal_subtract_screlease({u.signal}, 1);
//   });
//
// Commands come in their order. `moved`: the bytes are where they belong, and the queue may have ended before it
// completed the signal; at most one command, the first, and only if the engine had not read to its end when `stop`
// returned. The signals of all others are not complete. The items of a gang's members are such signals: store the error
// to the leader's signal first, then 1 to the item, so that the leader's queue continues.
//
// Length. A command that takes more than half the ring is divided (divide.hpp). Each part has a number, and other
// commands may come between them; `submit` returns the number of the last part.
//
// Errors of submit: those of dwords_of, encode and each_part; timed_out: no room until the deadline; stopped. bad_ring:
// the memory is not that of a ring. After an error, nothing of the command is executed, unless it was divided: then its
// first parts may be, and the rest and the completion never are.
// The constructor and `recover` allocate; nothing else does. Destroy the queue before the path.
#include "command.hpp"
#include "sdma/core/deadline.hpp"
#include "sdma/queue/ring.hpp"
#include "sdma/sync/signal.hpp"

#include <atomic>
#include <mutex>
#include <optional>
#include <vector>

namespace runtime {

class CopyPath {
 public:
  /// `progress`: 8-byte aligned system memory that the engine reaches, for this path alone; is set to 0.
  CopyPath(const Engine&, const sdma::RingMemory&, const sdma::Signal& progress);

  /// Writes the command and rings the doorbell. Returns its number, which grows by 1 from 1 on.
  sdma::Result<std::uint64_t> submit(const Command&, sdma::Deadline) noexcept;

  /// The bytes of all commands that were submitted and are not complete.
  std::uint64_t pending_bytes() const noexcept;
  /// The number of the last command whose work is complete, and so is that of all before it.
  std::uint64_t completed() const noexcept;
  /// Waits until the work of command `number` is complete. timed_out. stopped: the path has stopped, or begun again
  /// since the command was submitted.
  [[nodiscard]] sdma::Errc wait(std::uint64_t number, sdma::Deadline) const noexcept;
  /// Waits until nothing that was submitted before the call is outstanding, signals and interrupts included. timed_out,
  /// stopped.
  [[nodiscard]] sdma::Errc wait_idle(sdma::Deadline) noexcept;

  /// Refuses new commands, and waits until no thread writes to the ring. timed_out: call it again.
  [[nodiscard]] sdma::Errc stop(sdma::Deadline) noexcept;
  /// A command that its queue did not complete.
  struct Unfinished {
    std::uint64_t signal{};  ///< SignalView::handle of what it should have completed
    std::uint64_t number{};  ///< its own
    bool moved = false;      ///< its bytes are where they belong
  };
  /// After `stop`, and after the old queue has been destroyed: reports what is unfinished, and begins again on another
  /// ring. bad_argument: `stop` has not returned ok.
  template <class Report> sdma::Errc recover(const sdma::RingMemory& m, Report report) {
    if (!quiet()) return sdma::Errc::bad_argument;
    const auto moved = completed();
    for (auto n = first_unfinished(); n <= last_; ++n)
      if (!record(n).drain) report(Unfinished{record(n).signal, n, n <= moved});
    restart(m);
    return sdma::Errc::ok;
  }

  const Engine& engine() const noexcept { return engine_; }

 private:
  /// What is remembered of a command until it is complete.
  struct Record {
    std::uint64_t total{};   ///< the bytes of all commands up to this one
    std::uint64_t end{};     ///< where it ends in the ring
    std::uint64_t signal{};  ///< that it completes
    bool drain = false;      ///< no signal: of wait_idle, of a part, or of what could not be encoded
  };
  struct Open {
    sdma::Slot slot{};
    std::uint64_t number{};
  };

  const Record& record(std::uint64_t number) const noexcept { return records_[number & (records_.size() - 1)]; }
  std::uint64_t completed_locked() const noexcept;
  /// A command that fits a slot; `drain` as in Record.
  sdma::Result<std::uint64_t> submit_one(const Command&, std::size_t dwords, bool drain, sdma::Deadline) noexcept;
  sdma::Result<Open> try_open(std::size_t dwords, const Record&, std::uint64_t bytes) noexcept;
  /// A number and a slot for it, which `close` publishes.
  sdma::Result<Open> open(std::size_t dwords, const Record&, std::uint64_t bytes, sdma::Deadline) noexcept;
  void close(const Open&, const sdma::AnyWriter&) noexcept;
  Count count(std::uint64_t number) const noexcept { return {progress_.low_va(), sdma::low_half(number)}; }
  bool quiet() const noexcept { return stopped_ && writers_.load(std::memory_order_acquire) == 0; }
  std::uint64_t first_unfinished() const noexcept;
  void restart(const sdma::RingMemory&);

  const Engine engine_;
  const sdma::Signal progress_;
  std::optional<sdma::Ring<sdma::Producers::many>> ring_;
  mutable std::mutex mutex_;
  std::vector<Record> records_;        // by number: of the last complete command, and of all after it
  std::uint64_t last_ = 0, base_ = 0;  // the last number; the last one of earlier queues
  std::uint64_t read_ = 0;             // what the engine had read when the path stopped
  std::atomic<std::uint32_t> writers_{0};
  std::atomic<bool> stopped_{false};
};

}  // namespace runtime
