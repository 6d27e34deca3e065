// SPDX-License-Identifier: MIT
#pragma once
// The options of a DMA collective: kind, variant, number of GPUs, and size.
//
//   collectives::Options o{.collective = Collective::all_gather, .variant = Variant::b2b, .gpus = 8, .bytes = 1 << 20};
//   auto p = collectives::plan(o);                                     // plan.hpp: an sdma::Schedule and its fallbacks
//
// `bytes` is the collective's size S, counted as in the benchmarks of RCCL: the bytes that each GPU holds at the end
// (all_gather, gather's root), holds at the beginning (all_to_all, scatter's root; alltoallv: the GPU that sends the
// most), or receives (broadcast). Part d belongs to GPU d, except in an alltoallv, whose `sizes` say how long each is:
//
//   chunk = ceil(S / N), rounded up to a multiple of `granule` if every GPU still has a part
//   part d = bytes [d * chunk, min((d + 1) * chunk, S)): the last ones may be shorter, or empty where S < N
//
//                  gpu0       gpu1       gpu2                  gpu0       gpu1       gpu2
//   all_gather     A . .      . B .      . . C                 A B C      A B C      A B C      in place
//   all_to_all     a0 a1 a2   b0 b1 b2   c0 c1 c2      ->      a0 b0 c0   a1 b1 c1   a2 b2 c2   slots of `chunk` bytes
//   alltoallv      a0 a1 a2   b0 b1 b2   c0 c1 c2      ->      a0 b0 c0   a1 b1 c1   a2 b2 c2   uneven, without gaps
//   broadcast      A B C      . . .      . . .                 A B C      A B C      A B C      in place
//   scatter        A B C      . . .      . . .                 A . .      . B .      . . C      in place
//   gather         A . .      . B .      . . C                 A B C      . . .      . . .      in place
//
//   variant   collectives                      one command group = one queue's [poll] packets completion, one doorbell
//   pcpy      all                              one peer: a copy on the engine that the node recommends for it
//   bcst      all_gather, broadcast            two peers: a packet that reads once and
//                                              writes twice, on the second's engine
//   swap      all_to_all, in place             a pair of GPUs: both directions in one packet; pairs are distributed
//   b2b       all                              `peers_per_engine` peers on one engine,
//                                              back to back (gather: the root pulls)
//   automatic all                              one of these, from a table (table.hpp)
//
// Prelaunch puts a poll before each group: the host publishes a round ahead of time, and a store of the round's number
// (`trigger`) releases it. Completions are words whose values only grow. Each group completes with an atomic add to one
// word of the host, or with a fence to a word of its own (two fences if all 64 bits have to change).
//
// These are plain values; any thread may use them. Errors: `refusal` returns one Diagnostic about a contradiction.
#include "sdma/core/diagnostic.hpp"
#include "sdma/schedule/schedule.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace collectives {

enum class Collective : std::uint8_t { all_gather, all_to_all, broadcast, scatter, gather, alltoallv };
enum class Variant : std::uint8_t { pcpy, bcst, swap, b2b, automatic };
enum class Prelaunch : std::uint8_t {
  off,
  shared,     ///< one trigger word for all groups
  per_group,  ///< one per group: groups can be released one after another
  stream      ///< one per GPU, for its stream: a group waits for each GPU whose memory it touches (Run::enqueue)
};
enum class Completion : std::uint8_t {
  atomic,     ///< add 1 to one 64-bit word of the host
  fence,      ///< store the epoch in a 32-bit word of the group
  two_fences  ///< store in a 64-bit word of the group: the high half, always 0, then the low half
};

inline constexpr Collective kCollectives[] = {Collective::all_gather, Collective::all_to_all, Collective::broadcast,
                                              Collective::scatter,    Collective::gather,     Collective::alltoallv};
inline constexpr Variant kVariants[] = {Variant::pcpy, Variant::bcst, Variant::swap, Variant::b2b};  ///< not automatic
inline constexpr Prelaunch kPrelaunches[] = {Prelaunch::off, Prelaunch::shared, Prelaunch::per_group,
                                             Prelaunch::stream};
inline constexpr Completion kCompletions[] = {Completion::atomic, Completion::fence, Completion::two_fences};

/// What follows the name of a variant that is prelaunched: "b2b+pl".
inline constexpr std::string_view kPrelaunched = "+pl";

/// "all_gather", "b2b", "auto", "per_group", "two_fences".
std::string_view name(Collective) noexcept;
std::string_view name(Variant) noexcept;
std::string_view name(Prelaunch) noexcept;
std::string_view name(Completion) noexcept;
/// The values with these names; nothing for any other word.
std::optional<Collective> collective_named(std::string_view) noexcept;
std::optional<Variant> variant_named(std::string_view) noexcept;
std::optional<Prelaunch> prelaunch_named(std::string_view) noexcept;
std::optional<Completion> completion_named(std::string_view) noexcept;

/// The names of all variants and of auto, with something after each and between them: "pcpy, bcst, swap, b2b, auto".
std::string variant_names(std::string_view between, std::string_view after = "");
/// True if the collective has the variant.
bool has_variant(Collective, Variant) noexcept;

inline constexpr std::uint32_t kMostGpus = 64;

struct Options {
  Collective collective = Collective::all_gather;
  Variant variant = Variant::automatic;
  Prelaunch prelaunch = Prelaunch::off;
  Completion completion = Completion::atomic;
  std::uint32_t gpus = 8;    ///< N: 2 to 64, numbered from 0; Run::prepare maps them to GPUs of the node
  std::uint64_t bytes = 0;   ///< S, at least 1
  std::uint32_t root = 0;    ///< for broadcast, scatter, gather
  bool in_place = false;     ///< all_to_all, automatic: the result replaces the input, which only swap does
  bool own_part = false;     ///< all_to_all out of place, alltoallv: also copy the part that a GPU sends to itself
  std::uint64_t epochs = 1;  ///< rounds that the schedule's own host thread runs; a Run (run.hpp) counts its own
  /// alltoallv: GPU i sends to GPU d in proportion to sizes[i * gpus + d]. The GPU that sends the most sends `bytes`,
  /// its own part included. Empty: all are equal.
  std::vector<std::uint64_t> sizes{};
  std::uint32_t peers_per_engine = 0;    ///< b2b: peers per group; 0: all peers of a GPU
  std::vector<std::uint32_t> engines{};  ///< group g of a GPU uses engines[g % size]; empty: the recommended engines
  std::uint64_t granule = 64;            ///< bytes: see above; 1: chunks are not rounded
  std::uint64_t alignment = 4096;        ///< bytes: alignment of each buffer, a power of two
  std::vector<std::uint64_t> offsets{};  ///< bytes: where GPU i's data begins in its buffers, [i % size]; empty: 0
  /// all_gather in streams that carry it (run.hpp): 2 gathers a buffer, `turn_bytes` apart, so that no round waits
  /// until its peers have read the one before.
  std::uint32_t turns = 1;
  std::uint32_t packet_bytes = sdma::kChunk;  ///< maximum bytes per packet: a multiple of 64
  std::uint64_t ring_bytes = 0;               ///< size of the ring of each queue; 0: bind chooses
};

/// The members of Options that `set` takes besides collective, variant, gpus, bytes, root and epochs.
inline constexpr std::string_view kScheduleOptions[] = {
    "prelaunch",  "completion", "in_place",  "own_part", "peers_per_engine",
    "engines",    "granule",    "alignment", "offsets",  "packet_bytes",
    "ring_bytes", "sizes",      "turns"};

/// Sets the option of this name from text: ("bytes", "64K"), ("engines", "2,3"), ("prelaunch", "per_group"),
/// ("in_place", "yes"), ("sizes", "0,4K,1M,0"). In a list, blanks and ends of lines separate numbers, too, and a '#'
/// begins a comment up to the end of the line, so that the text of a file is a list. The variant "b2b+pl" also sets
/// prelaunch to shared, unless it is per_group already.
/// The names are those above; sdma/core/number.hpp reads the numbers. Returns an error text, or "".
[[nodiscard]] std::string set(Options&, std::string_view name, std::string_view value);

/// What a matrix looks like: a hint.
inline constexpr std::string_view kMatrixForm = "row i has the bytes that GPU i sends to GPU 0, 1, ..: 0,64K,1M,0";
/// Sets `sizes` from a matrix, `gpus` from its rows, and `bytes` from the largest sum of a row: GPU i sends
/// the number in row i and column d to GPU d. The text is a list as `set` takes it. Returns an error text, or "".
[[nodiscard]] std::string set_matrix(Options&, std::string_view text);

/// The first contradiction in the options; nothing if they can be planned.
[[nodiscard]] std::optional<sdma::Diagnostic> refusal(const Options&);

/// A range of the collective's bytes.
struct Part {
  std::uint64_t begin{}, bytes{};
};
std::uint64_t chunk_of(const Options&) noexcept;
/// Part d, as drawn above.
Part part_of(const Options&, std::uint32_t d) noexcept;
/// alltoallv: what GPU i sends to GPU d, as a range of what it has, at [i * gpus + d]. The own part counts.
std::vector<Part> sent_parts(const Options&);
std::uint64_t offset_of(const Options&, std::uint32_t gpu) noexcept;
/// Bytes from the data of a turn to that of the next.
std::uint64_t turn_bytes(const Options&) noexcept;

}  // namespace collectives
