// SPDX-License-Identifier: MIT
#pragma once
// Catch2 2 and 3 name their headers differently; the macros that we use are the same.
#if __has_include(<catch2/catch_all.hpp>)
#include <catch2/catch_all.hpp>
#else
#include <catch2/catch.hpp>
#endif
