// SPDX-License-Identifier: MIT
#pragma once
// Dwords as tools print them: the text forms that read_text_dump reads back.
#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace printed {

using Dwords = std::vector<std::uint32_t>;

inline std::vector<std::uint8_t> bytes_of(const Dwords& d) {
  std::vector<std::uint8_t> b(d.size() * 4);
  std::memcpy(b.data(), d.data(), b.size());
  return b;
}

/// Prints `n` dwords a line: what stands before them, and each in `format`.
inline std::string lines(const Dwords& d, std::size_t n, const std::function<std::string(std::size_t)>& before,
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
inline std::string nothing(std::size_t) { return {}; }

/// 16 bytes a line in groups, as xxd and hexdump print them. `characters`:
/// ' ' for two blanks before the column, '|', or 0 for none.
inline std::string groups(const Dwords& d, std::size_t group, bool little, char characters, const char* offset) {
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
inline const std::vector<FormCase>& forms() {
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

}  // namespace printed
