// SPDX-License-Identifier: MIT
#include "doctor_files.hpp"

#include "../lib/core/words.hpp"
#include "core/nearest.hpp"
#include "doctor_collect.hpp"
#include "doctor_times.hpp"
#include "output.hpp"
#include "recordings.hpp"
#include "sdma/doctor/read.hpp"
#include "sdma/trace/write.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <functional>
#include <memory>
#include <set>

namespace sdma::tool {
namespace {

/// The bytes of a core file, which may be larger than memory.
class MappedFile {
 public:
  /// A file out of an archive.
  explicit MappedFile(std::string bytes) : own_(std::move(bytes)), at_(own_.data()), bytes_(own_.size()) {}
  static std::shared_ptr<MappedFile> open(const std::string& path) {
    struct stat st {};
    // A pipe is not even opened: its writer would meet a reader who goes away at once.
    if (::stat(path.c_str(), &st) != 0 || !S_ISREG(st.st_mode)) return nullptr;
    const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
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

/// A recording whose allocations name the address of a fault is of use without a copy.
constexpr CopiesOptions kWithMemory{.generation = {}, .memory_alone = true};
/// Diagnostic::rule of a file in an archive that the doctor does not use.
constexpr std::string_view kNotKnown = "not-known";

/// Reads files of every form into one snapshot.
class Files {
 public:
  explicit Files(const DoctorFiles& o) : o_(o) {}

  Result<FilesRead, Diagnostic> read() {
    // Memory first: the rings of a gpucore file's queues may be in the kernel's core file.
    const auto host_core = [](const std::string& path) {
      const auto file = path == "-" ? nullptr : MappedFile::open(path);
      return file && is_host_core(file->bytes());
    };
    auto paths = o_.files;
    std::stable_partition(paths.begin(), paths.end(), host_core);
    for (const auto& path : paths)
      if (auto done = add({.path = path, .form = o_.form, .archives = true, .streams = true}); !done)
        wrong(std::move(done.error()));
    if (auto done = place_all(); !done) wrong(std::move(done.error()));
    for (auto& n : align_times(s_, copies_)) s_.notes.push_back(std::move(n));
    for (auto& p : s_.page_faults) name_copy(p);
    if (s_.queues.empty() && !logs_) return nothing();
    for (const auto& e : errors_) report(e);
    if (s_.from.empty())
      s_.from = o_.files.size() == 1
                    ? shown(o_.files.front())
                    : fmt::format("{} and {} other files", shown(o_.files.front()), o_.files.size() - 1);
    if (s_.peek)
      s_.peek = [peek = std::move(s_.peek), cores = cores_](GpuVa va, std::span<std::byte> out) {
        return peek(va, out);
      };
    const bool several = o_.files.size() > 1 || members_ > 1;
    const bool faulted = several && s_.queues.empty() && !s_.page_faults.empty();
    return FilesRead{std::move(s_), !errors_.empty(), faulted};
  }

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
    if (doctor::is_snapshot(head)) return saved(*in);
    if (head.starts_with("{\"sdma_trace\"")) return trace(*in);
    if (is_dump(bytes)) return ring_file(*in);
    if (head.starts_with(kDatabaseMark)) {
      auto c =
          file.contents ? read_rocpd(*file.contents, in->name(), kWithMemory) : load_copies(file.path, kWithMemory);
      if (!c) return std::move(c.error());
      return recorded(*std::move(c));
    }
    return in->is_text() ? text(*in) : binary(*in);
  }

  /// A bug report has files of many kinds. Those that are neither a log nor a ring with positions are named in a note.
  Result<void, Diagnostic> archive(const std::string& name, Unpacked all) {
    auto& members = all.members;
    if (all.rest) wrong(std::move(*all.rest));
    if (all.begun) begun(name, all.begun->bytes);
    constexpr std::size_t kLinksNamed = 8;
    const auto shown_links = std::min(kLinksNamed, all.left_out.size());
    if (shown_links > 0)
      s_.notes.push_back(fmt::format(
          "{}: not followed, because only files are read: {}{}", name,
          fmt::join(all.left_out.begin(), all.left_out.begin() + static_cast<std::ptrdiff_t>(shown_links), ", "),
          all.left_out.size() > kLinksNamed ? fmt::format(", and {} more", all.left_out.size() - kLinksNamed) : ""));
    std::stable_partition(members.begin(), members.end(),
                          [](const Member& m) { return is_host_core(std::as_bytes(std::span(m.bytes))); });
    // With --save, the doctor has written everything into one of them.
    const auto saved =
        std::find_if(members.begin(), members.end(), [](const Member& m) { return doctor::is_snapshot(m.bytes); });
    if (saved != members.end()) return add({.path = name, .contents = std::move(saved->bytes)});
    const auto collected = std::find_if(members.begin(), members.end(), [](const Member& m) {
      return m.name == kCollectedName && m.bytes.starts_with(kCollectedFirst);
    });
    if (collected != members.end()) {
      note_collected(name, collected->bytes);
      std::string others;
      for (const auto& m : members)
        if (!is_evidence(m.name)) others += fmt::format("{}{}", others.empty() ? "" : ", ", m.name);
      s_.notes.push_back(fmt::format("{}: for people: {}", name, others));
      std::erase_if(members, [](const Member& m) { return !is_evidence(m.name); });
    }
    const bool report_of_all = members.size() > 1 || collected != members.end();
    members_ += members.size();
    std::string left;
    for (auto& m : members) {
      const InputOptions file{.path = report_of_all ? name + ": " + m.name : name, .contents = std::move(m.bytes)};
      in_report_ = report_of_all;
      auto done = add(file);
      in_report_ = false;
      if (!done && done.error().rule != kNotKnown) wrong(std::move(done.error()));
      else if (!done) left += fmt::format("{}{} ({})", left.empty() ? "" : ", ", m.name, done.error().message);
    }
    if (!left.empty())
      s_.notes.push_back(
          fmt::format("{}: not used, because they are neither logs, recordings, core files "
                      "nor rings with positions: {}.",
                      name, left));
    return {};
  }
  /// Of the file in which an archive is cut off: the whole lines of a log. A part of a dump would be another dump.
  void begun(const std::string& name, std::string_view bytes) {
    const auto lines = bytes.substr(0, bytes.rfind('\n') + 1);
    if (!doctor::is_kernel_log(lines)) return;
    s_.notes.push_back(fmt::format("{}: cut off; the lines of a log before that are read", name));
    doctor::add_kernel_log(s_, lines, name, o_.pid);
    ++logs_;
  }
  /// What a collector could not read may have said more.
  void note_collected(const std::string& name, std::string_view text) {
    s_.notes.push_back(fmt::format("{}: {}", name, detail::take_line(text)));
    while (!text.empty())
      if (const auto line = detail::take_line(text); line.starts_with("not read: ") || line.starts_with("left out"))
        s_.notes.push_back(fmt::format("{}: {}", name, line));
  }
  /// A page that a recorded copy reads or writes, or that was allocated.
  void name_copy(doctor::PageFault& p) const {
    for (const auto& c : copies_)
      if (const auto place = place_in(c, p.page.value, p.process); !place.empty())
        p.copy += (p.copy.empty() ? "" : "; in ") + place;
  }
  void wrong(Diagnostic d) { errors_.push_back(std::move(d)); }
  /// Neither a queue nor a log. The last error is the answer.
  Diagnostic nothing() {
    if (errors_.empty()) {
      for (const auto& n : s_.notes) report({.severity = Severity::note, .message = n});
      return {.where = shown(o_.files.front()),
              .message = "there is no queue in this input",
              .hint = "give the dump of a ring, a trace.jsonl or a gpucore file as well"};
    }
    for (std::size_t i = 0; i + 1 < errors_.size(); ++i) report(errors_[i]);
    return std::move(errors_.back());
  }

  Result<void, Diagnostic> core(const InputOptions& in) {
    const auto file = in.contents ? std::make_shared<MappedFile>(*in.contents) : MappedFile::open(in.path);
    if (!file)
      return Diagnostic{.where = shown(in.path),
                        .message = "a core file has to be a regular file",
                        .hint = "save it, and give its name"};
    cores_.push_back(file);
    return doctor::add_core(s_, file->bytes(), shown(in.path));
  }
  Result<void, Diagnostic> saved(Input& in) {
    if (!s_.queues.empty() || o_.files.size() > 1)
      return Diagnostic{
          .where = in.name(), .message = "is a whole snapshot, to which no file can be added", .hint = "give it alone"};
    auto text = in.whole_text();
    if (!text) return std::move(text.error());
    auto s = doctor::snapshot_from_json(*text, in.name());
    if (!s) return std::move(s.error());
    s_ = std::move(*s);
    return {};
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
    if (o_.rptr || o_.wptr) {
      rings_.push_back({{.dwords = std::move(d->dwords), .rptr = d->read, .wptr = d->wptr}, in.name()});
      return {};
    }
    doctor::add(s_, *d, in.name());
    s_.queues.back().generation = chosen_for(in.name(), {});
    return {};
  }
  /// While a log is waited for, what it has said by now.
  void tell(const std::string& name, const std::function<void(doctor::Snapshot&)>& known) {
    doctor::Snapshot now;
    known(now);
    const auto say = [&](std::string line) {
      if (told_.insert(line).second) report({.severity = Severity::note, .where = name, .message = std::move(line)});
    };
    for (auto& f : now.page_faults) {
      f.reports = 1;  // it is the same one
      say("page fault at " + in_words(f));
    }
    for (const auto& e : now.events) {
      const auto origin = e.origin.words.empty() ? "" : e.origin.words + ": ";
      const auto device = e.device.empty() ? "" : "GPU " + e.device + ": ";
      say(fmt::format("{}{}{}: {}{}", origin, device, e.said, e.means,
                      e.to_do.empty() ? "" : " To do: " + e.to_do + "."));
    }
  }
  Result<void, Diagnostic> text(Input& in) {
    std::string listed;                     // a recording, or what the HIP runtime has printed, which may list copies
    bool begun = false, recording = false;  // by how the text begins
    const auto more = [&](std::string& to, const auto& known) -> Result<bool, Diagnostic> {
      auto any = in.next(to, [&] { tell(in.name(), known); });
      constexpr std::string_view kSource = ".cpp";
      if (any && !begun) recording = begins_recording(to);
      begun = true;
      if (any && (recording || !listed.empty() || ::memmem(to.data(), to.size(), kSource.data(), kSource.size())))
        listed += to;
      return any;
    };
    const auto notes = s_.notes.size() + s_.page_faults.size() + s_.events.size();
    auto rest = doctor::add_kernel_log(s_, more, in.name(), o_.pid);
    if (!rest) return std::move(rest.error());
    logs_ += s_.notes.size() + s_.page_faults.size() + s_.events.size() > notes;
    if (!listed.empty()) {
      auto c = read_copies(listed, in.name(), kWithMemory);
      if (c) return recorded(*std::move(c));
      if (recording) return not_known(std::move(c.error()));
    }
    if (!rest->has_dump) return {};
    auto dumps = read_ring_text(rest->text, in.name());
    if (!dumps && dumps.error().rule == kLogWithoutDump) return {};
    if (!dumps) return not_known(std::move(dumps.error()));
    for (auto& d : dumps->dumps) {
      names_.push_back(d.ring);
      if (!o_.ring.empty() && d.ring != o_.ring) continue;
      if (in_report_ && !d.rptr && !d.wptr && !o_.has_positions()) return without_positions();
      if (d.dwords.empty()) return empty(in.name());
      if (!d.form.empty())
        report({.severity = Severity::note,
                .where = in.name(),
                .message = "read as " + d.form + generation_text(o_.generation, d.generation)});
      rings_.push_back({std::move(d), in.name()});
    }
    for (const auto& b : dumps->buffers) s_.words.add(GpuVa{b.va}, std::as_bytes(std::span(b.dwords)));
    for (const auto& n : dumps->notes) s_.notes.push_back(n.message);
    return {};
  }
  Result<void, Diagnostic> recorded(RecordedCopies c) {
    s_.notes.push_back(
        c.copies.empty()
            ? fmt::format("{}: it lists allocations and frees of memory", c.file)
            : fmt::format("{}: it lists copies: sdma trace --schedule FILE writes them as a schedule", c.file));
    copies_.push_back(std::move(c));
    ++logs_;
    return {};
  }
  Result<void, Diagnostic> binary(Input& in) {
    auto ring = in.ring();
    if (!ring) return not_known(std::move(ring.error()));
    if (in_report_ && !ring->positions.rptr && !o_.has_positions()) return without_positions();
    if (ring->dwords.empty()) return empty(in.name());
    rings_.push_back(
        {{.dwords = std::move(ring->dwords), .rptr = ring->positions.rptr, .wptr = ring->positions.wptr}, in.name()});
    return {};
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

  /// --rptr and --wptr are those of the only ring, or of the only one that has no positions of its own.
  Result<void, Diagnostic> place_all() {
    if (!o_.ring.empty() && rings_.empty())
      return no_such_ring(shown(o_.files.front()), o_.ring, {names_.begin(), names_.end()});
    const bool only = rings_.size() == 1 && s_.queues.empty();
    const auto is_open = [&](const Ring& r) { return only || (!r.dump.rptr && !r.dump.wptr); };
    const auto open = std::count_if(rings_.begin(), rings_.end(), is_open);
    if ((o_.base != 0 && s_.queues.size() + rings_.size() > 1) ||
        ((o_.rptr || o_.wptr) && open != 1 && !rings_.empty()))
      return Diagnostic{
          .where = shown(o_.files.front()),
          .message = fmt::format("--rptr, --wptr and --base are those of one ring, but there are {}{}",
                                 s_.queues.size() + rings_.size(), open == 0 ? ", with positions of their own" : ""),
          .hint = names_.size() > 1 && !names_.front().empty()
                      ? "choose one: --ring=" + names_.front()
                      : "give `.ring` files, which have positions of their own"};
    for (auto& r : rings_)
      if (auto done = place(r.dump, r.name, (o_.rptr || o_.wptr) && is_open(r)); !done) wrong(std::move(done.error()));
    return {};
  }
  /// A ring whose positions are `given` on the command line, or come from its dump: they have to lie in it.
  Result<void, Diagnostic> place(const TextDump& d, const std::string& name, bool given) {
    RingPositions at{.first = 0, .generation = chosen_for(name, d.generation)};
    if (given) at.rptr = o_.rptr, at.wptr = o_.wptr;
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

  struct Ring {
    TextDump dump;
    std::string name;  ///< of its file
  };

  const DoctorFiles& o_;
  doctor::Snapshot s_;
  std::vector<Ring> rings_{};                         // of dumps, until all files are read
  std::vector<RecordedCopies> copies_{};              // of logs of the HIP runtime, and of other tools
  std::vector<std::string> names_{};                  // of the rings of texts
  std::vector<std::shared_ptr<MappedFile>> cores_{};  // `peek` reads them
  std::set<std::string> told_{};                      // while a log was waited for
  std::vector<Diagnostic> errors_{};                  // of files and parts that could not be read
  std::size_t logs_ = 0, members_ = 0;                // logs that were read; files of archives
  bool in_report_ = false;                            // the file that is read is one of several in an archive
};

}  // namespace

Result<FilesRead, Diagnostic> read_files(const DoctorFiles& o) { return Files{o}.read(); }

}  // namespace sdma::tool
