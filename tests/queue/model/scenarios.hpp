// SPDX-License-Identifier: MIT
#pragma once
// The situations that are explored: small ones, together all paths of Ring. A ring has 256 dwords, 1024 bytes.
#include "scenario.hpp"

namespace model {

/// Of a Ring whose kOpenSlots is the real one.
inline std::vector<Scenario> scenarios() {
  const Take half{.dwords = 128}, most{.dwords = 120}, small{.dwords = 8}, exact{.dwords = 4},
      back{.dwords = 8, .give_back = true};
  constexpr auto one = sdma::Producers::one;
  return {
      {.name = "one producer", .kind = one, .producers = {{small, exact, back, small}}},
      {.name = "one, engine by wptr", .kind = one, .producers = {{small, small}}, .engine = Engine::wptr},
      {.name = "one, no doorbell",
       .kind = one,
       .producers = {{small, small}},
       .engine = Engine::wptr,
       .doorbell = false},
      {.name = "one, mapped again", .kind = one, .producers = {{small, small}}, .engine = Engine::remapped},
      {.name = "one, full", .kind = one, .producers = {{half, most, most, small}}},
      {.name = "one, wraps and skips", .kind = one, .producers = {{{100}, {100}, {100}, {100}}}},
      {.name = "one, almost the whole ring", .kind = one, .producers = {{{100}, {255}, small}}},
      {.name = "one, one dword too long", .kind = one, .producers = {{{200}, {200}, small}}},
      {.name = "one, at 2^32",
       .kind = one,
       .producers = {{half, most, small}},
       .start = (1ull << 32) - 1028,
       .unread = 512},
      {.name = "2 producers", .producers = {{small}, {small}}},
      {.name = "2, engine by wptr", .producers = {{small}, {small}}, .engine = Engine::wptr},
      {.name = "2, no doorbell", .producers = {{small}, {small}}, .engine = Engine::wptr, .doorbell = false},
      {.name = "2, mapped again", .producers = {{small}, {small}}, .engine = Engine::remapped},
      {.name = "2, one gives back", .producers = {{back}, {exact}}},
      {.name = "2, watched", .producers = {{small}, {small}}, .watch = true},
      {.name = "2, exactly full", .producers = {{half}, {half}}},
      {.name = "2, one falls behind", .producers = {{half, half}, {exact}}},
      {.name = "2, wrap and full", .producers = {{{100}}, {{100}}}, .start = 620, .unread = 400},
      {.name = "2, almost the whole ring", .producers = {{{250}}, {small}}, .start = 900},
      {.name = "2, at 2^32", .producers = {{{100}}, {{100}}}, .start = (1ull << 32) - 300, .unread = 400},
      {.name = "2, at 2^57", .producers = {{{100}}, {small}}, .start = (1ull << 57) - 200, .unread = 100},
      {.name = "2 x 2 without engine", .producers = {{small, small}, {small, small}}, .engine = Engine::none},
      {.name = "2 x 2, taken", .producers = {{small, small}, {small, small}}, .taken = true},
      {.name = "3 without engine", .producers = {{small}, {small}, {small}}, .engine = Engine::none},
      {.name = "3, taken", .producers = {{small}, {small}, {small}}, .taken = true},
      {.name = "3 producers", .producers = {{small}, {exact}, {back}}},
      {.name = "3 + 2 without engine", .producers = {{small, small, small}, {small, small}}, .engine = Engine::none},
  };
}

/// Explored once, not for each mutant.
inline std::vector<Scenario> four_producers() {
  const Take small{.dwords = 8};
  return {{.name = "4, taken", .producers = {{small}, {small}, {small}, {small}}, .taken = true},
          {.name = "4 producers", .producers = {{small}, {small}, {small}, {small}}, .engine = Engine::none}};
}

/// For a Ring with two open slots: a producer that finds both open gives up.
/// Waves of two lanes each.
inline std::vector<Scenario> wave_scenarios() {
  const Take fence{.dwords = 4};
  return {
      {.name = "a wave", .kind = sdma::Producers::one, .producers = {{fence, fence}}, .waves = true},
      {.name = "two waves", .producers = {{fence}, {fence}}, .waves = true},
      {.name = "a wave, full ring",
       .producers = {{fence, fence}},
       .start = kRing * 4,
       .unread = kRing * 4 - 4,
       .waves = true},
      {.name = "a wave, skips the end", .producers = {{fence, fence}}, .start = kRing * 4 - 8, .waves = true},
      {.name = "a wave, units of 8", .producers = {{fence, fence}}, .start = kRing * 4 - 32, .waves = true, .least = 8},
      {.name = "two waves, skip the end", .producers = {{fence}, {fence}}, .start = kRing * 4 - 8, .waves = true},
  };
}

inline std::vector<Scenario> few_slot_scenarios() {
  const Take small{.dwords = 8};
  return {
      {.name = "few slots: 2 + 1", .producers = {{small, small}, {small}}, .engine = Engine::none, .give_up = true},
      {.name = "few slots: 2 x 2, taken",
       .producers = {{small, small}, {small, small}},
       .engine = Engine::none,
       .taken = true,
       .give_up = true},
      {.name = "few slots: 3 x 1", .producers = {{small}, {small}, {small}}, .engine = Engine::none, .give_up = true},
  };
}

}  // namespace model
