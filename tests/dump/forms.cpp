// Random dwords, printed in each form as the tools print it, and read back.
#include "sdma/dump/text.hpp"
#include "support/catch.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <functional>
#include <random>

using namespace sdma;

namespace {

using Dwords = std::vector<std::uint32_t>;

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
std::vector<std::uint8_t> bytes_of(const Dwords& d) {
  std::vector<std::uint8_t> b(d.size() * 4);
  std::memcpy(b.data(), d.data(), b.size());
  return b;
}

/// Prints `n` dwords a line: what stands before them, and each in `format`.
std::string lines(const Dwords& d, std::size_t n, const std::function<std::string(std::size_t)>& before,
                  const char* format, std::string_view between = " ", std::string_view after = "") {
  std::string out;
  for (std::size_t i = 0; i < d.size(); i += n) {
    out += before(i);
    for (auto k = i; k < std::min(i + n, d.size()); ++k)
      out += (k > i ? std::string(between) : "") + fmt::format(fmt::runtime(format), d[k]);
    out += std::string(after) + "\n";
  }
  return out;
}
std::string nothing(std::size_t) { return {}; }

/// 16 bytes a line in groups, as xxd and hexdump print them. `characters`: ' ' for two blanks before the column, '|', or 0 for none.
std::string groups(const Dwords& d, std::size_t group, bool little, char characters, const char* offset) {
  const auto b = bytes_of(d);
  std::string out;
  for (std::size_t i = 0; i < b.size(); i += 16) {
    const auto end = std::min(i + 16, b.size());
    auto line = fmt::format(fmt::runtime(offset), i);
    for (auto k = i; k < end; ++k) {
      const auto in = (k - i) % group;
      if (in == 0) line += ' ';
      line += fmt::format("{:02x}", little ? b[k - in + group - 1 - in] : b[k]);
    }
    std::string shown;
    for (auto k = i; k < end; ++k) shown += b[k] >= ' ' && b[k] <= '~' ? static_cast<char>(b[k]) : '.';
    if (characters == ' ') line += "  " + shown;
    if (characters == '|') line += "  |" + shown + "|";
    out += line + "\n";
  }
  return out;
}
template <class T> std::string debugger(const Dwords& d, std::size_t a_line, const char* format) {
  const auto b = bytes_of(d);
  std::string out;
  for (std::size_t i = 0; i < b.size(); i += sizeof(T)) {
    if (i / sizeof(T) % a_line == 0) out += fmt::format("{}0x{:x} <ring+{}>:", i ? "\n" : "", 0x7ffff7fb1000 + i, i);
    T v{};
    std::memcpy(&v, b.data() + i, sizeof v);
    out += "\t" + fmt::format(fmt::runtime(format), v);
  }
  return out + "\n";
}

struct FormCase {
  const char* name;
  std::function<std::string(const Dwords&)> print;
};
const std::vector<FormCase>& forms() {
  static const std::vector<FormCase> all{
      {"xxd", [](const Dwords& d) { return groups(d, 2, false, ' ', "{:08x}:"); }},
      {"xxd -e", [](const Dwords& d) { return groups(d, 4, true, ' ', "{:08x}:"); }},
      {"xxd -g1", [](const Dwords& d) { return groups(d, 1, false, ' ', "{:08x}:"); }},
      {"xxd -g4", [](const Dwords& d) { return groups(d, 4, false, ' ', "{:08x}:"); }},
      {"xxd -g8", [](const Dwords& d) { return groups(d, 8, false, ' ', "{:08x}:"); }},
      {"hexdump -C", [](const Dwords& d) { return groups(d, 1, false, '|', "{:08x} "); }},
      {"hexdump",
       [](const Dwords& d) { return groups(d, 2, true, 0, "{:07x}") + fmt::format("{:07x}\n", d.size() * 4); }},
      {"od -tx1",
       [](const Dwords& d) { return groups(d, 1, false, 0, "{:07o}") + fmt::format("{:07o}\n", d.size() * 4); }},
      {"od -tx4",
       [](const Dwords& d) { return groups(d, 4, true, 0, "{:07o}") + fmt::format("{:07o}\n", d.size() * 4); }},
      {"od -Ax -tx4",
       [](const Dwords& d) { return groups(d, 4, true, 0, "{:06x}") + fmt::format("{:06x}\n", d.size() * 4); }},
      {"od -Ad -tx4",
       [](const Dwords& d) { return groups(d, 4, true, 0, "{:07}") + fmt::format("{:07}\n", d.size() * 4); }},
      {"od -Ax -tx8",
       [](const Dwords& d) { return groups(d, 8, true, 0, "{:06x}") + fmt::format("{:06x}\n", d.size() * 4); }},
      {"gdb x/4xw", [](const Dwords& d) { return debugger<std::uint32_t>(d, 4, "0x{:08x}"); }},
      {"gdb x/2xg", [](const Dwords& d) { return debugger<std::uint64_t>(d, 2, "0x{:016x}"); }},
      {"gdb x/8xh", [](const Dwords& d) { return debugger<std::uint16_t>(d, 8, "0x{:04x}"); }},
      {"gdb x/8xb", [](const Dwords& d) { return debugger<std::uint8_t>(d, 8, "0x{:02x}"); }},
      {"offset and dword",
       [](const Dwords& d) {
         return lines(
             d, 1, [](auto i) { return fmt::format("0x{:04x} ", i * 4); }, "0x{:08x}");
       }},
      {"offset and dword, unpadded",
       [](const Dwords& d) {
         return lines(
             d, 1, [](auto i) { return fmt::format("0x{:x} ", i * 4); }, "0x{:x}");
       }},
      {"index and dword",
       [](const Dwords& d) {
         return lines(
             d, 1, [](auto i) { return fmt::format("{} ", i); }, "0x{:08x}");
       }},
      {"index, offset, dword",
       [](const Dwords& d) {
         return lines(
             d, 1, [](auto i) { return fmt::format("[{}] 0x{:x} ", i, i * 4); }, "0x{:08x}");
       }},
      {"index: offset dwords",
       [](const Dwords& d) {
         return lines(
             d, 2, [](auto i) { return fmt::format("{}: 0x{:x} ", i, i * 4); }, "{:08x}");
       }},
      {"line and offset",
       [](const Dwords& d) {
         return lines(
             d, 4, [](auto i) { return fmt::format("{} {:04x} ", i / 4 + 1, i * 4); }, "{:08x}");
       }},
      {"offset, 16 a line",
       [](const Dwords& d) {
         return lines(
             d, 16, [](auto i) { return fmt::format("{:x}: ", i * 4); }, "{:08x}");
       }},
      {"index in brackets",
       [](const Dwords& d) {
         return lines(
             d, 1, [](auto i) { return fmt::format("[{:04}] ", i); }, "0x{:08x}");
       }},
      {"ring[n] =",
       [](const Dwords& d) {
         return lines(
             d, 1, [](auto i) { return fmt::format("ring[{}] = ", i); }, "0x{:08x}");
       }},
      {"DWn:",
       [](const Dwords& d) {
         return lines(
             d, 1, [](auto i) { return fmt::format("DW{}: ", i); }, "0x{:08x}");
       }},
      {"dmesg",
       [](const Dwords& d) {
         return lines(
             d, 4, [](auto i) { return fmt::format("[  123.{:06}] amdgpu 0000:c1:00.0: ring {:08x}: ", i, i * 4); },
             "{:08x}");
       }},
      {"dmesg of bytes", [](const Dwords& d) { return groups(d, 1, false, ' ', "<6>[   12.345678] sdma: {:08x}:"); }},
      {"journalctl",
       [](const Dwords& d) {
         return lines(
             d, 4, [](auto i) { return fmt::format("Nov 22 10:00:{:02} host kernel: {:08x}: ", i % 60, i * 4); },
             "{:08x}");
       }},
      {"C",
       [](const Dwords& d) { return "uint32_t ring[] = {\n" + lines(d, 4, nothing, "0x{:08x}", ", ", ",") + "};\n"; }},
      {"C with u", [](const Dwords& d) { return lines(d, 4, nothing, "0x{:08x}u", ", ", ","); }},
      {"dwords alone", [](const Dwords& d) { return lines(d, 8, nothing, "{:08x}"); }},
      {"one dword a line", [](const Dwords& d) { return lines(d, 1, nothing, "0x{:x}"); }},
      {"comments", [](const Dwords& d) { return lines(d, 4, nothing, "{:08x}", " ", "  # four words"); }},
  };
  return all;
}

/// The text with lines of a log before it and in its middle.
std::string with_log(const std::string& text) {
  const auto middle = text.find('\n', text.size() / 2) + 1;
  return "Ring dump of engine 3:\n" + text.substr(0, middle) +
         "[  99.000001] amdgpu 0000:c1:00.0: ring sdma0 timeout, signaled seq=5, emitted seq=7\n" + text.substr(middle);
}

}  // namespace

TEST_CASE("every form gives back the dwords that were printed") {
  for (unsigned seed = 0; seed < 60; ++seed) {
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
    REQUIRE(r->notes.size() == 1);
    CHECK(r->notes[0].message.starts_with("skipped 2 lines of other text, first line 1: 'Ring dump of engine 3:'"));
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
  same("WinDbg",
       "00007ff8`a1b20000  00003000`00000005\n00007ff8`a1b20008  00000007`00007f00\n"
       "00007ff8`a1b20010  00000fff`00000001\n00007ff8`a1b20018  22334000`00000000\n");
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
