// SPDX-License-Identifier: MIT
// Parses the bodies of queues.
#include "extent.hpp"
#include "link.hpp"
#include "parser.hpp"
#include "symbols.hpp"

namespace sdma { inline namespace v0_3 { namespace detail {

bool ScheduleParser::packet() {
  const auto at = lex_.peek().at;
  auto& out = queue_->dwords;
  const auto begin = out.size();
  line_epochs_.clear();
  line_addresses_.clear();
  if (!lines_.parse("a packet or 'end'", out, options_.max_dwords - dwords_)) return false;
  dwords_ += out.size() - begin;
  if (options_.map) map_.packets[next_queue_ - 1].push_back({begin, location(at)});
  bool ok = true;
  for (Reader r{std::span(out).subspan(begin)}; r && ok;) {
    const auto position = begin + r.position_dwords();
    const auto v = r.next();
    // All packets of one line are equal, so the first one shows every error.
    if (position == begin) ok = check_packet(v, at);
    for (const auto& e : line_epochs_)
      queue_->epochs.push_back(
          {position,
           e.field->name,
           {static_cast<std::int64_t>(e.value.factor), static_cast<std::int64_t>(e.value.constant)}});
    if (line_epochs_.empty()) break;
  }
  return ok;
}

/// Does the packet stay inside the symbols that it names, and is none of its numbers the address of a symbol?
bool ScheduleParser::check_packet(const PacketView& v, std::size_t at) {
  const auto errors = source_.count();
  const auto place = [&](const SymbolOffset& l) {
    for (const auto& a : line_addresses_)
      if (a.symbol.signal == l.signal && a.symbol.index == l.index) return std::optional(a.at);
    return std::optional<std::size_t>();
  };
  each_address(v, [&](const FieldInfo& f, GpuVa va) {
    if (const auto l = find_symbol(s_, va); l && !place(*l))
      fail(at, quote(f.name) + " is a number, but " + name_of(s_, va) + " is linked at that address",
           "write the name instead of the number");
  });
  outside(s_, v, [&](const Outside& o) {
    if (source_.count() != errors) return;
    const auto* symbol = symbol_of(o.symbol);
    auto d = describe(s_, v, o, symbol ? declared(*symbol) : "");
    if (incomplete_) return;
    fail(place(o.symbol).value_or(at), std::move(d.message), std::move(d.hint));
  });
  return source_.count() == errors;
}

/// A raw .dword can be the head of a packet that swallows the lines after it. None of those may depend on the epoch.
/// For the same reason the size of each packet is known only at the end of the queue.
void ScheduleParser::check_boundaries(const Token& begin) {
  if (auto d = too_large(*queue_)) fail(begin.at, std::move(d->message), std::move(d->hint));
  auto epoch = queue_->epochs.begin();
  for (Reader r{queue_->dwords}; r && epoch != queue_->epochs.end();) {
    const auto position = r.position_dwords();
    const auto v = r.next();
    if (v.whole())
      while (epoch != queue_->epochs.end() && epoch->packet == position) ++epoch;
  }
  if (epoch != queue_->epochs.end())
    fail(
        begin.at,
        "a raw .dword of this queue swallows the packet whose '" + std::string(epoch->field) + "' depends on the epoch",
        "an engine would read the two as one packet: write all dwords of the raw packet");
}

}}}  // namespace sdma::v0_3::detail
