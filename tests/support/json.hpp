// SPDX-License-Identifier: MIT
#pragma once
// The JSON library for tests. Only json.cpp instantiates its parser and its printer, which take seconds to compile.
//
//   const auto j = parse_json(text);  CHECK(j["name"] == "x");
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "support/catch.hpp"

namespace test {

/// Throws nlohmann::json::parse_error if `text` is not JSON.
nlohmann::json parse_json(std::string_view text);
/// On one line.
std::string json_line(const nlohmann::json& j);

}  // namespace test

template <> struct Catch::StringMaker<nlohmann::json> {
  static std::string convert(const nlohmann::json& j) { return test::json_line(j); }
};
