// SPDX-License-Identifier: MIT
#pragma once
// The memory of a simulated schedule: every buffer and signal at its link address, in pages that take no memory until
// they are accessed. Internal.
//
//   LinkMemory memory{schedule};
//   memory.watch(word, 8);                              // for each queue's packets
//   memory.buffers(contents);                           // then, once: the buffers are mapped
//   auto& reader = memory.reader(gpu);                  // what that GPU may access
//   memory.watched(region)                              // does any poll, wait or condition read a word in it?
//   memory.home(va)                                     // the place that the memory belongs to
//
// `resolve` replaces an alias by the address of the bytes that it is an alias of. Errors: `findings`.
//
// Where std::size_t has 32 bits, the buffers may be larger than the address space, and pages take memory at once.
// There, a buffer whose bytes do not matter shares a few MiB with all others of its kind: its addresses are valid, and
// what is stored there gets lost.
//
//   va    | buffer of 40 MiB    |          bytes matter if a word of the buffer is watched, if a packet that does not
//         |  16  |  16  |   8   |          just move bytes accesses it, or one that also touches such a word
//   host  | shared, 16 MiB |
#include "../schedule/symbols.hpp"
#include "lazy_pages.hpp"
#include "sdma/schedule/schedule.hpp"

#include <algorithm>
#include <cstring>
#include <deque>
#include <utility>
#include <vector>

namespace sdma { inline namespace v0_3 { namespace detail {

class LinkMemory {
 public:
  explicit LinkMemory(const Schedule& s)
      : s_(s), buffers_(s.buffers.size()), signals_(s.signals.size()), words_(s.signals.size()) {
    for (std::uint32_t g = 0; g == 0 || g < s.gpus; g += kOfSpace) spaces_.emplace_back();
    for (const auto& l : symbols(s))
      if (at_of(s, l)) alias(l);
      else if (l.signal) map(l, reinterpret_cast<std::byte*>(&words_[l.index]), 8, {});
    map_all();
    for (std::uint32_t g = 0; g < s.gpus; ++g) readers_.emplace_back(spaces_[g / kOfSpace], GpuId{g % kOfSpace});
  }
  LinkMemory(const LinkMemory&) = delete;
  LinkMemory& operator=(const LinkMemory&) = delete;

  /// Is memory too scarce for every buffer to have bytes of its own?
  static constexpr bool kScarce = sizeof(std::size_t) < 8;
  /// The regions of a packet, resolved; `moves`: it only moves bytes. Needed if memory is scarce, before `buffers`.
  void accesses(std::vector<Region> all, bool moves) { accesses_.emplace_back(std::move(all), moves); }
  /// Maps the buffers. `all`: each byte matters. Call it once, after `watch` and `accesses` and before any access.
  void buffers(bool all) {
    for (const auto& l : symbols(s_))
      if (l.signal || at_of(s_, l)) continue;
      else if (!kScarce || all || matters(l)) buffer(l);
      else shared(l);
    map_all();
    std::sort(watched_.begin(), watched_.end());
    // Each range now ends where the furthest of those up to it does.
    for (std::size_t i = 1; i < watched_.size(); ++i)
      watched_[i].second = std::max(watched_[i].second, watched_[i - 1].second);
  }

  /// All bytes are zero again.
  void clear() noexcept {
    std::fill(words_.begin(), words_.end(), 0);
    for (auto& p : pages_) p.clear();
  }

  std::vector<Diagnostic>& findings() noexcept { return findings_; }
  AddressSpace::Reader& reader(std::uint32_t gpu) noexcept { return readers_[gpu]; }

  GpuVa resolve(GpuVa va) const noexcept { return detail::resolve(s_, va); }
  /// Requires a resolved address.
  Place home(GpuVa va) const noexcept {
    const auto l = find_symbol(s_, va);
    return l ? place_of(s_, *l) : Place::host();
  }
  /// The byte at a resolved address; null if there is none.
  std::byte* at(GpuVa va) noexcept {
    const auto l = find_symbol(s_, va);
    if (!l) return nullptr;
    const auto& p = l->signal ? signals_[l->index] : buffers_[l->index];
    return p.host ? p.host + l->offset : nullptr;
  }
  std::uint64_t value(std::size_t signal) noexcept {
    std::uint64_t v = 0;
    if (const auto* from = at(resolve(link_signal(signal)))) std::memcpy(&v, from, s_.signals[signal].bits / 8);
    return v;
  }
  void set(std::size_t signal, std::uint64_t v) noexcept {
    if (auto* to = at(resolve(link_signal(signal)))) std::memcpy(to, &v, s_.signals[signal].bits / 8);
  }

  /// Requires a resolved address.
  void watch(GpuVa va, std::uint64_t bytes) {
    if (va.value < kLinkSignals) watched_.emplace_back(va.value, va.value + bytes);
  }
  /// Requires that `buffers` has been called.
  bool watched(const Region& r) const noexcept {
    if (r.va.value >= kLinkSignals) return true;
    const auto behind =
        std::lower_bound(watched_.begin(), watched_.end(), std::pair{end_of(r).value, std::uint64_t{0}});
    return behind != watched_.begin() && r.va.value < std::prev(behind)->second;
  }

 private:
  struct Piece {
    std::byte* host{};
    std::size_t bytes{};
  };
  void alias(const SymbolOffset& l) {
    const auto va = resolve(link_address(l));
    const auto to = find_symbol(s_, va);
    if (!to)
      findings_.push_back({.where = name_of(s_, l),
                           .message = "it has a fixed address, which a simulation cannot provide",
                           .hint = "at=0x... is for the addresses of a dump; omit it to simulate"});
    else if (l.signal && !to->signal) watch(va, 8);
  }
  void buffer(const SymbolOffset& l) {
    const auto bytes = (bytes_of(s_, l) + 7) / 8 * 8;
    // Where std::size_t has 32 bits, a buffer may be larger than the address space.
    if (!std::in_range<std::size_t>(bytes)) return no_room(l);
    LazyPages pages{static_cast<std::size_t>(bytes)};
    if (!pages) return no_room(l);
    map(l, pages.data(), static_cast<std::size_t>(bytes), s_.buffers[l.index].map);
    pages_.push_back(std::move(pages));
  }
  void shared(const SymbolOffset& l) {
    constexpr std::uint64_t kPiece = 16 << 20;
    shared_.resize(kPiece / 8);
    const auto bytes = (bytes_of(s_, l) + 7) / 8 * 8;
    std::vector<Mapping> pieces;
    for (std::uint64_t at = 0; at < bytes; at += kPiece)
      pieces.push_back({.va = link_address(l) + at,
                        .bytes = std::min(kPiece, bytes - at),
                        .host = reinterpret_cast<std::byte*>(shared_.data())});
    map(l, std::move(pieces), s_.buffers[l.index].map);
  }
  bool matters(const SymbolOffset& l) const {
    const auto some = [](const auto& all, const auto& is) { return std::any_of(all.begin(), all.end(), is); };
    const auto begin = link_address(l);
    const Region whole{.va = begin, .bytes = bytes_of(s_, l)};
    if (watched(whole)) return true;
    const auto here = [&](const Region& r) { return r.va < end_of(whole) && begin < end_of(r); };
    const auto seen = [&](const Region& r) { return watched(r); };
    return some(accesses_, [&](const auto& a) { return some(a.first, here) && (!a.second || some(a.first, seen)); });
  }
  void no_room(const SymbolOffset& l) {
    findings_.push_back({.where = name_of(s_, l), .message = "no address space is left for it"});
  }
  void map(const SymbolOffset& l, std::byte* host, std::size_t bytes, const std::vector<Place>& gpus) {
    (l.signal ? signals_ : buffers_)[l.index] = {host, bytes};
    map(l, {{.va = link_address(l), .bytes = bytes, .host = host}}, gpus);
  }
  void map(const SymbolOffset& l, std::vector<Mapping> pieces, const std::vector<Place>& gpus) {
    const auto owner = place_of(s_, l);
    for (auto& m : pieces) m.owner = owner.is_host() ? Mapping::kHost : owner.index;
    for (std::uint32_t n = 0; n < spaces_.size(); ++n) {
      std::uint64_t here = gpus.empty() ? ~std::uint64_t{0} : 0;
      for (const auto g : gpus)
        if (!g.is_host() && g.index / kOfSpace == n) here |= std::uint64_t{1} << g.index % kOfSpace;
      for (auto m : pieces) m.gpus = here, spaces_[n].later.push_back(m);
    }
  }
  /// All at once, because each change of a space makes a new list of what it maps.
  void map_all() {
    for (auto& space : spaces_)
      if (const auto e = space.map(std::exchange(space.later, {})); e != Errc::ok)
        findings_.push_back({.where = "memory", .message = "cannot be mapped: " + std::string(message(e))});
  }

  const Schedule& s_;
  std::vector<Diagnostic> findings_;
  std::vector<Piece> buffers_, signals_;
  std::vector<std::uint64_t> words_;  ///< signals' memory
  std::vector<LazyPages> pages_;      ///< buffers' memory
  /// A mapping says for 64 GPUs whether they may use it, so there is a space for so many.
  static constexpr std::uint32_t kOfSpace = 64;
  struct Space : AddressSpace {
    std::vector<Mapping> later{};  ///< what `map_all` maps
  };
  std::deque<Space> spaces_;
  std::deque<AddressSpace::Reader> readers_;
  std::vector<std::pair<std::uint64_t, std::uint64_t>> watched_;  ///< ranges of buffers, sorted by `buffers`
  std::vector<std::pair<std::vector<Region>, bool>> accesses_;    ///< of `accesses`
  std::vector<std::uint64_t> shared_;                             ///< the bytes that do not matter
};

}}}  // namespace sdma::v0_3::detail
