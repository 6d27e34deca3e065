#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The commands of README.md's section on the tool: each must print the lines that README shows.

  readme.py SOURCE SDMA

SDMA is the built program. The commands run in an empty folder that holds SOURCE's `examples`. README may leave lines out, so that
what it shows must be among what is printed; a line that ends with `...`, or with a time in ms before a bracket, may differ. Exit code 1
with the command and what it prints now.
"""
import pathlib
import re
import subprocess
import sys
import tempfile

SECONDS = 120  # for one command
FEWEST = 6  # commands; fewer mean that the section is no longer found
# Commands that need what a built tree does not have: programs of the reader, his files, another machine.
ELSEWHERE = re.compile(r"\./my_program|emulate rocminfo|run\.jsonl|scripts/|dmesg")
VARIES = re.compile(r" ms\)|\.\.\.$")


def commands(source):
    """(command, lines that README shows of what it prints) of each command that can run here."""
    text = (source / "README.md").read_text(encoding="utf-8").partition("## The tool")[2].partition("\n## ")[0]
    for block in re.findall(r"^```\n((?=\$ ).*?)^```$", text, flags=re.M | re.S):
        for part in re.split(r"(?m)^\$ ", block)[1:]:
            command, _, shown = part.partition("\n")
            command = re.sub(r"\s+#.*", "", command)
            if not ELSEWHERE.search(command):
                yield command, [line for line in shown.splitlines() if line.strip() and not VARIES.search(line)]


def check(source, run):
    """Runs each command by `run(command)`, which returns (exit code, output). Returns how many ran; ends the program at the first
    that prints something else."""
    count = 0
    for command, shown in commands(source):
        code, printed = run(command)
        count += not command.startswith("cd ")
        if code not in (0, 1, 4):
            sys.exit(f"README.md: {command}: exit code {code}\n{printed}")
        if missing := [line for line in shown if line not in printed]:
            sys.exit(f"README.md: {command}: prints no line {missing[0]!r}, but\n{printed}")
    if count < FEWEST:
        sys.exit(f"README.md: only {count} commands were found")
    return count


def main(arguments):
    if len(arguments) != 2:
        sys.exit(__doc__)
    source, program = (pathlib.Path(argument).resolve() for argument in arguments)
    with tempfile.TemporaryDirectory() as folder:
        (pathlib.Path(folder) / "examples").symlink_to(source / "examples")
        where = pathlib.Path(folder)

        def run(command):
            nonlocal where
            if command.startswith("cd "):
                where = where / command.removeprefix("cd ")
                return 0, ""
            environment = {"PATH": f"{program.parent}:/usr/bin:/bin", "LC_ALL": "C", "TERM": "dumb"}
            done = subprocess.run(["sh", "-c", command], cwd=where, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                  stderr=subprocess.STDOUT, timeout=SECONDS, text=True)  # fmt: skip
            return done.returncode, done.stdout

        print(f"{check(source, run)} commands")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
