#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Measures ways to fetch a prefix: time to first token alone and beside decoding, decode steps of the others, host time, energy.

  measure.py FOLDER                  shapes of Llama 8B on an NVIDIA GPU, at most 8 minutes
  measure.py FOLDER --small          a tiny model on the software device, to test this script; its times mean nothing

FOLDER gets cells.jsonl (a line for each cell, as soon as it is measured), results.csv, tables.txt and log.txt. A child process measures.
If it ends or hangs in a cell, that cell is recorded as failed, and a new child goes on after it.
"""
import argparse
import json
import os
import pathlib
import random
import statistics
import subprocess
import sys
import time

from tables import key, read, report

# Before the driver is loaded: streams that wait must not share connections.
os.environ.setdefault("CUDA_DEVICE_MAX_CONNECTIONS", "32")

OURS = {  # name: (way, threads, chunk)
    "block": ("block", 1, 0),
    "batch": ("batch", 1, 0),
    "layer": ("layer", 1, 0),
    "layer, 2 threads": ("layer", 2, 0),
    "layer, chunks": ("layer", 1, 224),
    "layer, 2 threads, chunks": ("layer", 2, 224),
    "layer, 4 threads, chunks": ("layer", 4, 224),
    "prelaunched": ("prelaunched", 1, 0),
    "prelaunched, 2 queues": ("prelaunched", 2, 0),
}
HAND = ["hand: each", "hand: batch", "hand: batch by layer", "hand: batches of 64 by layer", "gather", "gather, 8 blocks", "gather by layer"]
WAYS = ["none", "one copy", *HAND[1:4], "batch", "layer", "layer, 2 threads", "prelaunched", "prelaunched, 2 queues", *HAND[4:], "block", "hand: each",
        "layer, chunks", "layer, 2 threads, chunks", "layer, 4 threads, chunks"]  # fmt: skip
SHARED = ["layer", "layer, 2 threads", "prelaunched", "hand: batch by layer", "gather by layer"]
OTHERS, STEPS, NEW = 32, 30, 64  # requests that are decoded meanwhile, their steps, and the tokens after the prefix


def cells(small):
    """(prefix, share of neighbours in %, way, beside others), the most wanted first."""
    prefixes = (8192, 2048, 24576) if not small else (32, 16)
    all = [(p, 0, w, b) for p in prefixes for b in (False, True) for w in WAYS]
    all += [(p, share, w, b) for p in prefixes for share in (50, 100) for b in (False, True) for w in ["none", *SHARED]]
    return all + [(prefixes[1], 0, w, "load") for w in ("none", "layer", "block")]


def chosen(blocks, pool, share, seed=1):
    """`blocks` blocks of the host's pool; `share` % of them directly follow the one before."""
    draw = random.Random(seed)
    if share >= 100:
        return list(range(blocks))
    if share == 0:
        return draw.sample(range(pool), blocks)
    runs = [2] * (blocks * share // 100) + [1] * (blocks - 2 * (blocks * share // 100)) if share <= 50 else []
    draw.shuffle(runs)
    gaps, at, out = pool - blocks, 0, []
    starts = []
    for n in runs:  # gaps are spread at random, and each run gets at least its own
        starts.append((at, n))
        at += n
    skips = sorted(draw.randrange(gaps + 1) for _ in runs)
    all = [[skip + s + i for i in range(n)] for (s, n), skip in zip(starts, skips)]
    draw.shuffle(all)
    for each in all:
        out += each
    return out


class Bench:
    """The machine, the model, the pools and 32 others that decode."""

    def __init__(self, o):
        import torch

        import fetch
        import gpu
        import model
        import sdma_client

        self.o, self.torch, self.fetch = o, torch, fetch
        self.device = sdma_client.Device("soft" if o.small else "cuda", "gpus=1" if o.small else "")
        self.gpu = (gpu.Host if o.small else gpu.Cuda)(torch, self.device)
        s = self.shape = model.Shape() if o.small else model.LLAMA_8B
        self.dtype, element = (torch.float32, 4) if o.small else (torch.bfloat16, 2)
        self.per_other = (8 if o.small else 1024) // s.block
        self.pool_blocks = 12 if o.small else 1600
        self.gpu_blocks = self.pool_blocks + NEW // s.block + OTHERS * self.per_other
        bytes = lambda n: s.layers * 2 * n * s.block_bytes(element)
        form = lambda n: (s.layers, 2, n, s.block, s.kv_heads, s.head)
        host = self.device.allocate(sdma_client.HOST, bytes(self.pool_blocks))
        self.host = torch.frombuffer(host.bytes(), dtype=self.dtype).view(form(self.pool_blocks))
        number = lambda n, at: torch.arange(n, dtype=torch.float32).view([-1 if i == at else 1 for i in range(6)])
        value = (number(self.pool_blocks, 2) + 31 * number(s.layers, 0) + 7 * number(2, 1) + 3 * number(s.block, 3)) % 251 / 251 - 0.5
        self.host.copy_(value)
        if o.small:
            memory = self.device.allocate(0, bytes(self.gpu_blocks))
            self.kv = torch.frombuffer(memory.bytes(), dtype=self.dtype).view(form(self.gpu_blocks)).zero_()
        else:
            self.kv = torch.zeros(form(self.gpu_blocks), dtype=self.dtype, device="cuda")
            torch.cuda.synchronize()
            memory = self.device.adopt(self.kv.data_ptr(), bytes(self.gpu_blocks))
            self.scratch = torch.empty(bytes(self.pool_blocks) // 2, dtype=torch.int16, device="cuda")
            self.scratch_memory = self.device.adopt(self.scratch.data_ptr(), bytes(self.pool_blocks))
        if o.small:
            self.scratch_memory = self.device.allocate(0, bytes(self.pool_blocks))
        self.host_memory, self.block = host, s.block_bytes(element)
        self.pools = fetch.Pools(s, element, memory.address, self.gpu_blocks, host.address, self.pool_blocks)
        self.model = model.Model(torch, s, self.gpu.where, self.dtype)
        self.Pages = model.Pages
        first = self.pool_blocks + NEW // s.block
        tables = [list(range(first + i * self.per_other, first + (i + 1) * self.per_other)) for i in range(OTHERS)]
        last = self.per_other * s.block - 1
        pages = self.Pages(self.model, self.kv, tables, [last] * OTHERS, 1)
        tokens = torch.full((OTHERS, 1), 3, device=self.gpu.where)
        self.notes, self.kept = [], []
        self.decode = self.as_graph(lambda: self.model.run(tokens, pages), "the decode step")
        self.fetchers, self.prefills, self.lists = {}, {}, {}

    def as_graph(self, work, what):
        self.kept.append(work)  # a graph reads tensors of its work, and does not keep them
        try:
            return self.gpu.captured(work, what.split()[-1])
        except RuntimeError as error:
            self.notes.append(f"{what} is not a graph: {str(error).splitlines()[0]}")
            return work

    def prefill(self, prefix):
        """Per layer, what computes it after the prefix; the last one also gives the token, in `self.token`."""
        if prefix in self.prefills:
            return self.prefills[prefix]
        torch, n = self.torch, prefix // self.shape.block
        table = list(range(n + NEW // self.shape.block))
        pages = self.Pages(self.model, self.kv, [table], [prefix], NEW)
        tokens = torch.arange(NEW, device=self.gpu.where)[None] % self.shape.vocabulary
        x = {0: self.model.w["embed"][tokens]}
        token = {}

        def layer(l):
            def work():
                x[l + 1] = self.model.layer(l, x[l], pages)
                if l + 1 == self.shape.layers:
                    token[0] = self.model.next_tokens(x[l + 1])

            return self.as_graph(work, f"layer {l} of a prefill")

        with torch.no_grad():
            layers = [layer(l) for l in range(self.shape.layers)]
        self.prefills[prefix] = layers, token
        return self.prefills[prefix]

    def fetcher(self, name, way, threads=1, chunk=0):
        """One at a time: queues are few."""
        if name not in self.fetchers:
            self.no_fetchers()
            self.fetchers[name] = self.fetch.Fetcher(self.device, self.pools, way, threads, chunk)
        return self.fetchers[name]

    def no_fetchers(self):
        for f in self.fetchers.values():
            f.close()
        self.fetchers.clear()

    def way(self, name, prefix, share):
        """(prepare, begin, before(layer), end) of a way."""
        n = prefix // self.shape.block
        src, dst = chosen(n, self.pool_blocks, share), list(range(n))
        nothing = lambda *_: None
        stream = self.gpu.prefill_stream
        if name == "none":
            return nothing, nothing, nothing, nothing
        if name in OURS:
            f = self.fetcher(name, *OURS[name])
            copies = self.fetch.copies_of(self.pools, src, dst)
            prepare = (lambda: f.ahead(copies)) if f.way == "prelaunched" else nothing
            return prepare, lambda: f.begin(stream, copies), lambda l: f.before(l, stream), lambda: f.end(stream)
        if name == "one copy":
            f = self.fetcher(name, "batch")
            import numpy as np

            one = np.zeros(1, self.fetch.sdma_client.COPY)
            one["src"], one["dst"], one["rows"] = self.host_memory.address, self.scratch_memory.address, 1
            one["bytes"] = n * 2 * self.shape.layers * self.block
            return nothing, lambda: f.begin(stream, one), lambda l: f.before(l, stream), lambda: f.end(stream)
        return self.by_hand(name, src, dst)

    def by_hand(self, name, src, dst):
        import ctypes

        torch, lib = self.torch, self.gpu.hand
        if not lib:
            raise RuntimeError(self.gpu.why_no_hand)
        of = self.pools.of
        lists = [[[of(where, l, which, b) for which in (0, 1) for b in blocks] for l in range(self.shape.layers)] for where, blocks in (("gpu", dst), ("host", src))]
        if "layer" not in name:
            lists = [[sum(each, [])] for each in lists]
        on = "cuda" if name.startswith("gather") else "cpu"
        dsts, srcs = ([torch.tensor(l, dtype=torch.int64, device=on) for l in each] for each in lists)
        events = [torch.cuda.Event() for _ in dsts]
        p, z, s = ctypes.c_void_p, ctypes.c_size_t, self.gpu.copying
        most = 64 if "of 64" in name else 4096

        def copy(d, f):
            arguments = (p(d.data_ptr()), p(f.data_ptr()), z(len(d)), z(self.block))
            if name == "hand: each":
                return lib.hand_each(*arguments, p(s.cuda_stream))
            if name.startswith("hand"):
                return lib.hand_batch(*arguments, z(most), p(s.cuda_stream))
            return lib.hand_gather(*arguments, ctypes.c_uint(8 if "8 blocks" in name else 0), p(s.cuda_stream))

        def begin():
            for d, f, event in zip(dsts, srcs, events):
                if status := copy(d, f):
                    raise RuntimeError(f"CUDA error {status}")
                event.record(s)

        def before(l):
            if l < len(events):
                self.gpu.prefilling.wait_event(events[l])

        return lambda: None, begin, before, lambda: None

    def wrong(self, prefix, share):
        """How many of some blocks of the GPU differ from those of the host."""
        n = prefix // self.shape.block
        some = range(0, n, max(1, n // 61))
        src, bad = chosen(n, self.pool_blocks, share), 0
        for l in range(self.shape.layers):
            there, right = self.kv[l, :, list(some)].cpu(), self.host[l][:, [src[i] for i in some]]
            bad += int((there != right).flatten(2).any(-1).sum())
        return bad

    def measure(self, prefix, share, name, beside):
        if beside == "load":
            return self.load(prefix, name)
        layers, token = self.prefill(prefix)
        prepare, begin, before, end = self.way(name, prefix, share)
        rows, n, tokens = [], prefix // self.shape.block, set()
        wrong = None
        warm = 1 if name in ("block", "hand: each") and prefix > 10000 else 2
        joules = [None, None]
        for round in range(warm + self.o.rounds):
            if round == 0 and name not in ("none", "one copy"):
                self.kv[:, :, :n] = 0
            self.gpu.synchronize()
            prepare()  # a queue may wait for its release now, so nothing waits for the whole GPU before that
            if round == warm:
                joules[0] = self.gpu.energy()
            step = self.gpu.others(self.decode, STEPS) if beside else None
            t0, cpu0 = time.perf_counter(), time.process_time()
            begin()
            t1 = time.perf_counter()

            def work():
                for l, layer in enumerate(layers):
                    before(l)
                    layer()

            self.gpu.prefill(work)
            t2, cpu1 = time.perf_counter(), time.process_time()
            end()
            self.gpu.synchronize()
            if round == 0 and name not in ("none", "one copy"):
                wrong = self.wrong(prefix, share)
            if name not in ("none", "one copy"):
                tokens.add(int(token[0][0]))
            if round >= warm:
                rows.append({"ms": (t2 - t0) * 1e3, "host_ms": (t1 - t0) * 1e3, "cpu_ms": (cpu1 - cpu0) * 1e3, "step_ms": step() if step else None})
        joules[1] = self.gpu.energy()
        cell = {"rounds": rows, "wrong_blocks": wrong, "token": " ".join(map(str, sorted(tokens))), "copies": 2 * n * self.shape.layers}
        if None not in joules:
            cell["joules"] = (joules[1] - joules[0]) / self.o.rounds
        for key in ("ms", "host_ms", "cpu_ms", "step_ms"):
            values = [r[key] for r in rows if r[key] is not None]
            if values:
                cell[key], cell[key + "_min"], cell[key + "_max"] = statistics.median(values), min(values), max(values)
        return cell

    def load(self, prefix, name):
        """Tokens a second of a server that gets more than it can do."""
        import server

        small = self.o.small
        self.no_fetchers()
        s = server.Server(self.torch, self.device, self.shape, offload="" if name == "none" else name, gpu_blocks=4096 if not small else 64,
                          host_blocks=prefix // self.shape.block * 2, batch=OTHERS if not small else 4)  # fmt: skip
        try:
            count, wanted = (40, 32) if not small else (4, 4)
            all = server.trace(self.shape, count, 100.0, 2, prefix, NEW if not small else 4, wanted, 1)
            if s.fetcher:
                for r in all:
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


def child(o):
    """Measures the cells that FOLDER/todo.json has."""
    folder = pathlib.Path(o.folder)
    current, out = folder / "current", folder / "cells.jsonl"
    todo = json.loads((folder / "todo.json").read_text())
    current.write_text("the beginning")
    import torch

    with torch.no_grad():
        b = Bench(o)
        (folder / "machine.json").write_text(json.dumps({"gpu": b.gpu.name, "torch": torch.__version__, "notes": b.notes, "no_hand": b.gpu.why_no_hand}) + "\n")
        for cell in todo:
            if time.time() > o.end:
                return
            current.write_text(json.dumps(cell))
            prefix, share, way, beside = cell
            try:
                found = b.measure(prefix, share, way, beside)
            except Exception as error:  # the others are still wanted
                found = {"error": " ".join(f"{type(error).__name__}: {str(error)[:300]}".split())}
            with open(out, "a") as f:
                f.write(json.dumps({"prefix": prefix, "share": share, "way": way, "beside": beside, **found}) + "\n")
            if any(word in found.get("error", "") for word in ("have stopped", "the stream refused", "CUDA error")):
                print(f"{cell}: {found['error']}", flush=True)
                os._exit(3)  # such an error stays for the life of a process
            print(f"{time.strftime('%X')} {cell}: {found.get('error') or found.get('ms') or found.get('tokens_per_s')}", flush=True)
        (folder / "machine.json").write_text(json.dumps({"gpu": b.gpu.name, "torch": torch.__version__, "notes": sorted(set(b.notes)), "no_hand": b.gpu.why_no_hand}) + "\n")
    current.write_text("the end")
    sys.stdout.flush()
    os._exit(0)  # whatever a stream still waits for


def parent(o):
    folder = pathlib.Path(o.folder)
    folder.mkdir(parents=True, exist_ok=True)
    end, patience = time.time() + o.seconds, 45
    for restart in range(12):
        done = [key(c) for c in read(folder)]
        todo = [list(c) for c in cells(o.small) if list(c) not in done]
        if o.ways:
            todo = [c for c in todo if c[2] in o.ways.split(";")]
        if not todo or time.time() + 10 > end:
            break
        (folder / "todo.json").write_text(json.dumps(todo))
        arguments = [sys.executable, __file__, o.folder, "--child", f"--end={end}", f"--rounds={o.rounds}", *(["--small"] if o.small else [])]
        with open(folder / "log.txt", "a") as log:
            process = subprocess.Popen(arguments, stdout=log, stderr=subprocess.STDOUT)
            last, seen = time.time(), 0
            while process.poll() is None:
                time.sleep(0.2)
                size = len(read(folder)) if (folder / "cells.jsonl").is_file() else 0
                if size != seen:
                    last, seen = time.time(), size
                if time.time() - last > (patience if seen > len(done) else 150) or time.time() > end + 30:
                    process.kill()
                    process.wait()
                    break
        at = (folder / "current").read_text() if (folder / "current").is_file() else "the beginning"
        if process.returncode == 0:
            break
        print(f"the child ended with {process.returncode} in {at}: see {folder}/log.txt", flush=True)
        if at.startswith("["):
            prefix, share, way, beside = json.loads(at)
            if [prefix, share, way, beside] not in [key(c) for c in read(folder)]:
                with open(folder / "cells.jsonl", "a") as f:
                    f.write(json.dumps({"prefix": prefix, "share": share, "way": way, "beside": beside, "error": f"ended or hung ({process.returncode})"}) + "\n")
    report(folder)


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("folder")
    p.add_argument("--small", action="store_true")
    p.add_argument("--rounds", type=int, default=7)
    p.add_argument("--seconds", type=float, default=450)
    p.add_argument("--ways", default="", help="only these, with ';' between them")
    p.add_argument("--child", action="store_true", help=argparse.SUPPRESS)
    p.add_argument("--end", type=float, default=0, help=argparse.SUPPRESS)
    o = p.parse_args()
    child(o) if o.child else parent(o)


if __name__ == "__main__":
    main()
