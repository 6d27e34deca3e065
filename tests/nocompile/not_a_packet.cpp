// SPDX-License-Identifier: MIT
// must not compile: constraints not satisfied
#include "sdma/packets/encode.hpp"

namespace {
struct Undescribed {
  std::uint32_t a{};
};
}  // namespace

int main() { return static_cast<int>(sdma::length(Undescribed{})); }
