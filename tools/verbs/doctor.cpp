// SPDX-License-Identifier: MIT
// sdma doctor: why queues hang, from dumps, recordings and core files, a process, or a program that it runs.
#include "sdma/doctor/attach.hpp"
#include "sdma/doctor/diagnose.hpp"

#include "archive.hpp"
#include "doctor_collect.hpp"
#include "doctor_files.hpp"
#include "doctor_live.hpp"
#include "input.hpp"
#include "interrupt.hpp"
#include "output.hpp"
#include "shared_options.hpp"
#include "verb.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <memory>

namespace sdma::tool {
namespace {

struct WordAt {
  std::uint64_t va{}, value{};
};

struct DoctorArguments : DoctorFiles {
  std::vector<FileAt> buffers;
  std::vector<WordAt> words;
  std::vector<doctor::HostWait> waits;
  std::chrono::nanoseconds stalled{};
  bool after_reset = false;
  bool all_queues = false, all_threads = false, json = false;
  std::string output = "-", save;
  CollectOptions collect;
  LiveOptions live;
};

std::string text_of(const DoctorArguments& o, const doctor::Diagnosis& d) { return o.json ? to_json(d) : to_text(d); }

/// With --save: what the answer was made from, and the answer. `s` keeps what was read.
int save(const DoctorArguments& o, const doctor::Snapshot& s, const doctor::Diagnosis& d) {
  if (o.save.empty()) return kOk;
  const auto done = save_archive(o.save, {{"snapshot.json", to_json(s)}, {"answer.txt", to_text(d)}});
  return done ? kOk : (report(done.error()), kInput);
}

/// A program's own output is on stdout, so what is said about it goes to stderr.
int run_under_doctor(const DoctorArguments& o) {
  if (!o.files.empty()) return complain("a program and FILEs cannot be examined together", "sdma doctor --help");
  return examine_program(o.live, [&](const doctor::Snapshot& s, const doctor::Diagnosis& d) {
    (void)std::fputs(text_of(o, d).c_str(), stderr);
    (void)save(o, s, d);
  });
}

/// --attach alone: names the processes that it may mean.
int no_file(const LiveOptions& o) {
  std::string list;
  for (const int pid : doctor::gpu_processes_below(0)) list += fmt::format("{}{}", list.empty() ? "" : ", ", pid);
  if (o.attach)
    return complain("which process? " + (list.empty() ? "None uses a GPU" : "These use a GPU: " + list),
                    "sdma doctor --attach PID, or --processes for all of them");
  return complain("no FILE given", "sdma doctor --help");
}

/// What hangs or faulted comes first; then what could not be read, because it may have said more.
int code_of(doctor::Verdict v, const FilesRead& read) {
  if (v == doctor::Verdict::hung || read.faulted) return kRefuted;
  if (read.unread) return kInput;
  if (v == doctor::Verdict::undecided) return kUndecided;
  return v == doctor::Verdict::waits ? kWaits : kOk;
}

int doctor_verb(const DoctorArguments& o) {
  if (!o.collect.path.empty()) {
    if (!o.files.empty() || !o.live.program.empty() || o.live.attach || !o.save.empty())
      return complain("--collect takes what this machine shows, and no FILE, process or program",
                      "sdma doctor --collect " + o.collect.path);
    return collect(o.collect);
  }
  if (o.collect.anonymous)
    return complain("--anonymous is a part of --collect", "sdma doctor --collect report.tar.gz --anonymous");
  if (!o.live.program.empty()) return run_under_doctor(o);
  std::vector<std::string> inputs = o.files;
  for (const auto& b : o.buffers) inputs.push_back(b.path);
  if (o.files.empty() && !o.live.processes) return no_file(o.live);
  if (reads_stdin_twice(inputs) || overwrites({{"-o", o.output}, {"--save", o.save}}, inputs)) return kUsage;
  const auto pids = pids_of(o.files, o.live);
  if (o.live.processes && (pids.empty() || !o.files.empty()))
    return complain(pids.empty() ? "no process uses a GPU" : "--processes takes all processes, and no FILE",
                    "sdma doctor --help");
  Doing watching(pids.empty() ? "reading files"
                              : fmt::format("watching the queues of {} for {} ms",
                                            pids.size() == 1 ? fmt::format("process {}", pids[0])
                                                             : fmt::format("{} processes", pids.size()),
                                            o.live.watch / std::chrono::milliseconds(1)));
  FilesRead read;
  if (pids.empty()) {
    auto all = read_files(o);
    if (!all) return report(all.error()), kInput;
    read = std::move(*all);
  } else {
    auto live = examine_processes(pids, o.live);
    if (!live) return report(live.error()), kInput;
    read.snapshot = std::move(*live);
  }
  watching.now("examining what was read");
  auto* const s = &read.snapshot;
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
  s->stalls = s->stalls || o.stalled.count() > 0;
  s->after_reset = s->after_reset || o.after_reset;
  keep_what_is_read(*s);
  const auto d = diagnose(*s);
  int code = write_text(o.output, text_of(o, d));
  if (code == kOk) code = save(o, *s, d);
  if (code != kOk) return code;
  if (interrupted != 0) {
    if (o.json && o.output == "-") (void)write_text("-", "{\"complete\":false}\n");
    return stopped("the answer is that of what had come by then");
  }
  return code_of(d.verdict(), read);
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
          "them (.gz, .xz, .tar.gz), read as one snapshot; - is standard input. Instead of files: process IDs or, after --, a program that the doctor runs")
      .type("");
  add_form(verb, o->form,
           "contents of each FILE that is a ring: bytes, hex text, a dump with positions, or a ring file of debugfs "
           "(default: detect)");
  add_format(verb, "text", o->json, "output form: a paragraph, a table and packets (default), or one object");
  add_generation(verb, o->generation);
  add_positions(verb, o->rptr, o->wptr);
  verb.value("--ring", o->ring, "name of the ring, if a text has several: sdma0").type("NAME");
  add_parsed(verb, "--base", o->base, parse_size, "an address", "address of the ring's first dword").type("VA");
  add_buffers(verb, o->buffers, "file that holds the memory at VA: indirect buffers, words; may be repeated");
  add_each(verb, "--word", o->words, parse_word, "VA=VALUE with an aligned address, such as 0x7f0000001000=3",
           "value of a word in memory; may be repeated")
      .type("VA=VALUE");
  add_each(verb, "--waits", o->waits, parse_wait, "VA:FUNC:VALUE, such as 0x7f0000001000:lt:1",
           "a host thread sleeps until the word at VA satisfies FUNC VALUE; may be repeated")
      .type("VA:FUNC:VALUE");
  add_parsed(verb, "--stalled-for", o->stalled, parse_time, "a time, such as 5s or 500ms",
             "the queues have not moved for this long, so report unsatisfied waits as hangs")
      .type("TIME");
  verb.flag("--after-reset", o->after_reset,
            "the engine of the queues was reset: say what is complete, what may be half done, and what to send again; "
            "without it, a log that reports such a reset says so");
  verb.flag("--all-queues", o->all_queues, "the FILEs contain all queues of the process");
  verb.flag("--all-threads", o->all_threads,
            "only threads named by --waits will store to a word, so report waits for the host as hangs");
  add_parsed(verb, "--pid", o->pid, parse_process, "the number of a process",
             "if a log has page faults of several processes, use only those of process PID")
      .type("PID");
  add_live(verb, o->live);
  verb.value("-o,--output", o->output, "output file; - is standard output").type("FILE");
  verb.value("--save", o->save,
             "write the input of the answer, and the answer, to an archive that sdma doctor can read on any machine")
      .type("FILE.tar.gz");
  verb.value(
          "--collect", o->collect.path,
          "take what this machine shows of its GPUs into one archive that is examined elsewhere: the kernel's log, dumps "
          "of the driver (which it deletes after five minutes), KFD's and debugfs' files of SDMA, topology, versions, "
          "and maps and threads of the processes that use a GPU. Nothing is changed. What this user may not read is "
          "named; root may read all. Ends within 30 s")
      .type("OUT.tar.gz");
  verb.flag("--anonymous", o->collect.anonymous, "with --collect: without names of hosts, users and processes");
  verb.exits({{kOk, "nothing hangs; with a program: the program's own exit code"},
              {kRefuted, "something hangs, or --end ended the program"},
              {kInput, "a FILE cannot be read, and nothing is known to hang; or a process cannot be examined"},
              {kUndecided, "too little is known, or the reason is a guess"},
              {kWaits, "a queue waits for the host, which may still continue"}});
  verb.manual("docs/doctor.md, docs/messages.md");
  verb.footer(
      "Examples:\n"
      "  sdma doctor stuck.ring other.ring --stalled-for=5s --word=0x7f0000001000=3\n"
      "  sdma doctor --rptr=0x40 --wptr=0x80 ring.bin   a ring, with its positions\n"
      "  sdma doctor run.jsonl                          a recording of a run\n"
      "  sdma doctor core.4711 gpucore.4711 dmesg.txt   core files and the log\n"
      "  sdma doctor report.tar.gz                      the same, or rings, in one file\n"
      "  sdma doctor --attach 4711                      the queues of a process\n"
      "  sdma doctor --attach --processes               those of all processes\n"
      "  sudo sdma doctor --collect report.tar.gz       on the machine of the hang\n"
      "  sdma doctor --after=10s --end -- ./my_program  once its queues do not move\n"
      "  sdma doctor --json stuck.ring | jq .findings[0].class");
  action = [o] { return doctor_verb(*o); };
}

}  // namespace sdma::tool
