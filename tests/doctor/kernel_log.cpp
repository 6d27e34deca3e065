// SPDX-License-Identifier: MIT
// Page faults in logs as dmesg, journalctl and the kernel itself print them, and what a diagnosis makes of them.
#include "sdma/doctor/kernel_log.hpp"

#include "sdma/doctor/diagnose.hpp"
#include "sdma/packets/copy.hpp"
#include "support/catch.hpp"

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
  const auto all =
      page_faults(line(1, begins) + line(2, begins) + line(2, "in page starting at address 0x2000 from") +
                  line(1, "in page starting at address 0x1000 from") + line(1, " Process x pid 7 thread x pid 7") +
                  line(1, " Process y pid 8 thread y pid 8") + line(1, "in page starting at address 0x9000 from") +
                  line(1, begins) + line(1, "in page starting at address 0x3000 from"));
  REQUIRE(all.size() == 3);
  CHECK((all[0].page == GpuVa{0x1000} && all[0].process == 7));
  CHECK((all[1].page == GpuVa{0x2000} && all[1].process == 0));
  CHECK((all[2].page == GpuVa{0x3000} && all[2].process == 0));
  // Cut anywhere, it is read without a fault that it does not have.
  const auto whole = text("[    1.000000] ");
  for (std::size_t n = 0; n < whole.size(); ++n) CHECK(page_faults(whole.substr(0, n)).size() <= 1);
}

TEST_CASE("the packet that touches the page is named, and other queues of the GPU stand with it") {
  auto s = stuck_at_copy({GpuVa{0x7f0000100000}, kPage + 0x10});
  REQUIRE(add_kernel_log(s, text("[    1.000000] "), "dmesg.txt"));
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
  REQUIRE(add_kernel_log(s, text(""), "dmesg.txt"));
  CHECK(diagnose(s).findings[0].what == HangClass::fault);
  auto idle = s;
  idle.queues[0].rptr = idle.queues[0].wptr;
  CHECK(diagnose(idle).verdict() != Verdict::hung);
  auto moving = s;
  moving.watched_ns = 1'000'000;
  moving.queues[0].rptr_first = {4, Source::memory};
  CHECK(diagnose(moving).verdict() != Verdict::hung);
}

TEST_CASE("the log of several processes needs one of them") {
  const auto other = text("") +
                     "amdgpu 0000:c1:00.0: amdgpu: [mmhub0] no-retry page fault (src_id:0 ring:1 vmid:8 pasid:2)\n" +
                     "amdgpu 0000:c1:00.0: amdgpu:  Process y pid 9 thread y pid 9\n" +
                     "amdgpu 0000:c1:00.0: amdgpu:   in page starting at address 0x5000 from IH client 0x12 (VMC)\n";
  Snapshot s;
  const auto both = add_kernel_log(s, other, "dmesg.txt");
  REQUIRE_FALSE(both);
  CHECK(both.error().message == "has page faults of several processes: 4711 and 9");
  REQUIRE(add_kernel_log(s, other, "dmesg.txt", 9));
  REQUIRE(s.page_faults.size() == 1);
  CHECK(s.page_faults[0].page == GpuVa{0x5000});
}
