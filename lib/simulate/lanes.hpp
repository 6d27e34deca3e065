// SPDX-License-Identifier: MIT
#pragma once
// A time (or a rate, or a cost) on several machines at once. Internal.
//
//   using Time = Lanes<32>;
//   Time t = 5.0;                       // the same on all of them
//   t = higher(t + cost, free);         // on each machine, when it is ready and its resource is free
//   lead(t)                             // on the first machine, which decides: comparisons compare this one
//
// Code that is a template of the type of a time works with `double`, too: `lead` is the value itself then. What happens
// first, and what waits for what, is as on the first machine. The lanes say when the same happens on the others.
// Thread-safety: as double. No errors.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>

namespace sdma { inline namespace v0_3 { namespace detail {

template <std::size_t N> struct Lanes {
  static constexpr std::size_t kLanes = N;
  std::array<double, N> v;

  Lanes(double all = 0) noexcept { v.fill(all); }  // NOLINT(google-explicit-constructor): a number is one in each lane
  Lanes& operator+=(const Lanes& o) noexcept {
    return each(o, [](double a, double b) { return a + b; });
  }
  Lanes& operator-=(const Lanes& o) noexcept {
    return each(o, [](double a, double b) { return a - b; });
  }
  Lanes& operator*=(const Lanes& o) noexcept {
    return each(o, [](double a, double b) { return a * b; });
  }
  Lanes& operator/=(const Lanes& o) noexcept {
    return each(o, [](double a, double b) { return a / b; });
  }
  friend Lanes operator+(Lanes a, const Lanes& b) noexcept { return a += b; }
  friend Lanes operator-(Lanes a, const Lanes& b) noexcept { return a -= b; }
  friend Lanes operator*(Lanes a, const Lanes& b) noexcept { return a *= b; }
  friend Lanes operator/(Lanes a, const Lanes& b) noexcept { return a /= b; }
  friend bool operator<(const Lanes& a, const Lanes& b) noexcept { return a.v[0] < b.v[0]; }
  friend bool operator>(const Lanes& a, const Lanes& b) noexcept { return a.v[0] > b.v[0]; }
  friend bool operator<=(const Lanes& a, const Lanes& b) noexcept { return a.v[0] <= b.v[0]; }
  friend bool operator>=(const Lanes& a, const Lanes& b) noexcept { return a.v[0] >= b.v[0]; }

  template <class Fn> Lanes& each(const Lanes& o, Fn fn) noexcept {
    for (std::size_t i = 0; i < N; ++i) v[i] = fn(v[i], o.v[i]);
    return *this;
  }
};

inline double lead(double t) noexcept { return t; }
template <std::size_t N> double lead(const Lanes<N>& t) noexcept { return t.v[0]; }

/// The greater one, in each lane.
inline double higher(double a, double b) noexcept { return std::max(a, b); }
template <std::size_t N> Lanes<N> higher(Lanes<N> a, const Lanes<N>& b) noexcept {
  return a.each(b, [](double x, double y) { return std::max(x, y); });
}
/// The lesser one, in each lane.
inline double lower(double a, double b) noexcept { return std::min(a, b); }
template <std::size_t N> Lanes<N> lower(Lanes<N> a, const Lanes<N>& b) noexcept {
  return a.each(b, [](double x, double y) { return std::min(x, y); });
}
/// Is it the same in each lane?
inline bool alike(double a, double b) noexcept { return a == b; }
template <std::size_t N> bool alike(const Lanes<N>& a, const Lanes<N>& b) noexcept { return a.v == b.v; }
/// Do they differ by rounding at most, in each lane?
inline bool rounded(double a, double b) noexcept { return std::abs(a - b) <= 1e-14 * std::abs(b); }
template <std::size_t N> bool rounded(const Lanes<N>& a, const Lanes<N>& b) noexcept {
  for (std::size_t i = 0; i < N; ++i)
    if (!rounded(a.v[i], b.v[i])) return false;
  return true;
}

/// The lanes of `t`, but the first one, which is known.
inline double led(double, double known) noexcept { return known; }
template <std::size_t N> Lanes<N> led(Lanes<N> t, double known) noexcept {
  t.v[0] = known;
  return t;
}

/// What serves one after another: when it is free again, and when those that it has served asked, the latest of them.
template <class Time> struct InTurn { Time free{}, asked{}; };

/// Serves one that asks at `asks`, after those before. The turns are those of the first lane: where the one before
/// asked later and makes this one wait, `strayed` has in each lane by how much this one is late at most.
inline double served(InTurn<double>& of, double asks, double&) noexcept { return std::max(asks, of.free); }
template <std::size_t N> Lanes<N> served(InTurn<Lanes<N>>& of, const Lanes<N>& asks, Lanes<N>& strayed) noexcept {
  for (std::size_t i = 0; i < N; ++i)
    if (asks.v[i] < of.asked.v[i]) strayed.v[i] = std::max(strayed.v[i], of.free.v[i] - asks.v[i]);
  of.asked = higher(of.asked, asks);
  return higher(asks, of.free);
}

/// When a poll sees a word that changed at `changed`: at its look, `looked`, if that was later, or else at `woken`.
template <std::size_t N>
Lanes<N> seen(const Lanes<N>& changed, const Lanes<N>& looked, const Lanes<N>& woken) noexcept {
  Lanes<N> out;
  for (std::size_t i = 0; i < N; ++i) out.v[i] = changed.v[i] <= looked.v[i] ? looked.v[i] : woken.v[i];
  return out;
}

}}}  // namespace sdma::v0_3::detail
