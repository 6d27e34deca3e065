// SPDX-License-Identifier: MIT
// Terms from measured joules: values that are known, what cannot be told apart, and the shipped measurements.
#include "sdma/simulate/energy_fit.hpp"

#include "sdma/core/file.hpp"
#include "support/catch.hpp"

#include <fmt/format.h>

using namespace sdma;

namespace {

constexpr double kIdle = 120, kHbm = 100, kPcie = 50, kGemm = 0.9;  // W, pJ, pJ, J

/// Rows of a device that takes exactly these; `off`: what its counter adds to every second row, relatively.
std::string joules_table(double off = 0, const std::string& more = "") {
  std::string out =
      "# a comment\n#: source made up\n" + more + "name,kind,seconds,joules,hbm.pj_per_byte,pcie.pj_per_byte,gemm\n";
  int i = 0;
  const auto row = [&](const char* name, const char* kind, double s, double hbm, double pcie, double gemm) {
    const auto j = (kIdle * s + (hbm * kHbm + pcie * kPcie) * 1e-12 + gemm * kGemm) * (1 + (++i % 2 ? off : -off));
    out += fmt::format("{},{},{},{:.9g},{},{},{}\n", name, kind, s, j, hbm, pcie, gemm);
  };
  row("idle", "fit", 3, 0, 0, 0);
  row("inside", "fit", 3, 4e12, 0, 0);
  row("host", "fit", 2, 1e11, 1e11, 0);
  row("host 2", "fit", 3, 3e11, 2e11, 0);
  row("gemm", "fit", 3, 0, 0, 1800);
  row("gemm 2", "fit", 3, 0, 0, 900);
  row("all", "judge", 3, 2e12, 1e11, 1500);
  return out;
}
std::string joules_error(std::string table) {
  const auto m = energy_measurements(table, "t.csv");
  if (!m) return to_string(m.error().front());
  const auto f = fit_energy(*m);
  return f ? "" : to_string(f.error().front());
}
std::string instead(std::string s, const std::string& from, const std::string& to) {
  REQUIRE(s.find(from) != s.npos);
  return s.replace(s.find(from), from.size(), to);
}

}  // namespace

TEST_CASE("exact joules give the values, and predict what was not fitted to") {
  const auto f = *fit_energy(*energy_measurements(joules_table(), "t.csv"));
  REQUIRE(f.values.size() == 4);
  const double should[] = {kIdle, kHbm, kPcie, kGemm};
  for (std::size_t i = 0; i < 4; ++i) CHECK(f.values[i].value.value == Approx(should[i]).epsilon(1e-5));
  CHECK(f.predictions.back().judged);
  CHECK(f.worst(true) < 1e-5);
  auto m = *mi300x_machine();
  f.write(m);
  const auto& idle = m.energy[static_cast<std::size_t>(Power::gpu_idle)];
  CHECK(idle->value.value == Approx(kIdle));
  CHECK(idle->source == "measured: made up");
  CHECK(idle->level == EnergyTerm::Level::board);
}

TEST_CASE("joules that scatter widen the bounds, and the values stay inside") {
  const auto near = *fit_energy(*energy_measurements(joules_table(0.001), "t.csv"));
  const auto far = *fit_energy(*energy_measurements(joules_table(0.02), "t.csv"));
  const double should[] = {kIdle, kHbm, kPcie, kGemm};
  for (std::size_t i = 0; i < 4; ++i) {
    const auto &a = near.values[i].value, &b = far.values[i].value;
    CHECK(b.high - b.low > 2 * (a.high - a.low));
    CHECK(b.low <= should[i]);
    CHECK(should[i] <= b.high);
  }
}

TEST_CASE("what the judged row measures does not move the fit") {
  auto m = *energy_measurements(joules_table(), "t.csv");
  const auto before = *fit_energy(m);
  m.rows.back().joules *= 2;
  const auto f = *fit_energy(m);
  for (std::size_t i = 0; i < 4; ++i) CHECK(f.values[i].value == before.values[i].value);
  CHECK(f.worst(true) == Approx(0.5).epsilon(1e-4));
}

TEST_CASE("a term that another includes leaves the machine") {
  const auto f =
      *fit_energy(*energy_measurements(joules_table(0, "#: includes hbm.pj_per_byte engine.pj_per_byte\n"), "t"));
  auto m = *mi300x_machine();
  REQUIRE(m.energy[static_cast<std::size_t>(Power::engine_byte)]);
  f.write(m);
  CHECK_FALSE(m.energy[static_cast<std::size_t>(Power::engine_byte)]);
  CHECK(m.energy[static_cast<std::size_t>(Power::hbm_byte)]->includes == std::vector{Power::engine_byte});
  CHECK(machine_from_json(to_json(m)));
}

TEST_CASE("a value below zero is zero") {
  auto m = *energy_measurements(joules_table(), "t.csv");
  for (auto& r : m.rows) r.joules -= 2 * r.amounts[2] * kPcie * 1e-12;  // the host's bytes seem to give joules back
  const auto f = *fit_energy(m);
  CHECK(f.values[2].value.value == 0);
  CHECK(f.values[1].value.value > 0);
}

TEST_CASE("tables that say too little are refused, with what to do") {
  const auto table = joules_table();
  CHECK(joules_error(instead(table, "host 2,fit,3,", "host 2,judge,3,")).empty());
  // As many bytes of both in every row.
  CHECK(joules_error("name,kind,seconds,joules,hbm.pj_per_byte,pcie.pj_per_byte\na,fit,1,100,0,0\nb,fit,1,120,1e9,1e9\n"
                     "c,fit,1,130,2e9,2e9\nd,fit,2,200,0,0\n")
            .find("tells some of its columns apart") != std::string::npos);
  CHECK(joules_error("name,kind,seconds,joules\na,fit,1,100\n").find("no more rows") != std::string::npos);
  CHECK(joules_error("name,kind,seconds,joules,gemm\na,fit,1,100,0\nb,fit,1,101,0\nc,judge,1,300,1\n")
            .find("no row of the kind fit has something of it") != std::string::npos);
  CHECK(joules_error(instead(table, "gemm 2,fit", "gemm 2,fitt")).find("t.csv:9") != std::string::npos);
  CHECK(joules_error(instead(table, "gemm 2,fit,3", "gemm 2,fit,-3")).find("not a number from 0 on") !=
        std::string::npos);
  CHECK(joules_error(instead(table, "gemm 2,fit,3", "gemm 2,fit")).find("6 fields, but 7 columns") !=
        std::string::npos);
  CHECK(joules_error("name,kind,joules\n").find("the first line is not") != std::string::npos);
  CHECK(joules_error("#: free x\n").find("is not a setting of this table") != std::string::npos);
  CHECK(joules_error("name,kind,seconds,joules,gpu.idle_watts\n").find("twice") != std::string::npos);
  CHECK(joules_error("").find("no rows") != std::string::npos);
}

TEST_CASE("H200: fitted to copies alone and kernels alone, both at once are predicted within 15 %") {
  const auto m = energy_measurements(*read_file(SDMA_SOURCE_ROOT "/share/measured/h200/energy.csv"), "energy.csv");
  REQUIRE(m);
  const auto f = fit_energy(*m);
  REQUIRE(f);
  for (const auto& p : f->predictions) CHECK(p.judged == (p.name.find('+') != p.name.npos && p.name != "h2d+d2h"));
  CHECK(f->worst(true) < 0.15);
  CHECK(f->worst(true) > 0.01);  // a fit that has seen them would be better
}
