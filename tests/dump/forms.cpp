// SPDX-License-Identifier: MIT
// Random dwords, printed in each form as the tools print it, and read back.
#include "sdma/dump/text.hpp"

#include "printed.hpp"
#include "support/catch.hpp"
#include "support/sanitizer.hpp"

#include <random>

using namespace sdma;

namespace {

using namespace printed;

Dwords random_dwords(unsigned seed, std::size_t n) {
  std::mt19937 r{seed};
  Dwords d(n);
  for (auto& w : d) switch (r() % 6) {
      case 0: w = static_cast<std::uint32_t>(r()); break;
      case 1: w = static_cast<std::uint32_t>(r() & 0xff); break;
      case 2: w = 0; break;
      case 3: w = 1; break;
      case 4: w = static_cast<std::uint32_t>(r() & 0x1fff); break;
      default: w = static_cast<std::uint32_t>(0x20202020u + (r() & 0x3f3f3f3f));
    }
  d.front() = 1;
  return d;
}
/// The text with lines of a log before it and in its middle.
std::string with_log(const std::string& text) {
  const auto middle = text.find('\n', text.size() / 2) + 1;
  return "Ring dump of engine 3:\n" + text.substr(0, middle) +
         "[  99.000001] amdgpu 0000:c1:00.0: ring sdma0 timeout, signaled seq=5, emitted seq=7\n" + text.substr(middle);
}

}  // namespace

TEST_CASE("every form gives back the dwords that were printed") {
  for (unsigned seed = 0; seed < test::tries(60u); ++seed) {
    const auto d = random_dwords(seed, 8 + seed * 2);
    for (const auto& form : forms()) {
      const auto text = form.print(d);
      CAPTURE(form.name, seed, text);
      const auto r = read_text_dump(text, "t");
      REQUIRE(r);
      REQUIRE(r->dumps.size() == 1);
      CHECK(r->dumps[0].dwords == d);
      CHECK_FALSE(r->dumps[0].form.empty());
    }
  }
}

TEST_CASE("lines of other text are skipped and counted, in every form") {
  const auto d = random_dwords(7, 64);
  for (const auto& form : forms()) {
    if (std::string_view(form.name) == "C") continue;  // has words of its own
    const auto text = with_log(form.print(d));
    CAPTURE(form.name, text);
    const auto r = read_text_dump(text, "t");
    REQUIRE(r);
    CHECK(r->dumps[0].dwords == d);
    // The line of the driver is one of a log, and is not counted. A dump in the log itself has no other lines.
    REQUIRE(r->notes.size() <= 1);
    if (!r->notes.empty())
      CHECK(r->notes[0].message.starts_with("skipped 1 line of other text, first line 1: 'Ring dump of engine 3:'"));
  }
}

TEST_CASE("offsets and addresses of the text are kept") {
  const auto d = random_dwords(3, 32);
  const auto gdb = read_text_dump(debugger<std::uint32_t>(d, 4, "0x{:08x}"), "t");
  REQUIRE(gdb);
  CHECK(gdb->dumps[0].first == 0x7ffff7fb1000);
  const auto index = read_text_dump(lines(
                                        d, 1, [](auto i) { return fmt::format("[{}] ", i + 16); }, "0x{:08x}"),
                                    "t");
  REQUIRE(index);
  CHECK(index->dumps[0].first == 64);
}

TEST_CASE("umr's ring print has the positions") {
  const auto d = random_dwords(5, 40);
  auto text = std::string("sdma0.sdma0.rptr == 27\nsdma0.sdma0.wptr == 39\nsdma0.sdma0.drv_wptr == 39\n");
  std::string rows;
  for (std::size_t i = 0; i < d.size(); ++i)
    rows += fmt::format("sdma0.sdma0.ring[{:4}] == 0x{:08x}    {}\n", i + 20, d[i],
                        i == 7    ? "r.."
                        : i == 19 ? ".wD"
                                  : "...");
  for (const bool heads : {true, false}) {
    const auto r = read_text_dump(heads ? text + rows : rows, "t");
    REQUIRE(r);
    CHECK(r->dumps[0].dwords == d);
    CHECK(r->dumps[0].first == 80);
    CHECK(r->dumps[0].rptr == 27 * 4);
    CHECK(r->dumps[0].wptr == 39 * 4);
    CHECK(r->dumps[0].ring == (heads ? "sdma0" : ""));
  }
}

TEST_CASE("a devcoredump gives its SDMA rings, and names those of other engines") {
  const auto d = random_dwords(6, 32);
  const auto ring = [&](const char* name) {
    return fmt::format(
               "ring name: {}\nRptr: 0x407 Wptr: 0x413 RB mask: 7ff\nRing size in dwords: {}\nRing contents\nOffset \t "
               "Value\n",
               name, d.size()) +
           lines(
               d, 1, [](auto i) { return fmt::format("0x{:x} \t ", i * 4); }, "0x{:x}");
  };
  const auto r = read_text_dump(
      "**** AMDGPU Device Coredump ****\nversion: 1\nkernel: 6.8\n" + ring("gfx_0.0.0") + ring("sdma0") + ring("sdma1"),
      "t");
  REQUIRE(r);
  REQUIRE(r->dumps.size() == 2);
  for (const auto& dump : r->dumps) {
    CHECK(dump.dwords == d);
    CHECK(dump.rptr == 0x407 * 4);
    CHECK(dump.wptr == 0x413 * 4);
  }
  CHECK(r->dumps[1].ring == "sdma1");
  REQUIRE(r->notes.size() == 2);
  CHECK(r->notes[0].message == "left out the rings of other engines: gfx_0.0.0");
  const auto none = read_text_dump(ring("gfx_0.0.0"), "t");
  REQUIRE_FALSE(none);
  CHECK(none.error().message == "this devcoredump has no SDMA ring; it has gfx_0.0.0");
}

TEST_CASE("a text may say which engines its rings belong to") {
  const auto says = [](const std::string& before, const std::string& after = "") {
    const auto r = read_text_dump(before + "0x0 0x5\n0x4 0x1000\n0x8 0x0\n0xc 0x1\n" + after, "t");
    REQUIRE(r);
    return r->dumps[0].generation;
  };
  CHECK(says("") == std::nullopt);
  CHECK(says("HWIP: SDMA0[3][0]: v6.0.0.0.0\nring name: sdma0\nRptr: 0x0 Wptr: 0x4\n") == Generation::v6_0);
  CHECK(says("HWIP: GC[1][0]: v9.4.3.0.0\nHWIP: SDMA0[3][0]: v4.4.2.0.0\nring name: sdma0\n") == Generation::v4_4_2);
  CHECK(says("HWIP: SDMA0[3][0]: v5.2.4.0.0\nring name: sdma0\n") == Generation::v5_2);
  CHECK(says("HWIP: SDMA0[3][0]: v3.1.0.0.0\nring name: sdma0\n") == std::nullopt);  // engines that are not known here
  CHECK(says("the GPU is a gfx1100\n") == Generation::v6_0);
  CHECK(says("the GPU is a gfx11001\n") == std::nullopt);
  CHECK(says("vbios name       : AMD MI300X_HW_SRIOV_CVS_1VF\n") == Generation::v4_4_2);
  CHECK(says("card0: sienna_cichlid\n") == Generation::v5_2);
  CHECK(says("gfx942 and Navi31\n") == std::nullopt);  // they contradict each other
  const auto umr = read_text_dump(
      "navi31.sdma0.rptr == 0\nnavi31.sdma0.wptr == 1\nnavi31.sdma0.ring[   0] == 0x00000000    rw.\n", "t");
  REQUIRE(umr);
  CHECK(umr->dumps[0].generation == Generation::v6_0);
}

TEST_CASE("what editors, mail and debuggers add to a text is removed") {
  const Dwords d{5, 0x3000, 0x7f00, 7, 1, 0xfff, 0, 0x22334000};
  const auto hex = lines(
      d, 4, [](std::size_t i) { return fmt::format("{:08x}: ", 4 * i); }, "{:08x}");
  const auto same = [&](std::string_view name, const std::string& text) {
    CAPTURE(name);
    const auto r = read_text_dump(text, "t");
    if (!r) FAIL(to_string(r.error()));
    CHECK(r->dumps[0].dwords == d);
    for (const auto& n : r->notes) CHECK((name == "CSV" || n.message.find("skipped") == n.message.npos));
  };
  const auto wide = [&](bool big, bool mark) {
    std::string out;
    const auto put = [&](unsigned high, unsigned low) {
      out += static_cast<char>(big ? high : low);
      out += static_cast<char>(big ? low : high);
    };
    if (mark) put(0xfe, 0xff);
    for (const char c : hex) put(0, static_cast<unsigned char>(c));
    return out;
  };
  for (const bool big : {false, true})
    for (const bool mark : {false, true}) same("UTF-16", wide(big, mark));
  const auto each = [&](std::string_view before, std::string_view after) {
    std::string out;
    for (std::size_t at = 0; at < hex.size();) {
      const auto end = hex.find('\n', at);
      out.append(before).append(hex, at, end - at).append(after).append("\n");
      at = end + 1;
    }
    return out;
  };
  same("quoted", each("> ", ""));
  same("quoted twice", each(">> > ", "\r"));
  same("code", each("`", "`"));
  same("table", each("| ", " |"));
  auto text = hex;
  for (std::size_t at = 0; (at = text.find(' ', at)) != text.npos; at += 2) text.replace(at, 1, "\xc2\xa0");
  same("no-break blanks", text);
  same("invisible", "\xe2\x80\x8b" + hex);
  text = hex;
  std::replace(text.begin(), text.end(), '\n', '\r');
  same("CR", text);
  same("gdb's print", "$1 = {0x5, 0x3000, 0x7f00, 0x7, 0x1, 0xfff, 0x0, 0x22334000}\n");
  same("JSON", "{\"ring\": [\"0x5\", \"0x3000\", \"0x7f00\", \"0x7\", \"0x1\", \"0xfff\", \"0x0\", \"0x22334000\"]}\n");
  same("CSV", "\"at\",\"value\"\n" +
                  lines(
                      d, 1, [](std::size_t i) { return fmt::format("\"0x{:x}\",", 4 * i); }, "\"0x{:08x}\""));
  same("Python", "[5, 12288, 32512, 7, 1, 4095, 0, 573784064]\n");
  same("NumPy", "array([    5, 12288, 32512,    7,\n           1,  4095,     0, 573784064], dtype=uint32)\n");
  same("PyTorch", "tensor([5, 12288, 32512, 7, 1, 4095, 0, 573784064], device='cuda:0', dtype=torch.int32)\n");
  same("WinDbg",
       "00007ff8`a1b20000  00003000`00000005\n00007ff8`a1b20008  00000007`00007f00\n"
       "00007ff8`a1b20010  00000fff`00000001\n00007ff8`a1b20018  22334000`00000000\n");
  const auto odd = read_text_dump(
      "0000000 00000fff00000001 2233400000000000\n0000020 6677800000007f11 0000000500007f55\n"
      "0000040 00007f0000001000 d000000800000007\n0000060 00007f0000002000 ffffffff00000003\n"
      "0000100 000000000fff0004\n0000104\n",
      "t");
  REQUIRE(odd);
  CHECK(odd->dumps[0].dwords.size() == 17);
  CHECK(odd->dumps[0].dwords.back() == 0x0fff0004);
  // Of two lists on a line, none is dropped.
  const auto two = read_text_dump("{\"a\": [1, 4294967295], \"b\": [7, 3489660936]}\n", "t");
  REQUIRE(two);
  CHECK(two->dumps[0].dwords == Dwords{1, 0xffffffff, 7, 0xd0000008});
  const auto negative = read_text_dump("tensor([-1, 7, 1, -805306360], dtype=torch.int32)\n", "t");
  REQUIRE(negative);
  CHECK(negative->dumps[0].dwords == Dwords{0xffffffff, 7, 1, 0xd0000008});
  for (const std::string_view unclear : {"[5, 12288, 32512, 7]\n", "tensor([5, 12288], dtype=torch.int64)\n",
                                         "[5, 12288, ..., 573784064]\n", "[5, 12288, 99999999999]\n"}) {
    CAPTURE(unclear);
    CHECK_FALSE(read_text_dump(unclear, "t"));
  }
  same("cat -n", "     1\t00000005 00003000 00007f00\n     2\t00000007 00000001 00000fff\n     3\t00000000 22334000\n");
}

TEST_CASE("gdb's repeats are written out, and never skipped") {
  const auto r = read_text_dump("$1 = {0x5, 0x1 <repeats 200 times>, 0x7}\n", "t");
  REQUIRE(r);
  Dwords expected(202, 1);
  expected.front() = 5, expected.back() = 7;
  CHECK(r->dumps[0].dwords == expected);
  CHECK_FALSE(read_text_dump("$1 = {0x5, 0x1 <repeats 999999999 times>, 0x7}\n", "t"));
  CHECK_FALSE(read_text_dump("$1 = {0x5, 0x1 <repeats 0x20 times>, 0x7}\n", "t"));
  CHECK_FALSE(read_text_dump("$1 = {0x5, 0x1 <repeats 200 times>...}\n", "t"));
}
