// SPDX-License-Identifier: MIT
// Page faults in logs: whose they are, what joins their lines, and what a diagnosis makes of them. log_forms.cpp has
// the forms of logs, and the messages.
#include "doctor/kernel_log.hpp"
#include "sdma/doctor/read.hpp"

#include "sdma/doctor/diagnose.hpp"
#include "sdma/dump/text.hpp"
#include "sdma/packets/copy.hpp"
#include "support/catch.hpp"

#include <fmt/format.h>

using namespace sdma;
using namespace sdma::doctor;

namespace {

constexpr std::string_view kLines[] = {
    "amdgpu 0000:c1:00.0: amdgpu: [mmhub0] no-retry page fault (src_id:0 ring:157 vmid:8 pasid:32771)",
    "amdgpu 0000:c1:00.0: amdgpu:  Process my trainer pid 4711 thread my trainer pid 4720",
    "amdgpu 0000:c1:00.0: amdgpu:   in page starting at address 0x00007f0901400000 from IH client 0x12 (VMC)",
    "amdgpu 0000:c1:00.0: amdgpu:   cookie node_id 0 fault from die AID0.XCD0",
    "amdgpu 0000:c1:00.0: amdgpu: VM_L2_PROTECTION_FAULT_STATUS:0x00841051",
    "amdgpu 0000:c1:00.0: amdgpu: \t Faulty UTCL2 client ID: SDMA0 (0x8)",
    "amdgpu 0000:c1:00.0: amdgpu: \t RW: 0x1"};
constexpr GpuVa kPage{0x7f0901400000};

std::vector<PageFault> page_faults(std::string_view log) { return facts_of(log, "log").faults; }

std::string text(std::string_view prefix) {
  std::string all = "something else\n";
  for (const auto line : kLines) all.append(prefix).append(line).append("\n");
  return all;
}

/// A queue that stands at a copy from `src`.
Snapshot stuck_at_copy(std::initializer_list<GpuVa> sources) {
  Snapshot s;
  for (const auto src : sources) {
    QueueSnapshot q{.name = "q" + std::to_string(s.queues.size())};
    const CopyLinear copy{.src = src, .dst = GpuVa{0x7f0000000000}, .bytes = 8192};
    q.ring.resize(64);
    encode_to(copy, q.ring.data());
    q.rptr = {0, Source::dump};
    q.wptr = {length(copy) * 4, Source::dump};
    s.queues.push_back(std::move(q));
  }
  return s;
}

}  // namespace

TEST_CASE("a page fault: process, page, GPU, unit and time") {
  struct Form {
    const char* prefix;
    std::optional<double> seconds;
  };
  for (const auto& [prefix, seconds] :
       {Form{"[  812.400123] ", 812.400123}, Form{"<3>[    5.000001] ", 5.000001},
        Form{"3,1234,812400123,-;", 812.400123}, Form{"", {}}, Form{"Nov 22 10:00:01 node7 kernel: ", {}},
        Form{"[Sun Nov 22 10:00:01 2026] ", {}}}) {
    CAPTURE(prefix);
    const auto all = page_faults(text(prefix));
    REQUIRE(all.size() == 1);
    const auto& f = all[0];
    CHECK(f.device == "0000:c1:00.0");
    CHECK(f.process == 4711);
    CHECK(f.program == "my trainer");
    CHECK(f.page == kPage);
    CHECK(f.client == "SDMA0");
    REQUIRE(f.seconds.has_value() == seconds.has_value());
    if (seconds) CHECK(*f.seconds == Approx(*seconds).epsilon(1e-9));
  }
}

TEST_CASE("older drivers name the process in the first line") {
  const auto all = page_faults(
      "amdgpu 0000:03:00.0: [gfxhub0] retry page fault (src_id:0 ring:24 vmid:3 pasid:32770, for process a b pid 12 "
      "thread a b pid 12)\n"
      "amdgpu 0000:03:00.0:   in page starting at address 0x0000000000001000 from client 27\n");
  REQUIRE(all.size() == 1);
  CHECK(all[0].process == 12);
  CHECK(all[0].program == "a b");
  CHECK(all[0].page == GpuVa{0x1000});
}

TEST_CASE("the lines of two GPUs may be mixed, and a second fault begins anew") {
  const auto line = [](int gpu, const std::string& rest) {
    return "amdgpu 0000:0" + std::to_string(gpu) + ":00.0: amdgpu: " + rest + "\n";
  };
  const std::string begins = "[mmhub0] no-retry page fault (src_id:0 ring:1 vmid:8 pasid:1)";
  const auto all = page_faults(line(1, begins) + line(2, begins) + line(2, "in page starting at address 0x2000 from") +
                               line(1, "in page starting at address 0x1000 from") +
                               line(1, " Process x pid 7 thread x pid 7") + line(1, " Process y pid 8 thread y pid 8") +
                               line(1, begins) + line(1, "in page starting at address 0x3000 from"));
  REQUIRE(all.size() == 3);
  CHECK((all[0].page == GpuVa{0x1000} && all[0].process == 7));
  CHECK((all[1].page == GpuVa{0x2000} && all[1].process == 0));
  // Its own lines name no process. VMID and PASID are those of the first fault, close by: so is the process.
  CHECK((all[2].page == GpuVa{0x3000} && all[2].process == 7));
  // Cut anywhere, it is read without a fault that it does not have.
  const auto whole = text("[    1.000000] ");
  for (std::size_t n = 0; n < whole.size(); ++n) CHECK(page_faults(whole.substr(0, n)).size() <= 1);
}

TEST_CASE("the packet that touches the page is named, and other queues of the GPU stand with it") {
  auto s = stuck_at_copy({GpuVa{0x7f0000100000}, kPage + 0x10});
  add_kernel_log(s, text("[    1.000000] "), "dmesg.txt");
  for (auto& q : s.queues) q.gpu = {GpuId{0}, Source::dump};
  s.page_faults[0].gpu = {GpuId{0}, Source::dump};
  auto d = diagnose(s);
  CHECK(d.verdict() == Verdict::hung);
  for (const auto& f : d.findings) {
    REQUIRE(f.queue);
    CHECK(f.what == HangClass::fault);
    CHECK(f.basis == (*f.queue == 1 ? Basis::seen : Basis::inferred));
    CHECK(f.statements[0].rests_on == "dmesg.txt");
  }
  CHECK(d.findings.size() == 2);
  // On another GPU, it has nothing to do with these queues.
  s.page_faults[0].gpu.value = GpuId{1};
  for (const auto& f : diagnose(s).findings) CHECK(f.what != HangClass::fault);
}

TEST_CASE("an idle queue, and one that moves, are not accused of a fault") {
  auto s = stuck_at_copy({kPage});
  add_kernel_log(s, text(""), "dmesg.txt");
  CHECK(diagnose(s).findings[0].what == HangClass::fault);
  auto idle = s;
  idle.queues[0].rptr = idle.queues[0].wptr;
  CHECK(diagnose(idle).verdict() != Verdict::hung);
  auto moving = s;
  moving.watched_ns = 1'000'000;
  moving.queues[0].rptr_first = {4, Source::memory};
  CHECK(diagnose(moving).verdict() != Verdict::hung);
}

TEST_CASE("of several processes: the fault that a packet touches, or those of one") {
  const auto other = text("") +
                     "amdgpu 0000:c1:00.0: amdgpu: [mmhub0] no-retry page fault (src_id:0 ring:1 vmid:8 pasid:2)\n" +
                     "amdgpu 0000:c1:00.0: amdgpu:  Process y pid 9 thread y pid 9\n" +
                     "amdgpu 0000:c1:00.0: amdgpu:   in page starting at address 0x5000 from IH client 0x12 (VMC)\n";
  auto touches = stuck_at_copy({GpuVa{0x5000}});
  add_kernel_log(touches, other, "dmesg.txt");
  REQUIRE(touches.page_faults.size() == 2);
  CHECK(touches.page_faults[1].process == 9);
  CHECK(diagnose(touches).findings[0].what == HangClass::fault);
  CHECK(diagnose(touches).findings[0].basis == Basis::seen);
  // Neither page is touched, so nobody knows whose queue this is.
  auto neither = stuck_at_copy({GpuVa{0x9000000}});
  add_kernel_log(neither, other, "dmesg.txt");
  for (const auto& f : diagnose(neither).findings) CHECK(f.what != HangClass::fault);
  Snapshot one;
  add_kernel_log(one, other, "dmesg.txt", 9);
  REQUIRE(one.page_faults.size() == 1);
  CHECK(one.page_faults[0].page == GpuVa{0x5000});
  REQUIRE(one.notes.size() == 2);
  CHECK(one.notes[1] == "dmesg.txt: left out the page faults of the processes 4711");
}

TEST_CASE("a fault without a process is kept, whichever process is asked for") {
  Snapshot s;
  add_kernel_log(s,
                 "Memory access fault by GPU node-1 (Agent handle: 0x55aa00001000) on address 0x7f3555c00000. Reason: "
                 "Page not present or supervisor privilege.\n",
                 "stderr", 4711);
  REQUIRE(s.page_faults.size() == 1);
  CHECK(s.page_faults[0].page == GpuVa{0x7f3555c00000});
  CHECK(s.page_faults[0].device == "node-1");
  CHECK(in_words(s.page_faults[0]) == "0x7f3555c00000, GPU node-1, a process that the log does not name");
  // ROCr does not always know the address.
  Snapshot none;
  add_kernel_log(none, "Memory access fault by GPU node-1 (Agent handle: 0x1) on address (nil). Reason: Unknown.\n",
                 "stderr");
  CHECK(none.page_faults.empty());
  CHECK(none.notes == std::vector<std::string>{"stderr: a runtime's log of 1 line",
                                               "stderr: left out 1 page fault without an address"});
}

TEST_CASE("each version's wording of the process") {
  for (const std::string process : {" for process trainer pid 34756 thread trainer pid 34756)",
                                    " in process trainer pid 34756 thread trainer pid 34756)",
                                    " Process trainer pid 34756 thread trainer pid 34756"}) {
    CAPTURE(process);
    const std::string driver = "amdgpu 0000:ab:00.0: amdgpu: ";
    const auto all = page_faults(
        driver + "[mmhub0] no-retry page fault (src_id:0 ring:157 vmid:8 pasid:32829)\n" + driver + process + "\n" +
        driver + "  in page starting at address 0x1000 from IH client 0x12 (VMC)\n" + driver + "\t RW: 0x0\n");
    REQUIRE(all.size() == 1);
    CHECK(all[0].process == 34756);
    CHECK(all[0].program == "trainer");
    CHECK(all[0].page == GpuVa{0x1000});
    CHECK(all[0].write == false);
  }
}

TEST_CASE("a log is the same behind every prefix, quoted, wrapped, and with its newest line first") {
  const auto plain = page_faults(text(""));
  const auto same = [&](const std::string& log) {
    auto all = page_faults(log);
    for (auto& f : all) f.seconds = {};
    REQUIRE(all.size() == 1);
    CHECK(in_words(all[0]) == in_words(plain.at(0)));
    CHECK(all[0].die == plain[0].die);
  };
  for (const auto prefix :
       {"[  812.400123] ", "<3>[    5.000001] ", "3,1234,812400123,-;", "Nov 22 10:00:01 node7 kernel: ",
        "[Sun Nov 22 10:00:01 2026] ", "2026-11-25T03:14:07.123456+01:00 node17 kernel: [ 7712.210001] ",
        "2026-11-25T03:14:07.000000000Z stdout F [ 7712.2] ", "gpu-operator-x7k2p  | ", "17:[ 7712.210001] ",
        "> > [ 7712.2] ", "{\"MESSAGE\":\"", "\033[32m[ 7712.210001] \033[0m"}) {
    CAPTURE(prefix);
    same(text(prefix));
  }
  std::string reversed;
  for (const auto line : kLines)
    reversed = std::string("Nov 22 10:00:01 n7 kernel: ").append(line).append("\n") + reversed;
  same(reversed);
  std::string wide;
  for (const char c : text("[    1.0] ")) wide.append(1, c).append(1, '\0');
  same(wide);
  // As mail wraps it at 72 columns.
  std::string wrapped;
  for (const auto each : kLines) {
    std::string line = "> [   75.211702] " + std::string(each);
    if (const auto at = line.rfind(' ', 72); line.size() > 72 && at != line.npos) line.replace(at, 1, "\n> ");
    wrapped += line + "\n";
  }
  same(wrapped);
}

TEST_CASE("a fault that is reported by each die is one") {
  const auto all = page_faults(text("[    1.0] ") + text("[    2.0] ") + text("[    3.0] "));
  REQUIRE(all.size() == 1);
  CHECK(all[0].reports == 3);
  CHECK(all[0].seconds == 1.0);
}

TEST_CASE("a fault has no stranger's process") {
  const auto at = [](double s, const std::string& said) {
    return fmt::format("[{:12.6f}] amdgpu 0000:c1:00.0: amdgpu: {}\n", s, said);
  };
  const auto fault = [&](double s, int vmid, int pasid, const std::string& page, const std::string& process) {
    return at(s, fmt::format("[mmhub0] no-retry page fault (src_id:0 ring:157 vmid:{} pasid:{})", vmid, pasid)) +
           (process.empty() ? "" : at(s + 1e-5, " for process " + process + " thread " + process + ")")) +
           at(s + 2e-5, "  in page starting at address " + page + " from IH client 0x12 (VMC)");
  };
  const std::string mine = fault(100, 9, 32779, "0x00007e1234567000", "");
  const auto process = [&](const std::string& log) {
    CAPTURE(log);
    const auto all = page_faults(log);
    for (const auto& f : all)
      if (f.page == GpuVa{0x7e1234567000}) return f.process;
    FAIL("the fault is missing");
    return 0u;
  };
  CHECK(process(mine) == 0);
  // The timeout of a ring has a process, at once or later.
  const auto timeout = [&](double s) {
    return at(s, "ring gfx_0.0.0 timeout, signaled seq=20, emitted seq=22") +
           at(s + 1e-5, " Process compositor pid 1671 thread compositor:cs0 pid 1722");
  };
  CHECK(process(mine + timeout(1777)) == 0);
  CHECK(process(mine + timeout(100.1)) == 0);
  const auto facts = facts_of(mine + timeout(100.1), "log");
  REQUIRE(facts.events.size() == 1);
  CHECK(facts.events[0].process == 1671u);
  CHECK(facts.events[0].program == "compositor");
  // A line of a process alone, later than a second.
  CHECK(process(mine + at(102, " Process late pid 7 thread late pid 7")) == 0);
  CHECK(process(mine + at(100.5, " Process soon pid 7 thread soon pid 7")) == 7);
  // The same VMID and PASID within a second, and each of the three otherwise.
  CHECK(process(mine + fault(100.5, 9, 32779, "0x00007e0000000000", "mine pid 7")) == 7);
  CHECK(process(fault(99.5, 9, 32779, "0x00007e0000000000", "mine pid 7") + mine) == 7);
  CHECK(process(mine + fault(100.5, 8, 32779, "0x00007e0000000000", "other pid 7")) == 0);
  CHECK(process(mine + fault(100.5, 9, 32780, "0x00007e0000000000", "other pid 7")) == 0);
  CHECK(process(mine + fault(101.5, 9, 32779, "0x00007e0000000000", "later pid 7")) == 0);
  // --pid keeps it: it may be that process's.
  Snapshot s;
  add_kernel_log(s, mine + timeout(1777), "dmesg.txt", 43117);
  CHECK(s.page_faults.size() == 1);
}

TEST_CASE("a log that is cut at both ends keeps its order") {
  std::string log;
  const auto line = [&](double s, std::string_view said) {
    log += fmt::format("[{:12.6f}] amdgpu 0000:c1:00.0: amdgpu: {}\n", s, said);
  };
  line(23.1, "  in page starting at address 0x00007aaaaaaaa000 from IH client 0x12 (VMC)");
  line(23.2, "\t Faulty UTCL2 client ID: SDMA0 (0x2d)");
  line(100.1, "[mmhub0] no-retry page fault (src_id:0 ring:157 vmid:9 pasid:32779)");
  line(100.2, " for process second pid 222 thread second pid 222)");
  line(100.3, "  in page starting at address 0x00007bbbbbbbb000 from IH client 0x12 (VMC)");
  line(100.4, "\t Faulty UTCL2 client ID: TCP (0x8)");
  line(200.1, "[mmhub0] no-retry page fault (src_id:0 ring:157 vmid:10 pasid:32780)");
  const auto facts = facts_of(log, "log");
  REQUIRE(facts.faults.size() == 2);
  CHECK(facts.without_page == 1);
  CHECK((facts.faults[0].page == GpuVa{0x7aaaaaaaa000} && facts.faults[0].process == 0));
  CHECK((facts.faults[0].client == "SDMA0" && facts.faults[0].seconds == 23.1));
  CHECK((facts.faults[1].page == GpuVa{0x7bbbbbbbb000} && facts.faults[1].process == 222));
  CHECK((facts.faults[1].client == "TCP" && facts.faults[1].seconds == 100.1));
}

TEST_CASE("lines are ordered by their times, within a start of the machine") {
  const auto line = [](double s, std::string_view said) {
    return fmt::format("[{:12.6f}] amdgpu 0000:c1:00.0: amdgpu: {}\n", s, said);
  };
  const auto begins = "[mmhub0] no-retry page fault (src_id:0 ring:157 vmid:9 pasid:32779)";
  const auto page = "  in page starting at address 0x00007bbbbbbbb000 from IH client 0x12 (VMC)";
  // A packet of netconsole that was overtaken.
  const auto swapped = page_faults(line(7, "x: y") + line(100.2, page) + line(100.1, begins) + line(101, "x: y"));
  REQUIRE(swapped.size() == 1);
  CHECK(swapped[0].vmid == 9u);
  // The lines of another start of the machine, at the same time, are not its own.
  const auto starts = facts_of(line(100.1, begins) + line(200, "x: y") + line(3, "x: y") + line(100.2, page), "log");
  REQUIRE(starts.faults.size() == 1);
  CHECK_FALSE(starts.faults[0].vmid);
  CHECK(starts.without_page == 1);
}

TEST_CASE("the status register says what its lines would, and when nothing is known") {
  const auto of = [](std::string_view status, std::string_view more = "") {
    const std::string driver = "amdgpu 0000:c1:00.0: amdgpu: ";
    const auto all =
        page_faults(driver + "[mmhub0] no-retry page fault (src_id:0 ring:157 vmid:9 pasid:1)\n" + driver +
                    "  in page starting at address 0x00007bbbbbbbb000 from IH client 0x12 (VMC)\n" + driver +
                    "VM_L2_PROTECTION_FAULT_STATUS:" + std::string(status) + "\n" + std::string(more));
    REQUIRE(all.size() == 1);
    return all[0];
  };
  const std::string lines =
      "amdgpu 0000:c1:00.0: amdgpu: \t Faulty UTCL2 client ID: unknown (0x1ff)\n"
      "amdgpu 0000:c1:00.0: amdgpu: \t RW: 0x1\n";
  CHECK(of("0x00841A51").write == true);
  CHECK(of("0x00841A51").client == "0xd");
  CHECK(of("0x00801A51").write == false);
  for (const auto silent : {"0xFFFFFFFF", "0x00000000"}) {
    CHECK_FALSE(of(silent, lines).write);
    CHECK(of(silent, lines).client.empty());
  }
  CHECK(in_words(of("0xFFFFFFFF", lines)).find("the GPU did not answer") != std::string::npos);
}

TEST_CASE("colours in a record are not part of a name") {
  for (const std::string escape : {"\\u001b", "#033"}) {
    const auto all = page_faults(
        "{\"MESSAGE\": \"amdgpu 0000:c1:00.0: amdgpu: [mmhub0] no-retry page fault (src_id:0 ring:157 vmid:8 pasid:1)\"}\n"
        "{\"MESSAGE\": \"amdgpu 0000:c1:00.0: amdgpu:  for process " +
        escape +
        "[1mworker pid 4711 thread worker pid 4711\"}\n"
        "{\"MESSAGE\": \"amdgpu 0000:c1:00.0: amdgpu:   in page starting at address 0x00007f1122334000 from client 18\"}\n");
    REQUIRE(all.size() == 1);
    CHECK(all[0].program == "worker");
  }
}

TEST_CASE("an address that is cut off is not another address") {
  const auto all = facts_of("amdgpu 0000:c1:00.0: amdgpu:   in page starting at address 0x00007bbb", "log");
  CHECK(all.faults.empty());
}

TEST_CASE("a line of the kernel that ends in numbers is a line of the log, alone and among others") {
  const std::string_view numbers[] = {
      "[    0.112983] pcpu-alloc: [0] 0 1 \n",
      "[    0.113627] printk: log buffer data + meta data: 131072 + 458752 = 589824 bytes\n",
      "[    0.206850] Fallback order for Node 0: 0 \n"};
  std::string all = "[    0.100000] Linux version 6.8.0\n";
  for (const auto line : numbers) {
    CAPTURE(line);
    CHECK(is_kernel_log(line));
    CHECK_THAT(facts_of(line, "log").what, Catch::Contains("a kernel's log of 1 line, "));
    all += line;
  }
  CHECK_THAT(facts_of(all, "log").what, Catch::Contains("a kernel's log of 4 lines, from 0.100 to 0.207"));
}

TEST_CASE("the rows of a dump that was printed into a log are lines of the log, too") {
  std::string log;
  for (int i = 0; i < 3; ++i) log += fmt::format("[  812.40010{}] amdgpu 0000:c1:00.0: amdgpu: GPU reset begin!\n", i);
  for (int i = 0; i < 4; ++i)
    log += fmt::format("[  812.50000{}] amdgpu 0000:c1:00.0: amdgpu: [{}]: 00000005 00001008\n", i, 2 * i);
  CHECK_THAT(facts_of(log, "log").what, Catch::Contains("a kernel's log of 7 lines, from 812.400 to 812.500"));
}

TEST_CASE("what is no log is none") {
  for (const std::string_view other :
       {"", "0x00000005 0x00001008\n", "hello world\n", "{\"ring\": [\"0x5\", \"0x3000\"]}\n",
        "00000000: 00000005 00001008 00007f00 00000001\n", "copy_linear bytes=4K\n"}) {
    CAPTURE(other);
    CHECK_FALSE(is_kernel_log(other));
    CHECK(page_faults(other).empty());
    Snapshot s;
    add_kernel_log(s, other, "t");
    CHECK(s.notes.empty());
  }
}
