// SPDX-License-Identifier: MIT
#pragma once
// How long a GPU multiplies matrices of bf16, by their shape: looked up in a table that was measured.
//
//   const auto table = gemm_times(text, "gemm.csv");              // rows of share/measured/h200/gemm.py
//   const auto t = table->time({.m = 768, .n = 4096, .k = 8192});
//   if (t) printf("%.1f us%s\n", t->ns / 1e3, t->beyond ? ", beyond the table" : "");
//
// The table is CSV. Its first line names the columns; '#' begins a comment.
//
//   shapes,op,m,n,k,us,us_min,us_max
//   grid,mm,64,512,512,3.177,3.079,3.187                          C (m x n) = A (m x k) times B (k x n)
//   grid,mm_add,64,512,512,3.41,3.38,3.45                         C += A B
//
// Rows of `grid` are looked up: each combination of their m, n and k, once for each op. Other rows only judge the
// lookup. Between the grid's points, the logarithm of the time is linear in those of m, n and k.
// Beyond the grid's end, a product has the rate of the end, and the answer says so. Before its beginning there is no
// answer: nothing says what a smaller product takes.
//
// Plain values that allocate; any thread may read. Errors: Diagnostics with the line of the table.
#include "sdma/core/diagnostic.hpp"
#include "sdma/core/result.hpp"

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace sdma { inline namespace v0_3 {

/// C (m x n) = A (m x k) times B (k x n).
struct GemmShape {
  std::uint64_t m{};  ///< rows of A and C
  std::uint64_t n{};  ///< columns of B and C
  std::uint64_t k{};  ///< columns of A, rows of B
  friend bool operator==(const GemmShape&, const GemmShape&) = default;
};

/// Times of products by their shape.
struct GemmTimes {
  /// How long a product takes.
  struct Time {
    double ns{};    ///< alone on the GPU
    bool beyond{};  ///< the shape is beyond the table: it has the rate of the table's end
  };
  /// How far the lookup is off for products that it does not use.
  struct Judged {
    std::size_t rows{};   ///< how many
    double mean{};        ///< the mean size of their errors: 0.09 is 9 %
    double worst{};       ///< the largest
    std::size_t below{};  ///< further rows, of which a side is below the grid
  };
  std::array<std::vector<std::uint64_t>, 3> grid{};  ///< the values of m, n and k, each rising
  std::array<std::vector<double>, 2> ns{};           ///< C = A B and C += A B: by m, then n, then k
  double scale = 1;                                  ///< what each time is multiplied by
  std::string source{};                              ///< whose times these are, for people
  Judged judged{};                                   ///< by the table's other rows
  /// `adds`: C += A B. Nothing: a side of the shape is below the grid.
  std::optional<Time> time(const GemmShape&, bool adds = false) const;
};
/// Reads a table; `file` names it in messages.
Result<GemmTimes, std::vector<Diagnostic>> gemm_times(std::string_view text, std::string_view file);

/// The text of share/measured/h200/gemm.csv.
std::string_view h200_gemm_csv() noexcept;
/// A model of an MI300X: the times of an H200, times what makes the one public rate of an MI300X in bf16 come out.
GemmTimes mi300x_gemm_times();

}}  // namespace sdma::v0_3
