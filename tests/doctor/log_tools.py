# SPDX-License-Identifier: MIT
"""Logs that the programs of a distribution have made: every message of the table comes out of each form, with its meaning and time.

  log_tools.py SDMA MESSAGES [FORMS]   MESSAGES: the program doctor-messages. FORMS: how many forms log_forms.hpp has

dmesg, journalctl, rsyslogd and syslog-ng print one log that has every message, a page fault, and strangers between them. A form whose
program is not installed is named and left out. Prints a line for each form. Exit code 1 if less than 95 % of the facts come out, if one
is wrong, if a line becomes a queue, or if there are fewer than 60 forms and every program is installed; 77 if no program is.
"""

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time

START, STEP = 8123402117, 3000000  # microseconds since the machine started, and between two records
DEVICE = "amdgpu 0000:c1:00.0: amdgpu: "
STRANGERS = ["usb 3-2: new high-speed USB device number 5 using xhci_hcd", "mlx5_core 0000:9d:00.0 ens9f0np0: Link up",
             "EXT4-fs (nvme1n1p1): mounted filesystem with ordered data mode. Quota mode: none."]
FAULT = ["[mmhub0] no-retry page fault (src_id:0 ring:157 vmid:9 pasid:32779)", " for process mover pid 43117 thread mover pid 43117)",
         "  in page starting at address 0x00007e1234567000 from IH client 0x12 (VMC)", "VM_L2_PROTECTION_FAULT_STATUS:0x00841B5B",
         "\t Faulty UTCL2 client ID: SDMA0 (0x2d)", "\t RW: 0x1"]
PAGE = 0x7E1234567000
REMOTE = "/usr/lib/systemd/systemd-journal-remote"
SECONDS = 60  # for one program


def run(words, **more):
    return subprocess.run(words, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, timeout=SECONDS, **more).stdout


def until(done, what):
    end = time.monotonic() + SECONDS
    while not done():
        if time.monotonic() > end:
            raise SystemExit(f"{what}: nothing for {SECONDS} s")
        time.sleep(0.05)


class Forms:
    """The forms of one log: NAME, whether it has the seconds since the start of the machine, BYTES."""

    def __init__(self, folder, records):
        self.folder, self.records, self.absent = folder, records, []

    def path(self, name, text=None):
        path = os.path.join(self.folder, name)
        if text is not None:
            with open(path, "wb") as f:
                f.write(text.encode())
        return path

    def has(self, program):
        if not shutil.which(program):
            self.absent.append(os.path.basename(program))
        return os.path.basename(program) not in self.absent

    def dmesg(self):
        if not self.has("dmesg"):
            return
        ring = self.path("ring", "".join(f"<3>[{us / 1e6:12.6f}] {said}\n" for us, said in self.records))
        for options, seconds in [("", True), ("-x", True), ("-r", True), ("-t", False), ("-d", True), ("-T", False), ("-e", False),
                                 ("-J", True), ("-k -x", True), ("-L=always", True), ("-L=always -T", False), ("--time-format iso", False),
                                 ("--time-format delta", False), ("-x -d", True), ("-x -T", False), ("-l err", True)]:
            yield f"dmesg {options}", seconds, run(["dmesg", "-F", ring, *options.split()])

    def journalctl(self):
        if not self.has("journalctl") or not self.has(REMOTE):
            return
        entries = ""
        for us, said in self.records:
            entries += (f"__REALTIME_TIMESTAMP={1790000000000000 + us}\n__MONOTONIC_TIMESTAMP={us}\n_TRANSPORT=kernel\nPRIORITY=3\n"
                        "_BOOT_ID=5e0c1d2e3b4a59687786950413223140\nSYSLOG_IDENTIFIER=kernel\nSYSLOG_FACILITY=0\n_HOSTNAME=node7\n"
                        "_MACHINE_ID=11112233445566778899aabbccddeeff\n"
                        f"_SOURCE_MONOTONIC_TIMESTAMP={us}\nMESSAGE\n")
            bytes_ = said.encode()
            entries += len(bytes_).to_bytes(8, "little").decode("latin-1") + said + "\n\n"
        source, journal = self.path("entries"), self.path("one.journal")
        with open(source, "wb") as f:
            f.write(entries.encode("latin-1"))
        run([REMOTE, "-o", journal, source])
        for options, seconds in [("short", False), ("short-full", False), ("short-iso", False), ("short-iso-precise", False),
                                 ("short-precise", False), ("short-monotonic", True), ("short-delta", True), ("short-unix", False),
                                 ("with-unit", False), ("verbose", True), ("export", True), ("json", True), ("json-pretty", True),
                                 ("json-sse", True), ("json-seq", True), ("cat", False), ("short -r", False), ("json -r", True),
                                 ("short --no-hostname", False), ("short-monotonic -r", True)]:
            yield (f"journalctl -o {options}", seconds,
                   run(["journalctl", "-q", "-a", "--no-pager", "--file", journal, "-o", *options.split()]))

    def daemon(self, words, outputs):
        """A daemon that writes these files of as many lines as there are records."""
        process = subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True)
        try:
            def lines(path):
                if not os.path.exists(path):
                    return 0
                with open(path, "rb") as f:
                    return f.read().count(b"\n")
            until(lambda: all(lines(o) >= len(self.records) for o in outputs), words[0])
        finally:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()

    def rsyslog(self):
        if not self.has("rsyslogd"):
            return
        # As the kernel's log comes to it: printk.time puts the seconds into the text.
        source = self.path("rsyslog.in", "".join(f"[{us / 1e6:12.6f}] {said}\n" for us, said in self.records))
        names = ["TraditionalFileFormat", "FileFormat", "SyslogProtocol23Format"]
        text = (f'global(workDirectory="{self.folder}")\nmodule(load="imfile" PollingInterval="1")\n'
                'template(name="json" type="string" string="%jsonmesg%\\n")\n'
                'template(name="forward" type="string" string="<%PRI%>%TIMESTAMP% %HOSTNAME% %syslogtag%%msg%\\n")\n'
                f'input(type="imfile" File="{source}" Tag="kernel:" Facility="kern" Severity="error" addMetadata="off")\n')
        outputs = {}
        for name, template in [(n, "RSYSLOG_" + n) for n in names] + [("json", "json"), ("forward", "forward")]:
            outputs[name] = self.path("rsyslog." + name)
            text += f'*.* action(type="omfile" File="{outputs[name]}" template="{template}" asyncWriting="off")\n'
        self.daemon(["rsyslogd", "-n", "-f", self.path("rsyslog.conf", text), "-i", self.path("rsyslog.pid")], outputs.values())
        for name, path in outputs.items():
            with open(path, "rb") as f:
                yield f"rsyslog {name}", True, f.read()

    def syslog_ng(self):
        if not self.has("syslog-ng"):
            return
        source = self.path("ng.in", "".join(f"[{us / 1e6:12.6f}] {said}\n" for us, said in self.records))
        text = (f'@version: 3.35\noptions {{ stats-freq(0); }};\nsource s {{ file("{source}" follow-freq(0.2) flags(no-parse, kernel) '
                'program-override("kernel") default-facility(kern) default-priority(err)); };\n')
        outputs = {}
        for name, options in [("default", ""), ("iso", "ts-format(iso)"), ("full", "ts-format(full)"), ("unix", "ts-format(unix)"),
                              ("protocol", "flags(syslog-protocol)"), ("isodate", 'template("$ISODATE $HOST $MSGHDR$MSG\\n")'),
                              ("priority", 'template("<$PRI>$DATE $HOST $MSGHDR$MSG\\n")')]:
            outputs[name] = self.path("ng." + name)
            text += f'destination d_{name} {{ file("{outputs[name]}" {options}); }};\nlog {{ source(s); destination(d_{name}); }};\n'
        state = [f"--{o}={self.path('ng.' + o)}" for o in ("persist-file", "pidfile", "control")]
        self.daemon(["syslog-ng", "-F", "--no-caps", "-f", self.path("ng.conf", text), *state], outputs.values())
        for name, path in outputs.items():
            with open(path, "rb") as f:
                yield f"syslog-ng {name}", True, f.read()

    def all(self):
        for make in (self.dmesg, self.journalctl, self.rsyslog, self.syslog_ng):
            yield from make()


def wrong_of(answer, wanted, seconds):
    """How many facts are missing, and those that are wrong."""
    wrong = [f"a queue {q['name']}" for q in answer["queues"]]
    means = {}
    for e in answer["events"]:
        means.setdefault(e["means"], []).append(e)
    found = 0
    for us, meaning in wanted:
        for e in means.get(meaning, []):
            if not seconds or abs(e.get("seconds", -1) - us / 1e6) < 1e-3:
                found += 1
                break
    known = {meaning for _, meaning in wanted}
    wrong += [f"an event that nobody has printed: {e['said']}" for e in answer["events"] if e["means"] not in known]
    faults = answer["page_faults"]
    if len(faults) == 1 and faults[0]["process"] == 43117 and faults[0]["client"] == "SDMA0" and faults[0]["write"]:
        found += 1
    wrong += [f"a fault of {f}" for f in faults if int(str(f["page"]), 0) != PAGE or f.get("process", 0) not in (0, 43117)]
    return len(wanted) + 1 - found, wrong


def main(sdma, messages, forms_of_ours="0"):
    listed = [line.split("\t") for line in run([messages, "--lines"]).decode().splitlines()]
    records, wanted, us = [], [], START
    for i, (line, meaning) in enumerate(listed):
        records += [(us, STRANGERS[i % len(STRANGERS)]), (us + 700, DEVICE + line)]
        wanted.append((us + 700, meaning))
        us += STEP
    records += [(us + 10 * i, DEVICE + line) for i, line in enumerate(FAULT)] + [(us + STEP, STRANGERS[0])]
    failed, facts, missing, forms = 0, 0, 0, int(forms_of_ours)
    with tempfile.TemporaryDirectory() as folder:
        made = Forms(folder, records)
        for name, seconds, text in made.all():
            path = os.path.join(folder, "log")
            with open(path, "wb") as f:
                f.write(text)
            answer = json.loads(run([sdma, "doctor", "--json", path]))
            lost, wrong = wrong_of(answer, wanted, seconds)
            print(f"{name:40} {len(wanted) + 1 - lost} of {len(wanted) + 1}", *wrong, sep="\n  " if wrong else "")
            forms, facts, missing, failed = forms + 1, facts + len(wanted) + 1, missing + lost, failed + len(wrong)
    print(f"{forms} forms, {facts - missing} of {facts} facts, {failed} wrong.", "Not installed: " + ", ".join(made.absent) if made.absent else "")
    if facts == 0:
        return 77
    return 1 if failed or missing * 20 > facts or (forms < 60 and forms_of_ours != "0" and not made.absent) else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
