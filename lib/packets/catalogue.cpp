// SPDX-License-Identifier: MIT
#include "sdma/packets/catalogue.hpp"

#include "changes.hpp"
#include "later.hpp"
#include "scoped_forms.hpp"

#include <algorithm>
#include <memory>
#include <mutex>
#include <vector>

namespace sdma { inline namespace v0_3 {
namespace {

using namespace grammar;

// Each packet of the registry has a consistent description: a packet_info is proved.
static_assert([]<class... P>(PacketList<P...>) { return ((packet_info<P>.head != 0) && ...); }(Packets{}));

/// A kernel's header has 7 dwords, PAL 8, and a later transcription as many pairs of addresses as the count says.
constexpr LengthDoubt kPhysicalDoubt{.fixed = {8}, .listed = "more", .before = 4, .stride = 4};

/// The packets of a generation, with what their PacketInfos refer to.
class List {
 public:
  explicit List(Generation g) : generation_(g) {
    const auto has = [&](const PacketInfo& p) { return (p.generations | p.undescribed).contains(g); };
    for (const auto& p : kPackets)
      if (has(p)) own(p);
    for (const auto& p : {detail::later::kGpuvmInvalidatePacket, detail::scoped::kCopyIndirect})
      if (has(p)) own(p);
    const auto owned = packets_.size();
    for (const auto& p : kPackets)
      if (!has(p) && !named(p, owned)) foreign(p);
    first_ = detail::first_by_op(packets_);
    next_ = detail::next_alike(packets_);
    catalogue_.emplace(g, packets_, first_, next_.data());
  }
  const Catalogue& get() const noexcept { return *catalogue_; }

 private:
  /// Has one of the first `n` packets the same name or the same pattern?
  bool named(const PacketInfo& p, std::size_t n) const {
    const auto others = std::span(packets_).first(n);
    return std::any_of(others.begin(), others.end(), [&](const auto& o) {
      return o.name == p.name || (o.pattern.mask == p.pattern.mask && o.pattern.value == p.pattern.value);
    });
  }
  void own(PacketInfo p) {
    p.generation = generation_;
    p.foreign = false;
    if (p.index >= Packets::size) {
      // A described packet may have the same name: 4.4.2 has its header for something else.
      if (named(p, packets_.size())) return;
      describe_later(p);
    } else if (p.generations.contains(generation_)) {
      describe(p);
    } else {
      p.fields_unknown = true;
      p.typed = false;
    }
    packets_.push_back(p);
  }
  /// Those of these fields that the generation has, where it has them.
  std::vector<FieldInfo>& fields_here(std::span<const FieldInfo> all) {
    auto& fields = fields_.emplace_back();
    for (const auto& f : all)
      if (f.generations.contains(generation_)) {
        fields.push_back(f.in_generation(generation_));
        known(fields.back());
      }
    return fields;
  }
  /// A cache policy of 4.4 to 5.2 that only a debugger has is a field of the kernel's header from 6.0 on.
  void known(FieldInfo& f) const {
    constexpr std::string_view kInferred = " [inferred]";
    if (f.doc.ends_with(kInferred) &&
        ((f.name.ends_with("policy") && generation_ >= v6_0) || (f.name == "priv" && generation_ >= v7_0)))
      f.doc.remove_suffix(kInferred.size());
  }
  /// Leaves out and adds the fields that only this generation has so.
  void change(std::string_view packet, std::vector<FieldInfo>& fields) {
    constexpr std::uint8_t kNoMember = 255;
    for (const auto& c : detail::kChanges) {
      if (c.packet != packet || !c.generations.contains(generation_)) continue;
      std::erase_if(fields, [&](const FieldInfo& f) {
        for (auto rest = c.without; !rest.empty();) {
          const auto n = std::min(rest.find(' '), rest.size());
          if (rest.substr(0, n) == f.name) return true;
          rest.remove_prefix(std::min(n + 1, rest.size()));
        }
        return false;
      });
      for (auto f : c.fields) {
        const auto same = detail::index_of(fields, f.name);
        // The member holds a field that begins at the same bit, also if it is wider or narrower.
        const bool held = same < fields.size() && fields[same].dword == f.dword && fields[same].lo == f.lo;
        f.member = held ? fields[same].member : kNoMember;
        if (same < fields.size()) fields[same] = f;
        else fields.push_back(f);
      }
    }
  }
  void describe(PacketInfo& p) {
    p.fields_unknown = false;
    p.typed = true;
    auto& fields = fields_here({p.fields.data(), p.all_fields});
    change(p.name, fields);
    if (p.counted)
      p.counted = &*std::find_if(fields.begin(), fields.end(),
                                 [&](const FieldInfo& f) { return f.member == p.counted->member; });
    p.fields = fields;
    // In 7.1, two bits of the header make an address that of a slot: that is another packet.
    if (generation_ == v7_1 && p.name == packet_info<CopyLinear>.name) p.pattern = p.pattern.is(0, 20, 21, 0);
    if (generation_ >= v7_0 && p.name == packet_info<CopyPhysical>.name) p.doubt = &kPhysicalDoubt;
    if (p.exception && p.exception->pattern_generations.contains(generation_)) p.pattern = p.exception->pattern;
    if (p.exception && p.exception->length_generations.contains(generation_)) {
      const auto& length = p.exception->length;
      p.fixed = length.fixed;
      p.head = static_cast<std::uint8_t>(length.settled());
      p.parts = length.plain() ? nullptr : &length;
    }
    p.owned = detail::owned(p.fields, p.pattern);
  }
  /// What later.hpp and scoped_forms.hpp have for this generation. Its fields decide the length from the first dwords
  /// on.
  void describe_later(PacketInfo& p) {
    for (const auto rows : {std::span<const detail::Later>(detail::kLaterPackets), {detail::scoped::kForms}})
      for (const auto& row : rows)
        if (row.name == p.name && row.generations.contains(generation_)) return describe_later(p, row);
  }
  void describe_later(PacketInfo& p, const detail::Later& row) {
    p.fixed = row.length.fixed;
    p.stride = row.length.stride;
    p.counted = nullptr;
    p.head = 1;
    if (row.fields.empty()) return;
    p.fields = fields_here(row.fields);
    p.fields_unknown = false;
    p.privilege = row.privilege;
    p.doubt = row.doubt.fixed[0] != 0 || row.doubt.stride != 0 ? &row.doubt : nullptr;
    // The dwords of a list in doubt are those that come after it, whatever its count says.
    p.parts = p.doubt && !row.length.counted.empty() ? nullptr : &row.length;
    const auto counted = detail::index_of(p.fields, row.length.counted);
    p.counted = counted < p.fields.size() ? &p.fields[counted] : nullptr;
    p.head = static_cast<std::uint8_t>(!p.parts ? p.fixed : p.counted ? p.counted->dword + 1 : 1);
    p.owned = detail::owned(p.fields, p.pattern);
  }
  void foreign(PacketInfo p) {
    p.generation = generation_;
    p.foreign = p.fields_unknown = true;
    p.typed = false;
    packets_.push_back(p);
  }

  Generation generation_;
  std::vector<PacketInfo> packets_;
  std::vector<std::vector<FieldInfo>> fields_;
  detail::FirstByOp first_{};
  detail::NextAlike next_{};
  std::optional<Catalogue> catalogue_;
};

}  // namespace

const Catalogue& catalogue(Generation g) noexcept {
  static const Catalogue ours{kDefaultGeneration, kPackets, detail::kFirst, detail::kNextAlike.data()};
  if (g == kDefaultGeneration) return ours;
  static std::array<std::once_flag, kGenerationCount> once;
  static std::array<std::unique_ptr<const List>, kGenerationCount> lists;
  const auto i = static_cast<std::size_t>(g);
  std::call_once(once[i], [&] { lists[i] = std::make_unique<const List>(g); });
  return lists[i]->get();
}

std::string to_string(Generations s) {
  std::string text;
  // The header's variant of 4.4.2 is not an engine of its own.
  const auto has = [&](std::size_t i) { return i < kGenerationCount && s.contains(static_cast<Generation>(i)); };
  const auto next = [](std::size_t i) { return i + (static_cast<Generation>(i + 1) == v4_4_2_header ? 2 : 1); };
  for (std::size_t i = 0; i < kGenerationCount; i = next(i)) {
    if (!has(i) || static_cast<Generation>(i) == v4_4_2_header) continue;
    auto last = i;
    while (has(next(last))) last = next(last);
    text.append(text.empty() ? "" : ", ").append(name_of(static_cast<Generation>(i)));
    if (last != i) text.append(" to ").append(name_of(static_cast<Generation>(last)));
    i = last;
  }
  return text;
}

std::string label(const PacketInfo& p) {
  std::string text{p.name};
  if (p.foreign)
    text.append(" of ")
        .append(to_string(p.generations | p.undescribed))
        .append(", not of ")
        .append(name_of(p.generation));
  else if (p.fields_unknown) text.append(", not described for ").append(name_of(p.generation));
  return text;
}

}}  // namespace sdma::v0_3
