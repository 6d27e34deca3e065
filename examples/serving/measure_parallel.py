#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Measures tensor parallel layers by way: decode steps and prefills, eager and as graphs. docs/serving.md.

  measure_parallel.py FOLDER             shapes of Llama 8B on two NVIDIA GPUs, at most 150 seconds
  measure_parallel.py FOLDER --small     a tiny model on the software device, to test this script; its times mean nothing

FOLDER gets cells.jsonl (a line for each cell, as soon as it is measured), results.json, tables.md, and auto.json, the table of auto. Each
way has processes of its own: if one fails or hangs, its error is a line, and the others are measured. A cell's time is that of its
slowest rank, the median of the rounds with the smallest and the largest. `bits` is a checksum of what the last rows of the last layer
are at the end, and `tokens` of all tokens: they are compared with those of one process.
"""
import argparse
import json
import pathlib
import statistics
import sys
import time
import zlib

import parallel  # first: it sets what must be set before torch is loaded
import gather
import ranks

WAYS = ("sdma", "nccl", "nccl-ce", "auto", "none")
STEPS, CONTEXT = 4, 512  # decode steps of a round; tokens before the first


def cells(small):
    """(kind, size): decode of a batch, prefill of tokens."""
    sizes = {"decode": (1, 4), "prefill": (16,)} if small else {"decode": (1, 8, 32, 128), "prefill": (512, 2048, 8192)}
    return [(kind, size) for kind, all in sizes.items() for size in all]


def checksum(tensor):
    return zlib.crc32(bytes(tensor.cpu().contiguous().float().numpy()))


class Cell:
    """A step of a kind and size, on new pools."""

    def __init__(self, place, shards, kind, size, small, rounds):
        torch, self.place, self.shards, self.kind = place.torch, place, shards, kind
        block, context = shards[0].shape.block, 8 if small else CONTEXT
        tokens = context + (rounds + 2) * STEPS + 2 if kind == "decode" else size
        batch, each = (size, -(-tokens // block)) if kind == "decode" else (1, -(-size // block))
        self.pools = []
        for shard in shards:
            pool = parallel.pool_of(torch, shard, batch * each)
            self.pools.append(pool.normal_(generator=torch.Generator(device=place.where).manual_seed(shard.rank)))
        tables = [list(range(i * each, (i + 1) * each)) for i in range(batch)]
        self.rows = size
        if kind == "decode":
            self.pages = lambda: [parallel.Steps(s, p, tables, context) for s, p in zip(shards, self.pools)]
        else:
            prompt = [parallel.Prompt(s, p, tables, size) for s, p in zip(shards, self.pools)]
            self.pages = lambda: prompt
            self.prompt = torch.arange(size, device=place.where)[None] % shards[0].shape.vocabulary

    def work(self, columns):
        """(what computes a step and leaves its tokens in found[0], found)."""
        pages, found = self.pages(), [None]

        def step():
            found[0] = parallel.step(self.shards, columns, pages[0].tokens if self.kind == "decode" else self.prompt, pages)

        return step, found


def measured(cell, way, mode, rounds):
    """The times of a cell, and its checksums."""
    place, gpu, torch = cell.place, cell.place.gpu, cell.place.torch
    # Before streams wait for each other: all kernels are loaded, and torch has its memory.
    if way:
        columns = parallel.Columns(place, cell.shards, cell.rows, gather.Way(place, "none"))
        cell.work(columns)[0]()
        place.finish()
    columns = parallel.Columns(place, cell.shards, cell.rows, way, mode)
    step, found = cell.work(columns)
    again, tokens, ms, host = parallel.Repeated(place, columns, step, mode), [], [], []
    each = STEPS if cell.kind == "decode" else 1
    again.run()  # a graph's tokens have a place of their own from its capture on, so these are not compared
    place.finish()
    for round in range(rounds + 1):
        place.agree(round)
        for part in columns.parts.values() if gpu else ():
            part.gather()  # all streams begin together
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2)) if gpu else (None, None)
        t0 = time.perf_counter()
        if gpu:
            begin.record()
        for _ in range(each):
            again.run()
        if gpu:
            end.record()
        t1 = time.perf_counter()
        place.finish()
        t2 = time.perf_counter()
        tokens.append(found[0].tolist())
        ms.append((begin.elapsed_time(end) if gpu else (t2 - t0) * 1e3) / each)
        host.append((t1 - t0) * 1e3 / each)
    bits = checksum(cell.shards[0].last[-128:])
    slowest = [max(of) for of in zip(*place.agree(ms[1:]))]
    columns.free()
    return {"ms": statistics.median(slowest), "ms_min": min(slowest), "ms_max": max(slowest), "host_ms": statistics.median(host[1:]), "rounds": slowest,
            "bits": bits, "tokens": zlib.crc32(json.dumps(tokens).encode()), "calls": {k: n for k, n in columns.calls.items()}}  # fmt: skip


def work_of(o, torch, name, count, rank, session, tell):
    """What a rank measures by one way; rank 0 tells it."""
    say = tell if rank == 0 else lambda _: None
    with torch.no_grad():
        if o.small:
            torch.set_num_threads(1)
        kind = "soft" if o.small else "cuda"
        begin = time.perf_counter()
        place = gather.Place(torch, kind, rank, count, session, "measure")
        if name in ("nccl", "nccl-ce", "gloo"):
            parallel.suits(name, kind)
        way = gather.way_of(place, name, note=lambda text: tell({"note": text})) if name != "one process" else None
        shards = parallel.shards_of(torch, place, o.shape, o.ranks)
        place.finish()
        say({"note": f"{name}: ready after {time.perf_counter() - begin:.1f} s"})
        for kind, size in cells(o.small):
            cell = Cell(place, shards, kind, size, o.small, o.rounds)
            for mode in ("eager", "graphs") if way else ("eager",):
                say({"current": f"{name}: {kind} {size}, {mode}"})
                say({"way": name, "kind": kind, "size": size, "mode": mode, **measured(cell, way, mode, o.rounds)})
            del cell
        if name == "auto":
            say({"table": way.table})
        say({"note": f"{name}: done after {time.perf_counter() - begin:.1f} s"})
        if count > 1:
            place.agree("all are here")  # no rank ends before the others have read its words


def report(folder, found, notes, o):
    """results.json and tables.md."""
    by = {(c["way"], c["kind"], c["size"], c["mode"]): c for c in found if "ms" in c}
    ways = list(dict.fromkeys(c["way"] for c in found))
    lines = ["Medians in ms (smallest-largest) of the slowest rank; * other bits than one process, ! other tokens.", ""]
    for kind in ("decode", "prefill"):
        sizes = [size for k, size in cells(o.small) if k == kind]
        for mode in ("eager", "graphs"):
            unit = "requests, a step" if kind == "decode" else "tokens"
            lines += [f"{kind}, {mode}", "", f"| way | {' | '.join(f'{size:,} {unit}' for size in sizes)} |", "|---" * (len(sizes) + 1) + "|"]
            for way in ways:
                row = [by.get((way, kind, size, mode)) for size in sizes]
                if any(row):
                    lines.append(f"| {way if way == 'one process' else f'`{way}`'} | {' | '.join(shown(c, by, kind, size) for c, size in zip(row, sizes))} |")
            lines.append("")
    table = next((c["table"] for c in found if "table" in c), {})
    for mode, rows in table.items():
        names = list(dict.fromkeys(name for row in rows.values() for name in row))
        lines += [f"a gather by bytes of a rank, {mode}, us (what `auto` chooses by)", "", f"| bytes | {' | '.join(names)} |", "|---" * (len(names) + 1) + "|"]
        lines += [f"| {int(size):,} | {' | '.join(f'{row[n]:.1f}' if n in row else '-' for n in names)} |" for size, row in sorted(rows.items(), key=lambda r: int(r[0]))]
        lines.append("")
    lines += [f"- {c['way']}: {c['error']}" for c in found if "error" in c] + [f"- {note}" for note in notes]
    (folder / "tables.md").write_text("\n".join(lines) + "\n")
    (folder / "results.json").write_text(json.dumps({"cells": found, "notes": notes}, indent=1) + "\n")
    (folder / "auto.json").write_text(json.dumps(table, indent=1) + "\n")
    print("\n".join(lines))


def shown(c, by, kind, size):
    if not c:
        return "-"
    one = by.get(("one process", kind, size, "eager"), c)
    wrong = "!" if c["tokens"] != one["tokens"] else "*" if c["bits"] != one["bits"] else ""
    return f"{c['ms']:.2f} ({c['ms_min']:.2f}-{c['ms_max']:.2f}){wrong}"


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("folder")
    p.add_argument("--small", action="store_true")
    p.add_argument("--ranks", type=int, default=2)
    p.add_argument("--rounds", type=int, default=7)
    p.add_argument("--seconds", type=float, default=150)
    p.add_argument("--layers", type=int, help="instead of the model's")
    p.add_argument("--ways", default=";".join(WAYS), help="only these, with ';' between them")
    o = p.parse_args()
    folder, begin = pathlib.Path(o.folder), time.monotonic()
    folder.mkdir(parents=True, exist_ok=True)
    o.shape = parallel.models.Shape() if o.small else parallel.models.LLAMA_8B
    o.shape = parallel.dataclasses.replace(o.shape, layers=o.layers or o.shape.layers)
    found, notes, todo = [], [], ["one process", *(way for way in o.ways.split(";") if way)]
    import torch

    notes.append(f"torch {torch.__version__}; import {time.monotonic() - begin:.1f} s")
    for i, name in enumerate(todo):
        current = ["the beginning"]

        def told(rank, what):
            if "current" in what:
                current[0] = what["current"]
            elif "note" in what:
                notes.append(what["note"] + ("" if rank == 0 else f" (rank {rank})"))
                print(f"{time.monotonic() - begin:6.1f} s  {notes[-1]}", flush=True)
            else:
                found.append({"way": name, **what})
                with open(folder / "cells.jsonl", "a") as f:
                    f.write(json.dumps(found[-1]) + "\n")

        left = o.seconds - (time.monotonic() - begin)
        try:
            if left < 5:
                raise ranks.Failed(f"no time was left of {o.seconds:g} s")
            count = 1 if name == "one process" else o.ranks
            # Each of the rest may take its share, and what others have left.
            limit = max(5.0, min(left - 3, left / (len(todo) - i) * 1.7))
            ranks.run(count, lambda rank, session, tell: work_of(o, torch, name, count, rank, session, tell), told, limit)
        except ranks.Failed as error:
            told(0, {"error": f"in {current[0]}: {error}"})
            print(f"{name}: in {current[0]}: {error}", flush=True)
    report(folder, found, notes, o)
    return 0 if any("ms" in c for c in found) else 1


if __name__ == "__main__":
    sys.exit(main())
