// SPDX-License-Identifier: MIT
// The least time of what a schedule has to move: which bytes cross which cut, and when nothing is known.
#include "sdma/simulate/lower_bound.hpp"
#include "sdma/schedule/text.hpp"
#include "support/catch.hpp"

#include <string>

using namespace sdma;

namespace {

Schedule read(const std::string& text) {
  const auto s = parse_schedule(text, "t.sdma");
  for (const auto& e : s ? std::vector<Diagnostic>{} : s.error()) UNSCOPED_INFO(to_string(e));
  REQUIRE(s);
  return *s;
}
/// gpu0 sends `bytes` to each of the others, which expect them.
std::string sends(const std::string& init, const std::string& bytes, const std::string& after = "") {
  return "sdma 1\ngpus 4\nbuffer gpu*.b bytes=" + bytes + " init=" + init +
         "\nsignal host.done value=0\nfor k in 1..4\nqueue gpu0.to{k} peer=gpu{k}\ncopy_linear bytes=" + bytes +
         " src=gpu0.b dst=gpu{k}.b\natomic op=add_rtn_64 addr=host.done value=1\nend\nexpect gpu{k}.b == old gpu0.b\n"
         "end\nhost main\nsubmit *\nwait host.done == 3\nend\n" +
         after;
}

}  // namespace

TEST_CASE("bytes that several GPUs need leave their source once") {
  const auto m = *layout_machine("mesh:4");
  const auto b = lower_bound(read(sends("random", "48M")), m);
  REQUIRE(b);
  CHECK(b->cut == "out of gpu0");
  CHECK(b->bytes == std::uint64_t{48} << 20);
  CHECK(b->rate == Approx(3 * 64 * m[Cost::xgmi_efficiency]));
  CHECK(b->ns == Approx(b->latency_ns + static_cast<double>(b->bytes) / b->rate));
}

TEST_CASE("no schedule is faster than the bound") {
  for (const auto* layout : {"mesh:4", "switch:4", "mi300x:4"})
    for (const auto* bytes : {"64", "64K", "16M"}) {
      const auto m = *layout_machine(layout);
      const auto s = read(sends("random", bytes));
      const auto b = lower_bound(s, m);
      const auto t = simulate(s, m);
      REQUIRE(b);
      REQUIRE(t);
      CAPTURE(layout, bytes, b->ns, t->ns);
      CHECK(times_of(*b, *t));
    }
}

TEST_CASE("what could be made where it is needed does not have to move") {
  CHECK(!lower_bound(read(sends("zero", "4K")), *layout_machine("mesh:4")));
  CHECK(!lower_bound(read("sdma 1\ngpus 2\nbuffer gpu0.b bytes=4K init=random\nexpect gpu0.b == old gpu0.b\n"),
                     *layout_machine("mesh:2")));
}

TEST_CASE("a run of GPUs is a cut, and a way over several GPUs has a copy for each") {
  const auto m = *layout_machine("ring:8");
  std::string text = "sdma 1\ngpus 8\nbuffer gpu*.in bytes=64M init=random\nbuffer gpu*.out bytes=64M\n";
  const auto far = lower_bound(read(text + "expect gpu4.out[0..+64] == old gpu0.in[0..+64]\n"), m);
  REQUIRE(far);
  CHECK(far->cut.empty());
  CHECK(far->hops == 4);
  for (const auto* half : {"0..4", "4..8"})
    text += std::string("for i in ") + half + "\nfor j in 0..8\nif j/4 != i/4\n" +
            "expect gpu{j}.out[i*8M..+8M] == old gpu{i}.in[j*8M..+8M]\nend\nend\nend\n";
  const auto whole = lower_bound(read(text), m);
  REQUIRE(whole);
  CHECK(whole->bytes == std::uint64_t{16 * 8} << 20);
  CHECK(whole->rate == Approx(2 * 64 * m[Cost::xgmi_efficiency]));
}

TEST_CASE("a sum enters a GPU as one range, and its parts leave theirs") {
  const auto m = *layout_machine("mesh:4");
  std::string text = "sdma 1\ngpus 4\nbuffer gpu*.in bytes=64M init=random\nbuffer gpu*.out bytes=16M\n";
  for (int d = 0; d < 4; ++d) {
    const auto n = std::to_string(d);
    text += "expect gpu" + n + ".out == old sum(gpu*.in[" + n + "*16M..+16M]) type=i32\n";
  }
  const auto b = lower_bound(read(text), m);
  REQUIRE(b);
  CHECK(b->cut.starts_with("out of gpu"));
  CHECK(b->bytes == std::uint64_t{48} << 20);
}

TEST_CASE("a link of unknown rate gives no rate to a cut") {
  auto m = *layout_machine("mesh:4");
  for (auto& l : m.topology.links)
    if (l.from == LinkEnd::gpu(0)) l.rate = Rate{};
  const auto b = lower_bound(read(sends("random", "48M")), m);
  REQUIRE(b);
  CHECK(b->cut != "out of gpu0");
}

TEST_CASE("the bound follows what a network's thread needs for a message, and the type of a path that links share") {
  auto m = *layout_machine("nodes:2x1");
  const auto s = read("sdma 1\ngpus 2\nbuffer gpu*.b bytes=64M init=random\nexpect gpu1.b == old gpu0.b\n");
  const auto usual = lower_bound(s, m);
  REQUIRE(usual);
  CHECK(usual->rate == Approx(50 * m[Cost::nic_efficiency]));
  REQUIRE(m.set("nic.message_ns", m[Cost::nic_message] - 100) == Errc::ok);
  CHECK(usual->latency_ns - lower_bound(s, m)->latency_ns == Approx(100));
  REQUIRE(m.set("xgmi.efficiency", m[Cost::nic_efficiency] / 2) == Errc::ok);
  for (auto& path : m.topology.shared) path.type = LinkType::xgmi;
  CHECK(lower_bound(s, m)->rate == Approx(usual->rate / 2));
}
