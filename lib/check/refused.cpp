// SPDX-License-Identifier: MIT
// What no device accepts: what bind refuses (schedule/refused.hpp), and packets that an engine refuses at the addresses
// to which their aliases lead: misaligned ones, those that break a rule of their packet, and those whose ranges
// overlap. The functions are those that the software engine asks before it executes a packet, and say what `run` and
// `bind` refuse; only mappings are asked for elsewhere.
#include "../schedule/refused.hpp"
#include "../engine/admit.hpp"
#include "reporter.hpp"
#include "sdma/stream/rules.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>

namespace sdma { inline namespace v0_3 { namespace check_detail {
namespace {

class Refused {
 public:
  Refused(const Model& m, Reporter& r) : m_(m), s_(m.schedule), r_(r) {}

  void run() {
    const auto whole = detail::refused(s_, m_.node, m_.options.gpus);
    for (const auto& r : whole) refused(r);
    for (std::uint32_t q = 0; q < m_.queue_count(); ++q)
      for (std::uint32_t i = 0; i < m_.programs[q].items.size(); ++i) {
        const auto& item = m_.programs[q].items[i];
        const auto view = Reader{std::span(s_.queues[q].dwords).subspan(item.dword)}.next();
        if (view.whole() && !view.info->fields_unknown && !item.skipped) packet({q, i + 1}, view);
      }
  }

 private:
  /// The numbers of GPUs and engines in a dump may be those of a node that is not known.
  void refused(const detail::Refusal& refusal) {
    // Nor is the position in the ring known at which a dump begins.
    if (refusal.rule == "ib-alignment" && m_.options.open) return;
    const bool placed = refusal.rule != "alignment" && refusal.rule != "ib-alignment";
    if (placed && m_.options.open && !m_.options.topology) return;
    Finding f{.rule = refusal.rule, .message = refusal.where + ": " + refusal.message, .hint = refusal.hint};
    if (refusal.queue && !m_.programs[*refusal.queue].items.empty()) {
      const auto q = static_cast<std::uint32_t>(*refusal.queue);
      f.message = r_.agent(q) + ": " + refusal.message;
      const auto& items = m_.programs[q].items;
      const auto at = std::find_if(items.begin(), items.end(), [&](auto& i) { return i.dword >= refusal.dword; });
      f.places = {{q, static_cast<std::uint32_t>(at - items.begin()) + 1}};
    } else if (refusal.action && m_.options.map) {
      f.at = r_.position(m_.options.map->action(s_, *refusal.action));
    } else if (refusal.queue) {
      f.where = m_.options.file + ": " + refusal.where;
    }
    std::uint32_t needed = m_.schedule.gpus;
    for (const auto g : m_.options.gpus) needed = std::max(needed, g.value + 1);
    if (refusal.rule == "no-such-gpu" && needed > m_.node.gpus.size() && needed <= kMostLaidOut)
      f.hint += fmt::format("; --topology=mesh:{} has more", std::bit_ceil(needed));
    r_.add(std::move(f));
  }
  void packet(Position here, const PacketView& v) {
    dwords_.assign(v.dwords.begin(), v.dwords.end());
    detail::each_address(v, [&](const FieldInfo& f, GpuVa va) { store(f, m_.canonical(va), dwords_.data()); });
    visit(*v.info, std::span<const std::uint32_t>(dwords_), [&](const auto& p) {
      Fault why;
      // The rules of a stream report every field that is out of range.
      if (const auto broken = check(p); broken && broken.rule != "range") add(here, v, broken.rule, what(v, broken));
      else if (detail::own_rule(p, why) != FaultKind::none)
        add(here, v, why.rule.empty() ? "privileged" : why.rule,
            fmt::format("{}: the engine refuses this value of {}", v.info->name, why.field));
      else if (const auto field = detail::unsupported_field(p);
               !field.empty() && !detail::ends_with(field, "swap"))  // a rule of streams reports swaps
        add(here, v, "engine-refused", fmt::format("{}: no device executes it with {}", v.info->name, field));
      else if (const auto o = overlap(p)) overlaps(here, v, o);
    });
  }

  std::string what(const PacketView& v, const Violation& broken) const {
    for (const auto& f : v.info->fields)
      if (f.name == broken.field)
        return fmt::format("{} {}: {} is not a multiple of {}", v.info->name, f.name,
                           f.kind == Kind::address ? detail::address_text(s_, address(f))
                                                   : fmt::to_string(value_of(f, dwords_.data())),
                           f.alignment);
    for (const auto& r : v.info->rules)
      if (r.id == broken.rule) return fmt::format("{}: {}", v.info->name, r.text);
    return std::string(v.info->name);
  }

  void overlaps(Position here, const PacketView& v, const Overlap& o) {
    const Schedule::Range a{o.a.va, hull(o.a)}, b{o.b.va, hull(o.b)};
    const bool self = o.first == o.second;
    add(here, v, "overlap",
        self ? fmt::format("{}: {} {} overlaps itself: a row begins before the previous one ends", v.info->name,
                           o.first, detail::range_text(s_, a))
             : fmt::format("{}: {} {} and {} {} overlap", v.info->name, o.second, detail::range_text(s_, b), o.first,
                           detail::range_text(s_, a)),
        self ? "" : common(a, b));
  }
  std::string common(const Schedule::Range& a, const Schedule::Range& b) const {
    const auto begin = std::max(a.va.value, b.va.value);
    return r_.range(begin, std::min(a.va.value + a.bytes, b.va.value + b.bytes));
  }

  GpuVa address(const FieldInfo& f) const noexcept { return GpuVa{value_of(f, dwords_.data())}; }

  void add(Position here, const PacketView& v, std::string_view rule, std::string message, std::string overlap = "") {
    if (!r_.first_of_line(here, rule) || !r_.admit(std::string(rule))) return;
    Finding f{.rule = rule, .places = {here}, .message = std::move(message), .hint = hint(rule)};
    f.overlap = std::move(overlap);
    detail::each_address(v, [&](const FieldInfo& field, GpuVa va) {
      if (const auto to = address(field); to != va)
        f.more.push_back(
            fmt::format("{} is an alias of {}", detail::address_text(s_, va), detail::address_text(s_, to)));
    });
    r_.store(std::move(f));
  }
  static std::string hint(std::string_view rule) {
    for (const auto& r : stream_rules())
      if (r.id == rule) return std::string(r.hint);
    if (rule == "engine-refused") return "leave the field out: devices run without trusted or encrypted memory";
    return fmt::format("docs/rules.md#{} explains this rule", rule);
  }

  const Model& m_;
  const Schedule& s_;
  Reporter& r_;
  std::vector<std::uint32_t> dwords_;  ///< the packet without aliases
};

}  // namespace

void find_refused(const Model& m, Reporter& r) { Refused{m, r}.run(); }

}}}  // namespace sdma::v0_3::check_detail
