#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""--help of the program and of each verb fits 80 columns, loses no word, and keeps its examples whole.

  help_width.py PROGRAM
"""
import os
import re
import subprocess
import sys

COLUMNS = 80


def main(program):
    wrong = []

    def said(*words, columns):
        environment = {k: v for k, v in os.environ.items() if k != "COLUMNS"} | ({"COLUMNS": str(columns)} if columns else {})
        return subprocess.run([program, *words], env=environment, capture_output=True, text=True, check=True).stdout

    def need(true, what):
        if not true:
            wrong.append(what)

    whole = said("--help", columns=4000)
    verbs = re.findall(r"^  ([a-z]+) ", whole.partition("Subcommands:\n")[2].partition("Exit codes:")[0], re.M)
    need(len(verbs) > 15, f"only {len(verbs)} subcommands: the form of --help has changed")
    for words in ["--help"], *([verb, "--help"] for verb in verbs):
        name = " ".join(["sdma", *words])
        fitted, wide = said(*words, columns=None), said(*words, columns=4000)
        for line in fitted.split("\n"):
            need(len(line) <= COLUMNS, f"{name}: {len(line)} columns: {line}")
        need(fitted.split() == wide.split(), f"{name}: the words differ from those with COLUMNS=4000")
        need(fitted.partition("\nExamples:\n")[2] == wide.partition("\nExamples:\n")[2], f"{name}: an example is broken")
        for line in said(*words, columns=60).partition("\nExamples:\n")[0].split("\n"):
            need(len(line) <= 60 or line.startswith("Usage: ") or " " not in line.strip(), f"{name}, 60 columns: {line}")
    print(*wrong, sep="\n")
    print(f"{len(verbs) + 1} texts, {len(wrong)} complaints")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
