// SPDX-License-Identifier: MIT
// Random packets of every kind, through the fuzz target: fields of the registry, addresses mostly mapped.
#include "sdma/packets/registry.hpp"
#include "support/catch.hpp"
#include "support/sanitizer.hpp"

#include <cstring>
#include <random>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

using namespace sdma;

namespace {

/// Appends one packet of random fields. Small numbers are frequent, so that much of it is valid.
void append(std::vector<std::uint32_t>& out, std::mt19937_64& random) {
  const auto& info = kPackets[random() % kPackets.size()];
  std::vector<std::uint32_t> d(info.head);
  for (std::size_t i = 0; i < std::min<std::size_t>(d.size(), Pattern::kDwords); ++i) d[i] = info.pattern.value[i];
  for (const auto& f : info.fields) {
    auto v = random() & f.mask();
    if (f.kind == Kind::address && random() % 16) v = random() % 40000 / f.alignment * f.alignment;
    else if (random() % 8) v %= f.kind == Kind::flag || f.optional ? 1 : f.kind == Kind::payload ? 20 : 300;
    if (!f.enumerants.empty() && random() % 16) v = f.enumerants[random() % f.enumerants.size()].value & f.mask();
    store(f, v, d.data());
  }
  const auto n = std::min<std::size_t>(info.length(d.data()), 60);
  while (d.size() < n) d.push_back(static_cast<std::uint32_t>(random()));
  out.insert(out.end(), d.begin(), d.end());
}

}  // namespace

TEST_CASE("random packets never crash, never hang, and write nothing that is not theirs") {
  std::mt19937_64 random(1);
  for (int program = 0; program < test::tries(3000); ++program) {
    std::vector<std::uint32_t> dwords;
    for (int i = 0; i < 30; ++i) append(dwords, random);
    std::vector<std::uint8_t> bytes(1 + dwords.size() * 4);
    bytes[0] = static_cast<std::uint8_t>(random());
    std::memcpy(bytes.data() + 1, dwords.data(), dwords.size() * 4);
    LLVMFuzzerTestOneInput(bytes.data(), bytes.size());
  }
}

TEST_CASE("random dwords, too") {
  std::mt19937 random(2);
  for (int program = 0; program < test::tries(2000); ++program) {
    std::vector<std::uint8_t> bytes(1 + random() % 400);
    for (auto& b : bytes) b = static_cast<std::uint8_t>(random() % 5 ? random() % 20 : random());
    LLVMFuzzerTestOneInput(bytes.data(), bytes.size());
  }
}
