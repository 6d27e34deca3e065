// SPDX-License-Identifier: MIT
#pragma once
// The steps of a first contact with a node: what is there, what works, which order is seen, how fast it is.
//
//   Settings s{.device = DeviceKind::kfd, .open = [] { return open_device(DeviceKind::kfd); }};
//   const auto answer = meet(s);                   // "there", "works", "order", "speed": a list of results each
//
// A step is a list of items. Items run one after another in a child process, which has the only open device. An item
// whose queues hang ends that process, with the doctor's answer as its result, and the next item runs in a new process.
// A process that does not answer is killed. After two hangs, the other items of the same group are left out.
//
//   state          a result
//   passed         as expected
//   failed         wrong bytes, a fault, a wrong count
//   hung           a wait did not end: "doctor" has the doctor's answer
//   left out       cannot be tried on this node: "why"
//   seen           what nothing defines was tried: "why" is what happened, and none of it is wrong
//   not tried      the time was over, or Ctrl-C: "why"
// Items of the order have other states, too (order.cpp), and measured items have times (speed.cpp).
//
// Call it with one thread and without an open device. Nothing private is in a result: no name of a host or a user, no
// serial number, no path of the caller's.
// Errors are results: a device that cannot be opened is the reason of each item that needs it.
#include "json/json.hpp"
#include "sdma/core/deadline.hpp"
#include "sdma/device/open.hpp"

#include <chrono>
#include <csignal>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace sdma::tool::contact {

using json::Json;

/// How much to do, and on what.
struct Settings {
  DeviceKind device = DeviceKind::soft;
  std::function<Result<std::unique_ptr<Device>, Diagnostic>()> open{};  ///< called in the process of a step
  std::chrono::nanoseconds time = std::chrono::minutes(10);             ///< for everything
  std::chrono::nanoseconds patience = std::chrono::seconds(10);         ///< a wait that lasts longer hangs
  std::chrono::nanoseconds still = std::chrono::milliseconds(50);       ///< of litmus programs: DeviceWorld::on
  std::uint64_t runs = 1000;                                            ///< of each litmus program, at most
  bool gentle = false;                                                  ///< few queues, little memory, small copies
  bool risky = false;                                                   ///< also items that may hang an engine
  std::string module{};                                                 ///< of kernels for the device; empty: none
  std::set<std::string> only{};                                         ///< names of steps; empty: all
  const volatile std::sig_atomic_t* stop{};  ///< ends everything when it is not 0; null: nothing does
  std::function<void(const std::string& step, const std::string& item)> progress{};  ///< called before each item
};

/// One thing to try.
struct Item {
  std::string id{}, group{};            ///< what it is called; which items its hang may leave out
  std::function<Json(Device*)> work{};  ///< its result, with "state". The device is null if `bare`
  std::chrono::nanoseconds limit{};     ///< its process is killed after this time
  bool bare = false;                    ///< it needs no device
  bool any = false;                     ///< any outcome is an answer, also a hang; its process ends with it
};

/// The results of these items, in their order, each with "id". `learn`: called with each result in this process.
Json perform(const Settings&, const std::string& step, std::span<const Item>, Deadline end,
             const std::function<void(const Json&)>& learn = {});

Json with_state(std::string_view state, const std::string& why = {});

/// The engine of GPU 0 that the node recommends for this peer; nothing: for copies to the host.
Result<EngineId> engine_facing(const Topology&, std::optional<GpuId> far);
/// Runs a schedule once and compares its bytes. `far`: the GPU that takes the place of the host in names that begin
/// with host.far and in peer=host; nothing: the host.
Json run_text(Device&, const Settings&, std::string_view text, std::string_view name,
              const std::vector<std::pair<std::string, std::string>>& set, std::optional<GpuId> far);
/// The same text for this peer.
std::string facing(std::string_view text, std::optional<GpuId> far);

/// Waves put tiles through a ring that they write. `module`: of their kernels; empty: threads stand in for waves.
Json put_by_waves(Device&, const Settings&, const std::string& module);
/// Why no kernels can be tried with these settings; "": they can.
std::string no_kernels(const Settings&);

/// With --risky: what nothing defines, on one side. `text`: that of packets.sdma.
std::vector<Item> undefined_things(const Settings&, std::string_view text, const std::string& side,
                                   std::optional<GpuId> far);

Json what_is_there(const Settings&, Deadline);
Json what_works(const Settings&, const Topology&, Deadline);
Json what_order(const Settings&, const Topology&, Deadline);
Json how_fast(const Settings&, const Topology&, Deadline);

/// All steps.
Json meet(const Settings&);

}  // namespace sdma::tool::contact
