// SPDX-License-Identifier: MIT
#pragma once
// The data of a page, as elements of HTML that a browser decodes one after another while it loads the page. Internal.
//
//   const PageSource one{"run.jsonl", trace};
//   write_page({&one, 1}, [&](std::string_view piece) { return bool(file.write(piece)); });
//
//   <script id="data">      JSON: {"traces":[{name, clock, lost, first, last, start, end, words, signals, flows,
//                           lanes}]}, where a lane is {group, name, rows, packets, actions, marks, bells,
//                           counters:[{name, count}]}. The numbers are counts of records, except for `first`, `last`,
//                           `start` and `end`: the time of the first event; and, counted from it, of the last event, of
//                           the beginning of the first packet, and of the last end of a packet or an action. `packets`
//                           counts both, `actions` those that host threads perform
//   <script class="chunk">  base64 of a chunk: at most kChunk records of one table.
//                           page/chunks.js decodes it and removes the element
//   <script id="shapes">    JSON: see shapes.hpp
//
// A string of a browser has at most about 500 million characters, and JSON takes ten times the space of these bytes; so
// no element is longer than a few MB, and neither the program that writes the page nor the browser that reads it holds
// all of the text.
//
// A chunk is a sequence of varints (7 bits each, the lowest first; bit 7: more follow): table, trace, lane, counter,
// count, and then its records. Deltas start at 0 in each chunk; (s) marks a signed one, in zigzag form.
//
//   table     a record
//   packets   two parts. First: its length in bytes; for each packet delta of from, duration, 2 row + finished, shape.
//             Then the lengths of its segments, of kSegment packets each; in a segment, for each packet, delta (s) of
//             its position from the end of the packet before it, a bit for each word that differs from that word of
//             the packet before it of the same shape (from 0 at first), and for each of these words the delta (s,
//             modulo 2^32)
//   marks     delta of ns, kind; for a doorbell, delta (s) of the position
//   words     delta (s) of the low half of the address of a signal, and of its high half; ascending
//   signals   delta of ns, lane, word, deltas (s) of the low and high halves of the value
//   counters  delta of ns, delta (s) of the value
//   flows     delta of the beginning, its lane, end - beginning (s), the lane of the end
#include "sdma/core/diagnostic.hpp"
#include "sdma/core/result.hpp"
#include "sdma/trace/trace.hpp"

#include <cstddef>
#include <functional>
#include <span>
#include <string>
#include <string_view>

namespace sdma { inline namespace v0_3 { namespace trace::detail {

/// A trace that is not copied.
struct PageSource {
  std::string_view name{};
  const Trace& trace;
};
/// Takes the next piece of the page; false if it cannot be written, which ends the writing.
using PageSink = std::function<bool(std::string_view)>;

inline constexpr std::size_t kChunk = 65'536, kSegment = 512;
/// Rows of a lane that the page shows; packets of further rows share the last.
inline constexpr std::size_t kPageRows = 64;

/// The whole page: page.cpp. Nothing for no trace, or for more than kPageTraces.
void write_page(std::span<const PageSource>, const PageSink&);
/// Writes the page to a file as it is made.
Result<void, Diagnostic> save_page(std::span<const PageSource>, const std::string& path);
/// Its data, with `decoder`, the script that takes chunks, between `data` and the chunks. False if the sink did.
bool write_data(std::span<const PageSource>, std::string_view decoder, const PageSink&);

}}}  // namespace sdma::v0_3::trace::detail
