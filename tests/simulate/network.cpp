// SPDX-License-Identifier: MIT
// Rates of flows that share resources, against progressive filling of everything at once; and a run that is repeated on
// another machine, against one that begins anew.
#include "../../lib/simulate/network.hpp"

#include "sdma/core/file.hpp"
#include "sdma/schedule/text.hpp"
#include "support/catch.hpp"

#include <cmath>
#include <map>
#include <random>
#include <set>

using namespace sdma;
using detail::Network;

namespace {

struct Flow {
  std::vector<Network<>::Use> uses;
  double rate{};
};

/// All rates grow together; a flow stops when one of its resources is full.
void fill(std::map<std::uint32_t, Flow>& flows, const std::vector<Network<>::Resource>& resources) {
  std::vector<double> left;
  for (const auto& r : resources) left.push_back(r.rate);
  std::vector<Flow*> open;
  for (auto& [id, f] : flows) f.rate = 0, open.push_back(&f);
  while (!open.empty()) {
    std::vector<double> weight(resources.size());
    for (const auto* f : open)
      for (const auto& u : f->uses) weight[u.resource] += u.weight;
    double step = std::numeric_limits<double>::infinity();
    for (std::size_t r = 0; r < weight.size(); ++r)
      if (weight[r] > 0) step = std::min(step, left[r] / weight[r]);
    for (std::size_t r = 0; r < weight.size(); ++r) left[r] -= step * weight[r];
    for (auto* f : open) f->rate += step;
    const auto stops = [&](const Flow* f) {
      return std::any_of(f->uses.begin(), f->uses.end(),
                         [&](const auto& u) { return left[u.resource] <= 1e-11 * resources[u.resource].rate; });
    };
    open.erase(std::remove_if(open.begin(), open.end(), stops), open.end());
  }
}

}  // namespace

TEST_CASE("rates are those of progressive filling, however flows begin and end") {
  std::mt19937 random{7};
  const auto below = [&](std::uint32_t n) { return static_cast<std::uint32_t>(random() % n); };
  std::size_t compared = 0, limited = 0, kept = 0;
  for (int round = 0; round < 60; ++round) {
    Network<> net;
    const auto n = 2 + below(30);
    for (std::uint32_t i = 0; i < n; ++i) net.add({.name = "", .rate = 1.0 + below(8)});
    std::map<std::uint32_t, Flow> flows;
    double now = 0;
    for (int step = 0; step < 200; ++step, ++now) {
      // Often, several change at one moment.
      for (auto changes = 1 + below(4); changes > 0; --changes) {
        if (const auto what = below(10); what < 5 || flows.empty()) {
          std::vector<Network<>::Use> uses;
          for (auto k = 1 + below(4); k > 0; --k)
            if (const auto r = below(n);
                std::none_of(uses.begin(), uses.end(), [&](auto& u) { return u.resource == r; }))
              uses.push_back({r, 1.0 / (1 + below(3))});
          flows[net.start(now, 1e9, uses)] = {uses};
        } else if (what < 9) {
          const auto which = std::next(flows.begin(), below(static_cast<std::uint32_t>(flows.size())));
          net.end(now, which->first);
          flows.erase(which);
        } else {
          net.limit(below(n), 1.0 + below(8));
        }
      }
      const auto settled = net.settle(now);
      const std::set<std::uint32_t> changed(settled.begin(), settled.end());
      auto before = flows;
      fill(flows, net.resources());
      for (const auto& [id, f] : flows) {
        const auto rate = net.rate(id);
        INFO("round " << round << ", step " << step << ", flow " << id << ": " << rate << ", right " << f.rate);
        REQUIRE(std::abs(rate - f.rate) <= 1e-9 * f.rate);
        ++compared;
        if (changed.count(id) == 0) ++kept;
        limited += rate < net.alone(id) * (1 - 1e-9);
      }
    }
  }
  // Most flows share something, and most keep their rate.
  CHECK(compared > 40000);
  CHECK(limited > compared / 4);
  CHECK(kept > compared / 4);
}

TEST_CASE(
    "a run on another machine is the same, whether it begins anew, repeats one, or has other machines beside it") {
  // In one run with others, engines take the packets of their queues in the order of the machine itself.
  constexpr double kOff = 0.1;
  // A word of a buffer that a queue polls and another one stores.
  std::vector<std::pair<std::string, std::string>> all{
      {"word",
       "sdma 1\ngpus 2\nbuffer gpu*.b bytes=64K\nsignal host.done value=0\nqueue gpu0.q peer=gpu1\n"
       "copy_linear bytes=4K src=gpu0.b dst=gpu1.b\nfence addr=gpu1.b[60K] value=1\nend\nqueue gpu1.q peer=gpu0\n"
       "poll_mem addr=gpu1.b[60K] func=eq reference=1\ncopy_linear bytes=4K src=gpu1.b dst=gpu0.b[8K]\n"
       "atomic op=add_rtn_64 addr=host.done value=1\nend\nhost main\nsubmit *\nwait host.done == 1\nend\n"}};
  for (const auto* name : {"1_copy", "2_allgather_b2b", "3_alltoall_swap", "4_broadcast", "5_allgather_prelaunch",
                           "6_kv_fetch", "9_allgather_open", "10_overlap", "11_stream_order"}) {
    const auto path = std::string(SDMA_SOURCE_ROOT "/examples/schedules/") + name + ".sdma";
    const auto text = read_file(path);
    REQUIRE(text);
    all.emplace_back(path, *text);
  }
  for (const auto& [path, text] : all) {
    const auto s = parse_schedule(text, path);
    for (const auto& d : s ? std::vector<Diagnostic>{} : s.error()) UNSCOPED_INFO(to_string(d));
    REQUIRE(s);
    for (const auto* parameter : {"engine.copies_to_a_peer", "engine.page_ns", "engine.occupied_ns"}) {
      auto m = *mi300x_machine(8);
      REQUIRE(m.set(parameter, 1) == Errc::ok);
      const auto found = sensitivity(*s, m);
      REQUIRE(found);
      REQUIRE(found->rows.size() > 5);
      for (const auto& row : found->rows) {
        auto least = found->ns, most = found->ns;
        for (const auto sign : {-1, 1}) {
          auto other = m;
          auto& p = other.parameter(row.cost);
          p.value = std::max(0.0, p.value + sign * p.uncertainty);
          if (unit(row.cost) == "fraction") p.value = std::min(p.value, 1.0);
          const auto t = simulate(*s, other);
          REQUIRE(t);
          least = std::min(least, t->ns);
          most = std::max(most, t->ns);
        }
        INFO(path << ", " << parameter << ", " << name(row.cost));
        CHECK(std::abs(row.low_ns - least) < kOff * found->uncertainty_ns);
        CHECK(std::abs(row.high_ns - most) < kOff * found->uncertainty_ns);
      }
    }
  }
}
