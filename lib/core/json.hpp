// SPDX-License-Identifier: MIT
#pragma once
// Reads JSON files that users write, key by key, with errors that name the place; and writes JSON in one form.
// Internal. Only json.cpp instantiates the parser and the printer of the JSON library, because they take
// seconds to compile.
//
//   JsonReader in{"node.json"};
//   const auto j = in.parse(text, "`sdma topology --json` prints an example");
//   if (in.object(j, "", {"name", "cpus"})) in.string(j, "name", "", node.name);
//   if (in.failed()) return in.take();
//
// Thread-safety: none. Errors: the first one, as a Diagnostic; everything after it is skipped.
#include "json_string.hpp"
#include "sdma/core/diagnostic.hpp"
#include "sdma/core/result.hpp"

#include <cstdint>
#include <functional>
#include <initializer_list>
#include <limits>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

namespace sdma { inline namespace v0_3 { namespace detail {

using Json = nlohmann::ordered_json;  ///< keeps the order of keys

/// What is wrong with a JSON text, and the offset of the character at which it becomes wrong.
struct JsonError {
  std::size_t at{};
  std::string message{};
};
/// How many arrays and objects may be nested.
inline constexpr std::size_t kDeepestJson = 64;
/// The only parser of JSON that is read. Refuses what is not JSON; a key that an object has twice, of which one value
/// would be ignored; and nesting that is deeper than kDeepestJson. Takes time and memory linear in the text.
Result<Json, JsonError> parse_json(std::string_view text);
/// What walk_json meets, in the order of the text. A number is given as its digits.
class JsonVisitor {
 public:
  virtual ~JsonVisitor() = default;
  virtual void open(bool object) = 0;
  virtual void close(bool object) = 0;
  virtual void key(std::string_view) = 0;
  virtual void value(std::string_view, bool number) = 0;
};
/// Where the first value of a text ends; if it is not `whole`, up to where it could be read.
struct JsonWalk {
  std::size_t end{};
  bool whole{};
};
/// Reads the first value of a text, whatever follows it, and builds nothing: for records of logs, which may be cut
/// off. Takes time linear in what it reads, and stops at nesting that is deeper than kDeepestJson.
JsonWalk walk_json(std::string_view text, JsonVisitor&);
/// On one line, or with this indentation. Invalid UTF-8 becomes U+FFFD.
std::string json_text(const Json& j, int indent = -1);

class JsonReader {
 public:
  explicit JsonReader(std::string_view file) : file_(file) {}

  const std::string& file() const noexcept { return file_; }
  bool failed() const noexcept { return failed_; }
  Diagnostic take() { return std::move(error_); }
  void complain(const std::string& where, std::string message, std::string hint = {});
  void complain(Diagnostic error);

  /// Parses a file, which must be an object. `hint` says where to find an example.
  Json parse(std::string_view text, const char* hint);
  /// Is `j` an object that has no keys other than these?
  bool object(const Json& j, const std::string& where, std::initializer_list<std::string_view> keys);
  /// Reads an unsigned integer that must be present.
  template <class T> void number(const Json& j, const char* key, const std::string& where, T& to) {
    to = static_cast<T>(unsigned_of(j, key, where, std::numeric_limits<T>::max()));
  }
  /// Reads a number that may have a fraction, if it is present.
  void number(const Json& j, const char* key, const std::string& where, double& to);
  /// Reads a string, if it is present.
  void string(const Json& j, const char* key, const std::string& where, std::string& to);
  /// Reads true or false, which must be present.
  void boolean(const Json& j, const char* key, const std::string& where, bool& to);
  /// Returns the array of this name, which must be present; if it is missing, returns an empty one.
  const Json& array(const Json& j, const char* key, const std::string& where);
  /// Calls `f` for each item of an array that must be present, with "key[i]" for messages, until something fails.
  void each(const Json& j, const char* key, const std::function<void(const Json&, const std::string&)>& f);

 private:
  std::uint64_t unsigned_of(const Json& j, const char* key, const std::string& where, std::uint64_t most);

  std::string file_;
  Diagnostic error_;
  bool failed_ = false;
};

}}}  // namespace sdma::v0_3::detail
