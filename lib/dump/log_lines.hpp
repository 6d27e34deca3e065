// SPDX-License-Identifier: MIT
#pragma once
// What one line of a text shows: the driver, its device, or numbers of a dump. Internal: log.hpp decides with it.
//
//   names_kernel("amdgpu 0000:c1:00.0: amdgpu: GPU reset begin!")                  // true
//   is_dump_row(behind_driver("amdgpu 0000:c1:00.0: 00000005 00001008"))          // true
//
// Pure; only is_dump_row allocates. Any thread. No errors.
#include <string_view>

namespace sdma { inline namespace v0_3 { namespace detail {

/// The last PCI address of a device before `end`.
std::string_view device_in(std::string_view text, std::size_t end) noexcept;
/// Does it name the driver, or say something as only the kernel does?
bool names_kernel(std::string_view text) noexcept;
/// A row of a dump: numbers alone, or after an offset that is marked as one.
bool is_dump_row(std::string_view line);
/// Is it worth the time to look? Most lines of a log have words, and no offset.
bool may_be_dump_row(std::string_view line) noexcept;
/// Is its first word an offset, a dword or "DW3"? A row that nothing names has no words: "Fallback order for Node 0: 0"
/// is a sentence.
bool begins_with_number(std::string_view text) noexcept;
/// "amdgpu 0000:c1:00.0: amdgpu: text": the text.
std::string_view behind_driver(std::string_view text) noexcept;
/// Does it have a word of a ring, or of the driver?
bool names_ring(std::string_view text) noexcept;

}}}  // namespace sdma::v0_3::detail
