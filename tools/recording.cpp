#include "recording.hpp"

#include "output.hpp"
#include "verb.hpp"

#include <cctype>

namespace sdma::tool {
namespace {

/// The header with another number of events.
std::string counted(std::string header, std::size_t events) {
  constexpr std::string_view kKey = "\"events\":";
  const auto at = header.find(kKey);
  if (at == std::string::npos) return header;
  const auto begin = at + kKey.size();
  auto end = begin;
  while (end < header.size() && (header[end] == ' ' || std::isdigit(static_cast<unsigned char>(header[end])))) ++end;
  return header.replace(begin, end - begin, std::to_string(events));
}

}  // namespace

Result<trace::Trace, Diagnostic> Recording::feed(std::string_view text) {
  rest_.append(text);
  std::string events;
  std::size_t count = 0, at = 0;
  for (auto end = rest_.find('\n'); end != std::string::npos; at = end + 1, end = rest_.find('\n', at)) {
    const auto line = std::string_view(rest_).substr(at, end + 1 - at);
    if (header_.empty()) {
      header_ = line;
    } else if (line.find("\"event\":") != std::string_view::npos) {
      events += line;
      ++count;
    } else {
      names_ += line;
    }
  }
  rest_.erase(0, at);
  if (header_.empty()) return trace::Trace{};
  return trace::from_json_lines(counted(header_, count) + names_ + events, file_);
}

int save_trace(const trace::Trace& t, const std::string& path) {
  Output out{path};
  out.text() = path.ends_with(".jsonl") ? trace::to_json_lines(t) : trace::to_perfetto(t);
  return out.close() ? kOk : out.exit_code();
}

}  // namespace sdma::tool
