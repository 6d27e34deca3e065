// SPDX-License-Identifier: MIT
// Any dwords survive JSON and can be checked, in one piece or two; any text is JSON Lines or is refused with a place.
#include "sdma/stream/json.hpp"
#include "sdma/stream/rules.hpp"

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
  const auto json = sdma::to_json_lines(in, 0, g);
  const auto again = sdma::from_json_lines(json);
  require(again && *again == in);
  if (const auto any = sdma::from_json_lines({reinterpret_cast<const char*>(data), size}, "fuzz"); !any)
    for (const auto& e : any.error()) require(!e.message.empty() && e.where.starts_with("fuzz:"));

  const sdma::StreamCheckOptions options{
      .ring_bytes = 1024, .base = std::uint64_t{in[0] % 64} * 4, .generation = g, .max_findings = 0};
  const auto whole = sdma::check_stream(in, options);
  const std::size_t cut = in[0] % (in.size() + 1);
  std::vector<sdma::Diagnostic> pieces;
  sdma::StreamChecker checker{options};
  const auto taken = checker.append(pieces, std::span{in}.first(cut), false);
  require(taken <= cut);
  require(checker.append(pieces, std::span{in}.subspan(taken), true) == in.size() - taken);
  require(pieces.size() == whole.size());
  for (std::size_t i = 0; i < whole.size(); ++i) require(to_string(pieces[i]) == to_string(whole[i]));
  return 0;
}
