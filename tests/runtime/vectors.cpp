// SPDX-License-Identifier: MIT
// The dwords of integration/runtime are those that ROCr wrote; a difference and a line that cannot be read are named.
#include "integration/runtime/vectors.hpp"

#include "sdma/core/file.hpp"
#include "support/catch.hpp"

#include <map>
#include <set>

using namespace runtime;

namespace {

std::string sample() {
  const auto text = sdma::read_file(SDMA_SOURCE_ROOT "/tests/runtime/sample.txt");
  REQUIRE(text);
  return *text;
}
const std::string kLine =
    "isa=gfx942 atomics=1 xgmi=1 cap=0 profiling=0 leads=0 kind=copy dst=0x5960033f3f4c src=0xaa943b1d97b bytes=19 "
    "deps=9:0, out=0:1 mailbox=0 event=2514 => 0 00000001 00000012 00000000 43b1d97b 00000aa9 033f3f4c 00005960 "
    "5e00000a 00000008 00006000 ffffffff ffffffff 00000000 00000000 00000000";

std::string changed(std::string from, const std::string& to) {
  auto line = kLine;
  line.replace(line.find(from), from.size(), to);
  return line;
}

}  // namespace

TEST_CASE("each command of the sample is equal in every dword", "[vectors]") {
  const auto all = read_vectors("sample.txt", sample());
  REQUIRE(all);
  std::map<std::string, std::set<std::string>> kinds;
  for (const auto& v : *all) {
    const auto d = compare(v);
    CHECK((d ? to_string(v, *d) : "") == "");
    kinds[v.isa].insert(v.kind);
  }
  CHECK(kinds.size() == 8);
  for (const auto& [isa, of] : kinds) CHECK(of.size() == 4);
}

TEST_CASE("a difference says which dword, or which length", "[vectors]") {
  const auto said = [](const std::string& line) {
    const auto all = read_vectors("x", "# a comment\n\n" + line + "\n");
    REQUIRE(all);
    REQUIRE(all->size() == 1);
    const auto d = compare(all->front());
    return d ? to_string(all->front(), *d) : "";
  };
  CHECK(said(kLine) == "");
  CHECK(said(changed("00000012", "00000013")) == "line 3: copy on gfx942: dword 1 is 0x00000013, and 0x00000012 here");
  CHECK(said(kLine + " 0") == "line 3: copy on gfx942: 16 dwords, and 15 here");
  CHECK(said(changed("=> 0 ", "=> 4097 ")) ==
        "line 3: copy on gfx942: the runtime refused it, and this path writes it");
  CHECK(said(changed("bytes=19", "bytes=0")) == "line 3: copy on gfx942: this path refuses it");
  CHECK(said("isa=gfx942 atomics=1 xgmi=1 cap=0 profiling=0 leads=0 kind=copy dst=1 src=1 bytes=0 out=0:1 mailbox=0 "
             "event=1 => 4097") == "");
}

TEST_CASE("a line that cannot be read is named, with the word", "[vectors]") {
  const auto word = [](const std::string& line) {
    const auto all = read_vectors("x", kLine + "\n" + line);
    REQUIRE_FALSE(all);
    CHECK(all.error().where == "x:2");
    return all.error().message.substr(0, all.error().message.find(" is missing"));
  };
  CHECK(word(changed("isa=gfx942", "isa=gfx803")) == "\"isa=gfx803\"");
  CHECK(word(changed("kind=copy", "kind=swap")) == "\"kind=swap\"");
  CHECK(word(changed("bytes=19", "bytes=many")) == "\"bytes=many\"");
  CHECK(word(changed("out=0:1 ", "")) == "\"out=\"");
  CHECK(word(changed("deps=9:0", "deps=9:z")) == "\"deps=z\"");
  CHECK(word(changed("00000aa9", "100000aa9")) == "\"100000aa9\"");
  CHECK(word(kLine.substr(0, kLine.find(" =>"))) == "\"=>\"");
  CHECK(word(changed("leads=0", "leads")) == "\"leads\"");
}
