// SPDX-License-Identifier: MIT
#include "settings.hpp"

#include "reader.hpp"
#include "schedule_file.hpp"
#include "sdma/core/file.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <limits>
#include <span>

namespace collectives::perf {

using sdma::Diagnostic;

namespace {

constexpr std::size_t kMostSizes = 100'000;
constexpr std::chrono::seconds kTimeout{30};

constexpr Where kWheres[] = {Where::soft, Where::kfd, Where::cuda, Where::rocr, Where::simulate};
constexpr Format kFormats[] = {Format::table, Format::nccl_tests};
constexpr sdma::Ordering kOrders[] = {sdma::Ordering::strict, sdma::Ordering::rocr, sdma::Ordering::adversarial};

std::vector<Way> all_ways(Collective c) {
  std::vector<Way> all;
  for (const auto v : kVariants)
    for (const bool prelaunch : {false, true})
      if (has_variant(c, v)) all.push_back({v, prelaunch});
  return all;
}

/// A way for this file; each file with the same settings once.
void read_file(Reader& r, const std::string& word, Settings& s) {
  auto f = schedule_file(word, r.pairs("--map"), s.files);
  if (!f) return r.refuse(f.error().where, f.error().message, f.error().hint);
  if (std::any_of(s.files.begin(), s.files.end(), [&](const auto& known) { return known->label == f->label; })) return;
  s.files.push_back(std::make_shared<ScheduleFile>(*std::move(f)));
  s.ways.push_back({.file = s.files.back().get()});
}

/// "all", or names with commas; each once, in their order.
void read_ways(Reader& r, Settings& s) {
  const auto text = r["--variant"];
  const auto c = s.options.collective;
  auto& ways = s.ways;
  if (text.empty() || text == "all") return void(ways = all_ways(c));
  auto known = all_ways(c);
  for (const bool prelaunch : {false, true}) known.push_back({Variant::automatic, prelaunch});
  std::vector<std::string> names;
  for (const auto& w : known) names.push_back(perf::name(w));
  names.emplace_back("all");
  const auto add = [&](const Way& w) {
    if (std::find(ways.begin(), ways.end(), w) == ways.end()) ways.push_back(w);
  };
  for (const auto& word : words_of(text)) {
    const auto at = static_cast<std::size_t>(std::find(names.begin(), names.end(), word) - names.begin());
    if (at < known.size()) add(known[at]);
    else if (word == "all") std::for_each(known.begin(), known.end() - 2, add);
    else if (names_file(word)) read_file(r, word, s);
    else
      r.refuse("--variant", in_quotes(word) + " is not a variant of " + std::string(name(c)),
               hint_of(word, names) + ", or a schedule file: ring.sdma");
  }
}

void read_set(Reader& r, Settings& s) {
  auto& o = s.options;
  auto all = r.pairs("--set");
  for (const auto name : kScheduleOptions)
    if (const auto option = "--" + std::string(name); r.given(option)) all.push_back({std::string(name), r[option]});
  for (const auto& [key, value] : all) {
    constexpr std::pair<std::string_view, const char*> kElsewhere[] = {
        {"bytes", "-b and -e"},         {"gpus", "-g"},   {"variant", "--variant"},
        {"collective", "--collective"}, {"epochs", "-n"},
    };
    for (const auto& [own, option] : kElsewhere)
      if (key == own) r.refuse("--set", in_quotes(key) + " cannot be set here", std::string("use ") + option);
    if (auto wrong = set(o, key, value); !wrong.empty())
      r.refuse("--set", wrong,
               fmt::format("{}: collectives/options.hpp explains each", fmt::join(kScheduleOptions, ", ")));
    else if (key == "completion") s.completion_given = true;
    else if (key == "prelaunch" && o.prelaunch == Prelaunch::off)
      r.refuse("--set", "variants without +pl already have prelaunch=off",
               "name only variants without +pl: --variant=pcpy,b2b");
  }
}

void read_sizes(Reader& r, Settings& s) {
  const bool one = r.given("--bytes"), step = r.given("--stepbytes");
  if (one && (r.given("--minbytes") || r.given("--maxbytes")))
    r.refuse("--bytes", "one size and a range of sizes cannot both be given", "omit --bytes, or -b and -e");
  r.size(one ? "--bytes" : "--minbytes", s.least);
  if (one) s.most = s.least;
  else r.size("--maxbytes", s.most);
  if (!r.given("--maxbytes")) s.most = std::max(s.most, s.least);
  if (!r.given("--minbytes")) s.least = std::min(s.least, s.most);
  if (s.most < s.least)
    r.refuse("--maxbytes", size_text(s.most) + " is less than --minbytes, " + size_text(s.least), "exchange them");
  if (r.given("--stepfactor") && step)
    r.refuse("--stepfactor", "sizes grow by a factor or by a step, not by both", "omit -f or -i");
  r.number("--stepfactor", s.factor, 2, 1ull << 30);
  if (!step) return;
  s.factor = 0;
  r.size("--stepbytes", s.step);
  if (s.step > 0 && (s.most - s.least) / s.step >= kMostSizes)
    r.refuse("--stepbytes", in_quotes(r["--stepbytes"]) + " makes more than " + std::to_string(kMostSizes) + " sizes",
             "give a larger step, or a factor: -f 2");
}

/// The sizes, and the number of GPUs and the size that follow from them, unless other options say these.
void read_matrix(Reader& r, Settings& s) {
  if (s.processes > 1) s.options.gpus = 1;  // of a process: read_habits multiplies
  r.number("--ngpus", s.options.gpus, !r.given("--nthreads") && s.processes == 1 ? 2 : 1, kMostGpus);
  if (!r.given("--matrix")) return;
  auto o = s.options;
  if (o.collective != Collective::alltoallv)
    return r.refuse("--matrix", std::string(name(o.collective)) + " has equal parts",
                    "use it with --collective=alltoallv");
  auto text = sdma::read_file(r["--matrix"]);
  if (!text) return r.refuse("--matrix " + text.error().where, text.error().message, text.error().hint);
  if (auto wrong = set_matrix(o, *text); !wrong.empty())
    return r.refuse("--matrix " + r["--matrix"], std::move(wrong), std::string(kMatrixForm));
  if (r.given("--ngpus") && s.options.gpus != o.gpus)
    return r.refuse("--matrix " + r["--matrix"], fmt::format("it has {} GPUs, but -g is {}", o.gpus, r["--ngpus"]),
                    "omit -g");
  s.options = o;
  if (!r.given("--bytes") && !r.given("--minbytes") && !r.given("--maxbytes")) s.least = s.most = o.bytes;
}

void read_gpus(Reader& r, Settings& s) {
  if (!r.given("--gpus")) return;
  const auto all = sdma::parse_gpus(r["--gpus"]);
  if (!all)
    return r.refuse("--gpus", in_quotes(r["--gpus"]) + " is not a choice of GPUs",
                    "write 4 for the first 4, or 0,2,5 for these; each may appear once");
  const auto n = static_cast<std::uint32_t>(all->size());
  if (n < 2 && s.processes == 1) r.refuse("--gpus", "a collective needs at least 2 GPUs", "write 0,2,5");
  if (r.given("--ngpus") && s.options.gpus != n)
    r.refuse("--gpus", in_quotes(r["--gpus"]) + " lists " + std::to_string(n) + " GPUs, but -g is " + r["--ngpus"],
             "omit -g");
  s.options.gpus = n;
  if (r["--gpus"].find(',') != r["--gpus"].npos || s.processes > 1) s.gpus = *all;
}

void read_files(Reader& r, Settings& s) {
  const std::pair<const char*, std::string*> files[] = {{"--csv", &s.csv},     {"--json", &s.json},
                                                        {"--plot", &s.plot},   {"--best", &s.best},
                                                        {"--table", &s.table}, {"--published", &s.published}};
  for (const auto& [option, path] : files)
    if ((*path = r[option]) == "-")
      r.refuse(option, "'-' is not a file: standard output is for the table", "name a file");
  const auto file = [](const std::string& path) { return std::filesystem::path(path).lexically_normal(); };
  for (const auto& [a, path_a] : files)
    for (const auto& [b, path_b] : files)
      if (a != b && !path_a->empty() && file(*path_a) == file(*path_b))
        r.refuse(a, in_quotes(*path_a) + " is also the file of " + b, "name another file");
  if (!s.best.empty() && s.where == Where::soft)
    r.refuse("--best", "times of software engines do not say which variant is the fastest on GPUs",
             "use it with hardware or with --device=simulate");
  if (!s.best.empty() && r.given("--sweep"))
    r.refuse("--best", "not allowed with --sweep: each value has a table of its own", "give one value with --set");
}

void read_rivals(Reader& r, Settings& s) {
  const auto against = r["--against"];
  const bool rccl = against == "rccl";
  if (against.empty()) return;
  if (!rccl && against != "nccl") {
    if (against.find_first_of("./") != against.npos) return void(s.brought = against);
    return r.refuse("--against", in_quotes(against) + " is not known",
                    "choose nccl or rccl, or name a file of sizes and times: rccl.csv");
  }
  if (rccl) s.rivals = {{.rival = Rival::rccl}};
  else s.rivals = {{.rival = Rival::nccl}, {.rival = Rival::nccl_ce}};
  const auto needed = rccl ? Where::kfd : Where::cuda;
  if (s.where != needed && !(rccl && is_amd(s.where)))
    r.refuse("--against",
             fmt::format("{} runs on {} GPUs only, not with --device={}", family_of(s.rivals.front().rival),
                         rccl ? "AMD" : "NVIDIA", name(s.where)),
             fmt::format("use it with --device={}", name(needed)));
}

void read_companions(Reader& r, Settings& s) {
  constexpr std::uint32_t kMostSettle = 1'000'000;
  std::uint32_t settle = 0;
  r.number("--settle", settle, 0, kMostSettle);
  s.settle = std::chrono::microseconds(settle);
  if (settle != 0 && s.where == Where::simulate)
    r.refuse("--settle", "a simulation has no time between rounds", "use it with a device");
  const auto beside = r["--beside"];
  for (const auto& [option, on, what] : {std::tuple{"--energy-seconds", r.given("--energy"), "--energy"},
                                         {"--beside-seconds", r.given("--beside"), "--beside=gemm"}})
    if (r.given(option) && !on)
      r.refuse(option, fmt::format("means nothing without {}", what), fmt::format("add {}", what));
  const auto on_gpu = [&](const char* option, const char* that) {
    if (s.where != Where::cuda && !is_amd(s.where))
      r.refuse(option, fmt::format("--device={} has no GPU {}", name(s.where), that),
               "use it with --device=cuda or --device=kfd");
  };
  if (r.given("--energy")) {
    r.seconds("--energy-seconds", s.energy.emplace(1));
    on_gpu("--energy", "whose energy could be measured");
  }
  if (beside.empty()) return;
  s.beside.emplace();
  const auto colon = std::min(beside.find(':'), beside.size());
  if (beside.substr(0, colon) != "gemm")
    return r.refuse("--beside", in_quotes(beside) + " is not known", "choose gemm or gemm:4096");
  if (colon + 1 == beside.size()) r.refuse("--beside", in_quotes(beside) + " has no size", "write gemm:4096");
  if (colon < beside.size()) r.number("--beside", s.beside->n, 16, 65536, beside.substr(colon + 1));
  r.seconds("--beside-seconds", s.beside->measured);
  on_gpu("--beside", "that could multiply matrices");
}

/// How many processes there are, which other options need.
void read_ranks(Reader& r, Settings& s) {
  s.processes = r.launched;
  r.number("--ranks", s.processes, 1, kMostGpus);
  if (r.launched > 1 && r.given("--ranks"))
    r.refuse("--ranks", fmt::format("mpirun has started {} processes already", r.launched), "omit --ranks");
}

/// Refuses what one process does for all GPUs.
void refuse_for_ranks(Reader& r, Settings& s) {
  if (s.processes == 1) return;
  const auto refuse = [&](const char* option, const std::string& what) {
    r.refuse(option, what + " is for one process, and there are " + std::to_string(s.processes),
             "omit it, or start the program without mpirun and --ranks");
  };
  if (!s.rivals.empty() && s.rivals.front().rival == Rival::rccl) refuse("--against", "RCCL's time");
  if (s.ranks_per_node.grouped())
    for (const auto& [given, option] : {std::pair<bool, const char*>{!s.rivals.empty(), "--against"},
                                        {s.options.prelaunch == Prelaunch::stream, "--set prelaunch=stream"}})
      if (given) r.refuse(option, "this is of one node, and --ranks-per-node makes several", "omit one of them");
  if (r.given("--energy")) refuse("--energy", "the energy of a row");
  if (s.beside) refuse("--beside", "a matrix product");
  if (r.given("--matrix")) refuse("--matrix", "a matrix");
  if (!s.files.empty() && !s.ranks_per_node.grouped())
    refuse("--variant", "a schedule file (sdma run --ranks runs it in several)");
  if (s.where == Where::simulate)
    r.refuse("--device", fmt::format("a simulation is of one process, and there are {}", s.processes),
             "choose a device: --device=soft; sdma emulate --gpus=8 -- provides one for --device=kfd");
  const auto who = fmt::format("{} processes with {} GPU{} each", s.processes, s.options.gpus / s.processes,
                               s.options.gpus == s.processes ? "" : "s");
  s.remarks.push_back(
      !s.ranks_per_node.grouped()
          ? who + ": a time is from the first one's start to the last one's end, and wrong bytes are those of all"
          : fmt::format("{}, {} to a node: a time is the slowest one's, and wrong bytes are those of all", who,
                        to_string(s.ranks_per_node)));
}

void read_simulation(Reader& r, Settings& s) {
  s.machine = r["--machine"];
  if ((r.given("--tune") || s.where == Where::simulate) && !s.gpus.empty())
    r.refuse("--gpus", "a simulated machine always uses its first GPUs",
             "give their number, -g " + std::to_string(s.gpus.size()) + ", or a device: --device=soft");
  if (!r.given("--tune") && s.where != Where::simulate && !s.machine.empty())
    r.refuse("--machine", "a device has no machine description", "use it with --device=simulate or --tune");
  if (!r.given("--tune")) return;
  for (const auto* option : {"--variant", "--device", "--table", "--csv", "--json", "--plot", "--best", "--published",
                             "--settle", "--against", "--beside"})
    if (r.given(option))
      r.refuse(option, "not allowed with --tune, which simulates all variants and prints a table",
               "--tune takes --machine, --collective, -b, -e, -f, -i, -g, -r and --set");
  s.where = Where::simulate;
  s.tune.emplace();
  // An alltoallv depends on its sizes: it has rows of its own only if it is named.
  for (const auto c : kCollectives)
    if (r.given("--collective") ? c == s.options.collective : c != Collective::alltoallv)
      s.tune->collectives.push_back(c);
  if (r.given("--ngpus") || r.given("--gpus") || r.given("--matrix")) s.tune->gpus = s.options.gpus;
}

}  // namespace

std::string_view name(Where w) noexcept {
  constexpr std::string_view kNames[] = {"soft", "kfd", "cuda", "rocr", "simulate"};
  return kNames[static_cast<std::size_t>(w)];
}

std::string_view name(Format f) noexcept { return f == Format::table ? "table" : "nccl-tests"; }

std::string_view name(Rival r) noexcept {
  constexpr std::string_view kNames[] = {"", "nccl", "nccl-ce", "rccl", "theirs"};
  return kNames[static_cast<std::size_t>(r)];
}

std::string_view family_of(Rival r) noexcept {
  return r == Rival::brought ? name(r) : r == Rival::rccl ? "RCCL" : "NCCL";
}

bool is_ours(const Way& w) noexcept { return w.rival == Rival::none && !w.file; }

std::string name(const Way& w) {
  if (w.rival != Rival::none) return std::string(name(w.rival));
  if (w.file) return w.file->label;
  return std::string(name(w.variant)) + std::string(w.prelaunch ? kPrelaunched : "");
}

sdma::Result<Settings, Diagnostic> settings_of(const Given& given) {
  Settings s;
  Reader r{given};
  s.options.prelaunch = Prelaunch::shared;
  s.timeout = kTimeout;
  r.word("--collective", s.options.collective, kCollectives);
  read_ranks(r, s);
  if (!r.given("--ranks-per-node")) read_ways(r, s);
  read_sizes(r, s);
  read_matrix(r, s);
  read_gpus(r, s);
  read_habits(r, s);
  r.word("--format", s.format, kFormats);
  r.number("--root", s.options.root, 0, kMostGpus - 1);
  read_nodes(r, s);
  r.number("--iters", s.iterations, 1, kMostRounds);
  r.number("--warmup_iters", s.warmups, 0, kMostRounds);
  r.number("--check", s.checks, 0, kMostRounds);
  r.word("--device", s.where, kWheres);
  // An option that only one of them has says which is meant.
  const bool simulated = r.given("--tune") || r.given("--machine"), soft = r.given("--order") || r.given("--seed");
  s.where_given = r.given("--device") || simulated || soft;
  if (!r.given("--device") && !simulated) r.word("--device", s.where, kWheres, soft ? "soft" : r.found);
  r.word("--order", s.order, kOrders);
  r.number("--seed", s.seed, 0, std::numeric_limits<std::uint64_t>::max());
  if (s.where != Where::soft && (r.given("--order") || r.given("--seed")))
    r.refuse(r.given("--order") ? "--order" : "--seed",
             s.where == Where::simulate ? "simulation is in strict order" : "the ordering of hardware cannot be chosen",
             "use it with --device=soft");
  read_simulation(r, s);
  read_rivals(r, s);
  read_companions(r, s);
  r.time("--timeout", s.timeout);
  read_set(r, s);
  refuse_for_ranks(r, s);
  read_files(r, s);
  if (s.format == Format::nccl_tests) {
    if (!r.given("--variant") && !r.given("--ranks-per-node")) s.ways = {{Variant::automatic, false}};
    if (s.ways.size() != 1 || !s.rivals.empty() || !s.brought.empty())
      r.refuse("--format", "the columns of nccl-tests have no place for a variant",
               "name one: --variant=b2b+pl, or auto");
  }
  read_axes(r, s);
  if (r.given("--map") && s.files.empty())
    r.refuse("--map", "there is no schedule file whose params it could name", "name one: --variant=pcpy,ring.sdma");
  if (r.given("--set") && std::none_of(s.ways.begin(), s.ways.end(), is_ours))
    r.refuse("--set", "schedule files do not have these options", "set a param: --variant=ring.sdma:chunks=4");
  if (!r.good()) return std::move(r).error();
  // A contradiction holds for any size, so report it before measuring.
  for (const auto& way : s.ways)
    for (const auto bytes : {s.least, s.most})
      if (auto why = refusal(options_of(s, way, bytes))) {
        why->where += " " + name(way) + ", " + size_text(bytes);
        return *std::move(why);
      }
  return s;
}

std::vector<std::uint64_t> sizes(const Settings& s) {
  std::vector<std::uint64_t> all;
  for (auto bytes = s.least;;) {
    all.push_back(bytes);
    if (s.factor != 0 ? bytes > s.most / s.factor : s.step > s.most - bytes) return all;
    bytes = s.factor != 0 ? bytes * s.factor : bytes + s.step;
  }
}

Options options_of(const Settings& s, const Way& way, std::uint64_t bytes) {
  auto o = s.options;
  o.variant = way.variant;
  if (!way.prelaunch) o.prelaunch = Prelaunch::off;
  // The list may have ways that work in place and ways that do not: each uses the options that apply to it.
  if (o.collective == Collective::all_to_all) {
    if (way.variant != Variant::automatic && way.variant != Variant::swap) o.in_place = false;
    if (way.variant == Variant::swap || o.in_place) o.own_part = false;
  }
  o.bytes = bytes;
  return o;
}

std::uint64_t count_of(const Options& o) {
  if (o.collective == Collective::alltoallv) {
    std::uint64_t most = 0;
    for (const auto& part : sent_parts(o)) most = std::max(most, part.bytes);
    return most;
  }
  return o.collective == Collective::broadcast ? o.bytes : chunk_of(o);
}

}  // namespace collectives::perf
