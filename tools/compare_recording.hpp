// SPDX-License-Identifier: MIT
#pragma once
// A recording of another tool beside the machine: which copies took longer than the machine needs for each alone.
//
//   const auto c = beside_machine(recording, machine, 10);     // slower: by more than 10 %
//   to_table(c, recording);
//   trace::to_page(pictures(c, recording));          // the copies over time, recorded and as the machine allows
//
// A copy alone is the least time: the recorded one may have shared its engine or its link, so each row has the number
// of copies that ran beside others. A copy without a size or without times is not compared, and is counted. Streams and
// pairs of places have rows; no recording that has times names the engine of a copy.
// Thread-safety: none. Errors: a Diagnostic, if no copy can be compared or the machine cannot run one.
#include "json/json.hpp"
#include "sdma/schedule/copies.hpp"
#include "sdma/simulate/machine.hpp"
#include "sdma/trace/page.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace sdma::tool {

inline constexpr std::size_t kMostKinds = 4096;  ///< pairs of a size and a link that are simulated

struct BesideMachine {
  struct Copy {
    std::size_t index{};  ///< of RecordedCopies::copies
    double measured_ns{}, alone_ns{};
    std::size_t others{};  ///< copies that ran at some of its time
    double excess() const noexcept { return alone_ns > 0 ? 100 * (measured_ns / alone_ns - 1) : 0; }  ///< in percent
  };
  struct Row {
    std::string process{}, stream{}, from{}, to{};
    std::size_t copies{}, slower{}, beside{};
    std::uint64_t bytes{};
    double measured_ns{}, alone_ns{};
  };
  std::vector<Row> rows{};
  std::vector<Copy> copies{};  ///< those that were compared
  std::size_t not_compared{};
  double slower_percent{};
  std::size_t slower() const noexcept;
};

Result<BesideMachine, Diagnostic> beside_machine(const RecordedCopies&, const MachineDescription&, double percent);
std::string to_table(const BesideMachine&, const RecordedCopies&, const MachineDescription&);
json::Json to_json(const BesideMachine&, const RecordedCopies&, const MachineDescription&);
/// The recording, and each copy with the time of the machine at the begin that was recorded.
std::vector<trace::PageTrace> pictures(const BesideMachine&, const RecordedCopies&);

}  // namespace sdma::tool
