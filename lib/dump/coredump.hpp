// SPDX-License-Identifier: MIT
#pragma once
// The sections of the kernel's devcoredump that have dwords: the kernel's own rings, and since 2026 the indirect
// buffers of the job that hung. Internal.
//
//   ring name: sdma0.0                          IB #0 0x7f1200000000 8 dw
//   Rptr: 0x1c0 Wptr: 0x1c8 RB mask: ff         0x00000005
//   Ring size in dwords: 256                    0x00001000
//   Ring contents                               ...
//   Offset   Value
//   0x0      0x5
//   ...
//
// Each section ends where a line of another kind begins. Positions are dwords there, and bytes here. Pure functions
// that allocate; any thread. Errors: a section that has fewer dwords than it says (file:line:column).
#include "sdma/core/diagnostic.hpp"
#include "sdma/core/result.hpp"
#include "sdma/dump/text.hpp"

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace sdma { inline namespace v0 { namespace detail {

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

/// "0x1c0" or "448"; nothing for anything else.
std::optional<std::uint64_t> number_of(std::string_view) noexcept;
/// What follows `key` in this line, up to a blank: "0x1c0" in "Rptr: 0x1c0 Wptr: 0x1c8".
std::string_view value_after(std::string_view line, std::string_view key) noexcept;

}}}  // namespace sdma::v0::detail
