// SPDX-License-Identifier: MIT
// runtime-vectors FILE: how many commands of a file this copy path writes as a runtime wrote them.
#include "sdma/core/file.hpp"
#include "vectors.hpp"

#include <cstdio>
#include <string_view>

namespace {

constexpr char kUsage[] =
    "usage: runtime-vectors FILE\n"
    "Reads commands and the dwords that a runtime wrote for them, one command a line, writes each command with the copy\n"
    "path of integration/runtime, and prints how many are equal in every dword. \"-\" is standard input.\n"
    "integration/runtime/vectors.hpp describes a line.\n"
    "Exit codes: 0 all are equal; 1 some differ; 2 usage error; 3 the file cannot be read, or has no command\n";
/// How many differences are shown.
constexpr std::size_t kShown = 20;

}  // namespace

int main(int argc, char** argv) {
  const std::string_view file = argc == 2 ? argv[1] : "";
  if (file == "--help" || file == "-h") return std::fputs(kUsage, stdout) < 0 ? 3 : 0;
  if (file.empty() || (file.starts_with('-') && file != "-")) return std::fputs(kUsage, stderr), 2;
  const auto fail = [](const sdma::Diagnostic& d) { return std::fprintf(stderr, "%s\n", to_string(d).c_str()), 3; };
  const auto text = sdma::read_file(std::string(file));
  if (!text) return fail(text.error());
  const auto vectors = runtime::read_vectors(file, *text);
  if (!vectors) return fail(vectors.error());
  if (vectors->empty())
    return fail({.where = std::string(file), .message = "has no command", .hint = "runtime-vectors --help"});

  std::size_t different = 0;
  for (const auto& v : *vectors)
    if (const auto d = runtime::compare(v); d && ++different <= kShown) std::puts(to_string(v, *d).c_str());
  if (different > kShown) std::printf("... and %zu more\n", different - kShown);
  std::printf("%zu of %zu commands are equal in every dword\n", vectors->size() - different, vectors->size());
  if (std::fflush(stdout) != 0) return 3;
  return different == 0 ? 0 : 1;
}
