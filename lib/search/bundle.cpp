// SPDX-License-Identifier: MIT
#include "sdma/search/bundle.hpp"

#include "../core/json.hpp"
#include "../core/words.hpp"
#include "sdma/core/version.hpp"
#include "sdma/schedule/text.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

namespace sdma { inline namespace v0_3 {
namespace {

using detail::Json;
constexpr const char* kKey = "sdma_bundle";
constexpr std::uint64_t kForm = 1;
constexpr const char* kExample = "sdma simulate --bundle=OUT.json FILE writes one";
constexpr double kRounded = 1e-9;  ///< times that differ by less, relatively, differ by rounding
struct Predicted {
  const char* key;
  double (*of)(const Simulation&);
};
constexpr Predicted kPredicted[] = {
    {"ns", [](const Simulation& t) { return t.ns; }},
    {"total_ns", [](const Simulation& t) { return t.total_ns; }},
    {"packets", [](const Simulation& t) { return static_cast<double>(t.packets); }},
    {"bytes", [](const Simulation& t) { return static_cast<double>(t.bytes); }},
    {"doorbells", [](const Simulation& t) { return static_cast<double>(t.doorbells); }},
};

Claims claims_of(const Schedule& s, const MachineDescription& m, std::vector<Diagnostic>& errors) {
  Claims out;
  const auto report = check(s, {.topology = &m.topology});
  out.verdict = name(report.verdict());
  out.assumes = report.assumes;
  for (const auto& f : report.findings) out.findings.push_back(f.diagnostic.rule);
  const auto t = simulate(s, m);
  if (t)
    for (const auto& p : kPredicted) out.prediction.emplace_back(p.key, p.of(*t));
  else errors = t.error();
  return out;
}

class Reading {
 public:
  Reading(std::string_view text, const std::string& file) : in_(file), text_(text) {}

  Result<Bundle, std::vector<Diagnostic>> run() {
    Bundle b;
    const auto j = in_.parse(text_, kExample);
    if (!in_.failed() && in_.object(j, "", {kKey, "version", "file", "schedule", "machine", "verdict", "prediction"})) {
      std::uint64_t form = 0;
      in_.number(j, kKey, "", form);
      if (!in_.failed() && form != kForm)
        in_.complain("", fmt::format("this is a bundle of form {}, and this version reads form {}", form, kForm),
                     kExample);
      in_.string(j, "version", "", b.version);
      in_.string(j, "file", "", b.file);
      in_.each(j, "schedule", [&](const Json& line, const std::string& where) { take(line, where, lines_); });
      claims(part(j, "verdict"), part(j, "prediction"), b.claims);
    }
    const auto machine = in_.failed() ? Json() : part(j, "machine");
    if (in_.failed()) return std::vector{in_.take()};
    auto m = machine_from_json(detail::json_text(machine, 2), in_.file() + ": machine");
    if (!m) return std::vector{std::move(m.error())};
    b.machine = *std::move(m);
    std::string text;
    for (const auto& line : lines_) text += line + "\n";
    auto s = parse_schedule(text, in_.file() + ": schedule");
    if (!s) return std::move(s.error());
    b.schedule = *std::move(s);
    return b;
  }

 private:
  void take(const Json& word, const std::string& where, std::vector<std::string>& to) {
    if (word.is_string()) to.push_back(word.get<std::string>());
    else in_.complain(where, "this is not a string", kExample);
  }
  Json part(const Json& j, const char* key) {
    const auto found = j.find(key);
    if (found != j.end() && found->is_object()) return *found;
    in_.complain("", fmt::format("\"{}\" is not there, or is not an object", key), kExample);
    return Json::object();
  }
  void claims(const Json& verdict, const Json& prediction, Claims& to) {
    if (in_.failed() || !in_.object(verdict, "verdict", {"verdict", "assumes", "findings"})) return;
    in_.string(verdict, "verdict", "verdict", to.verdict);
    in_.each(verdict, "assumes", [&](const Json& x, const std::string& where) { take(x, where, to.assumes); });
    in_.each(verdict, "findings", [&](const Json& x, const std::string& where) { take(x, where, to.findings); });
    if (!in_.object(prediction, "prediction", {"ns", "total_ns", "packets", "bytes", "doorbells"})) return;
    for (const auto& [key, of] : kPredicted) {
      if (prediction.find(key) == prediction.end())
        return in_.complain("prediction", fmt::format("\"{}\" is missing", key), kExample);
      in_.number(prediction, key, "prediction", to.prediction.emplace_back(key, 0).second);
    }
  }

  detail::JsonReader in_;
  const std::string_view text_;
  std::vector<std::string> lines_{};
};

}  // namespace

bool is_bundle(std::string_view text) noexcept {
  constexpr std::string_view kBlank = " \t\r\n";
  const auto brace = text.find_first_not_of(kBlank);
  if (brace == text.npos || text[brace] != '{') return false;
  const auto key = text.find_first_not_of(kBlank, brace + 1);
  return key != text.npos && text.substr(key).starts_with("\"sdma_bundle\"");
}

Result<std::string, std::vector<Diagnostic>> bundle_text(const Schedule& s, const std::string& file,
                                                         const MachineDescription& m) {
  std::vector<Diagnostic> errors;
  const auto c = claims_of(s, m, errors);
  if (c.prediction.empty()) return errors;
  Json j{{kKey, kForm}, {"version", version().string}, {"file", file}};
  auto& lines = j["schedule"] = Json::array();
  const auto text = to_text(s);
  for (std::string_view rest = text; !rest.empty();) lines.push_back(std::string(detail::take_line(rest)));
  j["verdict"] = {{"verdict", c.verdict}, {"assumes", c.assumes}, {"findings", c.findings}};
  for (const auto& [key, value] : c.prediction) j["prediction"][key] = value;
  auto machine = detail::parse_json(to_json(m));
  if (machine) j["machine"] = *std::move(machine);
  return detail::json_text(j, 2) + "\n";
}

Result<Bundle, std::vector<Diagnostic>> read_bundle(std::string_view text, const std::string& file) {
  return Reading(text, file).run();
}

Repeated repeat_bundle(const Bundle& b) {
  std::vector<Diagnostic> errors;
  Repeated out{.claims = claims_of(b.schedule, b.machine, errors)};
  const auto differ = [&](const char* what, const auto& was, const auto& is) {
    if (was != is) out.differences.push_back(fmt::format("{} was {}, and is {}", what, was, is));
  };
  differ("verdict", b.claims.verdict, out.claims.verdict);
  differ("verdict: what it assumes", b.claims.assumes, out.claims.assumes);
  differ("verdict: findings", b.claims.findings, out.claims.findings);
  for (std::size_t i = 0; i < b.claims.prediction.size(); ++i) {
    const auto& [key, was] = b.claims.prediction[i];
    if (out.claims.prediction.empty()) {
      out.differences.push_back("prediction: it cannot be simulated: " + to_string(errors.front()));
      break;
    }
    const auto is = out.claims.prediction[i].second;
    // Written so that no number, as NaN, is equal to another one.
    if (!(std::abs(was - is) <= kRounded * std::max(std::abs(was), std::abs(is))))
      out.differences.push_back(fmt::format("prediction: {} was {:.10g}, and is {:.10g}", key, was, is));
  }
  return out;
}

}}  // namespace sdma::v0_3
