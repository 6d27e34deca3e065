// SPDX-License-Identifier: MIT
// Hints mend: the edits of a finding are made, and the result is what the finding says it is.
#include "checked.hpp"

#include <filesystem>
#include <fstream>
#include <sstream>

using namespace sdma;
using sdma::test::has, sdma::test::said;

namespace {

std::string mended_text(const std::string& text, const std::vector<CheckEdit>& edits) {
  std::vector<std::string> lines;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  for (auto e = edits.rbegin(); e != edits.rend(); ++e) {
    const auto at = lines.begin() + static_cast<std::ptrdiff_t>(e->line) - 1;
    if (e->kind == CheckEdit::Kind::insert) lines.insert(at, e->text);
    else if (e->kind == CheckEdit::Kind::replace) *at = e->text;
    else lines.erase(at);
  }
  std::string out;
  for (const auto& l : lines) out += l + "\n";
  return out;
}

CheckReport report_of(const std::string& text, const CheckOptions& o = {}) {
  const auto c = check_text(text, "case.sdma", {}, o);
  if (!c)
    for (const auto& e : c.error()) UNSCOPED_INFO(to_string(e));
  REQUIRE(c);
  return c->report;
}

/// The first finding whose hint is mended; null if there is none.
const CheckFinding* mended(const CheckReport& r) {
  for (const auto& f : r.findings)
    if (f.remaining) return &f;
  return nullptr;
}

const std::string kRelay = R"(sdma 1
gpus 3
buffer gpu*.b bytes=4K init=random
signal gpu1.here value=0 bits=32
signal host.done value=0
queue gpu0.one peer=gpu1
  copy_linear bytes=4K src=gpu0.b dst=gpu1.b
  fence addr=gpu1.here value=1
end
queue gpu1.two peer=gpu2
  copy_linear bytes=4K src=gpu1.b dst=gpu2.b
  atomic op=add_rtn_64 addr=host.done value=1
end
host main
  submit *
  wait host.done == 1
end
)";

}  // namespace

TEST_CASE("the hint of a missing wait is a line after which the schedule is proved") {
  const auto r = report_of(kRelay);
  REQUIRE(!r.findings.empty());
  const auto& f = r.findings[0];
  REQUIRE(f.edits.size() == 1);
  CHECK(f.remaining == 0u);
  CHECK(f.edits[0].line == 11);
  CHECK(f.diagnostic.hint ==
        "before line 11 insert: poll_mem addr=gpu1.here func=eq reference=1; with this line the schedule is proved");
  CHECK(report_of(mended_text(kRelay, f.edits)).proved());
}

TEST_CASE("without a budget, hints are not tried") {
  const auto r = report_of(kRelay, {.max_mended = 0});
  CHECK(mended(r) == nullptr);
  CHECK(r.findings[0].diagnostic.hint.find("line 8 announces it") == 0);
}

TEST_CASE("a change after which an expectation fails mends nothing") {
  const auto text = mended_text(kRelay, report_of(kRelay).findings.at(0).edits);
  CHECK(report_of(text + "expect gpu2.b == old gpu0.b\n").proved());
  const auto wrong = report_of(text + "expect gpu2.b == old gpu1.b\n");
  CHECK(wrong.verdict() == Verdict::refuted);
  CHECK(has(wrong, "wrong-result"));
}

TEST_CASE("the first hint mends most mistakes, and each hint says how many findings remain") {
  std::size_t files = 0, first = 0;
  for (const auto& file : std::filesystem::directory_iterator(SDMA_SOURCE_ROOT "/tests/check/mistakes")) {
    std::ifstream in(file.path());
    std::stringstream text;
    text << in.rdbuf();
    const auto r = report_of(text.str());
    INFO(file.path().filename());
    INFO(said(r));
    CHECK(r.verdict() == Verdict::refuted);
    const auto* f = mended(r);
    ++files;
    if (!f) continue;
    INFO(f->diagnostic.hint);
    const auto after = report_of(mended_text(text.str(), f->edits), {.max_mended = 0});
    CHECK(after.errors() + after.warnings() == *f->remaining);
    first += after.proved();
  }
  CHECK(files >= 40);
  CHECK(first * 5 >= files * 4);
}
