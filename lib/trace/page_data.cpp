// SPDX-License-Identifier: MIT
#include "page_data.hpp"

#include "../core/append.hpp"
#include "../core/base64.hpp"
#include "../core/json_string.hpp"
#include "bars.hpp"
#include "shapes.hpp"

#include <algorithm>
#include <map>
#include <memory>
#include <unordered_map>
#include <utility>
#include <vector>

namespace sdma { inline namespace v0_3 { namespace trace::detail {
namespace {

enum class Table : std::uint8_t { packets, marks, words, signals, counters, flows };

void append_varint(std::string& out, std::uint64_t v) {
  for (; v >= 128; v >>= 7) out += static_cast<char>((v & 127) | 128);
  out += static_cast<char>(v);
}
void append_signed(std::string& out, std::uint64_t v) {
  append_varint(out, v * 2 ^ (static_cast<std::int64_t>(v) < 0 ? ~std::uint64_t{0} : 0));
}
void append_signed32(std::string& out, std::uint32_t v) {
  append_varint(out, v * 2 ^ (static_cast<std::int32_t>(v) < 0 ? ~std::uint32_t{0} : 0));
}
std::uint64_t moved(std::uint64_t& from, std::uint64_t to) { return to - std::exchange(from, to); }

/// JSON for a script element. HTML would end it at "</" and change its parsing at "<!--", so this escapes every "<".
void append_script_json(std::string& page, std::string_view json) {
  for (const char c : json) {
    if (c == '<') page += "\\u003c";
    else page += c;
  }
}

struct Flow {
  const Event* begin{};
  const Event* end{};
};

/// The events of a trace, by table.
struct EventTables {
  explicit EventTables(const Trace& t) : trace(t), bars(t), marks(t.lanes.size()), counters(t.lanes.size()) {
    std::unordered_map<std::uint64_t, Flow> open;
    for (const auto& e : t.events) {
      if (e.kind == Kind::packet_begin || e.kind == Kind::packet_end || e.kind == Kind::action_begin ||
          e.kind == Kind::action_end || e.kind == Kind::epoch)
        continue;
      if (e.kind == Kind::counter) counters[e.lane.value][e.text.value].push_back(&e);
      else if (e.kind == Kind::flow_begin) open[e.value].begin = &e;
      else if (e.kind == Kind::flow_end) open[e.value].end = &e;
      else marks[e.lane.value].push_back(&e);
      if (e.kind == Kind::signal) signals.push_back(&e), words.push_back(e.address.value);
    }
    for (const auto& [number, flow] : open)
      if (flow.begin && flow.end) flows.push_back(flow);
    // In the order of the events, which are in one array.
    std::sort(flows.begin(), flows.end(), [](const Flow& a, const Flow& b) { return a.begin < b.begin; });
    std::sort(words.begin(), words.end());
    words.erase(std::unique(words.begin(), words.end()), words.end());
  }

  const Trace& trace;
  Bars bars;
  std::vector<std::vector<const Event*>> marks;
  std::vector<std::map<std::uint32_t, std::vector<const Event*>>> counters;  // by lane, then by text
  std::vector<const Event*> signals{};
  std::vector<std::uint64_t> words{};
  std::vector<Flow> flows{};
};

class DataWriter {
 public:
  explicit DataWriter(const PageSink& out) : out_(out) {}

  bool write(std::span<const PageSource> sources, std::string_view decoder) {
    std::vector<std::unique_ptr<EventTables>> all;
    for (const auto& s : sources) all.push_back(std::make_unique<EventTables>(s.trace));
    std::string text = "{\"traces\":[";
    for (std::size_t i = 0; i < all.size(); ++i) {
      if (i != 0) text += ',';
      header(text, sources[i].name, *all[i]);
    }
    json("data", text + "]}");
    emit("<script>\n");
    emit(decoder);
    emit("</script>\n");
    for (trace_ = 0; good_ && trace_ < all.size(); ++trace_) tables(*all[trace_]);
    json("shapes", shapes_.json());
    return good_;
  }

 private:
  void emit(std::string_view piece) { good_ = good_ && out_(piece); }
  void json(std::string_view id, std::string_view text) {
    std::string element;
    sdma::detail::append(element, "<script type=\"application/json\" id=\"{}\">", id);
    append_script_json(element, text);
    emit(element + "</script>\n");
  }

  static void header(std::string& out, std::string_view name, const EventTables& t) {
    const auto& bars = t.bars;
    out += "{\"name\":";
    out += sdma::detail::json_string(name);
    out += ",\"clock\":";
    out += sdma::detail::json_string(t.trace.clock);
    sdma::detail::append(out,
                         ",\"lost\":{},\"first\":\"{}\",\"last\":{},\"start\":{},\"end\":{},\"words\":{},\"signals\":{}"
                         ",\"flows\":{},\"lanes\":[",
                         t.trace.lost, bars.first, bars.last - bars.first, bars.start - bars.first,
                         bars.end - bars.first, t.words.size(), t.signals.size(), t.flows.size());
    for (std::size_t i = 0; i < bars.lanes.size(); ++i) {
      const auto& marks = t.marks[i];
      const auto bells =
          std::count_if(marks.begin(), marks.end(), [](const auto* e) { return e->kind == Kind::doorbell; });
      out += i == 0 ? "\n{\"group\":" : ",\n{\"group\":";
      out += sdma::detail::json_string(t.trace.lanes[i].group);
      out += ",\"name\":";
      out += sdma::detail::json_string(t.trace.lanes[i].name);
      const auto& all = bars.lanes[i].bars;
      const auto actions = std::count_if(all.begin(), all.end(), [](const Bar& b) { return b.action(); });
      sdma::detail::append(out, ",\"rows\":{},\"packets\":{},\"actions\":{},\"marks\":{},\"bells\":{},\"counters\":[",
                           bars.lanes[i].rows.size(), all.size(), actions, marks.size(), bells);
      bool first = true;
      for (const auto& [text, events] : t.counters[i]) {
        out += std::exchange(first, false) ? "{\"name\":" : ",{\"name\":";
        out += sdma::detail::json_string(t.trace.texts[text]);
        sdma::detail::append(out, ",\"count\":{}}}", events.size());
      }
      out += "]}";
    }
    out += "]}";
  }

  void tables(const EventTables& t) {
    source_ = &t.trace;
    first_ = t.bars.first;
    for (std::size_t i = 0; i < t.bars.lanes.size(); ++i) {
      chunks(Table::packets, i, 0, std::span(t.bars.lanes[i].bars), [&](auto part) { packets(part); });
      chunks(Table::marks, i, 0, std::span(t.marks[i]), [&](auto part) { marks(part); });
      std::size_t counter = 0;
      for (const auto& [text, events] : t.counters[i])
        chunks(Table::counters, i, counter++, std::span(events), [&](auto part) { counters(part); });
    }
    chunks(Table::words, 0, 0, std::span(t.words), [&](auto part) { words(part); });
    chunks(Table::signals, 0, 0, std::span(t.signals), [&](auto part) { signals(part, t.words); });
    chunks(Table::flows, 0, 0, std::span(t.flows), [&](auto part) { flows(part); });
  }

  /// Writes a table in chunks: `fill` appends the records of its part to bytes_.
  template <class Record, class Fill>
  void chunks(Table table, std::size_t lane, std::size_t counter, std::span<Record> all, const Fill& fill) {
    for (; good_ && !all.empty(); all = all.subspan(std::min(kChunk, all.size()))) {
      const auto part = all.first(std::min(kChunk, all.size()));
      bytes_.clear();
      for (const auto v : {static_cast<std::size_t>(table), trace_, lane, counter, part.size()})
        append_varint(bytes_, v);
      fill(part);
      element_ = "<script type=\"text/plain\" class=\"chunk\">";
      sdma::detail::append_base64(element_, bytes_);
      element_ += "</script><script>take()</script>\n";
      emit(element_);
    }
  }

  struct Words {
    std::uint32_t segment = 0;  // the number of the segment to which they belong; 0: none
    std::vector<std::uint32_t> all{};
  };
  void packets(std::span<const Bar> part) {
    std::string times, rest, lengths, segment;
    std::uint64_t before = first_, position = 0;
    for (std::size_t i = 0; i < part.size(); ++i) {
      const auto& b = part[i];
      const auto p = shapes_.add(b, *source_);
      append_varint(times, moved(before, b.from));
      append_varint(times, b.to - b.from);
      append_varint(times, std::min(b.row, kPageRows - 1) << 1 | (b.finished ? 1 : 0));
      append_varint(times, p.shape);
      if (i % kSegment == 0) ++segment_, position = 0;
      append_signed(segment, b.begin->position - position);
      position = b.begin->position + std::uint64_t{b.begin->length} * 4;
      words(segment, p);
      if (i % kSegment == kSegment - 1 || i + 1 == part.size()) {
        append_varint(lengths, segment.size());
        rest += std::exchange(segment, {});
      }
    }
    append_varint(bytes_, times.size());
    bytes_ += times;
    bytes_ += lengths;
    bytes_ += rest;
  }
  void words(std::string& out, const Shapes::Packet& p) {
    if (p.shape >= last_words_.size()) last_words_.resize(p.shape + 1);
    auto& last = last_words_[p.shape];
    if (std::exchange(last.segment, segment_) != segment_) last.all.assign(p.words.size(), 0);
    std::uint32_t differ = 0;
    for (std::size_t k = 0; k < p.words.size(); ++k)
      if (p.words[k] != last.all[k]) differ |= std::uint32_t{1} << k;
    append_varint(out, differ);
    for (std::size_t k = 0; k < p.words.size(); ++k)
      if (((differ >> k) & 1) != 0) append_signed32(out, p.words[k] - std::exchange(last.all[k], p.words[k]));
  }
  void marks(std::span<const Event* const> part) {
    std::uint64_t before = first_, position = 0;
    for (const auto* e : part) {
      append_varint(bytes_, moved(before, e->ns));
      append_varint(bytes_, static_cast<std::uint64_t>(e->kind));
      if (e->kind == Kind::doorbell) append_signed(bytes_, moved(position, e->position));
    }
  }
  void halves(std::uint64_t& before, std::uint64_t v) {
    const auto old = std::exchange(before, v);
    append_signed32(bytes_, static_cast<std::uint32_t>(v) - static_cast<std::uint32_t>(old));
    append_signed32(bytes_, static_cast<std::uint32_t>(v >> 32) - static_cast<std::uint32_t>(old >> 32));
  }
  void words(std::span<const std::uint64_t> part) {
    std::uint64_t before = 0;
    for (const auto address : part) halves(before, address);
  }
  void signals(std::span<const Event* const> part, const std::vector<std::uint64_t>& words) {
    std::uint64_t before = first_, value = 0;
    for (const auto* e : part) {
      append_varint(bytes_, moved(before, e->ns));
      append_varint(bytes_, e->lane.value);
      const auto word = std::lower_bound(words.begin(), words.end(), e->address.value);
      append_varint(bytes_, static_cast<std::uint64_t>(word - words.begin()));
      halves(value, e->value);
    }
  }
  void counters(std::span<const Event* const> part) {
    std::uint64_t before = first_, value = 0;
    for (const auto* e : part) {
      append_varint(bytes_, moved(before, e->ns));
      append_signed(bytes_, moved(value, e->value));
    }
  }
  void flows(std::span<const Flow> part) {
    std::uint64_t before = first_;
    for (const auto& f : part) {
      append_varint(bytes_, moved(before, f.begin->ns));
      append_varint(bytes_, f.begin->lane.value);
      append_signed(bytes_, f.end->ns - f.begin->ns);
      append_varint(bytes_, f.end->lane.value);
    }
  }

  const PageSink& out_;
  bool good_ = true;
  Shapes shapes_{};
  std::vector<Words> last_words_{};  // by shape
  std::uint32_t segment_ = 0;
  const Trace* source_{};  // the trace whose tables are written
  std::size_t trace_ = 0;
  std::uint64_t first_ = 0;
  std::string bytes_{}, element_{};
};

}  // namespace

bool write_data(std::span<const PageSource> sources, std::string_view decoder, const PageSink& out) {
  return DataWriter(out).write(sources, decoder);
}

}}}  // namespace sdma::v0_3::trace::detail
