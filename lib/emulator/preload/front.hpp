#pragma once
// Marks a function that interposes one of the C library. The library hides everything else; exports.map lists these.
//
//   SDMA_FRONT int dirfd(DIR* d) noexcept { ... }
#define SDMA_FRONT extern "C" [[gnu::visibility("default")]]
