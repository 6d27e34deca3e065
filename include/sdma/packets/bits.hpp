// SPDX-License-Identifier: MIT
#pragma once
// The words for fields that no C++ type holds, as data of a generation: later.hpp, changes.hpp and scoped_forms.hpp are
// written in them. Internal.
//
//   fields(list(Bits{"sys", 0, 20, 20, "system memory"}, Bits{"z", 4, 0, 12, "first slice"}.moved(k12, 4, 0, 13)))
//
// Constants: any thread may read them. No errors.
#include "sdma/packets/info.hpp"
#include "sdma/packets/scope.hpp"

#include <array>
#include <span>

namespace sdma { inline namespace v0_3 { namespace detail {

/// A packet in some generations.
struct Later {
  std::string_view name;                  ///< of the packet in kRecognised
  Generations generations;                ///< those for which the row holds
  grammar::Length length;                 ///< in dwords, header included
  std::span<const FieldInfo> fields{};    ///< of all these generations; empty: it is only recognised
  Privilege privilege = Privilege::user;  ///< who may submit it
  LengthDoubt doubt{};                    ///< other lengths that sources give it
};

namespace later {
using namespace grammar;

/// A field that text omits if it is 0.
struct Bits : FieldInfo {
  constexpr Bits(std::string_view called, int d, int first, int last, std::string_view meaning) noexcept
      : FieldInfo{.name = called,
                  .doc = meaning,
                  .dword = static_cast<std::uint8_t>(d),
                  .lo = static_cast<std::uint8_t>(first),
                  .hi = static_cast<std::uint8_t>(last),
                  .kind = last == 63      ? Kind::address
                          : first == last ? Kind::flag
                                          : Kind::count,
                  .optional = true} {}
  /// Only these generations have it.
  constexpr Bits in(Generations g) const noexcept {
    auto b = *this;
    b.generations = g;
    return b;
  }
  /// In these generations, it has another place. At most twice for a field.
  constexpr Bits moved(Generations g, int d, int first, int last) const noexcept {
    auto b = *this;
    (b.FieldInfo::moved.generations.mask == 0 ? b.FieldInfo::moved : b.moved_again) = {
        g, static_cast<std::uint8_t>(d), static_cast<std::uint8_t>(first), static_cast<std::uint8_t>(last)};
    return b;
  }
  /// In these, it has other bits of its dword.
  constexpr Bits moved(Generations g, int first, int last) const noexcept { return moved(g, dword, first, last); }
  /// Text shows the value in hexadecimal.
  constexpr Bits hex() const noexcept {
    auto b = *this;
    b.kind = Kind::hex;
    return b;
  }
  /// These values have names.
  constexpr Bits named(std::span<const Name> names) const noexcept {
    auto b = *this;
    b.enumerants = names;
    return b;
  }
  /// It stores its value minus one.
  constexpr Bits less_one() const noexcept {
    auto b = *this;
    b.bias = 1;
    return b;
  }
  constexpr Bits aligned(std::uint32_t a) const noexcept {
    auto b = *this;
    b.alignment = a;
    return b;
  }
  /// Text always shows it.
  constexpr Bits required() const noexcept {
    auto b = *this;
    b.optional = false;
    return b;
  }
  /// Dwords that follow the fixed part; the bits hold their number.
  constexpr Bits payload() const noexcept {
    auto b = *this;
    b.kind = Kind::payload;
    return b;
  }
};
/// The fields of several lists, one after another.
template <std::size_t... N> constexpr auto fields(const std::array<Bits, N>&... lists) noexcept {
  std::array<FieldInfo, (N + ...)> all{};
  std::size_t n = 0;
  const auto add = [&](const auto& list) {
    for (const auto& b : list) {
      all[n] = b;
      all[n].member = static_cast<std::uint8_t>(n);
      ++n;
    }
  };
  (add(lists), ...);
  return all;
}
template <class... B> constexpr auto list(B... b) noexcept { return std::array<Bits, sizeof...(B)>{b...}; }

/// The engines of gfx12, whose packets PAL describes.
inline constexpr auto k12 = only(v7_0);
/// A scope, and the temporal hint above it, from bit `lo` of a dword on.
constexpr auto scoped(std::string_view scope, std::string_view hint, int d, int lo) noexcept {
  return list(Bits{scope, d, lo, lo + 1, "scope of the access"}.named(names<Scope>),
              Bits{hint, d, lo + 2, lo + 4, "temporal hint"});
}
/// What the memory of an access is, in bits 20 to 23 of a dword.
constexpr auto memory(int d) noexcept {
  return list(Bits{"sys", d, 20, 20, "system memory"}, Bits{"snoop", d, 22, 22, "snooped"},
              Bits{"gpa", d, 23, 23, "a physical address"});
}
/// Two bits of a policy for the last level, from bit `lo` on.
constexpr auto mall(std::string_view name, int d, int lo) noexcept {
  return list(Bits{name, d, lo, lo + 1, "policy in the last level"});
}
/// Which register block a packet means, in its first dword.
inline constexpr auto kBlock = list(Bits{"die", 0, 16, 17, "virtual die"}, Bits{"domain", 0, 18, 18, "domain"},
                                    Bits{"bridge", 0, 19, 19, "bridge"});
}  // namespace later

}}}  // namespace sdma::v0_3::detail
