// SPDX-License-Identifier: MIT
#include "contact/fields.hpp"

#include "sdma/packets/registry.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace sdma::tool::contact {
namespace {

/// Fields whose effect the bytes of a trial show.
struct Effect {
  std::string_view field, trial;
};
constexpr Effect kEffects[] = {{"copy_struct.stride", "copy_struct"}};

bool inferred(const FieldInfo& f) {
  return f.generations.contains(kDefaultGeneration) && f.doc.find("[inferred]") != f.doc.npos;
}

/// The worst of what was seen of a trial, on all sides.
std::string_view seen(const json::Json& works, const std::string& trial) {
  std::string_view out = "not tried";
  for (const auto& j : works) {
    const auto id = j.value("id", ""), state = j.value("state", "");
    if (id.rfind(trial + ", ", 0) != 0) continue;
    if (state == "failed" || state == "hung") return "wrong";
    if (state == "passed") out = "passed";
  }
  return out;
}

}  // namespace

std::vector<std::string_view> with_policies() {
  return {"copy_linear", "write", "fill", "fence", "atomic", "poll_mem", "cond_exec", "timestamp"};
}

std::string with_policy(std::string_view packet) { return fmt::format("{} with a cache policy", packet); }

json::Json inferred_fields(const json::Json& works) {
  const auto policies = with_policies();
  auto out = json::Json::array();
  for (const auto& p : kPackets)
    for (const auto& f : p.fields) {
      if (p.foreign || !inferred(f)) continue;
      const auto name = fmt::format("{}.{}", p.name, f.name);
      const auto* const effect =
          std::find_if(std::begin(kEffects), std::end(kEffects), [&](const Effect& e) { return e.field == name; });
      const bool shown = effect != std::end(kEffects);
      const bool policy = f.name.find("policy") != f.name.npos &&
                          std::find(policies.begin(), policies.end(), p.name) != policies.end() &&
                          name != "timestamp.llc_policy";  // its trial has a value in the other one
      const auto trial = shown ? std::string(effect->trial) : policy ? with_policy(p.name) : std::string();
      const auto state = trial.empty() ? "not tried" : seen(works, trial);
      out.push_back({{"field", name}, {"state", state != "passed" ? state : shown ? "confirmed" : "accepted"}});
      if (!trial.empty()) out.back()["trial"] = trial;
    }
  return out;
}

}  // namespace sdma::tool::contact
