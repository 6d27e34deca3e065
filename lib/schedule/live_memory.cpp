// SPDX-License-Identifier: MIT
#include "live_memory.hpp"

#include "team.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace sdma { inline namespace v0_3 { namespace detail {

LiveMemory::LiveMemory(const Bound& b)
    : bound_(b),
      s_(b.schedule()),
      of_(lifetimes(s_)),
      any_(std::any_of(of_.begin(), of_.end(), [](const auto& l) { return l.any(); })) {
  for (std::size_t i = 0; any_ && i < s_.buffers.size(); ++i) chains_.push_back(buffers_of(s_, link_buffer(i)));
}

std::string LiveMemory::refused() const {
  if (!any_) return {};
  if (team_of(bound_)) return "a run of several processes does not allocate, free or map memory";
  if (!bound_.device().takes_memory()) return "this device cannot take memory from engines while they run";
  return {};
}

std::string LiveMemory::begin(Deadline d) {
  if (!any_) return {};
  states_.assign(s_.buffers.size(), {});
  for (std::size_t b = 0; b < s_.buffers.size(); ++b) {
    auto& state = states_[b];
    state = {.present = !of_[b].allocated,
             .mapped = mapped_at_first(s_.buffers[b], of_[b]),
             .ended = {},
             .begun = {},
             .first = {}};
    if (s_.buffers[b].at || !of_[b].allocated) continue;
    const auto bytes = bound_.bytes({link_buffer(b), s_.buffers[b].bytes});
    state.first.assign(bytes.begin(), bytes.end());
  }
  std::string wrong;
  for (std::size_t b = 0; b < s_.buffers.size() && wrong.empty(); ++b)
    if (of_[b].any() || s_.buffers[b].at) wrong = apply(b, d);
  return wrong;
}

std::optional<GpuVa> LiveMemory::memory_of(std::size_t b) const {
  const auto root = chains_[b].back();
  if (s_.buffers[root].at) return {};
  const auto at = bound_.address(link_buffer(root));
  if (root == b) return at;
  const auto offset = resolve(s_, link_buffer(b)) - link_buffer(root);
  const auto apart = GpuVa{bound_.address(link_buffer(b)).value - offset};
  return apart == at ? std::nullopt : std::optional(apart);
}

bool LiveMemory::reaches(std::size_t b, Place user) const {
  const auto& state = states_[b];
  if (!state.present || user.is_host()) return state.present;
  if (!state.mapped.test(user.index)) return false;
  return !of_[b].exported || state.open || s_.buffers[b].place == user;
}

/// Gives the device what the state says. Only GPUs with queues have engines that could use the memory.
std::string LiveMemory::apply(std::size_t b, Deadline d) const {
  const auto memory = memory_of(b);
  if (!memory) return {};
  std::uint64_t gpus = 0;
  for (std::size_t q = 0; q < s_.queues.size(); ++q)
    if (bound_.owns(q) && gone(chains_[b], s_.queues[q].place).empty())
      gpus |= std::uint64_t{1} << bound_.queue(q).gpu().value;
  const auto e = bound_.device().allow(*memory, gpus, d);
  return e == Errc::ok ? "" : fmt::format("{}: {}", name_of(s_, link_buffer(b)), message(e));
}

std::string LiveMemory::perform(const Schedule::Action& a, const std::string& who, Deadline d) {
  using Kind = Schedule::Action::Kind;
  const std::lock_guard lock(mutex_);
  const auto b = find_symbol(s_, a.buffer)->index;
  const auto name = name_of(s_, a.buffer);
  auto& state = states_[b];
  if (a.kind == Kind::alloc && state.present) return name + " is there already";
  if (a.kind != Kind::alloc)
    if (auto why = gone(buffers_of(s_, a.buffer), Place::host()); !why.empty()) return why;
  if (a.kind == Kind::free && state.open) return "the handle of " + name + " is still open";
  if (a.kind == Kind::unmap && !state.mapped.test(a.gpu.index)) return to_string(a.gpu) + " has not mapped " + name;
  if (a.kind == Kind::export_handle && state.open) return name + " has a handle already";
  if (a.kind == Kind::close_handle && !state.open) return name + " has no open handle";
  switch (a.kind) {
    case Kind::alloc:
      state.present = true;
      state.mapped = mapped_at_first(s_.buffers[b], of_[b]);
      state.begun = who + " has allocated it";
      std::copy(state.first.begin(), state.first.end(), bound_.bytes({a.buffer, s_.buffers[b].bytes}).begin());
      break;
    case Kind::free:
      state.present = false;
      state.ended = who + " has freed it";
      break;
    case Kind::map:
      state.mapped.set(a.gpu.index);
      state.begun = who + " has mapped it for " + to_string(a.gpu);
      break;
    case Kind::unmap:
      state.mapped.reset(a.gpu.index);
      state.ended = who + " has unmapped it for " + to_string(a.gpu);
      break;
    case Kind::export_handle:
      state.open = true;
      state.begun = who + " has exported it";
      break;
    default:
      state.open = false;
      state.ended = who + " has closed its handle";
      break;
  }
  std::string wrong;
  for (std::size_t of = 0; of < chains_.size() && wrong.empty(); ++of)
    if (std::find(chains_[of].begin(), chains_[of].end(), b) != chains_[of].end()) wrong = apply(of, d);
  return wrong;
}

std::string LiveMemory::gone(const std::vector<std::size_t>& buffers, Place user) const {
  for (const auto b : buffers) {
    const bool part = s_.buffers[b].at.has_value();
    if (reaches(b, part ? Place::host() : user)) continue;
    const auto& state = states_[b];
    const auto name = name_of(s_, link_buffer(b));
    if (!state.ended.empty()) return name + " is gone: " + state.ended;
    if (!state.present) return name + " is not allocated yet";
    if (!state.mapped.test(user.index)) return to_string(user) + " has not mapped " + name;
    return name + " is not exported yet";
  }
  return {};
}

std::string LiveMemory::gone(GpuVa link, Place user) const {
  if (!any_) return {};
  const std::lock_guard lock(mutex_);
  return gone(buffers_of(s_, link), user);
}

std::string LiveMemory::gone_at(GpuVa device, Place user) const {
  if (!any_) return {};
  const std::lock_guard lock(mutex_);
  for (std::size_t b = 0; b < s_.buffers.size(); ++b) {
    if (!memory_of(b) || device - bound_.address(link_buffer(b)) >= s_.buffers[b].bytes) continue;
    auto why = gone(chains_[b], user);
    if (!why.empty() || states_[b].begun.empty()) return why;
    return name_of(s_, link_buffer(b)) + " was not there: " + states_[b].begun + " since";
  }
  return {};
}

}}}  // namespace sdma::v0_3::detail
