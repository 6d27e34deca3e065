// SPDX-License-Identifier: MIT
// Other files of a schedule: lists of numbers, in the folder of its own.
#include "sdma/core/file.hpp"
#include "sdma/schedule/text.hpp"

#include <algorithm>
#include <filesystem>
#include <system_error>

namespace sdma { inline namespace v0_3 {
namespace {

namespace fs = std::filesystem;

/// Does `file` lie in `folder` or below, wherever symbolic links lead? If a file does not exist, its name decides.
bool lies_below(const fs::path& file, const fs::path& folder) {
  std::error_code failed;
  const auto whole = fs::weakly_canonical(file, failed), root = fs::weakly_canonical(folder, failed);
  if (failed) return false;
  return std::mismatch(root.begin(), root.end(), whole.begin(), whole.end()).first == root.end();
}

}  // namespace

std::function<Result<std::string, Diagnostic>(const std::string&)> files_beside(const std::string& path) {
  auto folder = path == "-" ? fs::path() : fs::path(path).parent_path();
  if (folder.empty()) folder = ".";
  return [folder](const std::string& name) -> Result<std::string, Diagnostic> {
    constexpr std::size_t kPiece = std::size_t{1} << 16, kMost = std::size_t{1} << 24;
    // "./-" is a file; "-" alone would be standard input.
    const auto file = folder / name;
    const auto whole = file.string();
    if (!lies_below(file, folder))
      return Diagnostic{.where = whole,
                        .message = "lies outside the schedule's folder",
                        .hint = "put the file beside the schedule: it reads nothing else"};
    // Opening a FIFO would wait for its writer.
    if (std::error_code failed; fs::exists(file, failed) && !fs::is_regular_file(file, failed))
      return Diagnostic{.where = whole, .message = "is not a regular file", .hint = "write its numbers to a file"};
    FileReader in{whole};
    std::string text;
    for (;;) {
      const auto more = in.read(text, kPiece);
      if (!more) return more.error();
      if (!*more) return text;
      if (text.size() > kMost)
        return Diagnostic{.where = whole, .message = "has more than 16 MiB", .hint = "it should be a list of numbers"};
    }
  };
}

}}  // namespace sdma::v0_3
