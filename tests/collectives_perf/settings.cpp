// SPDX-License-Identifier: MIT
#include "support.hpp"

using namespace collectives;
using namespace collectives::perf;
using test::line;
using test::settings;

namespace {

/// "where: message", or "" where nothing is wrong.
std::string wrong(const std::string& words) {
  const auto given = line(words);
  if (!given.wrong.empty()) return given.wrong;
  const auto s = settings_of(given.request);
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
  const auto s = settings();
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
  const auto where = [](const std::string& words, Where found = {}) { return name(settings(words, found).where); };
  const Where kfd = sdma::DeviceKind::kfd, cuda = sdma::DeviceKind::cuda;
  CHECK(where("") == "simulate");
  CHECK_FALSE(settings().where_given);
  CHECK(where("", kfd) == "kfd");
  CHECK(where("", cuda) == "cuda");
  CHECK(where("--device=soft", kfd) == "soft");
  CHECK(settings("--device=simulate").where_given);
  CHECK(where("--order=rocr", kfd) == "soft");
  CHECK(where("--seed=1") == "soft");
  CHECK(where("--machine=m.json", kfd) == "simulate");
  CHECK(where("--tune", kfd) == "simulate");
}

TEST_CASE("each option says what is wrong with its value") {
  const std::pair<std::string, std::string> all[] = {
      {"--collective=al_gather",
       "--collective: 'al_gather' is not one of all_gather|all_to_all|broadcast|scatter|gather|alltoallv; did you mean 'all_gather'?"},
      {"--variant=b2v", "--variant: 'b2v' is not a variant of all_gather | did you mean 'b2b'?"},
      {"--variant=swap", "--variant: 'swap' is not a variant of all_gather"},
      {"--variant=pcpy,", "--variant: '' is not a variant"},
      {"-b 1Q", "--minbytes: '1Q' is not a size"},
      {"-b 0", "--minbytes: '0' is not a size"},
      {"--maxbytes=-1", "--maxbytes: '-1' is not a size"},
      {"-b 2K -e 1K", "--maxbytes: 1K is less than --minbytes, 2K"},
      {"-f 1", "--stepfactor: '1' is not a number from 2"},
      {"-f 2x", "--stepfactor: '2x'"},
      {"-i x", "--stepbytes: 'x' is not a size"},
      {"-f 2 -i 1K", "--stepfactor: sizes grow by a factor or by a step"},
      {"-e 1G -i 1", "--stepbytes: '1' makes more than"},
      {"-g 1", "--ngpus: '1' is not a number from 2"},
      {"-g 65", "--ngpus: '65'"},
      {"--gpus=1", "--gpus: a collective needs at least 2"},
      {"--gpus=5,", "--gpus: a collective needs at least 2"},
      {"--gpus=0,,1", "--gpus: '0,,1' is not a choice of GPUs"},
      {"--gpus=1,x", "--gpus: '1,x' is not a choice of GPUs"},
      {"--gpus=1,1", "--gpus: '1,1' is not a choice of GPUs"},
      {"-g 3 --gpus=0,1", "--gpus: '0,1' lists 2 GPUs, but -g is 3"},
      {"-n 0", "--iters: '0'"},
      {"--warmup_iters=-3", "--warmup_iters: '-3'"},
      {"-c yes", "--check: 'yes'"},
      {"--device=sof", "--device: 'sof' is not one of soft|kfd|cuda|rocr|simulate; did you mean 'soft'?"},
      {"--order=strickt", "--order: 'strickt' is not one of strict|rocr|adversarial; did you mean 'strict'?"},
      {"--gpus=1,2",
       "--gpus: a simulated machine always uses its first GPUs | give their number, -g 2, or a device: --device=soft"},
      {"--device=kfd --order=rocr", "--order: the ordering of hardware cannot be chosen"},
      {"--device=simulate --seed=1", "--seed: simulation is in strict order"},
      {"--gpus=1,2 --device=simulate", "--gpus: a simulated machine always uses its first GPUs"},
      {"--gpus=1,2 --tune", "--gpus: a simulated machine always uses its first GPUs"},
      {"--device=soft --machine=m.json", "--machine: a device has no machine description"},
      {"--csv=x --tune", "--csv: not allowed with --tune, which simulates all variants and prints a table"},
      {"--variant=b2b --tune", "--variant: not allowed with --tune"},
      {"--seed=1K", "--seed: '1K'"},
      {"--timeout=5", "--timeout: '5' is not a time: write 10s"},
      {"--timeout=0s", "--timeout: '0s'"},
      {"-r 8", "all_gather pcpy, 1K: root 8"},
      {"--set foo=1", "--set: 'foo' is not an option"},
      {"--set completion=x", "--set: completion: 'x'"},
      {"--set gpus=3", "--set: 'gpus' cannot be set here | use -g"},
      {"--set prelaunch=off", "--set: variants without +pl already have prelaunch=off"},
      {"--set packet_bytes=65", "packet_bytes must be a multiple of 64"},
      {"--bytes=4K -e 8K", "--bytes: one size and a range of sizes"},
      {"--bytes=x", "--bytes: 'x' is not a size"},
      {"-d flaot", "--datatype: 'flaot' is not a type | did you mean 'float'?"},
      {"--bytes=1002 -g 2 -d float", "--datatype: 1002 bytes among 2 GPUs are not a whole number of float each"},
      {"--bytes=12 -g 2 -d float", "--datatype: 12 bytes among 2 GPUs"},
      {"-o xor", "--op: 'xor' is not an operation"},
      {"-z 2", "--blocking: '2' is not a number from 0 to 1"},
      {"-a 4", "--average: '4'"},
      {"--gpus=0,1 --device=soft -t 2", "--nthreads: --gpus names all GPUs already"},
      {"-g 8 -t 9", "--nthreads: 72 GPUs in all: a collective needs 2 to 64"},
      {"-g 1 -t 1", "--nthreads: 1 GPUs in all"},
      {"--variant=pcpy,b2b --format=nccl-tests", "--format: the columns of nccl-tests have no place for a variant"},
      {"--device=cuda --against=nccl --format=nccl-tests", "--format: the columns"},
      {"--sweep=xgmi.rate", "--sweep: xgmi.rate: this is not NAME=A..B"},
      {"--device=soft --sweep=xgmi.rate=1,2", "--sweep: 'xgmi.rate' is a parameter of a simulated machine"},
      {"--sweep=bytes=1,2", "--sweep: the table has a row for each size already"},
      {"--sweep=chunks=1,2", "--sweep: 'chunks' is neither a parameter of a machine nor an option"},
      {"--sweep=xgmi.rate=1,2 --sweep=xgmi.rate=3", "--sweep: at most two different names"},
      {"--sweep=xgmi.rate=1,2 --tune", "--sweep: not allowed with --tune"},
      {"--variant=b2b --sweep=xgmi.rate=1,2 --format=nccl-tests", "--sweep: not allowed with"},
      {"--settle=1.5", "--settle: '1.5' is not a number from 0"},
      {"--device=simulate --settle=30", "--settle: a simulation has no time between rounds"},
      {"--device=cuda --against=nvshmem", "--against: 'nvshmem' is not known | choose nccl"},
      {"--device=cuda --against=rccl",
       "--against: RCCL runs on AMD GPUs only, not with --device=cuda | use it with --device=kfd"},
      {"--device=soft --against=nccl", "--against: NCCL runs on NVIDIA GPUs only, not with --device=soft"},
      {"--device=simulate --against=nccl", "--against: NCCL runs on NVIDIA GPUs only, not with --device=simulate"},
      {"--against=nccl --tune", "--against: not allowed with --tune"},
      {"--device=soft --energy", "--energy: --device=soft has no GPU"},
      {"--energy-seconds=2", "--energy-seconds: means nothing without --energy | add --energy"},
      {"--device=cuda --energy-seconds=0 --energy", "--energy-seconds: '0' is not a time in seconds"},
      {"--device=cuda --energy-seconds=2s --energy", "--energy-seconds: '2s' is not a time in seconds"},
      {"--device=soft --beside=gemm",
       "--beside: --device=soft has no GPU that could multiply matrices | use it with --device=cuda or"},
      {"--device=cuda --beside=gemv", "--beside: 'gemv' is not known | choose gemm"},
      {"--device=cuda --beside=gemm:8", "--beside: 'gemm:8' has no size from 16 to 65536"},
      {"--device=cuda --beside=gemm:", "--beside: 'gemm:' has no size"},
      {"--device=cuda --beside-seconds=1", "--beside-seconds: means nothing without --beside=gemm"},
      {"--csv=-", "--csv: '-' is not a file"},
      {"--csv=x --save=./x", "--csv: 'x' is also the file of --save"},
      {"--variant=pcpy,ring.sdma:4", "--variant: '4' of ring.sdma is not PARAM=VALUE | write ring.sdma:chunks=4"},
      {"--variant=pcpy,ring", "--variant: 'ring' is not a variant of all_gather | choose one of"},
      {"--map chunk=bytes/N", "--map: there is no schedule file whose params it could name"},
      {"--variant=ring.sdma --set completion=fence", "--set: schedule files do not have these options"},
  };
  for (const auto& [words, expected] : all) {
    const auto said = wrong(words);
    INFO(said);
    INFO(expected);
    CHECK(has(said, expected));
  }
}

TEST_CASE("options of nccl-tests that have no effect are accepted, and a note says so") {
  const auto s = settings("-g 4 -d float -o sum -z 0 -t 2 -m 3 -a 2 -G 1 -C 1 -p 1");
  CHECK(s.options.gpus == 8);
  CHECK((s.type.name == "float" && s.type.bytes == 4));
  std::string notes;
  for (const auto& n : s.remarks) notes += n.substr(0, 2);
  CHECK(notes == "-t-o-z-m-G-C-p");
  // What is as it always is here needs no note.
  CHECK(settings("-o none -z 1 -t 1 -m 1 -G 0 -C 0 -p 0").remarks.empty());
  CHECK(settings("-t 4").options.gpus == 4);
  CHECK(settings("-g 1 -t 4").options.gpus == 4);
  CHECK(names(settings("--format=nccl-tests")) == "auto");
}

TEST_CASE("companions are off unless they are asked for") {
  const auto
      none = settings(),
      all = settings(
          "--device=cuda --settle=30 --against=nccl --energy-seconds=0.25 --beside=gemm:4096 --beside-seconds=2 --energy");
  CHECK((none.settle.count() == 0 && none.rivals.empty() && !none.energy && !none.beside));
  CHECK(all.settle.count() == 30);
  CHECK(name(all.rivals.at(0)) == "nccl");
  const auto rccl = settings("--device=kfd --against=rccl");
  CHECK((rccl.rivals.size() == 1 && name(rccl.rivals.at(0)) == "rccl"));
  CHECK(name(all.rivals.at(1)) == "nccl-ce");
  CHECK(all.energy->count() == 0.25);
  CHECK(all.beside->n == 4096);
  CHECK(all.beside->measured.count() == 2);
  CHECK(names(all) == names(none));
  CHECK(settings("--device=cuda --beside=gemm").beside->n == 8192);
  CHECK(settings("--device=kfd --energy").energy->count() == 1);
}

TEST_CASE("sizes go from the least to the greatest, and not beyond") {
  const auto of = [](const std::string& line) { return sizes(settings(line)); };
  CHECK(of("-b 1K -e 8K") == std::vector<std::uint64_t>{1024, 2048, 4096, 8192});
  CHECK(of("-b 3 -e 100 -f 5") == std::vector<std::uint64_t>{3, 15, 75});
  CHECK(of("-b 1k -e 2K -i 500") == std::vector<std::uint64_t>{1024, 1524, 2024});
  CHECK(of("-b 7 -e 7") == std::vector<std::uint64_t>{7});
  CHECK(of("--bytes=7K") == std::vector<std::uint64_t>{7 << 10});
  // One bound alone pulls the other along.
  CHECK(of("-b 128M") == std::vector<std::uint64_t>{128 << 20});
  CHECK(of("-e 512") == std::vector<std::uint64_t>{512});
  CHECK(size_text(1536) == "1536");
  CHECK(size_text(3 << 20) == "3M");
}

TEST_CASE("GPUs are a count or a list, and one number is a count") {
  const auto count = settings("--gpus=3"), list = settings("--gpus=5,2 --device=soft");
  CHECK(count.options.gpus == 3);
  CHECK(count.gpus.empty());
  CHECK(list.options.gpus == 2);
  CHECK(list.gpus == std::vector<sdma::GpuId>{{5}, {2}});
  CHECK(settings("-g 3 --gpus=3").options.gpus == 3);
  CHECK(settings("--gpus=3 --tune").tune->gpus == 3);
}

TEST_CASE("ways are a list, each once, in its order") {
  CHECK(names(settings("--variant=b2b+pl,pcpy,b2b+pl")) == "b2b+pl pcpy");
  CHECK(names(settings("--variant=auto,all")) == "auto pcpy pcpy+pl bcst bcst+pl b2b b2b+pl");
  CHECK(names(settings("--collective=all_to_all")) == "pcpy pcpy+pl swap swap+pl b2b b2b+pl");
  CHECK(names(settings("--collective=gather")) == "pcpy pcpy+pl b2b b2b+pl");
}

TEST_CASE("a way's options: prelaunch only with +pl, in place only where it can be") {
  const auto s =
      settings("--collective=all_to_all --variant=pcpy,auto,swap,b2b+pl --set in_place=yes --set prelaunch=per_group");
  CHECK(options_of(s, s.ways[0], 64).prelaunch == Prelaunch::off);
  CHECK_FALSE(options_of(s, s.ways[0], 64).in_place);
  CHECK(options_of(s, s.ways[1], 64).in_place);
  CHECK(options_of(s, s.ways[2], 64).in_place);
  CHECK(options_of(s, s.ways[3], 64).prelaunch == Prelaunch::per_group);
  CHECK(options_of(s, s.ways[3], 64).bytes == 64);
}

TEST_CASE("counts are one GPU's part, of a broadcast all") {
  const auto count = [](const char* collective, const char* gpus, std::uint64_t bytes) {
    const auto s = settings(std::string("--variant=pcpy --collective=") + collective + " -g " + gpus);
    return count_of(options_of(s, s.ways[0], bytes));
  };
  CHECK(count("all_gather", "8", 65536) == 8192);
  CHECK(count("all_to_all", "4", 65536) == 16384);
  CHECK(count("broadcast", "8", 65536) == 65536);
  CHECK(count("scatter", "2", 1000) == 512);
}
