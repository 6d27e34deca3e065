// SPDX-License-Identifier: MIT
// sdma perf: times and verifies the DMA collectives, in the conventions of nccl-tests and rccl-tests.
//
//   sdma perf -b 1K -e 64M -f 2 -g 8 -n 20 -w 5 -c 1 --csv=ag.csv --save=ag.json --plot=ag.svg
//
//   perf/perf_options.hpp  words to a Request       perf/sweep.hpp       one size in one way
//   perf/settings.hpp      a Request to Settings    perf/companions.hpp  other libraries, energy, a matrix product
//   perf/benchmark.hpp     the whole run            perf/report.hpp      what is printed and saved
//
// The table goes to standard output, with '#' before every line that is not a row. After Ctrl-C, a closed pipe or a
// full disk, the sweep ends after the current round, and results are written.
#include "core/program.hpp"
#include "perf/benchmark.hpp"
#include "perf/launch.hpp"
#include "perf/perf_options.hpp"
#include "perf/settings.hpp"
#include "perf/watchdog.hpp"
#include "sdma/device/open.hpp"

#include <memory>
#include <optional>

namespace sdma::tool {
namespace {

using namespace collectives::perf;

int perf_verb(const Request& request) {
  const auto at = launched();
  if (!at) return report(at.error()), kUsage;
  if (const auto& mine = *at) {
    const auto ended = perform_launched(request, *mine);
    // A launcher ends all ranks when one fails, and drops what rank 0 has just printed: so rank 0 alone has the code.
    const int code = mine->rank == 0 || ended.lost ? ended.code : kOk;
    if (ended.at_once) end_at_once(code);
    return code;
  }
  listen();
  const auto found = !asks_for_hardware(request) ? std::nullopt : request.ranks ? hardware_before_a_fork() : hardware();
  const auto settings = settings_of(request, found);
  if (!settings) return report(settings.error()), kUsage;
  return settings->processes > 1 ? perform_in_ranks(*settings) : perform(*settings).code;
}

}  // namespace

void add_perf(VerbOptions& verb, Action& action) {
  const auto request = std::make_shared<Request>();
  const auto complete = add_perf_options(verb, *request);
  verb.exits({{kOk, "all data is correct"},
              {kRefuted, "wrong data, or a round failed or timed out"},
              {kInput, "an error of the input or output, or no device, library or energy counter"},
              {kInterrupted, "Ctrl-C ended it; the rows so far are printed"}});
  verb.manual("docs/collectives.md");
  verb.footer(
      "Sizes are totals of the collective: the bytes that each GPU holds at the end (all_gather), holds first "
      "(all_to_all)\n"
      "or receives (broadcast), that the GPU with the most sends (alltoallv), or that the root sends or receives\n"
      "(scatter, gather). K, M and G are powers of 1024.\n"
      "algbw = size / time; busbw = algbw * (n-1)/n, algbw for broadcast, and for alltoallv the most bytes that a GPU\n"
      "exchanges with others in one direction / time. '+pl' is prelaunch: timed from the trigger.\n"
      "--NAME=VALUE is --set NAME=VALUE for each option of the schedules: --completion=fence.\n"
      "Libraries of --against, --energy and --beside are loaded when they are used. SDMA_NCCL_LIBRARY,\n"
      "SDMA_RCCL_LIBRARY, SDMA_NVML_LIBRARY, SDMA_CUBLAS_LIBRARY and SDMA_HIPBLAS_LIBRARY name other files for them.\n"
      "Examples:\n"
      "  sdma perf -b 1K -e 64M -f 2 -g 8 -n 20 -w 5 -c 1\n"
      "  sdma perf --device=soft all_to_all --variant=swap -g 7 -b 1000000\n"
      "  sdma perf --device=cuda -g 2 --variant=b2b+pl --against=nccl --energy\n"
      "  sdma perf --device=simulate all_to_all -e 1G\n"
      "  mpirun -np 8 sdma perf -g 1 --device=kfd --format=nccl-tests\n"
      "  srun -N2 -n16 sdma perf -g 1 --device=kfd --meet=node0:29500\n"
      "  sdma perf alltoallv --matrix=moe.csv --variant=all\n"
      "  sdma perf --tune --machine=mine.json -e 1G > mine.txt\n"
      "  sdma perf --variant=auto --table=mine.txt\n"
      "  sdma perf --device=simulate --variant=all,ring.sdma:chunk=bytes/N\n"
      "  sdma perf --csv=ag.csv --save=ag.json --plot=ag.svg");
  action = [request, complete] { return complete(), perf_verb(*request); };
}

}  // namespace sdma::tool
