// SPDX-License-Identifier: MIT
// Any text is a kernel's log: each fault's device is in the text, and a cut log has no more faults than the whole.
#include "sdma/doctor/kernel_log.hpp"

#include <cstdlib>

using namespace sdma;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text{reinterpret_cast<const char*>(data), size};
  const auto all = doctor::page_faults(text);
  for (const auto& f : all)
    if (text.find(f.device) == text.npos || text.find(f.client) == text.npos) std::abort();
  if (doctor::page_faults(text.substr(0, size / 2)).size() > all.size()) std::abort();
  doctor::Snapshot s;
  const auto done = doctor::add_kernel_log(s, text, "fuzz");
  if (!done && (done.error().message.empty() || done.error().where != "fuzz")) std::abort();
  if (s.page_faults.size() > all.size()) std::abort();
  return 0;
}
