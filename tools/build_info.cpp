// SPDX-License-Identifier: MIT
#include "build_info.hpp"

#include "commit.hpp"
#include "json/json.hpp"
#include "sdma/core/version.hpp"

#include <fmt/format.h>

namespace sdma::tool {
namespace {

// clang calls itself a GCC, too.
#if defined(__clang__)
constexpr const char* kCompiler = "clang " __clang_version__;
#elif defined(__GNUC__)
constexpr const char* kCompiler = "GCC " __VERSION__;
#else
constexpr const char* kCompiler = "unknown";
#endif

std::string standard_library() {
#if defined(_LIBCPP_VERSION)
  return fmt::format("libc++ {}", _LIBCPP_VERSION);
#elif defined(__GLIBCXX__)
  return fmt::format("libstdc++ {}", __GLIBCXX__);
#else
  return "unknown";
#endif
}

/// "0.3.0", or "0.3.0-dev+a28a78ba" until this version is released.
std::string program_version() {
  std::string text(kVersion.string);
  if constexpr (!SDMA_RELEASED) {  // meson.build
    text += "-dev";
    if (std::string_view(kCommit) != "none") text += fmt::format("+{}", kCommit);
  }
  return text;
}

std::string compiler() {
  std::string_view name = kCompiler;
  return std::string(name.substr(0, name.find_last_not_of(' ') + 1));
}

}  // namespace

nlohmann::ordered_json version_json() {
  return {{"version", program_version()},
          {"library", version().string},
          {"compiler", compiler()},
          {"standard_library", standard_library()},
          {"standard", __cplusplus},
          {"options",
           {{"kfd", SDMA_WITH_KFD},  // tools/meson.build
            {"emulator", SDMA_WITH_EMULATOR},
            {"optimization", SDMA_OPTIMIZATION},
            {"sanitizers", SDMA_SANITIZERS}}}};
}

std::string version_text() {
  const auto j = version_json();
  auto text = fmt::format("sdma {}\nlibrary sdma-runtime {}\nbuilt with {}, {}, C++ {}\noptions", program_version(),
                          version().string, compiler(), standard_library(), __cplusplus);
  for (const auto& [name, value] : j["options"].items())
    text += fmt::format(" {}={}", name, value.is_string() ? value.get<std::string>() : value.dump());
  return text + "\n";
}

}  // namespace sdma::tool
