// SPDX-License-Identifier: MIT
// Hints are fixes: the edits of a finding are made, and the result is what the finding says it is.
#include "checked.hpp"
#include "support/sanitizer.hpp"

#include <algorithm>
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

/// The first finding whose hint is a fix; null if there is none.
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

TEST_CASE("a change after which an expectation fails fixes nothing") {
  const auto text = mended_text(kRelay, report_of(kRelay).findings.at(0).edits);
  CHECK(report_of(text + "expect gpu2.b == old gpu0.b\n").proved());
  const auto wrong = report_of(text + "expect gpu2.b == old gpu1.b\n");
  CHECK(wrong.verdict() == Verdict::refuted);
  CHECK(has(wrong, "wrong-result"));
}

TEST_CASE("the first hint fixes most mistakes, and each hint says how many findings remain") {
  std::vector<std::filesystem::path> mistakes;
  for (const auto& file : std::filesystem::directory_iterator(SDMA_SOURCE_ROOT "/tests/check/mistakes"))
    mistakes.push_back(file.path());
  REQUIRE(mistakes.size() >= 40);
  std::sort(mistakes.begin(), mistakes.end());
  // With a sanitizer, evenly among the names.
  const auto most = sdma::test::tries(mistakes.size());
  std::size_t files = 0, first = 0;
  for (std::size_t i = 0; i < most; ++i) {
    const auto& file = mistakes[i * mistakes.size() / most];
    std::ifstream in(file);
    std::stringstream text;
    text << in.rdbuf();
    const auto r = report_of(text.str());
    INFO(file.filename());
    INFO(said(r));
    CHECK(r.verdict() == Verdict::refuted);
    const auto* f = mended(r);
    ++files;
    if (!f) continue;
    INFO(f->diagnostic.hint);
    const auto after = report_of(mended_text(text.str(), f->edits), {.max_findings = 0, .max_mended = 0});
    CHECK(after.errors() + after.warnings() == *f->remaining);
    first += after.proved();
  }
  CHECK(files == most);
  if (most == mistakes.size()) CHECK(first * 5 >= files * 4);
}

const std::string kSlot = R"(sdma 1
gpus 2
buffer gpu0.first bytes=4K init=random
buffer gpu0.second bytes=4K init=random
buffer gpu1.slot bytes=4K
buffer gpu1.a bytes=4K
buffer gpu1.b bytes=4K
signal host.full value=0
signal host.read value=0
queue gpu0.put peer=gpu1
  copy_linear bytes=4K src=gpu0.first dst=gpu1.slot
  atomic op=add_rtn_64 addr=host.full value=1
  copy_linear bytes=4K src=gpu0.second dst=gpu1.slot
  atomic op=add_rtn_64 addr=host.full value=1
end
queue gpu1.take engine=5
  poll_mem addr=host.full func=ge reference=1
  copy_linear bytes=4K src=gpu1.slot dst=gpu1.a
  atomic op=add_rtn_64 addr=host.read value=1
  poll_mem addr=host.full func=ge reference=2
  copy_linear bytes=4K src=gpu1.slot dst=gpu1.b
  atomic op=add_rtn_64 addr=host.read value=1
end
host main
  submit *
  wait host.read == 2
end
)";

TEST_CASE("a message that the reader has waited for is not overwritten: the hint is a credit") {
  const auto r = report_of(kSlot);
  REQUIRE(!r.findings.empty());
  CHECK(r.findings[0].diagnostic.message == "gpu0.put may overwrite gpu1.slot before gpu1.take has read it");
  for (const auto& f : r.findings) {
    REQUIRE(f.remaining == 0u);
    const auto mended = report_of(mended_text(kSlot, f.edits));
    CHECK(mended.proved());
    CHECK(mended.unread.empty());
  }
}

TEST_CASE("where either of two copies may be the last, the hint says which message nothing reads") {
  const auto text = R"(sdma 1
gpus 3
buffer gpu*.b bytes=4K init=random
signal host.done value=0
queue gpu0.put peer=gpu1
  copy_linear bytes=4K src=gpu0.b dst=gpu1.b
  atomic op=add_rtn_64 addr=host.done value=1
end
queue gpu2.put peer=gpu1
  copy_linear bytes=4K src=gpu2.b dst=gpu1.b
  atomic op=add_rtn_64 addr=host.done value=1
end
host main
  submit *
  wait host.done == 2
end
)";
  const auto r = report_of(text);
  const auto* f = mended(r);
  REQUIRE(f);
  CHECK(f->remaining == 0u);
  CHECK(f->diagnostic.hint.find("; nothing then reads what this copies: copy_linear") != std::string::npos);
  const auto after = report_of(mended_text(text, f->edits));
  CHECK(after.proved());
  CHECK(after.unread.size() == 1);
}

/// For each of N GPUs: a queue that waits, and one on which it waits, towards the same peer.
std::string on_one_engine(const std::string& first, const std::string& second, int gpus = 4) {
  return "sdma 1\nparam N = " + std::to_string(gpus) +
         "\ngpus N\nbuffer gpu*.b bytes=N*4K init=random\nsignal gpu*.go value=0\nsignal host.done value=0\n"
         "for i in 0..N\n  let p = (i+1)%N\n" +
         first + second + "end\nhost main\n  submit *\n  wait host.done == N\nend\n";
}
const std::string kSends =
    "  queue gpu{i}.send peer=gpu{p}\n    copy_linear bytes=4K src=gpu{i}.b dst=gpu{p}.b[4K]\n"
    "    fence addr=gpu{i}.go value=1\n  end\n";
const std::string kWaits =
    "  queue gpu{i}.on peer=gpu{p}\n    poll_mem addr=gpu{i}.go func=ge reference=1\n"
    "    copy_linear bytes=4K src=gpu{i}.b dst=gpu{p}.b[8K]\n    atomic op=add_rtn_64 addr=host.done value=1\n  end\n";

TEST_CASE("queues that wait for each other on one engine get engines, each header in terms of what it has") {
  const auto text = on_one_engine(kSends, kWaits);
  const auto r = report_of(text);
  REQUIRE(has(r, "engine-wait"));
  REQUIRE(!r.engine_plans.empty());
  CHECK(r.engine_plans[0].queues.size() == 8);
  const auto& f = r.findings.at(0);
  CHECK(f.remaining == 0u);
  const auto changed = mended_text(text, f.edits);
  // What does not wait keeps the engine that its peer recommends.
  CHECK(changed.find("queue gpu{i}.send peer=gpu{p}\n") != std::string::npos);
  CHECK(changed.find("queue gpu{i}.on peer=gpu{p} engine=") != std::string::npos);
  const auto after = report_of(changed);
  CHECK(after.proved());
  CHECK_FALSE(has(after, "shared-engine"));
  CHECK_FALSE(has(after, "engine-choice"));
}

TEST_CASE("a plan of engines also fits a node whose links share engines") {
  const auto node = *layout("mesh:64");
  CheckOptions o{.topology = &node};
  const auto text = on_one_engine(kSends, kWaits, 64);
  const auto r = report_of(text, o);
  REQUIRE(has(r, "engine-wait"));
  const auto& f = r.findings.at(0);
  REQUIRE(f.remaining == 0u);
  CHECK(report_of(mended_text(text, f.edits), o).proved());
}
