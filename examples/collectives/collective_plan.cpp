// Prints a collective's schedule as text, to read, run, check or compare:
//
//   collective_plan all_gather --variant=b2b --gpus=4 --bytes=64K > ag.sdma && sdma run ag.sdma
//   diff <(collective_plan all_gather --bytes=1M --variant=pcpy) <(collective_plan all_gather --bytes=1M --variant=bcst)
//
// Notes about fallbacks of the variant go to standard error.
#include "collectives.hpp"
#include "sdma/schedule/text.hpp"

#include <cstdio>
#include <string>

namespace {

constexpr char kUsage[] =
    "usage: collective_plan COLLECTIVE [--OPTION=VALUE...]\n"
    "Prints the schedule of all_gather, all_to_all, broadcast, scatter or gather.\n"
    "  --bytes=N             size of the collective (default: 1M); K, M and G are powers of 1024\n"
    "  --gpus=N              number of GPUs, 2 to 64 (default: 8)\n"
    "  --variant=V           pcpy, bcst, swap, b2b or auto (default)\n"
    "  --prelaunch=P         off (default), shared or per_group\n"
    "  --completion=C        atomic (default), fence or two_fences\n"
    "  --epochs=N            rounds of the host thread (default: 1)\n"
    "  --root=N --in_place=yes --own_part=yes --peers_per_engine=N --engines=N,N.. --granule=N --alignment=N\n"
    "  --offsets=N,N.. --packet_bytes=N --ring_bytes=N         see options.hpp\n"
    "  --help                print this help\n";

int usage_error(const std::string& why) {
  std::fprintf(stderr, "collective_plan: %s\n%s", why.c_str(), kUsage);
  return 2;
}

}  // namespace

int main(int argc, char** argv) {
  collectives::Options o{.bytes = 1 << 20};
  bool named = false;
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    if (word == "--help" || word == "-h") return std::fputs(kUsage, stdout), 0;
    const auto equals = word.find('=');
    std::string wrong;
    if (word.starts_with("--") && equals != word.npos)
      wrong = set(o, word.substr(2, equals - 2), word.substr(equals + 1));
    else if (!word.starts_with("-") && !named) named = true, wrong = set(o, "collective", word);
    else wrong = "unknown argument " + word;
    if (!wrong.empty()) return usage_error(wrong);
  }
  if (!named) return usage_error("no collective given");
  const auto p = collectives::plan(o);
  if (!p) return std::fprintf(stderr, "%s\n", to_string(p.error()).c_str()), 1;
  for (const auto& note : p->notes) std::fprintf(stderr, "note: %s\n", note.c_str());
  std::fputs(sdma::to_text(p->schedule).c_str(), stdout);
  if (std::fflush(stdout) == 0 && !std::ferror(stdout)) return 0;
  std::fprintf(stderr, "standard output cannot be written\n");
  return 1;
}
