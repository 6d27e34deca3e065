// SPDX-License-Identifier: MIT
#include "findings.hpp"

namespace sdma::tool {

void Findings::add(const Diagnostic& d, const std::function<json::Json()>& as_json) {
  switch (form_) {
    case FindingsForm::text: return report(d);
    case FindingsForm::json: out_.text() += json::line(as_json ? as_json() : json::of(d)); return;
    case FindingsForm::sarif: all_.push_back(d);
  }
}

void Findings::unread(const Diagnostic& d) {
  if (form_ == FindingsForm::sarif) all_.push_back(d);
  else report(d);
}

void Findings::answer(const std::function<json::Json()>& made) {
  if (form_ == FindingsForm::json) out_.text() += json::line(made());
}

void Findings::say(const std::string& line) {
  if (is_text()) out_.text() += line + "\n";
}

int Findings::close(int code) {
  if (form_ == FindingsForm::sarif) out_.text() += json::document(json::sarif(all_));
  return out_.close() ? code : out_.exit_code();
}

}  // namespace sdma::tool
