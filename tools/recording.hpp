#pragma once
// A trace that is still being written: its lines in pieces, as they come.
//
//   Recording r("run.jsonl");
//   while (read_more(text)) {
//     const auto t = r.feed(text);            // the events that are whole by now and were not told before
//     if (!t) return report(t.error()), kInput;
//   }
//
// How many events the header counts does not matter, and neither does a last line without an end.
#include "sdma/trace/write.hpp"

#include <string>
#include <string_view>

namespace sdma::tool {

class Recording {
 public:
  explicit Recording(std::string file) : file_(std::move(file)) {}
  Result<trace::Trace, Diagnostic> feed(std::string_view text);

 private:
  std::string file_, header_{}, names_{}, rest_{};
};

/// Writes JSON Lines to a NAME.jsonl, and what ui.perfetto.dev draws to any other. Returns an exit code; an error has been
/// reported.
int save_trace(const trace::Trace&, const std::string& path);

}  // namespace sdma::tool
