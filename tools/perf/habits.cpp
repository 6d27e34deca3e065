// SPDX-License-Identifier: MIT
// The options of nccl-tests that mean little to DMA engines. Scripts give them, so they are accepted, and a note says
// what they do not do.
#include "checked.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

namespace collectives::perf {
namespace {

constexpr std::string_view kOperations[] = {"sum", "prod", "min", "max", "avg", "mulsum", "none"};

/// What an option has no effect on, if its value is not the usual one.
struct Habit {
  std::uint32_t Habits::*value;
  const char* note;
};
constexpr Habit kHabits[] = {
    {&Habits::blocking, "-z 0 has no effect: each round is waited for before the next begins"},
    {&Habits::agg_iters, "-m has no effect: each round is one collective, and is timed alone"},
    {&Habits::cudagraph, "-G has no effect: what is launched ahead of time here is a variant with +pl"},
    {&Habits::report_cputime, "-C has no effect: times are always the host's, until it has seen the last completion"},
    {&Habits::parallel_init, "-p has no effect: there is no communicator to initialise"}};

void read_type(Checked& c, Settings& s) {
  const auto& text = c.asked.habits.type;
  if (text.empty()) return;
  const auto at = std::find_if(std::begin(kTypes), std::end(kTypes), [&](const auto& t) { return t.name == text; });
  std::vector<std::string> known;
  for (const auto& t : kTypes) known.emplace_back(t.name);
  if (at == std::end(kTypes)) return c.refuse("--datatype", in_quotes(text) + " is not a type", hint_of(text, known));
  s.type = *at;
  for (const auto bytes : sizes(s)) {
    auto o = s.options;
    o.bytes = bytes;
    if (bytes % at->bytes != 0 || count_of(o) % at->bytes != 0)
      return c.refuse("--datatype",
                      fmt::format("{} bytes among {} GPUs are not a whole number of {} each", bytes, o.gpus, at->name),
                      "choose sizes that the number of GPUs times the size of the type divides, or -d uint8");
  }
}

}  // namespace

void read_habits(Checked& c, Settings& s) {
  const auto& a = c.asked;
  const auto note = [&](std::string text) { s.remarks.push_back(std::move(text)); };
  if (a.habits.threads) {
    const auto threads = *a.habits.threads;
    if (!a.gpus.empty()) return c.refuse("--nthreads", "--gpus names all GPUs already", "omit -t");
    // As in nccl-tests, a thread has one GPU if -g does not say how many.
    const auto all = threads * (!a.ngpus && threads > 1 ? 1 : s.options.gpus);
    if ((all < 2 && s.processes == 1) || all > kMostGpus)
      return c.refuse("--nthreads", fmt::format("{} GPUs in all: a collective needs 2 to {}", all, kMostGpus),
                      "-t 1 -g 8");
    s.options.gpus = all;
    if (threads > 1)
      note(fmt::format("-t {}: {} GPUs take part, and one host thread drives all of them", threads, all));
  }
  if (s.processes > 1) {
    const auto all = s.processes * s.options.gpus;
    if (all > kMostGpus)
      return c.refuse("--ngpus",
                      fmt::format("{} processes with {} GPUs each have {}, and a collective has at most {}",
                                  s.processes, s.options.gpus, all, kMostGpus),
                      "start fewer processes, or give a smaller -g");
    s.options.gpus = all;
  }
  if (const auto& word = a.habits.operation; !word.empty()) {
    const std::vector<std::string> known(std::begin(kOperations), std::end(kOperations));
    if (std::find(known.begin(), known.end(), word) == known.end())
      return c.refuse("--op", in_quotes(word) + " is not an operation", hint_of(word, known));
    if (word != "none") note("-o has no effect: DMA engines copy, and no collective here reduces");
  }
  for (const auto& h : kHabits)
    if (a.habits.*h.value != Habits{}.*h.value) note(h.note);
  read_type(c, s);
}

}  // namespace collectives::perf
