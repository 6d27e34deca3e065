#include "model.hpp"

#include "../schedule/link.hpp"
#include "sdma/packets/footprint.hpp"

#include <algorithm>
#include <set>

namespace sdma::inline v0::check_detail {
namespace {

/// Boxes are analysed row by row, up to this many rows in all; further boxes count as one range each, from start to end.
constexpr std::size_t kMostRows = std::size_t{1} << 19;
/// How many entries the clocks may have, of 4 bytes each.
constexpr std::size_t kMostClocks = std::size_t{1} << 27;
/// How many times a packet may access a row of bytes, in all submits.
constexpr std::size_t kMostAccesses = std::size_t{1} << 24;

/// Modulo 32, because operations of one kind differ only in their width and in whether they return the old value.
Op kind_of(AtomicOp op) noexcept {
  switch (static_cast<AtomicOp>(static_cast<unsigned>(op) % 32)) {
    case AtomicOp::swap_rtn_32: return Op::store;
    case AtomicOp::add_rtn_32:
    case AtomicOp::sub_rtn_32: return Op::add;
    default: return Op::unknown;
  }
}
bool subtracts(AtomicOp op) noexcept {
  return static_cast<AtomicOp>(static_cast<unsigned>(op) % 32) == AtomicOp::sub_rtn_32;
}

What what_of(Role r, const PacketInfo& info) noexcept {
  switch (r) {
    case Role::data: return &info == &info_of<Write>() ? What::write : What::copy;
    case Role::stamp: return What::stamp;
    case Role::release: return What::post;
    case Role::acquire: return What::poll;
    default: return What::none;
  }
}

Mode mode_of(What w, Access a) noexcept {
  if (w == What::post) return a == Access::write ? Mode::store : Mode::modify;
  if (w == What::poll) return Mode::poll;
  if (w == What::condition) return Mode::condition;
  return a == Access::read ? Mode::read : Mode::write;
}

/// Calls fn(begin, end) for each row of bytes; adjacent rows count as one. More than `most` rows count as one range.
template <class Fn> void each_row(const Region& r, std::uint64_t va, std::size_t most, Fn fn) {
  if (r.bytes == 0 || r.rows == 0 || r.slices == 0) return;
  const auto row_end = va + r.bytes;
  const bool dense_rows = r.rows == 1 || r.pitch == r.bytes;
  const auto slice = dense_rows ? r.bytes * r.rows : r.pitch * (r.rows - 1) + r.bytes;
  const bool dense = dense_rows && (r.slices == 1 || r.slice_pitch == slice);
  if (dense) return fn(va, va + slice * r.slices);
  const auto pieces = std::uint64_t{r.slices} * (dense_rows ? 1 : r.rows);
  if (pieces > most) return fn(va, va + r.slice_pitch * (r.slices - 1) + slice);
  for (std::uint64_t z = 0; z < r.slices; ++z)
    for (std::uint64_t y = 0; y < (dense_rows ? 1 : r.rows); ++y) {
      const auto at = z * r.slice_pitch + y * r.pitch;
      fn(va + at, (dense_rows ? va + slice : row_end) + at);
    }
}

bool acts(const std::vector<Schedule::Action>& body) noexcept {
  return std::any_of(body.begin(), body.end(), [](const Schedule::Action& a) {
    return a.kind != Schedule::Action::Kind::repeat || acts(a.body);
  });
}

}  // namespace

bool satisfied(const Step& s, const Word& w, std::uint64_t value) noexcept {
  const auto& y = *s.sync;
  auto seen = y.high ? value >> 32 : value;
  if (y.bytes == 4 || w.bytes == 4) seen = truncate(4, seen);
  if (y.bytes == 4) seen &= y.mask;
  return holds(seen, y.func, truncate(y.bytes, s.value));
}

Wide addend(const Step& s) noexcept {
  return s.sync->bytes == 4 ? Wide{static_cast<std::int32_t>(s.value)} : Wide{static_cast<std::int64_t>(s.value)};
}

std::uint64_t value_after(const Step& s, const Word& w, std::uint64_t value) noexcept {
  const auto& y = *s.sync;
  const unsigned shift = y.high ? 32 : 0;
  const auto part = truncate(y.bytes, ~std::uint64_t{0}) << shift;
  auto v = s.value << shift;
  if (y.op == Op::add) v = value + static_cast<std::uint64_t>(addend(s)) * (std::uint64_t{1} << shift);
  v = (value & ~part) | (v & part);
  return truncate(w.bytes, v);
}

bool contributes(const Step& poll, const Word& w, const Step& post) noexcept {
  if (post.sync->op == Op::store) return satisfies(poll, w, post);
  const auto n = addend(post);
  switch (poll.sync->func) {
    case Compare::ge:
    case Compare::gt: return n > 0;
    case Compare::le:
    case Compare::lt: return n < 0;
    default: return n != 0;
  }
}

Model::Model(const Schedule& s, const CheckOptions& o)
    : schedule(s), options(o), profile(o.profile), open(o.open || s.hosts.empty()) {
  for (std::size_t q = 0; q < s.queues.size(); ++q) read(q);
  flags();
  engines();
  host_syncs_.resize(s.hosts.size() + o.kernels.size());
  unroll();
  kernels();
  columns();
  zeros_.assign(width(), 0);
  join_words();
  first_values();
  chain();
}

void Model::read(std::size_t queue) {
  const auto& q = schedule.queues[queue];
  auto& p = programs.emplace_back();
  for (Reader r{q.dwords}; r;) {
    const auto begin = r.position();
    const auto v = r.next();
    Item item{.info = v.info,
              .dword = static_cast<std::uint32_t>(begin),
              .dwords = static_cast<std::uint32_t>(v.dwords.size())};
    item.touch = static_cast<std::uint32_t>(p.touches.size());
    if (v.whole() && !v.info->fields_unknown) {
      visit(*v.info, v.dwords, [&](const auto& packet) {
        using P = std::remove_cvref_t<decltype(packet)>;
        item.what = what_of(role(packet), *v.info);
        if constexpr (std::is_same_v<P, Indirect>) item.what = What::indirect;
        if constexpr (std::is_same_v<P, CondExec>) item.what = What::condition;
        if constexpr (std::is_same_v<P, PollReg>) item.what = What::none;
        footprint(packet, [&](const Region& region) {
          each_row(region, canonical(region.va), kMostRows - std::min(kMostRows, rows_),
                   [&](std::uint64_t from, std::uint64_t to) {
                     p.touches.push_back({from, to, mode_of(item.what, region.access)});
                   });
        });
      });
      sync_of(q, v, item);
    }
    item.touches = static_cast<std::uint32_t>(p.touches.size()) - item.touch;
    if (item.touches > 2) rows_ += item.touches;
    p.items.push_back(item);
  }
}

/// Q16: a WRITE of one dword to a word that something waits for is a flag, if a full barrier (a fence, and a poll of the
/// fence's value) separates it from all data before it in its queue. Any other WRITE to such a word is data.
void Model::flags() {
  std::set<std::uint64_t> polled;
  for (const auto& p : programs)
    for (const auto& i : p.items)
      if (i.what == What::poll) polled.insert(i.sync.address);
  const auto waits_for = [&](const auto& self, const std::vector<Schedule::Action>& actions) -> void {
    for (const auto& a : actions) {
      if (a.kind == Schedule::Action::Kind::wait) polled.insert(canonical(a.signal));
      self(self, a.body);
    }
  };
  for (const auto& h : schedule.hosts) waits_for(waits_for, h.actions);
  for (const auto& k : options.kernels)
    for (const auto& s : k.steps)
      if (s.kind == KernelAgent::Step::Kind::wait) polled.insert(canonical(s.signal));
  for (std::size_t q = 0; q < programs.size(); ++q) {
    auto& p = programs[q];
    bool barrier = true;          // no data since the last full barrier
    const Item* fence = nullptr;  // the last one, if no data comes after it
    for (auto& i : p.items) {
      if (i.what == What::post && i.sync.op == Op::store) fence = &i;
      if (i.what == What::poll && fence && !i.sync.finite && i.sync.func == Compare::eq && i.sync.mask == ~0u &&
          i.sync.address == fence->sync.address && i.sync.value == fence->sync.value)
        barrier = true;
      const bool flag = i.what == What::write && i.touches == 1 && barrier && flag_of(q, i, polled);
      if (!flag && (i.what == What::copy || i.what == What::write || i.what == What::indirect)) {
        barrier = false;
        fence = nullptr;
      }
      if (i.sync.word == kNone) continue;
      ++(i.what == What::poll ? p.acquires : p.posts);
    }
  }
}

bool Model::flag_of(std::size_t queue, Item& item, const std::set<std::uint64_t>& polled) {
  auto& touch = programs[queue].touches[item.touch];
  if (touch.end - touch.begin != 4 || !polled.contains(touch.begin)) return false;
  const auto v = Reader{std::span(schedule.queues[queue].dwords).subspan(item.dword)}.next();
  item.sync = {.word = 0, .address = touch.begin, .value = decode<Write>(v.dwords).data[0]};
  touch.mode = Mode::store;
  return true;
}

void Model::sync_of(const Schedule::Queue& q, const PacketView& v, Item& item) {
  auto& y = item.sync;
  std::string_view field = "value";
  if (v.is<Fence>()) {
    y.value = decode<Fence>(v.dwords).value;
  } else if (v.is<Atomic>()) {
    const auto a = decode<Atomic>(v.dwords);
    y.op = a.loop ? Op::unknown : kind_of(a.op);
    y.value = subtracts(a.op) ? std::uint64_t{0} - a.value : a.value;
  } else if (v.is<Semaphore>()) {
    const auto signal = decode<Semaphore>(v.dwords);
    y.op = signal.signal ? (signal.write_one ? Op::store : Op::add) : Op::unknown;
    y.func = Compare::ne;
    y.value = signal.signal ? 1 : 0;
  } else if (v.is<PollMem>()) {
    const auto p = decode<PollMem>(v.dwords);
    y.func = p.func;
    y.mask = p.mask;
    y.value = p.reference;
    y.finite = p.retry != PollMem{}.retry;
    field = "reference";
  } else {
    return;
  }
  const auto word = sdma::word(*v.info, v.dwords);
  y.address = canonical(word.va);
  y.bytes = static_cast<std::uint8_t>(word.bytes);
  y.word = 0;
  for (auto e = std::lower_bound(q.epochs.begin(), q.epochs.end(), item.dword,
                                 [](const auto&x, std::size_t d) { return x.packet < d; });
       e != q.epochs.end() && e->packet == item.dword; ++e)
    if (e->field == field)
      y.value = v.is<Atomic>() && y.op == Op::add && subtracts(decode<Atomic>(v.dwords).op) ? e->value * -1 : e->value;
}

void Model::engines() {
  const auto node = node_of(options);
  for (std::size_t i = 0; i < programs.size(); ++i) {
    const auto& q = schedule.queues[i];
    const GpuId gpu{q.place.index};
    const auto e = detail::engine_of(q, node);
    // If the engine is not known, only queues with the same peer are known to share it.
    programs[i].engine = std::uint64_t{gpu.value} << 32 | (e ? e->value : 0x10000 + q.peer->index);
  }
}

void Model::submit(std::uint32_t agent, std::uint32_t queue, std::uint32_t action, std::uint32_t epoch) {
  auto& q = agents[queue];
  const auto& program = programs[queue];
  const auto& items = program.items;
  const bool apart = !profile.fences_ordered && !profile.fence_full;
  acquires_ += program.acquires + 1;
  accesses_ += program.touches.size();
  const auto most_columns = columns_ + program.posts;
  if (packets + rounds_ + items.size() > options.max_packets || accesses_ > kMostAccesses ||
      acquires_ * (agents.size() + most_columns) > kMostClocks) {
    truncated = true;
    return;
  }
  packets += items.size();
  const auto first = static_cast<std::uint32_t>(q.submits++ * items.size());
  Step begin{.kind = Step::Kind::begin, .position = first, .epoch = q.submits, .target = agent};
  if (agent != kNone) {
    auto& from = agents[agent];
    begin.target_position = static_cast<std::uint32_t>(from.steps.size()) + 1;
    from.steps.push_back({.kind = Step::Kind::submit,
                          .position = begin.target_position,
                          .source = action,
                          .epoch = epoch,
                          .target = queue});
    // The first step of a queue is the begin of its first submit.
    q.shared = q.shared || (!q.steps.empty() && q.steps.front().target != agent);
  }
  q.steps.push_back(begin);
  for (std::uint32_t i = 0; i < items.size(); ++i) {
    const auto& item = items[i];
    if (item.sync.word == kNone) continue;
    const auto kind = item.what == What::poll    ? Step::Kind::poll
                      : item.what == What::write ? Step::Kind::flag
                                                 : Step::Kind::post;
    q.steps.push_back({.kind = kind,
                       .position = first + i + 1,
                       .source = i,
                       .epoch = q.submits,
                       .sync = &item.sync,
                       .value = item.sync.value.at(q.submits)});
    if (kind == Step::Kind::flag || (kind == Step::Kind::post && apart))
      q.steps.back().column = static_cast<std::uint32_t>(agents.size() + columns_++);
    waits += item.what == What::poll;
  }
}

void Model::host(std::uint32_t agent, const std::vector<Schedule::Action>& actions, std::uint32_t& action,
                 std::uint32_t epoch) {
  using Kind = Schedule::Action::Kind;
  auto& syncs = host_syncs_[agents[agent].index];
  for (const auto& a : actions) {
    const auto number = action++;
    if (truncated) continue;
    if (a.kind == Kind::submit) {
      for (const auto q : a.queues)
        if (!truncated) submit(agent, static_cast<std::uint32_t>(q), number, epoch);
    } else if (a.kind == Kind::repeat) {
      const auto body = action;
      // Rounds without any action, of which there may be many, are all over at once.
      const auto rounds = acts(a.body) ? a.rounds : std::min<std::uint64_t>(a.rounds, 1);
      for (std::uint64_t n = 1; n <= rounds && !truncated; ++n) {
        action = body;
        // A round without packets takes time, too.
        if (packets + ++rounds_ > options.max_packets) truncated = true;
        host(agent, a.body, action, static_cast<std::uint32_t>(n));
      }
    } else {
      const bool wait = a.kind == Kind::wait;
      auto& steps = agents[agent].steps;
      acquires_ += wait;
      if (acquires_ * (agents.size() + columns_) > kMostClocks) {
        truncated = true;
        continue;
      }
      steps.push_back({.kind = wait ? Step::Kind::poll : Step::Kind::post,
                       .position = static_cast<std::uint32_t>(steps.size()) + 1,
                       .source = number,
                       .epoch = epoch,
                       .sync = &syncs[number],
                       .value = a.value.at(epoch)});
      waits += wait;
    }
  }
}

/// Completes a poll of or post to a signal by a host or a kernel. If it is not `used`, it has no word.
Sync Model::sync_to(GpuVa signal, bool used, Sync y) const {
  y.address = canonical(signal);
  if (const auto l = find_symbol(schedule, signal)) y.bytes = static_cast<std::uint8_t>(bytes_of(schedule, *l));
  if (used) y.word = 0;
  return y;
}

void Model::unroll() {
  agents.resize(programs.size() + schedule.hosts.size() + options.kernels.size());
  for (std::uint32_t q = 0; q < programs.size(); ++q) agents[q].index = q;
  for (std::uint32_t h = 0; h < schedule.hosts.size(); ++h) {
    const auto agent = queue_count() + h;
    agents[agent].kind = Agent::Kind::host;
    agents[agent].index = h;
    auto& syncs = host_syncs_[h];
    const auto collect = [&](const auto& self, const std::vector<Schedule::Action>& actions) -> void {
      for (const auto& a : actions) {
        const bool used = a.kind == Schedule::Action::Kind::set || a.kind == Schedule::Action::Kind::wait;
        syncs.push_back(sync_to(a.signal, used, {.func = a.func, .value = a.value}));
        self(self, a.body);
      }
    };
    collect(collect, schedule.hosts[h].actions);
    std::uint32_t action = 0;
    host(agent, schedule.hosts[h].actions, action, 0);
  }
  if (schedule.hosts.empty())
    for (std::uint32_t q = 0; q < programs.size(); ++q) submit(kNone, q, 0, 0);
}

void Model::kernels() {
  using Kind = KernelAgent::Step::Kind;
  for (std::uint32_t k = 0; k < options.kernels.size(); ++k) {
    const auto index = schedule.hosts.size() + k;
    auto& agent = agents[queue_count() + index];
    agent.kind = Agent::Kind::kernel;
    agent.index = k;
    auto& syncs = host_syncs_[index];
    for (const auto& s : options.kernels[k].steps) {
      const auto op = s.kind == Kind::add ? Op::add : Op::store;
      syncs.push_back(sync_to(s.signal, s.kind < Kind::read, {.op = op, .func = s.func, .value = s.value}));
    }
    for (std::uint32_t i = 0; i < syncs.size(); ++i) {
      const auto& s = options.kernels[k].steps[i];
      agent.steps.push_back({.kind = s.kind == Kind::wait  ? Step::Kind::poll
                                     : s.kind < Kind::read ? Step::Kind::post
                                                           : Step::Kind::touch,
                             .position = i + 1,
                             .source = i,
                             .sync = &syncs[i],
                             .value = s.value});
    }
  }
}

/// Completes the posts that land on their own, once all polls are known.
void Model::columns() {
  for (std::uint32_t a = 0; a < agents.size(); ++a) {
    auto poll = kNone;
    auto& steps = agents[a].steps;
    for (auto s = steps.rbegin(); s != steps.rend(); ++s) {
      if (s->kind == Step::Kind::poll && profile.poll_full) poll = s->position;
      if (s->column == kNone) continue;
      s->covered = s->kind == Step::Kind::flag && profile.fence_covers_writes ? s->position : poll;
    }
  }
}

void Model::arrive(std::uint32_t agent, std::uint32_t step, std::vector<std::uint32_t>& out) const {
  const auto& steps = agents[agent].steps;
  const auto* before = row(step == 0 ? kNone : steps[step - 1].row);
  std::copy(before, before + width(), out.begin());
  if (step == 0) return;
  if (agents[agent].kind != Agent::Kind::queue) {
    out[agent] = std::max(out[agent], steps[step - 1].position);
  } else if (profile.fence_full) {
    for (auto i = step; i-- > 0;)
      if (steps[i].kind == Step::Kind::post) {
        out[agent] = std::max(out[agent], steps[i].position);
        break;
      }
  }
}

std::uint32_t Model::drained(std::uint32_t agent, std::uint32_t position) const noexcept {
  if (!profile.poll_full) return kNone;
  const auto& steps = agents[agent].steps;
  const auto next = std::find_if(
      std::partition_point(steps.begin(), steps.end(), [&](const Step& s) { return s.position <= position; }),
      steps.end(), [](const Step& s) { return s.kind == Step::Kind::poll; });
  return next == steps.end() ? kNone : next->position;
}

bool Model::landed(std::uint32_t known, std::uint32_t agent, std::uint32_t position) const noexcept {
  const auto* item = item_at(agent, position);
  if (!item) return known >= position;
  if (item->what == What::write && !profile.fence_covers_writes) return known >= drained(agent, position);
  return known >= position;
}

const Item* Model::item_at(std::uint32_t agent, std::uint32_t position) const noexcept {
  if (agent >= programs.size() || position == 0) return nullptr;
  const auto& items = programs[agent].items;
  return &items[(position - 1) % items.size()];
}
std::uint32_t Model::epoch_at(std::uint32_t agent, std::uint32_t position) const noexcept {
  if (agent >= programs.size() || position == 0) return 0;
  return static_cast<std::uint32_t>((position - 1) / programs[agent].items.size()) + 1;
}

std::uint32_t Model::round_at(std::uint32_t agent, std::uint32_t position) const noexcept {
  const auto& a = agents[agent];
  if (a.kind == Agent::Kind::queue) return a.submits > 1 ? epoch_at(agent, position) : 0;
  const auto* step = step_at(agent, position);
  return a.kind == Agent::Kind::host && step ? step->epoch : 0;
}

const Step* Model::step_at(std::uint32_t agent, std::uint32_t position) const noexcept {
  const auto& steps = agents[agent].steps;
  const auto next = std::upper_bound(steps.begin(), steps.end(), position,
                                     [](std::uint32_t p, const Step& s) { return p < s.position; });
  return next == steps.begin() ? nullptr : &*std::prev(next);
}
const Step* Model::next_post(std::uint32_t agent, std::uint32_t position) const noexcept {
  const auto epoch = epoch_at(agent, position);
  const auto& steps = agents[agent].steps;
  auto i = std::partition_point(steps.begin(), steps.end(), [&](const Step& s) { return s.position < position; });
  for (; i != steps.end() && (i->epoch == epoch || i->kind != Step::Kind::post) && i->epoch <= epoch; ++i)
    if (i->kind == Step::Kind::post) return &*i;
  return nullptr;
}

const Step* Model::previous_post(std::uint32_t agent, std::uint32_t position) const noexcept {
  const auto epoch = epoch_at(agent, position);
  const auto* const first = agents[agent].steps.data();
  for (const auto* s = step_at(agent, position); s && s->epoch == epoch; s = s == first ? nullptr : s - 1)
    if (s->kind == Step::Kind::post) return s;
  return nullptr;
}

}  // namespace sdma::inline v0::check_detail
