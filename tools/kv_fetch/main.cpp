// SPDX-License-Identifier: MIT
// KV-cache fetch, as in LLM serving: a request's blocks are scattered in a pool of host memory. They are copied
// to contiguous GPU memory, and later back to their places. These are many small copies, so the fixed cost of a
// copy matters most.
//
//   host pool  [ . 3 . . 0 . 2 . . . 1 . ]   --- engine 1 of the GPU --->   gpu [ 0 1 2 3 ]   fetch
//                                            <--- engine 0 ------------                       return
//
// request.hpp says how blocks are dealt to queues in each way, mover.hpp executes that on a device, simulated.hpp in
// simulated time, and report.hpp prints from which size of a block on DMA is the right choice.
#include "collectives/engines.hpp"
#include "examples/support.hpp"
#include "mover.hpp"
#include "report.hpp"
#include "sdma/core/file.hpp"
#include "simulated.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <functional>

using namespace sdma;
using namespace collectives;
using example::fail;
using example::must;

namespace {

using Measure = std::function<kv::Times(const kv::Request&)>;

kv::Sweep sweep(const kv::Options& o, const Measure& measure) {
  kv::Sweep s{.options = o};
  if (o.sizes.size() > 1) s.large = measure({.blocks = 1, .bytes = o.large});
  for (const auto way : o.ways)
    for (const auto engines : o.engines) {
      auto& c = s.columns.emplace_back(kv::Column{.way = way, .engines = engines});
      for (const auto bytes : o.sizes)
        c.times.push_back(
            measure({.way = way, .engines = engines, .queues = o.queues, .blocks = o.blocks, .bytes = bytes}));
    }
  return s;
}

void print(const kv::Sweep& s) {
  constexpr std::pair<const char*, double kv::Times::*> kDirections[] = {{"fetch", &kv::Times::fetch},
                                                                         {"return", &kv::Times::give}};
  for (const auto& [title, direction] : kDirections) std::printf("%s\n", table(s, title, direction).c_str());
  if (s.options.sizes.size() < 2) return;
  for (const auto& [title, direction] : kDirections) std::printf("%s\n", conclusion(s, title, direction).c_str());
  if (!s.options.kernel)
    std::puts("This compares with the rate of one large copy only; --kernel compares with a gather kernel.\n");
}

/// "256 blocks, host to gpu0 by engines 1, 0, and back by engines 0, 1".
std::string moved(const kv::Options& o, const Topology& t) {
  const auto list = [&](HostDirection direction) {
    const auto engines = engines_of(t, o.gpu, direction);
    if (!engines) fail(fmt::format("the node has no gpu{} with a live engine", o.gpu.value));
    const auto most = *std::max_element(o.engines.begin(), o.engines.end());
    if (engines->size() < most)
      fail(fmt::format("gpu{} has {} live engines, not {}", o.gpu.value, engines->size(), most));
    std::string text = most == 1 ? "engine" : "engines";
    for (std::uint32_t e = 0; e < most; ++e) text += fmt::format("{} {}", e == 0 ? "" : ",", (*engines)[e].value);
    return text;
  };
  return fmt::format("{} blocks, host to gpu{} by {}, and back by {}", o.blocks, o.gpu.value,
                     list(HostDirection::from_host), list(HostDirection::to_host));
}

int simulate(const kv::Options& o) {
  const auto m = o.machine.open();
  std::printf("%s\nsimulated: %s; no engine ran\n\n", moved(o, m.topology).c_str(), m.name.c_str());
  print(sweep(o, [&](const kv::Request& r) {
    auto t = kv::simulated(r, o.gpu, m);
    if (!t) fail(to_string(t.error().front()));
    return *t;
  }));
  return example::printed();
}

int run(const kv::Options& o) {
  const auto device = must(open_device(*o.device));
  const auto header = moved(o, device->topology());
  if (const auto note = caveat(*device); !note.empty()) std::fprintf(stderr, "%s\n", note.c_str());
  kv::Mover mover{*device, o};
  std::printf("%s\n%s: medians of %lu rounds; the pool has %lu blocks\n\n", header.c_str(),
              std::string(name(*o.device)).c_str(), static_cast<unsigned long>(o.rounds),
              static_cast<unsigned long>(o.pool));
  print(sweep(o, [&](const kv::Request& r) { return mover.median_of(r); }));
  std::printf("blocks copied by each queue: %s\n%lu bytes wrong\n", mover.work().c_str(),
              static_cast<unsigned long>(mover.wrong()));
  return example::printed() == 0 && mover.wrong() == 0 ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  const auto o = kv::options(argc, argv);
  return o.device ? run(o) : simulate(o);
}
