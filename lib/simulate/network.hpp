#pragma once
// What bytes cross, and how fast: flows that share resources max-min fair. Internal.
//
//   Network net;
//   auto link = net.add({.kind = Busy::Kind::link, .name = "link gpu0->gpu1", .rate = 48});
//   auto f = net.start(now, 65536, {{link, 1.0}, {engine, 2.0}});        // each byte of the flow is two bytes of the engine
//   for (auto c : net.changed()) push(net.finish(c), c);                 // whose end has moved: `finish` may have, too
//   net.end(now, f);
//
// Progressive filling: all rates grow together; who crosses a resource that is full stops growing. Only flows that are joined
// by resources that could be full are looked at, so unrelated copies cost each other nothing.
// Times in ns, rates in bytes/ns. No errors.
#include "sdma/simulate/simulate.hpp"

#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <vector>

namespace sdma {
inline namespace v0 {
namespace detail {

struct Resource {
  Busy::Kind kind{};
  std::string name{};
  double rate{};
  // What it has done since `reset`.
  double busy_ns{}, bytes{}, since{};
  double demand{};                     ///< of its flows, each as if it were alone
  std::vector<std::uint32_t> flows{};  ///< that cross it now
  double left{};                       ///< scratch of a filling
};

class Network {
 public:
  struct Use {
    std::uint32_t resource{};
    double weight{};  ///< its bytes for each byte of the flow
  };

  std::uint32_t add(Resource r) {
    resources_.push_back(std::move(r));
    return static_cast<std::uint32_t>(resources_.size() - 1);
  }
  std::uint32_t start(double now, double bytes, std::vector<Use> uses);
  void end(double now, std::uint32_t flow);

  /// When the flow ends, if nothing changes.
  double finish(std::uint32_t flow) const noexcept {
    return flows_[flow].updated + flows_[flow].left / flows_[flow].rate;
  }
  /// The resource that sets its rate.
  std::uint32_t bound(std::uint32_t flow) const noexcept { return flows_[flow].bound; }
  /// Flows whose rate the last start or end has changed.
  const std::vector<std::uint32_t>& changed() const noexcept { return changed_; }

  std::vector<Resource>& resources() noexcept { return resources_; }
  /// Brings `bytes` and `busy_ns` of everything to `now`; `reset` forgets them afterwards.
  void account(double now, bool reset) noexcept;

 private:
  struct Flow {
    double left{}, rate{}, alone{}, updated{};
    std::vector<Use> uses{};
    std::uint32_t bound{};
    std::uint32_t mark{};  ///< of the filling that it is in
    bool fixed{};
  };
  static constexpr double kSlack = 1 + 1e-9;
  void advance(double now, Flow&) noexcept;
  void fill(double now, std::span<const Use> from);

  std::vector<Resource> resources_;
  std::vector<Flow> flows_;
  std::vector<std::uint32_t> free_, changed_, joined_;
  std::vector<std::uint32_t> crossed_;
  std::uint32_t mark_ = 0;
};

}  // namespace detail
}  // namespace v0
}  // namespace sdma
