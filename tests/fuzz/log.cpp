// SPDX-License-Identifier: MIT
// Any text is a kernel's log: no more faults are reported than it has lines, and what is evidence quotes the text.
#include "doctor/kernel_log.hpp"
#include "sdma/doctor/read.hpp"

#include <algorithm>
#include <cstdlib>

using namespace sdma;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text{reinterpret_cast<const char*>(data), size};
  const auto all = doctor::page_faults(text);
  const auto lines = static_cast<std::size_t>(std::count(text.begin(), text.end(), '\n') +
                                              std::count(text.begin(), text.end(), '\r')) +
                     1;
  std::size_t reports = 0;
  for (const auto& f : all) reports += f.reports;
  for (const auto& e : doctor::logged_events(text)) {
    if (e.said.empty() || e.means.empty()) std::abort();
    reports += e.reports;
  }
  if (reports > lines) std::abort();
  if (reports != 0 && !doctor::is_kernel_log(text)) std::abort();
  doctor::Snapshot s;
  doctor::add_kernel_log(s, text, "fuzz");
  if (s.page_faults.size() > all.size()) std::abort();
  return 0;
}
