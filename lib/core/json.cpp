#include "json.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace sdma::inline v0::detail {

Json parse_json(std::string_view text) { return Json::parse(text.begin(), text.end(), nullptr, false); }

std::string json_text(const Json& j, int indent) { return j.dump(indent, ' ', false, Json::error_handler_t::replace); }

std::string json_string(std::string_view s) { return json_text(Json(s)); }

void JsonReader::complain(const std::string& where, std::string message, std::string hint) {
  complain(
      {.where = where.empty() ? file_ : file_ + ": " + where, .message = std::move(message), .hint = std::move(hint)});
}

void JsonReader::complain(Diagnostic error) {
  if (!std::exchange(failed_, true)) error_ = std::move(error);
}

Json JsonReader::parse(std::string_view text, const char* hint) {
  auto j = parse_json(text);
  if (j.is_discarded()) complain("", "this is not JSON", hint);
  else if (!j.is_object()) complain("", "this is not a JSON object", hint);
  return j;
}

bool JsonReader::object(const Json& j, const std::string& where, std::initializer_list<std::string_view> keys) {
  if (failed_) return false;
  if (!j.is_object()) return complain(where, "this is not a JSON object"), false;
  for (const auto& [key, value] : j.items())
    if (std::find(keys.begin(), keys.end(), key) == keys.end())
      complain(where, fmt::format("unknown key \"{}\"", key), fmt::format("known keys: {}", fmt::join(keys, ", ")));
  return !failed_;
}

std::uint64_t JsonReader::unsigned_of(const Json& j, const char* key, const std::string& where, std::uint64_t most) {
  const auto at = j.find(key);
  if (at == j.end()) return complain(where, fmt::format("\"{}\" is missing", key)), 0;
  const auto v = at->is_number_unsigned() ? at->get<std::uint64_t>() : 0;
  if (at->is_number_unsigned() && v <= most) return v;
  complain(where, fmt::format("\"{}\" is not an integer from 0 to {}", key, most));
  return 0;
}

void JsonReader::number(const Json& j, const char* key, const std::string& where, double& to) {
  const auto at = j.find(key);
  if (at == j.end()) return;
  if (!at->is_number()) return complain(where, fmt::format("\"{}\" is not a number", key));
  to = at->get<double>();
}

void JsonReader::string(const Json& j, const char* key, const std::string& where, std::string& to) {
  const auto at = j.find(key);
  if (at == j.end()) return;
  if (!at->is_string()) return complain(where, fmt::format("\"{}\" is not a string", key));
  to = at->get<std::string>();
}

void JsonReader::boolean(const Json& j, const char* key, const std::string& where, bool& to) {
  const auto at = j.find(key);
  if (at == j.end() || !at->is_boolean()) return complain(where, fmt::format("\"{}\" is neither true nor false", key));
  to = at->get<bool>();
}

const Json& JsonReader::array(const Json& j, const char* key, const std::string& where) {
  static const auto none = Json::array();
  const auto at = j.find(key);
  if (at != j.end() && at->is_array()) return *at;
  complain(where, fmt::format("\"{}\" is missing or is not an array", key));
  return none;
}

void JsonReader::each(const Json& j, const char* key, const std::function<void(const Json&, const std::string&)>& f) {
  const auto& items = array(j, key, "");
  for (std::size_t i = 0; i < items.size() && !failed_; ++i) f(items[i], fmt::format("{}[{}]", key, i));
}

}  // namespace sdma::inline v0::detail
