// SPDX-License-Identifier: MIT
#pragma once
// The packets of a generation other than 4.4.2, made of kPackets, later.hpp, scoped_forms.hpp and
// changes.hpp. Internal: catalogue() (catalogue.hpp)
// keeps one list for each generation that is asked for.
//
//   static const detail::GenerationList list{Generation::v6_0};
//   list.packets(); list.first(); list.next();            // what a Catalogue refers to
//
// Everything lies in the object, some 100 KB: nothing is allocated. Constant once it is built; it refers to itself, so
// it is not copied. No errors.
#include "sdma/core/compiler.hpp"
#include "sdma/packets/changes.hpp"
#include "sdma/packets/later.hpp"
#include "sdma/packets/registry.hpp"
#include "sdma/packets/scoped_forms.hpp"

#include <algorithm>

namespace sdma { inline namespace v0_3 { namespace detail {

/// More fields than a generation has.
inline constexpr std::size_t kMostFields = [] {
  std::size_t n = 0;
  for (const auto& p : kPackets) n += p.all_fields;
  for (const auto& l : kLaterPackets) n += l.fields.size();
  for (const auto& l : scoped::kForms) n += l.fields.size();
  for (const auto& c : kChanges) n += c.fields.size();
  return n;
}();

/// A kernel's header has 7 dwords, PAL 8, and a later transcription as many pairs of addresses as the count says.
inline constexpr LengthDoubt kPhysicalDoubt{.fixed = {8}, .listed = "more", .before = 4, .stride = 4};

/// The packets of a generation, with what their PacketInfos refer to.
class GenerationList {
 public:
  SDMA_NOINLINE explicit GenerationList(Generation g) noexcept : generation_(g) {
    const auto has = [&](const PacketInfo& p) { return (p.generations | p.undescribed).contains(g); };
    for (const auto& p : kPackets)
      if (has(p)) own(p);
    for (const auto& p : {later::kGpuvmInvalidatePacket, scoped::kCopyIndirect})
      if (has(p)) own(p);
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
  /// The fields of one packet: the last ones in fields_, so that more can come after them.
  struct Fields {
    FieldInfo* begin;
    std::size_t size;
    std::span<const FieldInfo> all() const noexcept { return {begin, size}; }
  };
  /// Those of these fields that the generation has, where it has them.
  Fields fields_here(std::span<const FieldInfo> all) noexcept {
    Fields here{fields_.data() + used_, 0};
    for (const auto& f : all)
      if (f.generations.contains(generation_)) {
        auto& field = here.begin[here.size++] = f.in_generation(generation_);
        known(field);
      }
    used_ += here.size;
    return here;
  }
  /// A cache policy of 4.4 to 5.2 that only a debugger has is a field of the kernel's header from 6.0 on.
  void known(FieldInfo& f) const noexcept {
    constexpr std::string_view kInferred = " [inferred]";
    if (f.doc.ends_with(kInferred) && ((f.name.ends_with("policy") && generation_ >= Generation::v6_0) ||
                                       (f.name == "priv" && generation_ >= Generation::v7_0)))
      f.doc.remove_suffix(kInferred.size());
  }
  /// Is this one of the names, which a space separates?
  static bool is_one_of(std::string_view names, std::string_view name) noexcept {
    while (!names.empty()) {
      const auto n = std::min(names.find(' '), names.size());
      if (names.substr(0, n) == name) return true;
      names.remove_prefix(std::min(n + 1, names.size()));
    }
    return false;
  }
  /// Leaves out and adds the fields that only this generation has so.
  void change(std::string_view packet, Fields& fields) noexcept {
    constexpr std::uint8_t kNoMember = 255;
    for (const auto& c : kChanges) {
      if (c.packet != packet || !c.generations.contains(generation_)) continue;
      const auto before = fields.size;
      fields.size =
          static_cast<std::size_t>(std::remove_if(fields.begin, fields.begin + before,
                                                  [&](const FieldInfo& f) { return is_one_of(c.without, f.name); }) -
                                   fields.begin);
      for (auto f : c.fields) {
        const auto same = index_of(fields.all(), f.name);
        // The member holds a field that begins at the same bit, also if it is wider or narrower.
        const bool held = same < fields.size && fields.begin[same].dword == f.dword && fields.begin[same].lo == f.lo;
        f.member = held ? fields.begin[same].member : kNoMember;
        fields.begin[same < fields.size ? same : fields.size++] = f;
      }
      used_ = used_ - before + fields.size;
    }
  }
  void describe(PacketInfo& p) noexcept {
    p.fields_unknown = false;
    p.typed = true;
    auto fields = fields_here({p.fields.data(), p.all_fields});
    change(p.name, fields);
    if (const auto* const counted = p.counted)
      for (const auto& f : fields.all())
        if (f.member == counted->member) p.counted = &f;
    p.fields = fields.all();
    // In 7.1, two bits of the header make an address that of a slot: that is another packet.
    if (generation_ == Generation::v7_1 && p.name == packet_info<CopyLinear>.name)
      p.pattern = p.pattern.is(0, 20, 21, 0);
    if (generation_ >= Generation::v7_0 && p.name == packet_info<CopyPhysical>.name) p.doubt = &kPhysicalDoubt;
    if (p.exception && p.exception->pattern_generations.contains(generation_)) p.pattern = p.exception->pattern;
    if (p.exception && p.exception->length_generations.contains(generation_)) {
      const auto& length = p.exception->length;
      p.fixed = length.fixed;
      p.head = static_cast<std::uint8_t>(length.settled());
      p.parts = length.plain() ? nullptr : &length;
    }
    read_lists(p);
    p.owned = detail::owned(p.fields, p.pattern);
  }
  /// The count of a list is read before the length is known, so the head has it.
  static void read_lists(PacketInfo& p) noexcept {
    if (!p.doubt) return;
    const auto listed = index_of(p.fields, p.doubt->listed);
    if (listed < p.fields.size() && p.head <= p.fields[listed].dword)
      p.head = static_cast<std::uint8_t>(p.fields[listed].dword + 1);
  }
  /// What later.hpp and scoped_forms.hpp have for this generation. Its fields decide the length from the first dwords
  /// on.
  void describe_later(PacketInfo& p) noexcept {
    for (const auto rows : {std::span<const Later>(kLaterPackets), std::span<const Later>(scoped::kForms)})
      for (const auto& row : rows)
        if (row.name == p.name && row.generations.contains(generation_)) return describe_later(p, row);
  }
  void describe_later(PacketInfo& p, const Later& row) noexcept {
    p.fixed = row.length.fixed;
    p.stride = row.length.stride;
    p.counted = nullptr;
    p.head = 1;
    if (row.fields.empty()) return;
    p.fields = fields_here(row.fields).all();
    p.fields_unknown = false;
    p.privilege = row.privilege;
    p.doubt = row.doubt.fixed[0] != 0 || row.doubt.stride != 0 ? &row.doubt : nullptr;
    // The dwords of a list in doubt are those that come after it, whatever its count says.
    p.parts = p.doubt && !row.length.counted.empty() ? nullptr : &row.length;
    const auto counted = index_of(p.fields, row.length.counted);
    p.counted = counted < p.fields.size() ? &p.fields[counted] : nullptr;
    p.head = static_cast<std::uint8_t>(!p.parts ? p.fixed : p.counted ? p.counted->dword + 1 : 1);
    read_lists(p);
    p.owned = detail::owned(p.fields, p.pattern);
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
