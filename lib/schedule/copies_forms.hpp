// SPDX-License-Identifier: MIT
#pragma once
// What the readers of recorded copies share: each reads one form (copies.hpp), and says what the form leaves open.
//
//   Direction d = direction_of("MEMORY_COPY_HOST_TO_DEVICE");
//   if (!end_of(row, d)) ..                                 // set what both sides are, as the direction says
//   return copies_of(std::move(table));
//
// Thread-safety: pure functions. Errors: a Diagnostic that names the file.
#include "sdma/schedule/copies.hpp"

#include <fmt/format.h>

#include <string>
#include <string_view>

namespace sdma { inline namespace v0_3 { namespace detail {

inline constexpr const char* kCopyForms =
    "it reads the CSV and JSON of rocprofv3 --memory-copy-trace, Chrome traces with copies of GPUs, and logs of "
    "AMD_LOG_LEVEL=4";

enum class Direction : std::uint8_t { unknown, up, down, across, host };
/// The direction that a name says: "MEMORY_COPY_HOST_TO_DEVICE", "Memcpy HtoD (Host -> Device)", "staged H2D".
Direction direction_of(std::string_view name) noexcept;

inline CopyRow::Side source_of(Direction d) noexcept {
  return d == Direction::unknown                      ? CopyRow::Side::unknown
         : d == Direction::up || d == Direction::host ? CopyRow::Side::host
                                                      : CopyRow::Side::gpu;
}
inline CopyRow::Side destination_of(Direction d) noexcept {
  return d == Direction::unknown                        ? CopyRow::Side::unknown
         : d == Direction::down || d == Direction::host ? CopyRow::Side::host
                                                        : CopyRow::Side::gpu;
}

inline std::string plural_of_copies(std::size_t n) { return n == 1 ? "1 copy" : fmt::format("{} copies", n); }

/// Copies are within a GPU, and which engine executes them is not recorded.
inline constexpr std::string_view kWithinGpu =
    "engine not recorded, and a kernel may have made this copy within a GPU: engine 2 is taken";

using CopiesResult = Result<RecordedCopies, Diagnostic>;
CopiesResult read_rocprof_csv(std::string_view text, std::string_view file, const CopiesOptions&);
/// The CSV of rocprofv3's allocations, which has no copies.
CopiesResult read_rocprof_memory(std::string_view text, std::string_view file);
/// rocprofv3's JSON, and Chrome traces.
CopiesResult read_json_copies(std::string_view text, std::string_view file, const CopiesOptions&);
CopiesResult read_runtime_log(std::string_view text, std::string_view file, const CopiesOptions&);
/// Does the text have a line of the HIP runtime about a copy?
bool has_runtime_copies(std::string_view text) noexcept;
/// Does it have one about an allocation?
bool has_runtime_memory(std::string_view text) noexcept;

/// The copies of a queue of the schedule, in order.
struct CopyQueue {
  Place gpu{};
  std::string engine{}, name{}, stream{}, comment{};
  std::vector<std::size_t> copies{};
};
std::vector<CopyQueue> queues_of(const RecordedCopies&);

}}}  // namespace sdma::v0_3::detail
