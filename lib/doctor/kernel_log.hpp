// SPDX-License-Identifier: MIT
#pragma once
// What a log reports about copies: page faults of GPUs, and what else the driver or a runtime has printed, such as that
// a ring timed out. sdma/doctor/read.hpp adds it to a snapshot.
//
//   [ 812.4] amdgpu 0000:c1:00.0: amdgpu: [mmhub0] no-retry page fault (src_id:0 ring:157 vmid:8 pasid:32771)
//   [ 812.4] amdgpu 0000:c1:00.0: amdgpu:  Process trainer pid 4711 thread trainer pid 4720
//   [ 812.4] amdgpu 0000:c1:00.0: amdgpu:   in page starting at address 0x00007f0901400000 from IH client 0x12 (VMC)
//   [ 812.4] amdgpu 0000:c1:00.0: amdgpu:      Faulty UTCL2 client ID: SDMA0 (0x0)
//
//   const LogFacts facts = facts_of(text, "dmesg.txt");
//   for (const PageFault& f : facts.faults) use(f.page, f.process, f.seconds);
//
// Lines are joined to one fact by these rules, each with a bound:
//
//   a line of a fault        to the last fault of the same GPU that lacks it, within kOwnSeconds; without times, within
//                            kOwnRecords records. The lines of two GPUs may be mixed
//   a line of a process      to what it follows on its GPU, a fault or the timeout of a ring, with the same bound
//   a process by its VMID    from another fault of the same GPU with the same VMID and PASID, with the same bound
//   the same fault           page, GPU and process are the same: it is reported for each die and each retry
//
// Nothing is joined across machines, or across the starts of one: lib/dump/log_sources.hpp says what shows them.
//
// A page without its first line is a fault of its own: the log is a ring, and may begin anywhere. ROCr's "Memory access
// fault by GPU node-1 ..." is the same fault without a process. A devcoredump has the last fault of its GPU. The driver
// limits the rate of its messages: a fault that is not in the log may have happened. lib/dump/message_table.cpp has all
// wordings, and lib/dump/log.hpp says what a log is.
//
// Allocates, in proportion to the text. No shared state; any thread may call these functions. No errors.
#include "sdma/doctor/snapshot.hpp"

#include <string>
#include <string_view>
#include <vector>

namespace sdma { inline namespace v0_3 { namespace doctor {

/// Lines of one fact are as close as this in time, or, without times, in the log.
inline constexpr double kOwnSeconds = 1;
inline constexpr std::size_t kOwnRecords = 32;

struct LogFacts {
  bool is_log = false;                 ///< false: the text is something else, and the rest is empty
  std::string what{};                  ///< "a kernel's log of 15 lines, from 8123.402 to 8123.405"
  std::vector<std::string> sources{};  ///< of a log of several machines or starts: each, in words
  std::string form{};                  ///< "dmesg", "JSON"
  bool of_kernel = false;              ///< it has lines of the kernel
  bool known = false;                  ///< it has a line that this tool knows
  bool devcoredump = false;            ///< it is a dump of the driver, which has lines of a log
  std::vector<PageFault> faults{};     ///< those whose page is known, in the order of time
  std::size_t without_page = 0;        ///< how many others there are
  std::vector<LogEvent> events{};      ///< in the order of time, each once
};
LogFacts facts_of(std::string_view text, std::string_view name);

}}}  // namespace sdma::v0_3::doctor
