// SPDX-License-Identifier: MIT
#include "sdma/packets/catalogue.hpp"

#include <algorithm>
#include <memory>
#include <mutex>
#include <vector>

namespace sdma::inline v0 {
namespace {

using namespace grammar;

// Each packet of the registry has a consistent description: a packet_info is proved.
static_assert([]<class... P>(PacketList<P...>) { return ((packet_info<P>.head != 0) && ...); }(Packets{}));

// What later generations have under headers that 4.4.2 has for
// something else. The lengths come from newer headers and a debugger.
constexpr std::array kOtherLayouts{
    recognised("copy_tiled_subwindow", op(1, 5), 17, "copy a box between a tiled and a linear surface", 1, since(v5_0)),
    recognised("copy_tiled_to_tiled", op(1, 6), 18, "copy a box between tiled surfaces", 1, since(v5_0)),
    recognised("gpuvm_invalidate", op(16, 0), 4, "invalidate translations of a GPU", 1, since(v5_0)),
};

/// The packets of a generation, with what their PacketInfos refer to.
class List {
 public:
  explicit List(Generation g) : generation_(g) {
    for (const auto& p : kPackets)
      if (p.generations.contains(g)) own(p);
    for (const auto& p : kOtherLayouts)
      if (p.generations.contains(g)) own(p);
    const auto owned = packets_.size();
    for (const auto& p : kPackets)
      if (!p.generations.contains(g) && !named(p, owned)) foreign(p);
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
    if (p.index < Packets::size) {
      describe(p);
    } else if (named(p, packets_.size())) {
      return;  // of the same name as a described packet, whose header 4.4.2 has for something else
    }
    packets_.push_back(p);
  }
  void describe(PacketInfo& p) {
    p.fields_unknown = false;
    auto& fields = fields_.emplace_back();
    for (const auto& f : std::span(p.fields.data(), p.all_fields))
      if (f.generations.contains(generation_)) fields.push_back(f.in_generation(generation_));
    if (p.counted)
      p.counted = &*std::find_if(fields.begin(), fields.end(),
                                 [&](const FieldInfo& f) { return f.member == p.counted->member; });
    p.fields = fields;
    if (p.exception && p.exception->pattern_generations.contains(generation_)) p.pattern = p.exception->pattern;
    if (p.exception && p.exception->length_generations.contains(generation_)) p.head = p.fixed = p.exception->fixed;
    p.owned = detail::owned(p.fields, p.pattern);
  }
  void foreign(PacketInfo p) {
    p.generation = generation_;
    p.foreign = p.fields_unknown = true;
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
  // Packets of 4.x that later engines may well have: no source that this project reads describes them there.
  const bool unsure = p.generation >= v5_0 && (p.generations.mask & since(v5_0).mask) == 0;
  if (p.foreign)
    text.append(" of ")
        .append(to_string(p.generations))
        .append(unsure ? ", not described for " : ", not of ")
        .append(name_of(p.generation));
  return text;
}

}  // namespace sdma::inline v0
