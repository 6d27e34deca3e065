// SPDX-License-Identifier: MIT
#pragma once
// A line that has a message of the table: its places hold what they may.
//
//   example("ring {ring} timeout, signaled seq={#n}")     // "ring gfx_0.0.0 timeout, signaled seq=5"
#include "../../lib/dump/phrase.hpp"

#include <string>

inline std::string example(std::string_view phrase) {
  std::string out;
  sdma::detail::each_place(
      phrase, [&](std::string_view words) { out += words; },
      [&](char kind, std::string_view) {
        out += kind == '#' ? "5" : kind == '$' ? "0x1f" : kind == '*' ? "a b " : "gfx_0.0.0";
      });
  return out;
}
