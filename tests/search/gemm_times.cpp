// SPDX-License-Identifier: MIT
// The lookup of products' times: at the grid's points, between them, beyond them, and in tables that are wrong.
#include "sdma/search/gemm_times.hpp"
#include "support/catch.hpp"

#include <cmath>
#include <string>

using namespace sdma;

namespace {

const std::string kHead = "shapes,op,m,n,k,us\n";
/// us = m*n*k / 1000 of both ops, C += A B twice that.
std::string cube() {
  auto out = kHead;
  for (const auto* op : {"mm", "mm_add"})
    for (const int m : {10, 100})
      for (const int n : {10, 100})
        for (const int k : {10, 100})
          out += "grid," + std::string(op) + "," + std::to_string(m) + "," + std::to_string(n) + "," +
                 std::to_string(k) + "," + std::to_string(m * n * k / 1000 * (op[2] == '_' ? 2 : 1)) + "\n";
  return out;
}

std::string why(const std::string& text) {
  const auto t = gemm_times(text, "t.csv");
  REQUIRE(!t);
  return to_string(t.error().front());
}

}  // namespace

TEST_CASE("a product of the grid takes what its row says, and one between what the rows around it say") {
  const auto t = *gemm_times(cube(), "t.csv");
  CHECK(t.time({10, 100, 10})->ns == Approx(10e3));
  CHECK(t.time({100, 100, 100}, true)->ns == Approx(2000e3));
  // Linear in logarithms, in which this table is a plane.
  CHECK(t.time({20, 50, 70})->ns == Approx(70e3));
  CHECK_FALSE(t.time({100, 100, 100})->beyond);
}

TEST_CASE("beyond the grid, a product has the rate of its end, and below it there is no answer") {
  const auto t = *gemm_times(cube(), "t.csv");
  const auto far = t.time({300, 100, 200});
  CHECK(far->beyond);
  CHECK(far->ns == Approx(6000e3));
  CHECK_FALSE(t.time({9, 100, 100}));
  CHECK_FALSE(t.time({100, 9, 100}));
  CHECK_FALSE(t.time({100, 100, 9}));
}

TEST_CASE("rows that are not of the grid judge the lookup") {
  const auto t =
      *gemm_times(cube() + "layer,mm,20,50,70,100\nlayer,mm_add,20,50,70,140\nlayer,mm,5,50,70,1\n", "t.csv");
  CHECK(t.judged.rows == 2);
  CHECK(t.judged.below == 1);
  CHECK(t.judged.worst == Approx(0.3));
  CHECK(t.judged.mean == Approx(0.15));
}

TEST_CASE("the H200's table: how far the lookup is off for shapes of layers") {
  const auto t = *gemm_times(h200_gemm_csv(), "gemm.csv");
  CHECK(t.ns[0].size() == 324);
  CHECK(t.judged.rows + t.judged.below == 188);
  CHECK(t.judged.mean < 0.09);
  CHECK(t.judged.worst < 0.5);
  CHECK(t.time({64, 512, 512})->ns == Approx(3177));
}

TEST_CASE("the model of an MI300X has the public rate at the public shape") {
  const GemmShape shape{.m = 4096, .n = 4864, .k = 32896};
  const auto t = mi300x_gemm_times().time(shape);
  CHECK(2.0 * 4096 * 4864 * 32896 / t->ns == Approx(708e3));
  CHECK(t->beyond);
}

TEST_CASE("a table that is wrong says where") {
  CHECK(why("") == "t.csv: error: the rows of grid need two values of m, n and k at least");
  CHECK(why("op,m\n").find("t.csv:1: error: the first line does not begin with shapes,op,m,n,k,us") == 0);
  CHECK(why(kHead + "grid,mm,1,2\n") == "t.csv:2: error: 4 fields, but 6 columns");
  CHECK(why(kHead + "grid,add,1,2,3,4\n") == "t.csv:2: error: 'add' is neither mm nor mm_add");
  CHECK(why(kHead + "grid,mm,0,2,3,4\n") == "t.csv:2: error: '0' is not a number of rows or columns");
  CHECK(why(kHead + "grid,mm,1,2,3,-4\n") == "t.csv:2: error: '-4' is not a time in us");
  CHECK(why(kHead + "grid,mm,1,2,3,4\ngrid,mm,1,2,3,4\n") == "t.csv:3: error: this product is there twice");
  auto hole = cube();
  hole.erase(hole.find("grid,mm_add,100,10,100"), std::string("grid,mm_add,100,10,100,200\n").size());
  CHECK(why(hole).find("the grid has no row mm_add,100,10,100") != std::string::npos);
  CHECK(why(cube() + "grid,mm_add,7,10,10,1\n").find("mm_add has shapes that mm does not have") != std::string::npos);
}
