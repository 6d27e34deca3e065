#include "sdma/trace/page.hpp"
#include "../core/append.hpp"
#include "../core/json_string.hpp"
#include "bars.hpp"
#include "sdma/core/file.hpp"
#include "sdma/packets/poll.hpp"
#include "text.hpp"
#include "trace/page_parts.hpp"

#include <utility>

namespace sdma::inline v0::trace {
namespace {

/// The data that page/*.js reads: {"traces":[{name, clock, lost, first, last, lanes, marks}]}. Times are in ns from the
/// first event of each trace.
class Data {
 public:
  std::string text(std::span<const PageTrace> traces) {
    out_ = "{\"traces\":[";
    for (std::size_t i = 0; i < traces.size(); ++i) {
      if (i != 0) out_ += ',';
      one(traces[i]);
    }
    out_ += "]}";
    return std::move(out_);
  }

 private:
  template <class... A> void add(fmt::format_string<const A&...> f, const A&... a) {
    sdma::detail::append(out_, f, a...);
  }
  void string(std::string_view s) { out_ += sdma::detail::json_string(s); }

  void one(const PageTrace& p) {
    const auto& t = p.trace;
    const detail::Bars bars(t);
    first_ = bars.first;
    out_ += "{\"name\":";
    string(p.name);
    out_ += ",\"clock\":";
    string(t.clock);
    add(",\"lost\":{},\"first\":\"{}\",\"last\":{},\"lanes\":[", t.lost, bars.first, bars.last - bars.first);
    for (std::size_t i = 0; i < t.lanes.size(); ++i) lane(i, t.lanes[i], bars.lanes[i]);
    out_ += "],\"marks\":[";
    bool first = true;
    for (const auto& e : t.events) mark(t, e, first);
    out_ += "]}";
  }
  void lane(std::size_t i, const Lane& l, const detail::LaneBars& b) {
    if (i != 0) out_ += ',';
    out_ += "\n{\"group\":";
    string(l.group);
    out_ += ",\"name\":";
    string(l.name);
    add(",\"rows\":{},\"bars\":[", b.rows.size());
    for (std::size_t k = 0; k < b.bars.size(); ++k) bar(b.bars[k], k == 0);
    out_ += "]}";
  }
  void bar(const detail::Bar& b, bool first) {
    const auto& e = *b.begin;
    add("{}[{},{},{},{},", first ? "\n" : ",\n", b.from - first_, b.to - first_, b.row, b.finished ? 1 : 0);
    string(detail::packet_name(e));
    out_ += ',';
    string(detail::packet_line(e));
    add(",{},{},", e.position, e.length);
    const auto v = detail::view(e);
    if (v.is<PollMem>()) add("\"{:#x}\"", decode<PollMem>(v.dwords).addr.value);
    else out_ += "null";
    out_ += ",\"";
    for (const auto d : e.packet()) add("{:08x} ", d);
    out_ += "\"]";
  }
  void mark(const Trace& t, const Event& e, bool& first) {
    if (e.kind == Kind::packet_begin || e.kind == Kind::packet_end) return;
    add("{}[{},{},\"{}\",", first ? "\n" : ",\n", e.ns - first_, e.lane.value, name(e.kind));
    first = false;
    const bool has_text = e.kind == Kind::fault || e.kind == Kind::counter;
    if (has_text) string(t.texts[e.text.value]);
    else out_ += "\"\"";
    // Positions and counts are numbers, which can be compared; addresses and signal values are strings: they may exceed
    // 2^53.
    add(",{},\"{:#x}\",\"{:#x}\",{}]", e.position, e.address.value, e.value,
        e.kind == Kind::counter || e.kind == Kind::queue_created ? e.value : 0);
  }

  std::string out_{};
  std::uint64_t first_{};
};

/// Appends JSON for a script element. HTML would end the element at "</" and change its parsing at "<!--", so this
/// escapes every "<".
void append_script_json(std::string& page, std::string_view json) {
  for (const char c : json) {
    if (c == '<') page += "\\u003c";
    else page += c;
  }
}

}  // namespace

std::string to_page(std::span<const PageTrace> traces) {
  if (traces.empty() || traces.size() > kPageTraces) return {};
  std::string page =
      "<!doctype html>\n<html lang=\"en\">\n<meta charset=\"utf-8\">\n"
      "<meta name=\"viewport\" content=\"width=device-width\">\n<title>sdma trace</title>\n<style>\n";
  page += detail::kPageStyle;
  page += "</style>\n";
  page += detail::kPageBody;
  page += "<script type=\"application/json\" id=\"data\">";
  append_script_json(page, Data().text(traces));
  page += "</script>\n<script>\n";
  page += detail::kPageScript;
  page += "</script>\n</html>\n";
  return page;
}

Result<void, Diagnostic> save_page(std::span<const PageTrace> traces, const std::string& path) {
  if (traces.empty() || traces.size() > kPageTraces) {
    return Diagnostic{.where = path,
                      .message = fmt::format("cannot make a page of {} traces", traces.size()),
                      .hint = fmt::format("a page shows one trace, or {} for comparison", kPageTraces)};
  }
  return save_file(path, to_page(traces));
}

}  // namespace sdma::inline v0::trace
