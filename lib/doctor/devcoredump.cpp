// SPDX-License-Identifier: MIT
#include "devcoredump.hpp"

#include "../core/plural.hpp"
#include "../dump/coredump.hpp"

#include <fmt/format.h>

namespace sdma { inline namespace v0_3 { namespace doctor {

void add_engine_queues(Snapshot& s, std::string_view text, std::string_view name) {
  std::size_t served = 0, silent = 0;
  for (const auto& r : detail::coredump_queues(text)) {
    silent += r.control && !r.answered();
    if (!r.enabled()) continue;
    ++served;
    QueueSnapshot q{.name = fmt::format("{} sdma{} rlc{}", name, r.engine, r.slot)};
    q.ring_bytes = {r.ring_bytes(), Source::dump};
    const auto position = [](std::optional<std::uint32_t> low, std::optional<std::uint32_t> high) {
      return low && high ? Known<std::uint64_t>{std::uint64_t{*high} << 32 | *low, Source::dump}
                         : Known<std::uint64_t>{};
    };
    q.rptr = position(r.rptr, r.rptr_hi);
    q.wptr = position(r.wptr, r.wptr_hi);
    s.queues.push_back(std::move(q));
  }
  if (served > 0)
    s.notes.push_back(
        fmt::format("{}: engines serve {} of programs (rlcN); a devcoredump has their positions, and not their packets",
                    name, plural(served, "queue")));
  if (silent > 0)
    s.notes.push_back(fmt::format("{}: the registers of {} of programs read as all ones: the GPU did not answer", name,
                                  plural(silent, "queue")));
}

}}}  // namespace sdma::v0_3::doctor
