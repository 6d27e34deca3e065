// SPDX-License-Identifier: MIT
// sdma emulate: runs a program on a software KFD node.
#include "device/product.hpp"
#include "input.hpp"
#include "output.hpp"
#include "preload.hpp"
#include "program.hpp"
#include "sdma/core/number.hpp"
#include "sdma/engine/ordering.hpp"
#include "sdma/trace/write.hpp"
#include "shared_options.hpp"
#include "verb.hpp"

#include <fmt/format.h>

#include <elf.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

namespace sdma::tool {
namespace {

namespace fs = std::filesystem;

/// Draws one recording. The picture of the first process has the name that the user chose; any other gets a new name.
int draw_one(const fs::path& recording, std::string picture, const std::string& suffix) {
  const auto text = read_file(recording.string());
  if (!text) return report(text.error()), kInput;
  // The recording is empty if no device was opened, and has no end if the program was killed.
  const auto t = trace::LinesReader(recording.string()).feed(*text);
  if (!t) return report(t.error()), kInput;
  const auto form = trace::form_of(picture);
  if (!suffix.empty()) {
    const auto made = create_fresh(picture + suffix);
    if (!made) return report(made.error()), kInput;
    ::close(made->fd);
    picture = made->path;
  }
  return write_text(picture, trace::to_string(*t, form, picture));
}

/// The recordings of a program's processes, from which pictures are drawn after the program has ended. They are in a
/// folder beside the picture, with a name that nothing had, which this object removes. If this process is killed, they
/// remain, and `sdma trace` reads them. If run.json.PID exists, the picture of that process becomes run.json.PID-1.
class Recording {
 public:
  explicit Recording(fs::path picture) : picture_(std::move(picture)) {
    auto name = picture_.string() + ".recording-XXXXXX";
    if (!::mkdtemp(name.data())) {
      error_ = std::strerror(errno);
      return;
    }
    folder_ = name;
    // Empty, unless a process opens a device.
    if (const auto e = save_file(file(), ""); !e) error_ = e.error().message;
  }
  Recording(const Recording&) = delete;
  Recording& operator=(const Recording&) = delete;
  ~Recording() {
    std::error_code none;
    if (!folder_.empty()) fs::remove_all(folder_, none);
  }

  /// Why there is no folder; "" if there is one.
  const std::string& error() const noexcept { return error_; }
  /// Each process records into this file, or into one with its PID appended.
  std::string file() const { return folder_ / kFile; }
  /// The picture, and one with a PID for each further process. Reports errors; returns an exit code.
  int draw() const {
    std::error_code none;
    std::vector<fs::path> files;
    for (const auto& file : fs::directory_iterator(folder_, none)) files.push_back(file.path());
    std::sort(files.begin(), files.end());
    int code = kOk;
    for (const auto& file : files)
      code = std::max(code, draw_one(file, picture_.string(), file.filename().string().substr(std::strlen(kFile))));
    return code;
  }

 private:
  static constexpr const char* kFile = "trace.jsonl";

  const fs::path picture_;
  fs::path folder_{};
  std::string error_{};
};

struct EmulateArguments {
  std::uint32_t gpus = 1, engines = 0;
  std::string gpu = "gfx942", doorbells = "protect", kernels = "refuse", vram, trace, names;
  Ordering order = Ordering::strict;
  std::uint64_t seed = 0;
  bool watch = false, no_system_mem_limit = false;
  std::vector<std::string> program;
};

/// Why our library cannot be preloaded into a program; "" if it can. A script's interpreter loads it.
std::string obstacle(const fs::path& program, int depth = 0) {
  constexpr int kInterpreters = 5;  // the kernel follows no more
  struct stat st {};
  if (::stat(program.c_str(), &st) == 0 && (st.st_mode & (S_ISUID | S_ISGID)) != 0)
    return "runs with the privileges of its owner";
  std::ifstream in(program, std::ios::binary);
  std::string line;
  if (depth < kInterpreters && in.get() == '#' && in.get() == '!' && std::getline(in, line)) {
    const auto begin = line.find_first_not_of(" \t");
    if (begin == line.npos) return {};
    const auto interpreter = line.substr(begin, line.find_first_of(" \t", begin) - begin);
    const auto why = obstacle(interpreter, depth + 1);
    return why.empty() ? why : "is a script of '" + interpreter + "', which " + why;
  }
  if (::getxattr(program.c_str(), "security.capability", nullptr, 0) > 0)
    return "has privileges of its own (capabilities)";
  in.clear();
  in.seekg(0);
  Elf64_Ehdr h{};
  if (!in.read(reinterpret_cast<char*>(&h), sizeof h) || std::memcmp(h.e_ident, ELFMAG, SELFMAG) != 0) return {};
  if (h.e_ident[EI_CLASS] != ELFCLASS64) return "is not a 64-bit program";
  for (std::uint16_t i = 0; i < h.e_phnum; ++i) {
    Elf64_Phdr p{};
    in.seekg(static_cast<std::streamoff>(h.e_phoff + std::uint64_t{i} * h.e_phentsize));
    if (!in.read(reinterpret_cast<char*>(&p), sizeof p)) return {};
    if (p.p_type == PT_INTERP) return {};
  }
  return "is linked statically";
}

/// Whether the limit on the size of files leaves room for the node's
/// memory, which is in a file of this size, without a disk.
bool memory_fits() {
  constexpr rlim_t kLargest = rlim_t{1} << 60;
  rlimit limit{};
  return ::getrlimit(RLIMIT_FSIZE, &limit) != 0 || limit.rlim_cur >= kLargest;
}

/// AddressSanitizer, as a library, ends a program in which it is not the first library. It works also in second place.
void allow_second_place() {
  constexpr const char *kVariable = "ASAN_OPTIONS", *kOption = "verify_asan_link_order";
  const char* set = std::getenv(kVariable);
  const std::string options = set ? set : "";
  if (options.find(kOption) != options.npos) return;
  ::setenv(kVariable, fmt::format("{}{}{}=0", options, options.empty() ? "" : ":", kOption).c_str(), 1);
}

/// How many engines a GPU of this type has.
std::uint32_t engines_of(std::string_view gpu) {
  const auto* p = product_of(gpu);
  return p ? p->host_engines + p->xgmi_engines : 0;
}

void set(const char* name, const std::string& value) { ::setenv(name, value.c_str(), 1); }

int emulate_verb(const EmulateArguments& o) {
  const auto node = emulator_library();
  if (node.empty())
    return complain("libsdma-emulator.so is neither beside this program nor installed",
                    "build with -Demulator=enabled, without a sanitizer"),
           kInput;
  if (const auto most = engines_of(o.gpu); o.engines > most)
    return complain(fmt::format("--engines: a GPU of type {} has {} engines, not {}", o.gpu, most, o.engines),
                    fmt::format("write --engines=1 to --engines={}, or choose another --gpu", most)),
           kUsage;
  const auto program = find_program(o.program[0]);
  if (program.empty()) return kInput;
  if (const auto why = obstacle(program); !why.empty())
    return complain("'" + program.string() + "' " + why + ": no library can be preloaded into it",
                    "build it for 64 bits, linked dynamically, without special privileges"),
           kInput;
  if (!memory_fits())
    return complain(
               "the limit on the size of files is too low: the memory of the GPUs is in a file of 1 EiB, without a disk",
               "run 'ulimit -f unlimited' first"),
           kInput;
  allow_second_place();
  set("SDMA_EMULATE_GPUS", std::to_string(o.gpus));
  set("SDMA_EMULATE_GPU", o.gpu);
  set("SDMA_EMULATE_ORDER", std::string(name(o.order)));
  set("SDMA_EMULATE_SEED", std::to_string(o.seed));
  set("SDMA_EMULATE_DOORBELLS", o.doorbells);
  set("SDMA_EMULATE_KERNELS", o.kernels);
  // Programs that this command starts are on one machine, others on another.
  std::uint64_t machine = 0;
  if (::getrandom(&machine, sizeof machine, 0) != sizeof machine)
    return complain(fmt::format("the machine gives no random number: {}", std::strerror(errno))), kInput;
  set("SDMA_EMULATE_MACHINE", fmt::format("{:016x}", machine));
  if (o.engines != 0) set("SDMA_EMULATE_ENGINES", std::to_string(o.engines));
  if (!o.vram.empty()) set("SDMA_EMULATE_VRAM", o.vram);
  if (overwrites({{"--trace", o.trace}}, {program.string(), node.string()}, "a part of the program")) return kUsage;
  if (!o.names.empty()) {
    if (o.trace.empty() && !o.watch)
      return complain("--names needs a recording: --trace or --watch", "add one, or omit --names"), kUsage;
    if (o.names == "-") return complain("--names needs a file, not -", "the program reads standard input"), kUsage;
    if (overwrites({{"--trace", o.trace}}, {o.names})) return kUsage;
    if (const auto names = load_names(o.names); !names) return report(names.error()), kInput;
    std::error_code none;
    set("SDMA_EMULATE_NAMES", fs::absolute(o.names, none).string());
  }
  std::optional<Recording> recording;
  if (!o.trace.empty()) {
    std::error_code none;
    const auto trace = fs::absolute(o.trace, none);
    const bool lines = trace::form_of(trace.string()) == trace::Form::jsonl;
    // A recording begins now, and a picture is drawn later: its old contents stay until then.
    if (const auto e = FileWriter(trace.string(), lines ? FileWriter::Kind::live : FileWriter::Kind::whole).open(); !e)
      return report(e.error()), kInput;
    if (!lines && !recording.emplace(trace).error().empty())
      return complain("cannot create a folder for the recording beside '" + o.trace + "': " + recording->error()),
             kInput;
    set("SDMA_EMULATE_TRACE", lines ? trace.string() : recording->file());
  }
  if (o.watch) set("SDMA_EMULATE_WATCH", "1");
  if (o.no_system_mem_limit) set("SDMA_EMULATE_NO_SYSTEM_MEM_LIMIT", "1");
  const auto loadable = preload_name(node);
  if (!loadable) return report(loadable.error()), kInput;
  preload(*loadable);
  if (!recording) return execute(program, o.program);
  int status = 0;
  if (const int code = run_program(program, o.program, status)) return code;
  const int drawn = recording->draw();
  recording.reset();  // before a signal ends this process
  return status == 0 ? drawn : end_as(status);
}

/// The size of a GPU's memory, as it was written.
std::optional<std::string> vram_size(const std::string& text) {
  const auto n = parse_size(text);
  constexpr std::uint64_t kLeast = 1 << 20, kMost = std::uint64_t{1} << 40;
  return n && *n >= kLeast && *n <= kMost ? std::optional(text) : std::nullopt;
}

}  // namespace

void add_emulate(VerbOptions& verb, Action& action) {
  const auto o = std::make_shared<EmulateArguments>();
  verb.program(o->program);
  add_count(verb, "--gpus", o->gpus, 1, 8, "number of GPUs of the node");
  std::vector<std::pair<std::string, std::string>> gpus;
  for (const auto& p : kProducts) gpus.emplace_back(gfx_name(p.gfx), gfx_name(p.gfx));
  add_choice<std::string>(
      verb, "--gfx,--gpu", o->gpu, gpus,
      "type of the GPUs, by target; the node emulates one product of each target (default: gfx942, an MI300X)");
  add_count(verb, "--engines", o->engines, 1, 64,
            "sDMA engines per GPU; host-facing engines are numbered first (default: all of the product; 16 for gfx942)")
      .shown("");
  add_parsed(
      verb, "--vram", o->vram, vram_size, "a size from 1M to 1024G: write 64G or 512M",
      "memory per GPU: 64G, 512M (default: that of the product; 192G for gfx942), allocated page by page as it is used")
      .type("SIZE");
  verb.flag("--no-system-mem-limit", o->no_system_mem_limit,
            "lift the driver's limit on host memory for GPUs, as the module parameter of this name does");
  add_choice<Ordering>(verb, "--order", o->order,
                       {{"strict", Ordering::strict}, {"rocr", Ordering::rocr}, {"adversarial", Ordering::adversarial}},
                       "ordering of packets, from strongest to weakest (default: strict)");
  add_count(verb, "--seed", o->seed, 0, ~std::uint64_t{}, "seed for --order=rocr and adversarial");
  verb.value(
          "--trace", o->trace,
          fmt::format("{}; a .jsonl file grows while the program runs; any other is written when it ends", kTraceDoc))
      .type("PATH");
  verb.value("--names", o->names,
             "names for addresses in --trace and --watch: a file with one line FIRST..+SIZE NAME per range")
      .type("FILE");
  // The parser's caller switches messages to JSON.
  verb.call(
      "--json", [] {},
      "print the messages of sdma emulate itself as JSON on standard error; the program's output stays as it is");
  verb.flag("--watch", o->watch, "print queue, doorbell and packet events on stderr as they happen");
  add_choice<std::string>(
      verb, "--kernels", o->kernels, {{"refuse", "refuse"}, {"skip", "skip"}},
      "kernel dispatches that the node cannot execute: stop their queue with an error (default), or "
      "complete them without effect, and list them on stderr when the program ends");
  add_choice<std::string>(verb, "--doorbells", o->doorbells,
                          {{"protect", "protect"}, {"park", "park"}, {"spin", "spin"}},
                          "way to notice doorbells of an idle engine: write-protect their page (default), poll with "
                          "sleeps, or poll without sleeps");
  verb.exits({{kOk, "the program ran; its own exit code is returned, whatever it is"},
              {kInput, "the program cannot be run, or its trace cannot be written"}});
  verb.manual("docs/emulator.md");
  verb.footer(
      "Recordings print the names in --names=FILE, and the names of the program's variables, instead of addresses: "
      "src=weights[64K]. sdma trace --names=FILE adds names to an existing recording.\n"
      "Examples:\n"
      "  sdma emulate rocminfo\n"
      "  sdma emulate --gpus=8 --trace=run.jsonl -- ./my_program --its-option\n"
      "  sdma emulate --watch -- ./my_program      'sdma trace --follow run.jsonl' shows the same in another terminal\n"
      "  sdma emulate --order=adversarial --seed=7 -- ./my_program");
  action = [o] { return emulate_verb(*o); };
}

}  // namespace sdma::tool
