// SPDX-License-Identifier: MIT
#pragma once
// A library that is loaded at run time, and the functions that it exports.
//
//   struct Calls {
//     LoadedLibrary library;
//     int (*open)(const char* path) = library["lib_open"];            // has to be there
//     int (*watch)(int fd) = library.may("lib_watch");                // null: an older library lacks it
//   };
//   auto calls = load_once<Calls>("lib.so.1", "install lib", [](const Calls& c) -> std::string { .. why not, or "" });
//
// The initial values call `library`, so it comes first. Errors: a Diagnostic says why the library cannot be used. Any
// thread may call load_once, and use what it returns.
#include "sdma/core/diagnostic.hpp"
#include "sdma/core/result.hpp"

#include <dlfcn.h>
#include <fmt/format.h>

#include <map>
#include <memory>
#include <mutex>
#include <string>

namespace sdma { inline namespace v0_3 { namespace detail {

/// The address of a function, which becomes a pointer of the type that it initialises.
struct Symbol {
  void* at{};  ///< null: it was not found
  template <class F> operator F*() const noexcept { return reinterpret_cast<F*>(at); }
};

class LoadedLibrary {
 public:
  using Find = void* (*)(void* from, const char* symbol);
  explicit LoadedLibrary(void* from, Find find = ::dlsym) noexcept : from_(from), find_(find) {}

  Symbol may(const char* symbol) const noexcept { return {from_ ? find_(from_, symbol) : nullptr}; }
  Symbol operator[](const char* symbol) noexcept {
    const auto found = may(symbol);
    if (!found.at && !lacking_) lacking_ = symbol;
    return found;
  }
  /// The first function that `[]` has not found; null: it has found all.
  const char* lacking() const noexcept { return lacking_; }
  void* from() const noexcept { return from_; }

 private:
  void* from_;
  Find find_;
  const char* lacking_ = nullptr;
};

/// Loads the library of this name once, and never unloads it. `refuse(Calls&)` completes the calls, and says why they
/// cannot be used; "": they can.
template <class Calls, class Refuse>
Result<const Calls*, Diagnostic> load_once(const std::string& name, const char* hint, Refuse refuse) {
  static std::mutex mutex;
  static auto* const loaded = new std::map<std::string, std::unique_ptr<Calls>>;  // never destroyed, like the library
  const std::lock_guard lock(mutex);
  if (const auto at = loaded->find(name); at != loaded->end()) return at->second.get();

  const auto refused = [&](std::string why) {
    return Diagnostic{.where = name, .message = std::move(why), .hint = hint};
  };
  void* const library = dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
  if (!library) {
    const char* why = dlerror();
    return refused(fmt::format("cannot be loaded: {}", why ? why : "no reason given"));
  }
  auto calls = std::make_unique<Calls>(Calls{.library = LoadedLibrary(library)});
  if (auto why = refuse(*calls); !why.empty()) return refused(std::move(why));
  return loaded->emplace(name, std::move(calls)).first->second.get();
}

}}}  // namespace sdma::v0_3::detail
