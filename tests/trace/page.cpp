// SPDX-License-Identifier: MIT
#include "sdma/trace/page.hpp"
#include "sample.hpp"
#include "sdma/trace/write.hpp"
#include "support/catch.hpp"
#include "support/json.hpp"

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

using namespace sdma;

namespace {

/// What a script element of the page holds.
nlohmann::json data(const std::string& page, const std::string& id = "data") {
  const std::string mark = "id=\"" + id + "\">";
  const auto from = page.find(mark) + mark.size();
  return test::parse_json(page.substr(from, page.find("</script>", from) - from));
}

/// The bytes of the page's chunks: base64 that another program has written.
std::vector<std::string> chunks(const std::string& page) {
  const std::string mark = "class=\"chunk\">",
                    digits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::vector<std::string> all;
  for (auto at = page.find(mark); at != page.npos; at = page.find(mark, at)) {
    at += mark.size();
    std::string bytes;
    unsigned bits = 0, held = 0;
    for (; page[at] != '<' && page[at] != '='; ++at) {
      held = held << 6 | static_cast<unsigned>(digits.find(page[at]));
      bits += 6;
      if (bits >= 8) bytes += static_cast<char>(held >> (bits -= 8) & 255);
    }
    all.push_back(bytes);
  }
  return all;
}

class Varints {
 public:
  explicit Varints(std::string bytes) : bytes_(std::move(bytes)) {}
  std::uint64_t next() {
    std::uint64_t v = 0;
    for (unsigned shift = 0;; shift += 7) {
      const auto b = static_cast<unsigned char>(bytes_.at(at_++));
      v |= std::uint64_t{b & 127u} << shift;
      if (b < 128) return v;
    }
  }
  std::int64_t next_signed() {
    const auto v = next();
    return static_cast<std::int64_t>(v >> 1 ^ (0 - (v & 1)));
  }
  bool at_end() const { return at_ == bytes_.size(); }

 private:
  std::string bytes_;
  std::size_t at_ = 0;
};

std::string page_of(const trace::Trace& t) { return trace::to_page(std::vector<trace::PageTrace>{{"run", t}}); }

}  // namespace

TEST_CASE("a page holds every packet and every event of its trace, times from the first") {
  const auto t = test::sample();
  const auto page = page_of(t);
  const auto one = data(page).at("traces").at(0);
  CHECK(one["name"] == "run");
  CHECK(one["clock"] == "virtual");
  CHECK(one["lost"] == 2);
  CHECK(one["first"] == "1000");
  CHECK(one["last"] == 5000);
  CHECK(one["start"] == 1500);  // of the first packet, although a host thread began earlier
  CHECK(one["end"] == 5000);
  const auto events = [&](auto... kinds) {
    return std::count_if(t.events.begin(), t.events.end(), [&](const auto& e) { return ((e.kind == kinds) || ...); });
  };
  using Happens = trace::Kind;
  std::int64_t packets = 0, actions = 0, marks = 0, bells = 0, counters = 0;
  for (const auto& lane : one["lanes"]) {
    packets += lane["packets"].get<std::int64_t>();
    actions += lane["actions"].get<std::int64_t>();
    marks += lane["marks"].get<std::int64_t>();
    bells += lane["bells"].get<std::int64_t>();
    for (const auto& c : lane["counters"]) counters += c["count"].get<std::int64_t>();
  }
  CHECK(packets == events(Happens::packet_begin, Happens::action_begin));
  CHECK(actions == events(Happens::action_begin));
  CHECK(marks ==
        events(Happens::doorbell, Happens::signal, Happens::fault, Happens::queue_created, Happens::queue_destroyed));
  CHECK(bells == events(Happens::doorbell));
  CHECK(counters == events(Happens::counter));
  CHECK(one["signals"] == events(Happens::signal));
  CHECK(one["flows"] == events(Happens::flow_begin));

  // The records of q0, whose lane is the first: table, trace, lane, counter, count, and the length of the first part.
  const auto all = chunks(page);
  Varints q0(all.at(0));
  for (const auto v : {0u, 0u, 0u, 0u, 4u}) CHECK(q0.next() == v);
  q0.next();
  const auto shapes = data(page, "shapes");
  struct Packet {
    std::uint64_t from, lasts, row_and_end;
    std::string name;
  };
  for (const auto& p : {Packet{1500, 501, 1, "copy_linear"},
                        {100, 1600, 3, "copy_linear"},
                        {1600, 100, 1, "fence"},
                        {200, 0, 1, "nop"}}) {
    CHECK(q0.next() == p.from);
    CHECK(q0.next() == p.lasts);
    CHECK(q0.next() == p.row_and_end);
    CHECK(shapes.at(q0.next())["name"] == p.name);
  }
  q0.next();
  const std::vector<std::uint32_t> copy(t.events[2].packet().begin(), t.events[2].packet().end());
  CHECK(q0.next_signed() == 0);
  const auto differ = q0.next();
  for (std::size_t k = 0; k < copy.size(); ++k)
    if ((differ >> k & 1) != 0) CHECK(static_cast<std::uint32_t>(q0.next_signed()) == copy[k]);
    else CHECK(copy[k] == 0);
  for (auto rest = differ >> copy.size(); rest != 0; rest >>= 1)
    if ((rest & 1) != 0) q0.next();  // numbers of its text that are not dwords
  // The second copy has the same dwords, and directly follows the first.
  CHECK(q0.next() == 0);
  CHECK(q0.next() == 0);

  const auto poll = std::find_if(shapes.begin(), shapes.end(), [](const auto& s) { return s["name"] == "poll_mem"; });
  REQUIRE(poll != shapes.end());
  CHECK(poll->at("waits") == "\x01X1");  // the address is in dwords 1 and 2
  CHECK(poll->at("text").get<std::string>().find("addr=\x01X1 func=ge reference=\x01") != std::string::npos);
}

TEST_CASE("a page has names, epochs and actions in its texts") {
  const auto shapes = data(page_of(test::sample()), "shapes");
  const auto with = [&](const std::string& name) {
    for (const auto& s : shapes)
      if (s["name"].get<std::string>().starts_with(name)) return s;
    FAIL(name);
    return nlohmann::json();
  };
  CHECK(with("copy_linear")["text"].get<std::string>().find(" dst=gpu1.buf[\x01") != std::string::npos);
  CHECK(with("copy_linear")["text"].get<std::string>().find("  # epoch \x01") != std::string::npos);
  CHECK_FALSE(with("copy_linear").contains("action"));
  const auto waits = with("waits for host.done >= ");
  CHECK(waits["action"] == true);
  CHECK(waits["dwords"] == 0);
  CHECK(waits["text"] ==
        "waits for host.done >= \x01"
        "d0");
  CHECK(waits["waits"].get<std::string>().starts_with("\x01X"));
}

TEST_CASE("packets that differ in numbers alone have one shape, whether a dword holds the number or not") {
  trace::Trace t{.lanes = {{"gpu0", "q"}}};
  const auto packet = [&](const std::vector<std::uint32_t>& dwords, std::uint32_t length) {
    trace::Event e{.ns = t.events.size(), .kind = trace::Kind::packet_begin, .length = length};
    e.dword_count = static_cast<std::uint8_t>(dwords.size());
    std::copy(dwords.begin(), dwords.end(), e.dwords.begin());
    t.events.push_back(e);
  };
  for (std::uint32_t i = 0; i < 1000; ++i) {
    const auto copy = encode(CopyLinear{
        .src = GpuVa{0x7f0000000000 + i * 4096ull}, .dst = GpuVa{0x7e0012340000 + i * 4160ull}, .bytes = 1001 + i * 2});
    packet({copy.begin(), copy.end()}, 7);
  }
  for (std::uint32_t i = 0; i < 1000; ++i) packet({0xffff00ffu, 0x1000 + i}, 2);
  const auto shapes = data(page_of(t), "shapes");
  CHECK(shapes.size() < 20);
}

TEST_CASE("the rows of a lane are found without comparing all of its packets") {
  // None of them ends; the last begins when the trace ends, in the first row. A search of the rows takes minutes.
  trace::Trace t{.lanes = {{"gpu0", "q"}}};
  for (std::uint64_t i = 0; i < 200'000; ++i)
    t.events.push_back({.ns = i, .kind = trace::Kind::packet_begin, .position = i * 4});
  const auto page = page_of(t);
  CHECK(data(page)["traces"][0]["lanes"][0]["rows"] == 199'999);
  CHECK(chunks(page).size() == 4);
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
