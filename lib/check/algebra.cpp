// SPDX-License-Identifier: MIT
// Finds out which posts to a word commute, and what those that do not leave in it.
//
//   add, sub                     additions: any order gives the same sum
//   or, bits of its own          an addition of those bits that the same agent has not set before
//   inc, dec below the limit     an addition of 1 or -1, if the word cannot reach the limit at which it wraps
//   max or min                   if every wait for the word, once satisfied, stays so: each post leaves at least (at
//                                most) what its agent has posted so far, and no post hides another
//   fence, set, swap             a store of its value
//   any other atomic             a store of what it left in the followed execution, if the word's posts are in order
//   halves of a 64-bit word      the same, unless the other half always keeps its first value
//
// A word whose posts are in order gets the same values in every execution: before the first post that leaves another
// value, everything obeys the order, so the word held the same value before that post, too.
#include "model.hpp"

#include <algorithm>
#include <optional>
#include <utility>

namespace sdma { inline namespace v0_3 { namespace check_detail {
namespace {

constexpr Wide kHalf = Wide{1} << 32;

/// The posts to one word, in the order of their agents, and the waits for it.
struct Posts {
  struct Post {
    std::uint32_t agent;
    Step* step;
  };
  std::vector<Post> all{};
  std::vector<const Step*> waits{};
  bool unknown = false, other = false, halves = false;
};

/// The operation of a post whose result depends on what the word holds, as one that returns 32 bits.
std::optional<AtomicOp> kind(const Step& s) noexcept {
  return s.op == Op::other ? std::optional(plain(s.sync->atomic)) : std::nullopt;
}
bool is_or(const Step& s) noexcept { return kind(s) == AtomicOp::or_rtn_32; }

/// Does the high half keep its first value, whatever is posted in which order?
bool high_half_is_kept(const Word& w, const Posts& posts) {
  const auto low = [](std::uint64_t v) { return Wide{static_cast<std::uint32_t>(v)}; };
  Wide least = low(w.init), most = least, down = 0, up = 0;
  for (const auto& [agent, s] : posts.all) {
    const bool high = s->sync->high;
    if (s->op == Op::add) {
      if (high && s->value != 0) return false;
      (addend(*s) > 0 ? up : down) += addend(*s);
      continue;
    }
    if (high || s->sync->bytes == 8) {
      if ((high ? s->value : s->value >> 32) != w.init >> 32) return false;
      if (high) continue;
    }
    least = std::min(least, low(s->value)), most = std::max(most, low(s->value));
  }
  return least + down >= 0 && most + up < kHalf;
}

/// Turns each OR into an addition, if no two agents set the same bit. False if they do, or if there are other posts.
bool or_as_additions(const Word& w, const Posts& posts) {
  const auto usable = [&](const Posts::Post& p) { return is_or(*p.step) && p.step->sync->bytes == w.bytes; };
  if (!std::all_of(posts.all.begin(), posts.all.end(), usable)) return false;
  std::uint64_t others = 0, own = 0;  // bits that earlier agents have set, and the agent itself
  std::vector<std::uint64_t> fresh;
  for (std::size_t i = 0; i < posts.all.size(); ++i) {
    const auto& [agent, s] = posts.all[i];
    const bool same = i > 0 && posts.all[i - 1].agent == agent && s->column == kNone;
    if (!same) others |= std::exchange(own, 0);
    const auto bits = truncate(w.bytes, s->value) & ~w.init;
    if ((bits & others) != 0) return false;
    fresh.push_back(bits & ~own);
    own |= bits;
  }
  for (std::size_t i = 0; i < posts.all.size(); ++i) {
    auto& s = *posts.all[i].step;
    s.op = Op::add, s.whole = true, s.value = fresh[i];
  }
  return true;
}

/// Turns each INC and DEC into an addition. False if the word may reach a limit, or if there are other posts.
bool steps_as_additions(const Word& w, const Posts& posts) {
  Wide low = Wide{w.init}, high = low, limit = Wide{truncate(w.bytes, ~std::uint64_t{0})};
  const auto by = [](const Step& s) {
    return kind(s) == AtomicOp::inc_rtn_32 ? 1 : kind(s) == AtomicOp::dec_rtn_32 ? -1 : 0;
  };
  for (const auto& [agent, s] : posts.all) {
    const auto n = s->op == Op::add ? addend(*s) : Wide{by(*s)};
    if ((s->op != Op::add && n == 0) || s->sync->bytes != w.bytes) return false;
    (n > 0 ? high : low) += n;
    if (s->op != Op::add) limit = std::min(limit, Wide{truncate(w.bytes, s->value)});
  }
  if (low < 0 || high > limit) return false;
  for (const auto& [agent, s] : posts.all)
    if (s->op != Op::add) s->value = static_cast<std::uint64_t>(std::int64_t{by(*s)}), s->op = Op::add;
  return true;
}

/// Gives each MAX (MIN) the largest (least) value that its agent has posted so far. False if there are other posts, or
/// if a wait may be satisfied and then no longer.
bool monotone(const Word& w, const Posts& posts) {
  const auto op = posts.all.empty() ? std::nullopt : kind(*posts.all.front().step);
  const bool max = op == AtomicOp::umax_rtn_32 || op == AtomicOp::smax_rtn_32;
  const bool is_signed = op == AtomicOp::smax_rtn_32 || op == AtomicOp::smin_rtn_32;
  if (!max && op != AtomicOp::umin_rtn_32 && op != AtomicOp::smin_rtn_32) return false;
  auto last = w.init, most = w.init;
  for (const auto& [agent, s] : posts.all) {
    if (kind(*s) != op || s->sync->bytes != w.bytes || s->column != kNone) return false;
    most = std::max(most, s->value);
    last = max ? std::max(last, s->value) : std::min(last, s->value);
  }
  if (is_signed && most >> (8 * w.bytes - 1) != 0) return false;
  for (const auto* s : posts.waits) {
    const auto& y = *s->sync;
    const bool whole = y.bytes == w.bytes || (!y.high && most >> 32 == 0);
    const bool stays =
        max ? y.func == Compare::ge || y.func == Compare::gt : y.func == Compare::le || y.func == Compare::lt;
    const bool ends = y.func == Compare::eq && truncate(y.bytes, s->value) == last;
    if (!whole || y.mask != ~0u || (!stays && !ends)) return false;
  }
  for (std::size_t i = 1; i < posts.all.size(); ++i)
    if (const auto& before = posts.all[i - 1]; before.agent == posts.all[i].agent) {
      auto& value = posts.all[i].step->value;
      value = max ? std::max(value, before.step->value) : std::min(value, before.step->value);
    }
  return true;
}

std::vector<Posts> posts_of(Model& m) {
  std::vector<Posts> all(m.words.size());
  for (std::uint32_t a = 0; a < m.agents.size(); ++a)
    for (auto& s : m.agents[a].steps) {
      if (!s.sync || s.sync->word == kNone) continue;
      auto& p = all[s.sync->word];
      if (s.kind == Step::Kind::poll) p.waits.push_back(&s);
      if (!s.posts()) continue;
      p.all.push_back({a, &s});
      p.unknown = p.unknown || s.op == Op::unknown;
      p.other = p.other || s.op == Op::other;
      p.halves = p.halves || (m.words[s.sync->word].bytes == 8 && s.sync->bytes == 4 && !s.whole);
    }
  return all;
}

}  // namespace

void Model::find_algebra() {
  auto all = posts_of(*this);
  for (std::size_t i = 0; i < words.size(); ++i) {
    auto& w = words[i];
    const auto& posts = all[i];
    w.halves = posts.halves;
    w.unmodelled = posts.unknown;
    const bool taken = std::binary_search(taken_in_order.begin(), taken_in_order.end(), i);
    const bool depends = posts.other || taken || (posts.halves && !(w.known && high_half_is_kept(w, posts)) && !open);
    if (!depends || w.unmodelled) continue;
    w.monotone = w.known && !open && monotone(w, posts);
    if (w.monotone || (w.known && !open && steps_as_additions(w, posts))) continue;
    if (!w.known || open) w.unmodelled = true;
    else if (!executed_) w.in_order = true;
    else if (!or_as_additions(w, posts)) {
      w.in_order = true;
      w.halves = false;
      for (const auto& [agent, s] : posts.all) {
        w.unmodelled = w.unmodelled || s->time == kNone;
        s->op = Op::store, s->whole = true, s->value = s->left;
      }
    }
  }
}

std::vector<std::uint32_t> Model::mixed_words() const {
  std::vector<std::uint32_t> found;
  for (const auto i : taken_in_order)
    if (!words[i].unmodelled) found.push_back(i);
  if (!taken_in_order.empty() || open) return found;
  for (std::uint32_t i = 0; i < words.size(); ++i)
    if (const auto& w = words[i]; w.adds && w.stores && w.known && !w.unmodelled) found.push_back(i);
  return found;
}

bool Model::find_disorder() {
  std::vector<std::vector<Position>> all(words.size());  // of each word: agents and the indices of their steps
  for (std::uint32_t a = 0; a < agents.size(); ++a)
    for (std::uint32_t i = 0; i < agents[a].steps.size(); ++i)
      if (const auto& s = agents[a].steps[i];
          s.posts() && words[s.sync->word].in_order && !words[s.sync->word].unmodelled)
        all[s.sync->word].push_back({a, i});
  bool found = false;
  for (std::size_t i = 0; i < words.size(); ++i) {
    auto& posts = all[i];
    const auto step = [&](Position p) -> const Step& { return agents[p.agent].steps[p.position]; };
    std::sort(posts.begin(), posts.end(), [&](Position a, Position b) { return step(a).time < step(b).time; });
    for (std::size_t k = 1; k < posts.size() && !words[i].unmodelled; ++k)
      words[i].unmodelled = !after(posts[k].agent, step(posts[k]), posts[k - 1].agent, step(posts[k - 1]));
    found = found || (!posts.empty() && words[i].unmodelled);
  }
  return found;
}

}}}  // namespace sdma::v0_3::check_detail
