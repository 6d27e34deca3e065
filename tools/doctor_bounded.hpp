// SPDX-License-Identifier: MIT
#pragma once
// Reads files of which any may never answer, such as those of a driver that hangs, in bounded time.
//
//   const auto all = read_bounded(paths, {.each = 3s, .all = 20s});
//   for (const auto& f : all) if (!f.why.empty()) puts(f.why.c_str());
//
// A child reads one file after the other. If one gives nothing for `each`, the child is ended, and a new one goes on
// with the next file. A child that waits in the kernel ends once the driver answers; nothing waits for it. It changes
// nothing but the state of these files.
//
// Call it while this process has one thread. Errors: each file has its own.
#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

namespace sdma::tool {

struct ReadBounds {
  std::chrono::milliseconds each{}, all{};
  std::uint64_t file_bytes{}, bytes{};  ///< of one file; of all
};
struct FileRead {
  std::string bytes{};
  std::string why{};  ///< why they are not all; "": they are
};
/// One for each path.
std::vector<FileRead> read_bounded(const std::vector<std::string>& paths, const ReadBounds&);

}  // namespace sdma::tool
