// SPDX-License-Identifier: MIT
// Any dwords become text that becomes the same dwords, whole and in two pieces. The last dword picks the generation.
#include "sdma/stream/text.hpp"

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <vector>

namespace {

void require(bool holds) {
  if (!holds) __builtin_trap();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  std::vector<std::uint32_t> in(size / 4);
  if (in.empty()) return 0;
  std::memcpy(in.data(), data, in.size() * 4);

  const auto g = static_cast<sdma::Generation>(in.back() % sdma::kGenerationCount);
  const auto text = sdma::disassemble(in, {.generation = g});
  const auto again = sdma::assemble(text, "fuzz", {.generation = g});
  require(again && *again == in);
  require(sdma::disassemble(*again, {.generation = g}) == text);

  // What arrives in two pieces reads as what arrives in one.
  const std::size_t cut = in[0] % (in.size() + 1);
  sdma::Disassembler d{{.generation = g}};
  std::string pieces;
  const auto taken = d.append(pieces, std::span{in}.first(cut), false);
  require(taken <= cut);
  require(d.append(pieces, std::span{in}.subspan(taken), true) == in.size() - taken);
  require(pieces == text);
  return 0;
}
