// SPDX-License-Identifier: MIT
// Tables of measurements: what they say becomes observations, and what is wrong with them is named with its line.
#include "sdma/simulate/measurements.hpp"
#include "support/catch.hpp"

#include <algorithm>
#include <filesystem>
#include <map>

using namespace sdma;

namespace {

const std::map<std::string, std::string> kFiles{
    {"one.sdma",
     "sdma 1\nparam bytes = 4K\nparam more = 0\ngpus 2\nbuffer gpu*.b bytes=bytes\nsignal host.d value=0\n"
     "queue gpu0.q peer=gpu1\ncopy_linear bytes=bytes src=gpu0.b dst=gpu1.b\natomic op=add_rtn_64 addr=host.d "
     "value=1\nend\n"
     "host main\nsubmit *\nwait host.d == 1\nend\n"},
    {"bad.sdma", "sdma 1\nqueu gpu0.q\n"},
};
int reads = 0;
Result<std::string, Diagnostic> file(const std::string& path) {
  ++reads;
  const auto at = kFiles.find(path);
  if (at == kFiles.end()) return Diagnostic{.where = path, .message = "No such file or directory"};
  return at->second;
}

const std::string kHead = "schedule,settings,what,baseline,value,source\n";

Measurements table(const std::string& text) {
  auto m = measurements_from_csv(text, "t.csv", file);
  for (const auto& d : m ? std::vector<Diagnostic>{} : m.error()) UNSCOPED_INFO(to_string(d));
  REQUIRE(m);
  return std::move(*m);
}
std::string errors(const std::string& text) {
  const auto m = measurements_from_csv(text, "t.csv", file);
  REQUIRE_FALSE(m);
  std::string all;
  for (const auto& d : m.error()) all += to_string(d) + "\n";
  return all;
}

}  // namespace

TEST_CASE("each line becomes an observation, and equal schedules are parsed once") {
  reads = 0;
  const auto m = table("# a comment\n\n" + kHead +
                       "one.sdma,bytes=64K,time_us,,8.67,by hand\r\n"
                       "one.sdma, bytes=64K ,share.sync,,27,\"a, \"\"quoted\"\" source\"\n"
                       "one.sdma,bytes=1M,speed_up,one.sdma,1.5,x\n");
  CHECK(reads == 1);
  REQUIRE(m.observations.size() == 3);
  const auto& [time, share, ratio] = std::tie(m.observations[0], m.observations[1], m.observations[2]);
  CHECK(time.kind == Observation::Kind::time);
  CHECK(time.value == 8670);
  CHECK(time.id == "one.sdma bytes=64K time_us");
  CHECK(time.schedule->buffers[0].bytes == 65536);
  CHECK(time.weight == 1);
  CHECK(share.kind == Observation::Kind::share);
  CHECK(share.phase == Phase::sync);
  CHECK(share.schedule == time.schedule);
  CHECK(m.rows[1].source == "a, \"quoted\" source");
  CHECK(m.rows[1].line == 5);
  CHECK(ratio.kind == Observation::Kind::ratio);
  CHECK(ratio.baseline == ratio.schedule);  // without settings of its own, the baseline has the schedule's
  CHECK(ratio.group == "one.sdma bytes=1M");
  CHECK(m.find("one.sdma", "bytes=64K", "share.sync") == &share);
  CHECK(m.find("one.sdma", "bytes=64K", "share.copy") == nullptr);
}

TEST_CASE("columns may have any order; spread, weight, id and the baseline's settings are optional") {
  const auto m = table(
      "value,spread,what,source,schedule,weight,id,baseline,baseline_settings,settings\n"
      "5,0.5,time_us,x,one.sdma,2,mine,,,\n"
      "5,,speed_up,x,one.sdma,0,,one.sdma,bytes=8K,bytes=16K\n");
  CHECK(m.observations[0].spread == 500);
  CHECK(m.observations[0].weight == 2);
  CHECK(m.observations[0].id == "mine");
  CHECK(m.observations[1].weight == 0);
  CHECK(m.observations[1].schedule->buffers[0].bytes == 16384);
  CHECK(m.observations[1].baseline->buffers[0].bytes == 8192);
}

TEST_CASE("settings of the fit: free parameters with start, bounds and note; the power") {
  const auto m = table(
      "#: power 4\n#: free engine.poll_ns 3000 500 20000 what it takes\n#:free host.build_ns 50\n"
      "#: free host.poll_ns 60 its note\n" +
      kHead + "one.sdma,,time_ns,,9000,x\n");
  CHECK(m.options.power == 4);
  REQUIRE(m.options.free.size() == 3);
  CHECK(m.options.free[0].cost == Cost::engine_poll);
  CHECK(m.options.free[0].low == 500);
  CHECK(m.options.free[0].high == 20000);
  CHECK(m.options.free[0].note == "what it takes");
  CHECK(m.options.free[1].high == 0);
  CHECK(m.options.free[2].note == "its note");
  const auto start = m.from(*mi300x_machine());
  CHECK(start[Cost::engine_poll] == 3000);
  CHECK(start[Cost::host_build] == 50);
  CHECK(start[Cost::engine_latency] == (*mi300x_machine())[Cost::engine_latency]);
}

TEST_CASE("errors name the line, what is wrong, and what to do") {
  const auto row = [](const std::string& text) { return errors(kHead + text + "\n"); };
  const auto starts = [](const std::string& text, const std::string& with) {
    INFO(text);
    CHECK(text.starts_with(with));
  };
  starts(errors("# nothing\n"),
         "t.csv:1: error: the table has no measurements\n  hint: its first line names the columns");
  starts(errors("schedule,what,valu,source\n"),
         "t.csv:1: error: 'valu' is not a column\n  hint: did you mean 'value'?");
  starts(errors("schedule,what,what\n"), "t.csv:1: error: the column 'what' appears twice");
  starts(errors("schedule,what,value\n"), "t.csv:1: error: the column 'source' is missing");
  starts(row("one.sdma,,time_us,,5"),
         "t.csv:2: error: this line has 5 fields, and the table has 6 columns\n  hint: a field with");
  starts(row("one.sdma,,time_us,,5,\"x"), "t.csv:2: error: a quote is not closed, or is inside a field");
  starts(row("one.sdma,,time_us,,5,x\"y\""), "t.csv:2: error: a quote is not closed, or is inside a field");
  starts(row("one.sdma,,tim_us,,5,x"), "t.csv:2: error: 'tim_us' is not a measure\n  hint: did you mean 'time_us'?");
  starts(row("one.sdma,,share.kopy,,5,x"),
         "t.csv:2: error: 'share.kopy' is not a measure\n  hint: did you mean 'share.copy'?");
  starts(row("one.sdma,,time_us,,5us,x"),
         "t.csv:2: error: the value '5us' is not a number\n  hint: write it without a unit");
  starts(row("one.sdma,,time_us,,,x"), "t.csv:2: error: the value '' is not a number");
  starts(row("one.sdma,,time_us,,nan,x"), "t.csv:2: error: the value 'nan' is not a number");
  starts(row("one.sdma,,time_us,,5,"),
         "t.csv:2: error: there is no source\n  hint: write where the value was published");
  starts(row("one.sdma,,speed_up,,5,x"), "t.csv:2: error: this speed-up has no baseline\n  hint: name the .sdma file");
  starts(row("two.sdma,,time_us,,5,x"),
         "t.csv:2: error: two.sdma: No such file or directory\n  hint: name a .sdma file, relative");
  starts(row("one.sdma,bytes,time_us,,5,x"), "t.csv:2: error: the setting 'bytes' is not NAME=VALUE");
  CHECK(row("one.sdma,byte=1,time_us,,5,x").find("t.csv:2: set byte: error: there is no param 'byte'") == 0);
  CHECK(row("bad.sdma,,time_us,,5,x").find("t.csv:2: bad.sdma:2:1: error") == 0);
  std::string many = "#: fre x\n";
  for (int i = 0; i < 120; ++i) many += "#: fre x\n";
  CHECK(errors(many).find("t.csv: error: after 100 errors, the lines from 101 on were not read") != std::string::npos);
  starts(errors("#: fre x\n"), "t.csv:1: error: 'fre' is not a setting of a fit");
  starts(errors("#: power two\n"), "t.csv:1: error: this is not '#: power P'");
  starts(errors("#: free engine.pol_ns 5\n"),
         "t.csv:1: error: 'engine.pol_ns' is not a parameter\n  hint: did you mean 'engine.poll_ns'?");
  starts(errors("#: free engine.poll_ns\n"), "t.csv:1: error: this is not '#: free PARAMETER START");
  starts(errors("#: free engine.poll_ns 5 1\n"), "t.csv:1: error: the lower bound has no upper bound");
  starts(errors("#: free engine.poll_ns 5 10 20\n"), "t.csv:1: error: engine.poll_ns cannot start at 5");
  starts(errors("#: free xgmi.efficiency 1.5\n"), "t.csv:1: error: xgmi.efficiency cannot start at 1.5");
}

TEST_CASE("all errors of a table are reported at once") {
  const auto all = errors(kHead + "one.sdma,,tim_us,,5,x\none.sdma,,time_us,,x,\n");
  CHECK(all.find("t.csv:2: error: 'tim_us'") != all.npos);
  CHECK(all.find("t.csv:3: error: the value 'x'") != all.npos);
  CHECK(all.find("t.csv:3: error: there is no source") != all.npos);
}

TEST_CASE("the errors of a schedule appear once, however many lines name it") {
  const auto all = errors(kHead + "bad.sdma,,time_us,,5,x\nbad.sdma,,time_us,,6,x\nbad.sdma,a=1,time_us,,6,x\n");
  CHECK(all.find("bad.sdma:2:1") == all.rfind("bad.sdma:2:1"));
}

TEST_CASE("an id without settings") {
  CHECK(table(kHead + "one.sdma,,time_us,,5,x\n").observations[0].id == "one.sdma time_us");
}

TEST_CASE("a file that cannot be read is an error with its name") {
  const auto m = read_measurements("/nowhere/t.csv");
  REQUIRE_FALSE(m);
  CHECK(to_string(m.error()[0]).find("/nowhere/t.csv") != std::string::npos);
}

TEST_CASE("each line of the published tables says what was measured, where, and what is in it") {
  std::size_t tables = 0, fitted = 0;
  for (const auto& entry : std::filesystem::directory_iterator(SDMA_SOURCE_ROOT "/share/published")) {
    if (entry.path().extension() != ".csv") continue;
    ++tables;
    INFO(entry.path());
    const auto m = read_measurements(entry.path().string());
    for (const auto& d : m ? std::vector<Diagnostic>{} : m.error()) UNSCOPED_INFO(to_string(d));
    REQUIRE(m);
    for (const auto& r : m->rows) {
      INFO("line " << r.line);
      CHECK_FALSE(r.machine.empty());
      CHECK_FALSE(r.includes.empty());
    }
    // One table of engines and one of kernels are fitted to; the others judge.
    fitted += std::any_of(m->observations.begin(), m->observations.end(), [](auto& o) { return o.weight > 0; });
  }
  CHECK(tables == 7);
  CHECK(fitted == 2);
}
