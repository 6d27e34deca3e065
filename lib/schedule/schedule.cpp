// SPDX-License-Identifier: MIT
#include "sdma/schedule/schedule.hpp"

#include "../core/wide.hpp"
#include "../stream/packet_line.hpp"
#include "extent.hpp"
#include "sdma/core/number.hpp"
#include "symbols.hpp"

#include <algorithm>

namespace sdma { inline namespace v0_3 {

using namespace detail;

std::string to_string(Place p) { return p.is_host() ? "host" : "gpu" + std::to_string(p.index); }

namespace detail {

std::vector<SymbolOffset> symbols(const Schedule& s) {
  std::vector<SymbolOffset> out;
  for (std::size_t i = 0; i < s.buffers.size(); ++i) out.push_back({false, i, 0});
  for (std::size_t i = 0; i < s.signals.size(); ++i) out.push_back({true, i, 0});
  return out;
}

std::string title(const Schedule& s, const SymbolOffset& l) {
  return (l.signal ? "signal " : "buffer ") + name_of(s, SymbolOffset{l.signal, l.index, 0});
}

std::vector<Actor> actors(const Schedule& s) {
  std::vector<Actor> out;
  for (const auto& h : s.hosts) out.push_back({Place::host(), h.name, &h.actions, h.rank, nullptr});
  for (const auto& k : s.kernels) out.push_back({k.place, k.name, &k.actions, {}, &k});
  return out;
}

static bool has(const std::vector<Schedule::Action>& all, Schedule::Action::Kind kind) {
  return std::any_of(all.begin(), all.end(), [&](const auto& a) { return a.kind == kind || has(a.body, kind); });
}
bool waits_for_rptr(const std::vector<Schedule::Action>& all) { return has(all, Schedule::Action::Kind::rptr); }
bool submits_queues(const Schedule& s) {
  return !s.hosts.empty() || std::any_of(s.kernels.begin(), s.kernels.end(),
                                         [](const auto& k) { return has(k.actions, Schedule::Action::Kind::submit); });
}

GpuVa resolve(const Schedule& s, GpuVa va) noexcept {
  for (int i = 0; i <= kMostAliases; ++i) {
    const auto l = find_symbol(s, va);
    if (!l || !at_of(s, *l)) break;
    va = *at_of(s, *l) + l->offset;
  }
  return va;
}
std::string_view wrong_alias(const Schedule& s, SymbolOffset l) noexcept {
  static_assert(kMostAliases == 64);
  const auto first = l;
  for (int i = 0; i <= kMostAliases; ++i) {
    const auto next = at_of(s, l) ? find_symbol(s, *at_of(s, l)) : std::nullopt;
    if (!next) return {};
    l = *next;
    if (l.signal == first.signal && l.index == first.index) return "this alias leads back to itself";
  }
  return "this alias leads through more than 64 other aliases";
}

Diagnostic describe(const Schedule& s, const PacketView& v, const Outside& o, std::string_view declared) {
  const auto name = name_of(s, SymbolOffset{o.symbol.signal, o.symbol.index, 0});
  const auto at = o.symbol.offset == 0 ? name : name + "[" + size_text(o.symbol.offset) + "]";
  Diagnostic d{.message = std::string(v.info->name) + " accesses " + size_text(o.bytes) + " bytes at " + at + ", but " +
                          name + " has " + size_text(o.extent)};
  const std::string where = declared.empty() ? "" : " " + std::string(declared);
  if (o.symbol.signal && o.extent == 4 && o.bytes == 8) d.hint = "a 64-bit operation needs bits=64" + where;
  else if (!declared.empty()) d.hint = name + " is declared" + where;
  return d;
}

}  // namespace detail

void Schedule::Queue::mark(std::size_t packet, std::string_view field, EpochValue v) {
  if (v.factor != 0) {
    epochs.push_back({packet, field, v});
    return;
  }
  const auto* f = find_field(*identify(std::span(dwords).subspan(packet)), field);
  store(*f, static_cast<std::uint64_t>(v.constant) & f->mask(), dwords.data() + packet);
}

void Schedule::Queue::refuse(std::string_view what, Errc e) {
  refused = std::string(what) + " at dword " + std::to_string(dwords.size()) + ": " + std::string(message(e));
}

static std::size_t index_of(const Schedule& s, const Schedule::Queue& q) {
  std::size_t i = 0;
  while (i < s.queues.size() && &s.queues[i] != &q) ++i;
  return i;
}
Schedule::Script& Schedule::Script::alloc(GpuVa b) { return lifetime(Action::Kind::alloc, b, {}); }
Schedule::Script& Schedule::Script::free(GpuVa b) { return lifetime(Action::Kind::free, b, {}); }
Schedule::Script& Schedule::Script::map(GpuVa b, Place gpu) { return lifetime(Action::Kind::map, b, gpu); }
Schedule::Script& Schedule::Script::unmap(GpuVa b, Place gpu) { return lifetime(Action::Kind::unmap, b, gpu); }
Schedule::Script& Schedule::Script::export_handle(GpuVa b) { return lifetime(Action::Kind::export_handle, b, {}); }
Schedule::Script& Schedule::Script::close_handle(GpuVa b) { return lifetime(Action::Kind::close_handle, b, {}); }
Schedule::Script& Schedule::Script::lifetime(Action::Kind kind, GpuVa buffer, Place gpu) {
  to_.push_back({.kind = kind, .buffer = buffer, .gpu = gpu});
  return *this;
}
Schedule::Script& Schedule::Script::submit(const Queue& q) {
  to_.push_back({.kind = Action::Kind::submit, .queues = {index_of(schedule_, q)}});
  return *this;
}
Schedule::Script& Schedule::Script::wait_rptr(const Queue& q) {
  to_.push_back({.kind = Action::Kind::rptr, .queues = {index_of(schedule_, q)}});
  return *this;
}
Schedule::Script& Schedule::Script::submit_all() {
  Action a{.kind = Action::Kind::submit};
  for (std::size_t i = 0; i < schedule_.queues.size(); ++i) a.queues.push_back(i);
  to_.push_back(std::move(a));
  return *this;
}
Schedule::Script& Schedule::Script::set(GpuVa signal, ActionValue v) {
  to_.push_back({.kind = Action::Kind::set, .signal = signal, .value = std::move(v)});
  return *this;
}
Schedule::Script& Schedule::Script::wait(GpuVa signal, Compare func, ActionValue v) {
  to_.push_back({.kind = Action::Kind::wait, .signal = signal, .func = func, .value = std::move(v)});
  return *this;
}

Schedule::Script& Schedule::Script::add(GpuVa signal, ActionValue v) {
  to_.push_back({.kind = Action::Kind::add, .signal = signal, .value = std::move(v)});
  return *this;
}
Schedule::Script& Schedule::Script::sample(std::string name, GpuVa signal) {
  to_.push_back({.kind = Action::Kind::sample, .signal = signal, .value = sampled(std::move(name))});
  return *this;
}
Schedule::Script& Schedule::Script::compute(std::uint64_t ns, std::uint64_t hbm) {
  to_.push_back({.kind = Action::Kind::compute, .ns = ns, .hbm = hbm});
  return *this;
}
Schedule::Script& Schedule::Script::load(Range r) {
  to_.push_back({.kind = Action::Kind::load, .range = r});
  return *this;
}
Schedule::Script& Schedule::Script::store(Range r, std::optional<std::uint8_t> byte) {
  to_.push_back({.kind = Action::Kind::store, .range = r, .byte = byte});
  return *this;
}

Schedule::Script& Schedule::Script::expect_equal(Range left, Range right) {
  to_.push_back({.kind = Action::Kind::expect, .range = left, .right = right});
  return *this;
}
Schedule::Script& Schedule::Script::expect_old(Range left, Range right) {
  to_.push_back({.kind = Action::Kind::expect, .range = left, .right = right, .old = true});
  return *this;
}

GpuVa Schedule::add_buffer(Buffer b) {
  buffers.push_back(std::move(b));
  return link_buffer(buffers.size() - 1);
}
GpuVa Schedule::add_signal(Signal s) {
  signals.push_back(std::move(s));
  return link_signal(signals.size() - 1);
}
Schedule::Queue& Schedule::add_queue(Queue q) {
  queues.push_back(std::move(q));
  return queues.back();
}
Schedule::Script Schedule::add_host(std::string name) {
  hosts.push_back({.name = std::move(name)});
  return {*this, hosts.back().actions};
}
Schedule::Script Schedule::add_kernel(Place place, std::string name) {
  kernels.push_back({.place = place, .name = std::move(name)});
  return {*this, kernels.back().actions};
}
void Schedule::expect_value(GpuVa signal, std::uint64_t value) {
  const auto at = find_symbol(*this, signal);
  const auto bytes = at && at->signal ? bytes_of(*this, *at) : 0;
  expectations.push_back({.kind = Expectation::Kind::value, .left = {signal, bytes}, .value = value});
}

std::uint64_t bytes_of(const Schedule& s, const SymbolOffset& l) {
  return l.signal ? s.signals[l.index].bits / 8 : s.buffers[l.index].bytes;
}

std::optional<SymbolOffset> find_symbol(const Schedule& s, GpuVa va) {
  const auto l = stride_of(s, va);
  return l && l->offset <= bytes_of(s, *l) ? l : std::nullopt;
}

std::string name_of(const Schedule& s, const SymbolOffset& l) {
  return to_string(place_of(s, l)) + "." + (l.signal ? s.signals[l.index].name : s.buffers[l.index].name);
}
std::string name_of(const Schedule& s, GpuVa va) {
  const auto l = find_symbol(s, va);
  if (!l) return {};
  return l->offset == 0 ? name_of(s, *l) : name_of(s, *l) + "[" + size_text(l->offset) + "]";
}

const Schedule::EpochField* store_epoch(const Schedule::Queue& q, std::uint64_t epoch,
                                        std::span<std::uint32_t> dwords) {
  using detail::Wide;
  // Two passes, so that a value that does not fit leaves everything unchanged.
  for (const bool check : {true, false})
    for (const auto& e : q.epochs) {
      const auto* info = identify(dwords.subspan(e.packet));
      const auto* field = info ? find_field(*info, e.field) : nullptr;
      if (!field) return &e;
      const auto v = Wide{e.value.factor} * static_cast<Wide>(epoch) + e.value.constant;
      const auto most = static_cast<Wide>(field->mask());
      if (check ? v > most || v < -(most / 2 + 1) : false) return &e;
      if (!check) store(*field, static_cast<std::uint64_t>(v) & field->mask(), dwords.data() + e.packet);
    }
  return nullptr;
}

bool expects_finding(const Schedule& s) {
  return std::any_of(s.expectations.begin(), s.expectations.end(),
                     [](const auto& e) { return e.kind == Schedule::Expectation::Kind::finding; });
}

}}  // namespace sdma::v0_3
