// SPDX-License-Identifier: MIT
#include "findings.hpp"

#include "json/check.hpp"
#include "verb.hpp"

namespace sdma::tool {
namespace {

bool has_log = false;  ///< a log in SARIF was written, or could not be

}  // namespace

void Findings::add(const Diagnostic& d, const std::function<json::Json()>& as_json) {
  switch (form_) {
    case FindingsForm::text: return report(d);
    case FindingsForm::json: out_.text() += json::line(as_json ? as_json() : json::of(d)); return;
    case FindingsForm::sarif: all_.push_back({d, file_});
  }
}

void Findings::unread(const Diagnostic& d) {
  if (form_ == FindingsForm::sarif) return all_.push_back({d, file_});
  report(d);
  answer([&] { return json::unread(file_, d); });
}

void Findings::unmet(const Diagnostic& d) {
  if (form_ == FindingsForm::sarif) all_.push_back({d, file_});
  else if (is_text()) report(d);
}

void Findings::answer(const std::function<json::Json()>& made) {
  if (form_ == FindingsForm::json) out_.text() += json::line(made());
}

void Findings::say(const std::string& line) {
  if (is_text()) out_.text() += line + "\n";
}

int Findings::close(int code) {
  if (form_ == FindingsForm::sarif) {
    has_log = true;
    out_.text() += json::document(json::sarif({.results = all_, .messages = kept_reports(), .exit_code = code}));
  }
  return out_.close() ? code : out_.exit_code();
}

int end_of_log(int code) {
  if (code == kOk || has_log) return code;
  Findings none{FindingsForm::sarif};
  return none.close(code);
}

}  // namespace sdma::tool
