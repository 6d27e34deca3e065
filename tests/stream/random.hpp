// SPDX-License-Identifier: MIT
#pragma once
// Dwords that look like a ring and are not: packets with random fields, reserved bits, unknown opcodes, cut-off ends.
//
//   Dwords random{seed};
//   std::vector<std::uint32_t> x = random.stream(200);
//
// The registry says what a packet is, so a new packet is generated without a change here. Same seed, same dwords.
#include "sdma/packets/registry.hpp"

#include <cstdint>
#include <random>
#include <vector>

namespace support {

class Dwords {
 public:
  explicit Dwords(std::uint64_t seed) : random_(seed) {}

  std::uint64_t number() { return random_(); }
  bool one_in(unsigned n) { return random_() % n == 0; }

  /// `packets` of them, one after another; the last may be cut off.
  std::vector<std::uint32_t> stream(std::size_t packets) {
    std::vector<std::uint32_t> out;
    for (std::size_t i = 0; i < packets; ++i) {
      if (one_in(12)) noise(out);
      else packet(out);
      if (one_in(12)) repeat(out);
    }
    if (one_in(3) && !out.empty()) out.resize(random_() % out.size());
    return out;
  }

 private:
  /// Small numbers, numbers near zero from below, and any: each prints in another way.
  std::uint32_t dword() {
    switch (random_() % 6) {
      case 0: return 0;
      case 1: return static_cast<std::uint32_t>(random_() % 5000);
      case 2: return static_cast<std::uint32_t>(0u - random_() % 5000);
      case 3: return 1u << (random_() % 32);
      default: return static_cast<std::uint32_t>(random_());
    }
  }
  void noise(std::vector<std::uint32_t>& out) {
    for (auto n = 1 + random_() % 3; n > 0; --n) out.push_back(dword());
  }
  void repeat(std::vector<std::uint32_t>& out) {
    if (out.empty()) return;
    const auto last = one_in(2) ? 0 : out.back();
    out.insert(out.end(), random_() % 9, last);
  }
  void packet(std::vector<std::uint32_t>& out) {
    const auto& info = sdma::kPackets[random_() % sdma::kPackets.size()];
    std::vector<std::uint32_t> d(info.head);
    for (std::size_t i = 0; i < d.size(); ++i) {
      d[i] = one_in(3) ? dword() & info.owned[i] : 0;
      if (one_in(20)) d[i] |= dword();
      if (i < sdma::Pattern::kDwords) d[i] = (d[i] & ~info.pattern.mask[i]) | info.pattern.value[i];
    }
    for (const auto& f : info.fields)
      if (f.kind != sdma::Kind::payload && one_in(2)) sdma::store(f, random_() & f.mask(), d.data());
    for (const auto& f : info.fields)
      if (f.optional && f.kind != sdma::Kind::payload && one_in(2))
        sdma::store(f, (f.default_value - f.bias) & f.mask(), d.data());
    // A counted packet takes what its count says: keep most of them short.
    if (info.counted && !one_in(50)) sdma::store(*info.counted, random_() % 24 & info.counted->mask(), d.data());
    const auto length = info.length(d.data());
    out.insert(out.end(), d.begin(), d.end());
    const bool zeros = one_in(3);
    for (auto i = d.size(); i < length && i < 40; ++i)
      out.push_back(zeros ? 0 : one_in(3) && i > d.size() ? out.back() : dword());
  }

  std::mt19937_64 random_;
};

}  // namespace support
