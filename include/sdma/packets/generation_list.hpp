// SPDX-License-Identifier: MIT
#pragma once
// The packets of a generation other than 4.4.2, made of kPackets and later.hpp. Internal: catalogue() (catalogue.hpp)
// keeps one list for each generation that is asked for.
//
//   static const detail::GenerationList list{Generation::v6_0};
//   list.packets(); list.first(); list.next();            // what a Catalogue refers to
//
// Everything lies in the object, some 100 KB: nothing is allocated. Constant once it is built; it refers to itself, so
// it is not copied. No errors.
#include "sdma/core/compiler.hpp"
#include "sdma/packets/later.hpp"
#include "sdma/packets/registry.hpp"

namespace sdma { inline namespace v0_3 { namespace detail {

/// More fields than a generation has.
inline constexpr std::size_t kMostFields = [] {
  std::size_t n = 0;
  for (const auto& p : kPackets) n += p.all_fields;
  for (const auto& l : kLaterPackets) n += l.fields.size();
  return n;
}();

/// The packets of a generation, with what their PacketInfos refer to.
class GenerationList {
 public:
  SDMA_NOINLINE explicit GenerationList(Generation g) noexcept : generation_(g) {
    const auto has = [&](const PacketInfo& p) { return (p.generations | p.undescribed).contains(g); };
    for (const auto& p : kPackets)
      if (has(p)) own(p);
    if (has(later::kGpuvmInvalidatePacket)) own(later::kGpuvmInvalidatePacket);
    const auto owned = size_;
    for (const auto& p : kPackets)
      if (!has(p) && !named(p, owned)) foreign(p);
    first_ = first_by_op(packets());
    next_ = next_alike(packets());
  }
  GenerationList(const GenerationList&) = delete;
  GenerationList& operator=(const GenerationList&) = delete;

  std::span<const PacketInfo> packets() const noexcept { return {packets_.data(), size_}; }
  const FirstByOp& first() const noexcept { return first_; }
  const std::uint8_t* next() const noexcept { return next_.data(); }

 private:
  /// Has one of the first `n` packets the same name or the same pattern?
  bool named(const PacketInfo& p, std::size_t n) const noexcept {
    for (const auto& o : packets().first(n))
      if (o.name == p.name || (o.pattern.mask == p.pattern.mask && o.pattern.value == p.pattern.value)) return true;
    return false;
  }
  void own(PacketInfo p) noexcept {
    p.generation = generation_;
    p.foreign = false;
    if (p.index >= Packets::size) {
      // A described packet may have the same name: 4.4.2 has its header for something else.
      if (named(p, size_)) return;
      describe_later(p);
    } else if (p.generations.contains(generation_)) {
      describe(p);
    } else {
      p.fields_unknown = true;
      p.typed = false;
    }
    packets_[size_++] = p;
  }
  /// Those of these fields that the generation has, where it has them.
  std::span<const FieldInfo> fields_here(std::span<const FieldInfo> all) noexcept {
    const auto begin = used_;
    for (const auto& f : all)
      if (f.generations.contains(generation_)) fields_[used_++] = f.in_generation(generation_);
    return {fields_.data() + begin, used_ - begin};
  }
  void describe(PacketInfo& p) noexcept {
    p.fields_unknown = false;
    p.typed = true;
    const auto fields = fields_here({p.fields.data(), p.all_fields});
    if (const auto* const counted = p.counted)
      for (const auto& f : fields)
        if (f.member == counted->member) p.counted = &f;
    p.fields = fields;
    if (p.exception && p.exception->pattern_generations.contains(generation_)) p.pattern = p.exception->pattern;
    if (p.exception && p.exception->length_generations.contains(generation_)) {
      const auto& length = p.exception->length;
      p.fixed = length.fixed;
      p.head = static_cast<std::uint8_t>(length.settled());
      p.parts = length.plain() ? nullptr : &length;
    }
    p.owned = detail::owned(p.fields, p.pattern);
  }
  /// What later.hpp has for this generation. Its fields decide the length from the first dwords on.
  void describe_later(PacketInfo& p) noexcept {
    for (const auto& row : kLaterPackets) {
      if (row.name != p.name || !row.generations.contains(generation_)) continue;
      p.fixed = row.length.fixed;
      if (row.fields.empty()) return;
      p.fields = fields_here(row.fields);
      p.fields_unknown = false;
      p.privilege = row.privilege;
      p.parts = &row.length;
      const auto counted = index_of(p.fields, row.length.counted);
      p.counted = counted < p.fields.size() ? &p.fields[counted] : nullptr;
      p.head = static_cast<std::uint8_t>(p.counted ? p.counted->dword + 1 : 1);
      p.owned = detail::owned(p.fields, p.pattern);
    }
  }
  void foreign(PacketInfo p) noexcept {
    p.generation = generation_;
    p.foreign = p.fields_unknown = true;
    p.typed = false;
    packets_[size_++] = p;
  }

  Generation generation_;
  std::size_t size_ = 0, used_ = 0;
  std::array<PacketInfo, NextAlike{}.size()> packets_{};
  std::array<FieldInfo, kMostFields> fields_{};
  FirstByOp first_{};
  NextAlike next_{};
};

}}}  // namespace sdma::v0_3::detail
