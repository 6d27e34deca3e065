// SPDX-License-Identifier: MIT
// Reads what other tools have recorded about copies. Each reader knows one form, and says what the form leaves open.
#include "sdma/schedule/copies.hpp"

#include "../core/csv.hpp"
#include "../core/json.hpp"
#include "../core/words.hpp"
#include "sdma/core/number.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <map>

namespace sdma { inline namespace v0 {
namespace {

using detail::Json;

constexpr const char* kForms =
    "it reads the CSV of rocprofv3 --memory-copy-trace, Chrome traces with copies of GPUs, and logs of AMD_LOG_LEVEL=4";

enum class Direction : std::uint8_t { unknown, up, down, across, host };
/// The direction that a name says: "MEMORY_COPY_HOST_TO_DEVICE", "Memcpy HtoD (Host -> Device)", "staged H2D".
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

std::string copies(std::size_t n) { return n == 1 ? "1 copy" : fmt::format("{} copies", n); }

/// What the readers share.
class CopyReader {
 public:
  CopyReader(std::string_view text, std::string_view file, const char* form) : text_(text) {
    out_.form = form;
    out_.file = file;
  }

 protected:
  /// The GPU with this name; new names get the next numbers.
  Place gpu(const std::string& name) {
    const auto [known, added] = gpus_.try_emplace(name, static_cast<std::uint32_t>(out_.gpus.size()));
    if (added) out_.gpus.push_back(name);
    return Place::gpu(known->second);
  }
  void unknown(std::string sentence) { out_.unknown.push_back(std::move(sentence)); }
  Diagnostic wrong(std::string message, std::string hint) const {
    return {.where = out_.file, .message = std::move(message), .hint = std::move(hint)};
  }
  std::string_view line() {
    ++number_;
    return detail::take_line(text_);
  }
  /// By begin; each copy of a stream waits for the one before it.
  void in_streams(std::vector<std::pair<double, RecordedCopy>> all) {
    std::stable_sort(all.begin(), all.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
    std::map<std::string, std::size_t> last;
    for (auto& [begin, c] : all) {
      const auto [before, first] = last.try_emplace(c.stream, out_.copies.size());
      if (!first) c.after = std::exchange(before->second, out_.copies.size());
      out_.copies.push_back(std::move(c));
    }
    unknown("order: that of each stream; what the program ordered by events is not in the file");
  }
  Result<RecordedCopies, Diagnostic> finish() {
    if (left_out_ > 0)
      unknown(fmt::format("{} between two places of the host {} left out: no engine makes them", copies(left_out_),
                          left_out_ == 1 ? "is" : "are"));
    const auto guessed = std::count_if(out_.copies.begin(), out_.copies.end(), [](const RecordedCopy& c) {
      return !c.engine && !c.from.is_host() && c.from == c.to;
    });
    if (guessed > 0)
      unknown(fmt::format("engines: {} within a GPU {} taken to use engine 2, although a kernel may have made {}",
                          copies(static_cast<std::size_t>(guessed)), guessed == 1 ? "is" : "are",
                          guessed == 1 ? "it" : "them"));
    if (out_.copies.empty())
      return wrong("this is " + out_.form + ", and it has no copy to or from a GPU", "record a run that copies");
    return std::move(out_);
  }

  std::string_view text_;
  std::size_t number_ = 0;  ///< of the line
  std::size_t left_out_ = 0;
  RecordedCopies out_;

 private:
  std::map<std::string, std::uint32_t> gpus_;
};

class RocprofReader : CopyReader {
 public:
  RocprofReader(std::string_view text, std::string_view file) : CopyReader(text, file, "the CSV of rocprofv3") {}

  Result<RecordedCopies, Diagnostic> run() {
    const auto header = detail::csv_fields(line());
    if (!header) return wrong("line 1 is not a line of a CSV file", kForms);
    std::map<std::string, std::size_t> columns;
    for (std::size_t i = 0; i < header->size(); ++i) columns.emplace((*header)[i], i);
    for (const auto* name :
         {"Direction", "Source_Agent_Id", "Destination_Agent_Id", "Start_Timestamp", "End_Timestamp"})
      if (columns.count(name) == 0)
        return wrong(fmt::format("the CSV has no column {}", name), "give the file NAME_memory_copy_trace.csv");
    std::vector<std::pair<double, RecordedCopy>> all;
    while (!text_.empty()) {
      const auto row = detail::csv_fields(line());
      if (row && row->size() == 1 && row->front().empty()) continue;
      if (!row || row->size() != header->size())
        return wrong(fmt::format("line {} does not have the {} fields of the first line", number_, header->size()), "");
      const auto field = [&](const char* name) { return (*row)[columns.at(name)]; };
      const auto begin = parse_count(field("Start_Timestamp")), end = parse_count(field("End_Timestamp"));
      if (!begin || !end || *end < *begin)
        return wrong(fmt::format("line {} does not end after it begins", number_), "times are nanoseconds");
      const auto d = direction_of(field("Direction"));
      if (d == Direction::unknown)
        return wrong(fmt::format("line {}: '{}' is not a known direction", number_, field("Direction")), "");
      if (d == Direction::host) {
        ++left_out_;
        continue;
      }
      RecordedCopy c{.stream = columns.count("Stream_Id") != 0 ? field("Stream_Id") : "",
                     .when = fmt::format("{} ns, for {} ns", *begin, *end - *begin)};
      c.from = d == Direction::up ? Place::host() : gpu(field("Source_Agent_Id"));
      c.to = d == Direction::down ? Place::host() : gpu(field("Destination_Agent_Id"));
      all.emplace_back(static_cast<double>(*begin), std::move(c));
    }
    unknown("sizes: the file has none, so each copy has `bytes` bytes: --set bytes=64K");
    unknown("addresses: the file has none, so each copy has buffers of its own");
    unknown("engines: the file has none, so they are those that the node recommends for each direction");
    if (columns.count("Stream_Id") == 0) unknown("streams: the file has none, so all copies are one stream");
    in_streams(std::move(all));
    return finish();
  }
};

class ChromeReader : CopyReader {
 public:
  ChromeReader(std::string_view text, std::string_view file) : CopyReader(text, file, "a Chrome trace") {}

  Result<RecordedCopies, Diagnostic> run() {
    const auto j = detail::parse_json(text_);
    if (!j) return wrong("this is not JSON: " + j.error().message, kForms);
    const auto events = j->is_object() && j->contains("traceEvents") ? (*j)["traceEvents"] : *j;
    if (!events.is_array()) return wrong("this JSON has no traceEvents", kForms);
    std::vector<std::pair<double, RecordedCopy>> all;
    for (const auto& e : events)
      if (e.is_object() && text_of(e, "ph") == "X") event(e, all);
    unknown("addresses: the file has none, so each copy has buffers of its own");
    unknown("engines: the file has none, so they are those that the node recommends for each direction");
    if (sizes_ < all.size()) unknown("sizes: where the file has none, a copy has `bytes` bytes: --set bytes=64K");
    if (peers_ > 0)
      unknown(fmt::format("peers: of {} between GPUs the other GPU is not named, so it is taken to be the next one",
                          copies(peers_)));
    in_streams(std::move(all));
    return finish();
  }

 private:
  static std::string text_of(const Json& j, const char* key) {
    const auto v = j.find(key);
    return v == j.end() ? "" : v->is_string() ? v->get<std::string>() : v->is_number_integer() ? v->dump() : "";
  }
  static double number_of(const Json& j, const char* key) {
    const auto v = j.find(key);
    return v != j.end() && v->is_number() ? v->get<double>() : 0;
  }

  void event(const Json& e, std::vector<std::pair<double, RecordedCopy>>& all) {
    const auto name = text_of(e, "name");
    const auto d = direction_of(name);
    if (d == Direction::unknown || (text_of(e, "cat") != "gpu_memcpy" && !name.starts_with("Memcpy"))) return;
    if (d == Direction::host) return void(++left_out_);
    static const Json kNone = Json::object();
    const auto found = e.find("args");
    const auto& args = found != e.end() && found->is_object() ? *found : kNone;
    const auto device = text_of(args, "device").empty() ? text_of(e, "pid") : text_of(args, "device");
    const auto stream = text_of(args, "stream").empty() ? text_of(e, "tid") : text_of(args, "stream");
    const auto ts = number_of(e, "ts");
    RecordedCopy c{.stream = device + "." + stream, .when = fmt::format("{} us, for {} us", ts, number_of(e, "dur"))};
    const auto bytes = args.find("bytes");
    if (bytes != args.end() && bytes->is_number_unsigned()) c.bytes = bytes->get<std::uint64_t>(), ++sizes_;
    const auto here = gpu("device " + device);
    c.from = d == Direction::up ? Place::host() : here;
    c.to = d == Direction::down ? Place::host() : here;
    if (d == Direction::across && name.find("PtoP") != name.npos) {
      const auto other = parse_count(device);
      c.to = gpu(fmt::format("device {}", other ? *other + 1 : 1));
      ++peers_;
    }
    all.emplace_back(ts, std::move(c));
  }

  std::size_t sizes_ = 0, peers_ = 0;
};

class RuntimeLogReader : CopyReader {
 public:
  RuntimeLogReader(std::string_view text, std::string_view file) : CopyReader(text, file, "a log of the HIP runtime") {}

  Result<RecordedCopies, Diagnostic> run() {
    const auto here = gpu("the only GPU");
    while (!text_.empty()) {
      const auto l = line();
      const auto at = l.find("copy_engine=");
      auto& t = threads_[value(l, "tid: ")];
      if (l.find("VirtualGPU ") != l.npos) t.stream = value(l, "VirtualGPU ");
      if (at == l.npos) {
        if (const auto d = direction_of(l); d != Direction::unknown) t.direction = d;
        continue;
      }
      const auto from = parse_count(value(l, "src=")), to = parse_count(value(l, "dst=")),
                 bytes = parse_count(value(l, "size="));
      if (!from || !to || !bytes || *bytes == 0)
        return wrong(fmt::format("line {} names a copy engine, but not dst, src and size", number_), "");
      if (t.direction == Direction::host) {
        ++left_out_;
        continue;
      }
      guesses_ += t.direction == Direction::unknown;
      RecordedCopy c{.from = t.direction == Direction::up ? Place::host() : here,
                     .to = t.direction == Direction::down ? Place::host() : here,
                     .bytes = *bytes,
                     .source = *from,
                     .destination = *to,
                     .stream = t.stream.empty() ? value(l, "tid: ") : t.stream,
                     .when = time(l) + fmt::format("line {}", number_)};
      if (const auto mask = parse_count(value(l, "copy_engine=")); mask && std::has_single_bit(*mask))
        c.engine = static_cast<std::uint32_t>(std::countr_zero(*mask));
      else ++engines_;
      if (const auto w = done_.find(value(l, "wait_event=")); w != done_.end()) c.after = w->second;
      done_[value(l, "completion_signal=")] = out_.copies.size();
      out_.copies.push_back(std::move(c));
    }
    unknown("GPUs: the log does not name them, so all copies are those of one GPU, gpu0");
    if (guesses_ > 0)
      unknown(fmt::format("directions: of {} no earlier line has one, so both places are taken to be gpu0",
                          copies(guesses_)));
    if (engines_ > 0)
      unknown(fmt::format("engines: of {} the log names none or several, so it is the one that the node recommends",
                          copies(engines_)));
    unknown("order: a copy waits for the copy that its `wait_event` names; kernels are not in the log");
    return finish();
  }

 private:
  struct Thread {
    std::string stream;
    Direction direction = Direction::unknown;
  };
  /// "100200302 us, " of a line that begins so.
  static std::string time(std::string_view line) {
    const auto end = line.find(" us:");
    if (end == line.npos) return {};
    const auto begin = line.find_last_not_of("0123456789", end - 1);
    return std::string(line.substr(begin == line.npos ? 0 : begin + 1, end - begin - 1)) + " us, ";
  }
  /// "0x1" of "copy_engine=0x1, dst=..".
  static std::string value(std::string_view line, std::string_view name) {
    const auto at = line.find(name);
    if (at == line.npos) return {};
    line.remove_prefix(at + name.size());
    return std::string(line.substr(0, line.find_first_of(", :]\r")));
  }

  std::map<std::string, Thread> threads_;
  std::map<std::string, std::size_t> done_;  ///< the last copy that completes each signal
  std::size_t guesses_ = 0, engines_ = 0;
};

}  // namespace

Result<RecordedCopies, Diagnostic> read_copies(std::string_view text, std::string_view file) {
  const auto begin = std::min(text.find_first_not_of(" \t\r\n\xef\xbb\xbf"), text.size());
  if (text.substr(begin).starts_with('{') || text.substr(begin).starts_with('['))
    return ChromeReader{text.substr(begin), file}.run();
  if (const auto first = text.substr(begin, text.find('\n', begin) - begin); first.find("Direction") != first.npos)
    return RocprofReader{text.substr(begin), file}.run();
  if (text.find("copy_engine=") != text.npos) return RuntimeLogReader{text, file}.run();
  return Diagnostic{.where = std::string(file), .message = "no copies are found in this file", .hint = kForms};
}

}}  // namespace sdma::v0
