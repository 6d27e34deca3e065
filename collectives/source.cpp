// SPDX-License-Identifier: MIT
#include "source.hpp"

#include "sdma/core/number.hpp"
#include "texts.hpp"

#include <algorithm>

namespace collectives {
namespace {

using sdma::size_text;

template <class N> std::string list_text(const std::vector<N>& all, const char* otherwise) {
  std::string out;
  for (const auto& n : all) out += (out.empty() ? "" : ", ") + std::to_string(n);
  return "[" + (out.empty() ? otherwise : out) + "]";
}

/// The param of each option, as a value of the text.
struct Param {
  std::string_view name;
  std::string (*value)(const Options&);
};
constexpr Param kParams[] = {
    {"collective", [](const Options& o) { return std::string(name(o.collective)); }},
    {"N", [](const Options& o) { return std::to_string(o.gpus); }},
    {"bytes", [](const Options& o) { return size_text(o.bytes); }},
    {"root", [](const Options& o) { return std::to_string(o.root); }},
    {"variant", [](const Options& o) { return std::string(name(o.variant)); }},
    {"prelaunch", [](const Options& o) { return std::string(name(o.prelaunch)); }},
    {"completion", [](const Options& o) { return std::string(name(o.completion)); }},
    {"own_part", [](const Options& o) { return std::string(o.own_part ? "yes" : "no"); }},
    {"epochs", [](const Options& o) { return std::to_string(o.epochs); }},
    {"peers_per_engine", [](const Options& o) { return std::to_string(o.peers_per_engine); }},
    {"engines", [](const Options& o) { return list_text(o.engines, "-1"); }},
    {"sizes", [](const Options& o) { return list_text(o.sizes, "1"); }},
    {"granule", [](const Options& o) { return size_text(o.granule); }},
    {"alignment", [](const Options& o) { return size_text(o.alignment); }},
    {"offsets", [](const Options& o) { return list_text(o.offsets, "0"); }},
    {"packet_bytes", [](const Options& o) { return size_text(o.packet_bytes); }},
    {"turns", [](const Options& o) { return std::to_string(o.turns); }},
    {"ring_bytes", [](const Options& o) { return size_text(o.ring_bytes); }},
};

std::string line_of(std::string_view param) { return "\nparam " + std::string(param) + " = "; }

Source text_of(const Options& o) {
  switch (o.collective) {
    case Collective::all_gather: return {"all_gather.sdma", kAllGatherText};
    case Collective::all_to_all:
      if (o.variant == Variant::swap) return {"all_to_all_in_place.sdma", kAllToAllInPlaceText};
      return {"all_to_all.sdma", kAllToAllText};
    case Collective::alltoallv: return {"alltoallv.sdma", kAlltoallvText};
    case Collective::broadcast:
    case Collective::scatter:
    case Collective::gather: return {"rooted.sdma", kRootedText};
  }
  return {};
}

}  // namespace

Source source_of(const Options& o) {
  // The values of these options are those that the texts have.
  static const Options kUsual{.collective = Collective::broadcast, .variant = Variant::pcpy, .bytes = 1 << 20};
  auto s = text_of(o);
  for (const auto& p : kParams)
    if (auto value = p.value(o); value != p.value(kUsual)) set_param(s, p.name, std::move(value));
  return s;
}

std::optional<Source> reduction(std::string_view collective) {
  if (collective != "reduce_scatter" && collective != "all_reduce") return {};
  Source s{"reductions.sdma", kReductionsText};
  set_param(s, "collective", std::string(collective));
  return s;
}

std::optional<Source> over_nodes(std::string_view collective) {
  if (collective != "all_gather" && collective != "all_to_all" && collective != "broadcast") return {};
  Source s{"nodes.sdma", kNodesText};
  set_param(s, "collective", std::string(collective));
  return s;
}

sdma::NodeSizes nodes_of(const sdma::Topology& t) {
  sdma::NodeSizes nodes;
  std::optional<std::uint32_t> last;
  for (const auto& g : t.gpus) {
    if (g.node != last) nodes.sizes.push_back(0);
    ++nodes.sizes.back();
    last = g.node;
  }
  return nodes;
}

bool set_param(Source& s, std::string_view param, std::string value) {
  if (s.text.find(line_of(param)) == s.text.npos) return false;
  s.set.push_back({std::string(param), std::move(value)});
  return true;
}

std::string with_params(const Source& s) {
  std::string out(s.text);
  for (const auto& [param, value] : s.set) {
    const auto line = line_of(param);
    const auto begin = out.find(line) + line.size();
    const auto end = out.find('\n', begin);
    const auto comment = std::min(out.find('#', begin), end), words = std::min(out.find(" of [", begin), comment);
    const auto after = out.find_last_not_of(' ', words - 1) + 1;
    // The comment stays in its column, if there is room.
    const auto blanks = comment - (out.find_last_not_of(' ', comment - 1) + 1);
    const auto longer = value.size() - std::min(value.size(), after - begin);
    const auto shorter = after - begin - std::min(value.size(), after - begin);
    if (comment != end) out.replace(comment - blanks, blanks, std::max(blanks + shorter, longer + 2) - longer, ' ');
    out.replace(begin, after - begin, value);
  }
  return out;
}

}  // namespace collectives
