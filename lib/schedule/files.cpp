// SPDX-License-Identifier: MIT
// Other files of a schedule: lists of numbers, in the folder of its own.
#include "sdma/core/file.hpp"
#include "sdma/schedule/text.hpp"

#include <filesystem>

namespace sdma::inline v0 {

std::function<Result<std::string, Diagnostic>(const std::string&)> files_beside(const std::string& path) {
  const auto folder = path == "-" ? std::filesystem::path() : std::filesystem::path(path).parent_path();
  return [folder](const std::string& name) -> Result<std::string, Diagnostic> {
    constexpr std::size_t kPiece = std::size_t{1} << 16, kMost = std::size_t{1} << 24;
    // "./-" is a file; "-" alone would be standard input.
    const auto whole = ((folder.empty() ? std::filesystem::path(".") : folder) / name).string();
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

}  // namespace sdma::inline v0
