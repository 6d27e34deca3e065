// SPDX-License-Identifier: MIT
#include "sdma/doctor/read.hpp"

#include "sdma/stream/reader.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <map>

namespace sdma { inline namespace v0_3 { namespace doctor {

void add(Snapshot& s, const RingDump& d, std::string_view name) {
  QueueSnapshot q{.name = d.label.empty() ? std::string(name) : fmt::format("{} ({})", name, d.label),
                  .ring = d.dwords,
                  .rptr = {d.read, Source::dump},
                  .wptr = {d.wptr, Source::dump},
                  .committed = {d.committed, Source::dump},
                  .reserved = {d.reserved, Source::dump}};
  // A dump that does not say on which engine its queue is has zeros.
  if (d.gpu != GpuId{} || d.engine != EngineId{}) {
    q.gpu = {d.gpu, Source::dump};
    q.engine = {d.engine, Source::dump};
  }
  // 0 may also mean that the ring has no doorbell; then the engine has read it.
  if (d.doorbell != 0 || d.read == 0) q.doorbell = {d.doorbell, Source::dump};
  s.queues.push_back(std::move(q));
}

void add(Snapshot& s, const TextDump& d, std::string_view name, const RingPositions& given, Source from) {
  QueueSnapshot q{.name = d.ring.empty() ? std::string(name) : fmt::format("{} {}", name, d.ring),
                  .generation = given.generation,
                  .ring = d.dwords};
  const bool own = !given.rptr && !given.wptr;
  const auto rptr = own ? d.rptr : given.rptr, wptr = own ? d.wptr : given.wptr;
  const auto source = own ? Source::dump : from;
  if (rptr) q.rptr = {*rptr, source};
  if (wptr) q.wptr = {*wptr, source};
  const auto bytes = d.dwords.size() * 4;
  const auto first = own ? d.first.value_or(0) : given.first;
  if (rptr && wptr && first != 0 && *rptr >= first && *rptr - first <= bytes) q.first = first;
  q.part = q.first == 0 && is_part(d.dwords.size(), {.rptr = rptr, .wptr = wptr});
  // Offsets say nothing about how often the queue has passed the end of its ring.
  q.positions_wrap = rptr && wptr && q.first == 0 && !q.part && *rptr < bytes && *wptr < bytes;
  s.queues.push_back(std::move(q));
}

namespace {

/// The queue of one lane of a recording.
class LaneReader {
 public:
  LaneReader(const trace::Lane& lane, const std::vector<std::string>& texts) : texts_(&texts) {
    q_.name = fmt::format("{} {}", lane.group, lane.name);
    if (const auto n = number_after(lane.group, "gpu")) q_.gpu = {GpuId{*n}, Source::recording};
    if (const auto n = number_after(lane.name, "engine ")) q_.engine = {EngineId{*n}, Source::recording};
  }

  void take(const trace::Event& e) {
    switch (e.kind) {
      case trace::Kind::queue_created:  // a queue of the same place begins
        begin_again();
        q_.ring_bytes = {e.value, Source::recording};
        break;
      case trace::Kind::doorbell: q_.doorbell = q_.wptr = {e.position, Source::recording}; break;
      case trace::Kind::packet_begin:
        packets_[e.position] = &e;
        q_.generation = e.generation;
        open_[e.position] = true;
        break;
      case trace::Kind::packet_end: open_.erase(e.position); break;
      case trace::Kind::queue_destroyed:
        // A program that gives up on a poll destroys the queue: then the poll is the cause.
        if (!at_poll()) q_.destroyed = {true, Source::recording};
        if (open_.empty()) q_.rptr = {e.position, Source::recording};
        break;
      case trace::Kind::fault: fault(e); break;
      default: break;
    }
  }

  bool empty() const noexcept { return packets_.empty() && !q_.doorbell; }

  QueueSnapshot finish() {
    auto end = std::uint64_t{0};
    if (!packets_.empty()) {
      q_.first = packets_.begin()->first;
      for (const auto& [position, event] : packets_) {
        if (position < end) continue;
        // A gap holds what no engine has begun, such as the packets that a condition skipped: NOPs, if they are zeros.
        if (position - q_.first > kMost || event->length > kMost) break;
        q_.ring.resize((position - q_.first) / 4);
        const auto kept = event->packet();
        q_.ring.insert(q_.ring.end(), kept.begin(), kept.end());
        q_.ring.resize((position - q_.first) / 4 + std::max<std::size_t>(event->length, kept.size()));
        end = q_.first + q_.ring.size() * 4;
      }
    }
    if (!q_.rptr) q_.rptr = {open_.empty() ? end : open_.begin()->first, Source::recording};
    // Without doorbells, it is known that what an engine has begun was published.
    if (!q_.wptr) q_.wptr = {std::max(q_.rptr.value, end), Source::recording};
    q_.part = !q_.ring_bytes && q_.first == 0;
    return std::move(q_);
  }

 private:
  static constexpr std::uint64_t kMost = std::uint64_t{1} << 28;

  void begin_again() {
    q_ = {.name = std::move(q_.name), .gpu = q_.gpu, .engine = q_.engine};
    packets_.clear();
    open_.clear();
  }
  bool at_poll() const {
    if (open_.empty()) return false;
    const auto found = packets_.find(open_.begin()->first);
    return found != packets_.end() && Reader{found->second->packet(), catalogue(q_.generation)}.next().is<PollMem>();
  }
  static std::optional<std::uint32_t> number_after(std::string_view text, std::string_view word) {
    if (!text.starts_with(word)) return {};
    std::uint32_t n = 0;
    const auto digits = text.substr(word.size());
    return std::from_chars(digits.data(), digits.data() + digits.size(), n).ec == std::errc{} ? std::optional(n)
                                                                                              : std::nullopt;
  }
  void fault(const trace::Event& e) {
    Fault f{.position = e.position, .va = e.address};
    if (q_.gpu) f.gpu = *q_.gpu;
    if (q_.engine) f.engine = *q_.engine;
    if (e.text.value < texts_->size()) q_.fault_text = (*texts_)[e.text.value];
    f.kind = kind_in(q_.fault_text);
    q_.fault = {f, Source::recording};
    q_.rptr = {e.position, Source::recording};
  }

  /// The kind of a fault in words, of engine/fault.hpp's `describe`; none if they do not say.
  static FaultKind kind_in(std::string_view text) {
    struct Phrase {
      std::string_view words;
      FaultKind kind;
    };
    constexpr Phrase kPhrases[] = {
        {": not mapped for this GPU", FaultKind::unmapped},
        {", which is not mapped", FaultKind::unmapped},
        {": mapped for reading only", FaultKind::read_only},
        {", which is read-only", FaultKind::read_only},
        {"does not begin a packet", FaultKind::unknown_packet},
        {"lies inside this packet", FaultKind::truncated_packet},
        {"expired before the word", FaultKind::poll_timeout},
    };
    for (auto k = 0; k <= static_cast<int>(FaultKind::reset); ++k)
      if (const auto kind = static_cast<FaultKind>(k); text == name(kind)) return kind;
    for (const auto& p : kPhrases)
      if (text.find(p.words) != text.npos) return p.kind;
    return FaultKind::none;
  }

  const std::vector<std::string>* texts_;
  QueueSnapshot q_;
  std::map<std::uint64_t, const trace::Event*> packets_;
  std::map<std::uint64_t, bool> open_;
};

}  // namespace

void add(Snapshot& s, const trace::Trace& t, std::string_view name) {
  std::vector<LaneReader> lanes;
  for (const auto& lane : t.lanes) lanes.emplace_back(lane, t.texts);
  for (const auto& e : t.events) {
    if (e.kind == trace::Kind::signal) s.words.add(e.address, e.value, 8);
    if (e.lane.value < lanes.size()) lanes[e.lane.value].take(e);
  }
  for (auto& lane : lanes)
    if (!lane.empty()) s.queues.push_back(lane.finish());
  s.notes.push_back(
      fmt::format("{}: a recording has the packets that an engine has begun; later ones are not known", name));
  if (t.lost != 0) s.notes.push_back(fmt::format("{}: {} events were lost during recording", name, t.lost));
}

}}}  // namespace sdma::v0_3::doctor
