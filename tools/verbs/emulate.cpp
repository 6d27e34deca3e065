// SPDX-License-Identifier: MIT
// sdma emulate: runs a program on a software KFD node.
#include "core/abstract_address.hpp"
#include "core/descriptor.hpp"
#include "core/preloadable.hpp"
#include "device/product.hpp"
#include "input.hpp"
#include "kfd/abi.hpp"
#include "output.hpp"
#include "preload.hpp"
#include "program.hpp"
#include "sdma/core/number.hpp"
#include "sdma/engine/ordering.hpp"
#include "sdma/trace/write.hpp"
#include "shared_options.hpp"
#include "trace/lines_writer.hpp"
#include "trace/records_writer.hpp"
#include "verb.hpp"

#include <fmt/format.h>

#include <sys/random.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <optional>
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
  std::string gpu = "gfx942", doorbells = "protect", kernels = "refuse", indirect = "run", kfd_version, vram, trace,
              names;
  Ordering order = Ordering::strict;
  std::uint64_t seed = 0;
  bool watch = false, no_system_mem_limit = false, require_node = false;
  std::vector<std::string> program;
};

/// Why our library cannot be preloaded into a program; "" if it can. A script's interpreter loads it.
std::string obstacle(const fs::path& program) {
  const auto why = detail::why_not_preloaded(program.c_str());
  const std::string text = detail::text_of(why.barrier);
  if (text.empty() || why.interpreter[0] == '\0') return text;
  return fmt::format("is a script of '{}', which {}", why.interpreter.data(), text);
}

/// Learns of the programs that were not started because of --require-node. See lib/emulator/preload/leaving.hpp.
class Refusals {
 public:
  explicit Refusals(const std::string& machine) : socket_(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0)) {
    const detail::AbstractAddress at("sdma-left-" + machine);
    if (!socket_ || ::bind(socket_.get(), at.get(), at.bytes()) != 0) error_ = std::strerror(errno);
  }
  /// Why nothing can be learned; "" if it can.
  const std::string& error() const noexcept { return error_; }
  bool any() const noexcept {
    char one{};
    return ::recv(socket_.get(), &one, 1, MSG_DONTWAIT) > 0;
  }

 private:
  const detail::Descriptor socket_;
  std::string error_{};
};

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

/// A recording begins now, without events: a program may have none. A picture is drawn later, and its old contents stay
/// until then.
Result<void, Diagnostic> begin_recording(const fs::path& path) {
  FileWriter file(path.string(), FileWriter::Kind::live);
  const auto none =
      path.extension() == ".bin" ? trace::RecordsWriter::empty() : std::string(trace::LinesWriter::kEmpty);
  if (auto begun = file.open(); !begun) return begun;
  if (auto written = file.write(none); !written) return written;
  return file.close();
}

int emulate_verb(const EmulateArguments& o) {
  const auto node = emulator_library();
  if (node.empty())
    return complain("libsdma-emulator.so is neither beside this program nor installed",
                    "build with -Demulator=enabled, without a sanitizer"),
           kInput;
  if (const auto most = engines_of(o.gpu); o.engines > most)
    return complain(fmt::format("--engines: a GPU of type {} has {} engines, not {}", o.gpu, most, o.engines),
                    fmt::format("write --engines=1 to --engines={}, or choose another --gpu", most));
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
  set("SDMA_EMULATE_INDIRECT", o.indirect);
  if (!o.kfd_version.empty()) set("SDMA_EMULATE_KFD_VERSION", o.kfd_version);
  // Programs that this command starts are on one machine, others on another.
  std::uint64_t machine = 0;
  if (::getrandom(&machine, sizeof machine, 0) != sizeof machine)
    return complain(fmt::format("the machine gives no random number: {}", std::strerror(errno))), kInput;
  const auto machine_id = fmt::format("{:016x}", machine);
  set("SDMA_EMULATE_MACHINE", machine_id);
  if (o.engines != 0) set("SDMA_EMULATE_ENGINES", std::to_string(o.engines));
  if (!o.vram.empty()) set("SDMA_EMULATE_VRAM", o.vram);
  if (overwrites({{"--trace", o.trace}}, {program.string(), node.string()}, "a part of the program")) return kUsage;
  if (!o.names.empty()) {
    if (o.trace.empty() && !o.watch)
      return complain("--names needs a recording: --trace or --watch", "add one, or omit --names");
    if (o.names == "-") return complain("--names needs a file, not -", "the program reads standard input");
    if (overwrites({{"--trace", o.trace}}, {o.names})) return kUsage;
    if (const auto names = load_names(o.names); !names) return report(names.error()), kInput;
    std::error_code none;
    set("SDMA_EMULATE_NAMES", fs::absolute(o.names, none).string());
  }
  std::optional<Recording> recording;
  if (!o.trace.empty()) {
    std::error_code none;
    const auto trace = fs::absolute(o.trace, none);
    const bool lines = trace::form_of(trace.string()) == trace::Form::jsonl || trace.extension() == ".bin";
    if (const auto e = lines ? begin_recording(trace) : FileWriter(trace.string(), FileWriter::Kind::whole).open(); !e)
      return report(e.error()), kInput;
    if (!lines && !recording.emplace(trace).error().empty())
      return complain("cannot create a folder for the recording beside '" + o.trace + "': " + recording->error()),
             kInput;
    set("SDMA_EMULATE_TRACE", lines ? trace.string() : recording->file());
  }
  if (o.watch) set("SDMA_EMULATE_WATCH", "1");
  if (o.no_system_mem_limit) set("SDMA_EMULATE_NO_SYSTEM_MEM_LIMIT", "1");
  std::optional<Refusals> refusals;
  if (o.require_node) {
    if (!refusals.emplace(machine_id).error().empty())
      return complain("--require-node cannot learn of the programs that it refuses: " + refusals->error()), kInput;
    set("SDMA_EMULATE_REQUIRE_NODE", "1");
  }
  const auto loadable = preload_name(node);
  if (!loadable) return report(loadable.error()), kInput;
  preload(*loadable);
  if (!recording && !refusals) return execute(program, o.program);
  int status = 0;
  if (const int code = run_program(program, o.program, status)) return code;
  int code = recording ? recording->draw() : kOk;
  recording.reset();  // before a signal ends this process
  if (status != 0) return end_as(status);
  if (refusals && refusals->any()) {
    complain("--require-node: a program was not started, because it would not have found the node's GPUs",
             "the lines above name it; docs/emulator.md#ways-out says what each of them means");
    code = kInput;
  }
  return code;
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
  verb.flag("--require-node", o->require_node,
            "do not start programs that would not find the node (set-user-id, without LD_PRELOAD in their environment "
            "and the like), and end with 3 if there was one");
  add_choice<Ordering>(verb, "--order", o->order,
                       {{"strict", Ordering::strict}, {"rocr", Ordering::rocr}, {"adversarial", Ordering::adversarial}},
                       "ordering of packets, from strongest to weakest (default: strict)");
  add_count(verb, "--seed", o->seed, 0, ~std::uint64_t{}, "seed for --order=rocr and adversarial");
  verb.value("--trace", o->trace,
             fmt::format(
                 "{}; NAME.bin, a binary recording, which costs least and which sdma trace reads. A .jsonl or .bin "
                 "file grows while the program runs; any other is written when it ends",
                 kTraceDoc))
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
  add_choice<std::string>(
      verb, "--indirect", o->indirect, {{"run", "run"}, {"ignore", "ignore"}, {"stall", "stall"}, {"fault", "fault"}},
      "what an sDMA queue does at an INDIRECT, because no driver enables indirect buffers for user queues, and what "
      "engines do then is not known: run its packets (default), pass it, never get past it, or stop with a fault");
  add_parsed(
      verb, "--kfd-version", o->kfd_version,
      [](const std::string& s) { return kfd::minor_of(s) ? std::optional(s) : std::nullopt; },
      "a version from 1.11 to 1.23", "version of the driver's ioctl interface, from 1.11 to 1.23 (default: 1.17)")
      .type("1.N");
  add_choice<std::string>(verb, "--doorbells", o->doorbells,
                          {{"protect", "protect"}, {"park", "park"}, {"spin", "spin"}},
                          "way to notice doorbells of an idle engine: write-protect their page (default), poll with "
                          "sleeps, or poll without sleeps");
  verb.exits(
      {{kOk, "the program ran; its own exit code is returned, whatever it is"},
       {kInput,
        "the program cannot be run, or its trace cannot be written; with --require-node, it has ended with 0, but "
        "a program that it tried to start was refused"}});
  verb.manual("docs/emulator.md");
  verb.footer(
      "Recordings print the names in --names=FILE, and the names of the program's variables, instead of addresses: "
      "src=weights[64K]. sdma trace --names=FILE adds names to an existing recording.\n"
      "Examples:\n"
      "  sdma emulate rocminfo\n"
      "  sdma emulate --gpus=8 --trace=run.jsonl -- ./my_program --its-option\n"
      "  sdma emulate --watch -- ./my_program      each event on stderr as it happens\n"
      "  sdma emulate --order=adversarial --seed=7 -- ./my_program");
  action = [o] { return emulate_verb(*o); };
}

}  // namespace sdma::tool
