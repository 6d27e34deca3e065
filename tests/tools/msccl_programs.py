# SPDX-License-Identifier: MIT
"""Algorithms of MSCCL as XML, made here: a program of tbs with steps, each of which knows its line once the XML was written."""


class Step:
    def __init__(self, kind, src=("i", 0), dst=("o", 0), cnt=1, dep=None):
        self.kind, self.src, self.dst, self.cnt, self.dep, self.hasdep = kind, src, dst, cnt, dep, 0
        self.line = self.s = None

    def xml(self, blocks):
        depid, deps = (-1, -1) if self.dep is None else self.dep if isinstance(self.dep, tuple) else blocks.find(self.dep)
        return (f'<step s="{self.s}" type="{self.kind}" srcbuf="{self.src[0]}" srcoff="{self.src[1]}" dstbuf="{self.dst[0]}" '
                f'dstoff="{self.dst[1]}" cnt="{self.cnt}" depid="{depid}" deps="{deps}" hasdep="{self.hasdep}"/>')


class Block:
    def __init__(self, send=-1, recv=-1, chan=0):
        self.send, self.recv, self.chan, self.steps, self.line = send, recv, chan, [], None

    def add(self, kind, src=("i", 0), dst=("o", 0), cnt=1, after=()):
        """Adds a step after others of its GPU. More than one becomes nops before it."""
        for other in after:
            other.hasdep = 1
        for other in after[:-1]:
            self.steps.append(Step("nop", ("i", -1), ("o", -1), 0, other))
        self.steps.append(Step(kind, src, dst, cnt, after[-1] if after else None))
        return self.steps[-1]


class Gpu:
    def __init__(self, chunks):
        self.chunks, self.blocks, self.line = list(chunks), [], None

    def block(self, send=-1, recv=-1, chan=0):
        self.blocks.append(Block(send, recv, chan))
        return self.blocks[-1]

    def find(self, step):
        return next((b, n) for b, block in enumerate(self.blocks) for n, s in enumerate(block.steps) if s is step)


class Program:
    def __init__(self, coll, gpus, chunks, each, in_place=False):
        """`each`: chunks of input, output and scratch of every GPU; `chunks`: the larger of input and output."""
        self.algo = {"name": "test", "proto": "Simple", "nchannels": 8, "nchunksperloop": chunks, "ngpus": gpus, "coll": coll,
                     "inplace": int(in_place), "outofplace": int(not in_place), "minBytes": 0, "maxBytes": 0}
        self.gpus = [Gpu(each) for _ in range(gpus)]
        self.head = ["<!-- a test -->"]

    def xml(self):
        lines = list(self.head)

        def put(text, to=None):
            lines.append(text)
            if to is not None:
                to.line = len(lines)

        put("<algo " + " ".join(f'{k}="{v}"' for k, v in self.algo.items()) + ">", self)
        for g, gpu in enumerate(self.gpus):
            put(f'  <gpu id="{g}" i_chunks="{gpu.chunks[0]}" o_chunks="{gpu.chunks[1]}" s_chunks="{gpu.chunks[2]}">', gpu)
            for b, block in enumerate(gpu.blocks):
                put(f'    <tb id="{b}" send="{block.send}" recv="{block.recv}" chan="{block.chan}">', block)
                for n, step in enumerate(block.steps):
                    step.s = n
                    put("      " + step.xml(gpu), step)
                put("    </tb>")
            put("  </gpu>")
        put("</algo>")
        return "\n".join(lines) + "\n"


def allgather_ring(n=4, in_place=False):
    """Each GPU passes on what it has received; a tb sends, another one receives."""
    p = Program("allgather", n, n, (0 if in_place else 1, n, 0), in_place)
    for r, gpu in enumerate(p.gpus):
        send, recv = gpu.block(send=(r + 1) % n), gpu.block(recv=(r - 1) % n)
        got = [recv.add("r", dst=("o", (r - 1 - k) % n)) for k in range(n - 1)]
        send.add("s", ("o", r) if in_place else ("i", 0))
        for k in range(1, n - 1):
            send.add("s", ("o", (r - k) % n), after=(got[k - 1],))
        if not in_place:
            gpu.block().add("cpy", ("i", 0), ("o", r))
    return p


def allgather_pairs(n=4, parts=2, in_place=True):
    """Each GPU sends its part to all others, in pieces, each by a channel of its own."""
    p = Program("allgather", n, n * parts, (0 if in_place else parts, n * parts, 0), in_place)
    for r, gpu in enumerate(p.gpus):
        for peer in (x for x in range(n) if x != r):
            for c in range(parts):
                gpu.block(recv=peer, chan=c).add("r", dst=("o", peer * parts + c))
                gpu.block(send=peer, chan=c).add("s", ("o", r * parts + c) if in_place else ("i", c))
        if not in_place:
            gpu.block().add("cpy", ("i", 0), ("o", r * parts), parts)
    return p


def alltoall(n=4):
    p = Program("alltoall", n, n, (n, n, 0))
    for r, gpu in enumerate(p.gpus):
        for peer in (x for x in range(n) if x != r):
            both = gpu.block(send=peer), gpu.block(recv=peer)
            both[0].add("s", ("i", peer))
            both[1].add("r", dst=("o", peer))
        gpu.block().add("cpy", ("i", r), ("o", r))
    return p


def allreduce_ring(n=4, in_place=True):
    """One tb does all: a send runs ahead of the receive of its neighbour, so it needs slots."""
    p = Program("allreduce", n, n, (n, 0 if in_place else n, 0), in_place)
    to = "i" if in_place else "o"
    for r, gpu in enumerate(p.gpus):
        b = gpu.block(send=(r + 1) % n, recv=(r - 1) % n)
        b.add("s", ("i", r))
        for k in range(1, n - 1):
            b.add("rrs", ("i", (r - k) % n), ("i", (r - k) % n))
        b.add("rrcs", ("i", (r + 1) % n), (to, (r + 1) % n))
        for k in range(n - 2):
            b.add("rcs", dst=(to, (r - k) % n))
        b.add("r", dst=(to, (r + 2) % n))
    return p


def allreduce_pairs(n=4):
    """Everybody sends chunk r to GPU r, which adds them and sends the sum back: in place, with scratch and nops."""
    p = Program("allreduce", n, n, (n, 0, n), True)
    for r, gpu in enumerate(p.gpus):
        others = [x for x in range(n) if x != r]
        got, sent = [], []
        for peer in others:
            sent.append(gpu.block(send=peer).add("s", ("i", peer)))
            got.append(gpu.block(recv=peer).add("r", dst=("s", peer)))
        adds = gpu.block()
        for k, peer in enumerate(others):
            last = adds.add("re", ("s", peer), ("i", r), after=tuple(got) if k == 0 else ())
        for k, peer in enumerate(others):
            gpu.block(send=peer, chan=1).add("s", ("i", r), after=(last,))
            gpu.block(recv=peer, chan=1).add("r", dst=("i", peer), after=(sent[k],))
    return p


def broadcast(n=4):
    """From GPU 0 along a chain, in two pieces."""
    p = Program("broadcast", n, 2, (2, 2, 0))
    for r, gpu in enumerate(p.gpus):
        b = gpu.block(send=r + 1 if r + 1 < n else -1, recv=r - 1)
        for c in range(2):
            b.add("s" if r == 0 else "rcs" if r + 1 < n else "r", ("i", c), ("o", c))
        if r == 0:
            gpu.block().add("cpy", ("i", 0), ("o", 0), 2)
    return p


def reducescatter(in_place=False):
    p = Program("reducescatter", 2, 2, (2, 0 if in_place else 1, 0), in_place)
    for r, gpu in enumerate(p.gpus):
        gpu.block(send=1 - r).add("s", ("i", 1 - r))
        gpu.block(recv=1 - r).add("rrc", ("i", r), ("i", r) if in_place else ("o", 0))
    return p


def reduce(n=4):
    """To GPU 0 along a chain."""
    p = Program("reduce", n, 1, (1, 1, 0))
    for r, gpu in enumerate(p.gpus):
        b = gpu.block(send=r - 1, recv=r + 1 if r + 1 < n else -1)
        b.add("s" if r + 1 == n else "rrs" if r > 0 else "rrc", ("i", 0), ("o", 0))
    return p


def gather(n=3):
    p = Program("gather", n, n, (1, n, 0))
    for r, gpu in enumerate(p.gpus[1:], 1):
        gpu.block(send=0).add("s", ("i", 0))
        p.gpus[0].block(recv=r).add("r", dst=("o", r))
    p.gpus[0].block().add("cpy", ("i", 0), ("o", 0))
    return p


def scatter(n=3):
    p = Program("scatter", n, n, (n, 1, 0))
    for r, gpu in enumerate(p.gpus[1:], 1):
        gpu.block(recv=0).add("r", dst=("o", 0))
        p.gpus[0].block(send=r).add("s", ("i", r))
    p.gpus[0].block().add("cpy", ("i", 0), ("o", 0))
    return p


GOOD = {  # with slots that it needs
    "allgather_ring": (allgather_ring, 0), "allgather_ring_in_place": (lambda: allgather_ring(in_place=True), 0),
    "allgather_pairs": (lambda: allgather_pairs(in_place=False), 0), "allgather_pairs_in_place": (allgather_pairs, 0),
    "alltoall": (alltoall, 0), "allreduce_ring": (lambda: allreduce_ring(in_place=False), 1),
    "allreduce_ring_in_place": (allreduce_ring, 2), "allreduce_pairs": (allreduce_pairs, 0), "broadcast": (broadcast, 0),
    "reducescatter": (reducescatter, 0), "reducescatter_in_place": (lambda: reducescatter(True), 0), "reduce": (reduce, 0),
    "gather": (gather, 0), "scatter": (scatter, 0),
}
