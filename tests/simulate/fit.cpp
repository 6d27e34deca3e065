// SPDX-License-Identifier: MIT
// The fit: recovers what it is given, says how certain that is, and says what measurements cannot decide.
#include "sdma/simulate/fit.hpp"
#include "sdma/schedule/text.hpp"
#include "support/catch.hpp"

#include <cmath>
#include <random>

using namespace sdma;

namespace {

using Shared = std::shared_ptr<const Schedule>;

/// Copies of one queue, and a completion. With a trigger, the queue waits for it.
Shared copies(const std::string& bytes, int count, bool prelaunch = false) {
  std::string s =
      "sdma 1\ngpus 4\nbuffer gpu0.in bytes=4M\nbuffer gpu*.out bytes=4M\nsignal host.done value=0\n"
      "signal host.go value=0\nqueue gpu0.q peer=gpu1\n";
  if (prelaunch) s += "poll_mem addr=host.go func=ge reference=1\n";
  for (int i = 0; i < count; ++i)
    s += "copy_linear bytes=" + bytes + " src=gpu0.in dst=gpu" + std::to_string(1 + i % 3) + ".out\n";
  s += "atomic op=add_rtn_64 addr=host.done value=1\nend\nhost main\nsubmit *\n";
  s += std::string(prelaunch ? "repeat 40\nwait host.go == 0\nend\nset host.go = 1\n" : "") +
       "wait host.done == 1\nend\n";
  auto parsed = parse_schedule(s, "t.sdma");
  REQUIRE(parsed);
  return std::make_shared<const Schedule>(std::move(*parsed));
}

/// Schedules that together determine the front end, the landing, the poll and the rate.
const std::vector<Shared>& schedules() {
  static const std::vector<Shared> all{copies("64", 1),  copies("64", 2), copies("64", 8), copies("64", 1, true),
                                       copies("64K", 4), copies("1M", 1), copies("4M", 1), copies("256K", 2)};
  return all;
}
/// What a machine takes for them, with relative errors of this size.
std::vector<Observation> measured(const MachineDescription& m, double noise = 0, unsigned seed = 1, double spread = 0) {
  std::mt19937_64 random(seed);
  std::normal_distribution<double> error(0, 1);
  std::vector<Observation> out;
  for (std::size_t i = 0; i < schedules().size(); ++i) {
    const auto t = simulate(*schedules()[i], m);
    REQUIRE(t);
    const auto ns = t->ns * (1 + noise * error(random));
    out.push_back(Observation::time("t" + std::to_string(i), schedules()[i], ns, spread * ns));
  }
  return out;
}

void set(MachineDescription& m, std::string_view parameter, double value) {
  REQUIRE(m.set(parameter, value) == Errc::ok);
}

MachineDescription truth() {
  auto m = *mi300x_machine(4);
  set(m, "engine.packet_ns", 740);
  set(m, "engine.latency_ns", 1320);
  set(m, "engine.poll_ns", 2100);
  set(m, "xgmi.efficiency", 0.61);
  return m;
}
const std::vector<FreeParameter> kFour{
    {Cost::engine_packet}, {Cost::engine_latency}, {Cost::engine_poll}, {Cost::xgmi_efficiency}};

Fit fitted(const std::vector<Observation>& o, const FitOptions& options,
           const MachineDescription& start = *mi300x_machine(4)) {
  auto f = fit(o, start, options);
  for (const auto& d : f ? std::vector<Diagnostic>{} : f.error()) UNSCOPED_INFO(to_string(d));
  REQUIRE(f);
  return std::move(*f);
}
std::string refused(const std::vector<Observation>& o, const FitOptions& options) {
  const auto f = fit(o, *mi300x_machine(4), options);
  REQUIRE_FALSE(f);
  std::string all;
  for (const auto& d : f.error()) all += to_string(d) + "\n";
  return all;
}
bool has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

}  // namespace

TEST_CASE("a fit recovers the parameters of the machine that was measured") {
  const auto m = truth();
  const auto f = fitted(measured(m), {.free = kFour});
  for (const auto& p : kFour) {
    INFO(name(p.cost));
    CHECK(f.machine[p.cost] == Approx(m[p.cost]).epsilon(0.002));
    CHECK(f.machine.parameter(p.cost).source == "fitted: 8 measurements");
    CHECK(f.machine.parameter(p.cost).uncertainty < 0.01 * m[p.cost]);
  }
  CHECK(f.end == Fit::End::converged);
  CHECK(f.worst_error < 1e-3);
  CHECK(f.states == std::vector(4, Fit::State::fitted));
  REQUIRE(f.predictions.size() == 8);
  CHECK(f.predictions[5].value == Approx(simulate(*schedules()[5], f.machine)->ns));
  // The others keep their values and sources.
  CHECK(f.machine.parameter(Cost::host_build) == mi300x_machine()->parameter(Cost::host_build));
}

TEST_CASE("a fit of ratios and shares: no scale is needed but that of what is fixed") {
  const auto m = truth();
  std::vector<Observation> o;
  const auto base = simulate(*schedules()[0], m)->ns;
  for (std::size_t i = 1; i < schedules().size(); ++i) {
    const auto t = simulate(*schedules()[i], m);
    o.push_back(Observation::ratio("r", schedules()[i], schedules()[0], base / t->ns));
    o.push_back(Observation::share("s", schedules()[i], Phase::copy, 100 * t->phase_ns[2] / t->ns));
  }
  const auto f = fitted(o, {.free = kFour});
  for (const auto& p : kFour) {
    INFO(name(p.cost));
    CHECK(f.machine[p.cost] == Approx(m[p.cost]).epsilon(0.005));
  }
}

TEST_CASE("the error of a time is relative; that of a share is in points / 100") {
  const auto t = simulate(*schedules()[0], truth());
  const auto share = 100 * t->phase_ns[2] / t->ns;
  const auto p = predict(std::vector{Observation::time("t", schedules()[0], t->ns / 2),
                                     Observation::share("s", schedules()[0], Phase::copy, share - 5),
                                     Observation::ratio("r", schedules()[0], schedules()[0], 4)},
                         truth());
  REQUIRE(p);
  CHECK((*p)[0].error == Approx(1));
  CHECK((*p)[1].error == Approx(0.05));
  CHECK((*p)[1].value == Approx(share));
  CHECK((*p)[2].error == Approx(-0.75));
}

TEST_CASE("rounded: three digits, two for an uncertainty, whole bytes") {
  Fit f{.machine = *mi300x_machine(),
        .states = {Fit::State::fitted, Fit::State::fitted, Fit::State::range, Fit::State::undetermined}};
  const FitOptions o{.free = {{Cost::engine_poll}, {Cost::host_build}, {Cost::engine_window}, {Cost::engine_swap}}};
  f.machine.parameter(Cost::engine_poll) = {4327.8, 1234.5, "x"};
  f.machine.parameter(Cost::host_build) = {158.249, 0.0123, "x"};
  f.machine.parameter(Cost::engine_window) = {65536.2, 32767.4, "x"};
  f.machine.parameter(Cost::engine_swap) = {0.98765, 0.12345, "x"};
  const auto m = rounded(f, o);
  CHECK(m.parameter(Cost::engine_poll) == Parameter{4330, 1200, "x"});
  CHECK(m.parameter(Cost::host_build) == Parameter{158.2, 0.012, "x"});
  CHECK(m.parameter(Cost::engine_window) == Parameter{65536, 32767, "x"});
  CHECK(m.parameter(Cost::engine_swap) == Parameter{0.98765, 0.12345, "x"});
}

TEST_CASE("the stated uncertainty covers the truth in about 68 of 100 cases, and grows with the spread", "[long]") {
  const auto m = truth();
  constexpr int kCases = 40;
  int inside = 0;
  double sum = 0;
  for (unsigned seed = 1; seed <= kCases; ++seed) {
    const auto f = fitted(measured(m, 0.01, seed), {.free = {{Cost::engine_packet}, {Cost::engine_latency}}}, m);
    for (const auto c : {Cost::engine_packet, Cost::engine_latency}) {
      const auto off = std::abs(f.machine[c] - m[c]), u = f.machine.parameter(c).uncertainty;
      inside += off <= u;
      sum += u / m[c];
    }
  }
  // 80 draws with 0.68 each: 54.4 +- 4.2, and a little less: the variance is estimated from six degrees of freedom.
  CHECK(inside >= 40);
  CHECK(inside <= 66);
  const auto wide = fitted(measured(m, 0.01, 1, 0.1), {.free = {{Cost::engine_packet}, {Cost::engine_latency}}}, m);
  CHECK(wide.machine.parameter(Cost::engine_packet).uncertainty / m[Cost::engine_packet] > 4 * sum / (2 * kCases));
}

TEST_CASE("two parameters that act alike cannot be distinguished, and both sources say so") {
  // A landing and a release follow each other in every schedule that ends with one completion.
  auto o = measured(truth(), 0.002);
  o.erase(o.begin() + 3);  // the prelaunched one, in which the host's earlier waits matter, too
  const auto f = fitted(o, {.free = {{Cost::engine_release}, {Cost::engine_packet}, {Cost::host_poll}}});
  REQUIRE(f.alike.size() == 1);
  CHECK(f.alike[0].a == Cost::engine_release);
  CHECK(f.alike[0].b == Cost::host_poll);
  CHECK(f.alike[0].correlation < -0.99);
  CHECK(f.correlation[0 * 3 + 2] == f.alike[0].correlation);
  CHECK(std::abs(f.correlation[0 * 3 + 1]) < 0.95);
  CHECK(f.machine.parameter(Cost::engine_release).source ==
        "fitted: 7 measurements; cannot be distinguished from host.poll_ns");
  CHECK(f.machine.parameter(Cost::host_poll).source ==
        "fitted: 7 measurements; cannot be distinguished from engine.release_ns");
  CHECK(f.machine.parameter(Cost::host_poll).uncertainty > f.machine[Cost::host_poll]);
  CHECK(f.machine.parameter(Cost::host_poll).uncertainty <= 100 * (*mi300x_machine())[Cost::host_poll]);
  CHECK(f.machine.parameter(Cost::engine_packet).source == "fitted: 7 measurements");
}

TEST_CASE("three parameters of which only the sum acts are known only together") {
  auto o = measured(truth(), 0.002);
  o.erase(o.begin() + 3);  // the prelaunched one, in which the host's earlier waits matter, too
  const auto f =
      fitted(o, {.free = {{Cost::engine_release}, {Cost::host_poll}, {Cost::host_atomic}, {Cost::engine_packet}}});
  CHECK(f.alike.empty());
  INFO(f.machine.parameter(Cost::host_poll).source);
  CHECK(has(f.machine.parameter(Cost::host_poll).source, "known only together with engine.release_ns, host.atomic_ns"));
  CHECK_FALSE(has(f.machine.parameter(Cost::engine_packet).source, "together"));
}

TEST_CASE("a parameter that no measurement depends on keeps its value, and its source says so") {
  const auto start = *mi300x_machine(4);
  const auto f = fitted(measured(truth()), {.free = {{Cost::engine_packet}, {Cost::engine_swap}, {Cost::kernel_poll}}});
  CHECK(f.states == std::vector{Fit::State::fitted, Fit::State::undetermined, Fit::State::undetermined});
  for (const auto c : {Cost::engine_swap, Cost::kernel_poll}) {
    CHECK(f.machine[c] == start[c]);
    CHECK(f.machine.parameter(c).uncertainty == start.parameter(c).uncertainty);
    CHECK(f.machine.parameter(c).source == "not determined by these measurements; " + start.parameter(c).source);
  }
}

TEST_CASE("a size that acts in steps: the range of what fits equally well") {
  auto m = truth();
  set(m, "engine.window_bytes", 131072);
  auto o = measured(m);
  auto start = truth();
  set(start, "engine.window_bytes", 65536);
  const auto f = fitted(o, {.free = {{Cost::engine_window, 4096, 1 << 20}}}, start);
  CHECK(f.states[0] == Fit::State::range);
  CHECK(f.worst_error < 1e-9);
  // Two copies of 64 KB overlap from 128 KB on, and two of 256 KB from 512 KB on.
  const auto& p = f.machine.parameter(Cost::engine_window);
  CHECK(p.value >= 131072 - 1);
  CHECK(p.value <= 3 * 65536);
  CHECK(p.uncertainty >= 32768);
  CHECK(p.source == "fitted: 8 measurements; 131072 to 524288 fit equally well");
}

TEST_CASE("bounds: the fit stays within them, and says at which it ends") {
  auto m = *mi300x_machine(4);
  set(m, "engine.latency_ns", 1320);
  const auto f = fitted(measured(m), {.free = {{Cost::engine_latency, 1500, 2000, "by hand"}}});
  CHECK(f.states[0] == Fit::State::at_bound);
  CHECK(f.machine[Cost::engine_latency] == Approx(1500));
  CHECK(f.machine.parameter(Cost::engine_latency).source == "fitted: by hand; at its lower bound");
  CHECK(f.machine.parameter(Cost::engine_latency).uncertainty <= 500);
}

TEST_CASE("limits: simulations, time and the caller end a fit, which keeps the best values so far") {
  const auto o = measured(truth());
  const auto few = fitted(o, {.free = kFour, .max_simulations = 200});
  CHECK(few.end == Fit::End::simulations);
  CHECK(few.simulations <= 200);
  CHECK(few.machine.parameter(Cost::engine_poll).source ==
        "fitted: not to the end, because the limit of simulations was reached");
  const auto start = predict(o, *mi300x_machine(4));
  REQUIRE(start);
  double before = 0;
  for (const auto& p : *start) before += std::abs(p.error) / 8;
  CHECK(few.mean_error < before);

  const auto late = fitted(o, {.free = kFour, .deadline = Deadline::in(std::chrono::seconds(0))});
  CHECK(late.end == Fit::End::deadline);
  CHECK(late.mean_error == Approx(before));

  int calls = 0;
  const auto stopped = fitted(o, {.free = kFour, .progress = [&](const FitProgress& p) {
                                    CHECK(p.stage == "descent");
                                    CHECK(p.max_simulations == 1000000);
                                    return ++calls < 5;
                                  }});
  CHECK(stopped.end == Fit::End::stopped);
  CHECK(calls == 5);
}

TEST_CASE("weights: 0 is predicted but not fitted to; a large power weakens the worst error", "[long]") {
  auto o = measured(truth());
  o[5].value *= 3;  // an outlier
  o[5].weight = 0;
  const auto f = fitted(o, {.free = kFour});
  CHECK(f.machine[Cost::engine_latency] == Approx(1320).epsilon(0.01));
  CHECK(f.predictions[5].error < -0.6);
  CHECK(f.worst_error < 1e-3);

  // Two measurements of one schedule that contradict each other: the squares of the weights decide.
  std::vector<Observation> two{Observation::time("a", schedules()[0], 7000),
                               Observation::time("b", schedules()[0], 7700)};
  two[1].weight = 3;
  const auto between = fitted(two, {.free = {{Cost::engine_packet}}});
  CHECK(between.predictions[0].error == Approx(-9 * between.predictions[1].error).epsilon(0.15));

  o = measured(truth(), 0.1, 3);
  const auto squares = fitted(o, {.free = kFour}), eighth = fitted(o, {.free = kFour, .power = 8});
  CHECK(eighth.worst_error < 0.97 * squares.worst_error);
}

TEST_CASE("as many measurements as parameters: no uncertainty, unless a spread is known") {
  const auto start = *mi300x_machine(4);
  auto o = measured(truth());
  o.resize(1);
  const auto f = fitted(o, {.free = {{Cost::engine_packet}}});
  CHECK(f.machine.parameter(Cost::engine_packet).source == "fitted: 1 measurement; its uncertainty is not determined");
  CHECK(f.machine.parameter(Cost::engine_packet).uncertainty == start.parameter(Cost::engine_packet).uncertainty);
  o[0].spread = 100;
  const auto known = fitted(o, {.free = {{Cost::engine_packet}}});
  CHECK(known.machine.parameter(Cost::engine_packet).uncertainty == Approx(100).epsilon(0.01));
}

TEST_CASE("the same measurements give the same fit, and a start far away a near one", "[long]") {
  const auto o = measured(truth(), 0.02);
  const auto a = fitted(o, {.free = kFour}), b = fitted(o, {.free = kFour});
  CHECK(a.machine == b.machine);
  auto far = *mi300x_machine(4);
  for (const auto* p : {"engine.packet_ns", "engine.latency_ns", "engine.poll_ns"}) set(far, p, 100);
  const auto c = fitted(o, {.free = kFour}, far);
  for (const auto& p : kFour) CHECK(c.machine[p.cost] == Approx(a.machine[p.cost]).epsilon(0.01));
}

TEST_CASE("errors name the observation or the parameter, and what to do") {
  const auto good = copies("64", 1);
  auto o = std::vector{Observation::time("nothing", nullptr, 5), Observation::ratio("alone", good, nullptr, 5),
                       Observation::time("zero", good, 0),       Observation::share("much", good, Phase::copy, 101),
                       Observation::time("odd", good, 5, -1),    Observation::time("light", good, 5)};
  o.back().weight = -1;
  const auto all = refused(o, {.free = {{Cost::engine_packet}}});
  CHECK(has(all, "nothing: error: this observation has no schedule\n  hint: give it the schedule that was measured"));
  CHECK(has(all, "alone: error: this ratio has no baseline"));
  CHECK(has(all, "zero: error: its value is not possible\n  hint: a time in ns, or a ratio, is above 0"));
  CHECK(has(all, "much: error: its value is not possible\n  hint: a share is a percentage from 0 to 100"));
  CHECK(has(all, "odd: error: its spread is negative"));
  CHECK(has(all, "light: error: its weight is negative"));

  CHECK(has(refused({}, {.free = {{Cost::engine_packet}}}), "there are no measurements"));
  const std::vector one{Observation::time("one", good, 5000)};
  CHECK(has(refused(one, {}), "no parameter is free"));
  CHECK(has(refused(one, {.free = {{Cost::engine_packet}}, .power = 0.5}), "the power is not from 1 to 16"));
  CHECK(has(refused(one, {.free = {{Cost::engine_packet}, {Cost::engine_packet}}}),
            "engine.packet_ns: error: this parameter is free twice"));
  CHECK(has(refused(one, {.free = {{Cost::engine_packet, 10, 5}}}),
            "engine.packet_ns: error: its bounds exclude every value"));
  CHECK(has(refused(one, {.free = {{Cost::xgmi_efficiency, 0.5, 1.5}}}),
            "xgmi.efficiency: error: its upper bound is more than 1"));

  auto many = *good;
  many.gpus = 8;
  const std::vector eight{Observation::time("eight", std::make_shared<const Schedule>(many), 5)};
  const auto why = refused(eight, {.free = {{Cost::engine_packet}}});
  INFO(why);
  CHECK(has(why, "eight: gpu4: error[no-such-gpu]: this node has no GPU 4"));
}

TEST_CASE("an error that a group shares does not move the parameters, as far as it is allowed to be shared", "[long]") {
  // Speed-ups over two baselines, of which one was measured 20 % too slow.
  const auto m = truth();
  std::vector<Observation> o;
  for (const auto& [name, base, error] : {std::tuple{"slow", schedules()[2], 1.2}, {"right", schedules()[7], 1.0}})
    for (const auto i : {0u, 1u, 3u, 4u, 5u, 6u}) {
      const auto ratio = simulate(*base, m)->ns / simulate(*schedules()[i], m)->ns;
      o.push_back(Observation::ratio(std::string(name) + std::to_string(i), schedules()[i], base, ratio * error));
      o.back().group = name;
    }
  const std::vector<FreeParameter> three{kFour.begin(), kFour.begin() + 3};
  auto start = m;
  for (const auto* p : {"engine.packet_ns", "engine.latency_ns"}) set(start, p, 1000);
  set(start, "engine.poll_ns", 3000);
  const auto off = [&](const Fit& f) {
    double worst = 0;
    for (const auto& p : three) worst = std::max(worst, std::abs(f.machine[p.cost] / m[p.cost] - 1));
    return worst;
  };
  const auto independent = fitted(o, {.free = three}, start), shared = fitted(o, {.free = three, .common = 100}, start);
  CHECK(off(independent) > 0.1);
  CHECK(off(shared) < 0.01);
  for (std::size_t i = 0; i < o.size(); ++i) {
    CHECK(shared.predictions[i].shared == Approx(i < 6 ? 1 / 1.2 - 1 : 0).margin(0.01));
    CHECK(independent.predictions[i].shared == 0);
  }
  // What is penalised is smaller; and any power finds the shared error.
  const auto tight = fitted(o, {.free = three, .common = 0.1}, start);
  CHECK(std::abs(tight.predictions[0].shared) < 0.05);
  CHECK(off(fitted(o, {.free = three, .common = 100, .power = 1.5}, start)) < 0.01);
  // An observation without companions has no error but its own.
  o.back().group = "alone";
  CHECK(fitted(o, {.free = three, .common = 100}, start).predictions.back().shared == 0);
  CHECK(has(refused(o, {.free = three, .common = -1}), "the spread of shared errors is not from 0 to 1000"));
}

TEST_CASE("uncertainty: what an error that is shared could also explain is less certain") {
  const auto m = truth();
  std::vector<Observation> o;
  for (const auto i : {0u, 1u, 3u, 4u, 5u, 6u}) {
    const auto ratio = simulate(*schedules()[7], m)->ns / simulate(*schedules()[i], m)->ns;
    o.push_back(Observation::ratio("r" + std::to_string(i), schedules()[i], schedules()[7], ratio, 0.03 * ratio));
    o.back().group = "one baseline";
  }
  const auto uncertainty = [&](double common) {
    return fitted(o, {.free = {{Cost::engine_latency}}, .common = common}, m)
        .machine.parameter(Cost::engine_latency)
        .uncertainty;
  };
  CHECK(uncertainty(0.5) > 1.05 * uncertainty(0));
  CHECK(uncertainty(10) > 1.1 * uncertainty(0));
}
