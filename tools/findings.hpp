// SPDX-License-Identifier: MIT
#pragma once
// What `sdma check` prints: findings as they come, and an answer for each input.
//
//   Findings to{FindingsForm::json};
//   to.add(diagnostic, [&] { return json::of(finding); });   // one object a line, a message, or a result of SARIF
//   to.answer([&] { return json::answer_of(...); });         // JSON alone
//   to.say(text);                                            // text alone
//   return to.close(code);                                   // SARIF is one object, written here
//
//   return end_of_log(code);                                 // main, with --sarif: other errors have a log, too
//
// Not thread-safe. Errors: those of the output, which close() reports; its exit code is then that of the output.
#include "json/sarif.hpp"
#include "output.hpp"

#include <functional>
#include <string>
#include <vector>

namespace sdma::tool {

enum class FindingsForm { text, json, sarif };

class Findings {
 public:
  explicit Findings(FindingsForm f) : form_(f) {}

  /// The next findings are about this input.
  void begin(const std::string& file) { file_ = file; }
  /// `as_json`: the finding as an object, if it has more than a diagnostic.
  void add(const Diagnostic&, const std::function<json::Json()>& as_json = {});
  /// That an input cannot be read: a message, an answer of JSON, and a result of SARIF.
  void unread(const Diagnostic&);
  /// That an expectation is not met: a message, and a result of SARIF. In JSON, the answer says so.
  void unmet(const Diagnostic&);
  void answer(const std::function<json::Json()>&);
  /// A line of text.
  void say(const std::string& line);
  bool is_text() const noexcept { return form_ == FindingsForm::text; }
  /// Writes what is pending, because more may take long to come. False after an error, which has been reported.
  bool flush() { return out_.flush(); }
  /// `code`, unless the output has an error.
  int close(int code);

 private:
  FindingsForm form_;
  Output out_{"-"};
  std::string file_{};
  std::vector<json::SarifResult> all_{};  ///< of SARIF
};

/// Writes a log without results for a verb that has ended with this code before it wrote one; then what was reported is
/// in the log. For a call with --sarif, after `keep_reports`. Returns the code, unless the output has an error.
int end_of_log(int code);

}  // namespace sdma::tool
