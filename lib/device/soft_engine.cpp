// SPDX-License-Identifier: MIT
#include "soft_engine.hpp"

#include "soft_node.hpp"

#include <algorithm>
#include <cstdio>
#include <system_error>

namespace sdma { inline namespace v0_3 { namespace detail {
namespace {

using namespace std::chrono_literals;
using Rest = Worker::Rest;

constexpr std::uint32_t kBudget = 64;  // actions of a queue before the next one's turn
constexpr Worker::Pace kPace{
    .spin = 30us /* a little more than a host's wait spins for */, .first_nap = 50us, .pauses = 4};
constexpr auto kRawFor = 100ms;

void add(EngineCounters& sum, const Pipeline::Counters& c) noexcept {
  sum.packets += c.packets;
  sum.bytes += c.bytes;
  sum.doorbells += c.doorbells;
}

}  // namespace

SoftEngine::SoftEngine(SoftNode& node, GpuId gpu, EngineId engine)
    : node_(node),
      gpu_(gpu),
      engine_(engine),
      reader_(node.space(), gpu),
      worker_(*this, kPace),
      destroyed_counters_{.gpu = gpu, .engine = engine},
      parking_(node.bells().engine(gpu.value, engine.value)) {}

SoftEngine::~SoftEngine() { stop(); }

bool SoftEngine::add(std::unique_ptr<SoftQueue> q) {
  {
    const std::lock_guard lock(worker_);
    q->engine = this;
    queues_.push_back(std::move(q));
    char name[16];
    std::snprintf(name, sizeof name, "sdma %u.%u", gpu_.value, engine_.value);
    try {
      if (!worker_.started()) worker_.start(name);
    } catch (const std::system_error&) {
      queues_.pop_back();
      return false;
    }
  }
  wake();
  return true;
}

std::unique_ptr<SoftQueue> SoftEngine::remove(std::uint64_t id) {
  std::unique_ptr<SoftQueue> out;
  {
    const std::lock_guard lock(worker_);
    const auto at = std::find_if(queues_.begin(), queues_.end(), [id](const auto& q) { return q->id == id; });
    if (at == queues_.end()) return out;
    out = std::move(*at);
    queues_.erase(at);
    next_ = 0;
    if (engine_owner_ == out.get()) engine_owner_ = nullptr;
    detail::add(destroyed_counters_, out->pipeline->counters());
  }
  wake();
  return out;
}

void SoftEngine::map_all() {
  {
    const std::lock_guard lock(worker_);
    for (auto& q : queues_) q->published->map();
  }
  wake();
}

std::uint32_t SoftEngine::free_slot() const {
  const std::lock_guard lock(worker_);
  std::uint32_t slot = 0;
  for (bool taken = true; taken; slot += taken) {
    taken = false;
    for (const auto& q : queues_) taken = taken || q->slot == slot;
  }
  return slot;
}

EngineCounters SoftEngine::counters() const {
  const std::lock_guard lock(worker_);
  auto sum = destroyed_counters_;
  for (const auto& q : queues_) detail::add(sum, q->pipeline->counters());
  return sum;
}

void SoftEngine::stop() noexcept {
  if (!worker_.stop()) return;
  set_waiting(0);
  if (std::exchange(spinning_, false)) node_.end_spinning();
  set_awake(false);
}

bool SoftEngine::scan_doorbells() noexcept {
  if (!parking_.has_sleepers()) return false;
  {
    const std::unique_lock lock(worker_, std::try_to_lock);
    if (!lock) return false;
    bool found = false;
    for (auto& q : queues_) {
      if (q->published->position() == q->last_doorbell || q->pipeline->fault()) continue;
      q->poll_doorbell_until = Deadline::Clock::now() + kRawFor;
      found = true;
    }
    if (!found) return false;
  }
  wake();
  return true;
}

void SoftEngine::set_awake(bool on) noexcept {
  if (awake_.exchange(on, std::memory_order_relaxed) != on) node_.count_awake(on);
}

void SoftEngine::sleep(Deadline d) noexcept {
  set_awake(false);
  parking_.sleep(ticket_, d);
  set_awake(true);  // the call above may have undone that of a `wake`, and a sleep may end without a `wake`
}

bool SoftEngine::turn(SoftQueue& q) noexcept {
  const std::lock_guard lock(worker_);
  if (engine_owner_ && engine_owner_ != &q) return false;
  const auto p = serve(q, 1);
  engine_owner_ = !q.at_rest && q.pipeline->holds_engine() ? &q : nullptr;
  return p == Progress::progressed;
}

std::vector<SoftQueue*> SoftEngine::queues() const {
  const std::lock_guard lock(worker_);
  std::vector<SoftQueue*> all;
  for (const auto& q : queues_) all.push_back(q.get());
  return all;
}

Progress SoftEngine::round() noexcept {
  ticket_ = parking_.ticket();
  raw_ = polls_doorbells();
  auto result = Progress::idle;
  if (node_.is_held()) return result;
  if (engine_owner_) {
    result = serve(*engine_owner_, kBudget);
    if (!engine_owner_->pipeline->holds_engine()) engine_owner_ = nullptr;
  } else {
    const auto n = queues_.size();
    for (std::size_t i = 0; i < n && !engine_owner_; ++i) {
      auto& q = *queues_[(next_ + i) % n];
      result = busier(result, serve(q, kBudget));
      if (!q.at_rest && q.pipeline->holds_engine()) engine_owner_ = &q;
    }
    if (n != 0) next_ = (next_ + 1) % n;
  }
  if (result == Progress::progressed) {
    set_waiting(0);
    node_.wake_after_store();
  }
  polls_ = 0;
  naps_ = false;
  if (result == Progress::waiting)
    for (const auto& q : queues_) {
      if (q->at_rest) continue;
      naps_ = naps_ || q->pipeline->asleep();
      if (const auto word = q->pipeline->waits_for(); word != GpuVa{}) polls_ |= bit_of(word);
    }
  if (result == Progress::waiting && polls_ == 0 && !naps_)
    polls_ = ~std::uint64_t{0};  // satisfied just now, or any store may satisfy it
  return result;
}

Progress SoftEngine::serve(SoftQueue& q, std::uint32_t budget) noexcept {
  if (const auto published = q.published->position(); published != q.last_doorbell) {
    q.last_doorbell = published;
    q.pipeline->doorbell(published);
    if (q.trace) q.trace->doorbell(q.lane, trace::now(), published);
    q.at_rest = false;
    if (raw_) q.poll_doorbell_until = Deadline::Clock::now() + kRawFor;
  }
  if (q.at_rest) return Progress::idle;
  if (q.pipeline->asleep() && !node_.is_held() && node_.sleepers().ends(*q.nap)) q.pipeline->awaken();
  AddressSpace::Reader::Section section(reader_);
  const auto p = q.pipeline->step(budget);
  if (p != Progress::idle && p != Progress::stopped) return p;
  q.at_rest = true;
  return Progress::progressed;
}

bool SoftEngine::polls_doorbells() const noexcept {
  for (const auto& q : queues_)
    if (q->poll_doorbell_until != Deadline::Clock::time_point{} && q->poll_doorbell_until > Deadline::Clock::now())
      return true;
  return false;
}

/// Only as many engines spin at a time as there are cores to spare.
bool SoftEngine::spin(bool fresh) noexcept {
  if (fresh && !node_.crowded() && (spinning_ || (spinning_ = node_.begin_spinning()))) return true;
  if (std::exchange(spinning_, false)) node_.end_spinning();
  return false;
}

Rest SoftEngine::rest(Progress p, std::chrono::nanoseconds nap) noexcept {
  if (p == Progress::waiting && polls_ != published_polls_) {
    set_waiting(polls_);  // check once more after it, or a wake-up is lost
    return Rest::again;
  }
  if (p == Progress::idle && !raw_) {
    sleep(Deadline::in(1h));
    return Rest::again;
  }
  sleep(Deadline::in(naps_ ? std::min<std::chrono::nanoseconds>(nap, Sleepers::kCheck) : nap));
  return Rest::slept;
}

void SoftEngine::set_waiting(std::uint64_t polled) noexcept {
  const auto before = std::exchange(published_polls_, polled);
  if (before == polled) return;
  polled_.store(polled, std::memory_order_seq_cst);
  if ((before != 0) != (polled != 0)) node_.bells().set_waiting(gpu_.value, engine_.value, polled != 0);
  std::atomic_thread_fence(std::memory_order_seq_cst);  // before the next check: see SoftNode::on_host_store
}

}}}  // namespace sdma::v0_3::detail
