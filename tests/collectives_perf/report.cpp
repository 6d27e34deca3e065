// SPDX-License-Identifier: MIT
#include "perf/report.hpp"
#include "perf/estimated_progress.hpp"
#include "perf/others.hpp"
#include "support.hpp"

using namespace collectives;
using namespace collectives::perf;
using test::point;
using test::settings;

namespace {

constexpr Way kPcpy{Variant::pcpy, false}, kB2b{Variant::b2b, false}, kB2bPl{Variant::b2b, true};

const std::vector<Point> kSweep{
    point(1024, kPcpy, 40), point(1024, kB2b, 20),   point(1024, kB2bPl, 10),  //
    point(2048, kPcpy, 40), point(2048, kB2b, 20),   point(2048, kB2bPl, 8),   //
    point(4096, kPcpy, 40), point(4096, kB2b, 39.9), point(4096, kB2bPl, 30),  //
    point(8192, kPcpy, 39), point(8192, kB2b, 80),   point(8192, kB2bPl, 60),
};

std::size_t count(const std::string& text, const std::string& part) {
  std::size_t n = 0;
  for (auto at = text.find(part); at != text.npos; at = text.find(part, at + 1)) ++n;
  return n;
}

}  // namespace

TEST_CASE("means, medians and bandwidths") {
  const auto t = times_of({4, 1, 2, 9});
  CHECK(t.mean == Approx(4));
  CHECK(t.median == Approx(3));
  CHECK(t.least == Approx(1));
  CHECK(t.most == Approx(9));
  CHECK(times_of({0}).mean > 0);
  // 1 MiB in 1000 us: 1.048576 GB/s.
  CHECK(point(1 << 20, kPcpy, 1000).algbw == Approx(1.048576));
  CHECK(point(1 << 20, kPcpy, 1000).busbw == Approx(0.524288));
}

TEST_CASE("best by range, with ties that do not break a range, with and without prelaunch") {
  const auto all = best(kSweep, true);
  REQUIRE(all.size() == 2);
  CHECK((all[0].least == 1024 && all[0].most == 4096 && all[0].way == kB2bPl));
  CHECK(*all[0].least_speed_up == Approx(40.0 / 30));
  CHECK(*all[0].most_speed_up == Approx(5));
  CHECK((all[1].least == 8192 && all[1].most == 8192 && all[1].way == kPcpy));
  const auto without = best(kSweep, false);
  REQUIRE(without.size() == 2);
  CHECK((without[0].most == 4096 && without[0].way == kB2b));
  // A tie: b2b was the best before, and pcpy is no more than kTie faster.
  std::vector<Point> tie{point(1, kPcpy, 9), point(1, kB2b, 8), point(2, kPcpy, 8), point(2, kB2b, 8 * 1.02)};
  CHECK(best(tie, true).size() == 1);
  tie.back().us = times_of({8 * 1.1});
  CHECK(best(tie, true).size() == 2);
  CHECK(best(std::vector{tie[0], tie[1], tie[2], point(2, kB2b, 8.1)}, true, 1).size() == 2);
  // The model does not know: a range goes on, and the column names both.
  tie[2].ties = {kB2b};
  CHECK(best(tie, true).size() == 1);
  CHECK(summary(tie).find("   pcpy or b2b\n") != std::string::npos);
  CHECK(summary(tie).find("# Ties: ") != std::string::npos);
  CHECK(summary(kSweep).find("# Ties: ") == std::string::npos);
  CHECK(to_json(settings(), "", tie, true)["points"].dump().find("\"ties\":[\"b2b\"]") != std::string::npos);
  CHECK(best({}, true).empty());
}

TEST_CASE("a summary has speed-ups over pcpy, where that was measured") {
  const auto text = summary(kSweep);
  INFO(text);
  CHECK(text.find("      2K      2.00      5.00   b2b+pl\n") != text.npos);
  CHECK(text.find("      1K to       4K   b2b+pl     1.33 to 5.00\n") != text.npos);
  CHECK(count(text, "3 % is a tie") == 1);
  CHECK(count(text, "The same without prelaunch") == 1);
  CHECK(summary(std::vector{point(1, kPcpy, 1)}).empty());
  const auto without = summary(std::vector{point(1, kB2b, 2), point(1, kB2bPl, 1)});
  CHECK(without.find("Speed-up") == without.npos);
  CHECK(without.find("1 to        1   b2b+pl") != without.npos);
}

TEST_CASE("times of CPUs call nothing best") {
  const std::vector points{test::point(1024, kBase, 4), test::point(1024, {Variant::b2b, true}, 2)};
  const auto soft = test::settings("--device=soft"), simulated = test::settings("--device=simulate");
  CHECK(summary(points, comparable(simulated)).find("# Best by size") != std::string::npos);
  CHECK(summary(points, comparable(soft)).find("Best") == std::string::npos);
  CHECK(summary(points, comparable(soft)).find("not times of engines") != std::string::npos);
  CHECK_FALSE(to_json(simulated, "", points, true)["best"].empty());
  CHECK(to_json(soft, "", points, true)["best"].empty());
  CHECK(header(soft, "").find(" (CPU us) ") != std::string::npos);
  CHECK(header(simulated, "").find("CPU") == std::string::npos);
  CHECK(header(simulated, "").find("No GPU was found") == std::string::npos);
  CHECK(header(test::settings(), "").find("# No GPU was found") != std::string::npos);
}

TEST_CASE("auto is measured, and never the best of itself") {
  CHECK(best(std::vector{point(1, {Variant::automatic, false}, 1), point(1, kPcpy, 2)}, true)[0].way == kPcpy);
}

TEST_CASE("a row has its columns, and says what is wrong") {
  auto p = point(1 << 20, kB2bPl, 123.456);
  CHECK(count(row(p), "\n") == 1);
  CHECK(row(p).find(" 123.5 ") != std::string::npos);
  p.wrong = 3;
  p.first_wrong = "gpu1.buf[0] is 0xdb";
  CHECK(row(p).ends_with("      3\n# wrong: gpu1.buf[0] is 0xdb\n"));
  CHECK(footer(std::vector{p}).find("3 FAILED") != std::string::npos);
  p.wrong.reset();
  CHECK(row(p).ends_with("    N/A\n"));
  CHECK(footer(std::vector{p}).find("not verified") != std::string::npos);
  CHECK(footer(kSweep).find("0 OK") != std::string::npos);
  // Every column has one space at least before it, whatever the numbers.
  auto huge = point(~std::uint64_t{0} / 2, {Variant::automatic, true}, 1e9);
  CHECK(count(row(huge), "  uint8") == 1);
}

TEST_CASE("the table of nccl-tests has its 13 columns in their places") {
  const auto s = test::settings("--collective=gather -c 1 -r 2 -d half --format=nccl-tests");
  const auto text = nccl_format::header(s, "a GPU", "# remark\n");
  CHECK(text.find("# remark\n#\n"
                  "#                                                              out-of-place                       "
                  "in-place          \n"
                  "#       size         count      type   redop    root     time   algbw   busbw #wrong     time   "
                  "algbw   busbw #wrong\n"
                  "#        (B)    (elements)                               (us)  (GB/s)  (GB/s)            (us)  "
                  "(GB/s)  (GB/s)       \n") != std::string::npos);
  auto p = test::point(65536, {Variant::b2b, true}, 41.2);
  p.type = "half";
  CHECK(nccl_format::row(s, p) ==
        "       65536          8192      half    none       2      N/A     N/A     N/A    N/A    41.20    1.59    0.80 "
        "     0\n");
  p.in_place = false;
  p.wrong = 3;
  p.first_wrong = "there";
  p.us.mean = 12345;
  CHECK(nccl_format::row(test::settings(), p) ==
        "       65536          8192      half    none      -1    12345    1.59    0.80      3      N/A     N/A     N/A "
        "   N/A\n"
        "# wrong: there\n");
  const auto footer = [](std::vector<Point> all) { return nccl_format::footer(all); };
  auto good = test::point(1000, kBase, 1), unknown = good;
  unknown.wrong.reset();
  CHECK(footer({good, good}) == "# Out of bounds values : 0 OK\n# Avg bus bandwidth    : 0.5 \n#\n");
  CHECK(footer({good, p}).starts_with("# Out of bounds values : 3 FAILED\n"));
  // What was not verified is not OK.
  CHECK(footer({good, unknown}).starts_with("# Out of bounds values : N/A\n"));
}

TEST_CASE("a note is said once") {
  auto p = point(100, kPcpy, 1);
  p.notes = {"falls back"};
  std::vector<std::string> said;
  CHECK(notes(p, said) == "# note: falls back\n");
  CHECK(notes(p, said).empty());
}

TEST_CASE("progress says how much is left when it can know") {
  CHECK(progress("3 of 10: 1M b2b", 5, 1, 1000) == "3 of 10: 1M b2b");
  CHECK(progress("3 of 10: 1M b2b", 5, 500, 1000) == "3 of 10: 1M b2b, about 5 s left");
}

TEST_CASE("a line of CSV has as many fields as the first") {
  const auto s = settings();
  auto p = point(1024, kB2bPl, 2.5);
  CHECK(count(csv_line(s, p), ",") == count(csv_header(), ","));
  p.notes = {"swap: a, b", "says \"no\""};
  CHECK(csv_line(s, p).ends_with(",0,\"swap: a, b; says \"\"no\"\"\",2.5,2.5,,,,,,,,,,,,,,\n"));
  p.wrong.reset();
  p.notes.clear();
  CHECK(csv_line(s, p).ends_with(",,,2.5,2.5,,,,,,,,,,,,,,\n"));
  p.energy = perf::Energy{.joules = 0.5, .nanojoules_per_byte = 7, .watts = 99};
  p.beside = Beside{.us = 3, .product_alone = 600, .product = 500};
  CHECK(csv_line(s, p).ends_with(",2.5,2.5,0.5,7,99,3,600,500,,,,,,,,\n"));
}

TEST_CASE("half of the rounds are between the quartiles") {
  const auto t = times_of({9, 1, 2, 3, 4, 5, 6, 7, 8});
  CHECK(t.lower == Approx(3));
  CHECK(t.upper == Approx(7));
  CHECK(times_of({4}).lower == Approx(4));
}

TEST_CASE("bytes that move are those between GPUs") {
  const auto of = [](Collective c) { return moved_bytes({.collective = c, .gpus = 4, .bytes = 1024}); };
  CHECK(of(Collective::all_gather) == 3 * 1024);
  CHECK(of(Collective::all_to_all) == 3 * 1024);
  CHECK(of(Collective::broadcast) == 3 * 1024);
  CHECK(of(Collective::scatter) == 768);
  CHECK(of(Collective::gather) == 768);
}

TEST_CASE("rivals are compared with the best of ours, and never counted as ours") {
  constexpr Way kNccl{.rival = Rival::nccl}, kCe{.rival = Rival::nccl_ce};
  std::vector<Point> all{point(1024, kPcpy, 40),  point(1024, kB2bPl, 10), point(1024, kNccl, 30), point(1024, kCe, 20),
                         point(2048, kB2bPl, 10), point(2048, kNccl, 5),   point(4096, kNccl, 1)};
  all[1].us = times_of({8, 9, 10, 11, 12});
  all[3].us = times_of({11, 12, 20, 21, 22});
  const auto c = compared(all);
  REQUIRE(c.size() == 2);
  CHECK((c[0].ours == kB2bPl && c[0].theirs == kCe && !c[0].tie));
  CHECK((c[1].ours == kB2bPl && c[1].theirs == kNccl && !c[1].tie));
  all[3].us = times_of({9, 11, 20, 21, 22});
  CHECK(compared(all)[0].tie);
  CHECK(against(all).find("      1K  b2b+pl        10.00  nccl-ce       20.00         2.00  tie\n") !=
        std::string::npos);
  CHECK(against(all).find("      2K  b2b+pl        10.00  nccl           5.00         0.50\n") != std::string::npos);
  CHECK(against(std::vector{point(1, kPcpy, 1)}).empty());
  // Ours alone are the best of a range, and alone have an average.
  for (const auto& r : best(all, true)) CHECK(r.way == kB2bPl);
  CHECK(average_busbw(std::vector{all[4], all[5]}) == Approx(all[4].busbw));
  CHECK(row(all[2]).find("        nccl ") != std::string::npos);
  CHECK(csv_line(settings(), all[3]).find(",nccl-ce,nccl-ce,") != std::string::npos);
}

TEST_CASE("what was measured besides the time is below the row") {
  auto p = point(1024, kB2bPl, 10);
  p.energy = perf::Energy{.joules = 0.5, .nanojoules_per_byte = 7, .watts = 99};
  p.beside = Beside{.us = 15, .product_alone = 600, .product = 540};
  CHECK(row(p).find("\n#   energy: 0.5 J per round, 7 nJ per byte moved, 99.0 W above idle\n") != std::string::npos);
  CHECK(row(p).ends_with(
      "#   beside gemm: median 15.00 us, alone 10.00 (x 1.50); gemm 540.0 TFLOP/s per GPU, alone 600.0 (-10.0 %)\n"));
}

TEST_CASE("what others have measured: the same collective on as many GPUs, by the size of a GPU's buffer") {
  constexpr auto kSchedule =
      "sdma 1\nparam bytes = 1K\ngpus 2\nbuffer gpu*.buf bytes=2*bytes\nbuffer host.big bytes=1M\n";
  const auto table = sdma::measurements_from_csv(
      "schedule,settings,what,value,source,machine,includes\n"
      "a/all_gather.sdma,bytes=2K,time_us,8,\"paper, \"\"page "
      "2\"\"\",MI1,RCCL\na/all_gather.sdma,bytes=1K,time_us,4,paper,MI1,RCCL\n"
      "a/all_gather.sdma,bytes=1K,share.copy,4,paper,MI1,RCCL\na/all_to_all.sdma,bytes=1K,time_us,4,paper,MI1,RCCL\n"
      "a/all_gather.sdma,bytes=1K,time_us,2,paper,MI0,RCCL\n",
      "t.csv", [&](const std::string&) { return std::string(kSchedule); });
  REQUIRE(table);
  auto s = settings();
  s.options.gpus = 2;
  const auto rows = elsewhere_of(*table, s);
  REQUIRE(rows.size() == 3);
  CHECK(rows[0].machine == "MI0");
  CHECK((rows[1].bytes == 2048 && rows[1].us == Approx(4)));
  CHECK((rows[2].bytes == 4096 && rows[2].us == Approx(8)));
  CHECK(rows[2].busbw == Approx(4096 / 8e3 / 2));
  const auto text = elsewhere_text(rows);
  CHECK(count(text, "# Measured elsewhere, on MI") == 2);
  CHECK(text.find("      4K       8.00 us      0.26 GB/s busbw   RCCL; paper, \"page 2\"\n") != text.npos);
  CHECK(to_json(s, "", {}, true, {}, rows)["elsewhere"].back()["source"] == "paper, \"page 2\"");
  CHECK_FALSE(to_json(s, "", kSweep, true, {}, rows)["elsewhere"].empty());
  CHECK(count(plot_svg(s, "x", kSweep, rows), "<path") == 8);
  CHECK(count(plot_svg(s, "x", kSweep, rows), "RCCL, MI1, measured elsewhere") > 0);
  s.options.gpus = 3;
  CHECK(elsewhere_of(*table, s).empty());
  CHECK(elsewhere_text({}).empty());
}

TEST_CASE("a picture has every curve and no number that is none") {
  const auto s = settings();
  const auto svg = plot_svg(s, "a <b> & \"c\"", kSweep);
  CHECK(count(svg, "<path") == 6);
  CHECK(count(svg, ">b2b+pl</text>") == 2);
  CHECK(svg.find("a &lt;b&gt; &amp; &quot;c&quot;") != svg.npos);
  CHECK(count(svg, "nan") + count(svg, "inf") == 0);
  // One size, one way: still a picture, of bandwidth alone.
  const auto one = plot_svg(s, "x", std::vector{point(1000, kPcpy, 1)});
  CHECK(count(one, "<path") == 1);
  CHECK(count(one, "nan") + count(one, "inf") == 0);
  CHECK(plot_svg(s, "x", {}).empty());
}
