// SPDX-License-Identifier: MIT
// Every form of a log times every message: each fact comes out, with strangers around it, and no line becomes a ring.
#include "log_forms.hpp"

#include "doctor/kernel_log.hpp"
#include "dump/messages.hpp"
#include "sdma/dump/text.hpp"
#include "support/catch.hpp"

#include <cstdio>
#include <map>

using namespace sdma;
using namespace sdma::doctor;

namespace {

constexpr std::uint64_t kStart = 8123402117;

/// A line that has this message: its places hold what they may.
std::string example(std::string_view phrase) {
  std::string out;
  while (!phrase.empty()) {
    const auto open = phrase.find('{');
    out += phrase.substr(0, open);
    if (open == phrase.npos) break;
    const auto close = phrase.find('}', open);
    switch (phrase[open + 1]) {
      case '#': out += "5"; break;
      case '$': out += "0x1f"; break;
      case '*': out += "a b "; break;
      default: out += "gfx_0.0.0";
    }
    phrase.remove_prefix(close + 1);
  }
  return out;
}

logs::Records among_strangers(const std::vector<std::string>& lines) {
  logs::Records all{{kStart, "usb 3-2: new high-speed USB device number 5 using xhci_hcd"},
                    {kStart + 700, "audit: type=1400 audit(1795852811.101:77): apparmor=\"STATUS\" operation=\"load\""},
                    {kStart + 900, "kfd kfd: amdgpu: added device 1002:74a1"}};
  for (const auto& l : lines) all.push_back({all.back().us + 730, "amdgpu 0000:c1:00.0: amdgpu: " + l});
  all.push_back({all.back().us + 500, "mlx5_core 0000:9d:00.0 ens9f0np0: Link up"});
  all.push_back(
      {all.back().us + 500,
       "WARNING: CPU: 3 PID: 99 at kernel/sched/core.c:512 do_exit+0x1a2/0x2d0 RAX: 0000000000000000 RBX: 00000005"});
  return all;
}

const std::vector<std::string> kFault{"[mmhub0] no-retry page fault (src_id:0 ring:157 vmid:9 pasid:32779)",
                                      " for process mover pid 43117 thread mover pid 43117)",
                                      "  in page starting at address 0x00007e1234567000 from IH client 0x12 (VMC)",
                                      "  cookie node_id 4 fault from die AID0",
                                      "VM_L2_PROTECTION_FAULT_STATUS:0x00841B5B",
                                      "\t Faulty UTCL2 client ID: SDMA0 (0x2d)",
                                      "\t MORE_FAULTS: 0x1",
                                      "\t WALKER_ERROR: 0x0",
                                      "\t PERMISSION_FAULTS: 0x5",
                                      "\t MAPPING_ERROR: 0x0",
                                      "\t RW: 0x1"};

}  // namespace

TEST_CASE("a page fault in every form of a log: all of its members, and no ring") {
  for (const auto& form : logs::log_forms()) {
    const auto text = form.print(among_strangers(kFault));
    CAPTURE(form.name, text);
    const auto facts = facts_of(text, "log");
    CHECK(facts.is_log);
    REQUIRE(facts.faults.size() == 1);
    const auto& f = facts.faults[0];
    CHECK(f.page == GpuVa{0x7e1234567000});
    CHECK(f.device == "0000:c1:00.0");
    CHECK(f.process == 43117);
    CHECK(f.program == "mover");
    CHECK(f.hub == "mmhub0");
    CHECK(f.client == "SDMA0");
    CHECK(f.die == "AID0");
    CHECK(f.vmid == 9u);
    CHECK(f.pasid == 32779u);
    CHECK(f.status == 0x841b5bu);
    CHECK(f.write == true);
    CHECK(f.reports == 1);
    CHECK(f.seconds.has_value() == form.seconds);
    if (f.seconds) CHECK(*f.seconds == Approx(8123.403747).epsilon(1e-9));
    CHECK(facts.without_page == 0);
    const auto dump = read_text_dump(text, "log");
    REQUIRE_FALSE(dump);
    CHECK(dump.error().rule == kLogWithoutDump);
  }
}

TEST_CASE("every message in every form of a log") {
  std::map<std::string_view, std::size_t> right;  // of each form
  std::size_t messages = 0;
  for (const auto& m : detail::messages()) {
    if (m.what != detail::LogWord::event && m.what != detail::LogWord::timeout) continue;
    ++messages;
    const auto line = example(m.phrase);
    const auto found = detail::find_message(line);
    CAPTURE(m.phrase, line);
    REQUIRE(found);
    CHECK(found->message == &m);  // no row before it takes its lines
    CHECK_FALSE(m.means.empty());
    CHECK_FALSE(m.versions.empty());
    for (const auto& form : logs::log_forms()) {
      const auto text = form.print(among_strangers({line}));
      const auto facts = facts_of(text, "log");
      const bool good = facts.is_log && facts.faults.empty() && facts.events.size() == 1 &&
                        facts.events[0].means == m.means && facts.events[0].seconds.has_value() == form.seconds &&
                        !read_text_dump(text, "log");
      right[form.name] += good;
      CAPTURE(form.name, text, facts.events.size(), facts.what);
      CHECK(good);
    }
  }
  std::printf("%-40s facts of %zu messages\n", "form", messages);
  for (const auto& form : logs::log_forms()) std::printf("%-40s %zu\n", form.name, right[form.name]);
}

TEST_CASE("a log without a known line is a log of so many lines, and no error") {
  for (const auto& form : logs::log_forms()) {
    if (std::string_view(form.name) == "dmesg -t") continue;
    const auto text =
        form.print({{kStart, "usb 3-2: new high-speed USB device number 5 using xhci_hcd"},
                    {kStart + 700, "EXT4-fs (nvme1n1p1): mounted filesystem with ordered data mode. Quota mode: none."},
                    {kStart + 900, "mlx5_core 0000:9d:00.0 ens9f0np0: Link up"}});
    CAPTURE(form.name, text);
    const auto facts = facts_of(text, "log");
    CHECK(facts.is_log);
    CHECK_FALSE(facts.known);
    CHECK(facts.what.find("log of ") != std::string::npos);
    if (form.seconds) CHECK(facts.what.ends_with("from 8123.402 to 8123.403"));
  }
}
