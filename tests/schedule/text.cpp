// SPDX-License-Identifier: MIT
#include "sdma/schedule/text.hpp"

#include "support/catch.hpp"

#include <filesystem>
#include <fstream>
#include <sstream>

using namespace sdma;

namespace {

namespace fs = std::filesystem;

const fs::path& source_root() {
  static const fs::path root = SDMA_SOURCE_ROOT;
  return root;
}
std::string read(const fs::path& p) {
  std::ifstream f(p);
  REQUIRE(f);
  std::stringstream s;
  s << f.rdbuf();
  return s.str();
}
std::vector<fs::path> files(const char* folder) {
  std::vector<fs::path> all;
  for (const auto& f : fs::directory_iterator(source_root() / folder))
    if (f.path().extension() == ".sdma") all.push_back(f.path());
  REQUIRE(all.size() >= 8);
  return all;
}
Schedule parse(const std::string& text, const ParseOptions& o = {}) {
  auto s = parse_schedule(text, "t", o);
  if (!s) {
    for (const auto& e : s.error()) UNSCOPED_INFO(to_string(e));
    FAIL(text);
  }
  return *std::move(s);
}

}  // namespace

TEST_CASE("FLAT is its own text, and what was parsed") {
  for (const auto& file : files("tests/schedule/golden")) {
    INFO(file);
    const auto flat = read(file);
    const auto s = parse(flat);
    CHECK(problems(s).empty());
    CHECK(to_text(s) == flat);
    CHECK(format_source(flat) == flat);
  }
}

TEST_CASE("the examples mean what their golden FLAT says") {
  for (const auto& file : files("examples/schedules")) {
    INFO(file);
    CHECK(to_text(parse(read(file))) == read(source_root() / "tests/schedule/golden" / file.filename()));
  }
}

TEST_CASE("the examples survive their text for every number of GPUs, and are laid out") {
  for (const auto& file : files("examples/schedules")) {
    const auto text = read(file);
    CHECK(format_source(text) == text);
    if (text.find("param N") == text.npos) continue;
    for (int n = 2; n <= 8; ++n) {
      INFO(file << " N=" << n);
      const auto s = parse(text, {.set = {{"N", std::to_string(n)}}});
      CHECK(s.gpus == static_cast<std::uint32_t>(n));
      CHECK(problems(s).empty());
      CHECK(parse(to_text(s)) == s);
    }
  }
}

TEST_CASE("names may be used before they are declared, also in loops") {
  const auto s = parse(
      "sdma 1\ngpus 2\nhost main\n  submit gpu1.q1\nend\nexpect host.b1 == host.b0\n"
      "buffer host.c bytes=4 at=host.d\nfor i in 0..2\n  queue gpu{i}.q{i} engine=0\n  end\n"
      "  buffer host.b{i} bytes=4\nend\nbuffer host.d bytes=4\n");
  REQUIRE(s.hosts.size() == 1);
  CHECK(s.hosts[0].actions[0].queues == std::vector<std::size_t>{1});
  CHECK(s.buffers[0].at == link_buffer(3));
}

TEST_CASE("loops, lets and splices; what a round defines is forgotten") {
  const auto s = parse(
      "sdma 1\nlet n = 3\nfor i in 0..n\n  for j in i+1..n\n    let k = i*10+j\n"
      "    buffer host.b{k} bytes=k\n  end\nend\nfor i in 5..5\n  buffer nonsense %%\nend\n");
  REQUIRE(s.buffers.size() == 3);
  CHECK(s.buffers[0].name == "b1");
  CHECK(s.buffers[2].name == "b12");
  CHECK(s.buffers[2].bytes == 12);
}

TEST_CASE("samples keep their names, and what is added to them its sign") {
  const auto s = parse(
      "sdma 1\ngpus 1\nsignal host.x value=0\nsignal host.y value=0 bits=32\nhost main\n  for i in 0..2\n    sample "
      "n{i} = host.x\n"
      "    wait host.x >= i + n{i}\n  end\n  repeat 2\n    sample m = host.y\n    set host.y = m - 1\n    add host.x "
      "+= 2*epoch + n1 - 3\n"
      "    wait host.y != m - epoch\n    wait host.x > n0 + epoch\n  end\nend\nkernel gpu0.k\n  sample n = host.x "
      "scope=agent\n  set host.x = n\nend\n");
  CHECK(problems(s).empty());
  const std::string flat =
      "sdma 1\ngpus 1\nsignal host.x value=0\nsignal host.y value=0 bits=32\nhost main\n  sample n0 = host.x\n  wait "
      "host.x >= n0\n"
      "  sample n1 = host.x\n  wait host.x >= n1+1\n  repeat 2\n    sample m = host.y\n    set host.y = m-1\n    add "
      "host.x += n1+2*epoch-3\n"
      "    wait host.y != m-epoch\n    wait host.x > n0+epoch\n  end\nend\nkernel gpu0.k\n  sample n = host.x "
      "scope=agent\n  set host.x = n\nend\n";
  CHECK(to_text(s) == flat);
  CHECK(parse(flat) == s);
  CHECK(s.hosts[0].actions[3].value == sampled("n1") + 1);
  CHECK(s.hosts[0].actions[4].body[2].value == sampled("n1") + (2 * kEpoch - 3));
  CHECK((sampled("n") - 5).at(9, 7) == 2);
  CHECK((sampled("n") + kEpoch).at(9, 7) == 16);
}

TEST_CASE("times repeats a packet and what depends on its epoch") {
  const auto s = parse(
      "sdma 1\ngpus 1\nsignal host.w value=0\nqueue gpu0.q engine=0\n"
      "  fence addr=host.w value=epoch times=3\nend\n");
  REQUIRE(s.queues[0].epochs.size() == 3);
  CHECK(s.queues[0].epochs[2].packet == 8);
  CHECK(parse(to_text(s)) == s);
}

TEST_CASE("gpu* is a line for each GPU, on both sides of an expectation") {
  const auto s = parse(
      "sdma 1\ngpus 3\nbuffer gpu*.a bytes=8\nbuffer gpu*.b bytes=8\nexpect gpu*.a == old gpu*.b\n"
      "expect gpu*.a == gpu0.b\n");
  REQUIRE(s.expectations.size() == 6);
  CHECK(s.expectations[2].left.va == link_buffer(2));
  CHECK(s.expectations[2].right.va == link_buffer(5));
  CHECK(s.expectations[5].right.va == link_buffer(3));
}

TEST_CASE("a layout changes blanks and nothing else") {
  const std::string messy =
      "sdma   1 # version\n\n\n\nparam  N=2*( 1 + 0 )\n   gpus N\nbuffer gpu*.a   bytes = N * 4K  init = random\n"
      "signal host.s value= -1\nfor i in 0 .. N\nqueue gpu{ i }.q engine=0      # a comment\n# alone\n"
      "write dst = gpu{i}.a[ 8 * i ] data = [ 0x1 * 4 -1\n -2 ]\nfence addr=host.s value=epoch - 1\nend\nend\n"
      "host main\nsubmit *\nrepeat 2\nset host.s=epoch\nwait host.s>=epoch\nend\nend\nexpect host.s==-1\n\n\n";
  const std::string neat =
      "sdma 1   # version\n\nparam N = 2*(1+0)\ngpus N\nbuffer gpu*.a bytes=N*4K init=random\n"
      "signal host.s value=-1\nfor i in 0..N\n  queue gpu{i}.q engine=0      # a comment\n    # alone\n"
      "    write dst=gpu{i}.a[8*i] data=[0x1*4 -1\n        -2]\n    fence addr=host.s value=epoch-1\n  end\nend\n"
      "host main\n  submit *\n  repeat 2\n    set host.s = epoch\n    wait host.s >= epoch\n  end\nend\n"
      "expect host.s == -1\n";
  CHECK(format_source(messy) == neat);
  CHECK(format_source(neat) == neat);
  CHECK(parse(messy) == parse(neat));
}

TEST_CASE("the schedule that the page shows is one") {
  const auto page = read(source_root() / "docs/schedules.md");
  const auto begin = page.find("```\n") + 4;
  const auto text = page.substr(begin, page.find("```", begin) - begin);
  CHECK(format_source(text) == text);
  CHECK(parse(text).queues.size() == 4);
}

namespace {

/// The values of the signals that lines declare, in their order: "1 2 3".
std::string values(const std::string& lines, const ParseOptions& o = {}) {
  std::string out;
  for (const auto& g : parse("sdma 1\n" + lines, o).signals) out += (out.empty() ? "" : " ") + std::to_string(g.value);
  return out;
}

}  // namespace

TEST_CASE("a loop goes through a list, or through the numbers of a file") {
  CHECK(values("for b in [41, 7, 63]\nsignal host.s{b} value=b\nend\n") == "41 7 63");
  CHECK(values("param n = 3\nfor b in [n, n+1,\n  # the last\n  2*(n)]\nsignal host.s{b} value=b\nend\n") == "3 4 6");
  CHECK(values("for b in []\nsignal host.s{b} value=b\nend\nsignal host.x value=9\n") == "9");
  CHECK(values("for a in [1, 2]\nfor b in [a, 10*a]\nsignal host.s{a}_{b} value=b\nend\nend\n") == "1 10 2 20");
  ParseOptions o;
  o.read = [](const std::string& name) -> Result<std::string, Diagnostic> {
    if (name == "blocks.txt") return std::string("41, 7 # two\n\n63\r\n1K\n");
    return Diagnostic{.where = name, .message = "cannot be opened", .hint = "a hint"};
  };
  CHECK(values("for b in file(\"blocks.txt\")\nsignal host.s{b} value=b\nend\n", o) == "41 7 63 1024");
  // A name of the text's own wins.
  CHECK(values("let file = 1\nfor b in file..3\nsignal host.s{b} value=b\nend\n", o) == "1 2");
}

TEST_CASE("a table has the numbers of a file in rows and columns") {
  int read = 0;
  ParseOptions o;
  o.read = [&](const std::string& name) -> Result<std::string, Diagnostic> {
    ++read;
    if (name == "moe.csv") return std::string("# bytes\n0, 4K,  2\r\n\n-3,1,5\n");
    if (name == "column") return std::string("1\n2\n3");
    if (name == "uneven") return std::string("1, 2\n3\n");
    return std::string("# nothing\n");
  };
  const auto of = [&](const std::string& lines) { return values("let t = table(\"moe.csv\")\n" + lines, o); };
  const auto number = [&](const std::string& v) { return of("signal host.s value=" + v + "\n"); };
  CHECK(number("table(\"moe.csv\")[0, 1]") == "4096");
  CHECK(number("t[1, 2]") == "5");
  CHECK(number("len(t)*10+len(t[0])") == "23");
  CHECK(number("sum(t[0])") == "4098");
  CHECK(number("sum(t[1, 0..2])+3") == "1");
  CHECK(number("sum(t[0..2, 2])") == "7");
  CHECK(number("sum(t)+0") == "4101");
  CHECK(number("max(t[0..2, 1..3])") == "4096");
  CHECK(number("table(\"column\")[2, 0]") == "3");
  CHECK(number("file(\"column\")[2]") == "3");
  CHECK(of("for i in 0..len(t)\nfor v in t[i]\nsignal host.s{i}_{v+9} value=v+3\nend\nend\n") == "3 4099 5 0 4 8");
  read = 0;
  CHECK(values("for i in 0..9\nsignal host.s{i} value=table(\"column\")[i%3, 0]\nend\n", o) == "1 2 3 1 2 3 1 2 3");
  CHECK(read == 1);
  o.set = {{"t", "table(\"column\")"}};
  CHECK(values("param t = table(\"moe.csv\")\nsignal host.s value=t[2, 0]\n", o) == "3");
}

TEST_CASE("a condition is read again whenever one of its names may have changed") {
  const auto s = parse(R"(sdma 1
param P = 1
gpus 1
for i in 0..3
  let a = i
  for k in 0..2
    when a == k: signal gpu0.a{i}_{k} value=0
    when P == 1: signal gpu0.p{i}_{k} value=0
    if i+P == 2
      signal gpu0.s{i}_{k} value=0
    else if len([n for n in 0..k]) == i
      signal gpu0.l{i}_{k} value=0
    end
  end
end
)");
  std::string names;
  for (const auto& signal : s.signals) names += signal.name + " ";
  CHECK(names == "a0_0 p0_0 l0_0 p0_1 p1_0 s1_0 a1_1 p1_1 s1_1 p2_0 p2_1 ");
}

TEST_CASE("of an if, the branch that holds is read") {
  const auto chosen = [](const std::string& n) {
    return values(
        "param n = 0\nif n < 2\nsignal host.a value=1\nelse if n == 2\nsignal host.b value=2\nelse\nsignal "
        "host.c value=3\nend\n",
        {.set = {{"n", n}}});
  };
  CHECK(chosen("1") == "1");
  CHECK(chosen("2") == "2");
  CHECK(chosen("3") == "3");
  struct Condition {
    const char* text;
    bool holds;
  };
  for (const auto& [text, holds] :
       {Condition{"1 == 1", true}, Condition{"1 == 2", false}, Condition{"1 != 2", true}, Condition{"2 != 2", false},
        Condition{"1 < 2", true}, Condition{"2 < 2", false}, Condition{"2 <= 2", true}, Condition{"3 <= 2", false},
        Condition{"3 > 2", true}, Condition{"2 > 2", false}, Condition{"2 >= 2", true}, Condition{"1 >= 2", false}}) {
    INFO(text);
    CHECK(values("if " + std::string(text) + "\nsignal host.a value=1\nend\n") == (holds ? "1" : ""));
    CHECK(values("if " + std::string(text) + "\nelse\nsignal host.a value=1\nend\n") == (holds ? "" : "1"));
  }
  // Nested, in loops, in queues and in hosts; names of a branch end with it.
  CHECK(values("for k in 0..4\nif k % 2 == 1\nlet x = 10*k\nif k == 3\nsignal host.s{k} value=x\nend\nelse\nlet x = "
               "k\nsignal host.s{k} value=x\nend\nend\n") == "0 2 30");
  const auto s = parse(
      "sdma 1\ngpus 2\nsignal host.a value=0\nqueue gpu0.q peer=gpu1\nfor k in 0..3\nif k > 0\nfence addr=host.a "
      "value=k\nelse\nnop\nend\nend\nend\nhost main\nif 1 > 0\nsubmit *\nelse\nset host.a = 1\nend\nend\n");
  CHECK(s.queues[0].dwords.size() == 1 + 2 * 4);
  REQUIRE(s.hosts[0].actions.size() == 1);
  CHECK(s.hosts[0].actions[0].kind == Schedule::Action::Kind::submit);
  // What is not chosen is not evaluated.
  CHECK(values("param n = 0\nif n == 0\nsignal host.a value=1\nelse if 4/n > 1\nend\n") == "1");
}
