# SPDX-License-Identifier: MIT
"""Blocks of a prefix, from host memory to free blocks of a GPU, in the order of a stream.

  way            packets                                            the compute of layer l waits for
  block          a doorbell for each copy                           everything
  batch          one doorbell                                       everything
  layer          a part per layer, each with a doorbell             layer l, in stream order
  prelaunched    the same, published before the request is there    layer l, in stream order
  missing        the same; the compute does not wait: WRONG, to show what a test of the tokens finds

  host   [layer 0: K . 5 . 2 | V . 5 . 2 ] [layer 1 ..]   ->   GPU  [layer 0: K 2 5 . | V 2 5 . ] ..

Neighbouring blocks are merged. K and V of a run of blocks are two rows of a box; if all blocks are at one stride, they are the rows.
The library sends boxes as single packets where the device has them.

With several threads, thread t publishes layers t, t + threads, .. on a queue of its own, while the caller enqueues the compute. Where
one thread of the device issues what does not fit into a stream, as on cuda, `chunk` copies are published at a time, and no more before
all but the last chunk is complete: then each thread issues its own.
"""
import concurrent.futures

import numpy as np

import sdma_client

WAYS = ("block", "batch", "layer", "prelaunched", "missing")


def check(pools, host_blocks, gpu_blocks):
    """Refuses what would write a byte twice, or outside of a pool."""
    if len(host_blocks) != len(gpu_blocks):
        raise ValueError(f"{len(host_blocks)} blocks of the host for {len(gpu_blocks)} of the GPU")
    seen = set()
    for where, all in (("host", host_blocks), ("gpu", gpu_blocks)):
        for b in all:
            if not 0 <= b < pools.blocks[where]:
                raise ValueError(f"block {b} is outside of the {where} pool, which has {pools.blocks[where]}")
    for b in gpu_blocks:
        if b in seen:
            raise ValueError(f"two copies write block {b} of the GPU")
        seen.add(b)


def runs(host_blocks, gpu_blocks, merge=True):
    """(host block, GPU block, length) of each run of neighbours, as arrays."""
    src, dst = np.asarray(host_blocks, np.int64), np.asarray(gpu_blocks, np.int64)
    if not len(src):
        return src, dst, src
    begins = (np.diff(src) != 1) | (np.diff(dst) != 1) if merge else np.ones(len(src) - 1, bool)
    at = np.flatnonzero(np.concatenate(([True], begins)))
    return src[at], dst[at], np.diff(np.append(at, len(src)))


def copies_of(pools, host_blocks, gpu_blocks, merge=True):
    """The copies of all layers: [layer][copy]."""
    check(pools, host_blocks, gpu_blocks)
    src, dst, length = runs(host_blocks, gpu_blocks, merge)
    strides = np.diff(src), np.diff(dst)
    one = lambda a: len(a) > 1 and a[0] > 0 and bool((a == a[0]).all())
    at_stride = merge and all(map(one, strides)) and bool((length == length[0]).all())
    # K and V are at one distance; otherwise one row per block, and K and V apart.
    layout = [(0, 2, pools.blocks["host"], pools.blocks["gpu"])]
    if at_stride:
        layout = [(which, len(src), strides[0][0], strides[1][0]) for which in (0, 1)]
        src, dst, length = src[:1], dst[:1], length[:1]
    copies = np.zeros((pools.layers, len(layout), len(src)), sdma_client.COPY)
    for i, (which, rows, src_pitch, dst_pitch) in enumerate(layout):
        for l in range(pools.layers):
            copies[l, i]["src"] = pools.of("host", l, which, src)
            copies[l, i]["dst"] = pools.of("gpu", l, which, dst)
        copies[:, i]["bytes"] = length * pools.block
        copies[:, i]["rows"] = rows
        copies[:, i]["src_pitch"] = src_pitch * pools.block
        copies[:, i]["dst_pitch"] = dst_pitch * pools.block
    return copies.reshape(pools.layers, -1)


class Evictor:
    """The way back: blocks of the GPU that the stream may use again once they are in host memory."""

    def __init__(self, device, ring="8M"):
        self.queues = device.copies(0, f"queues=1 parts=1 direction=to_host ring={ring}")

    def evict(self, stream, copies):
        back = copies.reshape(-1).copy()
        for there, here in (("src", "dst"), ("src_pitch", "dst_pitch")):
            back[there], back[here] = copies.reshape(-1)[here], copies.reshape(-1)[there]
        self.queues.round()
        self.queues.release(stream)
        self.queues.publish(0, 0, back)
        self.queues.hold(0, stream)

    def close(self):
        self.queues.free()


class Fetcher:
    """Queues for one fetch after another: `begin`, `before(layer)` for each, `end`, around the compute of a prefill."""

    def __init__(self, device, pools, way, threads=1, chunk=0, ring="8M"):
        if way not in WAYS:
            raise ValueError(f"there is no way '{way}': {', '.join(WAYS)}")
        by_layer = way in ("layer", "prelaunched")
        self.way, self.pools, self.chunk = way, pools, chunk if way == "layer" else 0
        self.threads = threads if by_layer else 1
        self.layers = 1 if way in ("block", "batch") else pools.layers
        # The chunks of a layer are parts, too. Its last one comes after the others on the same queue.
        self.chunks = -(-2 * min(pools.blocks.values()) // chunk) if self.chunk else 1
        self.queues = device.copies(0, f"queues={self.threads} parts={self.layers * self.chunks} ring={ring}")
        self.pool = concurrent.futures.ThreadPoolExecutor(self.threads) if self.threads > 1 or self.chunk else None
        self.published = []

    def part(self, layer, chunk=None):
        return layer * self.chunks + (self.chunks - 1 if chunk is None else chunk)

    def some(self, thread, copies):
        """What one thread publishes."""
        before = []
        for l in range(thread, len(copies), self.threads):
            pieces = [copies[l][at : at + self.chunk] for at in range(0, len(copies[l]), self.chunk)] if self.chunk else [copies[l]]
            for i, piece in enumerate(pieces):
                if self.chunk and len(before) > 1:
                    self.queues.wait(before.pop(0), 60)
                part = self.part(l, i if i + 1 < len(pieces) else None)
                self.queues.publish(thread, part, piece)
                before.append(part)

    def publish(self, copies):
        """All packets. They wait for the release."""
        if self.layers == 1:
            self.queues.publish(0, 0, np.ascontiguousarray(copies.reshape(-1)), each=self.way == "block")
        elif self.pool:
            self.published = [self.pool.submit(self.some, t, copies) for t in range(self.threads)]
        else:
            self.some(0, copies)

    def ahead(self, copies):
        """prelaunched: before the request is there."""
        self.queues.round()
        self.publish(copies)
        self.finish()

    def begin(self, stream, copies):
        if self.way == "prelaunched":
            return self.queues.release(stream)
        self.queues.round()
        if self.way != "missing":
            self.queues.release(stream)  # first, because a queue that waits takes only as much as its ring has room for
        self.publish(copies)

    def before(self, layer, stream):
        """The stream waits for what this layer reads."""
        if self.way != "missing" and (layer == 0 or self.layers > 1):
            self.queues.hold(self.part(layer), stream)

    def end(self, stream):
        """After the compute has been enqueued."""
        if self.way == "missing":  # an engine may be as late as this, however early the stream lets it begin
            self.queues.release(stream)
            for layer in range(self.layers):
                self.queues.hold(self.part(layer), stream)
        self.finish()

    def finish(self):
        for each in self.published:
            each.result()
        self.published = []

    def close(self):
        if self.pool:
            self.pool.shutdown()
        self.queues.free()
