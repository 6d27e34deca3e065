// SPDX-License-Identifier: MIT
// Every form of a log times every message: each fact comes out, with strangers around it, and no line becomes a ring.
#include "log_forms.hpp"
#include "example.hpp"

#include "doctor/kernel_log.hpp"
#include "dump/log.hpp"
#include "dump/messages.hpp"
#include "sdma/dump/text.hpp"
#include "support/catch.hpp"
#include "support/sanitizer.hpp"

#include <algorithm>
#include <cstdio>
#include <map>

using namespace sdma;
using namespace sdma::doctor;

namespace {

constexpr std::uint64_t kStart = 8123402117;

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

TEST_CASE("every message says what it means, and what to do") {
  for (const auto& m : detail::messages()) {
    CAPTURE(m.phrase);
    CHECK(m.means.ends_with('.'));
    CHECK_FALSE(m.to_do.empty());
    CHECK_FALSE(m.to_do.ends_with('.'));
    CHECK_FALSE(m.versions.empty());
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
    std::size_t number = messages;
    for (const auto& form : logs::log_forms()) {
      // With a sanitizer, each message in some forms, and each form with some messages.
      if (number++ % 8 != 0 && sdma::test::address_sanitizer()) continue;
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

TEST_CASE("a log that comes in parts says the same, wherever they end") {
  for (const auto& form : logs::log_forms()) {
    const auto text = form.print(among_strangers(kFault));
    const auto whole = detail::read_log(text);
    for (const std::size_t part : {17u, 64u, 333u, 4096u}) {
      CAPTURE(form.name, text, part);
      detail::LogReader reader;
      for (std::size_t at = 0; at < text.size(); at += part) reader.add(std::string_view(text).substr(at, part));
      const auto log = reader.finish();
      CHECK(describe(log) == describe(whole));
      CHECK(log.has_dump == whole.has_dump);
      // A terminal's width is not known before two of its lines have come.
      if (std::string_view(form.name) == "cut by a terminal" || std::string_view(form.name) == "wrapped by mail")
        continue;
      REQUIRE(log.lines.size() == whole.lines.size());
      for (std::size_t i = 0; i < log.lines.size(); ++i) {
        CHECK(log.lines[i].said() == whole.lines[i].said());
        CHECK(log.lines[i].first == whole.lines[i].first);
        CHECK(log.lines[i].last == whole.lines[i].last);
        CHECK(log.lines[i].seconds == whole.lines[i].seconds);
        CHECK(log.lines[i].date == whole.lines[i].date);
        CHECK(log.lines[i].device == whole.lines[i].device);
      }
    }
  }
}

TEST_CASE("of a long log, only what it says is kept; what has come is known before its end") {
  detail::LogReader reader;
  std::size_t most = 0;
  const auto add = [&](const std::string& text) {
    reader.add(text);
    most = std::max(most, reader.kept());
  };
  std::string strangers;
  for (std::size_t i = 0; i < 1000; ++i) strangers += fmt::format("[  812.{:06}] usb 3-2: new device {}\n", i, i);
  for (int i = 0; i < 100; ++i) add(strangers);
  std::vector<detail::LogSource> sources;
  CHECK(reader.so_far(sources).empty());
  add("[  813.000001] amdgpu 0000:c1:00.0: amdgpu: GPU reset begin!\n");
  REQUIRE(reader.so_far(sources).size() == 1);
  CHECK(reader.so_far(sources)[0].first == 100001);
  CHECK(sources.size() == 1);
  for (int i = 0; i < 100; ++i) add(strangers);
  CHECK(most < strangers.size());
  const auto log = reader.finish();
  CHECK(log.records == 200001);
  CHECK(log.lines.size() == 1);
  CHECK_FALSE(log.has_dump);
}

TEST_CASE("a dump beside a log is read, however long the log is before it") {
  std::string text;
  for (int i = 0; i < 60000; ++i) text += fmt::format("[  812.{:06}] usb 3-2: new device {}\n", i, i);
  const std::string rows = "0x0040: 00000005 00001008\n0x0048: 00007f00 00000001\n";
  for (const bool whole : {true, false}) {
    detail::LogReader reader;
    const auto all = text + rows + text;
    const std::size_t part = whole ? all.size() : 100000;
    for (std::size_t at = 0; at < all.size(); at += part) reader.add(std::string_view(all).substr(at, part));
    const auto log = reader.finish();
    CHECK(log.has_dump);
    CHECK(log.rest == std::string(60000, '\n') + rows);
  }
}

TEST_CASE("a list of dwords beside a log is a dump, and one row of bytes is none") {
  const std::string log = "[  812.400126] amdgpu 0000:c1:00.0: amdgpu: GPU reset begin!\n";
  const auto dump = read_text_dump(log + "0x00000005 0x00001008 0x00007f00 0x00000001\n", "log");
  REQUIRE(dump);
  CHECK(dump->dumps.at(0).dwords == std::vector<std::uint32_t>{5, 0x1008, 0x7f00, 1});
  CHECK(facts_of(log + "0x00000005 0x00001008 0x00007f00 0x00000001\n", "log").events.size() == 1);
  CHECK_FALSE(read_text_dump(log + "48 8b 05 11 22 33 44 55 66\n", "log"));
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
