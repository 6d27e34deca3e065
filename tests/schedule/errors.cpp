// SPDX-License-Identifier: MIT
#include "sdma/schedule/text.hpp"
#include "support/catch.hpp"

#include <fmt/format.h>

#include <sstream>

using namespace sdma;

namespace {

std::vector<Diagnostic> errors_of(const std::string& text, const ParseOptions& o = {}) {
  auto s = parse_schedule(text, "a.sdma", o);
  return s ? std::vector<Diagnostic>{} : std::move(s.error());
}

/// All errors of a text, each as "line:column: message | hint".
std::string all(const std::string& text, const ParseOptions& o = {}) {
  std::string out;
  for (const auto& e : errors_of(text, o)) {
    const std::string where = e.where.starts_with("a.sdma:") ? e.where.substr(7) : e.where;
    out += (out.empty() ? "" : "\n") + where + ": " + e.message + (e.hint.empty() ? "" : " | " + e.hint);
  }
  return out;
}

const std::string kHead =
    "sdma 1\ngpus 2\nbuffer gpu0.buf bytes=64K\nsignal host.done value=0 bits=32\nqueue gpu0.q peer=gpu1\n";
std::string in_queue(const std::string& line) {
  return kHead + line + "\nend\nbuffer gpu1.buf bytes=64K\nhost main\n  submit *\nend\n";
}
std::string in_host(const std::string& line) { return kHead + "end\nhost main\n" + line + "\nend\n"; }

}  // namespace

TEST_CASE("the twelve errors of the language, each with its place and its hint") {
  CHECK(all("sdma 1\ngpus 2\nbuffer gpu0.buf bytes=64KB\n") ==
        "3:23: '64KB' is not a number | write 4096, 0x1000, 4K, 1M or 2G (powers of 1024)");
  CHECK(all("sdma 1\ngpus 2\nbuffer gpu2.buf bytes=64K\n") ==
        "3:8: gpu2 is not in this schedule: gpus 2 | use gpu0 to gpu1");
  CHECK(all(in_queue("  copy_liner bytes=4K src=gpu0.buf dst=gpu1.buf")) ==
        "6:3: expected a packet or 'end', got 'copy_liner' | did you mean 'copy_linear'?");
  CHECK(all(in_queue("  copy_linear size=4K src=gpu0.buf dst=gpu1.buf"))
            .starts_with(
                "6:15: copy_linear has no field 'size' | did you mean 'bytes'? its fields: bytes src dst encrypt"));
  CHECK(all(in_queue("  copy_linear bytes=4K src=gpu0.buf")) ==
        "6:36: copy_linear needs 'dst=' | required: bytes src dst");
  CHECK(all(in_queue("  copy_linear bytes=4K src=buf dst=gpu1.buf")) ==
        "6:28: expected an address, got 'buf' | a name includes its place: gpu0.buf or host.buf");
  CHECK(all(in_queue("  copy_linear bytes=4K src=gpu0.buf dst=gpu1.bfu")) ==
        "6:41: 'gpu1.bfu' is not declared | did you mean 'gpu1.buf'?");
  CHECK(all(in_queue("  copy_linear bytes=4K src=gpu0.buf[62K] dst=gpu1.buf")) ==
        "6:28: copy_linear accesses 4K bytes at gpu0.buf[62K], but gpu0.buf has 64K | gpu0.buf is declared on line 3");
  CHECK(all(in_queue("  atomic op=add_rtn_64 addr=host.done value=1")) ==
        "6:29: atomic accesses 8 bytes at host.done, but host.done has 4 | a 64-bit operation needs bits=64 on line 4");
  CHECK(all(in_queue("  copy_linear bytes=4K src=gpu0.buf dst=gpu1.buf dw1|=0x80"))
            .ends_with(": bit 7 of dword 1 is not reserved in copy_linear | it belongs to 'bytes'"));
  CHECK(all(kHead + "  fence addr=host.done value=1\nhost main\n  submit *\nend\n") ==
        "7:1: 'host' inside a queue | 'queue' on line 5 has no 'end'");
  CHECK(all(in_host("  wait host.done = 1")) ==
        "8:18: expected one of == != < <= > >=, got '=' | '==' compares; '=' belongs to set");
}

TEST_CASE("an error shows its line, a caret below the place, and where a loop stands") {
  const auto found = errors_of(
      "sdma 1\ngpus 2\nbuffer gpu*.buf bytes=4K\nfor i in 0..2\n  queue gpu{i}.q peer=gpu{1-i}\n"
      "    copy_linear bytes=4K src=gpu{i}.buf[i] dst=gpu{1-i}.buf\n  end\nend\n");
  REQUIRE(found.size() == 1);
  CHECK(to_string(found[0]) ==
        "a.sdma:6:30: error: copy_linear accesses 4K bytes at gpu1.buf[1], but gpu1.buf has 4K [i=1]\n"
        "  6 |     copy_linear bytes=4K src=gpu{i}.buf[i] dst=gpu{1-i}.buf\n"
        "    |                              ^\n"
        "  hint: gpu1.buf is declared on line 3");
}

TEST_CASE("versions, and texts that are no schedules") {
  CHECK(all("") ==
        "1:1: expected 'sdma 1', got the end of the text | the first line of a schedule is its version; to read a "
        "stream of packets, use sdma as");
  CHECK(all("fence addr=0 value=1\n").starts_with("1:1: expected 'sdma 1', got 'fence'"));
  CHECK(all("# old\n\nsdma 2\n") ==
        "3:6: this is version 2 of the language, but this program reads version 1 | use a later release of sdma; sdma "
        "--version prints the version of this one");
  CHECK(all("sdma\n") == "1:5: expected 'sdma 1' and the end of the line");
  CHECK(all("sdma 1 2\n") == "1:8: expected 'sdma 1' and the end of the line");
  CHECK(all("sdma 1\nsdma 1\n") == "2:1: the version appears only once, on the first line");
  CHECK_FALSE(is_schedule("# a comment\nnop\n"));
  CHECK(is_schedule("# a comment\n\n  sdma 1\n"));
}

TEST_CASE("declarations say what they miss") {
  CHECK(all("sdma 1\nbufer gpu0.x bytes=1\n") ==
        "2:1: expected a declaration or 'end', got 'bufer' | did you mean 'buffer'?");
  CHECK(all("sdma 1\nfence addr=0 value=0\n") ==
        "2:1: expected a declaration or 'end', got 'fence' | packets belong in a "
        "queue: queue gpu0.name peer=gpu1 ... end");
  CHECK(all("sdma 1\nend\n") == "2:1: 'end' without 'for', 'if', 'queue', 'host' or 'kernel'");
  CHECK(all("sdma 1\nbuffer gpu0.x bytes=1\n") ==
        "2:8: gpu0 is not in this schedule, which has no GPUs yet | declare them first: gpus 2");
  CHECK(all("sdma 1\ngpus 2\ngpus 2\n") == "3:1: duplicate 'gpus' | the first is on line 2");
  CHECK(all("sdma 1\ngpus = 2\n") == "2:6: expected a number, got '=' | write gpus 8");
  const std::string queue = "sdma 1\ngpus 2\nbuffer gpu0.a bytes=8\nqueue gpu0.q peer=gpu1\n";
  CHECK(all(queue + "copy_linear bytes=4 src=gpu0.a+4 dst=gpu0.a\nend\n") ==
        "5:31: expected a field or the end of the line, got '+' | write an offset in brackets: src=gpu0.a[64K]");
  CHECK(all(queue + "}\nend\n") == "5:1: expected a packet or 'end', got '}' | a block ends with a line 'end'");
  CHECK(all("sdma 1\ngpus 1025\n") == "2:6: 'gpus' must be from 0 to 1024, got 1025");
  CHECK(all("sdma 1\nbuffer host.x\n") == "2:14: a buffer needs 'bytes=' | its fields: bytes align at map init");
  CHECK(all("sdma 1\nbuffer host.x bytes=0\n") == "2:21: 'bytes' must be from 1 to 1099511627776, got 0");
  CHECK(all("sdma 1\nbuffer host.x bytes=1 bytes=1\n") == "2:23: duplicate field 'bytes'");
  CHECK(all("sdma 1\nbuffer host.x size=1\n") ==
        "2:15: a buffer has no field 'size' | did you mean 'bytes'? its fields: bytes align at map init");
  CHECK(all("sdma 1\nbuffer host.x bytes\n") == "2:15: 'bytes' needs a value | its fields: bytes align at map init");
  CHECK(all("sdma 1\nbuffer host.x bytes=1 align=3\n") == "2:29: 'align' must be a power of two, got 3");
  CHECK(all("sdma 1\nbuffer host.x bytes=1 init=one\n") ==
        "2:28: 'one' is not a value of 'init' | write random, zero or poison");
  CHECK(all("sdma 1\nbuffer host.x bytes=1 map=cpu\n") ==
        "2:27: expected a place, got 'cpu' | write host, gpu0, gpu1, ...");
  CHECK(all("sdma 1\nbuffer x bytes=1\n") ==
        "2:8: expected a name with its place, got 'x' | a name includes its place: gpu0.x "
        "or host.x");
  CHECK(all("sdma 1\nbuffer host.x bytes=1\nsignal host.x value=0\n") ==
        "3:8: 'host.x' is already declared | it is declared on line 2");
  CHECK(all("sdma 1\nsignal host.x\n") == "2:14: a signal needs 'value=' | its fields: value bits at");
  CHECK(all("sdma 1\nsignal host.x value=0 bits=16\n") == "2:28: 'bits' must be 32 or 64, got 16");
  CHECK(all("sdma 1\nsignal host.x value=0 bits=33\n") == "2:28: 'bits' must be 32 or 64, got 33");
  CHECK(all("sdma 1\nsignal host.x value=4G bits=32\n") == "2:21: this value does not fit in 32 bits: 4294967296");
  CHECK(all("sdma 1\ngpus 1\nqueue host.q engine=0\nend\n") ==
        "3:7: a queue belongs to a GPU, got 'host.q' | write gpu0.q");
  CHECK(all("sdma 1\ngpus 1\nqueue gpu0.q\nend\n").starts_with("3:13: a queue needs 'peer=' or 'engine='"));
  CHECK(all("sdma 1\ngpus 1\nqueue gpu0.q engine=0 ring=3K\nend\n") == "3:28: 'ring' must be a power of two, got 3072");
  const std::string small = "sdma 1\ngpus 1\nqueue gpu0.q engine=0 ring=1K\n";
  CHECK(all(small + "  nop payload=[0*127]\nend\n").empty());
  CHECK(all(small + "  nop\n  nop payload=[0*200]\nend\n") ==
        "3:1: a packet of 201 dwords is more than half the ring | give the queue a larger ring: ring=2K");
  CHECK(all(small + "  .dword 0x00810000\n  nop payload=[0*127]\n  nop\nend\n")
            .starts_with("3:1: a packet of 130 dwords"));
  CHECK(all("sdma 1\ngpus 1\nqueue gpu0.q engine=0\n") == "3:1: 'queue' on line 3 has no 'end'");
  CHECK(all("sdma 1\ngpus 2\nqueue gpu*.q engine=0\nend\n")
            .starts_with("3:7: 'gpu*' is allowed only in buffer, signal and expect"));
}

TEST_CASE("aliases stay inside of what they name") {
  const std::string b = "sdma 1\nbuffer host.b bytes=4K\n";
  CHECK(all(b + "buffer host.x bytes=1K at=host.b[3K]\n").empty());
  CHECK(all(b + "buffer host.x bytes=1K at=host.b[3K+1]\n") ==
        "3:27: 1K bytes at host.b[3073] end beyond host.b | host.b has 4K bytes and is declared on line 2");
  CHECK(all(b + "buffer host.x bytes=1 at=host.b[5K]\n") ==
        "3:26: host.b[5K] is out of bounds: host.b has 4K | host.b is declared on line 2");
  CHECK(all(b + "buffer host.x bytes=1 at=host.c\n") == "3:26: 'host.c' is not declared | did you mean 'host.b'?");
  CHECK(all(b + "buffer host.x bytes=1 at=0x10000000008\n") ==
        "3:26: host.b[8] is linked at this address | write the name instead of the number");
  CHECK(all(b + "buffer host.x bytes=1 at=host.b[0..1]\n") == "3:32: expected one offset, got a range");
  CHECK(all("sdma 1\nbuffer host.x bytes=1 at=host.y\nbuffer host.y bytes=1 at=host.x\n") ==
        "2:26: this alias leads back to itself");
  // Each use of an alias follows all of them.
  const auto chain = [](int n) {
    return fmt::format(
        "sdma 1\nbuffer host.b0 bytes=1\nfor i in 1..{}\nbuffer host.b{{i}} bytes=1 at=host.b{{i-1}}\nend\n", n + 1);
  };
  CHECK(all(chain(64)) == "");
  CHECK(all(chain(65)) == "4:29: this alias leads through more than 64 other aliases");
}

TEST_CASE("packets of a schedule: numbers that are names, names that are queues, epochs in the wrong place") {
  CHECK(all(in_queue("  fence addr=0x10000000000 value=1")) ==
        "6:3: 'addr' is a number, but gpu0.buf is linked at that address | write the name instead of the number");
  CHECK(all(in_queue("  fence addr=gpu0.q value=1")) ==
        "6:14: 'gpu0.q' is a queue, which has no address | it is declared on line 5");
  CHECK(all(in_queue("  fence addr=gpu7.buf value=1")) ==
        "6:14: gpu7 is not in this schedule: gpus 2 | use gpu0 to gpu1");
  CHECK(all(in_queue("  fence addr=gpu0.buf[64K+4] value=1")) ==
        "6:14: gpu0.buf[65540] is out of bounds: gpu0.buf has 64K | gpu0.buf is declared on line 3");
  CHECK(all(in_queue("  fence addr=gpu0.buf[-4] value=1")) ==
        "6:14: gpu0.buf[-4] is out of bounds: gpu0.buf has 64K | gpu0.buf is declared on line 3");
  CHECK(
      all(in_queue("  fence addr=gpu0.buf[64K] value=1")).starts_with("6:14: fence accesses 4 bytes at gpu0.buf[64K]"));
  CHECK(all(in_queue("  copy_linear bytes=epoch src=gpu0.buf dst=gpu1.buf"))
            .starts_with("6:21: 'epoch' is not allowed here"));
  CHECK(all(in_queue("  fence addr=gpu0.buf[epoch] value=1")).starts_with("6:23: 'epoch' is not allowed here"));
  CHECK(
      all(in_queue("  fence addr=host.done value=epoch*epoch")).starts_with("6:35: this value is not linear in epoch"));
  CHECK(all(in_queue("  fence addr=host.done value=epoch%2")).starts_with("6:35: this value is not linear in epoch"));
  CHECK(
      all(in_queue("  fence addr=host.done value=4G*epoch")).starts_with("6:30: 'value' must be from 0 to 4294967295"));
  CHECK(all(in_queue("  let epoch = 1")).starts_with("6:7: 'epoch' is reserved for"));
  CHECK(all(in_queue("  .dword 1\n  fence addr=host.done value=epoch"))
            .starts_with("5:1: a raw .dword of this queue swallows the packet whose 'value' depends on the epoch"));
  CHECK(all(in_queue("  wait host.done == 1")).starts_with("6:3: expected a packet or 'end', got 'wait'"));
}

TEST_CASE("hosts and expectations") {
  CHECK(all(in_host("  sumbit *")) == "8:3: expected an action or 'end', got 'sumbit' | did you mean 'submit'?");
  CHECK(all(in_host("  fence addr=0 value=0")).ends_with("| packets belong in a queue"));
  CHECK(all(in_host("  submit")) == "8:9: expected queues | write submit gpu0.push gpu1.echo, or submit *");
  CHECK(all(in_host("  submit host.done")) == "8:10: 'host.done' is not a queue | it is declared on line 4");
  CHECK(all(in_host("  submit gpu0.p")) == "8:10: 'gpu0.p' is not declared | did you mean 'gpu0.q'?");
  CHECK(all(in_host("  set gpu0.q = 1")) == "8:7: 'gpu0.q' is a queue, which has no value | it is declared on line 5");
  CHECK(all(in_host("  set gpu0.buf = 1")) == "8:7: 'gpu0.buf' is not a signal | it is declared on line 3");
  CHECK(all(in_host("  set host.done == 1")) == "8:17: expected '=', got '==' | write set host.go = 1");
  CHECK(all(in_host("  set host.done = 4G")) == "8:19: this value does not fit in 32 bits: 4294967296");
  CHECK(all(in_host("  set host.done = epoch")).starts_with("8:19: 'epoch' is not allowed here"));
  CHECK(all(in_host("  repeat 2\n    set host.done = epoch\n  end")).empty());
  CHECK(all(in_host("  repeat -1\n  end")).starts_with("8:10: 'repeat' must be from 0 to"));
  CHECK(all(in_host("  repeat 2\n")) == "7:1: 'host' on line 7 has no 'end'");
  CHECK(all(kHead + "end\nhost main\nend\nhost main\nend\n") == "9:6: host 'main' is already declared");
  CHECK(all(kHead + "end\nhost main\nqueue gpu0.r engine=0\nend\n") ==
        "8:1: 'queue' inside a host | 'host' on line 7 has no 'end'");
  CHECK(all(kHead + "end\nexpect gpu0.buf = 1\n") ==
        "7:17: expected '==', got '=' | write expect gpu1.out == old gpu0.in");
  CHECK(all(kHead + "end\nexpect gpu0.buf == 1\n").starts_with("7:8: a number is compared with a signal"));
  CHECK(all(kHead + "end\nexpect gpu0.buf[0..4K] == old gpu0.buf[0..+2K]\n") ==
        "7:31: 4K bytes are compared with 2K | write the same length on both sides: [0..+4K]");
  CHECK(all(kHead + "end\nexpect gpu0.buf[4K..2K] == gpu0.buf\n")
            .starts_with("7:16: [4096..2048] is not a range of gpu0.buf"));
  CHECK(all(kHead + "end\nexpect gpu0.buf[4K] == gpu0.buf\n").starts_with("7:16: expected a range, got one offset"));
  CHECK(all(kHead + "end\nexpect finding 3\n") ==
        "7:16: expected the id of a rule, got '3' | write one that sdma check --rules lists, such as race");
}

TEST_CASE("parameters from outside are used, or refused") {
  const std::string text = "sdma 1\nparam N = 2\nparam chunk = 4K\ngpus N\nbuffer gpu*.b bytes=N*chunk\n";
  const auto s = parse_schedule(text, "t", {.set = {{"N", "3"}, {"chunk", "2*1M"}}});
  REQUIRE(s);
  CHECK(s->gpus == 3);
  REQUIRE(s->buffers.size() == 3);
  CHECK(s->buffers[2].bytes == 6u << 20);
  CHECK(all(text, {.set = {{"M", "3"}}}) == "set M: there is no param 'M' | did you mean 'N'?");
  CHECK(all(text, {.set = {{"block", "3"}}}) == "set block: there is no param 'block' | its params: N chunk");
  CHECK(all("sdma 1\nlet N = 1\n", {.set = {{"N", "3"}}}) ==
        "set N: there is no param 'N' | this schedule has no params");
  CHECK(all(text, {.set = {{"N", "3KB"}}}).starts_with("set N:1:1: '3KB' is not a number"));
  CHECK(all(text, {.set = {{"N", "3 4"}}}) == "set N:1:3: expected the end of the value, got '4'");
  CHECK(all("sdma 1\nfor i in 0..1\n  param N = 1\nend\n").starts_with("3:3: a param must be outside loops [i=0]"));
}

TEST_CASE("what is wrong twice is said once, in the order of the lines") {
  CHECK(all("sdma 1\ngpus 2\nlet a = b\nqueue gpu0.q peer=gpu1\n  nope\nend\nbuffer gpu0.x bytes=0\n") ==
        "3:9: 'b' is not defined | let b = ... defines it\n"
        "5:3: expected a packet or 'end', got 'nope' | did you mean 'nop'?\n"
        "7:21: 'bytes' must be from 1 to 1099511627776, got 0");
}

TEST_CASE("numbers are whole") {
  constexpr auto kHint = "write a whole number: 1536K, and not 1.5M";
  CHECK(all("sdma 1\nparam n = 1.5M\n") == std::string("2:12: expected the end of the line, got '.' | ") + kHint);
  CHECK(all("sdma 1\nparam n = 1\n", {.set = {{"n", "1.5M"}}}) ==
        std::string("set n:1:2: expected the end of the value, got '.' | ") + kHint);
}

TEST_CASE("no error follows from another") {
  CHECK(all("sdma 1\nparam n = 1KiB\nlet m = n/2\nc = 4\ngpus 2000\nbuffer gpu0.a bytes=n\nbuffer gpu1.b bytes=m\n"
            "signal host.s value=c\n") ==
        "2:11: '1KiB' is not a number | write 4096, 0x1000, 4K, 1M or 2G (powers of 1024)\n"
        "4:1: expected a declaration or 'end', got 'c' | a name needs let or param: let c = ...\n"
        "5:6: 'gpus' must be from 0 to 1024, got 2000");
  CHECK(all("sdma 1\ngpus 2\nfor i in 0 to 2\nqueue gpu{i}.q peer=host\nend\nend\nhost main\nsubmit *\nend\n") ==
        "3:12: expected '..', got 'to' | write for i in 0..N (from 0 to N-1), for i in 0..N step 2, or for i in "
        "[0, 2, 3]");
  CHECK(all("sdma 1\nrepeat 4\n  submit *\nend\nlet n = nothing\n").find("'end' without") == std::string::npos);
  CHECK(all("sdma 1\nlet n = nothing\nlet m = n + other\n") ==
        "2:9: 'nothing' is not defined | let nothing = ... defines it");
  CHECK(all("sdma 1\nchoose n in 1 to 4\nlet m = n\n") ==
        "2:15: expected '..', got 'to' | write choose n in 1..5, or in [1, 4]");
  CHECK(all("sdma 1\nhost main\n  submit *\nend\n") ==
        "3:3: there is no queue to submit | declare one: queue gpu0.push peer=gpu1");
}

TEST_CASE("loops may have millions of rounds") {
  const auto s =
      parse_schedule("sdma 1\ngpus 1\nfor i in 0..1M+1\n  when i == 1M: buffer gpu0.b{i} bytes=1\nend\n", "t");
  REQUIRE(s);
  REQUIRE(s->buffers.size() == 1);
  CHECK(s->buffers[0].name == "b1048576");
}

TEST_CASE("a small text cannot ask for much") {
  CHECK(all("sdma 1\nfor i in 0..1G\nend\n")
            .starts_with("2:1: this loop has 1073741824 rounds; the loops of a text can have 67108864 together "
                         "(4G of memory, 64 bytes for each)"));
  CHECK(all("sdma 1\ngpus 1\nqueue gpu0.q engine=0\n  nop times=4G-1\nend\n").find("more dwords than allowed") !=
        std::string::npos);
  CHECK(all("sdma 1\ngpus 64\nfor i in 0..1M-1\n  buffer gpu*.b{i} bytes=1\nend\n", {.max_items = 1000})
            .find("more than 1000 declarations") != std::string::npos);
  CHECK(all("sdma 1\ngpus 1\nfor i in 0..100\nqueue gpu0.q{i} engine=0\nnop\nend\nend\nhost main\nfor i in "
            "0..10\nsubmit *\nend\nend\n",
            {.max_items = 1000})
            .starts_with("10:1: the text has more than 1000 declarations, actions and expectations [i=9] | each queue "
                         "of a submit counts"));
  CHECK(all("sdma 1\ngpus 1\nbuffer gpu0." + std::string(256, 'x') + " bytes=1\n") ==
        "3:13: a name can have at most 255 characters");
  // A message that names it twice is longer than what is shown.
  const std::string longest(255, 'a');
  const auto far =
      all("sdma 1\nbuffer host." + longest + " bytes=1\nbuffer host.b bytes=1 at=host." + longest + "[2]\n");
  CHECK(far.find("aa..aa") != std::string::npos);
  CHECK(far.find("has 1 | host.a") != std::string::npos);
  CHECK(all("sdma 1\ngpus 2\nbuffer gpu*.a bytes=1 map=gpu0,gpu1,gpu0\n") == "3:27: gpu0 appears twice in 'map'");
  std::string deep = "sdma 1\n";
  for (int i = 0; i < 40; ++i) deep += fmt::format("for v{} in 0..1\n", i);
  for (int i = 0; i < 40; ++i) deep += "end\n";
  CHECK(all(deep).find("nested too deeply") != std::string::npos);
}

TEST_CASE("lists, files and conditions say what they miss") {
  const auto loop = [](const std::string& in) { return all("sdma 1\nfor b in " + in + "\nend\n"); };
  CHECK(loop("[1 2]") == "2:13: expected ',' or ']', got '2' | a list is written [41, 7, 63]");
  CHECK(loop("[1, ]").starts_with("2:14: expected a number"));
  CHECK(loop("[x]").starts_with("2:11: 'x' is not defined"));
  CHECK(
      loop("1..=3") ==
      "2:13: a range does not include its end, and '..=' is not written | 0..N is 0 to N-1; for 1 to N, write 1..N+1");
  CHECK(loop("file").find("expected '('") != std::string::npos);
  CHECK(loop("file(a)") == "2:15: expected the name of a file, got 'a' | write file(\"blocks.txt\")");
  CHECK(loop("file(\"a.txt\")") ==
        "2:15: file 'a.txt': this text may not read other files | write the numbers as a list: [41, 7]");
  ParseOptions o;
  o.read = [](const std::string& name) -> Result<std::string, Diagnostic> {
    if (name == "bad") return std::string("1\n2 x\n");
    if (name == "many") return std::string(40000, '1') + std::string("\n");
    std::string numbers;
    for (int i = 0; i < 3000; ++i) numbers += "1 ";
    return numbers;
  };
  o.max_rounds = 1000;
  CHECK(all("sdma 1\nfor b in file(\"bad\")\nend\n", o) ==
        "2:15: file 'bad' has 'x' on line 2, which is not a number | it has numbers, with blanks, commas or line ends "
        "between them, and comments");
  const auto table = [](const std::string& text, const std::string& use) {
    ParseOptions with;
    with.read = [&](const std::string&) -> Result<std::string, Diagnostic> { return text; };
    return all("sdma 1\nlet t = table(\"t\")\n" + use, with);
  };
  CHECK(table("1, 2\n3\n", "") ==
        "2:15: file 't' has 1 number on line 2 | each line of a table has as many numbers as "
        "the first one, here 2");
  CHECK(table("# none\n", "") == "2:15: file 't' has no numbers | a table has a line for each row");
  CHECK(table("1 2\n", "let x = t[0, 2]\n") == "3:14: there is no column 2: 't' has 2 columns");
  CHECK(table("1 2\n", "let x = t[1, 0]\n") == "3:11: there is no row 1: 't' has 1 row");
  CHECK(table("1 2\n", "let x = t[0..2, 0]\n") == "3:11: there is no row 0..2: 't' has 1 row");
  CHECK(table("1 2\n", "let x = t[0, 0..1]+1\n").starts_with("3:19: expected the end of the line"));
  CHECK(table("1 2\n", "let x = 1+t\n") == "3:11: 't' is a table, not a number | write t[0, 0]");
  CHECK(table("1 2\n", "for v in t\nend\n") ==
        "3:10: 't' is a table | go over its rows, for i in 0..len(t), or over one, for v in t[i]");
  CHECK(table("1 2\n", "let x = [1, 2]\nlet y = x[0, 1]\n") == "4:12: expected ']', got ','");
  CHECK(all("sdma 1\nfor b in file(\"many\")\nend\n", o).find("which is not a number") != std::string::npos);
  CHECK(all("sdma 1\nfor b in file(\"long\")\nend\n", o).starts_with("2:1: this loop has 3000 rounds"));
  CHECK(all("sdma 1\nfor b in [1, 2]\nsignal host.x value=b\nend\n") ==
        "3:8: 'host.x' is already declared [b=2] | it is declared on line 3");

  CHECK(all("sdma 1\nif 1\nend\n") ==
        "2:5: expected one of == != < <= > >=, got the end of the line | write if k % 2 == 0");
  CHECK(all("sdma 1\nif 1 = 1\nend\n") == "2:6: expected one of == != < <= > >=, got '=' | '==' compares");
  CHECK(all("sdma 1\nif 1 < 2 3\nend\n") == "2:10: expected the end of the line, got '3'");
  CHECK(all("sdma 1\nif 1 < 2\n") == "2:1: 'if' on line 2 has no 'end'");
  CHECK(all("sdma 1\nelse\n") == "2:1: 'else' without 'if'");
  CHECK(all("sdma 1\nif 1 > 2\nelse\nelse\nend\n") ==
        "4:1: a second 'else' | the branches of an 'if' end with one 'else'");
  // An error in a condition is reported alone: none of the branches is read.
  CHECK(all("sdma 1\nif x > 2\nbuffer\nelse\nbuffer\nend\n") == "2:4: 'x' is not defined | let x = ... defines it");
  std::string deep = "sdma 1\n";
  for (int i = 0; i < 40; ++i) deep += "if 1 == 1\n";
  for (int i = 0; i < 40; ++i) deep += "end\n";
  CHECK(all(deep).find("nested too deeply") != std::string::npos);
}

TEST_CASE("what people type at first has a hint") {
  CHECK(all("sdma 1\nx = 1\n") ==
        "2:1: expected a declaration or 'end', got 'x' | a name needs let or param: let x = ...");
  CHECK(all(in_queue("  copy bytes=4K src=gpu0.buf dst=gpu1.buf")) ==
        "6:3: expected a packet or 'end', got 'copy' | did you mean 'copy_linear'?");
  CHECK(all(in_queue("  x = 1")) == "6:3: expected a packet or 'end', got 'x' | a name needs let: let x = ...");
  CHECK(all(in_queue("  atomic op=add addr=host.done value=1")).find("did you mean 'add_rtn_64'?") !=
        std::string::npos);
  CHECK(all("gpus 2\n").starts_with("1:1: expected 'sdma 1', got 'gpus'"));
}

TEST_CASE("a queue has a peer, reads from the host, or has an engine") {
  const auto queue = [](const std::string& fields) {
    return all("sdma 1\ngpus 2\nqueue gpu0.q " + fields + "\nend\n");
  };
  CHECK(queue("from=host") == "");
  CHECK(queue("from=gpu1") ==
        "3:19: 'from' is for the host: one engine serves both directions of a link between GPUs | write peer=gpu1");
  const std::string both =
      "a queue has a peer or reads from the host, not both | from=host uses the engine that reads from the host; "
      "peer=host the one that writes to it";
  CHECK(queue("peer=host from=host") == "3:33: " + both);
  CHECK(queue("from=host peer=gpu1") == "3:33: " + both);
  CHECK(queue("from=host engine=1").starts_with("3:32: a queue reads from the host or has an engine, not both"));
  CHECK(queue("form=host") ==
        "3:14: a queue has no field 'form' | its fields: peer, from, network or engine, ring, doorbell");
  CHECK(queue("peer=gpu1 doorbell=all") == "3:33: 'doorbell' cannot be 'all' | write doorbell=each, or omit it");
}

TEST_CASE("a queue may have the name of a signal, and not that of another queue") {
  const std::string text =
      "sdma 1\ngpus 1\nsignal gpu0.done value=0 bits=32\nqueue gpu0.done from=host\n  fence addr=gpu0.done value=1\n"
      "end\nhost main\n  submit gpu0.done\n  wait gpu0.done == 1\nend\n";
  const auto s = parse_schedule(text);
  REQUIRE(s);
  CHECK(problems(*s).empty());
  CHECK(to_text(*s) == text);
  CHECK(s->queues[0].from_host);
  CHECK(all(text + "queue gpu0.done engine=0\nend\n") ==
        "11:7: 'gpu0.done' is already declared | it is declared on line 4");
  auto twice = *s;
  twice.add_queue(twice.queues[0]);
  REQUIRE(problems(twice).size() == 1);
  CHECK(problems(twice)[0].message == "the name is already used");
  auto contradiction = *s;
  contradiction.queues[0].peer = Place::gpu(0);
  REQUIRE(problems(contradiction).size() == 1);
  CHECK(problems(contradiction)[0].message == "from_host needs the host as the peer");
}

TEST_CASE("kernels say what they miss") {
  const auto in_kernel = [](const std::string& line) { return all(kHead + "end\nkernel gpu0.k\n" + line + "\nend\n"); };
  CHECK(in_kernel("  compute ns=5\n  wait host.done == 1 scope=agent\n  add host.done += 1 scope=system") == "");
  CHECK(in_kernel("  compute 5") == "8:11: expected 'ns=', got '5' | write compute ns=20000");
  CHECK(in_kernel("  compute ns=5 hbm=4K") == "");
  CHECK(in_kernel("  compute ns=0 hbm=4K") == "8:16: it moves bytes in no time | hbm= are bytes within ns=");
  CHECK(in_kernel("  compute ns=5 hbm") == "8:19: expected '=', got the end of the line | write compute ns=20000");
  CHECK(in_kernel("  compute ns=-1") == "8:14: 'ns' must be from 0 to 1000000000000, got -1");
  CHECK(in_kernel("  add host.done = 1") == "8:17: expected '+=', got '=' | write add host.count += 1");
  CHECK(in_kernel("  add gpu0.buf += 1") == "8:7: 'gpu0.buf' is not a signal | it is declared on line 3");
  CHECK(in_kernel("  store gpu0.buf[0..4]") ==
        "8:23: expected '=', got the end of the line | write store gpu0.buf = random");
  CHECK(in_kernel("  store gpu0.buf = 256") == "8:20: 'a byte' must be from 0 to 255, got 256");
  CHECK(in_kernel("  store gpu0.q = zero") ==
        "8:9: 'gpu0.q' is a queue, which has no bytes | it is declared on line 5");
  CHECK(in_kernel("  load gpu0.buf[4]") ==
        "8:16: expected a range, got one offset | write gpu0.buf[0..+4K] or gpu0.buf[0..4K]");
  CHECK(in_kernel("  set host.done = 1 scope=gpu") ==
        "8:27: 'gpu' is not a scope | write scope=system, which is the default, or scope=agent");
  CHECK(in_kernel("  set host.done = 1 now") ==
        "8:21: expected the end of the line, got 'now' | a kernel's action may end with scope=agent or scope=system");
  CHECK(in_kernel("  expect gpu0.buf[0..4] == old gpu0.buf[4..8]") == "");
  CHECK(in_kernel("  expect host.done == 1") ==
        "8:3: a thread compares bytes; a value of a signal is compared when all have ended | write wait host.done == "
        "..., or put the expectation after the block");
  CHECK(in_kernel("  expect gpu0.buf[0..4] == gpu0.buf[0..8]") ==
        "8:28: 4 bytes are compared with 8 | write the same length on both sides: [0..+4K]");
  CHECK(all(in_queue("  expect gpu0.buf == gpu1.buf")).starts_with("6:3: 'expect' inside a queue"));
  CHECK(in_kernel("  compte ns=5") == "8:3: expected an action or 'end', got 'compte' | did you mean 'compute'?");
  CHECK(all(in_host("  compute ns=5")) == "8:3: 'compute' belongs in a kernel | kernel gpu0.gemm ... end");
  CHECK(all(in_host("  set host.done = 1 scope=agent")) ==
        "8:21: 'scope' is for kernels: a host thread has no other scope than the system | leave it out");
  CHECK(all("sdma 1\ngpus 1\nkernel host.k\nend\n") ==
        "3:8: a kernel runs on a GPU, got 'host.k' | write kernel gpu0.k");
  CHECK(all("sdma 1\ngpus 1\nkernel gpu0.k\nend\nkernel gpu0.k\nend\n") == "5:8: kernel 'gpu0.k' is already declared");
  CHECK(all("sdma 1\ngpus 1\nkernel k\nend\n") ==
        "3:8: expected a name with its place, got 'k' | a name includes its place: gpu0.k or host.k");
  CHECK(all("sdma 1\ngpus 1\nkernel gpu0.k\nkernel gpu0.l\nend\n")
            .starts_with("4:1: 'kernel' inside a kernel | 'kernel' on line 3 has no 'end'"));
}

TEST_CASE("samples say where they can be used") {
  const auto in = [](const std::string& lines) { return all(in_host("  sample n = host.done\n" + lines)); };
  CHECK(in("  wait host.done >= n + 4\n  set host.done = n\n  add host.done += n-1\n  sample n = host.done") == "");
  CHECK(in("  repeat 2\n    sample n = host.done\n    wait host.done >= 2*epoch+n-1\n  end\n  wait host.done > n") ==
        "");
  CHECK(all(in_host("  for i in 0..2\n    sample n{i} = host.done\n    wait host.done > n{i} + i\n  end")) == "");
  const std::string only = ": a value can only be one sample with numbers added to it | write wait host.count >= n + 4";
  CHECK(in("  wait host.done >= 2*n") == "9:22" + only);
  CHECK(in("  wait host.done >= n/2") == "9:22" + only);
  CHECK(in("  wait host.done >= 4-n") == "9:22" + only);
  CHECK(in("  wait host.done >= n+n") == "9:22" + only);
  CHECK(in("  wait host.done >= -n") == "9:21" + only);
  const std::string unknown =
      ": 'n' is sampled while the schedule runs, so it is not known here | the value of a set, an add or a wait may "
      "use it";
  CHECK(in("  let m = n+1") == "9:11" + unknown);
  CHECK(in("  store gpu0.buf[n..8] = zero") == "9:18" + unknown);
  CHECK(in("  if n == 2\n  end").starts_with("9:6" + unknown));
  CHECK(in("  sample m{n} = host.done") == "9:12" + unknown);
  CHECK(in("  wait host.done >= n + epoch").starts_with("9:25: 'epoch' is not allowed here"));
  CHECK(in("  let n = 5") == "9:7: 'n' is already defined | a name cannot hide another: choose a new one");
  CHECK(all(in_host("  let n = 5\n  sample n = host.done")).starts_with("9:10: 'n' is already defined"));
  CHECK(all(in_host("  sample epoch = host.done")).starts_with("8:10: 'epoch' is reserved"));
  CHECK(all(in_host("  sample = host.done")) == "8:10: expected a name, got '='");
  CHECK(all(in_host("  sample n host.done")) == "8:12: expected '=', got 'host' | write sample n = host.count");
  CHECK(all(in_host("  sample a.b = host.done")) == "8:11: expected '=', got '.' | write sample a = host.count");
  CHECK(all(in_host("  sample {1}n = host.done")) == "8:10: a name begins with a letter, but this is '1n'");
  CHECK(all(in_host("  sample n = gpu0.buf")) == "8:14: 'gpu0.buf' is not a signal | it is declared on line 3");
  CHECK(all(in_host("  sample n = host.done scope=agent")).starts_with("8:24: 'scope' is for kernels"));
  // The name ends with its block: with a repeat, and with the thread.
  CHECK(all(in_host("  repeat 2\n    sample n = host.done\n  end\n  wait host.done > n"))
            .starts_with("11:20: 'n' is not defined"));
  CHECK(all(in_host("  sample n = host.done\nend\nhost other\n  wait host.done > n"))
            .starts_with("11:20: 'n' is not defined"));
  // A loop is no block of its own for them, because FLAT has no loops.
  CHECK(all(in_host("  for i in 0..2\n    sample n{i} = host.done\n  end\n  wait host.done > n1")) == "");
  CHECK(all(in_host("  sample n = host.done\nend\nlet n = 5\nhost other")) == "");
}

TEST_CASE("actions keep their lines, whatever the order of hosts and kernels") {
  SourceMap map;
  const auto s = parse_schedule(
      "sdma 1\ngpus 1\nsignal host.x value=0\nkernel gpu0.k\n  repeat 2\n    add host.x += 1\n  end\nend\n"
      "host main\n  set host.x = 5\nend\n",
      "t", {.map = &map});
  REQUIRE(s);
  CHECK(map.action(*s, s->hosts[0].actions[0]).line == 10);
  CHECK(map.action(*s, s->kernels[0].actions[0]).line == 5);
  CHECK(map.action(*s, s->kernels[0].actions[0].body[0]).line == 6);
}

TEST_CASE("problems of kernels that were built in C++") {
  const auto with = [](auto change) {
    Schedule s{.gpus = 1};
    const auto x = s.add_signal({.name = "x"});
    const auto b = s.add_buffer({.name = "b", .bytes = 64});
    s.add_host("main").wait(x, Compare::eq, 1).load({b, 64});
    s.add_kernel(Place::gpu(0), "k").compute(5).store({b, 64}, std::uint8_t{1}).add(x, 1);
    change(s);
    const auto found = problems(s);
    return found.empty() ? "" : found[0].where + ": " + found[0].message;
  };
  CHECK(with([](Schedule&) {}) == "");
  CHECK(with([](Schedule& s) { s.add_kernel(Place::gpu(0), "k"); }) == "kernel gpu0.k: the name is already used");
  CHECK(with([](Schedule& s) { s.kernels[0].place = Place::gpu(1); }) ==
        "kernel gpu1.k: gpu1 is not in this schedule: gpus 1");
  CHECK(with([](Schedule& s) { s.kernels[0].place = {}; }) == "kernel host.k: a kernel runs on a GPU");
  CHECK(with([](Schedule& s) { s.kernels[0].actions[1].range.bytes = 65; }) ==
        "kernel gpu0.k: loads or stores bytes that are in neither a buffer nor a signal");
  CHECK(with([](Schedule& s) { s.hosts[0].actions[1].range.bytes = 65; }) ==
        "host main: loads or stores bytes that are in neither a buffer nor a signal");
  CHECK(with([](Schedule& s) {
          s.kernels[0].actions.push_back(
              {.kind = Schedule::Action::Kind::expect, .range = {link_buffer(0), 4}, .right = {link_buffer(0), 8}});
        }) == "kernel gpu0.k: 4 bytes are compared with 8");
  CHECK(with([](Schedule& s) { s.kernels[0].actions[2].signal = link_buffer(0); }) ==
        "kernel gpu0.k: sets, adds to, waits for or samples something that is not a signal");
  CHECK(with([](Schedule& s) { s.hosts[0].actions.push_back(s.kernels[0].actions[0]); }) ==
        "host main: only a kernel computes");
  const auto script = [&](auto actions) {
    return with([&](Schedule& s) {
      auto other = s.add_host("other");
      actions(other);
    });
  };
  const auto x = link_signal(0);
  CHECK(
      script([&](auto& h) {
        h.sample("n", x).wait(x, Compare::ge, sampled("n") + 1).repeat(2, [&](auto& r) { r.set(x, sampled("n") - 1); });
      }) == "");
  CHECK(script([&](auto& h) { h.wait(x, Compare::ge, sampled("n")).sample("n", x); }) ==
        "host other: uses 'n', which it has not sampled before");
  CHECK(script([&](auto& h) { h.repeat(2, [&](auto& r) { r.sample("n", x); }).add(x, sampled("n")); }) ==
        "host other: uses 'n', which it has not sampled before");
  CHECK(script([&](auto& h) { h.sample("a b", x); }) == "host other: 'a b' is not a valid name for a sample");
  CHECK(script([&](auto& h) { h.sample("", x); }) == "host other: '' is not a valid name for a sample");
  CHECK(script([&](auto& h) { h.sample("n", x + 4); }) ==
        "host other: sets, adds to, waits for or samples something that is not a signal");
  CHECK(with([&](Schedule& s) {
          s.hosts[0].actions.push_back(
              {.kind = Schedule::Action::Kind::sample, .signal = x, .value = sampled("n") + 1});
        }) == "host main: adds to a sample: the action that uses it does that");
  CHECK(with([](Schedule& s) { s.hosts[0].actions[0].system_scope = false; }) ==
        "host main: only a kernel has another scope than the system");
}
