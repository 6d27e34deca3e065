// SPDX-License-Identifier: MIT
#pragma once
// A command that is longer than a slot of the ring can be, as several that a queue executes one after another.
//
//   each_part(engine, command, most_dwords, [&](const Command& part, bool last) { return submit(part, last); });
//
//   part    1                                2 ...                   last
//           dependencies, start stamp        copies                  copies
//           copies                                                   end stamp, members, completion
//
// Parts of a copy are multiples of Engine::longest_copy, so the packets are those of the whole command. The parts of a
// batch have as many whole copies as fit; only one that does not fit alone is cut. A box is not divided: 1 MiB of ring
// takes 20,000 of its tiles, each of 2^14 by 2^14 by 2^11 elements. Nor is a batch of operations: submit fewer of them.
//
// Errors: too_large: the command is a box or a batch of operations, or what surrounds the copies leaves no room;
// otherwise those of the call, which ends at its first one. Then earlier parts have been submitted. Any thread; nothing
// allocates.
#include "command.hpp"

#include <algorithm>

namespace runtime {
namespace detail {

/// A command without its completion and its end stamp, unless it is the last part; and without what only the first has.
inline Command part_of(const Command& whole, bool first, bool last) noexcept {
  auto c = whole;
  if (!first) {
    c.after = {};
    c.out.start_stamp = {};
  }
  if (!last) {
    c.members = {};
    c.out.value_word = c.out.end_stamp = {};
    c.out.event_mailbox_ptr = 0;
  }
  return c;
}

}  // namespace detail

template <class Submit>
sdma::Errc each_part(const Engine& e, const Command& whole, std::size_t most_dwords, Submit submit) noexcept {
  // What surrounds the copies takes as much as it takes around a fill.
  auto around = whole;
  around.work = LinearFill{.dst = {}, .value = 0, .dwords = 1};
  const auto least = dwords_of(e, around);
  constexpr auto kCopy = sdma::dwords_of<sdma::CopyLinear>();
  if (!least || *least + kCopy > most_dwords) return sdma::Errc::too_large;
  const auto room = most_dwords - (*least - sdma::dwords_of<sdma::Fill>());
  const auto packets = room / kCopy;  // a fill is shorter than a copy

  bool first = true;
  const auto submit_part = [&](auto work, bool last) {
    auto c = detail::part_of(whole, first, last);
    c.work = work;
    first = false;
    return submit(c, last);
  };
  if (const auto* fill = std::get_if<LinearFill>(&whole.work)) {
    const auto step = packets * std::uint64_t{e.longest_fill} / 4;
    for (std::uint64_t at = 0; at < fill->dwords; at += step) {
      const LinearFill part{fill->dst + at * 4, fill->value, std::min(step, fill->dwords - at)};
      if (const auto bad = submit_part(part, at + part.dwords == fill->dwords); bad != sdma::Errc::ok) return bad;
    }
    return sdma::Errc::ok;
  }
  const auto* copies = std::get_if<std::span<const LinearCopy>>(&whole.work);
  if (!copies) return sdma::Errc::too_large;
  const auto dwords = [&](const LinearCopy& c) {
    return sdma::dwords_of(e.generation,
                           sdma::Writer::Copy{.src = c.src, .dst = c.dst, .bytes = c.bytes, .chunk = e.longest_copy});
  };
  for (auto rest = *copies; !rest.empty();) {
    std::size_t n = 0;
    for (std::size_t sum = 0; n < rest.size() && (sum += dwords(rest[n])) <= room;) ++n;
    if (n != 0) {
      const auto part = rest.first(n);
      rest = rest.subspan(n);
      if (const auto bad = submit_part(part, rest.empty()); bad != sdma::Errc::ok) return bad;
      continue;
    }
    const auto all = rest[0];
    rest = rest.subspan(1);
    const auto step = packets * std::uint64_t{e.longest_copy};
    for (std::uint64_t at = 0; at < all.bytes; at += step) {
      const LinearCopy part[] = {{all.src + at, all.dst + at, std::min(step, all.bytes - at)}};
      const bool last = rest.empty() && at + part[0].bytes == all.bytes;
      if (const auto bad = submit_part(std::span<const LinearCopy>(part), last); bad != sdma::Errc::ok) return bad;
    }
  }
  return sdma::Errc::ok;
}

}  // namespace runtime
