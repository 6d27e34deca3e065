#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Judges the rule of `sdma explore --advise` on cases that are drawn: is its pick near the best of all variants?

  advised.py PROGRAM [--seed N] [--cases N] [--list] [--page PAGE | --bless PAGE] [--quick]

A case is a layer's product on 2 to 8 GPUs, with a number of tokens, on a mesh, a ring or a switch, with rates of
links and engines. Each variant of share/sdma/overlap/all_gather_gemm.sdma is simulated: each way, with each number of pieces that the
table of products allows. A case counts if its slowest way takes 10 % longer than its fastest, each with its best number of pieces. The
pick is right if it is within 5 % of the fastest variant. The constant choice is the variant that is right most often on the same cases;
where a case has not so many pieces, it takes as many as there are.

A second judgement gives each product an error of its own, which the rule does not know: normal, and as large in the mean as the lookup's
for shapes that it does not use.

Prints the tables. With --page, they have to be those of the page, its examples what the program prints, and docs/papers.md has to have
their figures; --bless writes the tables there. --quick draws nothing: it compares the examples, and proves variants of the text. --list
prints each case. Exit code 1, with what is wrong.
"""
import argparse
import collections
import concurrent.futures
import csv
import json
import math
import os
import pathlib
import random
import re
import subprocess
import sys
import tempfile

SEED, CASES = 71, 150
# Columns of B of all GPUs together, and k: of products that gather their rows.
LAYERS = [(4096, 4096), (6144, 4096), (14336, 4096), (28672, 4096), (11008, 4096), (4096, 11008), (5120, 5120), (13824, 5120),
          (27648, 5120), (3584, 18944), (18944, 3584), (8192, 8192), (10240, 8192), (57344, 8192), (8192, 28672), (18432, 7168),
          (24576, 6144), (12288, 12288), (36864, 12288), (49152, 12288), (53248, 16384), (3072, 3072), (14336, 2048)]
XGMI_RATES = (32, 48, 64, 96, 128, 192)  # GB/s, raw
SWITCH_PORTS = (200, 400, 800, 1600, 3200)  # Gbit/s
EFFICIENCY = 0.755  # of an xGMI link: an engine sustains one link's rate
LEAST_OF_A_SIDE = 512  # of the table, n and k
ROWS_OF_A_PART = 64  # the least of m of the table
MOST_ROWS = 32768
WAYS = ("none", "turns", "rows", "steps", "columns")
NEAR, DIFFERENT = 1.05, 1.1
TEXT = pathlib.Path(__file__).parents[2] / "share/sdma/overlap/all_gather_gemm.sdma"
PAPERS = TEXT.parents[3] / "docs/papers.md"
BEGIN, END = "<!-- advised -->\n", "<!-- end of advised -->\n"


def run(*arguments):
    done = subprocess.run([str(a) for a in arguments], capture_output=True, text=True, cwd=TEXT.parents[3])
    if done.returncode != 0:
        sys.exit(f"{' '.join(map(str, arguments))}: exit {done.returncode}: {done.stderr}{done.stdout}")
    return done.stdout


def draw(source):
    """A case; products that the table does not have are drawn again."""
    while True:
        gpus = source.randint(2, 8)
        columns, k = source.choice(LAYERS)
        n = columns // gpus // 64 * 64
        m = ROWS_OF_A_PART * gpus * round(2 ** source.uniform(0, 8))
        links = source.choice(("mesh", "ring", "switch"))
        rate = source.choice(XGMI_RATES)
        port = source.choice(SWITCH_PORTS)
        noise = source.getrandbits(64)
        if n < LEAST_OF_A_SIDE or m > MOST_ROWS:
            continue
        machine = ["--machine", f"switch:{gpus}x{port}G" if links == "switch" else f"{links}:{gpus}",
                   "--parameter", f"engine.bytes_per_ns={rate * EFFICIENCY:.2f}"]
        if links != "switch":
            machine += ["--parameter", f"xgmi.rate={rate}"]
        return {"links": links, "shape": (m, n, k), "machine": machine, "noise": noise}


def simulated(program, case, settings, path):
    """Times of all variants, in ns."""
    out = {}
    given = [a for name, value in settings.items() for a in ("--set", f"{name}={value}")]
    lists = ["[0]", settings["rows_ns"], settings["rows_ns"], settings["step_ns"], settings["columns_ns"]]
    for way, times in enumerate(lists):
        pieces = [str(1 << i) for i in range(len(json.loads(times)))]
        run(program, "simulate", "--no-sensitivity", *case["machine"], *given, "--set", f"way={way}", "--sweep",
            f"pieces={','.join(pieces)}", "--csv", path, TEXT)
        with open(path) as lines:
            for row in csv.DictReader(line for line in lines if not line.startswith("#")):
                out[WAYS[way], int(row["pieces"])] = float(row["ns"])
        os.remove(path)
    return out


def with_errors(settings, mean_error, seed):
    """The same with an error of each product's own. A normal error of mean size 1 has the deviation sqrt(pi/2)."""
    source = random.Random(seed)
    deviation = mean_error * math.sqrt(math.pi / 2)

    def changed(text):
        return re.sub(r"\d+", lambda ns: str(max(1, round(int(ns[0]) * math.exp(source.gauss(0, deviation))))), text)

    return {name: changed(value) if name.endswith("_ns") else value for name, value in settings.items()}


def judged(program, case, path):
    answer = json.loads(run(program, "explore", f"--advise={'x'.join(map(str, case['shape']))}", "--json", *case["machine"]))
    advice = answer["advice"][0]
    pick = advice["pick"]["way"], advice["pick"]["pieces"]
    exact = simulated(program, case, advice["set"], path)
    if set(exact) != {(v["way"], v["pieces"]) for v in advice["variants"]}:
        sys.exit(f"{case}: the rule and the text have different variants")
    # The pick's estimate beside its simulation.
    off = abs(advice["pick"]["ns"] / exact[pick] - 1)
    changed = with_errors(advice["set"], answer["products"]["mean_error"], case["noise"])
    return case, pick, off, exact, simulated(program, case, changed, path)


def counts(times):
    ways = [min(ns for (way, _), ns in times.items() if way == w) for w in WAYS]
    return max(ways) >= DIFFERENT * min(ways)


def ratio(times, choice):
    """How much longer a choice takes than the best: with as many pieces as the case has, at most."""
    way, pieces = choice
    while (way, pieces) not in times:
        pieces //= 2
    return times[way, pieces] / min(times.values())


def row(name, cases):
    """cases: (pick, times) of each that counts."""
    every = {(way, 1 << i) for way in WAYS for i in range(5 if way != "none" else 1)}
    right = collections.Counter({c: sum(ratio(t, c) <= NEAR for _, t in cases) for c in sorted(every)})
    (way, pieces), most = right.most_common(1)[0]
    good = sum(ratio(t, pick) <= NEAR for pick, t in cases)
    worst = max(ratio(t, pick) for pick, t in cases)
    constant = max(ratio(t, (way, pieces)) for _, t in cases)
    def share(count):
        return f"{count} ({100 * count / len(cases):.0f} %)"

    return f"| {name} | {len(cases)} | {share(good)} | {worst:.2f} | {share(most)}: {way}, {pieces} | {constant:.2f} |"


def tables(results):
    head = ["| cases | counted | pick within 5 % of the best | worst: times the best | best constant choice, right | worst of it |",
            "|---|---|---|---|---|---|"]
    out = []
    for title, which in (("products take what the table says", 3), ("each product has an error that the rule does not know", 4)):
        all_cases = [(r[0]["links"], r[1], r[which]) for r in results]
        counted = [c for c in all_cases if counts(c[2])]
        rows = [row(f"all, {title}", [c[1:] for c in counted])]
        rows += [row(links, [c[1:] for c in counted if c[0] == links]) for links in ("mesh", "ring", "switch")]
        out += rows
    offs = sorted(r[2] for r in results)
    mean, worst = 100 * sum(offs) / len(offs), 100 * offs[-1]
    said = f"Drawn: {len(results)} cases. The picks' own estimates are off from their simulation by {mean:.1f} % in the mean, "
    said += f"{worst:.1f} % at worst."
    return "\n".join([*head, *out, "", said, ""])


def of_papers(results):
    """What docs/papers.md says of both judgements: picks that are right, of those that count."""
    out = []
    for which in (3, 4):
        counted = [(r[1], r[which]) for r in results if counts(r[which])]
        out.append(f"{sum(ratio(times, pick) <= NEAR for pick, times in counted)} of {len(counted)}")
    return out


def proofs(program):
    """Each way, with one piece and several, on meshes and rings."""
    wrong = []
    lists = ["--set", "rows_ns=[9,9,9]", "--set", "step_ns=[9,9,9]", "--set", "columns_ns=[9,9,9]"]
    for gpus in (2, 3, 5, 8):
        for layout, ring in (("mesh", 0), ("ring", 1)):
            for way in range(len(WAYS)):
                for pieces in (1, 4) if way else (1,):
                    given = ["--set", f"N={gpus}", "--set", f"ring={ring}", "--set", f"m={gpus * 64}", "--set", f"way={way}", "--set",
                             f"pieces={pieces}"]
                    done = subprocess.run([program, "check", "--topology", f"{layout}:{gpus}", *given, *lists, TEXT], capture_output=True,
                                          text=True)
                    if done.returncode != 0:
                        wrong.append(f"{' '.join(given)}: {done.stdout}{done.stderr}")
    return wrong


def examples(program, page):
    """Code of the page that begins with a command of --advise, as it is printed."""
    wrong, found = [], 0
    for block in re.findall(r"```\n(\$ sdma explore --advise.*?)```", page.read_text(), re.S):
        command, _, shown = block.partition("\n")
        found += 1
        printed = run(program, *command.split()[2:])
        if printed != shown:
            wrong.append(f"{page}: '{command}' prints\n{printed}")
    return wrong + ([] if found else [f"{page}: no example of --advise"])


def main():
    options = argparse.ArgumentParser()
    options.add_argument("program")
    options.add_argument("--seed", type=int, default=SEED)
    options.add_argument("--cases", type=int, default=CASES)
    options.add_argument("--page", type=pathlib.Path)
    options.add_argument("--bless", type=pathlib.Path)
    for flag in ("--quick", "--list"):
        options.add_argument(flag, action="store_true")
    o = options.parse_args()
    o.program = str(pathlib.Path(o.program).resolve())
    page = o.page or o.bless
    wrong = examples(o.program, page.resolve()) if o.page else []
    if o.quick:
        wrong += proofs(o.program)
    else:
        source = random.Random(o.seed)
        cases = [draw(source) for _ in range(o.cases)]
        with tempfile.TemporaryDirectory() as folder, concurrent.futures.ThreadPoolExecutor(2) as pool:
            paths = [pathlib.Path(folder) / f"{i}.csv" for i in range(len(cases))]
            results = list(pool.map(lambda case, path: judged(o.program, case, path), cases, paths))
        if o.list:
            for case, pick, off, exact, changed in results:
                print(case["shape"], *case["machine"], pick, f"{ratio(exact, pick):.3f} {ratio(changed, pick):.3f}", counts(exact))
        made = tables(results)
        print(made, end="")
        if page:
            text = page.read_text()
            begin, end = text.index(BEGIN) + len(BEGIN), text.index(END)
            if o.bless:
                page.write_text(text[:begin] + "\n" + made + "\n" + text[end:])
            elif text[begin:end].strip() != made.strip():
                wrong.append(f"{page}: not its tables")
            wrong += [f"docs/papers.md: does not say '{said}'" for said in of_papers(results) if said not in PAPERS.read_text()]
    print("\n".join(wrong), file=sys.stderr, end="\n" if wrong else "")
    return 1 if wrong else 0


sys.exit(main())
