// SPDX-License-Identifier: MIT
#include "sdma/trace/page.hpp"
#include "page_data.hpp"
#include "sdma/core/file.hpp"
#include "trace/page_parts.hpp"

#include <fmt/format.h>

#include <vector>

namespace sdma { inline namespace v0_3 { namespace trace {
namespace detail {

void write_page(std::span<const PageSource> traces, const PageSink& out) {
  if (traces.empty() || traces.size() > kPageTraces) return;
  std::string head =
      "<!doctype html>\n<html lang=\"en\">\n<meta charset=\"utf-8\">\n"
      "<meta name=\"viewport\" content=\"width=device-width\">\n<title>sdma trace</title>\n<style>\n";
  head += kPageColours;
  head += kPageStyle;
  head += "</style>\n";
  head += kPageBody;
  if (!out(head) || !write_data(traces, kPageChunks, out)) return;
  std::string tail = "<script>\n";
  tail += kPageScript;
  out(tail + "</script>\n</html>\n");
}

Result<void, Diagnostic> save_page(std::span<const PageSource> traces, const std::string& path) {
  FileWriter file(path);
  Result<void, Diagnostic> result{};
  write_page(traces, [&](std::string_view piece) {
    result = file.write(piece);
    return bool(result);
  });
  return result ? file.close() : result;
}

}  // namespace detail

namespace {

std::vector<detail::PageSource> sources(std::span<const PageTrace> traces) {
  std::vector<detail::PageSource> all;
  for (const auto& t : traces) all.push_back({t.name, t.trace});
  return all;
}

}  // namespace

std::string to_page(std::span<const PageTrace> traces) {
  std::string page;
  detail::write_page(sources(traces), [&](std::string_view piece) { return page += piece, true; });
  return page;
}

Result<void, Diagnostic> save_page(std::span<const PageTrace> traces, const std::string& path) {
  if (traces.empty() || traces.size() > kPageTraces) {
    return Diagnostic{.where = path,
                      .message = fmt::format("cannot make a page of {} traces", traces.size()),
                      .hint = fmt::format("a page shows one trace, or {} for comparison", kPageTraces)};
  }
  return detail::save_page(sources(traces), path);
}

}}}  // namespace sdma::v0_3::trace
