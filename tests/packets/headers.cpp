// SPDX-License-Identifier: MIT
// The descriptions of 5.0 and later, and the Linux kernel's packet headers: each bit that one of them gives a field has
// the same owner in the other. Where they disagree, header_disagreements.txt says which source is followed.
#include <algorithm>
#include <fstream>
#include <map>
#include <set>
#include <sstream>
#include <tuple>
#include <vector>

#include "sdma/packets/catalogue.hpp"
#include "support/catch.hpp"

using namespace sdma;

namespace {

/// Bits of a packet that have one owner.
struct Owner {
  std::string name;
  unsigned dword, lo, hi;
  std::uint32_t slack = 0;  ///< low bits that an address has, and that are always 0

  bool meets(const Owner& o) const {
    return dword * 32 + lo <= o.dword * 32 + o.hi && o.dword * 32 + o.lo <= dword * 32 + hi;
  }
};
/// A place of a disagreement: packet, generation, field.
using Place = std::tuple<std::string, Generation, std::string>;

std::ifstream open(const char* name) {
  std::ifstream in(std::string(SDMA_SOURCE_ROOT "/tests/packets/") + name);
  REQUIRE(in);
  return in;
}
std::vector<std::string> split(const std::string& text, char at) {
  std::vector<std::string> out;
  std::istringstream in(text);
  for (std::string part; std::getline(in, part, at);) out.push_back(part);
  return out;
}
/// The generations that include a header.
std::vector<Generation> users(const std::string& header) {
  if (header == "5.0") return {Generation::v5_0, Generation::v5_2};
  if (header == "6.0") return {Generation::v6_0, Generation::v6_1, Generation::v7_0};
  REQUIRE(header == "7.1");
  return {Generation::v7_1};
}

using Fields = std::map<std::pair<Generation, std::string>, std::vector<Owner>>;
Fields header_fields() {
  Fields all;
  auto in = open("header_fields.txt");
  for (std::string line; std::getline(in, line);) {
    if (line.starts_with('#')) continue;
    std::istringstream words(line);
    std::string packet, headers;
    Owner f{};
    REQUIRE(words >> packet >> headers >> f.name >> f.dword >> f.lo >> f.hi);
    for (const auto& h : split(headers, ','))
      for (const auto g : users(h)) all[{g, packet}].push_back(f);
  }
  return all;
}
std::set<Place> disagreements() {
  std::set<Place> all;
  auto in = open("header_disagreements.txt");
  for (std::string line; std::getline(in, line);) {
    if (line.starts_with('#')) continue;
    std::istringstream words(line);
    std::string packet, generations, fields, authority;
    REQUIRE(words >> packet >> generations >> fields >> authority);
    for (const auto& g : split(generations, ','))
      for (const auto& f : split(fields, ',')) {
        REQUIRE(generation_of(g));
        CHECK(all.insert({packet, *generation_of(g), f}).second);
      }
  }
  return all;
}

/// What owns bits in a description: its fields, and the bits of its pattern after op and sub_op.
std::vector<Owner> owners(const PacketInfo& p) {
  std::vector<Owner> out;
  for (const auto& f : p.fields)
    out.push_back({std::string(f.name), f.dword, f.lo, f.hi, f.kind == Kind::payload ? 0 : f.alignment - 1});
  for (unsigned bit = 16; bit < 32; ++bit)
    if (p.pattern.mask[0] >> bit & 1) out.push_back({"pattern", 0, bit, bit});
  return out;
}

/// The bits that these own, without those of their first dword that an alignment makes 0.
std::vector<std::uint32_t> bits(const std::vector<Owner>& all, std::uint32_t slack = 0) {
  std::vector<std::uint32_t> out(40);
  for (const auto& f : all)
    for (auto b = f.lo; b <= f.hi; ++b)
      if (!(b < 32 && slack >> b & 1)) out[f.dword + b / 32] |= 1u << b % 32;
  return out;
}

/// Owners that meet, directly or through others. They agree if they own the same bits, and one of them, or a value in
/// several dwords, is all of it on one side.
struct Group {
  std::vector<Owner> ours, theirs;

  bool agrees() const {
    if (ours.size() != 1) return ours.size() > 1 && theirs.size() == 1 && bits(ours) == bits(theirs);
    std::set<unsigned> dwords;
    for (const auto& t : theirs) dwords.insert(t.dword);
    return !theirs.empty() && dwords.size() == theirs.size() &&
           (bits(ours) == bits(theirs) || bits(ours, ours[0].slack) == bits(theirs));
  }
};
std::vector<Group> groups(const std::vector<Owner>& ours, const std::vector<Owner>& theirs) {
  std::vector<Group> out;
  const auto add = [&](const Owner& o, std::vector<Owner> Group::*side) {
    Group merged;
    std::erase_if(out, [&](const Group& g) {
      const auto meets = [&](const Owner& other) { return o.meets(other); };
      if (std::ranges::none_of(g.ours, meets) && std::ranges::none_of(g.theirs, meets)) return false;
      merged.ours.insert(merged.ours.end(), g.ours.begin(), g.ours.end());
      merged.theirs.insert(merged.theirs.end(), g.theirs.begin(), g.theirs.end());
      return true;
    });
    (merged.*side).push_back(o);
    out.push_back(merged);
  };
  for (const auto& o : ours) add(o, &Group::ours);
  for (const auto& t : theirs) add(t, &Group::theirs);
  return out;
}

}  // namespace

TEST_CASE("descriptions and kernel headers agree about every field, or a source is named") {
  const auto headers = header_fields();
  const auto known = disagreements();
  std::set<Place> met;
  std::size_t compared = 0;
  for (const auto& [where, theirs] : headers) {
    const auto& [generation, packet] = where;
    const auto* p = catalogue(generation).find(packet);
    INFO(name_of(generation) << " " << packet);
    REQUIRE(p);
    CHECK_FALSE(p->fields_unknown);
    for (const auto& g : groups(owners(*p), theirs)) {
      ++compared;
      if (g.agrees()) continue;
      for (const auto* side : {&g.ours, &g.theirs})
        for (const auto& f : *side) {
          INFO(f.name << " dw" << f.dword << "[" << f.hi << ":" << f.lo << "]");
          const Place place{packet, generation, f.name};
          CHECK(known.contains(place));
          met.insert(place);
        }
    }
  }
  CHECK(compared > 3000);
  for (const auto g :
       {Generation::v5_0, Generation::v5_2, Generation::v6_0, Generation::v6_1, Generation::v7_0, Generation::v7_1})
    for (const auto& p : catalogue(g).packets()) {
      if (p.fields_unknown || p.fields.empty() || headers.contains({g, std::string(p.name)})) continue;
      INFO(name_of(g) << " " << p.name);
      const Place place{std::string(p.name), g, "packet"};
      CHECK(known.contains(place));
      met.insert(place);
    }
  for (const auto& [packet, generation, field] : known) {
    INFO(packet << " " << name_of(generation) << " " << field << " is listed, and agrees");
    CHECK(met.contains({packet, generation, field}));
  }
}
