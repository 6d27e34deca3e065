// SPDX-License-Identifier: MIT
// Where NCCL's collectives have their data: carried out on memory of the host, as NCCL's manual says what each does.
#include "perf/pieces.hpp"
#include "support/catch.hpp"

#include <algorithm>
#include <string>
#include <utility>

using namespace collectives;
using namespace collectives::perf;

namespace {

/// A byte of a rank's pattern, as text: "1:7".
std::string origin(std::size_t rank, std::uint64_t offset) {
  return std::to_string(rank) + ":" + std::to_string(offset);
}

struct Memory {
  std::vector<std::string> buffers[kBuffers];
};

std::vector<Memory> filled(const Options& o) {
  std::vector<Memory> all(o.gpus);
  for (auto& m : all)
    for (auto& b : m.buffers) b.assign(buffer_of(o), "?");
  for (const auto& p : pieces(o))
    for (std::uint64_t i = 0; i < p.bytes; ++i)
      all[p.rank].buffers[p.at.buffer].at(p.at.offset + i) =
          p.before ? origin(p.before->rank, p.before->offset + i) : "poison";
  return all;
}

/// What NCCL does: part p of `from` of one rank becomes part q of `to` of another.
void perform(const Options& o, std::vector<Memory>& all) {
  const auto before = all;
  const auto move = [&](std::size_t source, std::uint64_t p, std::size_t target, std::uint64_t q) {
    const auto from = operands(o, source).from, to = operands(o, target).to;
    for (std::uint64_t i = 0; i < count_of(o); ++i)
      all[target].buffers[to.buffer].at(to.offset + q * count_of(o) + i) =
          before[source].buffers[from.buffer].at(from.offset + p * count_of(o) + i);
  };
  for (std::size_t a = 0; a < o.gpus; ++a)
    for (std::size_t b = 0; b < o.gpus; ++b) switch (o.collective) {
        case Collective::all_gather: move(a, 0, b, a); break;
        case Collective::all_to_all: move(a, b, b, a); break;
        case Collective::alltoallv: break;
        case Collective::broadcast:
          if (a == o.root) move(a, 0, b, 0);
          break;
        case Collective::scatter:
          if (a == o.root) move(a, b, b, 0);
          break;
        case Collective::gather:
          if (b == o.root) move(a, 0, b, a);
          break;
      }
}

}  // namespace

TEST_CASE("every part arrives, and nothing else is given") {
  const auto collective = GENERATE(Collective::all_gather, Collective::all_to_all, Collective::broadcast,
                                   Collective::scatter, Collective::gather);
  const auto gpus = GENERATE(2u, 3u);
  const auto root = GENERATE(0u, 1u);
  const Options o{.collective = collective, .gpus = gpus, .bytes = 12, .root = root, .granule = 1};
  auto all = filled(o);
  perform(o, all);
  std::size_t arrived = 0;
  for (const auto& p : pieces(o)) {
    if (!p.after) continue;
    arrived += !p.before;
    for (std::uint64_t i = 0; i < p.bytes; ++i)
      CHECK(all[p.rank].buffers[p.at.buffer].at(p.at.offset + i) == origin(p.after->rank, p.after->offset + i));
  }
  // Parts that a rank does not have at the beginning.
  const std::size_t n = gpus;
  switch (collective) {
    case Collective::all_gather: CHECK(arrived == n * (n - 1)); break;
    case Collective::all_to_all: CHECK(arrived == n * n); break;
    case Collective::scatter: CHECK(arrived == n); break;
    default: CHECK(arrived == n - 1);
  }
}

TEST_CASE("an alltoallv sends and receives what the sizes say, and nothing to itself") {
  Options o{.collective = Collective::alltoallv};
  REQUIRE(set_matrix(o, "9 3 0  0 0 5  2 7 1") == "");
  for (const bool own : {false, true}) {
    o.own_part = own;
    const auto all = pieces(o);
    CHECK(all.size() == (own ? 2u * 6 : 2u * 4));
    for (const auto& sent : all) {
      if (sent.at.buffer != kFrom) continue;
      CHECK(sent.bytes == o.sizes[sent.rank * 3 + sent.other]);
      // The piece that receives it has as many bytes, and expects these.
      CHECK(std::count_if(all.begin(), all.end(), [&](const Piece& p) {
              return p.at.buffer == kTo && p.rank == sent.other && p.other == sent.rank && p.bytes == sent.bytes &&
                     p.after->rank == sent.rank && p.after->offset == sent.before->offset;
            }) == 1);
    }
  }
}
