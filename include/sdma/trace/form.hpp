#pragma once
// Which form a trace has in a file: the file's name says it. Every option --trace of this project follows this rule.
//
//   name          form        for
//   run.jsonl     jsonl       programs: JSON Lines, which `sdma trace` and load_json_lines read back
//   run.html      html        a browser: one page, with nothing else needed
//   any other     perfetto    ui.perfetto.dev and chrome://tracing
//
//   save(recorder.snapshot(), "run.html");
//   form_of("run.json")   ==   Form::perfetto
//
// Errors: of writing, as in write.hpp. Allocates. Any thread; a Trace is a value.
#include "sdma/core/diagnostic.hpp"
#include "sdma/core/result.hpp"
#include "sdma/trace/trace.hpp"

#include <cstdint>
#include <string>
#include <string_view>

namespace sdma {
inline namespace v0 {
namespace trace {

enum class Form : std::uint8_t {
  perfetto,
  html,
  jsonl,
  text  ///< for a terminal: no name of a file means it
};

Form form_of(std::string_view path) noexcept;

/// `name` is what a page calls the trace.
std::string to_string(const Trace&, Form, std::string_view name = "trace");
/// In the form that the name means; "-": standard output, for Perfetto.
Result<void, Diagnostic> save(const Trace&, const std::string& path);

}  // namespace trace
}  // namespace v0
}  // namespace sdma
