// SPDX-License-Identifier: MIT
#pragma once
// A library for the programs that this process starts, and for all that they start.
//
//   const auto name = preload_name(library);                       // what LD_PRELOAD can name
//   if (!name) return report(name.error()), kInput;
//   preload(*name);
//
// The loader splits LD_PRELOAD at blanks and colons, replaces words that begin with $, and knows no quotes. A library
// whose path has one of these characters is named by a link to its folder: /tmp/sdma-UID/HASH, or below /var/tmp. HASH
// is that of the folder's path, so each later run finds the same link. It is never removed, because a descendant needs
// it at each exec, for as long as it lives. Another user can neither make it nor change it, and the descendants that
// become another user can follow it. $TMPDIR is not used: it may be removed before the last descendant has ended.
#include "sdma/core/diagnostic.hpp"
#include "sdma/core/result.hpp"

#include <filesystem>
#include <string>
#include <vector>

namespace sdma::tool {

/// The library's path, or another one that leads to it. `library` is canonical. `shared`: where a link may be.
Result<std::string, Diagnostic> preload_name(const std::filesystem::path& library,
                                             const std::vector<std::string>& shared = {"/tmp", "/var/tmp"});
/// Puts this name before what LD_PRELOAD has already.
void preload(const std::string& name);

}  // namespace sdma::tool
