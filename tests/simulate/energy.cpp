// SPDX-License-Identifier: MIT
// Joules: what a round has of each term, the sums and their bounds, and what a machine's file may say.
#include "sdma/simulate/energy.hpp"

#include "sdma/core/file.hpp"
#include "sdma/schedule/text.hpp"
#include "sdma/simulate/simulate.hpp"
#include "support/catch.hpp"

using namespace sdma;

namespace {

constexpr double kCopied = 65536;

Schedule priced(const std::string& text) {
  auto s = parse_schedule("sdma 1\n" + text, "t.sdma");
  if (!s) FAIL(to_string(s.error().front()));
  return *std::move(s);
}
/// A copy from gpu0 to a buffer of that place.
Schedule copied_to(const std::string& place) {
  return priced(
      "gpus 2\nbuffer gpu0.a bytes=64K\nbuffer " + place +
      ".b bytes=64K\nsignal host.done value=0\nqueue gpu0.q peer=" + place + "\ncopy_linear bytes=64K src=gpu0.a dst=" +
      place + ".b\natomic op=add_rtn_64 addr=host.done value=1\nend\nhost main\nsubmit *\nwait host.done == 1\nend\n");
}
Schedule by_kernel(const std::string& lines) {
  return priced(
      "gpus 2\nbuffer gpu0.a bytes=64K init=random\nbuffer gpu1.b bytes=64K init=random\n"
      "buffer gpu0.c bytes=64K\nkernel gpu0.k " +
      lines + "end\n");
}

MachineDescription without_joules() {
  auto m = *mi300x_machine(2);
  m.energy = {};
  return m;
}
/// A machine whose only terms are these; the bounds are half and twice the value.
MachineDescription costing(std::initializer_list<std::pair<Power, double>> terms) {
  auto m = without_joules();
  for (const auto& [p, v] : terms)
    m.energy[static_cast<std::size_t>(p)] = EnergyTerm{.value = {v / 2, v, 2 * v}, .source = "made up"};
  return m;
}
double spent(const Simulation& s, Power p) { return s.activity[static_cast<std::size_t>(p)]; }

std::string with_energy(const std::string& energy) {
  auto text = to_json(without_joules());
  text.insert(text.rfind('}'), ",\"energy\": " + energy);
  return text;
}
std::string energy_error(const std::string& energy) {
  const auto m = machine_from_json(with_energy(energy), "m.json");
  return m ? "" : to_string(m.error());
}

}  // namespace

TEST_CASE("a copy to a peer: bytes of the engine, of two memories and of the link, and time") {
  const auto m = without_joules();
  const auto t = *simulate(copied_to("gpu1"), m);
  CHECK(spent(t, Power::engine_byte) == Approx(kCopied));
  CHECK(spent(t, Power::hbm_byte) == Approx(2 * kCopied));
  CHECK(spent(t, Power::xgmi_byte) == Approx(kCopied));
  CHECK(spent(t, Power::pcie_byte) == 0);
  CHECK(spent(t, Power::host_byte) == 0);
  CHECK(spent(t, Power::kernel_byte) == 0);
  CHECK(spent(t, Power::gpu_idle) == Approx(2 * t.ns));
  CHECK(spent(t, Power::hbm_idle) == Approx(2 * t.ns));
  CHECK(spent(t, Power::host_idle) == Approx(t.ns));
  // At least while its bytes move; not while nothing is in flight.
  CHECK(spent(t, Power::engine_active) >= kCopied / m[Cost::engine_rate]);
  CHECK(spent(t, Power::engine_active) < t.ns);
  CHECK(spent(t, Power::gpu_limit) == 0);
}

TEST_CASE("a copy to the host crosses PCIe, and the memories of both") {
  const auto t = *simulate(copied_to("host"), without_joules());
  CHECK(spent(t, Power::pcie_byte) == Approx(kCopied));
  CHECK(spent(t, Power::host_byte) == Approx(kCopied));
  CHECK(spent(t, Power::hbm_byte) == Approx(kCopied));
  CHECK(spent(t, Power::xgmi_byte) == 0);
}

TEST_CASE("a kernel: its time by its share, and the bytes that it loads and stores") {
  const auto half = *simulate(by_kernel("share=50\ncompute ns=1000\n"), without_joules());
  CHECK(spent(half, Power::kernel_active) == Approx(500));
  CHECK(spent(half, Power::kernel_byte) == 0);
  const auto sum = *simulate(by_kernel("share=1\nstore gpu0.c = sum(gpu0.a, gpu1.b) type=f32\n"), without_joules());
  CHECK(spent(sum, Power::kernel_byte) == Approx(3 * kCopied));
  CHECK(spent(sum, Power::hbm_byte) == Approx(3 * kCopied));
  CHECK(spent(sum, Power::xgmi_byte) == Approx(kCopied));
  // As long as its part from gpu1 takes over the link.
  CHECK(spent(sum, Power::kernel_active) == Approx(0.01 * kCopied / (64 * without_joules()[Cost::xgmi_efficiency])));
}

TEST_CASE("the last of several rounds counts, and no other") {
  const auto one = priced(
      "gpus 2\nbuffer gpu0.a bytes=64K\nbuffer gpu1.b bytes=64K\nsignal host.done value=0\nqueue gpu0.q peer=gpu1\n"
      "copy_linear bytes=64K src=gpu0.a dst=gpu1.b\natomic op=add_rtn_64 addr=host.done value=1\nend\n"
      "host main\nrepeat 3\nsubmit *\nwait host.done == epoch\nend\nend\n");
  const auto t = *simulate(one, without_joules());
  REQUIRE(t.rounds.size() == 3);
  CHECK(spent(t, Power::xgmi_byte) == Approx(kCopied));
  CHECK(spent(t, Power::host_active) < t.ns);
}

TEST_CASE("joules are activity times the terms; bounds add") {
  const auto m = costing({{Power::gpu_idle, 100}, {Power::hbm_byte, 50}, {Power::xgmi_byte, 10}});
  const auto t = *simulate(copied_to("gpu1"), m);
  const auto e = energy(t, m);
  const auto idle = 2 * t.ns * 100e-9, hbm = 2 * kCopied * 50e-12, xgmi = kCopied * 10e-12;
  CHECK(e.joules.value == Approx(idle + hbm + xgmi));
  CHECK(e.joules.low == Approx((idle + hbm + xgmi) / 2));
  CHECK(e.joules.high == Approx((idle + hbm + xgmi) * 2));
  CHECK(e.watts(e.joules).value == Approx(e.joules.value / t.ns * 1e9));
  REQUIRE(e.components.size() == 3);
  CHECK(e.components[0].name == "GPU");
  CHECK(e.components[1].name == "HBM");
  CHECK(e.components[1].joules.value == Approx(hbm));
  // The time's uncertainty widens what depends on time, and nothing else.
  const Sensitivity why{.ns = t.ns, .uncertainty_ns = t.ns / 10};
  const auto wide = energy(t, m, &why);
  CHECK(wide.components[0].joules.low == Approx(idle / 2 * 0.9));
  CHECK(wide.components[0].joules.high == Approx(idle * 2 * 1.1));
  CHECK(wide.components[1].joules == e.components[1].joules);
}

TEST_CASE("what a machine does not know is named, and costs nothing") {
  const auto m = costing({{Power::gpu_idle, 100}});
  const auto t = *simulate(copied_to("gpu1"), m);
  const auto e = energy(t, m);
  const auto lacks = [](const Energy& of, Power p) {
    return std::find(of.missing.begin(), of.missing.end(), p) != of.missing.end();
  };
  CHECK(lacks(e, Power::hbm_byte));
  CHECK(lacks(e, Power::xgmi_byte));
  CHECK(lacks(e, Power::xcd_idle));  // nothing says that the board's figure has it
  CHECK_FALSE(lacks(e, Power::pcie_byte));
  CHECK_FALSE(lacks(e, Power::gpu_idle));
  CHECK(to_table(e).find("not counted, because the machine's file does not have: xcd.idle_watts") != std::string::npos);
  auto whole = m;
  whole.energy[0]->includes = {Power::xcd_idle, Power::iod_idle, Power::hbm_idle};
  CHECK_FALSE(lacks(energy(t, whole), Power::xcd_idle));
  CHECK(energy(t, whole).components[0].name == "XCD, IOD, HBM");
  CHECK_FALSE(knows_energy(without_joules()));
  CHECK(energy(t, without_joules()).components.empty());
  CHECK(to_table(energy(t, without_joules())).find("not known") != std::string::npos);
}

TEST_CASE("figures of a device alone are shown, and not added to those of a board") {
  auto m = costing({{Power::gpu_idle, 100}, {Power::hbm_byte, 50}});
  const auto t = *simulate(copied_to("gpu1"), m);
  const auto board = energy(t, m).joules.value;
  m.energy[static_cast<std::size_t>(Power::hbm_byte)]->level = EnergyTerm::Level::device;
  const auto e = energy(t, m);
  CHECK(e.joules.value == Approx(board - 2 * kCopied * 50e-12));
  REQUIRE(e.components.size() == 2);
  CHECK_FALSE(e.components[1].counted);
  CHECK(to_table(e).find("HBM, device alone") != std::string::npos);
}

TEST_CASE("a difference has the same value of a term on both sides") {
  const auto m =
      costing({{Power::gpu_idle, 100}, {Power::hbm_byte, 50}, {Power::xgmi_byte, 10}, {Power::pcie_byte, 10}});
  const auto near = *simulate(copied_to("gpu1"), m), far = *simulate(copied_to("host"), m);
  const auto same = energy_between(near, near, m);
  CHECK(same == Bounds{});
  const auto d = energy_between(near, far, m);
  CHECK(d.value == Approx(energy(far, m).joules.value - energy(near, m).joules.value));
  CHECK(d.low <= d.value);
  CHECK(d.value <= d.high);
  CHECK(d.high - d.low < energy(near, m).joules.high - energy(near, m).joules.low + energy(far, m).joules.high -
                             energy(far, m).joules.low);
}

TEST_CASE("the energy of a file: what it may say, and what it must") {
  const std::string hbm = R"({"hbm.pj_per_byte": {"value": 2, "low": 1, "high": 3, "level": "board", "source": "s"}})";
  const auto m = machine_from_json(with_energy(hbm), "m.json");
  REQUIRE(m);
  CHECK(m->energy[static_cast<std::size_t>(Power::hbm_byte)]->value == Bounds{1, 2, 3});
  CHECK(machine_from_json(to_json(*m))->energy == m->energy);
  CHECK(energy_error(R"({"hbm.pj_per_bite": {}})").find("did you mean 'hbm.pj_per_byte'?") != std::string::npos);
  const auto changed = [&](const std::string& from, const std::string& to) {
    auto text = hbm;
    return energy_error(text.replace(text.find(from), from.size(), to));
  };
  CHECK(changed("\"low\": 1, ", "").find("\"low\" is missing") != std::string::npos);
  CHECK(changed("\"s\"", "\"\"").find("\"source\" is missing or empty") != std::string::npos);
  CHECK(changed("\"low\": 1", "\"low\": 2.5").find("not from \"low\" to \"high\"") != std::string::npos);
  CHECK(changed("\"low\": 1", "\"low\": -1").find("-1 is negative") != std::string::npos);
  CHECK(changed("board", "chip").find("\"level\" is missing, or is neither") != std::string::npos);
  CHECK(changed("\"source\"", "\"includes\": [\"hbm.pj_per_byte\"], \"source\"").find("count twice") !=
        std::string::npos);
  CHECK(changed("\"source\"", "\"includes\": [7], \"source\"").find("\"7\" is not a term") != std::string::npos);
  CHECK(energy_error("[]").find("energy: error: this is not a JSON object") != std::string::npos);
}

TEST_CASE("a term can be set; one that another includes cannot") {
  auto m = *mi300x_machine(2);
  CHECK(m.set("hbm.pj_per_byte", 30) == Errc::ok);
  CHECK(m.energy[static_cast<std::size_t>(Power::hbm_byte)]->value == Bounds{30, 30, 30});
  CHECK(m.set("host.idle_watts", 200) == Errc::ok);
  CHECK(m.set("hbm.pj_per_byte", -1) == Errc::bad_argument);
  CHECK(m.set("xcd.idle_watts", 10) == Errc::bad_argument);
  CHECK(m.set("xcd.most_mhz", 0) == Errc::bad_argument);
}

TEST_CASE("kernels slow down with the clock, and need as much of the compute units") {
  const auto m = without_joules();
  const auto s = by_kernel("share=100\ncompute ns=1000\n");
  const auto fast = *simulate(s, m), slow = *simulate(s, m, {.clock = 0.5});
  CHECK(slow.ns - fast.ns == Approx(1000));
  CHECK(spent(slow, Power::kernel_active) == Approx(spent(fast, Power::kernel_active)));
}

TEST_CASE(
    "shipped: RCCL's power at large sizes, to which kernel.pj_per_byte is fitted; no component of a GPU by itself") {
  const auto m = *mi300x_machine();
  const auto s = parse_schedule(*read_file(SDMA_SOURCE_ROOT "/share/published/dma-latte/all_gather_pcpy.sdma"), "ag",
                                {.set = {{"N", "8"}, {"chunk", "128M"}, {"prelaunch", "1"}}});
  REQUIRE(s);
  const auto t = *simulate(*s, m);
  const auto e = energy(t, m);
  const auto of = [&](Power p) { return m.energy[static_cast<std::size_t>(p)]->value.value; };
  // RCCL moves the same bytes in 1.16 times the time, with 32 of 304 compute units and no engine.
  const auto watts = [&](Power p) { return spent(t, p) * of(p) * 1e-12 / (t.ns * 1e-9) / 1.16; };
  const auto moved = spent(t, Power::xgmi_byte) * 2 / t.ns / 1.16;  // loaded and stored, bytes per ns
  const auto rccl = 8 * of(Power::gpu_idle) + watts(Power::hbm_byte) + watts(Power::xgmi_byte) +
                    8 * of(Power::kernel_active) * 32 / 304 + moved * of(Power::kernel_byte) * 1e-3;
  CHECK(e.watts(e.joules).value / rccl == Approx(0.68).margin(0.01));
  CHECK(m.energy[static_cast<std::size_t>(Power::kernel_byte)]->fitted());
  for (const auto p : {Power::xcd_idle, Power::iod_idle, Power::hbm_idle, Power::host_idle, Power::host_active})
    CHECK_FALSE(m.energy[static_cast<std::size_t>(p)]);
  for (const auto& term : m.energy)
    if (term) CHECK(term->level == EnergyTerm::Level::board);
}
