// SPDX-License-Identifier: MIT
// Any dwords at all: the reader loses none and reads none behind the end, a typed value keeps every bit that a field
// names, and the two ways of asking whether a value is right agree.
#include "sdma/packets/encode.hpp"
#include "sdma/stream/reader.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <vector>

namespace {

void require(bool holds) {
  if (!holds) __builtin_trap();
}

void round_trip(const sdma::PacketView& view, sdma::Generation g) {
  sdma::visit(*view.info, view.dwords, [&]<class P>(const P& p) {
    require(sdma::fits(p, g) == !sdma::check(p, g));
    require(sdma::length(p, g) == view.dwords.size());
    std::vector<std::uint32_t> again(view.dwords.size());
    require(sdma::encode_to(p, again.data(), g) == again.data() + again.size());
    const sdma::Unfolded ours{*view.info, again}, theirs{*view.info, view.dwords};
    for (std::size_t i = 0; i < view.info->described(); ++i)
      require(ours.data()[i] == (theirs.data()[i] & ~view.info->reserved(i)));
    // What nobody reads, a NOP's filling, is not kept.
    if (view.info->counted && view.info->counted->kind == sdma::Kind::payload)
      require(std::ranges::equal(ours.payload(), theirs.payload()));
  });
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  // A vector of exactly the right size: one dword read behind it is a report of the address sanitizer.
  std::vector<std::uint32_t> in(size / 4);
  if (!in.empty()) std::memcpy(in.data(), data, in.size() * 4);
  std::vector<std::uint32_t> out;
  const auto g = static_cast<sdma::Generation>(in.empty() ? 0 : in.back() % sdma::kGenerationCount);
  for (sdma::Reader r{in, sdma::catalogue(g)}; r;) {
    const auto before = r.position_dwords();
    const auto view = r.next();
    require(r.position_dwords() == before + view.dwords.size() && !view.dwords.empty());
    out.insert(out.end(), view.dwords.begin(), view.dwords.end());
    if (view.whole()) round_trip(view, g);
  }
  require(out == in);
  return 0;
}
