// SPDX-License-Identifier: MIT
#include "trace/lines_writer.hpp"

#include "sample.hpp"
#include "sdma/trace/write.hpp"
#include "support/catch.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <optional>
#include <vector>

using namespace sdma;

namespace {

/// A file without a name.
struct File {
  std::FILE* stream = std::tmpfile();
  int fd = ::fileno(stream);
  ~File() { std::fclose(stream); }

  std::string text() const {
    std::string out(static_cast<std::size_t>(::lseek(fd, 0, SEEK_END)), '\0');
    const auto n = ::pread(fd, out.data(), out.size(), 0);
    out.resize(static_cast<std::size_t>(n));
    return out;
  }
  Result<trace::Trace, Diagnostic> trace() const { return trace::from_json_lines(text()); }
};

/// No file may grow beyond this many bytes: a write that does is cut off there, and the next one fails.
class Limit {
 public:
  explicit Limit(rlim_t bytes) : handler_(std::signal(SIGXFSZ, SIG_IGN)) {
    ::getrlimit(RLIMIT_FSIZE, &before_);
    const rlimit now{.rlim_cur = bytes, .rlim_max = before_.rlim_max};
    ::setrlimit(RLIMIT_FSIZE, &now);
  }
  ~Limit() {
    ::setrlimit(RLIMIT_FSIZE, &before_);
    std::signal(SIGXFSZ, handler_);
  }

 private:
  rlimit before_{};
  void (*handler_)(int);
};

/// Every event of `t` in turn; lanes and texts become known just before the first event that names them.
class Player {
 public:
  explicit Player(const trace::Trace& t) : all_(t) {}
  bool play(trace::LinesWriter& w, std::size_t i) {
    const auto& e = all_.events[i];
    const auto know = [](auto& names, const auto& all, std::size_t count) {
      for (auto k = names.size(); k < std::min(count, all.size()); ++k) names.push_back(all[k]);
    };
    know(names_.lanes, all_.lanes, e.lane.value + 1);
    know(names_.texts, all_.texts, e.text.value + 1);
    // A name becomes known with every other event.
    if (const auto& ranges = all_.names.ranges(); i % 2 == 0 && i / 2 < ranges.size())
      names_.names.add(ranges[i / 2].va, ranges[i / 2].bytes, ranges[i / 2].name);
    return w.write(names_, e);
  }

 private:
  const trace::Trace& all_;
  trace::Trace names_{};
};

}  // namespace

TEST_CASE("a trace that grows can be read after each event") {
  const auto t = test::sample();
  const File f;
  REQUIRE(::write(f.fd, "old", 3) == 3);
  trace::LinesWriter w(f.fd, t.clock);
  Player player(t);
  for (std::size_t i = 0; i < t.events.size(); ++i) {
    REQUIRE(player.play(w, i));
    const auto back = f.trace();
    if (!back) FAIL(to_string(back.error()));
    CHECK(back->clock == t.clock);
    CHECK(back->lost == 0);
    REQUIRE(back->events.size() == i + 1);
    CHECK(std::equal(back->events.begin(), back->events.end(), t.events.begin()));
  }
  CHECK(f.trace()->lanes == t.lanes);
  CHECK(f.trace()->texts == t.texts);
  CHECK(f.trace()->names == t.names);
  CHECK(w.events() == t.events.size());
}

TEST_CASE("a recording before its first event is a trace without events") {
  const auto none = trace::from_json_lines(trace::LinesWriter::kEmpty);
  REQUIRE(none);
  CHECK(*none == trace::Trace{});
  // A writer begins a file in the same way, so one who follows it sees no other bytes.
  const File f;
  const trace::LinesWriter w(f.fd);
  CHECK(f.text() == trace::LinesWriter::kEmpty);
}

TEST_CASE("a full disk loses whole events, counts them, and takes the next ones when there is room") {
  const auto t = test::sample();
  const auto all = trace::to_json_lines(t).size();
  std::size_t cut = 0;
  for (std::size_t bytes = 0; bytes < all; bytes += 7) {
    const File f;
    std::size_t kept = 0;
    auto known = t;
    known.events.clear();
    {
      const Limit limit(bytes);
      trace::LinesWriter w(f.fd);
      Player player(t);
      for (std::size_t i = 0; i < t.events.size(); ++i) kept += player.play(w, i);
    }
    const auto text = f.text();
    CHECK(text.size() <= bytes);
    if (!text.empty()) {
      const auto back = f.trace();
      if (!back) FAIL(bytes << ": " << to_string(back.error()) << "\n" << text);
      CHECK(back->events.size() == kept);
      CHECK(back->lost == t.events.size() - kept);
      cut += back->lost != 0;
    }
  }
  CHECK(cut > 10);

  const File f;
  trace::LinesWriter w(f.fd);
  Player player(t);
  REQUIRE(player.play(w, 0));
  const auto full = f.text().size();
  {
    const Limit limit(full + 5);
    for (std::size_t i = 1; i + 1 < t.events.size(); ++i) CHECK_FALSE(player.play(w, i));
  }
  CHECK(f.text().size() == full);
  REQUIRE(player.play(w, t.events.size() - 1));
  const auto back = f.trace();
  if (!back) FAIL(to_string(back.error()));
  CHECK(back->events == std::vector{t.events.front(), t.events.back()});
  CHECK(back->lost == t.events.size() - 2);
  CHECK(w.lost() == t.events.size() - 2);
}

TEST_CASE("a writer that begins on a full disk begins once there is room") {
  const auto t = test::sample();
  const File f;
  std::optional<trace::LinesWriter> w;
  Player player(t);
  {
    const Limit limit(10);
    w.emplace(f.fd);
    CHECK_FALSE(player.play(*w, 0));
  }
  CHECK(f.text().empty());
  REQUIRE(player.play(*w, 1));
  const auto back = f.trace();
  REQUIRE(back);
  CHECK(back->events.size() == 1);
  CHECK(back->lost == 1);
}

TEST_CASE("what cannot be written at all is lost, and says so") {
  const auto t = test::sample();
  trace::LinesWriter w(-1);
  Player player(t);
  CHECK_FALSE(player.play(w, 0));
  CHECK(w.events() == 0);
  CHECK(w.lost() == 1);
}

TEST_CASE("a file that cannot be cut stays as it is: no old line follows the new ones") {
  const int fd = ::memfd_create("whole", MFD_ALLOW_SEALING);
  REQUIRE(::pwrite(fd, "old\n", 4, 0) == 4);
  REQUIRE(::fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK) == 0);
  const auto t = test::sample();
  trace::LinesWriter w(fd);
  Player player(t);
  CHECK_FALSE(player.play(w, 0));
  CHECK(w.lost() == 1);
  CHECK(::lseek(fd, 0, SEEK_END) == 4);
  ::close(fd);
}

TEST_CASE("a killed writer leaves a trace that can be read, wherever it was") {
  const auto t = test::sample();
  const File f;
  int ready[2];
  REQUIRE(::pipe(ready) == 0);
  const auto child = ::fork();
  if (child == 0) {
    trace::LinesWriter w(f.fd);
    for (std::uint64_t n = 0; n < 10'000'000; ++n) {
      w.write(t, {.ns = n, .kind = trace::Kind::doorbell, .position = n});
      if (n == 200 && ::write(ready[1], "x", 1) != 1) break;
    }
    ::_exit(1);
  }
  char byte = 0;
  CHECK(::read(ready[0], &byte, 1) == 1);
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
  ::close(ready[0]);
  ::close(ready[1]);
  const auto back = f.trace();
  if (!back) FAIL(to_string(back.error()));
  CHECK(back->events.size() > 200);
  CHECK(back->events.back().position == back->events.size() - 1);
}

TEST_CASE("read in pieces of any size, each event comes once") {
  const auto t = test::sample();
  const auto text = trace::to_json_lines(t);
  for (const std::size_t size : {std::size_t{1}, std::size_t{2}, std::size_t{7}, std::size_t{100}, text.size()}) {
    trace::LinesReader r;
    std::vector<trace::Event> events;
    for (std::size_t at = 0; at < text.size(); at += size) {
      const auto piece = r.feed(std::string_view(text).substr(at, size));
      if (!piece) FAIL(to_string(piece.error()));
      events.insert(events.end(), piece->events.begin(), piece->events.end());
      for (const auto& e : piece->events) CHECK(e.lane.value < piece->lanes.size());
    }
    CHECK(events == t.events);
  }
}

TEST_CASE("a growing trace: half a line waits, and an error has its line and stays") {
  trace::LinesReader r("f");
  REQUIRE(r.feed(""));
  const auto header =
      r.feed("{\"sdma_trace\":1,\"clock\":\"c\",\"events\":9,\"lost\":0}\n{\"lane\":0,\"group\":\"g\",");
  REQUIRE(header);
  CHECK(header->clock == "c");
  CHECK(header->lanes.empty());
  const auto lane = r.feed("\"name\":\"q\"}\n\n{\"ns\":1,\"lane\":0,\"event\":\"doorbell\",\"position\":4}");
  REQUIRE(lane);
  CHECK(lane->lanes.size() == 1);
  CHECK(lane->events.empty());
  const auto event = r.feed("\n");
  REQUIRE(event);
  CHECK(event->events.size() == 1);
  CHECK(r.feed("{\"ns\":0,\"lane\":0,\"event\":\"doorbell\",\"position\":4}\n").error().where == "f:5");
  CHECK(r.feed("").error().message == "this event is earlier than the previous one");
}
