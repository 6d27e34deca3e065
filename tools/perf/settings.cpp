// SPDX-License-Identifier: MIT
#include "settings.hpp"

#include "checked.hpp"
#include "schedule_file.hpp"
#include "sdma/core/file.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <tuple>

namespace collectives::perf {

using sdma::Diagnostic;

namespace {

constexpr std::size_t kMostSizes = 100'000;

std::vector<Way> all_ways(Collective c) {
  std::vector<Way> all;
  for (const auto v : kVariants)
    for (const bool prelaunch : {false, true})
      if (has_variant(c, v)) all.push_back({v, prelaunch});
  return all;
}

/// A way for this file; each file with the same settings once.
void read_file(Checked& c, const std::string& word, Settings& s) {
  auto f = schedule_file(word, c.asked.map, s.files);
  if (!f) return c.refuse(f.error().where, f.error().message, f.error().hint);
  if (std::any_of(s.files.begin(), s.files.end(), [&](const auto& known) { return known->label == f->label; })) return;
  s.files.push_back(std::make_shared<ScheduleFile>(*std::move(f)));
  s.ways.push_back({.file = s.files.back().get()});
}

/// "all", or names with commas; each once, in their order.
void read_ways(Checked& c, Settings& s) {
  const auto& text = c.asked.variant;
  const auto collective = s.options.collective;
  auto& ways = s.ways;
  if (text.empty() || text == "all") return void(ways = all_ways(collective));
  auto known = all_ways(collective);
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
    else if (names_file(word)) read_file(c, word, s);
    else
      c.refuse("--variant", in_quotes(word) + " is not a variant of " + std::string(name(collective)),
               hint_of(word, names) + ", or a schedule file: ring.sdma");
  }
}

void read_set(Checked& c, Settings& s) {
  auto& o = s.options;
  for (const auto& [key, value] : c.asked.set) {
    constexpr std::pair<std::string_view, const char*> kElsewhere[] = {
        {"bytes", "-b and -e"},         {"gpus", "-g"},   {"variant", "--variant"},
        {"collective", "--collective"}, {"epochs", "-n"},
    };
    for (const auto& [own, option] : kElsewhere)
      if (key == own) c.refuse("--set", in_quotes(key) + " cannot be set here", std::string("use ") + option);
    if (auto wrong = set(o, key, value); !wrong.empty())
      c.refuse("--set", wrong,
               fmt::format("{}: collectives/options.hpp explains each", fmt::join(kScheduleOptions, ", ")));
    else if (key == "completion") s.completion_given = true;
    else if (key == "prelaunch" && o.prelaunch == Prelaunch::off)
      c.refuse("--set", "variants without +pl already have prelaunch=off",
               "name only variants without +pl: --variant=pcpy,b2b");
  }
}

void read_sizes(Checked& c, Settings& s) {
  const auto& a = c.asked;
  if (a.bytes && (a.least || a.most))
    c.refuse("--bytes", "one size and a range of sizes cannot both be given", "omit --bytes, or -b and -e");
  s.least = a.bytes.value_or(a.least.value_or(s.least));
  s.most = a.bytes.value_or(a.most.value_or(s.most));
  // One bound alone pulls the other along.
  if (!a.most) s.most = std::max(s.most, s.least);
  if (!a.least) s.least = std::min(s.least, s.most);
  if (s.most < s.least)
    c.refuse("--maxbytes", size_text(s.most) + " is less than --minbytes, " + size_text(s.least), "exchange them");
  if (a.factor && a.step) c.refuse("--stepfactor", "sizes grow by a factor or by a step, not by both", "omit -f or -i");
  s.factor = a.factor.value_or(s.factor);
  if (!a.step) return;
  s.factor = 0;
  s.step = *a.step;
  if (s.most >= s.least && (s.most - s.least) / s.step >= kMostSizes)
    c.refuse("--stepbytes", in_quotes(size_text(s.step)) + " makes more than " + std::to_string(kMostSizes) + " sizes",
             "give a larger step, or a factor: -f 2");
}

/// The sizes, and the number of GPUs and the size that follow from them, unless other options say these.
void read_matrix(Checked& c, Settings& s) {
  const auto& a = c.asked;
  if (s.processes > 1) s.options.gpus = 1;  // of a process: read_habits multiplies
  const std::uint32_t least = !a.habits.threads && s.processes == 1 ? 2 : 1;
  if (a.ngpus && *a.ngpus < least)
    c.refuse("--ngpus", fmt::format("'{}' is not a number from {} to {}", *a.ngpus, least, kMostGpus),
             "a collective needs two GPUs: -g 2");
  s.options.gpus = a.ngpus.value_or(s.options.gpus);
  if (a.matrix.empty()) return;
  auto o = s.options;
  if (o.collective != Collective::alltoallv)
    return c.refuse("--matrix", std::string(name(o.collective)) + " has equal parts",
                    "use it with --collective=alltoallv");
  auto text = sdma::read_file(a.matrix);
  if (!text) return c.refuse("--matrix " + text.error().where, text.error().message, text.error().hint);
  if (auto wrong = set_matrix(o, *text); !wrong.empty())
    return c.refuse("--matrix " + a.matrix, std::move(wrong), std::string(kMatrixForm));
  if (a.ngpus && s.options.gpus != o.gpus)
    return c.refuse("--matrix " + a.matrix, fmt::format("it has {} GPUs, but -g is {}", o.gpus, *a.ngpus), "omit -g");
  s.options = o;
  if (!a.bytes && !a.least && !a.most) s.least = s.most = o.bytes;
}

void read_gpus(Checked& c, Settings& s) {
  const auto& text = c.asked.gpus;
  if (text.empty()) return;
  const auto all = sdma::parse_gpus(text);
  if (!all)
    return c.refuse("--gpus", in_quotes(text) + " is not a choice of GPUs",
                    "write 4 for the first 4, or 0,2,5 for these; each may appear once");
  const auto n = static_cast<std::uint32_t>(all->size());
  if (n < 2 && s.processes == 1) c.refuse("--gpus", "a collective needs at least 2 GPUs", "write 0,2,5");
  if (c.asked.ngpus && *c.asked.ngpus != n)
    c.refuse("--gpus", fmt::format("'{}' lists {} GPUs, but -g is {}", text, n, *c.asked.ngpus), "omit -g");
  s.options.gpus = n;
  if (text.find(',') != text.npos || s.processes > 1) s.gpus = *all;
}

void read_files(Checked& c, Settings& s) {
  const auto& a = c.asked;
  const std::tuple<const char*, const std::string&, std::string&> files[] = {
      {"--csv", a.csv, s.csv},    {"--save", a.save, s.save},    {"--plot", a.plot, s.plot},
      {"--best", a.best, s.best}, {"--table", a.table, s.table}, {"--published", a.published, s.published}};
  const auto file = [](const std::string& path) { return std::filesystem::path(path).lexically_normal(); };
  for (const auto& [option, given, path] : files) {
    if (given == "-") c.refuse(option, "'-' is not a file: standard output is for the table", "name a file");
    for (const auto& [other, before, to] : files)
      if (option != other && !given.empty() && !before.empty() && file(given) == file(before))
        c.refuse(option, in_quotes(given) + " is also the file of " + other, "name another file");
    path = given;
  }
  if (a.figure.given() && a.plot.empty())
    c.refuse("--title and --size", "they say how the picture of --plot is drawn, and there is none",
             "add --plot=FILE.svg");
  s.figure = a.figure;
  if (!s.best.empty() && s.where == sdma::DeviceKind::soft)
    c.refuse("--best", "times of software engines do not say which variant is the fastest on GPUs",
             "use it with hardware or with --device=simulate");
  if (!s.best.empty() && !a.sweep.empty())
    c.refuse("--best", "not allowed with --sweep: each value has a table of its own", "give one value with --set");
}

void read_rivals(Checked& c, Settings& s) {
  const auto& against = c.asked.against;
  const bool rccl = against == "rccl";
  if (against.empty()) return;
  if (!rccl && against != "nccl") {
    if (against.find_first_of("./") != against.npos) return void(s.brought = against);
    return c.refuse("--against", in_quotes(against) + " is not known",
                    "choose nccl or rccl, or name a file of sizes and times: rccl.csv");
  }
  if (rccl) s.rivals = {{.rival = Rival::rccl}};
  else s.rivals = {{.rival = Rival::nccl}, {.rival = Rival::nccl_ce}};
  const auto needed = rccl ? sdma::DeviceKind::kfd : sdma::DeviceKind::cuda;
  if (s.where != needed && !(rccl && is_amd(s.where)))
    c.refuse("--against",
             fmt::format("{} runs on {} GPUs only, not with --device={}", family_of(s.rivals.front().rival),
                         rccl ? "AMD" : "NVIDIA", name(s.where)),
             fmt::format("use it with --device={}", name(needed)));
}

void read_companions(Checked& c, Settings& s) {
  const auto& a = c.asked;
  s.settle = std::chrono::microseconds(a.settle.value_or(0));
  if (s.settle.count() != 0 && !s.where)
    c.refuse("--settle", "a simulation has no time between rounds", "use it with a device");
  const auto beside = a.beside;
  if (a.energy_seconds && !a.energy) c.refuse("--energy-seconds", "means nothing without --energy", "add --energy");
  if (a.beside_seconds && beside.empty())
    c.refuse("--beside-seconds", "means nothing without --beside=gemm", "add --beside=gemm");
  const auto on_gpu = [&](const char* option, const char* that) {
    if (s.where != sdma::DeviceKind::cuda && !is_amd(s.where))
      c.refuse(option, fmt::format("--device={} has no GPU {}", name(s.where), that),
               "use it with --device=cuda or --device=kfd");
  };
  if (a.energy) {
    s.energy.emplace(a.energy_seconds.value_or(1));
    if (s.where) on_gpu("--energy", "whose energy could be measured");
    else if (a.energy_seconds) c.refuse("--energy-seconds", "a simulation takes no time", "omit it");
  }
  if (beside.empty()) return;
  s.beside.emplace();
  const auto colon = std::min(beside.find(':'), beside.size());
  if (beside.substr(0, colon) != "gemm")
    return c.refuse("--beside", in_quotes(beside) + " is not known", "choose gemm or gemm:4096");
  if (colon < beside.size()) {
    const auto n = sdma::parse_count(beside.substr(colon + 1));
    if (!n || *n < 16 || *n > 65536)
      return c.refuse("--beside", in_quotes(beside) + " has no size from 16 to 65536", "write gemm:4096");
    s.beside->n = static_cast<std::uint32_t>(*n);
  }
  if (a.beside_seconds) s.beside->measured = std::chrono::duration<double>(*a.beside_seconds);
  on_gpu("--beside", "that could multiply matrices");
}

/// How many processes there are, which other options need.
void read_ranks(Checked& c, Settings& s) {
  s.processes = c.asked.ranks.value_or(c.launched);
  if (c.launched > 1 && c.asked.ranks)
    c.refuse("--ranks", fmt::format("a launcher has started {} processes already", c.launched), "omit --ranks");
}

/// Refuses what one process does for all GPUs.
void refuse_for_ranks(Checked& c, Settings& s) {
  if (s.processes == 1) return;
  const auto refuse = [&](const char* option, const std::string& what) {
    c.refuse(option, what + " is for one process, and there are " + std::to_string(s.processes),
             "omit it, or start the program without a launcher and --ranks");
  };
  if (!s.rivals.empty() && s.rivals.front().rival == Rival::rccl) refuse("--against", "RCCL's time");
  if (s.ranks_per_node.grouped())
    for (const auto& [given, option] : {std::pair<bool, const char*>{!s.rivals.empty(), "--against"},
                                        {s.options.prelaunch == Prelaunch::stream, "--set prelaunch=stream"}})
      if (given) c.refuse(option, "this is of one node, and --ranks-per-node makes several", "omit one of them");
  if (s.energy) refuse("--energy", "the energy of a row");
  if (s.beside) refuse("--beside", "a matrix product");
  if (!c.asked.matrix.empty()) refuse("--matrix", "a matrix");
  if (!s.files.empty() && !s.ranks_per_node.grouped())
    refuse("--variant", "a schedule file (sdma run --ranks runs it in several)");
  if (!s.where)
    c.refuse("--device", fmt::format("a simulation is of one process, and there are {}", s.processes),
             "choose a device: --device=soft; sdma emulate --gpus=8 -- provides one for --device=kfd");
  const auto who = fmt::format("{} processes with {} GPU{} each", s.processes, s.options.gpus / s.processes,
                               s.options.gpus == s.processes ? "" : "s");
  s.remarks.push_back(
      !s.ranks_per_node.grouped()
          ? who + ": a time is from the first one's start to the last one's end, and wrong bytes are those of all"
          : fmt::format("{}, {} to a node: a time is the slowest one's, and wrong bytes are those of all", who,
                        to_string(s.ranks_per_node)));
}

void read_simulation(Checked& c, Settings& s) {
  const auto& a = c.asked;
  s.machine = a.machine;
  if ((a.tune || !s.where) && !s.gpus.empty())
    c.refuse("--gpus", "a simulated machine always uses its first GPUs",
             "give their number, -g " + std::to_string(s.gpus.size()) + ", or a device: --device=soft");
  if (!a.tune && s.where && !s.machine.empty())
    c.refuse("--machine", "a device has no machine description", "use it with --device=simulate or --tune");
  if (!a.tune) return;
  const std::pair<const char*, bool> others[] = {
      {"--variant", !a.variant.empty()}, {"--device", a.device_given},          {"--table", !a.table.empty()},
      {"--csv", !a.csv.empty()},         {"--save", !a.save.empty()},           {"--plot", !a.plot.empty()},
      {"--best", !a.best.empty()},       {"--published", !a.published.empty()}, {"--settle", a.settle.has_value()},
      {"--against", !a.against.empty()}, {"--beside", !a.beside.empty()}};
  for (const auto& [option, given] : others)
    if (given)
      c.refuse(option, "not allowed with --tune, which simulates all variants and prints a table",
               "--tune takes --machine, --collective, -b, -e, -f, -i, -g, -r and --set");
  s.where = kSimulated;
  s.tune.emplace();
  // An alltoallv depends on its sizes: it has rows of its own only if it is named.
  for (const auto one : kCollectives)
    if (a.collective ? one == s.options.collective : one != Collective::alltoallv) s.tune->collectives.push_back(one);
  if (a.ngpus || !a.gpus.empty() || !a.matrix.empty()) s.tune->gpus = s.options.gpus;
}

/// Where it runs. An option that only one place has says which is meant.
void read_where(Checked& c, Settings& s, Where found) {
  const auto& a = c.asked;
  const bool soft = a.order || a.seed;
  s.where_given = !asks_for_hardware(a);
  s.where = a.device_given                 ? a.device
            : a.tune || !a.machine.empty() ? kSimulated
            : soft                         ? sdma::DeviceKind::soft
                                           : found;
  s.order = a.order.value_or(s.order);
  s.seed = a.seed.value_or(s.seed);
  if (soft && s.where != sdma::DeviceKind::soft)
    c.refuse(a.order ? "--order" : "--seed",
             s.where ? "the ordering of hardware cannot be chosen" : "simulation is in strict order",
             "use it with --device=soft");
}

}  // namespace

std::string_view name(Where w) noexcept { return w ? sdma::name(*w) : "simulate"; }

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

bool asks_for_hardware(const Request& a) noexcept {
  return !a.device_given && !a.tune && a.machine.empty() && !a.order && !a.seed;
}

sdma::Result<Settings, Diagnostic> settings_of(const Request& a, Where found, std::uint32_t launched) {
  Settings s;
  Checked c{a, launched};
  s.command = a.command;
  s.options.prelaunch = Prelaunch::shared;
  s.options.collective = a.collective.value_or(s.options.collective);
  s.timeout = a.timeout;
  s.format = a.format;
  s.options.root = a.root;
  s.iterations = a.iterations, s.warmups = a.warmups, s.checks = a.checks;
  read_ranks(c, s);
  if (s.processes == 1) c.simulated_nodes = nodes_to_simulate(a);
  if (c.one_node()) read_ways(c, s);
  read_sizes(c, s);
  read_matrix(c, s);
  read_gpus(c, s);
  read_habits(c, s);
  read_nodes(c, s);
  read_where(c, s, found);
  read_simulation(c, s);
  read_rivals(c, s);
  read_companions(c, s);
  read_set(c, s);
  refuse_for_ranks(c, s);
  read_files(c, s);
  if (s.format == Format::nccl_tests) {
    if (a.variant.empty() && c.one_node()) s.ways = {{Variant::automatic, false}};
    if (s.ways.size() != 1 || !s.rivals.empty() || !s.brought.empty())
      c.refuse("--format", "the columns of nccl-tests have no place for a variant",
               "name one: --variant=b2b+pl, or auto");
  }
  read_axes(c, s);
  if (!a.map.empty() && s.files.empty())
    c.refuse("--map", "there is no schedule file whose params it could name", "name one: --variant=pcpy,ring.sdma");
  if (!a.set.empty() && std::none_of(s.ways.begin(), s.ways.end(), is_ours))
    c.refuse("--set", "schedule files do not have these options", "set a param: --variant=ring.sdma:chunks=4");
  if (c.wrong) return *std::move(c.wrong);
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
