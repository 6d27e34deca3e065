// SPDX-License-Identifier: MIT
#include "run.hpp"

#include "pattern.hpp"
#include "sdma/doctor/diagnose.hpp"
#include "sdma/doctor/snapshot.hpp"
#include "sdma/sync/describe.hpp"
#include "sdma/sync/wait.hpp"

#include <chrono>
#include <cstring>

namespace collectives {

using namespace sdma;
using namespace std::chrono_literals;

namespace {

constexpr auto kPoisoned = std::byte{kPoison};
constexpr auto kSlice = 20ms;

/// Bytes of a buffer that come from a position in a buffer. The bytes between segments are poison.
struct Segment {
  std::uint64_t begin{}, bytes{};
  std::size_t source{};
  std::uint64_t offset{};
};

/// The buffer's contents after fill or, with moves, after a round; sorted by begin.
std::vector<Segment> contents(const Plan& p, std::size_t buffer, bool after) {
  std::vector<Segment> all;
  const auto add = [&](GpuVa to, GpuVa from, std::uint64_t bytes) {
    const auto t = *find_symbol(p.schedule, to), f = *find_symbol(p.schedule, from);
    if (t.index != buffer) return;
    const Segment s{t.offset, bytes, f.index, f.offset};
    // A part that arrives replaces the previous contents, and may be shorter.
    std::vector<Segment> next;
    for (const auto& old : all) {
      const auto end = old.begin + old.bytes;
      if (old.begin < s.begin) next.push_back({old.begin, std::min(end, s.begin) - old.begin, old.source, old.offset});
      if (end > s.begin + s.bytes) {
        const auto from_here = std::max(old.begin, s.begin + s.bytes);
        next.push_back({from_here, end - from_here, old.source, old.offset + (from_here - old.begin)});
      }
    }
    next.push_back(s);
    all = std::move(next);
  };
  for (const auto& r : p.given) add(r.va, r.va, r.bytes);
  if (after)
    for (const auto& m : p.moves) add(m.to, m.from, m.bytes);
  std::sort(all.begin(), all.end(), [](const Segment& a, const Segment& b) { return a.begin < b.begin; });
  return all;
}

/// Calls given(segment) and poison(begin, bytes), which cover the buffer.
template <class Given, class Poison>
void cover(std::span<const Segment> all, std::uint64_t bytes, Given given, Poison poison) {
  std::uint64_t at = 0;
  for (const auto& s : all) {
    if (s.begin > at) poison(at, s.begin - at);
    given(s);
    at = s.begin + s.bytes;
  }
  if (at < bytes) poison(at, bytes - at);
}

/// For the first round: its rings have room.
constexpr auto kPublish = 10s;

bool is_stage(const Schedule::Buffer& b) { return b.init == Init::poison; }

}  // namespace

Result<Run, std::vector<Diagnostic>> Run::prepare(const Plan& p, Device& d, const BindOptions& o,
                                                  std::span<const Signal> words) {
  auto schedule = p.schedule;
  auto options = o;
  if (!words.empty() && words.size() != stream_words(p))
    return std::vector<Diagnostic>{
        {.where = "prepare",
         .message =
             std::to_string(words.size()) + " words for streams, and the plan has " + std::to_string(stream_words(p)),
         .hint = "give one for each GPU and one for each queue, or none: the device then provides them"}};
  for (std::size_t i = 0; i < words.size(); ++i) {
    const auto of_gpus = p.triggers.size();
    const auto link = i < of_gpus ? p.triggers[i] : p.completions[i - of_gpus];
    schedule.signals[find_symbol(p.schedule, link)->index].at = words[i].va;
    options.external.push_back({words[i].va, {reinterpret_cast<std::byte*>(words[i].word), sizeof(std::uint64_t)}});
  }
  auto bound = bind(schedule, d, options);
  if (!bound) return std::move(bound.error());
  Run run{p, std::move(*bound)};
  for (std::uint32_t g = 0; g < p.schedule.gpus; ++g) run.gpus_.push_back(o.gpus.empty() ? GpuId{g} : o.gpus[g]);
  for (const auto t : p.triggers) run.triggers_.push_back(find_symbol(p.schedule, t)->index);
  for (const auto c : p.completions) run.completions_.push_back(find_symbol(p.schedule, c)->index);
  if (p.options.prelaunch == Prelaunch::stream) run.make_streams(), run.make_carried();
  if (p.options.prelaunch == Prelaunch::off) return run;
  for (std::size_t q = 0; q < p.schedule.queues.size(); ++q) {
    if (!run.bound_.owns(q)) continue;
    // A round that waits at its first poll frees no space for the rest of itself.
    const auto bytes = run.bound_.packets(q).size_bytes(), ring = run.bound_.ring(q).memory().dwords.size_bytes();
    if (bytes > ring / 2)
      return std::vector<Diagnostic>{{.where = run.queue_name(q),
                                      .message = std::to_string(bytes) +
                                                 " bytes of packets cannot be published ahead in a ring of " +
                                                 std::to_string(ring),
                                      .hint = "set ring_bytes to at least twice the bytes of a round"}};
  }
  if (p.options.prelaunch == Prelaunch::stream) return run;
  if (auto published = run.publish(Deadline::in(kPublish)); !published)
    return std::vector<Diagnostic>{std::move(published.error())};
  return run;
}

void Run::fill(std::uint64_t seed) {
  // What engines have stored arrives before the host's stores: one of the value that was there before would get lost.
  flush();
  seed_ = seed;
  const auto& buffers = plan_.schedule.buffers;
  for (std::size_t i = 0; i < buffers.size(); ++i) {
    if (!bound_.owns(buffers[i].place)) continue;
    const auto bytes = bound_.bytes({link_buffer(i), buffers[i].bytes});
    cover(
        contents(plan_, i, false), bytes.size(),
        [&](const Segment& s) { fill_pattern(bytes.subspan(s.begin, s.bytes), seed, s.source, s.offset); },
        [&](std::uint64_t at, std::uint64_t n) { std::memset(bytes.data() + at, kPoison, n); });
  }
  flush();
}

Check Run::check() const {
  Check result;
  // After a fault, a completion may be false.
  if (const auto f = fault()) return {1, to_string(*f)};
  flush();
  const auto& s = plan_.schedule;
  for (std::size_t i = 0; i < s.buffers.size(); ++i) {
    if (is_stage(s.buffers[i]) || !bound_.owns(s.buffers[i].place)) continue;
    const std::span<const std::byte> bytes = bound_.bytes({link_buffer(i), s.buffers[i].bytes});
    const auto found = [&](const Mismatch& m, std::uint64_t base, const std::string& whose) {
      if (m.wrong != 0 && result.wrong == 0) {
        const auto at = base + m.first;
        const auto hex = [](std::byte b) {
          constexpr char kDigits[] = "0123456789abcdef";
          const auto v = static_cast<unsigned>(b);
          return std::string("0x") + kDigits[v >> 4] + kDigits[v & 15];
        };
        result.first = name_of(s, link_buffer(i) + at) + " is " + hex(bytes[at]) +
                       (bytes[at] == kPoisoned ? " (poison: possibly never written)" : "") + ", not " + hex(m.should) +
                       whose;
      }
      result.wrong += m.wrong;
    };
    cover(
        contents(plan_, i, true), bytes.size(),
        [&](const Segment& part) {
          found(mismatch(bytes.subspan(part.begin, part.bytes), seed_, part.source, part.offset), part.begin,
                ": that of " + name_of(s, link_buffer(part.source) + part.offset));
        },
        [&](std::uint64_t at, std::uint64_t n) {
          found(mismatch(bytes.subspan(at, n), kPoisoned), at, ": it must not be written");
        });
  }
  return result;
}

std::string Run::queue_name(std::size_t q) const {
  const auto& queue = plan_.schedule.queues[q];
  return to_string(queue.place) + "." + queue.name;
}

Result<void, Diagnostic> Run::published(std::size_t q, Errc e) const {
  if (e == Errc::ok) return {};
  if (auto f = fault()) return *std::move(f);
  return Diagnostic{.where = queue_name(q),
                    .message = e == Errc::epoch_overflow ? "the epoch no longer fits in 32 bits"
                               : e == Errc::timed_out    ? "its ring had no space before the deadline"
                                                         : std::string(message(e)),
                    .hint = e == Errc::epoch_overflow ? "restart"
                            : e == Errc::timed_out    ? "give it a larger ring (ring_bytes), or publish less ahead"
                                                      : ""};
}

Result<void, Diagnostic> Run::publish(Deadline d) {
  for (std::size_t q = 0; q < plan_.schedule.queues.size(); ++q) {
    if (!bound_.owns(q)) continue;
    const auto epoch = bound_.submit(q, d);
    if (auto r = published(q, epoch ? Errc::ok : epoch.error()); !r) return r;
  }
  return {};
}

Result<void, Diagnostic> Run::start(Deadline d) {
  const auto streams = plan_.options.prelaunch == Prelaunch::stream;
  value_ = round_ + 1;
  // All streams count alike, and the host takes their next value.
  for (auto& lane : streams_) value_ = lane.order.next();
  for (std::size_t q = 0; q < plan_.schedule.queues.size() && streams; ++q)
    if (bound_.owns(q)) bound_.set_epoch(q, value_ - 1);
  if (plan_.options.prelaunch == Prelaunch::off || streams) {
    if (auto e = publish(d); !e) return e;
  } else if (own_queue() && ahead() == 0) {
    return Diagnostic{.where = "start", .message = "no round is published ahead", .hint = "call refill first"};
  }
  ++round_;
  if (releases())
    for (const auto t : triggers_) bound_.set(t, value_);
  return {};
}

bool Run::starts() const noexcept {
  return plan_.options.prelaunch == Prelaunch::off ? own_queue().has_value() : releases();
}
/// The triggers are words of the host.
bool Run::releases() const noexcept { return bound_.owns(Place{}); }
std::optional<std::size_t> Run::own_queue() const noexcept {
  for (auto q = plan_.schedule.queues.size(); q != 0; --q)
    if (bound_.owns(q - 1)) return q - 1;
  return {};
}
std::uint64_t Run::ahead() const noexcept {
  const auto own = own_queue();
  const auto published = own ? bound_.epoch(*own) : round_;
  return published > round_ ? published - round_ : 0;
}

void Run::trigger(std::size_t group) noexcept { bound_.set(triggers_[group], round_ + 1); }

Result<void, Diagnostic> Run::wait(Deadline d) {
  auto done = completed(d);
  if (!done) bound_.give_up();
  return done;
}
Result<void, Diagnostic> Run::completed(Deadline d) const {
  const bool counted = plan_.options.completion == Completion::atomic;
  const auto func = plan_.options.prelaunch == Prelaunch::stream && !counted ? Compare::eq : Compare::ge;
  for (std::size_t i = 0; i < completions_.size(); ++i) {
    const auto& word = bound_.signal(completions_[i]);
    const auto wanted = counted ? round_ * plan_.done_a_round : value_;
    for (;;) {
      if (sdma::wait(word, func, wanted, d.within(kSlice))) break;
      if (auto f = fault()) return *std::move(f);
      if (auto lost = bound_.lost(); !lost.empty()) return Diagnostic{.where = "wait", .message = std::move(lost)};
      if (d.passed()) return standing(i, wanted);
    }
  }
  return {};
}

Result<void, Diagnostic> Run::refill(Deadline d, std::uint32_t rounds) {
  if (plan_.options.prelaunch == Prelaunch::off || plan_.options.prelaunch == Prelaunch::stream) return {};
  for (std::uint32_t i = 0; i < rounds; ++i)
    if (auto e = publish(d); !e) return e;
  return {};
}

Result<void, Diagnostic> Run::restart(Deadline d) {
  if (bound_.restart(d) != Errc::ok)
    return Diagnostic{
        .where = "restart", .message = "some queues have not finished", .hint = "start the published rounds"};
  round_ = 0;
  return refill(d);
}

Result<void, Diagnostic> Run::once(Deadline d) {
  if (auto e = start(d); !e) return e;
  if (auto e = wait(d); !e) return e;
  return refill(d);
}

std::optional<Diagnostic> Run::fault() const {
  for (std::size_t q = 0; q < plan_.schedule.queues.size(); ++q) {
    const auto f = bound_.owns(q) ? bound_.device().fault(bound_.queue(q)) : std::nullopt;
    if (!f) continue;
    const auto name = bound_.name(f->va);
    return Diagnostic{.where = queue_name(q),
                      .message = sdma::describe(*f) + (name.empty() ? "" : " (" + name + ")"),
                      .hint = "on hardware: " + std::string(on_hardware(f->kind))};
  }
  return {};
}

void Run::flush() const noexcept {
  for (std::uint32_t g = 0; g < gpus_.size(); ++g)
    if (bound_.owns(Place::gpu(g))) (void)bound_.device().flush_host_writes(gpus_[g]);
}

Diagnostic Run::standing(std::size_t completion, std::uint64_t wanted) const {
  const auto signal = completions_[completion];
  Diagnostic d{.where = name_of(plan_.schedule, SymbolOffset{true, signal, 0}),
               .message = "its value is " + std::to_string(bound_.value(signal)) + " at the deadline, not " +
                          std::to_string(wanted)};
  for (std::size_t q = 0; q < plan_.schedule.queues.size(); ++q) {
    if (!bound_.owns(q)) continue;
    const auto report = inspect(bound_.ring(q));
    if (report.read == report.committed) continue;
    const auto peek = [&](GpuVa va, std::span<std::byte> to) { return bound_.device().peek(va, to); };
    const auto names = [&](GpuVa va) { return bound_.name(va); };
    d.excerpt += (d.excerpt.empty() ? "  " : "\n  ") + queue_name(q) + ": " + describe(report, peek, names);
  }
  if (const auto why = doctor::diagnose(doctor::snapshot_of(bound_)); why.verdict() == doctor::Verdict::hung)
    d.hint = summary(why);  // the hint of others is the caller's: it knows how to wait for longer
  return d;
}

}  // namespace collectives
