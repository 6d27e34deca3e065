// SPDX-License-Identifier: MIT
// reduce_scatter and all_reduce: proved, run in all orderings and simulated, for each variant and type, numbers of GPUs
// and odd sizes.
#include "collectives/source.hpp"
#include "outcome.hpp"
#include "sdma/schedule/text.hpp"
#include "support.hpp"

namespace collectives::test {
namespace {

using Settings = std::vector<std::pair<std::string, std::string>>;

Result<Schedule, std::vector<Diagnostic>> reduction_of(std::string_view collective, const Settings& settings) {
  auto source = *reduction(collective);
  for (const auto& [name, value] : settings) REQUIRE(set_param(source, name, value));
  return parse_schedule(source.text, source.name, {.set = source.set});
}
}  // namespace

TEST_CASE("reductions are proved, and add right") {
  constexpr Ordering kOrders[] = {Ordering::strict, Ordering::rocr, Ordering::adversarial};
  std::size_t n = 0;
  for (const auto* collective : {"reduce_scatter", "all_reduce"})
    for (const auto* variant : {"ring", "halving", "swing"})
      for (const auto* type : {"f32", "bf16", "i32"})
        for (const auto* gpus : {"2", "4", "8"}) {
          const auto* bytes = n % 3 == 0 ? "4K" : n % 3 == 1 ? "1012" : "20";
          INFO(collective << " " << variant << " " << type << " " << gpus << " " << bytes);
          const auto s =
              reduction_of(collective, {{"variant", variant}, {"type", type}, {"N", gpus}, {"bytes", bytes}});
          REQUIRE(s);
          CHECK(outcome(*s, *mi300x_machine(), kOrders[n++ % 3]) == "");
        }
  for (const auto* gpus : {"3", "5"})
    CHECK(outcome(*reduction_of("all_reduce", {{"N", gpus}, {"bytes", "1000"}}), *mi300x_machine(), Ordering::strict) ==
          "");
}

TEST_CASE("a reduction that sends a wrong part is refuted") {
  for (const auto* variant : {"ring", "halving", "swing"}) {
    auto source = *reduction("reduce_scatter");
    std::string text(source.text);
    const std::string from = "src=gpu{i}.in[b*chunk]";
    text.replace(text.find(from), from.size(), "src=gpu{i}.in[i*chunk]");
    const auto s = parse_schedule(text, "wrong.sdma", {.set = {{"N", "4"}, {"bytes", "4K"}, {"variant", variant}}});
    REQUIRE(s);
    CHECK(check(*s).verdict() == Verdict::refuted);
  }
}

TEST_CASE("a reduction refuses what has no meaning") {
  const auto why = [](const Settings& settings) {
    const auto s = reduction_of("all_reduce", settings);
    return s ? "" : s.error().front().message;
  };
  CHECK(why({{"N", "6"}}) == "");
  CHECK(why({{"N", "6"}, {"variant", "halving"}}) == "this variant needs 2, 4, 8, .. GPUs, not 6");
  CHECK(why({{"N", "6"}, {"variant", "swing"}}) == "this variant needs 2, 4, 8, .. GPUs, not 6");
  CHECK(why({{"bytes", "6"}}) == "6 bytes are not a whole number of elements of 4 bytes");
  CHECK(why({{"bytes", "6"}, {"type", "bf16"}}) == "");
  CHECK(why({{"N", "1"}}) == "a collective needs at least two GPUs, not 1");
  CHECK_FALSE(reduction("all_gather"));
  auto source = *reduction("all_reduce");
  CHECK_FALSE(set_param(source, "root", "1"));
}

}  // namespace collectives::test
