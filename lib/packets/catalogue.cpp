// SPDX-License-Identifier: MIT
#include "sdma/packets/catalogue.hpp"

#include "later.hpp"

#include <algorithm>
#include <memory>
#include <mutex>
#include <vector>

namespace sdma { inline namespace v0_3 {
namespace {

using namespace grammar;

// Each packet of the registry has a consistent description: a packet_info is proved.
static_assert([]<class... P>(PacketList<P...>) { return ((packet_info<P>.head != 0) && ...); }(Packets{}));

/// The packets of a generation, with what their PacketInfos refer to.
class List {
 public:
  explicit List(Generation g) : generation_(g) {
    const auto has = [&](const PacketInfo& p) { return (p.generations | p.undescribed).contains(g); };
    for (const auto& p : kPackets)
      if (has(p)) own(p);
    if (has(detail::later::kGpuvmInvalidatePacket)) own(detail::later::kGpuvmInvalidatePacket);
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
  std::span<const FieldInfo> fields_here(std::span<const FieldInfo> all) {
    auto& fields = fields_.emplace_back();
    for (const auto& f : all)
      if (f.generations.contains(generation_)) fields.push_back(f.in_generation(generation_));
    return fields;
  }
  void describe(PacketInfo& p) {
    p.fields_unknown = false;
    p.typed = true;
    const auto fields = fields_here({p.fields.data(), p.all_fields});
    if (p.counted)
      p.counted = &*std::find_if(fields.begin(), fields.end(),
                                 [&](const FieldInfo& f) { return f.member == p.counted->member; });
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
  void describe_later(PacketInfo& p) {
    for (const auto& row : detail::kLaterPackets) {
      if (row.name != p.name || !row.generations.contains(generation_)) continue;
      p.fixed = row.length.fixed;
      if (row.fields.empty()) return;
      p.fields = fields_here(row.fields);
      p.fields_unknown = false;
      p.privilege = row.privilege;
      p.parts = &row.length;
      const auto counted = detail::index_of(p.fields, row.length.counted);
      p.counted = counted < p.fields.size() ? &p.fields[counted] : nullptr;
      p.head = static_cast<std::uint8_t>(p.counted ? p.counted->dword + 1 : 1);
      p.owned = detail::owned(p.fields, p.pattern);
    }
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
