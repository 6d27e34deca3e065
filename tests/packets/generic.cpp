// SPDX-License-Identifier: MIT
#include "packets/generic.hpp"

namespace sdma::test {
namespace {

/// Dwords that a payload may refer to: more than the longest payload that the tests make.
const std::vector<std::uint32_t>& payload_words() {
  static const auto words = [] {
    std::mt19937 random{1};
    std::vector<std::uint32_t> w(4096);
    for (auto& x : w) x = static_cast<std::uint32_t>(random());
    return w;
  }();
  return words;
}

}  // namespace

template <Packet P> bool same(const P& a, const P& b) {
  bool equal = true;
  each_field<P>([&]<std::size_t I>() {
    constexpr auto member = detail::FieldOf<P, I>::member;
    if constexpr (detail::field<P, I>.kind == Kind::payload)
      equal = equal && std::equal((a.*member).begin(), (a.*member).end(), (b.*member).begin(), (b.*member).end());
    else equal = equal && a.*member == b.*member;
  });
  return equal;
}

template <Packet P> std::vector<std::uint32_t> words_of(const P& p) {
  std::vector<std::uint32_t> out(length(p));
  encode_to(p, out.data());
  return out;
}

template <Packet P> void set(P& p, std::size_t i, std::uint64_t v) {
  each_field<P>([&]<std::size_t I>() {
    using F = detail::FieldOf<P, I>;
    if (I != i) return;
    if constexpr (detail::field<P, I>.kind == Kind::payload)
      p.*F::member = std::span(payload_words()).first(static_cast<std::size_t>(v) * grammar::layout<P>.length.stride);
    else p.*F::member = static_cast<typename F::Type>(v);
  });
}

/// Within [bias, max], aligned; often at one of the ends, and often a multiple of 64 so that rules over several hold.
std::uint64_t Dice::value(const FieldInfo& f) {
  const auto least = std::uint64_t{f.bias};
  auto v = random_();
  if (f.max() != ~std::uint64_t{}) v = least + v % (f.max() - least + 1);
  switch (below(8)) {
    case 0: v = least; break;
    case 1: v = f.max(); break;
    case 2:
    case 3: v = std::max(v / 64 * 64, least); break;
    default: break;
  }
  return f.alignment > 1 ? v / f.alignment * f.alignment : v;
}

std::uint64_t Dice::draw(const PacketInfo& p, std::size_t i) {
  const auto& f = p.fields[i];
  const auto v = value(f);
  if (f.kind == Kind::payload) return f.bias + v % 64;
  if (below(4) == 0 && f.name != "bytes" && f.optional) return f.default_value;
  return v;
}

template <Packet P> P Dice::packet() {
  for (;;) {
    P p{};
    for (std::size_t i = 0; i < detail::kFields<P>; ++i) set(p, i, draw(packet_info<P>, i));
    if (fits < exists<P>(kDefaultGeneration) ? kDefaultGeneration : Generation::v6_0 > (p)) return p;
  }
}

namespace {

template <class... P> constexpr auto instances(PacketList<P...>) {
  return std::tuple{&same<P>..., &words_of<P>..., &set<P>..., &Dice::packet<P>...};
}
[[gnu::used]] constexpr auto kInstances = instances(Packets{});

}  // namespace
}  // namespace sdma::test
