// SPDX-License-Identifier: MIT
#include "hwmon.hpp"

#include <fmt/format.h>

#include <filesystem>
#include <fstream>
#include <optional>

namespace collectives::perf {

using namespace sdma;

namespace {

namespace fs = std::filesystem;

constexpr double kMicro = 1e-6;

Result<double, Diagnostic> number_in(const fs::path& path) {
  std::ifstream file(path);
  double v = 0;
  if (file >> v) return v;
  return Diagnostic{.where = path.string(), .message = "cannot be read", .hint = "see whether the driver still works"};
}

/// energy1_input counts by itself.
class EnergyFile final : public EnergyCounter {
 public:
  explicit EnergyFile(fs::path p) : path_(std::move(p)) {}
  Result<double, Diagnostic> joules() override {
    const auto v = number_in(path_);
    if (!v) return v.error();
    return *v * kMicro;
  }

 private:
  fs::path path_;
};

/// Sums power, each reading for the time since the one before.
class Power final : public EnergyCounter {
 public:
  explicit Power(fs::path p) : path_(std::move(p)) {}
  Result<double, Diagnostic> joules() override {
    const auto v = number_in(path_);
    if (!v) return v.error();
    const auto now = std::chrono::steady_clock::now();
    joules_ += *v * kMicro * std::chrono::duration<double>(now - last_).count();
    last_ = now;
    return joules_;
  }

 private:
  fs::path path_;
  double joules_ = 0;
  std::chrono::steady_clock::time_point last_ = std::chrono::steady_clock::now();
};

std::unique_ptr<EnergyCounter> counter_in(const fs::path& monitor) {
  std::error_code error;
  if (const auto p = monitor / "energy1_input"; fs::exists(p, error)) return std::make_unique<EnergyFile>(p);
  for (const auto* name : {"power1_average", "power1_input"})
    if (const auto p = monitor / name; fs::exists(p, error)) return std::make_unique<Power>(p);
  return nullptr;
}

}  // namespace

Result<EnergyCounters, Diagnostic> hwmon_counters(const std::vector<std::string>& pci, const std::string& root) {
  EnergyCounters all;
  for (const auto& p : pci) {
    const auto folder = fs::path(root) / p / "hwmon";
    std::error_code error;
    std::unique_ptr<EnergyCounter> counter;
    for (const auto& monitor : fs::directory_iterator(folder, error))
      if (!counter) counter = counter_in(monitor.path());
    if (!counter)
      return Diagnostic{.where = "--energy",
                        .message = fmt::format("{}/*: none of energy1_input, power1_average and power1_input is there",
                                               folder.string()),
                        .hint = "the amdgpu driver offers them; a container may hide them"};
    if (auto j = counter->joules(); !j) return std::move(j.error());
    all.push_back(std::move(counter));
  }
  return all;
}

}  // namespace collectives::perf
