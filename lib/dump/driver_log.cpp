// SPDX-License-Identifier: MIT
#include "driver_log.hpp"

#include "line.hpp"

#include <algorithm>

namespace sdma { inline namespace v0 { namespace detail {
namespace {

// If several wordings fit a line, the first one counts.
constexpr Wording kWordings[] = {
    {LogWord::fault, " page fault (src_id:", "", "all", ""},
    {LogWord::process, "for process ", " pid ", "6.9 to 6.16, gmc_v9", ""},
    {LogWord::process, "in process ", " pid ", "6.10 to 6.16, gmc_v10 to v12", ""},
    {LogWord::page, "in page starting at address ", "", "all", ""},
    {LogWord::client, "Faulty UTCL2 client ID: ", "", "all, bare metal", ""},
    {LogWord::access, "RW: 0x", "", "all, bare metal", ""},
    {LogWord::other, "VM_L2_PROTECTION_FAULT_STATUS:", "", "all", ""},
    {LogWord::other, "fault from die ", "", "MI300", ""},
    {LogWord::other, "MORE_FAULTS: 0x", "", "all, bare metal", ""},
    {LogWord::other, "WALKER_ERROR: 0x", "", "all, bare metal", ""},
    {LogWord::other, "PERMISSION_FAULTS: 0x", "", "all, bare metal", ""},
    {LogWord::other, "MAPPING_ERROR: 0x", "", "all, bare metal", ""},
    {LogWord::whole_fault, "Memory access fault by GPU node-", " on address ", "ROCr", ""},
    {LogWord::dumped_process, "process_name: ", " PID: ", "6.10 on", ""},
    {LogWord::dumped_fault, "Faulty page starting at address: ", "", "6.10 on", ""},
    {LogWord::event, "IP Type: ", " Ring Name: ", "6.10 on",
     "The devcoredump was written because this ring timed out."},
    {LogWord::event, "GPU core dump created: ", "", "ROCr",
     "ROCr has written a core file of the GPUs. Since mid-2026 it has compute queues only."},
    {LogWord::event, "HW Exception by GPU node-", " reason ", "ROCr",
     "The GPU was reset, or a queue could not be preempted."},
    {LogWord::event, "ring sdma", " timeout, signaled seq=", "all",
     "The driver's own ring timed out. It moves pages and clears memory; the queues of programs are others."},
    {LogWord::event, "Starting sdma", " ring reset", "6.15 on",
     "The driver resets its own ring, and that engine's queues."},
    {LogWord::event, "Ring sdma", " reset ", "6.15 on", "The driver has reset its own ring, and that engine's queues."},
    {LogWord::event, "GPU reset begin!", "", "all",
     "The driver resets the GPU. After that, every queue's memory of before is doubtful."},
    {LogWord::event, "device wedged, but recovered through reset", "", "6.14 on",
     "The GPU was reset. Every queue's memory of before is doubtful."},
    {LogWord::event, "AMDGPU device coredump file has been created", "", "6.7 on",
     "The kernel has kept a devcoredump: /sys/class/drm/card*/device/devcoredump/data."},
    {LogWord::event, "Queue preemption failed for queue with doorbell_id: ", "", "all",
     "The queue with that doorbell (hexadecimal) did not stop when asked: it is in a packet that does not end."},
    {LogWord::event, "Failed to evict process queues", "", "all", "A queue of that process did not stop when asked."},
    {LogWord::event, "Failed to quiesce KFD", "", "all", "Queues of programs did not stop when asked."},
    {LogWord::event, "Illegal instruction in SDMA command stream", "", "all",
     "An engine met a dword that begins no packet, or a privileged packet."},
    {LogWord::event, "No more SDMA queue to allocate", "", "all",
     "SDMA queues ran out: all queues of the GPU are taken, over all of its processes (16 on MI300X, of one kind)."},
    {LogWord::event, "DQM create queue type 1 failed", "", "all", "The driver refused an SDMA queue to that process."},
    {LogWord::event, "sdma_engine_id ", " exceeds maximum id of ", "all",
     "A queue asked for an engine that this GPU lacks."},
    {LogWord::event, "MES failed to respond to msg=", "", "6.3 on, gfx11 and later",
     "The scheduler of the queues hangs; a queue that does not stop is the first suspect."},
    {LogWord::event, "MES failed to response msg=", "", "to 6.2, gfx11 and later",
     "The scheduler of the queues hangs; a queue that does not stop is the first suspect."},
    {LogWord::event, "failed to remove hardware queue from MES, doorbell=", "", "gfx11 and later",
     "The queue with that doorbell did not stop: it is the first suspect."},
    {LogWord::event, "MES might be in unrecoverable state", "", "gfx11 and later",
     "The scheduler of the queues hangs."},
    {LogWord::event, "IB test timed out", "", "all",
     "The driver's own test of an engine failed while it reset the GPU."},
    {LogWord::event, "IP block:sdma", " is hung!", "all",
     "The driver found an sDMA engine hung while it reset the GPU."},
    {LogWord::event, "Freeing queue vital buffer ", "queue evicted", "6.14 on",
     "A program freed the ring, the pointers or the save area of a queue that still existed: it runs no more."},
    // After the events: "process pid 7 DQM create ..." names no process of a fault.
    {LogWord::process, "Process ", " pid ", "6.17 on", ""},
};

constexpr std::string_view kDriver = "amdgpu ", kAgain = "amdgpu: ";

const Wording* wording_of(std::string_view text) noexcept {
  for (const auto& w : kWordings)
    if (const auto at = text.find(w.key); at != text.npos && text.find(w.also, at + w.key.size()) != text.npos)
      return &w;
  return nullptr;
}

/// "812.400123", with blanks around it.
std::optional<double> seconds_in(std::string_view text) {
  text = trimmed(text);
  const auto dot = text.find('.');
  if (dot == text.npos || text.size() > 24) return {};
  std::uint64_t whole = 0, part = 0;
  const auto digits = text.substr(dot + 1);
  if (dot == 0 || digits.empty() || !number_in(text.substr(0, dot), 10, whole) || !number_in(digits, 10, part))
    return {};
  auto fraction = static_cast<double>(part);
  for (std::size_t i = 0; i < digits.size(); ++i) fraction /= 10;
  return static_cast<double>(whole) + fraction;
}

/// "[  812.400123] ..." of dmesg, wherever it stands before the driver's name, or "3,1234,812400123,-;" of /dev/kmsg.
std::optional<double> time_of(std::string_view before) {
  for (auto open = before.rfind('['); open != before.npos;
       open = open == 0 ? before.npos : before.rfind('[', open - 1)) {
    const auto close = before.find(']', open);
    if (close == before.npos) continue;
    if (const auto s = seconds_in(before.substr(open + 1, close - open - 1))) return s;
  }
  const auto first = before.find(','), second = before.find(',', first + 1), third = before.find(',', second + 1);
  if (first == before.npos || second == before.npos || third == before.npos) return std::nullopt;
  std::uint64_t us = 0;
  return number_in(before.substr(second + 1, third - second - 1), 10, us) && third > second + 1
             ? std::optional(static_cast<double>(us) / 1e6)
             : std::nullopt;
}

/// Does a line of a log begin here? Otherwise it may be the rest of a line that mail has wrapped.
bool begins(std::string_view line) noexcept {
  if (line.find("amdgpu") != line.npos || line.find(" kernel: ") != line.npos) return true;
  if (without_stamp(line).size() != line.size()) return true;
  const auto* w = wording_of(line);
  return w && w->what > LogWord::other;
}

/// "0000:c1:00.0: amdgpu: text": device and text.
void split(std::string_view line, LogLine& out) {
  const auto driver = line.find(kDriver);
  if (driver == line.npos) {
    out.text = trimmed(line);
    return;
  }
  out.seconds = time_of(line.substr(0, driver));
  auto said = line.substr(driver + kDriver.size());
  const auto end = said.find(": ");
  const auto device = said.substr(0, end);
  // "0000:c1:00.0"
  if (end != said.npos && device.size() >= 7 && device.find_first_not_of("0123456789abcdefABCDEF:.") == device.npos) {
    out.device = device;
    said.remove_prefix(end + 2);
    if (said.starts_with(kAgain)) said.remove_prefix(kAgain.size());
  } else {
    said = line;
  }
  out.text = trimmed(said);
}

/// Is it one of the lines of a fault, which follow each other?
bool is_of_fault(const LogLine& l) noexcept { return l.wording->what <= LogWord::other; }

/// All lines that begin one. A line without a wording is joined with the next ones, which mail may have wrapped, until
/// they have one together; lines that say something by themselves are left alone, because a dump may follow them.
template <class Fn> void each_logical_line(std::string_view text, Fn fn) {
  constexpr std::size_t kMostWrapped = 3;
  std::string joined;
  std::size_t first = 0, last = 0;
  const auto end = [&] {
    if (first != 0) fn(joined, first, last);
    first = 0;
  };
  each_line(text, 1, [&](std::string_view line, std::size_t n) {
    if (line.ends_with('\r')) line.remove_suffix(1);
    if (begins(line)) {
      end();
      joined = line;
      first = last = n;
    } else if (first != 0 && !is_blank(line) && last - first < kMostWrapped && !wording_of(joined) &&
               joined.find("amdgpu") != joined.npos) {
      joined.append(" ").append(trimmed(line));
      last = n;
    } else if (first != 0 && trimmed(line).starts_with('(') && trimmed(line).ends_with(')')) {
      last = n;  // "(0xe)", the end of a line that says enough
      end();
    } else {
      end();
    }
    return true;
  });
  end();
}

}  // namespace

std::span<const Wording> wordings() noexcept { return kWordings; }

std::string_view LogLine::after_key() const noexcept {
  return wording ? std::string_view(text).substr(text.find(wording->key) + wording->key.size()) : std::string_view{};
}
std::string_view LogLine::said() const noexcept {
  auto from = wording ? std::string_view(text).substr(text.find(wording->key)) : std::string_view(text);
  while (from.ends_with('"') || from.ends_with(' ') || from.ends_with(',')) from.remove_suffix(1);
  return from;
}

std::vector<LogLine> log_lines(std::string_view text) {
  std::vector<LogLine> all;
  each_logical_line(text, [&](std::string_view line, std::size_t first, std::size_t last) {
    LogLine l{.first = first, .last = last};
    split(line, l);
    l.wording = wording_of(l.text);
    if (l.wording) all.push_back(std::move(l));
  });
  // A line such as "RW: 0x1" alone makes no log.
  const auto tells = [](const LogLine& l) {
    return !is_of_fault(l) || l.wording->what == LogWord::fault || l.wording->what == LogWord::page;
  };
  if (std::none_of(all.begin(), all.end(), tells)) return {};
  // The newest line first: then the lines of a fault stand before the one that begins it.
  const auto begins_fault = [](const LogLine& l) { return l.wording->what == LogWord::fault; };
  const auto first = std::find_if(all.begin(), all.end(), is_of_fault);
  const auto last = std::find_if(all.rbegin(), all.rend(), is_of_fault);
  if (first != all.end() && !begins_fault(*first) && begins_fault(*last)) std::reverse(all.begin(), all.end());
  return all;
}

std::optional<TextBesideLog> without_log(std::string_view text) {
  const auto lines = log_lines(text);
  if (lines.empty()) return {};
  struct Known {
    std::size_t first, last;
    bool fault;
  };
  std::vector<Known> known;
  for (const auto& l : lines) known.push_back({l.first, l.last, is_of_fault(l)});
  std::sort(known.begin(), known.end(), [](const Known& a, const Known& b) { return a.first < b.first; });
  TextBesideLog out;
  std::size_t next = 0;
  each_line(text, 1, [&](std::string_view line, std::size_t n) {
    while (next < known.size() && known[next].last < n) ++next;
    const bool ours = next < known.size() && known[next].first <= n;
    // A dump that was printed to the log stands behind the driver's name.
    const bool others = line.find("amdgpu") == line.npos && begins(line);
    if (!ours && !others) out.rest += line;
    if (!ours || !known[next].fault) out.without_faults += line;
    out.rest += '\n';
    out.without_faults += '\n';
    return true;
  });
  return out;
}

}}}  // namespace sdma::v0::detail
