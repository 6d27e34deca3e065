// SPDX-License-Identifier: MIT
// Schedule files as variants: their names and params, what is refused, and that they are verified and timed like ours.
#include "perf/schedule_file.hpp"

#include "perf/modelled.hpp"
#include "perf/report.hpp"
#include "perf/sweep.hpp"
#include "sdma/device/soft.hpp"
#include "support.hpp"

using namespace sdma;
using namespace collectives;
using namespace collectives::perf;
using test::settings;

namespace {

/// Each GPU sends its part to all others. `bytes` is the size of the collective.
const std::string kGather =
    "sdma 1\nparam N = 4\nparam bytes = 64K\nparam pieces = 1\nlet part = bytes/N\ngpus N\n"
    "buffer gpu*.buf bytes=bytes init=random\nsignal host.done value=0\n"
    "for i in 0..N\n  queue gpu{i}.q peer=gpu{(i+1)%N}\n    for k in 1..N\n      for p in 0..pieces\n"
    "        copy_linear bytes=part/pieces src=gpu{i}.buf[i*part+p*part/pieces] "
    "dst=gpu{(i+k)%N}.buf[i*part+p*part/pieces]\n      end\n    end\n"
    "    atomic op=add_rtn_64 addr=host.done value=1\n  end\n"
    "  expect gpu*.buf[i*part..+part] == old gpu{i}.buf[i*part..+part]\nend\n"
    "host main\n  submit *\n  wait host.done == N\nend\n";

std::string replaced(std::string text, const std::string& a, const std::string& b) {
  const auto at = text.find(a);
  REQUIRE(at != text.npos);
  return text.replace(at, a.size(), b);
}

ScheduleFile file(const std::string& word, const std::string& text, const std::vector<ParamSetting>& map = {}) {
  auto f = schedule_file(word, map, {});
  REQUIRE(f);
  if (auto r = load(*f, text); !r) FAIL(to_string(r.error().front()));
  return *std::move(f);
}

/// "where: message | hint" of the first error; "" if the file can be compared.
std::string wrong(const std::string& text, const Options& o = {.gpus = 4, .bytes = 64 << 10},
                  const std::vector<ParamSetting>& map = {}) {
  const auto said = [](const Diagnostic& d) { return d.where + ": " + d.message + " | " + d.hint; };
  auto f = schedule_file("dir/a.sdma", map, {});
  REQUIRE(f);
  if (auto r = load(*f, text); !r) return said(r.error().front());
  const auto s = schedule_of(*f, o);
  return s ? "" : said(s.error().front());
}

/// Settings whose files have this text.
Settings with_files(const std::string& line, const std::string& text) {
  auto s = settings(line);
  for (const auto& f : s.files)
    if (auto r = load(*f, text); !r) FAIL(to_string(r.error().front()));
  return s;
}

Point measured(const Settings& s, Device& d, std::uint64_t bytes) {
  const auto p = measure(s, default_table(), d, s.ways, bytes, {}, [] { return true; });
  if (!p) FAIL(to_string(p.error().front()));
  REQUIRE(p->size() == 1);
  return p->front();
}

}  // namespace

TEST_CASE("a file is a way with a name of its own, each once") {
  const auto s = settings("--variant=pcpy,x/ring.sdma,y/ring.sdma:chunks=4,x/ring.sdma,y/ring.sdma,b2b+pl");
  REQUIRE(s.ways.size() == 5);
  CHECK(name(s.ways[1]) == "ring.sdma");
  CHECK(name(s.ways[2]) == "ring.sdma:chunks=4");
  CHECK(name(s.ways[3]) == "y/ring.sdma");
  CHECK(s.files[1]->path == "y/ring.sdma");
  CHECK(s.ways[1].file == s.files[0].get());
  CHECK_FALSE(is_ours(s.ways[1]));
  CHECK(is_ours(s.ways[4]));
  // The column of variants is as wide as its longest name.
  CHECK(variant_width(s) == std::string("ring.sdma:chunks=4").size());
  CHECK(variant_width(settings()) == 12);
}

TEST_CASE("params take the number of GPUs and the size, under the names that the file has") {
  CHECK(with_numbers("bytes/N+64K*N1+x", 4, 1000) == "1000/4+64K*N1+x");
  const auto buffer = [](const ScheduleFile& f, std::uint64_t bytes) {
    const auto s = schedule_of(f, {.gpus = 2, .bytes = bytes});
    if (!s) FAIL(to_string(s.error().front()));
    CHECK(s->gpus == 2);
    return s->buffers.front().bytes;
  };
  CHECK(buffer(file("a.sdma", kGather), 4096) == 4096);
  auto other = kGather;
  for (const char* from : {"param N = 4", "gpus N"}) other = replaced(other, from, replaced(from, "N", "n"));
  other = replaced(replaced(other, "let part = bytes/N", "let N = n"), "param bytes = 64K",
                   "param part = 16K\nlet bytes = part*n");
  CHECK(buffer(file("a.sdma:n=N:part=bytes/N", other), 4096) == 4096);
  CHECK(buffer(file("a.sdma", other, {{"n", "N"}, {"part", "bytes/N"}}), 4096) == 4096);
  // What follows the name of a file replaces what --map says.
  CHECK(buffer(file("a.sdma:part=bytes/2", other, {{"n", "N"}, {"part", "bytes"}}), 4096) == 4096);
  const auto s = schedule_of(file("a.sdma:pieces=4", kGather), {.gpus = 2, .bytes = 4096});
  REQUIRE(s);
  CHECK(s->queues.front().dwords.size() >
        schedule_of(file("a.sdma", kGather), {.gpus = 2, .bytes = 4096})->queues.front().dwords.size());
}

TEST_CASE("what could not be compared is refused in one sentence") {
  CHECK(wrong(kGather) == "");
  CHECK(wrong(replaced(kGather, "param bytes = 64K", "let bytes = 64K"))
            .starts_with("dir/a.sdma: no param says how many bytes it moves | declare `param bytes = 1M`"));
  CHECK(wrong(replaced(kGather, "param N = 4", "let N = 4"))
            .starts_with("dir/a.sdma: no param says how many GPUs it has | declare `param N = 4`"));
  CHECK(wrong(kGather, {.gpus = 4, .bytes = 64 << 10}, {{"chunks", "4"}}) ==
        "dir/a.sdma: it has no param 'chunks' | its params: N, bytes, pieces; a setting for one file only follows its "
        "name: ring.sdma:chunk=bytes/N");
  CHECK(wrong(replaced(kGather, "gpus N", "gpus 5")).starts_with("a.sdma: it has 5 GPUs, not 4"));
  CHECK(wrong(replaced(kGather, "  expect gpu*.buf[i*part..+part] == old gpu{i}.buf[i*part..+part]\n", ""))
            .starts_with("a.sdma: it has no expectations, so its data cannot be verified | "));
  CHECK(wrong(kGather + "expect finding race\n").find("deliberate error") != std::string::npos);
  CHECK(wrong("copy_linear\n").find("expected 'sdma 1'") != std::string::npos);
  // Poison equals poison before anything has moved.
  CHECK(wrong(replaced(kGather, " init=random", ""))
            .starts_with("a.sdma: its expectations cover 0 bytes that come from random buffers of other GPUs, but "
                         "all_gather of 64K moves 196608"));
  // A size that the file rounds down is not the same work.
  CHECK(wrong(kGather, {.gpus = 3, .bytes = 64 << 10}).find("cover 131070 bytes") != std::string::npos);
  // A range that is expected twice counts once.
  CHECK(wrong(replaced(kGather, "i*part..+part] == old gpu{i}.buf[i*part..+part]",
                       "0..+part] == old gpu{i}.buf[0..+part]"))
            .find("cover 65536 bytes") != std::string::npos);
}

TEST_CASE("a file is verified and timed on a device and in the simulator, beside the variants") {
  auto device = SoftDevice::open({.gpus = 4, .ordering = Ordering::adversarial, .seed = 3});
  REQUIRE(device);
  const auto s = with_files("--variant=a.sdma:pieces=2 --gpus=3,0 -n 3 -w 1 -c 2 --device=soft", kGather);
  const auto p = measured(s, **device, 8 << 10);
  CHECK(p.wrong == 0u);
  CHECK(p.us.least > 0);
  CHECK(p.count == 4096);
  CHECK(p.busbw > 0);
  CHECK(p.notes == std::vector<std::string>{"a.sdma:pieces=2: only the bytes that its expectations name are verified"});
  const auto row_of = row(p, variant_width(s));
  CHECK(row_of.find(" a.sdma:pieces=2 ") != std::string::npos);
  const auto m = mi300x_machine();
  REQUIRE(m);
  const auto simulated = with_files("--variant=a.sdma -g 8", kGather);
  const auto theirs = modelled(simulated, default_table(), *m, simulated.ways[0], 1 << 20);
  const auto ours = modelled(simulated, default_table(), *m, {Variant::b2b, false}, 1 << 20);
  REQUIRE((theirs && ours));
  // It is the b2b all-gather, packet by packet.
  CHECK(theirs->us.mean == Approx(ours->us.mean).epsilon(0.001));
  CHECK_FALSE(theirs->wrong);
  // Errors name the way and the size.
  const auto odd = modelled(simulated, default_table(), *m, simulated.ways[0], 1001);
  REQUIRE_FALSE(odd);
  CHECK(odd.error().front().where.starts_with("a.sdma, 1001"));
}

TEST_CASE("a file whose hosts set a signal counts as prelaunched, and long names keep the columns of a summary") {
  auto plain = file("a_schedule_with_a_long_name.sdma", kGather);
  auto triggered =
      file("b.sdma", replaced(kGather + "signal host.go value=0\n", "  submit *\n", "  submit *\n  set host.go = 1\n"));
  CHECK_FALSE(prelaunched({.file = &plain}));
  CHECK(prelaunched({.file = &triggered}));
  const std::vector points{test::point(1024, kBase, 4), test::point(1024, {.file = &plain}, 2),
                           test::point(1024, {.file = &triggered}, 1)};
  CHECK(best(points, true).at(0).way.file == &triggered);
  CHECK(best(points, false).at(0).way.file == &plain);
  CHECK(summary(points).find("\n#    size a_schedule_with_a_long_name.sdma    b.sdma   best\n#      1K                 "
                             "            2.00      4.00   b.sdma\n") != std::string::npos);
}

TEST_CASE("a file whose data is wrong fails each verified round") {
  auto device = SoftDevice::open({.gpus = 4});
  REQUIRE(device);
  // GPU 0 sends the bytes after the right ones.
  const auto s = with_files("--variant=a.sdma -g 4 -n 1 -c 2",
                            replaced(kGather, "src=gpu{i}.buf[i*part+p*part/pieces]", "src=gpu{i}.buf[(i+1)%N*part]"));
  const auto p = measured(s, **device, 4096);
  CHECK(p.wrong.value_or(0) > 2 * 11000);
  INFO(p.first_wrong);
  CHECK(p.first_wrong.find("differ") != std::string::npos);
}

TEST_CASE("a file without a wait cannot be timed") {
  auto device = SoftDevice::open({.gpus = 4});
  REQUIRE(device);
  const auto at = kGather.find("host main");
  const auto s = with_files("--variant=a.sdma -g 4 -n 1 -c 0", kGather.substr(0, at) + "host main\n  submit *\nend\n");
  const auto p = measure(s, default_table(), **device, s.ways, 4096, {}, [] { return true; });
  REQUIRE_FALSE(p);
  CHECK(p.error().front().message.find("cannot be timed") != std::string::npos);
}
