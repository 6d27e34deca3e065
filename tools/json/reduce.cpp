// SPDX-License-Identifier: MIT
#include "reduce.hpp"

#include <algorithm>

namespace sdma::json {
namespace {

std::size_t packets(const Schedule& s) {
  std::size_t n = 0;
  for (const auto& q : s.queues)
    for (Reader r{q.dwords}; r; ++n) r.next();
  return n;
}
std::size_t actions(const std::vector<Schedule::Action>& all) {
  std::size_t n = all.size();
  for (const auto& a : all) n += actions(a.body);
  return n;
}
std::size_t actions(const Schedule& s) {
  std::size_t n = 0;
  for (const auto& h : s.hosts) n += actions(h.actions);
  for (const auto& k : s.kernels) n += actions(k.actions);
  return n;
}

}  // namespace

std::vector<std::pair<std::string, std::pair<std::size_t, std::size_t>>> sizes(const ReducedText& r) {
  const auto &a = r.original, &b = r.checked.schedule;
  const auto lines = static_cast<std::size_t>(std::count(r.text.begin(), r.text.end(), '\n'));
  return {{"lines", {r.lines_before, lines}},
          {"gpus", {a.gpus, b.gpus}},
          {"buffers", {a.buffers.size(), b.buffers.size()}},
          {"signals", {a.signals.size(), b.signals.size()}},
          {"queues", {a.queues.size(), b.queues.size()}},
          {"packets", {packets(a), packets(b)}},
          {"threads", {a.hosts.size() + a.kernels.size(), b.hosts.size() + b.kernels.size()}},
          {"actions", {actions(a), actions(b)}},
          {"expectations", {a.expectations.size(), b.expectations.size()}}};
}

Json of(const ReducedText& r, const std::string& file) {
  Json j{{"file", file}, {"rule", r.rule}, {"text", r.text}, {"tries", r.tries}, {"least", r.least}};
  for (const auto& [what, n] : sizes(r)) {
    j["before"][what] = n.first;
    j["after"][what] = n.second;
  }
  return j;
}

}  // namespace sdma::json
