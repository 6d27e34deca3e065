// SPDX-License-Identifier: MIT
#include "run_job.hpp"

#include "core/nearest.hpp"
#include "interrupt.hpp"
#include "output.hpp"
#include "sdma/doctor/diagnose.hpp"
#include "sdma/doctor/snapshot.hpp"
#include "sdma/schedule/exchange.hpp"
#include "sdma/schedule/timestamps.hpp"
#include "sdma/trace/write.hpp"
#include "shared_options.hpp"
#include "verb.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace sdma::tool {
namespace {

using namespace std::chrono_literals;

/// Shorter pauses say nothing.
constexpr auto kLongStill = 1s;
/// The GPUs of the largest node that can be run on.
constexpr std::uint32_t kMostOfNode = 8;

}  // namespace

int Job::run(Ordering order) {
  answer_ = {.device = std::string(name(options_.device)), .seed = options_.seed};
  if (software(options_)) answer_.order = std::string(name(order));
  if (!find_outputs()) return kUsage;
  if (options_.ranks > 1) return run_ranks(order);
  std::optional<trace::Recorder> recorder;
  if (!options_.trace.empty() && recorder.emplace(options_.events).capacity() == 0)
    return complain(fmt::format("--events={}: there is no memory for so many events", options_.events),
                    "an event takes 128 bytes: give a smaller number"),
           kInput;
  const int code = run_here(order, {.gpus = options_.gpus}, recorder ? &*recorder : nullptr);
  // A failed run is recorded, too, but not one that never began.
  if (!recorder || (code != kOk && elapsed_ == elapsed_.zero())) return code;
  const auto& path = options_.trace;
  const auto t = recorder->snapshot();
  const int saved = write_text(path, trace::to_string(t, trace::form_of(path), path));
  if (t.lost != 0)
    say(lost_events(path, t.lost,
                    fmt::format("run with --events={} or more (now {})", t.events.size() + t.lost, options_.events)));
  return code != kOk ? code : saved != kOk ? saved : t.lost != 0 ? kUndecided : kOk;
}

/// The findings of all ranks, without those that only say that another rank has failed.
int Job::run_ranks(Ordering order) {
  BindOptions how{.gpus = options_.gpus, .ranks = options_.ranks, .ranks_per_node = options_.ranks_per_node};
  const auto of_rank = [&](std::uint32_t rank, Exchange& exchange) {
    how.rank = rank;
    how.exchange = &exchange;
    is_rank_ = true;
    return run_rank(order, how);
  };
  const auto of_node = [&](std::uint32_t rank, Exchange& exchange, Transport& transport) {
    how.transport = &transport;
    return of_rank(rank, exchange);
  };
  const auto patience = options_.timeout + how.exchange_limit;
  const auto proceed = [] { return interrupted == 0; };
  const auto all = options_.ranks_per_node.grouped() ? in_ranks(options_.ranks, patience, of_node, proceed)
                                                     : in_ranks(options_.ranks, patience, of_rank, proceed);
  if (!all) return report(placed(all.error())), kInput;
  int first = kOk;
  std::vector<json::Json> answers, results;
  for (const auto& r : *all) {
    if (r.answer) {
      answers.push_back(json::Json::parse(*r.answer));
      continue;
    }
    say({.message = r.end, .hint = "the other ranks stop then: find out why this one has ended"});
    first = kRefuted;
  }
  // What ranks have found is in the order of their numbers. A rank may end before the one that has made it stop.
  const auto place = [](const json::Json& j) {
    const int own = j["lost"].is_null() ? 1 : 2;
    return j["code"] == kRefuted ? std::pair(own, j["rank"].get<int>()) : std::pair(0, 0);
  };
  std::stable_sort(answers.begin(), answers.end(), [&](const auto& a, const auto& b) { return place(a) < place(b); });
  for (const auto& j : answers) {
    const int code = j["code"];
    elapsed_ = std::max(elapsed_, std::chrono::nanoseconds(j["elapsed_ns"].get<std::int64_t>()));
    if (j["result"].contains("queues")) results.push_back(j["result"]);
    // A rank cannot bind if another has failed: what that one says comes first.
    const bool follows = first != kOk && ((code != kRefuted && code != kInterrupted) || !j["lost"].is_null());
    if (code != kOk && first == kOk) first = code;
    if (follows || (code == kOk && j["rank"] != 0)) continue;
    for (const auto& m : j["messages"]) report(json::diagnostic(m));
    for (const auto& f : j["findings"])
      if (options_.json) answer_.findings.push_back(json::diagnostic(f));
      else report(json::diagnostic(f));
  }
  if (results.size() == options_.ranks) answer_.result = json::of_ranks(results, first == kOk);
  return first;
}

std::string Job::run_rank(Ordering order, BindOptions how) {
  const auto rank = how.rank;
  const int code = run_here(order, std::move(how), nullptr);
  return json::line({{"rank", rank},
                     {"code", code},
                     {"elapsed_ns", elapsed_.count()},
                     {"lost", lost_ ? json::Json(*lost_) : json::Json()},
                     {"messages", json::of(std::span<const Diagnostic>(messages_))},
                     {"findings", json::of(std::span<const Diagnostic>(answer_.findings))},
                     {"result", answer_.result}});
}

Result<std::unique_ptr<Device>, Diagnostic> Job::open(std::uint32_t gpus, Ordering order, std::uint32_t rank,
                                                      trace::Recorder* recorder) {
  for (const auto g : options_.gpus) gpus = std::max(gpus, g.value + 1);
  auto device = open_device(
      options_.device, {.gpus = gpus, .soft = {.ordering = order, .seed = options_.seed + rank, .trace = recorder}});
  if (device)
    if (const auto note = caveat(**device); !note.empty())
      tell({.severity = Severity::note, .where = std::string(name(options_.device)), .message = note});
  return device;
}

int Job::run_here(Ordering order, BindOptions how, trace::Recorder* recorder) {
  auto device = open(schedule_.gpus, order, how.rank, recorder);
  if (!device) return tell(placed(device.error())), kInput;
  // Only software engines record events.
  std::optional<TimedSchedule> timed;
  if (recorder && !software(options_)) timed = with_timestamps(schedule_);
  if (const auto has = (*device)->topology().gpus.size(); schedule_.gpus > has && schedule_.gpus > kMostOfNode) {
    const Diagnostic d{.message = fmt::format("the schedule has {} GPUs, and this node has {}", schedule_.gpus, has),
                       .hint = fmt::format("sdma check --topology=mesh:{0} and sdma simulate --machine=mesh:{0} work "
                                           "with more GPUs than a run does; nodes:2x8 are two nodes",
                                           schedule_.gpus)};
    return options_.test ? say(d) : tell(placed(d)), kInput;
  }
  const auto indirect = [](const Schedule::Queue& q) {
    for (Reader r{q.dwords}; r;)
      if (r.next().is<Indirect>()) return true;
    return false;
  };
  if (!software(options_) && options_.device != DeviceKind::cuda)
    if (const auto q = std::find_if(schedule_.queues.begin(), schedule_.queues.end(), indirect);
        q != schedule_.queues.end())
      tell({.severity = Severity::note,
            .where = to_string(q->place) + "." + q->name,
            .message =
                "it has an indirect buffer, and Linux never enables these for a queue of KFD: the engine may not "
                "execute the packets there",
            .hint = "sdma contact finds out what this machine does"});
  auto bound = bind(timed ? timed->schedule : schedule_, **device, how);
  if (!bound) {
    // Alone, a schedule that does not fit has no answer that could have its findings.
    for (const auto& e : bound.error()) options_.test ? say(e) : tell(placed(e));
    return kInput;
  }
  RunOptions go{.time_limit = options_.timeout,
                .seed = options_.seed,
                .map = timed ? nullptr : &map_,
                .recorder = recorder,
                .proceed = [] { return interrupted == 0; }};
  for (const auto& [name, file] : options_.inputs) {
    const auto text = read_file(file);
    if (!text) return tell(text.error()), kInput;
    const auto* begin = reinterpret_cast<const std::byte*>(text->data());
    go.inputs.push_back({name, {begin, begin + text->size()}});
  }
  const auto result = sdma::run(*bound, go);
  elapsed_ = result.elapsed;
  lost_ = result.lost;
  if (options_.json) answer_.result = json::of(result, *bound, how);
  if (timed) {
    const auto e = record_timestamps(*timed, *bound, *recorder, Deadline::in(result ? options_.timeout : 0s));
    if (e == Errc::timed_out)
      tell({.severity = Severity::note,
            .where = options_.trace,
            .message = "some queues have not stored all their timestamps: only the stored ones are recorded"});
    else if (e != Errc::ok)
      tell({.severity = Severity::warning,
            .where = options_.trace,
            .message = fmt::format("a GPU's packets have no times and are not recorded: {}", message(e))});
  }
  for (auto f : result.findings) {
    f.message += context(order);
    if (const auto location = timed ? SourceMap::Location{} : stopped_at(f.where, **device, *bound);
        location.line != 0) {
      f.at = {.file = shown(path_), .line = location.line, .column = location.column};
      f.where = to_string(f.at) + map_.contexts[location.context] + ": " + f.where;
    }
    say(f);
  }
  if (!result) explain(*bound, result.still);
  // Every rank sees all buffers of its node, so one of each node writes them.
  const auto& nodes = how.ranks_per_node;
  const bool writes = how.rank == nodes.first(nodes.of(how.rank));
  for (const auto& [range, file] : writes ? outputs_ : Outputs()) {
    const auto bytes = bound->bytes(range);
    if (bytes.empty()) continue;
    Output out{file};
    if (!out.write(bytes.data(), bytes.size()) || !out.close()) return out.exit_code();
  }
  return result ? kOk : result.ended ? kInterrupted : kRefuted;
}

/// Says for how long nothing has moved, and why queues hang, if any does. A fault has been reported already.
void Job::explain(const Bound& bound, std::chrono::nanoseconds still) {
  auto s = doctor::snapshot_of(bound);
  if (still >= kLongStill) {
    s.watched_ns = static_cast<std::uint64_t>(still.count());
    say({.severity = Severity::note,
         .message = fmt::format("no queue has read a packet and no signal has changed for {:.1f} s",
                                std::chrono::duration<double>(still).count())});
  }
  const auto d = doctor::diagnose(s);
  if (d.verdict() == doctor::Verdict::hung && d.findings.front().what != doctor::HangClass::fault)
    say({.severity = Severity::note, .message = summary(d)});
}
void Job::say(Diagnostic d) {
  d = placed(std::move(d));
  if (options_.json || is_rank_) answer_.findings.push_back(std::move(d));
  else report(d);
}
/// Reports what has no place in an answer.
void Job::tell(const Diagnostic& d) {
  if (is_rank_) messages_.push_back(d);
  else report(d);
}
Diagnostic Job::placed(Diagnostic d) const {
  if (!d.at) d.where = shown(path_) + (d.where.empty() ? "" : ": " + d.where);
  return d;
}
/// The line of the packet at which this queue has stopped. First round only, because the ring may be padded after it.
SourceMap::Location Job::stopped_at(const std::string& name, const Device& device, const Bound& bound) const {
  for (std::size_t q = 0; q < schedule_.queues.size(); ++q) {
    const auto& queue = schedule_.queues[q];
    if (!bound.owns(q) || to_string(queue.place) + "." + queue.name != name) continue;
    const auto fault = device.fault(bound.queue(q));
    const auto bytes = std::min(queue.dwords.size(), bound.queue(q).memory().dwords.size()) * 4;
    if (fault && fault->dword_count != 0 && fault->position < bytes) return map_.packet(q, fault->position / 4);
  }
  return {};
}
/// Names the ordering if there are several.
std::string Job::context(Ordering order) const {
  return options_.test && !options_.order && software(options_) ? " (--order=" + std::string(name(order)) + ")" : "";
}
/// The whole buffer with this name.
std::optional<Schedule::Range> Job::buffer(const std::string& option, const std::string& name) const {
  std::vector<std::string> names;
  for (std::size_t i = 0; i < schedule_.buffers.size(); ++i) {
    names.push_back(name_of(schedule_, link_buffer(i)));
    if (names.back() == name) return Schedule::Range{link_buffer(i), schedule_.buffers[i].bytes};
  }
  complain(option + " " + name + ": there is no such buffer" + did_you_mean(name, {names.begin(), names.end()}),
           "sdma fmt --flat lists them");
  return {};
}

bool Job::find_outputs() {
  for (const auto& [name, file] : options_.inputs)
    if (!buffer("--input", name)) return false;
  for (const auto& [name, file] : options_.outputs) {
    const auto at = buffer("--output", name);
    if (!at) return false;
    outputs_.emplace_back(*at, file);
  }
  return true;
}

}  // namespace sdma::tool
