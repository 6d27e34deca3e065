// SPDX-License-Identifier: MIT
#include "run.hpp"

#include "sdma/packets/footprint.hpp"
#include "sdma/stream/reader.hpp"
#include "sdma/sync/stall_report.hpp"

#include <algorithm>

namespace sdma::json {
namespace {

using Expectation = Schedule::Expectation;

/// What the data packets of one submit write.
struct Work {
  std::uint64_t packets{}, bytes{};
};
Work work_of(std::span<const std::uint32_t> dwords) {
  Work w;
  for (Reader r{dwords}; r;) {
    const auto v = r.next();
    ++w.packets;
    if (!v.whole() || role(*v.info, v.dwords) != Role::data) continue;
    footprint(*v.info, v.dwords, [&](const Region& region) {
      if (region.access != Access::read) w.bytes += region.bytes * region.rows * region.slices;
    });
  }
  return w;
}

/// The GPU that has the memory that an expectation is about; nothing: the host.
std::optional<std::uint32_t> gpu_of(const Schedule& s, const Expectation& e) {
  const auto at = find_symbol(s, e.left.va);
  if (!at) return {};
  const auto place = at->signal ? s.signals[at->index].place : s.buffers[at->index].place;
  return place.is_host() ? std::nullopt : std::optional(place.index);
}

}  // namespace

Json of(const RunReport& r, const Bound& b, const BindOptions& options) {
  const auto& s = b.schedule();
  Json j{{"passed", static_cast<bool>(r)},
         {"elapsed_ns", r.elapsed.count()},
         {"round_ns", r.round.count() > 0 ? Json(r.round.count()) : Json()},
         {"wrong", r.wrong}};
  if (r.still.count() > 0) j["still_ns"] = r.still.count();
  struct Rank {
    std::uint64_t queues{}, bytes{}, holds{}, fails{}, not_compared{};
  };
  std::vector<Rank> ranks(s.gpus);
  auto& queues = j["queues"] = Json::array();
  for (std::size_t q = 0; q < s.queues.size(); ++q) {
    if (!b.owns(q)) {  // another rank has it
      queues.push_back(nullptr);
      continue;
    }
    const auto& queue = s.queues[q];
    const auto engine = b.queue(q).engine();
    const auto work = work_of(b.packets(q));
    const auto state = inspect(b.ring(q));
    queues.push_back({{"queue", to_string(queue.place) + "." + queue.name},
                      {"device_gpu", b.queue(q).gpu().value},
                      {"engine", engine == kUnknownEngine ? Json() : Json(engine.value)},
                      {"submits", b.epoch(q)},
                      {"packets", work.packets},
                      {"bytes", work.bytes},
                      {"read_all", state.read == state.committed}});
    if (queue.place.index >= ranks.size()) continue;
    auto& rank = ranks[queue.place.index];
    ++rank.queues;
    rank.bytes += work.bytes * b.epoch(q);
  }
  // A finding about an expectation begins with its text; after any other finding, nothing is compared.
  const auto said = [&](const std::string& text) {
    return std::any_of(r.findings.begin(), r.findings.end(), [&](const auto& d) { return d.where == text; });
  };
  std::vector<std::string> texts;
  for (const auto& e : s.expectations) texts.push_back(to_text(s, e));
  const auto about = [&](const Diagnostic& d) { return std::find(texts.begin(), texts.end(), d.where) != texts.end(); };
  const bool compared = std::all_of(r.findings.begin(), r.findings.end(), about);
  auto& expectations = j["expectations"] = Json::array();
  for (std::size_t i = 0; i < texts.size(); ++i) {
    const auto& e = s.expectations[i];
    const auto gpu = gpu_of(s, e);
    const bool fails = said(texts[i]);
    expectations.push_back({{"text", texts[i]},
                            {"state", !compared ? "not_compared"
                                      : fails   ? "fails"
                                                : "holds"},
                            {"gpu", gpu ? Json(*gpu) : Json()},
                            {"bytes", e.left.bytes}});
    if (!gpu || *gpu >= ranks.size()) continue;
    auto& rank = ranks[*gpu];
    ++(!compared ? rank.not_compared : fails ? rank.fails : rank.holds);
  }
  const auto& node = b.device().topology().gpus;
  auto& gpus = j["gpus"] = Json::array();
  for (std::size_t g = 0; g < ranks.size(); ++g) {
    const auto device = options.gpus.empty() ? g : options.gpus[g].value;
    gpus.push_back({{"gpu", g},
                    {"device_gpu", device},
                    {"name", device < node.size() ? node[device].name : ""},  // of another node
                    {"queues", ranks[g].queues},
                    {"bytes", ranks[g].bytes},
                    {"holds", ranks[g].holds},
                    {"fails", ranks[g].fails},
                    {"not_compared", ranks[g].not_compared}});
  }
  j["findings"] = of(std::span<const Diagnostic>(r.findings));
  return j;
}

Json of_ranks(std::span<const Json> ranks, bool passed) {
  Json j = ranks.front();
  j["passed"] = passed;
  for (const auto& r : ranks.subspan(1)) {
    j["elapsed_ns"] = std::max(j["elapsed_ns"].get<std::int64_t>(), r["elapsed_ns"].get<std::int64_t>());
    if (j["round_ns"].is_null()) j["round_ns"] = r["round_ns"];
    j["wrong"] = j["wrong"].get<std::uint64_t>() + r["wrong"].get<std::uint64_t>();
    for (std::size_t q = 0; q < j["queues"].size(); ++q)
      if (j["queues"][q].is_null()) j["queues"][q] = r["queues"][q];
    for (std::size_t i = 0; i < j["expectations"].size(); ++i) {
      // A rank whose memory it is not about says that it holds, or that nothing was compared.
      auto& state = j["expectations"][i]["state"];
      const auto& other = r["expectations"][i]["state"];
      if (other == "fails" || state == "holds") state = other;
    }
    for (std::size_t g = 0; g < j["gpus"].size(); ++g)
      for (const auto* key : {"queues", "bytes"})
        j["gpus"][g][key] = j["gpus"][g][key].get<std::uint64_t>() + r["gpus"][g][key].get<std::uint64_t>();
  }
  for (std::size_t g = 0; g < j["gpus"].size(); ++g)
    for (const auto* key : {"holds", "fails", "not_compared"}) {
      const auto& all = j["expectations"];
      j["gpus"][g][key] =
          std::count_if(all.begin(), all.end(), [&](const Json& e) { return e["gpu"] == g && e["state"] == key; });
    }
  return j;
}

Json of(const RunAnswer& a) {
  Json j{{"device", a.device}, {"order", a.order ? Json(*a.order) : Json()}, {"seed", a.seed}};
  j.update(a.result);
  j["findings"] = of(std::span(a.findings));
  return j;
}

Json of(std::span<const RunFile> files, bool complete) {
  std::uint64_t passed = 0, idle = 0;
  auto all = Json::array();
  for (const auto& f : files) {
    const bool nothing = f.passed && f.expects_nothing;
    passed += f.passed && !nothing;
    idle += nothing;
    Json j{{"file", f.file}, {"passed", f.passed}, {"expects_nothing", f.expects_nothing}};
    if (!f.expects.empty()) j["expects"] = f.expects, j["findings"] = of(std::span(f.findings));
    auto& runs = j["runs"] = Json::array();
    for (const auto& r : f.runs) runs.push_back(of(r));
    all.push_back(std::move(j));
  }
  Json j{{"passed", passed}, {"failed", files.size() - passed - idle}, {"expect_nothing", idle}};
  if (!complete) j["complete"] = false;
  j["files"] = std::move(all);
  return j;
}

}  // namespace sdma::json
