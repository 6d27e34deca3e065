// SPDX-License-Identifier: MIT
#pragma once
// Marks a function that interposes one of the C library. The library hides everything else; exports.map lists these.
//
//   SDMA_FRONT int dirfd(DIR* d) noexcept { ... }
//
// No exception leaves such a function: what allocates runs in `guarded` (../no_memory.hpp).
#define SDMA_FRONT extern "C" [[gnu::visibility("default")]]
