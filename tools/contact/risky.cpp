// SPDX-License-Identifier: MIT
// What no document defines: the first half of a packet, and a dword that begins none. Any outcome is an answer.
#include "contact/steps.hpp"
#include "sdma/packets/sync.hpp"
#include "sdma/queue/ring.hpp"
#include "sdma/sync/wait.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace sdma::tool::contact {
namespace {

using namespace std::chrono_literals;

/// Publishes the first `head` dwords of a fence; after a while, the others. Does the engine wait for them?
Json half_a_packet(Device& d, const Settings& s, std::optional<GpuId> far, std::size_t head) {
  const auto engine = engine_facing(d.topology(), far);
  if (!engine) return with_state("left out", std::string(message(engine.error())));
  const auto done = d.create_signal();
  if (!done) return with_state("left out", to_string(done.error()));
  const auto queue = d.create_queue({.gpu = GpuId{0}, .engine = *engine});
  if (!queue) return with_state("left out", to_string(queue.error()));
  Ring<> ring{queue->memory()};
  const auto fence = encode(Fence{.addr = (*done)->va, .value = 1});
  const std::span whole(fence);
  // An engine that reads past wptr finds the rest of the packet, and not an address of chance.
  std::copy(whole.begin(), whole.end(), queue->memory().dwords.begin());
  const auto put = [&](std::span<const std::uint32_t> part) {
    const auto slot = ring.reserve(part.size());
    if (!slot) return false;
    std::copy(part.begin(), part.end(), slot->dwords.begin());
    ring.publish(*slot, part.size());
    return true;
  };
  if (!put(whole.first(head))) return with_state("left out", "the ring had no room");
  if (wait(**done, Compare::eq, 1, Deadline::in(20ms), ring))
    return with_state("seen", "the engine did not wait for the rest: it read past wptr");
  if (const auto f = d.fault(*queue)) return with_state("seen", "the engine stopped: " + describe(*f));
  if (!put(whole.subspan(head))) return with_state("seen", "the ring took no more");
  if (wait(**done, Compare::eq, 1, Deadline::in(s.patience), ring))
    return with_state("seen", "the engine waited for the rest, and executed the packet");
  if (const auto f = d.fault(*queue)) return with_state("seen", "the engine stopped: " + describe(*f));
  return with_state("hung", "the engine did not execute the packet when the rest was there");
}

/// A result of which none is wrong.
Json any(Json j) {
  if (j["state"] == "left out" || j["state"] == "hung") return j;
  if (j["state"] == "passed") j["why"] = "the engine skipped it, and executed the next packet";
  if (j.contains("findings") && !j["findings"].empty())
    j["why"] = "the engine stopped: " + to_string(json::diagnostic(j["findings"][0]));
  j["state"] = "seen";
  j["rule"] = "X9";
  j.erase("findings");
  return j;
}

}  // namespace

std::vector<Item> undefined_things(const Settings& s, std::string_view text, const std::string& side,
                                   std::optional<GpuId> far) {
  std::vector<Item> items;
  const auto add = [&](const char* what, std::function<Json(Device*)> work) {
    items.push_back({.id = fmt::format("{}, {}", what, side),
                     .group = "undefined, " + side,
                     .work = std::move(work),
                     .limit = 2 * s.patience,
                     .any = true});
  };
  for (std::size_t head = 1; head <= 3; ++head)
    add(head == 1   ? "the first dword of a fence"
        : head == 2 ? "the first half of a fence"
                    : "a fence without its last dword",
        [&s, far, head](Device* d) { return half_a_packet(*d, s, far, head); });
  add("a dword that begins no packet", [&s, far, text](Device* d) {
    return any(run_text(*d, s, text, "contact", {{"packet", "foreign"}}, far));
  });
  return items;
}

}  // namespace sdma::tool::contact
