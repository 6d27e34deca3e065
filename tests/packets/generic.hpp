// SPDX-License-Identifier: MIT
#pragma once
// What the tests of this folder do to every packet alike.
//
//   each_packet([]<class P>() { ... });              once for each type of Packets that 4.4.2 has
//   Dice dice{7};  P p = dice.packet<P>();           a value that obeys every limit, alignment and rule
//   same(p, q)                                       all fields equal, payloads by content
//
// generic.cpp instantiates the templates that are only declared here, for each type of Packets. Checks in a template
// are compiled once for each type: collect values in the template, and check them outside.
#include <random>

#include "sdma/packets/registry.hpp"
#include "support/catch.hpp"

namespace sdma::test {

template <class Fn> void each_packet(Fn fn) {
  const auto one = [&]<class P>() {
    if constexpr (exists<P>(kDefaultGeneration)) fn.template operator()<P>();
  };
  [&]<class... P>(PacketList<P...>) { (one.template operator()<P>(), ...); }(Packets{});
}
/// Calls fn<I>() for each field of `P`.
template <class P, class Fn> void each_field(Fn fn) { detail::each<P>(fn); }

/// Checks what was found about a packet.
inline void holds(std::string_view packet, bool ok) {
  INFO(packet);
  CHECK(ok);
}

template <Packet P> bool same(const P& a, const P& b);
/// All dwords of `p`.
template <Packet P> std::vector<std::uint32_t> words_of(const P& p);
/// Sets field `i` of `p` to the value `v`; a payload gets so many strides.
template <Packet P> void set(P& p, std::size_t i, std::uint64_t v);

class Dice {
 public:
  explicit Dice(std::uint32_t seed) : random_(seed) {}
  std::uint64_t number() { return random_(); }
  std::uint64_t below(std::uint64_t n) { return random_() % n; }

  /// A value that fits: fields are drawn within their limits until the packet's own rules hold.
  template <Packet P> P packet();

 private:
  /// A value for field `i`.
  std::uint64_t draw(const PacketInfo& p, std::size_t i);
  std::uint64_t value(const FieldInfo& f);

  std::mt19937_64 random_;
};

}  // namespace sdma::test
