// SPDX-License-Identifier: MIT
#pragma once
// A rule that says how an all-gather should overlap the product of matrices that needs its rows: from the product's
// shape, times of products and the node alone. No schedule is made or simulated. `sdma explore --advise` is its command
// line (docs/overlap.md).
//
//   const auto a = advise({.m = 8192, .n = 1024, .k = 8192}, mi300x_gemm_times(), *layout_machine("mesh:8"));
//   const auto& pick = a->pick();
//   printf("%s, %u pieces: %.1f us\n", name(pick.way).data(), pick.pieces, pick.ns / 1e3);
//
// Each of N GPUs has m/N rows of A first, and a B of k x n of its own; each needs C = A B. A shard's bytes are cut into
// pieces, and products begin when pieces have come. For each way and number of pieces there is a formula: a chain of
// products, which begins with the first piece and cannot end before the last one has come. The least of them is the
// pick. share/sdma/overlap/all_gather_gemm.sdma has all of these variants as a schedule, and `settings` its params.
//
// A way has as many pieces as the times of products go: no product is below the table's grid. Bytes per element: 2.
//
// Pure; allocates. Errors: a Diagnostic if the node is neither one in which each GPU reaches each other one directly
// nor a ring, if it has not 2 to 8 GPUs, or if the shape cannot be cut or is below the table.
#include "sdma/search/gemm_times.hpp"
#include "sdma/simulate/machine.hpp"

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace sdma { inline namespace v0_3 {

/// How much of the product begins before all rows are there.
enum class OverlapWay : std::uint8_t {
  none,     ///< nothing: all bytes, then the whole product
  turns,    ///< one peer after another; a product for each piece of a peer
  rows,     ///< piece by piece to all peers at once; a product for each piece of a peer
  steps,    ///< the same; one product for that piece of all peers
  columns,  ///< the same, and a piece is columns: k is cut, and C accumulates
};
/// All of them.
inline constexpr OverlapWay kOverlapWays[] = {OverlapWay::none, OverlapWay::turns, OverlapWay::rows, OverlapWay::steps,
                                              OverlapWay::columns};
/// "none", "turns", ...
std::string_view name(OverlapWay) noexcept;

/// A variant, and how long it should take.
struct OverlapEstimate {
  OverlapWay way{};         ///< how
  std::uint32_t pieces{1};  ///< of each shard: a power of two
  double ns{};              ///< from the first doorbell until each GPU has its C
};

/// What the rule says of a product.
struct OverlapAdvice {
  std::vector<OverlapEstimate> variants{};  ///< by way and pieces
  std::size_t best{};                       ///< which of them
  double product_ns{};                      ///< the product of all rows, alone
  double gather_ns{};                       ///< the all-gather, alone
  bool beyond{};                            ///< a product is beyond the table
  /// Params of share/sdma/overlap/all_gather_gemm.sdma.
  std::vector<std::pair<std::string, std::string>> settings{};
  /// The variant to take.
  const OverlapEstimate& pick() const noexcept { return variants[best]; }
};
/// The advice for all GPUs of the machine.
Result<OverlapAdvice, Diagnostic> advise(const GemmShape&, const GemmTimes&, const MachineDescription&);

}}  // namespace sdma::v0_3
