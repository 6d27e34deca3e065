// SPDX-License-Identifier: MIT
// Copies that other tools have recorded: what is read of each form, what is said not to be known, and that the schedule
// of it parses, is proved and copies what was copied.
#include "sdma/schedule/copies.hpp"
#include "sdma/check/check.hpp"
#include "sdma/schedule/text.hpp"
#include "support/catch.hpp"

#include <algorithm>

using namespace sdma;

namespace {

RecordedCopies recorded(const std::string& text) {
  auto r = read_copies(text, "file");
  if (!r) FAIL(to_string(r.error()));
  return *std::move(r);
}
Schedule scheduled(const std::string& text) {
  const auto source = schedule_text(recorded(text));
  INFO(source);
  auto s = parse_schedule(source);
  if (!s)
    for (const auto& e : s.error()) UNSCOPED_INFO(to_string(e));
  REQUIRE(s);
  const auto report = check(*s);
  for (const auto& f : report.findings) UNSCOPED_INFO(to_string(f.diagnostic));
  CHECK(report.proved());
  return *std::move(s);
}
bool says(const RecordedCopies& r, const std::string& begin) {
  return std::any_of(r.unknown.begin(), r.unknown.end(), [&](const auto& u) { return u.starts_with(begin); });
}

const std::string kCsv =
    "\"Kind\",\"Direction\",\"Stream_Id\",\"Source_Agent_Id\",\"Destination_Agent_Id\",\"Start_Timestamp\",\"End_Timestamp\"\n"
    "\"MEMORY_COPY\",\"MEMORY_COPY_DEVICE_TO_HOST\",2,\"Agent 4\",\"Agent 0\",500,900\r\n"
    "\"MEMORY_COPY\",\"MEMORY_COPY_HOST_TO_DEVICE\",1,\"Agent 0\",\"Agent 4\",100,400\n"
    "\"MEMORY_COPY\",\"MEMORY_COPY_DEVICE_TO_DEVICE\",1,\"Agent 4\",\"Agent 6\",450,700\n\n";
const std::string kLog =
    ":4:rocblit.cpp :731 : 1 us: [pid:7 tid: 0x70] HSA Async Copy staged H2D, Async=1\n"
    ":4:rocblit.cpp :556 : 2 us: [pid:7 tid: 0x70] HSA Copy copy_engine=0x4, dst=0x7f1000, src=0x5000, size=4096, "
    "wait_event=0x0, completion_signal=0x80\n"
    ":4:rocblit.cpp :556 : 3 us: [pid:7 tid: 0x70] HSA Copy copy_engine=0x4, dst=0x7f2000, src=0x5800, size=4096, "
    "wait_event=0x80, completion_signal=0x90\n";

}  // namespace

TEST_CASE("the CSV of rocprofv3: by begin, each stream in order, no sizes") {
  const auto r = recorded(kCsv);
  REQUIRE(r.copies.size() == 3);
  CHECK(r.copies[0].from.is_host());
  CHECK(r.copies[0].to == Place::gpu(0));
  CHECK(r.copies[0].when == "100 ns, for 300 ns");
  CHECK(r.copies[1].from == Place::gpu(0));
  CHECK(r.copies[1].to == Place::gpu(1));
  CHECK(r.copies[1].after == 0u);
  CHECK(r.copies[2].stream == "2");
  CHECK_FALSE(r.copies[2].after);
  CHECK(r.gpus == std::vector<std::string>{"Agent 4", "Agent 6"});
  CHECK(says(r, "sizes:"));
  CHECK(says(r, "addresses:"));
  CHECK(says(r, "engines:"));
  CHECK(says(r, "order:"));
  const auto s = scheduled(kCsv);
  CHECK(s.queues.size() == 3);
  CHECK(s.expectations.size() == 3);
}

TEST_CASE("a Chrome trace: copies alone, with their sizes") {
  const std::string text = R"x({"traceEvents":[
{"ph":"X","cat":"kernel","name":"DtoH lookalike","ts":1,"dur":1},
{"ph":"M","name":"Memcpy HtoD"},
{"ph":"X","cat":"gpu_memcpy","name":"Memcpy HtoD (Pinned -> Device)","ts":5.5,"dur":2,
 "args":{"device":1,"stream":7,"bytes":3221225472}},
{"ph":"X","cat":"gpu_memcpy","name":"CopyDeviceToDevice","ts":9,"dur":2,"args":{"device":1,"stream":7}}]})x";
  const auto r = recorded(text);
  REQUIRE(r.copies.size() == 2);
  CHECK(r.copies[0].bytes == 3221225472);
  CHECK(r.copies[0].stream == "1.7");
  CHECK(r.copies[1].bytes == 0);
  CHECK(says(r, "sizes: where"));
  CHECK(says(r, "engines: 1 copy within a GPU"));
  // A packet copies at most 1G.
  const auto s = scheduled(text);
  std::size_t packets = 0;
  for (Reader reader{s.queues[0].dwords}; reader; ++packets) reader.next();
  CHECK(packets == 5);
}

TEST_CASE("a log of the HIP runtime: engines, addresses, and what waits for what") {
  const auto r = recorded(kLog);
  REQUIRE(r.copies.size() == 2);
  CHECK(r.copies[0].engine == 2u);
  CHECK(r.copies[0].source == 0x5000u);
  CHECK(r.copies[1].after == 0u);
  CHECK(r.copies[0].from.is_host());
  CHECK(says(r, "GPUs:"));
  CHECK_FALSE(says(r, "directions:"));
  const auto s = scheduled(kLog);
  // Both sides are one buffer each: they touch on the GPU, and overlap on the host.
  REQUIRE(s.buffers.size() == 2);
  CHECK(s.buffers[0].bytes + s.buffers[1].bytes == 0x2000 + 0x1800);
  CHECK(s.queues.size() == 1);
  CHECK(s.queues[0].engine == 2);
}

TEST_CASE("what is no such file, or has no copy, is an error") {
  const auto message = [](const std::string& text) {
    const auto r = read_copies(text, "file");
    REQUIRE_FALSE(r);
    return r.error().message;
  };
  CHECK(message("") == "no copies are found in this file");
  CHECK(message("{\"a\":1}") == "this JSON has no traceEvents");
  CHECK(message("{").starts_with("this is not JSON"));
  CHECK(message("[]") == "this is a Chrome trace, and it has no copy to or from a GPU");
  CHECK(message("Direction,x\n") == "the CSV has no column Source_Agent_Id");
  CHECK(message("copy_engine=0x1\n") == "line 1 names a copy engine, but not dst, src and size");
}
