// SPDX-License-Identifier: MIT
#pragma once
// The files of `sdma doctor`, of every form, as one snapshot. Core files stay mapped as long as it reads them.
//
//   auto s = read_files({.files = {"stuck.ring", "dmesg.txt"}});
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
/// A diagnostic that is a warning: a log has been read, and there is no queue.
Result<doctor::Snapshot, Diagnostic> read_files(const DoctorFiles&);

}  // namespace sdma::tool
