// SPDX-License-Identifier: MIT
#include "json_lines.hpp"

#include "../core/append.hpp"
#include "../core/json.hpp"
#include "sdma/core/number.hpp"
#include "sdma/trace/write.hpp"
#include "text.hpp"

#include <initializer_list>
#include <optional>

namespace sdma { inline namespace v0_3 { namespace trace {
namespace {

using sdma::detail::Json;

// Version 1 has neither ranges nor the kinds of events from action_begin on; its files can be read.
constexpr std::uint64_t kVersion = 2, kOldest = 1;

// The members of an event that its kind uses, in the order in which they are written.
enum class Member : std::uint8_t { position, value, number, address, text, dwords };
std::span<const Member> members(Kind k) {
  using enum Member;
  static constexpr Member at[] = {position}, packet[] = {position, dwords}, word[] = {address, value},
                          fault[] = {position, text, address}, count[] = {number}, counter[] = {text, number},
                          action[] = {text, value, address}, epoch[] = {position, number};
  switch (k) {
    case Kind::doorbell:
    case Kind::packet_end:
    case Kind::queue_destroyed: return at;
    case Kind::packet_begin: return packet;
    case Kind::signal: return word;
    case Kind::fault: return fault;
    case Kind::queue_created:
    case Kind::flow_begin:
    case Kind::flow_end: return count;
    case Kind::counter: return counter;
    case Kind::action_begin: return action;
    case Kind::action_end: return {};
    case Kind::epoch: return epoch;
  }
  return {};
}

void append_member(std::string& out, const Event& e, Member m, const NameTable& names) {
  switch (m) {
    case Member::position: sdma::detail::append(out, ",\"position\":{}", e.position); break;
    case Member::value: sdma::detail::append(out, ",\"value\":\"{:#x}\"", e.value); break;
    case Member::number: sdma::detail::append(out, ",\"value\":{}", e.value); break;
    case Member::address: sdma::detail::append(out, ",\"address\":\"{:#x}\"", e.address.value); break;
    case Member::text: sdma::detail::append(out, ",\"text\":{}", e.text.value); break;
    case Member::dwords:
      sdma::detail::append(out, ",\"length\":{},\"dwords\":[", e.length);
      for (const auto d : e.packet()) sdma::detail::append(out, "\"{:#010x}\",", d);
      if (e.dword_count != 0) out.pop_back();
      out += ']';
      if (e.generation != kDefaultGeneration) sdma::detail::append(out, ",\"sdma\":\"{}\"", name_of(e.generation));
      if (e.dword_count != 0) {
        out += ",\"packet\":";
        out += sdma::detail::json_string(detail::packet_line(e, names));
      }
  }
}

}  // namespace

/// Reads one file: the trace so far, the current line, and its error.
class LinesReader::State {
 public:
  explicit State(std::string_view file) : file_(file) {}

  void feed(std::string_view text) {
    while (error_.empty() && !text.empty()) {
      const auto end = text.find('\n');
      if (end == std::string_view::npos || !rest_.empty()) rest_ += text.substr(0, end);
      if (end == std::string_view::npos) return;
      line(rest_.empty() ? text.substr(0, end) : rest_);
      rest_.clear();
      text.remove_prefix(end + 1);
    }
  }
  /// The text has ended.
  void finish() {
    if (!rest_.empty()) line(rest_);
    if (error_.empty() && !begun_) fail("this file does not contain a trace", kForm);
    if (error_.empty() && trace_.events.size() < expected_)
      fail(fmt::format("the trace is cut off: it has {} of {} events", trace_.events.size(), expected_));
  }
  bool failed() const noexcept { return !error_.empty(); }
  Diagnostic error() const {
    return error_at({.file = std::string(file_), .line = std::max<decltype(number_)>(number_, 1)}, error_, hint_);
  }
  /// Removes the events; lanes and texts stay.
  Trace take() {
    Trace t{.clock = trace_.clock,
            .lanes = trace_.lanes,
            .texts = trace_.texts,
            .names = trace_.names,
            .events = std::move(trace_.events),
            .lost = trace_.lost};
    trace_.events.clear();
    return t;
  }

 private:
  void line(std::string_view text) {
    ++number_;
    if (text.empty()) return;
    auto parsed = sdma::detail::parse_json(text);
    json_ = parsed ? std::move(*parsed) : Json();
    if (!parsed) fail(std::move(parsed.error().message), begun_ ? kCut : kForm);
    else if (!json_.is_object()) fail("this line is not a JSON object", begun_ ? kCut : kForm);
    else if (!begun_) header();
    else if (json_.contains("event")) event();
    else if (json_.contains("lane")) lane();
    else if (json_.contains("text")) this->text();
    else if (json_.contains("range")) range();
    else fail("this line is neither an event, a lane, a text nor a range");
  }

  static constexpr const char* kForm = "sdma trace reads JSON Lines, as --trace=NAME.jsonl writes them";
  static constexpr const char* kCut =
      "the file is cut off or still being written; sdma trace --follow shows the complete events";

  bool fail(std::string what, const char* hint = "") {
    if (error_.empty()) error_ = std::move(what), hint_ = hint;
    return false;
  }

  /// Does the line have exactly these members? `packet` is for people and may also be present.
  bool only(std::initializer_list<std::string_view> keys) {
    for (const auto& [key, value] : json_.items()) {
      bool known = key == "packet";
      for (const auto k : keys) known = known || key == k;
      if (!known) return fail(fmt::format("this kind of line does not have a member \"{}\"", key));
    }
    return true;
  }
  std::uint64_t number(const char* key, std::uint64_t most = ~std::uint64_t{}) {
    const auto found = json_.find(key);
    if (found == json_.end() || !found->is_number_unsigned()) {
      fail(fmt::format("\"{}\" is missing or not a number", key));
      return 0;
    }
    const auto v = found->get<std::uint64_t>();
    if (v > most) fail(fmt::format("\"{}\" is {}, more than {}", key, v, most));
    return v;
  }
  std::string string(const char* key) {
    const auto found = json_.find(key);
    if (found != json_.end() && found->is_string()) return found->get<std::string>();
    fail(fmt::format("\"{}\" is missing or not a string", key));
    return {};
  }
  std::optional<std::uint64_t> hex(const Json& j) {
    if (!j.is_string()) return {};
    const auto& s = j.get_ref<const std::string&>();
    return s.starts_with("0x") ? parse_count(s) : std::nullopt;
  }
  std::uint64_t hex(const char* key) {
    const auto found = json_.find(key);
    const auto v = found == json_.end() ? std::nullopt : hex(*found);
    if (!v) fail(fmt::format("\"{}\" is missing or not \"0x...\"", key));
    return v.value_or(0);
  }

  void header() {
    if (!json_.contains("sdma_trace")) {
      fail("this line does not begin a trace");
      hint_ = "the first line of a trace is {\"sdma_trace\":2,...}";
      return;
    }
    if (const auto v = number("sdma_trace"); v < kOldest || v > kVersion) {
      fail(fmt::format("this trace has version {}", v));
      hint_ = fmt::format("this program reads versions {} to {}", kOldest, kVersion);
      return;
    }
    only({"sdma_trace", "clock", "events", "lost"});
    trace_.clock = string("clock");
    expected_ = number("events");
    trace_.lost = number("lost");
    begun_ = true;
  }
  void lane() {
    only({"lane", "group", "name"});
    if (number("lane") != trace_.lanes.size()) fail("lanes are numbered from 0, in order");
    trace_.lanes.push_back({string("group"), string("name")});
  }
  void text() {
    only({"text", "is"});
    if (number("text") != trace_.texts.size()) fail("texts are numbered from 0, in order");
    trace_.texts.push_back(string("is"));
  }
  void range() {
    only({"range", "address", "bytes", "is"});
    if (number("range") != trace_.names.ranges().size()) fail("ranges are numbered from 0, in order");
    const GpuVa va{hex("address")};
    const auto bytes = number("bytes");
    if (!trace_.names.add(va, bytes, string("is")))
      fail("this range is empty, has no name, ends beyond 2^64, or has a name already");
  }
  void event() {
    Event e;
    const auto what = string("event");
    bool found = false;
    for (std::size_t k = 0; k < kKinds; ++k)
      if (name(static_cast<Kind>(k)) == what) {
        e.kind = static_cast<Kind>(k);
        found = true;
      }
    if (!found) {
      fail(fmt::format("\"{}\" is not a kind of event", what));
      return;
    }
    e.ns = number("ns");
    if (e.ns < last_ns_) fail("this event is earlier than the previous one");
    last_ns_ = e.ns;
    e.lane.value = index("lane", trace_.lanes.size());
    std::size_t used = 3;
    for (const auto m : members(e.kind)) used += member(e, m);
    if (used + json_.contains("packet") != json_.size())
      fail(fmt::format("this line has members that a {} does not have", what));
    trace_.events.push_back(e);
  }
  std::uint32_t index(const char* key, std::size_t count) {
    const auto v = number(key);
    if (v >= count) fail(fmt::format("\"{}\" {} was not declared", key, v));
    return static_cast<std::uint32_t>(v);
  }
  /// Reads a member into `e`, and returns how many members of the line it used.
  std::size_t member(Event& e, Member m) {
    switch (m) {
      case Member::position: e.position = number("position"); return 1;
      case Member::value: e.value = hex("value"); return 1;
      case Member::number: e.value = number("value"); return 1;
      case Member::address: e.address = GpuVa{hex("address")}; return 1;
      case Member::text: e.text.value = index("text", trace_.texts.size()); return 1;
      case Member::dwords: break;
    }
    e.length = static_cast<std::uint32_t>(number("length", ~std::uint32_t{}));
    const auto found = json_.find("dwords");
    if (found == json_.end() || !found->is_array() || found->size() > Event::kDwords || found->size() > e.length) {
      fail(fmt::format("\"dwords\" must be a list of at most {} dwords, and not longer than \"length\"",
                       Event::kDwords));
      return 2;
    }
    for (const auto& j : *found) {
      const auto d = hex(j);
      if (!d || *d > ~std::uint32_t{}) {
        fail("\"dwords\" has an item that is not a 32-bit \"0x...\"");
        break;
      }
      e.dwords[e.dword_count++] = static_cast<std::uint32_t>(*d);
    }
    if (!json_.contains("sdma")) return 2;
    const auto name = string("sdma");
    if (const auto g = generation_of(name)) e.generation = *g;
    else fail(fmt::format("\"sdma\" is \"{}\", which is not a version of the engines", name));
    return 3;
  }

  std::string rest_{}, file_;  ///< rest_: a line that has no end yet
  std::size_t number_ = 0;
  Json json_{};
  Trace trace_{};
  std::uint64_t expected_ = 0, last_ns_ = 0;
  bool begun_ = false;
  std::string error_{}, hint_{};
};

LinesReader::LinesReader(std::string_view file) : state_(std::make_unique<State>(file)) {}
LinesReader::~LinesReader() = default;

Result<Trace, Diagnostic> LinesReader::feed(std::string_view text) {
  state_->feed(text);
  if (state_->failed()) return state_->error();
  return state_->take();
}

Result<Trace, Diagnostic> from_json_lines(std::string_view text, std::string_view file) {
  LinesReader::State s(file);
  s.feed(text);
  s.finish();
  if (s.failed()) return s.error();
  return s.take();
}

namespace detail {

void append_header(std::string& out, std::string_view clock, std::uint64_t events, std::uint64_t lost, int width) {
  sdma::detail::append(out, "{{\"sdma_trace\":{},\"clock\":", kVersion);
  out += sdma::detail::json_string(clock);
  sdma::detail::append(out, ",\"events\":{:>{}},\"lost\":{:>{}}}}\n", events, width, lost, width);
}

void append_lane(std::string& out, std::size_t number, const Lane& lane) {
  sdma::detail::append(out, "{{\"lane\":{},\"group\":", number);
  out += sdma::detail::json_string(lane.group);
  out += ",\"name\":";
  out += sdma::detail::json_string(lane.name);
  out += "}\n";
}

void append_text(std::string& out, std::size_t number, std::string_view text) {
  sdma::detail::append(out, "{{\"text\":{},\"is\":", number);
  out += sdma::detail::json_string(text);
  out += "}\n";
}

void append_range(std::string& out, std::size_t number, const NameTable::Range& r) {
  sdma::detail::append(out, "{{\"range\":{},\"address\":\"{:#x}\",\"bytes\":{},\"is\":", number, r.va.value, r.bytes);
  out += sdma::detail::json_string(r.name);
  out += "}\n";
}

void append_event(std::string& out, const Event& e, const NameTable& names) {
  sdma::detail::append(out, "{{\"ns\":{},\"lane\":{},\"event\":\"{}\"", e.ns, e.lane.value, name(e.kind));
  for (const auto m : members(e.kind)) append_member(out, e, m, names);
  out += "}\n";
}

}  // namespace detail

std::string to_json_lines(const Trace& t) {
  std::string out;
  detail::append_header(out, t.clock, t.events.size(), t.lost);
  for (std::size_t i = 0; i < t.lanes.size(); ++i) detail::append_lane(out, i, t.lanes[i]);
  for (std::size_t i = 0; i < t.texts.size(); ++i) detail::append_text(out, i, t.texts[i]);
  const auto& ranges = t.names.ranges();
  for (std::size_t i = 0; i < ranges.size(); ++i) detail::append_range(out, i, ranges[i]);
  for (const auto& e : t.events) detail::append_event(out, e, t.names);
  return out;
}

}}}  // namespace sdma::v0_3::trace
