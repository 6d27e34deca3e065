#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Measures decode steps of the model of examples/serving one by one, as requests grow: what the first step of a shape takes, and the next.

  first_steps.py          shapes of Llama 8B on an NVIDIA GPU with 60 GB free; under a minute

A shape is a number of requests and of blocks. Each cycle is 31 steps of so many requests, and runs twice; a line has the steps above 30 ms.
"""
import random
import statistics
import time

import example  # noqa: F401, I001
import model as models
import torch

BLOCKS, SLOW_MS, STEPS = 16640, 30, 31
CYCLES = ((7, 8256), (30, 2112), (1, 8256), (2, 8256), (3, 8256), (5, 2112), (10, 2112), (20, 2112), (32, 8256))


def main():
    shape = models.LLAMA_8B
    torch.cuda.set_stream(torch.cuda.Stream())
    model = models.Model(torch, shape, "cuda", torch.bfloat16)
    pool = torch.zeros(shape.layers, 2, BLOCKS, shape.block, shape.kv_heads, shape.head, device="cuda", dtype=torch.bfloat16)
    free = list(range(BLOCKS))
    random.Random(1).shuffle(free)

    def step(batch, position):
        count = (position + shape.block) // shape.block
        tables = [free[i * count : (i + 1) * count] for i in range(batch)]
        tokens = torch.ones(batch, 1, dtype=torch.long, device="cuda")
        torch.cuda.synchronize()
        begin = time.perf_counter()
        model.run(tokens, models.Pages(model, pool, tables, [position] * batch, 1)).tolist()
        return (time.perf_counter() - begin) * 1e3

    with torch.no_grad():
        step(1, 64)
        for cycle in ("first", "again"):
            for batch, tokens in CYCLES:
                ms = [step(batch, tokens + i) for i in range(STEPS)]
                slow = {i: round(t) for i, t in enumerate(ms) if t > SLOW_MS}
                times = f"{sum(ms):.0f} ms, median {statistics.median(ms):.1f}"
                print(f"{cycle}: {batch} requests of {tokens} tokens: {times}; slow steps: {slow}", flush=True)


main()
