// SPDX-License-Identifier: MIT
#include "json.hpp"

#include <fmt/format.h>

#include <algorithm>

#include <unordered_set>
#include <vector>

namespace sdma { inline namespace v0_3 { namespace detail {
namespace {

/// Builds the value while the JSON library reports its parts. Its own builder keeps one of two equal keys, compares
/// each key of an object with all keys before it, and nests without a limit.
class JsonBuilder final : public nlohmann::json_sax<Json> {
 public:
  bool null() override { return add(nullptr); }
  bool boolean(bool v) override { return add(v); }
  bool number_integer(number_integer_t v) override { return add(v); }
  bool number_unsigned(number_unsigned_t v) override { return add(v); }
  bool number_float(number_float_t v, const string_t&) override { return add(v); }
  bool string(string_t& v) override { return add(std::move(v)); }
  bool binary(binary_t&) override { return wrong("this is not JSON"); }
  bool start_object(std::size_t) override { return open(Json::object()); }
  bool start_array(std::size_t) override { return open(Json::array()); }
  bool end_object() override { return open_.pop_back(), true; }
  bool end_array() override { return open_.pop_back(), true; }

  bool key(string_t& name) override {
    // Most objects have few keys. The others keep their keys in a set, too, so that no text takes quadratic time.
    constexpr std::size_t kFew = 16;
    auto& f = open_.back();
    const auto& members = f.value->get_ref<const Json::object_t&>();
    bool twice = false;
    if (members.size() < kFew) {
      twice = std::any_of(members.begin(), members.end(), [&](const auto& m) { return m.first == name; });
    } else {
      if (members.size() == kFew)
        for (const auto& m : members) f.keys.insert(m.first);
      twice = !f.keys.insert(name).second;
    }
    if (twice) return wrong("the key " + json_string(name) + " appears twice in this object");
    f.key = std::move(name);
    return true;
  }
  bool parse_error(std::size_t, const std::string&, const nlohmann::detail::exception& e) override {
    constexpr int kNumberTooLarge = 406;
    return wrong(e.id == kNumberTooLarge ? "this number is too large" : "this is not JSON");
  }

  Json take() { return std::move(root_); }
  std::string take_message() { return std::move(message_); }

 private:
  struct Frame {
    Json* value;  ///< an element of the frame before, which does not grow while this one is open
    std::string key{};
    std::unordered_set<std::string> keys{};
  };

  bool wrong(std::string message) { return message_ = std::move(message), false; }
  Json& place(Json&& v) {
    if (open_.empty()) return root_ = std::move(v);
    auto& f = open_.back();
    if (f.value->is_array()) return f.value->get_ref<Json::array_t&>().emplace_back(std::move(v));
    return f.value->get_ref<Json::object_t&>().emplace_back(std::move(f.key), std::move(v)).second;
  }
  bool add(Json&& v) { return place(std::move(v)), true; }
  bool open(Json&& v) {
    if (open_.size() == kDeepestJson)
      return wrong(fmt::format("arrays and objects are nested more than {} levels deep", kDeepestJson));
    return open_.push_back({&place(std::move(v))}), true;
  }

  Json root_;
  std::vector<Frame> open_;
  std::string message_;
};

/// Tells a visitor, which decides nothing: what the JSON library reports goes on to it.
class JsonWalker final : public nlohmann::json_sax<Json> {
 public:
  explicit JsonWalker(JsonVisitor& to) : to_(to) {}
  bool null() override { return to_.value({}, false), true; }
  bool boolean(bool v) override { return to_.value(v ? "true" : "false", false), true; }
  bool number_integer(number_integer_t v) override { return to_.value(fmt::format_int(v).c_str(), true), true; }
  bool number_unsigned(number_unsigned_t v) override { return to_.value(fmt::format_int(v).c_str(), true), true; }
  bool number_float(number_float_t, const string_t& digits) override { return to_.value(digits, true), true; }
  bool string(string_t& v) override { return to_.value(v, false), true; }
  bool binary(binary_t&) override { return false; }
  bool start_object(std::size_t) override { return open(true); }
  bool start_array(std::size_t) override { return open(false); }
  bool end_object() override { return close(true); }
  bool end_array() override { return close(false); }
  bool key(string_t& name) override { return to_.key(name), true; }
  bool parse_error(std::size_t, const std::string&, const nlohmann::detail::exception&) override { return false; }

 private:
  bool open(bool object) { return depth_++ < kDeepestJson && (to_.open(object), true); }
  bool close(bool object) { return --depth_, to_.close(object), true; }
  JsonVisitor& to_;
  std::size_t depth_ = 0;
};

/// Iterates over a text, and notes the furthest character that was read.
struct Noting {
  using iterator_category = std::input_iterator_tag;
  using value_type = char;
  using difference_type = std::ptrdiff_t;
  using pointer = const char*;
  using reference = const char&;
  const char* at;
  const char** furthest;
  const char& operator*() const noexcept { return *(*furthest = at); }
  Noting& operator++() noexcept { return ++at, *this; }
  Noting operator++(int) noexcept { return {at++, furthest}; }
  friend bool operator==(const Noting& a, const Noting& b) noexcept { return a.at == b.at; }
};

}  // namespace

Result<Json, JsonError> parse_json(std::string_view text) {
  JsonBuilder builder;
  const char* furthest = text.data();
  const bool good =
      Json::sax_parse(Noting{text.data(), &furthest}, Noting{text.data() + text.size(), &furthest}, &builder);
  if (good) return builder.take();
  return JsonError{static_cast<std::size_t>(furthest - text.data()), builder.take_message()};
}

JsonWalk walk_json(std::string_view text, JsonVisitor& visitor) {
  JsonWalker walker{visitor};
  const char* furthest = text.data();
  const auto* const end = text.data() + text.size();
  const bool whole = Json::sax_parse(Noting{text.data(), &furthest}, Noting{end, &furthest}, &walker,
                                     Json::input_format_t::json, false);
  return {text.empty() ? 0 : static_cast<std::size_t>(furthest - text.data()) + 1, whole};
}

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
  if (!j) {
    const auto before = text.substr(0, j.error().at);
    const auto newline = before.rfind('\n');
    const auto lines = static_cast<std::uint64_t>(std::count(before.begin(), before.end(), '\n'));
    const auto column = before.size() - (newline == before.npos ? 0 : newline + 1);
    complain(error_at({.file = file_, .line = lines + 1, .column = column + 1}, std::move(j.error().message), hint));
    return {};
  }
  if (!j->is_object()) complain("", "this is not a JSON object", hint);
  return std::move(*j);
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

}}}  // namespace sdma::v0_3::detail
