// sdma emulate: runs a program on a software KFD node.
#include "input.hpp"
#include "sdma/engine/pipeline.hpp"
#include "verb.hpp"

#include <elf.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>

namespace sdma::tool {
namespace {

namespace fs = std::filesystem;

enum class Gpu { gfx942, gfx90a };
enum class Doorbells { protect, park, spin };

struct Options {
  std::uint32_t gpus = 1;
  Gpu gpu = Gpu::gfx942;
  std::string vram, trace;
  Ordering order = Ordering::strict;
  std::uint64_t seed = 0;
  Doorbells doorbells = Doorbells::protect;
  std::vector<std::string> program;
};

/// The library beside this program: in a build tree, or installed.
fs::path library() {
  std::error_code e;
  const auto here = fs::read_symlink("/proc/self/exe", e).parent_path();
  for (const auto& path :
       {here / "../lib/emulator/libsdma-emulator.so", here / ".." / SDMA_LIBDIR / "libsdma-emulator.so"})
    if (fs::exists(path, e)) return fs::canonical(path, e);
  return {};
}

fs::path find_program(const std::string& name) {
  std::error_code e;
  if (name.find('/') != name.npos) return fs::exists(name, e) ? fs::path(name) : fs::path();
  const char* path = std::getenv("PATH");
  std::string_view rest = path ? path : "/usr/bin:/bin";
  while (!rest.empty()) {
    const auto folder = rest.substr(0, rest.find(':'));
    rest.remove_prefix(std::min(rest.size(), folder.size() + 1));
    const auto candidate = fs::path(folder.empty() ? "." : folder) / name;
    if (::access(candidate.c_str(), X_OK) == 0 && !fs::is_directory(candidate, e)) return candidate;
  }
  return {};
}

/// A program that loads no libraries does not load ours either. Scripts do, through their interpreter.
bool is_static(const fs::path& program) {
  std::ifstream in(program, std::ios::binary);
  Elf64_Ehdr h{};
  if (!in.read(reinterpret_cast<char*>(&h), sizeof h) || std::memcmp(h.e_ident, ELFMAG, SELFMAG) != 0) return false;
  for (std::uint16_t i = 0; i < h.e_phnum; ++i) {
    Elf64_Phdr p{};
    in.seekg(static_cast<std::streamoff>(h.e_phoff + std::uint64_t{i} * h.e_phentsize));
    if (!in.read(reinterpret_cast<char*>(&p), sizeof p)) return false;
    if (p.p_type == PT_INTERP) return false;
  }
  return true;
}

void set(const char* name, const std::string& value) { ::setenv(name, value.c_str(), 1); }

int run(const Options& o) {
  const auto preload = library();
  if (preload.empty())
    return complain("libsdma-emulator.so is neither beside this program nor installed",
                    "build with -Demulator=enabled, without a sanitizer"),
           kInput;
  const auto program = find_program(o.program[0]);
  if (program.empty()) return complain("there is no program '" + o.program[0] + "'"), kInput;
  if (is_static(program))
    return complain("'" + program.string() + "' is linked statically: no library can be loaded under it",
                    "link it dynamically"),
           kInput;
  set("SDMA_EMULATE_GPUS", std::to_string(o.gpus));
  set("SDMA_EMULATE_GPU", o.gpu == Gpu::gfx942 ? "gfx942" : "gfx90a");
  set("SDMA_EMULATE_ORDER", std::string(name(o.order)));
  set("SDMA_EMULATE_SEED", std::to_string(o.seed));
  set("SDMA_EMULATE_DOORBELLS", o.doorbells == Doorbells::protect ? "protect"
                                : o.doorbells == Doorbells::park  ? "park"
                                                                  : "spin");
  if (!o.vram.empty()) set("SDMA_EMULATE_VRAM", o.vram);
  if (!o.trace.empty()) {
    std::error_code e;
    const auto trace = fs::absolute(o.trace, e);
    if (!std::ofstream(trace))
      return complain("cannot write '" + trace.string() + "': " + std::strerror(errno)), kInput;
    set("SDMA_EMULATE_TRACE", trace.string());
  }
  const char* others = std::getenv("LD_PRELOAD");
  set("LD_PRELOAD", preload.string() + (others && *others ? ":" + std::string(others) : ""));
  std::vector<char*> argv;
  for (const auto& word : o.program) argv.push_back(const_cast<char*>(word.c_str()));
  argv.push_back(nullptr);
  ::execv(program.c_str(), argv.data());
  return complain("cannot run '" + program.string() + "': " + std::strerror(errno)), kInput;
}

std::string check_bytes(const std::string& text) {
  char* end = nullptr;
  const auto n = std::strtoull(text.c_str(), &end, 10);
  const bool unit = *end == 0 || (std::strchr("KMG", *end) && end[1] == 0);
  return n == 0 || text[0] == '-' || !unit ? "'" + text + "' is no size; write 64G, 512M" : "";
}

}  // namespace

void add_emulate(CLI::App& verb, Action& action) {
  const auto o = std::make_shared<Options>();
  verb.add_option("PROGRAM", o->program, "what to run, and its arguments; behind -- if they have options")->required();
  verb.add_option("--gpus", o->gpus, "how many GPUs the node has")->check(CLI::Range(1, 8))->capture_default_str();
  add_choice<Gpu>(verb, "--gpu", o->gpu, {{"gfx942", Gpu::gfx942}, {"gfx90a", Gpu::gfx90a}},
                  "which: an MI300X, or a die of an MI250X for runtimes that know no MI300X");
  verb.add_option("--vram", o->vram, "memory of each GPU; taken from the machine as it is used")
      ->type_name("SIZE")
      ->check(CLI::Validator(check_bytes, ""));
  add_choice<Ordering>(verb, "--order", o->order,
                       {{"strict", Ordering::strict}, {"rocr", Ordering::rocr}, {"adversarial", Ordering::adversarial}},
                       "how weakly engines order what the rules leave open");
  verb.add_option("--seed", o->seed, "of --order=rocr and adversarial")->capture_default_str();
  verb.add_option("--trace", o->trace, "where to record queues, doorbells and packets, as JSON Lines")
      ->type_name("FILE");
  add_choice<Doorbells>(
      verb, "--doorbells", o->doorbells,
      {{"protect", Doorbells::protect}, {"park", Doorbells::park}, {"spin", Doorbells::spin}},
      "how an idle engine learns of a doorbell: a write-protected page, naps, or looking all the time");
  verb.footer(
      "Examples:\n"
      "  sdma emulate rocminfo\n"
      "  sdma emulate --gpus=8 --trace=run.jsonl -- ./my_program --its-option\n"
      "  sdma emulate --order=adversarial --seed=7 -- ./my_program");
  action = [o] { return run(*o); };
}

}  // namespace sdma::tool
