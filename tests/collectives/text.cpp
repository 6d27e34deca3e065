// SPDX-License-Identifier: MIT
// Plans as text: golden files, round trips, the runner of schedules on them; options and tables out of text.
#include "sdma/schedule/text.hpp"
#include "collectives/source.hpp"
#include "sdma/device/open.hpp"
#include "sdma/schedule/run.hpp"
#include "support.hpp"

#include <fstream>
#include <sstream>

namespace collectives::test {
namespace {

std::string read(const std::string& path) {
  std::ifstream f(SDMA_SOURCE_ROOT "/" + path);
  INFO(path);
  REQUIRE(f);
  std::stringstream s;
  s << f.rdbuf();
  return s.str();
}

std::string read_text(std::string_view name) { return read("share/sdma/collectives/" + std::string(name)); }

struct Golden {
  std::string name;
  Options options;
};
std::vector<Golden> goldens() {
  std::vector<Golden> all;
  std::stringstream list(read("tests/collectives/golden.txt"));
  for (std::string line; std::getline(list, line);) {
    if (line.empty() || line[0] == '#') continue;
    std::stringstream words(line);
    Golden g;
    words >> g.name;
    for (std::string w; words >> w;) {
      const auto equals = w.find('=');
      CHECK(set(g.options, w.substr(0, equals), w.substr(equals + 1)) == "");
    }
    all.push_back(std::move(g));
  }
  REQUIRE(all.size() >= 18);
  return all;
}

std::string wrong(Options& o, const char* key, const char* value) { return set(o, key, value); }

std::string table_error(const std::string& text) {
  const auto t = parse_table(text, "t");
  return t ? "" : t.error().where + ": " + t.error().message;
}

}  // namespace

TEST_CASE("each plan's FLAT is its golden file, and comes back as it was") {
  for (const auto& g : goldens()) {
    INFO(g.name);
    const auto p = planned(g.options);
    CHECK(problems(p.schedule).empty());
    const auto flat = to_text(p.schedule);
    CHECK(flat == read("tests/collectives/golden/" + g.name + ".sdma"));
    const auto again = parse_schedule(flat);
    REQUIRE(again);
    CHECK(*again == p.schedule);
    CHECK(to_text(*again) == flat);
  }
}

TEST_CASE("the text of a plan has its options as params, and gives the plan") {
  for (auto& g : goldens()) {
    const auto p = planned(g.options);
    const auto source = source_of(p.options);
    const auto text = with_params(source);
    INFO(g.name << "\n" << text);
    CHECK(format_source(text) == text);
    const auto read = parse_schedule(text);
    REQUIRE(read);
    CHECK(*read == p.schedule);
    // Without its options, it is the file itself, which others may be set in.
    CHECK(source.text == read_text(source.name));
    const auto set = parse_schedule(source.text, source.name, {.set = source.set});
    REQUIRE(set);
    CHECK(*set == p.schedule);
  }
}

TEST_CASE("a text refuses what has no meaning") {
  const auto why = [](std::string_view file, const std::vector<ParseOptions::Setting>& set) {
    const auto s = parse_schedule(read_text(file), file, {.set = set});
    return s ? "" : s.error().front().message;
  };
  CHECK(why("all_gather.sdma", {{"N", "1"}}) == "a collective needs at least two GPUs, not 1");
  CHECK(why("all_gather.sdma", {{"bytes", "0"}}) == "a collective moves at least one byte, not 0");
  CHECK(why("rooted.sdma", {{"root", "8"}}) == "root 8 is not one of the 8 GPUs");
  CHECK(why("rooted.sdma", {{"collective", "gather"}, {"variant", "bcst"}}) == "bcst is a variant of broadcast");
  CHECK(why("all_to_all.sdma", {{"variant", "bcst"}}) == "'bcst' is not one of pcpy, b2b");
}

TEST_CASE("every variant's schedule survives its text, for 2 to 8 GPUs") {
  for (const auto c : kCollectives)
    for (const auto v : kVariants)
      for (std::uint32_t n = 2; n <= 8 && has_variant(c, v); ++n) {
        const auto p = planned({.collective = c,
                                .variant = v,
                                .prelaunch = kPrelaunches[n % 3],
                                .completion = kCompletions[n / 3 % 3],
                                .gpus = n,
                                .bytes = 1000 + n,
                                .epochs = n,
                                .offsets = {0, n}});
        INFO(describe(p.options));
        CHECK(problems(p.schedule).empty());
        const auto again = parse_schedule(to_text(p.schedule));
        REQUIRE(again);
        CHECK(*again == p.schedule);
      }
}

TEST_CASE("golden schedules run as files do, and their own expectations hold") {
  for (const auto order : kOrderings) {
    const auto d = node(order, 8);
    for (auto& g : goldens()) {
      INFO(g.name << " " << name(order));
      g.options.bytes = std::min<std::uint64_t>(g.options.bytes, 4099);
      const auto p = planned(g.options);
      const auto b = bind(p.schedule, *d);
      REQUIRE(b);
      const auto r = sdma::run(*b, {.time_limit = 60s, .seed = 3});
      for (const auto& f : r.findings) UNSCOPED_INFO(to_string(f));
      CHECK(r.findings.empty());
    }
  }
}

TEST_CASE("the schedule that the page builds is right, and so are its steps for breaking and repeating it") {
  const auto page = read("docs/collectives.md");
  const auto begin = page.find("```\nsdma 1") + 4;
  const auto text = page.substr(begin, page.find("```", begin) - begin);
  CHECK(format_source(text) == text);
  const auto judged = [](const std::string& source, Device& d, const std::string& n,
                         std::chrono::nanoseconds timeout = 60s) {
    auto s = parse_schedule(source, "ring.sdma", {.set = {{"N", n}, {"chunk", "4K"}}});
    if (!s) FAIL(to_string(s.error().front()));
    const auto b = bind(*s, d);
    REQUIRE(b);
    std::string all;
    for (const auto& f : sdma::run(*b, {.time_limit = timeout}).findings) all += to_string(f) + "\n";
    return all;
  };
  const auto with = [&](const std::string& from, const std::string& to) {
    auto changed = text;
    REQUIRE(changed.find(from) != changed.npos);
    return changed.replace(changed.find(from), from.size(), to);
  };
  for (const auto order : kOrderings)
    for (int n = 2; n <= 8; ++n) CHECK(judged(text, *node(order, 1), std::to_string(n)) == "");
  CHECK(judged(with("      fence addr=gpu{right}.arrived value=k+1\n", ""), *node(), "3", 200ms).find("poll_mem") !=
        std::string::npos);
  auto again = with("reference=k", "reference=(N-1)*epoch-(N-1)+k");
  const auto replace = [&](const std::string& from, const std::string& to) {
    again.replace(again.find(from), from.size(), to);
  };
  replace("value=k+1", "value=(N-1)*epoch-(N-1)+k+1");
  replace("reference=N-1", "reference=(N-1)*epoch");
  replace("  submit *\n  wait host.done == N\n", "  repeat 5\n    submit *\n    wait host.done == N*epoch\n  end\n");
  CHECK(judged(again, *node(Ordering::adversarial, 2), "4") == "");
}

TEST_CASE("what a variant cannot take is said, and nothing else is") {
  const auto notes = [](const Options& o) {
    std::string all;
    for (const auto& n : planned(o).notes) all += n + "\n";
    return all;
  };
  CHECK(notes({.variant = Variant::bcst, .gpus = 7, .bytes = 1001}) == "");
  CHECK(notes({.variant = Variant::bcst, .gpus = 7, .bytes = 1001, .offsets = {0, 32, 64}}) == "");
  // Whoever is alike is paired, whatever its number.
  CHECK(notes({.variant = Variant::bcst, .gpus = 4, .bytes = 1001, .offsets = {0, 4}}) == "");
  const auto odd = notes({.variant = Variant::bcst, .gpus = 4, .bytes = 1001, .offsets = {0, 4, 4, 8}});
  CHECK(odd.find("bcst: ") == 0);
  CHECK(odd.find("modulo 32") != std::string::npos);
  CHECK(odd.find("(gpu1 sends 3 copies, and 1 more)") != std::string::npos);
  CHECK(notes({.variant = Variant::bcst, .gpus = 4, .bytes = 1001, .alignment = 16})
            .find("(gpu0 sends 3 copies, and 3 more)") != std::string::npos);
  const Options swap{.collective = Collective::all_to_all, .variant = Variant::swap, .gpus = 4, .bytes = 4096};
  CHECK(notes(swap) == "");
  auto o = swap;
  o.offsets = {4};
  CHECK(notes(o).find("swap: addresses or lengths are not multiples of 64") == 0);
  o.offsets = {0, 4};
  CHECK(notes(o).find("swap: the two addresses must be multiples of 64") == 0);
  o = swap;
  o.alignment = 32;
  CHECK(notes(o).find("(gpu1 with gpu0, and 5 more)") != std::string::npos);
}

TEST_CASE("chunks: multiples of the granule, where that leaves nobody without a part") {
  const auto parts = [](const Options& o) {
    std::string all;
    for (std::uint32_t d = 0; d < o.gpus; ++d)
      all += std::to_string(part_of(o, d).begin) + "+" + std::to_string(part_of(o, d).bytes) + " ";
    return all;
  };
  CHECK(parts({.gpus = 3, .bytes = 1000}) == "0+384 384+384 768+232 ");
  CHECK(parts({.gpus = 3, .bytes = 1000, .granule = 1}) == "0+334 334+334 668+332 ");
  CHECK(parts({.gpus = 4, .bytes = 100}) == "0+25 25+25 50+25 75+25 ");
  CHECK(parts({.gpus = 4, .bytes = 2}) == "0+1 1+1 2+0 2+0 ");
  CHECK(parts({.gpus = 8, .bytes = 8 << 20}).starts_with("0+1048576 1048576+1048576 "));
}

TEST_CASE("options that contradict themselves are refused") {
  const auto why = [](const Options& o) {
    const auto p = collectives::plan(o);
    return p ? "" : p.error().message;
  };
  CHECK(why({.bytes = 64}) == "");
  CHECK(why({.bytes = 0}).find("1 to 256G") != std::string::npos);
  CHECK(why({.gpus = 1, .bytes = 64}).find("2 to 64") != std::string::npos);
  CHECK(why({.gpus = 65, .bytes = 64}).find("2 to 64") != std::string::npos);
  CHECK(why({.variant = Variant::swap, .bytes = 64}) == "swap is not a variant of this collective");
  CHECK(why({.gpus = 4, .bytes = 64, .root = 4}) == "root 4 is not one of its 4 GPUs");
  CHECK(why({.bytes = 64, .in_place = true}).find("in_place") != std::string::npos);
  CHECK(why({.bytes = 64, .own_part = true}).find("own") != std::string::npos);
  CHECK(why({.bytes = 64, .epochs = 0}).find("epochs") != std::string::npos);
  CHECK(why({.bytes = 64, .granule = 0}).find("1 to 256G") != std::string::npos);
  CHECK(why({.bytes = 64, .alignment = 3}).find("power of two") != std::string::npos);
  CHECK(why({.bytes = 64, .packet_bytes = 100}).find("multiple of 64") != std::string::npos);
  CHECK(why({.bytes = 64, .engines = {64}}) == "there is no engine 64: engines are 0 to 63");
  CHECK(why({.bytes = 64, .offsets = {~std::uint64_t{}}}).find("too large") != std::string::npos);
}

TEST_CASE("options out of text") {
  Options o;
  CHECK(wrong(o, "collective", "gather") == "");
  CHECK(wrong(o, "bytes", "64K") == "");
  CHECK(wrong(o, "engines", "2,15") == "");
  CHECK(wrong(o, "prelaunch", "per_group") == "");
  CHECK(wrong(o, "own_part", "yes") == "");
  Options other;
  for (const auto known : kScheduleOptions) CHECK(set(other, known, "?").find("is not an option") == std::string::npos);
  Options pl;
  CHECK(wrong(pl, "variant", "b2b+pl") == "");
  CHECK((pl.variant == Variant::b2b && pl.prelaunch == Prelaunch::shared));
  CHECK(wrong(pl, "prelaunch", "per_group") == "");
  CHECK(wrong(pl, "variant", "pcpy+pl") == "");
  CHECK((pl.variant == Variant::pcpy && pl.prelaunch == Prelaunch::per_group));
  CHECK(wrong(pl, "variant", "b2b+plx") ==
        "variant: 'b2b+plx' is not one of pcpy, bcst, swap, b2b, auto, nor one of them with +pl");
  CHECK(o.collective == Collective::gather);
  CHECK(o.bytes == 65536);
  CHECK(o.engines == std::vector<std::uint32_t>{2, 15});
  CHECK(o.prelaunch == Prelaunch::per_group);
  CHECK(o.own_part);
  CHECK(wrong(o, "bytes", "64KB") == "bytes: '64KB' is not a size: write 4096, 4K, 1M or 2G");
  CHECK(wrong(o, "gpus", "5000000000") == "gpus: '5000000000' is not a number");
  CHECK(wrong(o, "engines", "2,,3") == "engines: '2,,3' is not a list of numbers");
  CHECK(wrong(o, "own_part", "1") == "own_part: '1' is neither yes nor no");
  CHECK(wrong(o, "size", "1") == "'size' is not an option");
}

TEST_CASE("a device by name") {
  const auto d = open_device(DeviceKind::soft, {.soft = {.gpus = 3}});
  REQUIRE(d);
  CHECK((*d)->topology().gpus.size() == 3);
  for (const auto k : {DeviceKind::soft, DeviceKind::kfd, DeviceKind::cuda, DeviceKind::rocr}) {
    CHECK(device_kind(name(k)) == k);
    CHECK(kDeviceNames.find(name(k)) != kDeviceNames.npos);
  }
  CHECK_FALSE(device_kind("gpu"));
}

TEST_CASE("auto is a table: the published one, and one of one's own") {
  const auto best = [](Options o) { return planned(o).options.variant; };
  CHECK(best({.prelaunch = Prelaunch::shared, .gpus = 8, .bytes = 128 << 10}) == Variant::b2b);
  CHECK(best({.prelaunch = Prelaunch::shared, .gpus = 8, .bytes = (128 << 10) + 1}) == Variant::bcst);
  CHECK(best({.prelaunch = Prelaunch::per_group, .gpus = 8, .bytes = 1 << 20}) == Variant::pcpy);
  CHECK(best({.gpus = 8, .bytes = 1 << 20}) == Variant::bcst);
  CHECK(best({.collective = Collective::all_to_all, .gpus = 8, .bytes = 64 << 20, .in_place = true}) == Variant::swap);
  const auto mine = parse_table("# mine\nall_gather 8 any 4K b2b # small\n\nall_gather 2-7 no max bcst\n");
  REQUIRE(mine);
  CHECK(choose(*mine, {.gpus = 8, .bytes = 4096}) == Variant::b2b);
  CHECK(choose(*mine, {.gpus = 8, .bytes = 4097}) == Variant::pcpy);
  CHECK(choose(*mine, {.gpus = 7, .bytes = 4096}) == Variant::bcst);
  CHECK(choose(*mine, {.prelaunch = Prelaunch::shared, .gpus = 7, .bytes = 4096}) == Variant::pcpy);
  CHECK(table_error("\nall_gather 8 any 4K") ==
        "t:2: a line must have 5 words: collective gpus prelaunch up_to variant");
  CHECK(table_error("all_reduce 8 any 4K b2b") == "t:1: 'all_reduce' is not a collective");
  CHECK(table_error("all_gather 8-2 any 4K b2b") == "t:1: '8-2' is not a number of GPUs: write 8 or 2-8");
  CHECK(table_error("all_gather 8 maybe 4K b2b") == "t:1: prelaunch must be yes, no or any, not 'maybe'");
  CHECK(table_error("all_gather 8 any 4x b2b") == "t:1: '4x' is not a size: write 4096, 4K or max");
  CHECK(table_error("all_gather 8 any 4K swap") == "t:1: 'swap' is not a variant of all_gather");
  CHECK(table_error("all_to_all 8 any 4K swap") == "t:1: 'swap' is not a variant of all_to_all");
}

}  // namespace collectives::test
