#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Measures tensor parallel layers by way: decode steps and prefills, eager and as graphs. docs/serving.md.

  measure_parallel.py FOLDER             shapes of Llama 8B on two NVIDIA GPUs, at most 150 seconds
  measure_parallel.py FOLDER --small     a tiny model on the software device, to test this script; its times mean nothing

FOLDER gets what cells.py says. Each way has processes of its own: if one fails or hangs, the others are measured. So has the table of
`auto`, FOLDER/auto.json: what is measured in a process can make its later graphs slower (docs/serving.md). A cell's time is that of
its slowest rank. `bits` is a checksum of what the last rows of the last layer are at the end, and `tokens` of all tokens: they are compared
with those of one process.
"""
import argparse
import json
import os
import statistics
import sys
import time
import zlib

import parallel  # first: it sets what must be set before torch is loaded
import ways
from cells import Record, of_all, spread, table

WAYS = ("sdma", "carried", "nccl", "nccl-ce", "auto", "none")
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
        columns = parallel.Columns(place, cell.shards, cell.rows, ways.Way(place, "none"))
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
            for _ in range(part.turns):  # all streams begin together, and graphs with the first place
                part.gather()
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
    return {**of_all("ms", slowest), "host_ms": statistics.median(host[1:]), "rounds": slowest, "bits": bits, "calls": dict(columns.calls),
            "tokens": zlib.crc32(json.dumps(tokens).encode())}  # fmt: skip


def table_of(o, torch, count, rank, session, tell):
    """What `auto` chooses by."""
    place = ways.Place(torch, "soft" if o.small else "cuda", rank, count, session, "table")
    rows = [(size, mode) for _, size in cells(o.small) for mode in ("eager", "graphs")]
    parallel.table_of(place, o.shape, count, o.table, rows, lambda text: tell({"note": text}))


def work_of(o, torch, name, count, rank, session, tell):
    """What a rank measures by one way; rank 0 tells it."""
    say = tell if rank == 0 else lambda _: None
    with torch.no_grad():
        if o.small:
            torch.set_num_threads(1)
        kind = "soft" if o.small else "cuda"
        place = ways.Place(torch, kind, rank, count, session, "measure")
        if name in ("nccl", "nccl-ce", "gloo"):
            parallel.suits(name, kind)
        way = ways.way_of(place, name, o.table, lambda text: tell({"note": text})) if name != "one process" else None
        shards = parallel.shards_of(torch, place, o.shape, o.ranks)
        place.finish()
        for kind, size in cells(o.small):
            cell = Cell(place, shards, kind, size, o.small, o.rounds)
            for mode in ("eager", "graphs") if way else ("eager",):
                key = {"way": name, "kind": kind, "size": size, "mode": mode}
                say({"current": key})
                say({**key, **measured(cell, way, mode, o.rounds)})
            del cell
        if name == "auto":
            say({"way": name, "table": way.table})
        if count > 1:
            place.agree("all are here")  # no rank ends before the others have read its words


def report(record, small):
    by = {(c["way"], c["kind"], c["size"], c["mode"]): c for c in record.cells if "ms" in c}
    names = list(dict.fromkeys(c["way"] for c in record.cells))

    def shown(way, kind, size, mode):
        c, one = by.get((way, kind, size, mode)), by.get(("one process", kind, size, "eager"))
        wrong = "" if not c or not one else "!" if c["tokens"] != one["tokens"] else "*" if c["bits"] != one["bits"] else ""
        return spread(c, "ms") + wrong

    lines = ["Medians in ms (smallest-largest) of the slowest rank; * other bits than one process, ! other tokens.", ""]
    for kind, unit in (("decode", "requests, a step"), ("prefill", "tokens")):
        sizes = [size for k, size in cells(small) if k == kind]
        for mode in ("eager", "graphs"):
            rows = [[way, *(shown(way, kind, size, mode) for size in sizes)] for way in names if any((way, kind, size, mode) in by for size in sizes)]
            lines += table(f"{kind}, {mode}", ["way", *(f"{size:,} {unit}" for size in sizes)], rows)
    chosen = next((c["table"] for c in record.cells if "table" in c), {})
    for mode, found in chosen.items():
        names = list(dict.fromkeys(name for row in found.values() for name in row))
        by_size = sorted((int(size), row) for size, row in found.items())
        rows = [[f"{size:,}", *(f"{row[n]:.1f}" if n in row else "-" for n in names)] for size, row in by_size]
        lines += table(f"a gather by bytes of a rank, {mode}, us (what `auto` chooses by)", ["bytes", *names], rows)
    record.report(lines)


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
    o.shape = parallel.models.Shape() if o.small else parallel.models.LLAMA_8B
    o.shape = parallel.dataclasses.replace(o.shape, layers=o.layers or o.shape.layers)
    record, todo = Record(o.folder, o.seconds), ["one process", *filter(None, o.ways.split(";"))]
    o.table = os.path.join(o.folder, "auto.json")
    import torch

    record.note(f"torch {torch.__version__}")
    for i, name in enumerate(todo):
        count, left = 1 if name == "one process" else o.ranks, record.left()
        # Each of the rest may take its share, and what others have left.
        limit = max(5.0, min(left - 3, left / (len(todo) - i) * 1.7)) if left > 5 else 0
        if name == "auto":
            record.measure({"way": "the table of auto"}, count, lambda rank, session, tell: table_of(o, torch, count, rank, session, tell), limit)
            left = record.left()
        record.measure({"way": name}, count, lambda rank, session, tell: work_of(o, torch, name, count, rank, session, tell), limit)
    report(record, o.small)
    return 0 if any("ms" in c for c in record.cells) else 1


if __name__ == "__main__":
    sys.exit(main())
