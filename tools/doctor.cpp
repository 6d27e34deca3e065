// SPDX-License-Identifier: MIT
// sdma doctor: why queues hang, from dumps, recordings and core files, a process, or a program that it runs.
#include "sdma/doctor/diagnose.hpp"

#include "doctor_live.hpp"
#include "generation.hpp"
#include "input.hpp"
#include "output.hpp"
#include "sdma/doctor/kernel_log.hpp"
#include "sdma/doctor/read.hpp"
#include "sdma/trace/write.hpp"
#include "shared_options.hpp"
#include "verb.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <memory>

namespace sdma::tool {
namespace {

struct WordAt {
  std::uint64_t va{}, value{};
};

struct DoctorArguments {
  std::vector<std::string> files;
  Form form = Form::automatic;
  std::optional<Generation> generation;
  std::optional<std::uint64_t> rptr, wptr;
  std::uint64_t base = 0;
  std::vector<FileAt> buffers;
  std::vector<WordAt> words;
  std::vector<doctor::HostWait> waits;
  std::chrono::nanoseconds stalled{};
  bool all_queues = false, all_threads = false, json = false;
  std::optional<std::uint32_t> pid;
  std::string output = "-";
  LiveOptions live;

  bool has_positions() const noexcept { return rptr || wptr || base != 0; }
};

/// The bytes of a core file, which may be larger than memory.
class MappedFile {
 public:
  /// Of an archive.
  explicit MappedFile(std::string bytes) : own_(std::move(bytes)), at_(own_.data()), bytes_(own_.size()) {}
  static std::shared_ptr<MappedFile> open(const std::string& path) {
    const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
    struct stat st {};
    void* at = MAP_FAILED;
    if (fd >= 0 && ::fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && st.st_size > 0)
      at = ::mmap(nullptr, static_cast<std::size_t>(st.st_size), PROT_READ, MAP_PRIVATE, fd, 0);
    if (fd >= 0) ::close(fd);
    if (at == MAP_FAILED) return nullptr;
    return std::shared_ptr<MappedFile>(new MappedFile(at, static_cast<std::size_t>(st.st_size)));
  }
  ~MappedFile() {
    if (own_.empty()) ::munmap(at_, bytes_);
  }
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;
  std::span<const std::byte> bytes() const noexcept { return {static_cast<const std::byte*>(at_), bytes_}; }

 private:
  MappedFile(void* at, std::size_t bytes) : at_(at), bytes_(bytes) {}
  std::string own_{};
  void* at_;
  std::size_t bytes_;
};

/// Diagnostic::rule of a file in an archive that the doctor does not use.
constexpr std::string_view kNotKnown = "not-known";

/// Reads files of every form into one snapshot.
class Files {
 public:
  explicit Files(const DoctorArguments& o) : o_(o) {}

  Result<doctor::Snapshot, Diagnostic> read() {
    // Memory first: the rings of a gpucore file's queues may be in the kernel's core file.
    const auto host_core = [](const std::string& path) {
      const auto file = path == "-" ? nullptr : MappedFile::open(path);
      return file && is_host_core(file->bytes());
    };
    auto paths = o_.files;
    std::stable_partition(paths.begin(), paths.end(), host_core);
    for (const auto& path : paths)
      if (auto done = add({.path = path, .form = o_.form, .archives = true}); !done) return std::move(done.error());
    if (s_.queues.empty()) return no_queue();
    if (o_.has_positions() && s_.queues.size() > 1)
      return Diagnostic{
          .where = shown(o_.files.front()),
          .message = fmt::format("--rptr, --wptr and --base are those of one ring, but there are {}", s_.queues.size()),
          .hint = "give `.ring` files, which have positions of their own"};
    s_.from = o_.files.size() == 1 ? shown(o_.files.front())
                                   : fmt::format("{} and {} other files", shown(o_.files.front()), o_.files.size() - 1);
    return std::move(s_);
  }
  /// Core files, which the snapshot reads.
  std::vector<std::shared_ptr<MappedFile>> mapped{};

 private:
  static bool is_host_core(std::span<const std::byte> bytes) {
    return doctor::is_core(bytes) && !doctor::is_gpu_core(bytes);
  }

  Result<void, Diagnostic> add(const InputOptions& file) {
    auto in = Input::open(file);
    if (!in) return std::move(in.error());
    if (auto members = in->members()) return archive(in->name(), std::move(*members));
    const auto head = in->beginning();
    const auto bytes = std::as_bytes(std::span(head));
    if (head.empty())
      return not_known({.where = in->name(), .message = "the file is empty", .hint = "a dump has at least one dword"});
    if (doctor::is_core(bytes)) return core(file);
    if (head.starts_with("{\"sdma_trace\"")) return trace(*in);
    if (is_dump(bytes)) return ring_file(*in);
    return in->is_text() ? text(*in) : binary(*in);
  }

  /// A bug report has files of many kinds. Those that are neither a log nor a ring with positions are named in a note.
  Result<void, Diagnostic> archive(const std::string& name, std::vector<Member> members) {
    std::stable_partition(members.begin(), members.end(),
                          [](const Member& m) { return is_host_core(std::as_bytes(std::span(m.bytes))); });
    const bool report_of_all = members.size() > 1;
    std::string left;
    for (auto& m : members) {
      const InputOptions file{.path = report_of_all ? name + ": " + m.name : name, .contents = std::move(m.bytes)};
      in_report_ = report_of_all;
      auto done = add(file);
      in_report_ = false;
      if (!done && done.error().rule != kNotKnown) return done;
      if (!done) left += fmt::format("{}{} ({})", left.empty() ? "" : ", ", m.name, done.error().message);
    }
    if (!left.empty())
      s_.notes.push_back(
          fmt::format("{}: not used, because they are neither logs, recordings, core files "
                      "nor rings with positions: {}.",
                      name, left));
    return {};
  }
  /// What the input says all the same is reported. A log without a queue is a warning: its lines decide nothing.
  Diagnostic no_queue() const {
    for (const auto& n : s_.notes) report({.severity = Severity::note, .message = n});
    std::string message = "there is no queue in this input";
    if (log_) message += ", so nothing is decided";
    for (const auto& p : s_.page_faults) message += fmt::format("; {} reports a page fault at {}", p.from, in_words(p));
    return {.severity = log_ ? Severity::warning : Severity::error,
            .where = shown(o_.files.front()),
            .message = std::move(message),
            .hint = "give the dump of a ring, a trace.jsonl or a gpucore file as well"};
  }

  Result<void, Diagnostic> core(const InputOptions& in) {
    const auto file = in.contents ? std::make_shared<MappedFile>(*in.contents) : MappedFile::open(in.path);
    if (!file)
      return Diagnostic{.where = shown(in.path),
                        .message = "a core file has to be a regular file",
                        .hint = "save it, and give its name"};
    mapped.push_back(file);
    return doctor::add_core(s_, file->bytes(), shown(in.path));
  }
  Result<void, Diagnostic> trace(Input& in) {
    auto t = in.whole_text();
    if (!t) return std::move(t.error());
    const auto parsed = trace::from_json_lines(*t, in.name());
    if (!parsed) return parsed.error();
    doctor::add(s_, *parsed, in.name());
    return {};
  }
  Result<void, Diagnostic> ring_file(Input& in) {
    auto bytes = in.whole_text();
    if (!bytes) return std::move(bytes.error());
    auto d = from_bytes(std::as_bytes(std::span(*bytes)), in.name());
    if (!d) return std::move(d.error());
    if (d->dwords.empty()) return empty(in.name());
    doctor::add(s_, *d, in.name());
    s_.queues.back().generation = chosen_for(in.name(), {});
    if (o_.rptr || o_.wptr) {
      s_.queues.pop_back();
      return place({.dwords = std::move(d->dwords)}, in.name());
    }
    return {};
  }
  Result<void, Diagnostic> text(Input& in) {
    auto all = in.whole_text();
    if (!all) return std::move(all.error());
    if (doctor::is_kernel_log(*all)) {
      log_ = true;
      doctor::add_kernel_log(s_, *all, in.name(), o_.pid);
    }
    auto dumps = read_text_dump(*all, in.name());
    if (!dumps && dumps.error().rule == kLogWithoutDump) return {};
    if (!dumps) return not_known(std::move(dumps.error()));
    for (auto& d : dumps->dumps) {
      if (in_report_ && !d.rptr && !d.wptr && !o_.has_positions()) return without_positions();
      if (d.dwords.empty()) return empty(in.name());
      if (!d.form.empty())
        report({.severity = Severity::note,
                .where = in.name(),
                .message = "read as " + d.form + generation_text(o_.generation, d.generation)});
      if (auto done = place(std::move(d), in.name()); !done) return done;
    }
    for (const auto& b : dumps->buffers) s_.words.add(GpuVa{b.va}, std::as_bytes(std::span(b.dwords)));
    for (const auto& n : dumps->notes) s_.notes.push_back(n.message);
    return {};
  }
  Result<void, Diagnostic> binary(Input& in) {
    auto ring = in.ring();
    if (!ring) return not_known(std::move(ring.error()));
    if (in_report_ && !ring->positions.rptr && !o_.has_positions()) return without_positions();
    if (ring->dwords.empty()) return empty(in.name());
    return place({.dwords = std::move(ring->dwords), .rptr = ring->positions.rptr, .wptr = ring->positions.wptr},
                 in.name());
  }
  /// Other files of a bug report may have any form.
  Diagnostic not_known(Diagnostic d) const {
    if (in_report_) d.rule = kNotKnown;
    return d;
  }
  Diagnostic without_positions() const { return not_known({.message = "no positions"}); }
  /// The generation of a ring. The diagnosis says if it is only assumed.
  Generation chosen_for(const std::string& name, std::optional<Generation> said) {
    const auto g = chosen(o_.generation, said);
    if (!o_.generation && !said)
      s_.notes.push_back(fmt::format("{}: it is assumed that these are packets of SDMA {} (--gfx)", name, name_of(g)));
    return g;
  }
  static Diagnostic empty(const std::string& name) {
    return {.where = name, .message = "the dump has no dwords", .hint = "dump the ring's memory as well"};
  }

  /// A ring whose positions come from the command line or from the text: they have to lie in it.
  Result<void, Diagnostic> place(TextDump d, const std::string& name) {
    RingPositions at{.rptr = o_.rptr, .wptr = o_.wptr, .first = 0, .generation = chosen_for(name, d.generation)};
    const bool given = o_.rptr || o_.wptr;
    const auto rptr = given ? at.rptr : d.rptr, wptr = given ? at.wptr : d.wptr;
    at.first = given ? first_position(d.first.value_or(0), d.dwords.size(), at.rptr, at.wptr) : 0;
    const auto first = given ? at.first : d.first.value_or(0);
    if (const auto placed = place_ring(
            d.dwords, {.rptr = rptr, .wptr = wptr, .first = rptr ? first : 0, .generation = at.generation}, name);
        !placed)
      return placed.error();
    const auto bytes = std::uint64_t{d.dwords.size()} * 4;
    if (first == 0 && rptr && wptr && (*rptr >= bytes) != (*wptr >= bytes) && *rptr >= bytes)
      return Diagnostic{.rule = "dump",
                        .where = name,
                        .message = fmt::format("rptr {:#x} lies beyond the ring of {} bytes", *rptr, bytes)};
    doctor::add(s_, d, name, at);
    return {};
  }

  const DoctorArguments& o_;
  doctor::Snapshot s_;
  bool log_ = false;        // a log has been read
  bool in_report_ = false;  // the file that is read is one of several in an archive
};

std::string text_of(const DoctorArguments& o, const doctor::Diagnosis& d) { return o.json ? to_json(d) : to_text(d); }

/// A program's own output is on stdout, so what is said about it goes to stderr.
int run_under_doctor(const DoctorArguments& o) {
  if (!o.files.empty())
    return complain("a program and FILEs cannot be examined together", "sdma doctor --help"), kUsage;
  return examine_program(o.live, [&](const doctor::Diagnosis& d) { (void)std::fputs(text_of(o, d).c_str(), stderr); });
}

int doctor_verb(const DoctorArguments& o) {
  if (!o.live.program.empty()) return run_under_doctor(o);
  std::vector<std::string> inputs = o.files;
  for (const auto& b : o.buffers) inputs.push_back(b.path);
  if (o.files.empty()) return complain("no FILE given", "sdma doctor --help"), kUsage;
  if (overwrites({{"-o", o.output}}, inputs)) return kUsage;
  Files files{o};
  const auto pid = pid_of(o.files);
  auto s = pid ? examine_process(*pid, o.live) : files.read();
  if (!s) return report(s.error()), s.error().severity == Severity::warning ? kUndecided : kInput;
  auto buffers = read_buffers(o.buffers);
  if (!buffers) return report(buffers.error()), kInput;
  for (const auto& b : *buffers) s->words.add(GpuVa{b.va}, std::as_bytes(std::span(b.dwords)));
  // Signals have 64 bits; a half that is given as well wins.
  for (const unsigned alignment : {8u, 4u})
    for (const auto& w : o.words)
      if (alignment == 4 || w.va % 8 == 0)
        s->words.add(GpuVa{w.va}, w.value, alignment == 8 || w.value >> 32 != 0 ? 8 : 4);
  if (o.base != 0 && !s->queues.empty()) s->queues.front().ring_va = {GpuVa{o.base}, doctor::Source::user};
  s->waits = o.waits;
  s->all_queues = s->all_queues || o.all_queues;
  s->all_threads = s->all_threads || o.all_threads;
  s->watched_ns = std::max(s->watched_ns, static_cast<std::uint64_t>(o.stalled.count()));
  const auto d = diagnose(*s);
  const int code = write_text(o.output, text_of(o, d));
  if (code != kOk) return code;
  switch (d.verdict()) {
    case doctor::Verdict::hung: return kRefuted;
    case doctor::Verdict::undecided: return kUndecided;
    case doctor::Verdict::waits: return kWaits;
    case doctor::Verdict::healthy: break;
  }
  return kOk;
}

std::optional<std::uint32_t> parse_process(const std::string& text) {
  const auto n = parse_count(text);
  return n && *n != 0 && *n <= INT32_MAX ? std::optional(static_cast<std::uint32_t>(*n)) : std::nullopt;
}

/// "VA=VALUE"
std::optional<WordAt> parse_word(const std::string& text) {
  const auto at = text.find('=');
  if (at == text.npos) return {};
  const auto va = parse_size(text.substr(0, at)), value = parse_count(text.substr(at + 1));
  return va && value && *va % 4 == 0 ? std::optional(WordAt{*va, *value}) : std::nullopt;
}

/// "VA:FUNC:VALUE"
std::optional<doctor::HostWait> parse_wait(const std::string& text) {
  const auto a = text.find(':'), b = text.rfind(':');
  if (a == b) return {};
  const auto va = parse_size(text.substr(0, a)), value = parse_count(text.substr(b + 1));
  if (!va || !value || *va % 4 != 0) return {};
  for (const auto& n : grammar::names<Compare>)
    if (n.text == text.substr(a + 1, b - a - 1))
      return doctor::HostWait{.name = "A host thread",
                              .signal = GpuVa{*va},
                              .func = static_cast<Compare>(n.value),
                              .reference = *value,
                              .bytes = *va % 8 == 0 ? 8u : 4u,
                              .asleep = {true, doctor::Source::user}};
  return {};
}

}  // namespace

void add_doctor(VerbOptions& verb, Action& action) {
  const auto o = std::make_shared<DoctorArguments>();
  verb.values(
          "FILE", o->files,
          "rings (.ring, bytes or text), recordings (trace.jsonl), core files and logs of the kernel, and archives of "
          "them (.gz, .xz, .tar.gz), read as one snapshot; - is standard input. Or the number of one process. After --, a program that the doctor runs")
      .type("");
  add_form(verb, o->form,
           "contents of each FILE that is a ring: bytes, hex text, a dump with positions, or debugfs' file of a "
           "ring (default: detect)");
  add_format(verb, "text", o->json, "output form: a paragraph, a table and packets (default), or one object");
  add_generation(verb, o->generation);
  add_positions(verb, o->rptr, o->wptr);
  add_parsed(verb, "--base", o->base, parse_size, "an address", "address of the ring's first dword").type("VA");
  add_buffers(verb, o->buffers, "file that holds the memory at VA: indirect buffers, words; may be repeated");
  add_each(verb, "--word", o->words, parse_word, "VA=VALUE with an aligned address, such as 0x7f0000001000=3",
           "what a word in memory holds; may be repeated")
      .type("VA=VALUE");
  add_each(verb, "--waits", o->waits, parse_wait, "VA:FUNC:VALUE, such as 0x7f0000001000:lt:1",
           "a host thread sleeps until the word at VA satisfies FUNC VALUE; may be repeated")
      .type("VA:FUNC:VALUE");
  add_parsed(verb, "--stalled-for", o->stalled, parse_time, "a time, such as 5s or 500ms",
             "the queues have not moved for this long: then a wait that nothing satisfies is a hang, and not a guess")
      .type("TIME");
  verb.flag("--all-queues", o->all_queues, "FILEs have all queues of the process");
  verb.flag("--all-threads", o->all_threads,
            "no thread but those of --waits will store to a word: then a wait for the host is a hang");
  add_parsed(verb, "--pid", o->pid, parse_process, "the number of a process",
             "of a log with page faults of several processes: those of process PID")
      .type("PID");
  add_live(verb, o->live);
  verb.value("-o,--output", o->output, "output file; - is standard output").type("FILE");
  verb.footer(
      "Examples:\n"
      "  sdma doctor stuck.ring other.ring --stalled-for=5s --word=0x7f0000001000=3\n"
      "  sdma doctor --rptr=0x40 --wptr=0x80 ring.bin     a ring's bytes, with its positions\n"
      "  sdma doctor run.jsonl                            a recording of sdma run or sdma emulate\n"
      "  sdma doctor core.4711 gpucore.4711 dmesg.txt     core files: words and queues; page faults from the kernel's "
      "log\n"
      "  sdma doctor report.tar.gz                        the same, or rings, in an archive\n"
      "  sdma doctor --attach 4711                        the queues of a process\n"
      "  sdma doctor --after=10s --end -- ./my_program    examined when its queues have stood still, or at Ctrl-\\\n"
      "  sdma doctor --json stuck.ring | jq .findings[0].class");
  action = [o] { return doctor_verb(*o); };
}

}  // namespace sdma::tool
