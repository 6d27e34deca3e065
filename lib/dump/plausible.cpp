#include "plausible.hpp"

#include "sdma/stream/reader.hpp"

namespace sdma::inline v0::detail {

std::size_t plausible_dwords(std::span<const std::uint32_t> dwords) noexcept {
  std::size_t good = 0;
  for (Reader r{dwords}; r;) {
    const auto v = r.next();
    if (!v.whole()) continue;
    bool clean = true;
    for (std::size_t i = 0; i < v.dwords.size() && i < v.info->head; ++i)
      clean = clean && (v.dwords[i] & v.info->reserved(i)) == 0;
    if (clean) good += v.dwords.size();
  }
  return good;
}

}  // namespace sdma::inline v0::detail
