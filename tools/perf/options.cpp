// SPDX-License-Identifier: MIT
#include "settings.hpp"

#include "core/nearest.hpp"
#include "sdma/core/version.hpp"
#include "sdma/device/open.hpp"
#include "sdma/schedule/exchange.hpp"

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include <chrono>
#include <map>
#include <optional>
#include <span>

namespace collectives::perf {
namespace {

constexpr char kWhat[] =
    "Times the DMA collectives at each size and in each variant, and verifies them element by element.";
constexpr char kFooter[] =
    "Sizes are totals of the collective: the bytes that each GPU holds at the end (all_gather), holds first "
    "(all_to_all)\n"
    "or receives (broadcast), that the GPU with the most sends (alltoallv), or that the root sends or receives\n"
    "(scatter, gather). K, M and G are powers of 1024.\n"
    "algbw = size / time; busbw = algbw * (n-1)/n, algbw for broadcast, and for alltoallv the most bytes that a GPU\n"
    "exchanges with others in one direction / time. '+pl' is prelaunch: timed from the "
    "trigger.\n"
    "Libraries of --against, --energy and --beside are loaded when they are used. SDMA_NCCL_LIBRARY, "
    "SDMA_RCCL_LIBRARY,\n"
    "SDMA_NVML_LIBRARY, SDMA_CUBLAS_LIBRARY and SDMA_HIPBLAS_LIBRARY name other files for them.\n"
    "Exit codes:\n"
    "  0    all data is correct\n"
    "  1    wrong data, or a round failed or timed out\n"
    "  2    usage error\n"
    "  3    an error of the input or output, or no device, library or energy counter\n"
    "  130  Ctrl-C ended it; the rows so far are printed\n"
    "\n"
    "Examples:\n"
    "  collective_perf -b 1K -e 64M -f 2 -g 8 -n 20 -w 5 -c 1\n"
    "  collective_perf --device=soft --collective=all_to_all --variant=swap,b2b+pl -g 7 -b 1000000 -e 1000000 "
    "--order=adversarial\n"
    "  collective_perf --device=cuda -g 2 --variant=pcpy+pl,b2b+pl --against=nccl --settle=30 --energy --beside=gemm\n"
    "  collective_perf --device=simulate --collective=all_to_all -e 1G\n"
    "  mpirun -np 8 collective_perf -g 1 --device=kfd --format=nccl-tests\n"
    "  collective_perf --collective=alltoallv --matrix=moe.csv --variant=all\n"
    "  collective_perf --tune --machine=mine.json -e 1G > mine.txt && collective_perf --variant=auto --table=mine.txt\n"
    "  collective_perf --device=simulate --variant=all,ring.sdma,2_allgather_b2b.sdma:chunk=bytes/N\n"
    "  collective_perf --csv=ag.csv --json=ag.json --plot=ag.svg";

/// A row of --help.
struct Row {
  const char *names, *type, *doc;
  enum : std::uint8_t { once, flag, each, pair } form = once;
};
constexpr char kNoEffect[] = "accepted as in nccl-tests; a note says that it has no effect here";
constexpr Row kRows[] = {
    {"--collective,COLLECTIVE", "all_gather|all_to_all|alltoallv|broadcast|scatter|gather",
     "collective to time (default: all_gather)"},
    {"--variant", "all|auto|pcpy|bcst|swap|b2b|pcpy+pl|bcst+pl|swap+pl|b2b+pl,..",
     "variants to time: all (default), or a list, also with schedule files: "
     "pcpy,b2b+pl,my_ring.sdma,my_ring.sdma:chunks=4; a schedule file takes the number of GPUs in its param N and the "
     "size in its param bytes"},
    {"--map", "PARAM=EXPR", "set a param of each schedule file, by N and bytes: chunk=bytes/N; may be repeated",
     Row::pair},
    {"--matrix", "FILE.csv",
     "with alltoallv: row i has the bytes that GPU i sends to each GPU; with -b or --bytes, in proportion (default: "
     "all are equal)"},
    {"--bytes", "SIZE", "one size, instead of -b and -e"},
    {"-b,--minbytes", "SIZE", "smallest size (default: 1K)"},
    {"-e,--maxbytes", "SIZE", "largest size (default: 64M)"},
    {"-f,--stepfactor", "N", "factor from one size to the next (default: 2)"},
    {"-i,--stepbytes", "SIZE", "increment from one size to the next, instead of a factor"},
    {"-g,--ngpus", "N", "number of GPUs (default: 8), or of each process (default: 1)"},
    {"--ranks", "N", "start N processes, which share the GPUs as those of mpirun do: N times -g GPUs take part"},
    {"--ranks-per-node", "N|N,N..",
     "processes of a node, or of each, in turn: engines copy inside a node, and bytes go between nodes over MPI, or "
     "over sockets with --ranks; --variant is then hierarchical (default), flat, ring or all"},
    {"--gpus", "N|N,N..", "the same as -g, or a list of the node's GPUs: 0,2,5 (default: the first ones)"},
    {"-n,--iters", "N", "timed rounds (default: 20)"},
    {"-w,--warmup_iters", "N", "rounds before the timed ones (default: 5)"},
    {"-c,--check", "N", "rounds after the timed ones, with every byte verified (default: 1)"},
    {"-r,--root", "N", "root of broadcast, scatter and gather (default: 0)"},
    {"--set", "NAME=VALUE",
     "set an option of the schedules: completion=fence, peers_per_engine=3, prelaunch=per_group; may be repeated; "
     "--completion=fence is the same",
     Row::pair},
    {"--device", "kfd|cuda|rocr|simulate|soft",
     "device to use: kfd, the kernel driver's node; cuda, NVIDIA GPUs; rocr, AMD GPUs through ROCr; simulate, times "
     "from a machine description; soft, a software node, whose times are those of CPUs (default: kfd or cuda if there "
     "are such GPUs, otherwise simulate)"},
    {"--order", "strict|rocr|adversarial",
     "ordering of packets in the software node, from strongest to weakest (default: strict)"},
    {"--seed", "N", "seed for choices that the ordering leaves open (default: 0)"},
    {"-d,--datatype", "TYPE", "type in which counts are given, as in nccl-tests: float, half, .. (default: uint8)"},
    {"-t,--nthreads", "N", "N times -g GPUs take part; one thread drives them (default: 1)"},
    {"-o,--op", "OP", kNoEffect},
    {"-z,--blocking", "0|1", kNoEffect},
    {"-m,--agg_iters", "N", kNoEffect},
    {"-a,--average", "0..3", "accepted as in nccl-tests: a round has one time, which is that of the slowest process"},
    {"-G,--cudagraph", "N", kNoEffect},
    {"-C,--report_cputime", "0|1", kNoEffect},
    {"-p,--parallel_init", "0|1", kNoEffect},
    {"--format", "table|nccl-tests",
     "form of the table; nccl-tests: its 13 columns and footer, for one variant (default: auto)"},
    {"--timeout", "TIME", "time limit per round: 10s, 250ms, 50us (default: 30s)"},
    {"--settle", "US", "microseconds to spin before each start, outside the timed part (default: 0)"},
    {"--against", "nccl|rccl|FILE",
     "with --device=cuda: also time NCCL's kernels (nccl) and its copy-engine mode (nccl-ce); with --device=kfd: "
     "RCCL's kernels (rccl); all ways take turns, round by round. A file with lines such as 64K,21.5 (a size and "
     "microseconds): those times, with any device"},
    {"--energy", "",
     "with --device=cuda or kfd: also measure the GPUs' energy, in joules per round and nanojoules per "
     "byte",
     Row::flag},
    {"--energy-seconds", "S", "time for which the energy of each row is measured (default: 1)"},
    {"--beside", "gemm[:N]",
     "with --device=cuda or kfd: also time each row while every GPU multiplies bf16 matrices of N x N (default: "
     "8192)"},
    {"--beside-seconds", "S", "time for which each row is measured beside them (default: 0.5)"},
    {"--published", "FILE.csv",
     "also show what others have measured of this collective on as many GPUs, such as share/published/rccl.csv"},
    {"--table", "FILE", "table from which auto chooses (default: variants.txt)"},
    {"--machine", "FILE|LAYOUT",
     "machine to simulate: a description, or a layout such as mesh:16, ring:8, switch:8x400G or nodes:2x8 (default: "
     "MI300X)"},
    {"--tune", "", "simulate all variants, and print a table for --table", Row::flag},
    {"--sweep", "NAME=A..B",
     "the table again for each value of a parameter of the machine, an option of --set, or a param of schedule files: "
     "engine.window_bytes=16K..256K*2, xgmi.rate=48,61,100; may be given twice, for all pairs",
     Row::each},
    {"--csv", "FILE", "write each row as CSV, as soon as it is measured"},
    {"--json", "FILE", "write all results as JSON, at the end"},
    {"--best", "FILE", "write the fastest variants by size, with and without prelaunch, as a table for --table"},
    {"--plot", "FILE.svg", "draw curves: speed-up over pcpy, and busbw"}};

/// Errors that the parser explains less well or misunderstands.
std::optional<sdma::Diagnostic> misunderstood(const CLI::App& app, int argc, const char* const* argv) {
  const auto empty = [](std::string option) {
    return sdma::Diagnostic{
        .where = std::move(option), .message = "the value is empty", .hint = "collective_perf --help"};
  };
  // The parser takes the next word as the value of "--name=".
  for (const std::string_view word : std::span(argv + 1, argv + argc)) {
    if (word == "--") break;
    if (word.starts_with("--") && word.ends_with('=')) return empty(std::string(word.substr(0, word.size() - 1)));
  }
  std::vector<std::string> known;
  for (const auto* o : app.get_options()) {
    for (const auto& name : o->get_lnames()) known.push_back("--" + name);
    for (const auto& value : o->results())
      if (value.empty()) return empty(o->get_name());
  }
  for (const auto& all : app.remaining()) {
    if (!all.starts_with("--")) continue;
    const auto word = all.substr(0, all.find('='));
    return sdma::Diagnostic{
        .where = "collective_perf",
        .message = "there is no option '" + word + "'" + sdma::did_you_mean(word, {known.begin(), known.end()}),
        .hint = "collective_perf --help lists them"};
  }
  for (const auto* o : app.get_options())
    if (o->get_multi_option_policy() == CLI::MultiOptionPolicy::Throw && o->count() > 1)
      return sdma::Diagnostic{
          .where = "collective_perf",
          .message = fmt::format("--{} appears {} times: give it once", o->get_lnames().front(), o->count()),
          .hint = "collective_perf --help"};
  return {};
}

/// Asks in a process of its own: NVIDIA's driver cannot be used in the child of a process that has asked it.
std::optional<sdma::DeviceKind> hardware_before_a_fork() {
  const auto all = sdma::in_ranks(1, std::chrono::seconds(0), [](std::uint32_t, sdma::Exchange&) {
    const auto found = sdma::hardware();
    return found ? std::string(name(*found)) : "";
  });
  return all && all->front().answer ? sdma::device_kind(*all->front().answer) : std::nullopt;
}

}  // namespace

std::variant<Given, Answer, sdma::Diagnostic> given_of(int argc, const char* const* argv) {
  CLI::App app{kWhat};
  app.name("collective_perf");
  app.get_formatter()->column_width(34);
  app.footer(kFooter);
  app.set_help_flag("-h,--help", "print this help");
  app.set_version_flag("--version", "collective_perf " + std::string(sdma::version().string), "print the version");
  const auto add = [&](const std::string& names) { return app.add_option(names, CLI::callback_t{}); };
  std::map<std::string, bool> flags;  // --tune=no is a flag that is not given
  for (const auto& row : kRows) {
    if (row.form == Row::flag) {
      app.add_flag(row.names, flags[row.names], row.doc);
      continue;
    }
    auto* const o = add(row.names)->description(row.doc)->type_name(row.type);
    if (row.form >= Row::each)
      o->expected(1, CLI::detail::expected_max_vector_size)
          ->allow_extra_args(false)
          ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
    if (row.form == Row::pair)
      o->check([&row, name = o->get_name()](const std::string& word) {
        const auto equals = word.find('=');
        const auto* const example = name == "--map" ? "chunk=bytes/N" : "completion=fence";
        return equals != word.npos && equals != 0 ? ""
                                                  : fmt::format("'{}' is not {}: {} {}", word, row.type, name, example);
      });
  }
  for (const auto name : kScheduleOptions) add("--" + std::string(name))->group("");
  try {
    app.parse(argc, argv);
  } catch (const CLI::CallForVersion&) {
    return Answer{app.version() + "\n"};
  } catch (const CLI::ParseError& e) {
    if (e.get_exit_code() == 0) return Answer{app.help()};
    if (auto better = misunderstood(app, argc, argv)) return *std::move(better);
    std::string said = e.what();
    constexpr std::string_view kMissing = " missing", kRequired = ": 1 required ";
    if (const auto at = said.find(kRequired); at != said.npos && said.ends_with(kMissing))
      said = said.substr(0, at) + " needs a value";
    return sdma::Diagnostic{.where = "collective_perf", .message = said, .hint = "collective_perf --help"};
  }
  if (auto wrong = misunderstood(app, argc, argv)) return *std::move(wrong);
  Given g;
  for (const auto* o : app.get_options())
    if (*o) g.texts["--" + o->get_lnames().front()] = o->results();
  for (const auto& [flag, on] : flags)
    if (!on) g.texts.erase(flag);
  return g;
}

std::variant<Settings, Answer, sdma::Diagnostic> parse(int argc, char** argv, std::uint32_t launched) {
  auto said = given_of(argc, argv);
  if (auto* answer = std::get_if<Answer>(&said)) return std::move(*answer);
  if (auto* wrong = std::get_if<sdma::Diagnostic>(&said)) return std::move(*wrong);
  auto& g = std::get<Given>(said);
  g.launched = launched;
  if (!g.texts.contains("--device"))
    if (const auto found = g.texts.contains("--ranks") ? hardware_before_a_fork() : sdma::hardware())
      g.found = sdma::name(*found);
  auto settings = settings_of(g);
  if (!settings) return std::move(settings.error());
  for (int i = 1; i < argc; ++i) {
    const std::string_view word = argv[i];
    if (word == "--gpus") ++i;
    else if (!word.starts_with("--gpus=")) (settings->command += settings->command.empty() ? "" : " ") += word;
  }
  return *std::move(settings);
}

}  // namespace collectives::perf
