// SPDX-License-Identifier: MIT
#include "habits.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

namespace collectives::perf {
namespace {

constexpr std::string_view kOperations[] = {"sum", "prod", "min", "max", "avg", "mulsum", "none"};

void read_type(Reader& r, const std::string& text, Settings& s) {
  if (text.empty()) return;
  const auto at = std::find_if(std::begin(kTypes), std::end(kTypes), [&](const auto& t) { return t.name == text; });
  std::vector<std::string> known;
  for (const auto& t : kTypes) known.emplace_back(t.name);
  if (at == std::end(kTypes)) return r.refuse("--datatype", in_quotes(text) + " is not a type", hint_of(text, known));
  s.type = *at;
  for (const auto bytes : sizes(s)) {
    auto o = s.options;
    o.bytes = bytes;
    if (bytes % at->bytes != 0 || count_of(o) % at->bytes != 0)
      return r.refuse("--datatype",
                      fmt::format("{} bytes among {} GPUs are not a whole number of {} each", bytes, o.gpus, at->name),
                      "choose sizes that the number of GPUs times the size of the type divides, or -d uint8");
  }
}

}  // namespace

void read_habits(Reader& r, const Given& g, Settings& s) {
  const auto note = [&](std::string text) { s.remarks.push_back(std::move(text)); };
  std::uint32_t threads = 1, blocking = 1, aggregated = 1, average = 1, graph = 0, cpu = 0, parallel = 0;
  constexpr std::uint64_t kMany = 1'000'000;
  r.number("--nthreads", g.threads, threads, 1, kMostGpus);
  r.number("--blocking", g.blocking, blocking, 0, 1);
  r.number("--agg_iters", g.aggregated, aggregated, 1, kMany);
  r.number("--average", g.average, average, 0, 3);
  r.number("--cudagraph", g.graph, graph, 0, kMany);
  r.number("--report_cputime", g.cpu_time, cpu, 0, 1);
  r.number("--parallel_init", g.parallel_init, parallel, 0, 1);
  if (!g.threads.empty()) {
    if (!g.gpus.empty()) return r.refuse("--nthreads", "--gpus names all GPUs already", "omit -t");
    // As in nccl-tests, a thread has one GPU if -g does not say how many.
    const auto all = threads * (g.gpu_count.empty() && threads > 1 ? 1 : s.options.gpus);
    if ((all < 2 && s.processes == 1) || all > kMostGpus)
      return r.refuse("--nthreads", fmt::format("{} GPUs in all: a collective needs 2 to {}", all, kMostGpus),
                      "-t 1 -g 8");
    s.options.gpus = all;
    if (threads > 1)
      note(fmt::format("-t {}: {} GPUs take part, and one host thread drives all of them", threads, all));
  }
  if (s.processes > 1) {
    const auto all = s.processes * s.options.gpus;
    if (all > kMostGpus)
      return r.refuse("--ngpus",
                      fmt::format("{} processes with {} GPUs each have {}, and a collective has at most {}",
                                  s.processes, s.options.gpus, all, kMostGpus),
                      "start fewer processes, or give a smaller -g");
    s.options.gpus = all;
  }
  if (!g.operation.empty()) {
    if (std::find(std::begin(kOperations), std::end(kOperations), g.operation) == std::end(kOperations))
      return r.refuse("--op", in_quotes(g.operation) + " is not an operation",
                      hint_of(g.operation, std::vector<std::string>(std::begin(kOperations), std::end(kOperations))));
    if (g.operation != "none") note("-o has no effect: DMA engines copy, and no collective here reduces");
  }
  if (blocking == 0) note("-z 0 has no effect: each round is waited for before the next begins");
  if (aggregated > 1) note("-m has no effect: each round is one collective, and is timed alone");
  if (graph > 0) note("-G has no effect: what is launched ahead of time here is a variant with +pl");
  if (cpu > 0) note("-C has no effect: times are always the host's, until it has seen the last completion");
  if (parallel > 0) note("-p has no effect: there is no communicator to initialise");
  read_type(r, g.type, s);
}

}  // namespace collectives::perf
