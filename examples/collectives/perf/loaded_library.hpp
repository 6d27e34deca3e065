// SPDX-License-Identifier: MIT
#pragma once
// A shared library that is loaded when it is first needed, and functions in it. Nothing of it is needed to build.
//
//   auto nccl = LoadedLibrary::load({.option = "--against", .what = "NCCL", .variable = "SDMA_NCCL_LIBRARY",
//                                    .names = {"libnccl.so.2"}, .hint = "..."});
//   if (!nccl) return nccl.error();                     // what was not found, where, and what to do
//   nccl->take(calls.get_version, "ncclGetVersion");
//   if (auto d = nccl->lacking()) return *d;            // a function that it does not have
//
// The file that the variable names is the only one that is tried; without the variable, the names are tried in
// their order, as the loader finds them. A library is never unloaded, because it may keep threads. One thread.
// Errors: Diagnostics.
#include "sdma/core/diagnostic.hpp"
#include "sdma/core/result.hpp"

#include <optional>
#include <string>
#include <type_traits>
#include <vector>

namespace collectives::perf {

struct LibraryRequest {
  std::string option{};              ///< that needs it
  std::string what{};                ///< "NCCL"
  const char* variable{};            ///< of the environment
  std::vector<const char*> names{};  ///< for the loader
  std::string hint{};                ///< where it may be
};

class LoadedLibrary {
 public:
  static sdma::Result<LoadedLibrary, sdma::Diagnostic> load(const LibraryRequest&);

  /// Leaves `to` null if the library lacks the function.
  template <class F> void take(F*& to, const char* symbol, bool needed = true) {
    static_assert(std::is_function_v<F>);
    to = reinterpret_cast<F*>(find(symbol));
    if (!to && needed && lacking_.empty()) lacking_ = symbol;
  }
  /// An error about the first function that is needed and missing.
  std::optional<sdma::Diagnostic> lacking() const;
  const std::string& name() const noexcept { return name_; }

 private:
  LoadedLibrary(void* handle, std::string name, std::string option) noexcept
      : handle_(handle), name_(std::move(name)), option_(std::move(option)) {}
  void* find(const char* symbol) const noexcept;

  void* handle_;
  std::string name_, option_, lacking_{};
};

}  // namespace collectives::perf
