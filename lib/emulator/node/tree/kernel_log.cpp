// SPDX-License-Identifier: MIT
// What the driver would have written to the kernel's log: the VM faults of the processes that use a node now.
#include "kernel_log.hpp"

#include "parts.hpp"
#include "processes.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>
#include <vector>

namespace sdma::emulator {
namespace {

constexpr int kError = 3;  // the priority

/// "trainer": what the kernel calls a process.
std::string comm_of(std::uint64_t pid) {
  auto name = machine_file(fmt::format("/proc/{}/comm", pid));
  return name.substr(0, name.find('\n'));
}

std::string lines_of(const ShownFault& f, const SysfsGpu& gpu, std::uint64_t pid) {
  const auto head =
      fmt::format("<{}>[{:5}.{:06}] amdgpu {}: amdgpu: ", kError, f.us / 1'000'000, f.us % 1'000'000, pci_address(gpu));
  const auto name = comm_of(pid);
  return fmt::format(
      "{0}[mmhub0] no-retry page fault (src_id:0 ring:0 vmid:8 pasid:{1})\n"
      "{0} Process {2} pid {3} thread {2} pid {3}\n"
      "{0}  in page starting at address {4:#018x} from IH client 0x12 (VMC)\n",
      head, pasid_of(pid), name, pid, f.page);
}

}  // namespace

std::string kernel_log() {
  std::vector<std::pair<std::uint64_t, std::string>> all;
  const auto& gpus = tree().node().gpus;
  for (const auto pid : node_processes()) {
    const auto shown = shown_by(pid);
    for (std::size_t g = 0; g < std::min(gpus.size(), shown.faults.size()); ++g)
      if (const auto& f = shown.faults[g]; f.us != 0) all.emplace_back(f.us, lines_of(f, gpus[g], pid));
  }
  std::sort(all.begin(), all.end());
  std::string text;
  for (const auto& [us, lines] : all) text += lines;
  return text;
}

}  // namespace sdma::emulator
