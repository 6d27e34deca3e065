// SPDX-License-Identifier: MIT
#pragma once
// Ctrl-C in a verb: it says how far it came, and the exit code is 130.
//
//   end_at_interrupt();                              // main: the first Ctrl-C prints a message and ends the program
//   Doing checking("checking " + name);              // what the message says: "interrupted while checking a.sdma"
//   checking.now("checking b.sdma, after 1 of 2 files");
//   checking.show([&] { return fmt::format("{} of {} packets", done, all); });   // how far it is, on a terminal, too
//
//   keep_what_is_known();                            // a verb with a partial answer: Ctrl-C only sets `interrupted`
//   while (interrupted == 0 && ...) ...
//   return interrupted != 0 ? stopped("3 of 7 values were simulated") : kOk;
//
// With --json, the answer has "complete": false after Ctrl-C: a partial answer as a member, and otherwise one more line
// of standard output, {"complete":false}. Output (output.hpp) writes no part of a line before it. Once an answer is
// complete, Ctrl-C comes too late and changes nothing.
//
// One thread of the program, the one that called end_at_interrupt, uses everything here. The second Ctrl-C always ends
// the program. No errors.
#include "core/program.hpp"
#include "progress.hpp"

#include <string>

namespace sdma::tool {

/// `json`: standard output has JSON, or is empty.
void end_at_interrupt(bool json);

/// What the program is doing while this object exists. The latest of several counts.
class Doing {
 public:
  explicit Doing(const std::string& what);
  Doing(const Doing&) = delete;
  Doing& operator=(const Doing&) = delete;
  ~Doing();
  /// It does something else now.
  void now(const std::string& what);
  /// How far it has come: a line on a terminal, which the next one overwrites and the end erases, and in the message.
  /// The text is made at most ten times per second.
  template <class Text> void show(Text text) {
    if (line_.due()) show_now(text());
  }

 private:
  void show_now(const std::string& text);
  void say(const std::string& what);

  std::string what_;          ///< without how far it has come
  std::string lines_[2];      ///< the message, and room for the next one
  std::size_t which_ = 0;     ///< the one that is said
  const std::string* outer_;  ///< what is said afterwards
  Progress line_{};
};

/// Ctrl-C waits until this object is gone.
class Unbroken {
 public:
  Unbroken() noexcept;
  Unbroken(const Unbroken&) = delete;
  Unbroken& operator=(const Unbroken&) = delete;
  ~Unbroken();
};

/// The answer is complete.
void answered() noexcept;

/// After keep_what_is_known: reports "interrupted: `how_far`". Returns the exit code.
int stopped(const std::string& how_far);

}  // namespace sdma::tool
