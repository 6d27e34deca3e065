// SPDX-License-Identifier: MIT
#include "sdma/stream/rules.hpp"

#include "../packets/overlap.hpp"
#include "followed.hpp"
#include "print.hpp"
#include "sdma/packets/scoped.hpp"
#include "sdma/stream/text.hpp"

#include <algorithm>
#include <optional>
#include <utility>

namespace sdma { inline namespace v0_3 {
namespace {

using namespace detail;
std::string offset(std::uint64_t v) {
  const auto digits = hex_text(v).substr(2);
  return "0x" + std::string(digits.size() < 4 ? 4 - digits.size() : 0, '0') + digits;
}

template <class P> constexpr std::string_view packet_name = grammar::layout<P>.name;

/// Bytes in memory that a packet reads or writes, and the field that holds their address.
struct Range {
  Region region{};
  std::string_view field{};
};
/// Packets that read and write plain runs of bytes. The rules ignore the boxes, lists and records of all others.
template <class P, class... Runs> inline constexpr bool kOneOf = (std::is_same_v<P, Runs> || ...);
template <class P>
inline constexpr bool kRuns = kOneOf<P, CopyLinear, CopyBroadcast, CopyDirtyPage, CopySwap, Write, Fill>;

/// What a packet does to memory, as far as these rules check it.
struct Effects {
  std::array<Range, 3> ranges{};
  std::size_t count = 0;
  bool stores = false;  ///< it writes data that a completion has to follow
};
Effects effects_of(const PacketView& v) noexcept {
  Effects e;
  visit(*v.info, v.dwords, [&]<class P>(const P& p) {
    e.stores = role(p) == Role::data || role(p) == Role::stamp;
    const auto take = [&](const Region& r, std::string_view field) { e.ranges[e.count++] = {r, field}; };
    if constexpr (kRuns<P>) footprint(p, take);
    if constexpr (std::is_same_v<P, CopyPhysical>) physical_footprint(p, take);
  });
  return e;
}

}  // namespace

class StreamChecker::State {
 public:
  explicit State(StreamCheckOptions o) : options_(std::move(o)), at_(options_.base) {}

  std::size_t append(std::vector<Diagnostic>& out, std::span<const std::uint32_t> in, bool last) {
    out_ = &out;
    for (Reader r{in, catalogue(options_.generation)}; r;) {
      const auto begin = r.position_dwords();
      view_ = r.next();
      if (view_.cut_off && !last) return begin;
      if (!lost_) packet();
      at_ += 4 * view_.dwords.size();
    }
    if (last) end();
    return in.size();
  }

  void skip(std::vector<Diagnostic>& out, std::span<const std::uint32_t> in) {
    if (in.empty()) return;
    out_ = &out;
    lost_ = false;
    view_ = Reader{in, catalogue(options_.generation)}.next();
    if (view_.info) {
      flush_unknown();
      say("truncated", name() + " is cut off; dwords present: " + std::to_string(in.size()));
    } else {
      unknown();
      unknown_count_ += in.size() - 1;
    }
    at_ += 4 * in.size();
  }

 private:
  /// Reports that this packet violates a rule in the table.
  void say(std::string_view id, std::string message) { say(rule_of(id), at_, std::move(message), excerpt()); }
  void say(const StreamRule& rule, std::uint64_t at, std::string message, std::string excerpt) {
    auto count = std::find_if(counts_.begin(), counts_.end(), [&](const auto& c) { return c.first == rule.id; });
    if (count == counts_.end()) count = counts_.insert(count, {rule.id, 0});
    if (++count->second > options_.max_findings && options_.max_findings > 0) return;
    const FilePosition position{.file = options_.file, .offset = at};
    out_->push_back({.rule = std::string(rule.id),
                     .severity = taken(rule.severity, options_.strict),
                     .where = to_string(position),
                     .at = position,
                     .message = std::move(message),
                     .hint = std::string(rule.hint),
                     .excerpt = std::move(excerpt)});
  }
  static const StreamRule& rule_of(std::string_view id) noexcept {
    const auto all = stream_rules();
    return *std::lower_bound(all.begin(), all.end(), id, [](const auto& r, auto i) { return r.id < i; });
  }
  std::string excerpt() const {
    constexpr std::size_t kLongest = 160;
    // The text of a cut-off packet would have one line per dword.
    if (!view_.whole()) return {};
    auto s = "  " + to_text(view_);
    if (s.size() > kLongest) s.replace(kLongest, std::string::npos, "..");
    return s;
  }
  std::string name() const { return std::string(view_.info->name); }

  void packet() {
    if (!view_.info) return unknown();
    flush_unknown();
    if (view_.info->doubt) return in_doubt();
    wraps();
    splits();
    if (view_.cut_off)
      return say("truncated", name() + " is cut off; dwords present: " + std::to_string(view_.dwords.size()));
    known();
  }
  /// A packet whose length no source settles. What follows it may begin anywhere, up to the next call of skip.
  void in_doubt() {
    say("unchecked-packet", name() + " has a length that no source settles, so nothing after it is checked");
    if (!view_.cut_off && view_.info->is_own_length(view_.dwords)) known();
    lost_ = true;
  }
  void known() {
    if (view_.info->foreign) return say("unknown-packet", "this is " + label(*view_.info));
    if (view_.info->fields_unknown)
      return say("unchecked-packet", name() + " is not described for this generation (" +
                                         std::string(name_of(view_.info->generation)) +
                                         "), so its fields are not checked");
    if (!view_.info->typed && !view_.info->doubt)
      say("unchecked-packet", name() + ": only its fields are checked, not what it reads and writes");
    if (view_.info->privilege == Privilege::kernel && options_.user_queue)
      say("privileged", name() + " needs kernel privileges");
    if (view_.is<Indirect>() && options_.user_queue && !std::exchange(indirect_, true))
      say("indirect-user-queue",
          "Linux never sets IB_ENABLE for a queue of KFD: whether its engine executes an indirect "
          "buffer, skips it, or stops there is not known");
    fields();
    for (const auto& r : view_.info->rules)
      if (!r.holds(view_.dwords, *view_.info))
        say({r.id, Severity::error, r.text, "docs/rules.md#" + std::string(r.id) + " explains this rule"}, at_,
            name() + ": " + std::string(r.text), excerpt());
    visit(*view_.info, view_.dwords, [&](const auto& p) { values(p); });
    if (!view_.is<CopyLinear>() && !view_.is<Nop>()) last_copy_ = {};
    order();
    blocks();
  }

  void unknown() {
    if (unknown_count_++ > 0) return;
    unknown_at_ = at_;
    unknown_dword_ = view_.dwords.front();
  }
  /// Reports a run of unknown dwords once, not once per dword.
  void flush_unknown() {
    if (unknown_count_ == 0) return;
    auto message = hex_text(unknown_dword_) + " does not begin a packet";
    if (unknown_count_ == 2) message += ", nor does the next dword";
    if (unknown_count_ > 2) message += ", nor do the next " + std::to_string(unknown_count_ - 1) + " dwords";
    say(rule_of("unknown-packet"), unknown_at_, std::move(message), {});
    unknown_count_ = 0;
  }

  void wraps() {
    const auto ring = options_.ring_bytes, bytes = std::uint64_t{4} * view_.dwords.size();
    if (ring > 0 && at_ % ring + bytes > ring)
      say("wraps-ring", name() + " extends " + std::to_string((at_ % ring + bytes - ring) / 4) +
                            " dwords beyond the end of the ring");
  }

  /// Does a condition before this packet skip a part of it?
  void splits() {
    const auto begin = at_ / 4, end = begin + view_.dwords.size();
    if (begin < skipped_until_ && skipped_until_ < end)
      say("condition-splits-packet", "the condition at " + offset(condition_at_) + " skips " +
                                         std::to_string(skipped_until_ - begin) + " of the " +
                                         std::to_string(view_.dwords.size()) + " dwords of " + name());
    if (const auto n = view_.whole() && !view_.info->fields_unknown ? sdma::skipped(*view_.info, view_.dwords) : 0;
        n > 0) {
      skipped_until_ = end + n;
      condition_at_ = at_;
    }
  }

  void fields() {
    const Unfolded whole{*view_.info, view_.dwords};
    const auto* d = whole.data();
    for (const auto& f : view_.info->fields) {
      if (f.kind == Kind::payload || !whole.has(f)) continue;
      const auto v = value_of(f, d);
      const auto what = [&] {
        return name() + " " + std::string(f.name) + " " + (f.kind == Kind::count ? std::to_string(v) : hex_text(v));
      };
      if (v > f.limit) say("range", what() + " is more than " + std::to_string(f.limit));
      if (v % f.alignment != 0) say("alignment", what() + " is not a multiple of " + std::to_string(f.alignment));
      // A single name is a special value; all other codes are plain numbers.
      if (f.enumerants.size() > 1 && name_of(f.enumerants, v).empty()) say("unknown-code", what() + " has no meaning");
      if (v != 0 && f.name.ends_with("policy")) say("cache-policy-set", what() + " is not 0");
      if (v != 0 && f.name.ends_with("swap")) say("endian-swap-set", what() + " is not 0");
    }
    for (std::size_t i = 0; i < view_.info->described(); ++i)
      if (const auto bits = d[i] & view_.info->reserved(i); bits != 0)
        say("reserved-bits", name() + " sets reserved bits " + hex_text(bits) + " of dword " + std::to_string(i));
  }

  /// The rules about the values of one kind of packet.
  template <class P> void values(const P&) {}
  void values(const CopySwap& p) {
    const auto unit = options_.generation == Generation::v7_1 ? 32u : 64u;
    if (p.bytes % unit != 0)
      say("swap-length",
          name() + " bytes " + std::to_string(p.bytes) + " is not a multiple of " + std::to_string(unit));
  }
  void values(const Gcr& p) {
    if (p.disputed != 0)
      say("gcr-disputed", name() + " sets control bits " + hex_text(p.disputed * std::uint64_t{0x10000}) +
                              ": the kernel's macros have the sequence in bits 17:16 and range_is_pa in bit 18, "
                              "ROCr's structure has range_is_pa in bit 16 and the sequence in bits 18:17");
  }
  void values(const Fill& p) {
    const unsigned unit_bits = 8u << static_cast<unsigned>(p.unit);
    if (p.unit < FillUnit::dword && p.data >> unit_bits != 0)
      say("fill-data-cut",
          name() + " data " + hex_text(p.data) + " has bits beyond its unit, and only the unit is stored");
  }
  void values(const Nop&) {
    const auto s = skipped_by(view_.dwords.subspan(1));
    if (s.completion)
      say("nop-skips-packets",
          name() + " skips a packet at " + offset(at_ + 4 * (s.at + 1)) + ": " + std::string(s.completion->name));
    else if (s.nonzero > 0)
      say("nop-payload", name() + " skips " + std::to_string(view_.dwords.size() - 1) +
                             " dwords; not 0: " + std::to_string(s.nonzero));
  }
  void values(const PollMem& p) { poll(p); }
  void values(const PollReg& p) { poll(p); }
  template <class Poll> void poll(const Poll& p) {
    const Condition c{p.func, p.reference, p.mask};
    const auto what = [&] {
      return name() + " waits for (value & " + hex_text(p.mask) + ") " +
             std::string(name_of(grammar::names<Compare>, static_cast<std::uint64_t>(p.func))) + " " +
             hex_text(p.reference);
    };
    // Another rule reports a code without a name.
    if (p.func <= Compare::gt && !can_hold(c)) say("poll-never", what() + ", which no value satisfies");
    if (p.func != Compare::always && must_hold(c)) say("poll-always", what() + ", which every value satisfies");
    if (p.retry == Poll{}.retry || p.func == Compare::always) return;  // the default is to retry forever
    say("finite-poll", name() + " expires after " + std::to_string(p.retry) + " reads");
  }
  void values(const Indirect& p) {
    if (p.dwords % 8 != 0)
      say("ib-alignment", name() + " dwords " + std::to_string(p.dwords) + " is not a multiple of 8");
    if (const auto end = at_ / 4 + view_.dwords.size(); end % 8 != 0)
      say("ib-alignment", name() + " ends " + std::to_string(end % 8) + " dwords after a multiple of 8");
  }
  void values(const CopyLinear& p) {
    const auto& l = last_copy_;
    const bool next_piece = l.bytes > 0 && p.src == l.src + l.bytes && p.dst == l.dst + l.bytes;
    if (next_piece && (l.src.value | l.dst.value) % 64 == 0 && l.bytes % 64 != 0)
      say("copy-chunk-misaligned", name() + " continues the previous copy at an offset of " + std::to_string(l.bytes) +
                                       " bytes, which is not a multiple of 64");
    last_copy_ = p;
  }

  void order() {
    const auto e = effects_of(view_);
    const auto ranges = std::span(e.ranges).first(e.count);
    if (const auto o = sdma::overlap(*view_.info, view_.dwords))
      say("overlap", name() + ": " + std::string(o.second) +
                         (o.first == o.second ? " overlaps itself" : " and " + std::string(o.first) + " overlap"));
    for (const auto& [r, field] : ranges)
      if (const auto by = stores_.find(r.va.value, r.bytes)) {
        say("unordered", name() + (allows(r.access, Access::read) ? " reads" : " overwrites") + " what the packet at " +
                             offset(*by) + " writes, and nothing orders them");
        break;
      }
    for (const auto& [r, field] : ranges)
      if (allows(r.access, Access::write)) stores_.add(r.va.value, r.bytes, at_);
    if (stores_.full() && !std::exchange(full_, true))
      say("not-all-accesses", "more than " + std::to_string(Stores::kMost) +
                                  " ranges were stored before this packet, and no poll has waited for them: later "
                                  "stores are not compared with what follows");
    if (e.stores && pending_++ == 0) first_pending_ = at_;

    visit(*view_.info, view_.dwords, [&](const auto& p) {
      footprint(p, [&](const Region& r) {
        if (allows(r.access, Access::write)) waited_.stored(r);
      });
      if (const auto n = skipped(p); n > 0) conditional_until_ = at_ + 4 * (view_.dwords.size() + n);
      synchronise(p);
    });
  }

  /// The value of a field that the packet has.
  std::optional<std::uint64_t> field(const Unfolded& whole, std::string_view called) const {
    for (const auto& f : view_.info->fields)
      if (f.name == called && whole.has(f)) return value_of(f, whole.data());
    return {};
  }
  /// The blocks of 7.1 that wait and signal, and its words of 64 bits, which no type of this stream's packets holds.
  void blocks() {
    const Unfolded whole{*view_.info, view_.dwords};
    const bool fence = view_.info->name == packet_name<Fence64>, poll = view_.info->name == packet_name<PollMem64>;
    const auto signal = field(whole, "signal_addr"), wait = field(whole, "wait_addr");
    const auto polled = poll || view_.is<PollMem>() ? field(whole, "addr") : wait;
    const auto same = [&](const std::optional<std::uint64_t>& word) { return word && polled && (*word ^ *polled) < 8; };
    if (same(signal) || same(signalled_))
      say("signal-polled", name() + " waits for " + hex_text(*polled) + ", which " +
                               (same(signal) ? "it" : "the packet before it") + " signals");
    if (poll && field(whole, "retry").value_or(0) != 0)
      say("finite-poll", name() + " expires after " + std::to_string(*field(whole, "retry")) + " reads");
    if (fence || signal) completion({.va = GpuVa{fence ? *field(whole, "addr") : *signal}, .bytes = 8});
    else if ((wait || field(whole, "destinations") || field(whole, "indirect_src")) && pending_++ == 0)
      first_pending_ = at_;
    if (signal || !(polled || view_.is<Nop>())) signalled_ = signal;
  }

  template <class P> void synchronise(const P&) {}
  void synchronise(const Fence& p) {
    completion(word(p));
    const auto i = fences_++ % kMostMailboxes;
    if (i == mailboxes_.size()) mailboxes_.push_back(p.value);
    else mailboxes_[i] = p.value;
  }
  void synchronise(const Atomic& p) { completion(word(p)); }
  void synchronise(const CondExec& p) {
    if (!polled_ || polled_word_ != p.addr)
      say("cond-exec-unordered", name() + " addr " + hex_text(p.addr.value) + " may be read before it is written");
  }
  // Its packets are not known here, and may contain the completion.
  void synchronise(const Indirect&) {
    pending_ = 0;
    waited_.forget();
  }
  void completion(const Region& word) {
    stores_.fenced();
    stores_.erase(word.va.value, word.bytes);
    pending_ = 0;
  }
  void synchronise(const PollMem& p) {
    if (const auto by = stores_.find(p.addr.value, word(p).bytes))
      say("data-as-flag",
          name() + " addr " + hex_text(p.addr.value) + " waits for what the packet at " + offset(*by) + " stores");
    stores_.polled();
    polled_ = true;
    polled_word_ = p.addr;
    repeated(p);
  }
  void repeated(const PollMem& p) {
    const Condition c{p.func, p.reference, p.mask};
    if (!can_hold(c) || must_hold(c)) return;
    if (const auto by = waited_.find(p.addr, c))
      say("poll-repeated", name() + " addr " + hex_text(p.addr.value) + " waits for what the poll at " + offset(*by) +
                               " has already waited for, and no packet of this queue changes the word in between");
    // A poll that may expire, or that may not be executed, proves nothing about its word.
    else if (p.retry == PollMem{}.retry && at_ >= conditional_until_) waited_.add(p.addr, c, at_);
  }
  /// The kernel's own traps have context 0 and no mailbox of their own: any fence before them will do.
  void synchronise(const Trap& p) {
    const bool announced = p.context == 0
                               ? !mailboxes_.empty()
                               : std::find(mailboxes_.begin(), mailboxes_.end(), p.context) != mailboxes_.end();
    if (!announced && fences_ > kMostMailboxes)
      say("not-all-accesses", std::to_string(fences_) + " fences precede this trap, and only the last " +
                                  std::to_string(kMostMailboxes) + " are compared with its context");
    else if (!announced)
      say("trap-without-mailbox-fence",
          "no fence since the previous trap stores " + std::to_string(p.context) + ", the context of this trap");
    mailboxes_.clear();
    fences_ = 0;
  }

  void end() {
    flush_unknown();
    if (pending_ > 0 && !lost_)
      say(rule_of("no-completion"), first_pending_,
          pending_ == 1 ? "no fence or atomic follows this packet"
                        : std::to_string(pending_) + " packets store from here on, and no fence or atomic follows them",
          {});
    if (options_.max_findings > 0)
      for (const auto& [id, n] : counts_)
        if (n > options_.max_findings)
          out_->push_back({.rule = "not-shown",
                           .severity = Severity::note,
                           .where = options_.file,
                           .message = "findings of '" + std::string(id) +
                                      "' that are not shown: " + std::to_string(n - options_.max_findings)});
  }

  static constexpr std::size_t kMostMailboxes = 65536;

  StreamCheckOptions options_;
  std::uint64_t at_;
  std::vector<Diagnostic>* out_{};
  PacketView view_;
  std::vector<std::pair<std::string_view, std::size_t>> counts_;  // diagnostics per rule

  bool lost_ = false;                       ///< a packet of a length in doubt came, and no boundary since
  std::optional<std::uint64_t> signalled_;  ///< the word that the last packet other than a poll or nop signals
  std::uint64_t unknown_at_ = 0, unknown_count_ = 0;
  bool indirect_ = false;  ///< one has been reported
  /// The last condition, in bytes, and where what it may skip ends, in dwords.
  std::uint64_t condition_at_ = 0, skipped_until_ = 0;
  std::uint32_t unknown_dword_ = 0;
  CopyLinear last_copy_;
  Stores stores_;
  bool full_ = false;  ///< this has been reported
  Waited waited_;
  std::uint64_t conditional_until_ = 0;            // where the dwords end that the last condition may skip
  std::uint64_t pending_ = 0, first_pending_ = 0;  // stores that no completion follows yet
  std::vector<std::uint32_t> mailboxes_;           // what the last fences since the last trap stored
  std::size_t fences_ = 0;                         // since the last trap
  GpuVa polled_word_;
  bool polled_ = false;
};

StreamChecker::StreamChecker(StreamCheckOptions o) : state_(std::make_unique<State>(std::move(o))) {}
StreamChecker::~StreamChecker() = default;
StreamChecker::StreamChecker(StreamChecker&&) noexcept = default;
StreamChecker& StreamChecker::operator=(StreamChecker&&) noexcept = default;

std::size_t StreamChecker::append(std::vector<Diagnostic>& out, std::span<const std::uint32_t> in, bool last) {
  return state_->append(out, in, last);
}

void StreamChecker::skip(std::vector<Diagnostic>& out, std::span<const std::uint32_t> in) { state_->skip(out, in); }

std::vector<Diagnostic> check_stream(std::span<const std::uint32_t> dwords, const StreamCheckOptions& options) {
  std::vector<Diagnostic> out;
  StreamChecker{options}.append(out, dwords, true);
  return out;
}

}}  // namespace sdma::v0_3
