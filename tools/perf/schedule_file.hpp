// SPDX-License-Identifier: MIT
#pragma once
// A variant of one's own: a file in the language of docs/schedules.md, in the same table as ours.
//
//   auto f = schedule_file("rings/my_ring.sdma:chunks=4", {{"part", "bytes/N"}}, others);
//                                                           f->label == "my_ring.sdma:chunks=4"
//   load(*f, text)                                          what the file holds: its params
//   auto s = schedule_of(*f, options)                       the sdma::Schedule for so many GPUs and bytes
//   auto c = prepare_file(*f, options, device, settings)    a Contender, verified by the file's expectations
//
// The file says by its params how GPUs and bytes are called. `N` receives the number of GPUs and `bytes` the size,
// unless a setting names others: PARAM=EXPRESSION, in which N and bytes are these two numbers.
//
//   param N = 4                  param gpus = 4                     param N = 4
//   param bytes = 1M             param bytes = 1M                   param chunk = 64K
//                                ring.sdma:gpus=N                   ring.sdma:chunk=bytes/N, or --map chunk=bytes/N
//
// A file that could not be compared with the others is refused: one without expectations; one of another number of
// GPUs; one that a checker is to find wrong; and one whose expectations cover fewer bytes than the collective moves
// between GPUs. Only bytes that come from a buffer with init=random count, because others can be right before
// anything has moved.
//
// A round of such a file is the last one of its host threads, by the rule of sdma/simulate/simulate.hpp. Only
// expectations are compared: bytes that none of them names are not verified.
//
// Plain values; any thread may use them. Errors: Diagnostics that name the file.
#include "contender.hpp"
#include "sdma/schedule/schedule.hpp"
#include "sdma/schedule/text.hpp"

#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace collectives::perf {

struct ScheduleFile {
  std::string path{};
  std::string label{};  ///< its name in tables: without the folder, with its settings
  std::vector<ParamSetting> set{};
  std::string text{};
  std::vector<std::string> params{};  ///< of the text
  bool triggered{};                   ///< its hosts set signals: its work is published before a trigger, as with +pl
};

/// True if this word of --variant names a file: PATH.sdma or PATH.sdma:PARAM=EXPRESSION:...
bool names_file(std::string_view word) noexcept;
/// The file of that word. `map`: settings of all files, which its own settings replace. `others`: if one of another
/// folder has the same label, this label is the whole path.
sdma::Result<ScheduleFile, sdma::Diagnostic> schedule_file(std::string_view word, const std::vector<ParamSetting>& map,
                                                           const std::vector<std::shared_ptr<ScheduleFile>>& others);
/// Takes the text of the file, and completes the settings. Errors: those of the text, and params that it does not have.
sdma::Result<void, std::vector<sdma::Diagnostic>> load(ScheduleFile&, std::string text);

/// Adds a setting, in place of one of the same name.
void replace(std::vector<ParamSetting>&, ParamSetting);

/// Sets a param of a loaded file; false if the file does not have it.
bool set_param(ScheduleFile&, const std::string& name, const std::string& value);

/// True for '+pl', and for a file that is triggered.
bool prelaunched(const Way&) noexcept;

/// The expression with numbers in place of `N` and `bytes`.
std::string with_numbers(std::string_view expression, std::uint32_t gpus, std::uint64_t bytes);

/// The schedule for the collective, GPUs and bytes of these options.
sdma::Result<sdma::Schedule, std::vector<sdma::Diagnostic>> schedule_of(const ScheduleFile&, const Options&);

/// Binds the schedule. The Contender measures the time of a round itself: the actions before it are not part of it.
sdma::Result<std::unique_ptr<Contender>, std::vector<sdma::Diagnostic>> prepare_file(const ScheduleFile&,
                                                                                     const Options&, sdma::Device&,
                                                                                     const Settings&);

}  // namespace collectives::perf
