#pragma once
// What the tests of this folder do to every packet alike.
//
//   each_packet([]<class P>() { ... });              once for each type of Packets
//   Dice dice{7};  P p = dice.packet<P>();           a value that obeys every limit, alignment and rule
//   same(p, q)                                       all fields equal, payloads by content
#include <random>

#include "sdma/packets/registry.hpp"
#include "support/catch.hpp"

namespace sdma::test {

template <class Fn> void each_packet(Fn fn) {
  [&]<class... P>(PacketList<P...>) { (fn.template operator()<P>(), ...); }(Packets{});
}
/// Calls fn<I>() for each field of `P`.
template <class P, class Fn> void each_field(Fn fn) { detail::each<P>(fn); }

template <class P> bool same(const P& a, const P& b) {
  bool equal = true;
  each_field<P>([&]<std::size_t I>() {
    constexpr auto member = detail::FieldOf<P, I>::member;
    if constexpr (detail::field<P, I>.kind == Kind::payload)
      equal = equal && std::equal((a.*member).begin(), (a.*member).end(), (b.*member).begin(), (b.*member).end());
    else equal = equal && a.*member == b.*member;
  });
  return equal;
}

/// Dwords that a payload may refer to: more than the longest payload that the tests make.
inline const std::vector<std::uint32_t>& payload_words() {
  static const auto words = [] {
    std::mt19937 random{1};
    std::vector<std::uint32_t> w(4096);
    for (auto& x : w) x = static_cast<std::uint32_t>(random());
    return w;
  }();
  return words;
}

/// Sets field I of `p` to the value `v`; a payload gets so many strides.
template <class P, std::size_t I> void set(P& p, std::uint64_t v) {
  constexpr auto& f = detail::field<P, I>;
  using F = detail::FieldOf<P, I>;
  if constexpr (f.kind == Kind::payload)
    p.*F::member = std::span(payload_words()).first(static_cast<std::size_t>(v) * layout<P>.length.stride);
  else p.*F::member = static_cast<typename F::Type>(v);
}

class Dice {
 public:
  explicit Dice(std::uint32_t seed) : random_(seed) {}
  std::uint64_t number() { return random_(); }
  std::uint64_t below(std::uint64_t n) { return random_() % n; }

  /// A value that fits: fields are drawn within their limits until the packet's own rules hold.
  template <Packet P> P packet() {
    for (;;) {
      P p{};
      each_field<P>([&]<std::size_t I>() {
        constexpr auto& f = detail::field<P, I>;
        auto v = value(f);
        if constexpr (f.kind == Kind::payload) v = f.bias + v % 64;
        else if (below(4) == 0 && f.name != "bytes") v = f.optional ? info<P>.fields[I].default_value : v;
        set<P, I>(p, v);
      });
      if (fits(p)) return p;
    }
  }

 private:
  /// Within [bias, max], aligned; often at one of the ends, and often a multiple of 64 so that rules over several hold.
  std::uint64_t value(const FieldInfo& f) {
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

  std::mt19937_64 random_;
};

/// All dwords of `p`.
template <Packet P> std::vector<std::uint32_t> words_of(const P& p) {
  std::vector<std::uint32_t> out(length(p));
  encode_to(p, out.data());
  return out;
}

}  // namespace sdma::test
