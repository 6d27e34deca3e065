#!/usr/bin/env python3
"""Writes every golden file anew from what the program says now: bless.py SOURCE BUILD. Look at the difference afterwards.

tests/collectives/golden/NAME.sdma are the plans of the options that golden.txt lists.
tests/stream/golden/NAME.hex holds dwords (sdma dis reads it), NAME.sdma their text, NAME.json their JSON Lines.
"""
import pathlib
import subprocess
import sys


def main(source, build):
    tool = pathlib.Path(build) / "tools" / "sdma"
    for given in sorted((pathlib.Path(source) / "tests/stream/golden").glob("*.hex")):
        for suffix, options in ((".sdma", ["--offsets", "--raw"]), (".json", ["--format=json"])):
            done = subprocess.run([tool, "dis", "--input=hex", *options, given], check=True, capture_output=True)
            given.with_suffix(suffix).write_bytes(done.stdout)
    collectives = pathlib.Path(source) / "tests/collectives"
    for line in (collectives / "golden.txt").read_text().splitlines():
        if line and not line.startswith("#"):
            name, collective, *options = line.split()
            plan = pathlib.Path(build) / "examples/collectives/collective_plan"
            done = subprocess.run([plan, collective.removeprefix("collective="), *("--" + o for o in options)],
                                  check=True, capture_output=True)
            (collectives / "golden" / (name + ".sdma")).write_bytes(done.stdout)
    subprocess.run([sys.executable, pathlib.Path(source) / "tests/tools/run.py", "--bless", tool,
                    pathlib.Path(source) / "tests/tools/cases"], check=True)


main(*sys.argv[1:])
