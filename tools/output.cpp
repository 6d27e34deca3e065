// SPDX-License-Identifier: MIT
#include "output.hpp"

#include "interrupt.hpp"
#include "json/json.hpp"
#include "verb.hpp"

#include <unistd.h>
#include <cstdio>
#include <cstdlib>
#include <filesystem>

namespace sdma::tool {
namespace {

namespace fs = std::filesystem;

bool as_json = false, keeps = false;
std::vector<Diagnostic> kept;

bool coloured() {
  static const bool yes = [] {
    const char *none = std::getenv("NO_COLOR"), *term = std::getenv("TERM");
    return isatty(STDERR_FILENO) && !(none && *none) && term && std::string_view(term) != "dumb";
  }();
  return yes;
}

std::string paint(const Diagnostic& d, std::string s) {
  const std::string word(name(d.severity));
  // The severity follows the location and ": ", or is at the beginning.
  const auto at = d.where.empty() ? 0 : d.where.size() + 2;
  const auto length = word.size() + (d.rule.empty() ? 0 : d.rule.size() + 2);
  const char* colour = d.severity == Severity::error     ? "\033[1;31m"
                       : d.severity == Severity::warning ? "\033[1;35m"
                                                         : "\033[1;36m";
  s.insert(at + length, "\033[0m");
  s.insert(at, colour);
  return s;
}

bool same_file(const std::string& a, const std::string& b) {
  std::error_code none;
  if (fs::exists(a, none)) return fs::is_regular_file(a, none) && fs::equivalent(a, b, none);
  const auto whole = [&](const std::string& p) { return fs::weakly_canonical(fs::absolute(p, none), none); };
  return !fs::exists(b, none) && whole(a) == whole(b);
}

}  // namespace

std::string line_of(const Diagnostic& said) {
  auto d = said;
  if (d.where.empty() && !d.at) d.where = "sdma";  // an error of standard output has no place
  if (as_json) return json::line(json::of(d));
  auto s = to_string(d) + "\n";
  return coloured() ? paint(d, std::move(s)) : s;
}

void report(const Diagnostic& d) {
  if (keeps) kept.push_back(d);
  const auto s = line_of(d);
  // A failure to write to standard error cannot be reported.
  std::fwrite(s.data(), 1, s.size(), stderr);
}

void report(std::span<const Diagnostic> all) {
  for (const auto& d : all) report(d);
}

void report_as_json() { as_json = true; }
void keep_reports() { keeps = true; }
const std::vector<Diagnostic>& kept_reports() { return kept; }

Exit complain(const std::string& message, const std::string& hint) {
  report({.where = "sdma", .message = message, .hint = hint});
  return kUsage;
}

bool Output::succeeded(const Result<void, Diagnostic>& done) {
  if (done) return true;
  exit_code_ = reader_gone(done.error()) ? kPipe : kInput;
  text_.clear();
  if (exit_code_ != kPipe) report(done.error());
  return false;
}

bool Output::flush() {
  const Unbroken lines;
  if (exit_code_ != 0 || !succeeded(file_.write(text_))) return false;
  text_.clear();
  return true;
}

bool Output::close() {
  const Unbroken lines;
  if (!flush() || !succeeded(file_.close())) return false;
  if (path_ == "-") answered();
  if (file_.in_place())
    report(
        {.severity = Severity::note,
         .where = path_,
         .message = "was written in place: it belongs to another user, has an access list, or its folder is read-only",
         .hint = "if the program had been interrupted, half of the contents could have been lost"});
  return true;
}

int write_text(const std::string& path, std::string text) {
  Output out{path};
  out.text() = std::move(text);
  return out.close() ? kOk : out.exit_code();
}

bool reads_stdin_twice(const std::vector<std::string>& inputs) {
  if (std::count(inputs.begin(), inputs.end(), "-") < 2) return false;
  complain("- can be read only once");
  return true;
}

bool overwrites(const std::vector<Written>& written, const std::vector<std::string>& inputs, const char* what) {
  for (std::size_t i = 0; i < written.size(); ++i) {
    const auto& w = written[i];
    if (w.path.empty() || w.path == "-") continue;
    for (const auto& in : inputs)
      if (same_file(in == "-" ? "/dev/stdin" : in, w.path))
        return complain(w.option + " " + w.path + " is also " + what, "name another file"), true;
    for (std::size_t k = 0; k < i; ++k)
      if (!written[k].path.empty() && same_file(written[k].path, w.path))
        return complain(w.option + " " + w.path + " is also the file of " + written[k].option, "name another file"),
               true;
  }
  return false;
}

}  // namespace sdma::tool
