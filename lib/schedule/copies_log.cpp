// SPDX-License-Identifier: MIT
// Reads the log of the HIP runtime (AMD_LOG_LEVEL=4), of ROCm 5 to 7: copies, what became of them, what waits for what,
// and where memory was allocated. A line names its process and its thread; a later line about a copy is of its thread.
// A line of a batch is a part of one of its operations, which completes one signal for all of its parts.
#include "copies_forms.hpp"
#include "runtime_log_lines.hpp"

#include "../core/page.hpp"
#include "../core/words.hpp"

#include <algorithm>
#include <bit>
#include <map>

namespace sdma { inline namespace v0_3 { namespace detail {
namespace {

constexpr std::uint64_t kSwapAlign = 64, kBroadcastAlign = 32;  ///< of addresses, as the packets need

class RuntimeLog : private RuntimeLogLine {
 public:
  RuntimeLog(std::string_view text, std::string_view file, const CopiesOptions& o) : text_(text), options_(o) {
    out_.form = "a log of the HIP runtime";
    out_.file = file;
    out_.resolution_ns = 1000;
  }

  CopiesResult run() {
    while (!text_.empty()) {
      const auto l = take_line(text_);
      ++number_;
      if (auto wrong = line(l)) return *std::move(wrong);
    }
    remove_failed();
    say();
    if (out_.copies.empty() && !(options_.memory_alone && !out_.allocations.empty()))
      return Diagnostic{.where = out_.file,
                        .message = out_.left_out.empty()
                                       ? "this is a log of the HIP runtime, and it has no copy to or from a GPU"
                                       : "no engine has made a copy of this log: " + out_.left_out.front(),
                        .hint = "record a run that copies"};
    return std::move(out_);
  }

 private:
  /// The lines of a batch that one call of ROCr has taken, which fail together.
  struct Batch {
    std::string engine{}, wait{};  ///< the same in all lines
    std::string signal{};          ///< of the operation of the last line
    std::vector<std::size_t> copies{};
    std::optional<std::size_t> half{};  ///< a broadcast that has one destination so far
  };
  struct Thread {
    std::string stream{};
    Batch batch{};
    std::string device{};                    ///< the GPU that an allocation is on, until the line after it names it
    Direction call = Direction::unknown;     ///< of the API call that runs
    Direction staged = Direction::unknown;   ///< of the copies that follow in this call
    std::vector<std::size_t> copies{};       ///< of the API call that runs
    std::optional<std::size_t> last{};       ///< the last copy, which a failure is about
    std::vector<std::size_t> waited{};       ///< the copies for whose end the thread has waited
    std::optional<std::size_t> allocated{};  ///< the last allocation
  };
  using Signal = std::pair<std::string, std::string>;  ///< process and address

  std::optional<Diagnostic> line(std::string_view l) {
    if (const auto at = nanoseconds(l)) {
      for (; known_faults_ < out_.faults.size(); ++known_faults_) out_.faults[known_faults_].before_ns = at;
      last_ns_ = at;
    }
    const auto process = process_of(l);
    auto& t = threads_[{process, thread_of(l)}];
    if (is_copy_line(l)) return copy(l, process, t);
    if (has(l, "VirtualGPU ")) t.stream = value(l, "VirtualGPU ");
    if (has(l, "Copy staged ") || has(l, "Copy engine ")) t.staged = direction_of(l);
    else if (has(l, "Failed signal [")) unended(l, process, t);
    else if (has(l, "failed")) failed(l, t);
    else if (has(l, "Host wait on completion_signal=")) wait(l, process, t);
    else if (has(l, "Allocate hsa ")) allocate(l, process, t);
    else if (has(l, "Free hsa memory ")) release(l, process);
    else if (has(l, "Memory access fault by GPU ")) fault(l);
    else if (has(l, "evice=0x") && has(l, "freeMem_ =") && t.allocated)
      out_.allocations[*std::exchange(t.allocated, {})].memory = fmt::format("memory of device {}", value(l, "evice="));
    else if (has(l, ": Returned hip")) returned(l, t);
    else if (has(l, " hip") && has(l, " ( ")) begin_call(l, t);
    return {};
  }

  std::string here() const { return fmt::format("line {}", number_); }

  Place gpu(const std::string& name) {
    const auto [known, added] = gpus_.try_emplace(name, static_cast<std::uint32_t>(out_.gpus.size()));
    if (added) out_.gpus.push_back(name);
    return Place::gpu(known->second);
  }

  /// The memory in which an address lies, as far as the log shows its allocation.
  const RecordedAllocation* memory_at(const std::string& process, std::optional<std::uint64_t> address) const {
    const auto after = address ? memory_.upper_bound({process, *address}) : memory_.begin();
    if (after == memory_.begin()) return nullptr;
    const auto& a = out_.allocations[std::prev(after)->second];
    return std::prev(after)->first.first == process && *address - a.address < a.bytes ? &a : nullptr;
  }

  std::optional<Diagnostic> copy(std::string_view l, const std::string& process, Thread& t) {
    const bool engine = has(l, "copy_engine="), rectangle = has(l, "Copy Rect ");
    const auto part = value(l, "HSA BatchCopy ");
    const bool swap = part == "Swap";
    const auto from = number(l, swap ? "addr_a=" : "src="), to = number(l, swap ? "addr_b=" : "dst="),
               bytes = number(l, "size=");
    const bool no_size = rectangle || lacks_size(l);
    if (const auto why = unread(part); !why.empty()) {
      out_.left_out.push_back(fmt::format("{}: {}", here(), why));
      return {};
    }
    if (part.empty() && !engine && !from && !to) {
      out_.left_out.push_back(here() + ": a copy line by line, of which the log has no addresses");
      return {};
    }
    if (!from || !to || (!no_size && (!bytes || *bytes == 0)))
      return Diagnostic{.where = out_.file,
                        .message = fmt::format("{} names {}, but not {} and size", here(),
                                               swap     ? "a swap"
                                               : engine ? "a copy engine"
                                                        : "a copy",
                                               swap ? "addr_a, addr_b" : "dst, src")};
    if (swap && (*from % kSwapAlign != 0 || *to % kSwapAlign != 0)) {
      out_.left_out.push_back(
          fmt::format("{}: a swap of addresses that are not multiples of {}, as its packet needs", here(), kSwapAlign));
      return {};
    }
    RecordedCopy c{.bytes = no_size ? 0 : *bytes,
                   .kind = swap ? RecordedCopy::Kind::swap : RecordedCopy::Kind::copy,
                   .process = process,
                   .stream = t.stream.empty() ? fmt::format("thread {}", thread_of(l)) : t.stream,
                   .asked_ns = nanoseconds(l),
                   .where = here(),
                   .when = time_text(l) + here()};
    // Without a size, how far a rectangle reaches is not known.
    if (!rectangle) c.source = *from, c.destination = *to;
    else c.notes.emplace_back("a rectangle: its size is not recorded");
    if (lacks_size(l)) c.notes.emplace_back("its size is not recorded: this runtime prints a signal in its place");
    if (!places(l, process, t, from, to, c)) return {};
    const auto signal = std::string(value(l, lacks_size(l) ? "wait_event=" : "ompletion_signal="));
    const bool same = !part.empty() && enter_batch(l, t) && t.batch.signal == signal;
    if (part.empty()) t.batch = {};
    t.batch.signal = signal;
    if (!same) t.batch.half.reset();
    if (part == "Broadcast" && join_broadcast(t, c)) return {};
    engine_of(l, c);
    depend(l, process, t, c);
    const auto index = out_.copies.size();
    if (!signal.empty() && signal != "0x0") complete({process, signal}, c, index, same);
    t.last = index;
    t.copies.push_back(index);
    if (!part.empty()) t.batch.copies.push_back(index);
    if (part == "Broadcast") t.batch.half = index;
    out_.copies.push_back(std::move(c));
    return {};
  }

  /// Why a part of a batch is not read; "" if it is, or if the line is not one of a batch.
  static std::string unread(std::string_view part) {
    if (part.starts_with("Indirect"))
      return "an indirect copy of a batch, whose addresses are in memory and not in the log";
    if (part.empty() || part == "Linear" || part == "Multi" || part == "Broadcast" || part == "Swap") return {};
    return fmt::format("a part of a batch of a kind that is not known: {}", part);
  }
  /// False: the line begins a batch.
  static bool enter_batch(std::string_view l, Thread& t) {
    const auto engine = value(l, "engineOp="), wait = value(l, "wait_event=");
    if (!t.batch.engine.empty() && t.batch.engine == engine && t.batch.wait == wait) return true;
    t.batch = {.engine = std::string(engine), .wait = std::string(wait)};
    return false;
  }
  /// Does a packet make this part of a broadcast together with the part before it? It has two destinations.
  bool join_broadcast(Thread& t, const RecordedCopy& c) {
    if (!t.batch.half) return false;
    auto& first = out_.copies[*std::exchange(t.batch.half, {})];
    const bool packet = (*first.destination ^ *c.destination) % kBroadcastAlign == 0;
    if (first.source != c.source || first.bytes != c.bytes || first.stream != c.stream) return false;
    ++broadcasts_;
    if (!packet) {
      first.notes.push_back(fmt::format(
          "a broadcast whose destinations, here and in {}, are not equal modulo {}, as its packet needs: copies are taken",
          c.where, kBroadcastAlign));
      return false;
    }
    first.kind = RecordedCopy::Kind::broadcast;
    first.second = c.destination;
    first.second_to = c.to;
    first.when += fmt::format(" and {}", c.where);
    first.notes.insert(first.notes.end(), c.notes.begin(), c.notes.end());
    return true;
  }
  /// The signal is complete when all parts of the operation are. The last part of a queue ends last.
  void complete(const Signal& s, const RecordedCopy& c, std::size_t index, bool same) {
    auto& done = done_[s];
    if (!same) done.clear();
    const auto replaced = std::remove_if(done.begin(), done.end(), [&](std::size_t i) {
      const auto& d = out_.copies[i];
      return d.from == c.from && d.to == c.to && d.stream == c.stream;
    });
    done.erase(replaced, done.end());
    done.push_back(index);
  }

  /// The line says it, or the line before it, the allocations, or the call: in this order.
  Direction direction(std::string_view l, const Thread& t, const RecordedAllocation* from,
                      const RecordedAllocation* to) const {
    const auto type = value(l, "engineType=");
    if (type == "1") return Direction::down;
    if (type == "2") return Direction::up;
    if (type == "3" || type == "4") return Direction::across;
    for (const auto d : {direction_of(l), t.staged})
      if (d != Direction::unknown) return d;
    if (from && to) {
      const bool up = is_host(*from), down = is_host(*to);
      return up && down ? Direction::host : up ? Direction::up : down ? Direction::down : Direction::across;
    }
    return t.call;
  }
  static bool is_host(const RecordedAllocation& a) { return a.memory == "host memory"; }

  /// False: the copy is none of an engine of a GPU.
  bool places(std::string_view l, const std::string& process, const Thread& t, std::optional<std::uint64_t> source,
              std::optional<std::uint64_t> destination, RecordedCopy& c) {
    const auto *from = memory_at(process, source), *to = memory_at(process, destination);
    const auto d = direction(l, t, from, to);
    if (d == Direction::host) return ++hosts_, false;
    const auto device = [&](const RecordedAllocation* a) {
      constexpr std::string_view kOf = "memory of ";
      if (a && a->memory.starts_with(kOf)) return gpu(a->memory.substr(kOf.size()));
      ++unnamed_;
      return gpu("a GPU that the log does not name");
    };
    // "D2D/P2P" is both. Some lines name the agents.
    const auto operation = value(l, "engineOp="), one = value(l, "src_agent="), other = value(l, "dst_agent=");
    const bool peers = has(l, "engineType=4") || operation == "P2P" || one != other;
    c.from = d == Direction::up ? Place::host() : device(from);
    c.to = d == Direction::down ? Place::host() : device(to);
    if (d == Direction::unknown) c.notes.emplace_back("direction not recorded: both places are taken to be on the GPU");
    if (c.from.is_host() || !(c.from == c.to)) return true;
    if (operation == "D2D/P2P" && one.empty() && !(from && to))
      c.notes.emplace_back("within a GPU or between two, which the log does not tell: within one is taken");
    if (peers) {
      c.to = gpu("a peer that the log does not name");
      c.notes.emplace_back("between two GPUs, which the log does not name");
    }
    return true;
  }

  /// ROCr's engines are not the kernel's.
  void engine_of(std::string_view l, RecordedCopy& c) {
    const auto mask = mask_of(l);
    if (!mask || !std::has_single_bit(*mask)) {
      ++engines_;
      if (!c.from.is_host() && c.from == c.to) c.notes.emplace_back(kWithinGpu);
      return;
    }
    const auto n = static_cast<std::uint32_t>(std::countr_zero(*mask));
    c.rocr_engine = n;
    // Only lines of ROCm 7 have these words; its ROCr is newer than the change of September 2024.
    const bool newer = has(l, "engineType=") || has(l, "engineOp=");
    const auto g = options_.generation;
    const bool swapped = g == Generation::v4_4_2 || g == Generation::v4_4_2_header || g == Generation::v4_4_5;
    if (newer && swapped) c.engine = n < 2 ? 1 - n : n;
    else if (newer && g == Generation::v4_4 && n < 2) c.engine = n;
    if (!c.engine && !c.from.is_host() && c.from == c.to)
      c.notes.emplace_back("within a GPU, and the kernel's engine is not known: engine 2 is taken");
  }

  void depend(std::string_view l, const std::string& process, const Thread& t, RecordedCopy& c) {
    const auto signal = lacks_size(l) ? std::string_view{} : value(l, "wait_event=");
    const auto wait_for = [&](const std::vector<std::size_t>& all) {
      for (const auto i : all)
        if (std::find(c.after.begin(), c.after.end(), i) == c.after.end()) c.after.push_back(i);
    };
    if (const auto w = done_.find({process, std::string(signal)}); w != done_.end()) wait_for(w->second);
    else if (!signal.empty() && signal != "0x0" && signal != "0")
      c.notes.push_back(fmt::format("waits for signal {}, which no copy of the log completes", signal));
    wait_for(t.waited);
  }

  void wait(std::string_view l, const std::string& process, Thread& t) {
    if (const auto w = done_.find({process, std::string(value(l, "completion_signal="))}); w != done_.end())
      t.waited = w->second;
  }

  void unended(std::string_view l, const std::string& process, Thread& t) {
    const auto w = done_.find({process, std::string(value(l, "Failed signal ["))});
    if (w == done_.end()) return;
    for (const auto i : w->second) {
      out_.copies[i].ended = false;
      out_.copies[i].notes.push_back(fmt::format("{}: the wait for its end failed", here()));
    }
    if (t.waited == w->second) t.waited.clear();
  }
  void failed(std::string_view l, const Thread& t) {
    if (!(has(l, "opy") || has(l, "DMA buffer failed"))) return;
    const auto code = value(l, "failed with code ");
    const auto what = fmt::format("{}{} ({})", code.empty() ? "failed" : fmt::format("failed with code {}", code),
                                  has(l, "Blit copy") ? ", and a kernel copied instead" : "", here());
    const auto one = [&](std::size_t i) {
      if (!code.empty() || failed_.count(i) == 0) failed_[i] = what;
    };
    if (!t.batch.copies.empty()) std::for_each(t.batch.copies.begin(), t.batch.copies.end(), one);
    else if (t.last) one(*t.last);
  }
  /// What the call has submitted may have run, or not.
  void returned(std::string_view l, Thread& t) {
    if (const auto result = value(l, ": Returned "); result != "hipSuccess")
      for (const auto i : t.copies) {
        out_.copies[i].ended = false;
        out_.copies[i].notes.push_back(fmt::format("{}: its call returned {}", here(), result));
      }
    begin_call({}, t);
  }
  /// Lines before it were about copies of an earlier call.
  static void begin_call(std::string_view l, Thread& t) {
    t.call = direction_of(l);
    t.staged = Direction::unknown;
    t.copies.clear();
    t.batch = {};
  }

  void allocate(std::string_view l, const std::string& process, Thread& t) {
    t.allocated.reset();
    const auto address = number(l, "memory "), size = number(l, "size ");
    if (!address || *address == 0 || !size || *size == 0) return;
    const bool host = has(l, "hsa host memory");
    if (!host) t.allocated = out_.allocations.size();
    memory_[{process, *address}] = out_.allocations.size();
    out_.allocations.push_back({.address = *address,
                                .bytes = *size,
                                .process = process,
                                .memory = host ? "host memory" : "device memory",
                                .where = here(),
                                .from_ns = nanoseconds(l)});
  }
  void release(std::string_view l, const std::string& process) {
    const auto address = number(l, "Free hsa memory ");
    const auto m = address ? memory_.find({process, *address}) : memory_.end();
    if (m == memory_.end()) return;
    out_.allocations[m->second].freed = here();
    out_.allocations[m->second].to_ns = nanoseconds(l);
    memory_.erase(m);
  }
  /// ROCr's report, which names no process: of memory at one place in two processes, it is not known whose it is.
  void fault(std::string_view l) {
    auto text = value(l, "on address ");
    if (text.ends_with('.')) text.remove_suffix(1);
    const auto page = parse_count(std::string(text));
    if (!page) return;
    out_.faults.push_back({.address = *page, .where = here(), .after_ns = last_ns_});
    RecordedAllocation* last = nullptr;
    for (auto& a : out_.allocations) {
      if (*page < a.address / kPage * kPage || *page >= a.address + a.bytes) continue;
      if (last && last->process != a.process) return;
      last = &a;
    }
    if (!last || !last->fault.empty()) return;
    last->fault = here();
    last->gone = !last->freed.empty();
  }

  /// A copy that failed is not in the schedule; who waits for it, waits for those that it waited for.
  void remove_failed() {
    std::vector<std::size_t> index(out_.copies.size());
    std::vector<RecordedCopy> kept;
    for (std::size_t i = 0; i < out_.copies.size(); ++i) {
      auto& c = out_.copies[i];
      std::vector<std::size_t> after;
      for (const auto p : c.after) {
        if (failed_.count(p) == 0) after.push_back(index[p]);
        else after.insert(after.end(), out_.copies[p].after.begin(), out_.copies[p].after.end());
      }
      std::sort(after.begin(), after.end());
      after.erase(std::unique(after.begin(), after.end()), after.end());
      c.after = std::move(after);
      if (const auto f = failed_.find(i); f != failed_.end()) {
        out_.left_out.push_back(fmt::format("{}: a copy of {} bytes {}", c.where, c.bytes, f->second));
        continue;
      }
      index[i] = kept.size();
      kept.push_back(c);
    }
    out_.copies = std::move(kept);
  }

  void say() {
    if (unnamed_ > 0)
      out_.unknown.emplace_back("GPUs: where the log names none, a copy is taken to be of one GPU, the same for all");
    if (hosts_ > 0)
      out_.unknown.push_back(fmt::format("{} between two places of the host {} left out: no engine makes them",
                                         plural_of_copies(hosts_), hosts_ == 1 ? "is" : "are"));
    if (broadcasts_ > 0)
      out_.unknown.emplace_back(
          "broadcasts: the log does not tell how ROCr makes them, so each pair of destinations is one packet");
    if (engines_ > 0)
      out_.unknown.push_back(
          fmt::format("engines: of {} the log names none or several, so it is the one that the node recommends",
                      plural_of_copies(engines_)));
    if (std::any_of(out_.copies.begin(), out_.copies.end(), [](const auto& c) { return c.rocr_engine && !c.engine; }))
      out_.unknown.emplace_back(
          "engines: the log has ROCr's numbers. Which of the kernel's engines they are depends on the GPU (--gfx) and on "
          "ROCr: a comment at each queue has both; the queue is on the engine that the node recommends");
    out_.unknown.emplace_back(
        "order: a copy waits for the copy that its `wait_event` names, the first of several, and for those whose end "
        "its thread has awaited; kernels are not in the log");
    out_.unknown.emplace_back("times: those of the submission; the log does not say when a copy ran");
  }

  std::string_view text_;
  const CopiesOptions& options_;
  RecordedCopies out_;
  std::size_t number_ = 0;                  ///< of the line
  std::optional<std::uint64_t> last_ns_{};  ///< of the last line with a time
  std::size_t known_faults_ = 0;            ///< faults before it
  std::map<std::pair<std::string, std::string>, Thread> threads_;
  std::map<Signal, std::vector<std::size_t>> done_;                      ///< the last copies that complete each signal
  std::map<std::pair<std::string, std::uint64_t>, std::size_t> memory_;  ///< allocations that are not freed
  std::map<std::size_t, std::string> failed_;                            ///< copies that no engine made
  std::map<std::string, std::uint32_t> gpus_;
  std::size_t hosts_ = 0, engines_ = 0, unnamed_ = 0, broadcasts_ = 0;
};

}  // namespace

bool has_runtime_copies(std::string_view text) noexcept {
  while (!text.empty())
    if (RuntimeLogLine::is_copy_line(take_line(text))) return true;
  return false;
}

bool has_runtime_memory(std::string_view text) noexcept {
  while (!text.empty()) {
    const auto l = take_line(text);
    if (RuntimeLogLine::has(l, "Allocate hsa ") && RuntimeLogLine::has(l, " us:")) return true;
  }
  return false;
}

CopiesResult read_runtime_log(std::string_view text, std::string_view file, const CopiesOptions& o) {
  return RuntimeLog{text, file, o}.run();
}

}}}  // namespace sdma::v0_3::detail
