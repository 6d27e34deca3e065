// SPDX-License-Identifier: MIT
// Copies that other tools have recorded: what is read of each form, what is said not to be known, and that the schedule
// of it parses, is proved and copies what was copied.
#include "sdma/schedule/copies.hpp"
#include "sdma/check/check.hpp"
#include "sdma/schedule/text.hpp"
#include "support/catch.hpp"

#include <fmt/format.h>

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

std::string notes(const RecordedCopy& c) {
  std::string all;
  for (const auto& n : c.notes) all += n + "\n";
  return all;
}
std::string refused(const std::string& text) {
  const auto r = read_copies(text, "file");
  REQUIRE_FALSE(r);
  return r.error().message;
}
/// A line of the log, of ROCm 7, of process 7 and a thread.
std::string logged(const std::string& text, const std::string& thread = "0x70") {
  return ":4:rocblit.cpp :556 : 2 us: [pid:7 tid: " + thread + "] " + text + "\n";
}
std::string log_copy(const std::string& more, const std::string& thread = "0x70") {
  return logged("HSA Copy copy_engine=0x1, dst=0x7f1000, src=0x5000, size=4096, " + more, thread);
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
  CHECK(r.copies[1].after == std::vector<std::size_t>{0});
  CHECK(r.copies[2].stream == "2");
  CHECK(r.copies[2].after.empty());
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
  CHECK(notes(r.copies[1]).find("a kernel may have made") != std::string::npos);
  // A packet copies at most 1G.
  const auto s = scheduled(text);
  std::size_t packets = 0;
  for (Reader reader{s.queues[0].dwords}; reader; ++packets) reader.next();
  CHECK(packets == 5);
}

TEST_CASE("a log of the HIP runtime: engines, addresses, and what waits for what") {
  const auto r = recorded(kLog);
  REQUIRE(r.copies.size() == 2);
  CHECK(r.copies[0].rocr_engine == 2u);
  CHECK_FALSE(r.copies[0].engine);
  CHECK(r.copies[0].source == 0x5000u);
  CHECK(r.copies[1].after == std::vector<std::size_t>{0});
  CHECK(r.copies[0].from.is_host());
  CHECK(says(r, "GPUs:"));
  CHECK_FALSE(says(r, "directions:"));
  const auto s = scheduled(kLog);
  // Both sides are one buffer each: they touch on the GPU, and overlap on the host.
  REQUIRE(s.buffers.size() == 2);
  CHECK(s.buffers[0].bytes + s.buffers[1].bytes == 0x2000 + 0x1800);
  CHECK(s.queues.size() == 1);
}

TEST_CASE("times never order copies: without streams, none waits for another") {
  const auto r = recorded(
      "\"Direction\",\"Source_Agent_Id\",\"Destination_Agent_Id\",\"Start_Timestamp\",\"End_Timestamp\"\n"
      "\"HOST_TO_DEVICE\",0,4,10000,20000\n\"DEVICE_TO_DEVICE\",4,5,15000,30000\n\"HOST_TO_DEVICE\",0,4,40000,50000\n");
  for (const auto& c : r.copies) CHECK(c.after.empty());
  CHECK(r.gpus == std::vector<std::string>{"Agent 4", "Agent 5"});
  CHECK(says(r, "order: the file has no streams"));
  // Nor does a queue: each copy has one of its own.
  CHECK(schedule_text(r).find("poll_mem") == std::string::npos);
  CHECK(contradictions(r).empty());
}

TEST_CASE("times refute the order of a stream, and a note of the line says so") {
  const std::string head = "Direction,Stream_Id,Source_Agent_Id,Destination_Agent_Id,Start_Timestamp,End_Timestamp\n";
  const auto r = recorded(head +
                          "HOST_TO_DEVICE,1,0,4,100,200\nHOST_TO_DEVICE,1,0,4,150,300\n"
                          "HOST_TO_DEVICE,1,0,4,220,400\nHOST_TO_DEVICE,1,0,4,400,500\n");
  using After = std::vector<std::size_t>;
  CHECK(r.copies[0].after.empty());
  CHECK(r.copies[1].after.empty());
  CHECK(notes(r.copies[1]).find("line 2 still ran") != std::string::npos);
  CHECK(r.copies[2].after == After{0});
  CHECK(notes(r.copies[2]).find("line 3 still ran") != std::string::npos);
  CHECK(r.copies[3].after == After{1, 2});
  CHECK(notes(r.copies[3]).empty());
  CHECK(contradictions(r).empty());
}

TEST_CASE("copies of a stream that all overlap stay few to wait for") {
  std::string text = "Direction,Stream_Id,Source_Agent_Id,Destination_Agent_Id,Start_Timestamp,End_Timestamp\n";
  for (int i = 0; i < 300; ++i) text += "HOST_TO_DEVICE,1,0,4," + std::to_string(i) + ",1000\n";
  for (int i = 0; i < 300; ++i) text += "HOST_TO_DEVICE,1,0,4,2000,3000\n";
  const auto r = recorded(text);
  for (const auto& c : r.copies) REQUIRE(c.after.size() <= 64);
  CHECK(notes(r.copies[300]).find("the last 64 alone") != std::string::npos);
}

TEST_CASE("a schedule that contradicts the times of its file is told where") {
  auto r = recorded(kCsv);
  CHECK(contradictions(r).empty());
  // The copy of stream 1 began at 450 ns, when that of line 3 had ended, and that of line 2 had begun at 500 ns.
  r.copies[2].after = {1};
  const auto all = contradictions(r);
  REQUIRE(all.size() == 1);
  CHECK(all[0].severity == Severity::warning);
  CHECK(all[0].message ==
        "line 2: in the schedule, this copy begins at 650 ns at the earliest, because of line 4; the file says 500 ns");
  // Not beyond the resolution.
  r.resolution_ns = 150;
  CHECK(contradictions(r).empty());
  // Of many, the first are listed.
  r.resolution_ns = 1;
  for (int i = 0; i < 20; ++i) r.copies.push_back(r.copies[2]), r.copies.back().stream = std::to_string(i);
  CHECK(contradictions(r).size() == 8);
  CHECK(contradictions(r).back().hint == "13 more copies begin too late");
}

TEST_CASE("an agent is the host or a GPU in all lines") {
  const std::string head = "Direction,Source_Agent_Id,Destination_Agent_Id,Start_Timestamp,End_Timestamp\n";
  CHECK(refused(head + "HOST_TO_DEVICE,Agent 0,Agent 4,1,2\nDEVICE_TO_DEVICE,Agent 0,Agent 4,3,4\n") ==
        "line 3: Agent 0 is a GPU here, and the host in line 2");
  CHECK(refused(head + "HOST_TO_DEVICE,GPU 0,GPU 1,1,2\n") == "line 2: HOST_TO_DEVICE is not what GPU 0 and GPU 1 are");
  CHECK(recorded(head + "HOST_TO_DEVICE,CPU 0,GPU 0,1,2\n").gpus == std::vector<std::string>{"GPU 0"});
}

TEST_CASE("rocprofv3's JSON: sizes, agents by their table wherever it stands, processes apart, allocations") {
  const std::string agents =
      R"x("agents":[{"id":{"handle":1},"node_id":0,"type":1,"caches":[{"a":1},{"a":2}]},
      {"id":{"handle":2},"node_id":4,"type":2,"name":"gfx942"},{"id":{"handle":3},"node_id":5,"type":2}])x";
  const auto copy = [](int operation, int from, int to, int begin, int end, int stream) {
    return R"x({"size":72,"kind":13,"operation":)x" + std::to_string(operation) +
           R"x(,"correlation_id":{"internal":1},"start_timestamp":)x" + std::to_string(begin) +
           R"x(,"end_timestamp":)x" + std::to_string(end) + R"x(,"dst_agent_id":{"handle":)x" + std::to_string(to) +
           R"x(},"src_agent_id":{"handle":)x" + std::to_string(from) + R"x(},"bytes":65536,"stream_id":{"handle":)x" +
           std::to_string(stream) + "}}";
  };
  const std::string records = R"x("buffer_records":{"memory_copy":[)x" + copy(2, 1, 2, 10, 20, 1) + "," +
                              copy(0, 2, 3, 30, 40, 1) + R"x(],"memory_allocation":[
    {"operation":1,"agent_id":{"handle":2},"address":"0x7f0000001000","allocation_size":4096,"end_timestamp":5},
    {"operation":3,"address":"0x7f0000001000","start_timestamp":90}]})x";
  const auto file = [&](const std::string& a, const std::string& b) {
    return R"x({"rocprofiler-sdk-tool":[{"metadata":{"pid":41},)x" + a + "," + b + R"x(},{"metadata":{"pid":42},)x" +
           a + "," + b + "}]}";
  };
  for (const auto& text : {file(agents, records), file(records, agents)}) {
    const auto r = recorded(text);
    REQUIRE(r.copies.size() == 4);
    CHECK(r.copies[0].from.is_host());
    CHECK(r.copies[0].bytes == 65536);
    CHECK(r.copies[0].process == "41");
    CHECK(r.copies[1].process == "42");
    CHECK(r.copies[2].after == std::vector<std::size_t>{0});
    CHECK(r.copies[3].after == std::vector<std::size_t>{1});
    CHECK(r.copies[2].from == Place::gpu(0));
    CHECK(r.copies[2].to == Place::gpu(1));
    CHECK(r.gpus == std::vector<std::string>{"node 4 (gfx942)", "node 5"});
    REQUIRE(r.allocations.size() == 2);
    CHECK(r.allocations[0].memory == "memory of node 4 (gfx942)");
    CHECK(r.allocations[0].freed == "memory_allocation[1]");
    scheduled(text);
  }
  // What the table refutes, what it does not have, and what neither it nor an operation says.
  const auto one = [&](const std::string& c) {
    return R"x({"rocprofiler-sdk-tool":[{)x" + agents + R"x(,"buffer_records":{"memory_copy":[)x" + c + "]}}]}";
  };
  CHECK(refused(one(copy(2, 2, 3, 10, 20, 1))) == "memory_copy[0]: its operation is not what its agents are");
  CHECK(refused(one(copy(9, 2, 3, 10, 20, 1))) == "memory_copy[0]: 9 is not a known operation");
  CHECK(refused(one(copy(2, 1, 2, 20, 10, 1))) == "memory_copy[0] does not end after it begins");
  CHECK(recorded(one(copy(2, 1, 7, 10, 20, 1))).gpus.at(0) == "agent 7, which the table does not have");
  const auto r = recorded(one(copy(0, 1, 7, 10, 20, 1) + "," + copy(2, 1, 2, 10, 20, 1)));
  REQUIRE(r.left_out.size() == 1);
  CHECK(r.left_out[0].starts_with("memory_copy[0]: a copy whose agents"));
}

TEST_CASE("rocprofv3's JSON: a copy belongs to the ranges of roctx in which its thread called for it") {
  const std::string agents = R"x("agents":[{"id":{"handle":1},"type":1},{"id":{"handle":2},"type":2}])x";
  const auto record = [](int correlation, int thread, int begin, int end, const std::string& more) {
    return fmt::format(
        R"x({{"thread_id":{},"correlation_id":{{"internal":{}}},"start_timestamp":{},"end_timestamp":{},{}}})x", thread,
        correlation, begin, end, more);
  };
  const std::string to_gpu = R"x("operation":2,"src_agent_id":{"handle":1},"dst_agent_id":{"handle":2},"bytes":64)x";
  const std::string call = R"x("operation":9)x", range = R"x("kind":1)x", name = R"x("kind":2)x";
  const std::string copies = record(11, 7, 500, 510, to_gpu) + "," + record(12, 7, 520, 530, to_gpu) + "," +
                             record(13, 8, 540, 550, to_gpu) + "," + record(14, 7, 560, 570, to_gpu);
  const std::string calls = record(14, 7, 95, 96, call) + "," + record(11, 7, 20, 25, call) + "," +
                            record(12, 7, 60, 61, call) + "," + record(13, 8, 20, 21, call);
  // The inner range is in the file first, as it ends first. A mark has no length, and a name is not a range.
  const std::string markers = record(3, 7, 18, 30, range) + "," + record(2, 7, 10, 90, range) + "," +
                              record(4, 7, 60, 60, range) + "," + record(5, 7, 0, 1000, name);
  const std::string strings =
      R"x("strings":{"buffer_records":[{"kind":"NONE","operations":["NONE"]},{"kind":"MARKER_CORE_RANGE_API","operations":[]},)x"
      R"x({"kind":"MARKER_NAME_API","operations":[]}],"marker_api":[{"key":2,"value":"forward"},{"key":3,"value":"layer\n3"},)x"
      R"x({"key":4,"value":"mark"},{"key":5,"value":"thread"}]})x";
  const auto file = [&](const std::string& api) {
    return R"x({"rocprofiler-sdk-tool":[{"buffer_records":{"memory_copy":[)x" + copies + R"x(],"marker_api":[)x" +
           markers + "]" + api + "}," + strings + "," + agents + "}]}";
  };
  const auto text = file(R"x(,"hip_api":[)x" + calls + "]");
  const auto r = recorded(text);
  REQUIRE(r.copies.size() == 4);
  CHECK(r.copies[0].phase == "forward > layer\n3");
  CHECK(r.copies[1].phase == "forward");
  CHECK(r.copies[2].phase.empty());  // another thread
  CHECK(r.copies[3].phase.empty());  // after the range
  CHECK(schedule_text(r).find("# 500 ns, for 10 ns, in forward > layer?3\n") != std::string::npos);
  scheduled(text);
  // Without the calls, no time of a copy says to which range it belongs.
  const auto unknown = recorded(file(""));
  CHECK(unknown.copies[0].phase.empty());
  CHECK(says(unknown, "phases: ranges of roctx are recorded, but not the calls of 4 copies"));
}

namespace {

/// A line of a table of calls or of ranges.
std::string called(const std::string& domain, const std::string& function, int thread, int correlation, int begin,
                   int end, int process = 41) {
  return fmt::format("\"{}\",\"{}\",{},{},{},{},{}\n", domain, function, process, thread, correlation, begin, end);
}
const std::string kCalls =
    "\"Domain\",\"Function\",\"Process_Id\",\"Thread_Id\",\"Correlation_Id\",\"Start_Timestamp\",\"End_Timestamp\"\n";
const std::string kCopiesOfCalls =
    "Kind,Direction,Source_Agent_Id,Destination_Agent_Id,Correlation_Id,Start_Timestamp,End_Timestamp\n"
    "MEMORY_COPY,HOST_TO_DEVICE,0,4,11,500,510\n"
    "MEMORY_COPY,HOST_TO_DEVICE,0,4,11,520,530\n"
    "MEMORY_COPY,HOST_TO_DEVICE,0,4,12,540,550\n"
    "MEMORY_COPY,HOST_TO_DEVICE,0,4,13,560,570\n";

RecordedCopies with_calls(std::vector<CallsTable> tables) {
  auto r = read_copies(kCopiesOfCalls, "copies.csv", {.calls = std::move(tables)});
  if (!r) FAIL(to_string(r.error()));
  return *std::move(r);
}

}  // namespace

TEST_CASE("rocprofv3's CSV: ranges of roctx and calls are tables of their own") {
  // The domain of ranges is that of ROCm 6 and that of ROCm 7; a call of roctx that names a thread is not a range.
  const std::string markers = kCalls + called("MARKER_CORE_RANGE_API", "layer, 3", 7, 2, 18, 30) +
                              called("MARKER_CORE_API", "forward", 7, 1, 10, 90) +
                              called("MARKER_NAME_API", "roctxNameOsThread", 7, 3, 0, 1000) +
                              called("MARKER_CORE_RANGE_API", "mark", 7, 4, 20, 20) +
                              called("MARKER_CORE_API", "started", 0, 5, 1, 1000);
  const std::string calls = kCalls + called("HIP_RUNTIME_API", "hipMemcpyAsync", 7, 11, 20, 25) +
                            called("HIP_RUNTIME_API", "hipMemcpyAsync", 7, 12, 60, 61);
  const std::string hsa = kCalls + called("HSA_AMD_EXT_API", "hsa_amd_memory_async_copy", 8, 13, 20, 21);
  const auto r = with_calls({{"m.csv", markers}, {"hip.csv", calls}, {"hsa.csv", hsa}});
  REQUIRE(r.copies.size() == 4);
  CHECK(r.form == "the CSV of rocprofv3 with m.csv, hip.csv, hsa.csv");
  CHECK(r.copies[0].phase == "forward > layer, 3");
  CHECK(r.copies[1].phase == "forward > layer, 3");  // one call has made two copies
  CHECK(r.copies[2].phase == "forward");
  CHECK(r.copies[3].phase.empty());  // another thread
  CHECK_FALSE(says(r, "phases: ranges"));
  CHECK(says(r, "phases: 1 range of roctx has no thread in the file"));
  CHECK(says(with_calls({{"m.csv", markers}, {"hip.csv", calls}}),
             "phases: ranges of roctx are recorded, but not the calls of 1 copy"));
  // What is wrong with a table is a note, and the copies are read.
  const auto wrong = with_calls({{"m.csv", markers + "1,2\n"}, {"hip.csv", calls}});
  CHECK(wrong.copies[0].phase.empty());
  CHECK(says(wrong, "phases: m.csv: line 7 does not have the 7 fields of the first line, so ranges of roctx are not"));
  const auto time = kCalls + called("HIP_RUNTIME_API", "hipMemcpyAsync", 7, 11, 20, 15);
  CHECK(
      says(with_calls({{"m.csv", time}}), "phases: m.csv: line 2 is not a call with a thread, a correlation and two"));
  CHECK(says(with_calls({{"m.csv", kCsv}}), "phases: m.csv: the CSV has no column Domain"));
  // The copies do not say which of two processes is theirs.
  const auto two = with_calls({{"m.csv", markers + called("MARKER_CORE_API", "other", 9, 1, 1, 2, 42)}});
  CHECK(says(two, "phases: m.csv is of 2 processes"));
  const auto log = read_copies(kLog, "hip.log", {.calls = {{"m.csv", markers}}});
  REQUIRE_FALSE(log);
  CHECK(log.error().where == "m.csv");
}

TEST_CASE("ranges of roctx: many in each other, and many calls, take little time and a short text") {
  constexpr int kMany = 20'000;
  auto markers = kCalls, calls = kCalls;
  for (int i = 0; i < kMany; ++i) {
    markers += called("MARKER_CORE_RANGE_API", fmt::format("r{}", i), 7, 100'000 + i, 1 + i, 1'000'000 - i);
    calls += called("HIP_RUNTIME_API", "hipMalloc", 7, 200'000 + i, 50'000 + i, 50'001 + i);
  }
  calls += called("HIP_RUNTIME_API", "hipMemcpyAsync", 7, 11, 900'000, 900'001);
  calls += called("HIP_RUNTIME_API", "hipMemcpyAsync", 7, 12, 999'998, 999'999);
  const auto r = with_calls({{"m.csv", markers}, {"hip.csv", calls}});
  CHECK(r.copies[0].phase ==
        "r0 > r1 > r2 > r3 > r4 > r5 > r6 > r7 > r8 > r9 > r10 > r11 > r12 > r13 > r14 > r15 > "
        "19984 more");
  CHECK(r.copies[2].phase == "r0 > r1 > r2");
}

TEST_CASE("a log: a copy that failed, or that a kernel made, is left out; who waits for it, waits for those before") {
  const auto all = [](const std::string& failure) {
    return log_copy("engineType=2, wait_event=0x0, completion_signal=0x80") +
           log_copy("engineType=2, wait_event=0x80, completion_signal=0x90") +
           logged("HSA Copy dst=0x9000, src=0x9100, size=16, engineType=2, wait_event=0x0, completion_signal=0xb0",
                  "0x71") +
           failure + log_copy("engineType=2, wait_event=0x90, completion_signal=0xa0", "0x72");
  };
  const auto r = recorded(all(logged("HSA copy failed with code 4097, falling to Blit copy")));
  REQUIRE(r.copies.size() == 3);
  CHECK(r.copies[2].after == std::vector<std::size_t>{0});
  REQUIRE(r.left_out.size() == 1);
  CHECK(r.left_out[0] == "line 2: a copy of 4096 bytes failed with code 4097, and a kernel copied instead (line 4)");
  CHECK(recorded(all("")).copies.size() == 4);
  CHECK(recorded(all(logged("HSA copy from host to device failed with code 4097"))).left_out.size() == 1);
  CHECK(recorded(all(logged("submitCopyMemory failed!"))).left_out.size() == 1);
  CHECK(refused(log_copy("engineType=2") + logged("HSA copy failed with code 1, falling to Blit copy"))
            .starts_with("no engine has made a copy of this log"));
  // Of a copy that was not seen to end, or whose call returned an error, nothing is expected.
  for (const auto* later : {"Failed signal [0x80] wait", "hipMemcpyAsync: Returned hipErrorUnknown : "}) {
    const auto text = logged("hipMemcpyAsync ( 0x7f1000, 0x5000, 4096, hipMemcpyHostToDevice, stream:0x1 )") +
                      log_copy("wait_event=0x0, completion_signal=0x80") + logged(later);
    CHECK(notes(recorded(text).copies.at(0)).starts_with("line 3: "));
    CHECK(scheduled(text).expectations.empty());
  }
  CHECK(scheduled(log_copy("engineType=2, wait_event=0x0, completion_signal=0x80")).expectations.size() == 1);
}

TEST_CASE("a log: signals and the waits of a thread order copies, within a process") {
  const auto wait = logged("Host wait on completion_signal=0x80");
  const auto first = log_copy("engineType=2, wait_event=0x0, completion_signal=0x80");
  const auto next = log_copy("engineType=2, wait_event=0x0, completion_signal=0x90");
  using After = std::vector<std::size_t>;
  CHECK(recorded(first + next).copies[1].after.empty());
  CHECK(recorded(first + wait + next).copies[1].after == After{0});
  const auto unknown = recorded(first + log_copy("engineType=2, wait_event=0xee, completion_signal=0x90"));
  CHECK(notes(unknown.copies[1]).starts_with("waits for signal 0xee"));
  // The same signal of another process is another one.
  auto other = log_copy("engineType=2, wait_event=0x80, completion_signal=0x90");
  other.replace(other.find("pid:7"), 5, "pid:8");
  const auto two = recorded(first + other);
  CHECK(two.copies[1].after.empty());
  CHECK(two.copies[1].process == "8");
  CHECK(parse_schedule(schedule_text(two))->buffers.size() == 4);
}

TEST_CASE("a log: ROCr's engine becomes the kernel's if the GPU and the version are known") {
  const auto engine = [](const std::string& text, std::optional<Generation> g) {
    return read_copies(text, "file", {.generation = g})->copies.at(0).engine;
  };
  const auto rocm_7 = log_copy("forceSDMA=0, engineType=2, wait_event=0x0, completion_signal=0x80");
  const auto rocm_6 = log_copy("forceSDMA=0, wait_event=0x0, completion_signal=0x80");
  CHECK(engine(rocm_7, Generation::v4_4_2) == 1u);
  CHECK(engine(rocm_7, Generation::v4_4_5) == 1u);
  CHECK(engine(rocm_7, Generation::v4_4) == 0u);
  CHECK_FALSE(engine(rocm_7, Generation::v6_0));
  CHECK_FALSE(engine(rocm_7, {}));
  CHECK_FALSE(engine(rocm_6, Generation::v4_4_2));
  const auto text = schedule_text(recorded(rocm_7));
  CHECK(text.find("engine=") == std::string::npos);
  CHECK(text.find("ROCr's engine 0, which is the kernel's engine 1 on gfx942 and gfx950") != std::string::npos);
}

TEST_CASE("logs of ROCm 5 to 7: who, when, and a copy without an engine") {
  // 5.x: the process before the bracket, the engine in hexadecimal without a mark.
  const auto five = recorded(
      ":4:rocblit.cpp              :707 : 105 us: 4711: [tid:0x7f10] HSA Async Copy on copy_engine=10, dst=0x3000, "
      "src=0x2000, size=40, wait_event=0x0, completion_signal=0xf80\n");
  CHECK(five.copies[0].process == "4711");
  CHECK(five.copies[0].rocr_engine == 4u);
  CHECK(five.copies[0].when == "105 us, line 1");
  CHECK(notes(five.copies[0]).starts_with("direction not recorded"));
  const auto six = recorded(
      "::: 105ud us: [pid:4711 tid:0x7f10] HSA Async Copy staged D2H dst=0x3000, src=0x2000, size=40, "
      "completion_signal=0xf80\n");
  CHECK(six.copies[0].to.is_host());
  CHECK(six.copies[0].when == "105 us, line 1");
  CHECK_FALSE(six.copies[0].rocr_engine);
  const auto seven = recorded(
      logged(
          "HSA Copy copy_engine=0x4, dst=0x3000, src=0x2000, size=40, forceSDMA=0, engineOp=D2D/P2P, wait_event=0x0, "
          "completion_signal=0x80") +
      logged("HSA Async Copy Rect dst=0x3000, src=0x2000, wait_event=0x0 completion_signal=0x80"));
  CHECK(seven.copies.size() == 2);
  CHECK(seven.copies[1].bytes == 0);
  // The runtime writes D2D/P2P for both, so a second GPU is not invented.
  CHECK(seven.gpus.size() == 1);
  CHECK(notes(seven.copies[0]).find("within a GPU or between two, which the log does not tell") != std::string::npos);
  const auto typed = recorded(logged(
      "HSA Copy copy_engine=0x4, dst=0x3000, src=0x2000, size=40, engineType=4, wait_event=0x0, completion_signal=0x80"));
  CHECK(typed.gpus.size() == 2);
}

TEST_CASE("a log of early ROCm 5: a misspelt line has signals in place of the size") {
  const auto text =
      logged("hipMemcpy ( 0x3000, 0x2000, 4096, hipMemcpyHostToDevice )") +
      logged("HSA Asycn Copy dst=0x3000, src=0x2000, size=0, wait_event=0xf80, completion_signal=0x7ff8") +
      logged("Host wait on completion_signal=0xf80") +
      logged("HSA Asycn Copy dst=0x3000, src=0x2000, size=905725696, wait_event=0xf00, completion_signal=0x0");
  const auto r = recorded(text);
  REQUIRE(r.copies.size() == 2);
  CHECK(r.copies[0].from.is_host());
  CHECK(r.copies[0].bytes == 0);
  CHECK(r.copies[1].bytes == 0);
  CHECK(notes(r.copies[1]) == "its size is not recorded: this runtime prints a signal in its place\n");
  CHECK(r.copies[1].after == std::vector<std::size_t>{0});
  scheduled(text);
}

TEST_CASE("a log: threads whose numbers are padded with blanks stay apart") {
  const auto r = recorded(log_copy("engineType=2, wait_event=0x0, completion_signal=0x80", "0x 70") +
                          logged("Host wait on completion_signal=0x80", "0x 70") +
                          log_copy("engineType=2, wait_event=0x0, completion_signal=0x90", "0x 71"));
  CHECK(r.copies[0].stream == "thread 0x70");
  CHECK(r.copies[1].stream == "thread 0x71");
  CHECK(r.copies[1].after.empty());
}

namespace {

/// A line of a batch: its part, what it copies, and its signals.
std::string batched(const std::string& part, const std::string& what, const std::string& wait, const std::string& done,
                    const std::string& engine = "D2D/P2P") {
  return logged("HSA BatchCopy " + part + " engineOp=" + engine + ", " + what + ", wait_event=" + wait +
                ", completion_signal=" + done);
}

}  // namespace

TEST_CASE("a log: the parts of a batch") {
  using Kind = RecordedCopy::Kind;
  const auto device = [](const char* at, const char* gpu) {
    return logged(std::string("Allocate hsa device memory ") + at + ", size 0x10000") +
           logged(std::string("device=") + gpu + ", freeMem_ = 0x100");
  };
  const auto memory = device("0x10000", "0xa") + device("0x20000", "0xb") + device("0x30000", "0xc");
  SECTION("plain copies") {
    const auto text = memory + batched("Multi [1/2]", "src=0x5000, dst=0x10000, size=64", "0x0", "0x80", "H2D") +
                      batched("Multi [2/2]", "src=0x6000, dst=0x20000, size=64", "0x0", "0x80", "H2D") +
                      batched("Linear [0/1]", "dst=0x7000, src=0x10040, size=64, src_agent=0x1, dst_agent=0x2", "0x0",
                              "0x90", "D2H") +
                      batched("Linear [0/1]", "dst=0x8000, src=0x20040, size=64, src_agent=0x1, dst_agent=0x2", "0x80",
                              "0xa0", "D2H");
    const auto r = recorded(text);
    REQUIRE(r.copies.size() == 4);
    CHECK(r.copies[1].from.is_host());
    CHECK(r.copies[1].to == Place::gpu(1));
    CHECK(r.copies[2].after.empty());
    CHECK(r.copies[3].after == std::vector<std::size_t>{0, 1});  // the signal is that of both parts
    scheduled(text);
  }
  SECTION("a broadcast: two destinations to a packet") {
    const auto to = [&](const char* part, const char* dst) {
      return batched(std::string("Broadcast [") + part + "]", std::string("src=0x10000, dst=") + dst + ", size=1024",
                     "0x0", "0x80");
    };
    const auto text = memory + to("1/3", "0x20000") + to("2/3", "0x30020") + to("3/3", "0x31000");
    const auto r = recorded(text);
    REQUIRE(r.copies.size() == 2);
    CHECK(r.copies[0].kind == Kind::broadcast);
    CHECK(r.copies[0].second == 0x30020U);
    CHECK(r.copies[0].second_to == Place::gpu(2));
    CHECK(r.copies[1].kind == Kind::copy);
    CHECK(says(r, "broadcasts: "));
    const auto source = schedule_text(r);
    CHECK(source.find("copy_broadcast bytes=1K src=gpu0.b0 dst1=gpu1.b1 dst2=gpu2.b2[32]\n") != std::string::npos);
    CHECK(source.find("line 7 and line 8\n") != std::string::npos);
    CHECK(scheduled(text).expectations.size() == 3);
    // Its packet needs destinations that are equal modulo 32.
    const auto uneven = recorded(memory + to("1/2", "0x20000") + to("2/2", "0x30004"));
    REQUIRE(uneven.copies.size() == 2);
    CHECK(notes(uneven.copies[0]).find("are not equal modulo 32") != std::string::npos);
    // Another source, or another operation, is not the same broadcast.
    CHECK(recorded(memory + to("1/2", "0x20000") +
                   batched("Broadcast [1/2]", "src=0x10000, dst=0x30000, size=1024", "0x0", "0x90"))
              .copies.size() == 2);
  }
  SECTION("a swap exchanges, and nothing is expected of it") {
    const auto text = memory + batched("Swap [1/1]", "addr_a=0x10100, addr_b=0x20040, size=640", "0x0", "0x80");
    const auto r = recorded(text);
    REQUIRE(r.copies.size() == 1);
    CHECK(r.copies[0].kind == Kind::swap);
    CHECK(schedule_text(r).find("copy_swap bytes=640 a=gpu0.b0 b=gpu1.b1\n") != std::string::npos);
    CHECK(scheduled(text).expectations.empty());
    const auto uneven = recorded(text + batched("Swap [1/1]", "addr_a=0x10100, addr_b=0x20044, size=8", "0x0", "0x90"));
    CHECK(uneven.copies.size() == 1);
    CHECK(uneven.left_out.at(0) == "line 8: a swap of addresses that are not multiples of 64, as its packet needs");
    CHECK(refused(batched("Swap [1/1]", "addr_a=0x10100, size=8", "0x0", "0x80")) ==
          "line 1 names a swap, but not addr_a, addr_b and size");
  }
  SECTION("an indirect copy has no addresses in the log") {
    const auto r = recorded(memory + batched("Linear [0/1]", "dst=0x20000, src=0x10000, size=64", "0x0", "0x80") +
                            batched("IndirectSrc [1/1]", "dst=0x30000, src=0x10000, size=64", "0x0", "0x90") +
                            batched("IndirectSrcDst [1/1]", "dst=0x30000, src=0x10000, size=64", "0x0", "0xa0") +
                            batched("Rect [1/1]", "dst=0x30000, src=0x10000, size=64", "0x0", "0xb0"));
    CHECK(r.copies.size() == 1);
    REQUIRE(r.left_out.size() == 3);
    CHECK(r.left_out[0] == "line 8: an indirect copy of a batch, whose addresses are in memory and not in the log");
    CHECK(r.left_out[2] == "line 10: a part of a batch of a kind that is not known: Rect");
  }
  SECTION("the parts that one call has taken fail together") {
    const auto up = batched("Multi [1/2]", "src=0x5000, dst=0x10000, size=64", "0x0", "0x80", "H2D") +
                    batched("Multi [2/2]", "src=0x6000, dst=0x20000, size=64", "0x0", "0x80", "H2D");
    const auto down = batched("Linear [0/1]", "dst=0x7000, src=0x10040, size=64", "0x0", "0x90", "D2H");
    const auto r = recorded(memory + down + up + logged("HSA batch copy failed with code 4097 for engine 2"));
    CHECK(r.copies.size() == 1);
    REQUIRE(r.left_out.size() == 2);
    CHECK(r.left_out[0] == "line 8: a copy of 64 bytes failed with code 4097 (line 10)");
  }
}

TEST_CASE("a log: allocations name GPUs and sides, until they are freed") {
  const auto device = [](const char* at, const char* gpu) {
    return logged(std::string("Allocate hsa device memory ") + at + ", size 0x1000") +
           logged(std::string("device=") + gpu + ", freeMem_ = 0x100");
  };
  const auto copy = logged(
      "HSA Copy copy_engine=0x4, dst=0x2000, src=0x1000, size=64, engineType=4, wait_event=0x0, completion_signal=0x80");
  const auto r = recorded(device("0x1000", "0xa") + device("0x2000", "0xb") + copy + logged("Free hsa memory 0x1000"));
  CHECK(r.gpus == std::vector<std::string>{"device 0xa", "device 0xb"});
  CHECK(r.copies[0].notes.empty());
  CHECK(r.allocations[0].freed == "line 6");
  CHECK(r.allocations[1].freed.empty());
  const auto sides = recorded(device("0x1000", "0xa") + logged("Allocate hsa host memory 0x2000, size 0x1000") +
                              logged("HSA Copy copy_engine=0x1, dst=0x2000, src=0x1000, size=64, wait_event=0x0, "
                                     "completion_signal=0x80"));
  CHECK(sides.copies[0].to.is_host());
  CHECK(sides.copies[0].notes.empty());
}

TEST_CASE("a log of the runtime: what was freed before a fault in it was reported, and what was not") {
  const auto memory = [](const char* at) {
    return logged(std::string("Allocate hsa device memory ") + at + ", size 0x2000");
  };
  const auto copy = logged(
      "HSA Copy copy_engine=0x4, dst=0x20000, src=0x10000, size=64, engineType=4, wait_event=0x0, "
      "completion_signal=0x80");
  const auto fault = [](const char* page) {
    return std::string("Memory access fault by GPU node-2 (Agent handle: 0x55e0) on address ") + page +
           ". Reason: Page not present or supervisor privilege.\n";
  };
  const auto r = recorded(memory("0x10000") + memory("0x20000") + memory("0x30800") + copy +
                          logged("Free hsa memory 0x10000") + fault("0x11000") + fault("0x20000") + fault("0x30000") +
                          fault("0x40000") + fault("(nil)") + logged("Free hsa memory 0x20000"));
  const auto& gone = r.allocations.at(0);
  CHECK((gone.freed == "line 5" && gone.fault == "line 6" && gone.gone));
  const auto& later = r.allocations.at(1);
  CHECK((later.freed == "line 11" && later.fault == "line 7" && !later.gone));
  const auto& kept = r.allocations.at(2);  // its page begins before it
  CHECK((kept.freed.empty() && kept.fault == "line 8" && !kept.gone));

  // Another process had memory at the same address: the report does not say whose the fault is.
  auto theirs = memory("0x10000");
  theirs.replace(theirs.find("pid:") + 4, 1, "9");
  const auto two = recorded(memory("0x10000") + theirs + copy + logged("Free hsa memory 0x10000") + fault("0x10000"));
  REQUIRE(two.allocations.size() == 2);
  REQUIRE(two.allocations[0].process != two.allocations[1].process);
  CHECK((two.allocations[0].fault.empty() && two.allocations[1].fault.empty()));
}

TEST_CASE("Chrome traces: a missing end, begins and ends, peers, exact times, and what arguments are needed for") {
  const std::string copy =
      R"x({"ph":"X","cat":"gpu_memcpy","name":"Memcpy HtoD (Host -> Device)","ts":1764400000000000.123,"dur":2.5,
      "args":{"device":0,"stream":7,"bytes":64}})x";
  const auto cut = recorded("[" + copy + ",\n" + copy.substr(0, copy.size() / 2));
  CHECK(cut.copies.size() == 1);
  CHECK(cut.copies[0].begin_ns == 1764400000000000123u);
  CHECK(cut.copies[0].end_ns == 1764400000000002623u);
  CHECK(cut.resolution_ns == 1);
  CHECK(says(cut, "the file's end is missing: 1 events"));
  CHECK(refused(R"x({"traceEvents":[)x" + copy).starts_with("this is not JSON, or it is cut off: nothing can be read"));
  CHECK(refused(R"x([{"ph":"X","cat":"gpu_memcpy","name":"Memcpy HtoD","ts":1,"dur":1}])x") ==
        "event 1: Memcpy HtoD has no args: its device, its stream and its bytes are missing");
  CHECK(refused(R"x([{"ph":"X","name":"a","args":{"bytes":1,"bytes":2}}])x") ==
        "the key args.bytes appears twice in an event");
  const auto begun = recorded(
      R"x([{"ph":"B","name":"Memcpy DtoH","pid":1,"tid":2,"ts":5,"args":{"bytes":8}},{"ph":"B","name":"x","pid":1,"tid":2},
      {"ph":"E","pid":1,"tid":2,"ts":6},{"ph":"E","pid":1,"tid":2,"ts":9}])x");
  REQUIRE(begun.copies.size() == 1);
  CHECK(begun.copies[0].end_ns == 9000u);
  CHECK(begun.resolution_ns == 1000);
  const auto peers = recorded(
      R"x([{"ph":"X","name":"Memcpy PtoP (Device -> Device)","ts":5,"dur":2,"args":{"fromDevice":3,"inDevice":3,"toDevice":5,
      "stream":7,"bytes":64}},
      {"ph":"X","name":"Memcpy PtoP (Device -> Device)","ts":9,"dur":2,"args":{"device":3,"stream":7,"bytes":64}}])x");
  CHECK(peers.gpus == std::vector<std::string>{"device 3", "device 5", "a peer of device 3, which is not named"});
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
  CHECK(message("{\"rocprofiler-sdk-tool\":[{").starts_with("this is not JSON"));
  CHECK(message("[]") == "this is a Chrome trace, and it has no copy to or from a GPU");
  CHECK(message("Direction,x\n") == "the CSV has no column Source_Agent_Id");
  CHECK(message("copy_engine=0x1\n") == "line 1 names a copy engine, but not dst, src and size");
}

TEST_CASE("the schedule of a recording is not longer than the recording, whatever its sizes and times are") {
  CopyTable t{.form = "a table", .file = "file"};
  const auto row = [&](std::uint64_t bytes, std::uint64_t begin, std::uint64_t end) {
    t.rows.push_back({.from = "cpu",
                      .to = "gpu",
                      .from_is = CopyRow::Side::host,
                      .to_is = CopyRow::Side::gpu,
                      .bytes = bytes,
                      .stream = "1",
                      .begin_ns = begin,
                      .end_ns = end,
                      .where = "a row"});
  };
  for (const auto bytes : {~std::uint64_t{0}, std::uint64_t{1} << 63, std::uint64_t{5} << 30}) row(bytes, 1, 2);
  const auto few = copies_of(t);
  REQUIRE(few);
  CHECK(schedule_text(*few).size() < 4000);
  // Each copy overlaps many, and would wait for as many before these.
  t.rows.clear();
  for (std::uint64_t i = 0; i < 40'000; ++i) row(64, i * 10, i * 10 + 400);
  const auto many = copies_of(t);
  REQUIRE_FALSE(many);
  CHECK(many.error().message == "its copies would have more than 1000000 waits for each other");
}

TEST_CASE("the file of rocprofv3's allocations is read where its memory is asked for") {
  const std::string text =
      "\"Kind\",\"Operation\",\"Agent_Id\",\"Allocation_Size\",\"Address\",\"Correlation_Id\",\"Start_Timestamp\",\"End_"
      "Timestamp\"\n"
      "\"MEMORY_ALLOCATION\",\"MEMORY_ALLOCATION_ALLOCATE\",\"Agent 4\",4096,\"0x0000000000005000\",1,10,20\n"
      "\"MEMORY_ALLOCATION\",\"MEMORY_ALLOCATION_VMEM_ALLOCATE\",\"Agent 5\",64,\"0x0000000000009000\",2,30,40\n"
      "\"MEMORY_ALLOCATION\",\"MEMORY_ALLOCATION_FREE\",\"\",0,\"0x0000000000005000\",3,50,60\n";
  const auto r = read_copies(text, "file", {.generation = {}, .memory_alone = true});
  if (!r) FAIL(to_string(r.error()));
  REQUIRE(r->allocations.size() == 2);
  const auto& a = r->allocations[0];
  CHECK((a.address == 0x5000 && a.bytes == 4096 && a.memory == "memory of Agent 4"));
  CHECK((a.where == "line 2" && a.freed == "line 4" && a.from_ns == 20u && a.to_ns == 50u));
  CHECK(r->allocations[1].freed.empty());
  const auto copies = read_copies(text, "file");
  REQUIRE_FALSE(copies);
  CHECK(copies.error().hint == "give the file NAME_memory_copy_trace.csv");
  const auto wrong =
      read_copies(text + "\"M\",\"MOVED\",\"\",0,\"0x1\",4,70,80\n", "file", {.generation = {}, .memory_alone = true});
  REQUIRE_FALSE(wrong);
  CHECK(wrong.error().message == "line 5: 'MOVED' is not a known operation");
}
