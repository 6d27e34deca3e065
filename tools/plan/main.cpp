// SPDX-License-Identifier: MIT
// Prints a collective's schedule as text, to read, run, check, sweep or compare:
//
//   collective_plan all_gather --variant=b2b+pl -g 4 -b 64K > ag.sdma && sdma run ag.sdma
//   sdma simulate --sweep bytes=1K..1G*4 ag.sdma && collective_perf --variant=all,ag.sdma
//   diff <(collective_plan all_gather -b 1M --variant=pcpy) <(collective_plan all_gather -b 1M --variant=bcst)
//
// Notes about fallbacks of the variant, and about compute units, go to standard error.
#include "collectives/collectives.hpp"
#include "collectives/source.hpp"
#include "sdma/core/file.hpp"
#include "sdma/core/number.hpp"
#include "sdma/schedule/text.hpp"

#include <cstdio>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace {

const std::string kUsage =
    "usage: collective_plan COLLECTIVE [--OPTION=VALUE...]\n"
    "Prints the schedule of all_gather, all_to_all, alltoallv, broadcast, scatter or gather, with its options as params.\n"
    "Also of reduce_scatter and all_reduce, in which kernels add: they use compute units.\n"
    "The options have the names of collective_perf. Write --variant=b2b or --variant b2b.\n"
    "  -b, --bytes=N         size of the collective (default: 1M); K, M and G are powers of 1024\n"
    "  -g, --ngpus, --gpus=N number of GPUs, 2 to 64 (default: 8)\n"
    "  -r, --root=N          root of broadcast, scatter and gather (default: 0)\n"
    "  --collective=NAME     the same as COLLECTIVE\n"
    "  --variant=NAME        way to copy (default: auto); with +pl: prelaunched\n"
    "  --prelaunch=off|shared|per_group|stream\n"
    "                        words that release prelaunched groups (default: off)\n"
    "  --completion=atomic|fence|two_fences\n"
    "                        how each group says that it is done (default: atomic)\n"
    "  --epochs=N            rounds of the host thread (default: 1)\n"
    "  --in_place=yes --own_part=yes --peers_per_engine=N --engines=N,N.. --granule=N --alignment=N\n"
    "  --matrix=FILE.csv     of alltoallv: row i has the bytes that GPU i sends to each GPU; --bytes scales them\n"
    "  --sizes=N,N..         the same as a list of rows\n"
    "  --offsets=N,N.. --packet_bytes=N --ring_bytes=N         see options.hpp\n"
    "  --set NAME=VALUE      the same as --NAME=VALUE\n"
    "  --flat                without params and loops: one line per packet\n"
    "  --help                print this help\n"
    "NAME is one of " +
    collectives::variant_names(", ") +
    "; of reduce_scatter and all_reduce, one of ring, halving, swing.\n"
    "These two have --bytes, --gpus, --variant, --type=f32|bf16|i32 and --share=N, the percent of the compute units\n"
    "that each kernel keeps busy.\n"
    "  --ranks-per-node=N    all_gather, all_to_all or broadcast over nodes of N GPUs, or N,N..: engines copy inside a\n"
    "                        node, the network sends between nodes. With --algorithm=hierarchical|flat|ring, --pieces=N\n";

int usage_error(const std::string& why) {
  std::fprintf(stderr, "collective_plan: %s\n%s", why.c_str(), kUsage.c_str());
  return 2;
}

/// The member of Options, or the param of a text without Options, that an option sets; "" for none.
std::string member_of(std::string_view option) {
  constexpr std::pair<std::string_view, std::string_view> kShort[] = {
      {"-b", "bytes"}, {"-g", "gpus"}, {"--ngpus", "gpus"}, {"-r", "root"}};
  for (const auto& [given, member] : kShort)
    if (option == given) return std::string(member);
  return option.starts_with("--") ? std::string(option.substr(2)) : "";
}

/// Prints it. Returns the exit code.
int print(const std::string& text) {
  std::fputs(text.c_str(), stdout);
  if (std::fflush(stdout) == 0 && !std::ferror(stdout)) return 0;
  std::fprintf(stderr, "standard output cannot be written\n");
  return 1;
}
int refuse(const sdma::Diagnostic& why) { return std::fprintf(stderr, "%s\n", to_string(why).c_str()), 1; }

}  // namespace

int main(int argc, char** argv) {
  bool flat = false;
  std::optional<std::string> collective, per_node, matrix;
  std::vector<std::pair<std::string, std::string>> given;  // in order, without these
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    if (word == "--help" || word == "-h") return std::fputs(kUsage.c_str(), stdout), 0;
    if (word == "--flat") {
      flat = true;
      continue;
    }
    if (!word.starts_with("-")) {
      if (collective) return usage_error("unknown argument " + word);
      collective = word;
      continue;
    }
    auto equals = word.find('=');
    auto member = member_of(word.substr(0, equals));
    if (equals == word.npos && i + 1 == argc) return usage_error(word + ": its value is missing");
    std::string value = equals == word.npos ? argv[++i] : word.substr(equals + 1);
    if (member == "set") {
      equals = value.find('=');
      if (equals == value.npos) return usage_error("--set: '" + value + "' is not NAME=VALUE");
      member = value.substr(0, equals);
      value.erase(0, equals + 1);
    }
    if (member.empty()) return usage_error("unknown argument " + word);
    if (member == "collective") collective = value;
    else if (member == "ranks-per-node") per_node = value;
    else if (member == "matrix") matrix = value;
    else given.emplace_back(std::move(member), std::move(value));
  }

  const auto name = collective.value_or("");
  // A text whose params are all that can be set.
  if (auto text = per_node ? collectives::over_nodes(name) : collectives::reduction(name)) {
    if (per_node) {
      const auto sizes = sdma::parse_node_sizes(*per_node);
      if (!sizes) return usage_error("--ranks-per-node: '" + *per_node + "' is not a list of numbers from 1 to 64");
      set_param(*text, "per_node", "[" + to_string(*sizes) + "]");
    }
    if (matrix) given.emplace_back("matrix", *matrix);
    for (const auto& [member, value] : given)
      if (!set_param(*text, member == "gpus" ? "N" : member, value))
        return usage_error(name + " has no option " + member);
    const auto s = sdma::parse_schedule(text->text, text->name, {.set = text->set});
    if (!s) return refuse(s.error().front());
    if (!per_node) std::fprintf(stderr, "note: it uses compute units: a kernel on each GPU adds\n");
    return print(flat ? sdma::to_text(*s) : with_params(*text));
  }
  if (per_node && collective) return usage_error("over nodes there are all_gather, all_to_all and broadcast");
  if (per_node) return usage_error("no collective given");

  collectives::Options o{.bytes = 1 << 20};
  // A matrix says how many GPUs and bytes there are, which other options may say, too.
  if (matrix) {
    const auto text = sdma::read_file(*matrix);
    if (!text) return refuse(text.error());
    if (const auto wrong = set_matrix(o, *text); !wrong.empty())
      return refuse({.where = "--matrix " + *matrix, .message = wrong, .hint = std::string(collectives::kMatrixForm)});
  }
  if (collective) given.emplace(given.begin(), "collective", name);
  for (const auto& [member, value] : given)
    if (const auto wrong = set(o, member, value); !wrong.empty()) return usage_error(wrong);
  if (!collective) return usage_error("no collective given");
  const auto p = collectives::plan(o);
  if (!p) return refuse(p.error());
  for (const auto& note : p->notes) std::fprintf(stderr, "note: %s\n", note.c_str());
  o.variant = p->options.variant;
  return print(flat ? sdma::to_text(p->schedule) : with_params(collectives::source_of(o)));
}
