#include "sample.hpp"
#include "sdma/trace/write.hpp"
#include "support/catch.hpp"

#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <sstream>

using namespace sdma;

namespace {

struct Folder {
  std::filesystem::path path =
      std::filesystem::temp_directory_path() / ("sdma-trace-" + std::to_string(static_cast<long>(::getpid())));
  Folder() { std::filesystem::create_directory(path); }
  ~Folder() { std::filesystem::remove_all(path); }
  std::string operator/(const char* name) const { return (path / name).string(); }
};
std::string slurp(const std::string& path) {
  std::ostringstream s;
  s << std::ifstream(path, std::ios::binary).rdbuf();
  return s.str();
}

}  // namespace

TEST_CASE("files hold what the texts say, and replace what was there") {
  const Folder folder;
  const auto t = test::sample();
  const auto path = folder / "t";
  std::ofstream(path) << std::string(100000, 'x');
  REQUIRE(trace::save_json_lines(t, path));
  CHECK(slurp(path) == trace::to_json_lines(t));
  const auto back = trace::load_json_lines(path);
  REQUIRE(back);
  CHECK(*back == t);
  REQUIRE(trace::save_perfetto(t, path));
  CHECK(slurp(path) == trace::to_perfetto(t));
}

TEST_CASE("a full disk is an error, for few bytes and for many") {
  if (::access("/dev/full", W_OK) != 0) return;
  trace::Trace t;
  t.lanes = {{"g", "q"}};
  for (const std::uint64_t events : {std::uint64_t{0}, std::uint64_t{100000}}) {
    for (auto i = t.events.size(); i < events; ++i) t.events.push_back({.ns = i});
    const auto r = trace::save_json_lines(t, "/dev/full");
    REQUIRE_FALSE(r);
    CHECK(r.error().where == "/dev/full");
    CHECK(r.error().message == "the trace of " + std::to_string(trace::to_json_lines(t).size()) +
                                   " bytes was not written completely: No space left on device");
    CHECK_FALSE(trace::save_perfetto(t, "/dev/full"));
  }
}

TEST_CASE("so is a full standard output, although nobody closes it") {
  if (::access("/dev/full", W_OK) != 0) return;
  const auto child = ::fork();
  if (child == 0) {
    const bool full = std::freopen("/dev/full", "w", stdout) != nullptr;
    const auto r = trace::save_json_lines({}, "-");
    ::_exit(full && !r && r.error().where == "standard output" ? 0 : 1);
  }
  int status = -1;
  REQUIRE(::waitpid(child, &status, 0) == child);
  CHECK(status == 0);
}

TEST_CASE("what cannot be opened or read is named") {
  const Folder folder;
  const auto nowhere = folder / "no/where";
  const auto saved = trace::save_perfetto({}, nowhere);
  REQUIRE_FALSE(saved);
  CHECK(saved.error().where == nowhere);
  CHECK(saved.error().message == "cannot be written: No such file or directory");
  const auto loaded = trace::load_json_lines(nowhere);
  REQUIRE_FALSE(loaded);
  CHECK(loaded.error().message == "cannot be read: No such file or directory");
  const auto a_folder = trace::load_json_lines(folder.path.string());
  REQUIRE_FALSE(a_folder);
  CHECK(a_folder.error().message == "cannot be read: Is a directory");
}

TEST_CASE("errors of a file's lines have its name") {
  const Folder folder;
  std::ofstream(folder / "t") << "{}\n";
  const auto r = trace::load_json_lines(folder / "t");
  REQUIRE_FALSE(r);
  CHECK(r.error().where == (folder / "t") + ":1");
}
