// SPDX-License-Identifier: MIT
#pragma once
// The form of a trace file, which the file's name selects. Every option --trace of this project follows this rule.
//
//   name          form        opened by
//   run.jsonl     jsonl       programs: JSON Lines, which `sdma trace` and load_json_lines read back
//   run.html      html        a browser: one page that needs nothing else
//   any other     perfetto    ui.perfetto.dev and chrome://tracing
//
//   save(recorder.snapshot(), "run.html");
//   form_of("run.json")   ==   Form::perfetto
//
// Errors: as in write.hpp. The functions allocate; any thread may call them.
#include "sdma/core/diagnostic.hpp"
#include "sdma/core/result.hpp"
#include "sdma/trace/trace.hpp"

#include <cstdint>
#include <string>
#include <string_view>

namespace sdma::inline v0::trace {

/// `perfetto`: JSON for ui.perfetto.dev; `html`: a page for a browser; `jsonl`: JSON Lines, one object per line.
enum class Form : std::uint8_t {
  perfetto,
  html,
  jsonl,
  text  ///< for a terminal; no file name selects it
};

Form form_of(std::string_view path) noexcept;

/// `name`: the title of the trace on a page.
std::string to_string(const Trace&, Form, std::string_view name = "trace");
/// Writes a file in the form that its name selects; "-" is standard output, in Perfetto's form.
Result<void, Diagnostic> save(const Trace&, const std::string& path);

}  // namespace sdma::inline v0::trace
