// SPDX-License-Identifier: MIT
// Logs of several machines, or of several starts of one: no fact of one gets a process or a timeout of another.
#include "log_forms.hpp"

#include "doctor/kernel_log.hpp"
#include "sdma/doctor/diagnose.hpp"
#include "sdma/doctor/read.hpp"
#include "support/catch.hpp"

using namespace sdma;
using namespace sdma::doctor;

namespace {

/// Of which machine a record is.
enum class Of : std::uint8_t { quiet, other };
struct Said {
  Of of;
  std::uint64_t us;
  std::string said;
};

constexpr std::uint64_t kFaultAt = 812400126;

std::string driver(std::string_view said) { return fmt::format("amdgpu 0000:c1:00.0: amdgpu: {}", said); }

/// A fault without a process on one machine, at the same GPU, moment, VMID and PASID as a fault and a timeout with
/// processes on another: everything that joins lines would join these.
std::vector<Said> strangers() {
  std::vector<Said> all;
  const std::string first = "[mmhub0] no-retry page fault (src_id:0 ring:157 vmid:8 pasid:32771)";
  const auto both = [&](std::string_view quiet, std::string_view other) {
    const auto us = kFaultAt + all.size();
    if (!quiet.empty()) all.push_back({Of::quiet, us, driver(quiet)});
    if (!other.empty()) all.push_back({Of::other, us, driver(other)});
  };
  both(first, first);
  both("  in page starting at address 0x00007faaaaaaa000 from IH client 0x12 (VMC)",
       " Process stranger pid 666 thread stranger pid 667");
  both("\t Faulty UTCL2 client ID: SDMA0 (0x8)",
       "  in page starting at address 0x00007fbbbbbbb000 from IH client 0x12 (VMC)");
  both("", "  cookie node_id 0 fault from die AID1");
  both("", "\t Faulty UTCL2 client ID: TCP (0x0)");
  both("", "\t RW: 0x1");
  both("ring sdma1 timeout, signaled seq=8, emitted seq=9", "ring sdma0 timeout, signaled seq=5, emitted seq=7");
  both("", "Process information: process stranger pid 666 thread stranger pid 667");
  return all;
}

std::string_view host(Of of) { return of == Of::quiet ? "node7" : "node8"; }
std::string stamp(const Said& s) { return logs::stamp({s.us, ""}); }

using Lines = std::vector<Said>;
struct SourceForm {
  const char* name;
  std::string quiet, other;  ///< the words of both origins
  std::function<std::string(const Lines&)> print;
};

std::function<std::string(const Lines&)> each(std::function<std::string(const Said&)> line) {
  return [line](const Lines& all) {
    std::string out;
    for (const auto& s : all) out += line(s) + "\n";
    return out;
  };
}
/// The lines of one machine, then those of the other, each below a heading.
std::function<std::string(const Lines&)> parts(std::function<std::string(Of)> head,
                                               std::function<std::string(const Said&)> line) {
  return [head, line](const Lines& all) {
    std::string out;
    for (const auto of : {Of::quiet, Of::other}) {
      out += head(of);
      for (const auto& s : all)
        if (s.of == of) out += line(s) + "\n";
    }
    return out;
  };
}
std::string dmesg(const Said& s) { return stamp(s) + s.said; }
std::string boot_id(Of of) { return std::string(32, of == Of::quiet ? 'a' : 'b'); }

std::vector<SourceForm> interleaved() {
  const std::string quiet = "host node7", other = "host node8";
  return {
      {"journalctl of two hosts", quiet, other,
       each([](auto& s) { return fmt::format("Nov 22 10:00:01 {} kernel: {}", host(s.of), s.said); })},
      {"rsyslog", quiet, other,
       each([](auto& s) { return fmt::format("Nov 22 10:00:01 {} kernel: {}", host(s.of), dmesg(s)); })},
      {"syslog of RFC 5424", quiet, other, each([](auto& s) {
         return fmt::format("<3>1 2026-11-22T10:00:01.402117Z {} kernel - - - {}", host(s.of), s.said);
       })},
      {"journalctl -o export", quiet, other, each([](auto& s) {
         return fmt::format("__CURSOR=s=0;i=1\n_BOOT_ID={}\n_HOSTNAME={}\nMESSAGE={}\n_SOURCE_MONOTONIC_TIMESTAMP={}\n",
                            boot_id(s.of), host(s.of), s.said, s.us);
       })},
      {"journalctl -o json", quiet, other, each([](auto& s) {
         return fmt::format(
             "{{\"_MACHINE_ID\":\"0\",\"_HOSTNAME\":\"{}\",\"MESSAGE\":{},\"_SOURCE_MONOTONIC_TIMESTAMP\":\"{}\"}}",
             host(s.of), logs::in_quotes(s.said), s.us);
       })},
      {"pdsh", quiet, other, each([](auto& s) { return fmt::format("{}: {}", host(s.of), dmesg(s)); })},
      {"pdsh dmesg -T", quiet, other,
       each([](auto& s) { return fmt::format("{}: [Sun Nov 22 10:00:01 2026] {}", host(s.of), s.said); })},
      {"kubectl logs --prefix", "host pod/node7/dmesg", "host pod/node8/dmesg",
       each([](auto& s) { return fmt::format("[pod/{}/dmesg] {}", host(s.of), dmesg(s)); })},
      {"kubectl logs --prefix --timestamps", "host pod/node7/dmesg", "host pod/node8/dmesg", each([](auto& s) {
         return fmt::format("[pod/{}/dmesg] 2026-11-22T10:00:01.402117000Z {}", host(s.of), s.said);
       })},
      {"docker compose", quiet, other, each([](auto& s) { return fmt::format("{}  | {}", host(s.of), dmesg(s)); })},
      {"grep -n", "host /var/node7.log", "host /var/node8.log",
       each([](auto& s) { return fmt::format("/var/{}.log:17:{}", host(s.of), dmesg(s)); })},
      {"fluent-bit", quiet, other, each([](auto& s) {
         return fmt::format(
             "[1790000000.5, {{\"log\": {}, \"kubernetes\": {{\"pod_name\": \"x\", \"host\": \"{}\"}}}}]",
             logs::in_quotes(s.said), host(s.of));
       })},
      {"fluentd", quiet, other, each([](auto& s) {
         return fmt::format("2026-11-22T10:00:01+00:00\tkernel\t{{\"host\":\"{}\",\"message\":{}}}", host(s.of),
                            logs::in_quotes(s.said));
       })},
      {"docker compose, of a collector", quiet, other, each([](auto& s) {
         return fmt::format("collect-1  | {{\"message\":{},\"hostname\":\"{}\"}}", logs::in_quotes(s.said), host(s.of));
       })},
      {"Elastic", quiet, other, each([](auto& s) {
         return fmt::format(
             "{{\"_source\": {{\"@timestamp\": \"2026-11-22T10:00:01.4Z\", \"message\": {}, \"host\": "
             "{{\"ip\": [\"10.0.0.7\"], \"name\": \"{}\"}}}}}}",
             logs::in_quotes(s.said), host(s.of));
       })},
      {"Loki", quiet, other,
       parts(
           [](Of of) {
             return fmt::format("{{\"stream\": {{\"job\": \"k\", \"host\": \"{}\"}}, \"values\": [[\"1\", \"-\"]",
                                host(of));
           },
           [](auto& s) {
             const bool last =
                 s.said.find("sdma1") != std::string::npos || s.said.find("information") != std::string::npos;
             return fmt::format(", [\"{}\", {}]{}", 1790000000000000000 + s.us * 1000, logs::in_quotes(s.said),
                                last ? "]}" : "");
           })},
      {"ansible", quiet, other,
       [](const Lines& all) {
         std::string out = "{\"plays\": [{\"tasks\": [{\"hosts\": {";
         for (const auto of : {Of::quiet, Of::other}) {
           out += fmt::format("{}\"{}\": {{\"stdout_lines\": [\"\"", of == Of::quiet ? "" : ", ", host(of));
           for (const auto& s : all)
             if (s.of == of) out += ", " + logs::in_quotes(dmesg(s));
           out += "]}";
         }
         return out + "}}]}]}\n";
       }},
      {"a table of Splunk", quiet, other,
       each([](auto& s) { return fmt::format("\"2026-11-22T10:00:01.000+0000\",{},\"{}\"", host(s.of), dmesg(s)); })},
      {"pairs, as of logfmt", quiet, other, each([](auto& s) {
         return fmt::format("ts=2026-11-22T10:00:01.4Z level={} host={} msg=\"{}\"", s.us % 2 == 0 ? "error" : "info",
                            host(s.of), dmesg(s));
       })},
      {"busybox", quiet, other,
       each([](auto& s) { return fmt::format("Nov 22 10:00:01 {} kern.err kernel: {}", host(s.of), dmesg(s)); })},
      {"addresses for names", "host 10.0.0.7", "host 10.0.0.8", each([](auto& s) {
         return fmt::format("<3>Nov 22 10:00:01 10.0.0.{} kernel: {}", s.of == Of::quiet ? 7 : 8, s.said);
       })},
      {"srun -l", "host 0", "host 1",
       each([](auto& s) { return fmt::format("{}: {}", static_cast<int>(s.of), dmesg(s)); })},
      {"mpirun --tag-output", "host 1,0", "host 1,1",
       each([](auto& s) { return fmt::format("[1,{}]<stdout>:{}", static_cast<int>(s.of), dmesg(s)); })},
      {"stern", quiet, other, each([](auto& s) { return fmt::format("{} dmesg {}", host(s.of), dmesg(s)); })},
      {"a log of Google's cloud", quiet, other, each([](auto& s) {
         return fmt::format(
             "{{\"jsonPayload\": {{\"message\": {}}}, \"resource\": {{\"labels\": {{\"node_name\": \"{}\"}}}}, "
             "\"timestamp\": \"2026-11-22T10:00:01.4Z\"}}",
             logs::in_quotes(s.said), host(s.of));
       })},
      {"OpenTelemetry", quiet, other, each([](auto& s) {
         return fmt::format(
             "{{\"resourceLogs\": [{{\"resource\": {{\"attributes\": [{{\"key\": \"host.name\", \"value\": "
             "{{\"stringValue\": \"{}\"}}}}]}}, \"scopeLogs\": [{{\"logRecords\": [{{\"timeUnixNano\": \"{}\", "
             "\"body\": {{\"stringValue\": {}}}}}]}}]}}]}}",
             host(s.of), 1790000000000000000 + s.us * 1000, logs::in_quotes(s.said));
       })},
      {"lists of JSON", quiet, other,
       [](const Lines& all) {
         std::string out = "{";
         for (const auto of : {Of::quiet, Of::other}) {
           out += fmt::format("{}\"{}\": [\"\"", of == Of::quiet ? "" : ", ", host(of));
           for (const auto& s : all)
             if (s.of == of) out += ", " + logs::in_quotes(dmesg(s));
           out += "]";
         }
         return out + "}\n";
       }},
      {"salt", quiet, other,
       parts([](Of of) { return fmt::format("{}:\n", host(of)); }, [](auto& s) { return "    " + dmesg(s); })},
      {"two shells", quiet, other, parts([](Of of) { return fmt::format("[root@{} ~]# dmesg\n", host(of)); }, dmesg)},
      {"below headings of Markdown", "", "", parts([](Of) { return "### the other one\n"; }, dmesg)},
      {"tail of two files", "host node7.log", "host node8.log",
       parts([](Of of) { return fmt::format("==> {}.log <==\n", host(of)); }, dmesg)},
      {"dshbak", quiet, other,
       parts([](Of of) { return fmt::format("----------------\n{}\n----------------\n", host(of)); }, dmesg)},
      {"ansible, one command", quiet, other,
       parts([](Of of) { return fmt::format("{} | CHANGED | rc=0 >>\n", host(of)); }, dmesg)},
  };
}

std::vector<SourceForm> starts() {
  const auto journal = [](auto& s) { return "Nov 22 10:00:01 n7 kernel: " + s.said; };
  return {
      {"two dmesg, one after the other", "boot 1 of 2", "boot 2 of 2",
       parts([](Of) { return "[    0.000000] Linux version 6.12.1\n"; }, dmesg)},
      {"the same, of which the beginnings are lost", "boot 1 of 2", "boot 2 of 2",
       parts([](Of) { return ""; },
             [](auto& s) {
               return dmesg({s.of, s.us + (s.of == Of::quiet ? 3'000'000u : 0u), s.said});
             })},
      {"journalctl -b all", "host n7, boot 1 of 2 (aaaaaaaa)", "host n7, boot 2 of 2 (bbbbbbbb)",
       parts([](Of of) { return fmt::format("-- Boot {} --\n", boot_id(of)); }, journal)},
      {"journalctl of older systems", "host n7, boot 1 of 2", "host n7, boot 2 of 2",
       parts([](Of of) { return of == Of::quiet ? "" : "-- Reboot --\n"; }, journal)},
      {"journalctl -o json", "host n7, boot 1 of 2 (aaaaaaaa)", "host n7, boot 2 of 2 (bbbbbbbb)", each([](auto& s) {
         return fmt::format(
             "{{\"_HOSTNAME\":\"n7\",\"_BOOT_ID\":\"{}\",\"MESSAGE\":{},\"_SOURCE_MONOTONIC_TIMESTAMP\":\"{}\"}}",
             boot_id(s.of), logs::in_quotes(s.said), s.us);
       })},
      {"syslog, with the start of the kernel", "host n7, boot 1 of 2", "host n7, boot 2 of 2",
       parts([](Of) { return "Nov 22 10:00:01 n7 kernel: Linux version 6.12.1\n"; }, journal)},
  };
}

void check_apart(const SourceForm& form, const std::string& text) {
  CAPTURE(form.name, text);
  const auto facts = facts_of(text, "log");
  REQUIRE(facts.faults.size() == 2);
  const auto& quiet = facts.faults[facts.faults[0].page == GpuVa{0x7faaaaaaa000} ? 0 : 1];
  const auto& other = facts.faults[&quiet == facts.faults.data() ? 1 : 0];
  CHECK(quiet.page == GpuVa{0x7faaaaaaa000});
  CHECK(quiet.process == 0);
  CHECK(quiet.client == "SDMA0");
  CHECK(quiet.die.empty());
  CHECK_FALSE(quiet.write.has_value());
  CHECK(quiet.reports == 1);
  CHECK(quiet.origin.words == form.quiet);
  CHECK(other.page == GpuVa{0x7fbbbbbbb000});
  CHECK(other.process == 666);
  CHECK(other.client == "TCP");
  CHECK(other.die == "AID1");
  CHECK(other.write == true);
  CHECK(other.origin.words == form.other);
  CHECK(facts.without_page == 0);
  REQUIRE(facts.events.size() == 2);
  for (const auto& e : facts.events) {
    const bool is_quiet = e.ring == "sdma1";
    CHECK(e.process == (is_quiet ? std::nullopt : std::optional<std::uint32_t>(666)));
    CHECK(e.origin.words == (is_quiet ? form.quiet : form.other));
  }
}

/// The beginning of the other machine's log is lost: its lines would complete the fault before them.
void check_cut(const SourceForm& form) {
  Lines all{
      {Of::quiet, kFaultAt, driver("[mmhub0] no-retry page fault (src_id:0 ring:157 vmid:8 pasid:32771)")},
      {Of::quiet, kFaultAt + 1, driver("  in page starting at address 0x00007faaaaaaa000 from IH client 0x12 (VMC)")},
      {Of::quiet, kFaultAt + 2, driver("ring sdma1 timeout, signaled seq=8, emitted seq=9")}};
  for (const auto* said :
       {" Process stranger pid 666 thread stranger pid 667", "  cookie node_id 0 fault from die AID1",
        "VM_L2_PROTECTION_FAULT_STATUS:0x00841B5B", "\t Faulty UTCL2 client ID: TCP (0x0)", "\t RW: 0x1",
        "Process information: process stranger pid 666 thread stranger pid 667"})
    all.push_back({Of::other, kFaultAt + all.size(), driver(said)});
  const auto text = form.print(all);
  CAPTURE(form.name, text);
  const auto facts = facts_of(text, "log");
  REQUIRE(facts.faults.size() == 1);
  const auto& f = facts.faults[0];
  CHECK(f.process == 0);
  CHECK(f.die.empty());
  CHECK(f.client.empty());
  CHECK_FALSE(f.status.has_value());
  CHECK_FALSE(f.write.has_value());
  CHECK(f.origin.words == form.quiet);
  REQUIRE(facts.events.size() == 1);
  CHECK_FALSE(facts.events[0].process.has_value());
}

std::string newest_first(const std::string& text) {
  std::string out;
  for (std::size_t at = 0; at < text.size();) {
    const auto end = text.find('\n', at) + 1;
    out.insert(0, text.substr(at, end - at));
    at = end;
  }
  return out;
}

}  // namespace

TEST_CASE("two machines in one log: nothing of one becomes the other's") {
  for (const auto& form : interleaved()) check_apart(form, form.print(strangers())), check_cut(form);
}

TEST_CASE("two starts of a machine in one log: nothing of one becomes the other's") {
  for (const auto& form : starts()) check_apart(form, form.print(strangers())), check_cut(form);
  // The newest line may be the first: then "Linux version" is the last line of its start.
  const auto form = starts()[0];
  check_apart(form, newest_first(form.print(strangers())));
}

TEST_CASE("a start that was saved twice is one") {
  Lines other;
  for (const auto& s : strangers())
    if (s.of == Of::other) other.push_back(s);
  std::string text;
  for (const auto& s : other) text += dmesg(s) + "\n";
  const auto facts = facts_of("[    0.000000] Linux version 6.12.1\n" + text + "[    0.000000] Linux version 6.12.1\n" +
                                  text + "[  900.000000] " + driver("GPU reset begin!") + "\n",
                              "log");
  REQUIRE(facts.faults.size() == 1);
  CHECK(facts.faults[0].reports == 1);
  CHECK(facts.faults[0].origin == LogOrigin{});
  REQUIRE(facts.events.size() == 2);
  CHECK(facts.events[0].reports == 1);
  CHECK(facts.events[1].said == "GPU reset begin!");
  CHECK(facts.sources.empty());
}

TEST_CASE("one start stays one: dates between seconds, a clock that is set back, marks of lines") {
  Lines lines;
  for (const auto& s : strangers())
    if (s.of == Of::other) lines.push_back(s);
  const auto whole = [&](const char* what, const std::function<std::string(const Said&, std::size_t)>& print) {
    std::string text;
    for (std::size_t i = 0; i < lines.size(); ++i) text += print(lines[i], i);
    CAPTURE(what, text);
    const auto facts = facts_of(text, "log");
    REQUIRE(facts.faults.size() == 1);
    CHECK(facts.faults[0].process == 666);
    CHECK(facts.faults[0].write == true);
    CHECK(facts.faults[0].origin.start == 0);
    CHECK(facts.sources.empty());
  };
  whole("other programs write into the same syslog, without seconds", [](auto& s, std::size_t) {
    return fmt::format("Nov 22 10:00:01 n7 kernel: {}\nNov 22 10:00:01 n7 sshd[4711]: session opened\n", dmesg(s));
  });
  whole("drivers and their devices", [](auto& s, std::size_t) {
    return fmt::format("[Sun Nov 22 10:00:01 2026] {}\n[Sun Nov 22 10:00:01 2026] nvme nvme0: 8/0/0 queues\n", s.said);
  });
  whole("programs without a number", [](auto& s, std::size_t) {
    return fmt::format("Nov 22 10:00:01 n7 kernel: {}\nNov 22 10:00:01 n7 systemd: Started\n", s.said);
  });
  whole("a number before each line", [](auto& s, std::size_t i) { return fmt::format("L{}: {}\n", i, dmesg(s)); });
  whole("a level before each line",
        [](auto& s, std::size_t i) { return fmt::format("{}: {}\n", i % 2 == 0 ? "ERROR" : "INFO", dmesg(s)); });
  // At the end of summer time, a local clock goes back. That is no start.
  const auto facts = facts_of("Oct 25 02:59:59 n7 kernel: " + driver("GPU reset begin!") +
                                  "\nOct 25 02:00:01 n7 kernel: " + driver("GPU reset(2) succeeded!") + "\n",
                              "log");
  REQUIRE(facts.events.size() == 2);
  for (const auto& e : facts.events) CHECK(e.origin.start == 0);
}

TEST_CASE("a queue is not blamed for a fault of one of several machines whose page it does not touch") {
  const std::string head = "amdgpu 0000:c1:00.0: amdgpu: ";
  Snapshot s;
  QueueSnapshot q{.name = "q"};
  q.ring.resize(64);
  q.rptr = {0, Source::dump};
  q.wptr = {16, Source::dump};
  s.queues.push_back(q);
  const auto fault = [&](const char* of, const char* page) {
    return fmt::format(
        "{0}: [    5.000000] {1}[mmhub0] no-retry page fault (src_id:0 ring:1 vmid:8 pasid:1)\n"
        "{0}: [    5.000001] {1}  in page starting at address {2} from IH client 0x12 (VMC)\n",
        of, head, page);
  };
  add_kernel_log(s, fault("node7", "0x7faaaaaaa000") + fault("node8", "0x7fbbbbbbb000"), "log");
  REQUIRE(s.page_faults.size() == 2);
  for (const auto& f : diagnose(s).findings) CHECK(f.what != HangClass::fault);
  // Saved and read again, the faults keep their machines.
  const auto again = snapshot_from_json(to_json(s), "saved");
  REQUIRE(again);
  CHECK(again->page_faults[0].origin == s.page_faults[0].origin);
  CHECK(again->page_faults[1].origin.host == "node8");
}

TEST_CASE("a reset on one of several machines is not that of a queue") {
  const auto lost = [](const std::string& log) {
    Snapshot s;
    QueueSnapshot q{.name = "q"};
    q.ring.resize(64);
    q.rptr = {0, Source::dump};
    q.wptr = {16, Source::dump};
    s.queues.push_back(q);
    add_kernel_log(s, log, "log");
    REQUIRE(s.events.size() == 1);
    return !diagnose(s).after_reset.empty();
  };
  const auto reset = driver("Ring sdma0 reset succeeded");
  CHECK(lost("Nov 22 10:00:01 node7 kernel: " + reset + "\n"));
  CHECK_FALSE(lost("Nov 22 10:00:01 node7 kernel: " + reset + "\nNov 22 10:00:01 node8 kernel: usb 3-2: new device\n"));
}
