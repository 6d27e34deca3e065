// SPDX-License-Identifier: MIT
#include "sdma/stream/json.hpp"

#include "random.hpp"
#include "support/catch.hpp"
#include "support/json.hpp"

using namespace sdma;

namespace {

std::string line(std::vector<std::uint32_t> d) {
  std::string s;
  append_json(s, Reader{d}.next(), 64);
  return s;
}

}  // namespace

TEST_CASE("a packet is an object with all its fields") {
  CHECK(
      line({5, 0x1008, 0x7f00, 1}) ==
      R"({"offset":64,"packet":"fence","fields":{"addr":"0x7f0000001008","value":"0x1","l2_policy":0,"llc_policy":false},)"
      R"("dwords":["0x00000005","0x00001008","0x00007f00","0x00000001"]})");
  CHECK(line({0xf0000008, 0x1000, 0, 2, 0xffffffff, 0x0fff0004}) ==
        R"({"offset":64,"packet":"poll_mem","fields":{"addr":"0x1000","func":7,"reference":"0x2","mask":"0xffffffff",)"
        R"("interval":4,"retry":"forever","policy":0,"hdp":false},)"
        R"("dwords":["0xf0000008","0x00001000","0x00000000","0x00000002","0xffffffff","0x0fff0004"]})");
  CHECK(line({2, 0x1000, 0, 1, 7, 8}).find(R"("data":["0x00000007","0x00000008"])") != std::string::npos);
}

TEST_CASE("reserved bits, unknown and cut-off packets") {
  CHECK(line({0x8000000b, 0, 0, 0, 0xc0000fff}).find(R"("reserved":{"4":"0xc0000000"})") != std::string::npos);
  CHECK(line({3}) == R"({"offset":64,"packet":null,"dwords":["0x00000003"]})");
  CHECK(line({1, 2}) ==
        R"({"offset":64,"packet":null,"truncated":"copy_linear","dwords":["0x00000001","0x00000002"]})");
}

TEST_CASE("JSON is JSON, numbers are exact, and the dwords come back") {
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    const auto x = support::Dwords{seed}.stream(60);
    const auto text = to_json_lines(x, 256);
    std::uint64_t offset = 256;
    for (std::size_t begin = 0; begin < text.size();) {
      const auto end = text.find('\n', begin);
      const auto object = test::parse_json(text.substr(begin, end - begin));
      REQUIRE(object["offset"] == offset);
      offset += 4 * object["dwords"].size();
      if (!object["packet"].is_null())
        for (const auto& [name, value] : object["fields"].items())
          if (value.is_number()) REQUIRE(value.get<std::uint64_t>() <= (1ull << 53));
      begin = end + 1;
    }
    CHECK(offset == 256 + 4 * x.size());
    const auto back = from_json_lines(text);
    REQUIRE(back);
    CHECK(*back == x);
  }
}

TEST_CASE("a stream in pieces gives the lines of the stream in one") {
  const auto x = support::Dwords{7}.stream(80);
  std::string text;
  JsonLines j;
  std::vector<std::uint32_t> kept;
  for (std::size_t i = 0; i < x.size(); ++i) {
    kept.push_back(x[i]);
    kept.erase(kept.begin(), kept.begin() + static_cast<std::ptrdiff_t>(j.append(text, kept, i + 1 == x.size())));
  }
  CHECK(text == to_json_lines(x));
}

TEST_CASE("every line that is no packet is reported with its place") {
  const auto r =
      from_json_lines("{\"dwords\":[\"0x1\"]}\n\n[1]\n{\"dwords\":[1]}\n{\"dwords\":[\"0x123456789\"]}\nx\n", "a.json");
  REQUIRE(!r);
  REQUIRE(r.error().size() == 4);
  CHECK(r.error()[0].where == "a.json:3:1");
  CHECK(r.error()[0].message == "this line has no list 'dwords'");
  CHECK(r.error()[1].message == "a dword is a string \"0x...\"");
  CHECK(r.error()[2].message == "'0x123456789' is not a dword");
  CHECK(r.error()[3].message == "this is not JSON");
  // One of two equal keys would be ignored. An object of many keys takes no longer than its text is long.
  const auto twice = from_json_lines("{\"dwords\":[\"0x1\"],\"dwords\":[\"0x2\"]}", "a");
  REQUIRE(!twice);
  CHECK(twice.error()[0].where == "a:1:26");
  CHECK(twice.error()[0].message == "the key \"dwords\" appears twice in this object");
  std::string many = "{\"dwords\":[\"0x7\"]";
  for (int i = 0; i < 100000; ++i) many += ",\"k" + std::to_string(i) + "\":[]";
  CHECK(from_json_lines(many + "}").value_or({}) == std::vector<std::uint32_t>{7});
  const auto last = from_json_lines(many + ",\"k3\":0}");
  REQUIRE(!last);
  CHECK(last.error()[0].message == "the key \"k3\" appears twice in this object");
  const auto deep = from_json_lines("{\"dwords\":" + std::string(400000, '[') + std::string(400000, ']') + "}");
  REQUIRE(!deep);
  CHECK(deep.error()[0].message == "arrays and objects are nested more than 64 levels deep");
}

TEST_CASE("errors that are not shown are counted") {
  std::string text;
  for (int i = 0; i < 120; ++i) text += "x\n";
  const auto r = from_json_lines(text);
  REQUIRE(!r);
  REQUIRE(r.error().size() == 101);
  CHECK(r.error().back().message == "20 more errors are not shown");
}
