// SPDX-License-Identifier: MIT
#pragma once
// The lines of a schedule's text while hints change them. Each line remembers where it came from. Internal.
//
//   SourceLines text{source};
//   text.insert(text.id(18), "poll_mem addr=gpu1.full func=ge reference=r+1");   before line 18
//   text.source()                                                            what to check
//   text.edits()                                                             what has changed, line by line
//
// An id is of a line, and stays while lines are inserted or removed; 0 is of none. Lines are counted from 1.
#include "sdma/check/check.hpp"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace sdma { inline namespace v0_3 { namespace check_detail {

using LineId = std::uint32_t;

class SourceLines {
 public:
  explicit SourceLines(std::string_view source);

  /// The line with this number in source(); 0 if there is none.
  LineId id(std::size_t number) const noexcept;
  /// Without indentation and comment; "" if there is no such line.
  std::string text(LineId) const;
  /// Its first word, after a `when CONDITION:`.
  std::string keyword(LineId) const;
  /// All lines, in order.
  std::vector<LineId> all() const;

  /// The line that begins the innermost block around a line, and that which ends it; 0 at the top level.
  struct Block {
    LineId begin{}, end{};
  };
  Block block(LineId) const;
  /// The queue, host or kernel around a line.
  Block agent(LineId) const;
  /// The lines between the beginning and the end of a block, with those of blocks inside.
  std::vector<LineId> inside(Block) const;
  LineId next(LineId) const;

  /// Inserts before a line, with its indentation; before an `end`, with that of the lines above it.
  void insert(LineId before, std::string text);
  void replace(LineId, std::string text);
  void remove(LineId);

  std::string source() const;
  std::vector<CheckEdit> edits() const;

 private:
  struct Line {
    LineId id{};
    std::uint32_t number{};  ///< in the text that the constructor has read; 0: inserted
    std::string text{};
    bool changed = false;
  };
  std::size_t find(LineId) const noexcept;

  std::vector<Line> lines_;
  std::uint32_t numbers_ = 0;
  LineId last_ = 0;
};

/// The value of a field, "r+1" of "value=r+1"; "" if there is none.
std::string field_of(std::string_view line, std::string_view name);
/// The line with another value of this field.
std::string with_field(std::string_view line, std::string_view name, std::string_view value);

}}}  // namespace sdma::v0_3::check_detail
