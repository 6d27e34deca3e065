// SPDX-License-Identifier: MIT
#pragma once
// Algorithms of MSCCL, which XML files describe, as schedules (docs/msccl.md).
//
//   std::string text = ..;                                       // of a file: a schedule, or XML
//   ParseOptions parse{.set = {{"bytes", "1M"}, {"slots", "2"}}, .map = &map};
//   auto s = msccl::read_schedule(text, "ag.xml", parse);        // as parse_schedule; `map` has the lines of the XML
//
//   msccl::Made made;                                            // or in two steps
//   if (auto wrong = msccl::make_schedule(text, "ag.xml", parse.set, made)) return report(wrong->all), kInput;
//   report(made.notes);
//
// A text that is not XML of MSCCL stays as it is. Reading needs expat; without it, the error says so.
#include "sdma/core/diagnostic.hpp"
#include "sdma/core/result.hpp"
#include "sdma/schedule/text.hpp"

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace sdma::msccl {

/// Is `algo` the first element of a text that begins so?
bool begins(std::string_view) noexcept;

/// Why there is no schedule.
struct Wrong {
  bool refuted = false;  ///< the algorithm is wrong; otherwise, the file cannot be read, or has no form here
  std::vector<Diagnostic> all{};
};

/// What a user sets beside the params of the schedule.
struct Choices {
  std::uint64_t slots = 0;         ///< per connection; 0: a send waits for its receive
  std::optional<bool> in_place{};  ///< none: as the file says, out of place if it allows both
};

/// The settings that are choices, and not params.
inline bool is_choice(std::string_view name) noexcept { return name == "slots" || name == "inplace"; }

/// What is known of a schedule beside its text.
struct Made {
  std::vector<std::uint32_t> lines{};  ///< the line of the XML for each line of the text; empty: it was not XML
  std::vector<Diagnostic> notes{};     ///< what a verb should say about it
  bool blocking = false;               ///< a send waits for its receive
  std::map<std::uint32_t, std::uint32_t> receives{};  ///< of the line of a send, that of its receive

  explicit operator bool() const noexcept { return !lines.empty(); }
  void move_lines(SourceMap&) const;
  void move_lines(std::vector<Diagnostic>&) const;  ///< of parse_schedule
};
struct Text {
  std::string text{};
  Made made{};
};
Result<Text, Wrong> translate(std::string_view xml, const std::string& file, const Choices&);

/// Makes a schedule of a text that `begins`, and takes `slots` and `inplace` out of the settings.
std::optional<Wrong> make_schedule(std::string& text, const std::string& file, std::vector<ParseOptions::Setting>&,
                                   Made&);

/// The schedule of a text, or of XML of MSCCL. All errors, and what the options' map says, have the lines of the file.
Result<Schedule, std::vector<Diagnostic>> read_schedule(std::string text, const std::string& file, ParseOptions,
                                                        Made* made = nullptr);

}  // namespace sdma::msccl
