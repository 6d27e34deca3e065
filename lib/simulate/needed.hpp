// SPDX-License-Identifier: MIT
#pragma once
// What a schedule's expectations need from other places, and who may move it. Internal.
//
//   Needed needs{schedule};
//   needs.crossing(in, out, needs.at(in))        the bytes that have to leave, or to enter, a set of places
//
// A need is a range of one place that has to hold what other ranges held before the run, or their sum. Only memory with
// random contents counts: anything else could be made where it is needed. Bytes that several places beyond a cut need
// cross it once. A sum counts only if it has a part of which no earlier one has a byte, so that it does not follow from
// the others.
#include "../engine/execute.hpp"
#include "../schedule/symbols.hpp"
#include "sdma/packets/footprint.hpp"

#include <algorithm>
#include <map>
#include <vector>

namespace sdma { inline namespace v0_3 { namespace detail {

/// By place: the GPUs, then the host.
using PlaceSet = std::vector<bool>;

struct Need {
  struct Part {
    std::uint32_t place{};  ///< a GPU, or the number of GPUs: the host
    std::uint64_t va{};
  };
  std::uint32_t to{};
  std::uint64_t bytes{};
  std::vector<Part> parts{};
};

/// Bytes of memory, as ranges that do not touch.
class ByteSet {
 public:
  std::uint64_t missing(std::uint64_t begin, std::uint64_t end) const {
    auto left = end - begin;
    each(begin, end, [&](std::uint64_t b, std::uint64_t e) { left -= std::min(e, end) - std::max(b, begin); });
    return left;
  }
  void add(std::uint64_t begin, std::uint64_t end) {
    auto next = ranges_.upper_bound(begin);
    if (next != ranges_.begin() && std::prev(next)->second >= begin) --next;
    while (next != ranges_.end() && next->first <= end) {
      begin = std::min(begin, next->first);
      end = std::max(end, next->second);
      next = ranges_.erase(next);
    }
    ranges_.emplace(begin, end);
  }

 private:
  template <class Fn> void each(std::uint64_t begin, std::uint64_t end, Fn fn) const {
    auto next = ranges_.upper_bound(begin);
    if (next != ranges_.begin()) --next;
    for (; next != ranges_.end() && next->first < end; ++next)
      if (next->second > begin) fn(next->first, next->second);
  }
  std::map<std::uint64_t, std::uint64_t> ranges_{};
};

class Needed {
 public:
  using Indices = std::vector<std::uint32_t>;

  explicit Needed(const Schedule& s) : s_(s), at_(s.gpus + std::size_t{1}) {
    look();
    for (const auto& e : s.expectations)
      if (e.kind == Schedule::Expectation::Kind::bytes) need(e);
  }

  const std::vector<Need>& all() const noexcept { return all_; }
  /// The needs of these places, and of others for what they have, in their order.
  Indices at(const PlaceSet& in) const {
    Indices out;
    for (std::size_t p = 0; p < in.size(); ++p)
      if (in[p]) out.insert(out.end(), at_[p].begin(), at_[p].end());
    std::sort(out.begin(), out.end());
    out.erase(std::unique(out.begin(), out.end()), out.end());
    return out;
  }
  std::uint64_t parts() const noexcept { return parts_; }
  bool host() const noexcept { return host_; }
  bool kernels() const noexcept { return !s_.kernels.empty(); }
  bool kernels_submit() const noexcept { return kernels_submit_; }
  /// Does each kernel end with a word of the host for which a thread waits?
  bool kernels_report() const noexcept { return kernels_report_; }
  /// Do kernels or threads move bytes between places?
  bool others_move() const noexcept { return others_move_; }
  bool only_sums() const noexcept { return only_sums_; }
  bool triggered() const noexcept { return triggered_; }
  /// Does each queue begin with a poll? Then a trigger finds all of them at it.
  bool all_wait_at_head() const noexcept { return heads_; }

  std::uint64_t crossing(const PlaceSet& in, bool out, const Indices& which) const {
    ByteSet seen;
    std::uint64_t bytes = 0;
    for (const auto i : which) {
      const auto& n = all_[i];
      if (in[n.to] == out) continue;
      std::uint64_t most = 0;
      const auto crosses = [&](const Need::Part& p) { return in[p.place] == out; };
      for (const auto& p : n.parts)
        if (crosses(p)) most = std::max(most, seen.missing(p.va, p.va + n.bytes));
      bytes += most;
      for (const auto& p : n.parts)
        if (crosses(p)) seen.add(p.va, p.va + n.bytes);
    }
    return bytes;
  }

 private:
  std::uint32_t number(Place p) const noexcept { return p.is_host() ? s_.gpus : p.index; }
  /// The place of bytes of a buffer; nothing for any others.
  std::optional<std::uint32_t> home(GpuVa va) const {
    const auto l = find_symbol(s_, va);
    return l && !l->signal ? std::optional(number(s_.buffers[l->index].place)) : std::nullopt;
  }
  bool random(GpuVa va) const {
    const auto l = find_symbol(s_, va);
    return l && !l->signal && s_.buffers[l->index].init == Init::random && !s_.buffers[l->index].at;
  }

  void need(const Schedule::Expectation& e) {
    const auto left = resolve(s_, e.left.va);
    const auto to = home(left);
    if (!to || e.left.bytes == 0) return;
    Need n{.to = *to, .bytes = e.left.bytes};
    const auto part = [&](GpuVa at) {
      const auto va = resolve(s_, at);
      if (!random(va)) return false;
      if (!e.old && written_.missing(va.value, va.value + n.bytes) != n.bytes) return false;
      n.parts.push_back({*home(va), va.value});
      return true;
    };
    if (!e.sum && !part(e.right.va)) return;
    for (const auto& p : e.sum.parts)
      if (!part(p.va)) return;
    const auto far = [&](const Need::Part& p) { return p.place != n.to; };
    if (std::none_of(n.parts.begin(), n.parts.end(), far)) return;
    const auto index = static_cast<std::uint32_t>(all_.size());
    const auto other = [&](const Need::Part& p) { return p.place != n.parts.front().place; };
    only_sums_ = only_sums_ && std::any_of(n.parts.begin(), n.parts.end(), other);
    host_ = host_ || n.to == s_.gpus;
    at_[n.to].push_back(index);
    for (const auto& p : n.parts) {
      host_ = host_ || p.place == s_.gpus;
      if (at_[p.place].empty() || at_[p.place].back() != index) at_[p.place].push_back(index);
    }
    parts_ += n.parts.size();
    all_.push_back(std::move(n));
  }

  /// Who moves bytes, and where to.
  void look() {
    for (const auto& q : s_.queues) {
      bool first = true;
      for (Reader r{q.dwords}; r;) {
        const auto v = r.next();
        heads_ = heads_ && (!std::exchange(first, false) || v.is<PollMem>());
        if (!v.whole() || !v.info) continue;
        visit(*v.info, v.dwords, [&](const auto& p) {
          if constexpr (Divisible<std::remove_cvref_t<decltype(p)>>)
            footprint(p, [&](const Region& region) {
              const auto va = resolve(s_, region.va);
              const auto place = home(va);
              host_ = host_ || place == s_.gpus;
              if (place && allows(region.access, Access::write)) written_.add(va.value, va.value + hull(region));
            });
        });
      }
    }
    const auto far = [&](const Schedule::Range& r, std::uint32_t place) {
      return r.bytes != 0 && home(resolve(s_, r.va)) != place;
    };
    for (const auto& actor : actors(s_)) {
      const auto place = number(actor.place);
      each_action(*actor.actions, [&](const Schedule::Action& a) {
        using Kind = Schedule::Action::Kind;
        kernels_submit_ = kernels_submit_ || (actor.kernel() && a.kind == Kind::submit);
        triggered_ = triggered_ || (!actor.kernel() && a.kind == Kind::set);
        if (a.kind != Kind::store && a.kind != Kind::load) return;
        others_move_ = others_move_ || far(a.range, place);
        for (const auto& p : a.sum.parts) others_move_ = others_move_ || far(p, place);
        if (a.kind != Kind::store) return;
        const auto va = resolve(s_, a.range.va);
        written_.add(va.value, va.value + a.range.bytes);
      });
    }
    for (const auto& k : s_.kernels)
      kernels_report_ = kernels_report_ && !k.actions.empty() && reports(k.actions.back());
  }
  /// Does it change a word of the host for which a thread waits?
  bool reports(const Schedule::Action& last) const {
    using Kind = Schedule::Action::Kind;
    if (last.kind != Kind::add && last.kind != Kind::set) return false;
    const auto l = find_symbol(s_, last.signal);
    if (!l || !l->signal || !s_.signals[l->index].place.is_host()) return false;
    bool waited = false;
    for (const auto& h : s_.hosts)
      each_action(h.actions,
                  [&](const auto& a) { waited = waited || (a.kind == Kind::wait && a.signal == last.signal); });
    return waited;
  }

  const Schedule& s_;
  std::vector<Need> all_{};
  std::vector<Indices> at_;
  ByteSet written_{};
  std::uint64_t parts_ = 0;
  bool host_ = false, kernels_submit_ = false, kernels_report_ = true, others_move_ = false, only_sums_ = true;
  bool triggered_ = false, heads_ = true;
};

}}}  // namespace sdma::v0_3::detail
