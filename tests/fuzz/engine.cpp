// Any dwords at all, executed: no crash, no step without end, and not a byte written that is not mapped for writing.
// The first byte picks the ordering and the seed; the rest is the ring, and, once more, memory that indirect buffers find.
#include "sdma/engine/pipeline.hpp"

#include <algorithm>
#include <cstring>
#include <vector>

using namespace sdma;

namespace {

constexpr std::uint64_t kBytes = 1 << 14, kGuard = 64;
constexpr std::uint32_t kSteps = 3000;
constexpr std::byte kPoison{0xcd};

void require(bool holds) {
  if (!holds) __builtin_trap();
}

/// Guard bytes, memory, guard bytes.
struct Memory {
  Memory() : bytes(kBytes + 2 * kGuard, kPoison) {}
  std::byte* begin() { return bytes.data() + kGuard; }
  bool guards_hold() const {
    const auto poisoned = [](std::byte b) { return b == kPoison; };
    return std::all_of(bytes.begin(), bytes.begin() + kGuard, poisoned) &&
           std::all_of(bytes.end() - kGuard, bytes.end(), poisoned);
  }
  std::vector<std::byte> bytes;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size < 5) return 0;
  const auto mode = data[0];
  Memory low, constant, foreign;
  const auto n = std::min<std::size_t>((size - 1) / 4, 1000);
  std::memcpy(low.begin(), data + 1, n * 4);
  const auto foreign_before = foreign.bytes;
  const auto constant_before = constant.bytes;

  // Low addresses, so that a high dword of zeros hits; the same memory a second time; what may only be read; another GPU's.
  AddressSpace space;
  const auto map = [&](std::uint64_t va, Memory& m, Access a, std::uint64_t gpus) {
    require(space.map({.va = GpuVa{va}, .bytes = kBytes, .host = m.begin(), .gpus = gpus, .access = a}) == Errc::ok);
  };
  map(0, low, Access::read_write, ~0ull);
  map(kBytes, low, Access::read_write, ~0ull);
  map(2 * kBytes, constant, Access::read, ~0ull);
  map(4 * kBytes, foreign, Access::read_write, 2);

  std::vector<std::uint32_t> ring(1024);
  std::memcpy(ring.data(), data + 1, n * 4);
  const auto ring_before = ring;
  std::uint64_t rptr = 0;
  AddressSpace::Reader reader{space, GpuId{0}};
  Pipeline pipeline{{.ring = ring,
                     .rptr = &rptr,
                     .reader = &reader,
                     .ordering = static_cast<Ordering>(mode % 3),
                     .seed = mode,
                     .poll_timeout = PollTimeout::either}};
  auto last = Progress::progressed;
  for (const auto bell : {n * 2, n * 4}) {
    pipeline.doorbell(bell / 4 * 4);
    for (std::uint32_t i = 0; i < kSteps && last != Progress::stopped; ++i) {
      last = pipeline.step(1 + mode % 7);
      require(pipeline.position() <= bell && rptr <= pipeline.position() + 4 * 6);
      require((last == Progress::stopped) == (pipeline.fault() != nullptr));
      if (last != Progress::progressed) break;
    }
  }
  if (pipeline.fault()) require(!describe(*pipeline.fault()).empty());
  require(low.guards_hold() && constant.bytes == constant_before && foreign.bytes == foreign_before &&
          ring == ring_before);
  return 0;
}
