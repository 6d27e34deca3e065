// SPDX-License-Identifier: MIT
#pragma once
// Page faults of GPUs in the kernel's log: which process, which page,
// which GPU. Neither a queue's state nor a core file says this.
//
//   auto log = kernel_log();                                     // of this machine: as dmesg reads it
//   for (const auto& f : page_faults(*log)) printf("%u %#lx\n", f.process, f.page ? f.page->value : 0);
//   add_kernel_log(snapshot, text, "dmesg.txt");                 // the faults of a file, for `diagnose`
//
//   [ 812.4] amdgpu 0000:c1:00.0: amdgpu: [mmhub0] no-retry page fault (src_id:0 ring:157 vmid:8 pasid:32771)
//   [ 812.4] amdgpu 0000:c1:00.0: amdgpu:  Process trainer pid 4711 thread trainer pid 4720
//   [ 812.4] amdgpu 0000:c1:00.0: amdgpu:   in page starting at address 0x00007f0901400000 from IH client 0x12 (VMC)
//   [ 812.4] amdgpu 0000:c1:00.0: amdgpu:      Faulty UTCL2 client ID: SDMA0 (0x0)
//
// The lines of one fault follow each other, but those of two GPUs may be mixed. Older drivers name the process in the
// first line. Whatever stands before "amdgpu" (time stamps of dmesg and journalctl, priorities, host names) does not
// belong to the form; a time is known if it counts seconds since the machine started.
//
// The log is a ring, and the driver limits the rate of its messages: a fault that is not in the log may have happened.
//
// Allocates, in proportion to the text. No shared state; any thread may call these functions. Errors: a Diagnostic if
// the log cannot be read, which is root's right on most machines, or if a text has the faults of several processes.
#include "sdma/core/diagnostic.hpp"
#include "sdma/core/result.hpp"
#include "sdma/doctor/snapshot.hpp"

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace sdma::inline v0::doctor {

/// A fault that the kernel's log reports.
struct LoggedFault {
  std::optional<double> seconds{};  ///< since the machine started
  std::string device{};             ///< PCI address: "0000:c1:00.0"
  std::uint32_t process{};          ///< 0: the log does not name it
  std::string program{};            ///< its name, at most 15 characters
  std::optional<GpuVa> page{};      ///< the address of the page; nullopt: the log does not name it
  std::string client{};  ///< the unit that made the access, as the driver calls it: "SDMA0". Empty: not named
  friend bool operator==(const LoggedFault&, const LoggedFault&) = default;
};

/// All faults, in the order of the text.
std::vector<LoggedFault> page_faults(std::string_view text);

/// A fault whose page is known, for a Snapshot; its `gpu` is unknown.
PageFault to_page_fault(const LoggedFault&, std::string_view from);

/// The log of this machine's kernel. Diagnostic: this user may not read it.
Result<std::string, Diagnostic> kernel_log();

/// The faults of a text, which is that of one process: of `process`, if it is given.
Result<void, Diagnostic> add_kernel_log(Snapshot&, std::string_view text, std::string_view name,
                                        std::optional<std::uint32_t> process = {});

}  // namespace sdma::inline v0::doctor
