// SPDX-License-Identifier: MIT
// Why a wait is not satisfied: which packets store to its word, and what they store.
#include "../engine/execute.hpp"
#include "case.hpp"
#include "sdma/packets/control.hpp"
#include "sdma/packets/sync.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace sdma { inline namespace v0_3 { namespace doctor {
namespace {

bool is_add(AtomicOp op) noexcept {
  return op == AtomicOp::add_rtn_64 || op == AtomicOp::add_64 || op == AtomicOp::add_rtn_32 || op == AtomicOp::add_32;
}

class WaitExplainer {
 public:
  WaitExplainer(const Case& c, const Wait& w, std::optional<std::size_t> queue, Finding& f)
      : c_(c), w_(w), queue_(queue), f_(f) {
    for (const auto& p : posts_of(c, w)) {
      if (queue && p == Post{*queue, c.followed.stops[*queue].packet}) continue;  // an atomic that waits
      (c.followed.skipped[p.queue][p.packet]     ? skipped_
       : c.followed.executed(p) && !sets_back(p) ? executed_
                                                 : others_)
          .push_back(p);
    }
    value_ = c.followed.now.word(w.va.value, w.bytes);
    const auto self = queue ? std::optional(Post{*queue, c.followed.stops[*queue].packet}) : std::nullopt;
    may_be_satisfied_ = may_be_satisfied(c, w, self);
    final_ = c.watched() ||
             (c.snapshot.all_queues && !may_be_satisfied_ && settled() && (executed_.empty() || nobody_else()));
  }

  void run() {
    f_.basis = final_ ? Basis::inferred : Basis::guessed;
    const bool certain = half() || full();
    if (!certain && executed_.empty() && !explain_other_word(c_, w_, f_)) nobody();
    if (!certain && !executed_.empty() && !atomics()) values();
    if (!certain) together();
    if (!final_ && !certain)
      say(f_, Basis::guessed,
          "The snapshot shows one moment: if the queue has not stood still for longer than its work takes, it is not "
          "hung.",
          "nothing; watch the queue, or say for how long it stood still");
  }

 private:
  /// No store to the word is still on its way: there is none, or the word holds what the last one has left.
  bool settled() const {
    std::optional<Post> last;
    for (const auto& p : posts_of(c_, w_)) {
      if (p.packet >= c_.followed.starts[p.queue]) continue;
      if (last && last->queue != p.queue) return false;
      last = p;
    }
    return !last || (value_ && !c_.followed.skipped[last->queue][last->packet] && stored(*last) == value_);
  }
  /// Every thread that could store to the word, or submit packets, sleeps until the queues of the snapshot continue.
  bool nobody_else() const {
    const auto sleeps = [&](const HostWait& h) {
      return h.asleep && *h.asleep && !wait_of(h).met(c_.followed.now).value_or(true);
    };
    // In a single moment, a queue may be about to wake one of them.
    const auto for_ever = [&](const HostWait& h) {
      return sleeps(h) && (c_.watched() || !doctor::may_be_satisfied(c_, wait_of(h), {}));
    };
    return c_.snapshot.all_threads && c_.snapshot.all_queues &&
           std::all_of(c_.snapshot.waits.begin(), c_.snapshot.waits.end(), for_ever);
  }

  /// A queue that has waited for the word sets it back for the next round: this satisfies no wait.
  bool sets_back(const Post& p) const {
    const auto value = stored(p);
    if (!value) return false;
    const auto& packets = c_.lines[p.queue].packets;
    for (auto i = p.packet; i-- > 0;)
      if (const auto w = wait_of(packets[i].view); w && w->va == w_.va) {
        const bool grows = w->reference != 0 && w->func != Compare::lt && w->func != Compare::le;
        return !w->met(*value) && (grows ? *value < w->reference : *value > w->reference);
      }
    return false;
  }

  /// The half of the 64-bit word that the wait does not read.
  bool half() {
    if (w_.bytes != 4) return false;
    const auto other = w_.va.value ^ 4;
    const auto value = c_.followed.now.dword(other);
    if (!value || !w_.met(*value)) return false;
    const auto posts = c_.followed.posts.find(other);
    std::optional<Post> by;
    if (posts != c_.followed.posts.end())
      for (const auto& p : posts->second)
        if (c_.followed.executed(p)) by = p;
    // A wait for the low half of a word that 64-bit packets change waits for the right half: the word is only short of
    // the value, and the high half has nothing to say.
    if (w_.va.value % 8 == 0 && by && is_wide(*by)) return false;
    // A condition that most values satisfy holds for an unrelated word, too.
    if (!by && (*value == 0 || w_.func == Compare::ne)) return false;
    // Packets that store to this half show that it is the one that was meant.
    if (std::any_of(executed_.begin(), executed_.end(), [&](const Post& p) { return !is_wide(p); })) return false;
    const bool wide = by && is_wide(*by), sure = wide && c_.watched();
    if (!wide && (!by || !executed_.empty() || !others_.empty())) {
      say(f_, Basis::guessed,
          fmt::format("The other half of the 64-bit word, at {:#x}, holds {} and would satisfy the wait.", other,
                      number_text(*value)),
          "what the program uses the other half for: two flags of 32 bits are neighbours, too");
      return false;
    }
    f_.what = HangClass::wrong_half;
    f_.basis = sure ? Basis::inferred : Basis::guessed;
    say(f_, Basis::seen,
        fmt::format("The other half of the 64-bit word, at {:#x}, holds {} and satisfies the wait.", other,
                    number_text(*value)),
        "memory");
    if (by) say(f_, Basis::seen, fmt::format("{} stored it.", c_.at(*by)), "the rings");
    if (!sure)
      say(f_, Basis::guessed, "Or it is another flag, and nothing stores to this one.",
          "what the program uses the other half for");
    f_.to_do = fmt::format("wait for {:#x}: the low half of a 64-bit word comes first", other);
    return true;
  }
  bool is_wide(const Post& p) const {
    const auto& v = c_.packet(p).view;
    return v.is<Atomic>() && width(decode<Atomic>(v.dwords, *v.info).op) == 8;
  }

  bool full() {
    if (!queue_) return false;
    const auto& line = c_.lines[*queue_];
    const auto& q = *line.queue;
    if (line.bytes == 0 || !line.placed) return false;
    // A submission has some packets: a poll, a copy, a completion.
    auto longest = std::min<std::uint64_t>(32 * 4, line.bytes / 8);
    for (const auto& p : line.packets)
      if (!p.view.is<Nop>()) longest = std::max<std::uint64_t>(longest, p.view.dwords.size() * 4);
    const auto used = q.positions_wrap ? (*q.wptr + line.bytes - *q.rptr) % line.bytes : *q.wptr - *q.rptr;
    if (line.bytes - used > longest) return false;
    f_.what = HangClass::full_ring;
    if (executed_.empty()) only_the_host();
    say(f_, Basis::seen,
        fmt::format("The ring is full: {:#x} of its {:#x} bytes are pending, so {:#x} are left.", used, line.bytes,
                    line.bytes - used),
        "rptr, wptr and the size of the ring");
    say(f_, Basis::inferred, "No pending packet satisfies this poll, and the producer has no room for another one.",
        "the packets in the rings");
    f_.to_do =
        "put the packet that satisfies the poll into another queue, or before the poll; or make the ring larger, and "
        "let "
        "the producer give up when it is full";
    return true;
  }

  /// Did an atomic execute without an effect?
  bool atomics() {
    const auto last = std::find_if(executed_.rbegin(), executed_.rend(),
                                   [&](const Post& p) { return c_.packet(p).view.is<Atomic>(); });
    if (last == executed_.rend() || !value_) return false;
    std::int64_t sum = 0;
    for (const auto& p : executed_) {
      const auto& v = c_.packet(p).view;
      if (!v.is<Atomic>()) return false;
      const auto a = decode<Atomic>(v.dwords, *v.info);
      if (!is_add(a.op)) return false;
      sum += width(a.op) == 8 ? static_cast<std::int64_t>(a.value) : static_cast<std::int32_t>(a.value);
    }
    const auto moved = w_.bytes == 8 ? *value_ + static_cast<std::uint64_t>(sum)
                                     : static_cast<std::uint32_t>(*value_ + static_cast<std::uint64_t>(sum));
    if (!w_.met(moved)) return false;
    const auto& q = c_.snapshot.queues[last->queue];
    const auto* range = c_.range(w_.va);
    const bool to_host = range && range->kind == Range::Kind::host;
    const bool refused = q.host_atomics && !*q.host_atomics && (to_host || !range);
    // A counter that only grows holds at least what was added to it.
    const bool missing = sum > 0 && *value_ < static_cast<std::uint64_t>(sum);
    if (q.host_atomics && *q.host_atomics && !missing) return false;
    if (!refused && !missing && !(sum < 0 && to_host)) return false;
    f_.what = HangClass::no_atomics;
    f_.basis = refused ? Basis::inferred : Basis::guessed;
    say(f_, Basis::seen,
        fmt::format("{} was executed, but the word holds {}, as if it had not changed it.", c_.at(*last),
                    number_text(*value_)),
        "rptr and memory");
    if (refused)
      say(f_, Basis::seen, fmt::format("The link from the GPU of {} to the host does not complete atomics.", q.name),
          fmt::format("the {}", name(q.host_atomics.from)));
    else
      say(f_, Basis::guessed, "The link may not complete atomics, or the word began with another value.",
          "nothing; `sdma topology` shows whether the link completes atomics");
    f_.to_do = "use a fence to a word of its own, or put the counter into the memory of the GPU (rule X6)";
    return true;
  }

  /// What a packet left in the word, if it does not depend on what was there. What the source of a copy held when it
  /// was read is not what it holds now.
  std::optional<std::uint64_t> stored(const Post& p) const {
    const auto& v = c_.packet(p).view;
    if (v.is<CopyLinear>() && c_.packet(p).consumed) return {};
    if (v.is<Atomic>() && decode<Atomic>(v.dwords, *v.info).op != AtomicOp::write_64) return {};
    const auto low = c_.followed.now.after(v, w_.va.value);
    return low ? std::optional<std::uint64_t>(*low) : std::nullopt;
  }

  /// What each post adds, if they all add the same.
  std::optional<std::int64_t> addend() const {
    std::optional<std::int64_t> same;
    for (const auto& p : executed_) {
      const auto& v = c_.packet(p).view;
      if (!v.is<Atomic>()) return {};
      const auto a = decode<Atomic>(v.dwords, *v.info);
      if (!is_add(a.op)) return {};
      const auto n = width(a.op) == 8 ? static_cast<std::int64_t>(a.value) : static_cast<std::int32_t>(a.value);
      if (same.value_or(n) != n) return {};
      same = n;
    }
    return same;
  }
  /// How many more such posts would satisfy the wait.
  std::optional<std::uint64_t> missing_posts() const {
    constexpr std::int64_t kMost = 1 << 20;
    const auto add = addend();
    if (!add || *add == 0 || !value_ || (w_.func != Compare::eq && w_.func != Compare::ge && w_.func != Compare::le))
      return {};
    const auto whole = [&](std::uint64_t v) {
      return w_.bytes == 8 ? static_cast<std::int64_t>(v) : static_cast<std::int64_t>(static_cast<std::int32_t>(v));
    };
    const auto far = whole(w_.reference) - whole(*value_);
    if (far / *add < 1 || far / *add > kMost) return {};
    const auto n = (far + (*add > 0 ? *add - 1 : *add + 1)) / *add;
    const auto then = static_cast<std::uint64_t>(whole(*value_) + n * *add);
    return w_.met(w_.bytes == 8 ? then : static_cast<std::uint32_t>(then))
               ? std::optional(static_cast<std::uint64_t>(n))
               : std::nullopt;
  }

  /// Packets store to the word, but not what is waited for.
  void values() {
    const auto last = executed_.back();
    f_.what = HangClass::wrong_value;
    std::vector<std::uint64_t> values;
    std::optional<Post> met;
    for (const auto& p : executed_)
      if (const auto v = stored(p)) {
        values.push_back(*v);
        if (w_.met(*v)) met = p;
      }
    if (const auto copy = brought()) return copied(*copy);
    say(f_, Basis::seen, fmt::format("The last packet that stored to the word is {}.", c_.at(last)), "the rings");
    const auto replaces = [&](const Post& p) { return met && p.queue != met->queue && value_ && stored(p) == value_; };
    const bool replaced = std::any_of(executed_.begin(), executed_.end(), replaces);
    if (met == last && !replaced) return not_there(last);
    if (met) {
      f_.what = HangClass::stale_epoch;
      say(f_, Basis::inferred,
          fmt::format(
              "{} stored a value that satisfies the wait, and it was replaced since: the wait came a round too late.",
              c_.at(*met)),
          "the order of the packets in the ring");
      f_.to_do = "wait with func=ge for an epoch that only grows";
      return;
    }
    if (const auto round = earlier_round()) {
      f_.what = HangClass::stale_epoch;
      say(f_, Basis::inferred, *round, "the packets that were executed before");
      f_.to_do = "advance the epoch of the post and of the wait in the same round";
      return;
    }
    const bool counts = values.empty();
    if (const auto n = missing_posts()) {
      say(f_, Basis::inferred,
          fmt::format("{} missing: the word holds {}, {} is waited for, and {} {}.",
                      *n == 1 ? std::string("One post is") : fmt::format("{} posts are", *n), number_text(*value_),
                      number_text(w_.reference),
                      executed_.size() == 1 ? "the one that was executed adds"
                                            : fmt::format("each of the {} that were executed adds", executed_.size()),
                      *addend()),
          "the word, the wait and the packets that were executed");
      say(f_, Basis::guessed,
          "It was never submitted, the snapshot does not have its packet or its queue, or the word began too far away.",
          "the word's initial value, and a count of the posts of each queue");
      f_.to_do = "count the posts of each queue that should reach this word, from its initial value";
      return;
    }
    say(f_, Basis::inferred,
        counts ? fmt::format("The {} packets that change the word do not bring it to the value that is waited for.",
                             executed_.size())
               : "No packet of the known rings stores a value that satisfies the wait.",
        "all packets that store to the word");
    f_.to_do = counts ? "count the posts that reach this word, from its initial value"
                      : "wait for the value that is stored, or store the value that is waited for";
  }

  /// The copy that brought the word's value, if no other packet has stored that value.
  std::optional<Post> brought() const {
    const auto others = [&](const Post& p) { return !c_.packet(p).view.is<CopyLinear>() && stored(p) == value_; };
    if (!value_ || std::any_of(executed_.begin(), executed_.end(), others)) return {};
    const auto copy = std::find_if(executed_.rbegin(), executed_.rend(),
                                   [&](const Post& p) { return c_.packet(p).view.is<CopyLinear>(); });
    return copy == executed_.rend() ? std::nullopt : std::optional(*copy);
  }
  void copied(const Post& p) {
    const auto& v = c_.packet(p).view;
    const auto copy = decode<CopyLinear>(v.dwords, *v.info);
    const auto from = copy.src + (w_.va - copy.dst);
    say(f_, Basis::inferred,
        fmt::format("{} brought the value: its source {} held {} when it was copied.", c_.at(p), word_text(c_, from),
                    number_text(*value_)),
        "the word, to which no other packet has stored that value");
    std::uint64_t now = 0;
    if (read_memory(c_.snapshot, from, std::as_writable_bytes(std::span(&now, 1)).first(w_.bytes)) == Errc::ok &&
        now != *value_)
      say(f_, Basis::seen,
          fmt::format("The source holds {} now: the copy {}.", number_text(now),
                      w_.met(now) ? "came before the value that the wait needs" : "came before that"),
          "memory");
    f_.to_do = "let the copy wait for what stores to its source";
  }

  /// The last store satisfies the wait, but the word does not hold it.
  void not_there(const Post& last) {
    f_.what = HangClass::wrong_word;
    f_.basis = Basis::guessed;
    say(f_, Basis::guessed,
        fmt::format("{} was executed, but the word does not hold its value: either earlier packets of {} are still in "
                    "flight, or the engine has another memory at this address, of another process or GPU.",
                    c_.at(last), c_.name(last.queue)),
        "rptr and memory; a longer watch would show whether the store lands");
    f_.to_do = "check that the word is mapped for the GPU of this queue, by the process that polls it";
  }

  /// Does the word hold what an earlier wait waited for, or does the wait ask for a value that was passed?
  std::optional<std::string> earlier_round() const {
    if (!value_ || w_.bytes != 4) return {};
    for (const auto& line : c_.lines)
      for (std::size_t i = 0; i < line.packets.size(); ++i) {
        const Post p{line.index, i};
        const auto w = wait_of(c_.packet(p).view);
        if (!w || w->va != w_.va || w->bytes != w_.bytes) continue;
        if (!c_.followed.executed(p)) continue;
        if (w->reference != w_.reference && w->func == w_.func && w->met(*value_))
          return fmt::format("The word still satisfies an earlier wait, {}: it holds the epoch of that round.",
                             c_.at(p));
      }
    std::vector<std::uint64_t> values;
    for (const auto& p : executed_)
      if (const auto v = stored(p)) values.push_back(*v);
    if (values.size() < 2 || !std::is_sorted(values.begin(), values.end()) || values.front() == 0) return {};
    const auto passed = w_.func == Compare::eq && *value_ > w_.reference;
    return fmt::format(
        "The word counts rounds: {} were stored. {}",
        values.size() > 3 ? fmt::format("{}, ... {}", values.front(), values.back())
                          : fmt::format("{}", fmt::join(values, ", ")),
        passed ? "The wait asks for a round that is over." : "The wait asks for a later round than the last post.");
  }

  void nobody() {
    const auto rings = c_.lines.size() == 1 ? "the ring" : fmt::format("the {} rings", c_.lines.size());
    f_.what = others_.empty() ? HangClass::never_written : HangClass::wrong_value;
    f_.to_do =
        "find who should store to the word: a completion that is missing, or a host thread that did not continue";
    const auto useful = std::find_if(skipped_.rbegin(), skipped_.rend(), [&](const Post& p) {
      const auto v = stored(p);
      return !v || w_.met(*v);
    });
    if (useful != skipped_.rend()) return skipped(*useful), buffers();
    if (explain_covered(c_, w_, f_)) return;
    auto stores = others_;
    stores.insert(stores.end(), skipped_.begin(), skipped_.end());
    if (!stores.empty()) f_.what = HangClass::wrong_value;
    only_the_host();
    buffers();
    const bool host = f_.release.by == Release::By::host;
    const auto who = fmt::format("{} can change it", !host ? "no thread and no queue"
                                                     : c_.snapshot.all_queues
                                                         ? "only a host thread, of this process or of one that shares "
                                                           "the memory,"
                                                         : "only a host thread or a queue that is not in the snapshot");
    say(f_, Basis::inferred,
        stores.empty() ? fmt::format("No packet of {} stores to the word, so {}.", rings, who)
                       : fmt::format("{} stores to the word{}{}, but no packet of {} stores a value that satisfies the "
                                     "wait, so {}.",
                                     c_.at(stores.front()), others_.empty() ? " unless a condition skips it" : "",
                                     stores.size() == 1 ? "" : fmt::format(", and so do {} others", stores.size() - 1),
                                     rings, who),
        "the packets in the rings, except those that were overwritten");
  }

  /// Packets that come later, none of which satisfies the wait by itself.
  void together() {
    const auto later = [&](const Post& p) { return c_.followed.pending(p); };
    const auto n = std::count_if(others_.begin(), others_.end(), later);
    const bool adds =
        std::any_of(others_.begin(), others_.end(), [&](const Post& p) { return later(p) && is_wide(p); });
    if (n == 0 || !may_be_satisfied_ || (w_.bytes == 4 && (n == 1 || !adds))) return;
    f_.basis = Basis::guessed;
    say(f_, Basis::guessed, "Packets that come later may satisfy it together.", "which of them come first");
  }

  /// What was executed in buffers that the snapshot does not have is not known.
  void buffers() {
    for (const auto& line : c_.lines)
      for (std::size_t i = 0; i < line.packets.size(); ++i)
        if (line.packets[i].unread) {
          f_.basis = Basis::guessed;
          return say(f_, Basis::guessed,
                     fmt::format("What the buffer of {} stores is not known.", c_.at({line.index, i})),
                     "the contents of the buffer, which the snapshot does not have");
        }
  }

  /// A condition kept the packet that posts from being executed.
  void skipped(const Post& p) {
    const auto condition = c_.followed.condition_of(p);
    const auto at = condition ? c_.at({p.queue, *condition}) : "a condition";
    // What it would have stored is not in the word, unless another packet has replaced it.
    const auto read = [&](const Post& o) { return c_.packet(o).consumed; };
    const auto apart = [&](const Post& o) {
      return read(o) && (o.queue != p.queue || c_.followed.condition_of(o) != condition);
    };
    const bool replaced =
        std::any_of(others_.begin(), others_.end(), read) || std::any_of(skipped_.begin(), skipped_.end(), apart);
    const bool known = condition && !replaced && is_settled(c_, {p.queue, *condition});
    if (!known) f_.basis = Basis::guessed;
    say(f_, known ? Basis::inferred : Basis::guessed,
        fmt::format("{} stores to the word, but {} {}.", c_.at(p), at,
                    known ? "skips it: the word that the condition reads does not hold its reference"
                          : "may have skipped it: what the condition has read is not known"),
        known ? "what the condition's word holds now" : "the condition's word, and what stores to it");
    f_.to_do = "check what should set the word of the condition, or post after the packets that it skips";
  }

  /// No packet posts. The host may still do so, unless each of its threads sleeps until these queues continue.
  void only_the_host() {
    f_.release.by = Release::By::host;
    const auto& waits = c_.snapshot.waits;
    if (!nobody_else()) return;
    f_.release.by = Release::By::nobody;
    if (waits.empty())
      return say(f_, Basis::seen, "No thread of the host is left that could store to the word.", "the snapshot");
    for (const auto& h : waits)
      say(f_, Basis::seen,
          fmt::format("{} sleeps until {} {} {}, which only these queues can satisfy.", h.name, word_text(c_, h.signal),
                      compare_text(h.func), number_text(h.reference)),
          fmt::format("the {}", name(h.asleep.from)));
  }

  const Case& c_;
  const Wait& w_;
  std::optional<std::size_t> queue_;
  Finding& f_;
  std::vector<Post> executed_{};  ///< packets that posted to the word
  std::vector<Post> skipped_{};   ///< those that a condition skipped
  std::vector<Post> others_{};    ///< those that set the word back, or that come later
  std::optional<std::uint64_t> value_;
  bool may_be_satisfied_ = true;  ///< by packets that are pending, in some order
  bool final_ = false;            ///< the snapshot shows that the wait does not end by itself
};

}  // namespace

void explain_unmet(const Case& c, const Wait& w, std::optional<std::size_t> queue, Finding& f) {
  WaitExplainer{c, w, queue, f}.run();
}

}}}  // namespace sdma::v0_3::doctor
