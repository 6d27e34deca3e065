// SPDX-License-Identifier: MIT
#pragma once
// How a packet is described. Each packet has one description, next to its struct. Encoder, decoder, text, JSON, checks
// and documentation are all derived from it.
//
//   struct Store { sdma::GpuVa addr{}; std::uint32_t value{}; };
//   template <> inline constexpr auto sdma::grammar::layout<Store> = packet(
//       "store", op(200, 0), dwords(4), "store a dword once all earlier packets are complete",
//       //     member           name     dword  bits     meaning
//       addr64<&Store::addr> ("addr",    1,              "the dword").aligned(4),
//       bits  <&Store::value>("value",   3,    0, 31,    "stored").value());
//
//   pattern   the bits that identify the packet: op, sub_op, and any other bit or dword with one fixed value
//   length    dwords(7): always 7.  dwords(4, "data"): 4, plus one for each dword of the field `data`.
//             dwords("dwords"): as many as the field `dwords` says
//             dwords(9).optional(1, 3, "wait"): dwords 1 to 3 are missing if the flag `wait` is 0
//             dwords(9, "more", 2).tail(3): the dwords of `more`, two for each, come before the last 3
//             Fields are numbered as if nothing were missing and `more` were empty.
//   fields    which bits [lo, hi] a member occupies, counted from bit 0 of a dword (hi > 31 runs into the next);
//             value = stored bits + bias
//   rules     constraints that a width cannot express: a predicate over the whole value, with an id and a sentence
//
// The description is that of 4.4.2. What differs in other generations (generation.hpp) is data beside it:
//
//   bits<&CopyLinear::bytes>("bytes", 1, 0, 29, "number of bytes", minus_one).moved(until(v4_2), 1, 0, 21)
//   bits<&Fence::mtype>     ("mtype", 0, 16, 18, "memory type").opt().in(since(v5_0))      absent from all others
//   packet("gcr", ...)    | in(since(v5_0))                                                the whole packet
//   packet("dummy_trap", op(16, 0), ...) | has(since(v5_0), op(32, 0))                     another pattern or length
//   packet("copy_linear", ...) | has(only(v7_0), dwords(8).optional(7, 1, "cpv"))          a length that a bit decides
//   packet("mine", ...) | undescribed(only(v7_1))                                          it exists; fields not known
//
// A packet or field without such a word is alike in all generations. Fields that 4.4.2 lacks come last.
//
// A dword on the wire is the OR of the pattern and the fields. encode.hpp computes it, and info.hpp offers the same
// description as plain data. A field has one name in C++, text, JSON and documentation. A member's initialiser is the
// field's default, and text omits a field marked `opt()` that holds its default. Fields are listed in the order of the
// text form, and members in the order in which you write designated initialisers.
//
// The words of the language (`packet`, `op`, `dwords`, `bits`, ...) are in the namespace sdma::grammar, so that a
// program that says `using namespace sdma` can use them for things of its own. In a description they need no prefix,
// because `grammar::layout<Store>` is defined in that namespace. A program describes packets of its own in the same
// way, as this example does.
//
// Everything is a constant expression, so there is no shared state and nothing fails at run time. A faulty description
// fails a static_assert of `well_formed`. The formats are those of the SDMA 4.x packet header in the Linux kernel, with
// the wider counts of 4.4.x. [inferred] marks what no public source for 4.4.2 confirms (docs/packets.md).
#include "sdma/core/units.hpp"
#include "sdma/packets/generation.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <type_traits>

namespace sdma { inline namespace v0_3 {

/// One enumerant: its code on the wire, and its name in text.
struct Name {
  std::uint32_t value;    ///< its code on the wire
  std::string_view text;  ///< its name in text and JSON
};
/// How text shows the value of a field. If the field has `enumerants`, text shows the name of the value instead.
enum class Kind : std::uint8_t {
  count,    ///< decimal
  bytes,    ///< decimal, with the largest of K, M, G that divides it
  address,  ///< a 64-bit VA, hexadecimal
  value,    ///< decimal from -4095 to 4095, else hexadecimal
  hex,      ///< hexadecimal
  flag,     ///< a bare word; the field is 1 if the word is present
  payload,  ///< the dwords after the fixed part; the field's own bits hold their number
};

/// A field as plain data. `limit`: the largest documented value, where the width could hold more.
struct FieldInfo {
  std::string_view name{}, doc{};  ///< its name in text and JSON, and its meaning in one line
  /// Where it is: its dword, and its first and last bit (above 31: in the next dwords). Value = stored bits + bias.
  std::uint8_t dword{}, lo{}, hi{}, bias{};
  Kind kind = Kind::count;                 ///< how text shows its value
  bool optional = false;                   ///< text omits it if it holds `default_value`
  std::uint64_t default_value = 0;         ///< the member's default
  std::uint32_t alignment = 1;             ///< `check` reports a misaligned value; it can still be encoded and decoded
  std::uint64_t limit = ~std::uint64_t{};  ///< the largest documented value; by default, none
  std::span<const Name> enumerants{};      ///< names of values; the others are numbers
  std::uint8_t member{};                   ///< which field of the packet's layout it is; 255: its type does not hold it
  Generations generations = kAllGenerations;  ///< those that have the field
  /// Where some generations have it instead.
  struct Move {
    Generations generations{};         ///< that have it there; empty: the field has not moved
    std::uint8_t dword{}, lo{}, hi{};  ///< where the field is there
  };
  Move moved{}, moved_again{};  ///< no generation is in both

  /// The field as it is in `g`.
  constexpr FieldInfo in_generation(Generation g) const noexcept {
    auto f = *this;
    for (const auto& m : {moved, moved_again})
      if (m.generations.contains(g)) {
        f.dword = m.dword;
        f.lo = m.lo;
        f.hi = m.hi;
      }
    return f;
  }
  /// The generations that have it in another place.
  constexpr Generations moved_generations() const noexcept { return moved.generations | moved_again.generations; }
  /// Its width in bits.
  constexpr unsigned width() const noexcept { return hi - lo + 1u; }
  /// The largest stored value: the low width() bits set.
  constexpr std::uint64_t mask() const noexcept {
    return width() == 64 ? ~std::uint64_t{} : (std::uint64_t{1} << width()) - 1;
  }
  /// The largest value that fits.
  constexpr std::uint64_t max() const noexcept {
    const auto widest = mask() + bias < mask() ? mask() : mask() + bias;
    return widest < limit ? widest : limit;
  }
};

/// The bits of a packet that have one fixed value.
struct Pattern {
  static constexpr std::size_t kDwords = 6;            ///< how many dwords it can fix, from the first
  std::array<std::uint32_t, kDwords> mask{}, value{};  ///< the fixed bits of each dword, and their values

  /// A copy that also fixes bits `lo` to `hi` of a dword, to the value `v`.
  constexpr Pattern is(unsigned dword, unsigned lo, unsigned hi, std::uint32_t v) const noexcept {
    Pattern p = *this;
    const auto m = (hi - lo == 31 ? ~0u : (1u << (hi - lo + 1)) - 1) << lo;
    p.mask[dword] |= m;
    p.value[dword] |= v << lo;
    return p;
  }
  /// How many leading dwords it takes to match this pattern.
  constexpr std::size_t dwords() const noexcept {
    std::size_t n = kDwords;
    while (n > 0 && mask[n - 1] == 0) --n;
    return n;
  }
  /// Do these dwords begin a packet of this pattern? False if too few are there.
  constexpr bool matches(std::span<const std::uint32_t> d) const noexcept {
    const auto n = dwords();
    if (d.size() < n) return false;
    for (std::size_t i = 0; i < n; ++i)
      if ((d[i] & mask[i]) != value[i]) return false;
    return true;
  }
};

/// Who may submit a packet. A privileged packet stops a user queue.
/// `user`: everyone; `kernel`: only the driver, in its own queues.
enum class Privilege : std::uint8_t { user, kernel };

namespace detail {
template <class C, class T> T type_of(T C::*);
template <class C, class T> C owner_of(T C::*);
/// Each field gets its place among the members. Returns how many of them 4.4.2 has.
constexpr std::uint8_t number_members(FieldInfo* fields, std::size_t n) noexcept {
  std::uint8_t count = 0;
  for (std::size_t i = 0; i < n; ++i) {
    fields[i].member = static_cast<std::uint8_t>(i);
    if (fields[i].generations.contains(kDefaultGeneration)) ++count;
  }
  return count;
}
template <class T> consteval Kind kind_of() { return std::is_same_v<T, bool> ? Kind::flag : Kind::count; }
/// A member as a number.
constexpr std::uint64_t plain(GpuVa v) noexcept { return v.value; }
template <class T> constexpr std::uint64_t plain(T v) noexcept { return static_cast<std::uint64_t>(v); }
}  // namespace detail

namespace grammar {

/// The names of an enumeration, in the order of their codes. Each enum has a specialisation next to it.
template <class E> inline constexpr auto names = std::array<Name, 0>{};

/// Names for the retry count of a poll: a poll with 4095 never expires.
inline constexpr std::array kRetryNames{Name{0xfff, "forever"}};

/// What a field stores. `none`: its value; `minus_one`: its value less one.
enum class Bias : std::uint8_t { none = 0, minus_one = 1 };
/// The field stores its value minus one.
inline constexpr auto minus_one = Bias::minus_one;

constexpr Pattern op(std::uint32_t op) noexcept { return Pattern{}.is(0, 0, 7, op); }
constexpr Pattern op(std::uint32_t o, std::uint32_t sub) noexcept { return op(o).is(0, 8, 15, sub); }

/// Length in dwords, header included: `fixed`, plus `stride` times the value of the field named `counted`, if any.
struct Length {
  /// Dwords [at, at + dwords), which are there only if `flag` is 1.
  struct Part {
    std::uint8_t at{}, dwords{};  ///< the first of them, and how many
    std::string_view flag = "";   // not null: GCC 12 cannot read an element of a constant array that is all zeroes
  };
  std::uint8_t fixed{};
  std::string_view counted{};
  std::uint8_t stride = 1;
  std::uint8_t tail_dwords{};   ///< dwords after the payload
  std::array<Part, 2> parts{};  ///< those that are optional

  /// Dwords [at, at + n) are there only if `flag` is 1. At most two such parts.
  constexpr Length optional(int at, int n, std::string_view flag) const noexcept {
    auto l = *this;
    l.parts[l.parts[0].dwords != 0] = {static_cast<std::uint8_t>(at), static_cast<std::uint8_t>(n), flag};
    return l;
  }
  /// The last `n` of the fixed dwords come after the payload.
  constexpr Length tail(int n) const noexcept {
    auto l = *this;
    l.tail_dwords = static_cast<std::uint8_t>(n);
    return l;
  }
  /// Is every dword before the payload, if any, always there?
  constexpr bool plain() const noexcept { return tail_dwords == 0 && parts[0].dwords == 0; }
  /// The first dword whose place depends on the packet's value.
  constexpr std::size_t settled() const noexcept {
    std::size_t n = fixed - tail_dwords;
    for (const auto& p : parts)
      if (p.dwords != 0 && p.at < n) n = p.at;
    return n;
  }
};
constexpr Length dwords(int n) noexcept { return {static_cast<std::uint8_t>(n)}; }
constexpr Length dwords(int n, std::string_view counted, int stride = 1) noexcept {
  return {static_cast<std::uint8_t>(n), counted, static_cast<std::uint8_t>(stride)};
}
constexpr Length dwords(std::string_view counted) noexcept { return {0, counted}; }

/// A field and the member that holds it. Modifiers return a changed copy, so they chain.
template <auto Member> struct Field : FieldInfo {
  static constexpr auto member = Member;             ///< the member that the field describes
  using Owner = decltype(detail::owner_of(Member));  ///< the packet's type
  using Type = decltype(detail::type_of(Member));    ///< the member's type

  // clang-format off
  /// The value must be a multiple of `a`.
  constexpr Field aligned(std::uint32_t a) const noexcept { auto f = *this; f.alignment = a; return f; }
  /// The largest documented value is `n`, although the width could hold more.
  constexpr Field up_to(std::uint64_t n) const noexcept { auto f = *this; f.limit = n; return f; }
  /// Text shows the value as a size: decimal, with the largest of K, M, G that divides it.
  constexpr Field size() const noexcept { auto f = *this; f.kind = Kind::bytes; return f; }
  /// Text shows the value in decimal from -4095 to 4095, otherwise in hexadecimal.
  constexpr Field value() const noexcept { auto f = *this; f.kind = Kind::value; return f; }
  /// Text shows the value in hexadecimal.
  constexpr Field hex() const noexcept { auto f = *this; f.kind = Kind::hex; return f; }
  /// Only these generations have the field.
  constexpr Field in(Generations g) const noexcept { auto f = *this; f.generations = g; return f; }
  /// In these generations, bits [first, last] of dword `d` hold the field. At most twice for a field.
  constexpr Field moved(Generations g, int d, int first, int last) const noexcept {
    auto f = *this;
    (f.FieldInfo::moved.generations.mask == 0 ? f.FieldInfo::moved : f.moved_again) = {
        g, static_cast<std::uint8_t>(d), static_cast<std::uint8_t>(first), static_cast<std::uint8_t>(last)};
    return f;
  }
  /// Text omits the field while it has its default.
  constexpr Field opt() const noexcept { auto f = *this; f.optional = true; return f; }
  /// These values have names.
  constexpr Field named(std::span<const Name> n) const noexcept { auto f = *this; f.enumerants = n; return f; }
  // clang-format on
};

template <auto M>
constexpr Field<M> bits(std::string_view name, int dword, int lo, int hi, std::string_view doc, Bias b = {}) noexcept {
  using T = typename Field<M>::Type;
  return {{.name = name,
           .doc = doc,
           .dword = static_cast<std::uint8_t>(dword),
           .lo = static_cast<std::uint8_t>(lo),
           .hi = static_cast<std::uint8_t>(hi),
           .bias = static_cast<std::uint8_t>(b),
           .kind = detail::kind_of<T>(),
           .default_value = detail::plain(typename Field<M>::Owner{}.*M),
           .enumerants = {names<T>.data(), names<T>.size()}}};
}
/// A 64-bit address in dwords `dword` (low) and `dword + 1` (high).
template <auto M> constexpr Field<M> addr64(std::string_view name, int dword, std::string_view doc) noexcept {
  return {
      {.name = name, .doc = doc, .dword = static_cast<std::uint8_t>(dword), .lo = 0, .hi = 63, .kind = Kind::address}};
}
/// Dwords that follow the fixed part. The bits given here hold their number, in strides.
template <auto M>
constexpr Field<M> payload(std::string_view name, int dword, int lo, int hi, std::string_view doc,
                           Bias b = {}) noexcept {
  return {{.name = name,
           .doc = doc,
           .dword = static_cast<std::uint8_t>(dword),
           .lo = static_cast<std::uint8_t>(lo),
           .hi = static_cast<std::uint8_t>(hi),
           .bias = static_cast<std::uint8_t>(b),
           .kind = Kind::payload}};
}

/// A constraint that the width of a field cannot express. `id` has a section in docs/rules.md; `text` says what must
/// hold.
template <class P> struct Rule {
  std::string_view id, text;  ///< its name, and what must hold
  bool (*holds)(const P&);    ///< does it hold?
};
/// Makes a Rule of its three parts.
template <class P>
constexpr Rule<P> rule(std::string_view id, std::string_view text, bool (*holds)(const P&)) noexcept {
  return {id, text, holds};
}

/// Only the kernel may submit the packet.
inline constexpr auto kernel_only = Privilege::kernel;

/// What some generations have in place of a packet's pattern or length.
struct Exception {
  /// The generations with another pattern, and those with another length.
  Generations pattern_generations{}, length_generations{};
  Pattern pattern{};  ///< in pattern_generations
  Length length{};    ///< in length_generations

  /// Does any generation differ?
  constexpr bool any() const noexcept { return (pattern_generations | length_generations).mask != 0; }
};

/// What is said about a packet as a whole.
struct Description {
  std::string_view name, doc;                 ///< its name in text, its meaning in one line
  Pattern pattern;                            ///< the bits that identify it
  Length length;                              ///< in dwords
  Privilege privilege = Privilege::user;      ///< who may submit it
  Generations generations = kAllGenerations;  ///< those that have it, with these fields
  Generations undescribed{};                  ///< those that have it, and whose fields no source states
  Exception exception{};                      ///< what differs in some generations
  std::uint8_t default_fields{};              ///< how many fields 4.4.2 has: the first ones
};
/// The fields are in one array, so that code for all of them is a loop and not one template instance per field.
/// `Member...` are the members that hold them, in the same order.
template <class P, std::size_t Rules, auto... Member> struct Layout : Description {
  std::array<FieldInfo, sizeof...(Member)> fields{};  ///< in the order in which text shows them
  std::array<Rule<P>, Rules> rules{};                 ///< in the order in which they are checked
};
template <auto M0, auto... M>
constexpr auto packet(std::string_view name, Pattern p, Length n, std::string_view doc, Field<M0> f0,
                      Field<M>... f) noexcept {
  Layout<typename Field<M0>::Owner, 0, M0, M...> l{{name, doc, p, n}, {f0, f...}, {}};
  l.default_fields = detail::number_members(l.fields.data(), l.fields.size());
  return l;
}
/// A packet without fields: all its bits are fixed.
template <class P> constexpr auto packet(std::string_view name, Pattern p, Length n, std::string_view doc) noexcept {
  return Layout<P, 0>{{name, doc, p, n}, {}, {}};
}
template <class P, std::size_t N, auto... M> constexpr auto operator|(const Layout<P, N, M...>& l, Rule<P> r) noexcept {
  Layout<P, N + 1, M...> more{l, l.fields, {}};
  for (std::size_t i = 0; i < N; ++i) more.rules[i] = l.rules[i];
  more.rules[N] = r;
  return more;
}
template <class P, std::size_t N, auto... M> constexpr auto operator|(Layout<P, N, M...> l, Privilege p) noexcept {
  l.privilege = p;
  return l;
}

/// The generations that have a packet.
struct Existence {
  Generations generations;  ///< those that have it
};
constexpr Existence in(Generations g) noexcept { return {g}; }
template <class P, std::size_t N, auto... M> constexpr auto operator|(Layout<P, N, M...> l, Existence e) noexcept {
  l.generations = e.generations;
  return l;
}
/// The generations that have a packet whose fields are not described for them.
struct Undescribed {
  Generations generations;  ///< those that have it
};
constexpr Undescribed undescribed(Generations g) noexcept { return {g}; }
template <class P, std::size_t N, auto... M> constexpr auto operator|(Layout<P, N, M...> l, Undescribed u) noexcept {
  l.undescribed = u.generations;
  return l;
}
/// What the packet has in these generations in place of its pattern or of its length.
constexpr Exception has(Generations g, const Pattern& p) noexcept { return {.pattern_generations = g, .pattern = p}; }
constexpr Exception has(Generations g, const Length& n) noexcept { return {.length_generations = g, .length = n}; }
template <class P, std::size_t N, auto... M>
constexpr auto operator|(Layout<P, N, M...> l, const Exception& e) noexcept {
  l.exception = e;
  return l;
}

/// The description of `P`. Each packet has a specialisation next to it.
template <class P> inline constexpr auto layout = nullptr;

}  // namespace grammar

/// A type that has a description.
template <class P>
concept Packet = !std::is_same_v<decltype(grammar::layout<P>), const std::nullptr_t>;

}}  // namespace sdma::v0_3
