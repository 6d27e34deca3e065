#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""T3 (arXiv 2401.16677): its sub-layers over its models and degrees, simulated; the tables of docs/papers.md.

  table.py SDMA                  a row for each sub-layer, on T3's machine and on MI300X, and the means
  table.py SDMA --alternatives   the means where one choice of sizes.csv or machine.json is another

SDMA: the program, such as build/tools/sdma. sizes.csv has the sizes, and says how times and memory traffic follow from them.
"""
import concurrent.futures
import csv
import json
import math
import os
import pathlib
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).parent
SCHEDULE = HERE.parent.parent / "sdma/collectives/t3.sdma"
LENGTHS = {"OP": 1, "FC-2": 4, "FC-1": 4, "IP": 3}  # in hidden / degree
LARGE = ("GPT-3", "PALM", "MT-NLG")
T3 = {"rate": 80 * 1.4e9 * 1024 * 0.8, "cache": 16 << 20, "rings": "both", "ring": True, "degrees": (8, 16, 32)}
MI300X = {"rate": 654e12, "cache": 256 << 20, "rings": "seven", "ring": False, "degrees": (8,)}
ALTERNATIVES = (
    ("one ring, 75 GB/s", {"rings": "one"}),
    ("products at 60 % of their peak", {"rate": T3["rate"] * 0.6 / 0.8}),
    ("products at 100 %", {"rate": T3["rate"] / 0.8}),
    ("without the all-gather", {"gather": "no"}),
    ("kernels release and acquire in no time", {"parameters": ("kernel.release_ns=0", "kernel.poll_ns=0")}),
    ("1 piece", {"pieces": 1}),
    ("400 GB/s of HBM", {"parameters": ("hbm.bytes_per_ns=400",)}),
)


def traffic(rows, columns, length, cache, streams):
    """Bytes that a product reads, if its streams share the cache evenly."""
    a, b, room = rows * length * 2, length * columns * 2, cache / streams
    return min(a + b * math.ceil(a / room), b + a * math.ceil(b / room))


class Simulator:
    def __init__(self, program, folder):
        self.program = program
        self.rings = {degree: pathlib.Path(folder) / f"ring{degree}.json" for degree in T3["degrees"]}
        for degree, path in self.rings.items():
            machine = json.loads((HERE / "machine.json").read_text())
            machine["topology"] = machine["topology"].replace("ring:8", f"ring:{degree}")
            path.write_text(json.dumps(machine))

    def run(self, setup, values, parameters=()):
        """(ns, bytes that the memories of all GPUs read and write)"""
        command = [self.program, "simulate", "--json", "--no-sensitivity"]
        if setup["ring"]:
            command.append(f"--machine={self.rings[values['N']]}")
        for name, value in values.items():
            command += ["--set", f"{name}={value}"]
        for parameter in (*setup.get("parameters", ()), *parameters):
            command += ["--parameter", parameter]
        answer = subprocess.run([*command, str(SCHEDULE)], capture_output=True, text=True)
        if answer.returncode:
            sys.exit(f"{' '.join(command)}: {answer.stdout}{answer.stderr}")
        j = json.loads(answer.stdout)
        return j["ns"], sum(b["bytes"] for b in j["busy"] if b["kind"] == "memory")

    def sub_layer(self, setup, size, name):
        hidden, degree = int(size["hidden"]), int(size["degree"])
        rows = int(size["sequence"]) * int(size["sequences"])
        length = LENGTHS[name] * hidden // degree
        values = {"N": degree, "rings": setup["rings"], "bytes": rows * hidden * 2, "pieces": setup.get("pieces", 4),
                  "gather": setup.get("gather", "yes"), "gemm_ns": round(2 * rows * hidden * length / setup["rate"] * 1e9),
                  "reads": traffic(rows, hidden, length, setup["cache"], 3),
                  "reads_t3": traffic(rows, hidden, length, setup["cache"], 2)}
        gemm, _ = self.run(setup, {**values, "way": "gemm"})
        scatter, _ = self.run(setup, {**values, "way": "sequential", "gemm_ns": 0, "gather": "no"})
        sequential, before = self.run(setup, {**values, "way": "sequential"})
        t3, after = self.run(setup, {**values, "way": "t3"})
        arbiter, _ = self.run(setup, {**values, "way": "t3"}, ("hbm.compute_weight=1000",))
        return {"model": size["model"], "degree": degree, "name": name, "gemm": gemm, "scatter": scatter,
                "sequential": sequential, "t3": t3, "arbiter": arbiter, "ideal": sequential - min(gemm, scatter),
                "moved": 1 - after / before}


def sub_layers(simulator, setup):
    sizes = list(csv.DictReader(line for line in (HERE / "sizes.csv").read_text().splitlines() if not line.startswith("#")))
    all_of = [(setup, size, name) for size in sizes if int(size["degree"]) in setup["degrees"] for name in LENGTHS]
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        return list(pool.map(lambda one: simulator.sub_layer(*one), all_of))


def gains(rows, way):
    """(geometric mean, maximum) of the speed-ups, in percent."""
    ratios = [r["sequential"] / r[way] for r in rows]
    return 100 * (math.exp(sum(map(math.log, ratios)) / len(ratios)) - 1), 100 * (max(ratios) - 1)


def summary(title, rows):
    moved = [100 * r["moved"] for r in rows]
    cells = ["{:.0f} / {:.0f} %".format(*gains(rows, way)) for way in ("t3", "arbiter", "ideal")]
    return f"| {title} | {len(rows)} | {' | '.join(cells)} | -{sum(moved) / len(moved):.0f} / -{max(moved):.0f} % |"


SUMMARY = ("| sub-layers, geometric mean / maximum | rows | T3 | with the arbiter | ideal overlap | bytes of HBM |\n"
           "|---|---|---|---|---|---|")
ROWS = ("| sub-layer | product | reduce-scatter | sequential | T3 | with the arbiter | ideal overlap | bytes of HBM |\n"
        "|---|---|---|---|---|---|---|---|")


def row(r):
    us = [f"{r[k] / 1e3:.0f} us" for k in ("gemm", "scatter", "sequential")]
    ways = [f"{r[k] / 1e3:.0f} us, {100 * (r['sequential'] / r[k] - 1):+.0f} %" for k in ("t3", "arbiter", "ideal")]
    return f"| {r['model']}, {r['degree']}, {r['name']} | {' | '.join(us + ways)} | {-100 * r['moved']:.0f} % |"


def main(program, *options):
    with tempfile.TemporaryDirectory() as folder:
        simulator = Simulator(program, folder)
        if options == ("--alternatives",):
            print(SUMMARY)
            for title, other in ALTERNATIVES:
                print(summary(title, sub_layers(simulator, {**T3, **other})), flush=True)
            return
        ours, mi300x = sub_layers(simulator, T3), sub_layers(simulator, MI300X)
    print(SUMMARY)
    print(summary("T3's machine", ours))
    print(summary("of these, GPT-3, PALM, MT-NLG", [r for r in ours if r["model"] in LARGE]))
    print(summary("MI300X, degree 8", mi300x))
    for title, rows in (("T3's machine", ours), ("MI300X", mi300x)):
        print(f"\n### {title}\n\n{ROWS}")
        print(*map(row, rows), sep="\n")


if len(sys.argv) < 2 or sys.argv[2:] not in ([], ["--alternatives"]):
    sys.exit(__doc__)
main(*sys.argv[1:])
