#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""A typo in any option of any verb gets a sentence of this project's, which offers what was meant.

  typos.py PROGRAM

For each option that --help lists: its name with a letter too many, the option without its value, and a flag with one. Then a value that
nothing can be, of each option that has words as values.
"""
import os
import re
import subprocess
import sys

# Sentences of CLI11.
FOREIGN = re.compile(r"Could not convert|not expected|required but|is required|excludes|missing$|TypeName|\bat most\b", re.I)
OPTION = re.compile(r"(?m)^  (?:-\w,)?(--[\w-]+)(?:,--[\w-]+)*( [^ \n]+)?")


def main(program):
    bad = count = 0

    def said(*words):
        done = subprocess.run([program, *words], stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60)
        return done.returncode, done.stderr

    def need(words, pattern):
        nonlocal bad, count
        count += 1
        code, err = said(*words)
        if code != 2 or not re.search(pattern, err) or FOREIGN.search(err):
            bad += 1
            print(f"sdma {' '.join(words)}: exit code {code}, not '{pattern}':\n{err}")

    os.environ["COLUMNS"] = "4000"  # each option on one line
    text = subprocess.run([program, "--help"], capture_output=True, text=True, check=True).stdout
    verbs = re.findall(r"^  ([a-z]+) ", text.partition("Subcommands:\n")[2].partition("Exit codes:")[0], re.M)
    for verb in verbs:
        options = subprocess.run([program, verb, "--help"], capture_output=True, text=True, check=True).stdout
        options = options.partition("Options:\n")[2].partition("Exit codes:")[0]
        for name, value in OPTION.findall(options):
            value = value.strip()
            if name == "--help":
                continue
            need([verb, name + "q"], rf"'sdma {verb}' has no option '{name}q'; did you mean '--")
            if value and value not in ("Excludes:", "REQUIRED"):
                need([verb, name], f"{name} needs a value|--output needs a value|--gfx,--gpu needs a value")
                need([verb, f"{name}="], "needs a value")
                if re.fullmatch(r"[a-z]+(\|[a-z0-9]+)+", value) and "Excludes" not in value:
                    need([verb, f"{name}=nothing-such"], "'nothing-such' is not (one of )?" + re.escape(value.partition("|")[0]))
            else:
                need([verb, f"{name}=yes"], f"'{name}=yes': this option takes no value")
        need([verb + "q"], f"there is no subcommand '{verb}q'")
    if count < 300:
        sys.exit(f"only {count} typos: the form of --help has changed")
    print(f"{count} typos, {bad} without a good sentence")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
