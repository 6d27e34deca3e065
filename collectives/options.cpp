// SPDX-License-Identifier: MIT
#include "options.hpp"
#include "sdma/core/number.hpp"

#include <algorithm>
#include <bit>
#include <limits>
#include <numeric>

namespace collectives {
namespace {

constexpr std::string_view kCollectiveNames[] = {"all_gather", "all_to_all", "broadcast",
                                                 "scatter",    "gather",     "alltoallv"};
constexpr std::string_view kVariantNames[] = {"pcpy", "bcst", "swap", "b2b", "auto"};
constexpr std::string_view kPrelaunchNames[] = {"off", "shared", "per_group", "stream"};
constexpr std::string_view kCompletionNames[] = {"atomic", "fence", "two_fences"};

template <class E, std::size_t N>
std::optional<E> find(const std::string_view (&names)[N], std::string_view text) noexcept {
  const auto at = std::find(std::begin(names), std::end(names), text) - std::begin(names);
  return static_cast<std::size_t>(at) < N ? std::optional(static_cast<E>(at)) : std::nullopt;
}

constexpr std::uint64_t kMostSum = (std::uint64_t{1} << 31) - 1;  // the text's products stay below 2^63

/// What is wrong with the sizes of an alltoallv; "" for nothing.
std::string sizes_refusal(const Options& o) {
  if (o.collective != Collective::alltoallv) return o.sizes.empty() ? "" : "sizes are only for an alltoallv";
  if (!o.sizes.empty() && o.sizes.size() != std::size_t{o.gpus} * o.gpus)
    return std::to_string(o.gpus) + " GPUs need " + std::to_string(o.gpus * o.gpus) + " sizes, not " +
           std::to_string(o.sizes.size());
  for (const auto s : o.sizes)
    if (s > kMostSum) return "a size of " + std::to_string(s) + " is too large: at most " + std::to_string(kMostSum);
  std::uint64_t sum = 0;
  for (std::size_t i = 0; i < o.sizes.size(); ++i) {
    sum = i % o.gpus == 0 ? o.sizes[i] : sum + o.sizes[i];
    if (sum > kMostSum) return "the sizes of gpu" + std::to_string(i / o.gpus) + " add up to 2G or more";
  }
  const auto parts = sent_parts(o);
  for (std::size_t i = 0; i < parts.size(); ++i)
    if (i / o.gpus != i % o.gpus && parts[i].bytes != 0) return "";
  return "with these sizes, no GPU sends a byte to another";
}

std::string variants_of(Collective c) {
  std::string all;
  for (const auto v : kVariants)
    if (has_variant(c, v)) all += (all.empty() ? "" : ", ") + std::string(name(v));
  return all;
}

// What `set` reads into a member.
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

std::string_view name(Collective c) noexcept { return kCollectiveNames[static_cast<std::size_t>(c)]; }
std::string_view name(Variant v) noexcept { return kVariantNames[static_cast<std::size_t>(v)]; }
std::string_view name(Prelaunch p) noexcept { return kPrelaunchNames[static_cast<std::size_t>(p)]; }
std::string_view name(Completion c) noexcept { return kCompletionNames[static_cast<std::size_t>(c)]; }

std::optional<Collective> collective_named(std::string_view s) noexcept {
  return find<Collective>(kCollectiveNames, s);
}
std::optional<Variant> variant_named(std::string_view s) noexcept { return find<Variant>(kVariantNames, s); }
std::optional<Prelaunch> prelaunch_named(std::string_view s) noexcept { return find<Prelaunch>(kPrelaunchNames, s); }
std::optional<Completion> completion_named(std::string_view s) noexcept {
  return find<Completion>(kCompletionNames, s);
}

std::string variant_names(std::string_view between, std::string_view after) {
  std::string all;
  for (const auto n : kVariantNames) all.append(all.empty() ? "" : between).append(n).append(after);
  return all;
}

bool has_variant(Collective c, Variant v) noexcept {
  switch (v) {
    case Variant::bcst: return c == Collective::all_gather || c == Collective::broadcast;
    case Variant::swap: return c == Collective::all_to_all;
    case Variant::pcpy:
    case Variant::b2b:
    case Variant::automatic: return true;
  }
  return false;
}

std::optional<sdma::Diagnostic> refusal(const Options& o) {
  const auto no = [&](std::string message, std::string hint = "") {
    return sdma::Diagnostic{
        .where = std::string(name(o.collective)), .message = std::move(message), .hint = std::move(hint)};
  };
  constexpr auto kMost = sdma::kLinkStride / 4;
  if (o.gpus < 2 || o.gpus > kMostGpus)
    return no("a collective needs 2 to " + std::to_string(kMostGpus) + " GPUs, not " + std::to_string(o.gpus));
  if (o.bytes == 0 || o.bytes > kMost) return no("bytes must be from 1 to 256G, not " + std::to_string(o.bytes));
  if (!has_variant(o.collective, o.variant))
    return no(std::string(name(o.variant)) + " is not a variant of this collective",
              "it has " + variants_of(o.collective) + ", auto");
  if (o.root >= o.gpus)
    return no("root " + std::to_string(o.root) + " is not one of its " + std::to_string(o.gpus) + " GPUs");
  if (o.in_place &&
      (o.collective != Collective::all_to_all || (o.variant != Variant::automatic && o.variant != Variant::swap)))
    return no("in_place is only for an all_to_all with the variant swap or auto", "omit in_place");
  if (o.own_part && o.collective != Collective::alltoallv &&
      (o.collective != Collective::all_to_all || o.in_place || o.variant == Variant::swap))
    return no("own_part is only for an all_to_all that is not in place, and for an alltoallv");
  if (auto why = sizes_refusal(o); !why.empty())
    return no(std::move(why),
              "GPU i sends sizes[i*N+d] to GPU d: a row of N numbers for each of the N GPUs, whose sum is below 2G");
  if (o.epochs == 0 || o.epochs > 0x7fffffff)
    return no("epochs must be from 1 to 2^31-1, not " + std::to_string(o.epochs));
  if (o.granule == 0 || o.granule > kMost) return no("granule must be from 1 to 256G");
  if (!std::has_single_bit(o.alignment) || o.alignment > 1u << 30)
    return no("alignment must be a power of two up to 1G, not " + std::to_string(o.alignment));
  if (o.packet_bytes == 0 || o.packet_bytes % 64 != 0 || o.packet_bytes > sdma::kChunk)
    return no("packet_bytes must be a multiple of 64 up to " + std::to_string(sdma::kChunk) + ", not " +
              std::to_string(o.packet_bytes));
  if (o.turns != 1 && (o.turns != 2 || o.collective != Collective::all_gather))
    return no("turns must be 1, or for an all_gather 1 or 2, and not " + std::to_string(o.turns));
  for (const auto e : o.engines)
    if (e > 63) return no("there is no engine " + std::to_string(e) + ": engines are 0 to 63");
  for (const auto offset : o.offsets)
    if (offset > kMost)
      return no("an offset of " + std::to_string(offset) + " bytes is too large: at most " + sdma::size_text(kMost));
  return {};
}

std::uint64_t chunk_of(const Options& o) noexcept {
  const auto even = (o.bytes + o.gpus - 1) / o.gpus;
  const auto rounded = (even + o.granule - 1) / o.granule * o.granule;
  return rounded * (o.gpus - 1) < o.bytes ? rounded : even;
}

Part part_of(const Options& o, std::uint32_t d) noexcept {
  const auto chunk = chunk_of(o);
  const auto begin = std::min(d * chunk, o.bytes), end = std::min(begin + chunk, o.bytes);
  return {begin, end - begin};
}

std::vector<Part> sent_parts(const Options& o) {
  const auto pairs = std::size_t{o.gpus} * o.gpus;
  std::vector<Part> all(pairs);  // at first by their sizes
  std::uint64_t end = 0, most = 0;
  for (std::size_t i = 0; i < pairs; ++i) {
    if (i % o.gpus == 0) end = 0;
    all[i] = {end, o.sizes.empty() ? 1 : o.sizes[i]};
    most = std::max(most, end += all[i].bytes);
  }
  // All parts of a GPU together have as many bytes as their sum is due, whatever a division leaves.
  const auto bytes = [&](std::uint64_t sum) {
    return most == 0 ? 0 : o.bytes / most * sum + o.bytes % most * sum / most;
  };
  for (auto& p : all) p = {bytes(p.begin), bytes(p.begin + p.bytes) - bytes(p.begin)};
  return all;
}

std::uint64_t offset_of(const Options& o, std::uint32_t gpu) noexcept {
  return o.offsets.empty() ? 0 : o.offsets[gpu % o.offsets.size()];
}

std::uint64_t turn_bytes(const Options& o) noexcept { return (o.bytes + 255) / 256 * 256; }

std::string set(Options& o, std::string_view name, std::string_view v) {
  const auto expect = [&](bool good, std::string_view what) {
    return good ? "" : std::string(name) + ": '" + std::string(v) + "' is " + std::string(what);
  };
  constexpr std::string_view kNumber = "not a number", kSize = "not a size: write 4096, 4K, 1M or 2G",
                             kYes = "neither yes nor no", kNumbers = "not a list of numbers";
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
  if (name == "bytes") return expect(to(o.bytes, v), kSize);
  if (name == "root") return expect(to(o.root, v), kNumber);
  if (name == "in_place") return expect(to(o.in_place, v), kYes);
  if (name == "own_part") return expect(to(o.own_part, v), kYes);
  if (name == "epochs") return expect(to(o.epochs, v), kNumber);
  if (name == "peers_per_engine") return expect(to(o.peers_per_engine, v), kNumber);
  if (name == "engines") return expect(to(o.engines, v), kNumbers);
  if (name == "granule") return expect(to(o.granule, v), kSize);
  if (name == "alignment") return expect(to(o.alignment, v), kSize);
  if (name == "offsets") return expect(to(o.offsets, v), kNumbers);
  if (name == "packet_bytes") return expect(to(o.packet_bytes, v), kSize);
  if (name == "sizes") return expect(to(o.sizes, v), kNumbers);
  if (name == "turns") return expect(to(o.turns, v), kNumber);
  if (name == "ring_bytes") return expect(to(o.ring_bytes, v), kSize);
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
