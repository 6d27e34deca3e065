#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Joules of an NVIDIA GPU by NVML's counter: idle, copies alone, kernels alone, and both at once; the rows
of a table for sdma calibrate --joules (sdma/simulate/energy_fit.hpp).

  python3 energy.py OUT.csv [SECONDS]      each row takes SECONDS (default: 3)

Copies: to and from pinned host memory (copy engines), and within the GPU (cudaMemcpyAsync). Kernels: matrix products in bf16 of random
numbers, an addition that streams HBM, and arithmetic in registers. A row has the bytes of each copy, and how often each kernel ran.
"""
import sys
import time

import pynvml
import torch

OUT, SECONDS = sys.argv[1], float(sys.argv[2]) if len(sys.argv) > 2 else 3.0
pynvml.nvmlInit()
H = pynvml.nvmlDeviceGetHandleByIndex(0)
MB = 1 << 20
torch.manual_seed(1)
dev = torch.device("cuda:0")


def joules():
    return pynvml.nvmlDeviceGetTotalEnergyConsumption(H) / 1e3


def matrices(n):
    return [torch.randn(n, n, device=dev, dtype=torch.bfloat16) for _ in range(2)] + [torch.empty(n, n, device=dev, dtype=torch.bfloat16)]


m8, m4, m2 = matrices(8192), matrices(4096), matrices(2048)
big = [torch.randn(256 * MB, device=dev) for _ in range(3)]  # 1 GiB each
small = torch.rand(8 * MB, device=dev)


@torch.compile
def poly(x):
    for _ in range(64):
        x = x * 0.999 + torch.sin(x) * 0.001
    return x


def gemm(m):
    return lambda: torch.mm(m[0], m[1], out=m[2])


KERNELS = {  # name: (one launch, launches in a batch)
    "gemm_8192": (gemm(m8), 8),
    "gemm_4096": (gemm(m4), 64),
    "gemm_2048": (gemm(m2), 256),
    "add_3x1G": (lambda: torch.add(big[0], big[1], out=big[2]), 8),
    "registers": (lambda: poly(small), 32),
}
SIZE = 256 * MB
host = [torch.empty(SIZE, dtype=torch.uint8).pin_memory() for _ in range(2)]
host[0].random_()
gpu = [torch.randint(0, 255, (SIZE,), dtype=torch.uint8, device=dev) for _ in range(4)]
COPIES = {
    "h2d": lambda: gpu[0].copy_(host[0], non_blocking=True),
    "d2h": lambda: host[1].copy_(gpu[1], non_blocking=True),
    "d2d": lambda: gpu[2].copy_(gpu[3], non_blocking=True),
}
PER_BATCH = {"h2d": 1, "d2h": 1, "d2d": 8}
STREAMS = {name: torch.cuda.Stream() for name in list(COPIES) + ["kernel"]}
rows = []


class Feed:
    """Keeps two batches of a kind in flight on its stream; a pause between batches lowers its share of the time."""

    def __init__(self, name, launch, batch, share):
        self.name, self.launch, self.batch, self.share = name, launch, batch, share
        self.stream = STREAMS.get(name, STREAMS["kernel"])
        self.flying, self.done, self.not_before, self.began = [], 0, 0.0, 0.0

    def step(self):
        while self.flying and self.flying[0].query():
            self.flying.pop(0)
            self.done += self.batch
            took = time.perf_counter() - self.began
            self.not_before = time.perf_counter() + (took * (1 / self.share - 1) if self.share < 1 else 0)
        if len(self.flying) < (2 if self.share >= 1 else 1) and time.perf_counter() >= self.not_before:
            self.began = time.perf_counter()
            with torch.cuda.stream(self.stream):
                for _ in range(self.batch):
                    self.launch()
                event = torch.cuda.Event()
                event.record()
            self.flying.append(event)


def measure(kind, kernel=None, copies=(), share=1.0):
    feeds = [Feed(c, COPIES[c], PER_BATCH[c], share) for c in copies]
    if kernel:
        feeds.append(Feed(kernel, *KERNELS[kernel], share if not copies else 1.0))

    def run(until):
        while not until():
            for f in feeds:
                f.step()
            if not feeds:
                time.sleep(0.005)

    warm = time.perf_counter() + 0.7
    run(lambda: time.perf_counter() > warm)
    # From one change of the counter to another, with the work going on.
    state = {"last": joules(), "begin": None, "end": None, "mhz": [], "next": 0.0}

    def look():
        now = time.perf_counter()
        if now < state["next"]:
            return False
        state["next"] = now + 0.004
        j = joules()
        if j == state["last"]:
            return False
        state["last"] = j
        point = (time.perf_counter(), j, [f.done for f in feeds])
        if state["begin"] is None:
            state["begin"] = point
            return False
        state["mhz"].append(pynvml.nvmlDeviceGetClockInfo(H, pynvml.NVML_CLOCK_SM))
        state["end"] = point
        return point[0] - state["begin"][0] >= SECONDS

    run(look)
    torch.cuda.synchronize()
    (t0, j0, d0), (t1, j1, d1) = state["begin"], state["end"]
    done = {f.name: b - a for f, a, b in zip(feeds, d0, d1)}
    row = {"name": "+".join(filter(None, [kernel, *copies])) + (f" at {share:g}" if share < 1 else "") or "idle", "kind": kind,
           "seconds": t1 - t0, "joules": j1 - j0, "mhz": sum(state["mhz"]) / len(state["mhz"])}
    for c in COPIES:
        row[c] = done.get(c, 0) * SIZE
    for k in KERNELS:
        row[k] = done.get(k, 0)
    rows.append(row)
    print(f"{row['kind']:5} {row['name']:28} {row['joules'] / row['seconds']:7.1f} W {row['mhz']:6.0f} MHz "
          + " ".join(f"{c} {row[c] / row['seconds'] / 1e9:.1f} GB/s" for c in COPIES if row[c])
          + (f" {row[kernel] / row['seconds']:.1f} /s" if kernel else ""), flush=True)


print(torch.cuda.get_device_name(), pynvml.nvmlSystemGetDriverVersion(), "limit", pynvml.nvmlDeviceGetPowerManagementLimit(H) / 1e3, "W",
      "memory", pynvml.nvmlDeviceGetClockInfo(H, pynvml.NVML_CLOCK_MEM), "MHz", flush=True)
try:
    poly(small)
except Exception as error:  # no compiler: the same arithmetic, a kernel for each operation, in L2
    print("not compiled:", str(error)[:200], flush=True)
    KERNELS["registers"] = (lambda: torch.sin(small), 256)
torch.cuda.synchronize()
measure("alone")
for copies in (["h2d"], ["d2h"], ["h2d", "d2h"], ["d2d"]):
    measure("alone", None, copies)
measure("alone", None, ["d2d"], 0.5)
measure("alone", None, ["h2d"], 0.5)
for k in KERNELS:
    measure("alone", k)
measure("alone", "gemm_8192", share=0.5)
measure("alone", "add_3x1G", share=0.5)
measure("alone")
for k in KERNELS:
    for copies in (["h2d", "d2h"], ["d2d"]):
        measure("both", k, copies)
measure("alone")
G = 1 << 30
one = next(r for r in rows if r["name"] == "gemm_8192")
one = one["seconds"] / one["gemm_8192"]  # of a product that runs alone
NAMES = ["gemm_4096", "gemm_2048", "registers"]
with open(OUT, "w") as f:
    print("# SPDX-License-Identifier: MIT", file=f)
    print("name,kind,seconds,joules,hbm.pj_per_byte,pcie.pj_per_byte,kernel.active_watts," + ",".join(NAMES), file=f)
    for r in rows:
        pcie = r["h2d"] + r["d2h"]
        hbm = pcie + 2 * r["d2d"] + 3 * G * r["add_3x1G"]
        print(f"{r['name']},{'fit' if r['kind'] == 'alone' else 'judge'},{r['seconds']:.4f},{r['joules']:.2f},{hbm},{pcie},"
              f"{r['gemm_8192'] * one:.4f}," + ",".join(str(r[k]) for k in NAMES), file=f)
