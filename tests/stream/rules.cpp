// SPDX-License-Identifier: MIT
#include "sdma/stream/rules.hpp"

#include "random.hpp"
#include "sdma/check/check.hpp"
#include "sdma/stream/text.hpp"
#include "support/catch.hpp"

#include <algorithm>
#include <fstream>
#include <set>

using namespace sdma;

namespace {

using Words = std::vector<std::uint32_t>;

Words stream_of(const std::string& text, Generation g = kDefaultGeneration) {
  auto r = assemble(text, "t", {.generation = g});
  if (!r) FAIL(to_string(r.error()[0]));
  return *std::move(r);
}
/// Ids of what is found, each once, sorted, "" if nothing.
std::string found(const Words& d, const StreamCheckOptions& o = {}) {
  std::set<std::string> ids;
  for (const auto& f : check_stream(d, o)) ids.insert(f.rule);
  std::string s;
  for (const auto& id : ids) s += (s.empty() ? "" : " ") + id;
  return s;
}
std::string found(const std::string& text, const StreamCheckOptions& o = {}) {
  return found(stream_of(text, o.generation), o);
}

// A stream that breaks the rule and no other, and the nearest one that does not.
struct Example {
  std::string_view rule;
  std::string bad, good;
  StreamCheckOptions options{};
  std::string besides{};  ///< what is found in both
};
const std::string kFence = "\nfence addr=0x9000 value=1\n";
const std::vector<Example> kExamples{
    {"alignment", "fence addr=0x1002 value=1", "fence addr=0x1004 value=1"},
    {"range", "copy_subwindow element_log2=5 src=0 src_pitch=4 dst=0x1000 dst_pitch=4 x=4" + kFence,
     "copy_subwindow element_log2=4 src=0 src_pitch=4 dst=0x1000 dst_pitch=4 x=4" + kFence},
    {"reserved-bits", "fence addr=0x1000 value=1 dw0|=0x100000", "fence addr=0x1000 value=1"},
    {"cache-policy-set", "fence addr=0x1000 value=1 l2_policy=1", "fence addr=0x1000 value=1 l2_policy=0"},
    {"endian-swap-set", "fill dst=0x1000 data=1 bytes=64 unit=dword swap=2" + kFence,
     "fill dst=0x1000 data=1 bytes=64 unit=dword swap=0" + kFence},
    {"unknown-code", "poll_mem addr=0x1000 func=7 reference=1", "poll_mem addr=0x1000 func=6 reference=1"},
    {"unknown-packet", ".dword 3", ".dword 0"},
    {"truncated", ".dword 5 0x1000 0", ".dword 5 0x1000 0 1"},
    {"unchecked-packet", ".dword 0x101 0 0 0 0 0 0 0 0 0 0 0 0", "nop dwords=13"},
    {"privileged", "srbm_write reg=1 value=1", "srbm_write reg=1 value=1", {.user_queue = false}},
    {"overlap", "copy_linear bytes=4K src=0x1000 dst=0x1fff" + kFence,
     "copy_linear bytes=4K src=0x1000 dst=0x2000" + kFence},
    {"overlap", "copy_swap bytes=128 a=0x1000 b=0x1040" + kFence, "copy_swap bytes=64 a=0x1000 b=0x1040" + kFence},
    {"overlap", "copy_broadcast bytes=64 src=0x5000 dst1=0x1000 dst2=0x1020" + kFence,
     "copy_broadcast bytes=32 src=0x5000 dst1=0x1000 dst2=0x1020" + kFence},
    {"overlap",  // boxes: rows that touch, then rows beside rows
     "copy_subwindow element_log2=0 src=0x1000 src_pitch=64 dst=0x1000 dst_pitch=64 dst_x=7 x=8 y=4" + kFence,
     "copy_subwindow element_log2=0 src=0x1000 src_pitch=64 dst=0x1000 dst_pitch=64 dst_x=8 x=8 y=4" + kFence},
    {"nop-payload", "nop payload=[0 7]", "nop payload=[0 0]"},
    {"nop-payload",  // small numbers are not packets: a fence stores to an address, and has no reserved bits
     "nop payload=[5 0 0 0 0x00100005 4 0 0]", "nop dwords=9"},
    {"condition-splits-packet",
     "fence addr=0x1000 value=1\npoll_mem addr=0x1000 func=eq reference=1\ncond_exec addr=0x1000 reference=1 dwords=3" +
         kFence,
     "fence addr=0x1000 value=1\npoll_mem addr=0x1000 func=eq reference=1\ncond_exec addr=0x1000 reference=1 dwords=4" +
         kFence},
    {"nop-skips-packets", ".dword 0x00050000 0 5 0x1000 0 1", ".dword 0x00010000 0 5 0x1000 0 1"},
    {"nop-skips-packets",  // 25 dwords too long: the next submission and its completion are gone
     ".dword 0x001c0000 0 3 3\npoll_mem addr=0x8000 func=eq reference=1\n"
     "copy_linear bytes=64 src=0x1000 dst=0x2000\natomic op=add_rtn_64 addr=0x9000 value=1\nnop times=4",
     ".dword 0x00010000 0 0 0\npoll_mem addr=0x8000 func=eq reference=1\n"
     "copy_linear bytes=64 src=0x1000 dst=0x2000\natomic op=add_rtn_64 addr=0x9000 value=1\nnop times=4"},
    {"nop-skips-packets", ".dword 0x00030000 0 6 5", ".dword 0x00030000 0 0 0"},
    {"poll-never", "poll_mem addr=0x1000 func=eq reference=0x10000 mask=0xffff",
     "poll_mem addr=0x1000 func=eq reference=0xffff mask=0xffff"},
    {"poll-never", "poll_mem addr=0x1000 func=lt reference=0", "poll_mem addr=0x1000 func=lt reference=1"},
    {"poll-never", "poll_mem addr=0x1000 func=gt reference=0xff mask=0xff",
     "poll_mem addr=0x1000 func=gt reference=0xfe mask=0xff"},
    {"poll-never", "poll_mem addr=0x1000 func=ne reference=0 mask=0",
     "poll_mem addr=0x1000 func=ne reference=0 mask=1"},
    {"poll-never", "poll_reg reg=0x1000 func=ge reference=2 mask=1", "poll_reg reg=0x1000 func=ge reference=1 mask=1"},
    {"poll-always", "poll_mem addr=0x1000 func=ge reference=0", "poll_mem addr=0x1000 func=ge reference=1"},
    {"poll-always", "poll_reg reg=0x1000 func=eq reference=0 mask=0",
     "poll_reg reg=0x1000 func=always reference=0 mask=0"},
    {"poll-repeated", "poll_mem addr=0x1000 func=ge reference=2\npoll_mem addr=0x1000 func=ge reference=1",
     "poll_mem addr=0x1000 func=ge reference=1\npoll_mem addr=0x1000 func=ge reference=2"},
    {"poll-repeated",  // a store to another word changes nothing; one to this word does
     "poll_mem addr=0x1000 func=eq reference=1\nfence addr=0x1004 value=2\npoll_mem addr=0x1000 func=ne reference=0",
     "poll_mem addr=0x1000 func=eq reference=1\nfence addr=0x1000 value=2\npoll_mem addr=0x1000 func=ne reference=0"},
    {"poll-repeated",  // in two words, and of two halves of one
     "poll_mem addr=0x1004 func=ge reference=1\npoll_mem addr=0x1000 func=ge reference=1\n"
     "poll_mem addr=0x1004 func=ge reference=1",
     "poll_mem addr=0x1004 func=ge reference=1\npoll_mem addr=0x1000 func=ge reference=1"},
    {"poll-repeated",  // a poll that a condition may skip has waited for nothing
     "poll_mem addr=0x1000 func=eq reference=1\npoll_mem addr=0x8000 func=eq reference=1\n"
     "cond_exec addr=0x8000 reference=1 dwords=1\nnop\npoll_mem addr=0x1000 func=eq reference=1",
     "poll_mem addr=0x8000 func=eq reference=1\ncond_exec addr=0x8000 reference=1 dwords=6\n"
     "poll_mem addr=0x1000 func=eq reference=1\npoll_mem addr=0x1000 func=eq reference=1"},
    {"poll-repeated",  // an indirect buffer may store to the word
     "poll_mem addr=0x1000 func=eq reference=1\npoll_mem addr=0x1000 func=eq reference=1",
     "poll_mem addr=0x1000 func=eq reference=1\nnop times=4\nindirect base=0x4000 dwords=8\n"
     "poll_mem addr=0x1000 func=eq reference=1",
     {.user_queue = false}},
    {"swap-length", "copy_swap bytes=100 a=0x1000 b=0x2000" + kFence, "copy_swap bytes=128 a=0x1000 b=0x2000" + kFence},
    {"fill-data-cut", "fill dst=0x1000 data=0x1a5 bytes=64 unit=byte" + kFence,
     "fill dst=0x1000 data=0xa5 bytes=64 unit=byte" + kFence},
    {"finite-poll", "poll_mem addr=0x1000 func=eq reference=1 retry=100", "poll_mem addr=0x1000 func=eq reference=1"},
    {"finite-poll", "poll_reg reg=0x1000 func=eq reference=1 retry=0",
     "poll_reg reg=0x1000 func=always reference=1 retry=0"},
    {"ib-alignment",
     "indirect base=0x1000 dwords=64\nnop times=2",
     "nop times=2\nindirect base=0x1000 dwords=64",
     {.user_queue = false}},
    {"ib-alignment",
     "nop times=2\nindirect base=0x1000 dwords=63",
     "nop times=10\nindirect base=0x1000 dwords=64",
     {.user_queue = false}},
    {"indirect-user-queue", "nop times=2\nindirect base=0x1000 dwords=8", "nop times=2"},
    {"copy-chunk-misaligned",
     "copy_linear bytes=0x3fffff src=0x10000000 dst=0x20000000\ncopy_linear bytes=64 src=0x103fffff dst=0x203fffff" +
         kFence,
     "copy_linear bytes=0x3fffc0 src=0x10000000 dst=0x20000000\ncopy_linear bytes=64 src=0x103fffc0 dst=0x203fffc0" +
         kFence},
    {"no-completion", "fence addr=0x9000 value=1\nwrite dst=0x1000 data=[1]", "write dst=0x1000 data=[1]" + kFence},
    {"no-completion", "timestamp addr=0x1000", "timestamp addr=0x1000\natomic op=add_rtn_64 addr=0x9000 value=-1"},
    {"data-as-flag", "write dst=0x1000 data=[1]\npoll_mem addr=0x1000 func=eq reference=1" + kFence,
     "fence addr=0x1000 value=1\npoll_mem addr=0x1000 func=eq reference=1" + kFence},
    {"data-as-flag", "write dst=0x1000 data=[0 0]\nfence addr=0x1000 value=1\npoll_mem addr=0x1004 func=eq reference=0",
     "write dst=0x1000 data=[0 0]\nfence addr=0x1000 value=1\npoll_mem addr=0x1000 func=eq reference=1"},
    {"unordered", "copy_linear bytes=64 src=0x1000 dst=0x2000\ncopy_linear bytes=64 src=0x203f dst=0x3000" + kFence,
     "copy_linear bytes=64 src=0x1000 dst=0x2000\ncopy_linear bytes=64 src=0x2040 dst=0x3000" + kFence},
    {"unordered",  // a fence holds back nothing that is later
     "copy_linear bytes=64 src=0x1000 dst=0x2000\nfence addr=0x8000 value=1\ncopy_linear bytes=64 src=0x2000 "
     "dst=0x3000" +
         kFence,
     "copy_linear bytes=64 src=0x1000 dst=0x2000\nfence addr=0x8000 value=1\npoll_mem addr=0x8000 func=eq reference=1\n"
     "copy_linear bytes=64 src=0x2000 dst=0x3000" +
         kFence},
    {"unordered",  // and a poll waits for nothing that is earlier
     "copy_linear bytes=64 src=0x1000 dst=0x2000\npoll_mem addr=0x8000 func=eq reference=1\nfill dst=0x2010 data=0 "
     "bytes=4 unit=dword" +
         kFence,
     "copy_linear bytes=64 src=0x1000 dst=0x2000\npoll_mem addr=0x8000 func=eq reference=1\nfill dst=0x2040 data=0 "
     "bytes=4 unit=dword" +
         kFence},
    {"trap-without-mailbox-fence", "fence addr=0x9000 value=6\ntrap context=5",
     "fence addr=0x9000 value=5\ntrap context=5"},
    {"trap-without-mailbox-fence", "fence addr=0x9000 value=5\ntrap context=5\ntrap context=5",
     "fence addr=0x9000 value=7\nfence addr=0x9000 value=0\ntrap context=0"},
    {"trap-without-mailbox-fence", "for i in 0..70\n  fence addr=0x9000 value=6\nend\ntrap context=5",
     "fence addr=0x9000 value=5\nfor i in 0..70\n  fence addr=0x9000 value=6\nend\ntrap context=5"},
    {"not-all-accesses",
     "fence addr=0x9000 value=5\nfor i in 0..65536\n  fence addr=0x9000 value=6\nend\ntrap context=5",
     "fence addr=0x9000 value=5\nfor i in 0..65535\n  fence addr=0x9000 value=6\nend\ntrap context=5"},
    {"cond-exec-unordered", "cond_exec addr=0x1000 reference=1 dwords=4" + kFence,
     "poll_mem addr=0x1000 func=ge reference=1\ncond_exec addr=0x1000 reference=1 dwords=4" + kFence},
    {"wraps-ring",
     "nop times=254\nfence addr=0x1000 value=1",
     "nop times=252\nfence addr=0x1000 value=1",
     {.ring_bytes = 1024}},
    {"not-all-accesses", "for i in 0..65537\n  fill dst=0x10000+64*i data=1 bytes=4 unit=dword\nend" + kFence,
     "for i in 0..65536\n  fill dst=0x10000+64*i data=1 bytes=4 unit=dword\nend" + kFence},
    {"broadcast-modulo-32", "copy_broadcast bytes=16 src=0 dst1=0x1000 dst2=0x2010" + kFence,
     "copy_broadcast bytes=16 src=0 dst1=0x1010 dst2=0x2010" + kFence},
    {"subwindow-pitch", "copy_subwindow element_log2=0 src=0 src_pitch=5 dst=0x1000 dst_pitch=8 x=4 y=2" + kFence,
     "copy_subwindow element_log2=0 src=0 src_pitch=5 dst=0x1000 dst_pitch=8 x=4 y=1" + kFence},
    {"fill-alignment", "fill dst=0x1002 data=1 bytes=4 unit=dword" + kFence,
     "fill dst=0x1002 data=1 bytes=4 unit=half" + kFence},
    {"gcr-disputed", "gcr disputed=1", "gcr gl2_writeback", {.generation = Generation::v6_0}},
    {"signal-polled",  // the packet just before the poll
     "copy_linear_signal bytes=64 src=0x1000 dst=0x2000 signal_addr=0x9000\n"
     "poll_mem_64 addr=0x9000 func=eq reference=0 scope=sys",
     "copy_linear_signal bytes=64 src=0x1000 dst=0x2000 signal_addr=0x9000\n"
     "poll_mem_64 addr=0x9008 func=eq reference=0 scope=sys",
     {.generation = Generation::v7_1},
     "unchecked-packet"},
    {"signal-polled",  // its own packet, and 32 bits of the word after a NOP
     "copy_multicast_wait_signal bytes=64 src=0x1000 destinations=[0x2000 0] wait_addr=0x9000 signal_addr=0x9000",
     "copy_multicast_wait_signal bytes=64 src=0x1000 destinations=[0x2000 0] wait_addr=0x9000 signal_addr=0x9008",
     {.generation = Generation::v7_1},
     "unchecked-packet"},
    {"signal-polled",
     "copy_swap_signal bytes=64 a=0x1000 b=0x2000 signal_addr=0x9000\nnop\npoll_mem addr=0x9004 func=eq reference=0",
     "copy_swap_signal bytes=64 a=0x1000 b=0x2000 signal_addr=0x9000\nfence addr=0xa000 value=1\n"
     "poll_mem addr=0x9004 func=eq reference=0",
     {.generation = Generation::v7_1},
     "unchecked-packet"},
    {"atomic-alignment", "atomic op=add_rtn_64 addr=0x1004 value=1", "atomic op=add_rtn_32 addr=0x1004 value=1"},
};

std::set<std::string_view> all_rules() {
  std::set<std::string_view> ids;
  for (const auto& r : stream_rules()) ids.insert(r.id);
  for (const auto& p : kPackets)
    for (const auto& r : p.rules) ids.insert(r.id);
  return ids;
}

}  // namespace

TEST_CASE("skipped dwords are one finding, and the packets around them are checked") {
  const auto before = stream_of("fence addr=0x9002 value=1\n"), after = stream_of("fence addr=0x9006 value=1\n");
  StreamChecker c{{.file = "t"}};
  std::vector<Diagnostic> out;
  CHECK(c.append(out, before, false) == before.size());
  c.skip(out, Words{0xdeadbeef, 5, 1});
  CHECK(c.append(out, after, false) == after.size());
  c.skip(out, Words{1, 0xfff});  // a copy that something cuts off
  c.skip(out, {});
  c.append(out, {}, true);
  REQUIRE(out.size() == 4);
  CHECK(out[0].rule == "alignment");
  CHECK(out[1].where == "t:0x0010");
  CHECK(out[1].message == "0xdeadbeef does not begin a packet, nor do the next 2 dwords");
  CHECK(out[2].where == "t:0x001c");
  CHECK(out[3].rule == "truncated");
  CHECK(out[3].message == "copy_linear is cut off; dwords present: 2");
}

TEST_CASE("indirect buffers in a user queue are one finding; a ring of the kernel may have them") {
  const std::string two = "nop times=2\nindirect base=0x1000 dwords=8\nnop times=2\nindirect base=0x2000 dwords=8";
  CHECK(check_stream(stream_of(two)).size() == 1);
  CHECK(found(two, {.user_queue = false}) == "");
}

TEST_CASE("each rule has a stream that breaks it alone, and one beside it that does not") {
  for (const auto& e : kExamples) {
    CAPTURE(e.rule, e.bad, e.good);
    // Rules are sorted.
    const auto both = e.besides.empty() ? std::string(e.rule) : std::string(e.rule) + " " + e.besides;
    CHECK(found(e.bad, e.rule == "privileged" ? StreamCheckOptions{} : e.options) == both);
    CHECK(found(e.good, e.options) == e.besides);
  }
}

TEST_CASE("after a packet of a length in doubt, nothing is an error up to the next boundary") {
  const auto generation = Generation::v7_1;
  // Fill pages: no dword after it begins a packet.
  const Words lost{0x40b, 7, 0x00010003, 0x12345603, 0x7f11, 3, 3, 5, 0x1002, 0, 1, 0xffffffff};
  CHECK(found(lost, {.generation = generation}) == "unchecked-packet");
  // What follows reads as a fence to a misaligned word, and as one that is cut off.
  CHECK(found(Words{0x40b, 7, 0x00010003, 0x12345600, 0x7f11, 5, 0x1002, 0, 1, 5}, {.generation = generation}) ==
        "unchecked-packet");
  // A boundary: what comes after it is checked again.
  StreamChecker c{{.generation = generation}};
  std::vector<Diagnostic> out;
  c.append(out, lost, false);
  c.skip(out, Words{3});
  c.append(out, Words{5, 0x1002, 0, 1}, true);
  REQUIRE(out.size() == 3);
  CHECK(out[2].rule == "alignment");
}

TEST_CASE("legal streams of 7.1 are no error: several destinations, blocks, words of 64 bits") {
  const std::string stream =
      "poll_mem_64 addr=0x8000 func=eq reference=0 scope=sys\n"
      "copy_multicast bytes=4K src=0x10000 destinations=[0x20000 0 0x21000 0]\n"
      "copy_linear_wait_signal bytes=4K src=0x10000 dst=0x30000 wait_addr=0x8008 signal_addr=0x8010\n"
      "fence_64 addr=0x9000 value=1 mtype=3 sys scope=sys";
  for (const auto& f : check_stream(stream_of(stream, Generation::v7_1), {.generation = Generation::v7_1})) {
    INFO(to_string(f));
    CHECK(f.severity != Severity::error);
    CHECK(f.rule == "unchecked-packet");
  }
}

TEST_CASE("no rule is without an example") {
  auto left = all_rules();
  for (const auto& e : kExamples) left.erase(e.rule);
  CHECK(left.empty());
}

TEST_CASE("each rule has a section in docs/rules.md, and each section a rule") {
  std::ifstream in(std::string(SDMA_SOURCE_ROOT) + "/docs/rules.md");
  REQUIRE(in);
  std::set<std::string> sections;
  for (std::string line; std::getline(in, line);)
    if (line.starts_with("### ")) sections.insert(line.substr(4));
  std::set<std::string> rules;
  for (const auto& id : all_rules()) rules.emplace(id);
  for (const auto& r : schedule_rules()) rules.emplace(r.id);
  CHECK(sections == rules);
}

TEST_CASE("one poked word of a good stream is one error") {
  const auto good = stream_of(
      "poll_mem addr=0x7f0000001000 func=ge reference=1\n"
      "copy_linear bytes=4K src=0x7f1122334000 dst=0x7f5566778000\n"
      "copy_broadcast bytes=4K src=0x7f1122334000 dst1=0x7f9966778000 dst2=0x7faa66778000\n"
      "atomic op=add_rtn_64 addr=0x7f0000001008 value=-1\n"
      "fence addr=0x7f0000001010 value=7\n"
      "trap context=7\n");
  CHECK(found(good) == "");
  const auto poked = [&](std::size_t i, std::uint32_t v) {
    auto d = good;
    d[i] = v;
    return found(d);
  };
  CHECK(poked(0, 0xf0000008) == "unknown-code");
  CHECK(poked(1, 0x1001) == "alignment");
  CHECK(poked(5, 0x00ff0004) == "finite-poll");
  CHECK(poked(8, 0x01000000) == "endian-swap-set");
  CHECK(poked(8, 0x00040000) == "cache-policy-set");
  CHECK(poked(8, 0x00400000) == "reserved-bits");
  CHECK(poked(20, 0x66778001) == "broadcast-modulo-32");
  CHECK(poked(23, 0x1004) == "atomic-alignment");
  CHECK(poked(35, 8) == "trap-without-mailbox-fence");
}

TEST_CASE("a finding says where, what, which packet, and what to do") {
  const auto d = check_stream(stream_of("nop times=16\nfence addr=0x1002 value=1"), {.file = "ring.bin"});
  REQUIRE(d.size() == 1);
  CHECK(to_string(d[0]) ==
        "ring.bin:0x0040: error[alignment]: fence addr 0x1002 is not a multiple of 4\n"
        "  fence addr=0x1002 value=1\n"
        "  hint: move it to a multiple of the alignment");
}

TEST_CASE("positions are those of the ring") {
  const auto d = stream_of("fence addr=0x1000 value=1");
  CHECK(found(d, {.ring_bytes = 1024, .base = 1016}) == "wraps-ring");
  CHECK(found(d, {.ring_bytes = 1024, .base = 1008}) == "");
  CHECK(found(stream_of("indirect base=0x1000 dwords=8"), {.base = 8, .user_queue = false}) == "");
}

TEST_CASE("garbage is reported once, and many findings of a rule are counted") {
  const auto garbage = check_stream(Words(1000, 3));
  REQUIRE(garbage.size() == 1);
  CHECK(garbage[0].message == "0x3 does not begin a packet, nor do the next 999 dwords");
  CHECK(check_stream(Words(2, 3))[0].message == "0x3 does not begin a packet, nor does the next dword");
  std::string many;
  for (int i = 0; i < 50; ++i) many += "fence addr=2 value=1\n";
  const auto d = check_stream(stream_of(many), {.max_findings = 7});
  REQUIRE(d.size() == 8);
  CHECK(d[7].severity == Severity::note);
  CHECK(d[7].rule == "not-shown");
  CHECK(d[7].message == "findings of 'alignment' that are not shown: 43");
  CHECK(check_stream(stream_of(many), {.max_findings = 0}).size() == 50);
}

TEST_CASE("a stream in pieces is checked like the stream in one") {
  const auto x = support::Dwords{11}.stream(150);
  std::vector<Diagnostic> out;
  StreamChecker c{{}};
  Words kept;
  for (std::size_t i = 0; i < x.size(); ++i) {
    kept.push_back(x[i]);
    kept.erase(kept.begin(), kept.begin() + static_cast<std::ptrdiff_t>(c.append(out, kept, i + 1 == x.size())));
  }
  const auto whole = check_stream(x);
  REQUIRE(out.size() == whole.size());
  for (std::size_t i = 0; i < out.size(); ++i) CHECK(to_string(out[i]) == to_string(whole[i]));
}
