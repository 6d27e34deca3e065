// SPDX-License-Identifier: MIT
// A client of the headers alone: it links nothing, and builds without exceptions and RTTI.
#include "sdma/core/version.hpp"
#include "sdma/packets/copy.hpp"
#include "sdma/packets/encode.hpp"
#include "sdma/queue/ring.hpp"
#include "sdma/stream/reader.hpp"
#include "sdma/stream/writer.hpp"

#include <array>
#include <cstdint>

namespace {

// The dwords are written out: a packaging mistake that mixes two versions' headers shows here.
constexpr sdma::CopyLinear kCopy{.src = sdma::GpuVa{0x7f0000001000}, .dst = sdma::GpuVa{0x7f0000002000}, .bytes = 4096};
constexpr std::array<std::uint32_t, 7> kDwords{1, 4095, 0, 0x1000, 0x7f00, 0x2000, 0x7f00};
static_assert(sdma::encode(kCopy) == kDwords);

bool through_a_ring() {
  alignas(256) static std::array<std::uint32_t, 256> memory;
  alignas(64) static std::uint64_t rptr;
  alignas(64) static std::uint64_t wptr;
  sdma::Ring<> ring{{.dwords = memory, .rptr = &rptr, .wptr = &wptr, .caching = sdma::Caching::write_back}};
  const auto slot = ring.reserve(kDwords.size());
  if (!slot) return false;
  sdma::Writer writer{slot->dwords};
  if (writer.put(kCopy) != sdma::Errc::ok) return false;
  ring.publish(*slot, writer.written().size());
  const auto view = sdma::Reader{memory}.next();
  return wptr == kDwords.size() * 4 && view.is<sdma::CopyLinear>() &&
         sdma::encode(sdma::decode<sdma::CopyLinear>(view.dwords)) == kDwords;
}

}  // namespace

int main() { return through_a_ring() && sdma::kVersion.string == SDMA_EXPECTED_VERSION ? 0 : 1; }
