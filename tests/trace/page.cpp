#include "sdma/trace/page.hpp"
#include "sample.hpp"
#include "sdma/trace/write.hpp"
#include "support/catch.hpp"
#include "support/json.hpp"

using namespace sdma;

namespace {

/// What the page's script reads.
nlohmann::json data(const std::string& page) {
  const std::string mark = "id=\"data\">";
  const auto from = page.find(mark) + mark.size();
  return test::parse_json(page.substr(from, page.find("</script>", from) - from));
}

}  // namespace

TEST_CASE("a page holds every packet and every event of its trace, times from the first") {
  const auto t = test::sample();
  const auto one = data(trace::to_page(std::vector<trace::PageTrace>{{"run", t}})).at("traces").at(0);
  CHECK(one["name"] == "run");
  CHECK(one["clock"] == "virtual");
  CHECK(one["lost"] == 2);
  CHECK(one["first"] == "1000");
  CHECK(one["last"] == 5000);
  std::size_t bars = 0;
  for (const auto& lane : one["lanes"]) bars += lane["bars"].size();
  std::size_t packets = 0;
  for (const auto& e : t.events) packets += e.kind == trace::Kind::packet_begin;
  CHECK(bars == packets);
  std::size_t ends = 0;
  for (const auto& e : t.events) ends += e.kind == trace::Kind::packet_end;
  CHECK(one["marks"].size() == t.events.size() - packets - ends);

  const auto& q0 = one["lanes"][0]["bars"];
  CHECK(q0[0][0] == 1500);
  CHECK(q0[0][1] == 2001);
  CHECK(q0[1][2] == 1);  // it overlaps: the second row
  CHECK(q0[0][8] == nullptr);
  const auto& poll = one["lanes"][1]["bars"][0];
  CHECK(poll[3] == 0);  // no end
  CHECK(poll[4] == "poll_mem");
  CHECK(poll[8] == "0x7f0000001000");
}

TEST_CASE("no name gets out of the page's data") {
  trace::Recorder r(16);
  const auto lane = r.lane("</script><script>alert(1)</script>", "<!--");
  r.signal(lane, 5, GpuVa{8}, ~std::uint64_t{0});
  const auto page = trace::to_page(std::vector<trace::PageTrace>{{"<b>", r.snapshot()}});
  const auto from = page.find("id=\"data\">") + 10, to = page.find("</script>", from);
  CHECK(page.substr(from, to - from).find('<') == std::string::npos);
  const auto one = data(page)["traces"][0];
  CHECK(one["lanes"][0]["group"] == "</script><script>alert(1)</script>");
  CHECK(one["marks"][0][6] == "0xffffffffffffffff");
}

TEST_CASE("a page shows one trace or two") {
  CHECK(trace::to_page({}).empty());
  const std::vector<trace::PageTrace> three(3);
  CHECK(trace::to_page(three).empty());
  const auto saved = trace::save_page(three, "three.html");
  REQUIRE(!saved);
  CHECK(saved.error().message == "cannot make a page of 3 traces");
  const std::vector<trace::PageTrace> empty(2);
  CHECK(data(trace::to_page(empty))["traces"].size() == 2);
}
