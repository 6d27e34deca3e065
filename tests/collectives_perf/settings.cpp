// SPDX-License-Identifier: MIT
#include "support.hpp"

using namespace collectives;
using namespace collectives::perf;
using test::settings;

namespace {

/// "where: message", or "" where nothing is wrong.
std::string wrong(const Given& g) {
  const auto s = settings_of(g);
  if (s) return "";
  CHECK(!s.error().where.empty());
  return s.error().where + ": " + s.error().message + " | " + s.error().hint;
}

std::string names(const Settings& s) {
  std::string all;
  for (const auto& w : s.ways) all += (all.empty() ? "" : " ") + name(w);
  return all;
}

bool has(const std::string& text, const std::string& part) { return text.find(part) != text.npos; }

}  // namespace

TEST_CASE("what is not given is as the benchmarks of RCCL are usually called") {
  const auto s = settings({});
  CHECK(name(s.options.collective) == "all_gather");
  CHECK(s.options.gpus == 8);
  CHECK(s.least == 1 << 10);
  CHECK(s.most == 64 << 20);
  CHECK(s.factor == 2);
  CHECK(s.iterations == 20);
  CHECK(s.warmups == 5);
  CHECK(s.checks == 1);
  CHECK(s.timeout.count() > 0);
  CHECK(names(s) == "pcpy pcpy+pl bcst bcst+pl b2b b2b+pl");
}

TEST_CASE("without --device, the times are those of hardware, or simulated; some options say which device they mean") {
  const auto where = [](const Given& g) { return name(settings(g).where); };
  CHECK(where({}) == "simulate");
  CHECK_FALSE(settings({}).where_given);
  CHECK(where({.found = "kfd"}) == "kfd");
  CHECK(where({.found = "cuda"}) == "cuda");
  CHECK(where({.where = "soft", .found = "kfd"}) == "soft");
  CHECK(settings({.where = "simulate"}).where_given);
  CHECK(where({.order = "rocr", .found = "kfd"}) == "soft");
  CHECK(where({.seed = "1"}) == "soft");
  CHECK(where({.machine = "m.json", .found = "kfd"}) == "simulate");
  CHECK(where({.found = "kfd", .tune = true}) == "simulate");
}

TEST_CASE("each option says what is wrong with its value") {
  const std::pair<Given, std::string> all[] = {
      {{.collective = "al_gather"}, "--collective: 'al_gather' is not a valid value | did you mean 'all_gather'?"},
      {{.variants = "b2v"}, "--variant: 'b2v' is not a variant of all_gather | did you mean 'b2b'?"},
      {{.variants = "swap"}, "--variant: 'swap' is not a variant of all_gather"},
      {{.variants = "pcpy,"}, "--variant: '' is not a variant"},
      {{.least = "1Q"}, "--minbytes: '1Q' is not a size"},
      {{.least = "0"}, "--minbytes: '0' is not a size"},
      {{.most = "-1"}, "--maxbytes: '-1' is not a size"},
      {{.least = "2K", .most = "1K"}, "--maxbytes: 1K is less than --minbytes, 2K"},
      {{.factor = "1"}, "--stepfactor: '1' is not a number from 2"},
      {{.factor = "2x"}, "--stepfactor: '2x'"},
      {{.step = "x"}, "--stepbytes: 'x' is not a size"},
      {{.factor = "2", .step = "1K"}, "--stepfactor: sizes grow by a factor or by a step"},
      {{.most = "1G", .step = "1"}, "--stepbytes: '1' makes more than"},
      {{.gpu_count = "1"}, "--ngpus: '1' is not a number from 2"},
      {{.gpu_count = "65"}, "--ngpus: '65'"},
      {{.gpus = "1"}, "--gpus: a collective needs at least 2"},
      {{.gpus = "5,"}, "--gpus: a collective needs at least 2"},
      {{.gpus = "0,,1"}, "--gpus: '0,,1' is not a choice of GPUs"},
      {{.gpus = "1,x"}, "--gpus: '1,x' is not a choice of GPUs"},
      {{.gpus = "1,1"}, "--gpus: '1,1' is not a choice of GPUs"},
      {{.gpu_count = "3", .gpus = "0,1"}, "--gpus: '0,1' lists 2 GPUs, but -g is 3"},
      {{.iterations = "0"}, "--iters: '0'"},
      {{.warmups = "-3"}, "--warmup_iters: '-3'"},
      {{.checks = "yes"}, "--check: 'yes'"},
      {{.where = "sof"}, "--device: 'sof' is not a valid value | did you mean 'soft'?"},
      {{.order = "strickt"}, "--order: 'strickt' is not a valid value | did you mean 'strict'?"},
      {{.gpus = "1,2"},
       "--gpus: a simulated machine always uses its first GPUs | give their number, -g 2, or a device: --device=soft"},
      {{.where = "kfd", .order = "rocr"}, "--order: the ordering of hardware cannot be chosen"},
      {{.where = "simulate", .seed = "1"}, "--seed: simulation is in strict order"},
      {{.gpus = "1,2", .where = "simulate"}, "--gpus: a simulated machine always uses its first GPUs"},
      {{.gpus = "1,2", .tune = true}, "--gpus: a simulated machine always uses its first GPUs"},
      {{.where = "soft", .machine = "m.json"}, "--machine: a device has no machine description"},
      {{.csv = "x", .tune = true}, "--csv: not allowed with --tune, which simulates all variants and prints a table"},
      {{.variants = "b2b", .tune = true}, "--variant: not allowed with --tune"},
      {{.seed = "1K"}, "--seed: '1K'"},
      {{.timeout = "5"}, "--timeout: '5' is not a time | write 10s"},
      {{.timeout = "0s"}, "--timeout: '0s'"},
      {{.root = "8"}, "all_gather pcpy, 1K: root 8"},
      {{.set = {{"foo", "1"}}}, "--set: 'foo' is not an option"},
      {{.set = {{"completion", "x"}}}, "--set: completion: 'x'"},
      {{.set = {{"gpus", "3"}}}, "--set: 'gpus' cannot be set here | use -g"},
      {{.set = {{"prelaunch", "off"}}}, "--set: variants without +pl already have prelaunch=off"},
      {{.set = {{"packet_bytes", "65"}}}, "packet_bytes must be a multiple of 64"},
      {{.bytes = "4K", .most = "8K"}, "--bytes: one size and a range of sizes"},
      {{.bytes = "x"}, "--bytes: 'x' is not a size"},
      {{.type = "flaot"}, "--datatype: 'flaot' is not a type | did you mean 'float'?"},
      {{.bytes = "1002", .gpu_count = "2", .type = "float"},
       "--datatype: 1002 bytes among 2 GPUs are not a whole number of float each"},
      {{.bytes = "12", .gpu_count = "2", .type = "float"}, "--datatype: 12 bytes among 2 GPUs"},
      {{.operation = "xor"}, "--op: 'xor' is not an operation"},
      {{.blocking = "2"}, "--blocking: '2' is not a number from 0 to 1"},
      {{.average = "4"}, "--average: '4'"},
      {{.gpus = "0,1", .where = "soft", .threads = "2"}, "--nthreads: --gpus names all GPUs already"},
      {{.gpu_count = "8", .threads = "9"}, "--nthreads: 72 GPUs in all: a collective needs 2 to 64"},
      {{.gpu_count = "1", .threads = "1"}, "--nthreads: 1 GPUs in all"},
      {{.variants = "pcpy,b2b", .format = "nccl-tests"},
       "--format: the columns of nccl-tests have no place for a variant"},
      {{.where = "cuda", .against = "nccl", .format = "nccl-tests"}, "--format: the columns"},
      {{.sweeps = {"xgmi.rate"}}, "--sweep: xgmi.rate: this is not NAME=A..B"},
      {{.where = "soft", .sweeps = {"xgmi.rate=1,2"}}, "--sweep: 'xgmi.rate' is a parameter of a simulated machine"},
      {{.sweeps = {"bytes=1,2"}}, "--sweep: the table has a row for each size already"},
      {{.sweeps = {"chunks=1,2"}}, "--sweep: 'chunks' is neither a parameter of a machine nor an option"},
      {{.sweeps = {"xgmi.rate=1,2", "xgmi.rate=3"}}, "--sweep: at most two different names"},
      {{.sweeps = {"xgmi.rate=1,2"}, .tune = true}, "--sweep: not allowed with --tune"},
      {{.variants = "b2b", .sweeps = {"xgmi.rate=1,2"}, .format = "nccl-tests"}, "--sweep: not allowed with"},
      {{.settle = "1.5"}, "--settle: '1.5' is not a number from 0"},
      {{.where = "simulate", .settle = "30"}, "--settle: a simulation has no time between rounds"},
      {{.where = "cuda", .against = "nvshmem"}, "--against: 'nvshmem' is not known | choose nccl"},
      {{.where = "cuda", .against = "rccl"},
       "--against: RCCL runs on AMD GPUs only, not with --device=cuda | use it with --device=kfd"},
      {{.where = "soft", .against = "nccl"}, "--against: NCCL runs on NVIDIA GPUs only, not with --device=soft"},
      {{.where = "simulate", .against = "nccl"},
       "--against: NCCL runs on NVIDIA GPUs only, not with --device=simulate"},
      {{.against = "nccl", .tune = true}, "--against: not allowed with --tune"},
      {{.where = "soft", .energy = true}, "--energy: --device=soft has no GPU"},
      {{.energy_seconds = "2"}, "--energy-seconds: means nothing without --energy | add --energy"},
      {{.where = "cuda", .energy_seconds = "0", .energy = true}, "--energy-seconds: '0' is not a time in seconds"},
      {{.where = "cuda", .energy_seconds = "2s", .energy = true}, "--energy-seconds: '2s' is not a time in seconds"},
      {{.where = "soft", .beside = "gemm"},
       "--beside: --device=soft has no GPU that could multiply matrices | use it with --device=cuda or"},
      {{.where = "cuda", .beside = "gemv"}, "--beside: 'gemv' is not known | choose gemm"},
      {{.where = "cuda", .beside = "gemm:8"}, "--beside: '8' is not a number from 16"},
      {{.where = "cuda", .beside = "gemm:"}, "--beside: 'gemm:' has no size"},
      {{.where = "cuda", .beside_seconds = "1"}, "--beside-seconds: means nothing without --beside=gemm"},
      {{.csv = "-"}, "--csv: '-' is not a file"},
      {{.csv = "x", .json = "./x"}, "--csv: 'x' is also the file of --json"},
      {{.variants = "pcpy,ring.sdma:4"}, "--variant: '4' of ring.sdma is not PARAM=VALUE | write ring.sdma:chunks=4"},
      {{.variants = "pcpy,ring"}, "--variant: 'ring' is not a variant of all_gather | choose one of"},
      {{.map = {{"chunk", "bytes/N"}}}, "--map: there is no schedule file whose params it could name"},
      {{.variants = "ring.sdma", .set = {{"completion", "fence"}}}, "--set: schedule files do not have these options"},
  };
  for (const auto& [given, expected] : all) {
    const auto said = wrong(given);
    INFO(said);
    INFO(expected);
    CHECK(has(said, expected));
  }
}

TEST_CASE("options of nccl-tests that have no effect are accepted, and a note says so") {
  const auto s = settings({.gpu_count = "4",
                           .type = "float",
                           .operation = "sum",
                           .blocking = "0",
                           .threads = "2",
                           .aggregated = "3",
                           .average = "2",
                           .graph = "1",
                           .cpu_time = "1",
                           .parallel_init = "1"});
  CHECK(s.options.gpus == 8);
  CHECK((s.type.name == "float" && s.type.bytes == 4));
  std::string notes;
  for (const auto& n : s.remarks) notes += n.substr(0, 2);
  CHECK(notes == "-t-o-z-m-G-C-p");
  // What is as it always is here needs no note.
  CHECK(settings({.operation = "none",
                  .blocking = "1",
                  .threads = "1",
                  .aggregated = "1",
                  .graph = "0",
                  .cpu_time = "0",
                  .parallel_init = "0"})
            .remarks.empty());
  CHECK(settings({.threads = "4"}).options.gpus == 4);
  CHECK(settings({.gpu_count = "1", .threads = "4"}).options.gpus == 4);
  CHECK(names(settings({.format = "nccl-tests"})) == "auto");
}

TEST_CASE("companions are off unless they are asked for") {
  const auto none = settings({}), all = settings({.where = "cuda",
                                                  .settle = "30",
                                                  .against = "nccl",
                                                  .energy_seconds = "0.25",
                                                  .beside = "gemm:4096",
                                                  .beside_seconds = "2",
                                                  .energy = true});
  CHECK((none.settle.count() == 0 && none.rivals.empty() && !none.energy && !none.beside));
  CHECK(all.settle.count() == 30);
  CHECK(name(all.rivals.at(0)) == "nccl");
  const auto rccl = settings({.where = "kfd", .against = "rccl"});
  CHECK((rccl.rivals.size() == 1 && name(rccl.rivals.at(0)) == "rccl"));
  CHECK(name(all.rivals.at(1)) == "nccl-ce");
  CHECK(all.energy->count() == 0.25);
  CHECK(all.beside->n == 4096);
  CHECK(all.beside->measured.count() == 2);
  CHECK(names(all) == names(none));
  CHECK(settings({.where = "cuda", .beside = "gemm"}).beside->n == 8192);
  CHECK(settings({.where = "kfd", .energy = true}).energy->count() == 1);
}

TEST_CASE("sizes go from the least to the greatest, and not beyond") {
  const auto of = [](const Given& g) { return sizes(settings(g)); };
  CHECK(of({.least = "1K", .most = "8K"}) == std::vector<std::uint64_t>{1024, 2048, 4096, 8192});
  CHECK(of({.least = "3", .most = "100", .factor = "5"}) == std::vector<std::uint64_t>{3, 15, 75});
  CHECK(of({.least = "1k", .most = "2K", .step = "500"}) == std::vector<std::uint64_t>{1024, 1524, 2024});
  CHECK(of({.least = "7", .most = "7"}) == std::vector<std::uint64_t>{7});
  CHECK(of({.bytes = "7K"}) == std::vector<std::uint64_t>{7 << 10});
  // One bound alone pulls the other along.
  CHECK(of({.least = "128M"}) == std::vector<std::uint64_t>{128 << 20});
  CHECK(of({.most = "512"}) == std::vector<std::uint64_t>{512});
  CHECK(size_text(1536) == "1536");
  CHECK(size_text(3 << 20) == "3M");
}

TEST_CASE("GPUs are a count or a list, and one number is a count") {
  const auto count = settings({.gpus = "3"}), list = settings({.gpus = "5,2", .where = "soft"});
  CHECK(count.options.gpus == 3);
  CHECK(count.gpus.empty());
  CHECK(list.options.gpus == 2);
  CHECK(list.gpus == std::vector<sdma::GpuId>{{5}, {2}});
  CHECK(settings({.gpu_count = "3", .gpus = "3"}).options.gpus == 3);
  CHECK(settings({.gpus = "3", .tune = true}).tune->gpus == 3);
}

TEST_CASE("ways are a list, each once, in its order") {
  CHECK(names(settings({.variants = "b2b+pl,pcpy,b2b+pl"})) == "b2b+pl pcpy");
  CHECK(names(settings({.variants = "auto,all"})) == "auto pcpy pcpy+pl bcst bcst+pl b2b b2b+pl");
  CHECK(names(settings({.collective = "all_to_all"})) == "pcpy pcpy+pl swap swap+pl b2b b2b+pl");
  CHECK(names(settings({.collective = "gather"})) == "pcpy pcpy+pl b2b b2b+pl");
}

TEST_CASE("a way's options: prelaunch only with +pl, in place only where it can be") {
  const auto s = settings({.collective = "all_to_all",
                           .variants = "pcpy,auto,swap,b2b+pl",
                           .set = {{"in_place", "yes"}, {"prelaunch", "per_group"}}});
  CHECK(options_of(s, s.ways[0], 64).prelaunch == Prelaunch::off);
  CHECK_FALSE(options_of(s, s.ways[0], 64).in_place);
  CHECK(options_of(s, s.ways[1], 64).in_place);
  CHECK(options_of(s, s.ways[2], 64).in_place);
  CHECK(options_of(s, s.ways[3], 64).prelaunch == Prelaunch::per_group);
  CHECK(options_of(s, s.ways[3], 64).bytes == 64);
}

TEST_CASE("counts are one GPU's part, of a broadcast all") {
  const auto count = [](const char* collective, const char* gpus, std::uint64_t bytes) {
    const auto s = settings({.collective = collective, .variants = "pcpy", .gpu_count = gpus});
    return count_of(options_of(s, s.ways[0], bytes));
  };
  CHECK(count("all_gather", "8", 65536) == 8192);
  CHECK(count("all_to_all", "4", 65536) == 16384);
  CHECK(count("broadcast", "8", 65536) == 65536);
  CHECK(count("scatter", "2", 1000) == 512);
}
