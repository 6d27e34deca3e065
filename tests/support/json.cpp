// SPDX-License-Identifier: MIT
#include "support/json.hpp"

namespace test {

nlohmann::json parse_json(std::string_view text) { return nlohmann::json::parse(text); }
std::string json_line(const nlohmann::json& j) { return j.dump(); }

}  // namespace test
