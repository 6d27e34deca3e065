// SPDX-License-Identifier: MIT
#pragma once
// What the kernel's log says about copies: page faults of GPUs, and what else the driver or a runtime has printed, such
// as a ring that timed out. sdma/doctor/read.hpp adds it to a snapshot.
//
//   [ 812.4] amdgpu 0000:c1:00.0: amdgpu: [mmhub0] no-retry page fault (src_id:0 ring:157 vmid:8 pasid:32771)
//   [ 812.4] amdgpu 0000:c1:00.0: amdgpu:  Process trainer pid 4711 thread trainer pid 4720
//   [ 812.4] amdgpu 0000:c1:00.0: amdgpu:   in page starting at address 0x00007f0901400000 from IH client 0x12 (VMC)
//   [ 812.4] amdgpu 0000:c1:00.0: amdgpu:      Faulty UTCL2 client ID: SDMA0 (0x0)
//
// The lines of one fault follow each other, but those of two GPUs may be mixed. Which line names the process depends on
// the version of the driver, and none does if that process has ended: the fault stands all the same. A fault is
// reported once for each die and each retry: the same page of the same GPU and process is one fault. ROCr's "Memory
// access fault by GPU node-1 ..." is the same fault without a process. A devcoredump has the last fault of its GPU.
// `lib/dump/driver_log.cpp` has all wordings.
//
// Whatever stands before "amdgpu" (time stamps of dmesg and journalctl, priorities, host names, containers, mail) does
// not belong to the form, and lines that mail has wrapped are joined. The newest line may be the first one
// (journalctl -r). A time is known if it counts seconds since the machine started.
//
// The log is a ring, and the driver limits the rate of its messages: a fault that is not in the log may have happened.
//
// Allocates, in proportion to the text. No shared state; any thread may call these functions. No errors.
#include "sdma/core/diagnostic.hpp"
#include "sdma/core/result.hpp"
#include "sdma/doctor/snapshot.hpp"

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace sdma { inline namespace v0 { namespace doctor {

/// A fault that the kernel's log reports.
struct LoggedFault {
  std::optional<double> seconds{};  ///< since the machine started, of the first report
  std::string device{};             ///< PCI address: "0000:c1:00.0"; of ROCr: "node-1"
  std::uint32_t process{};          ///< 0: the log does not name it
  std::string program{};            ///< its name, at most 15 characters
  std::optional<GpuVa> page{};      ///< the address of the page; nullopt: the log does not name it
  std::string client{};         ///< the unit that made the access, as the driver calls it: "SDMA0". Empty: not named
  std::optional<bool> write{};  ///< it stored; nullopt: the log does not say
  std::size_t reports = 1;      ///< how often it was reported
  friend bool operator==(const LoggedFault&, const LoggedFault&) = default;
};

/// Another line that says something about copies.
struct LoggedEvent {
  std::optional<double> seconds{};  ///< since the machine started, of the first such line
  std::string device{};             ///< PCI address, or ""
  std::string said{};               ///< the line, without what stands before its message
  std::string means{};              ///< one sentence or two
  std::size_t reports = 1;          ///< how often the log says it
};

/// All faults, in the order of the text.
std::vector<LoggedFault> page_faults(std::string_view text);

/// All other lines that say something about copies, in the order of the text.
std::vector<LoggedEvent> logged_events(std::string_view text);

/// A fault whose page is known, for a Snapshot; its `gpu` is unknown.
PageFault to_page_fault(const LoggedFault&, std::string_view from);

}}}  // namespace sdma::v0::doctor
