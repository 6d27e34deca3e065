// SPDX-License-Identifier: MIT
#pragma once
// Programs that this tool runs: on the software node, or under the doctor.
//
//   const auto path = find_program("my_program");              // as a shell finds it
//   if (const int code = run_program(path, words, status)) return code;
//   return end_as(status);                                      // the program's own code, or its signal
//
// The program gets the signals that are sent to this process; those of a terminal reach it directly. It does not
// outlive this process. One program at a time; one thread.
#include <sys/types.h>
#include <chrono>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

namespace sdma::tool {

/// Empty if there is none, after it has reported that.
std::filesystem::path find_program(const std::string& name);
/// A library of this project that is loaded: beside this program in a build tree (`folder`: there), or installed; empty
/// if it is in neither.
std::filesystem::path library_beside_program(const std::string& name, const std::string& folder);
/// libsdma-emulator.so
inline std::filesystem::path emulator_library() {
  return library_beside_program("libsdma-emulator.so", "lib/emulator");
}
/// Like execv: returns only on failure, with an exit code, after it has reported the error.
int execute(const std::filesystem::path& program, const std::vector<std::string>& words);

/// What happens while the program runs.
struct Watch {
  /// Called every `interval`, and at once when this process gets SIGQUIT (Ctrl-\ in a terminal), which the program
  /// ignores from its start. `asked`: because of the signal.
  std::function<void(pid_t program, bool asked)> look{};
  std::chrono::milliseconds interval{};
};
/// Runs a program as a child until it ends. Returns 0, or an exit code if it does not start. `status`: as of waitpid.
int run_program(const std::filesystem::path& program, const std::vector<std::string>& words, int& status,
                const Watch& = {});
/// Ends this process in the way that `status` describes, or returns the program's exit code.
int end_as(int status);

}  // namespace sdma::tool
