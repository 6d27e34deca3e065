#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Measures the server of examples/serving: what each of its steps takes alone, and how it serves arrivals.

  load.py FOLDER [--seconds S]      shapes of Llama 8B on an NVIDIA GPU, at most S seconds (default: 420)
  load.py FOLDER --small            a tiny model on the software device, to test this script; its times mean nothing

FOLDER gets steps.csv: a row for each step, median and extremes of seven; and loads.csv: a row for each request of each load, with its
arrival, its prefix, when its first token was there, and when its last was, in seconds from the beginning.
"""
import argparse
import csv
import os
import pathlib
import statistics
import sys
import time

import example  # noqa: F401, I001

os.environ.setdefault("CUDA_DEVICE_MAX_CONNECTIONS", "32")
ROUNDS = 7
WAYS = ("none", "layer", "batch", "block", "prelaunched")


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("folder")
    p.add_argument("--seconds", type=float, default=420)
    p.add_argument("--small", action="store_true")
    o = p.parse_args()
    import torch

    import model as models
    import sdma_client
    import server

    out, end = pathlib.Path(o.folder), time.monotonic() + o.seconds
    out.mkdir(parents=True, exist_ok=True)
    shape = models.Shape() if o.small else models.LLAMA_8B
    cached = (16, 32) if o.small else (512, 1024, 2048, 4096, 8192)
    prompt, tokens, blocks, batch, count = (4, 4, 64, 4, 6) if o.small else (64, 32, 4096, 32, 40)
    steps = csv.writer((out / "steps.csv").open("w", buffering=1))
    steps.writerow(["step", "way", "batch", "cached", "new", "ms", "ms_min", "ms_max"])
    loads = csv.writer((out / "loads.csv").open("w", buffering=1))
    loads.writerow(["load", "way", "prefix", "prefixes", "rate", "prompt", "tokens", "blocks", "batch", "request", "arrival", "which", "first", "last"])

    def synchronize():
        if not o.small:
            torch.cuda.synchronize()

    def timed(work, undo):
        all = []
        for i in range(ROUNDS + 2):
            synchronize()
            begin = time.perf_counter()
            work()
            synchronize()
            all.append((time.perf_counter() - begin) * 1e3)
            undo()
        return [f"{t:.4g}" for t in (statistics.median(all[2:]), min(all[2:]), max(all[2:]))]

    def make(device, way, host):
        return server.Server(torch, device, shape, offload="" if way == "none" else way, gpu_blocks=blocks, host_blocks=host, batch=batch)

    def request(number, prefix, wanted):
        return server.Request(number, 0.0, prefix, [(7 * i + number) % shape.vocabulary for i in range(prompt)], wanted)

    with sdma_client.Device("soft" if o.small else "cuda", "gpus=1" if o.small else "") as device, torch.no_grad():
        for way in WAYS:
            s = make(device, way, max(cached) // shape.block)
            try:
                for n in cached:
                    prefix = [i % shape.vocabulary for i in range(n)]
                    if way != "none":
                        s.cached.clear()
                        s.free_host = list(range(max(cached) // shape.block))[::-1]
                        s.cache(prefix)
                    r = request(0, prefix, 1)

                    def undo():
                        s.free += r.blocks
                        r.tokens.clear()

                    steps.writerow(["admit", way, 1, n if way != "none" else 0, prompt if way != "none" else n + prompt, *timed(lambda: s.admit(r), undo)])
                if way != "none":
                    continue
                for n in (0, *cached):
                    for running in (1, 2, 4, 8, 16, 32):
                        length = n + prompt
                        if running > batch or running * s.blocks_for(length + 16) > blocks:
                            continue
                        all = [request(i, [1] * n, 1) for i in range(running)]
                        for r in all:
                            r.blocks, r.position, r.tokens = s.take(s.blocks_for(length + 16)), length, [1]
                        steps.writerow(["decode", way, running, n, prompt, *timed(lambda: s.decode(all), lambda: None)])
                        for r in all:
                            s.free += r.blocks
            finally:
                s.close()
        number = 0
        for seed, wanted in ((1, tokens), (2, 4 * tokens)):
            for prefix in (cached[-1], cached[len(cached) // 2]):
                for way in ("none", "layer", "batch") if wanted == tokens else ("none", "layer"):
                    for rate in (4.0, 12.0, 100.0) if wanted == tokens else (8.0,):
                        if time.monotonic() + 30 > end:
                            continue
                        s = make(device, way, 2 * prefix // shape.block)
                        try:
                            all = server.trace(shape, count, rate, 2, prefix, prompt, wanted, seed)
                            known = sorted({tuple(r.prefix) for r in all})
                            for r in all if s.fetcher else ():
                                s.cache(r.prefix)
                            synchronize()
                            last, begin = {}, time.perf_counter()
                            s.serve(all, lambda r: last.setdefault(r.number, time.perf_counter() - begin))
                            number += 1
                            for r in all:
                                loads.writerow([number, way, prefix, 2, rate, prompt, wanted, blocks, batch, r.number, f"{r.arrival:.6f}",
                                                known.index(tuple(r.prefix)), f"{r.first - begin:.6f}", f"{last[r.number]:.6f}"])  # fmt: skip
                            print(number, way, prefix, rate, wanted, f"{max(last.values()):.3f}", flush=True)
                        finally:
                            s.close()
    return 0


if __name__ == "__main__":
    sys.exit(main())
