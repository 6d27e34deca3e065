#include "memory.hpp"

#include <sys/mman.h>

#include <cstring>

namespace sdma {
inline namespace v0 {
namespace detail {

LinkMemory::LinkMemory(const Schedule& s)
    : s_(s), buffers_(s.buffers.size()), signals_(s.signals.size()), words_(s.signals.size()) {
  for (std::size_t i = 0; i < s.buffers.size(); ++i) {
    const auto& b = s.buffers[i];
    if (b.at) {
      if (!find_symbol(s, resolve(link_buffer(i))))
        findings_.push_back({.where = name_of(s, SymbolOffset{false, i, 0}),
                             .message = "it has a fixed address, which a simulation cannot provide",
                             .hint = "at=0x... is for the addresses of a dump; omit it to simulate"});
      continue;
    }
    const auto bytes = (b.bytes + 7) / 8 * 8;
    auto* at = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (at == MAP_FAILED) {
      findings_.push_back(
          {.where = name_of(s, SymbolOffset{false, i, 0}), .message = "no address space is left for it"});
      continue;
    }
    buffers_[i] = {static_cast<std::byte*>(at), bytes};
    map(link_buffer(i), bytes, b.place, b.map);
  }
  for (std::size_t i = 0; i < s.signals.size(); ++i) {
    if (s.signals[i].at) {
      const auto to = find_symbol(s, resolve(link_signal(i)));
      if (!to)
        findings_.push_back({.where = name_of(s, SymbolOffset{true, i, 0}),
                             .message = "it has a fixed address, which a simulation cannot provide"});
      else if (!to->signal) watch(resolve(link_signal(i)), 8);
      continue;
    }
    signals_[i] = {reinterpret_cast<std::byte*>(&words_[i]), 8};
    map(link_signal(i), 8, s.signals[i].place, {});
  }
  for (std::size_t i = 0; i < s.signals.size() && findings_.empty(); ++i) set(i, s.signals[i].value);
  for (std::uint32_t g = 0; g < s.gpus; ++g) readers_.emplace_back(space_, GpuId{g});
}

LinkMemory::~LinkMemory() {
  for (const auto& b : buffers_)
    if (b.host) munmap(b.host, b.bytes);
}

void LinkMemory::map(GpuVa va, std::uint64_t bytes, Place owner, const std::vector<Place>& gpus) {
  const auto& p = va.value >= kLinkSignals ? signals_[(va.value - kLinkSignals) / kLinkStride - 1]
                                           : buffers_[va.value / kLinkStride - 1];
  Mapping m{.va = va, .bytes = bytes, .host = p.host, .owner = owner.is_host() ? Mapping::kHost : owner.index};
  if (!gpus.empty()) m.gpus = 0;
  for (const auto g : gpus)
    if (!g.is_host()) m.gpus |= std::uint64_t{1} << g.index;
  if (const auto e = space_.map(m); e != Errc::ok)
    findings_.push_back(
        {.where = name_of(s_, va), .message = std::string("cannot be mapped: ") + std::string(message(e))});
}

GpuVa LinkMemory::resolve(GpuVa va) const noexcept {
  // problems() has excluded cycles.
  for (auto l = find_symbol(s_, va); l; l = find_symbol(s_, va)) {
    const auto& at = l->signal ? s_.signals[l->index].at : s_.buffers[l->index].at;
    if (!at) break;
    va = *at + l->offset;
  }
  return va;
}

Place LinkMemory::home(GpuVa va) const noexcept {
  const auto l = find_symbol(s_, va);
  if (!l) return Place::host();
  return l->signal ? s_.signals[l->index].place : s_.buffers[l->index].place;
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
  const auto end = r.va.value + r.bytes + (r.rows - 1) * r.pitch + (r.slices - 1) * r.slice_pitch;
  for (const auto& [b, e] : watched_)
    if (r.va.value < e && b < end) return true;
  return false;
}

}  // namespace detail
}  // namespace v0
}  // namespace sdma
