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
#include <tuple>

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
  std::size_t record = 0, source = 0;
  std::optional<double> seconds{}, date{};
  explicit At(const LogLine& l) : record(l.record), source(l.source), seconds(l.seconds), date(l.date) {}
  bool near(const At& o) const noexcept {
    if (source != o.source) return false;
    if (seconds && o.seconds) return std::abs(*seconds - *o.seconds) <= kOwnSeconds;
    if (date && o.date) return std::abs(*date - *o.date) <= kOwnSeconds;
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
  FactReader(std::string_view name, const std::vector<detail::LogSource>& sources) : name_(name) {
    const bool several = std::count_if(sources.begin(), sources.end(), [](auto& s) { return s.records > 0; }) > 1;
    for (const auto& s : sources)
      origins_.push_back({.host = s.host,
                          .boot = s.boot,
                          .start = s.starts > 1 ? s.start : 0,
                          .words = several ? in_words(s) : std::string{}});
  }

  void take(const LogLine& l) {
    switch (l.message->what) {
      case LogWord::fault: {
        auto& f = begin(l).fault;
        f.hub = l.match["hub"];
        f.vmid = small(l.match.number("vmid"));
        f.pasid = small(l.match.number("pasid"));
        process(l, f.process, f.program);
        last_[gpu_of(l)] = {.block = blocks_.size()};
        last_block_[gpu_of(l)] = blocks_.size() - 1;
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
      case LogWord::dumped_process:
        dumped_ = {.origin = origins_[l.source]};
        process(l, dumped_.process, dumped_.program);
        break;
      case LogWord::dumped_fault:
        if (const auto va = page_of(l); va && *va != GpuVa{}) {
          auto& b = begin(l);
          if (dumped_.origin == b.fault.origin) b.fault.process = dumped_.process, b.fault.program = dumped_.program;
          page(l, b);
        }
        break;
      case LogWord::timeout: last_[gpu_of(l)] = {.event = event(l)}; break;
      case LogWord::event: event(l); break;
      default: detail(l);
    }
  }

  void finish(LogFacts& out) {
    for (auto& b : blocks_) decode(b.fault);
    name_processes();
    using Same = std::tuple<std::uint64_t, std::string, std::uint32_t, std::string, std::string, std::size_t>;
    std::map<Same, std::size_t> same;
    for (auto& b : blocks_) {
      out.without_page += !b.has_page;
      if (!b.has_page) continue;
      const auto& f = b.fault;
      const auto [first, fresh] = same.emplace(
          Same{f.page.value, f.device, f.process, f.origin.host, f.origin.boot, f.origin.start}, out.faults.size());
      if (fresh) out.faults.push_back(std::move(b.fault));
      else ++out.faults[first->second].reports;
    }
    out.events = std::move(events_);
  }

 private:
  /// A GPU of a start of a machine.
  using Gpu = std::pair<std::size_t, std::string>;
  static Gpu gpu_of(const LogLine& l) { return {l.source, l.device}; }
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
    f.origin = origins_[l.source];
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
    const auto last = last_.find(gpu_of(l));
    if (last == last_.end() || last->second.block == 0) return nullptr;
    auto& b = blocks_[last->second.block - 1];
    return b.at.near(At{l}) ? &b : nullptr;
  }
  LogEvent* event_of(const LogLine& l) {
    const auto last = last_.find(gpu_of(l));
    if (last == last_.end() || last->second.event == 0) return nullptr;
    const auto i = last->second.event - 1;
    return event_at_[i].near(At{l}) ? &events_[i] : nullptr;
  }

  /// A line of a fault that is neither the first nor that of the process.
  void detail(const LogLine& l) {
    // The fault to which it belongs is the last one of the GPU that has begun, whatever has been printed since.
    const auto last = last_block_.find(gpu_of(l));
    Block* b = last == last_block_.end() ? nullptr : &blocks_[last->second];
    if (b && !b->at.near(At{l})) b = nullptr;
    if (l.message->what == LogWord::page) {
      if (!b || b->has_page) {
        b = &begin(l);
        last_[gpu_of(l)] = {.block = blocks_.size()};
        last_block_[gpu_of(l)] = blocks_.size() - 1;
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

  /// A fault without a process has that of another one of its GPU with the same VMID and PASID, close by.
  void name_processes() {
    using Space = std::tuple<std::size_t, std::string, std::uint32_t, std::uint32_t>;
    const auto space_of = [](const Block& b) {
      return Space{b.at.source, b.fault.device, *b.fault.vmid, *b.fault.pasid};
    };
    std::map<Space, std::vector<std::size_t>> named;  // in the order of time
    for (std::size_t i = 0; i < blocks_.size(); ++i)
      if (const auto& b = blocks_[i]; b.fault.process != 0 && b.fault.vmid && b.fault.pasid)
        named[space_of(b)].push_back(i);
    for (std::size_t i = 0; i < blocks_.size(); ++i) {
      auto& b = blocks_[i];
      if (b.fault.process != 0 || !b.fault.vmid || !b.fault.pasid) continue;
      const auto all = named.find(space_of(b));
      if (all == named.end()) continue;
      const auto after = std::lower_bound(all->second.begin(), all->second.end(), i);
      const auto take = [&](std::size_t from) {
        if (b.fault.process != 0 || !blocks_[from].at.near(b.at)) return;
        b.fault.process = blocks_[from].fault.process;
        b.fault.program = blocks_[from].fault.program;
      };
      if (after != all->second.begin()) take(*std::prev(after));
      if (after != all->second.end()) take(*after);
    }
  }

  /// One more than its index.
  std::size_t event(const LogLine& l) {
    auto& seen = seen_[{gpu_of(l), std::string(l.said())}];
    if (seen != 0) {
      ++events_[seen - 1].reports;
      return seen;
    }
    LogEvent e{.seconds = l.seconds,
               .device = l.device,
               .said = std::string(l.said()),
               .means = std::string(l.message->means),
               .to_do = std::string(l.message->to_do),
               .from = std::string(name_),
               .origin = origins_[l.source]};
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
  std::vector<LogOrigin> origins_;  // of each source
  std::vector<Block> blocks_;
  std::map<Gpu, Last> last_;
  std::map<Gpu, std::size_t> last_block_;
  std::vector<LogEvent> events_;
  std::vector<At> event_at_;
  std::map<std::pair<Gpu, std::string>, std::size_t> seen_;  // one more than the index of the event
  PageFault dumped_;                                         // whose devcoredump it is
};

/// What the lines say, in the order of time.
void facts_in(const std::vector<LogLine>& lines, const std::vector<detail::LogSource>& sources, std::string_view name,
              LogFacts& out) {
  FactReader reader{name, sources};
  for (const auto& l : lines) {
    reader.take(l);
    out.devcoredump = out.devcoredump || l.message->what == LogWord::dumped_process;
  }
  reader.finish(out);
}

/// "host node7, boot 2 of 3: 120 lines, from 8.100 to 812.400", of each part of a log that has several.
std::vector<std::string> in_parts(const std::vector<detail::LogSource>& sources) {
  constexpr std::size_t kMost = 8;
  std::vector<std::string> out;
  std::size_t all = 0;
  for (const auto& s : sources) {
    if (s.records == 0 || ++all > kMost) continue;
    const auto whose = in_words(s), first = s.span.first();
    out.push_back(fmt::format(
        "{}{}: {}{}", whose,
        s.host.empty() ? (whose.empty() ? "a machine that is not named" : " of a machine that is not named") : "",
        plural(s.records, "line"), first.empty() ? "" : fmt::format(", from {} to {}", first, s.span.last())));
  }
  if (all > kMost) out.push_back(fmt::format("and {} more parts", all - kMost));
  return all > 1 ? out : std::vector<std::string>{};
}

LogFacts facts_of_log(const detail::Log& log, std::string_view name) {
  LogFacts out{.is_log = log.is_log};
  if (!log.is_log) return out;
  out.what = describe(log);
  out.form = log.form;
  out.of_kernel = log.of_kernel;
  out.known = !log.lines.empty() || (log.of_runtime && !log.of_kernel);
  facts_in(log.lines, log.sources, name, out);
  out.sources = in_parts(log.sources);
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
         (facts.form.empty() ? "" : fmt::format(" ({})", facts.form)) +
         (facts.sources.empty() ? "" : "; no line of one part is joined with one of another"));
  for (const auto& part : facts.sources) note(part);
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
  if (!p.origin.words.empty()) parts.push_back(p.origin.words);
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
    std::vector<detail::LogSource> sources;
    const auto lines = reader.so_far(sources);
    facts_in(lines, sources, name, facts);
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
