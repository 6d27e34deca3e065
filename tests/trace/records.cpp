// SPDX-License-Identifier: MIT
// Binary recordings: what the writer writes is read back, in a file that grows, that is cut off, and that is damaged.
#include "trace/records_writer.hpp"

#include "sample.hpp"
#include "sdma/core/file.hpp"
#include "sdma/trace/write.hpp"
#include "support/catch.hpp"

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>

using namespace sdma;

namespace {

/// A file without a name, read by its descriptor's.
struct Recorded {
  std::FILE* stream = std::tmpfile();
  int fd = ::fileno(stream);
  ~Recorded() { std::fclose(stream); }
  std::string text() const { return *read_file("/proc/self/fd/" + std::to_string(fd)); }
  Result<trace::Trace, Diagnostic> load() const {
    return trace::load_json_lines("/proc/self/fd/" + std::to_string(fd));
  }
};

void record_all(trace::RecordsWriter& w, const trace::Trace& t) {
  for (const auto& e : t.events) REQUIRE(w.write(t, e));
}

}  // namespace

TEST_CASE("every kind of event is read back as it was") {
  auto t = test::sample();
  t.events.front().generation = kDefaultGeneration;
  t.lost = 0;
  Recorded f;
  trace::RecordsWriter w(f.fd, t.clock);
  record_all(w, t);
  const auto back = f.load();
  REQUIRE(back);
  CHECK(*back == t);
  CHECK(trace::to_json_lines(*back) == trace::to_json_lines(t));
}

TEST_CASE("a name of more than 4096 characters ends with two dots") {
  auto t = test::sample();
  REQUIRE(!t.lanes.empty());
  t.lanes.front().group = std::string(4096, 'g');
  t.lanes.front().name = std::string(4097, 'n');
  Recorded f;
  trace::RecordsWriter w(f.fd, t.clock);
  record_all(w, t);
  const auto back = f.load();
  REQUIRE(back);
  CHECK(back->lanes.front().group == t.lanes.front().group);
  CHECK(back->lanes.front().name == std::string(4094, 'n') + "..");
}

TEST_CASE("a packet of another generation keeps it") {
  auto t = test::sample();
  t.lost = 0;
  for (auto& e : t.events)
    if (e.kind == trace::Kind::packet_begin) e.generation = *generation_of("gfx1100");
  Recorded f;
  trace::RecordsWriter w(f.fd, t.clock);
  record_all(w, t);
  CHECK(*f.load() == t);
}

TEST_CASE("a recording grows over many chunks") {
  auto t = test::sample();
  t.lost = 0;
  const auto some = t.events;
  while (t.events.size() < 100'000) t.events.insert(t.events.end(), some.begin(), some.end());
  Recorded f;
  trace::RecordsWriter w(f.fd, t.clock);
  record_all(w, t);
  CHECK(f.text().size() > 3 * trace::RecordsWriter::kChunk);
  CHECK(f.load()->events == t.events);
}

TEST_CASE("events that cannot be written are counted, and so are those that never came") {
  const auto t = test::sample();
  Recorded f;
  trace::RecordsWriter w(f.fd, t.clock);
  record_all(w, t);
  w.lose();
  w.lose();
  CHECK(f.load()->lost == 2);
  const int closed = ::open("/dev/null", O_RDONLY);
  trace::RecordsWriter none(closed, t.clock);
  CHECK_FALSE(none.write(t, t.events.front()));
  ::close(closed);
}

TEST_CASE("a killed writer leaves a recording that can be read") {
  auto t = test::sample();
  Recorded f;
  int ends[2]{};
  REQUIRE(::pipe(ends) == 0);
  const auto child = ::fork();
  if (child == 0) {
    trace::RecordsWriter w(f.fd, t.clock);
    for (const auto& e : t.events) w.write(t, e);
    (void)!::write(ends[1], "x", 1);
    for (;;) ::pause();
  }
  char told = 0;
  REQUIRE(::read(ends[0], &told, 1) == 1);
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
  ::close(ends[0]);
  ::close(ends[1]);
  CHECK(f.load()->events == t.events);
}

TEST_CASE("a recording before its first event is a header alone, which the first event replaces") {
  const auto header = trace::RecordsWriter::empty("virtual");
  const auto none = trace::detail::from_records(header, "run.bin");
  REQUIRE(none);
  CHECK(*none == trace::Trace{.clock = "virtual"});
  CHECK_FALSE(trace::detail::from_records(header + '\0', "run.bin"));
  const auto t = test::sample();
  Recorded f;
  REQUIRE(::write(f.fd, header.data(), header.size()) == static_cast<ssize_t>(header.size()));
  trace::RecordsWriter w(f.fd, t.clock);
  record_all(w, t);
  const auto back = trace::detail::from_records(f.text(), "run.bin");
  REQUIRE(back);
  CHECK(back->events.size() == t.events.size());
  // What was cut off behind its header is not empty.
  CHECK_FALSE(trace::detail::from_records(f.text().substr(0, header.size()), "run.bin"));
}

TEST_CASE("a damaged recording is an error with its place, never a shorter trace") {
  const auto t = test::sample();
  Recorded f;
  trace::RecordsWriter w(f.fd, t.clock);
  record_all(w, t);
  const auto whole = f.text();
  const auto read = [](std::string text) { return trace::detail::from_records(text, "run.bin"); };
  CHECK(read(whole));
  auto bad = whole;
  bad[0] = 'X';
  CHECK_FALSE(read(bad));
  bad = whole;
  bad[66] = '\xee';  // the kind of the first record
  REQUIRE_FALSE(read(bad));
  CHECK(read(bad).error().where == "run.bin");
  CHECK(read(bad).error().message == "the recording is damaged at byte 64");
  bad = whole;
  bad[64] = 9;  // its length
  CHECK_FALSE(read(bad));
  CHECK_FALSE(read(whole.substr(0, 100)));
  CHECK_FALSE(read(whole.substr(0, 30)));
  // Whatever a byte is, reading ends, and with a trace or an error.
  for (std::size_t at = 0; at < 600; ++at)
    for (const int change : {1, 0x80, 0xff}) {
      bad = whole;
      bad[at] = static_cast<char>(bad[at] ^ change);
      (void)read(bad);
    }
}
