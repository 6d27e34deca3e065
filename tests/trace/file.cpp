// SPDX-License-Identifier: MIT
#include "sample.hpp"
#include "sdma/trace/page.hpp"
#include "sdma/trace/write.hpp"
#include "support/catch.hpp"
#include "support/folder.hpp"

#include <array>

using namespace sdma;

using test::content;
using test::Folder;

TEST_CASE("files hold what the texts say, and replace what was there") {
  const Folder folder;
  const auto t = test::sample();
  const auto path = folder / "t.jsonl";
  std::ofstream(path) << std::string(100000, 'x');
  REQUIRE(trace::save(t, path));
  CHECK(content(path) == trace::to_json_lines(t));
  const auto back = trace::load_json_lines(path);
  REQUIRE(back);
  CHECK(*back == t);
  const auto other = folder / "t";
  REQUIRE(trace::save(t, other));
  CHECK(content(other) == trace::to_perfetto(t));
}

TEST_CASE("a disk that becomes full leaves the trace that was there") {
  const Folder folder;
  const auto path = folder / "t.jsonl";
  const auto t = test::sample();
  REQUIRE(trace::save(t, path));
  auto longer = t;
  for (std::uint64_t i = 0; i < 1000; ++i) longer.events.push_back({.ns = longer.events.back().ns});
  {
    const test::FullAfter full{4096};
    const auto r = trace::save(longer, path);
    REQUIRE_FALSE(r);
    CHECK(r.error().where == path);
    CHECK(r.error().message == "cannot be written: File too large");
    CHECK_FALSE(trace::save(longer, folder / "t"));
    CHECK_FALSE(trace::save_page(std::array{trace::PageTrace{"t", longer}}, path));
  }
  CHECK(content(path) == trace::to_json_lines(t));
  CHECK(folder.files() == 1);
}

TEST_CASE("the name of a file says its form") {
  using trace::Form;
  CHECK(trace::form_of("run.jsonl") == Form::jsonl);
  CHECK(trace::form_of("run.html") == Form::html);
  for (const auto* name : {"run.json", "run", "-", "", "run.jsonl.gz", "jsonl"})
    CHECK(trace::form_of(name) == Form::perfetto);
  const Folder folder;
  const auto t = test::sample();
  for (const auto* name : {"t.jsonl", "t.json"}) REQUIRE(trace::save(t, folder / name));
  CHECK(content(folder / "t.jsonl") == trace::to_json_lines(t));
  CHECK(content(folder / "t.json") == trace::to_perfetto(t));
  const auto page = folder / "t.html";
  REQUIRE(trace::save(t, page));
  CHECK(content(page) == trace::to_page(std::array{trace::PageTrace{page, t}}));
  CHECK(trace::to_string(t, Form::text) == trace::to_text(t));
}

TEST_CASE("what cannot be opened or read is named") {
  const Folder folder;
  const auto nowhere = folder / "no/where";
  const auto saved = trace::save({}, nowhere);
  REQUIRE_FALSE(saved);
  CHECK(saved.error().where == nowhere);
  CHECK(saved.error().message == "cannot be written: No such file or directory");
  const auto loaded = trace::load_json_lines(nowhere);
  REQUIRE_FALSE(loaded);
  CHECK(loaded.error().message == "cannot be opened: No such file or directory");
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
