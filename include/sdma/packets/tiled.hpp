// SPDX-License-Identifier: MIT
#pragma once
// Packets without a C++ type. In 4.4.2, they are identified by their header and skipped as a whole; their fields are
// not described:
//
//   - the tiled copies, which a compute GPU does not need, and a wide sub-window copy, which public code sends to
//     MI300X although no 4.x header lists it
//   - packets that only other generations have. They are listed so that their dwords are not read as something else
//
//   identify(dwords)->fields_unknown       the length is known; text prints one `.dword` line and the name as a comment
//   identify(dwords)->foreign              the same, and 4.4.2 does not have it
//
// The catalogues of later generations have fields for most of them (later.hpp), and their lengths there.
//
// Constants: any thread may read them. No errors. The lengths of 4.x come from the kernel's 4.x header, except that of
// SUBWIN_LARGE, which comes from newer headers and is unproven on 4.4.2. The lengths of packets that 4.4.2 lacks come
// from newer headers and a debugger, from PAL (7.0), and from a runtime and a header of gfx12.5 (7.1).
#include "sdma/packets/info.hpp"

namespace sdma { inline namespace v0_3 { namespace detail {

using grammar::op, grammar::only, grammar::since;

// clang-format off
inline constexpr FieldInfo kWriteTiledCount{.name = "count", .doc = "dwords of data", .dword = 8, .lo = 0, .hi = 19, .bias = 1};

inline constexpr FieldInfo kWriteTiledBcCount{.name = "count", .doc = "dwords of data", .dword = 8, .lo = 2, .hi = 21, .bias = 1};

/// The number of destinations, and of pages; `AfterWait`: after a block of 7 dwords.
inline constexpr FieldInfo kDestinations{.name = "count", .doc = "destinations", .dword = 2, .lo = 0, .hi = 9, .bias = 1};
inline constexpr FieldInfo kDestinationsAfterWait{.name = "count", .doc = "destinations", .dword = 9, .lo = 0, .hi = 9, .bias = 1};
inline constexpr FieldInfo kPages{.name = "count", .doc = "pages", .dword = 2, .lo = 16, .hi = 31};
inline constexpr FieldInfo kSystemAddresses{.name = "count", .doc = "addresses", .dword = 1, .lo = 24, .hi = 31};

inline constexpr auto kLargeBoxes = grammar::k4 | since(Generation::v6_0);
inline constexpr auto kLater = since(Generation::v5_0), kLatest = only(Generation::v7_1), kNew = since(Generation::v7_0), kGfx12 = only(Generation::v7_0);
inline constexpr std::array kRecognised{
    recognised("copy_tiled",                op(1, 1).is(0, 26, 27, 0), 13, "copy between a tiled and a linear surface", 1, kAllGenerations),
    recognised("copy_tiled_frame_to_field", op(1, 1).is(0, 26, 27, 1), 16, "copy a frame to two fields", 1, kAllGenerations),
    recognised("copy_tiled_broadcast",      op(1, 1).is(0, 27, 27, 1), 16, "copy a linear surface to two tiled surfaces", 1, kAllGenerations),
    recognised("copy_tiled_subwindow",      op(1, 5),                  14, "copy a box between a tiled and a linear surface", 1, kAllGenerations),
    recognised("copy_tiled_to_tiled",       op(1, 6),                  15, "copy a box between tiled surfaces", 1, kAllGenerations),
    recognised("copy_subwindow_large",      op(1, 36),                 20, "copy a box of any size (unproven on 4.4.2)", 1, kLargeBoxes),
    recognised("write_tiled",               op(2, 1),                   9, "store dwords to a tiled surface", kWriteTiledCount, kAllGenerations),
    // Of other generations
    recognised("copy_linear_wait",          op(1, 0).is(0, 27, 27, 0).is(0, 30, 31, 1), 14, "wait, then copy", 1, kLatest),
    recognised("copy_linear_signal",        op(1, 0).is(0, 27, 27, 0).is(0, 30, 31, 2), 12, "copy, then signal", 1, kLatest),
    recognised("copy_linear_wait_signal",   op(1, 0).is(0, 27, 27, 0).is(0, 30, 31, 3), 19, "wait, copy, signal", 1, kLatest),
    recognised("copy_swap_wait",            op(1, 9).is(0, 30, 31, 1), 14, "wait, then exchange", 1, kLatest),
    recognised("copy_swap_signal",          op(1, 9).is(0, 30, 31, 2), 12, "exchange, then signal", 1, kLatest),
    recognised("copy_swap_wait_signal",     op(1, 9).is(0, 30, 31, 3), 19, "wait, exchange, signal", 1, kLatest),
    recognised("copy_multicast",            op(1, 10).is(0, 30, 31, 0), 5, "copy to several destinations", kDestinations, kLatest, 2),
    recognised("copy_multicast_wait",       op(1, 10).is(0, 30, 31, 1), 12, "wait, then copy to several destinations", kDestinationsAfterWait, kLatest, 2),
    recognised("copy_multicast_signal",     op(1, 10).is(0, 30, 31, 2), 10, "copy to several destinations, then signal", kDestinations, kLatest, 2),
    recognised("copy_multicast_wait_signal", op(1, 10).is(0, 30, 31, 3), 17, "wait, copy to several destinations, signal", kDestinationsAfterWait, kLatest, 2),
    recognised("copy_page_transfer",        op(1, 12),                  9, "copy pages", kSystemAddresses, kNew, 2),
    recognised("copy_linear_bc",            op(1, 16),                  7, "copy, in an older form", 1, kLater),
    recognised("copy_tiled_bc",             op(1, 17),                 13, "copy_tiled in an older form", 1, kLater),
    recognised("copy_subwindow_bc",         op(1, 20),                 13, "copy_subwindow in an older form", 1, kLater),
    recognised("copy_tiled_subwindow_bc",   op(1, 21),                 14, "copy_tiled_subwindow in an older form", 1, kLater),
    recognised("copy_tiled_to_tiled_bc",    op(1, 22),                 15, "copy_tiled_to_tiled in an older form", 1, kLater),
    recognised("write_tiled_bc",            op(2, 17),                  9, "write_tiled in an older form", kWriteTiledBcCount, kLater),
    recognised("fence_interrupt",           op(5, 1),                   9, "fence with a conditional interrupt; in 6.0 and 6.1, a protected fence", 1, since(Generation::v6_0)),
    recognised("fence_64",                  op(5, 2),                   5, "store 64 bits once all earlier packets are complete", 1, kLatest),
    recognised("vm_invalidate",             op(8, 4),                   4, "invalidate translations", 1, kLater),
    recognised("poll_mem_64",               op(8, 5),                   8, "wait for 64 bits in memory", 1, kLatest),
    recognised("poll_mem_mes",              op(8, 6),                   9, "wait, in step with a scheduler", 1, kLatest),
    recognised("cond_exec_exclusive",       op(9, 1),                   8, "execute the next packets once", 1, kLatest),
    recognised("decompress_subwindow",      op(11, 2),                  9, "decompress a box of a tiled surface in place", 1, kGfx12),
    recognised("decompress_linear",         op(11, 3),                  4, "decompress memory in place", 1, kGfx12),
    recognised("fill_page",                 op(11, 4),                  3, "fill pages", kPages, kNew, 2),
    recognised("register_modify",           op(14, 1),                  4, "change bits of a register", 1, kLater),
    recognised("dummy_trap",                op(32, 0),                  2, "raise an interrupt that has no handler", 1, kLater),
};
// clang-format on
}}}  // namespace sdma::v0_3::detail
