// SPDX-License-Identifier: MIT
#include "memory.hpp"

#include <sys/mman.h>

#include <algorithm>
#include <cstring>
#include <utility>

namespace sdma::inline v0::detail {

LinkMemory::LinkMemory(const Schedule& s)
    : s_(s), buffers_(s.buffers.size()), signals_(s.signals.size()), words_(s.signals.size()) {
  for (const auto& l : symbols(s))
    if (at_of(s, l)) alias(l);
    else if (l.signal) map(l, reinterpret_cast<std::byte*>(&words_[l.index]), 8, {});
  for (std::uint32_t g = 0; g < s.gpus; ++g) readers_.emplace_back(space_, GpuId{g});
}

LinkMemory::~LinkMemory() {
  for (const auto& b : buffers_)
    if (b.host) munmap(b.host, b.bytes);
}

void LinkMemory::alias(const SymbolOffset& l) {
  const auto va = resolve(link_address(l));
  const auto to = find_symbol(s_, va);
  if (!to)
    findings_.push_back({.where = name_of(s_, l),
                         .message = "it has a fixed address, which a simulation cannot provide",
                         .hint = "at=0x... is for the addresses of a dump; omit it to simulate"});
  else if (l.signal && !to->signal) watch(va, 8);
}

void LinkMemory::accesses(std::vector<Region> all, bool moves) { accesses_.emplace_back(std::move(all), moves); }

void LinkMemory::buffers(bool all) {
  for (const auto& l : symbols(s_))
    if (l.signal || at_of(s_, l)) continue;
    else if (!kScarce || all || matters(l)) buffer(l);
    else shared(l);
}

bool LinkMemory::matters(const SymbolOffset& l) const {
  const auto some = [](const auto& all, const auto& is) { return std::any_of(all.begin(), all.end(), is); };
  const auto begin = link_address(l);
  const Region whole{.va = begin, .bytes = bytes_of(s_, l)};
  if (watched(whole)) return true;
  const auto here = [&](const Region& r) { return r.va < end_of(whole) && begin < end_of(r); };
  const auto seen = [&](const Region& r) { return watched(r); };
  return some(accesses_, [&](const auto& a) { return some(a.first, here) && (!a.second || some(a.first, seen)); });
}

void LinkMemory::shared(const SymbolOffset& l) {
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

void LinkMemory::buffer(const SymbolOffset& l) {
  const auto bytes = (bytes_of(s_, l) + 7) / 8 * 8;
  // Where std::size_t has 32 bits, a buffer may be larger than the address space.
  if (!std::in_range<std::size_t>(bytes)) return no_room(l);
  auto* at = mmap(nullptr, static_cast<std::size_t>(bytes), PROT_READ | PROT_WRITE,
                  MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (at == MAP_FAILED) no_room(l);
  else map(l, static_cast<std::byte*>(at), static_cast<std::size_t>(bytes), s_.buffers[l.index].map);
}

void LinkMemory::no_room(const SymbolOffset& l) {
  findings_.push_back({.where = name_of(s_, l), .message = "no address space is left for it"});
}

void LinkMemory::map(const SymbolOffset& l, std::byte* host, std::size_t bytes, const std::vector<Place>& gpus) {
  (l.signal ? signals_ : buffers_)[l.index] = {host, bytes};
  map(l, {{.va = link_address(l), .bytes = bytes, .host = host}}, gpus);
}

void LinkMemory::map(const SymbolOffset& l, std::vector<Mapping> pieces, const std::vector<Place>& gpus) {
  const auto owner = place_of(s_, l);
  for (auto& m : pieces) {
    m.owner = owner.is_host() ? Mapping::kHost : owner.index;
    if (!gpus.empty()) m.gpus = 0;
    for (const auto g : gpus)
      if (!g.is_host()) m.gpus |= std::uint64_t{1} << g.index;
  }
  if (const auto e = space_.map(pieces); e != Errc::ok)
    findings_.push_back(
        {.where = name_of(s_, l), .message = std::string("cannot be mapped: ") + std::string(message(e))});
}

Place LinkMemory::home(GpuVa va) const noexcept {
  const auto l = find_symbol(s_, va);
  return l ? place_of(s_, *l) : Place::host();
}

std::byte* LinkMemory::at(GpuVa va) noexcept {
  const auto l = find_symbol(s_, va);
  if (!l) return nullptr;
  const auto& p = l->signal ? signals_[l->index] : buffers_[l->index];
  return p.host ? p.host + l->offset : nullptr;
}

std::uint64_t LinkMemory::value(std::size_t signal) noexcept {
  std::uint64_t v = 0;
  if (const auto* from = at(resolve(link_signal(signal)))) std::memcpy(&v, from, s_.signals[signal].bits / 8);
  return v;
}
void LinkMemory::set(std::size_t signal, std::uint64_t v) noexcept {
  if (auto* to = at(resolve(link_signal(signal)))) std::memcpy(to, &v, s_.signals[signal].bits / 8);
}

void LinkMemory::watch(GpuVa va, std::uint64_t bytes) {
  if (va.value < kLinkSignals) watched_.emplace_back(va.value, va.value + bytes);
}

bool LinkMemory::watched(const Region& r) const noexcept {
  if (r.va.value >= kLinkSignals) return true;
  const auto end = end_of(r).value;
  for (const auto& [b, e] : watched_)
    if (r.va.value < e && b < end) return true;
  return false;
}

}  // namespace sdma::inline v0::detail
