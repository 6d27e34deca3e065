#include "soft_engine.hpp"

#include "soft_node.hpp"

#include <pthread.h>
#include <signal.h>

#include <algorithm>
#include <cstdio>
#include <system_error>

namespace sdma {
inline namespace v0 {
namespace detail {
namespace {

using namespace std::chrono_literals;

constexpr std::uint32_t kBudget = 64;  // actions of a queue before the next one has its turn
constexpr auto kSpin = 30us;           // a little more than a host's wait spins for
constexpr auto kFirstNap = 50us;
constexpr auto kLongestNap = 1ms;
constexpr auto kRawFor = 100ms;

void pause() noexcept {
#if defined(__x86_64__)
  for (int i = 0; i < 4; ++i) __builtin_ia32_pause();
#elif defined(__aarch64__)
  for (int i = 0; i < 4; ++i) asm volatile("yield");
#endif
}

}  // namespace

/// Asks for the engine and gets it between two rounds, however busy it is.
class SoftEngine::Control {
 public:
  explicit Control(const SoftEngine& e) : e_(e) {
    e_.asked_.fetch_add(1, std::memory_order_relaxed);
    e_.mutex_.lock();
  }
  ~Control() {
    e_.asked_.fetch_sub(1, std::memory_order_relaxed);
    e_.mutex_.unlock();
    e_.granted_.notify_all();
  }
  Control(const Control&) = delete;
  Control& operator=(const Control&) = delete;

 private:
  const SoftEngine& e_;
};

SoftEngine::SoftEngine(SoftNode& node, GpuId gpu, EngineId engine)
    : node_(node), gpu_(gpu), engine_(engine), reader_(node.space(), gpu), gone_{.gpu = gpu, .engine = engine} {}

SoftEngine::~SoftEngine() { stop(); }

bool SoftEngine::add(std::unique_ptr<SoftQueue> q) {
  {
    Control control(*this);
    q->engine = this;
    queues_.push_back(std::move(q));
    if (!thread_.joinable()) {
      // The program's signal handlers are not to run here.
      sigset_t all, before;
      sigfillset(&all);
      pthread_sigmask(SIG_SETMASK, &all, &before);
      try {
        thread_ = std::thread([this] { run(); });
      } catch (const std::system_error&) {
        queues_.pop_back();
      }
      pthread_sigmask(SIG_SETMASK, &before, nullptr);
      if (!thread_.joinable()) return false;
      char name[16];
      std::snprintf(name, sizeof name, "sdma %u.%u", gpu_.value, engine_.value);
      pthread_setname_np(thread_.native_handle(), name);
    }
  }
  knock();
  return true;
}

std::unique_ptr<SoftQueue> SoftEngine::remove(std::uint64_t id) {
  std::unique_ptr<SoftQueue> out;
  {
    Control control(*this);
    const auto at = std::find_if(queues_.begin(), queues_.end(), [id](const auto& q) { return q->id == id; });
    if (at == queues_.end()) return out;
    out = std::move(*at);
    queues_.erase(at);
    next_ = 0;
    if (holder_ == out.get()) holder_ = nullptr;
    const auto& c = out->pipeline->counters();
    gone_.packets += c.packets;
    gone_.bytes += c.bytes;
    gone_.doorbells += c.doorbells;
  }
  knock();
  return out;
}

void SoftEngine::map_all() {
  {
    Control control(*this);
    for (auto& q : queues_) q->map();
  }
  knock();
}

std::uint32_t SoftEngine::free_slot() const {
  Control control(*this);
  std::uint32_t slot = 0;
  for (bool taken = true; taken; slot += taken) {
    taken = false;
    for (const auto& q : queues_) taken = taken || q->slot == slot;
  }
  return slot;
}

EngineCounters SoftEngine::counters() const {
  Control control(*this);
  auto sum = gone_;
  for (const auto& q : queues_) {
    const auto& c = q->pipeline->counters();
    sum.packets += c.packets;
    sum.bytes += c.bytes;
    sum.doorbells += c.doorbells;
  }
  return sum;
}

void SoftEngine::stop() noexcept {
  if (!thread_.joinable()) return;
  {
    Control control(*this);
    stopping_ = true;
  }
  knock();
  thread_.join();
}

bool SoftEngine::look_around() noexcept {
  if (!parking_.somebody_sleeps()) return false;
  {
    std::unique_lock lock(mutex_, std::try_to_lock);
    if (!lock) return false;
    bool found = false;
    for (auto& q : queues_) {
      if (q->published() == q->told || q->pipeline->fault()) continue;
      q->raw_until = Deadline::Clock::now() + kRawFor;
      found = true;
    }
    if (!found) return false;
  }
  knock();
  return true;
}

void SoftEngine::run() noexcept {
  std::unique_lock lock(mutex_);
  last_work_ = Deadline::Clock::now();
  nap_ = kFirstNap;
  set_awake(true);
  while (!stopping_) {
    if (asked_.load(std::memory_order_relaxed) != 0) {
      // Whoever asked holds the mutex next, and for a moment only.
      granted_.wait_for(lock, 1ms, [this] { return asked_.load(std::memory_order_relaxed) == 0; });
      continue;
    }
    const auto ticket = parking_.ticket();
    const auto outcome = round();
    if (outcome == Outcome::progressed) {
      last_work_ = {};
      nap_ = kFirstNap;
      continue;
    }
    lock.unlock();
    rest(outcome, ticket);
    lock.lock();
  }
  set_waiting(0);
  if (spinning_) node_.end_spinning();
  set_awake(false);
}

void SoftEngine::set_awake(bool on) noexcept {
  if (awake_.exchange(on, std::memory_order_relaxed) != on) node_.count_awake(on);
}

void SoftEngine::sleep(std::uint32_t ticket, Deadline d) noexcept {
  set_awake(false);
  parking_.sleep(ticket, d);
  set_awake(true);  // also where a knock just before was forgotten, or nobody knocked
}

SoftEngine::Outcome SoftEngine::round() noexcept {
  raw_ = served_raw();
  auto result = Outcome::idle;
  if (holder_) {
    result = serve(*holder_);
    if (!holder_->pipeline->holds_engine()) holder_ = nullptr;
  } else {
    const auto n = queues_.size();
    for (std::size_t i = 0; i < n && !holder_; ++i) {
      auto& q = *queues_[(next_ + i) % n];
      result = std::max(result, serve(q));
      if (!q.at_rest && q.pipeline->holds_engine()) holder_ = &q;
    }
    if (n != 0) next_ = (next_ + 1) % n;
  }
  if (result == Outcome::progressed) {
    set_waiting(0);
    node_.announce();
  }
  polls_ = 0;
  if (result == Outcome::waiting)
    for (const auto& q : queues_)
      if (const auto word = q->at_rest ? GpuVa{} : q->pipeline->waits_for(); word != GpuVa{}) polls_ |= bit_of(word);
  if (result == Outcome::waiting && polls_ == 0) polls_ = ~std::uint64_t{0};  // met just now, or by whatever is stored
  return result;
}

SoftEngine::Outcome SoftEngine::serve(SoftQueue& q) noexcept {
  if (const auto published = q.published(); published != q.told) {
    q.told = published;
    q.pipeline->doorbell(published);
    if (q.trace) q.trace->doorbell(q.lane, trace::now(), published);
    q.at_rest = false;
    if (raw_) q.raw_until = Deadline::Clock::now() + kRawFor;
  }
  if (q.at_rest) return Outcome::idle;
  AddressSpace::Reader::Section section(reader_);
  switch (q.pipeline->step(kBudget)) {
    case Progress::progressed: return Outcome::progressed;
    case Progress::waiting: return Outcome::waiting;
    case Progress::idle:
    case Progress::stopped: q.at_rest = true; return Outcome::progressed;
  }
  return Outcome::idle;
}

bool SoftEngine::served_raw() const noexcept {
  for (const auto& q : queues_)
    if (q->raw_until != Deadline::Clock::time_point{} && q->raw_until > Deadline::Clock::now()) return true;
  return false;
}

/// Nothing to do, or nothing but polls that are not met: spins for a moment, as a host's wait does, then sleeps.
void SoftEngine::rest(Outcome outcome, std::uint32_t ticket) noexcept {
  const auto now = Deadline::Clock::now();
  if (last_work_ == Deadline::Clock::time_point{}) last_work_ = now;
  if (now - last_work_ < kSpin && !node_.crowded()) {
    if (spinning_ || (spinning_ = node_.begin_spinning())) return pause();
  }
  if (std::exchange(spinning_, false)) node_.end_spinning();
  if (outcome == Outcome::waiting && polls_ != told_polls_)
    return set_waiting(polls_);  // one more look behind it, or a wake-up is lost
  if (outcome == Outcome::idle && !raw_) return sleep(ticket, Deadline::in(1h));
  sleep(ticket, Deadline::in(nap_));
  nap_ = std::min<std::chrono::nanoseconds>(nap_ * 2, kLongestNap);
}

void SoftEngine::set_waiting(std::uint64_t polled) noexcept {
  const auto before = std::exchange(told_polls_, polled);
  if (before == polled) return;
  polled_.store(polled, std::memory_order_seq_cst);
  if ((before != 0) != (polled != 0)) node_.set_waiting(gpu_, engine_, polled != 0);
  std::atomic_thread_fence(std::memory_order_seq_cst);  // before the look that follows: see SoftNode::stored
}

}  // namespace detail
}  // namespace v0
}  // namespace sdma
