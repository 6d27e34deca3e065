// SPDX-License-Identifier: MIT
#pragma once
// Catch2 2 and 3 name their headers and a few functions differently. Tests write the names of version 2.
#if __has_include(<catch2/catch_all.hpp>)
#include <catch2/catch_all.hpp>

#include <string>

using Catch::Approx;
namespace Catch {
inline auto Contains(const std::string& words) { return Matchers::ContainsSubstring(words); }
}  // namespace Catch
#else
#include <catch2/catch.hpp>
#endif
