// SPDX-License-Identifier: MIT
#include "network_thread.hpp"

#include "../device/held_queues.hpp"
#include "../device/published.hpp"
#include "bound.hpp"
#include "sdma/core/atomic_ref.hpp"
#include "sdma/sync/describe.hpp"
#include "symbols.hpp"

#include <fmt/format.h>

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <new>

namespace sdma { inline namespace v0_3 { namespace detail {
namespace {

using namespace std::chrono_literals;

constexpr std::uint32_t kSteps = 64;                            // of a queue before the next one's turn
constexpr std::uint64_t kMostUnsent = std::uint64_t{64} << 20;  // queues wait until less is left
constexpr std::uint64_t kPiece = std::uint64_t{1} << 20;        // of a message
constexpr std::uint64_t kSmallPiece = std::uint64_t{64} << 10;  // of an adversarial device's: a socket has room for it
constexpr std::uint64_t kLateness = 18, kNaps = 20, kAdditions = 21;  // streams of random numbers
constexpr std::uint32_t kMostRounds = 64;                             // rounds
constexpr auto kLeave = 2s;  // for what was handed over, when the Bound is destroyed

std::uint64_t page() noexcept { return static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE)); }

}  // namespace

Pages::Pages(std::uint64_t bytes) : bytes_((bytes + page() - 1) / page() * page()) {
  auto* const at = ::mmap(nullptr, static_cast<std::size_t>(bytes_), PROT_READ | PROT_WRITE,
                          MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (at == MAP_FAILED) throw std::bad_alloc();
  at_ = static_cast<std::byte*>(at);
}
Pages::~Pages() {
  if (at_) ::munmap(at_, static_cast<std::size_t>(bytes_));
}
void Pages::drop(std::uint64_t begin, std::uint64_t bytes) const noexcept {
  const auto from = (begin + page() - 1) / page() * page(), to = (begin + bytes) / page() * page();
  if (from < to) ::madvise(at_ + from, static_cast<std::size_t>(to - from), MADV_DONTNEED);
}

/// What each message begins with.
struct NetworkThread::Header {
  enum class Kind : std::uint32_t { bytes, fence, add, team };
  std::uint64_t run{};
  Kind kind{};
  std::uint32_t origin{};  ///< the rank that has sent it first
  std::uint32_t queue{};   ///< the index of its queue; of `team`: 0
  std::uint32_t unused{};
  std::uint64_t link{};  ///< where; of `team`: the number of the word
  std::uint64_t value{};
};

/// A message that is delivered after so many rounds, or later.
struct NetworkThread::Late {
  Transport::Message message;
  Header header;
  std::uint32_t rounds;
  bool sleeps;  ///< until nothing else can happen
};

struct NetworkThread::Sender {
  NetworkThread& network;
  std::size_t index;
  std::uint32_t peer;  ///< the rank that receives all of it
  Pages ring;          ///< and a page of pointers
  RingMemory memory{};
  std::optional<Published> published{};
  std::unique_ptr<Pipeline> pipeline{};
};

NetworkThread::NetworkThread(Bound::Impl& out, Transport& t, std::uint64_t run, std::vector<std::uint32_t> processes)
    : out_(out),
      transport_(t),
      run_(run),
      processes_(std::move(processes)),
      worker_(*this, {.spin = 20us, .first_nap = 20us, .longest_nap = 200us, .pauses = 4}) {
  if (const auto seed = adversarial_seed(out_.device)) {
    lateness_.emplace(*seed, kLateness);
    sleepiness_.emplace(*seed, kNaps, nullptr, 1);
    of_additions_.emplace(*seed, kAdditions, nullptr, 0);
  }
}

NetworkThread::~NetworkThread() {
  worker_.stop();
  for (const auto d = Deadline::in(kLeave); transport_.unsent() != 0 && !d.passed();) {
    while (transport_.receive()) {}
    ::usleep(50);
  }
}

Errc NetworkThread::map(const Memory& m) {
  return space_.map({.va = m.va(), .bytes = (m.bytes() + 7) / 8 * 8, .host = m.host().data()});
}

GpuVa NetworkThread::shadow(GpuVa link) {
  const auto l = *find_symbol(out_.schedule, resolve(out_.schedule, link));
  const auto found = shadow_of_.find({l.signal, l.index});
  if (found != shadow_of_.end()) return found->second + l.offset;
  Pages pages(bytes_of(out_.schedule, l));
  const GpuVa va{reinterpret_cast<std::uintptr_t>(pages.data())};
  if (space_.map({.va = va, .bytes = pages.bytes(), .host = pages.data()}) != Errc::ok) throw std::bad_alloc();
  shadows_.emplace(va, Shadow{std::move(pages), link_address({l.signal, l.index, 0})});
  return shadow_of_.emplace(std::pair(l.signal, l.index), va).first->second + l.offset;
}

const NetworkThread::Shadow& NetworkThread::shadow_at(GpuVa va) const noexcept {
  return std::prev(shadows_.upper_bound(va))->second;
}

void NetworkThread::start() { worker_.start("sdma network"); }

Queue NetworkThread::queue(std::size_t index, GpuId gpu, std::uint64_t ring_bytes) {
  const auto& q = out_.schedule.queues[index];
  auto s = std::make_unique<Sender>(Sender{
      .network = *this, .index = index, .peer = out_.team->ranks().of(*q.peer), .ring = Pages(ring_bytes + page())});
  auto* const words = reinterpret_cast<std::uint64_t*>(s->ring.data() + ring_bytes);
  constexpr std::size_t kApart = 64 / sizeof *words;
  s->memory = {.dwords = {reinterpret_cast<std::uint32_t*>(s->ring.data()), static_cast<std::size_t>(ring_bytes / 4)},
               .rptr = words,
               .wptr = words + kApart,
               .doorbell = words + 2 * kApart,
               .caching = Caching::write_back,
               .on_doorbell = [](void* n, std::uint64_t) noexcept { static_cast<NetworkThread*>(n)->wake(); },
               .on_doorbell_context = this,
               .generation = out_.device.topology().gpus[gpu.value].generation()};
  s->published.emplace(s->memory);
  s->pipeline = std::make_unique<Pipeline>(
      PipelineConfig{.ring = s->memory.dwords,
                     .rptr = s->memory.rptr,
                     .reader = &reader_,
                     .gpu = gpu,
                     .engine = kUnknownEngine,
                     .queue = index,
                     .generation = s->memory.generation,
                     .hooks = {.context = s.get(),
                               .begin =
                                   [](void* c, const PacketEvent& e) noexcept {
                                     if (e.view.is<CopyLinear>()) static_cast<Sender*>(c)->network.flush();
                                   },
                               .end =
                                   [](void* c, const PacketEvent& e) noexcept {
                                     static_cast<Sender*>(c)->network.sent(*static_cast<Sender*>(c), e);
                                   },
                               .fault =
                                   [](void* c, const Fault& f) noexcept {
                                     auto& sender = *static_cast<Sender*>(c);
                                     auto& n = sender.network;
                                     n.fail(queue_name(n.out_.schedule.queues[sender.index]), describe(f));
                                   }}});
  const auto memory = s->memory;
  const std::lock_guard lock(worker_);
  senders_.push_back(std::move(s));
  return Queue(Lease([](void*, std::uint64_t) noexcept {}, this, ~static_cast<std::uint64_t>(index)), memory, gpu,
               kUnknownEngine);
}

Progress NetworkThread::round() noexcept {
  ticket_ = parking_.ticket();
  auto result = Progress::idle;
  const auto mode = mode_.load(std::memory_order_acquire);
  if (mode == Mode::turns) return result;
  for (std::uint32_t i = 0; i < kSteps; ++i) {
    auto m = transport_.receive();
    if (!m) break;
    if (lateness_) hold(std::move(*m));
    else arrived(*m);
    result = Progress::progressed;
  }
  if (begun_ && mode == Mode::free) finish_addition();
  deliver(~std::size_t{});
  if (!late_.empty()) result = busier(result, Progress::waiting);
  note_ended();
  if (mode == Mode::words) return result;
  for (const auto& s : senders_) {
    if (transport_.unsent() > kMostUnsent) return busier(result, Progress::waiting);
    s->pipeline->doorbell(s->published->position());
    const auto p = s->pipeline->step(kSteps);
    if (p != Progress::stopped) result = busier(result, p);
  }
  return result;
}

void NetworkThread::note_ended() {
  for (std::uint32_t r = 0; r < processes_.size(); ++r)
    if (is_far(r) && transport_.ended(r) &&
        std::none_of(late_.begin(), late_.end(), [&](const Late& l) { return l.message.from == r; }))
      ended_.fetch_or(std::uint64_t{1} << r, std::memory_order_release);
}

/// The transport wakes no thread, so a nap is short.
Worker::Rest NetworkThread::rest(Progress, std::chrono::nanoseconds nap) noexcept {
  parking_.sleep(ticket_, Deadline::in(nap));
  return Worker::Rest::slept;
}

/// The effects of a packet are in the shadow.
void NetworkThread::sent(const Sender& s, const PacketEvent& e) {
  Header h{.run = run_, .origin = out_.team->mine(), .queue = static_cast<std::uint32_t>(s.index)};
  const auto to = [&](GpuVa va) {
    const auto& shadow = shadow_at(va);
    h.link = (shadow.link + (va.value - reinterpret_cast<std::uintptr_t>(shadow.pages.data()))).value;
    if (!out_.team->near(*find_symbol(out_.schedule, GpuVa{h.link}))) return;
    if (h.kind != Header::Kind::bytes) owed_.fetch_add(1, std::memory_order_release);
  };
  const auto word = [&](Header::Kind kind, GpuVa at, std::uint64_t value) {
    h.kind = kind;
    h.value = value;
    to(at);
    send(s.peer, h);
  };
  if (e.view.is<CopyLinear>()) {
    const auto p = decode<CopyLinear>(e.view.dwords);
    const auto& shadow = shadow_at(p.dst);
    const auto begin = p.dst.value - reinterpret_cast<std::uintptr_t>(shadow.pages.data());
    const auto piece = lateness_ ? kSmallPiece : kPiece;
    for (std::uint64_t at = 0; at < p.bytes; at += piece) {
      const auto n = std::min<std::uint64_t>(piece, p.bytes - at);
      to(p.dst + at);
      send(s.peer, h, {shadow.pages.data() + begin + at, static_cast<std::size_t>(n)});
    }
    shadow.pages.drop(begin, p.bytes);
  } else if (e.view.is<Fence>()) {
    const auto p = decode<Fence>(e.view.dwords);
    word(Header::Kind::fence, p.addr, p.value);
  } else if (e.view.is<Atomic>()) {
    const auto p = decode<Atomic>(e.view.dwords);
    word(Header::Kind::add, p.addr, p.value);
  }
}

void NetworkThread::send(std::uint32_t rank, const Header& h, std::span<const std::byte> bytes) {
  std::vector<std::byte> m(sizeof h + bytes.size());
  std::memcpy(m.data(), &h, sizeof h);
  std::copy(bytes.begin(), bytes.end(), m.begin() + sizeof h);
  transport_.send(rank, std::move(m));
}

void NetworkThread::hold(Transport::Message m) {
  Header h;
  // Only messages of a run are delayed.
  if (m.bytes.size() < sizeof h) return arrived(m);
  std::memcpy(&h, m.bytes.data(), sizeof h);
  // Half of them come at once; of the others, each is late by up to kMostRounds rounds.
  const auto rounds = lateness_->choose(Choice::sleep, 2) == 0 ? 0 : lateness_->choose(Choice::schedule, kMostRounds);
  const bool sleeps = mode_ == Mode::turns && h.kind != Header::Kind::team && sleepiness_->falls_asleep();
  late_.push_back({std::move(m), h, rounds, sleeps});
}

bool NetworkThread::deliver(std::size_t most) {
  using Kind = Header::Kind;
  bool acted = false;
  for (auto& l : late_) {
    acted = acted || l.rounds != 0;
    l.rounds -= l.rounds != 0;
  }
  const auto mode = mode_.load();
  for (std::size_t i = 0; i < late_.size() && most != 0;) {
    const auto& me = late_[i];
    const auto before = [&](const Late& other) {
      if (other.message.from != me.message.from) return false;
      if (other.header.kind == Kind::team || me.header.kind == Kind::team) return true;
      const bool same = other.header.origin == me.header.origin && other.header.queue == me.header.queue;
      return same && me.header.kind != Kind::bytes;
    };
    const auto end = late_.begin() + static_cast<std::ptrdiff_t>(i);
    const bool waits = mode == Mode::words ? me.header.kind != Kind::team
                                           : me.rounds != 0 || me.sleeps || std::any_of(late_.begin(), end, before);
    if (waits) {
      ++i;
      continue;
    }
    const auto m = std::move(late_[i].message);
    late_.erase(end);
    arrived(m);
    acted = true;
    --most;
  }
  return acted;
}

void NetworkThread::arrived(const Transport::Message& m) {
  Header h;
  const bool whole = m.bytes.size() >= sizeof h;
  if (whole) std::memcpy(&h, m.bytes.data(), sizeof h);
  if (whole && h.run != run_) return;  // of a Bound before this one
  if (whole && h.kind == Header::Kind::team && out_.team->told(m.from, h.link, h.value)) return;
  if (whole && h.kind != Header::Kind::team && h.origin < processes_.size()) {
    const auto l = find_symbol(out_.schedule, GpuVa{h.link});
    const auto mine = out_.team->mine();
    if (l && !out_.team->near(*l) && h.origin != mine) {
      if (std::exchange(stored_, false)) flush();
      return transport_.send(h.origin, m.bytes);
    }
    if (l && out_.team->near(*l) && store(h, std::span(m.bytes).subspan(sizeof h))) {
      if (h.origin == mine) owed_.fetch_sub(1, std::memory_order_release);
      return;
    }
  }
  fail(fmt::format("rank {}", m.from), "it has sent what is not of this schedule");
}

/// False if it does not fit the symbol.
bool NetworkThread::store(const Header& h, std::span<const std::byte> bytes) {
  using Kind = Header::Kind;
  const auto l = *find_symbol(out_.schedule, GpuVa{h.link});
  const std::uint64_t n = h.kind == Kind::bytes ? bytes.size() : h.kind == Kind::fence ? 4 : 8;
  const auto room = bytes_of(out_.schedule, l);
  if (l.offset > room || n > room - l.offset || (h.kind != Kind::bytes && h.link % n != 0)) return false;
  auto* const at = out_.home(l).host + l.offset;
  if (h.kind == Kind::bytes) {
    std::copy(bytes.begin(), bytes.end(), at);
    return stored_ = true;
  }
  if (std::exchange(stored_, false)) flush();
  auto& wide = *reinterpret_cast<std::uint64_t*>(at);
  if (h.kind == Kind::fence)
    atomic_ref(*reinterpret_cast<std::uint32_t*>(at))
        .store(static_cast<std::uint32_t>(h.value), std::memory_order_release);
  else if (mode_ == Mode::turns && !place_of(out_.schedule, l).is_host())
    return begun_ = Addition{.link = GpuVa{h.link},
                             .sum = atomic_ref(wide).load(std::memory_order_acquire) + h.value,
                             .sleeps = of_additions_->falls_asleep()},
           true;
  else atomic_ref(wide).fetch_add(h.value, std::memory_order_acq_rel);
  if (!place_of(out_.schedule, l).is_host()) flush();
  out_.team->wake(out_.home(l).va + l.offset);
  return true;
}

void NetworkThread::finish_addition() {
  const auto l = *find_symbol(out_.schedule, begun_->link);
  atomic_ref(*reinterpret_cast<std::uint64_t*>(out_.home(l).host + l.offset))
      .store(begun_->sum, std::memory_order_release);
  begun_.reset();
  flush();
  out_.team->wake(out_.home(l).va + l.offset);
}

bool NetworkThread::receive_turn() {
  const std::lock_guard lock(worker_);
  if (begun_) return !begun_->sleeps && (finish_addition(), true);
  bool acted = false;
  while (auto m = transport_.receive()) {
    hold(std::move(*m));
    acted = true;
  }
  if (std::exchange(unsent_, transport_.unsent()) != unsent_) acted = true;
  if (deliver(1)) acted = true;
  note_ended();
  return acted;
}

bool NetworkThread::message_sleeps() const noexcept {
  return (begun_ && begun_->sleeps) || std::any_of(late_.begin(), late_.end(), [](const Late& l) { return l.sleeps; });
}

void NetworkThread::awaken_message() noexcept {
  if (begun_) return void(begun_->sleeps = false);
  const auto all = std::count_if(late_.begin(), late_.end(), [](const Late& l) { return l.sleeps; });
  auto n = lateness_->choose(Choice::schedule, static_cast<std::uint32_t>(all));
  for (auto& l : late_)
    if (l.sleeps && n-- == 0) l.sleeps = false;
}

/// What has come, and how late it is.
class NetworkThread::Receiving final : public Baton::Agent {
 public:
  explicit Receiving(NetworkThread& n) noexcept : n_(n) {}
  bool step() noexcept override { return n_.receive_turn(); }
  bool asleep() noexcept override { return n_.message_sleeps(); }
  void awaken() noexcept override { n_.awaken_message(); }
  bool wakes_last() noexcept override { return n_.lateness_->choose(Choice::sleep, 2) != 0; }

 private:
  NetworkThread& n_;
};

/// A queue.
class NetworkThread::Sending final : public Baton::Agent {
 public:
  Sending(NetworkThread& n, Sender& s) noexcept : n_(n), s_(s) {}
  bool step() noexcept override {
    const std::lock_guard lock(n_.worker_);
    if (n_.transport_.unsent() > kMostUnsent) return false;
    s_.pipeline->doorbell(s_.published->position());
    return s_.pipeline->step(1) == Progress::progressed;
  }
  bool asleep() noexcept override { return false; }
  void awaken() noexcept override {}

 private:
  NetworkThread& n_;
  Sender& s_;
};

HeldNetwork::HeldNetwork(NetworkThread& n) : network_(n) {
  const std::lock_guard lock(n.worker_);
  n.mode_ = NetworkThread::Mode::turns;
}

HeldNetwork::~HeldNetwork() {
  {
    const std::lock_guard lock(network_.worker_);
    for (auto& l : network_.late_) l.sleeps = false;
    network_.mode_ = NetworkThread::Mode::free;
  }
  network_.wake();
}

std::vector<std::unique_ptr<Baton::Agent>> HeldNetwork::agents() {
  std::vector<std::unique_ptr<Baton::Agent>> all;
  all.push_back(std::make_unique<NetworkThread::Receiving>(network_));
  for (const auto& s : network_.senders_) all.push_back(std::make_unique<NetworkThread::Sending>(network_, *s));
  return all;
}

void HeldNetwork::end_turns() {
  {
    const std::lock_guard lock(network_.worker_);
    network_.mode_ = NetworkThread::Mode::words;
  }
  network_.wake();
}

void NetworkThread::flush() const noexcept {
  for (std::uint32_t g = 0; g < out_.device.topology().gpus.size(); ++g) (void)out_.device.flush_host_writes(GpuId{g});
}

void NetworkThread::tell(std::size_t word, std::uint64_t value) noexcept {
  const std::lock_guard lock(worker_);
  for (std::uint32_t r = 0; r < processes_.size(); ++r)
    if (is_far(r))
      send(r, {.run = run_, .kind = Header::Kind::team, .origin = out_.team->mine(), .link = word, .value = value});
}

bool NetworkThread::is_far(std::uint32_t rank) const noexcept { return out_.team->is_far(rank); }
MemoryOwner NetworkThread::owner(std::uint32_t rank) const noexcept {
  return {processes_[rank], (ended_.load(std::memory_order_acquire) >> rank & 1) != 0};
}

void NetworkThread::fail(std::string where, std::string message) {
  if (!trouble_) trouble_ = Diagnostic{.where = std::move(where), .message = std::move(message)};
}
std::optional<Diagnostic> NetworkThread::trouble() {
  const std::lock_guard lock(worker_);
  return trouble_;
}

}}}  // namespace sdma::v0_3::detail
