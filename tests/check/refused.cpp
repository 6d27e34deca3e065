// SPDX-License-Identifier: MIT
// What an engine refuses at the addresses to which aliases lead. Each is compared with that of the software device.
#include "checked.hpp"
#include "sdma/device/soft.hpp"
#include "sdma/schedule/run.hpp"

using namespace sdma;
using sdma::test::checked;
using sdma::test::said;

namespace {

std::string schedule(const std::string& packet) {
  return "gpus 1\nbuffer gpu0.a bytes=64K init=random\nbuffer gpu0.b bytes=32K at=gpu0.a[16K]\n"
         "buffer gpu0.odd bytes=4K at=gpu0.a[2]\nbuffer gpu0.half bytes=4K at=gpu0.a[16]\n"
         "buffer gpu0.c bytes=64K\nsignal host.x value=0\n"
         "queue gpu0.q peer=gpu0\n  " +
         packet + "\n  atomic op=add_rtn_64 addr=host.x value=1\nend\nhost main\n  submit *\n  wait host.x == 1\nend";
}

/// "" if bind and run accept it.
std::string refused_by_a_device(const std::string& text) {
  const auto s = parse_schedule("sdma 1\n" + text + "\n");
  REQUIRE(s);
  const auto d = SoftDevice::open({.gpus = 1});
  REQUIRE(d);
  const auto b = bind(*s, **d);
  if (!b) return to_string(b.error().at(0));
  const auto r = run(*b, {.time_limit = std::chrono::minutes(1)});
  return r.findings.empty() ? "" : to_string(r.findings[0]);
}

struct Refusal {
  const char *packet, *said, *device;
};
const Refusal kRefusals[] = {
    {"copy_linear bytes=32K src=gpu0.a dst=gpu0.b",
     "overlap: copy_linear: src gpu0.a[0..+32K] and dst gpu0.a[16K..+32K] overlap", "overlap"},
    {"copy_linear bytes=32K src=gpu0.b dst=gpu0.a",
     "overlap: copy_linear: src gpu0.a[16K..+32K] and dst gpu0.a[0..+32K] overlap", "overlap"},
    {"copy_subwindow element_log2=0 src=gpu0.a src_pitch=64 dst=gpu0.a dst_pitch=64 dst_x=7 x=8 y=4",
     "overlap: copy_subwindow: src gpu0.a[0..+200] and dst gpu0.a[7..+200] overlap", "overlap"},
    {"copy_subwindow element_log2=0 src=gpu0.c src_pitch=64 dst=gpu0.a dst_pitch=64 x=80 y=4",
     "overlap: copy_subwindow: dst gpu0.a[0..+272] overlaps itself: a row begins before the previous one ends",
     "overlap"},
    {"fence addr=gpu0.odd value=1", "alignment: fence addr: gpu0.a[2] is not a multiple of 4", "alignment"},
    {"copy_swap bytes=64 a=gpu0.half b=gpu0.c", "alignment: copy_swap a: gpu0.a[16] is not a multiple of 64",
     "alignment"},
    {"copy_broadcast bytes=64 src=gpu0.c dst1=gpu0.a[1K] dst2=gpu0.half",
     "broadcast-modulo-32: copy_broadcast: dst1 and dst2 must be equal modulo 32", "broadcast-modulo-32"},
    {"atomic op=add_rtn_64 addr=gpu0.odd value=1",
     "atomic-alignment: atomic: addr must be aligned to the width of the operation", "atomic-alignment"},
    {"copy_linear bytes=64 src=gpu0.a dst=gpu0.c tmz", "engine-refused: copy_linear: no device executes it with tmz",
     "tmz"},
    {"atomic op=add_rtn_64 addr=gpu0.half value=1 loop",
     "loop-needs-compare: atomic: the engine refuses this value of loop", "loop-needs-compare"},
};

}  // namespace

TEST_CASE("what a device refuses, the checker reports, by the same rule") {
  for (const auto& c : kRefusals) {
    INFO(c.packet);
    CHECK(said(checked(schedule(c.packet))).find(std::string(c.said) + "\n") != std::string::npos);
    const auto device = refused_by_a_device(schedule(c.packet));
    INFO(device);
    CHECK(device.find(c.device) != std::string::npos);
  }
}

TEST_CASE("what a device accepts beside it is proved") {
  for (const auto* packet :
       {"copy_linear bytes=16K src=gpu0.a dst=gpu0.b",
        "copy_subwindow element_log2=0 src=gpu0.a src_pitch=64 dst=gpu0.a dst_pitch=64 dst_x=8 x=8 y=4",
        "copy_subwindow element_log2=0 src=gpu0.c src_pitch=64 dst=gpu0.a dst_pitch=64 x=64 y=4",
        "copy_swap bytes=64 a=gpu0.b b=gpu0.c"}) {
    INFO(packet);
    CHECK(said(checked(schedule(packet))) == "");
    CHECK(refused_by_a_device(schedule(packet)) == "");
  }
}

TEST_CASE("a refusal names the line, the bytes and the alias, once per line") {
  const auto r =
      checked(schedule("copy_linear bytes=32K src=gpu0.a dst=gpu0.b\n  for i in 0..3\n"
                       "    copy_linear bytes=32K src=gpu0.a dst=gpu0.b\n  end"));
  std::vector<const CheckFinding*> found;
  for (const auto& f : r.findings)
    if (f.diagnostic.rule == "overlap") found.push_back(&f);
  REQUIRE(found.size() == 2);
  CHECK(found[0]->diagnostic.where == "case.sdma:10:3");
  CHECK(found[0]->overlap == "gpu0.a[16K..+16K]");
  CHECK(found[0]->diagnostic.excerpt.find("gpu0.b is an alias of gpu0.a[16K]") != std::string::npos);
}

TEST_CASE("an indirect packet ends at a multiple of 8 dwords in every submit, or is refused") {
  const auto text = [](const std::string& before, const std::string& after) {
    return "gpus 1\nbuffer gpu0.ib bytes=64 align=32\nsignal host.x value=0\nqueue gpu0.q engine=2\n" + before +
           "  indirect base=gpu0.ib dwords=8\n" + after +
           "  atomic op=add_rtn_64 addr=host.x value=1\nend\nhost main\n  submit *\n  wait host.x == 1\nend";
  };
  // indirect has 6 dwords, atomic 8.
  for (const auto& [before, after, refused] :
       {std::tuple{"", "", "ib-alignment: gpu0.q: an indirect packet ends at dword 6"},
        std::tuple{"  nop dwords=2\n", "  nop\n", "ib-alignment: gpu0.q: one doorbell publishes 17 dwords"},
        std::tuple{"  nop dwords=2\n", "", ""}}) {
    const auto s = text(before, after);
    INFO(s);
    INFO(said(checked(s)));
    CHECK((said(checked(s)).find(*refused ? refused : "ib-alignment") != std::string::npos) == (*refused != 0));
    CHECK((refused_by_a_device(s).find("doorbell publishes") != std::string::npos) == (*refused != 0));
  }
}
