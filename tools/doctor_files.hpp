// SPDX-License-Identifier: MIT
#pragma once
// The files of `sdma doctor`, of every form, as one snapshot. Core files stay mapped as long as it reads them.
//
//   auto all = read_files({.files = {"stuck.ring", "dmesg.txt"}});
//   if (all) diagnose(all->snapshot);
#include "input.hpp"
#include "sdma/doctor/snapshot.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace sdma::tool {

struct DoctorFiles {
  std::vector<std::string> files{};
  Form form = Form::automatic;
  std::optional<Generation> generation{};
  std::string ring{};                           ///< of a text with several rings: the one with this name
  std::optional<std::uint64_t> rptr{}, wptr{};  ///< positions of the only ring, or of the only one that has no others
  std::uint64_t base = 0;                       ///< address of the only ring
  std::optional<std::uint32_t> pid{};           ///< of a log: the page faults of this process

  bool has_positions() const noexcept { return rptr || wptr || base != 0; }
};
/// What all files say together. A file that cannot be read hides nothing of the others: its error is reported.
struct FilesRead {
  doctor::Snapshot snapshot{};
  bool unread = false;   ///< a file that was named, or a part of it, could not be read
  bool faulted = false;  ///< several inputs, of which no one has a queue, and a log reports a page fault
};
/// A diagnostic: nothing could be read.
Result<FilesRead, Diagnostic> read_files(const DoctorFiles&);

}  // namespace sdma::tool
