// SPDX-License-Identifier: MIT
// Any dwords with any positions are a ring in parts, or an error. The parts hold dwords of the dump and no others;
// gaps are in order, apart from each other and inside their part; each dword is in one packet or in one gap; a clean
// stream has no gap.
#include "sdma/dump/place.hpp"

#include <cstdlib>
#include <cstring>

using namespace sdma;

namespace {

void require(bool holds) {
  if (!holds) std::abort();
}

void check(const RingPart& part, Generation g) {
  std::size_t end = 0, skipped = 0;
  bool first = true;
  for (const auto& gap : part.gaps) {
    require(gap.dwords != 0 && gap.at + gap.dwords <= part.dwords.size() && (first || gap.at > end));
    require(!gap.why.empty() && !describe(part, gap).empty());
    end = gap.at + gap.dwords;
    skipped += gap.dwords;
    first = false;
  }
  std::size_t at = 0, bare = 0;
  for (const auto& v : packets_of(part, g)) {
    require(v.dwords.data() == part.dwords.data() + at && !v.dwords.empty());
    at += v.dwords.size();
    if (!v.info) bare += v.dwords.size();
  }
  require(at == part.dwords.size() && bare >= skipped && part.lost() <= at);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  struct {
    std::uint8_t has_rptr, has_wptr, generation, pad;
    std::uint32_t rptr, wptr, first;
  } given{};
  if (size < sizeof given || size > 16384) return 0;
  std::memcpy(&given, data, sizeof given);
  std::vector<std::uint32_t> dwords((size - sizeof given) / 4);
  if (!dwords.empty()) std::memcpy(dwords.data(), data + sizeof given, dwords.size() * 4);
  RingPositions p;
  if (given.has_rptr % 2) p.rptr = given.rptr;
  if (given.has_wptr % 2) p.wptr = given.wptr;
  p.first = given.has_wptr & 2 ? given.first : 0;
  p.generation = static_cast<Generation>(given.generation % kGenerationCount);
  const auto placed = place_ring(dwords, p, "fuzz");
  if (!placed) {
    require(!placed.error().message.empty());
    return 0;
  }
  std::size_t held = 0;
  for (const auto& part : placed->parts) {
    check(part, p.generation);
    held += part.dwords.size();
  }
  require(held <= dwords.size());
  return 0;
}
