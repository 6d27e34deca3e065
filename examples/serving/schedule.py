# SPDX-License-Identifier: MIT
"""The fetch of one request as a schedule (docs/schedules.md): the queues of fetch.py, and the stream's compute as a kernel.

`sdma check` proves that each layer is computed after its blocks are there, and refuses `missing`. `sdma simulate` gives its time.
"""
import random


def text(shape, way, prefix, threads=1, layer_ns=20000, seed=1, element=2):
    blocks = prefix // shape.block
    if blocks < 1:
        raise ValueError(f"a prefix of {prefix} tokens has no whole block of {shape.block}")
    bytes, pool = shape.block_bytes(element), 2 * blocks
    source = random.Random(seed).sample(range(pool), blocks)
    parts = 1 if way in ("block", "batch") else shape.layers
    threads = threads if way in ("layer", "prelaunched") else 1
    of = lambda layer, which, block, blocks: ((layer * 2 + which) * blocks + block) * bytes
    lines = [f"sdma 1                                  # the KV blocks of one request, way {way}: docs/serving.md"]
    lines += [f"param layer = {layer_ns}                     # ns: the compute of a layer", "gpus 1"]
    lines += [f"buffer host.pool bytes={shape.layers * 2 * pool * bytes} init=random", f"buffer gpu0.pool bytes={shape.layers * 2 * blocks * bytes}"]
    lines += ["signal host.go value=0 bits=32", *(f"signal host.done{p} value=0 bits=32" for p in range(parts))]
    for t in range(threads):
        lines += [f"queue gpu0.fetch{t} engine={(1, 0)[t % 2]}" + (" doorbell=each" if way == "block" else "")]
        for p in range(t, parts, threads):
            lines += ["  poll_mem addr=host.go func=eq reference=1"]
            for l in range(shape.layers) if parts == 1 else [p]:
                for which in (0, 1):
                    lines += [
                        f"  copy_linear bytes={bytes} src=host.pool[{of(l, which, b, pool)}] dst=gpu0.pool[{of(l, which, i, blocks)}]" for i, b in enumerate(source)
                    ]
            lines += [f"  fence addr=host.done{p} value=1"]
        lines += ["end"]
    lines += ["kernel gpu0.prefill                      # what the stream does"]
    lines += ["  set host.go = 1"]
    for l in range(shape.layers):
        if way != "missing" and (l == 0 or parts > 1):
            lines += [f"  wait host.done{l} == 1"]
        lines += [f"  load gpu0.pool[{of(l, 0, 0, blocks)}..+{2 * blocks * bytes}]", "  compute ns=layer"]
    if way == "missing":
        lines += [f"  wait host.done{p} == 1" for p in range(parts)]
    lines += ["end", "host main", "  submit *", "end"]
    return "\n".join(lines) + "\n"
