// SPDX-License-Identifier: MIT
#include "options.hpp"
#include "sdma/core/number.hpp"

#include <algorithm>
#include <limits>
#include <numeric>

namespace collectives {
namespace {

template <class E> bool to(E& field, std::optional<E> v) {
  if (v) field = *v;
  return v.has_value();
}
template <std::integral N> bool to(N& field, std::string_view text) {
  const auto v = sdma::parse_size(text);
  if (!v || *v > std::numeric_limits<N>::max()) return false;
  field = static_cast<N>(*v);
  return true;
}
bool to(bool& field, std::string_view text) {
  field = text == "yes";
  return field || text == "no";
}
/// Numbers with a comma or blanks between them.
template <class N> bool to(std::vector<N>& field, std::string_view text) {
  field.clear();
  const auto skip = [&](std::string_view which) {
    text.remove_prefix(std::min(text.find_first_not_of(which), text.size()));
  };
  for (;;) {
    skip(" \t\r\n");
    if (text.starts_with('#')) {
      text.remove_prefix(std::min(text.find('\n'), text.size()));
      continue;
    }
    if (text.empty()) return true;
    const auto end = std::min(text.find_first_of(", \t\r\n#"), text.size());
    if (!to(field.emplace_back(), text.substr(0, end))) return false;
    text.remove_prefix(end);
    skip(" \t");
    if (text.starts_with(',')) text.remove_prefix(1);
  }
}

}  // namespace

std::string set(Options& o, std::string_view name, std::string_view v) {
  const auto expect = [&](bool good, std::string_view what) {
    return good ? "" : std::string(name) + ": '" + std::string(v) + "' is " + std::string(what);
  };
  constexpr std::string_view kNumber = "not a number", kYes = "neither yes nor no", kNumbers = "not a list of numbers";
  if (name == "collective") return expect(to(o.collective, collective_named(v)), "not a collective");
  if (name == "variant") {
    const bool ahead = v.ends_with(kPrelaunched);
    if (ahead && o.prelaunch == Prelaunch::off) o.prelaunch = Prelaunch::shared;
    return expect(to(o.variant, variant_named(ahead ? v.substr(0, v.size() - kPrelaunched.size()) : v)),
                  "not one of " + variant_names(", ") + ", nor one of them with +pl");
  }
  if (name == "prelaunch")
    return expect(to(o.prelaunch, prelaunch_named(v)), "not one of off, shared, per_group, stream");
  if (name == "completion")
    return expect(to(o.completion, completion_named(v)), "not one of atomic, fence, two_fences");
  if (name == "gpus") return expect(to(o.gpus, v), kNumber);
  if (name == "bytes") return expect(to(o.bytes, v), kNumber);
  if (name == "root") return expect(to(o.root, v), kNumber);
  if (name == "in_place") return expect(to(o.in_place, v), kYes);
  if (name == "own_part") return expect(to(o.own_part, v), kYes);
  if (name == "epochs") return expect(to(o.epochs, v), kNumber);
  if (name == "peers_per_engine") return expect(to(o.peers_per_engine, v), kNumber);
  if (name == "engines") return expect(to(o.engines, v), kNumbers);
  if (name == "granule") return expect(to(o.granule, v), kNumber);
  if (name == "alignment") return expect(to(o.alignment, v), kNumber);
  if (name == "offsets") return expect(to(o.offsets, v), kNumbers);
  if (name == "packet_bytes") return expect(to(o.packet_bytes, v), kNumber);
  if (name == "sizes") return expect(to(o.sizes, v), kNumbers);
  if (name == "ring_bytes") return expect(to(o.ring_bytes, v), kNumber);
  return "'" + std::string(name) + "' is not an option";
}

std::string set_matrix(Options& o, std::string_view text) {
  if (auto wrong = set(o, "sizes", text); !wrong.empty()) return "a cell is not a number";
  o.gpus = 0;
  while (std::size_t{o.gpus} * o.gpus < o.sizes.size()) ++o.gpus;
  if (o.gpus < 2 || std::size_t{o.gpus} * o.gpus != o.sizes.size())
    return std::to_string(o.sizes.size()) + " numbers are not a matrix with as many rows as columns, and at least two";
  o.bytes = 1;
  for (auto row = o.sizes.begin(); row != o.sizes.end(); row += o.gpus)
    o.bytes = std::max(o.bytes, std::accumulate(row, row + o.gpus, std::uint64_t{0}));
  return "";
}

}  // namespace collectives
