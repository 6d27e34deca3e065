// SPDX-License-Identifier: MIT
// A first contact: healthy nodes are not accused, broken ones are named, and what is known survives.
#include "broken.hpp"
#include "contact/answer.hpp"
#include "contact/fields.hpp"
#include "json/exit.hpp"
#include "support/catch.hpp"

#include "archive.hpp"
#include "sdma/core/file.hpp"
#include "sdma/device/kfd.hpp"

#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <random>
#include <tuple>

using namespace sdma;
using namespace sdma::tool::contact;
using test::Break;
using namespace std::chrono_literals;

namespace {

constexpr Ordering kOrderings[] = {Ordering::strict, Ordering::rocr, Ordering::adversarial};

/// Deadlines end what would hang, and decide nothing.
Settings healthy(std::uint32_t gpus, Ordering order, std::set<std::string> steps, std::uint64_t seed = 5) {
  Settings s{.time = 1h, .patience = 60s, .runs = 1, .gentle = true, .only = std::move(steps)};
  s.open = [=]() -> Result<std::unique_ptr<Device>, Diagnostic> {
    return std::unique_ptr<Device>(std::move(*SoftDevice::open({.gpus = gpus, .ordering = order, .seed = seed})));
  };
  return s;
}
Settings broken(const test::Breaks& b, Ordering order, std::set<std::string> steps) {
  auto s = healthy(2, order, std::move(steps));
  s.patience = 2s;  // only what hangs waits for so long
  s.runs = 5;
  s.open = [=]() -> Result<std::unique_ptr<Device>, Diagnostic> {
    return test::broken_node(b, {.gpus = 2, .ordering = order, .seed = 5});
  };
  return s;
}

std::string state(const Json& answer, const char* step, std::string_view id) {
  for (const auto& j : answer[step])
    if (j["id"] == id) return j["state"];
  return "absent";
}
std::vector<std::string> accused(const Json& answer) {
  std::vector<std::string> out;
  for (const auto* step : {"there", "works", "order", "speed"})
    if (answer.contains(step))
      for (const auto& j : answer[step])
        if (j["state"] == "failed" || j["state"] == "hung" || j["state"] == "refuted") out.push_back(j.dump());
  return out;
}

}  // namespace

TEST_CASE("everything works on a healthy node, in three orderings, with one, two and eight GPUs") {
  for (const auto order : kOrderings)
    for (const std::uint32_t gpus : {1u, 2u, 8u}) {
      CAPTURE(name(order), gpus);
      auto s = healthy(gpus, order, {"works"});
      s.risky = gpus == 2;
      const auto answer = meet(s);
      CHECK(accused(answer) == std::vector<std::string>{});
      CHECK(answer["ended"] == "complete");
      CHECK(state(answer, "works", "engine 15") == "passed");
      CHECK(state(answer, "works", "copy_swap, an engine facing the host") == "passed");
      CHECK(state(answer, "works", "indirect, an engine facing the host") == "passed");
      CHECK(state(answer, "works", "atomic, an engine facing gpu1") == (gpus > 1 ? "passed" : "absent"));
      CHECK(state(answer, "works", "semaphore, an engine facing gpu1") == (gpus == 2 ? "passed" : "absent"));
      CHECK(state(answer, "works", "4 queues") == "passed");
    }
}

TEST_CASE("no rule is refuted on a healthy node, and what a profile assumes too much is weaker") {
  for (const auto order : kOrderings) {
    CAPTURE(name(order));
    const auto answer = meet(healthy(1, order, {"order"}));
    CHECK(accused(answer) == std::vector<std::string>{});
    CHECK(state(answer, "order", "fence-as-completion") == "confirmed");
    CHECK(state(answer, "order", "copy-after-barrier") == "confirmed");
    if (order == Ordering::strict) CHECK(state(answer, "order", "copy-after-fence") == "open");
    const auto reading = *read_answer(answer, {});
    CHECK(reading.text.find("refuted") == reading.text.npos);
    CHECK(reading.code == tool::kUndecided);  // one step of three
  }
}

TEST_CASE("a broken node is named, whatever its ordering") {
  for (const auto order : kOrderings) {
    CAPTURE(name(order));
    const auto dead = meet(broken({Break::dead_engine}, order, {"works"}));
    CHECK(state(dead, "works", "engine 1") == "hung");
    CHECK(state(dead, "works", "engine 2") == "passed");
    const auto hanging = meet(broken({Break::hanging_engine}, order, {"works"}));
    CHECK(state(hanging, "works", "engine 3") == "hung");
    CHECK(state(hanging, "works", "engine 4") == "passed");
    const auto reading = *read_answer(hanging, {});
    CHECK(reading.code == tool::kRefuted);
    CHECK(reading.text.find("engine 3: hung") != reading.text.npos);
    const auto atomics = meet(broken({Break::atomics_lost}, order, {"works"}));
    CHECK(state(atomics, "works", "atomic, an engine facing the host") == "failed");
    CHECK(state(atomics, "works", "fence, an engine facing the host") == "passed");
    const auto bytes = meet(broken({Break::wrong_byte}, order, {"works"}));
    CHECK(state(bytes, "works", "a large copy, an engine facing the host") == "failed");
    CHECK(state(bytes, "works", "fence, an engine facing the host") == "passed");
  }
}

namespace {

/// The breaks of a seed that the answer does not name.
std::vector<std::string_view> unnamed(const test::Breaks& breaks, const Json& answer) {
  const auto is = [&](const char* step, std::string_view id, std::initializer_list<std::string_view> states) {
    const auto now = state(answer, step, id);
    return std::find(states.begin(), states.end(), now) != states.end();
  };
  std::vector<std::string_view> out;
  for (const auto b : breaks) {
    const bool named = b == Break::fences_overtake ? is("order", "fence-as-completion", {"refuted"})
                       : b == Break::atomics_lost ? is("works", "atomic, an engine facing the host", {"failed", "hung"})
                       : b == Break::rptr_early   ? is("order", "rptr-as-completion", {"weaker"})
                       : b == Break::dead_engine  ? is("works", "engine 1", {"hung"})
                       : b == Break::wrong_byte
                           ? is("works", "a large copy, an engine facing the host", {"failed", "hung"})
                           : is("works", "engine 3", {"hung"});
    if (!named) out.push_back(name(b));
  }
  return out;
}
/// A combination of at least two breaks on a node of some ordering, chosen by a seed.
void combination(std::uint32_t seed) {
  std::mt19937 random(seed);
  test::Breaks breaks;
  while (breaks.size() < 2)
    for (unsigned b = 0; b < 6; ++b)
      if (random() % 2 != 0) breaks.insert(static_cast<Break>(b));
  const auto order = kOrderings[random() % 3];
  std::string list;
  for (const auto b : breaks) list += std::string(list.empty() ? "" : ", ") + std::string(name(b));
  CAPTURE(seed, name(order), list);
  const bool order_breaks = breaks.contains(Break::fences_overtake) || breaks.contains(Break::rptr_early);
  auto s =
      broken(breaks, order, order_breaks ? std::set<std::string>{"works", "order"} : std::set<std::string>{"works"});
  s.patience = 500ms;  // every node here is broken, so a slow trial accuses no healthy one
  CHECK(unnamed(breaks, meet(s)) == std::vector<std::string_view>{});
}

}  // namespace

TEST_CASE("several broken rules at once are all named") { combination(2); }

TEST_CASE("twenty combinations of broken rules", "[.many]") {
  for (std::uint32_t seed = 1; seed <= 20; ++seed) {
    DYNAMIC_SECTION("seed " << seed) { combination(seed); }
  }
}

TEST_CASE("twenty healthy runs", "[.many]") {
  for (std::uint32_t seed = 1; seed <= 20; ++seed) {
    CAPTURE(seed);
    auto s = healthy(seed % 2 + 1, kOrderings[seed % 3], {"works", "order"}, seed);
    s.runs = 2;
    CHECK(accused(meet(s)) == std::vector<std::string>{});
  }
}

TEST_CASE("a fence that overtakes copies refutes its rule, and takes proofs with it") {
  const std::string text =
      "sdma 1\ngpus 1\nbuffer gpu0.a bytes=4K\nbuffer host.b bytes=4K\nsignal host.done value=0\n"
      "queue gpu0.q peer=host\n  copy_linear bytes=4K src=gpu0.a dst=host.b\n  fence addr=host.done value=1\nend\n"
      "host main\n  submit *\n  wait host.done == 1\nend\n";
  for (const auto order : kOrderings) {
    CAPTURE(name(order));
    // A run may miss it: the engine that sees the fence may be kept from its processor until the copies have landed.
    auto often = broken({Break::fences_overtake}, order, {"order"});
    often.still = 5ms;
    often.runs = 25;
    const auto answer = meet(often);
    CHECK(state(answer, "order", "fence-as-completion") == "refuted");
    const auto reading = *read_answer(answer, {{"copy.sdma", text}});
    CHECK(reading.text.rfind("refuted", 0) == 0);
    CHECK(reading.text.find("copy.sdma: no longer proved") != reading.text.npos);
    CHECK(reading.code == tool::kRefuted);
    const auto early = meet(broken({Break::rptr_early}, order, {"order"}));
    CHECK(state(early, "order", "rptr-as-completion") == "weaker");
  }
}

TEST_CASE("an answer is written and read back, and has nothing private") {
  char folder[] = "/tmp/sdma-contact-XXXXXX";
  REQUIRE(::mkdtemp(folder));
  const auto answer = meet(healthy(1, Ordering::strict, {"works"}));
  const auto reading = *read_answer(answer, {});
  REQUIRE(save_answer(answer, reading, folder));
  const auto file = std::string(folder) + "/contact.tar.gz";
  const auto again = load_answer(file);
  REQUIRE(again);
  CHECK(*again == answer);
  const auto members = tool::unpack(*read_file(file), file);
  REQUIRE(members);
  CHECK(members->front().name == "contents.txt");
  char host[256] = {};
  REQUIRE(::gethostname(host, sizeof host - 1) == 0);
  for (const auto& m : *members)
    if (std::string_view(host).size() > 5) CHECK(m.bytes.find(host) == m.bytes.npos);
  const auto page = *read_file(std::string(folder) + "/contact.html");
  CHECK(page.find("http") == page.npos);  // it opens offline
  CHECK_FALSE(load_answer(std::string(folder) + "/contact.html"));
  for (const auto* edited :
       {R"({"form": "sdma contact 1", "works": [{"id": "engine 0"}]})",
        R"({"form": "sdma contact 1", "works": [{"id": 3, "state": "hung"}]})",
        R"({"form": "sdma contact 1", "order": [{"id": "x", "state": "open", "outcomes": "x"}]})",
        R"({"form": "sdma contact 1", "there": [{"id": "x", "state": "passed", "missing": [{}]}]})"}) {
    CAPTURE(edited);
    REQUIRE(tool::save_archive(file, {{"answer.json", edited}}));
    CHECK_FALSE(read_answer(*load_answer(file), {}, file));
  }
  CHECK_FALSE(save_answer(answer, reading, "/dev/null/folder"));
  std::filesystem::remove_all(folder);
}

TEST_CASE("without a device, what is missing is said; after Ctrl-C, what is known is kept") {
  auto s = healthy(1, Ordering::strict, {});
  s.open = []() -> Result<std::unique_ptr<Device>, Diagnostic> { return Diagnostic{.message = "no driver"}; };
  const auto none = meet(s);
  CHECK(none["ended"] == "no device");
  CHECK(none["there"].back()["why"].get<std::string>().find("no driver") != std::string::npos);

  auto interrupted = healthy(1, Ordering::strict, {"works", "order"});
  volatile std::sig_atomic_t stop = 0;
  interrupted.stop = &stop;
  interrupted.progress = [&](const std::string&, const std::string& item) { stop = stop != 0 || item == "engine 2"; };
  const auto some = meet(interrupted);
  CHECK(some["ended"] == "interrupted");
  CHECK(state(some, "works", "engine 1") == "passed");
  CHECK(state(some, "works", "engine 9") == "not tried");
  CHECK(state(some, "order", "two-copies") == "not tried");
}

TEST_CASE("a limit that is too low for a full run is named, with its remedy, and is no failure") {
  auto s = healthy(1, Ordering::strict, {"none"});
  s.device = DeviceKind::kfd;
  rlimit before{};
  REQUIRE(::getrlimit(RLIMIT_NOFILE, &before) == 0);
  rlimit few = before;
  few.rlim_cur = 200;
  REQUIRE(::setrlimit(RLIMIT_NOFILE, &few) == 0);
  const auto low = meet(s)["there"][0]["missing"].dump();
  few.rlim_cur = std::min<rlim_t>(before.rlim_max, 4096);
  REQUIRE(::setrlimit(RLIMIT_NOFILE, &few) == 0);
  const auto enough = meet(s)["there"][0]["missing"].dump();
  REQUIRE(::setrlimit(RLIMIT_NOFILE, &before) == 0);
  CHECK(low.find("200 open files are permitted") != low.npos);
  CHECK(low.find("ulimit -n 1024") != low.npos);
  CHECK(enough.find("open files are permitted") == enough.npos);
}

TEST_CASE("without rights or libhsakmt, the answer has the reason and the remedy") {
  char file[] = "/tmp/sdma-kfd-XXXXXX";
  const int fd = ::mkstemp(file);
  REQUIRE(fd >= 0);
  REQUIRE(::fchmod(fd, 0) == 0);
  ::close(fd);
  KfdOptions no_library{.libhsakmt = "libnothing.so.1"}, no_rights{.kfd = file};
  for (const auto& [o, reason, remedy] :
       {std::tuple(no_library, "libnothing.so.1", "hint"), std::tuple(no_rights, "permission denied", "usermod -aG")}) {
    CAPTURE(reason);
    auto s = healthy(1, Ordering::strict, {});
    s.open = [o = o]() -> Result<std::unique_ptr<Device>, Diagnostic> {
      if (::geteuid() == 0 && ::seteuid(65534) != 0) ::_exit(3);
      std::string all;
      for (const auto& m : KfdDevice::missing(o)) all += to_string(m) + "\n";
      return Diagnostic{.message = all};
    };
    const auto answer = meet(s);
    CHECK(answer["ended"] == "no device");
    const auto text = read_answer(answer, {})->text;
    CHECK(text.find(reason) != text.npos);
    CHECK(text.find(remedy) != text.npos);
  }
  ::unlink(file);
}

TEST_CASE("a process that ends or does not answer costs its item alone") {
  auto s = healthy(1, Ordering::strict, {});
  const std::vector<Item> items{
      {.id = "ends", .group = "a", .work = [](Device*) -> Json { ::_exit(3); }, .bare = true},
      {.id = "works", .group = "b", .work = [](Device*) { return with_state("passed"); }, .bare = true}};
  const auto all = perform(s, "test", items, Deadline::in(1h));
  REQUIRE(all.size() == 2);
  CHECK(all[0]["state"] == "hung");
  CHECK(all[0]["why"] == "its process ended with code 3");
  CHECK(all[1]["state"] == "passed");
}

TEST_CASE("what nothing defines is tried with --risky alone, and is seen, not judged") {
  for (const auto order : kOrderings) {
    CAPTURE(name(order));
    auto s = healthy(1, order, {"works"});
    s.patience = 2s;  // on a node that is healthy, only the engine that must stop waits for so long
    s.risky = true;
    const auto answer = meet(s);
    CHECK(accused(answer) == std::vector<std::string>{});
    for (const auto* id : {"the first dword of a fence", "the first half of a fence", "a fence without its last dword",
                           "a dword that begins no packet"}) {
      CAPTURE(id);
      const auto trial = std::string(id) + ", an engine facing the host";
      CHECK(state(answer, "works", trial) == "seen");
      for (const auto& j : answer["works"])
        if (j["id"] == trial) CHECK(j["why"].get<std::string>().find("the engine stopped: ") == 0);
    }
    const auto reading = *read_answer(answer, {});
    CHECK(reading.json["seen"].size() == 4);
    CHECK(reading.json["seen"][3]["why"].get<std::string>().find("0x000000ff") != std::string::npos);
    const auto& unseen = reading.json["never_seen"];
    CHECK(std::find(unseen.begin(), unseen.end(), "X9") == unseen.end());
  }
  const auto answer = meet(healthy(1, Ordering::strict, {"works"}));
  CHECK(state(answer, "works", "the first half of a fence, an engine facing the host") == "absent");
  CHECK(read_answer(answer, {})->json["seen"].empty());
}

TEST_CASE("inferred fields: confirmed by bytes, accepted, wrong, or not tried") {
  const auto trial = [](const char* id, const char* state) { return Json{{"id", id}, {"state", state}}; };
  const auto state_of = [](const Json& all, std::string_view field) -> std::string {
    for (const auto& j : all)
      if (j["field"] == field) return j["state"];
    return "absent";
  };
  const auto all = inferred_fields({trial("copy_struct, an engine facing the host", "passed"),
                                    trial("fill with a cache policy, an engine facing the host", "passed"),
                                    trial("fill with a cache policy, an engine facing gpu1", "hung"),
                                    trial("write with a cache policy, an engine facing the host", "passed"),
                                    trial("write with a cache policy, an engine facing gpu1", "left out"),
                                    trial("atomic, an engine facing the host", "passed")});
  CHECK(state_of(all, "copy_struct.stride") == "confirmed");
  CHECK(state_of(all, "fill.policy") == "wrong");
  CHECK(state_of(all, "write.policy") == "accepted");
  CHECK(state_of(all, "atomic.policy") == "not tried");
  CHECK(state_of(all, "timestamp.llc_policy") == "not tried");
  CHECK(state_of(all, "copy_linear.bytes") == "absent");  // a public header has it
}

TEST_CASE("wrong bytes of a collective are not hidden by its time") {
  auto s = broken({Break::short_copies}, Ordering::strict, {"speed"});
  s.patience = 60s;
  const auto answer = meet(s);
  CHECK(state(answer, "speed", "all_gather pcpy 64K") == "failed");
  const auto reading = *read_answer(answer, {});
  CAPTURE(reading.text);
  CHECK(reading.code == tool::kRefuted);
}
