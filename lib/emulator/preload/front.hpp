#pragma once
// Marks a function that stands in front of the C library's. The library hides everything else, and exports.map lists these.
//
//   SDMA_FRONT int dirfd(DIR* d) noexcept { ... }
#define SDMA_FRONT extern "C" [[gnu::visibility("default")]]
