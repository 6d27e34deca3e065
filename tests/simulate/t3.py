#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""T3: docs/papers.md has what share/published/t3/table.py prints; t3.sdma is proved, and right when it runs, and moves the parts that the page
counts; and no wait of its memory can be left out.

  t3.py SOURCE SDMA        each difference is a line; the exit code is 1 if there is one
"""
import json
import pathlib
import re
import subprocess
import sys
import tempfile

PAGE = "docs/papers.md"
# Values of t3.sdma's parameters, and its lines without any of which it must be refuted.
VARIANTS = ((), ("way=sequential",), ("gather=no",), ("way=sequential", "gather=no"), ("N=2",), ("N=3", "bytes=12K", "rings=one", "type=f32"),
            ("N=8", "rings=seven", "pieces=1"), ("N=8", "rings=seven", "way=sequential"))
NEEDED = ("wait gpu{g}.tile{c} >= s*pieces+q+1", "when s == 1: wait gpu{g}.early{c} >= q+1", "when s > 1: wait gpu{g}.got{c} >= (s-2)*pieces+q+1",
          "poll_mem addr=gpu{g}.ready{c} func=ge reference=(s-1)*pieces+q+1", "wait gpu{g}.whole{c} >= 1")
# The claim's first words; the title of the printed means beside it; which cell of these.
CLAIMS = (
    ("sub-layers with the arbiter", "T3's machine", 3),
    ("without the arbiter", "T3's machine", 2),
    ("with ideal overlap", "T3's machine", 4),
    ("GPT-3, PALM and MT-NLG", "of these, GPT-3, PALM, MT-NLG", 3),
)


def cells(line):
    return [cell.strip() for cell in line.strip("|").split("|")]


def verdict(sdma, verb, schedule, values=()):
    words = [word for value in values for word in ("--set", value)]
    return subprocess.run([sdma, *verb, *words, str(schedule)], capture_output=True, text=True).returncode


def proofs(sdma, schedule):
    """What is wrong with the schedule, without simulating it."""
    wrong = []
    for values in VARIANTS:
        for verb in (["check"], ["run", "--device=soft", "--order=adversarial"]):
            if verdict(sdma, verb, schedule, values):
                wrong.append(f"t3.sdma {' '.join(values)}: sdma {verb[0]} fails")
    text = schedule.read_text()
    with tempfile.TemporaryDirectory() as folder:
        broken = pathlib.Path(folder) / "broken.sdma"
        for line in NEEDED:
            broken.write_text("".join(kept for kept in text.splitlines(True) if kept.strip() != line))
            if line not in text or verdict(sdma, ["check"], broken) != 1:
                wrong.append(f"t3.sdma without '{line}' is not refuted")
    return wrong


def parts(sdma, schedule, machine, way):
    """The parts of a reduce-scatter on 8 GPUs that the memory of each reads and writes."""
    run = [sdma, "simulate", "--json", "--no-sensitivity", f"--machine={machine}", "--set", f"way={way}"]
    for value in ("N=8", "bytes=8M", "gemm_ns=0", "gather=no"):
        run += ["--set", value]
    busy = json.loads(subprocess.run([*run, str(schedule)], check=True, capture_output=True, text=True).stdout)["busy"]
    return sum(b["bytes"] for b in busy if b["kind"] == "memory") / (8 << 20)


def main(source, sdma):
    source = pathlib.Path(source)
    wrong = proofs(sdma, source / "share/sdma/collectives/t3.sdma")
    page = (source / PAGE).read_text()
    folder = source / "share/published/t3"
    printed, others = (subprocess.run([sys.executable, folder / "table.py", sdma, *option], check=True, capture_output=True, text=True).stdout
                       for option in ([], ["--alternatives"]))
    for table in re.findall(r"(?:^\|.*\n?)+", printed + "\n" + others, re.M):
        if table.strip() not in page:
            lines = page.splitlines()
            wrong += [f"{PAGE}: table.py prints another row: {row}" for row in table.splitlines() if row not in lines]
    means = {row[0]: row for row in map(cells, printed.splitlines())}
    for claim, title, cell in CLAIMS:
        row = next((r for r in page.splitlines() if r.startswith(f"| {claim}")), "")
        if f": {means[title][cell]}" not in row:
            wrong.append(f"{PAGE}: the claim '{claim}' is not beside {means[title][cell]}")
    # Kernels read 2N - 1 parts and write N; T3 reads N - 2 and writes N - 1.
    for way, expected in (("sequential", 15 + 8), ("t3", 6 + 7)):
        found = parts(sdma, source / "share/sdma/collectives/t3.sdma", folder / "machine.json", way)
        if abs(found - expected) > 1e-6:
            wrong.append(f"t3.sdma: way={way} moves {found} parts of each memory, not {expected}")
    print(*wrong, sep="\n")
    return 1 if wrong else 0


sys.exit(main(*sys.argv[1:]))
