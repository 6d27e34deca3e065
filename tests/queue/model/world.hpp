// SPDX-License-Identifier: MIT
#pragma once
// Threads over a model of memory, and an explorer of everything that they can do. An execution is re-run from its start
// for each branch (the code under test is real code on a fiber, which cannot be copied) and given up where it reaches a
// state that was seen: what memory holds and every thread knows, and the values that each has observed, which decide
// what it will do.
//
// What is explored is each choice of the store that a load or an RMW reads, and of the place that a store takes among
// those to its location. Who goes next needs no choice: in this model of memory a step depends on others by the store
// that it reads and by nothing else, so every outcome is also that of the execution in which each step happens as soon
// as the store that it reads is there. A store happens at once. Whoever reads is offered each store when it appears,
// and takes it or waits for a later one; an execution in which somebody waited in vain is not one, and is dropped.
//
//   Model                  the policy that a Ring takes in place of order::Native
//   World::access          where a fiber stands while it waits for its turn: before each access to an atomic word
//   World::wrote           plain stores cannot be intercepted, but they show: after each step the ring's dwords are
//                          compared with what they were. A dword is filled with kPoison when the engine has read it.
#include "fiber.hpp"
#include "memory.hpp"
#include "sdma/queue/ring.hpp"

#include <functional>
#include <string>
#include <unordered_map>
#include <vector>

namespace model {

inline constexpr std::uint32_t kPoison = 0xffffffff;
inline constexpr std::size_t kRing = sdma::kMinRingDwords;

struct Outcome {
  std::uint64_t states = 0, ends = 0,
                runs = 0;            ///< ends: executions in which nobody waited in vain; runs: from the start
  bool complete = true;              ///< nothing left to explore: neither by a limit nor after a failure
  std::string failure{};             ///< the first, empty if there is none
  std::vector<std::string> trace{};  ///< how it came about
};

struct Limits {
  std::uint64_t states = 20'000'000;
  int symmetric = 0;  ///< threads 1 to this run the same program: they take their first slots in this order
};

class World {
 public:
  World(const World&) = delete;
  World& operator=(const World&) = delete;
  static World& current();  ///< the only one
  /// Before other scenarios, which touch other atomics.
  void reset_places() { place_.fill(-1), places_ = 3, twice_ = {}, twice_from_ = twice_to_ = 0; }

  /// All executions of the threads that `setup` adds; `end` looks at each that has nothing left to do.
  Outcome explore(const std::function<void()>& setup, const std::function<void()>& end, const Limits& = {});

  // --- for `setup` ---
  void thread(void (*run)(void*), void* argument);
  alignas(64) std::uint64_t rptr{};
  alignas(64) std::uint64_t wptr{};
  alignas(64) std::uint64_t doorbell{};
  alignas(256) std::array<std::uint32_t, kRing> dwords{};
  /// What a state consists of beyond memory and threads: the scenario's own bookkeeping.
  std::function<std::uint64_t()> ghost{};

  /// Of these atomics each is stored twice at most (or it is a failure): nothing waits for a third store.
  void stored_twice(std::uint32_t from, std::uint32_t to) { twice_from_ = from, twice_to_ = to; }

  // --- for threads ---
  std::uint64_t access(Op op);
  bool compare_exchange(Op op, std::uint64_t& expected);
  int word(const void* pointer);   ///< the location of rptr, wptr or doorbell
  int atomic(std::uint32_t made);  ///< of the `made`th Atomic since setup began
  std::uint32_t next_atomic() { return atomics_++; }
  void flush();                                     ///< an sfence of the running thread
  void read(std::uint64_t from, std::uint64_t to);  ///< the engine reads this part of the ring
  void consumed();                                  ///< and fills it with poison
  void forget(std::uint64_t point);  ///< what the running thread has observed so far no longer decides anything
  void fail(std::string what);
  void require(bool ok, const char* what) {
    if (!ok) fail(what);
  }
  bool failed() const { return !failure_.empty(); }
  int self() const { return running_; }
  std::uint64_t last(int location) const { return memory_.last(location).value; }
  std::uint64_t seen(int location) const { return seen_[at(running_)][at(location)]; }  ///< last value that it loaded
  bool finished(int thread) const { return threads_[at(thread)].fiber.done(); }
  int threads() const { return used_; }

  static constexpr int kRptr = 0, kWptr = 1, kDoorbell = 2;
  /// A store to rptr, wptr or doorbell, before it happens: location, value, its neighbours in modification order.
  std::function<void(int, std::uint64_t, std::uint64_t, std::uint64_t)> storing{};

 private:
  World() { place_.fill(-1); }
  static constexpr std::size_t at(int i) { return static_cast<std::size_t>(i); }
  struct Thread {
    Fiber fiber{};
    void (*run)(void*) = nullptr;
    void* argument = nullptr;
    Op op{};
    std::uint64_t observed{};
    std::uint32_t blocks{};
    std::uint32_t offered{};  ///< stores to its location that it was offered
    bool declined{}, wptr_buffered{};
    int taken{};  ///< slots
  };
  struct Choice {
    std::uint8_t thread, store;
  };
  static constexpr std::uint8_t kWait = 255;  ///< for a later store
  struct Node {
    std::uint32_t parent;
    Choice choice;
  };
  struct Dword {
    std::uint32_t value{};
    int writer{-1};            ///< bit of View::written
    std::uint64_t position{};  ///< end of the engine's read, 0 where it has not read it
    bool buffered{};
  };

  static void body(void* self);
  void restart(const std::function<void()>& setup);
  void step(Choice);
  void resume(int thread);
  void wrote();
  void set(std::size_t dword, const Dword&);
  bool choices(std::vector<Choice>& out);
  std::uint64_t state() const;
  std::string describe(int thread, const Op&) const;

  Memory memory_{};
  std::array<Thread, kThreads> threads_{};
  std::array<std::array<std::uint64_t, kLocations>, kThreads> seen_{};
  std::array<Dword, kRing> shadow_{};
  std::array<std::uint32_t, kRing> known_{};  ///< values of shadow_, in one piece
  std::uint64_t shadow_hash_ = 0;
  int buffered_ = 0;
  std::uint64_t read_from_ = 0, read_to_ = 0;
  int used_ = 1, running_ = 0, symmetric_ = 0;
  std::uint32_t atomics_ = 0;
  std::array<int, 128> place_{};  ///< of the atomics that were touched: the same for every execution
  int places_ = 3;
  std::array<bool, kLocations> twice_{};
  std::uint32_t twice_from_ = 0, twice_to_ = 0;
  std::string failure_{};
  std::vector<std::string>* trace_ = nullptr;
};

/// order::Native with a model behind it. The constants are variables: a mutant is another value for one of them.
struct Model {
  static inline auto kWptr = sdma::order::Native::kWptr;
  static inline auto kDoorbell = sdma::order::Native::kDoorbell;
  static inline auto kRptr = sdma::order::Native::kRptr;
  static inline auto kReserve = sdma::order::Native::kReserve;
  static inline auto kSeenRead = sdma::order::Native::kSeenRead;
  static inline auto kTellRead = sdma::order::Native::kTellRead;
  static inline auto kSeenWptr = sdma::order::Native::kSeenWptr;
  static inline auto kTurn = sdma::order::Native::kTurn;
  static inline auto kLeave = sdma::order::Native::kLeave;
  static inline auto kFront = sdma::order::Native::kFront;
  static inline auto kPass = sdma::order::Native::kPass;
  static inline auto kCommit = sdma::order::Native::kCommit;
  static inline auto kCommitted = sdma::order::Native::kCommitted;

  template <class T> class Atomic {
   public:
    Atomic() : made_(World::current().next_atomic()) {}
    T load(std::memory_order o) const { return static_cast<T>(access(Kind::load, o, 0)); }
    void store(T v, std::memory_order o) { access(Kind::store, o, v); }
    T exchange(T v, std::memory_order o) { return static_cast<T>(access(Kind::exchange, o, v)); }
    bool compare_exchange_weak(T& expected, T v, std::memory_order o, std::memory_order failure) {
      auto& w = World::current();
      return w.compare_exchange(
          {.kind = Kind::compare_exchange, .location = w.atomic(made_), .order = o, .failure = failure, .value = v},
          expected);
    }

    int location() const { return World::current().atomic(made_); }

   private:
    std::uint64_t access(Kind k, std::memory_order o, std::uint64_t v) const {
      auto& w = World::current();
      return w.access({.kind = k, .location = w.atomic(made_), .order = o, .value = v});
    }
    std::uint32_t made_;
  };
  static std::uint64_t load(const std::uint64_t* word, std::memory_order o) {
    auto& w = World::current();
    return w.access({.kind = Kind::load, .location = w.word(word), .order = o});
  }
  static void store(std::uint64_t* word, std::uint64_t v, std::memory_order o) {
    auto& w = World::current();
    w.access({.kind = Kind::store, .location = w.word(word), .order = o, .value = v});
  }
  static void before_wptr(sdma::Caching, const std::uint32_t*) { World::current().flush(); }
  static void before_doorbell(sdma::Caching) { World::current().flush(); }
  static inline bool leader_flushes = true;  ///< false is a mutant
  static void before_leader() {
    if (leader_flushes) World::current().flush();
  }
};

}  // namespace model
