#pragma once
// Schedules as text: the language of docs/schedules.md, read, written, and laid out.
//
//   auto s = parse_schedule(text, "ag.sdma", {.set = {{"N", "8"}, {"chunk", "1M"}}});
//   if (!s) for (const auto& e : s.error()) puts(to_string(e).c_str());
//   std::string flat = to_text(*s);               // parse_schedule(flat) == s, to_text of that == flat
//
//   SOURCE    comments, param, let, for, gpu*      ---parse_schedule--->   Schedule   ---to_text--->   FLAT
//   FLAT      none of these; one spelling of everything: gpus, buffers, signals, queues, hosts, expectations
//
// Diff FLAT to compare what two sources mean. `format_source` lays out a SOURCE (or a stream of packets) and changes no
// meaning: comments stay.
//
// Errors: all of a text at once, up to 100, each with file:line:column, the line, a caret and a hint; inside of a loop also
// where the loop stands, " [i=1]". A text cannot ask for more than ParseOptions allow. Names may be declared behind their
// use; `gpus` stands before the first GPU.
// Allocates; no shared state: any thread. Nothing here throws but the allocator.
#include "sdma/core/result.hpp"
#include "sdma/schedule/schedule.hpp"

#include <string>
#include <string_view>
#include <vector>

namespace sdma {
inline namespace v0 {

/// Where the text says what a schedule holds: for whoever reports on it later.
struct SourceMap {
  struct Spot {
    std::uint32_t line{}, column{};  ///< from 1; 0: not known
    std::uint32_t context{};         ///< of `contexts`: where the loops stand
  };
  struct PacketSpot {
    std::size_t dword{};  ///< of the queue: where the packets of this line begin
    Spot spot{};
  };
  std::string file{};
  std::vector<std::string> contexts{""};           ///< " [i=1]"
  std::vector<Spot> buffers{}, signals{};          ///< in the order of the schedule's
  std::vector<std::vector<PacketSpot>> packets{};  ///< of each queue, in order
  std::vector<std::vector<Spot>> actions{};        ///< of each host: each action before those in its body
  /// The line of the packet at `dword`.
  Spot packet(std::size_t queue, std::size_t dword) const noexcept;
};

struct ParseOptions {
  /// A value for a `param`, as text: a number or an expression of numbers.
  struct Setting {
    std::string name{}, value{};
  };
  std::vector<Setting> set{};
  std::uint32_t max_rounds = 1u << 20;            ///< of one `for`, and of all inner loops of one outermost `for`
  std::size_t max_dwords = std::size_t{1} << 26;  ///< of all queues
  std::size_t max_items = std::size_t{1} << 20;   ///< declarations, actions and expectations
  SourceMap* map = nullptr;                       ///< filled where the text has no error
};

/// The schedule of a text, or every error. `file` is what the errors call it.
Result<Schedule, std::vector<Diagnostic>> parse_schedule(std::string_view text, std::string_view file = "text",
                                                         const ParseOptions& = {});

/// FLAT. Requires problems(s) to be none.
std::string to_text(const Schedule&);
/// One expectation or action as its line, without blanks before and newline behind.
std::string to_text(const Schedule&, const Schedule::Expectation&);
std::string to_text(const Schedule&, const Schedule::Action&);
/// The packet of a queue that begins at `dword`, with the names of the schedule. Requires that one does.
std::string to_text(const Schedule&, const Schedule::Queue&, std::size_t dword);

/// Does this text begin as a schedule: its first word is `sdma`? Else it is a stream of packets, or something else.
bool is_schedule(std::string_view text) noexcept;

/// The same text, laid out: two blanks a block, one between words, none inside of an expression; at most one empty line in a
/// row; a comment behind a statement keeps its column where it can. Requires a text without errors; of another, lines
/// that cannot be understood stay as they are.
std::string format_source(std::string_view text);

}  // namespace v0
}  // namespace sdma
