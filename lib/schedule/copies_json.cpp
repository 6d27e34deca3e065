// SPDX-License-Identifier: MIT
// Reads copies from JSON: rocprofv3's, with its table of agents, and Chrome traces as kineto (PyTorch) writes them.
#include "copies_forms.hpp"
#include "json_rows.hpp"
#include "roctx_ranges.hpp"

#include "../core/words.hpp"
#include "sdma/core/number.hpp"

#include <algorithm>
#include <cmath>
#include <cstdlib>

namespace sdma { inline namespace v0_3 { namespace detail {
namespace {

using JsonRow = JsonRows::Row;

std::string_view field(const JsonRow& r, std::string_view name) {
  const auto f = r.find(name);
  return f == r.end() ? std::string_view{} : f->second;
}
std::optional<std::uint64_t> count(const JsonRow& r, std::string_view name) {
  const auto text = field(r, name);
  return text.empty() ? std::nullopt : parse_count(std::string(text));
}

/// A reader meets an error inside a row, and its visitor returns nothing: the first one is kept.
class CopiesOfJson : public JsonRows {
 public:
  CopiesOfJson(std::string_view file, const char* form, const CopiesOptions& o)
      : t_{.memory_alone = o.memory_alone, .form = form, .file = std::string(file)} {}

  std::optional<Diagnostic> error{};

 protected:
  void wrong(std::string message, std::string hint = {}) {
    if (!error) error = Diagnostic{.where = t_.file, .message = std::move(message), .hint = std::move(hint)};
  }
  CopyTable t_;
};

// -- rocprofv3 ------------------------------------------------------------------------------------------------------

class RocprofJson final : public CopiesOfJson {
 public:
  RocprofJson(std::string_view file, const CopiesOptions& o) : CopiesOfJson(file, "the JSON of rocprofv3", o) {}

  CopiesResult finish() {
    end_process();
    if (error) return *std::move(error);
    if (across_ > 0)
      t_.unknown.emplace_back(
          "agents: since September 2025, HIP may name the two GPUs of a copy between GPUs the wrong way round");
    RoctxRanges::say(without_call_, without_thread_, t_.unknown);
    return copies_of(std::move(t_));
  }

 private:
  static constexpr std::string_view kRoot = "rocprofiler-sdk-tool";

  bool is_row(std::string_view path) override {
    if (!path.starts_with(kRoot)) return false;
    path.remove_prefix(std::min(path.size(), kRoot.size() + 1));
    constexpr std::string_view kRows[] = {"agents",
                                          "buffer_records.memory_copy",
                                          "buffer_records.memory_allocation",
                                          "buffer_records.hip_api",
                                          "buffer_records.hsa_api",
                                          "buffer_records.marker_api",
                                          "strings.buffer_records",
                                          "strings.marker_api"};
    return std::find(std::begin(kRows), std::end(kRows), path) != std::end(kRows);
  }
  void entered(std::string_view path) override {
    if (path == kRoot) end_process(), ++processes_;
  }
  void found(std::string_view path, std::string_view v) override {
    if (path == "rocprofiler-sdk-tool.metadata.pid") pid_ = v;
  }
  void row(std::string_view path, JsonRow& r) override {
    if (path.ends_with("agents")) agents_[std::string(field(r, "id.handle"))] = agent(r);
    else if (path.ends_with("memory_copy")) copy(r);
    else if (path.ends_with("memory_allocation")) allocation(r);
    else if (path.ends_with("strings.buffer_records")) kinds_.emplace_back(field(r, "kind"));
    else if (path.ends_with("strings.marker_api")) names_[count(r, "key").value_or(0)] = field(r, "value");
    else call(path, r);
  }
  /// A call of the runtime, or a record of roctx.
  void call(std::string_view path, const JsonRow& r) {
    const auto correlation = count(r, "correlation_id.internal"), thread = count(r, "thread_id");
    const auto begin = count(r, "start_timestamp"), end = count(r, "end_timestamp");
    if (!correlation || !thread || !begin || !end) return;
    if (!path.ends_with("marker_api")) ranges_.call(*correlation, *thread, *begin);
    else if (const auto kind = count(r, "kind"))
      markers_.push_back({*kind, *correlation, {.thread = *thread, .begin = *begin, .end = *end}});
  }

  struct Agent {
    CopyRow::Side is{};
    std::string name{};
  };
  static Agent agent(const JsonRow& r) {
    const auto type = field(r, "type"), gfx = field(r, "name"), node = field(r, "node_id");
    Agent a{.is = type == "1" ? CopyRow::Side::host : type == "2" ? CopyRow::Side::gpu : CopyRow::Side::unknown};
    a.name = node.empty() ? fmt::format("agent {}", field(r, "id.handle")) : fmt::format("node {}", node);
    if (a.is == CopyRow::Side::gpu && !gfx.empty()) a.name += fmt::format(" ({})", gfx);
    return a;
  }

  void copy(const JsonRow& r) {
    const auto where = fmt::format("memory_copy[{}]{}", copies_++,
                                   processes_ > 1 ? fmt::format(" of process {}", processes_) : std::string{});
    const auto begin = count(r, "start_timestamp"), end = count(r, "end_timestamp");
    if (!begin || !end || *end < *begin)
      return wrong(fmt::format("{} does not end after it begins", where), "times are nanoseconds");
    constexpr Direction kDirections[] = {Direction::unknown, Direction::host, Direction::up, Direction::down,
                                         Direction::across};
    const auto operation = count(r, "operation");
    if (operation && *operation >= std::size(kDirections))
      return wrong(fmt::format("{}: {} is not a known operation", where, *operation), "they are 0 to 4");
    const auto d = operation ? kDirections[*operation] : Direction::unknown;
    if (const auto bytes = field(r, "bytes"); !bytes.empty() && !count(r, "bytes"))
      return wrong(fmt::format("{}: '{}' is not a number of bytes", where, bytes));
    across_ += d == Direction::across;
    if (const auto call = count(r, "correlation_id.internal")) ranges_.copy(*call, rows_.size());
    else ranges_.copy_without_call();
    rows_.push_back({.from = std::string(field(r, "src_agent_id.handle")),
                     .to = std::string(field(r, "dst_agent_id.handle")),
                     .from_is = source_of(d),
                     .to_is = destination_of(d),
                     .bytes = count(r, "bytes").value_or(0),
                     .stream = std::string(field(r, "stream_id.handle")),
                     .begin_ns = *begin,
                     .end_ns = *end,
                     .where = where});
  }

  /// A free names neither agent nor size, so it is paired by its address.
  void allocation(const JsonRow& r) {
    const auto where = fmt::format("memory_allocation[{}]", allocated_++);
    const auto address = count(r, "address");
    if (!address || *address == 0) return;
    const auto operation = field(r, "operation");
    if (operation == "1" || operation == "2") {
      memory_.push_back({.address = *address,
                         .bytes = count(r, "allocation_size").value_or(0),
                         .memory = std::string(field(r, "agent_id.handle")),
                         .where = where,
                         .from_ns = count(r, "end_timestamp")});
    } else if (operation == "3" || operation == "4") {
      const auto a = std::find_if(memory_.rbegin(), memory_.rend(),
                                  [&](const auto& m) { return m.address == *address && m.freed.empty(); });
      if (a != memory_.rend()) a->freed = where, a->to_ns = count(r, "start_timestamp");
    }
  }

  /// The names and kinds of records follow them.
  void end_ranges() {
    for (auto& [kind, correlation, range] : markers_) {
      const auto name = names_.find(correlation);
      if (kind >= kinds_.size() || !RoctxRanges::is_range(kinds_[kind]) || name == names_.end()) continue;
      range.name = name->second;
      ranges_.range(std::move(range));
    }
    without_call_ += ranges_.resolve(
        [&](std::size_t copy, std::string phase) { return rows_[copy].phase = std::move(phase), true; });
    without_thread_ += ranges_.without_thread();
    ranges_ = {};
    kinds_.clear(), names_.clear(), markers_.clear();
  }

  /// The table of agents may follow the copies.
  void end_process() {
    end_ranges();
    for (auto& r : rows_) {
      for (auto [name, is] : {std::pair(&r.from, &r.from_is), std::pair(&r.to, &r.to_is)}) {
        const auto a = agents_.find(*name);
        if (a == agents_.end()) {
          if (!name->empty()) *name = fmt::format("agent {}, which the table does not have", *name);
          continue;
        }
        if (a->second.is != CopyRow::Side::unknown && *is != CopyRow::Side::unknown && a->second.is != *is)
          wrong(fmt::format("{}: its operation is not what its agents are", r.where),
                "the table of agents says whether each is a CPU (type 1) or a GPU (type 2)");
        if (a->second.is != CopyRow::Side::unknown) *is = a->second.is;
        *name = a->second.name;
      }
      r.process = pid_.empty() && processes_ > 1 ? fmt::format("process {}", processes_) : pid_;
      t_.rows.push_back(std::move(r));
    }
    for (auto& m : memory_) {
      const auto a = agents_.find(m.memory);
      m.memory = a == agents_.end() ? "memory" : "memory of " + a->second.name;
      m.process = pid_;
      t_.allocations.push_back(std::move(m));
    }
    rows_.clear(), memory_.clear(), agents_.clear(), pid_.clear();
    copies_ = allocated_ = 0;
  }

  std::map<std::string, Agent> agents_;
  std::vector<CopyRow> rows_;  ///< of this process
  std::vector<RecordedAllocation> memory_;
  std::string pid_;
  struct Marker {
    std::uint64_t kind{}, correlation{};
    RoctxRanges::Range range{};
  };
  RoctxRanges ranges_;                          ///< of this process
  std::vector<Marker> markers_;                 ///< of this process
  std::map<std::uint64_t, std::string> names_;  ///< of markers, by correlation
  std::vector<std::string> kinds_;              ///< of records, by their numbers
  std::size_t copies_ = 0, allocated_ = 0, processes_ = 0, across_ = 0, without_call_ = 0, without_thread_ = 0;
};

// -- Chrome traces --------------------------------------------------------------------------------------------------

/// Microseconds with decimals, as nanoseconds. A decimal fraction is exact, which a double is not.
std::optional<std::uint64_t> nanoseconds_of(std::string_view us, std::size_t& decimals) {
  constexpr double kMost = 1e16;
  if (us.find_first_of("eE") != us.npos) {
    const auto value = std::strtod(std::string(us).c_str(), nullptr);
    return value >= 0 && value < kMost ? std::optional(static_cast<std::uint64_t>(std::llround(value * 1000)))
                                       : std::nullopt;
  }
  const auto point = us.find('.');
  const auto whole = whole_number<std::uint64_t>(us.substr(0, point));
  if (!whole || static_cast<double>(*whole) >= kMost) return {};
  auto fraction = std::string(point == us.npos ? "" : us.substr(point + 1));
  fraction.resize(std::min<std::size_t>(3, fraction.size()));
  decimals = std::max(decimals, fraction.size());
  fraction.resize(3, '0');
  const auto rest = whole_number<std::uint64_t>(fraction);
  return rest ? std::optional(*whole * 1000 + *rest) : std::nullopt;
}

class ChromeJson final : public CopiesOfJson {
 public:
  ChromeJson(std::string_view file, const CopiesOptions& o) : CopiesOfJson(file, "a Chrome trace", o) {}

  bool has_events = false;

  CopiesResult finish(bool cut) {
    for (const auto& [lane, begun] : begun_)
      for (const auto& r : begun)
        if (is_copy(r))
          t_.left_out.push_back(fmt::format("{}: a copy that does not end in the file", field(r, "name")));
    if (error) return *std::move(error);
    take_calls();
    if (cut) t_.unknown.push_back(fmt::format("the file's end is missing: {} events are read", events_));
    if (kernels_ > 0)
      t_.unknown.push_back(fmt::format("{} made by kernels (__amd_rocclr_copyBuffer) {} left out",
                                       plural_of_copies(kernels_), kernels_ == 1 ? "is" : "are"));
    constexpr std::uint64_t kResolutions[] = {1000, 100, 10, 1};
    t_.resolution_ns = kResolutions[std::min<std::size_t>(3, decimals_)];
    return copies_of(std::move(t_));
  }

 private:
  bool is_row(std::string_view path) override { return path.empty() ? root_ : path == "traceEvents"; }
  void open(bool object) override {
    if (std::exchange(first_, false)) root_ = has_events = !object;
    JsonRows::open(object);
  }
  void key(std::string_view k) override {
    if (k == "traceEvents") has_events = true;
    JsonRows::key(k);
  }
  static bool is_copy(const JsonRow& r) {
    const auto name = field(r, "name");
    return direction_of(name) != Direction::unknown &&
           (field(r, "cat") == "gpu_memcpy" || name.starts_with("Memcpy") || name.starts_with("MEMORY_COPY"));
  }

  void row(std::string_view, JsonRow& r) override {
    ++events_;
    const auto ph = field(r, "ph");
    if (field(r, "name").starts_with("__amd_rocclr_copyBuffer")) ++kernels_;
    const std::pair lane{std::string(field(r, "pid")), std::string(field(r, "tid"))};
    if (ph == "X" && !field(r, "args.correlation").empty() && !is_copy(r)) call(r);
    if (ph == "B") begun_[lane].push_back(std::move(r));
    else if (ph == "X" && is_copy(r)) copy(r, field(r, "ts"), {}, field(r, "dur"));
    else if (auto& begun = begun_[lane]; ph == "E" && !begun.empty()) {
      if (is_copy(begun.back())) copy(begun.back(), field(begun.back(), "ts"), field(r, "ts"), {});
      begun.pop_back();
    }
  }

  void copy(const JsonRow& r, std::string_view ts, std::string_view te, std::string_view dur) {
    const auto where = fmt::format("event {}", events_);
    const auto name = field(r, "name");
    const auto d = direction_of(name);
    const auto begin = nanoseconds_of(ts, decimals_);
    auto end = nanoseconds_of(te.empty() ? dur : te, decimals_);
    if (begin && end && te.empty()) *end += *begin;
    if (!begin || !end || *end < *begin)
      return wrong(fmt::format("{}: {} does not end after it begins", where, name), "ts and dur are microseconds");
    const auto arg = r.lower_bound("args.");
    if (d != Direction::host && (arg == r.end() || !arg->first.starts_with("args.")))
      return wrong(fmt::format("{}: {} has no args: its device, its stream and its bytes are missing", where, name),
                   "take the trace as the profiler writes it: torch.profiler's export_chrome_trace keeps them");
    CopyRow c{.from_is = source_of(d),
              .to_is = destination_of(d),
              .bytes = count(r, "args.bytes").value_or(0),
              .begin_ns = *begin,
              .end_ns = *end,
              .where = where};
    const auto either = [&](const char* a, const char* b) { return field(r, a).empty() ? field(r, b) : field(r, a); };
    const auto from = field(r, "args.fromDevice"), to = field(r, "args.toDevice");
    const auto device = std::string(either("args.device", from.empty() ? "pid" : "args.inDevice"));
    c.stream = fmt::format("{}.{}", device, either("args.stream", "tid"));
    const auto here = "device " + device;
    c.from = c.from_is == CopyRow::Side::host ? "" : from.empty() ? here : fmt::format("device {}", from);
    c.to = c.to_is == CopyRow::Side::host ? "" : to.empty() ? here : fmt::format("device {}", to);
    if (d == Direction::across && from.empty() && to.empty()) {
      if (name.find("PtoP") != name.npos) {
        c.to = fmt::format("a peer of device {}, which is not named", device);
        c.notes.push_back(
            fmt::format("which GPU is the other one is not recorded, nor which of both is device {}", device));
      } else {
        c.notes.push_back(fmt::format("one device is named: if this copy was between GPUs, the other is not known"));
      }
    }
    made_by_.push_back(std::string(field(r, "args.correlation")));
    t_.rows.push_back(std::move(c));
  }

  /// A call of the runtime, which may have the addresses that its copy lacks: "src" and "dst", as text.
  void call(const JsonRow& r) {
    const auto address = [&](const char* name) -> std::optional<std::uint64_t> {
      const auto text = field(r, name);
      return text.starts_with("0x") ? parse_count(std::string(text)) : std::nullopt;
    };
    const auto source = address("args.src"), destination = address("args.dst");
    if (!source || !destination || *source == 0 || *destination == 0) return;
    Call c{source, destination, nanoseconds_of(field(r, "ts"), decimals_)};
    const auto [known, fresh] = calls_.emplace(field(r, "args.correlation"), c);
    if (!fresh) known->second = {};  // of two calls with one number, none is that of a copy
  }
  /// The calls may follow their copies in the file. A call that has made several copies has the addresses of none.
  void take_calls() {
    std::map<std::string_view, std::size_t> copies;
    for (const auto& correlation : made_by_) ++copies[correlation];
    for (std::size_t i = 0; i < made_by_.size(); ++i) {
      const auto c = calls_.find(made_by_[i]);
      if (c == calls_.end() || copies[made_by_[i]] != 1) continue;
      t_.rows[i].source = c->second.source;
      t_.rows[i].destination = c->second.destination;
      t_.rows[i].asked_ns = c->second.at;
    }
  }
  struct Call {
    std::optional<std::uint64_t> source{}, destination{}, at{};
  };

  std::vector<std::string> made_by_;  // the correlation of each row
  std::map<std::string, Call, std::less<>> calls_;
  std::map<std::pair<std::string, std::string>, std::vector<JsonRow>> begun_;
  std::size_t events_ = 0, kernels_ = 0, decimals_ = 0;
  bool first_ = true, root_ = false;
};

}  // namespace

CopiesResult read_json_copies(std::string_view text, std::string_view file, const CopiesOptions& o) {
  const auto wrong = [&](std::string message, std::string hint = {}) {
    return Diagnostic{.where = std::string(file), .message = std::move(message), .hint = std::move(hint)};
  };
  const auto broken = [&](const JsonWalk& walk) {
    return wrong(fmt::format("this is not JSON, or it is cut off: nothing can be read after byte {}", walk.end),
                 "copy the file again, after the tool that wrote it has ended");
  };
  constexpr std::string_view kRocprof = "\"rocprofiler-sdk-tool\"";
  if (const auto at = text.find_first_not_of(" \t\r\n", 1); at != text.npos && text.substr(at).starts_with(kRocprof)) {
    RocprofJson reader(file, o);
    if (const auto walk = walk_json(text, reader); !walk.whole) return broken(walk);
    if (!reader.twice.empty()) return wrong(fmt::format("the key {} appears twice in an object", reader.twice));
    return reader.finish();
  }
  ChromeJson reader(file, o);
  const auto walk = walk_json(text, reader);
  // The format lets the end of a bare array be missing.
  const bool cut = !walk.whole && text.starts_with('[') && walk.end >= text.size();
  if (!walk.whole && !cut) return broken(walk);
  if (!reader.twice.empty()) return wrong(fmt::format("the key {} appears twice in an event", reader.twice));
  if (!reader.has_events) return wrong("this JSON has no traceEvents", kCopyForms);
  return reader.finish(cut);
}

}}}  // namespace sdma::v0_3::detail
