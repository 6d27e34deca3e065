// SPDX-License-Identifier: MIT
// What a diagnosis says: the paragraph, the table, the packets around rptr, and JSON.
#include "scene.hpp"
#include "sdma/core/file.hpp"
#include "support/catch.hpp"

#include <nlohmann/json.hpp>

using namespace sdma;
using namespace sdma::test;
using namespace sdma::doctor;

namespace {

constexpr GpuVa kA{0x7f0000001000}, kB{0x7f0000002000};

QueueSnapshot queue(const char* name, std::vector<std::uint32_t> ring, std::uint64_t rptr, std::uint64_t wptr) {
  ring.resize(256);
  return {.name = name, .ring = std::move(ring), .rptr = {rptr, Source::memory}, .wptr = {wptr, Source::memory}};
}
template <class P> void put(std::vector<std::uint32_t>& out, const P& p) {
  const auto n = out.size();
  out.resize(n + length(p));
  encode_to(p, out.data() + n);
}
/// Two queues: each polls the word that the other one would store.
Snapshot two() {
  Snapshot s{.watched_ns = 5'000'000'000};
  for (const bool first : {true, false}) {
    std::vector<std::uint32_t> ring;
    put(ring, Fence{.addr = GpuVa{0x7f0000003000}, .value = 1});
    put(ring, PollMem{.addr = first ? kA : kB, .func = Compare::ge, .reference = 5});
    put(ring, Fence{.addr = first ? kB : kA, .value = 5});
    s.queues.push_back(queue(first ? "left" : "right", ring, 16, 56));
  }
  s.words.add(kA, 4, 4);
  s.words.add(kB, 0, 4);
  s.ranges.push_back({kA, 8, "go", Range::Kind::host, {}});
  return s;
}
bool has(const std::string& text, std::string_view part) { return text.find(part) != text.npos; }
/// Without line breaks.
std::string flat(std::string text) {
  std::replace(text.begin(), text.end(), '\n', ' ');
  return text;
}

}  // namespace

TEST_CASE("the paragraph says where, since when, for what, who, the cycle, and what to do") {
  const auto text = flat(to_text(diagnose(two())));
  INFO(text);
  CHECK(has(text, "Hung: queues that wait for each other."));
  CHECK(has(text, "left is at position 0x10, and has not moved for at least 5 s: poll_mem addr=0x7f0000001000"));
  CHECK(has(text, "It waits for 0x7f0000001000 (go) ge 5; the word holds 4."));
  CHECK(has(text, "waits for right at 0x28 (fence addr=0x7f0000001000 value=5)"));
  CHECK(has(text, "The cycle: left -> right -> left."));
  CHECK(has(text, "To do: let one of the queues post before it waits"));
  CHECK(has(text, "right is at position 0x10"));
  CHECK(has(text, "read  0x0 fence"));
  CHECK(has(text, "rptr -> 0x10 poll_mem"));
}

TEST_CASE("no line of a paragraph is long, and none is empty") {
  const auto text = to_text(diagnose(two()));
  const auto paragraphs = text.substr(0, text.find("queue  "));
  std::size_t column = 0;
  for (const char c : paragraphs) {
    column = c == '\n' ? 0 : column + 1;
    CHECK(column <= 110);
  }
  CHECK(!has(text, "  \n"));
}

TEST_CASE("JSON has the same") {
  const auto j = nlohmann::json::parse(to_json(diagnose(two())));
  CHECK(j["verdict"] == "hung");
  REQUIRE(j["findings"].size() == 2);
  const auto& f = j["findings"][0];
  CHECK(f["class"] == "cycle");
  CHECK(f["word"]["va"] == kA.value);
  CHECK(f["word"]["value"] == 4);
  CHECK(f["released_by"]["by"] == "packet");
  CHECK(f["released_by"]["packet"]["queue"] == "right");
  CHECK(f["cycle"].size() == 2);
  CHECK(f["cycle"][1]["position"] == 16);
  CHECK(j["findings"][1]["class"] == "follows");
  CHECK(j["queues"][0]["rptr"]["from"] == "memory");
  CHECK(j["queues"][0]["doorbell"].is_null());
  CHECK(j["queues"][1]["packets"][1]["part"] == "at_rptr");
}

TEST_CASE("who could release a poll is a packet, a host thread or nobody") {
  auto s = two();
  CHECK(diagnose(s).findings.front().release.by == Release::By::packet);
  s.queues.pop_back();
  CHECK(diagnose(s).findings.front().release.by == Release::By::host);
  std::vector<std::uint32_t> ring;
  put(ring, PollMem{.addr = kA, .reference = 511, .mask = 0xff});
  s.queues = {queue("q", ring, 0, 24)};
  CHECK(diagnose(s).findings.front().release.by == Release::By::nobody);
}

TEST_CASE("every statement says what it rests on, in every class and form") {
  for (std::uint64_t seed = 0; seed < 40; ++seed)
    for (const auto form : kForms) {
      Scene scene{seed};
      auto& q = scene.queue();
      q.stand(q.put(PollMem{.addr = scene.word(), .func = Compare::ge, .reference = scene.small(1, 9)}));
      q.traffic(scene.below(3));
      const auto d = diagnose(scene.snapshot(form));
      for (const auto& f : d.findings) {
        CHECK(!f.to_do.empty());
        for (const auto& s : f.statements) CHECK((!s.rests_on.empty() && s.text.ends_with(".")));
        CHECK((f.basis == Basis::guessed) == (form == Form::instant));
      }
    }
}

TEST_CASE("positions that contradict each other are said as they are") {
  std::vector<std::uint32_t> ring;
  put(ring, Fence{.addr = kA, .value = 1});
  Snapshot s;
  s.queues.push_back(queue("q", ring, 0, 14));
  CHECK(has(flat(to_text(diagnose(s))), "wptr is 0xe, which is not a multiple of 4"));
  s.queues[0] = queue("q", ring, 6, 16);
  auto d = diagnose(s);
  CHECK(d.findings.front().what == HangClass::unknown);
  CHECK(has(flat(to_text(d)), "rptr 0x6 is not a multiple of 4"));
  s.queues[0] = queue("q", ring, 0, 16);
  s.queues[0].positions_wrap = true;
  s.queues[0].wptr.value = 4096;
  CHECK(diagnose(s).findings.front().what == HangClass::unknown);
}

TEST_CASE("a value is unknown, and that is said") {
  auto s = two();
  s.words = {};
  s.queues.pop_back();
  const auto d = diagnose(s);
  CHECK(d.verdict() == Verdict::undecided);
  CHECK(has(flat(to_text(d)), "the word was not read"));
  CHECK(nlohmann::json::parse(to_json(d))["findings"][0]["word"]["value"].is_null());
}

TEST_CASE("a kernel that may run may satisfy a wait, so the reason is a guess") {
  for (const bool run : {false, true}) {
    Scene s{11};
    auto& q = s.queue();
    q.stand(q.put(PollMem{.addr = s.word(), .func = Compare::eq, .reference = 1}));
    auto snapshot = s.snapshot(Form::live);
    snapshot.others_run = run;
    const auto d = diagnose(snapshot);
    CHECK(d.findings.front().what == HangClass::never_written);
    CHECK(d.verdict() == (run ? doctor::Verdict::undecided : doctor::Verdict::waits));
    CHECK((summary(d).find("may be executing a kernel") != std::string::npos) == run);
  }
  // No value satisfies this condition, whatever runs.
  Scene s{11};
  auto& q = s.queue();
  q.stand(q.put(PollMem{.addr = s.word(), .func = Compare::eq, .reference = 511, .mask = 0xff}));
  auto snapshot = s.snapshot(Form::live);
  snapshot.others_run = true;
  CHECK(diagnose(snapshot).verdict() == doctor::Verdict::hung);
}

TEST_CASE("a copy brings the value that its source holds") {
  constexpr GpuVa kSource{0x7f0000005000};
  Snapshot s;
  std::vector<std::uint32_t> waits, copies;
  put(waits, PollMem{.addr = kA, .func = Compare::ge, .reference = 5});
  put(copies, CopyLinear{.src = kSource, .dst = kA, .bytes = 4});
  s.queues = {queue("waits", waits, 0, 24), queue("copies", copies, 0, 28)};
  for (auto& q : s.queues) q.doorbell = {*q.wptr, Source::node};
  s.words.add(kA, 0, 4);
  s.words.add(kSource, 5, 4);
  CHECK(diagnose(s).verdict() == Verdict::healthy);
  s.words.add(kSource, 4, 4);
  CHECK(diagnose(s).findings.front().what == HangClass::wrong_value);
}

TEST_CASE("each class has a name and a title of its own") {
  std::vector<std::string_view> names;
  for (std::size_t i = 0; i < kHangClasses; ++i)
    for (const auto text : {name(static_cast<HangClass>(i)), title(static_cast<HangClass>(i))}) {
      CHECK(!text.empty());
      CHECK(std::find(names.begin(), names.end(), text) == names.end());
      names.push_back(text);
    }
  CHECK(name(static_cast<HangClass>(200)) == "unknown");
}

TEST_CASE("each class has a row in docs/doctor.md") {
  const auto page = read_file(SDMA_SOURCE_ROOT "/docs/doctor.md");
  REQUIRE(page);
  for (std::size_t i = 1; i < kHangClasses; ++i) {
    const auto row = "\n| " + std::string(name(static_cast<HangClass>(i))) + " | ";
    CAPTURE(row);
    CHECK(page->find(row) != std::string::npos);
  }
}

TEST_CASE("64 queues of full rings are one cycle") {
  Snapshot s{.watched_ns = 1'000'000'000};
  for (std::uint32_t i = 0; i < 64; ++i) {
    std::vector<std::uint32_t> ring;
    put(ring, PollMem{.addr = kA + 8 * i, .reference = 1});
    while (ring.size() + 64 < 16384) {
      put(ring, Atomic{.addr = kB, .value = 1});
      put(ring, CopyLinear{.src = GpuVa{0x7e0000000000}, .dst = GpuVa{0x7e0000100000}, .bytes = 4096});
    }
    put(ring, Fence{.addr = kA + 8 * ((i + 1) % 64), .value = 1});
    const auto wptr = ring.size() * 4;
    ring.resize(16384);
    s.queues.push_back(
        {.name = "q" + std::to_string(i), .ring = ring, .rptr = {0, Source::memory}, .wptr = {wptr, Source::memory}});
    s.words.add(kA + 8 * i, 0, 8);
  }
  const auto d = diagnose(s);
  CHECK(d.findings.front().what == HangClass::cycle);
  CHECK(d.findings.front().cycle.size() == 64);
}
