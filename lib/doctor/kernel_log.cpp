// SPDX-License-Identifier: MIT
#include "kernel_log.hpp"

#include "devcoredump.hpp"
#include "sdma/doctor/read.hpp"

#include "../core/plural.hpp"
#include "../dump/log.hpp"
#include "../dump/plain.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

namespace sdma { inline namespace v0_3 { namespace doctor {
namespace {

using detail::LogLine;
using detail::LogWord;

/// As much of a text is read as may be a dump.
constexpr std::size_t kMostText = std::size_t{1} << 30;
constexpr std::uint32_t kAllOnes = ~std::uint32_t{0};

std::optional<std::uint32_t> small(std::optional<std::uint64_t> n) {
  return n && *n <= kAllOnes ? std::optional(static_cast<std::uint32_t>(*n)) : std::nullopt;
}

/// The address of a page. The driver prints 16 digits: fewer that begin with 0 are a part.
std::optional<GpuVa> page_of(const LogLine& l) {
  constexpr std::size_t kDigits = 16;
  auto text = l.match["address"];
  const auto va = l.match.number("address", 16);
  if (text.starts_with("0x")) text.remove_prefix(2);
  if (!va || (text.size() != kDigits && text.size() > 1 && text[0] == '0')) return {};
  return GpuVa{*va};
}

/// Where a fact stands in its log.
struct At {
  std::size_t record = 0, start = 0;
  std::optional<double> moment{};
  explicit At(const LogLine& l) : record(l.record), start(l.start), moment(l.moment) {}
  bool near(const At& o) const noexcept {
    if (start != o.start) return false;
    if (moment && o.moment) return std::abs(*moment - *o.moment) <= kOwnSeconds;
    return (record > o.record ? record - o.record : o.record - record) <= kOwnRecords;
  }
};

/// A fault while its lines come in.
struct Block {
  At at;
  PageFault fault{};
  bool has_page = false;
};

class FactReader {
 public:
  explicit FactReader(std::string_view name) : name_(name) {}

  void take(const LogLine& l) {
    switch (l.message->what) {
      case LogWord::fault: {
        auto& f = begin(l).fault;
        f.hub = l.match["hub"];
        f.vmid = small(l.match.number("vmid"));
        f.pasid = small(l.match.number("pasid"));
        process(l, f.process, f.program);
        last_[l.device] = {.block = blocks_.size()};
        break;
      }
      case LogWord::process:
        if (auto* const b = block_of(l); b && b->fault.process == 0) process(l, b->fault.process, b->fault.program);
        else if (auto* const e = event_of(l)) {
          std::uint32_t pid = 0;
          process(l, pid, e->program);
          if (pid != 0) e->process = pid;
        }
        break;
      case LogWord::whole_fault: {
        auto& b = begin(l);
        b.fault.device = fmt::format("node-{}", l.match["node"]);
        page(l, b);
        break;
      }
      case LogWord::dumped_process: process(l, dumped_.process, dumped_.program); break;
      case LogWord::dumped_fault:
        if (const auto va = page_of(l); va && *va != GpuVa{}) {
          auto& b = begin(l);
          b.fault.process = dumped_.process;
          b.fault.program = dumped_.program;
          page(l, b);
        }
        break;
      case LogWord::timeout: last_[l.device] = {.event = event(l)}; break;
      case LogWord::event: event(l); break;
      default: detail(l);
    }
  }

  void finish(LogFacts& out) {
    for (auto& b : blocks_) decode(b.fault);
    for (auto& b : blocks_)
      if (b.fault.process == 0) name_process(b);
    for (auto& b : blocks_) {
      out.without_page += !b.has_page;
      if (!b.has_page) continue;
      const auto same = std::find_if(out.faults.begin(), out.faults.end(), [&](const PageFault& o) {
        return o.page == b.fault.page && o.device == b.fault.device && o.process == b.fault.process;
      });
      if (same == out.faults.end()) out.faults.push_back(std::move(b.fault));
      else ++same->reports;
    }
    out.events = std::move(events_);
  }

 private:
  /// What a line of a process on a GPU belongs to: one more than an index; 0: neither.
  struct Last {
    std::size_t block = 0, event = 0;
  };

  Block& begin(const LogLine& l) {
    blocks_.push_back({.at = At{l}});
    auto& f = blocks_.back().fault;
    f.device = l.device;
    f.seconds = l.seconds;
    f.from = name_;
    return blocks_.back();
  }
  static void page(const LogLine& l, Block& b) {
    if (const auto va = page_of(l)) b.fault.page = *va, b.has_page = true;
  }
  static void process(const LogLine& l, std::uint32_t& pid, std::string& program) {
    const auto n = small(l.match.number("pid"));
    if (!n) return;
    pid = *n;
    program = l.match["program"];
  }
  Block* block_of(const LogLine& l) {
    const auto last = last_.find(l.device);
    if (last == last_.end() || last->second.block == 0) return nullptr;
    auto& b = blocks_[last->second.block - 1];
    return b.at.near(At{l}) ? &b : nullptr;
  }
  LogEvent* event_of(const LogLine& l) {
    const auto last = last_.find(l.device);
    if (last == last_.end() || last->second.event == 0) return nullptr;
    const auto i = last->second.event - 1;
    return event_at_[i].near(At{l}) ? &events_[i] : nullptr;
  }

  /// A line of a fault that is neither the first nor that of the process.
  void detail(const LogLine& l) {
    // The fault to which it belongs is the last one of the GPU that has begun, whatever has been printed since.
    Block* b = nullptr;
    for (auto i = blocks_.rbegin(); i != blocks_.rend() && !b; ++i)
      if (i->fault.device == l.device) b = &*i;
    if (b && !b->at.near(At{l})) b = nullptr;
    if (l.message->what == LogWord::page) {
      if (!b || b->has_page) {
        b = &begin(l);
        last_[l.device] = {.block = blocks_.size()};
      }
      return page(l, *b);
    }
    if (!b) return;
    auto& f = b->fault;
    switch (l.message->what) {
      case LogWord::die:
        if (f.die.empty()) f.die = l.match["die"];
        break;
      case LogWord::status:
        if (!f.status) f.status = small(l.match.number("status", 16));
        break;
      case LogWord::client:
        if (f.client.empty()) f.client = l.match["client"];
        break;
      case LogWord::access:
        if (!f.write) f.write = l.match.number("write", 16) == 1;
        break;
      default: break;
    }
  }

  /// The status register says what its lines would, and whether they say anything.
  static void decode(PageFault& f) {
    if (!f.status) return;
    const auto status = *f.status;
    if (status == kAllOnes || status == 0) {
      f.client.clear();
      f.write.reset();
      return;
    }
    // In units of the field's lowest bit.
    constexpr std::uint32_t kClient = 0x200, kClients = 0x200, kWrite = 0x40000, kVmid = 0x100000, kVmids = 16;
    if (f.client.empty()) f.client = fmt::format("{:#x}", status / kClient % kClients);
    if (!f.write) f.write = status / kWrite % 2 != 0;
    if (!f.vmid) f.vmid = status / kVmid % kVmids;
  }

  void name_process(Block& b) {
    if (!b.fault.vmid || !b.fault.pasid) return;
    for (const auto& o : blocks_)
      if (o.fault.process != 0 && o.fault.device == b.fault.device && o.fault.vmid == b.fault.vmid &&
          o.fault.pasid == b.fault.pasid && o.at.near(b.at)) {
        b.fault.process = o.fault.process;
        b.fault.program = o.fault.program;
        return;
      }
  }

  /// One more than its index.
  std::size_t event(const LogLine& l) {
    auto& seen = seen_[{l.device, std::string(l.said())}];
    if (seen != 0) {
      ++events_[seen - 1].reports;
      return seen;
    }
    LogEvent e{.seconds = l.seconds,
               .device = l.device,
               .said = std::string(l.said()),
               .means = std::string(l.message->means),
               .to_do = std::string(l.message->to_do),
               .from = std::string(name_)};
    e.ring = l.match["ring"];
    constexpr std::string_view kRing = "ring ";
    if (l.message->what == LogWord::timeout)
      e.ring = e.said.substr(kRing.size(), e.said.find(' ', kRing.size()) - kRing.size());
    e.engine = small(l.match.number("engine"));
    e.queue = small(l.match.number("queue"));
    e.process = small(l.match.number("pid"));
    e.program = l.match["program"];
    e.pasid = small(l.match.number("pasid"));
    e.doorbell = l.match.number("doorbell", 16);
    e.address = l.match.number("address", 16);
    events_.push_back(std::move(e));
    event_at_.emplace_back(l);
    return seen = events_.size();
  }

  std::string_view name_;
  std::vector<Block> blocks_;
  std::map<std::string, Last> last_;  // of each GPU
  std::vector<LogEvent> events_;
  std::vector<At> event_at_;
  std::map<std::pair<std::string, std::string>, std::size_t> seen_;  // one more than the index of the event
  PageFault dumped_;                                                 // whose devcoredump it is
};

/// What the lines say, in the order of time.
void facts_in(const std::vector<LogLine>& lines, std::string_view name, LogFacts& out) {
  FactReader reader{name};
  for (const auto& l : lines) {
    reader.take(l);
    out.devcoredump = out.devcoredump || l.message->what == LogWord::dumped_process;
  }
  reader.finish(out);
}

LogFacts facts_of_log(const detail::Log& log, std::string_view name) {
  LogFacts out{.is_log = log.is_log};
  if (!log.is_log) return out;
  out.what = describe(log);
  out.form = log.form;
  out.of_kernel = log.of_kernel;
  out.known = !log.lines.empty() || (log.of_runtime && !log.of_kernel);
  facts_in(log.lines, name, out);
  return out;
}

void add_facts(Snapshot& s, LogFacts facts, std::string_view name, std::optional<std::uint32_t> process) {
  if (!facts.is_log) return;
  std::set<std::uint32_t> processes, others;
  const bool any = !facts.faults.empty() || facts.without_page > 0;
  for (auto& f : facts.faults) {
    if (process && f.process != 0 && f.process != *process) {
      others.insert(f.process);
      continue;
    }
    if (f.process != 0) processes.insert(f.process);
    s.page_faults.push_back(std::move(f));
  }
  std::move(facts.events.begin(), facts.events.end(), std::back_inserter(s.events));
  const auto note = [&](std::string what) { s.notes.push_back(fmt::format("{}: {}", name, what)); };
  if (!facts.devcoredump)
    note(facts.what +
         (!facts.known              ? ", without a line that this tool knows"
          : !any && facts.of_kernel ? ", without a page fault; the log is a ring, so one may have been there"
                                    : "") +
         (facts.form.empty() ? "" : fmt::format(" ({})", facts.form)));
  if (facts.without_page > 0)
    note(fmt::format("left out {} without an address", plural(facts.without_page, "page fault")));
  if (!others.empty()) note(fmt::format("left out the page faults of the processes {}", fmt::join(others, ", ")));
  if (processes.size() > 1)
    note(fmt::format("this log has page faults of the processes {}: --pid=N keeps those of one",
                     fmt::join(processes, ", ")));
}

}  // namespace

LogFacts facts_of(std::string_view text, std::string_view name) { return facts_of_log(detail::read_log(text), name); }

bool is_kernel_log(std::string_view text) { return detail::read_log(text).is_log; }

std::string in_words(const PageFault& p) {
  std::vector<std::string> parts{fmt::format("{:#x}", p.page.value)};
  if (!p.device.empty()) parts.push_back("GPU " + p.device);
  if (!p.client.empty()) parts.push_back("unit " + p.client);
  if (p.write) parts.emplace_back(*p.write ? "a write" : "a read");
  if (p.process != 0) parts.push_back(fmt::format("process {} ({})", p.process, p.program));
  else if (!p.from.empty()) parts.emplace_back("a process that the log does not name");
  if (p.seconds) parts.push_back(fmt::format("{:.3f} s after the start of the machine", *p.seconds));
  if (p.reports > 1) parts.push_back(fmt::format("reported {} times", p.reports));
  if (p.status == kAllOnes)
    parts.emplace_back(
        "whose status register reads as all ones: the GPU did not answer, so the unit and the direction are "
        "unknown");
  if (p.status == 0u)
    parts.emplace_back(
        "after an earlier fault, which has cleared the status register, so the unit and the direction are "
        "unknown");
  if (!p.copy.empty()) parts.push_back("in " + p.copy);
  return fmt::format("{}", fmt::join(parts, ", "));
}

void add_kernel_log(Snapshot& s, std::string_view text, std::string_view name, std::optional<std::uint32_t> process) {
  add_engine_queues(s, text, name);
  add_facts(s, facts_of(text, name), name, process);
}

Result<LogRest, Diagnostic> add_kernel_log(Snapshot& s, const MoreText& more, std::string_view name,
                                           std::optional<std::uint32_t> process) {
  detail::LogReader reader;
  const auto known = [&](Snapshot& to) {
    LogFacts facts;
    facts_in(reader.so_far(), name, facts);
    std::move(facts.faults.begin(), facts.faults.end(), std::back_inserter(to.page_faults));
    std::move(facts.events.begin(), facts.events.end(), std::back_inserter(to.events));
  };
  for (std::string bytes;; bytes.clear()) {
    const auto any = more(bytes, known);
    if (!any) return any.error();
    if (!*any) break;
    reader.add(bytes);
    if (reader.kept() > kMostText)
      return Diagnostic{.where = std::string(name),
                        .message = "this has more than 1 GiB that is no log, so it is not read as a dump",
                        .hint = "give only the part that has packets"};
  }
  auto log = reader.finish();
  add_engine_queues(s, log.rest, name);
  add_facts(s, facts_of_log(log, name), name, process);
  return LogRest{.is_log = log.is_log, .has_dump = log.has_dump, .text = std::move(log.rest)};
}

}}}  // namespace sdma::v0_3::doctor
