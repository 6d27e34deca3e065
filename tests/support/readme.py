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
import sys
import tempfile

import page

FEWEST = 6  # commands; fewer mean that the section is no longer found
# Commands that need what a built tree does not have: the reader's own programs and files, or another machine.
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
    """Runs each command by `run(command, folder)`, which returns the process that has ended, with its output in `stdout`; `folder` is
    where README's last `cd` leads, or "" before the first one. Returns how many ran; ends the program at the first that prints
    something else."""
    count, folder = 0, ""
    for command, shown in commands(source):
        if command.startswith("cd "):
            folder = command.removeprefix("cd ")
            continue
        done = run(command, folder)
        count += 1
        if done.returncode not in (0, 1, 4):
            sys.exit(f"README.md: {command}: exit code {done.returncode}\n{done.stdout}")
        if missing := [line for line in shown if line not in done.stdout]:
            sys.exit(f"README.md: {command}: prints no line {missing[0]!r}, but\n{done.stdout}")
    if count < FEWEST:
        sys.exit(f"README.md: only {count} commands were found")
    return count


def main(arguments):
    if len(arguments) != 2:
        sys.exit(__doc__)
    source, program = (pathlib.Path(argument).resolve() for argument in arguments)
    with tempfile.TemporaryDirectory() as base:
        (pathlib.Path(base) / "examples").symlink_to(source / "examples")
        count = check(source, lambda command, folder: page.shell(command, pathlib.Path(base, folder), program.parent))
    print(f"{count} commands")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
