#pragma once
// Packets that are recognised by their headers and stepped over, no more: tiled copies, which a compute GPU has no use for,
// and a wide sub-window that public code sends to MI300X though no 4.x header lists it.
//
//   identify(dwords)->recognised_only       its length is known; text keeps it as one `.dword` line with its name behind it
//
// Constants; nothing fails. Lengths: the kernel's 4.x header; SUBWIN_LARGE as newer headers have it (unproven on 4.4.2).
#include "sdma/packets/info.hpp"

namespace sdma {
inline namespace v0 {
namespace detail {
// clang-format off
inline constexpr FieldInfo kWriteTiledCount{.name = "count", .doc = "dwords of data", .dword = 8, .lo = 0, .hi = 19, .bias = 1};

inline constexpr std::array kRecognised{
    recognised("copy_tiled",                op(1, 1).is(0, 26, 27, 0), 13, "copy between a tiled and a linear surface"),
    recognised("copy_tiled_frame_to_field", op(1, 1).is(0, 26, 27, 1), 16, "copy a frame to two fields"),
    recognised("copy_tiled_broadcast",      op(1, 1).is(0, 27, 27, 1), 16, "copy a linear to two tiled surfaces"),
    recognised("copy_tiled_subwindow",      op(1, 5),                  14, "copy a box between a tiled and a linear surface"),
    recognised("copy_tiled_to_tiled",       op(1, 6),                  15, "copy a box between tiled surfaces"),
    recognised("copy_subwindow_large",      op(1, 36),                 20, "copy a box of any size (unproven on 4.4.2)", 1),
    recognised("write_tiled",               op(2, 1),                   9, "store dwords to a tiled surface", kWriteTiledCount),
};
// clang-format on
}  // namespace detail
}  // namespace v0
}  // namespace sdma
