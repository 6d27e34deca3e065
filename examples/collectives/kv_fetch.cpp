// KV-cache fetch, as in LLM serving: a request's blocks are scattered in a pool of host memory. They are copied to contiguous
// GPU memory, and later back to their places. These are many small copies, so the fixed cost of a copy matters most.
//
//   looped      copy, completion, doorbell, wait; the next block                    as a loop of blocking copies
//   batched     copy, completion, doorbell per block; one wait at the end           as a loop of asynchronous copies
//   b2b         all copies back to back, one completion, one doorbell per engine    as a batch copy
//   prelaunched the same, published ahead after a poll; timed from the trigger      if the next step's blocks are known
//
//   host pool  [ . 3 . . 0 . 2 . . . 1 . ]   --- engine 1 of the GPU --->   gpu [ 0 1 2 3 ]   fetch
//                                            <--- engine 0 ------------                       return
//
// Every block is checked after each fetch and each return.
#include "../support.hpp"
#include "arguments.hpp"
#include "median.hpp"
#include "pattern.hpp"
#include "sdma/sync/recipes.hpp"

#include <bit>
#include <cstring>
#include <numeric>
#include <random>

using namespace sdma;
using namespace std::chrono_literals;
using collectives::Arguments;
using collectives::median;
using example::fail;
using example::must;

namespace {

constexpr char kUsage[] =
    "usage: kv_fetch [OPTION VALUE]...\n"
    "Copies scattered blocks of host memory to a GPU and back: looped, batched, back to back, prelaunched.\n"
    "  --block SIZE     size of a block (default: 16K)\n"
    "  --blocks N       blocks per request (default: 256)\n"
    "  --pool N         blocks in the pool (default: 4 times the blocks per request)\n"
    "  -n N -w N        measured and warm-up rounds (default: 20, 5)\n"
    "  --gpu G          GPU to use (default: 0)\n"
    "  --device D       soft (default), kfd or cuda\n";

enum class Way { looped, batched, b2b, prelaunched };
constexpr const char* kWays[] = {"looped", "batched", "b2b", "prelaunched"};

struct Block {
  GpuVa from{}, to{};
};

/// A queue that copies blocks, and the words that it polls and increments.
class Mover {
 public:
  Mover(Device& d, GpuId gpu, HostDirection direction, std::uint64_t blocks)
      : go_(must(d.create_signal())),
        done_(must(d.create_signal())),
        atomics_(d.topology().completion(gpu, {}) == Completion::atomic),
        queue_(must(d.create_queue({.gpu = gpu,
                                    .engine = *d.topology().engine_for(gpu, direction),
                                    .ring_bytes = std::bit_ceil(blocks * 128 + 4096)}))),
        ring_(queue_.memory()) {}

  /// Seconds for all blocks.
  double move(Way way, std::span<const Block> blocks, std::uint64_t bytes) {
    if (way == Way::prelaunched) publish(blocks, bytes, true);
    const auto begin = Deadline::Clock::now();
    switch (way) {
      case Way::looped:
        for (const auto& b : blocks) publish({&b, 1}, bytes, false), reach();
        break;
      case Way::batched:
        for (const auto& b : blocks) publish({&b, 1}, bytes, false);
        break;
      case Way::b2b: publish(blocks, bytes, false); break;
      case Way::prelaunched: go_->set(raised_); break;
    }
    reach();
    return std::chrono::duration<double>(Deadline::Clock::now() - begin).count();
  }

 private:
  /// One group: [poll], copies, completion, doorbell.
  void publish(std::span<const Block> blocks, std::uint64_t bytes, bool wait_for_go) {
    const auto slot = must(ring_.reserve(kAcquireDwords + blocks.size() * kDwordsOf<CopyLinear> * (bytes / kChunk + 1) +
                                         kCompleteWithAtomicDwords));
    Writer w{slot.dwords};
    ++raised_;
    if (wait_for_go) must(acquire(w, go_->low(), raised_));
    for (const auto& b : blocks) must(w.copy({.src = b.from, .dst = b.to, .bytes = bytes}));
    must(atomics_ ? complete_with_atomic(w, done_->va, 1) : complete_with_fence(w, done_->va, raised_));
    ring_.publish(slot, w.written().size());
  }
  void reach() {
    const auto r = wait(*done_, Compare::ge, raised_, Deadline::in(60s), ring_);
    if (!r) fail(describe(r.error()));
  }

  SignalMemory go_, done_;
  bool atomics_;
  Queue queue_;
  Ring<> ring_;
  std::uint32_t raised_ = 0;
};

}  // namespace

int main(int argc, char** argv) {
  Arguments a{argc, argv, kUsage};
  const auto bytes = a.size("--block", 16 << 10), blocks = a.size("--blocks", 256, 1, 1 << 16);
  const auto pool_blocks = a.size("--pool", 4 * blocks, blocks);
  const auto rounds = a.size("-n", 20), warm = a.size("-w", 5, 0);
  const GpuId gpu{static_cast<std::uint32_t>(a.size("--gpu", 0, 0, 63))};
  const auto kind = device_kind(a.word("--device", "soft"));
  a.done();
  if (!kind) fail("--device must be " + std::string(kDeviceNames));
  const auto device = must(open_device(*kind));
  if (gpu.value >= device->topology().gpus.size()) fail("this node has no such GPU");

  const Memory pool = must(device->allocate({.bytes = pool_blocks * bytes}));
  const Memory kv = must(device->allocate({.where = gpu, .bytes = blocks * bytes}));
  if (kv.host().empty()) fail("the host cannot access the GPU's memory, which it has to check");
  Mover fetch{*device, gpu, HostDirection::from_host, blocks}, give{*device, gpu, HostDirection::to_host, blocks};

  std::vector<std::size_t> order(pool_blocks);
  std::iota(order.begin(), order.end(), std::size_t{});
  std::mt19937_64 random{1};
  std::printf("%lu of %lu blocks of %lu bytes, host to gpu%u and back\n\n", static_cast<unsigned long>(blocks),
              static_cast<unsigned long>(pool_blocks), static_cast<unsigned long>(bytes), gpu.value);
  std::printf("%-12s %14s %10s %14s %10s\n", "", "fetch us/block", "GB/s", "return us/blk", "GB/s");
  std::uint64_t wrong = 0;
  for (const auto way : {Way::looped, Way::batched, Way::b2b, Way::prelaunched}) {
    std::vector<double> there, back;
    for (std::uint64_t round = 0; round < warm + rounds; ++round) {
      std::shuffle(order.begin(), order.end(), random);
      std::vector<Block> in, out;
      for (std::size_t i = 0; i < blocks; ++i) {
        in.push_back({pool.va() + order[i] * bytes, kv.va() + i * bytes});
        out.push_back({in[i].to, in[i].from});
      }
      const auto block_of = [&](std::size_t i) { return pool.host().subspan(order[i] * bytes, bytes); };
      for (std::size_t i = 0; i < blocks; ++i) collectives::fill_pattern(block_of(i), round, 0, i * bytes);
      std::memset(kv.host().data(), 0xdb, kv.host().size());
      (void)device->flush_host_writes(gpu);
      const auto t1 = fetch.move(way, in, bytes);
      (void)device->flush_host_writes(gpu);
      wrong += collectives::mismatch(kv.host(), round, 0, 0).wrong;
      // A step of the model changes every block; the blocks in the pool are stale until the return.
      collectives::fill_pattern(kv.host(), round, 1, 0);
      (void)device->flush_host_writes(gpu);
      const auto t2 = give.move(way, out, bytes);
      for (std::size_t i = 0; i < blocks; ++i) wrong += collectives::mismatch(block_of(i), round, 1, i * bytes).wrong;
      if (round >= warm) there.push_back(t1), back.push_back(t2);
    }
    const auto t1 = median(there), t2 = median(back), n = static_cast<double>(blocks),
               all = n * static_cast<double>(bytes);
    std::printf("%-12s %14.3f %10.2f %14.3f %10.2f\n", kWays[static_cast<int>(way)], t1 * 1e6 / n, all / t1 / 1e9,
                t2 * 1e6 / n, all / t2 / 1e9);
  }
  std::printf("\n%lu bytes wrong\n", static_cast<unsigned long>(wrong));
  return example::printed() == 0 && wrong == 0 ? 0 : 1;
}
