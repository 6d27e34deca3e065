#include "sdma/trace/write.hpp"
#include "text.hpp"

#include <algorithm>
#include <iterator>
#include <map>
#include <optional>
#include <set>
#include <utility>

namespace sdma {
inline namespace v0 {
namespace trace {
namespace {

/// A packet as a bar: from its beginning to its end, in the first row of its lane that is free.
struct Bar {
  const Event* begin{};
  std::uint64_t from{}, to{};
  bool finished{};
  std::size_t row{};
};

/// Bars of one lane, and where its rows end up in the file.
struct LaneRows {
  std::vector<Bar> bars{};                         // by time of beginning
  std::vector<std::vector<std::size_t>> rows{{}};  // indices of bars, each row without overlap
  std::vector<std::size_t> threads{};              // a number for each row

  void assign() {
    for (std::size_t i = 0; i < bars.size(); ++i) {
      std::size_t r = 0;
      while (r < rows.size() && !rows[r].empty() && bars[rows[r].back()].to > bars[i].from) ++r;
      if (r == rows.size()) rows.emplace_back();
      rows[r].push_back(i);
      bars[i].row = r;
    }
  }
  /// The row of the bar that was running at `ns`, the one begun last.
  std::optional<std::size_t> row_at(std::uint64_t ns) const {
    std::optional<std::size_t> best;
    for (const auto& row : rows) {
      const auto behind = std::upper_bound(row.begin(), row.end(), ns,
                                           [&](std::uint64_t t, std::size_t i) { return t < bars[i].from; });
      if (behind == row.begin()) continue;
      const auto i = *std::prev(behind);
      if (bars[i].to >= ns && (!best || bars[i].from > bars[*best].from)) best = i;
    }
    return best ? std::optional(bars[*best].row) : std::nullopt;
  }
};

class Picture {
 public:
  explicit Picture(const Trace& t) : trace_(t), lanes_(t.lanes.size()) {
    for (const auto& e : t.events) {
      first_ = std::min(first_, e.ns);
      last_ = std::max(last_, e.ns);
    }
    if (t.events.empty()) first_ = 0;
    pair();
    for (auto& l : lanes_) l.assign();
  }

  std::string text() {
    out_ = "{\"displayTimeUnit\":\"ns\",\"otherData\":{\"clock\":";
    detail::append_string(out_, trace_.clock);
    add(",\"first_ns\":\"{}\",\"lost\":\"{}\"}},\"traceEvents\":[", first_, trace_.lost);
    names();
    for (std::size_t lane = 0; lane < lanes_.size(); ++lane)
      for (const auto& b : lanes_[lane].bars) bar(lane, b);
    for (const auto& e : trace_.events) event(e);
    for (const auto* e : ends_) instant(*e, "packet_end", fmt::format("\"position\":\"{:#x}\"", e->position));
    if (trace_.lost != 0) {
      next();
      add("{{\"ph\":\"i\",\"s\":\"g\",\"pid\":1,\"tid\":1,\"ts\":{},\"name\":\"{} events were lost\"}}", time(last_),
          trace_.lost);
    }
    out_ += "\n]}\n";
    return std::move(out_);
  }

 private:
  template <class... A> void add(fmt::format_string<A...> f, A&&... a) {
    fmt::format_to(std::back_inserter(out_), f, std::forward<A>(a)...);
  }
  void next() {
    out_ += first_event_ ? "\n" : ",\n";
    first_event_ = false;
  }
  /// Microseconds, as the format has them, to the nanosecond.
  static std::string micro(std::uint64_t ns) { return fmt::format("{}.{:03}", ns / 1000, ns % 1000); }
  std::string time(std::uint64_t ns) const { return micro(ns - first_); }

  /// Ends find the last beginning of their position, so that packets of an indirect buffer may have the ring's.
  void pair() {
    std::map<std::pair<std::uint32_t, std::uint64_t>, std::vector<std::size_t>> open;
    for (const auto& e : trace_.events) {
      auto& bars = lanes_[e.lane.value].bars;
      if (e.kind == Kind::packet_begin) {
        open[{e.lane.value, e.position}].push_back(bars.size());
        bars.push_back({&e, e.ns, last_, false});
      } else if (e.kind == Kind::packet_end) {
        const auto found = open.find({e.lane.value, e.position});
        if (found == open.end()) {
          ends_.push_back(&e);
          continue;
        }
        auto& b = bars[found->second.back()];
        b.to = e.ns;
        b.finished = true;
        found->second.pop_back();
        if (found->second.empty()) open.erase(found);
      }
    }
  }

  void metadata(const char* what, std::size_t pid, std::size_t tid, std::string_view name) {
    next();
    add("{{\"ph\":\"M\",\"pid\":{},\"tid\":{},\"name\":\"{}\",\"args\":{{\"name\":", pid, tid, what);
    detail::append_string(out_, name);
    out_ += "}}";
  }
  void names() {
    std::map<std::string, std::size_t> groups;
    std::size_t threads = 0;
    for (std::size_t i = 0; i < lanes_.size(); ++i) {
      const auto& lane = trace_.lanes[i];
      const auto [group, fresh] = groups.try_emplace(lane.group, groups.size() + 1);
      processes_.push_back(group->second);
      if (fresh) {
        metadata("process_name", group->second, 0, lane.group);
        next();
        add("{{\"ph\":\"M\",\"pid\":{},\"tid\":0,\"name\":\"process_sort_index\",\"args\":{{\"sort_index\":{}}}}}",
            group->second, group->second);
      }
      for (std::size_t r = 0; r < lanes_[i].rows.size(); ++r) {
        lanes_[i].threads.push_back(++threads);
        metadata("thread_name", group->second, threads, r == 0 ? lane.name : fmt::format("{} ({})", lane.name, r + 1));
        next();
        add("{{\"ph\":\"M\",\"pid\":{},\"tid\":{},\"name\":\"thread_sort_index\",\"args\":{{\"sort_index\":{}}}}}",
            group->second, threads, threads);
      }
    }
  }

  void begin(const char* phase, std::size_t lane, std::size_t row, std::uint64_t ns) {
    next();
    add("{{\"ph\":\"{}\",\"pid\":{},\"tid\":{},\"ts\":{}", phase, processes_[lane], lanes_[lane].threads[row],
        time(ns));
  }
  void bar(std::size_t lane, const Bar& b) {
    const auto& e = *b.begin;
    begin("X", lane, b.row, b.from);
    add(",\"dur\":{},\"cat\":\"packet\",\"name\":", micro(b.to - b.from));
    detail::append_string(out_, detail::packet_name(e));
    add(",\"args\":{{\"position\":\"{:#x}\",\"dwords\":{}", e.position, e.length);
    if (e.kept != 0) {
      out_ += ",\"packet\":";
      detail::append_string(out_, detail::packet_line(e));
    }
    if (!b.finished) out_ += ",\"unfinished\":true";
    out_ += "}}";
  }
  void instant(const Event& e, std::string_view name, const std::string& args) {
    begin("i", e.lane.value, 0, e.ns);
    add(",\"s\":\"t\",\"cat\":\"{}\",\"name\":", trace::name(e.kind));
    detail::append_string(out_, name);
    add(",\"args\":{{{}}}}}", args);
  }
  void event(const Event& e) {
    switch (e.kind) {
      case Kind::packet_begin:
      case Kind::packet_end: break;  // bars
      case Kind::doorbell: instant(e, "doorbell", fmt::format("\"position\":\"{:#x}\"", e.position)); break;
      case Kind::signal:
        instant(e, "signal", fmt::format("\"address\":\"{:#x}\",\"value\":\"{:#x}\"", e.address.value, e.value));
        break;
      case Kind::fault:
        instant(e, "fault: " + trace_.texts[e.text.value],
                fmt::format("\"position\":\"{:#x}\",\"address\":\"{:#x}\"", e.position, e.address.value));
        break;
      case Kind::queue_created: instant(e, "queue created", fmt::format("\"ring_bytes\":{}", e.value)); break;
      case Kind::queue_destroyed:
        instant(e, "queue destroyed", fmt::format("\"position\":\"{:#x}\"", e.position));
        break;
      case Kind::counter:
        begin("C", e.lane.value, 0, e.ns);
        out_ += ",\"name\":";
        // A counter belongs to its process: lanes of one group need names of their own.
        detail::append_string(out_, trace_.lanes[e.lane.value].name + ": " + trace_.texts[e.text.value]);
        add(",\"args\":{{\"value\":{}}}}}", e.value);
        break;
      case Kind::flow_begin:
      case Kind::flow_end: flow(e); break;
    }
  }
  void flow(const Event& e) {
    const bool starts = e.kind == Kind::flow_begin;
    const auto row = lanes_[e.lane.value].row_at(e.ns);
    // An arrow hangs on a bar: where none is running, on one of a nanosecond.
    if (!row && anchors_.insert({e.lane.value, e.ns}).second) {
      begin("X", e.lane.value, 0, e.ns);
      add(",\"dur\":0.001,\"cat\":\"flow\",\"name\":\"{}\"}}", starts ? "trigger" : "completion");
    }
    begin(starts ? "s" : "f", e.lane.value, row.value_or(0), e.ns);
    add(",\"id\":{},\"cat\":\"flow\",\"name\":\"flow\"{}}}", e.value, starts ? "" : ",\"bp\":\"e\"");
  }

  const Trace& trace_;
  std::vector<LaneRows> lanes_;
  std::vector<std::size_t> processes_{};
  std::set<std::pair<std::uint32_t, std::uint64_t>> anchors_{};
  std::vector<const Event*> ends_{};  // without a beginning
  std::uint64_t first_ = ~std::uint64_t{}, last_ = 0;
  std::string out_{};
  bool first_event_ = true;
};

}  // namespace

std::string to_perfetto(const Trace& t) { return Picture(t).text(); }

}  // namespace trace
}  // namespace v0
}  // namespace sdma
