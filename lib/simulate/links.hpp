// SPDX-License-Identifier: MIT
#pragma once
// Links: the resources that bytes cross from place to place, and those that cannot be simulated because their rate is
// unknown.
// Members of World, which world.cpp includes.
#include "world.hpp"

#include <fmt/format.h>

#include <map>

namespace sdma { inline namespace v0_3 { namespace detail {

inline std::string path_of(const Link& l) { return fmt::format("link {}->{}", to_string(l.from), to_string(l.to)); }

/// Every link that the schedule's GPUs could use, by both of its ends.
template <class Time> void World<Time>::links() {
  places_ = s_.gpus + std::size_t{1};
  links_.assign(places_ * places_, ~0u);
  for (std::uint32_t g = 0; g < s_.gpus; ++g)
    memories_.push_back(resource(Busy::Kind::memory, fmt::format("gpu{} memory", g), Cost::hbm_rate));
  memories_.push_back(resource(Busy::Kind::memory, "host memory", Cost::host_memory));
  shares_.resize(links_.size());
  turns_.resize(links_.size());
  paths_.assign(m_.topology.shared.size(), {});
  masks_.resize(links_.size());
  flights_between_.assign(links_.size(), Cost::xgmi_flight);
  pages_.resize(s_.gpus);
  std::vector<std::optional<std::uint32_t>> shared;
  for (const auto& s : m_.topology.shared) {
    const auto rate = s.rate.gb_per_s();
    shared.push_back(
        rate ? std::optional(resource(Busy::Kind::link, "link " + s.name, link_rate(s.type).efficiency, *rate))
             : std::nullopt);
  }
  const auto unrated = [](const Link& l) { return Unrated{path_of(l), link_rate(l.type).name}; };
  const auto cpu = [](LinkEnd e) { return e.kind == LinkEnd::Kind::cpu; };
  // Host memory is on the first socket: what GPUs of another one exchange with it also crosses the link between both.
  struct Between {
    const Link* link{};
    std::optional<std::uint32_t> resource{};
  };
  std::map<std::pair<std::uint32_t, std::uint32_t>, Between> sockets;
  for (const auto& l : m_.topology.links) {
    if (!cpu(l.from) || !cpu(l.to)) continue;
    const auto [between, added] = sockets.try_emplace({l.from.index, l.to.index}, Between{&l});
    if (const auto rate = l.rate.gb_per_s(); added && rate)
      between->second.resource =
          net_.add({.kind = Busy::Kind::link, .name = path_of(l), .rate = *rate, .times = *rate});
  }
  for (const auto& l : m_.topology.links) {
    const auto in = [&](LinkEnd e) { return cpu(e) || e.index < s_.gpus; };
    if (!in(l.from) || !in(l.to) || (cpu(l.from) && cpu(l.to))) continue;
    const auto place = [&](LinkEnd e) { return cpu(e) ? Place::host() : Place::gpu(e.index); };
    const auto from = place(l.from), to = place(l.to);
    if (leads(from, to)) continue;  // a second socket: the nearest one, named first, is used
    const auto index = link(from, to);
    if (const auto rate = l.rate.gb_per_s())
      links_[index] = resource(Busy::Kind::link, fmt::format("link {}->{}", to_string(from), to_string(to)),
                               link_rate(l.type).efficiency, *rate);
    else unrated_[index] = unrated(l);
    masks_[index] = l.engine_mask;
    for (const auto i : l.shares) {
      if (i >= shared.size()) continue;
      if (m_.topology.shared[i].message_ns != 0) turns_[index].push_back(i);
      if (shared[i]) shares_[index].push_back(*shared[i]);
      else unrated_.try_emplace(index, Unrated{"path " + m_.topology.shared[i].name});
    }
    const auto socket = [&](LinkEnd e) { return cpu(e) ? e.index : 0; };
    if (const auto between = sockets.find({socket(l.to), socket(l.from)}); between != sockets.end()) {
      if (between->second.resource) shares_[index].push_back(*between->second.resource);
      else unrated_.try_emplace(index, unrated(*between->second.link));
    }
    if (l.type == LinkType::other) flights_between_[index] = Cost::nic_flight;
  }
}

template <class Time> bool World<Time>::reaches(Place from, Place to, const std::string& where) {
  if (leads(from, to)) return true;
  find(where, fmt::format("no link leads from {} to {}", to_string(from), to_string(to)));
  return false;
}

template <class Time>
std::optional<std::uint32_t> World<Time>::crossed(Place from, Place to, const std::string& where) {
  const auto index = link(from, to);
  if (const auto unrated = unrated_.find(index); unrated != unrated_.end()) {
    lacks_rate_ = true;
    const auto& [path, rate] = unrated->second;
    const auto set = rate.empty() ? "" : fmt::format("set {} in GB/s (sdma simulate --parameter {}=..), ", rate, rate);
    return find(where,
                fmt::format("bytes cross the {}, whose rate is unknown: {} does not state it", path,
                            m_.origin.file.empty() ? "the machine" : m_.origin.file),
                set + "write its \"mb_per_s\" into the machine's file, or measure the machine (sdma calibrate)"),
           std::nullopt;
  }
  return reaches(from, to, where) ? std::optional(links_[index]) : std::nullopt;
}

}}}  // namespace sdma::v0_3::detail
