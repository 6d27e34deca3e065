// SPDX-License-Identifier: MIT
#include "model.hpp"

#include "../engine/execute.hpp"
#include "../schedule/link.hpp"
#include "sdma/packets/footprint.hpp"

#include <algorithm>

namespace sdma { inline namespace v0_3 { namespace check_detail {
namespace {

Op kind_of(AtomicOp op) noexcept {
  if (op == AtomicOp::write_64) return Op::store;
  switch (plain(op)) {
    case AtomicOp::swap_rtn_32: return Op::store;
    case AtomicOp::add_rtn_32:
    case AtomicOp::sub_rtn_32: return Op::add;
    default: return Op::other;
  }
}
/// An INC or DEC whose limit is the largest value adds 1 or -1, for its word wraps there anyway.
bool counts(const Atomic& a) noexcept {
  return (plain(a.op) == AtomicOp::inc_rtn_32 || plain(a.op) == AtomicOp::dec_rtn_32) &&
         truncate(width(a.op), a.value) == truncate(width(a.op), ~std::uint64_t{0});
}
bool subtracts(AtomicOp op) noexcept { return plain(op) == AtomicOp::sub_rtn_32; }

What what_of(Role r, const PacketInfo& info) noexcept {
  switch (r) {
    case Role::data: return &info == &info_of<Write>() ? What::write : What::copy;
    case Role::stamp: return What::stamp;
    case Role::release: return What::post;
    case Role::acquire: return What::poll;
    default: return What::none;
  }
}

/// A post's mode is a guess: sync_of knows which atomics store.
Mode mode_of(What w, Access a) noexcept {
  if (w == What::post) return a == Access::write ? Mode::store : Mode::modify;
  if (w == What::poll) return Mode::poll;
  if (w == What::condition) return Mode::condition;
  return a == Access::read ? Mode::read : Mode::write;
}

/// Calls fn(begin, end) for each row of bytes; adjacent rows count as one. More than `most` rows count as one range.
/// Returns how many rows there are; 0 if they are consecutive bytes.
template <class Fn> std::uint64_t each_row(const Region& r, std::uint64_t va, std::size_t most, Fn fn) {
  if (r.bytes == 0 || r.rows == 0 || r.slices == 0) return 0;
  const auto row_end = va + r.bytes;
  const bool dense_rows = r.rows == 1 || r.pitch == r.bytes;
  const auto slice = dense_rows ? r.bytes * r.rows : r.pitch * (r.rows - 1) + r.bytes;
  const bool dense = dense_rows && (r.slices == 1 || r.slice_pitch == slice);
  if (dense) return fn(va, va + slice * r.slices), 0;
  const auto pieces = std::uint64_t{r.slices} * (dense_rows ? 1 : r.rows);
  if (pieces > most) return fn(va, va + hull(r)), pieces;
  for (std::uint64_t z = 0; z < r.slices; ++z)
    for (std::uint64_t y = 0; y < (dense_rows ? 1 : r.rows); ++y) {
      const auto at = z * r.slice_pitch + y * r.pitch;
      fn(va + at, (dense_rows ? va + slice : row_end) + at);
    }
  return pieces;
}

}  // namespace

std::uint64_t part(const Step& s, const Word& w, std::uint64_t value) noexcept {
  const auto& y = *s.sync;
  const auto seen = y.high ? value >> 32 : value;
  return y.bytes == 4 || w.bytes == 4 ? truncate(4, seen) : seen;
}
bool satisfied(const Step& s, const Word& w, std::uint64_t value) noexcept {
  const auto& y = *s.sync;
  auto seen = part(s, w, value);
  if (y.bytes == 4) seen &= y.mask;
  return holds(seen, y.func, truncate(y.bytes, s.value));
}

std::optional<Wide> least_of(const Step& s, const Word& w) noexcept {
  const auto& y = *s.sync;
  const auto bytes = std::min<std::uint32_t>(y.bytes, w.bytes);
  if (w.most < 0 || w.most >> (8 * bytes) != 0 || y.high || (y.bytes == 4 && y.mask != ~0u)) return {};
  if (y.func != Compare::ge && y.func != Compare::gt && y.func != Compare::eq) return {};
  const auto least = Wide{truncate(bytes, s.value)} + (y.func == Compare::gt ? 1 : 0);
  return least > Wide{w.init} ? std::optional(least) : std::nullopt;
}

Wide addend(const Step& s) noexcept {
  if (s.whole) return Wide{s.value};
  return s.sync->bytes == 4 ? Wide{static_cast<std::int32_t>(s.value)} : Wide{static_cast<std::int64_t>(s.value)};
}

std::uint64_t value_after(const Step& s, const Word& w, std::uint64_t value) noexcept {
  const auto& y = *s.sync;
  if (s.whole) return truncate(w.bytes, s.op == Op::add ? value + s.value : s.value);
  const unsigned shift = y.high ? 32 : 0;
  const auto part = truncate(y.bytes, ~std::uint64_t{0}) << shift;
  auto v = s.value << shift;
  if (s.op == Op::other) v = apply(y.atomic, (value & part) >> shift, s.value, y.compare) << shift;
  if (s.op == Op::add) v = value + static_cast<std::uint64_t>(addend(s)) * (std::uint64_t{1} << shift);
  v = (value & ~part) | (v & part);
  return truncate(w.bytes, v);
}

bool contributes(const Step& poll, const Word& w, const Step& post) noexcept {
  if (post.op == Op::store || w.monotone) return satisfies(poll, w, post);
  const auto n = addend(post);
  switch (poll.sync->func) {
    case Compare::ge:
    case Compare::gt: return n > 0;
    case Compare::le:
    case Compare::lt: return n < 0;
    default: return n != 0;
  }
}

/// What is assumed about engines beyond the rules, the network does not promise: with queues of it, nothing is.
static Profile profile_of(const Schedule& s, Profile p) {
  if (std::none_of(s.queues.begin(), s.queues.end(), [](const auto& q) { return q.network; })) return p;
  p.copies_in_order = p.writes_ordered = p.vram_fence_covers = p.fence_full = p.poll_full = p.finite_poll_edge = false;
  return p;
}

Model::Model(const Schedule& s, const CheckOptions& o)
    : schedule(s),
      options(o),
      profile(profile_of(s, o.profile)),
      limits(o.max_packets),
      node(o.topology ? *o.topology : *mi300x()),
      open(o.open || !detail::submits_queues(s)) {
  for (std::uint32_t g = 0; g < s.gpus; ++g) gpus.push_back(o.gpus.size() == s.gpus ? o.gpus[g] : GpuId{g});
  for (std::size_t q = 0; q < s.queues.size(); ++q) read(q);
  read_network();
  if (rows_ > limits.rows()) box_rows = rows_;
  evaluate_conditions();
  find_flags();
  assign_engines();
  unroll();
  cover_columns();
  zeros_.assign(width(), 0);
  join_words();
  set_first_values();
  build_chains();
}

void Model::read(std::size_t queue) {
  const auto& q = schedule.queues[queue];
  auto& p = programs.emplace_back();
  p.network = q.network;
  network_ = network_ || q.network;
  for (Reader r{q.dwords}; r;) {
    const auto begin = r.position_dwords();
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
          rows_ += each_row(region, canonical(region.va), limits.rows() - std::min(limits.rows(), rows_),
                            [&](std::uint64_t from, std::uint64_t to) {
                              p.touches.push_back({from, to, mode_of(item.what, region.access)});
                            });
        });
      });
      sync_of(q, v, item);
      for (auto t = item.touch; t < p.touches.size() && item.what == What::post; ++t) {
        item.modifies = p.touches[t].mode == Mode::modify;
        // A swap may be the last store, or not: it commutes with nothing.
        if (item.sync.op == Op::store) p.touches[t].mode = Mode::store;
      }
    }
    item.touches = static_cast<std::uint32_t>(p.touches.size()) - item.touch;
    p.items.push_back(item);
  }
}

void Model::sync_of(const Schedule::Queue& q, const PacketView& v, Item& item) {
  auto& y = item.sync;
  std::string_view field = "value";
  if (v.is<Fence>()) {
    y.value = decode<Fence>(v.dwords).value;
  } else if (v.is<Atomic>()) {
    const auto a = decode<Atomic>(v.dwords);
    y.op = a.loop ? Op::unknown : counts(a) ? Op::add : kind_of(a.op);
    y.atomic = a.op;
    y.compare = a.compare;
    y.value = subtracts(a.op) ? std::uint64_t{0} - a.value : a.value;
    if (counts(a)) y.value = plain(a.op) == AtomicOp::inc_rtn_32 ? 1 : -1;
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

std::vector<Touch> Model::touches(const Schedule::Action& a) const {
  std::vector<Touch> all;
  const auto add = [&](const Schedule::Range& r, Mode mode) {
    const auto begin = canonical(r.va);
    if (r.bytes != 0) all.push_back({begin, begin + r.bytes, mode});
  };
  for (const auto& part : a.sum.parts)
    if (!a.old) add(part, Mode::read);
  add(a.range, a.kind == Schedule::Action::Kind::store ? Mode::write : Mode::read);
  if (!a.old) add(a.right, Mode::read);
  return all;
}

void Model::assign_engines() {
  for (std::size_t i = 0; i < programs.size(); ++i) {
    const auto& q = schedule.queues[i];
    if (q.network) {
      programs[i].engine = std::uint64_t{q.place.index} << 32 | (0x20000 + i);
      continue;
    }
    if (!q.peer) {
      programs[i].engine = std::uint64_t{q.place.index} << 32 | q.engine;
      continue;
    }
    const auto e = exists(q.place) && exists(*q.peer) ? detail::engine_of(q, links, gpus) : Errc::bad_argument;
    // If the engine is not known, only queues with the same peer are known to share it.
    programs[i].engine = std::uint64_t{q.place.index} << 32 | (e ? e->value : 0x10000 + q.peer->index);
  }
}

void Model::arrive(std::uint32_t agent, std::uint32_t step, std::vector<std::uint32_t>& out) const {
  const auto& steps = agents[agent].steps;
  const auto* before = row_before(agent, step);
  std::copy(before, before + width(), out.begin());
  if (step == 0) return;
  if (agents[agent].kind != Agent::Kind::queue) {
    out[agent] = std::max(out[agent], steps[step - 1].position);
    return;
  }
  out[agent] = std::max(out[agent], barrier(agent, steps[step].position));
  if (profile.poll_full && steps[step].kind == Step::Kind::poll) {
    out[agent] = steps[step].position;
  } else if (profile.fence_full) {
    for (auto i = step; i-- > 0;)
      if (steps[i].kind == Step::Kind::post) {
        out[agent] = std::max(out[agent], steps[i].position);
        break;
      }
  }
}

std::uint32_t Model::before_flag(std::uint32_t agent, const Step& flag) const noexcept {
  if (!profile.fence_full) return 0;
  if (profile.writes_ordered) return flag.position - 1;
  const auto* const first = agents[agent].steps.data();
  for (const auto* s = &flag; s != first;)
    if ((--s)->kind == Step::Kind::post) return s->position;
  return 0;
}

std::uint32_t Model::drained(std::uint32_t agent, std::uint32_t position) const noexcept {
  const auto condition = next_barrier(agent, position);
  if (!profile.poll_full) return condition;
  const auto& steps = agents[agent].steps;
  const auto next = std::find_if(
      std::partition_point(steps.begin(), steps.end(), [&](const Step& s) { return s.position <= position; }),
      steps.end(), [](const Step& s) { return s.kind == Step::Kind::poll; });
  return next == steps.end() ? condition : std::min(condition, next->position);
}

std::uint32_t Model::last_of(const std::vector<std::uint32_t>& places, std::uint32_t agent,
                             std::uint32_t position) const noexcept {
  if (places.empty() || position == 0) return 0;
  const auto items = static_cast<std::uint32_t>(programs[agent].items.size());
  const auto before = (epoch_at(agent, position) - 1) * items;
  const auto next = std::upper_bound(places.begin(), places.end(), position - before);
  if (next != places.begin()) return before + *std::prev(next);
  return before == 0 ? 0 : before - items + places.back();
}

std::uint32_t Model::next_barrier(std::uint32_t agent, std::uint32_t position) const noexcept {
  const auto& places = programs[agent].barriers;
  if (places.empty()) return kNone;
  const auto items = static_cast<std::uint32_t>(programs[agent].items.size());
  const auto before = position / items * items;
  const auto next = std::upper_bound(places.begin(), places.end(), position - before);
  const auto found = next != places.end() ? before + *next : before + items + places.front();
  return found <= agents[agent].submits * items ? found : kNone;
}

bool Model::landed(const std::uint32_t* row, std::uint32_t known, std::uint32_t agent,
                   std::uint32_t position) const noexcept {
  const auto* item = item_at(agent, position);
  if (!item) return known >= position;
  if (item->moves() && moved(row, agent) >= position) return true;
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
  return step ? step->epoch : 0;
}

std::size_t Model::first_step_after(std::uint32_t agent, std::uint32_t position) const noexcept {
  const auto& steps = agents[agent].steps;
  const auto next = std::upper_bound(steps.begin(), steps.end(), position,
                                     [](std::uint32_t p, const Step& s) { return p < s.position; });
  return static_cast<std::size_t>(next - steps.begin());
}
const Step* Model::step_at(std::uint32_t agent, std::uint32_t position) const noexcept {
  const auto next = first_step_after(agent, position);
  return next == 0 ? nullptr : &agents[agent].steps[next - 1];
}
const Step* Model::post_at(std::uint32_t agent, std::uint32_t position) const noexcept {
  const auto& steps = agents[agent].steps;
  for (auto i = first_step_after(agent, position); i-- > 0 && steps[i].position == position;)
    if (steps[i].posts() && steps[i].kind != Step::Kind::read) return &steps[i];
  return nullptr;
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

}}}  // namespace sdma::v0_3::check_detail
