#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Completion in real shells: types a line and a key into an interactive bash and zsh on a terminal, and reads what the line has
become; asks fish what it offers.

  completion.py COMPLETIONS SCHEDULES PROGRAM...    COMPLETIONS: the folder of the functions
                                                    PROGRAM: sdma, with its path
"""
import os
import pathlib
import pty
import re
import select
import shlex
import subprocess
import sys
import tempfile
import time

LIMIT = 60  # seconds for one line, on a machine that does much else
TAB = "\t"
ALL = "\x1b*"  # M-*: inserts all completions


class Shell:
    """An interactive shell without anybody's settings."""

    def __init__(self, name, options, setup, folder, path):
        self.name = name
        environment = {"PATH": path, "HOME": folder, "TERM": "dumb", "PS1": "", "LC_ALL": "C", "INPUTRC": "/dev/null"}
        environment |= {name: value for name, value in os.environ.items() if name.startswith(("ASAN", "UBSAN"))}
        self.child, self.terminal = pty.fork()
        if self.child == 0:
            os.chdir(folder)
            os.execvpe(name, [name, *options, "-i"], environment)
        self.text = ""
        # Lines longer than the terminal would be scrolled sideways; ours are printed by echo.
        self.type(f"stty cols 500; {setup}; echo ready-$((1+1))\n")
        self.until(r"ready-2\r?\n")

    def type(self, text):
        os.write(self.terminal, text.encode())

    def until(self, pattern):
        end = time.monotonic() + LIMIT
        while not (match := re.search(pattern, self.text)):
            if not select.select([self.terminal], [], [], max(0, end - time.monotonic()))[0]:
                sys.exit(f"{self.name} did not print {pattern} within {LIMIT} s: {self.text[-2000:]!r}")
            self.text += os.read(self.terminal, 65536).decode(errors="replace")
        self.text = self.text[match.end() :]
        return match

    def completed(self, line, key="\t"):
        """The words of the line after the key."""
        # ^A goes to the line's beginning, ^E to its end: the line is printed, not run. The shell runs ^E after the completion has ended.
        self.type(line + key + "\x01printf '<%s>' '\x05' END $((2+3))\n")
        return self.until(r"<([^<>]*)><END><5>")[1].split()


CASES = [
    # line, key, words of the line after it
    ("sdma simu", TAB, "sdma simulate"),
    ("sdma --ver", TAB, "sdma --version"),
    ("sdma ", ALL, "sdma {verbs}"),
    ("sdma dis --inp", TAB, "sdma dis --input"),
    ("sdma dis --format=", ALL, "sdma dis --format=hex json text"),
    ("sdma dis --format j", TAB, "sdma dis --format json"),
    ("sdma emulate --order=adv", TAB, "sdma emulate --order=adversarial"),
    ("sdma simulate --machine=mi35", ALL, "sdma simulate --machine=mi350x:8 mi355x:8"),
    ("sdma simulate --machine nod", TAB, "sdma simulate --machine nodes:2x8x400G"),
    ("sdma simulate --parameter engine.poll", TAB, "sdma simulate --parameter engine.poll_ns="),
    ("sdma run open.sdma --set ", ALL, "sdma run open.sdma --set N= chunk="),
    ("sdma run open.sdma --set N=8 --set c", TAB, "sdma run open.sdma --set N=8 --set chunk="),
    ("sdma run --set=c", TAB, "sdma run --set=c"),  # no schedule is named
    ("sdma run broken.sdma --set ", TAB, "sdma run broken.sdma --set"),
    ("sdma run op", TAB, "sdma run open.sdma"),  # a file
    ("sdma simulate --machine=mine", TAB, "sdma simulate --machine=mine.json"),
    ("sdma emulate -- sdma --o", TAB, "sdma emulate -- sdma --o"),  # the words of another program
    ("sdma nothing --", TAB, "sdma nothing --"),
    ("sdma perf --varian", TAB, "sdma perf --variant"),
    ("sdma perf --variant=pcpy,b2b+", TAB, "sdma perf --variant=pcpy,b2b+pl"),
    ("sdma perf --collective all_g", TAB, "sdma perf --collective all_gather"),
    ("sdma perf --order=", ALL, "sdma perf --order=adversarial rocr strict"),
    ("sdma plan --completion=t", TAB, "sdma plan --completion=two_fences"),
    ("sdma fetch --swe", TAB, "sdma fetch --sweep"),
]

OFFERED = [
    # line, what fish offers
    ("sdma simu", "simulate"),
    ("sdma dis --format=", "--format=hex --format=json --format=text"),
    ("sdma dis --format j", "json"),
    ("sdma run open.sdma --set ", "N= chunk="),
    ("sdma run op", "open.sdma"),  # a file
    ("sdma emulate -- sdma --o", ""),  # the words of another program
]


def offered(fish, line, folder, path):
    """The words that fish offers for the end of the line."""
    command = ["fish", "--no-config", "--command", f"source {shlex.quote(str(fish))}; complete --do-complete={line!r}"]
    environment = {"PATH": path, "HOME": folder, "LC_ALL": "C"}
    ran = subprocess.run(command, cwd=folder, env=environment, text=True, capture_output=True, timeout=LIMIT, check=True)
    return sorted(words.split("\t")[0] for words in ran.stdout.splitlines())


def main(arguments):
    completions, schedules, *programs = map(pathlib.Path, arguments)
    completions = completions.resolve()
    with tempfile.TemporaryDirectory() as folder:
        work = pathlib.Path(folder)
        (work / "bin").mkdir()
        for program in programs:
            (work / "bin" / program.name).symlink_to(program.resolve())
        (work / "open.sdma").write_text((schedules / "2_allgather_b2b.sdma").read_text())
        (work / "broken.sdma").write_text("sdma 1\nparam N = 4\nthis is not a line\n")
        (work / "mine.json").write_text("{}")
        path = f"{work / 'bin'}:{os.environ['PATH']}"
        for_bash, for_zsh = (shlex.quote(str(each)) for each in (completions / "sdma", completions))
        bash = Shell("bash", ["--noprofile", "--norc"], f"bind 'set bell-style none'; source {for_bash}", folder, path)
        zsh = Shell("zsh", ["-f"], f"fpath=({for_zsh} $fpath); autoload -Uz compinit; compinit -u -D; unsetopt beep list_beep; bindkey -e",
                    folder, path)
        wrong = total = 0
        sdma = next(program for program in programs if program.name == "sdma")
        text = subprocess.run([sdma, "--help"], capture_output=True, text=True, check=True).stdout.partition("Subcommands:\n")[2]
        verbs = " ".join(sorted(re.findall(r"^  ([a-z]+) ", text.partition("\n\n")[0], re.M)))

        def compare(shell, line, key, found, expected):
            nonlocal wrong, total
            total += 1
            if found != expected:
                wrong += 1
                print(f"{shell}: {line!r} + {'TAB' if key == TAB else 'M-*'}: {' '.join(found)!r}, expected {' '.join(expected)!r}")

        for line, key, expected in CASES:
            # The shell appends a blank or inserts in an order of its own.
            expected = expected.replace("{verbs}", verbs)
            compare("bash", line, key, bash.completed(line, key), expected.split())
            # zsh knows no key that inserts all, and reads the options of the other programs from their help.
            if key == TAB and (line.startswith("sdma") or line.split()[-1].startswith("--") and "=" not in line):
                compare("zsh", line, key, zsh.completed(line, key), expected.split())
        for line, expected in OFFERED:
            compare("fish", line, TAB, offered(completions / "sdma.fish", line, folder, path), expected.split())
        print(f"{total - wrong} of {total} lines completed as expected")
        return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
