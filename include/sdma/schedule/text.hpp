// SPDX-License-Identifier: MIT
#pragma once
// Schedules as text: parses, prints and formats the language of docs/schedules.md.
//
//   auto s = parse_schedule(text, "ag.sdma", {.set = {{"N", "8"}, {"chunk", "1M"}}});
//   if (!s) for (const auto& e : s.error()) puts(to_string(e).c_str());
//   std::string flat = to_text(*s);               // parse_schedule(flat) == s, to_text of that == flat
//
//   SOURCE    comments, param, let, for, if, gpu*  ---parse_schedule--->   Schedule   ---to_text--->   FLAT
//   FLAT      none of these; one spelling for everything: gpus, buffers, signals, queues, hosts, kernels, expectations
//
// Diff FLAT to compare what two sources mean. `format_source` formats a SOURCE (or a stream of packets) without
// changing its meaning: comments stay.
//
// Errors: parse_schedule reports all errors of a text at once, up to 100. Each has file:line:column, the line, a caret
// and a hint. Inside a loop, it also has the values of the loops' variables: " [i=1]". A text cannot ask for more than
// ParseOptions allow. Names may be declared after their use; `gpus` comes before the first GPU. Allocates, and throws
// only what the allocator throws. There is no shared state; any thread may call these functions.
#include "sdma/core/result.hpp"
#include "sdma/schedule/schedule.hpp"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace sdma { inline namespace v0_3 {

/// A choice that a text leaves open, and what was chosen.
struct Decision {
  std::string id{};             ///< the same in every reading of the text
  std::string name{};           ///< for people: "engines", "e [i=1 k=2]"; of an order, "k", for each of its choices
  std::size_t at{};             ///< the offset of its line's statement in the text
  std::size_t alternatives{1};  ///< 1 if --set or a list of one value leaves nothing open
  std::size_t taken{};          ///< 0: the default
  std::string value{};          ///< the number that was taken
  bool order{};                 ///< part of an order
  friend bool operator==(const Decision&, const Decision&) = default;
};

/// What the text leaves open, and what a reading of it has taken.
///
///   choose engines in 1..8                    a number: the first alternative is the default
///   for k in 1..N choose order                a loop in any order; as written by default
///
///   Decisions c;
///   auto s = parse_schedule(text, "ag.sdma", {.decisions = &c});   // the defaults; c.met is what the text leaves open
///   c.take[c.met[0].id] = 2;                                        // another alternative of the first choice
///   s = parse_schedule(text, "ag.sdma", {.decisions = &c});         // the schedule with it
///   puts(decisions_text(c.met).c_str());                            // "engines=3"
///
/// Which alternatives a choice has, and whether it is met at all, may depend on choices before it in `met`. An order of
/// n values is n choices: which of the remaining values comes next. An alternative in `take` that a choice does not
/// have counts as the first.
struct Decisions {
  std::map<std::string, std::size_t, std::less<>> take{};  ///< by id; any other choice takes its first alternative
  std::vector<Decision> met{};                             ///< of the last reading
};

/// "engines=3 k=2,1,3": every choice that had an alternative; orders only if not as written. "" if there is none.
std::string decisions_text(std::span<const Decision>);

/// Maps the parts of a schedule to their places in the text, for later reports.
struct SourceMap {
  /// A place in a text.
  struct Location {
    std::uint32_t line{}, column{};  ///< from 1; 0: not known
    std::uint32_t context{};         ///< index into `contexts`: the values of the loops' variables
  };
  /// The line that consecutive packets come from.
  struct PacketLocation {
    std::size_t dword{};  ///< index of the queue's dword at which the packets of this line begin
    Location location{};  ///< its line
  };
  std::string file{};                                  ///< the name of the text in messages
  std::vector<std::string> contexts{""};               ///< " [i=1]"
  std::vector<std::string> params{};                   ///< the names that ParseOptions::set can set, in order
  std::vector<Location> buffers{}, signals{};          ///< in the order of Schedule::buffers and Schedule::signals
  std::vector<std::vector<PacketLocation>> packets{};  ///< for each queue, in order
  std::vector<std::vector<Location>>
      actions{};          ///< for each host, then for each kernel: each action before those in its body
  std::size_t choices{};  ///< how many choices the text leaves open
  /// The line of the packet at `dword`.
  Location packet(std::size_t queue, std::size_t dword) const noexcept;
  /// The line of an action of this schedule.
  Location action(const Schedule&, const Schedule::Action&) const noexcept;
};

struct ParseOptions {
  /// A value for a `param`, or for a `choose` outside all blocks, as text: a number, an expression of numbers, a word
  /// of the param, or a list, "2, 3".
  struct Setting {
    std::string name{}, value{};  ///< of the `param` or `choose`, and its new value
  };
  std::vector<Setting> set{};  ///< these replace the values in the text
  // Limits of memory: 4 GiB for rounds, of which each may keep 64 bytes; 1 GiB for packets; and as much for items.
  std::uint64_t max_rounds = std::uint64_t{1} << 26;  ///< of all loops together
  std::uint64_t max_text = std::uint64_t{1} << 31;    ///< bytes of text that the rounds of loops repeat
  std::size_t max_dwords = std::size_t{1} << 28;      ///< of all queues
  std::size_t max_items = std::size_t{1} << 23;  ///< declarations, actions, queues of each submit, and expectations
  /// The text of a file that the schedule names: `for b in file("blocks.txt")`. Empty: it may not read other files.
  std::function<Result<std::string, Diagnostic>(const std::string& name)> read{};
  SourceMap* map = nullptr;        ///< filled if the text has no error
  Decisions* decisions = nullptr;  ///< which alternatives to take, and those that were taken; null: the defaults
};

/// For ParseOptions::read: regular files in the folder of the
/// file `path` or below; of standard input ("-"), in the working directory.
std::function<Result<std::string, Diagnostic>(const std::string& name)> files_beside(const std::string& path);

/// The schedule of a text, or all of its errors. `file`: the name of the text in errors.
Result<Schedule, std::vector<Diagnostic>> parse_schedule(std::string_view text, std::string_view file = "text",
                                                         const ParseOptions& = {});

/// The schedule as FLAT. Requires that problems(s) is empty.
std::string to_text(const Schedule&);
/// One expectation or action as one line, without indentation and without a newline.
std::string to_text(const Schedule&, const Schedule::Expectation&);
std::string to_text(const Schedule&, const Schedule::Action&);
/// The queue's packet that begins at `dword`, with the names of the schedule. Requires that a packet begins there.
std::string to_text(const Schedule&, const Schedule::Queue&, std::size_t dword);

/// Does this text begin like a schedule, with the word `sdma`? If not, it is a stream of packets, or something else.
bool is_schedule(std::string_view text) noexcept;
/// Is a file of this name a schedule, whatever is in it? Its name ends with ".sdma".
constexpr bool is_schedule_name(std::string_view path) noexcept { return path.ends_with(".sdma"); }

/// Returns the text, formatted: two spaces of indentation per block, one space between words, none inside an
/// expression, and at most one empty line in a row. A comment after a statement keeps its column if possible. The text
/// should have no errors; lines that cannot be parsed stay as they are.
std::string format_source(std::string_view text);

}}  // namespace sdma::v0_3
