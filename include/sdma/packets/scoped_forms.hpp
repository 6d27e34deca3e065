// SPDX-License-Identifier: MIT
#pragma once
// The forms of the packets of scoped.hpp, as the catalogue of 7.1 lists them: with and without the blocks that wait and
// signal, each with its fields where they lie on the wire.
//
//   scoped::kForm<ScopedCopy, true, false>.fields()    of copy_linear_wait: src is in dword 10, and no field signals
//   scoped::kForm<Multicast, false, true>.length       of copy_multicast_signal: 10 dwords, 2 more for a destination
//
// They follow from the descriptions, so that the encoder and the reader cannot differ. Internal: generation_list.hpp
// takes them. Constants: any thread may read them. No errors.
#include "sdma/packets/bits.hpp"
#include "sdma/packets/scoped.hpp"

namespace sdma { inline namespace v0_3 { namespace detail { namespace scoped {

/// The fields and the length of one form. `Most`: the fields of all forms.
template <std::size_t Most> struct Form {
  grammar::Length length{};
  std::array<FieldInfo, Most> all{};
  std::size_t count = 0;
  constexpr std::span<const FieldInfo> fields() const noexcept { return {all.data(), count}; }
};

/// The field of that name decides which form it is, or only a form with an indirect address has it.
constexpr bool is_flag(std::string_view name) noexcept { return name == "wait" || name == "signal"; }
constexpr bool is_indirect(std::string_view name) noexcept {
  return name.starts_with("indirect_") || name.starts_with("slot_");
}

/// `indirect`: the form may take an address from a slot.
template <class L> consteval auto form(const L& l, bool wait, bool signal, bool indirect) {
  Form<L{}.fields.size()> out;
  const std::array there{wait, signal};
  out.length = {static_cast<std::uint8_t>(l.length.fixed - missing(l.length, there)), l.length.counted, l.length.stride,
                static_cast<std::uint8_t>(signal ? l.length.tail_dwords : 0)};
  for (const auto& described : l.fields) {
    if (is_flag(described.name) || (is_indirect(described.name) && !indirect)) continue;
    if (missing(l.length, there, described.dword)) continue;
    auto f = described;
    for (std::size_t d = 0; d < described.dword; ++d)
      f.dword = static_cast<std::uint8_t>(f.dword - missing(l.length, there, d));
    f.member = static_cast<std::uint8_t>(out.count);
    f.generations = grammar::only(Generation::v7_1);
    out.all[out.count++] = f;
  }
  return out;
}
template <class P, bool Wait, bool Signal, bool Indirect = true>
inline constexpr auto kForm = form(grammar::layout<P>, Wait, Signal, Indirect);

template <class P, bool Wait, bool Signal> constexpr Later later(std::string_view name) noexcept {
  return {name, grammar::only(Generation::v7_1), kForm<P, Wait, Signal>.length, kForm<P, Wait, Signal>.fields()};
}

inline constexpr std::array kForms{later<ScopedCopy, false, false>("copy_indirect"),
                                   later<ScopedCopy, true, false>("copy_linear_wait"),
                                   later<ScopedCopy, false, true>("copy_linear_signal"),
                                   later<ScopedCopy, true, true>("copy_linear_wait_signal"),
                                   later<ScopedSwap, true, false>("copy_swap_wait"),
                                   later<ScopedSwap, false, true>("copy_swap_signal"),
                                   later<ScopedSwap, true, true>("copy_swap_wait_signal"),
                                   later<Multicast, false, false>("copy_multicast"),
                                   later<Multicast, true, false>("copy_multicast_wait"),
                                   later<Multicast, false, true>("copy_multicast_signal"),
                                   later<Multicast, true, true>("copy_multicast_wait_signal"),
                                   later<Fence64, false, false>("fence_64"),
                                   later<PollMem64, false, false>("poll_mem_64")};

/// A copy of 7.1 that takes an address from a slot, and neither waits nor signals. A copy_linear, which has neither of
/// the two bits, comes first.
inline constexpr auto kCopyIndirect =
    recognised("copy_indirect", grammar::op(1, 0).is(0, 27, 27, 0).is(0, 30, 31, 0), 7,
               "copy, with an address from memory", 1, grammar::only(Generation::v7_1));

}}}}  // namespace sdma::v0_3::detail::scoped
