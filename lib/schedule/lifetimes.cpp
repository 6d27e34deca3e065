// SPDX-License-Identifier: MIT
#include "lifetimes.hpp"

namespace sdma { inline namespace v0_3 { namespace detail {

std::string_view lifetime_word(Schedule::Action::Kind k) noexcept {
  using Kind = Schedule::Action::Kind;
  switch (k) {
    case Kind::alloc: return "alloc";
    case Kind::free: return "free";
    case Kind::map: return "map";
    case Kind::unmap: return "unmap";
    case Kind::export_handle: return "export";
    case Kind::close_handle: return "close";
    default: return "";
  }
}

std::optional<Diagnostic> wrong_lifetime(const Schedule& s, Schedule::Action::Kind kind, std::size_t buffer) {
  using Kind = Schedule::Action::Kind;
  const auto& at = s.buffers[buffer].at;
  if (!at) return {};
  const auto name = name_of(s, link_buffer(buffer));
  if (!find_symbol(s, *at))
    return Diagnostic{.message = name + " has a fixed address: the memory there is not the schedule's"};
  if (kind == Kind::alloc || kind == Kind::free) return {};
  const auto root = buffers_of(s, link_buffer(buffer)).back();
  return Diagnostic{.message = name + " is an alias, which has no mapping and no handle of its own",
                    .hint = "name the buffer that has the bytes: " + name_of(s, link_buffer(root))};
}

std::vector<Lifetime> lifetimes(const Schedule& s) {
  using Kind = Schedule::Action::Kind;
  std::vector<Lifetime> all(s.buffers.size());
  each_action(s, [&](const Schedule::Action& a) {
    const auto l = is_lifetime(a) ? find_symbol(s, a.buffer) : std::nullopt;
    if (!l || l->signal) return;
    auto& life = all[l->index];
    if (a.kind == Kind::alloc) life.allocated = true;
    if (a.kind == Kind::free) life.freed = true;
    if (a.kind == Kind::map) life.mapped.set(a.gpu.index);
    if (a.kind == Kind::unmap) life.unmapped.set(a.gpu.index);
    if (a.kind == Kind::export_handle || a.kind == Kind::close_handle) life.exported = true;
  });
  return all;
}

GpuSet mapped_at_first(const Schedule::Buffer& b, const Lifetime& life) noexcept {
  GpuSet gpus{};
  if (b.map.empty()) gpus.set();
  for (const auto p : b.map)
    if (!p.is_host()) gpus.set(p.index);
  return gpus & ~life.mapped;
}

std::vector<std::size_t> buffers_of(const Schedule& s, GpuVa va) {
  std::vector<std::size_t> all;
  for (int i = 0; i <= kMostAliases; ++i) {
    const auto l = find_symbol(s, va);
    if (!l) break;
    if (!l->signal) all.push_back(l->index);
    if (!at_of(s, *l)) break;
    va = *at_of(s, *l) + l->offset;
  }
  return all;
}

}}}  // namespace sdma::v0_3::detail
