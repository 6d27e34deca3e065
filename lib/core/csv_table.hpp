// SPDX-License-Identifier: MIT
#pragma once
// A table as CSV: a first line that names the columns, and rows with as many fields. A comment begins with a "#".
// Internal.
//
//   CsvTable table("gemm.csv");
//   if (auto wrong = table.read(text, head, row)) ...            // each returns what is wrong with its fields
//   if (table.rows() == 0) return table.wrong("the table has no rows");
//
// `setting`, if there is one, gets the text of each line that begins with "#:". Reading ends with the first error,
// which has its line. Allocates; one thread.
#include "csv.hpp"
#include "sdma/core/diagnostic.hpp"

#include <fmt/format.h>

#include <functional>

namespace sdma { inline namespace v0_3 { namespace detail {

class CsvTable {
 public:
  /// What is wrong; nothing, if the message is empty.
  struct Wrong {
    Wrong(std::string what = {}, std::string how = {}) : message(std::move(what)), hint(std::move(how)) {}
    std::string message, hint;
  };
  using Take = std::function<Wrong(const std::vector<std::string>&)>;

  explicit CsvTable(std::string_view file) : file_(file) {}

  std::optional<Diagnostic> read(std::string_view text, const Take& head, const Take& row,
                                 const std::function<Wrong(std::string_view)>& setting = {}) {
    while (!text.empty()) {
      ++line_;
      const auto line = trimmed(take_line(text));
      Wrong found;
      if (setting && line.starts_with("#:")) found = setting(line.substr(2));
      else if (!line.empty() && line[0] != '#') found = fields(line, head, row);
      if (!found.message.empty()) return wrong(std::move(found.message), std::move(found.hint));
    }
    return {};
  }
  std::size_t rows() const noexcept { return rows_; }
  /// An error at the line that was read last.
  Diagnostic wrong(std::string message, std::string hint = {}) const {
    return error_at({.file = file_, .line = line_}, std::move(message), std::move(hint));
  }

 private:
  Wrong fields(std::string_view line, const Take& head, const Take& row) {
    const auto all = csv_fields(line);
    if (!all) return {"a quote is not closed, or is inside a field"};
    if (width_ == 0) return width_ = all->size(), head(*all);
    if (all->size() != width_) return fmt::format("{} fields, but {} columns", all->size(), width_);
    ++rows_;
    return row(*all);
  }

  std::string file_;
  std::size_t line_ = 0, width_ = 0, rows_ = 0;
};

}}}  // namespace sdma::v0_3::detail
