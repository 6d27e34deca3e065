// SPDX-License-Identifier: MIT
#pragma once
// Schedules out of texts and files, on a software node: what the tests of binding and running share.
#include "sdma/device/soft.hpp"
#include "sdma/schedule/run.hpp"
#include "sdma/schedule/text.hpp"
#include "support/catch.hpp"

#include <chrono>
#include <fstream>
#include <sstream>
#include <string>

namespace sdma::test {

inline std::string read(const std::string& path) {
  std::ifstream f(SDMA_SOURCE_ROOT "/" + path);
  REQUIRE(f);
  std::stringstream s;
  s << f.rdbuf();
  return s.str();
}

inline Schedule parse(const std::string& text, const ParseOptions& o = {}) {
  auto s = parse_schedule(text, "t", o);
  if (!s) {
    for (const auto& e : s.error()) UNSCOPED_INFO(to_string(e));
    FAIL(text);
  }
  return *std::move(s);
}

inline std::unique_ptr<SoftDevice> node(std::uint32_t gpus = 8, Ordering o = Ordering::strict, std::uint64_t seed = 0) {
  auto d = SoftDevice::open({.gpus = gpus, .ordering = o, .seed = seed});
  if (!d) FAIL(to_string(d.error()));
  return std::move(*d);
}

inline Bound link(const Schedule& s, Device& d, const BindOptions& o = {}) {
  auto b = bind(s, d, o);
  if (!b) {
    for (const auto& e : b.error()) UNSCOPED_INFO(to_string(e));
    FAIL("does not bind");
  }
  return std::move(*b);
}

/// All diagnostics, one a line: "where: message".
inline std::string lines(const std::vector<Diagnostic>& all) {
  std::string out;
  for (const auto& d : all) out += (out.empty() ? "" : "\n") + d.where + ": " + d.message;
  return out;
}

/// Does `holds` say yes to one of these time limits? A busy machine may not even begin, within the first, what is to be
/// seen at its end; so then there is a longer one.
template <class F> bool with_patience(std::chrono::milliseconds first, F holds) {
  for (auto limit = first; limit < std::chrono::minutes(2); limit *= 4)
    if (holds(limit)) return true;
  return false;
}

}  // namespace sdma::test
