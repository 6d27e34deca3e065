// SPDX-License-Identifier: MIT
// Kernels that share a GPU, and kernels that add: where their time comes from can be calculated by hand.
#include "sdma/schedule/text.hpp"
#include "sdma/simulate/simulate.hpp"
#include "support/catch.hpp"

#include <algorithm>
#include <string>
#include <utility>

using namespace sdma;

namespace {

Simulation timed(const std::string& text, bool contents = false, const std::string& parameter = "", double value = 0) {
  const auto s = parse_schedule("sdma 1\n" + text, "t.sdma");
  for (const auto& e : s ? std::vector<Diagnostic>{} : s.error()) UNSCOPED_INFO(to_string(e));
  REQUIRE(s);
  auto m = *mi300x_machine();
  if (!parameter.empty()) REQUIRE(m.set(parameter, value) == Errc::ok);
  auto t = simulate(*s, m, {.contents = contents});
  REQUIRE(t);
  return std::move(*t);
}
double of(Cost c) { return (*mi300x_machine())[c]; }
/// The time of kernels on gpu0 that do this, each with its share.
double together(const std::vector<std::uint32_t>& shares, const std::string& action, std::uint32_t gpus = 1) {
  std::string text =
      "gpus " + std::to_string(gpus) + "\nbuffer gpu*.a bytes=64M init=random\nbuffer gpu*.out bytes=64M\n";
  for (std::size_t i = 0; i < shares.size(); ++i)
    text += "kernel gpu0.k" + std::to_string(i) + " share=" + std::to_string(shares[i]) + "\n" + action + "\nend\n";
  return timed(text).total_ns;
}
const std::string kCompute = "compute ns=100000";

}  // namespace

TEST_CASE("kernels of one GPU share its compute units") {
  CHECK(together({100}, kCompute) == Approx(100'000));
  CHECK(together({100, 100}, kCompute) == Approx(200'000));
  CHECK(together({100, 100, 100, 100}, kCompute) == Approx(400'000));
  CHECK(together({50, 50}, kCompute) == Approx(100'000));
  CHECK(together({75, 50}, kCompute) == Approx(125'000));
  CHECK(together({1, 1, 1}, kCompute) == Approx(100'000));
  const auto apart = timed("gpus 2\nkernel gpu0.k\ncompute ns=100000\nend\nkernel gpu1.k\ncompute ns=100000\nend\n");
  CHECK(apart.total_ns == Approx(100'000));
}

TEST_CASE("a sum takes as long as its bytes on the slowest way") {
  const double bytes = 64 << 20;
  const auto hbm = of(Cost::hbm_rate), link = 64 * of(Cost::xgmi_efficiency);
  CHECK(together({10}, "store gpu0.out = sum(gpu0.a, gpu0.a) type=f32") == Approx(3 * bytes / hbm));
  CHECK(together({10}, "store gpu0.out = sum(gpu0.a) type=f32") == Approx(2 * bytes / hbm));
  CHECK(together({10}, "store gpu0.out = sum(gpu0.a, gpu1.a) type=f32", 2) == Approx(bytes / link));
  CHECK(together({10}, "store gpu1.out = sum(gpu1.a, gpu1.a) type=f32", 2) == Approx(2 * bytes / link));
  // Two need the memory twice, whatever their share of the compute units is.
  CHECK(together({10, 10}, "store gpu0.out[0..64] = sum(gpu0.a[0..64]) type=f32") < 1);
  CHECK(together({10, 10}, "store gpu0.out = sum(gpu0.a, gpu0.a) type=f32") == Approx(6 * bytes / hbm));
}

TEST_CASE("workgroups limit what a kernel moves between GPUs, and a link has less for it than for engines") {
  const double bytes = 64 << 20;
  const auto link = 64 * of(Cost::xgmi_efficiency) * of(Cost::kernel_link), each = of(Cost::kernel_workgroup);
  const auto kernel = [](const std::string& fields, const std::string& store) {
    return timed("gpus 2\nbuffer gpu*.a bytes=64M init=random\nbuffer gpu*.out bytes=64M\nkernel gpu0.k" + fields +
                 "\n" + store + "\nend\n")
        .total_ns;
  };
  const std::string push = "store gpu1.out = sum(gpu0.a) type=f32", local = "store gpu0.out = sum(gpu0.a) type=f32";
  CHECK(kernel(" workgroups=1", push) == Approx(bytes / each));
  CHECK(kernel(" workgroups=4", push) == Approx(bytes / (4 * each)));
  CHECK(kernel(" workgroups=64", push) == Approx(bytes / link));
  CHECK(kernel(" workgroups=64 protocol=ll", push) == Approx(2 * bytes / link));
  CHECK(kernel(" workgroups=2 protocol=ll", push) == Approx(2 * bytes / (2 * each)));
  // In its own memory, neither counts.
  CHECK(kernel(" workgroups=1 protocol=ll", local) == Approx(2 * bytes / of(Cost::hbm_rate)));
}

TEST_CASE("a protocol says what a step between kernels costs") {
  const auto steps = [](const std::string& protocol) {
    return timed("gpus 2\nsignal gpu*.got value=0\nkernel gpu0.k protocol=" + protocol +
                 "\nset gpu1.got = 1\nend\nkernel gpu1.k protocol=" + protocol + "\nwait gpu1.got == 1\nend\n")
        .total_ns;
  };
  const auto flight = of(Cost::xgmi_flight), plain = of(Cost::kernel_release) + flight + of(Cost::kernel_poll);
  CHECK(steps("plain") == Approx(plain));
  CHECK(steps("simple") == Approx(plain + of(Cost::kernel_step)));
  CHECK(steps("ll") == Approx(of(Cost::kernel_ll) + flight));
}

TEST_CASE("where hardware tracks stores, nothing is released, and sums within a GPU's memory take no time") {
  const double bytes = 64 << 20, link = 64 * of(Cost::xgmi_efficiency);
  const auto tracked = [](const std::string& actions, double ns = 0) {
    return timed("gpus 2\nbuffer gpu*.a bytes=64M init=random\nbuffer gpu*.out bytes=64M\nsignal gpu*.got value=0\n" +
                     actions,
                 false, "kernel.tracked_ns", ns)
        .total_ns;
  };
  const auto flight = of(Cost::xgmi_flight);
  const std::string step =
      "kernel gpu0.k protocol=tracked\nset gpu1.got = 1\nend\n"
      "kernel gpu1.k protocol=tracked\nwait gpu1.got == 1\nend\n";
  CHECK(tracked(step) == Approx(flight));
  CHECK(tracked(step, 50) == Approx(flight + 100));
  const auto sum = [&](const std::string& store) {
    return tracked("kernel gpu0.k share=0 protocol=tracked\nstore " + store + " type=f32\nend\n");
  };
  CHECK(sum("gpu0.out = sum(gpu0.out, gpu0.a)") < 1);
  CHECK(sum("gpu1.out = sum(gpu0.a)") == Approx(bytes / link));
  // It needs no compute unit, so a product beside it takes as long as alone.
  CHECK(tracked("kernel gpu0.gemm\ncompute ns=1000000\nend\nkernel gpu0.k share=0 protocol=tracked\n"
                "store gpu1.out = sum(gpu0.a) type=f32\nend\n") == Approx(std::max(1e6, bytes / link)));
}

TEST_CASE("a memory that prefers the traffic of compute gives it its weight") {
  const auto full = of(Cost::hbm_rate);
  const auto product = [&](double weight, const std::string& hbm) {
    const auto t = timed(
        "gpus 1\nbuffer gpu0.a bytes=64M init=random\nbuffer gpu0.out bytes=64M\nsignal host.end value=0\n"
        "kernel gpu0.gemm\ncompute ns=1000 hbm=" +
            hbm +
            "\nend\n"
            "kernel gpu0.add share=0\nstore gpu0.out = sum(gpu0.a) type=f32\nend\n",
        false, "hbm.compute_weight", weight);
    const auto gemm =
        std::find_if(t.busy.begin(), t.busy.end(), [](const auto& b) { return b.name == "kernel gpu0.gemm"; });
    return std::pair{gemm->busy_ns, t.total_ns};
  };
  const auto all = std::to_string(static_cast<std::uint64_t>(1000 * full));
  CHECK(product(1, all).first == Approx(2000));
  CHECK(product(3, all).first == Approx(4000.0 / 3));
  CHECK(product(1e6, all).first == Approx(1000).epsilon(1e-4));
  // The memory does the same work in the same time, whoever comes first.
  CHECK(product(1, all).second == Approx(product(1000, all).second));
  // A product that needs less than its fair part is never slowed.
  const auto less = std::to_string(static_cast<std::uint64_t>(400 * full));
  CHECK(product(1, less).first == Approx(1000));
  CHECK(product(1000, less).first == Approx(1000));
}

TEST_CASE("a sum adds the bytes, if they are moved") {
  const std::string text =
      "gpus 2\nbuffer gpu*.a bytes=4K init=random\nbuffer gpu0.out bytes=4K\n"
      "kernel gpu0.k\nstore gpu0.out = sum(gpu*.a) type=f32\nend\nexpect gpu0.out == old sum(gpu*.a) type=";
  CHECK(timed(text + "f32\n", true).findings.empty());
  CHECK(timed(text + "i32\n", true).findings.size() == 1);
  CHECK(timed(text + "i32\n").findings.empty());
}

TEST_CASE("a kernel that needs more of the memory than there is takes longer, and it says so") {
  const auto t = timed("gpus 1\nkernel gpu0.k\nrepeat 2\ncompute ns=100 hbm=1M\nend\nend\n");
  CHECK(t.total_ns == Approx(2 * (1 << 20) / of(Cost::hbm_rate)));
  REQUIRE(t.findings.size() == 1);
  CHECK(t.findings[0].severity == Severity::warning);
  CHECK(t.findings[0].where == "kernel gpu0.k");
  CHECK(t.findings[0].message == "1M bytes in 100 ns are 10486 GB/s, but the memory of gpu0 has 5300: it takes 198 ns");
  CHECK(timed("gpus 1\nkernel gpu0.k\ncompute ns=200 hbm=1M\nend\n").findings.empty());
}
