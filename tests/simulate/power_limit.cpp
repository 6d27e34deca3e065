// SPDX-License-Identifier: MIT
// A limit of power: the clock that follows, for whom, and what is refused.
#include "sdma/simulate/power_limit.hpp"

#include "sdma/schedule/text.hpp"
#include "support/catch.hpp"

#include <cmath>

using namespace sdma;

namespace {

/// A kernel that needs the whole GPU, and with `copies`, copies to the host beside it.
Schedule limited_work(bool copies = false) {
  return *parse_schedule(
      "sdma 1\ngpus 1\nbuffer gpu0.a bytes=64M\nbuffer host.b bytes=64M\nsignal host.done value=0\n"
      "kernel gpu0.gemm\ncompute ns=2000000\nend\n" +
          std::string(copies ? "queue gpu0.q peer=host\ncopy_linear bytes=64M src=gpu0.a dst=host.b\n"
                               "atomic op=add_rtn_64 addr=host.done value=1\nend\nhost main\nsubmit *\n"
                               "wait host.done == 1\nend\n"
                             : ""),
      "t.sdma");
}
/// 100 W idle, 400 W of kernels, a limit of 600: 100 W for the rest.
MachineDescription limited_machine(double pcie = 0) {
  auto m = *mi300x_machine(1);
  m.energy = {};
  for (const auto& [name, v] : {std::pair{"gpu.idle_watts", 100.0},
                                {"kernel.active_watts", 400.0},
                                {"gpu.limit_watts", 600.0},
                                {"xcd.most_mhz", 2000.0},
                                {"xcd.loaded_mhz", 1000.0},
                                {"xcd.clock_exponent", 2.0},
                                {"pcie.pj_per_byte", pcie}})
    REQUIRE(m.set(name, v) == Errc::ok);
  return m;
}

}  // namespace

TEST_CASE("uniform: the clock follows the limit alone; component: what is left") {
  const auto s = limited_work();
  const auto m = limited_machine();
  // (350 - 100) / (600 - 100) is a half.
  const auto uniform = *limit_power(s, m, {350, PowerPolicy::uniform});
  CHECK(uniform.clock == Approx(std::sqrt(0.5)));
  CHECK(uniform.mhz == Approx(1000 * std::sqrt(0.5)));
  CHECK(uniform.held);
  // 250 W of 400.
  const auto component = *limit_power(s, m, {350, PowerPolicy::component});
  CHECK(component.clock == Approx(std::sqrt(250.0 / 400)).epsilon(1e-3));
  CHECK(component.energy.watts(component.energy.joules).value == Approx(350).epsilon(2e-3));
  CHECK(component.simulation.ns < uniform.simulation.ns);
  CHECK(component.simulation.ns == Approx(2e6 / component.clock).epsilon(1e-3));
  // At the board's own limit, kernels may use what nothing else does: 500 of 400 W.
  CHECK(limit_power(s, m, {600, PowerPolicy::component})->clock == Approx(std::sqrt(1.25)).epsilon(1e-3));
  CHECK(limit_power(s, m, {600, PowerPolicy::uniform})->clock == Approx(1));
}

TEST_CASE("copies beside a kernel take from what a component policy leaves, and nothing from a uniform one") {
  const auto dear = limited_machine(1000), cheap = limited_machine();
  const auto s = limited_work(true);
  const auto clock = [&](const MachineDescription& m, PowerPolicy p) { return limit_power(s, m, {350, p})->clock; };
  CHECK(clock(dear, PowerPolicy::component) < clock(cheap, PowerPolicy::component) * 0.99);
  CHECK(clock(dear, PowerPolicy::uniform) == clock(cheap, PowerPolicy::uniform));
}

TEST_CASE("no clock is above the highest; the time has the bounds of the exponent") {
  auto m = limited_machine();
  CHECK(m.set("kernel.active_watts", 20) == Errc::ok);
  CHECK(limit_power(limited_work(), m, {600, PowerPolicy::component})->mhz == Approx(2000));
  m = limited_machine();
  m.energy[static_cast<std::size_t>(Power::xcd_exponent)]->value = {1, 2, 3};
  const auto r = *limit_power(limited_work(), m, {350, PowerPolicy::component});
  CHECK(r.ns.value == r.simulation.ns);
  CHECK(r.ns.high == Approx(2e6 * 400 / 250).epsilon(2e-3));
  CHECK(r.ns.low == Approx(2e6 / std::cbrt(250.0 / 400)).epsilon(2e-3));
}

TEST_CASE("a limit that cannot be, or that the machine does not know, is refused") {
  const auto why = [](const MachineDescription& m, double watts) {
    const auto r = limit_power(limited_work(), m, {watts, PowerPolicy::uniform});
    return r ? "" : r.error().front().message;
  };
  CHECK(why(limited_machine(), 100).find("is not a limit") != std::string::npos);
  CHECK(why(limited_machine(), 601).find("is not a limit") != std::string::npos);
  auto m = limited_machine();
  m.energy[static_cast<std::size_t>(Power::xcd_exponent)].reset();
  CHECK(why(m, 350).find("does not have xcd.clock_exponent") != std::string::npos);
  CHECK(why(*layout_machine("mi355x:1"), 350).find("gpu.idle_watts") != std::string::npos);
}
