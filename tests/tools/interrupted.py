#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Ctrl-C in each verb: it says how far it came, JSON has "complete": false, and the exit code is 130.

  interrupted.py PROGRAM SCHEMAS

No case depends on the time. The signal is sent when the verb

  opening   has opened the pipe from which it reads, and which gives nothing
  lines     has printed what it knows of the first half of its input
  progress  is about to show its progress on a terminal. It is stopped there, because the terminal forbids it to write, and
            continues when the signal has been sent
  waiting   has read the buffer's bytes from a pipe, and a run that hangs follows
  ranks     has started the processes of all ranks, which run a schedule that hangs. The signal goes to the parent alone
"""
import json
import os
import pathlib
import pty
import re
import shlex
import signal
import struct
import subprocess
import sys
import tempfile
import threading
import time

try:
    import jsonschema
except ImportError:
    jsonschema = None

SECONDS = 60  # a verb that does not end is killed, and the test fails
HANG = """sdma 1
gpus 2
buffer gpu*.b bytes=4K
signal host.done value=0
queue gpu0.q peer=gpu1
  copy_linear bytes=64 src=gpu0.b dst=gpu1.b
  atomic op=add_rtn_64 addr=host.done value=1
end
host main
  submit *
  wait host.done == 2
end
"""
OPEN = """sdma 1
param k = 1
gpus 2
buffer gpu*.b bytes=64K init=random
signal host.done value=0
for i in 0..20
  choose n in 0..10
  if n > 0
    queue gpu0.q{i} engine=n
      copy_linear bytes=64*k src=gpu0.b dst=gpu1.b[i*64]
    end
  end
end
queue gpu0.last engine=0
  atomic op=add_rtn_64 addr=host.done value=1
end
host main
  submit gpu0.last
  wait host.done == 1
end
"""
QUEUES = 112
# A cycle in which each queue is needed, so a smaller text is sought for long.
CYCLE = "\n".join([
    "sdma 1",
    "gpus 8",
    *(f"signal host.s{i} value=0" for i in range(QUEUES)),
    *(f"""queue gpu{i % 8}.q{i} engine={i // 8}
  poll_mem addr=host.s{i} func=eq reference=1
  fence addr=host.s{(i + 1) % QUEUES} value=1
end""" for i in range(QUEUES)),
    "host main",
    "  submit *",
    "end\n",
])  # fmt: skip
# The terminal's session: starts the verb in another process group, to which the terminal forbids to write, waits until it is stopped for
# that, sends the signal, and lets it write.
LEADER = """
import fcntl, os, signal, subprocess, sys, termios

def forbid(yes):
    all = termios.tcgetattr(2)
    all[3] = all[3] | termios.TOSTOP if yes else all[3] & ~termios.TOSTOP
    termios.tcsetattr(2, termios.TCSANOW, all)

fcntl.ioctl(2, termios.TIOCSCTTY, 0)
forbid(True)
verb = subprocess.Popen(sys.argv[1:], preexec_fn=os.setpgrp)
_, status = os.waitpid(verb.pid, os.WUNTRACED)
if os.WIFSTOPPED(status):
    os.kill(verb.pid, signal.SIGINT)
    forbid(False)
    os.kill(verb.pid, signal.SIGCONT)
    _, status = os.waitpid(verb.pid, 0)
sys.exit(os.waitstatus_to_exitcode(status))
"""
FILES = {"hang.sdma": HANG, "open.sdma": OPEN, "cycle.sdma": CYCLE, "text.txt": "nop count=1\n"}

# Each verb that reads: what it reads from the pipe, and what it says.
OPENING = [
    ("as pipe", "reading pipe"),
    ("calibrate --from pipe", "reading pipe"),
    ("check pipe", "reading pipe, after 0 bytes"),
    ("check hang.sdma pipe", "reading pipe, after 0 bytes"),
    ("compare --measured pipe hang.sdma", "reading pipe"),
    ("contact --read pipe", "reading pipe"),
    ("dis pipe", "reading pipe, after 0 bytes"),
    ("doctor pipe", "reading"),
    ("explore pipe", "reading pipe"),
    ("fmt pipe", "reading pipe"),
    ("reduce pipe", "reading pipe"),
    ("run pipe", "reading pipe"),
    ("simulate --machine pipe hang.sdma", "reading pipe"),
    ("simulate pipe", "reading pipe"),
    ("topology pipe", "reading pipe"),
    ("trace pipe", "reading pipe"),
]
# What the search prints, in text; and what it says.
PROGRESS = [
    ("explore --budget=600s --best=1 open.sdma", r"searched: \d+ of about 1e\+20 candidates", ""),
    ("explore --budget=600s --sweep k=1..64 open.sdma", r"(?m)^1 ", r"interrupted: [1-6] of 7 values were not searched"),
    ("simulate --set N=8 --sweep chunk=1K..1G --sweep engine.window_bytes={windows} {schedules}/2_allgather_b2b.sdma",
     r"(?m)^chunk +engine", r"interrupted: \d+ of 672 values were simulated"),
    ("reduce --tries=1000000 cycle.sdma", r"^sdma 1\n", r"interrupted: \d+ texts were checked, and a smaller one may exist"),
    ("calibrate --from {published}", r"the caller stopped it", r"interrupted: the fit had made \d+ simulations"),
    ("calibrate --from {published} --held-out", "", r"interrupted while fitting to parts of the measurements: \d+ of \d+ parts, "),
    ("calibrate --device=soft --passes=1000", "", r"interrupted: \d+ of \d+ measurements were made"),
]  # fmt: skip


class Failed(Exception):
    """What is not as it must be."""


def need(condition, what):
    if not condition:
        raise Failed(what)


class Verb:
    """A verb that runs, in a process group of its own: a terminal sends Ctrl-C to a group."""

    def __init__(self, program, words, before=(), **streams):
        words = shlex.split(words) if isinstance(words, str) else words
        streams = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **streams}
        # Without a buffer, because communicate() does not read what is left in one.
        self.process = subprocess.Popen(
            [program, *before, *words], bufsize=0, stdin=subprocess.DEVNULL, start_new_session=True, **streams
        )

    def interrupt(self):
        os.killpg(self.process.pid, signal.SIGINT)

    def end(self):
        out, err = self.process.communicate(timeout=SECONDS)
        return self.process.returncode, out.decode(), (err or b"").decode()


class Checks:
    def __init__(self, program, schemas):
        self.program = program
        self.validators = {}
        if jsonschema:
            texts = {path.stem: json.loads(path.read_text()) for path in schemas.glob("*.json")}
            store = {f"https://sdma.invalid/{name}.json": text for name, text in texts.items()}
            for name, text in texts.items():
                resolver = jsonschema.RefResolver(f"https://sdma.invalid/{name}.json", text, store=store)
                self.validators[name] = jsonschema.Draft202012Validator(text, resolver=resolver)

    def valid(self, verb, value):
        if value == {"complete": False}:
            verb = "interrupted"
        need(verb in self.validators or not jsonschema, f"there is no schema for {verb}")
        for error in self.validators[verb].iter_errors(value) if jsonschema else ():
            raise Failed(f"not valid for {verb}.json: {error.message[:200]}")

    def json_answer(self, verb, out):
        """All values of standard output are whole, and the last one says that the answer is not."""
        values, decoder, at = [], json.JSONDecoder(), 0
        while out[at:].strip():
            at = len(out) - len(out[at:].lstrip())
            value, at = decoder.raw_decode(out, at)
            self.valid(verb, value)
            values.append(value)
        need(values and values[-1].get("complete") is False, f"the last value has no \"complete\": false: {out[-300:]}")
        need(all("complete" not in v for v in values[:-1]), "an earlier value is not complete")
        return values

    def ended(self, words, result, said, as_json):
        code, out, err = result
        need(code == 130, f"exit code {code}; standard error: {err[-500:]}")
        if as_json:
            messages = [json.loads(line) for line in err.splitlines() if line.startswith("{")]
            for m in messages:
                self.valid("message", m)
            err = "\n".join(m["message"] for m in messages)
            self.json_answer(words.split()[0], out)
        need(re.search(said, err), f"'{said}' is not in: {err[-500:]}")
        return out, err

    # --- the ways to know when

    def opening(self, words, said, as_json):
        verb = Verb(self.program, words + (" --json" if as_json else ""))
        writer = os.open("pipe", os.O_WRONLY)  # returns when the verb has opened it
        verb.interrupt()
        result = verb.end()
        os.close(writer)
        out, _ = self.ended(words, result, "interrupted while " + said, as_json)
        need(as_json or out == "", f"standard output: {out}")

    def lines(self, words, given, said, as_json):
        verb = Verb(self.program, words + (" --json" if as_json else ""))
        pipe = os.open("pipe", os.O_WRONLY)

        def give():
            try:
                for at in range(0, len(given), 65536):
                    os.write(pipe, given[at : at + 65536])
            except BrokenPipeError:
                pass  # the verb has ended before it had read everything

        giver = threading.Thread(target=give)
        giver.start()
        first = verb.process.stdout.readline()
        verb.interrupt()
        code, out, err = verb.end()
        giver.join()
        os.close(pipe)
        out, _ = self.ended(words, (code, first.decode() + out, err), said, as_json)
        need(len(out.splitlines()) >= (2 if as_json else 1), f"nothing was printed before: {out}")

    def progress(self, words, printed, said, as_json):
        mine, theirs = pty.openpty()
        verb = Verb(sys.executable, [self.program, *shlex.split(words + " --json" * as_json)], before=["-c", LEADER], stderr=theirs)
        os.close(theirs)
        code, out, _ = verb.end()
        seen = b""
        while True:
            try:
                more = os.read(mine, 4096)
            except OSError:  # the other end is closed
                break
            if not more:
                break
            seen += more
        os.close(mine)
        err = re.sub(r"\r\033\[K[^\r\n]*(?=\r\033\[K)|\r\033\[K|\033\[[0-9;]*m|\r", "", seen.decode())
        out, _ = self.ended(words, (code, out, err), said, as_json)
        need(as_json or re.search(printed, out), f"'{printed}' is not in: {out[-500:]}")

    def waiting(self, words, check):
        verb = Verb(self.program, words)
        with open("pipe", "wb") as writer:
            writer.write(bytes(4096))
        verb.interrupt()
        check(*verb.end())

    def ranks(self, words, check):
        verb = Verb(self.program, words)
        children = pathlib.Path(f"/proc/{verb.process.pid}/task/{verb.process.pid}/children")
        while verb.process.poll() is None and len(children.read_text().split()) < 2:
            time.sleep(0.001)
        started = children.read_text().split()
        verb.process.send_signal(signal.SIGINT)
        check(*verb.end())
        left = [child for child in started if pathlib.Path(f"/proc/{child}").exists()]
        need(len(started) == 2 and not left, f"ranks {started}; left: {left}")


def cases(checks, share):
    """(name, what to call) of each case."""
    for words, said in OPENING:
        for as_json in (False, True):
            yield f"{words}{' --json' * as_json}", lambda w=words, s=said, j=as_json: checks.opening(w, s, j)
    nops = (struct.pack("<I", 0x3FFF << 16) + bytes(4 * 0x3FFF)) * 80  # the form of the input is known after 4 MiB
    event = pathlib.Path("run.jsonl").read_bytes()
    for as_json in (False, True):
        yield "dis of a stream", lambda j=as_json: checks.lines("dis pipe", nops, r"reading pipe, after \d+ bytes", j)
    yield "trace --follow", lambda: checks.lines("trace --follow pipe", event, r"following pipe, after \d+ events?", False)
    for words, printed, said in PROGRESS:
        published, schedules = (shlex.quote(str(path)) for path in (share / "published/dma-latte.csv", share.parent / "examples/schedules"))
        words = words.format(published=published, schedules=schedules,
                             windows=",".join(f"{n}K" for n in range(64, 96)))  # fmt: skip
        for as_json in (False, True):
            yield words, lambda w=words, p=printed, s=said, j=as_json: checks.progress(w, p, s, j)

    def check_sweep():
        verb = Verb(checks.program, "check --json --sweep k=1..4000 open.sdma")
        first = verb.process.stdout.readline().decode()
        verb.interrupt()
        code, out, err = verb.end()
        found = checks.json_answer("check", first + out)
        need(code == 130 and len(found) >= 2, f"{code}: {out}")
        need(re.search(rf"checking open.sdma( with k=\d+)?, after {len(found) - 1} of 4000 values", err), err)

    yield "check --sweep", check_sweep

    def hang(code, out, err):
        need(code == 130, f"{code}: {err}")
        need(re.search(r"host main, line 1[01]: .*: error: .* after \d+ms", err), err)
        need("interrupted: the run was stopped" in err, err)
        need("sdma_trace" in pathlib.Path("made.jsonl").read_text(), "there is no trace")

    def hang_json(code, out, err):
        answer = checks.json_answer("run", out)[-1]
        run = answer["files"][0]["runs"][0]
        need(code == 130 and not run["passed"] and run["findings"], f"{code}: {out}")

    def ranks(code, out, err):
        need(code == 130, f"{code}: {err}")
        need(re.search(r"host main, line 1[01]: .*: error: ", err) and "interrupted: the run was stopped" in err, err)

    yield "ranks that hang", lambda: checks.ranks("run --ranks=2 --timeout=3600s hang.sdma", ranks)
    yield "ranks that hang, as JSON", lambda: checks.ranks("run --json --ranks=2 --timeout=3600s hang.sdma", hang_json)

    hour = "--timeout=3600s --input gpu0.b=pipe hang.sdma"
    yield "run that hangs", lambda: checks.waiting(f"run --trace=made.jsonl {hour}", hang)
    yield "run that hangs, as JSON", lambda: checks.waiting(f"run --json {hour}", hang_json)


def main(program, schemas):
    program, schemas = pathlib.Path(program).resolve(), pathlib.Path(schemas).resolve()
    bad = count = 0
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        for name, text in FILES.items():
            pathlib.Path(name).write_text(text)
        os.mkfifo("pipe")
        subprocess.run([program, "run", "--timeout=20ms", "--trace=run.jsonl", "hang.sdma"], capture_output=True, check=False)
        for name, call in cases(Checks(program, schemas), schemas.parent):
            count += 1
            try:
                call()
            except (Failed, ValueError, subprocess.TimeoutExpired) as e:
                bad += 1
                print(f"{name}: {e}")
        os.chdir("/")
    print(f"{count} cases, {bad} failed")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
