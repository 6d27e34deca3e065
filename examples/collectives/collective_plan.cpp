// SPDX-License-Identifier: MIT
// Prints a collective's schedule as text, to read, run, check, sweep or compare:
//
//   collective_plan all_gather --variant=b2b+pl -g 4 -b 64K > ag.sdma && sdma run ag.sdma
//   sdma simulate --sweep bytes=1K..1G*4 ag.sdma && collective_perf --variant=all,ag.sdma
//   diff <(collective_plan all_gather -b 1M --variant=pcpy) <(collective_plan all_gather -b 1M --variant=bcst)
//
// Notes about fallbacks of the variant go to standard error.
#include "collectives.hpp"
#include "sdma/schedule/text.hpp"
#include "source.hpp"

#include <cstdio>
#include <string>
#include <string_view>
#include <utility>

namespace {

const std::string kUsage =
    "usage: collective_plan COLLECTIVE [--OPTION=VALUE...]\n"
    "Prints the schedule of all_gather, all_to_all, broadcast, scatter or gather, with its options as params.\n"
    "The options have the names of collective_perf. Write --variant=b2b or --variant b2b.\n"
    "  -b, --bytes=N         size of the collective (default: 1M); K, M and G are powers of 1024\n"
    "  -g, --ngpus, --gpus=N number of GPUs, 2 to 64 (default: 8)\n"
    "  -r, --root=N          root of broadcast, scatter and gather (default: 0)\n"
    "  --collective=NAME     the same as COLLECTIVE\n"
    "  --variant=NAME        way to copy (default: auto); with +pl: prelaunched\n"
    "  --prelaunch=off|shared|per_group\n"
    "                        words that release prelaunched groups (default: off)\n"
    "  --completion=atomic|fence|two_fences\n"
    "                        how each group says that it is done (default: atomic)\n"
    "  --epochs=N            rounds of the host thread (default: 1)\n"
    "  --in_place=yes --own_part=yes --peers_per_engine=N --engines=N,N.. --granule=N --alignment=N\n"
    "  --offsets=N,N.. --packet_bytes=N --ring_bytes=N         see options.hpp\n"
    "  --set NAME=VALUE      the same as --NAME=VALUE\n"
    "  --flat                without params and loops: one line per packet\n"
    "  --help                print this help\n"
    "NAME is one of " +
    collectives::variant_names(", ") + ".\n";

int usage_error(const std::string& why) {
  std::fprintf(stderr, "collective_plan: %s\n%s", why.c_str(), kUsage.c_str());
  return 2;
}

/// The member of Options that this option sets; "" for none.
std::string member_of(std::string_view option) {
  constexpr std::pair<std::string_view, std::string_view> kShort[] = {
      {"-b", "bytes"}, {"-g", "gpus"}, {"--ngpus", "gpus"}, {"-r", "root"}};
  for (const auto& [given, member] : kShort)
    if (option == given) return std::string(member);
  return option.starts_with("--") ? std::string(option.substr(2)) : "";
}

}  // namespace

int main(int argc, char** argv) {
  collectives::Options o{.bytes = 1 << 20};
  bool named = false, flat = false;
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    if (word == "--help" || word == "-h") return std::fputs(kUsage.c_str(), stdout), 0;
    if (word == "--flat") {
      flat = true;
      continue;
    }
    std::string wrong;
    if (!word.starts_with("-")) {
      wrong = named ? "unknown argument " + word : set(o, "collective", word);
      named = true;
    } else {
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
      named = named || member == "collective";
      wrong = member.empty() ? "unknown argument " + word : set(o, member, value);
    }
    if (!wrong.empty()) return usage_error(wrong);
  }
  if (!named) return usage_error("no collective given");
  const auto p = collectives::plan(o);
  if (!p) return std::fprintf(stderr, "%s\n", to_string(p.error()).c_str()), 1;
  for (const auto& note : p->notes) std::fprintf(stderr, "note: %s\n", note.c_str());
  o.variant = p->options.variant;
  std::fputs((flat ? sdma::to_text(p->schedule) : with_params(collectives::source_of(o))).c_str(), stdout);
  if (std::fflush(stdout) == 0 && !std::ferror(stdout)) return 0;
  std::fprintf(stderr, "standard output cannot be written\n");
  return 1;
}
