// SPDX-License-Identifier: MIT
#include "loaded_library.hpp"

#include <dlfcn.h>
#include <fmt/format.h>

#include <cstdlib>

namespace collectives::perf {

using sdma::Diagnostic;

namespace {

std::string searched() {
  const char* path = std::getenv("LD_LIBRARY_PATH");
  return path && *path ? fmt::format("searched: LD_LIBRARY_PATH ({}) and the folders of the system", path)
                       : "searched: the folders of the system, because LD_LIBRARY_PATH is not set";
}

}  // namespace

sdma::Result<LoadedLibrary, Diagnostic> LoadedLibrary::load(const LibraryRequest& r) {
  const char* given = std::getenv(r.variable);
  if (given && !*given) given = nullptr;
  std::string why;
  for (const auto* name : given ? std::vector{given} : r.names) {
    if (void* handle = dlopen(name, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE))
      return LoadedLibrary(handle, name, r.option);
    const char* text = dlerror();
    why += fmt::format("{}{}", why.empty() ? "" : "; ", text ? text : name);
  }
  return Diagnostic{.where = r.option,
                    .message = given ? fmt::format("{} cannot be loaded from {}: {}", r.what, r.variable, why)
                                     : fmt::format("{} was not found: {}; {}", r.what, why, searched()),
                    .hint = fmt::format("{}; or give the path of the file in {}", r.hint, r.variable)};
}

std::optional<Diagnostic> LoadedLibrary::lacking() const {
  if (lacking_.empty()) return {};
  return Diagnostic{.where = option_,
                    .message = fmt::format("{} has no function {}", name_, lacking_),
                    .hint = "use a newer version of the library"};
}

void* LoadedLibrary::find(const char* symbol) const noexcept { return dlsym(handle_, symbol); }

}  // namespace collectives::perf
