#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""How long cuBLAS multiplies matrices of bf16 by their shape: the rows of gemm.csv beside this file.

  python3 gemm.py OUT.csv

C (m x n) = A (m x k) times B (k x n), and, as mm_add, C += A times B. A grid of powers of two, and shapes of layers that models have, drawn
with seed 20261130. Each figure is the median of seven replays of one CUDA graph, with the least and the most, over the number of products
in it. Products take their A and C in turn from a pool of 192 MiB, so that they find neither in the L2 (50 MiB), and share B, as pieces of
one operator do. Elements are normal random numbers. The order of the rows' measurement is random, so that a warmer GPU does not favour a
size.
"""
import itertools
import random
import statistics
import sys

import torch

POOL = 192 << 20
LAYERS = [(4096, 4096), (6144, 4096), (28672, 4096), (4096, 14336), (8192, 8192), (10240, 8192), (57344, 8192), (8192, 28672),
          (5120, 5120), (27648, 5120), (5120, 13824), (3072, 3072), (12288, 12288), (49152, 12288)]
random.seed(20261130)
torch.manual_seed(1)
dev = torch.device("cuda:0")


def shapes():
    grid = itertools.product([64 << i for i in range(9)], [512 << i for i in range(6)], [512 << i for i in range(6)])
    out = [("grid",) + s for s in grid]
    for _ in range(96):
        n, k = random.choice(LAYERS)
        parts = random.choice([1, 2, 4, 8])
        if random.random() < 0.5:
            n //= parts
        else:
            k //= parts
        m = 64 * round(2 ** random.uniform(0, 8))
        out.append(("layer", m, n, k))
    return sorted(set(out))


pool_a = torch.randn(POOL // 2, device=dev, dtype=torch.float32).to(torch.bfloat16)
pool_c = torch.zeros(POOL // 2, device=dev, dtype=torch.bfloat16)
big = torch.randn(1 << 30, device=dev, dtype=torch.bfloat16)


def measure(m, n, k, add):
    a_count = max(1, min(8, pool_a.numel() // (m * k)))
    c_count = max(1, min(8, pool_c.numel() // (m * n)))
    a = [pool_a[i * m * k:(i + 1) * m * k].view(m, k) for i in range(a_count)] if m * k <= pool_a.numel() else [big[:m * k].view(m, k)]
    c = [pool_c[i * m * n:(i + 1) * m * n].view(m, n) for i in range(c_count)] if m * n <= pool_c.numel() else [
        torch.zeros(m, n, device=dev, dtype=torch.bfloat16)]
    b = big[:k * n].view(k, n)
    count = max(2, min(64, int(3e-3 / (2 * m * n * k / 6e14 + 3e-6))))

    def products():
        for i in range(count):
            x, z = a[i % len(a)], c[i % len(c)]
            if add:
                torch.addmm(z, x, b, out=z)
            else:
                torch.mm(x, b, out=z)

    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        products()
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        products()
    graph.replay()
    times = []
    for _ in range(7):
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        begin.record()
        graph.replay()
        end.record()
        torch.cuda.synchronize()
        times.append(begin.elapsed_time(end) * 1e3 / count)
    pool_c.zero_()
    return statistics.median(times), min(times), max(times)


work = [(s, add) for s in shapes() for add in (False, True)]
random.shuffle(work)
for _ in range(200):
    torch.mm(big[:1 << 26].view(8192, 8192), big[1 << 26:1 << 27].view(8192, 8192))
rows = {}
for (kind, m, n, k), add in work:
    rows[(kind, "mm_add" if add else "mm", m, n, k)] = measure(m, n, k, add)
with open(sys.argv[1], "w") as f:
    print("shapes,op,m,n,k,us,us_min,us_max", file=f)
    for key in sorted(rows):
        print(*key, *(f"{t:.4g}" for t in rows[key]), sep=",", file=f)
print(torch.cuda.get_device_name(), torch.__version__, torch.version.cuda, len(rows))
