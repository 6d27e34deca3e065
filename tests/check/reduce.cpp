// SPDX-License-Identifier: MIT
// The smallest text that still has a finding: it has it, nothing of it can go, and it does not depend on settings.
#include "sdma/check/reduce.hpp"
#include "checked.hpp"

using namespace sdma;
using test::has;

namespace {

const std::string kGather =
    "sdma 1\n# forgets to wait for the last copies\nparam N = 2\nparam rounds = 3\ngpus N\nsignal host.unused value=0\n"
    "for i in 0..N\n  buffer gpu{i}.in bytes=4K init=random\n  buffer gpu{i}.out bytes=N*4K\nend\n"
    "signal host.done value=0\nfor i in 0..N\n  for j in [j for j in 0..N if j != i]\n    queue gpu{i}.to{j} peer=gpu{j}\n"
    "      copy_linear bytes=4K src=gpu{i}.in dst=gpu{j}.out[i*4K]\n"
    "      atomic op=add_rtn_64 addr=host.done value=1\n    end\n  end\nend\n"
    "host main\n  repeat rounds\n    submit *\n    wait host.done >= (N*(N-1)-1)*epoch\n  end\nend\n";

ReducedText least(const std::string& text, const ParseOptions& parse = {}, const ReduceOptions& o = {}) {
  auto r = reduce_text(text, "case.sdma", parse, {}, o);
  if (!r)
    for (const auto& e : r.error()) UNSCOPED_INFO(to_string(e));
  REQUIRE(r);
  return *std::move(r);
}

}  // namespace

TEST_CASE("what is left still has the finding, and little else") {
  const auto r = least(kGather, {.set = {{"N", "4"}}});
  INFO(r.text);
  CHECK(r.rule == "race");
  CHECK(r.least);
  CHECK(has(r.checked.report, r.rule));
  CHECK(r.original.queues.size() == 12);
  CHECK(r.checked.schedule.queues.size() == 1);
  CHECK(r.checked.schedule.buffers.size() <= 2);
  CHECK(r.lines_before == 24);
  CHECK(std::count(r.text.begin(), r.text.end(), '\n') <= 12);
  // It needs no settings, and reducing it again changes nothing.
  CHECK(has(test::checked_whole(r.text), r.rule));
  CHECK(least(r.text).text == r.text);
}

TEST_CASE("the finding is the one that is asked for, with its severity") {
  const auto r = least(kGather, {}, {.rule = "unawaited"});
  INFO(r.text);
  CHECK(r.rule == "unawaited");
  CHECK(has(r.checked.report, "unawaited"));
  CHECK_FALSE(has(r.checked.report, "race"));
  CHECK(least(kGather).rule == "race");
}

TEST_CASE("a wrong result is reduced to the copies that lead to it") {
  const std::string text =
      "sdma 1\ngpus 2\nbuffer gpu0.a bytes=64 init=random\nbuffer gpu0.b bytes=64\nbuffer gpu1.c bytes=64\n"
      "signal gpu0.w value=0 bits=32\nsignal host.done value=0\nqueue gpu0.q peer=gpu1\n"
      "copy_linear bytes=64 src=gpu0.a dst=gpu0.b\nfence addr=gpu0.w value=1\n"
      "poll_mem addr=gpu0.w func=eq reference=1\ncopy_linear bytes=32 src=gpu0.b dst=gpu1.c\n"
      "atomic op=add_rtn_64 addr=host.done value=1\nend\nhost main\nsubmit *\nwait host.done == 1\nend\n"
      "expect gpu0.b == gpu0.a\nexpect gpu1.c == gpu0.a\n";
  const auto r = least(text);
  INFO(r.text);
  CHECK(r.rule == "wrong-result");
  CHECK(r.checked.schedule.expectations.size() == 1);
}

TEST_CASE("the search is bounded by tries, and says so") {
  const auto r = least(kGather, {}, {.max_tries = 3});
  CHECK_FALSE(r.least);
  CHECK(r.tries == 3);
  CHECK(has(r.checked.report, r.rule));
  CHECK(least(kGather, {}, {.max_tries = 200}).tries <= 200);
}

TEST_CASE("a caller that ends the search gets the smallest text so far, which needs no settings") {
  for (const std::size_t most : {0u, 3u, 100u}) {
    const auto r = least(kGather, {}, {.proceed = [&](std::size_t tries) { return tries < most; }});
    INFO(most);
    CHECK_FALSE(r.least);
    CHECK(r.tries == most);
    CHECK(has(r.checked.report, r.rule));
  }
}

TEST_CASE("without the finding there is nothing to reduce") {
  const auto message = [](const std::string& text, const ReduceOptions& o) {
    const auto r = reduce_text(text, "case.sdma", {}, {}, o);
    REQUIRE_FALSE(r);
    return r.error().front().message;
  };
  const std::string good = "sdma 1\ngpus 1\nsignal host.x value=0\nhost main\nset host.x = 1\nwait host.x == 1\nend\n";
  CHECK(message(good, {}) == "the checker finds nothing wrong, so there is nothing to reduce");
  CHECK(message(kGather, {.rule = "deadlock"}) == "the checker does not find 'deadlock'");
  CHECK(message("sdma 1\ngpus x\n", {}).find("x") != std::string::npos);
}
