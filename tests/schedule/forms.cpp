// SPDX-License-Identifier: MIT
// What only a schedule has beside lists and conditions: params with words and lists, several signals in one action, the
// number of queues, and values that mean that a field is left out. And names that are used before they are declared.
#include "sdma/schedule/text.hpp"
#include "support/catch.hpp"

using namespace sdma;

namespace {

const std::string kFormsHead =
    "sdma 1\ngpus 2\nsignal host.go0 value=0\nsignal host.go1 value=0 bits=32\nsignal host.done value=0\n";

std::string flat(const std::string& text, std::vector<ParseOptions::Setting> set = {}) {
  const auto s = parse_schedule(text, "a", {.set = std::move(set)});
  if (s) return to_text(*s);
  std::string all;
  for (const auto& d : s.error()) all += d.where + ": " + d.message + (d.hint.empty() ? "" : " | " + d.hint) + "\n";
  return all;
}
std::string queues(const std::string& text, std::vector<ParseOptions::Setting> set = {}) {
  const auto all = flat("sdma 1\n" + text, std::move(set));
  const auto at = all.find("\nqueue ");
  return at == all.npos ? all : all.substr(at + 1);
}

}  // namespace

TEST_CASE("a param may be one of several words, which have numbers and stand in names") {
  const std::string text =
      "param way = fast of [slow, fast]\ngpus 1\nwhen way == fast: let unused = 1\nqueue gpu0.{way}{way+1} engine=way\nend\n";
  CHECK(queues(text) == "queue gpu0.fast2 engine=1\nend\n");
  CHECK(queues(text, {{"way", "slow"}}) == "queue gpu0.slow1 engine=0\nend\n");
  CHECK(queues(text, {{"way", "0"}}) == "queue gpu0.slow1 engine=0\nend\n");
  CHECK(queues(text, {{"way", "2"}}).starts_with("set way:1:1: 2 is not the number of a word"));
  CHECK(queues(text, {{"way", "fats"}})
            .starts_with("set way:1:1: 'fats' is not one of slow, fast | did you mean 'fast'?"));
  CHECK(queues("param way = fat of [slow, fast]\n").starts_with("a:2:13: 'fat' is not one of the words of 'way'"));
  CHECK(queues("let slow = 1\nparam way = slow of [slow]\n").starts_with("a:3:22: 'slow' is already defined"));
  CHECK(format_source("sdma 1\nparam  way=fast  of [ slow,fast ]\n") == "sdma 1\nparam way = fast of [slow, fast]\n");
}

TEST_CASE("a param may be a list") {
  const std::string text =
      "param engines = [3, 5]\ngpus 1\nfor k in 0..len(engines)\nqueue gpu0.q{k} engine=engines[k]\nend\nend\n";
  CHECK(queues(text) == "queue gpu0.q0 engine=3\nend\nqueue gpu0.q1 engine=5\nend\n");
  CHECK(queues(text, {{"engines", "7"}}) == "queue gpu0.q0 engine=7\nend\n");
  CHECK(queues(text, {{"engines", "[1, 2]"}}) == "queue gpu0.q0 engine=1\nend\nqueue gpu0.q1 engine=2\nend\n");
  CHECK(queues(text, {{"engines", "1,"}}).find("expected a number") != std::string::npos);
}

TEST_CASE("an action names all signals that begin so, and a thread knows how many queues there are") {
  const std::string body =
      "queue gpu0.a engine=0\nend\nqueue gpu0.b engine=0\nend\nhost main\n  submit *\n  repeat 2\n    set host.go* = epoch\n  end\n"
      "  wait host.done* >= 2*queues\nend\n";
  const auto all = flat(kFormsHead + body);
  CHECK(all.find("    set host.go0 = epoch\n    set host.go1 = epoch\n") != std::string::npos);
  CHECK(all.find("  wait host.done >= 4\n") != std::string::npos);
  CHECK(flat(kFormsHead + "host main\n  set host.stop* = 1\nend\n")
            .starts_with("a:7:7: no signal has a name that begins with 'host.stop'"));
  // Also if they come later.
  CHECK(flat("sdma 1\ngpus 2\n" + body.substr(body.find("host main")) + kFormsHead.substr(14) +
             body.substr(0, body.find("host main"))) == all);
  SourceMap map;
  const auto s = parse_schedule(kFormsHead + body, "a", {.map = &map});
  REQUIRE(s);
  CHECK(map.action(*s, s->hosts[0].actions[1].body[1]).line == 13);
  CHECK(map.action(*s, s->hosts[0].actions[2]).line == 15);
}

TEST_CASE("engine=-1 and ring=0 are as if they were not written") {
  CHECK(queues("gpus 2\nqueue gpu0.q peer=gpu1 engine=-1 ring=0\nend\n") == "queue gpu0.q peer=gpu1\nend\n");
  CHECK(queues("gpus 2\nqueue gpu0.q peer=gpu1 engine=2 ring=1K\nend\n") == "queue gpu0.q engine=2 ring=1K\nend\n");
  CHECK(queues("gpus 2\nqueue gpu0.q engine=-1\nend\n").starts_with("a:3:23: a queue needs 'peer=' or 'engine='"));
  CHECK(queues("gpus 2\nqueue gpu0.q engine=-2\nend\n").starts_with("a:3:21: 'engine' must be from -1 to 63, got -2"));
}

TEST_CASE("a long text is read as a short one is") {
  const std::string loop = "gpus 1\nfor k in 0..3\nqueue gpu0.q{k} engine=k\nend\nend\n", short_one = queues(loop);
  CHECK(short_one.starts_with("queue gpu0.q0 engine=0\n"));
  const std::string comment = "#" + std::string(100000, '-') + "\n";
  CHECK(queues(comment + loop) == short_one);
  CHECK(queues(std::string(65530, '\n') + loop) == short_one);
  CHECK(flat(comment + "sdma 1\n" + loop) == flat("sdma 1\n" + loop));
}

TEST_CASE("names may be used before they are declared, in any order of the lines") {
  const std::string ordered =
      "sdma 1\ngpus 2\nbuffer gpu0.a bytes=8 init=random\nbuffer gpu1.b bytes=8\nsignal host.done value=0\n"
      "queue gpu0.q peer=gpu1\n  copy_linear bytes=8 src=gpu0.a dst=gpu1.b\n  fence addr=host.done value=1\nend\n"
      "host main\n  submit gpu0.q\n  wait host.done == 1\nend\nexpect gpu1.b == old gpu0.a\n";
  const std::string turned =
      "sdma 1\ngpus 2\nexpect gpu1.b == old gpu0.a\nhost main\n  submit *\n  wait host.done == 1\nend\n"
      "queue gpu0.q peer=gpu1\n  copy_linear bytes=8 src=gpu0.a dst=gpu1.b\n  fence addr=host.done value=1\nend\n"
      "buffer gpu0.a bytes=8 init=random\nbuffer gpu1.b bytes=8\nsignal host.done value=0\n";
  CHECK(flat(ordered) == ordered);
  CHECK(flat(turned) == ordered);
}
