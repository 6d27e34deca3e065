// SPDX-License-Identifier: MIT
#pragma once
// What people type who know other tools, and which subcommand stands for it. For hints alone: none of these works.
//
//   meant_by("draw", kToolHabits)             ==   "sdma simulate --plot run.svg FILE draws a timeline"
//   meant_by("calibrate", kArgumentHabits)    ==   "--from FILE names measurements"
#include "core/habits.hpp"

namespace sdma::tool {

/// Subcommands of other tools that have too few letters in common with ours, or are nearer to a wrong one.
inline constexpr detail::Habit kToolHabits[] = {
    {"draw", "sdma simulate --plot run.svg FILE draws a timeline"},
    {"plot", "sdma simulate --plot run.svg FILE draws a timeline"},
    {"view", "sdma trace run.jsonl -o run.html makes a page of a trace"},
    {"show", "sdma trace run.jsonl -o run.html makes a page of a trace"},
    {"prove", "sdma check FILE proves a schedule"},
    {"verify", "sdma check FILE proves a schedule"},
    {"validate", "sdma check FILE proves a schedule"},
    {"lint", "sdma check FILE proves a schedule"},
    {"test", "sdma run --test FILE.. runs schedules and compares bytes"},
    {"predict", "sdma simulate FILE predicts the time of a schedule"},
    {"estimate", "sdma simulate FILE predicts the time of a schedule"},
    {"bench", "sdma perf times collectives"},
    {"benchmark", "sdma perf times collectives"},
    {"diff",
     "sdma simulate --plot both.svg A B draws two schedules over one axis; sdma compare has a run and its simulation"},
    {"decode", "sdma dis FILE prints the packets of a ring"},
    {"disasm", "sdma dis FILE prints the packets of a ring"},
    {"objdump", "sdma dis FILE prints the packets of a ring"},
    {"encode", "sdma as FILE writes the dwords of packets"},
    {"asm", "sdma as FILE writes the dwords of packets"},
    {"format", "sdma fmt FILE formats a schedule"},
    {"debug", "sdma doctor FILE.. says why queues hang"},
    {"diagnose", "sdma doctor FILE.. says why queues hang"},
    {"version", "sdma --version prints the version"},
};

/// Arguments that a subcommand does not take, and the option that does.
inline constexpr detail::Habit kArgumentHabits[] = {
    {"calibrate", "--from FILE names measurements"},
    {"compare",
     "--measured names the trace of a run; sdma simulate --plot both.svg A B draws two schedules over one axis"},
    {"dis", "give one FILE, or dwords in a pipe: echo '0x1 0xfff ..' | sdma dis"},
};

}  // namespace sdma::tool
