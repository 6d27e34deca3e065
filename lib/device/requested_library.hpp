// SPDX-License-Identifier: MIT
#pragma once
// A library that an option of a program needs: found under one of several names, or where a variable says.
// loaded_library.hpp says how its functions are found.
//
//   auto nccl = RequestedLibrary::load({.option = "--against", .what = "NCCL", .variable = "SDMA_NCCL_LIBRARY",
//                                    .names = {"libnccl.so.2"}, .hint = "..."});
//   if (!nccl) return nccl.error();                     // what was not found, where, and what to do
//   int (*version)(int*) = (*nccl)["ncclGetVersion"];
//   if (auto d = nccl->lacking()) return *d;            // a function that it does not have
//
// A struct of calls has its library as its first member, and takes the initial values of the others from it.
//
// The file that the variable names is the only one that is tried; without the variable, the names are tried in
// their order, as the loader finds them. A library is never unloaded, because it may keep threads. One thread.
// Errors: Diagnostics.
#include "loaded_library.hpp"
#include "sdma/core/diagnostic.hpp"
#include "sdma/core/result.hpp"

#include <fmt/format.h>

#include <dlfcn.h>
#include <cstdlib>
#include <optional>
#include <string>
#include <vector>

namespace sdma { inline namespace v0_3 { namespace detail {

inline std::string searched() {
  const char* path = std::getenv("LD_LIBRARY_PATH");
  return path && *path ? fmt::format("searched: LD_LIBRARY_PATH ({}) and the folders of the system", path)
                       : "searched: the folders of the system, because LD_LIBRARY_PATH is not set";
}

struct LibraryRequest {
  std::string option{};              ///< that needs it
  std::string what{};                ///< "NCCL"
  const char* variable{};            ///< of the environment
  std::vector<const char*> names{};  ///< for the loader
  std::string hint{};                ///< where it may be
};

class RequestedLibrary : public LoadedLibrary {
 public:
  static Result<RequestedLibrary, Diagnostic> load(const LibraryRequest& r) {
    const char* given = std::getenv(r.variable);
    if (given && !*given) given = nullptr;
    std::string why;
    for (const auto* name : given ? std::vector{given} : r.names) {
      if (void* handle = dlopen(name, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE))
        return RequestedLibrary(handle, name, r.option);
      const char* text = dlerror();
      why += fmt::format("{}{}", why.empty() ? "" : "; ", text ? text : name);
    }
    return Diagnostic{.where = r.option,
                      .message = given ? fmt::format("{} cannot be loaded from {}: {}", r.what, r.variable, why)
                                       : fmt::format("{} was not found: {}; {}", r.what, why, searched()),
                      .hint = fmt::format("{}; or give the path of the file in {}", r.hint, r.variable)};
  }

  /// An error about a function that `[]` has not found.
  std::optional<Diagnostic> lacking() const {
    const auto* const function = LoadedLibrary::lacking();
    if (!function) return {};
    return Diagnostic{.where = option_,
                      .message = fmt::format("{} has no function {}", name_, function),
                      .hint = "use a newer version of the library"};
  }
  const std::string& name() const noexcept { return name_; }

 private:
  RequestedLibrary(void* handle, std::string name, std::string option) noexcept
      : LoadedLibrary(handle), name_(std::move(name)), option_(std::move(option)) {}

  std::string name_, option_;
};

}}}  // namespace sdma::v0_3::detail
