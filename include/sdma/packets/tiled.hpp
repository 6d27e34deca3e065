#pragma once
// Packets that are identified by their header and skipped as a whole; their fields are not described. These are the
// tiled copies, which a compute GPU does not need, and a wide sub-window copy, which public code sends to MI300X
// although no 4.x header lists it.
//
//   identify(dwords)->fields_unknown       the length is known; text prints one `.dword` line and the name as a comment
//
// Constants: any thread may read them. No errors. The lengths come from the kernel's 4.x header, except that of
// SUBWIN_LARGE, which comes from newer headers and is unproven on 4.4.2.
#include "sdma/packets/info.hpp"

namespace sdma::inline v0::detail {
using grammar::op;

// clang-format off
inline constexpr FieldInfo kWriteTiledCount{.name = "count", .doc = "dwords of data", .dword = 8, .lo = 0, .hi = 19, .bias = 1};

inline constexpr std::array kRecognised{
    recognised("copy_tiled",                op(1, 1).is(0, 26, 27, 0), 13, "copy between a tiled and a linear surface"),
    recognised("copy_tiled_frame_to_field", op(1, 1).is(0, 26, 27, 1), 16, "copy a frame to two fields"),
    recognised("copy_tiled_broadcast",      op(1, 1).is(0, 27, 27, 1), 16, "copy a linear surface to two tiled surfaces"),
    recognised("copy_tiled_subwindow",      op(1, 5),                  14, "copy a box between a tiled and a linear surface"),
    recognised("copy_tiled_to_tiled",       op(1, 6),                  15, "copy a box between tiled surfaces"),
    recognised("copy_subwindow_large",      op(1, 36),                 20, "copy a box of any size (unproven on 4.4.2)", 1),
    recognised("write_tiled",               op(2, 1),                   9, "store dwords to a tiled surface", kWriteTiledCount),
};
// clang-format on
}  // namespace sdma::inline v0::detail
