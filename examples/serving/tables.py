# SPDX-License-Identifier: MIT
"""What measure.py has found, as results.csv and tables.txt: `report(folder)`."""
import csv
import json


def read(folder):
    path = folder / "cells.jsonl"
    return [json.loads(line) for line in path.read_text().splitlines()] if path.is_file() else []


def key(cell):
    return [cell["prefix"], cell["share"], cell["way"], cell["beside"]]


def report(folder):
    found = read(folder)
    columns = ["prefix", "share", "way", "beside", "copies", "ms", "ms_min", "ms_max", "host_ms", "cpu_ms", "step_ms", "step_ms_min", "step_ms_max", "joules",
               "tokens_per_s", "first_token_s", "wrong_blocks", "token", "error"]  # fmt: skip
    with open(folder / "results.csv", "w", newline="") as f:
        writer = csv.DictWriter(f, columns, extrasaction="ignore")
        writer.writeheader()
        writer.writerows(found)
    by = {tuple(key(c)): c for c in found}
    cell = lambda c, name: "-" if not c or c.get(name) is None else f"{c[name]:.2f}" if name != "ms" else f"{c['ms']:.1f} ({c['ms_min']:.1f}-{c['ms_max']:.1f})"
    lines = []
    for share in sorted({c["share"] for c in found}):
        for prefix in sorted({c["prefix"] for c in found if c["share"] == share and c["beside"] != "load"}):
            lines += ["", f"prefix {prefix}, {share} % neighbours: medians (smallest-largest), ms"]
            lines += [f"{'way':28} {'first token alone':>22} {'beside 32':>22} {'step':>7} {'host':>7} {'cpu':>7} {'J':>7} {'J beside':>8}  wrong"]
            for way in dict.fromkeys(c["way"] for c in found if c["share"] == share and c["prefix"] == prefix and c["beside"] != "load"):
                alone, beside = by.get((prefix, share, way, False)), by.get((prefix, share, way, True))
                error = (alone or {}).get("error") or (beside or {}).get("error") or ""
                wrong = [c.get("wrong_blocks") for c in (alone, beside) if c and c.get("wrong_blocks") is not None]
                lines += [f"{way:28} {cell(alone, 'ms'):>22} {cell(beside, 'ms'):>22} {cell(beside, 'step_ms'):>7} {cell(alone, 'host_ms'):>7} "
                          f"{cell(alone, 'cpu_ms'):>7} {cell(alone, 'joules'):>7} {cell(beside, 'joules'):>8}  {sum(wrong) if wrong else '-'}  {error}"]  # fmt: skip
    loads = [c for c in found if c["beside"] == "load"]
    if loads:
        lines += ["", "under load: way, tokens a second, median time to first token in s, sum of the tokens"]
        lines += [f"{c['way']:28} {c.get('tokens_per_s', 0):.1f} {c.get('first_token_s', 0):.3f} {c.get('sum', '-')} {c.get('error', '')}" for c in loads]
    machine = (folder / "machine.json").read_text() if (folder / "machine.json").is_file() else "the machine was not reached: see log.txt\n"
    (folder / "tables.txt").write_text(machine + "\n".join(lines) + "\n")
    print((folder / "tables.txt").read_text())
