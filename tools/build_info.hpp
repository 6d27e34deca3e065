// SPDX-License-Identifier: MIT
#pragma once
// What this program is, for reports of errors: its version, the library that it runs with, and how it was built.
//
//   $ sdma --version
//   sdma 0.3.0-dev+a28a78ba
//   library sdma-runtime 0.3.0
//   built with GCC 12.2.0, libstdc++ 20230707, C++ 202002
//   options kfd=true emulator=true optimization=2 sanitizers=none
//
// The first line has one form for ever: the name and the version. Until a version is released, -dev and the commit of
// the sources follow it, here and nowhere else; the commit is missing if the sources were not a repository. Constants;
// any thread. No errors.
#include <nlohmann/json_fwd.hpp>

#include <string>

namespace sdma::tool {

std::string version_text();
/// The same as an object: share/schemas/version.json.
nlohmann::ordered_json version_json();

}  // namespace sdma::tool
