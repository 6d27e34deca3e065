# SPDX-License-Identifier: MIT
"""Blocks of a prefix, from host memory to free blocks of a GPU, in the order of a stream.

  way            packets                                            the compute of layer l waits for
  block          a doorbell for each copy                           everything
  batch          one doorbell                                       everything
  layer          a part per group of layers, each with a doorbell   the group of layer l, in stream order
  prelaunched    the same, published before the request is there    the group of layer l, in stream order
  missing        the same; the compute does not wait: WRONG, to show what a test of the tokens finds

  host   [layer 0: K . 5 . 2 | V . 5 . 2 ] [layer 1 ..]   ->   GPU  [layer 0: K 2 5 . | V 2 5 . ] ..

Neighbouring blocks are merged. K and V of a run of blocks, in all layers of a group, are the rows of a box; if all blocks are at one
stride, they are the rows. The library sends boxes as single packets.

With `layer`, the thread that enqueues the compute also publishes: a group right before its compute, so the GPU computes one group while the
host publishes the next. A group is a layer where an engine reads packets by itself. Where the host issues every copy, as on cuda, larger
groups give the device rows to choose for: the first and last groups are a layer, so the compute begins soon and ends soon.

With several threads, thread t publishes groups t, t + threads, .. on a queue of its own, while the caller enqueues the compute.
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


def groups_of(layers, most):
    """(first layer, layers) of each group: 1, 1, 2, 4, .. layers, at most `most`, and likewise towards the end."""
    begin, end, left = [], [], layers
    while left:
        size = min(most, max(1, sum(begin)), left)
        begin.append(size)
        left -= size
        if left:
            size = min(most, max(1, sum(end)), left)
            end.insert(0, size)
            left -= size
    sizes = begin + end
    return [(sum(sizes[:i]), n) for i, n in enumerate(sizes)]


def copies_of(pools, host_blocks, gpu_blocks, merge=True, group=1):
    """The copies of each group of layers: a list of arrays."""
    check(pools, host_blocks, gpu_blocks)
    src, dst, length = runs(host_blocks, gpu_blocks, merge)
    strides = np.diff(src), np.diff(dst)
    one = lambda a: len(a) > 1 and a[0] > 0 and bool((a == a[0]).all())
    at_stride = merge and all(map(one, strides)) and bool((length == length[0]).all())

    def copies(layer, which, rows, src_pitch, dst_pitch, count):
        made = np.zeros(count, sdma_client.COPY)
        made["src"], made["dst"] = pools.of("host", layer, which, src[:count]), pools.of("gpu", layer, which, dst[:count])
        made["bytes"], made["rows"] = length[:count] * pools.block, rows
        made["src_pitch"], made["dst_pitch"] = src_pitch * pools.block, dst_pitch * pools.block
        return made

    def of_group(first, layers):
        if at_stride:
            planes = [(l, which) for l in range(first, first + layers) for which in (0, 1)]
            return np.concatenate([copies(*plane, len(src), strides[0][0], strides[1][0], 1) for plane in planes])
        # From K to V, and from V to the next layer's K, is one distance.
        return copies(first, 0, 2 * layers, pools.blocks["host"], pools.blocks["gpu"], len(src))

    return [of_group(*g) for g in groups_of(pools.layers, group)]


class Evictor:
    """The way back: blocks of the GPU that the stream may use again once they are in host memory."""

    def __init__(self, device, ring="8M"):
        self.queues = device.copies(0, f"queues=1 parts=1 direction=to_host ring={ring}")

    def evict(self, stream, copies):
        there = np.concatenate(copies)
        back = there.copy()
        for a, b in (("src", "dst"), ("src_pitch", "dst_pitch")):
            back[a], back[b] = there[b], there[a]
        self.queues.round()
        self.queues.release(stream)
        self.queues.publish(0, 0, back)
        self.queues.hold(0, stream)

    def close(self):
        self.queues.free()


class Fetcher:
    """Queues for one fetch after another: `begin`, `before(layer)` for each, `end`, around the compute of a prefill.

    `group`: the layers of a group, at most; 0: four on cuda, and one elsewhere."""

    def __init__(self, device, pools, way, threads=1, group=0, ring="8M"):
        if way not in WAYS:
            raise ValueError(f"there is no way '{way}': {', '.join(WAYS)}")
        by_layer = way in ("layer", "prelaunched")
        self.way, self.pools, self.group = way, pools, group or (4 if device.kind == "cuda" else 1)
        self.threads = threads if by_layer else 1
        self.parts = [0] if way in ("block", "batch") else [first for first, _ in groups_of(pools.layers, self.group)]
        self.queues = device.copies(0, f"queues={self.threads} parts={len(self.parts)} ring={ring}")
        self.pool = concurrent.futures.ThreadPoolExecutor(self.threads) if self.threads > 1 else None
        self.copies, self.published, self.pending = [], 0, []

    def copies_of(self, host_blocks, gpu_blocks, merge=True):
        """What `begin` and `ahead` take."""
        return copies_of(self.pools, host_blocks, gpu_blocks, merge, self.group)

    def some(self, thread):
        """What one thread publishes."""
        for part in range(thread, len(self.parts), self.threads):
            self.queues.publish(thread, part, self.copies[part])

    def publish(self, copies, parts):
        """These packets; with several threads, all. They wait for the release."""
        self.copies, self.published = copies, 0
        if len(self.parts) == 1:
            self.copies = [np.concatenate(copies)]
        if self.pool:
            self.pending = [self.pool.submit(self.some, t) for t in range(self.threads)]
            self.published = len(self.parts)
        else:
            self.publish_to(parts)

    def publish_to(self, parts):
        for part in range(self.published, parts):
            self.queues.publish(0, part, self.copies[part], each=self.way == "block")
        self.published = max(self.published, parts)

    def ahead(self, copies):
        """prelaunched: before the request is there."""
        self.queues.round()
        self.publish(copies, len(self.parts))
        self.finish()

    def begin(self, stream, copies):
        if self.way == "prelaunched":
            return self.queues.release(stream)
        self.queues.round()
        if self.way != "missing":
            self.queues.release(stream)  # first, because a queue that waits takes only as much as its ring has room for
        self.publish(copies, 1 if self.way == "layer" else len(self.parts))

    def before(self, layer, stream):
        """The stream waits for what this layer reads."""
        if self.way != "missing" and layer in self.parts:
            part = self.parts.index(layer)
            self.publish_to(part + 1)
            self.queues.hold(part, stream)

    def end(self, stream):
        """After the compute has been enqueued."""
        if self.way == "missing":  # an engine may be as late as this, however early the stream lets it begin
            self.queues.release(stream)
            for part in range(len(self.parts)):
                self.queues.hold(part, stream)
        self.finish()

    def finish(self):
        for each in self.pending:
            each.result()
        self.pending = []

    def close(self):
        if self.pool:
            self.pool.shutdown()
        self.queues.free()
