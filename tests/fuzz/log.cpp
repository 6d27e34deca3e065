// SPDX-License-Identifier: MIT
// Any text may be a log: what it says has words and a meaning, and only a log says something.
#include "doctor/kernel_log.hpp"
#include "sdma/doctor/read.hpp"

#include <cstdlib>

using namespace sdma;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text{reinterpret_cast<const char*>(data), size};
  const auto facts = doctor::facts_of(text, "fuzz");
  for (const auto& e : facts.events)
    if (e.said.empty() || e.means.empty() || e.reports == 0) std::abort();
  const bool any = !facts.faults.empty() || !facts.events.empty() || facts.without_page != 0;
  if (any && !facts.is_log) std::abort();
  if (facts.is_log != doctor::is_kernel_log(text)) std::abort();
  doctor::Snapshot s;
  doctor::add_kernel_log(s, text, "fuzz");
  if (s.page_faults.size() != facts.faults.size()) std::abort();
  return 0;
}
