// SPDX-License-Identifier: MIT
#include "sample.hpp"
#include "sdma/packets/cache.hpp"
#include "sdma/packets/encode.hpp"
#include "sdma/trace/write.hpp"
#include "support/catch.hpp"
#include "support/json.hpp"

#include <algorithm>
#include <sstream>

using namespace sdma;
using nlohmann::json;

namespace {

const std::string kHeader = "{\"sdma_trace\":1,\"clock\":\"c\",\"events\":1,\"lost\":0}\n";
const std::string kLane = "{\"lane\":0,\"group\":\"g\",\"name\":\"q\"}\n";
const std::string kDoorbell = "{\"ns\":1,\"lane\":0,\"event\":\"doorbell\",\"position\":4}\n";

std::string error(const std::string& text) {
  const auto t = trace::from_json_lines(text, "f");
  return t ? "" : t.error().where + ": " + t.error().message;
}

}  // namespace

TEST_CASE("a trace comes back from its lines as it was") {
  const auto t = test::sample();
  const auto back = trace::from_json_lines(trace::to_json_lines(t));
  if (!back) FAIL(to_string(back.error()));
  CHECK(back->clock == t.clock);
  CHECK(back->lanes == t.lanes);
  CHECK(back->texts == t.texts);
  CHECK(back->names == t.names);
  CHECK(back->lost == t.lost);
  CHECK(back->events == t.events);
}

TEST_CASE("the largest numbers come back") {
  trace::Trace t;
  t.lanes = {{"", ""}};
  t.texts = {""};
  constexpr auto kMost = ~std::uint64_t{0};
  t.lost = kMost;
  t.events = {{.ns = kMost, .kind = trace::Kind::doorbell, .position = kMost},
              {.ns = kMost, .kind = trace::Kind::signal, .value = kMost, .address = GpuVa{kMost}},
              {.ns = kMost, .kind = trace::Kind::counter, .value = kMost}};
  const auto back = trace::from_json_lines(trace::to_json_lines(t));
  REQUIRE(back);
  CHECK(*back == t);
}

TEST_CASE("a packet of another generation is written and read as such") {
  trace::Trace t;
  t.lanes = {{"gpu0", "engine 0 queue 0"}};
  const auto flush = encode<Generation::v6_0>(Gcr{.gl2_writeback = true});
  trace::Event e{.kind = trace::Kind::packet_begin, .dword_count = 5, .generation = Generation::v6_0, .length = 5};
  REQUIRE(flush.size() == 5);
  std::copy(flush.begin(), flush.end(), e.dwords.begin());
  t.events = {e};
  const auto lines = trace::to_json_lines(t);
  CHECK(lines.find(R"("sdma":"6.0","packet":"gcr)") != std::string::npos);
  const auto back = trace::from_json_lines(lines);
  REQUIRE(back);
  CHECK(*back == t);
  CHECK(trace::to_text(t).find("gcr") != std::string::npos);
  auto wrong = lines;
  wrong.replace(wrong.find("6.0"), 3, "3.0");
  CHECK(error(wrong).find("not a version of the engines") != std::string::npos);
  t.events[0].generation = kDefaultGeneration;  // which has no such packet
  CHECK(trace::to_text(t).find("not of 4.4.2") != std::string::npos);
}

TEST_CASE("each line is one JSON object, and each packet has its text") {
  std::istringstream lines(trace::to_json_lines(test::sample()));
  std::size_t n = 0, events = 0, packets = 0;
  for (std::string line; std::getline(lines, line); ++n) {
    const auto j = test::parse_json(line);
    REQUIRE(j.is_object());
    if (j.contains("event")) ++events;
    if (j.contains("packet") && j["packet"].get<std::string>().starts_with("copy_linear bytes=4K src=0x7f0000010000 "))
      ++packets;
    if (j.contains("packet") && j["packet"].get<std::string>().starts_with("copy_linear")) {
      CHECK(j["packet"].get<std::string>().ends_with(" dst=gpu1.buf[32K]"));
    }
  }
  CHECK(events == test::sample().events.size());
  CHECK(n == events + 1 + 4 + 4 + 2);
  CHECK(packets == 2);
}

TEST_CASE("names, actions and epochs, to the letter") {
  trace::Recorder r(16, "c");
  r.name(GpuVa{0x1000}, 4096, "host.go");
  const auto lane = r.lane("g", "q");
  r.action_begin(lane, 1200, r.text("waits for host.go >= {}"), 8, GpuVa{0x1010});
  r.action_end(lane, 1300);
  r.epoch(lane, 1300, 64, 2);
  r.packet_begin(lane, 1300, 64, encode(Fence{.addr = GpuVa{0x1010}, .value = 2}));
  const auto text = trace::to_json_lines(r.snapshot());
  CHECK(text ==
        "{\"sdma_trace\":2,\"clock\":\"c\",\"events\":4,\"lost\":0}\n" + kLane +
            "{\"text\":0,\"is\":\"waits for host.go >= {}\"}\n"
            "{\"range\":0,\"address\":\"0x1000\",\"bytes\":4096,\"is\":\"host.go\"}\n"
            "{\"ns\":1200,\"lane\":0,\"event\":\"action_begin\",\"text\":0,\"value\":\"0x8\",\"address\":\"0x1010\"}\n"
            "{\"ns\":1300,\"lane\":0,\"event\":\"action_end\"}\n"
            "{\"ns\":1300,\"lane\":0,\"event\":\"epoch\",\"position\":64,\"value\":2}\n"
            "{\"ns\":1300,\"lane\":0,\"event\":\"packet_begin\",\"position\":64,\"length\":4,"
            "\"dwords\":[\"0x00000005\",\"0x00001010\",\"0x00000000\",\"0x00000002\"],"
            "\"packet\":\"fence addr=host.go[16] value=2\"}\n");
  const auto lines = trace::to_text(r.snapshot());
  CHECK(lines.find("waits for host.go >= 8\n") != std::string::npos);
  CHECK(lines.find("@64 epoch 2\n") != std::string::npos);
  CHECK(lines.find("@64 fence addr=host.go[16] value=2\n") != std::string::npos);
}

TEST_CASE("a recording of version 1, without names, is read") { CHECK(error(kHeader + kLane + kDoorbell) == ""); }

TEST_CASE("a range that names nothing is refused") {
  const auto range = [](const std::string& members) {
    return "{\"sdma_trace\":2,\"clock\":\"c\",\"events\":0,\"lost\":0}\n{\"range\":0," + members + "}\n";
  };
  CHECK(error(range("\"address\":\"0x1000\",\"bytes\":4096,\"is\":\"a\"")) == "");
  const auto nothing = "f:2: this range is empty, has no name, ends beyond 2^64, or has a name already";
  CHECK(error(range("\"address\":\"0x1000\",\"bytes\":0,\"is\":\"a\"")) == nothing);
  CHECK(error(range("\"address\":\"0x1000\",\"bytes\":1,\"is\":\"\"")) == nothing);
  CHECK(error(range("\"address\":\"0xffffffffffffffff\",\"bytes\":2,\"is\":\"a\"")) == nothing);
  CHECK(error(range("\"bytes\":4096,\"is\":\"a\"")) == "f:2: \"address\" is missing or not \"0x...\"");
  CHECK(error(range("\"address\":\"0x1000\",\"bytes\":1,\"is\":\"a\",\"x\":1")) ==
        "f:2: this kind of line does not have a member \"x\"");
  CHECK(error("{\"sdma_trace\":2,\"clock\":\"c\",\"events\":0,\"lost\":0}\n{\"range\":1,\"address\":\"0x0\",\"bytes\":"
              "1,\"is\":\"a\"}") == "f:2: ranges are numbered from 0, in order");
}

TEST_CASE("the lines of one trace, to the letter") {
  trace::Recorder r(16, "c");
  const auto lane = r.lane("g", "q");
  r.packet_begin(lane, 1200, 64, encode(Fence{.addr = GpuVa{0x1000}, .value = 2}));
  r.packet_end(lane, 1300, 64);
  CHECK(trace::to_json_lines(r.snapshot()) ==
        "{\"sdma_trace\":2,\"clock\":\"c\",\"events\":2,\"lost\":0}\n" + kLane +
            "{\"ns\":1200,\"lane\":0,\"event\":\"packet_begin\",\"position\":64,\"length\":4,"
            "\"dwords\":[\"0x00000005\",\"0x00001000\",\"0x00000000\",\"0x00000002\"],"
            "\"packet\":\"fence addr=0x1000 value=2\"}\n"
            "{\"ns\":1300,\"lane\":0,\"event\":\"packet_end\",\"position\":64}\n");
}

TEST_CASE("what is not UTF-8 is replaced, and still JSON") {
  trace::Trace t;
  t.lanes = {{"g\xff", "q"}};
  const auto back = trace::from_json_lines(trace::to_json_lines(t));
  REQUIRE(back);
  CHECK(back->lanes[0].group == "g\xef\xbf\xbd");
}

TEST_CASE("empty lines, a missing last newline and a wrong packet text do no harm") {
  CHECK(error(kHeader + "\n" + kLane + "\n" + kDoorbell) == "");
  CHECK(error(kHeader + kLane + kDoorbell.substr(0, kDoorbell.size() - 1)) == "");
  CHECK(error(kHeader + kLane + "{\"ns\":1,\"lane\":0,\"event\":\"packet_end\",\"position\":4,\"packet\":\"\"}") == "");
}

TEST_CASE("more events than the header counts: whoever wrote them was killed before the header") {
  CHECK(error(kHeader + kLane + kDoorbell + kDoorbell) == "");
}

TEST_CASE("what is wrong with a file is said with its line") {
  CHECK(error("") == "f:1: this file does not contain a trace");
  CHECK(error("[]") == "f:1: this line is not a JSON object");
  CHECK(error("{}") == "f:1: this line does not begin a trace");
  CHECK(error("{\"sdma_trace\":3}") == "f:1: this trace has version 3");
  CHECK(error("{\"sdma_trace\":1,\"events\":0,\"lost\":0}") == "f:1: \"clock\" is missing or not a string");
  CHECK(error("{\"sdma_trace\":1,\"clock\":\"c\",\"events\":-1,\"lost\":0}") ==
        "f:1: \"events\" is missing or not a number");
  CHECK(error("{\"sdma_trace\":1,\"clock\":\"c\",\"events\":0,\"lost\":0,\"x\":1}") ==
        "f:1: this kind of line does not have a member \"x\"");
  CHECK(error(kHeader + kLane) == "f:2: the trace is cut off: it has 0 of 1 events");
  CHECK(error(kHeader + kLane + kDoorbell.substr(0, 20)) == "f:3: this is not JSON");
  CHECK(error("{\"sdma_trace\":1,\"clock\":\"c\",\"clock\":\"d\",\"events\":0,\"lost\":0}") ==
        "f:1: the key \"clock\" appears twice in this object");
  CHECK(error(kHeader + std::string(400000, '[')) == "f:2: arrays and objects are nested more than 64 levels deep");
  CHECK(error(kHeader + "{\"lane\":1,\"group\":\"g\",\"name\":\"q\"}") == "f:2: lanes are numbered from 0, in order");
  CHECK(error(kHeader + "{\"text\":1,\"is\":\"g\"}") == "f:2: texts are numbered from 0, in order");
  CHECK(error(kHeader + "{\"x\":1}") == "f:2: this line is neither an event, a lane, a text nor a range");
  CHECK(error(kHeader + kDoorbell) == "f:2: \"lane\" 0 was not declared");
  const auto event = [](const std::string& rest) {
    return error(kHeader + kLane + "{\"ns\":1,\"lane\":0," + rest + "}");
  };
  CHECK(event("\"event\":\"boom\"") == "f:3: \"boom\" is not a kind of event");
  CHECK(event("\"event\":\"doorbell\"") == "f:3: \"position\" is missing or not a number");
  CHECK(event("\"event\":\"doorbell\",\"position\":4,\"value\":1") ==
        "f:3: this line has members that a doorbell does not have");
  CHECK(event("\"event\":\"signal\",\"address\":\"0x\",\"value\":\"0x1\"") ==
        "f:3: \"address\" is missing or not \"0x...\"");
  CHECK(event("\"event\":\"signal\",\"address\":\"0x1g\",\"value\":\"0x1\"") ==
        "f:3: \"address\" is missing or not \"0x...\"");
  CHECK(event("\"event\":\"signal\",\"address\":\"0x1\",\"value\":1") == "f:3: \"value\" is missing or not \"0x...\"");
  CHECK(event("\"event\":\"counter\",\"text\":0,\"value\":1") == "f:3: \"text\" 0 was not declared");
  const std::string list = "f:3: \"dwords\" must be a list of at most 16 dwords, and not longer than \"length\"";
  CHECK(event("\"event\":\"packet_begin\",\"position\":0,\"length\":1,\"dwords\":[\"0x1\",\"0x1\"]") == list);
  CHECK(event("\"event\":\"packet_begin\",\"position\":0,\"length\":1,\"dwords\":\"0x1\"") == list);
  CHECK(event("\"event\":\"packet_begin\",\"position\":0,\"length\":1,\"dwords\":[\"0x100000000\"]") ==
        "f:3: \"dwords\" has an item that is not a 32-bit \"0x...\"");
  CHECK(event("\"event\":\"packet_begin\",\"position\":0,\"length\":4294967296,\"dwords\":[]") ==
        "f:3: \"length\" is 4294967296, more than 4294967295");
  CHECK(error("{\"sdma_trace\":1,\"clock\":\"c\",\"events\":2,\"lost\":0}\n" + kLane + kDoorbell +
              "{\"ns\":0,\"lane\":0,\"event\":\"doorbell\",\"position\":4}") ==
        "f:4: this event is earlier than the previous one");
}

TEST_CASE("any bytes are read without harm") {
  const auto good = trace::to_json_lines(test::sample());
  std::uint32_t seed = 1;
  for (int i = 0; i < 500; ++i) {
    auto bad = good;
    for (int k = 0; k < 3; ++k) {
      seed = seed * 1664525 + 1013904223;
      bad[seed % bad.size()] = static_cast<char>(seed >> 24);
    }
    if (const auto t = trace::from_json_lines(bad)) CHECK(!trace::to_perfetto(*t).empty());
  }
}
