// SPDX-License-Identifier: MIT
// The options of nccl-tests that mean little to DMA engines. Scripts give them, so they are accepted, and a note says
// what they do not do.
#include "reader.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

namespace collectives::perf {
namespace {

constexpr std::string_view kOperations[] = {"sum", "prod", "min", "max", "avg", "mulsum", "none"};

/// One process has one time, which is its own average.
struct Habit {
  const char* option;
  std::uint64_t least, most, usual;
  const char* note;  ///< of any other value
};
constexpr Habit kHabits[] = {
    {"--blocking", 0, 1, 1, "-z 0 has no effect: each round is waited for before the next begins"},
    {"--agg_iters", 1, kMostRounds, 1, "-m has no effect: each round is one collective, and is timed alone"},
    {"--average", 0, 3, 1, ""},
    {"--cudagraph", 0, kMostRounds, 0, "-G has no effect: what is launched ahead of time here is a variant with +pl"},
    {"--report_cputime", 0, 1, 0,
     "-C has no effect: times are always the host's, until it has seen the last completion"},
    {"--parallel_init", 0, 1, 0, "-p has no effect: there is no communicator to initialise"}};

void read_type(Reader& r, Settings& s) {
  const auto text = r["--datatype"];
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

void read_habits(Reader& r, Settings& s) {
  const auto note = [&](std::string text) { s.remarks.push_back(std::move(text)); };
  std::uint32_t threads = 1;
  r.number("--nthreads", threads, 1, kMostGpus);
  if (r.given("--nthreads")) {
    if (r.given("--gpus")) return r.refuse("--nthreads", "--gpus names all GPUs already", "omit -t");
    // As in nccl-tests, a thread has one GPU if -g does not say how many.
    const auto all = threads * (!r.given("--ngpus") && threads > 1 ? 1 : s.options.gpus);
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
  if (r.given("--op")) {
    if (std::find(std::begin(kOperations), std::end(kOperations), r["--op"]) == std::end(kOperations))
      return r.refuse("--op", in_quotes(r["--op"]) + " is not an operation",
                      hint_of(r["--op"], std::vector<std::string>(std::begin(kOperations), std::end(kOperations))));
    if (r["--op"] != "none") note("-o has no effect: DMA engines copy, and no collective here reduces");
  }
  for (const auto& h : kHabits) {
    auto value = h.usual;
    r.number(h.option, value, h.least, h.most);
    if (value != h.usual && *h.note) note(h.note);
  }
  read_type(r, s);
}

}  // namespace collectives::perf
