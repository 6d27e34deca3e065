#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The picture of docs/serving.md is what `sdma simulate` draws of the schedule that examples/serving prints.

  picture.py [--bless] SOURCE SDMA

The commands are those of the page: the first indented block that begins with serve.py.
"""
import pathlib
import re
import shlex
import subprocess
import sys
import tempfile

bless = sys.argv[1] == "--bless"
source, sdma = (pathlib.Path(a).resolve() for a in sys.argv[-2:])
page = (source / "docs/serving.md").read_text()
schedule, draw = re.search(r"^    serve\.py (.*) > fetch\.sdma\n    sdma (.* serving\.svg fetch\.sdma)$", page, re.M).groups()
golden = source / "docs/figures/serving.svg"
with tempfile.TemporaryDirectory() as work:
    with open(pathlib.Path(work, "fetch.sdma"), "w") as out:
        subprocess.run([sys.executable, source / "examples/serving/serve.py", *shlex.split(schedule)], stdout=out, check=True)
    subprocess.run([sdma, *shlex.split(draw)], cwd=work, stdout=subprocess.DEVNULL, check=True)
    drawn = pathlib.Path(work, "serving.svg").read_text()
if bless:
    golden.write_text(drawn)
elif drawn != golden.read_text():
    line = next(i for i, (a, b) in enumerate(zip(drawn.splitlines() + [""], golden.read_text().splitlines() + [""]), 1) if a != b)
    sys.exit(f"{golden} differs from what is drawn now, from line {line} on: ninja bless, and read the difference")
