// SPDX-License-Identifier: MIT
#pragma once
// The packet that writes back and invalidates the GPU's caches: SDMA 5.0 and later, whose engines use the GPU's L2.
//
//   Gcr{.gl2_writeback = true, .glk_writeback = true}        what kernels wrote becomes visible to the engine
//   Gcr{.gl2_invalidate = true, .gl1_invalidate = true}      what others wrote becomes visible to kernels
//   Gcr{.form = GcrForm::kernel}                             as the driver sends it in its own rings
//   encode_to(gcr, out, generation)                          4.x has no such packet: fits(gcr) is false
//
// A runtime sends the first form before its copies, and the second after them. The addresses limit the operation to
// a range; 0 to 0 is all memory. Names are those of a runtime's structure; no source says what the values of the
// ranges and of the sequence mean, except that 0 is everything, in any order. 7.1 has a sixth dword, and more bits
// for addresses. There, the kernel's macros and the runtime agree where the sequence and the flag for physical
// addresses are. For 5.0 to 7.0 they do not, and no public code sets either: the kernel's macros have range_is_pa in
// control bit 18 and the sequence in bits 17:16, the runtime's older structure has the sequence in bits 18:17 and
// range_is_pa in bit 16. So `sequence` and `range_is_pa` exist in 7.1 alone; for 5.0 to 7.0, a packet with either
// does not fit. `disputed` is the opt-in: it sets these three bits as they are, and `check` warns. In 7.1, the
// runtime's structure reads control bits 5:4 as a scope of L2 and bit 6 as a write-back of the vector caches, and
// reserves bit 9. The runtime sends no such packet there; the driver does, and the names are those of its header.
//
// Ordering: unknown. That runtime sends it between other packets without a wait.
// Errors: check(packet) names the field and the rule. A plain value; any thread may use it.
#include "sdma/packets/layout.hpp"

namespace sdma { inline namespace v0_3 {
// clang-format off

/// Who sends the packet.
/// `kernel`: the driver, in its own rings; `user`: a runtime, in a user queue.
enum class GcrForm : std::uint8_t { kernel, user };
template <> inline constexpr auto grammar::names<GcrForm> = std::to_array<Name>({{0, "kernel"}, {1, "user"}});

/// Writes back and invalidates caches.
struct Gcr {
  std::uint64_t base{}, limit{};         ///< the range, in units of 128 bytes
  bool gl2_writeback{}, gl2_invalidate{}, gl2_discard{};
  std::uint8_t gl2_range{};
  bool gl2_us{}, gl1_invalidate{}, glv_invalidate{}, glk_invalidate{}, glk_writeback{}, glm_invalidate{}, glm_writeback{};
  std::uint8_t gl1_range{}, gli_invalidate{}, sequence{};  ///< sequence: 7.1, as range_is_pa
  bool range_is_pa{};
  std::uint8_t vmid{};
  GcrForm form = GcrForm::user;
  std::uint8_t disputed{};               ///< 5.0 to 7.0: control bits 18:16, as they are
};
template <> inline constexpr auto grammar::layout<Gcr> = packet(
    "gcr", op(17).is(0, 9, 15, 0), dwords(5), "write back and invalidate caches",
    bits<&Gcr::gl2_writeback> ("gl2_writeback",  2, 31, 31, "write L2 back").opt().moved(only(v7_1), 3, 15, 15),
    bits<&Gcr::gl2_invalidate>("gl2_invalidate", 2, 30, 30, "invalidate L2").opt().moved(only(v7_1), 3, 14, 14),
    bits<&Gcr::gl2_discard>   ("gl2_discard",    2, 29, 29, "discard L2 lines").opt().moved(only(v7_1), 3, 13, 13),
    bits<&Gcr::gl2_range>     ("gl2_range",      2, 27, 28, "which L2 lines; 0: all").opt().moved(only(v7_1), 3, 11, 12),
    bits<&Gcr::gl2_us>        ("gl2_us",         2, 26, 26, "L2: us").opt().moved(only(v7_1), 3, 10, 10),
    bits<&Gcr::gl1_invalidate>("gl1_invalidate", 2, 25, 25, "invalidate L1").opt().moved(only(v7_1), 3, 9, 9),
    bits<&Gcr::glv_invalidate>("glv_invalidate", 2, 24, 24, "invalidate the vector caches").opt().moved(only(v7_1), 3, 8, 8),
    bits<&Gcr::glk_invalidate>("glk_invalidate", 2, 23, 23, "invalidate the scalar caches").opt().moved(only(v7_1), 3, 7, 7),
    bits<&Gcr::glk_writeback> ("glk_writeback",  2, 22, 22, "write the scalar caches back").opt().moved(only(v7_1), 3, 6, 6),
    bits<&Gcr::glm_invalidate>("glm_invalidate", 2, 21, 21, "invalidate the metadata caches").opt().moved(only(v7_1), 3, 5, 5),
    bits<&Gcr::glm_writeback> ("glm_writeback",  2, 20, 20, "write the metadata caches back").opt().moved(only(v7_1), 3, 4, 4),
    bits<&Gcr::gl1_range>     ("gl1_range",      2, 18, 19, "which L1 lines; 0: all").opt().moved(only(v7_1), 3, 2, 3),
    bits<&Gcr::gli_invalidate>("gli_invalidate", 2, 16, 17, "invalidate the instruction caches").opt().moved(only(v7_1), 3, 0, 1),
    bits<&Gcr::base>          ("base",           1,  7, 47, "first address, in units of 128 bytes").hex().opt().moved(only(v7_1), 1, 7, 56),
    bits<&Gcr::limit>         ("limit",          3,  7, 47, "last address, in units of 128 bytes").hex().opt().moved(only(v7_1), 3, 23, 72),
    bits<&Gcr::vmid>          ("vmid",           4, 24, 27, "address space").opt().moved(only(v7_1), 5, 26, 29),
    bits<&Gcr::form>          ("form",           0,  8,  8, "who sends it").opt(),
    bits<&Gcr::sequence>      ("sequence",       3, 16, 17, "order of the operations; 0: any").opt().in(only(v7_1)),
    bits<&Gcr::range_is_pa>   ("range_is_pa",    3, 18, 18, "the addresses are physical").opt().in(only(v7_1)),
    bits<&Gcr::disputed>      ("disputed",       3,  0,  2, "sequence and range_is_pa, whose places are disputed").hex().opt().in(between(v5_0, v7_0)))
  | has(only(v7_1), dwords(6))
  | in(since(v5_0));

// clang-format on
}}  // namespace sdma::v0_3
