// SPDX-License-Identifier: MIT
#pragma once
// The packet descriptions as plain data, for code that handles packets generically: text, JSON, rules, documentation,
// fuzzers. Hot paths use encode.hpp.
//
//   const PacketInfo& i = packet_info<Fence>;
//   for (const FieldInfo& f : i.fields) print(f.name, value_of(f, dwords.data()));
//
// These are the packets of 4.4.2. A catalogue (packets/catalogue.hpp) has the same data for another generation, in
// which a field may have another place.
//
// What is known about a packet in a generation:
//   described      `fields` are those of this generation; if `typed`, visit() also has a value for it
//   recognised     `fields_unknown`: it exists, and its length is known, but its fields are not described
//   foreign        `foreign`: only other generations have it; `fields_unknown` is set too
//
// Constants: any thread may read them. No errors.
#include "sdma/packets/encode.hpp"

namespace sdma { inline namespace v0_3 {

/// The description of a packet in one generation, as plain data.
struct PacketInfo;
/// A rule over the dwords of a complete packet.
struct RuleInfo {
  std::string_view id, text;                                         ///< its name, and what must hold
  bool (*holds)(std::span<const std::uint32_t>, const PacketInfo&);  ///< does it hold for these dwords of this packet?
};

/// Lengths of a packet between which no source decides. Its own length is the first to try.
struct LengthDoubt {
  std::array<std::uint8_t, 2> fixed{};  ///< other lengths in dwords; 0: no more
  std::string_view listed{};        ///< a list may have as many entries as this field says, or one more; "": no list
  std::uint8_t before{}, stride{};  ///< the dwords before that list, and those of an entry
};

struct PacketInfo {
  /// Limits in dwords: of `head`, and of `described()`.
  static constexpr std::size_t kMaxHead = 16, kMaxDescribed = 32;

  std::string_view name, doc;           ///< its name in text, its meaning in one line
  Pattern pattern;                      ///< the bits that identify it
  std::span<const FieldInfo> fields{};  ///< in the order in which text shows them
  std::span<const RuleInfo> rules{};    ///< in the order in which they are checked
  std::uint8_t head{};                  ///< dwords that determine the length; the payload, if any, follows them
  std::uint8_t fixed{}, stride = 1;     ///< length = fixed + stride * (value of *counted)
  /// Not null: some of the `fixed` dwords are optional or follow the payload. Unfolded has them in their places.
  const grammar::Length* parts{};
  const FieldInfo* counted{};                  ///< null: the length is `fixed`
  Privilege privilege = Privilege::user;       ///< who may submit it
  bool fields_unknown = false;                 ///< its length is known, but its fields are not: text shows raw dwords
  bool foreign = false;                        ///< only other generations have it; then `fields_unknown` is set too
  bool typed = false;                          ///< it has a C++ type: visit() calls, and its footprint is known
  std::uint8_t index = 255;                    ///< its place in kPackets
  std::uint8_t all_fields{};                   ///< fields of all generations; `fields` are the first of them
  Generation generation = kDefaultGeneration;  ///< for which this description holds
  Generations generations = kAllGenerations;   ///< those that have the packet, with these fields
  Generations undescribed{};                   ///< those that have it, and in which it is only recognised
  const grammar::Exception* exception{};       ///< null: pattern and length are alike in all generations
  /// Not null: its length is not certain, and a Reader says so of all packets after it.
  const LengthDoubt* doubt{};
  /// The bits of each described dword that the pattern or a field owns; the others are reserved.
  std::array<std::uint32_t, kMaxDescribed> owned{};

  /// The length in dwords of the packet at `d`, which must have at least `head` dwords.
  constexpr std::size_t length(const std::uint32_t* d) const noexcept {
    if (parts) [[unlikely]]
      return (counted ? fixed + stride * static_cast<std::size_t>(value_of(*counted, d)) : fixed) -
             detail::missing(*parts, detail::parts_of(*parts, fields, d));
    return counted ? fixed + stride * static_cast<std::size_t>(value_of(*counted, d)) : fixed;
  }
  /// Are these dwords of the packet, a whole view, as many as it has by its own length? Only then do its fields say
  /// what they are.
  constexpr bool is_own_length(std::span<const std::uint32_t> d) const noexcept {
    return !doubt || d.size() == length(d.data());
  }
  /// Calls fn(dwords) for each length that a source gives the packet at `d`, the most likely first, until it returns
  /// true. `d` must have at least `head` dwords.
  template <class Fn> constexpr void each_length(const std::uint32_t* d, Fn fn) const noexcept {
    const auto entries = doubt ? static_cast<std::size_t>(detail::decisive(fields, doubt->listed, d)) : 0;
    const bool empty = doubt && counted && entries == 0;  // a list has an entry
    if ((!empty && fn(length(d))) || !doubt) return;
    for (const auto n : doubt->fixed)
      if (n != 0 && fn(std::size_t{n})) return;
    if (doubt->stride == 0) return;
    for (const auto n : {entries, entries + 1})
      if (n != 0 && fn(doubt->before + n * doubt->stride)) return;
  }
  /// Do these dwords have the packet's pattern?
  constexpr bool matches(std::span<const std::uint32_t> d) const noexcept { return pattern.matches(d); }
  /// How many dwords the description numbers: those before the payload, and those after it.
  constexpr std::size_t described() const noexcept { return parts ? fixed : head; }
  /// Reserved bits of described dword `i`; 0 where the payload (or what a NOP skips) lies.
  constexpr std::uint32_t reserved(std::size_t i) const noexcept { return i < described() ? ~owned[i] : 0; }
};

/// The dwords of a whole packet at the places where its description has them, so that value_of finds its fields. A part
/// that is not there is zero. It refers to `d`, and to itself: do not copy it.
class Unfolded {
 public:
  constexpr Unfolded(const PacketInfo& info, std::span<const std::uint32_t> d) noexcept
      : info_(info), dwords_(d.data()) {
    if (!info.parts) {
      payload_ = d.subspan(info.fixed < d.size() ? info.fixed : d.size());
      return;
    }
    there_ = detail::parts_of(*info.parts, info.fields, d.data());
    payload_ = detail::unfold(*info.parts, info.fields, d, std::span(whole_).first(info.fixed));
    dwords_ = whole_.data();
  }
  Unfolded(const Unfolded&) = delete;
  Unfolded& operator=(const Unfolded&) = delete;

  /// The described dwords: FieldInfo::dword is an index of them.
  constexpr const std::uint32_t* data() const noexcept { return dwords_; }
  /// The dwords of the payload; empty if there is none.
  constexpr std::span<const std::uint32_t> payload() const noexcept { return payload_; }
  /// The first `n` of them, or all if there are fewer.
  constexpr std::span<const std::uint32_t> payload(std::size_t n) const noexcept {
    return payload_.first(n < payload_.size() ? n : payload_.size());
  }
  /// Is the field in a part that is there?
  constexpr bool has(const FieldInfo& f) const noexcept {
    return !info_.parts || !detail::missing(*info_.parts, there_, f.dword);
  }

 private:
  const PacketInfo& info_;
  const std::uint32_t* dwords_;
  std::span<const std::uint32_t> payload_{};
  std::array<bool, 2> there_{};
  std::array<std::uint32_t, PacketInfo::kMaxDescribed> whole_{};
};

namespace detail {

/// Decodes a packet of any generation.
template <class P> constexpr P decode_as(std::span<const std::uint32_t> d, const PacketInfo& info) noexcept {
  P p{};
  const Unfolded whole{info, d};
  [&]<std::size_t... M>(std::index_sequence<M...>) {
    [[maybe_unused]] const auto set = [&]<std::size_t I>() {
      using F = MemberOf<P, I>;
      for (const auto& f : info.fields) {
        if (f.member != I || !whole.has(f)) continue;
        if constexpr (grammar::layout<P>.fields[I].kind == Kind::payload)
          p.*F::member = whole.payload(info.stride * static_cast<std::size_t>(value_of(f, whole.data())));
        else p.*F::member = static_cast<typename F::Type>(value_of(f, whole.data()));
      }
    };
    (set.template operator()<M>(), ...);
  }
  (std::make_index_sequence<grammar::layout<P>.fields.size()>{});
  return p;
}

}  // namespace detail

/// The typed value of a packet of any generation: `info` is that of the generation.
template <Packet P> constexpr P decode(std::span<const std::uint32_t> d, const PacketInfo& info) noexcept {
  return info.generation == kDefaultGeneration ? decode<P>(d) : detail::decode_as<P>(d, info);
}

namespace detail {

template <class P, std::size_t R>
inline constexpr RuleInfo erased{grammar::layout<P>.rules[R].id, grammar::layout<P>.rules[R].text,
                                 [](std::span<const std::uint32_t> d, const PacketInfo& info) {
                                   return grammar::layout<P>.rules[R].holds(decode_as<P>(d, info));
                                 }};
template <class P> inline constexpr auto rules = []<std::size_t... R>(std::index_sequence<R...>) {
  return std::array<RuleInfo, sizeof...(R)>{erased<P, R>...};
}
(std::make_index_sequence<grammar::layout<P>.rules.size()>{});

/// The bits of each described dword that the pattern or a field owns.
constexpr auto owned(std::span<const FieldInfo> fields, const Pattern& pattern) {
  std::array<std::uint32_t, PacketInfo::kMaxDescribed> out{};
  for (std::size_t i = 0; i < Pattern::kDwords; ++i) out[i] = pattern.mask[i];
  for (const auto& f : fields) store(f, f.mask(), out.data());
  return out;
}
/// One function for all packets: each of them costs a call in a constant expression, and no instance of a template. GCC
/// 12 rejects the call if this function returns the braces themselves.
constexpr PacketInfo describe(const grammar::Description& l, std::span<const FieldInfo> all_fields,
                              std::span<const RuleInfo> rules) {
  const auto fields = all_fields.first(l.default_fields);
  PacketInfo i{.name = l.name,
               .doc = l.doc,
               .pattern = l.pattern,
               .fields = fields,
               .rules = rules,
               .head = static_cast<std::uint8_t>(l.length.fixed ? l.length.settled() : 1),
               .fixed = l.length.fixed,
               .stride = l.length.stride,
               .parts = l.length.plain() ? nullptr : &l.length,
               .counted = l.length.counted.empty() ? nullptr : &all_fields[index_of(all_fields, l.length.counted)],
               .privilege = l.privilege,
               .typed = true,
               .all_fields = static_cast<std::uint8_t>(all_fields.size()),
               .generations = l.generations,
               .undescribed = l.undescribed,
               .exception = l.exception.any() ? &l.exception : nullptr,
               .owned = owned(fields, l.pattern)};
  return i;
}

/// Without a proof that the description is consistent: the registry has all packets, and label.cpp has the proof.
template <class P>
inline constexpr PacketInfo unproved_info = describe(grammar::layout<P>,
                                                     {grammar::layout<P>.fields.data(),
                                                      grammar::layout<P>.fields.size()},
                                                     {rules<P>.data(), rules<P>.size()});
template <class P> consteval const PacketInfo& proved_info() {
  static_assert(well_formed<P>());
  constexpr const auto& l = grammar::layout<P>;
  static_assert(l.length.counted.empty() || l.length.plain() || l.fields[counter<P>()].dword < l.length.settled(),
                "a PacketInfo cannot count this packet's dwords: the count comes after a part that may be missing");
  static_assert(
      unproved_info<P>.described() <= PacketInfo::kMaxDescribed && unproved_info<P>.head <= PacketInfo::kMaxHead,
      "this packet has more dwords before its payload than a PacketInfo describes");
  return unproved_info<P>;
}

}  // namespace detail

/// `grammar::layout<P>` as plain data.
template <Packet P> inline constexpr PacketInfo packet_info = detail::proved_info<P>();

/// The entry of a packet that is only identified and skipped. `head`: how many dwords must be present to identify it;
/// 0: all of them. `generations`: those that have it.
constexpr PacketInfo recognised(std::string_view name, Pattern p, int dwords, std::string_view doc, int head = 0,
                                Generations generations = grammar::until(Generation::v4_4_5)) noexcept {
  PacketInfo i{.name = name,
               .doc = doc,
               .pattern = p,
               .head = static_cast<std::uint8_t>(head ? head : dwords),
               .fixed = static_cast<std::uint8_t>(dwords),
               .fields_unknown = true,
               .generations = generations};
  for (std::size_t d = 0; d < Pattern::kDwords; ++d) i.owned[d] = p.mask[d];
  return i;
}
/// The same, with a length that the field `counted` determines: `stride` dwords for each. `counted` is a reference
/// because GCC 12 with -fsanitize=undefined cannot compare an object's address with null at compile time.
constexpr PacketInfo recognised(std::string_view name, Pattern p, int dwords, std::string_view doc,
                                const FieldInfo& counted, Generations generations, int stride = 1) noexcept {
  auto i = recognised(name, p, dwords, doc, counted.dword + 1, generations);
  i.counted = &counted;
  i.stride = static_cast<std::uint8_t>(stride);
  i.owned[counted.dword] |= static_cast<std::uint32_t>(counted.mask() << counted.lo);
  return i;
}

}}  // namespace sdma::v0_3
