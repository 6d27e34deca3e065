// SPDX-License-Identifier: MIT
#pragma once
// Names of address ranges: what the buffers and signals of a program are
// called. Everything that prints addresses for people uses this table.
//
//   NameTable names;
//   names.add(GpuVa{0x800000000000}, 1 << 20, "gpu7.buf");
//   names.text(GpuVa{0x800000010000})   ==  "gpu7.buf[64K]"
//   names.text(GpuVa{0x10})             ==  ""                            // no range contains it
//
//   auto t = parse_names(text, "names.txt");                              // the ranges that a file lists
//
// Ranges may overlap, because a signal may be a word in a buffer, and a buffer a part of another one. The smallest
// range that contains an address names it; of equally large ones, the one that was added first.
//
// A file of names has one range per line, in the notation that schedules use. '#' begins a comment; empty lines are
// skipped. The ranges of a file must not overlap:
//
//   # FIRST..+SIZE or FIRST..END, then the name
//   0x7f5c00000000..+64M             weights
//   0x7f5c04000000..0x7f5c04001000   done_flags        # 4K
//
// A name is one word, without blanks and without any of # [ ] =, and
// does not begin with a digit. `print_names` writes such a file.
//
// Threads: any number may read a table; a change needs exclusive access. Allocates. `find` takes logarithmic time.
// Errors: parse_names returns a Diagnostic with the file's name and the line.
#include "sdma/core/diagnostic.hpp"
#include "sdma/core/result.hpp"
#include "sdma/core/units.hpp"

#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace sdma { inline namespace v0_3 {

class NameTable {
 public:
  /// One named range of addresses.
  struct Range {
    GpuVa va{};             ///< the first address
    std::uint64_t bytes{};  ///< its length in bytes
    std::string name{};     ///< what `text` calls it
    friend bool operator==(const Range&, const Range&) = default;
  };

  /// Returns false, and adds nothing, if the range or the name is empty, if the range ends beyond 2^64, or if the table
  /// has a name for exactly this range.
  bool add(GpuVa va, std::uint64_t bytes, std::string_view name);
  void add(const NameTable&);

  /// The range that names this address; null if none does.
  const Range* find(GpuVa) const noexcept;
  /// "gpu7.buf" or "gpu7.buf[64K]"; "" if no range contains the address.
  std::string text(GpuVa) const;
  /// In the order in which they were added.
  const std::vector<Range>& ranges() const noexcept { return ranges_; }
  /// Does it have no range?
  bool empty() const noexcept { return ranges_.empty(); }
  friend bool operator==(const NameTable& a, const NameTable& b) { return a.ranges_ == b.ranges_; }

 private:
  /// Addresses that one range names, from the key to `last`.
  struct Piece {
    std::uint64_t last{};
    std::size_t range{};
  };
  std::vector<Range> ranges_{};
  std::set<std::pair<std::uint64_t, std::uint64_t>> extents_{};  ///< first address and bytes of each range
  std::map<std::uint64_t, Piece> pieces_{};
};

/// `file`: the name of the text in errors.
Result<NameTable, Diagnostic> parse_names(std::string_view text, std::string_view file = "names");
/// A file that parse_names reads, if no ranges overlap and is_range_name holds for each name: for a program that names
/// its buffers for `sdma dis --names`.
std::string print_names(const NameTable&);
/// Is this text a name, as files of names require?
bool is_range_name(std::string_view) noexcept;

}}  // namespace sdma::v0_3
