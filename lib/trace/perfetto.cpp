// SPDX-License-Identifier: MIT
// Writes a trace in the format of Perfetto and of Chrome's trace viewer.
#include "../core/append.hpp"
#include "../core/json_string.hpp"
#include "bars.hpp"
#include "sdma/trace/write.hpp"
#include "text.hpp"

#include <map>
#include <set>
#include <utility>

namespace sdma { inline namespace v0_3 { namespace trace {
namespace {

class Picture {
 public:
  explicit Picture(const Trace& t) : trace_(t), bars_(t), threads_(t.lanes.size()) {}

  std::string text() {
    out_ = "{\"displayTimeUnit\":\"ns\",\"otherData\":{\"clock\":";
    out_ += sdma::detail::json_string(trace_.clock);
    add(",\"first_ns\":\"{}\",\"lost\":\"{}\"}},\"traceEvents\":[", bars_.first, trace_.lost);
    names();
    for (std::size_t lane = 0; lane < bars_.lanes.size(); ++lane)
      for (const auto& b : bars_.lanes[lane].bars) bar(lane, b);
    for (const auto& e : trace_.events) event(e);
    for (const auto* e : bars_.ends)
      instant(*e, trace::name(e->kind),
              e->kind == Kind::action_end ? std::string() : fmt::format("\"position\":\"{:#x}\"", e->position));
    if (trace_.lost != 0) {
      next();
      add("{{\"ph\":\"i\",\"s\":\"g\",\"pid\":1,\"tid\":1,\"ts\":{},\"name\":\"{} events were lost\"}}",
          time(bars_.last), trace_.lost);
    }
    out_ += "\n]}\n";
    return std::move(out_);
  }

 private:
  template <class... A> void add(fmt::format_string<const A&...> f, const A&... a) {
    sdma::detail::append(out_, f, a...);
  }
  void next() {
    out_ += first_event_ ? "\n" : ",\n";
    first_event_ = false;
  }
  /// Microseconds, as the format requires, with three decimals.
  static std::string micro(std::uint64_t ns) { return fmt::format("{}.{:03}", ns / 1000, ns % 1000); }
  std::string time(std::uint64_t ns) const { return micro(ns - bars_.first); }

  void metadata(const char* what, std::size_t pid, std::size_t tid, std::string_view name) {
    next();
    add("{{\"ph\":\"M\",\"pid\":{},\"tid\":{},\"name\":\"{}\",\"args\":{{\"name\":", pid, tid, what);
    out_ += sdma::detail::json_string(name);
    out_ += "}}";
  }
  void names() {
    std::map<std::string, std::size_t> groups;
    std::size_t threads = 0;
    for (std::size_t i = 0; i < bars_.lanes.size(); ++i) {
      const auto& lane = trace_.lanes[i];
      const auto [group, fresh] = groups.try_emplace(lane.group, groups.size() + 1);
      processes_.push_back(group->second);
      if (fresh) {
        metadata("process_name", group->second, 0, lane.group);
        next();
        add("{{\"ph\":\"M\",\"pid\":{},\"tid\":0,\"name\":\"process_sort_index\",\"args\":{{\"sort_index\":{}}}}}",
            group->second, group->second);
      }
      for (std::size_t r = 0; r < bars_.lanes[i].rows.size(); ++r) {
        threads_[i].push_back(++threads);
        metadata("thread_name", group->second, threads, r == 0 ? lane.name : fmt::format("{} ({})", lane.name, r + 1));
        next();
        add("{{\"ph\":\"M\",\"pid\":{},\"tid\":{},\"name\":\"thread_sort_index\",\"args\":{{\"sort_index\":{}}}}}",
            group->second, threads, threads);
      }
    }
  }

  void begin(const char* phase, std::size_t lane, std::size_t row, std::uint64_t ns) {
    next();
    add("{{\"ph\":\"{}\",\"pid\":{},\"tid\":{},\"ts\":{}", phase, processes_[lane], threads_[lane][row], time(ns));
  }
  void bar(std::size_t lane, const detail::Bar& b) {
    const auto& e = *b.begin;
    begin("X", lane, b.row, b.from);
    add(",\"dur\":{},\"cat\":\"{}\",\"name\":", micro(b.to - b.from), b.action() ? "action" : "packet");
    if (b.action()) {
      out_ += sdma::detail::json_string(detail::action_text(e, trace_));
      out_ += b.finished ? ",\"args\":{}}" : ",\"args\":{\"unfinished\":true}}";
      return;
    }
    out_ += sdma::detail::json_string(detail::packet_name(e));
    add(",\"args\":{{\"position\":\"{:#x}\",\"dwords\":{}", e.position, e.length);
    if (e.dword_count != 0) {
      out_ += ",\"packet\":";
      out_ += sdma::detail::json_string(detail::packet_line(e, trace_.names));
    }
    if (b.epoch != 0) add(",\"epoch\":\"{}\"", b.epoch);
    if (!b.finished) out_ += ",\"unfinished\":true";
    out_ += "}}";
  }
  /// ,"is":"gpu7.buf[64K]" if the address has a name.
  std::string called(GpuVa va) const {
    const auto name = trace_.names.text(va);
    return name.empty() ? "" : ",\"is\":" + sdma::detail::json_string(name);
  }
  void instant(const Event& e, std::string_view name, const std::string& args) {
    begin("i", e.lane.value, 0, e.ns);
    add(",\"s\":\"t\",\"cat\":\"{}\",\"name\":", trace::name(e.kind));
    out_ += sdma::detail::json_string(name);
    add(",\"args\":{{{}}}}}", args);
  }
  void event(const Event& e) {
    switch (e.kind) {
      case Kind::packet_begin:
      case Kind::packet_end:
      case Kind::action_begin:
      case Kind::action_end: break;  // bars
      case Kind::epoch: break;       // of bars
      case Kind::doorbell: instant(e, "doorbell", fmt::format("\"position\":\"{:#x}\"", e.position)); break;
      case Kind::signal:
        instant(
            e, "signal",
            fmt::format("\"address\":\"{:#x}\"{},\"value\":\"{:#x}\"", e.address.value, called(e.address), e.value));
        break;
      case Kind::fault:
        instant(e, "fault: " + trace_.texts[e.text.value],
                fmt::format("\"position\":\"{:#x}\",\"address\":\"{:#x}\"{}", e.position, e.address.value,
                            called(e.address)));
        break;
      case Kind::queue_created: instant(e, "queue created", fmt::format("\"ring_bytes\":{}", e.value)); break;
      case Kind::queue_destroyed:
        instant(e, "queue destroyed", fmt::format("\"position\":\"{:#x}\"", e.position));
        break;
      case Kind::counter:
        begin("C", e.lane.value, 0, e.ns);
        out_ += ",\"name\":";
        // A counter belongs to its process, so counters of different lanes in a group need different names.
        out_ += sdma::detail::json_string(trace_.lanes[e.lane.value].name + ": " + trace_.texts[e.text.value]);
        add(",\"args\":{{\"value\":{}}}}}", e.value);
        break;
      case Kind::flow_begin:
      case Kind::flow_end: flow(e); break;
    }
  }
  void flow(const Event& e) {
    const bool starts = e.kind == Kind::flow_begin;
    const auto row = bars_.lanes[e.lane.value].row_at(e.ns);
    // An arrow must be attached to a bar: if no bar is running, draw one of a nanosecond.
    if (!row && anchors_.insert({e.lane.value, e.ns}).second) {
      begin("X", e.lane.value, 0, e.ns);
      add(",\"dur\":0.001,\"cat\":\"flow\",\"name\":\"{}\"}}", starts ? "trigger" : "completion");
    }
    begin(starts ? "s" : "f", e.lane.value, row.value_or(0), e.ns);
    add(",\"id\":{},\"cat\":\"flow\",\"name\":\"flow\"{}}}", e.value, starts ? "" : ",\"bp\":\"e\"");
  }

  const Trace& trace_;
  const detail::Bars bars_;
  std::vector<std::vector<std::size_t>> threads_;  // for each lane, the threads of its rows
  std::vector<std::size_t> processes_{};
  std::set<std::pair<std::uint32_t, std::uint64_t>> anchors_{};
  std::string out_{};
  bool first_event_ = true;
};

}  // namespace

std::string to_perfetto(const Trace& t) { return Picture(t).text(); }

}}}  // namespace sdma::v0_3::trace
