// SPDX-License-Identifier: MIT
// What an assembler says: language, loops and every error with its line, column and caret.
#include "sdma/stream/text.hpp"
#include "support/catch.hpp"

#include <fmt/format.h>

#include <algorithm>

using namespace sdma;

namespace {

using Words = std::vector<std::uint32_t>;

std::string errors(const std::string& text, const AssembleOptions& o = {}) {
  const auto r = assemble(text, "a.sdma", o);
  if (r) return "no error";
  std::string s;
  for (const auto& e : r.error()) s += to_string(e) + "\n";
  return s;
}
/// "line:column: message" of the only error.
std::string one(const std::string& text, const AssembleOptions& o = {}) {
  const auto r = assemble(text, "a.sdma", o);
  if (r) return "no error";
  if (r.error().size() != 1) return errors(text, o);
  const auto& e = r.error()[0];
  // The caret stands below the column that `where` names.
  const auto caret = e.excerpt.substr(e.excerpt.find('\n') + 1);
  const auto column = std::stoul(e.where.substr(e.where.rfind(':') + 1));
  CHECK(caret.find('^') - caret.find("| ") - 1 == column);
  return e.where.substr(7) + ": " + e.message;
}
std::string hint(const std::string& text) {
  const auto r = assemble(text, "a.sdma");
  return r || r.error().empty() ? "no error" : r.error()[0].hint;
}
bool same(const std::string& a, const std::string& b) {
  const auto x = assemble(a, "a"), y = assemble(b, "b");
  if (!x) FAIL(to_string(x.error()[0]));
  if (!y) FAIL(to_string(y.error()[0]));
  return *x == *y;
}

}  // namespace

TEST_CASE("an error shows its line, a caret and a hint") {
  CHECK(errors("fence addr=0x1000 value=1\n\tcopy_linear bytes=64KB src=0x1000 dst=0x2000  # 64 KiB\n") ==
        "a.sdma:2:20: error: '64KB' is not a number\n"
        "  2 | \tcopy_linear bytes=64KB src=0x1000 dst=0x2000  # 64 KiB\n"
        "    | \t                  ^\n"
        "  hint: write 4096, 0x1000, 4K, 1M or 2G (powers of 1024)\n");
}

TEST_CASE("what a message quotes of the text is short, and no terminal obeys it") {
  const auto of = [](const std::string& text) { return one(text); };
  CHECK(of("fence x{\x1b[2J addr=0") == "1:7: expected a field or the end of the line, got 'x{?[2J addr=0'");
  CHECK(of("fence addr=0 value=" + std::string(1 << 20, 'a')) == "1:20: a name can have at most 255 characters");
}

TEST_CASE("the errors of the language") {
  CHECK(one("for i in 0..2\n  copy_liner\nend") == "2:3: expected a packet or 'end', got 'copy_liner' [i=0]");
  CHECK(hint("copy_liner bytes=4K") == "did you mean 'copy_linear'?");
  CHECK(one("copy_liner") == "1:1: expected a packet, got 'copy_liner'");
  CHECK(one("copy_linear size=4K bytes=4K src=0 dst=0") == "1:13: copy_linear has no field 'size'");
  CHECK(hint("copy_linear size=4K").starts_with("did you mean 'bytes'? its fields: bytes src dst encrypt tmz"));
  CHECK(hint("poll_mem addr=0x1000 value=1").starts_with("did you mean 'reference'? its fields: addr func"));
  CHECK(hint("atomic at 0x1000").starts_with("a field is written NAME=VALUE: op addr value"));
  CHECK(hint("// none") == "a comment begins with #");
  CHECK(hint("for i in 1 to 3\nend").starts_with("write for i in 0..N (from 0 to N-1)"));
  CHECK(hint("copy_linear byte=4K").starts_with("did you mean 'bytes'? its fields:"));
  CHECK(one("copy_linear bytes=4K src=0x1000") == "1:32: copy_linear needs 'dst='");
  CHECK(hint("copy_linear bytes=4K src=0x1000") == "required: bytes src dst");
  CHECK(one("copy_linear bytes=4K src=buf dst=0") == "1:26: expected an address, got 'buf'");
  CHECK(hint("copy_linear src=buf").starts_with("a name includes its place: gpu0.buf or host.buf"));
  CHECK(one("copy_linear bytes=4K src=gpu0.buf[4K] dst=0") == "1:26: expected an address, got 'gpu0.buf'");
  CHECK(one("copy_linear bytes=4K src=0 dst=0 dw1|=0x80") == "1:39: bit 7 of dword 1 is not reserved in copy_linear");
  CHECK(hint("copy_linear bytes=4K src=0 dst=0 dw1|=0x80") == "it belongs to 'bytes'");
  CHECK(hint("copy_linear bytes=4K src=0 dst=0 dw0|=0x8000000") == "it identifies the packet as copy_linear");
}

TEST_CASE("values that do not fit") {
  CHECK(one("copy_linear bytes=0 src=0 dst=0") == "1:19: 'bytes' must be from 1 to 1G, got 0");
  CHECK(one("copy_linear bytes=1G+1 src=0 dst=0") == "1:19: 'bytes' must be from 1 to 1G, got 1073741825");
  CHECK(one("trap context=0x10000000") == "1:14: 'context' must be from 0 to 268435455, got 268435456");
  CHECK(one("trap context=-1") == "1:14: 'context' must be from 0 to 268435455, got -1");
  CHECK(one("fence addr=0 value=-2147483649").starts_with("1:20: 'value' must be from 0 to"));
  CHECK(same("fence addr=0 value=-2147483648", "fence addr=0 value=0x80000000"));
  CHECK(one("fence addr=0x10000000000000000 value=1") == "1:12: '0x10000000000000000' is not a number");
  CHECK(one("fence addr=0 value=0xffffffffffffffff+1") == "1:38: this value does not fit in 64 bits");
  CHECK(one("fence addr=0 value=4G*4G") == "1:22: this value does not fit in 64 bits");
  CHECK(one("fence addr=0 value=1/0") == "1:21: division by zero");
  CHECK(one(".dword 0x100000000") == "1:8: a dword must be from 0 to 0xffffffff, got 4294967296");
  CHECK(one("fence addr=0 value=1 dw0|=0x100000000") == "1:27: a dword must be from 0 to 0xffffffff, got 4294967296");
  CHECK(one("nop times=0") == "1:11: 'times' must be from 1 to 4294967295, got 0");
}

TEST_CASE("fields, flags and lists") {
  CHECK(one("poll_mem addr=0 func=gee reference=1") == "1:22: 'gee' is not a value of 'func'");
  CHECK(hint("poll_mem addr=0 func=gee reference=1") ==
        "did you mean 'ge'? use one of always lt le eq ne ge gt, or a number");
  CHECK(hint("poll_mem addr=0 func=eq reference=1 retry=never") == "use a number, or forever");
  CHECK(one("copy_linear bytes=1 src=0 dst=0 tmz=1") == "1:33: 'tmz' is a flag");
  CHECK(one("copy_linear bytes=1 src=0 dst=0 tmz tmz") == "1:37: duplicate field 'tmz'");
  CHECK(one("copy_linear bytes=1 src=0 dst=0 src=0") == "1:33: duplicate field 'src'");
  CHECK(one("copy_linear bytes src=0 dst=0") == "1:13: 'bytes' needs a value");
  CHECK(one("copy_linear bytes=1 src=0 dst=0 dw7|=1") == "1:33: dword 7 of copy_linear has no reserved bits");
  CHECK(one("copy_linear bytes=1 src=0 dst=0 dst|=1") == "1:33: expected dwN|=..., got 'dst'");
  CHECK(one("copy_linear bytes=1 src=0 dst=0 dw99999999999999999999|=1") ==
        "1:33: expected dwN|=..., got 'dw99999999999999999999'");
  CHECK(one("write dst=0 data=1") == "1:18: expected '[', got '1'");
  CHECK(one("write dst=0 data=[]") == "1:18: 'data' needs at least 1 dword");
  CHECK(one("write dst=0 data=[1 2") == "1:18: this list has no ']'");
  CHECK(one("write dst=0 data=[1*1048577]") == "1:19: 'data' can hold at most 1048576 dwords");
  CHECK(one("write dst=0 data=[x]") == "1:19: 'x' is not defined");
  CHECK(one("copy_physical bytes=1 src=0 dst=0 more=[1*6]") == "1:40: 'more' must be a multiple of 4 dwords, got 6");
  CHECK(one("nop dwords=3 payload=[1]") == "1:25: 'payload' gives 2 dwords, but 'dwords' is 3");
  CHECK(one("nop payload=[1*16384]") == "1:14: 'payload' can hold at most 16383 dwords");
  CHECK(one("hdp_flush 5") == "1:11: expected a field or the end of the line, got '5'");
  CHECK(one("copy_tiled x=1") == "1:1: the fields of copy_tiled are not described for 4.4.2");
  CHECK(one(".dword") == "1:7: expected a dword");
  CHECK(one(".word 1") == "1:1: expected a packet, got '.'");
}

TEST_CASE("statements") {
  CHECK(one("sdma 1") == "1:1: expected a packet, got 'sdma'");
  CHECK(hint("sdma 1") == "this is a schedule: read it with sdma run, check, simulate or fmt");
  CHECK(hint("param n = 1") == "a stream has no parameters: use let");
  CHECK(one("end") == "1:1: 'end' without 'for' or 'if'");
  CHECK(one("nop\nfor i in 0..2\nnop") == "2:1: 'for' on line 2 has no 'end'");
  CHECK(one("for i in 0..0\nnop") == "1:1: 'for' on line 1 has no 'end'");
  CHECK(one("let i = 1\nfor i in 0..2\nend") == "2:5: 'i' is already defined");
  CHECK(one("let i = 1\nlet i = 2") == "2:5: 'i' is already defined");
  CHECK(one("let = 1") == "1:5: expected a name, got '='");
  CHECK(one("let i 1") == "1:7: expected '=', got '1'");
  CHECK(one("let i = 1 2") == "1:11: expected the end of the line, got '2'");
  CHECK(one("let i =") == "1:8: expected a number, got the end of the text");
  CHECK(one("let i =\nnop") == "1:8: expected a number, got the end of the line");
  CHECK(one("let i = (1") == "1:11: expected ')', got the end of the text");
  CHECK(one("let chunk = 1\nlet i = chnk") == "2:9: 'chnk' is not defined");
  CHECK(hint("let chunk = 1\nlet i = chnk") == "did you mean 'chunk'?");
  CHECK(one("nop # ok\n\xe2\x80\xa2").starts_with("2:1: expected a packet, got byte 0xe2"));
  CHECK(one("for i in 0..3\nend x") == "2:5: expected the end of the line, got 'x'");
}

TEST_CASE("a small text cannot become unbounded") {
  CHECK(one("for i in 0..67108865\nend") ==
        "1:1: this loop has 67108865 rounds; the loops of a text can have 67108864 "
        "together (4G of memory, 64 bytes for each)");
  const auto few = [](const std::string& text) { return one(text, {.max_rounds = 1 << 20}); };
  const std::string together =
      " rounds; the loops of a text can have 1048576 together (64M of memory, 64 bytes for each)";
  CHECK(few("for i in 0..2000000\nend") == "1:1: this loop has 2000000" + together);
  CHECK(few("for i in 0..1048577\nend") == "1:1: this loop has 1048577" + together);
  CHECK(few("for i in 0..2000\nfor k in 0..2000\nend\nend") ==
        "2:1: this loop has 2000" + together + ", of which 576 are left [i=523]");
  // A loop takes all its rounds before the first: the outer one
  // leaves none for the inner one, the first one few for the second.
  CHECK(few("for i in 0..1048576\nfor k in 0..1\nend\nend") ==
        "2:1: this loop has 1" + together + ", of which 0 are left [i=0]");
  CHECK(few("for i in 0..1000000\nend\nfor i in 0..1000000\nend") ==
        "3:1: this loop has 1000000" + together + ", of which 48576 are left");
  // Long rounds count by their text, however it is divided among loops.
  CHECK(one("for i in 0..9\nlet a = 1 # " + std::string(100, '.') + "\nend", {.max_text = 900}) ==
        "1:1: the loops of this text expand to more than 900 bytes of text [i=7]");
  CHECK(one("for i in 0..3\nfor k in 0..3\nlet a = 1 # " + std::string(100, '.') + "\nend\nend", {.max_text = 800}) ==
        "2:1: the loops of this text expand to more than 800 bytes of text [i=2 k=0]");
  CHECK(assemble("for i in 0..9\nlet a = 1 # " + std::string(100, '.') + "\nend", "a", {.max_text = 10000}));
  CHECK(errors(std::string(256, 'x') + "{1}").find("a name can have at most 255 characters") != std::string::npos);
  CHECK(errors("let " + std::string(254, 'x') + "{10} = 1").find("a name can have at most 255 characters") !=
        std::string::npos);
  CHECK(one("nop dwords=16384 times=4294967295") == "1:34: the text produces more dwords than allowed");
  CHECK(one(".dword 1 times=4294967295") == "1:26: the text produces more dwords than allowed");
  CHECK(one("nop times=11", {.max_dwords = 10}) == "1:13: the text produces more dwords than allowed");
  CHECK(errors("let x = " + std::string(100000, '(')).find("nested too deeply") != std::string::npos);
  CHECK(errors("let x = " + std::string(100000, '-') + "1").find("nested too deeply") != std::string::npos);
  std::string loops;
  for (int i = 0; i < 40; ++i) loops += "for i" + std::to_string(i) + " in 0..1\n";
  CHECK(errors(loops).find("loops are nested too deeply") != std::string::npos);
}

TEST_CASE("all errors of a text are reported, those of a loop once, and not without end") {
  const auto r = assemble("x\nfence addr=q value=zz\nfor i in 0..5\ny\nend\nnop\n", "a");
  REQUIRE(!r);
  CHECK(r.error().size() == 4);
  std::string many;
  for (int i = 0; i < 300; ++i) many += "x\n";
  const auto m = assemble(many, "a");
  REQUIRE(!m);
  REQUIRE(m.error().size() == 101);
  CHECK(m.error()[100].message == "after 100 errors, the text from line 101 on was not read");
}

TEST_CASE("a text of many names takes no longer than it is long", "[long]") {
  std::string text;
  for (int i = 0; i < 100000; ++i) text += fmt::format("let a{} = {}\n", i, i);
  text += "nop times=a99999\n";
  // Each of these errors looks for the closest name, so not all of them are reported.
  const auto good = assemble(text, "a");
  REQUIRE(good);
  CHECK(good->size() == 99999);
  std::string bad = text;
  for (int i = 0; i < 100000; ++i) bad += fmt::format("let b{} = c{}\n", i, i);
  const auto r = assemble(bad, "a");
  REQUIRE(!r);
  CHECK(r.error().size() == 101);
}

TEST_CASE("a long line is shown around its error only") {
  const auto r = assemble("write dst=0 data=[" + std::string(5000, '1') + "x]", "a");
  REQUIRE(!r);
  CHECK(r.error()[0].excerpt.size() < 300);
}

TEST_CASE("let, for, expressions and splices") {
  CHECK(same("let n = 2\nfor i in 0..n\n  fence addr=0x1000+4*i value=i-1  # one of two\nend",
             "fence addr=0x1000 value=-1\nfence addr=0x1004 value=0"));
  CHECK(same("for i in 0..2\nfor k in 0..i+1\nlet d = (i+k)%2\ntrap context=10*i+k+100*d\nend\nend",
             "trap context=0\ntrap context=110\ntrap context=11"));
  CHECK(same("let a{1+1} = 7\ntrap context=a2", "trap context=7"));
  CHECK(same("for i in 0..2\nlet x{i} = i\nend\ntrap context=3", "trap context=3"));
  CHECK(same("for i in 3..3\nthis is never read\nend\nnop", "nop"));
  CHECK(same("trap context=7/2*2+7%4-(-1)", "trap context=10"));
  CHECK(same("let go = 2\npoll_mem addr=0 func=go reference=go", "poll_mem addr=0 func=le reference=2"));
  CHECK(same("fence value=1 addr=8", "fence addr=8 value=1"));
  CHECK(same("write dst=0 data=[1\n  2*3  # wrapped\n  -1]", "write dst=0 data=[0x1 0x2 0x2 0x2 0xffffffff]"));
  CHECK(same("let v = 5\nwrite dst=0 data=[v*2 (v+1) v]", "write dst=0 data=[5 5 6 5]"));
  CHECK(same("trap context=1 times=3", "trap context=1\ntrap context=1\ntrap context=1"));
  CHECK(same(".dword 1 2 times=2", ".dword 1 2 1 2"));
  CHECK(same("  nop\r\n\r\n\tnop\r\n", "nop\nnop"));
  CHECK(same("nop payload=[0 0]", "nop dwords=3"));
  CHECK(same("", "# nothing"));
}

TEST_CASE("the packet lines of the language") {
  for (const auto* line : {
           "nop",
           "indirect base=0x1000 dwords=64 vmid=1 priv csa=0x2000",
           "trap context=1",
           "dummy_trap context=1",
           "cond_exec addr=0x1000 reference=1 dwords=4 policy=1",
           "pre_exec dwords=4 devices=0x3",
           "srbm_write reg=0x1 value=2 byte_en=0x3",
           "copy_linear bytes=4K src=0x1000 dst=0x2000 encrypt tmz src_swap=1 src_policy=2 dst_swap=3 dst_policy=4",
           "copy_broadcast bytes=4K src=0x1000 dst1=0x2000 dst2=0x3000 encrypt tmz src_swap=1 src_policy=1 dst1_swap=1 "
           "dst1_policy=1 dst2_swap=1 dst2_policy=1",
           "copy_swap bytes=64 a=0x1000 b=0x2000 b_swap=1 b_policy=1 a_swap=1 a_policy=1",
           "copy_struct table=0x1000 start=1 count=2 stride=3 linear=0x2000 tmz detile linear_swap=1 table_swap=1",
           "copy_subwindow element_log2=2 src=0x1000 src_pitch=64 dst=0x2000 dst_pitch=64 x=16 src_x=1 src_y=2 src_z=3 "
           "src_slice=4096 dst_x=1 dst_y=2 dst_z=3 dst_slice=4096 y=16 z=2 tmz dst_swap=1 src_swap=1",
           "copy_dirty_page bytes=4K src=0x1000 dst=0x2000 all tmz dst_swap=1 dst_gcc dst_sys dst_snoop dst_gpa "
           "src_swap=1 "
           "src_sys src_snoop src_gpa",
           "copy_physical bytes=4K src=0x1000 dst=0x2000 tmz dst_swap=1 dst_gcc dst_sys dst_snoop dst_gpa src_swap=1 "
           "src_sys "
           "src_snoop src_gpa dst_log src_gcc more=[0x1 0x2 0x3 0x4]",
           "write dst=0x1000 data=[0x1*20 0x2] swap=1 policy=1 encrypt tmz",
           "fill dst=0x1000 data=0xa5a5a5a5 bytes=4K unit=dword swap=1 policy=1",
           "fill_multi dst=0x1000 stride=64 count=4 bytes=32 memlog_clear",
           "timestamp addr=0x1000 l2_policy=1 llc_policy",
           "timestamp_local addr=0x1000 l2_policy=1 llc_policy",
           "timestamp_set value=-1",
           "fence addr=0x1000 value=-1 l2_policy=1 llc_policy",
           "atomic op=cmpswap_rtn_64 addr=0x1000 value=1 compare=-1 loop interval=128 tmz policy=1",
           "semaphore addr=0x1000 write_one signal mailbox",
           "hdp_flush",
           "poll_mem addr=0x1000 func=ge reference=1 mask=0xff interval=10 retry=100 policy=1",
           "poll_reg reg=0x1000 func=eq reference=1 request=0x2000 mask=0xff interval=4 retry=100 hdp",
           "poll_reg_to_mem reg=0x1000 dst=0x2000 policy=1",
           "poll_dirty_bits dst=0x1000 page=0x10 pages=4 ea=1 policy=1",
           "poll_verify pattern=0x1 a=0x1000 a_end=0x2000 b=0x3000 b_end=0x4000 record=0x5000 mode policy=1",
           "pte_generate dst=0x1000 flags=0x73 init=0x1000 increment=0x1000 entries=512",
           "pte_copy src=0x1000 dst=0x2000 mask=0xfff entries=4 pde",
           "pte_modify addr=0x1000 mask=0xfff value=0x1 gcc sys snoop gpa",
           "pte_copy_backwards src=0x1000 dst=0x2000 mask_first=0x1 mask_last=0x2 blocks=3 pte_size=1 forwards pde",
       }) {
    const auto d = assemble(line, "a");
    if (!d) FAIL(to_string(d.error()[0]));
    CHECK(to_text(Reader{*d}.next()) == line);
  }
}
