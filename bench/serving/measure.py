#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Measures ways to fetch a prefix: time to first token alone and beside decoding, decode steps of the others, host time, energy; and
how soon a copy begins that waits for a store.

  measure.py FOLDER                  shapes of Llama 8B on an NVIDIA GPU, at most 8 minutes
  measure.py FOLDER --small          a tiny model on the software device, to test this script; its times mean nothing

FOLDER gets what cells.py says. A process measures. If it ends or hangs in a cell, that cell is recorded as failed, and a new process goes
on after it; what FOLDER has already is not measured again.
"""
import argparse
import ctypes
import os
import random
import statistics
import sys
import time

import example  # noqa: F401, I001
from cells import Record, of_all, spread, table

# Before the driver is loaded: streams that wait must not share connections.
os.environ.setdefault("CUDA_DEVICE_MAX_CONNECTIONS", "32")

OURS = {  # name: (way, threads, group)
    "block": ("block", 1, 0),
    "batch": ("batch", 1, 0),
    "layer": ("layer", 1, 0),
    "layer, groups of 1": ("layer", 1, 1),
    "layer, 2 threads": ("layer", 2, 0),
    "prelaunched": ("prelaunched", 1, 0),
    "prelaunched, 2 queues": ("prelaunched", 2, 0),
}
BY_HAND = ["hand: batch", "hand: batch by layer", "gather", "gather, 8 blocks", "gather by layer", "hand: each"]
# Not among those that `layer` is compared with in ../../docs/serving.md: it publishes as `layer` does, beside the compute.
LIKE_OURS = "hand: batch, beside the compute"
WAYS = ["none", "one copy", "hand: batch", "hand: batch by layer", "batch", "layer", "layer, groups of 1", "layer, 2 threads", "prelaunched",
        "prelaunched, 2 queues", "gather", "gather, 8 blocks", "gather by layer", LIKE_OURS, "block", "hand: each"]  # fmt: skip
SHARED = ["layer", "layer, 2 threads", "prelaunched", "hand: batch by layer", "gather by layer"]
UNCHECKED = ("none", "one copy")  # ways that fetch no blocks
FIRST = ["by hand", "prelaunched"]  # what is behind the wait: a stream's copy, or a queue's
FATAL = ("have stopped", "the stream refused", "CUDA error")  # errors that stay for the life of a process
OTHERS, STEPS, NEW = 32, 30, 64  # requests that are decoded meanwhile, their steps, and the tokens after the prefix
SILENT = 60  # seconds without a word after which the process hangs


def cells(small):
    """(prefix, share of neighbours in %, way, beside others), the most wanted first."""
    prefixes = (8192, 2048, 24576) if not small else (32, 16)
    all = [(p, 0, w, b) for p in prefixes for b in (False, True) for w in WAYS]
    all += [(p, share, w, b) for p in prefixes for share in (50, 100) for b in (False, True) for w in ["none", *SHARED]]
    return [(4, 0, w, "first") for w in FIRST] + all + [(prefixes[1], 0, w, "load") for w in ("none", "layer", "block")]


def chosen(blocks, pool, share, seed=1):
    """`blocks` blocks of the host's pool; `share` % of them, 0, 50 or 100, directly follow the one before."""
    draw = random.Random(seed)
    if share in (0, 100):
        return list(range(blocks)) if share else draw.sample(range(pool), blocks)
    runs = [2] * (blocks * share // 100) + [1] * (blocks - 2 * (blocks * share // 100))
    draw.shuffle(runs)
    gaps = sorted(draw.randrange(pool - blocks + 1) for _ in runs)  # at random, and each run gets at least its own
    all, at = [], 0
    for skip, n in zip(gaps, runs):
        all.append([skip + at + i for i in range(n)])
        at += n
    draw.shuffle(all)
    return sum(all, [])


class Bench:
    """The machine, the model, the pools and 32 others that decode."""

    def __init__(self, small, rounds, note):
        import numpy
        import torch

        import fetch
        import gpu
        import model
        import pools
        import sdma_client

        self.small, self.rounds, self.note = small, rounds, note
        self.torch, self.np, self.fetch, self.copy, self.Pages = torch, numpy, fetch, sdma_client.COPY, model.Pages
        self.device = sdma_client.Device("soft" if small else "cuda", "gpus=1" if small else "")
        self.gpu = (gpu.Host if small else gpu.Cuda)(torch, self.device)
        note(f"{self.gpu.name}, torch {torch.__version__}; {self.gpu.why_no_hand or 'hand.cu is compiled'}")
        s = self.shape = model.Shape() if small else model.LLAMA_8B
        per_other = (8 if small else 1024) // s.block
        pool_blocks = 12 if small else 1600
        first = pool_blocks + NEW // s.block
        self.memory = pools.Memory(torch, self.device, s, first + OTHERS * per_other, pool_blocks)
        bytes = s.layers * 2 * pool_blocks * s.block_bytes(self.memory.host.element_size())
        number = lambda n, at: torch.arange(n, dtype=torch.float32).view([-1 if i == at else 1 for i in range(6)])
        value = (number(pool_blocks, 2) + 31 * number(s.layers, 0) + 7 * number(2, 1) + 3 * number(s.block, 3)) % 251 / 251 - 0.5
        self.memory.host.copy_(value)
        if small:
            scratch = self.device.allocate(0, bytes)
        else:
            self.scratch = torch.empty(bytes // 2, dtype=torch.int16, device="cuda")
            scratch = self.device.adopt(self.scratch.data_ptr(), bytes)
        self.scratch_address = scratch.address
        note("the pools are filled")
        self.model = model.Model(torch, s, self.gpu.where, self.memory.dtype)
        tables = [list(range(first + i * per_other, first + (i + 1) * per_other)) for i in range(OTHERS)]
        pages = self.Pages(self.model, self.memory.gpu, tables, [per_other * s.block - 1] * OTHERS, 1)
        tokens = torch.full((OTHERS, 1), 3, device=self.gpu.where)
        self.kept, self.fetchers, self.prefills = [], {}, {}
        self.decode = self.as_graph(lambda: self.model.run(tokens, pages), "the decode step")
        note("the decode step is there")

    def as_graph(self, work, what):
        self.kept.append(work)  # a graph reads tensors of its work, and does not keep them
        try:
            return self.gpu.captured(work, what.split()[-1])
        except RuntimeError as error:
            self.note(f"{what} is not a graph: {str(error).splitlines()[0]}")
            return work

    def prefill(self, prefix):
        """Per layer, what computes it after the prefix; the last one also gives the token, in `token`."""
        if prefix in self.prefills:
            return self.prefills[prefix]
        torch, n = self.torch, prefix // self.shape.block
        table = list(range(n + NEW // self.shape.block))
        pages = self.Pages(self.model, self.memory.gpu, [table], [prefix], NEW)
        tokens = torch.arange(NEW, device=self.gpu.where)[None] % self.shape.vocabulary
        x, token = {0: self.model.w["embed"][tokens]}, {}

        def layer(l):
            def work():
                x[l + 1] = self.model.layer(l, x[l], pages)
                if l + 1 == self.shape.layers:
                    token[0] = self.model.next_tokens(x[l + 1])

            return self.as_graph(work, f"layer {l} of a prefill")

        self.prefills[prefix] = [layer(l) for l in range(self.shape.layers)], token
        return self.prefills[prefix]

    def fetcher(self, name, *settings):
        """One at a time: queues are few."""
        if name not in self.fetchers:
            self.no_fetchers()
            self.fetchers[name] = self.fetch.Fetcher(self.device, self.memory, *settings)
        return self.fetchers[name]

    def no_fetchers(self):
        for f in self.fetchers.values():
            f.close()
        self.fetchers.clear()

    def way(self, name, prefix, share):
        """(prepare, begin, before(layer), end) of a way."""
        n, stream, nothing = prefix // self.shape.block, self.gpu.prefill_stream, lambda *_: None
        src, dst = chosen(n, self.memory.blocks["host"], share), list(range(n))
        if name == "none":
            return nothing, nothing, nothing, nothing
        if name not in OURS and name != "one copy":
            return self.by_hand(name, src, dst)
        f = self.fetcher(name, *OURS.get(name, ("batch",)))
        if name == "one copy":
            import numpy as np

            copies = [np.zeros(1, self.copy)]
            copies[0]["src"], copies[0]["dst"], copies[0]["rows"] = self.memory.host_memory.address, self.scratch_address, 1
            copies[0]["bytes"] = n * 2 * self.shape.layers * self.memory.block
        else:
            copies = f.copies_of(src, dst)
        prepare = (lambda: f.ahead(copies)) if f.way == "prelaunched" else nothing
        return prepare, lambda: f.begin(stream, copies), lambda l: f.before(l, stream), lambda: f.end(stream)

    def by_hand(self, name, src, dst):
        torch, lib = self.torch, self.gpu.hand
        if not lib:
            raise RuntimeError(self.gpu.why_no_hand)
        of, layers = self.memory.of, range(self.shape.layers)
        lists = [[[of(where, l, which, b) for which in (0, 1) for b in blocks] for l in layers] for where, blocks in (("gpu", dst), ("host", src))]
        if "layer" not in name and name != LIKE_OURS:
            lists = [[sum(each, [])] for each in lists]
        on = "cuda" if name.startswith("gather") else "cpu"
        dsts, srcs = ([torch.tensor(l, dtype=torch.int64, device=on) for l in each] for each in lists)
        events = [torch.cuda.Event() for _ in dsts]
        p, z, s = ctypes.c_void_p, ctypes.c_size_t, self.gpu.copying
        call, more = lib.hand_batch, (z(4096),)
        if name == "hand: each":
            call, more = lib.hand_each, ()
        elif name.startswith("gather"):
            call, more = lib.hand_gather, (ctypes.c_uint(8 if "8 blocks" in name else 0),)

        def issue(l):
            d, f = dsts[l], srcs[l]
            if status := call(p(d.data_ptr()), p(f.data_ptr()), z(len(d)), z(self.memory.block), *more, p(s.cuda_stream)):
                raise RuntimeError(f"CUDA error {status}")
            events[l].record(s)

        def begin():
            for l in range(1 if name == LIKE_OURS else len(events)):
                issue(l)

        def before(l):
            if name == LIKE_OURS and l > 0:
                issue(l)
            if l < len(events):
                self.gpu.prefilling.wait_event(events[l])

        return lambda: None, begin, before, lambda: None

    def first_byte(self, name):
        """Microseconds from a store to the first byte of a copy of 4 bytes that waits for it, as the host sees both: hand_store."""
        lib, gpu = self.gpu.hand, self.gpu
        if not lib:
            raise RuntimeError(self.gpu.why_no_hand)
        self.no_fetchers()
        words = self.device.allocate(-1, 4096)
        at = (ctypes.c_uint32 * 1024).from_buffer(words.bytes())
        seen, go = words.address, words.address + 256
        self.memory.gpu.view(self.torch.int32).view(-1)[0] = 7
        gpu.synchronize()
        source, rows = self.memory.gpu_memory.address, []
        lib.hand_store.argtypes, lib.hand_took.restype = [ctypes.c_void_p, ctypes.c_uint64, ctypes.c_uint32], ctypes.c_double
        store = type(gpu.prefill_stream)(ctypes.c_void_p(seen), ctypes.cast(lib.hand_store, ctypes.c_void_p), None)
        hold = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_uint64, ctypes.c_uint32)(gpu.prefill_stream.hold)
        queues = self.device.copies(0, "queues=1 parts=1 direction=to_host") if name == "prelaunched" else None
        one = self.np.zeros(1, self.copy)
        one["src"], one["dst"], one["bytes"], one["rows"] = source, seen, 4, 1
        for round in range(200 * (1 + self.rounds)):
            at[0] = 0
            if queues:
                queues.round()
                queues.publish(0, 0, one)
            else:
                pointers = (ctypes.c_void_p(p) for p in (seen, source, gpu.prefilling.cuda_stream))
                if status := hold(gpu.prefill_stream.stream, go, round + 1) or lib.hand_read(*pointers):
                    raise RuntimeError(f"CUDA error {status}")
            time.sleep(100e-6)
            if queues:
                queues.release(store)
            else:
                lib.hand_store(seen, go, round + 1)
            rows.append(lib.hand_took())
            gpu.synchronize()
        if queues:
            queues.free()
        per_round = [statistics.median(rows[i : i + 200]) for i in range(200, len(rows), 200)]
        return {"rounds": [{"first_us": v} for v in per_round], **of_all("first_us", per_round)}

    def wrong(self, prefix, share):
        """How many of some blocks of the GPU differ from those of the host."""
        n = prefix // self.shape.block
        some = range(0, n, max(1, n // 61))
        src, bad = chosen(n, self.memory.blocks["host"], share), 0
        for l in range(self.shape.layers):
            there, right = self.memory.gpu[l, :, list(some)].cpu(), self.memory.host[l][:, [src[i] for i in some]]
            bad += int((there != right).flatten(2).any(-1).sum())
        return bad

    def measure(self, prefix, share, name, beside):
        if beside == "first":
            return self.first_byte(name)
        if beside == "load":
            return self.load(prefix, name)
        layers, token = self.prefill(prefix)
        prepare, begin, before, end = self.way(name, prefix, share)
        rows, n, tokens, checked = [], prefix // self.shape.block, set(), name not in UNCHECKED
        cell = {"copies": 2 * n * self.shape.layers}
        warm = 1 if name in ("block", "hand: each") and prefix > 10000 else 2

        def work():
            for l, layer in enumerate(layers):
                before(l)
                layer()

        for round in range(warm + self.rounds):
            if round == 0 and checked:
                self.memory.gpu[:, :, :n] = 0
            self.gpu.synchronize()
            prepare()  # a queue may wait for its release now, so nothing waits for the whole GPU before that
            if round == warm:
                joules, issued = self.gpu.energy(), self.gpu.issued()
            step = self.gpu.others(self.decode, STEPS) if beside else None
            t0, cpu0 = time.perf_counter(), time.process_time()
            begin()
            t1 = time.perf_counter()
            self.gpu.prefill(work)
            t2, cpu1 = time.perf_counter(), time.process_time()
            end()
            self.gpu.synchronize()
            if round == 0 and checked:
                cell["wrong_blocks"] = self.wrong(prefix, share)
            if checked:
                tokens.add(int(token[0][0]))
            if round >= warm:
                rows.append({"ms": (t2 - t0) * 1e3, "host_ms": (t1 - t0) * 1e3, "cpu_ms": (cpu1 - cpu0) * 1e3, **({"step_ms": step()} if step else {})})
        used = self.gpu.energy()
        if name in OURS and issued:
            cell["issued"] = {what: (n - issued[what]) / self.rounds for what, n in self.gpu.issued().items()}
        if None not in (joules, used):
            cell["joules"] = (used - joules) / self.rounds
        for what in rows[0]:
            cell.update(of_all(what, [r[what] for r in rows]))
        return {**cell, "rounds": rows, "token": " ".join(map(str, sorted(tokens)))}

    def load(self, prefix, name):
        """Tokens a second of a server that gets more than it can do."""
        import server

        self.no_fetchers()
        blocks, batch, count, new, wanted = (64, 4, 4, 4, 4) if self.small else (4096, OTHERS, 40, NEW, 32)
        s = server.Server(self.torch, self.device, self.shape, offload="" if name == "none" else name, gpu_blocks=blocks,
                          host_blocks=prefix // self.shape.block * 2, batch=batch)  # fmt: skip
        try:
            all = server.trace(self.shape, count, 100.0, 2, prefix, new, wanted, 1)
            for r in all if s.fetcher else ():
                s.cache(r.prefix)
            self.gpu.synchronize()
            begin = time.perf_counter()
            s.serve(all)
            self.gpu.synchronize()
            took = time.perf_counter() - begin
            first = [r.first - begin - r.arrival for r in all]
            return {"tokens_per_s": count * wanted / took, "first_token_s": statistics.median(first), "seconds": took, "sum": sum(sum(r.tokens) for r in all)}
        finally:
            s.close()


def child(o, todo, end, tell):
    """Measures these cells, until `end`."""
    bench = Bench(o.small, o.rounds, lambda text: tell({"note": text}))
    with bench.torch.no_grad():
        for cell in todo:
            if time.monotonic() > end:
                return
            key = dict(zip(("prefix", "share", "way", "beside"), cell))
            tell({"current": key})
            try:
                found = bench.measure(*cell)
            except Exception as error:  # the others are still wanted
                text = " ".join(f"{type(error).__name__}: {str(error)[:300]}".split())
                if any(words in text for words in FATAL):
                    raise
                found = {"error": text}
            tell({**key, **found})


def report(record):
    by = {key(c): c for c in record.cells if "way" in c}
    firsts = [[c["way"], spread(c, "first_us")] for c in by.values() if c["beside"] == "first"]
    all = list(by.values())
    number = lambda c, name: f"{c[name]:.2f}" if c and c.get(name) is not None else "-"
    lines = []
    for share, prefix in sorted({(c["share"], c["prefix"]) for c in all if isinstance(c["beside"], bool)}):
        rows = []
        for way in dict.fromkeys(c["way"] for c in all if (c["share"], c["prefix"]) == (share, prefix) and isinstance(c["beside"], bool)):
            alone, beside = (by.get((prefix, share, way, b)) for b in (False, True))
            wrong = [c["wrong_blocks"] for c in (alone, beside) if c and "wrong_blocks" in c]
            rows.append([way, spread(alone, "ms"), spread(beside, "ms"), number(beside, "step_ms"), number(alone, "host_ms"), number(alone, "cpu_ms"),
                         number(alone, "joules"), number(beside, "joules"), str(sum(wrong)) if wrong else "-", chosen_rows(alone), chosen_rows(beside)])  # fmt: skip
        lines += table(f"prefix {prefix}, {share} % neighbours: medians (smallest-largest), ms",
                       ["way", "first token alone", "beside 32", "step", "host", "cpu", "J", "J beside", "wrong blocks",
                        "strided %", "beside"], rows)  # fmt: skip
    loads = [c for c in all if c["beside"] == "load"]
    rows = [[c["way"], number(c, "tokens_per_s"), number(c, "first_token_s"), str(c.get("sum", "-"))] for c in loads]
    lines += table("first byte of a copy of 4 bytes after the store that it waits for, us", ["way", "median (smallest-largest)"], firsts)
    lines += table("`layer` against the fastest way by hand", ["prefix", "beside", "fastest by hand", "ratio of the medians", "middle halves apart"], compared(by))
    record.report(lines + table("under load", ["way", "tokens a second", "median s to the first token", "sum of the tokens"], rows))


def chosen_rows(cell):
    """How many rows the device has moved as strided copies, in %, and wakes of its thread."""
    if not cell or "issued" not in cell:
        return "-"
    n = cell["issued"]
    return f"{100 * n['rows'] / max(1, n['rows'] + n['copies']):.0f}, {n['wakes']:.1f} wakes"


def compared(by):
    """`layer` and the fastest of BY_HAND in each cell. "yes": all of the faster one's middle half is below the other's."""
    rows = []
    for (prefix, share, way, beside), ours in by.items():
        rivals = [c for w in BY_HAND if (c := by.get((prefix, share, w, beside))) and "ms" in c]
        if way != "layer" or not isinstance(beside, bool) or "ms" not in ours or not rivals:
            continue
        best = min(rivals, key=lambda c: c["ms"])
        half = lambda c: statistics.quantiles([r["ms"] for r in c["rounds"]], n=4)[::2] if len(c["rounds"]) > 1 else [c["ms"]] * 2
        (a, b), (c, d) = half(ours), half(best)
        rows.append([f"{prefix}, {share} %", str(beside), best["way"], f"{ours['ms'] / best['ms']:.2f}", "faster" if b < c else "slower" if d < a else "no"])
    return rows


def key(cell):
    return cell["prefix"], cell["share"], cell["way"], cell["beside"]


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("folder")
    p.add_argument("--small", action="store_true")
    p.add_argument("--rounds", type=int, default=7)
    p.add_argument("--seconds", type=float, default=450)
    p.add_argument("--ways", default="", help="only these, with ';' between them")
    p.add_argument("--only", default="", help="only these prefixes and shares of neighbours, as 8192:0,8192:50")
    o = p.parse_args()
    record, went_on = Record(o.folder, o.seconds), True
    while went_on and record.left() > 10:
        done = [key(c) for c in record.cells if "way" in c]
        todo = [c for c in cells(o.small) if c not in done and (not o.ways or c[2] in o.ways.split(";"))
                and (not o.only or f"{c[0]}:{c[1]}" in o.only.split(","))]  # fmt: skip
        end = time.monotonic() + record.left()
        well = record.measure({}, 1, lambda rank, session, tell: child(o, todo, end, tell), record.left() + 30, SILENT)
        went_on = not well and "way" in record.cells[-1]  # and not before the first cell
    report(record)
    return 0 if any("ms" in c for c in record.cells) else 1


if __name__ == "__main__":
    sys.exit(main())
