// SPDX-License-Identifier: MIT
// Finds out which form a recording has, and makes copies of the rows that a reader has found.
#include "sdma/schedule/copies.hpp"

#include "copies_forms.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>

namespace sdma { inline namespace v0_3 {
namespace detail {

Direction direction_of(std::string_view name) noexcept {
  constexpr std::pair<std::string_view, Direction> kWords[] = {{"HOST_TO_DEVICE", Direction::up},
                                                               {"DEVICE_TO_HOST", Direction::down},
                                                               {"DEVICE_TO_DEVICE", Direction::across},
                                                               {"HOST_TO_HOST", Direction::host},
                                                               {"HtoD", Direction::up},
                                                               {"DtoH", Direction::down},
                                                               {"DtoD", Direction::across},
                                                               {"PtoP", Direction::across},
                                                               {"HtoH", Direction::host},
                                                               {"HostToDevice", Direction::up},
                                                               {"DeviceToHost", Direction::down},
                                                               {"DeviceToDevice", Direction::across},
                                                               {"HostToHost", Direction::host},
                                                               {"H2D", Direction::up},
                                                               {"D2H", Direction::down},
                                                               {"D2D", Direction::across},
                                                               {"P2P", Direction::across}};
  for (const auto& [word, d] : kWords)
    if (name.find(word) != name.npos) return d;
  return Direction::unknown;
}

}  // namespace detail

namespace {

using Side = CopyRow::Side;

/// A stream whose copies overlap lists at most so many of them before a later copy.
constexpr std::size_t kMostOpen = 64;
/// So many polls make a text of about 50 MB.
constexpr std::size_t kMostWaits = 1'000'000;

class CopiesOfRows {
 public:
  explicit CopiesOfRows(CopyTable&& t) : t_(std::move(t)) {
    out_.form = std::move(t_.form);
    out_.file = std::move(t_.file);
    out_.unknown = std::move(t_.unknown);
    out_.left_out = std::move(t_.left_out);
    out_.allocations = std::move(t_.allocations);
    out_.resolution_ns = t_.resolution_ns;
  }

  Result<RecordedCopies, Diagnostic> run() {
    for (const auto& r : t_.rows)
      if (auto wrong = learn(r)) return *std::move(wrong);
    std::stable_sort(t_.rows.begin(), t_.rows.end(),
                     [](const CopyRow& a, const CopyRow& b) { return a.begin_ns < b.begin_ns; });
    out_.copies.reserve(t_.rows.size());  // many rows are most of the memory
    for (auto& r : t_.rows) {
      copy(std::move(r));
      if (waits_ > kMostWaits)
        return Diagnostic{.where = out_.file,
                          .message = fmt::format("its copies would have more than {} waits for each other", kMostWaits),
                          .hint = "copies of a stream overlap in large numbers: record a shorter run"};
    }
    say();
    if (out_.copies.empty() && !(t_.memory_alone && !out_.allocations.empty()))
      return Diagnostic{.where = out_.file,
                        .message = "this is " + out_.form + ", and it has no copy to or from a GPU",
                        .hint = "record a run that copies"};
    return std::move(out_);
  }

 private:
  struct Known {
    Side is{};
    std::string where{};
  };
  /// An agent is the host or a GPU, in all rows.
  std::optional<Diagnostic> learn(const CopyRow& r) {
    for (const auto& [name, is] : {std::pair(&r.from, r.from_is), std::pair(&r.to, r.to_is)}) {
      if (name->empty() || is == Side::unknown) continue;
      const auto [known, added] = agents_.try_emplace(*name, Known{is, r.where});
      if (!added && known->second.is != is)
        return Diagnostic{.where = out_.file,
                          .message = fmt::format("{}: {} is {} here, and {} in {}", r.where, *name, said(is),
                                                 said(known->second.is), known->second.where),
                          .hint = "an agent is one of both: give a recording of one node with one numbering of agents"};
    }
    return {};
  }
  static const char* said(Side s) noexcept { return s == Side::host ? "the host" : "a GPU"; }
  Side is(const std::string& name, Side is) const {
    if (is != Side::unknown || name.empty()) return is;
    const auto known = agents_.find(name);
    return known == agents_.end() ? Side::unknown : known->second.is;
  }

  Place gpu(const std::string& name) {
    const auto [known, added] = gpus_.try_emplace(name, static_cast<std::uint32_t>(out_.gpus.size()));
    if (added) out_.gpus.push_back(name);
    return Place::gpu(known->second);
  }
  void leave_out(const CopyRow& r, const char* why) { out_.left_out.push_back(fmt::format("{}: {}", r.where, why)); }

  void copy(CopyRow&& r) {
    const auto from = is(r.from, r.from_is), to = is(r.to, r.to_is);
    if (from == Side::unknown || to == Side::unknown)
      return leave_out(r, "a copy whose agents are neither named nor given by a direction");
    if (from == Side::host && to == Side::host) return void(++hosts_);
    RecordedCopy c{.bytes = r.bytes,
                   .source = r.source,
                   .destination = r.destination,
                   .process = std::move(r.process),
                   .stream = std::move(r.stream),
                   .begin_ns = r.begin_ns,
                   .end_ns = r.end_ns,
                   .asked_ns = r.asked_ns,
                   .phase = std::move(r.phase),
                   .where = std::move(r.where),
                   .when = when(r.begin_ns, r.end_ns),
                   .notes = std::move(r.notes)};
    c.from = from == Side::host ? Place::host() : gpu(r.from.empty() ? "a GPU that is not named" : r.from);
    c.to = to == Side::host ? Place::host() : gpu(r.to.empty() ? "a GPU that is not named" : r.to);
    if (!c.from.is_host() && c.from == c.to) c.notes.emplace_back(detail::kWithinGpu);
    if (c.stream.empty()) ++alone_;
    else order(c);
    sizes_ += c.bytes == 0;
    addresses_ += !c.source || !c.destination;
    out_.copies.push_back(std::move(c));
  }
  std::string when(std::uint64_t begin, std::uint64_t end) const {
    return fmt::format("{} ns, for {} ns", begin, end - begin);
  }

  /// The copy waits for those of its stream that had ended when it began. Those that overlap it have no order with it.
  void order(RecordedCopy& c) {
    auto& open = open_[{c.process, c.stream}];
    std::vector<std::size_t> still, before;
    const RecordedCopy* overlaps = nullptr;
    for (const auto i : open) {
      const auto& p = out_.copies[i];
      if (*p.end_ns <= *c.begin_ns + out_.resolution_ns - 1) {
        before.push_back(i);
        continue;
      }
      overlaps = &p;
      still.push_back(i);
      before.insert(before.end(), p.after.begin(), p.after.end());
    }
    std::sort(before.begin(), before.end());
    before.erase(std::unique(before.begin(), before.end()), before.end());
    if (overlaps)
      c.notes.push_back(fmt::format("the times refute its order in the stream: {} still ran", overlaps->where));
    if (before.size() > kMostOpen || still.size() > kMostOpen) {
      c.notes.push_back(fmt::format("of the copies before it that overlap, it waits for the last {} alone", kMostOpen));
      if (before.size() > kMostOpen) before.erase(before.begin(), before.end() - kMostOpen);
      if (still.size() > kMostOpen) still.erase(still.begin(), still.end() - kMostOpen);
    }
    waits_ += before.size();
    c.after = std::move(before);
    still.push_back(out_.copies.size());
    open = std::move(still);
  }

  void say() {
    const auto all = out_.copies.size();
    const auto unknown = [&](const std::string& s) { out_.unknown.push_back(s); };
    if (sizes_ == all) unknown("sizes: the file has none, so each copy has `bytes` bytes: --set bytes=64K");
    else if (sizes_ > 0) unknown("sizes: where the file has none, a copy has `bytes` bytes: --set bytes=64K");
    if (addresses_ == all) unknown("addresses: the file has none, so each copy has buffers of its own");
    unknown("engines: not recorded, so they are those that the node recommends for each direction");
    if (alone_ == all) unknown("order: the file has no streams, so no copy waits for another");
    else
      unknown(fmt::format("order: that of each stream{}; what the program ordered by events is not in the file",
                          alone_ > 0 ? ", if the file names it" : ""));
    if (hosts_ > 0)
      unknown(fmt::format("{} between two places of the host {} left out: no engine makes them",
                          detail::plural_of_copies(hosts_), hosts_ == 1 ? "is" : "are"));
  }

  CopyTable t_;
  RecordedCopies out_;
  std::map<std::string, Known> agents_;
  std::map<std::string, std::uint32_t> gpus_;
  std::map<std::pair<std::string, std::string>, std::vector<std::size_t>> open_;  ///< by process and stream
  std::size_t sizes_ = 0, addresses_ = 0, alone_ = 0, hosts_ = 0, waits_ = 0;
};

}  // namespace

Result<RecordedCopies, Diagnostic> copies_of(CopyTable t) { return CopiesOfRows{std::move(t)}.run(); }

Result<RecordedCopies, Diagnostic> read_copies(std::string_view text, std::string_view file, const CopiesOptions& o) {
  const auto begin = std::min(text.find_first_not_of(" \t\r\n\xef\xbb\xbf"), text.size());
  const auto rest = text.substr(begin);
  const auto line = rest.substr(0, rest.find('\n'));
  if (!o.calls.empty() && (rest.starts_with('{') || rest.starts_with('[') || line.find("Direction") == line.npos))
    return Diagnostic{
        .where = o.calls.front().file,
        .message = fmt::format("{} is not the CSV of rocprofv3's copies, beside which tables of calls lie", file),
        .hint = "give NAME_memory_copy_trace.csv first, or one file alone"};
  if (rest.starts_with('{') || rest.starts_with('[')) return detail::read_json_copies(rest, file, o);
  if (line.find("Allocation_Size") != line.npos && o.memory_alone) return detail::read_rocprof_memory(rest, file);
  if (line.find("Direction") != line.npos || line.find("Allocation_Size") != line.npos)
    return detail::read_rocprof_csv(rest, file, o);
  if (detail::has_runtime_copies(text) || (o.memory_alone && detail::has_runtime_memory(text)))
    return detail::read_runtime_log(text, file, o);
  return Diagnostic{
      .where = std::string(file), .message = "no copies are found in this file", .hint = detail::kCopyForms};
}

std::vector<Diagnostic> contradictions(const RecordedCopies& r) {
  constexpr std::size_t kShown = 8;
  std::optional<std::uint64_t> start;
  for (const auto& c : r.copies)
    if (c.begin_ns && (!start || *c.begin_ns < *start)) start = c.begin_ns;
  // As early as the schedule allows: a copy begins after those it waits for, and not before those ahead in its queue.
  std::vector<std::size_t> ahead(r.copies.size(), r.copies.size());
  for (const auto& q : detail::queues_of(r))
    for (std::size_t i = 1; i < q.copies.size(); ++i) ahead[q.copies[i]] = q.copies[i - 1];
  std::vector<std::uint64_t> begins(r.copies.size()), ends(r.copies.size());
  std::vector<Diagnostic> all;
  std::size_t more = 0;
  for (std::size_t i = 0; i < r.copies.size(); ++i) {
    const auto& c = r.copies[i];
    std::uint64_t begin = start.value_or(0);
    std::size_t cause = i;
    const auto wait = [&](std::size_t p, std::uint64_t until) {
      if (until > begin) begin = until, cause = p;
    };
    for (const auto p : c.after)
      if (p < i) wait(p, ends[p]);
    if (ahead[i] < i) wait(ahead[i], begins[ahead[i]]);
    const bool timed = c.begin_ns && c.end_ns && *c.end_ns >= *c.begin_ns;
    begins[i] = begin;
    ends[i] = begin + (timed ? *c.end_ns - *c.begin_ns : 0);
    if (!timed || begin <= *c.begin_ns || begin - *c.begin_ns <= r.resolution_ns) continue;
    if (all.size() == kShown) {
      ++more;
      continue;
    }
    all.push_back({.severity = Severity::warning,
                   .where = r.file,
                   .message = fmt::format("{}: in the schedule, this copy begins at {} ns at the earliest, because of "
                                          "{}; the file says {} ns",
                                          c.where, begin, r.copies[cause].where, *c.begin_ns)});
  }
  if (more > 0) all.back().hint = fmt::format("{} more copies begin too late", more);
  return all;
}

}}  // namespace sdma::v0_3
