// SPDX-License-Identifier: MIT
#pragma once
// The one reader of /proc/PID/maps: where the pages of a process are, what it may do with them, and what they are of.
//
//   7f5c00000000-7f5c00021000 rw-p 00001000 fe:01 7340041                    /srv/a file (deleted)
//   from         to           access offset device inode                      path
//
//   each_mapping(fd, [&](const MapsLine& m) { return m.to <= address; });      // false ends it
//   for (std::string_view rest = text; !rest.empty();)
//     if (const auto m = maps_line(take_line(rest))) ...
//
// Allocates nothing and calls `read` alone, so that it may run inside a preloaded library, where the program's
// allocator or streams may be what is being served; each_mapping takes 4.5 KiB of the stack. The paths lie in the text,
// and end with the call for each_mapping. The kernel writes a newline in a path as "\012", and " (deleted)" after it.
//
// Any thread; internal. Errors: none. What is not a whole line of maps is left out. each_mapping also leaves out a last
// line without its end, and cuts a path of more than 4 KiB, which opens no file.
#include "words.hpp"

#include <unistd.h>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <optional>
#include <string_view>

namespace sdma { inline namespace v0_3 { namespace detail {

/// A mapping: one line.
struct MapsLine {
  std::uint64_t from{}, to{}, offset{}, inode{};  ///< inode 0: pages of no file
  std::string_view access{};                      ///< "rw-p"
  std::string_view device{};                      ///< of the inode: "fe:01"
  std::string_view path{};  ///< as the kernel writes it: "/srv/a file (deleted)", "[heap]", "" for no name
  bool readable() const noexcept { return access[0] == 'r'; }
  bool writable() const noexcept { return access[1] == 'w'; }
  bool executable() const noexcept { return access[2] == 'x'; }
  bool shared() const noexcept { return access[3] == 's'; }
};

/// A line without its end; nullopt: it is not one of maps.
inline std::optional<MapsLine> maps_line(std::string_view line) noexcept {
  const auto range = take_word(line), access = take_word(line), offset = take_word(line), device = take_word(line),
             inode = take_word(line);
  const auto dash = std::min(range.find('-'), range.size());
  const auto from = whole_number<std::uint64_t>(range.substr(0, dash), 16);
  const auto to = whole_number<std::uint64_t>(range.substr(std::min(dash + 1, range.size())), 16);
  const auto at = whole_number<std::uint64_t>(offset, 16), node = whole_number<std::uint64_t>(inode);
  if (!from || !to || !at || !node || access.size() != 4) return {};
  line.remove_prefix(std::min(line.find_first_not_of(' '), line.size()));
  return MapsLine{
      .from = *from, .to = *to, .offset = *at, .inode = *node, .access = access, .device = device, .path = line};
}

/// Passes each mapping of an open maps file to `next`, until that returns false.
template <class F> void each_mapping(int fd, F next) {
  char text[4096 + 256];  // of one line: what comes before the path has less than 128 bytes
  std::size_t have = 0;
  bool inside = false;  // a line whose beginning has been passed on
  const auto passed = [&](std::string_view line) {
    const auto m = inside ? std::nullopt : maps_line(line);
    return !m || next(*m);
  };
  for (;;) {
    const auto n = ::read(fd, text + have, sizeof text - have);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return;
    std::string_view rest(text, have + static_cast<std::size_t>(n));
    for (auto end = rest.find('\n'); end != rest.npos; end = rest.find('\n')) {
      if (!passed(rest.substr(0, end))) return;
      inside = false;
      rest.remove_prefix(end + 1);
    }
    if (rest.size() == sizeof text) {
      if (!passed(rest)) return;
      inside = true;
      rest = {};
    }
    have = rest.size();
    std::memmove(text, rest.data(), have);
  }
}

}}}  // namespace sdma::v0_3::detail
