// SPDX-License-Identifier: MIT
#pragma once
// The dwords that identify each packet, and its length, extracted from the descriptions of all packets for lengths.hpp.
//
//   for (const PacketLength& p : detail::kLengths)       // in the order of the registry: the first match is the packet
//
// The descriptions take a third of a second to compile; a wait that only steps over packets for its report does
// without them. A test (packets / lengths) compares the table with the registry. Constants: any thread may read
// them. No errors.
#include "sdma/packets/encode.hpp"

namespace sdma { inline namespace v0_3 { namespace detail {

struct PacketLength {
  Pattern pattern;
  std::uint8_t head;           ///< dwords that determine the length
  std::uint8_t fixed, stride;  ///< length = fixed + stride * (value of `counted`)
  FieldInfo counted{};

  constexpr std::size_t length(const std::uint32_t* d) const noexcept {
    return stride == 0 ? fixed : fixed + stride * static_cast<std::size_t>(value_of(counted, d));
  }
};

}}}  // namespace sdma::v0_3::detail

// clang-format off
// Generated from include/sdma/packets from here on: ninja -C build bless
namespace sdma { inline namespace v0_3 { namespace detail {
inline constexpr std::array<PacketLength, 70> kLengths{{
    {{{0x0000ffff}, {0x00000000}}, 1, 0, 1, {.dword = 0, .lo = 16, .hi = 29, .bias = 1}},  // nop
    {{{0xc800ffff}, {0x00000001}}, 7, 7, 0},  // copy_linear
    {{{0x0800ffff}, {0x08000001}}, 9, 9, 0},  // copy_broadcast
    {{{0x0000ffff}, {0x00000301}}, 8, 8, 0},  // copy_struct
    {{{0x0000ffff}, {0x00000401}}, 13, 13, 0},  // copy_subwindow
    {{{0x0000ffff}, {0x00000701}}, 7, 7, 0},  // copy_dirty_page
    {{{0x0000ffff}, {0x00000801}}, 7, 7, 4, {.dword = 1, .lo = 24, .hi = 31, .bias = 0}},  // copy_physical
    {{{0xc000ffff}, {0x00000901}}, 7, 7, 0},  // copy_swap
    {{{0x0000ffff}, {0x00000002}}, 4, 4, 1, {.dword = 3, .lo = 0, .hi = 19, .bias = 1}},  // write
    {{{0x0000ffff}, {0x00000004}}, 6, 6, 0},  // indirect
    {{{0x0000ffff}, {0x00000005}}, 4, 4, 0},  // fence
    {{{0x0000ffff}, {0x00000006}}, 2, 2, 0},  // trap
    {{{0x0000ffff}, {0x00000007}}, 3, 3, 0},  // semaphore
    {{{0x0000ffff}, {0x00000107}}, 3, 3, 0},  // mem_incr
    {{{0x8000ffff}, {0x80000008}}, 6, 6, 0},  // poll_mem
    {{{0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff}, {0x00000008, 0x00000000, 0x80000000, 0x00000000, 0x00000000, 0x00000000}}, 6, 6, 0},  // hdp_flush
    {{{0x8000ffff}, {0x00000008}}, 6, 6, 0},  // poll_reg
    {{{0x0000ffff}, {0x00000108}}, 4, 4, 0},  // poll_reg_to_mem
    {{{0x0000ffff}, {0x00000208}}, 5, 5, 0},  // poll_dirty_bits
    {{{0x0000ffff}, {0x00000308}}, 13, 13, 0},  // poll_verify
    {{{0x0000ffff}, {0x00000009}}, 5, 5, 0},  // cond_exec
    {{{0x000000ff}, {0x0000000a}}, 8, 8, 0},  // atomic
    {{{0x0000ffff}, {0x0000000b}}, 5, 5, 0},  // fill
    {{{0x0000ffff}, {0x0000010b}}, 6, 6, 0},  // fill_multi
    {{{0x0000ffff}, {0x0000000c}}, 10, 10, 0},  // pte_generate
    {{{0x0000ffff}, {0x0000010c}}, 8, 8, 0},  // pte_copy
    {{{0x0000ffff}, {0x0000020c}}, 8, 8, 0},  // pte_modify
    {{{0x0000ffff}, {0x0000030c}}, 7, 7, 0},  // pte_copy_backwards
    {{{0x0000ffff}, {0x0000000d}}, 3, 3, 0},  // timestamp_set
    {{{0x0000ffff}, {0x0000010d}}, 3, 3, 0},  // timestamp_local
    {{{0x0000ffff}, {0x0000020d}}, 3, 3, 0},  // timestamp
    {{{0x0000ffff}, {0x0000000e}}, 3, 3, 0},  // srbm_write
    {{{0x0000ffff}, {0x0000000f}}, 2, 2, 0},  // pre_exec
    {{{0x0000ffff}, {0x00000010}}, 2, 2, 0},  // dummy_trap
    {{{0x0000feff}, {0x00000011}}, 5, 5, 0},  // gcr
    {{{0x0c00ffff}, {0x00000101}}, 1, 13, 0},  // copy_tiled
    {{{0x0c00ffff}, {0x04000101}}, 1, 16, 0},  // copy_tiled_frame_to_field
    {{{0x0800ffff}, {0x08000101}}, 1, 16, 0},  // copy_tiled_broadcast
    {{{0x0000ffff}, {0x00000501}}, 1, 14, 0},  // copy_tiled_subwindow
    {{{0x0000ffff}, {0x00000601}}, 1, 15, 0},  // copy_tiled_to_tiled
    {{{0x0000ffff}, {0x00002401}}, 1, 20, 0},  // copy_subwindow_large
    {{{0x0000ffff}, {0x00000102}}, 9, 9, 1, {.dword = 8, .lo = 0, .hi = 19, .bias = 1}},  // write_tiled
    {{{0xc800ffff}, {0x40000001}}, 1, 14, 0},  // copy_linear_wait
    {{{0xc800ffff}, {0x80000001}}, 1, 12, 0},  // copy_linear_signal
    {{{0xc800ffff}, {0xc0000001}}, 1, 19, 0},  // copy_linear_wait_signal
    {{{0xc000ffff}, {0x40000901}}, 1, 14, 0},  // copy_swap_wait
    {{{0xc000ffff}, {0x80000901}}, 1, 12, 0},  // copy_swap_signal
    {{{0xc000ffff}, {0xc0000901}}, 1, 19, 0},  // copy_swap_wait_signal
    {{{0xc000ffff}, {0x00000a01}}, 3, 5, 2, {.dword = 2, .lo = 0, .hi = 9, .bias = 1}},  // copy_multicast
    {{{0xc000ffff}, {0x40000a01}}, 10, 12, 2, {.dword = 9, .lo = 0, .hi = 9, .bias = 1}},  // copy_multicast_wait
    {{{0xc000ffff}, {0x80000a01}}, 3, 10, 2, {.dword = 2, .lo = 0, .hi = 9, .bias = 1}},  // copy_multicast_signal
    {{{0xc000ffff}, {0xc0000a01}}, 10, 17, 2, {.dword = 9, .lo = 0, .hi = 9, .bias = 1}},  // copy_multicast_wait_signal
    {{{0x0000ffff}, {0x00000c01}}, 2, 9, 2, {.dword = 1, .lo = 24, .hi = 31, .bias = 0}},  // copy_page_transfer
    {{{0x0000ffff}, {0x00001001}}, 1, 7, 0},  // copy_linear_bc
    {{{0x0000ffff}, {0x00001101}}, 1, 13, 0},  // copy_tiled_bc
    {{{0x0000ffff}, {0x00001401}}, 1, 13, 0},  // copy_subwindow_bc
    {{{0x0000ffff}, {0x00001501}}, 1, 14, 0},  // copy_tiled_subwindow_bc
    {{{0x0000ffff}, {0x00001601}}, 1, 15, 0},  // copy_tiled_to_tiled_bc
    {{{0x0000ffff}, {0x00001102}}, 9, 9, 1, {.dword = 8, .lo = 2, .hi = 21, .bias = 1}},  // write_tiled_bc
    {{{0x0000ffff}, {0x00000105}}, 1, 9, 0},  // fence_interrupt
    {{{0x0000ffff}, {0x00000205}}, 1, 5, 0},  // fence_64
    {{{0x0000ffff}, {0x00000408}}, 1, 4, 0},  // vm_invalidate
    {{{0x0000ffff}, {0x00000508}}, 1, 8, 0},  // poll_mem_64
    {{{0x0000ffff}, {0x00000608}}, 1, 9, 0},  // poll_mem_mes
    {{{0x0000ffff}, {0x00000109}}, 1, 8, 0},  // cond_exec_exclusive
    {{{0x0000ffff}, {0x0000020b}}, 1, 9, 0},  // decompress_subwindow
    {{{0x0000ffff}, {0x0000030b}}, 1, 4, 0},  // decompress_linear
    {{{0x0000ffff}, {0x0000040b}}, 3, 3, 2, {.dword = 2, .lo = 16, .hi = 31, .bias = 0}},  // fill_page
    {{{0x0000ffff}, {0x0000010e}}, 1, 4, 0},  // register_modify
    {{{0x0000ffff}, {0x00000020}}, 1, 2, 0},  // dummy_trap
}};
}}}  // namespace sdma::v0_3::detail
