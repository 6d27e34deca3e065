#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Completion in a real bash: types a line and a key into an interactive bash on a terminal, and reads what the line has become.

  completion.py COMPLETION SCHEDULES PROGRAM...    PROGRAM: sdma, collective_perf, collective_plan, kv_fetch, each with its path
"""
import os
import pathlib
import pty
import re
import select
import sys
import tempfile
import time

LIMIT = 60  # seconds for one line, on a machine that does much else
ALL = "\x1b*"  # M-*: inserts all completions


class Bash:
    """An interactive bash without anybody's settings."""

    def __init__(self, completion, folder, path):
        environment = {"PATH": path, "HOME": folder, "TERM": "dumb", "PS1": "", "LC_ALL": "C", "INPUTRC": "/dev/null"}
        environment |= {name: value for name, value in os.environ.items() if name.startswith(("ASAN", "UBSAN"))}
        self.child, self.terminal = pty.fork()
        if self.child == 0:
            os.chdir(folder)
            os.execvpe("bash", ["bash", "--noprofile", "--norc", "-i"], environment)
        self.text = ""
        # Lines longer than the terminal would be scrolled sideways; ours are printed by echo.
        self.type("bind 'set bell-style none'; stty cols 500; source " + str(completion) + "; echo ready-$((1+1))\n")
        self.until(r"ready-2\r?\n")

    def type(self, text):
        os.write(self.terminal, text.encode())

    def until(self, pattern):
        end = time.monotonic() + LIMIT
        while not (match := re.search(pattern, self.text)):
            if not select.select([self.terminal], [], [], max(0, end - time.monotonic()))[0]:
                sys.exit(f"bash did not print {pattern} within {LIMIT} s: {self.text[-2000:]!r}")
            self.text += os.read(self.terminal, 65536).decode(errors="replace")
        self.text = self.text[match.end() :]
        return match

    def completed(self, line, key="\t"):
        """The words of the line after the key."""
        # ^A goes to the line's beginning, ^E to its end: the line is printed, not run. Bash runs ^E after the completion has ended.
        self.type(line + key + "\x01printf '<%s>' '\x05' END $((2+3))\n")
        return self.until(r"<([^<>]*)><END><5>")[1].split()


CASES = [
    # line, key, words of the line after it
    ("sdma simu", "\t", "sdma simulate"),
    ("sdma --ver", "\t", "sdma --version"),
    ("sdma ", ALL, "sdma as calibrate check compare dis doctor emulate explore fmt reduce run simulate topology trace"),
    ("sdma dis --inp", "\t", "sdma dis --input"),
    ("sdma dis --format=", ALL, "sdma dis --format=hex json text"),
    ("sdma dis --format j", "\t", "sdma dis --format json"),
    ("sdma emulate --order=adv", "\t", "sdma emulate --order=adversarial"),
    ("sdma simulate --machine=mi35", ALL, "sdma simulate --machine=mi350x:8 mi355x:8"),
    ("sdma simulate --machine nod", "\t", "sdma simulate --machine nodes:2x8x400G"),
    ("sdma simulate --parameter engine.poll", "\t", "sdma simulate --parameter engine.poll_ns="),
    ("sdma run open.sdma --set ", ALL, "sdma run open.sdma --set N= chunk="),
    ("sdma run open.sdma --set N=8 --set c", "\t", "sdma run open.sdma --set N=8 --set chunk="),
    ("sdma run --set=c", "\t", "sdma run --set=c"),  # no schedule is named
    ("sdma run broken.sdma --set ", "\t", "sdma run broken.sdma --set"),
    ("sdma run op", "\t", "sdma run open.sdma"),  # a file
    ("sdma simulate --machine=mine", "\t", "sdma simulate --machine=mine.json"),
    ("sdma emulate -- sdma --o", "\t", "sdma emulate -- sdma --o"),  # the words of another program
    ("sdma nothing --", "\t", "sdma nothing --"),
    ("collective_perf --varian", "\t", "collective_perf --variant"),
    ("collective_perf --variant=pcpy,b2b+", "\t", "collective_perf --variant=pcpy,b2b+pl"),
    ("collective_perf --collective all_g", "\t", "collective_perf --collective all_gather"),
    ("collective_perf --order=", ALL, "collective_perf --order=adversarial rocr strict"),
    ("collective_plan --completion=t", "\t", "collective_plan --completion=two_fences"),
    ("kv_fetch --swe", "\t", "kv_fetch --sweep"),
]


def main(arguments):
    completion, schedules, *programs = map(pathlib.Path, arguments)
    with tempfile.TemporaryDirectory() as folder:
        work = pathlib.Path(folder)
        (work / "bin").mkdir()
        for program in programs:
            (work / "bin" / program.name).symlink_to(program.resolve())
        (work / "open.sdma").write_text((schedules / "2_allgather_b2b.sdma").read_text())
        (work / "broken.sdma").write_text("sdma 1\nparam N = 4\nthis is not a line\n")
        (work / "mine.json").write_text("{}")
        bash = Bash(completion.resolve(), folder, f"{work / 'bin'}:{os.environ['PATH']}")
        wrong = 0
        for line, key, expected in CASES:
            found = bash.completed(line, key)
            # Bash appends a blank or inserts in an order of its own.
            if found != expected.split():
                wrong += 1
                print(f"{line!r} + {'TAB' if key == chr(9) else 'M-*'}: {' '.join(found)!r}, expected {expected!r}")
        print(f"{len(CASES) - wrong} of {len(CASES)} lines completed as expected")
        return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
