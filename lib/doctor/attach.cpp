// SPDX-License-Identifier: MIT
#include "sdma/doctor/attach.hpp"

#include "../device/sysfs.hpp"
#include "compute.hpp"
#include "debug_session.hpp"
#include "follow.hpp"
#include "kernel_log.hpp"
#include "process.hpp"
#include "sdma/core/file.hpp"
#include "sdma/doctor/read.hpp"
#include "sdma/dump/descriptors.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <ctime>
#include <memory>
#include <thread>

namespace sdma { inline namespace v0_3 { namespace doctor {
namespace {

using Clock = std::chrono::steady_clock;
using Step = Listing::Step;

/// What only root may read: the descriptors of all queues.
constexpr const char* kMqds = "/sys/kernel/debug/kfd/mqds";
constexpr std::uint64_t kMostRingBytes = std::uint64_t{1} << 28;

Diagnostic process_error(int pid, std::string message, std::string hint = {}) {
  return {.where = fmt::format("process {}", pid), .message = std::move(message), .hint = std::move(hint)};
}

Diagnostic no_rights(int pid) {
  const auto scope = read_file("/proc/sys/kernel/yama/ptrace_scope");
  const bool restricted = scope && !scope->starts_with('0') && ::geteuid() != 0;
  return process_error(pid, "this user may not examine it",
                       restricted ? "run as root, or permit it: sysctl kernel.yama.ptrace_scope=0"
                                  : "run as the user that the process belongs to, or as root");
}

Diagnostic session_error(int pid, const Listing& l) {
  const auto why = std::string(std::strerror(l.error));
  switch (l.step) {
    case Step::open:
      return process_error(pid, "/dev/kfd cannot be opened: " + why, "join the group render, or run as root");
    case Step::version:
      return process_error(pid, "the kernel driver has no debug sessions",
                           "they need version 1.13 of its interface, of Linux 6.5");
    case Step::trace:
      if (l.error == EPERM && l.tracer != 0)
        return process_error(pid, fmt::format("is debugged by process {} already", l.tracer),
                             "end that debugger first");
      if (l.error == EPERM) return no_rights(pid);
      return process_error(pid, l.error == ESRCH ? "has ended" : "cannot be traced: " + why);
    case Step::enable:
    case Step::snapshot: break;
  }
  if (l.error == EALREADY) return process_error(pid, "is debugged already", "end that debugger first");
  if (l.error == ESRCH)
    return process_error(pid, tracer_of(pid) == 0 && ::access(fmt::format("/proc/{}", pid).c_str(), F_OK) == 0
                                  ? "is not known to the driver: it has opened /dev/kfd, but does not use it"
                                  : "has ended");
  if (l.error == ETIMEDOUT)
    return process_error(pid, "does not answer: all its threads are stopped", "let it continue: kill -CONT");
  return process_error(pid, "the driver refuses a debug session: " + why);
}

/// What is known about a queue before its memory is read.
struct FoundQueue {
  QueueSnapshot queue{};
  GpuVa ring{}, rptr{};
  std::optional<GpuVa> wptr{};
  std::uint64_t ring_bytes{};
};

class Examination {
 public:
  Examination(int pid, const AttachOptions& o)
      : pid_(pid), options_(o), mappings_(mappings_of(pid)), memory_(std::make_shared<ProcessMemory>(pid, mappings_)) {
    if (const auto files = read_sysfs())
      if (auto node = from_sysfs(*files)) node_ = std::move(*node);
    if (const auto text = read_file(kMqds)) {
      const auto all = read_descriptors(*text, kMqds);
      if (!all) note(fmt::format("The descriptors of queues are not used: {}.", to_string(all.error())));
      else
        for (const auto& d : all->queues)
          if (d.process == static_cast<std::uint32_t>(pid) && d.engine() && d.device) descriptors_.push_back(d);
      has_descriptors_ = static_cast<bool>(all);
    }
    char host[256] = "?";
    (void)::gethostname(host, sizeof host - 1);
    const auto now = std::time(nullptr);
    std::tm utc{};
    ::gmtime_r(&now, &utc);
    char time[32] = "";
    (void)std::strftime(time, sizeof time, "%Y-%m-%d %H:%M:%S UTC", &utc);
    s_.from = fmt::format("process {} ({}) on {}, {}", pid, status_of(pid, "Name"), host, time);
    note(fmt::format("Examined: {}.", s_.from));
  }

  Result<Snapshot, Diagnostic> take() {
    if (!memory_->open()) return no_rights(pid_);
    if (options_.attach) {
      const auto l = list_queues(pid_);
      if (l.error != 0) return session_error(pid_, l);
      add_listing(l);
    } else {
      add_descriptors();
    }
    const auto asleep = sleeping_threads(pid_, mappings_, *memory_);
    const auto held = held_threads(pid_);
    look(true);
    const auto begin = Clock::now();
    if (!found_.empty()) watch(begin + options_.watch);
    look(false);
    if (!found_.empty()) s_.watched_ns = static_cast<std::uint64_t>((Clock::now() - begin).count());
    if (mappings_of(pid_).empty()) return process_error(pid_, "has ended");
    standstill(held);
    deadlock(asleep);
    finish();
    return std::move(s_);
  }

 private:
  void note(std::string sentence) { s_.notes.push_back(std::move(sentence)); }

  std::optional<std::uint32_t> index_of(std::uint32_t gpu_id) const {
    for (std::uint32_t g = 0; g < node_.gpus.size(); ++g)
      if (node_.gpus[g].gpu_id == gpu_id) return g;
    return std::nullopt;
  }

  /// What the topology says about the GPU of a queue.
  void place(QueueSnapshot& q, std::uint32_t gpu_id) {
    const auto g = index_of(gpu_id);
    if (!g) {
      q.name = fmt::format("gpu id {} queue {}", gpu_id, q.id);
      return;
    }
    const auto& gpu = node_.topology.gpus[*g];
    q.name = fmt::format("gpu {} queue {}", *g, q.id);
    q.gpu = {GpuId{*g}, Source::driver};
    q.engines = {gpu.engines(), Source::driver};
    q.generation = gpu.generation();
    if (!generation_of_target(gpu.gfx))
      note(fmt::format("{}: it is assumed that these are packets of SDMA {}, because its target is not known", q.name,
                       name_of(q.generation)));
  }

  static EngineId engine_of(const QueueDescriptor& d) { return EngineId{static_cast<std::uint32_t>(*d.engine())}; }
  static GpuVa ring_of(const QueueDescriptor& d) { return GpuVa{d.value("ring_base").value_or(0)}; }

  void add_descriptors() {
    if (has_descriptors_) {
      for (const auto& d : descriptors_) {
        FoundQueue f{.ring = ring_of(d),
                     .rptr = GpuVa{d.value("rptr_va").value_or(0)},
                     .ring_bytes = d.value("ring_bytes").value_or(0)};
        const auto slot = d.queue();
        if (slot) f.queue.id = engine_of(d).value * std::uint64_t{8} + *slot;
        place(f.queue, *d.device);
        if (slot) f.queue.name += fmt::format(" (engine {} slot {})", engine_of(d).value, *slot);
        else
          f.queue.name = fmt::format("gpu id {}, engine {}, the queue with ring {:#x}", *d.device, engine_of(d).value,
                                     f.ring.value);
        f.queue.engine = {engine_of(d), Source::driver};
        found_.push_back(std::move(f));
      }
      note(
          fmt::format("Without a debug session, the queues are those of {}, which has no addresses of write pointers: "
                      "what is pending "
                      "is not known.",
                      kMqds));
      return;
    }
    note(
        "Without a debug session, the driver does not list the queues of another process, and its debugfs is not "
        "readable: no queue was "
        "examined.");
  }

  void add_listing(const Listing& l) {
    for (const auto& e : l.queues) {
      if (e.type == kfd::kQueueCompute || e.type == kfd::kQueueComputeAql) {
        compute_.push_back(e);
        continue;
      }
      FoundQueue f{.ring = GpuVa{e.ring}, .rptr = GpuVa{e.rptr}, .wptr = GpuVa{e.wptr}, .ring_bytes = e.ring_bytes};
      f.queue.id = e.queue_id;
      f.queue.exceptions = {e.exceptions, Source::driver};
      place(f.queue, e.gpu_id);
      if (e.type > kfd::kQueueSdmaByEngine)
        note(fmt::format("The driver does not name the type of {}; it is taken for an sDMA queue on a chosen engine.",
                         f.queue.name));
      const auto same = [&](const QueueDescriptor& d) { return *d.device == e.gpu_id && ring_of(d).value == e.ring; };
      if (const auto d = std::find_if(descriptors_.begin(), descriptors_.end(), same); d != descriptors_.end())
        f.queue.engine = {engine_of(*d), Source::driver};
      found_.push_back(std::move(f));
    }
    s_.all_queues = true;
    if (l.remapped)
      note(
          "A runtime is enabled in the process, so the debug session unmapped all its queues and mapped them again, "
          "twice: if the "
          "program continues now, a doorbell was lost before, or an engine was reset.");
    if (l.answered_runtime)
      note("A call of the runtime (hsa_init or hsa_shut_down) came during the debug session, and was answered.");
  }

  void look(bool first) {
    for (auto& f : found_) {
      auto& q = f.queue;
      if (const auto rptr = memory_->value<std::uint64_t>(f.rptr)) {
        q.rptr = {*rptr, Source::memory};
        if (first) q.rptr_first = q.rptr;
      }
      if (const auto wptr = f.wptr ? memory_->value<std::uint64_t>(*f.wptr) : std::nullopt)
        q.wptr = {*wptr, Source::memory};
      q.ring_va = {f.ring, Source::driver};
      q.ring_bytes = {f.ring_bytes, Source::driver};
      if (f.ring_bytes > kMostRingBytes || f.ring_bytes % 4 != 0) continue;
      q.ring.resize(f.ring_bytes / 4);
      if (memory_->read(f.ring, std::as_writable_bytes(std::span(q.ring))) != Errc::ok) q.ring.clear();
    }
  }

  /// Reads the words that packets around rptr wait for, many times.
  void watch(Clock::time_point end) {
    constexpr auto kLooks = 64;
    const auto pause = std::max<Clock::duration>(options_.watch / kLooks, std::chrono::milliseconds(1));
    Snapshot now;
    now.peek = [this](GpuVa va, std::span<std::byte> out) { return memory_->read(va, out); };
    std::vector<std::pair<Wait, MovingWord>> words;
    for (const auto& f : found_) {
      const auto line = read_line(f.queue, 0, now);
      for (auto i = line.last_read(); i < std::min(line.head + 1, line.packets.size()); ++i)
        if (const auto w = wait_of(line.packets[i].view))
          if (const auto v = value_of(*w)) words.push_back({*w, {.va = w->va, .first = *v, .last = *v}});
    }
    // A word that another process may store to is not only this process's.
    words_are_own_ = std::all_of(words.begin(), words.end(), [this](const auto& w) {
      return std::any_of(mappings_.begin(), mappings_.end(), [va = w.first.va.value](const Mapping& m) {
        return va >= m.begin && va < m.end && (!m.shared || m.file.starts_with("/dev/"));
      });
    });
    do {
      std::this_thread::sleep_for(std::min(pause, std::max(end - Clock::now(), Clock::duration{})));
      for (auto& [w, m] : words) {
        ++m.looks;
        if (const auto v = value_of(w); v && *v != m.last) m.last = *v, ++m.changes;
      }
    } while (Clock::now() < end);
    for (auto& [w, m] : words)
      if (m.changes != 0) s_.moving.push_back(m);
  }
  /// What did not run during the watch. A thread that waits for a disk is in state D only for a moment.
  void standstill(const std::vector<HeldThread>& before) {
    std::vector<HeldThread> both;
    for (auto& t : held_threads(pid_))
      if (std::find(before.begin(), before.end(), t) != before.end()) both.push_back(std::move(t));
    is_held_ = !both.empty();
    for (auto& sentence : sentences_of(both, pid_, count_threads(pid_))) note(std::move(sentence));
  }
  /// No thread of the process can store a value, if all of them have slept since the first look in waits that only the
  /// process itself or its GPUs end, and if no other process uses a GPU.
  void deadlock(const std::vector<SleepingThread>& before) {
    const auto now = sleeping_threads(pid_, mappings_, *memory_);
    const auto same = [](const SleepingThread& a, const SleepingThread& b) {
      return a.thread == b.thread && a.call == b.call;
    };
    if (now.empty() || !std::equal(before.begin(), before.end(), now.begin(), now.end(), same) || !words_are_own_ ||
        gpu_processes_below(0).size() > 1 || is_held_)
      return;
    if (const auto parts = sleepless_parts(pid_); !parts.empty())
      return note(
          fmt::format("All threads sleep without an end of time, and still this is no deadlock for certain: the "
                      "process has {}, through which a value may come.",
                      fmt::join(parts, ", ")));
    s_.all_threads = true;
    std::string list;
    for (const auto& t : now) list += fmt::format("{}{} ({}) in {}", list.empty() ? "" : ", ", t.thread, t.name, t.in);
    note(fmt::format("No thread can store a value: all of them sleep without an end of time: {}.", list));
    for (const auto& t : now)
      if (!t.stack.empty())
        note(fmt::format("Thread {} is at {}; its stack has, perhaps with words of finished calls: {}.", t.thread,
                         t.stack.front(), fmt::join(t.stack.begin() + 1, t.stack.end(), ", ")));
  }
  std::optional<std::uint64_t> value_of(const Wait& w) const {
    if (w.bytes == 8) return memory_->value<std::uint64_t>(w.va);
    return memory_->value<std::uint32_t>(w.va);
  }

  void finish() {
    for (auto& f : found_) {
      auto& q = f.queue;
      const bool had_memory = q.rptr || q.wptr || !q.ring.empty();
      if (!had_memory) {
        note(fmt::format(
            "The ring and the pointers of {} cannot be read: it was destroyed meanwhile, or its memory is not "
            "accessible to the process.",
            q.name));
      } else {
        if (!q.rptr) note(fmt::format("The read pointer of {} at 0x{:x} cannot be read.", q.name, f.rptr.value));
        if (f.wptr && !q.wptr)
          note(fmt::format("The write pointer of {} at 0x{:x} cannot be read.", q.name, f.wptr->value));
        if (q.ring.empty())
          note(fmt::format("The ring of {} at 0x{:x} cannot be read, so its packets are not known.", q.name,
                           f.ring.value));
      }
      s_.ranges.push_back(
          {.va = f.ring, .bytes = f.ring_bytes, .name = "ring of " + q.name, .kind = Range::Kind::ring});
      s_.queues.push_back(std::move(q));
    }
    const bool engines = std::all_of(s_.queues.begin(), s_.queues.end(), [](auto& q) { return bool(q.engine); });
    if (!engines) note(fmt::format("The engines of the queues are not known: only {} names them, for root.", kMqds));
    compute();
    page_faults();
    auto ranges = ranges_of(mappings_of(pid_));
    std::move(ranges.begin(), ranges.end(), std::back_inserter(s_.ranges));
    s_.ranges_complete = true;
    s_.peek = [memory = memory_](GpuVa va, std::span<std::byte> out) { return memory->read(va, out); };
  }

  /// Page faults of this process. A fault that was logged before it began is of an earlier one with its number.
  void page_faults() {
    const auto log = kernel_log();
    if (!log)
      return note(fmt::format("Page faults that the driver reported are not known: the kernel's log {} ({}).",
                              log.error().message, log.error().hint));
    const auto began = start_of(pid_);
    for (auto& f : facts_of(*log, "the kernel's log").faults) {
      if (f.process != static_cast<std::uint32_t>(pid_)) continue;
      if (f.seconds && began && *f.seconds < *began) continue;
      for (std::uint32_t g = 0; g < node_.gpus.size(); ++g)
        if (pci_address(node_.gpus[g]) == f.device) f.gpu = {GpuId{g}, Source::driver};
      s_.page_faults.push_back(std::move(f));
    }
  }

  /// Compute queues are not examined, but their packets could change a word that an sDMA queue polls.
  void compute() {
    ComputeQueues all;
    for (const auto& e : compute_) all.add(e, *memory_);
    if (all.pending() != 0) s_.all_queues = false;
    s_.others_run = all.may_run();
    if (auto sentence = all.sentence(); !sentence.empty()) note(std::move(sentence));
  }

  const int pid_;
  const AttachOptions options_;
  SysfsNode node_{};
  std::vector<QueueDescriptor> descriptors_{};
  bool has_descriptors_ = false;
  bool is_held_ = false;        // a thread did not run during the watch
  bool words_are_own_ = false;  // no other process can store to the words that queues wait for
  std::vector<Mapping> mappings_;
  std::shared_ptr<ProcessMemory> memory_;
  std::vector<FoundQueue> found_{};
  std::vector<kfd::QueueEntry> compute_{};
  Snapshot s_{};
};

}  // namespace

Result<Snapshot, Diagnostic> examine(int pid, const AttachOptions& o) {
  const auto kind = kind_of_process(pid);
  if (!kind.exists) return process_error(pid, "there is no such process");
  if (status_of(pid, "State").starts_with('Z')) {
    if (count_threads(pid) > 1)
      return process_error(pid, "its first thread is a zombie, and with it went what /proc shows of the process");
    return process_error(
        pid, "has ended, and its parent has not noticed",
        fmt::format("it is a zombie, until its parent, process {}, waits for it", status_of(pid, "PPid")));
  }
  if (!kind.readable) return no_rights(pid);
  if (!kind.uses_gpu) return process_error(pid, "does not use a GPU: it has not opened /dev/kfd");
  if (!kind.emulated && kind.this_emulated)
    return process_error(pid, "does not run on the software node, and this program sees no other",
                         "run this program without 'sdma emulate'");
  if (kind.emulated && !kind.this_emulated)
    return process_error(pid, "runs on the software node, which this program does not see",
                         "run this program under 'sdma emulate'");
  return Examination(pid, o).take();
}

}}}  // namespace sdma::v0_3::doctor
