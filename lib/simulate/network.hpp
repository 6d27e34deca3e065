// SPDX-License-Identifier: MIT
#pragma once
// Flows of bytes that share resources by max-min fairness. Internal.
//
//   Network net;
//   auto link = net.add({.kind = Busy::Kind::link, .name = "link gpu0->gpu1", .rate = 48});
//   auto f = net.start(now, 65536, {{link, 1.0}, {engine, 2.0}});   // each byte of the flow is two bytes of the engine
//   for (auto c : net.changed()) push(net.finish(c), c);            // flows whose end has changed
//   net.end(now, f);
//   net.limit(now, link, 24);                                      // from now on, it has half of its rate
//
// Progressive filling: all rates grow together, and a flow stops growing when one of its resources is full. Only flows
// that are connected by resources that could be full are recomputed, so unrelated copies cost each other nothing. Times
// are in ns, rates in bytes/ns. No errors.
#include "sdma/simulate/simulate.hpp"

#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <vector>

namespace sdma::inline v0::detail {

struct Resource {
  Busy::Kind kind{};
  std::string name{};
  double rate{};
  // Since `reset`.
  double busy_ns{}, bytes{}, since{};
  double demand{};                     ///< the sum of its flows' rates, each as if it were alone
  std::vector<std::uint32_t> flows{};  ///< flows that use it now
  // Temporary: used by fill.
  double left{}, weight{};  ///< of its rate; of its flows that have no rate yet
  std::uint32_t open{};     ///< how many these are
  std::uint32_t mark{};     ///< the last fill in which it could be full
};

class Network {
 public:
  struct Use {
    std::uint32_t resource{};
    double weight{};  ///< bytes of the resource per byte of the flow
  };

  std::uint32_t add(Resource r) {
    resources_.push_back(std::move(r));
    return static_cast<std::uint32_t>(resources_.size() - 1);
  }
  std::uint32_t start(double now, double bytes, std::vector<Use> uses);
  void end(double now, std::uint32_t flow);
  /// Gives the resource another rate.
  void limit(double now, std::uint32_t resource, double rate);

  /// When the flow ends, if nothing changes.
  double finish(std::uint32_t flow) const noexcept {
    return flows_[flow].updated + flows_[flow].left / flows_[flow].rate;
  }
  /// The resource that limits the flow's rate.
  std::uint32_t bound(std::uint32_t flow) const noexcept { return flows_[flow].bound; }
  /// Flows whose rate was changed by the last start or end.
  const std::vector<std::uint32_t>& changed() const noexcept { return changed_; }

  std::vector<Resource>& resources() noexcept { return resources_; }
  /// Brings `bytes` and `busy_ns` of everything to `now`; `reset` then sets them to zero.
  void account(double now, bool reset) noexcept;

 private:
  struct Flow {
    double left{}, rate{}, alone{}, updated{};
    std::vector<Use> uses{};
    std::uint32_t bound{};
    std::uint32_t mark{};  ///< the last fill that included this flow
    bool fixed{};
  };
  static constexpr double kSlack = 1 + 1e-9;
  void advance(double now, Flow&) noexcept;
  /// Finds the rate that the flow would have alone.
  void measure(Flow&) noexcept;
  void fill(double now, std::span<const Use> from);

  std::vector<Resource> resources_;
  std::vector<Flow> flows_;
  std::vector<std::uint32_t> free_, changed_, joined_;
  std::vector<std::uint32_t> crossed_;
  std::uint32_t mark_ = 0;
};

}  // namespace sdma::inline v0::detail
