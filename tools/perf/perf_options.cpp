// SPDX-License-Identifier: MIT
#include "perf_options.hpp"

#include "sdma/core/number.hpp"
#include "shared_options.hpp"

#include <algorithm>
#include <limits>

namespace sdma::tool {
namespace {

using collectives::Collective;
using collectives::perf::Format;
using collectives::perf::Request;

constexpr std::uint64_t kMostRounds = 1'000'000;

Option add_seconds(VerbOptions& verb, const std::string& name, std::optional<double>& to, const std::string& doc) {
  constexpr double kMost = 3600;
  const auto parse = [](const std::string& text) {
    const auto v = parse_real(text);
    return v && *v > 0 && *v <= kMost ? v : std::nullopt;
  };
  return add_parsed(verb, name, to, parse, "a time in seconds: write 2 or 0.5; at most 3600", doc).type("S");
}

void add_what(VerbOptions& verb, Request& r) {
  std::vector<std::pair<std::string, std::optional<Collective>>> all;
  for (const auto c : collectives::kCollectives) all.emplace_back(name(c), c);
  add_choice(verb, "--collective,COLLECTIVE", r.collective, std::move(all), "collective to time (default: all_gather)");
  verb.value("--variant", r.variant,
             "variants to time: all (default), or a list, also of "
             "schedule files: pcpy,b2b+pl,ring.sdma,ring.sdma:chunks=4; a schedule file takes the number of GPUs "
             "in its param N and the size in its param bytes")
      .type("all|auto|pcpy|bcst|swap|b2b|pcpy+pl|bcst+pl|swap+pl|b2b+pl,..");
  add_settings(verb, r.map, "--map", "PARAM=EXPR",
               "set a param of each schedule file, by N and bytes: chunk=bytes/N; may be repeated");
  verb.value("--matrix", r.matrix,
             "with alltoallv: row i has the bytes that GPU i sends to each GPU; with -b or --bytes, in proportion "
             "(default: all are equal)")
      .type("FILE.csv");
  add_settings(
      verb, r.set, "--set", "NAME=VALUE",
      "set an option of the schedules: completion=fence, peers_per_engine=3, prelaunch=per_group; may be repeated");
}

void add_sizes(VerbOptions& verb, Request& r) {
  add_size(verb, "--bytes", r.bytes, "one size, instead of -b and -e");
  add_size(verb, "-b,--minbytes", r.least, "smallest size (default: 1K)");
  add_size(verb, "-e,--maxbytes", r.most, "largest size (default: 64M)");
  add_count(verb, "-f,--stepfactor", r.factor, 2, 1'000'000'000, "factor from one size to the next (default: 2)");
  add_size(verb, "-i,--stepbytes", r.step, "increment from one size to the next, instead of a factor");
  add_count(verb, "-n,--iters", r.iterations, 1, kMostRounds, "timed rounds");
  add_count(verb, "-w,--warmup_iters", r.warmups, 0, kMostRounds, "rounds before the timed ones");
  add_count(verb, "-c,--check", r.checks, 0, kMostRounds, "rounds after the timed ones, with every byte verified");
  add_count(verb, "-r,--root", r.root, 0, collectives::kMostGpus - 1, "root of broadcast, scatter and gather");
}

void add_who(VerbOptions& verb, Request& r) {
  add_count(verb, "-g,--ngpus", r.ngpus, 1, collectives::kMostGpus,
            "number of GPUs (default: 8), or of each process (default: 1)");
  verb.value("--gpus", r.gpus, "the same as -g, or a list of the node's GPUs: 0,2,5 (default: the first ones)")
      .type("N|N,N..");
  add_count(verb, "--ranks", r.ranks, 1, collectives::kMostGpus,
            "start N processes, which share the GPUs as those of a launcher do: N times -g GPUs take part");
  verb.value("--meet", r.meet,
             "where the ranks of a launcher meet, over sockets: the host of rank 0, and a port that is free there "
             "(default: over MPI if the launcher is one of MPI, else docs/nodes.md says where)")
      .type("HOST:PORT");
  add_parsed(
      verb, "--ranks-per-node", r.ranks_per_node, parse_node_sizes,
      "a list of numbers from 1 to 64: write 4 for nodes of four, or 3,2 for a node of three and one of two",
      "processes of a node, or of each, in turn: engines copy inside a node, and bytes go between nodes over the "
      "network; --variant is then hierarchical (default), flat, ring or all")
      .type("N|N,N..");
}

/// As in nccl-tests: scripts give these.
void add_habits(VerbOptions& verb, collectives::perf::Habits& h) {
  constexpr const char* kNoEffect = "accepted as in nccl-tests; a note says that it has no effect here";
  const auto number = [&](const char* names, std::uint32_t& to, std::uint64_t least, std::uint64_t most) {
    add_count(verb, names, to, least, most, kNoEffect).shown("");
  };
  verb.value("-d,--datatype", h.type,
             "type in which counts are given, as in nccl-tests: float, half, .. (default: uint8)")
      .type("TYPE");
  add_count(verb, "-t,--nthreads", h.threads, 1, collectives::kMostGpus,
            "N times -g GPUs take part; one thread drives them (default: 1)");
  verb.value("-o,--op", h.operation, kNoEffect).type("OP");
  number("-z,--blocking", h.blocking, 0, 1);
  number("-m,--agg_iters", h.agg_iters, 1, kMostRounds);
  add_count(verb, "-a,--average", h.average, 0, 3,
            "accepted as in nccl-tests: a round has one time, which is that of the slowest process")
      .shown("");
  number("-G,--cudagraph", h.cudagraph, 0, kMostRounds);
  number("-C,--report_cputime", h.report_cputime, 0, 1);
  number("-p,--parallel_init", h.parallel_init, 0, 1);
}

std::function<void()> add_where(VerbOptions& verb, Request& r) {
  const auto device = add_device(verb, r.device, "device to use", "times from a machine description",
                                 "kfd or cuda if there are such GPUs, otherwise simulate");
  add_choice<std::optional<Ordering>>(
      verb, "--order", r.order,
      {{"strict", Ordering::strict}, {"rocr", Ordering::rocr}, {"adversarial", Ordering::adversarial}},
      "ordering of packets in the software node, from strongest to weakest (default: strict)");
  add_count(verb, "--seed", r.seed, 0, std::numeric_limits<std::uint64_t>::max(),
            "seed for choices that the ordering leaves open (default: 0)");
  verb.value("--machine", r.machine,
             "machine to simulate: a description, or a layout such as mesh:16, ring:8, switch:8x400G or nodes:2x8 "
             "(default: MI300X)")
      .type("PATH|LAYOUT");
  verb.flag("--tune", r.tune, "simulate all variants, and print a table for --table");
  add_texts(verb, "--sweep", r.sweep,
            "the table again for each value of a parameter of the machine, an option of --set, or a param of schedule "
            "files: engine.window_bytes=16K..256K*2, xgmi.rate=48,61,100; may be given twice, for all pairs")
      .type("NAME=A..B");
  add_parsed(verb, "--timeout", r.timeout, parse_time, "a time: write 10s, 250ms or 50us",
             "time limit per round: 10s, 250ms, 50us (default: 30s)")
      .type("TIME");
  return [device, &r] { r.device_given = device.given(); };
}

void add_beside(VerbOptions& verb, Request& r) {
  add_count(verb, "--settle", r.settle, 0, 1'000'000,
            "microseconds to spin before each start, outside the timed part (default: 0)")
      .type("US");
  verb.value("--against", r.against,
             "with --device=cuda: also time NCCL's kernels (nccl) and its copy-engine mode (nccl-ce); with "
             "--device=kfd: RCCL's kernels (rccl); all ways take turns, round by round. A file with lines such as "
             "64K,21.5 (a size and microseconds): those times, with any device")
      .type("nccl|rccl|FILE");
  verb.flag("--energy", r.energy,
            "with --device=cuda or kfd: also measure the GPUs' energy, in joules per round and nanojoules per byte; "
            "with --device=simulate: a column of the joules that the machine's file gives, without idle power");
  add_seconds(verb, "--energy-seconds", r.energy_seconds,
              "time for which the energy of each row is measured (default: 1)");
  verb.value("--beside", r.beside,
             "with --device=cuda or kfd: also time each row while every GPU multiplies bf16 matrices of N x N "
             "(default: 8192)")
      .type("gemm[:N]");
  add_seconds(verb, "--beside-seconds", r.beside_seconds,
              "time for which each row is measured beside them (default: 0.5)");
  verb.value("--published", r.published,
             "also show what others have measured of this collective on as many GPUs, such as share/published/rccl.csv")
      .type("FILE.csv");
}

void add_files(VerbOptions& verb, Request& r) {
  add_choice<Format>(
      verb, "--format", r.format,
      {{"table", Format::table}, {"nccl-tests", Format::nccl_tests}, {"json", Format::json}},
      "form of the results: a table (default); the 13 columns and footer of nccl-tests, for one variant (default: "
      "auto); or one JSON object, at the end");
  add_json(verb, [&r] { r.format = Format::json; });
  verb.value("--table", r.table, "table from which auto chooses (default: variants.txt)").type("FILE");
  verb.value("--csv", r.csv, "write each row as CSV, as soon as it is measured").type("FILE");
  verb.value("--save", r.save, "write what --json prints to a file, beside the table").type("FILE");
  verb.value("--best", r.best, "write the fastest variants by size, with and without prelaunch, as a table for --table")
      .type("FILE");
  add_picture(verb, "--plot", r.plot, "draw curves: speed-up over pcpy, and busbw").type("FILE.svg");
  add_figure(verb, r.figure, "--plot");
}

}  // namespace

std::function<void()> add_perf_options(VerbOptions& verb, Request& r) {
  add_what(verb, r);
  add_sizes(verb, r);
  add_who(verb, r);
  const auto complete = add_where(verb, r);
  add_beside(verb, r);
  add_files(verb, r);
  add_habits(verb, r.habits);
  // Each option of --set is an option, too: --completion=fence.
  for (const auto name : collectives::kScheduleOptions)
    verb.parsed(
            "--" + std::string(name),
            [&r, name](const std::string& value) {
              r.set.push_back({std::string(name), value});
              return std::string();
            },
            "")
        .hidden();
  return [complete, command = verb.given_but("--gpus"), &r] {
    complete();
    r.command = command();
  };
}

}  // namespace sdma::tool
