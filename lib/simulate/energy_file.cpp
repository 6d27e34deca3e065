// SPDX-License-Identifier: MIT
// Reads and writes the "energy" of a machine's file.
#include "energy_file.hpp"

#include "../core/nearest.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace sdma { inline namespace v0_3 { namespace detail {
namespace {

constexpr std::string_view kLevels[] = {"board", "device"};
constexpr const char* kForm =
    R"({"value": 1, "low": 0.5, "high": 2, "level": "board", "source": "..."}; level: board or device)";

/// Of energy, not of clocks.
bool has_level(Power p) { return unit(p) == "W" || unit(p) == "pJ"; }

class EnergyReader {
 public:
  EnergyReader(JsonReader& in, EnergyTerms& to) : in_(in), to_(to) {}

  void run(const Json& j) {
    if (!j.is_object()) return in_.complain("energy", "this is not a JSON object");
    for (const auto& [key, value] : j.items()) {
      const auto p = named(key, "energy");
      if (in_.failed()) return;
      one("energy: " + key, p, value, to_[static_cast<std::size_t>(p)].emplace());
      if (in_.failed()) return;
    }
    for (std::size_t i = 0; i < kPowers; ++i)
      if (to_[i]) once(static_cast<Power>(i));
  }

 private:
  Power named(const std::string& key, const std::string& where) {
    const auto i = power_named(key);
    if (i < kPowers) return static_cast<Power>(i);
    Nearest n{key};
    for (std::size_t k = 0; k < kPowers; ++k) n.offer(name(static_cast<Power>(k)));
    in_.complain(where, "\"" + key + "\" is not a term of the energy",
                 meant_hint(n, "sdma simulate --show-machine lists them"));
    return {};
  }

  void one(const std::string& where, Power p, const Json& j, EnergyTerm& to) {
    if (!j.is_object()) return in_.complain(where, "this is not a JSON object", kForm);
    if (!in_.object(j, where, {"value", "low", "high", "level", "includes", "source"})) return;
    for (const auto* key : {"value", "low", "high"})
      if (!j.contains(key)) return in_.complain(where, fmt::format("\"{}\" is missing", key), kForm);
    in_.number(j, "value", where, to.value.value);
    in_.number(j, "low", where, to.value.low);
    in_.number(j, "high", where, to.value.high);
    in_.string(j, "source", where, to.source);
    if (to.source.empty()) return in_.complain(where, "\"source\" is missing or empty", "say where the number is from");
    for (const auto v : {to.value.value, to.value.low, to.value.high})
      if (const auto why = refuse(p, v); !why.empty()) return in_.complain(where, fmt::format("{} {}", v, why));
    if (!(to.value.low <= to.value.value && to.value.value <= to.value.high))
      return in_.complain(where, "\"value\" is not from \"low\" to \"high\"");
    std::string level;
    in_.string(j, "level", where, level);
    const auto* const at = std::find(std::begin(kLevels), std::end(kLevels), level);
    if (at == std::end(kLevels) && (has_level(p) || !level.empty()))
      return in_.complain(where, "\"level\" is missing, or is neither board nor device", kForm);
    if (has_level(p)) to.level = static_cast<EnergyTerm::Level>(at - kLevels);
    if (!j.contains("includes")) return;
    for (const auto& other : in_.array(j, "includes", where))
      to.includes.push_back(named(other.is_string() ? other.get<std::string>() : json_text(other), where));
  }

  /// What a term includes has no term of its own, and is included once: else its joules would count twice.
  void once(Power p) {
    for (const auto i : to_[static_cast<std::size_t>(p)]->includes) {
      std::size_t times = 0;
      for (const auto& t : to_)
        if (t) times += static_cast<std::size_t>(std::count(t->includes.begin(), t->includes.end(), i));
      if (times > 1 || to_[static_cast<std::size_t>(i)])
        return in_.complain("energy: " + std::string(name(p)),
                            fmt::format("includes {}, which is there a second time", name(i)),
                            "leave it out: its joules would count twice");
    }
  }

  JsonReader& in_;
  EnergyTerms& to_;
};

}  // namespace

std::string refuse(Power p, double v) {
  if (!std::isfinite(v) || v < 0) return "is negative";
  if (unit(p) == "MHz" && v <= 0) return "is not above zero";
  return v > 1e9 ? "is more than 1e9" : "";
}

bool included(Power p, const EnergyTerms& all) {
  return std::any_of(all.begin(), all.end(), [&](const auto& t) {
    return t && std::find(t->includes.begin(), t->includes.end(), p) != t->includes.end();
  });
}

void read_energy(JsonReader& in, const Json& j, EnergyTerms& to) { EnergyReader{in, to}.run(j); }

std::string energy_json(const EnergyTerms& all) {
  std::string out;
  for (std::size_t i = 0; i < kPowers; ++i) {
    if (!all[i]) continue;
    const auto p = static_cast<Power>(i);
    const auto& t = *all[i];
    std::vector<std::string> others;
    for (const auto o : t.includes) others.push_back(json_string(name(o)));
    constexpr std::size_t kWidth = 23;
    out += fmt::format(
        "{}\n    {:<{}}{{\"value\": {}, \"low\": {}, \"high\": {}, {}{}\"source\": {}}}", out.empty() ? "" : ",",
        fmt::format("\"{}\":", name(p)), kWidth, t.value.value, t.value.low, t.value.high,
        has_level(p) ? fmt::format("\"level\": \"{}\", ", kLevels[static_cast<std::size_t>(t.level)]) : "",
        others.empty() ? "" : fmt::format("\"includes\": [{}], ", fmt::join(others, ", ")), json_string(t.source));
  }
  return out.empty() ? "" : ",\n  \"energy\": {" + out + "\n  }";
}

std::string energy_table(const EnergyTerms& all) {
  std::string out = fmt::format("\n{:<29} {:>8} {:>8} {:>8} {:<9} {:<7} {}\n", "energy", "value", "at least", "at most",
                                "unit", "level", "source");
  std::vector<std::string_view> absent;
  for (std::size_t i = 0; i < kPowers; ++i) {
    const auto p = static_cast<Power>(i);
    if (!all[i]) {
      absent.push_back(name(p));
      continue;
    }
    const auto& t = *all[i];
    out += fmt::format("{:<29} {:>8} {:>8} {:>8} {:<9} {:<7} {}", name(p), t.value.value, t.value.low, t.value.high,
                       unit(p), has_level(p) ? kLevels[static_cast<std::size_t>(t.level)] : "", t.source);
    std::vector<std::string_view> others;
    for (const auto o : t.includes) others.push_back(name(o));
    out += others.empty() ? "\n" : fmt::format("; includes {}\n", fmt::join(others, ", "));
  }
  return out + (absent.empty() ? "" : fmt::format("not known: {}\n", fmt::join(absent, ", ")));
}

}}}  // namespace sdma::v0_3::detail
