// SPDX-License-Identifier: MIT
#include "sums.hpp"

#include <algorithm>
#include <tuple>

namespace sdma { inline namespace v0_3 { namespace check_detail {
namespace {

/// How many parts a sum may have, all additions together.
constexpr std::size_t kMostOfSum = 4096;

/// Known bytes come last, so that a sum begins with a part that has a place.
auto sort_key(const Held& h) noexcept {
  return std::tuple(h.known(), h.kind, h.value, reinterpret_cast<std::uintptr_t>(h.data), h.at);
}
bool sorts_before(const Held& a, const Held& b) noexcept { return sort_key(a) < sort_key(b); }

/// Without what does not matter for its bytes: who has put it there, and how often a pattern has repeated.
Held bare(Held h) noexcept {
  h.by = {kNone, 0};
  if (h.kind == Held::Kind::pattern)
    h.at = h.value == static_cast<std::uint8_t>(h.value) * 0x0101'0101'0101'0101u ? 0 : h.at % 8;
  return h;
}
bool is_zero(const Held& h) noexcept { return h.kind == Held::Kind::pattern && h.value == 0; }

}  // namespace

std::optional<Held> Sums::add(const Schedule::Sum& sum, const std::vector<Held>& parts, Position by) {
  if (sum.type == Type::i32 || (sum.any_order && parts.size() > 2)) return node(sum.type, parts, by);
  std::optional<Held> all = parts.front();
  for (std::size_t i = 1; i < parts.size() && all; ++i) all = node(sum.type, {*all, parts[i]}, {kNone, 0});
  return all;
}

std::optional<Held> Sums::node(Type type, std::vector<Held> parts, Position by) {
  const bool integers = type == Type::i32;
  Node n{.type = type, .open = !integers && parts.size() > 2};
  for (auto& p : parts) {
    p = bare(p);
    const bool inner = p.kind == Held::Kind::sum && of(p).type == type;
    if (inner && phase(p) != 0) return {};
    n.open = n.open || open(p);
    if (!inner) n.parts.push_back(p);
    else
      for (const auto& q : this->parts(p)) n.parts.push_back(q);
    if (n.parts.size() > kMostOfSum) return {};
  }
  if (integers) {
    std::erase_if(n.parts, is_zero);
    if (n.parts.empty()) return Held{.kind = Held::Kind::pattern};
    if (n.parts.size() == 1) return n.parts.front();
    parts = n.parts;
  }
  std::sort(parts.begin(), parts.end(), sorts_before);
  std::sort(n.parts.begin(), n.parts.end(), sorts_before);
  if (parts.front().known()) return {};
  const auto base = parts.front().at;
  n.phase = base % n.element();
  // An open order of additions makes the sum one of its own.
  const bool own = !integers && parts.size() > 2;
  std::vector<std::uint64_t> numbers{static_cast<std::uint64_t>(type), n.phase,
                                     own ? std::uint64_t{by.agent} << 32 | by.position : ~std::uint64_t{}};
  for (const auto& p : parts) {
    const auto q = bare(p.from(0 - base));
    numbers.insert(numbers.end(), {static_cast<std::uint64_t>(q.kind), q.value,
                                   std::uint64_t{reinterpret_cast<std::uintptr_t>(q.data)}, q.at});
  }
  for (auto& p : n.parts) p = bare(p.from(0 - base));
  const auto [at, fresh] = numbers_.try_emplace(std::move(numbers), nodes_.size());
  if (fresh) nodes_.push_back(std::move(n));
  return Held{.kind = Held::Kind::sum, .at = base, .value = at->second};
}

std::vector<Held> Sums::parts(const Held& h) const {
  if (h.kind != Held::Kind::sum) return {bare(h)};
  std::vector<Held> all;
  for (const auto& p : of(h).parts) all.push_back(bare(p.from(h.at)));
  std::sort(all.begin(), all.end(), sorts_before);
  return all;
}

}}}  // namespace sdma::v0_3::check_detail
