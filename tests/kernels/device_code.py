#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Compiles the headers as device code, without a toolkit: what a kernel may use compiles for each GPU, loads no table of a
packet's description, and a put takes at most 1.2 times the instructions of the same stores by hand.

  device_code.py COMPILER ROOT TARGET [--print]

COMPILER is a clang that knows the TARGET (gfx942, sm_90). --print: the numbers, too.
"""
import pathlib
import re
import subprocess
import sys

MOST = 1.2  # of the instructions by hand
HIP = ["-x", "hip", "--offload-device-only", "-nogpulib", "-nogpuinc"]
# On every machine without a folder of CUDA, from which clang would take the version of PTX.
CUDA = ["-x", "cuda", "--cuda-device-only", "-nocudainc", "-nocudalib", "--cuda-path=/nonexistent", "--cuda-feature=+ptx80"]


def assembly(compiler, root, target, source):
    how = [*HIP, f"--offload-arch={target}"] if target.startswith("gfx") else [*CUDA, f"--cuda-gpu-arch={target}"]
    command = [compiler, *how, "-std=c++20", "-O2", "-Wall", "-Wextra", "-Werror", f"-I{root / 'include'}", "-S", source, "-o", "-"]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"{source} for {target}:\n{done.stderr[-3000:]}")
    return done.stdout


def instructions(text, kernel, target):
    """How many instructions a kernel has."""
    if target.startswith("gfx"):
        body = re.search(rf"^{kernel}:(.*?)\ts_endpgm", text, re.M | re.S)
        return len(re.findall(r"^\t[a-z]\w+", body[1], re.M)) if body else 0
    body = re.search(rf"\.entry {kernel}\(.*?\n\{{(.*?)^\}}", text, re.M | re.S)
    return len(re.findall(r"^\t(?:@\S+ )?[a-z][\w.]+ ?.*;", body[1], re.M)) if body else 0


def main(compiler, root, target, *rest):
    root = pathlib.Path(root)
    here = root / "tests/kernels"
    wrong = []
    for source in [*sorted(here.glob("*.hip")), *sorted((root / "share/sdma/kernels").glob("*.hip"))]:
        text = assembly(compiler, root, target, source)
        tables = [line.strip() for line in text.split("\n") if "layout" in line]
        if tables:
            wrong.append(f"{source.name} for {target} reads the description of a packet: {tables[0][:120]}")
        if source.name != "put.hip":
            continue
        hand, ours = (instructions(text, kernel, target) for kernel in ("by_hand", "by_headers"))
        if "--print" in rest:
            print(f"{target}: {ours} instructions, {hand} by hand")
        if hand < 10 or ours < 10:
            wrong.append(f"{target}: kernels of {source.name} are not found")
        elif ours > MOST * hand:
            wrong.append(f"{target}: {ours} instructions for a put, {hand} by hand: at most {MOST} times")
    if wrong:
        sys.exit("\n".join(wrong))


if __name__ == "__main__":
    if len(sys.argv) not in (4, 5):
        sys.exit(__doc__)
    main(*sys.argv[1:])
