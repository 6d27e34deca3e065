// SPDX-License-Identifier: MIT
#pragma once
// A schedule that moves the bytes of a collective along routes (routes.hpp). Internal.
//
//   auto s = routed(Moved::all_gather, {.machine = m, .gpus = 8, .bytes = 1 << 20, .net = net}, routes, form);
//
// Each edge has queues on engines of its own; over a network, one of the network. Who passes bytes on waits for a word
// that the sender's fence stores behind them. In a reduce_scatter the trees lead from their leaves to the GPU that gets
// the sum, and kernels add on the way. The order of a queue is that in which its copies could begin if nothing but the
// links took time: so every wait is for something that is earlier in that order, and nothing can be stuck.
//
//   root --c0--> k --c0--> j       gpu0.to1:  copy, fence gpu1.from0 = 1
//                                  gpu1.to2:  poll gpu1.from0 >= 1, copy, atomic host.done1
#include "routes.hpp"
#include "sdma/schedule/schedule.hpp"
#include "sdma/search/synthesize.hpp"

namespace sdma { inline namespace v0_3 { namespace detail {

inline constexpr std::uint64_t kGranule = 64;  ///< bytes: parts, pieces and routes are multiples of it
inline constexpr std::uint64_t kElement = 4;   ///< bytes that a reduce_scatter adds at once: f32

/// Who rings doorbells and waits.
enum class Threads : std::uint8_t { each_gpu, each_queue };

/// How routes become queues.
struct QueueForm {
  std::uint32_t pieces = 1;   ///< of the longest route whose bytes are passed on
  std::uint32_t ways = 1;     ///< queues of each edge, which take its copies in turn
  std::uint32_t apart = 0;    ///< 1: these queues have an engine each
  std::uint32_t queues = 0;   ///< of each GPU, for all its edges; 0: `ways` for each edge
  bool pairs = false;         ///< two copies of the same bytes in a row are one broadcast
  std::uint32_t words = 4;    ///< of the host, which count completions; in several nodes, one for each GPU
  std::uint32_t kernels = 1;  ///< of each GPU that adds
  Threads threads = Threads::each_gpu;
};
/// For people: "3 queues a GPU, broadcasts".
std::string to_text(const QueueForm&);

struct Task {
  const MachineDescription* machine{};
  Synthesized collective{};
  std::uint32_t gpus{};
  std::uint64_t bytes{};
  std::uint32_t root{};
};
/// What a GPU's part is: as in all collectives of this project.
std::uint64_t chunk_of(const Task&);
/// What has to be routed: parts of all GPUs, in their order.
std::vector<Item> items_of(const Task&);

Schedule routed(const Task&, const Net&, const std::vector<Item>&, const Routes&, const QueueForm&);

}}}  // namespace sdma::v0_3::detail
