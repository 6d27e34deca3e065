// SPDX-License-Identifier: MIT
#pragma once
// The recordings of a program's processes, from which `sdma emulate` draws pictures after the program has ended.
//
//   Recording r("run.json");                        // creates a folder beside run.json, with a name that nothing had
//   if (!r.error().empty()) ...
//   run_program(r.file());                          // each process records into r.file() or r.file().PID
//   return r.draw();                                // run.json, and run.json.PID for each further process
//
// The folder and everything in it belong to this object, which removes them. If this process is killed, they remain,
// and `sdma trace` reads them. No other file is touched, except the picture itself: if run.json.PID exists, the picture
// of that process becomes run.json.PID-1.
// Errors: of the folder: error(). `draw` reports its errors, and returns an exit code. Threads: one.
#include <filesystem>
#include <string>

namespace sdma::tool {

class Recording {
 public:
  explicit Recording(std::filesystem::path picture);
  Recording(const Recording&) = delete;
  Recording& operator=(const Recording&) = delete;
  ~Recording();

  /// Why there is no folder; "" if there is one.
  const std::string& error() const noexcept { return error_; }
  std::string file() const { return folder_ / kFile; }
  int draw();

 private:
  static constexpr const char* kFile = "trace.jsonl";

  const std::filesystem::path picture_;
  std::filesystem::path folder_{};
  std::string error_{};
};

}  // namespace sdma::tool
