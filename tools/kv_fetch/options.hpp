// SPDX-License-Identifier: MIT
#pragma once
// The command line of kv_fetch: its manual, and what the arguments ask for.
//
//   const auto o = kv::options(argc, argv);   // --help prints the manual and ends the program; an error ends it with 2
//
// Call it from the main thread, before others start.
#include "arguments.hpp"
#include "core/words.hpp"
#include "request.hpp"
#include "sdma/device/open.hpp"
#include "simulated_machine.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <string>

namespace collectives::kv {

struct Options {
  std::vector<std::uint64_t> sizes{};  ///< bytes per block, ascending
  std::uint64_t blocks{}, pool{};      ///< per request, and in the pool
  std::uint64_t large{};  ///< bytes of the one copy that the conclusion compares with; 0: one size, no conclusion
  std::vector<std::uint32_t> engines{};
  std::uint32_t queues{};  ///< on each engine
  std::vector<Way> ways{};
  std::optional<double> kernel{};  ///< GB/s
  std::uint64_t rounds{}, warm{};
  sdma::GpuId gpu{};
  std::optional<sdma::DeviceKind> device{};  ///< none: simulate `machine`
  sdma::tool::SimulatedMachine machine{};    ///< eight MI300X, unless an option names another one
};

inline constexpr char kManual[] =
    "usage: kv_fetch [OPTION VALUE]...\n"
    "\n"
    "Copies scattered blocks of host memory to a GPU (fetch) and back to their places (return), by DMA engines. Shows\n"
    "from which block size on that is the right choice.\n"
    "\n"
    "Ways:\n"
    "  looped           one block on each queue, one doorbell per block; wait; the next blocks\n"
    "  batched          one doorbell and one completion per block; one wait at the end\n"
    "  b2b              all blocks of a queue back to back: one doorbell and one completion per queue\n"
    "  prelaunched      the same, published before it is needed, after a poll; timed from the trigger\n"
    "\n"
    "Blocks:\n"
    "  --block SIZE     size of a block (default: 16K)\n"
    "  --sweep A..B     sizes from A to B, each twice the previous one, instead of --block: --sweep 4K..1M\n"
    "  --blocks N       blocks per request (default: 256)\n"
    "  --pool N         blocks in the pool (default: 4 times the blocks per request)\n"
    "\n"
    "Engines:\n"
    "  --engines LIST   numbers of engines to compare (default: 1): --engines 1,2,4. Blocks are dealt round robin. "
    "The\n"
    "                   engines that face the host are used first, then those that face other GPUs\n"
    "  --queues N       queues on each engine (default: 1). A queue of --device=cuda is a stream\n"
    "  --ways LIST      ways to compare (default: looped,batched,b2b,prelaunched)\n"
    "\n"
    "Device:\n"
    "  --device D       soft (default), kfd, cuda, rocr, or simulate: the same groups of packets in simulated time\n"
    "  --machine M      simulate this machine: a file of sdma calibrate or sdma topology --json, or a layout such as\n"
    "                   mi355x:8 (default: 8 x MI300X)\n"
    "  --through T      simulate rings of one's own (rings, default), or calls of HIP on MI300X (hip)\n"
    "  --gpu G          GPU to use (default: 0)\n"
    "  -n N -w N        measured and warm-up rounds (default: 20, 5). Every block of each round is checked. A "
    "simulation\n"
    "                   has one round and checks no bytes\n"
    "\n"
    "Conclusion, after a sweep:\n"
    "  --large SIZE     size of the one copy on one engine whose rate is compared (default: 64M)\n"
    "  --kernel GB/S    also compare with the rate of a gather kernel, which you have measured for these sizes\n"
    "\n"
    "A cell of the tables has the median time of a request divided by its blocks, in us, and the rate in GB/s (10^9\n"
    "bytes per second). \"b2b x2\" means b2b on two engines. The conclusion names the smallest block size from which "
    "on\n"
    "all sizes of the sweep reach a rate. It does not count the time that the host needs to find the blocks.\n"
    "\n"
    "Exit codes:\n"
    "  0    every byte is right\n"
    "  1    wrong bytes, or a device failed\n"
    "  2    usage error\n"
    "\n"
    "Examples:\n"
    "  kv_fetch --device=simulate --sweep 4K..1M --engines 1,2,4\n"
    "  kv_fetch --device=cuda --sweep 4K..1M --engines 1,2 --queues 2 --ways b2b,prelaunched --kernel 47 -n 10\n";

inline std::vector<std::uint64_t> sizes_of(const sdma::tool::Arguments& a, const std::string& sweep) {
  const auto dots = sweep.find("..");
  const auto from = sdma::parse_size(sweep.substr(0, dots)).value_or(0);
  const auto to = dots == sweep.npos ? 0 : sdma::parse_size(sweep.substr(dots + 2)).value_or(0);
  if (from == 0 || to < from || to > 1ull << 30)
    a.fail(fmt::format("--sweep: '{}' is not A..B with sizes up to 1G, the smaller first", sweep));
  std::vector<std::uint64_t> all;
  for (auto bytes = from; bytes <= to; bytes *= 2) all.push_back(bytes);
  return all;
}

inline std::vector<std::uint32_t> engines_from(const sdma::tool::Arguments& a, const std::string& list) {
  std::vector<std::uint32_t> all;
  for (const auto word : sdma::detail::between_commas(list)) {
    const auto n = sdma::parse_count(word);
    if (!n || *n == 0 || *n > 64) a.fail(fmt::format("--engines: '{}' is not a list of numbers from 1 to 64", list));
    all.push_back(static_cast<std::uint32_t>(*n));
  }
  return all;
}

inline std::vector<Way> ways_from(const sdma::tool::Arguments& a, const std::string& list) {
  std::vector<Way> all;
  for (const auto word : sdma::detail::between_commas(list)) {
    const auto way = std::find_if(std::begin(kWays), std::end(kWays), [&](Way w) { return name(w) == word; });
    if (way == std::end(kWays)) a.fail(fmt::format("--ways: '{}' is not looped, batched, b2b or prelaunched", word));
    all.push_back(*way);
  }
  return all;
}

inline std::optional<double> rate_from(const sdma::tool::Arguments& a, const std::string& text) {
  if (text.empty()) return {};
  const auto rate = sdma::parse_real(text);
  if (!rate || *rate <= 0) a.fail(fmt::format("--kernel: '{}' is not a rate in GB/s", text));
  return rate;
}

inline Options options(int argc, char** argv) {
  using namespace sdma;
  tool::Arguments a{argc, argv, kManual};
  Options o;
  const auto sweep = a.word("--sweep", "");
  o.machine = tool::SimulatedMachine(a);
  const auto block = a.size("--block", 0, 1, 1ull << 30);
  if (!sweep.empty() && block != 0) a.fail("--sweep replaces --block: give one of them");
  o.sizes = sweep.empty() ? std::vector<std::uint64_t>{block == 0 ? 16 << 10 : block} : sizes_of(a, sweep);
  o.blocks = a.size("--blocks", 256, 1, 65536);
  o.pool = a.size("--pool", 4 * o.blocks, o.blocks);
  const auto large = a.size("--large", 0, 1, std::uint64_t{1} << 32);
  if (o.sizes.size() > 1) o.large = large == 0 ? 64 << 20 : large;
  o.engines = engines_from(a, a.word("--engines", "1"));
  o.queues = static_cast<std::uint32_t>(a.size("--queues", 1, 1, 64));
  o.ways = ways_from(a, a.word("--ways", "looped,batched,b2b,prelaunched"));
  o.kernel = rate_from(a, a.word("--kernel", ""));
  o.rounds = a.size("-n", 20), o.warm = a.size("-w", 5, 0);
  o.gpu = {static_cast<std::uint32_t>(a.size("--gpu", 0, 0, 63))};
  o.device = a.device_or("simulate");
  a.done();
  if (o.device && !o.machine.option().empty()) a.fail(o.machine.option() + " is for --device=simulate");
  if ((o.kernel || large != 0) && o.sizes.size() < 2)
    a.fail("--large and --kernel need a --sweep of at least two sizes");
  return o;
}

}  // namespace collectives::kv
