// SPDX-License-Identifier: MIT
// Any dwords at all, executed: no crash, no step without end, and not a byte written that is not mapped for writing.
// The first byte picks the ordering and the seed; the rest is the ring, and, once more, memory that
// indirect buffers find.
#include "engine/pipeline.hpp"
#include "space.hpp"

#include <cstring>

using namespace sdma;
using fuzz::require;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  constexpr std::uint32_t kSteps = 3000;
  if (size < 5) return 0;
  const auto mode = data[0];
  fuzz::Space space;
  const auto n = std::min<std::size_t>((size - 1) / 4, 1000);
  std::memcpy(space.low.begin(), data + 1, n * 4);

  std::vector<std::uint32_t> ring(1024);
  std::memcpy(ring.data(), data + 1, n * 4);
  const auto ring_before = ring;
  std::uint64_t rptr = 0;
  Pipeline pipeline{{.ring = ring,
                     .rptr = &rptr,
                     .reader = &space.reader,
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
  space.require_intact();
  require(ring == ring_before);
  return 0;
}
