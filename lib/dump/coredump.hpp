// SPDX-License-Identifier: MIT
#pragma once
// The sections of the kernel's devcoredump that say something about queues: the kernel's own rings, since 2026 the
// indirect buffers of the job that hung, and the registers of the queues of programs. Internal.
//
//   ring name: sdma0.0                          IB #0 0x7f1200000000 8 dw
//   Rptr: 0x1c0 Wptr: 0x1c8 RB mask: ff         0x00000005
//   Ring size in dwords: 256                    0x00001000
//   Ring contents                               ...
//   Offset   Value
//   0x0      0x5
//   ...
//
//   IP: sdma_v4_4_2                             of each engine: its queues of programs, RLC0, RLC1, ...
//   Instance:1
//   regSDMA_RLC0_RB_CNTL   0x80841019
//   regSDMA_RLC0_RB_RPTR   0x000001c0           bytes; the names are those of SDMA 4.4.2
//
// Each section ends where a line of another kind begins. Positions of rings are dwords there, and bytes here. Pure
// functions that allocate; any thread. Errors: a section that has fewer dwords than it says (file:line:column).
#include "sdma/core/diagnostic.hpp"
#include "sdma/core/result.hpp"
#include "sdma/dump/text.hpp"

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace sdma { inline namespace v0_3 { namespace detail {

/// A ring of the dump: its rows are `text`, the first of which is line `line`.
struct CoredumpRing {
  std::string name{};
  std::string_view text{};
  std::size_t line = 1;
  std::optional<std::uint64_t> rptr{}, wptr{};  ///< in bytes
  std::optional<std::uint64_t> dwords{};        ///< as the dump says
};

/// The rings of a devcoredump; none if the text is no devcoredump.
std::vector<CoredumpRing> coredump_rings(std::string_view text);
/// Its indirect buffers.
Result<std::vector<DumpedBuffer>, Diagnostic> coredump_buffers(std::string_view text, std::string_view file);

/// The registers of a queue of a program; what the dump does not have is empty.
struct CoredumpQueue {
  std::uint32_t engine{}, slot{};
  std::optional<std::uint32_t> control{}, rptr{}, rptr_hi{}, wptr{}, wptr_hi{};

  /// The GPU has answered.
  bool answered() const noexcept { return control && *control != ~0u; }
  /// The engine serves a queue here.
  bool enabled() const noexcept { return answered() && *control % 2 != 0; }
  std::uint64_t ring_bytes() const noexcept { return std::uint64_t{4} << (*control >> 1 & 31); }
};
std::vector<CoredumpQueue> coredump_queues(std::string_view text);

/// "0x1c0" or "448"; nothing for anything else.
std::optional<std::uint64_t> number_of(std::string_view) noexcept;
/// What follows `key` in this line, up to a blank: "0x1c0" in "Rptr: 0x1c0 Wptr: 0x1c8".
std::string_view value_after(std::string_view line, std::string_view key) noexcept;

}}}  // namespace sdma::v0_3::detail
