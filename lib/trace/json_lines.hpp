// SPDX-License-Identifier: MIT
#pragma once
// Appends the lines of a trace file. Writers of whole traces and of growing ones share these functions. Each line ends
// with a newline. Internal.
#include "sdma/trace/trace.hpp"

#include <string>

namespace sdma { inline namespace v0_3 { namespace trace::detail {

/// Both numbers take at least `width` characters, so that larger numbers can replace them in place.
void append_header(std::string& out, std::string_view clock, std::uint64_t events, std::uint64_t lost, int width = 0);
void append_lane(std::string& out, std::size_t number, const Lane&);
void append_text(std::string& out, std::size_t number, std::string_view);
void append_range(std::string& out, std::size_t number, const NameTable::Range&);
/// `names`: for the packet's text, which is for people.
void append_event(std::string& out, const Event&, const NameTable& names);

}}}  // namespace sdma::v0_3::trace::detail
