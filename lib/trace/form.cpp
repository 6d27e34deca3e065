// SPDX-License-Identifier: MIT
// Saves a trace in the form that the name of its file asks for, and loads traces.

#include "page_data.hpp"
#include "records.hpp"
#include "sdma/core/file.hpp"
#include "sdma/trace/write.hpp"

namespace sdma { inline namespace v0_3 { namespace trace {

Form form_of(std::string_view path) noexcept {
  return path.ends_with(".jsonl") ? Form::jsonl : path.ends_with(".html") ? Form::html : Form::perfetto;
}

std::string to_string(const Trace& t, Form form, std::string_view name) {
  switch (form) {
    case Form::perfetto: return to_perfetto(t);
    case Form::html: {
      std::string page;
      const detail::PageSource one{name, t};
      detail::write_page({&one, 1}, [&](std::string_view piece) { return page += piece, true; });
      return page;
    }
    case Form::jsonl: return to_json_lines(t);
    case Form::text: return to_text(t);
  }
  return {};
}

Result<void, Diagnostic> save(const Trace& t, const std::string& path) {
  if (form_of(path) != Form::html) return save_file(path, to_string(t, form_of(path), path));
  const detail::PageSource one{path, t};
  return detail::save_page({&one, 1}, path);
}
Result<Trace, Diagnostic> load_json_lines(const std::string& path) {
  const auto text = read_file(path);
  if (!text) return text.error();
  const std::string name = path == "-" ? "stdin" : path;
  return detail::is_records(*text) ? detail::from_records(*text, name) : from_json_lines(*text, name);
}

}}}  // namespace sdma::v0_3::trace
