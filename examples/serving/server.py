# SPDX-License-Identifier: MIT
"""A scheduler: requests arrive, are prefilled one at a time, and are decoded together.

  arrival -> free blocks? -> fetch the prefix from the host's cache, in stream order -> prefill the rest -> decode batch -> blocks freed

`offload` off: the whole prompt is prefilled, and nothing is fetched. `evict`: the host's cache is empty at first. The blocks of a prefix stay
on the GPU, for all requests that begin with it. When a request finds too few free blocks, prefixes that no request uses go to host memory,
the one that was finished first before others, and are fetched back when they are wanted. `by_steps`: time is the number of decode steps, with
which a test always sees the same order. One thread.
"""
import dataclasses
import random
import time

import fetch
import model as models
import pools


@dataclasses.dataclass
class Resident:
    """A prefix on the GPU."""

    blocks: list
    users: int = 0


@dataclasses.dataclass
class Request:
    number: int
    arrival: float
    prefix: list  # tokens, of which the host may have the blocks
    prompt: list
    wanted: int  # tokens
    tokens: list = dataclasses.field(default_factory=list)
    blocks: list = dataclasses.field(default_factory=list)
    shared: int = 0  # of them, those of the prefix, which others may use
    first: float = 0.0  # when the first token was there
    position: int = 0

    def length(self):
        return len(self.prefix) + len(self.prompt) + self.wanted


def trace(shape, count, rate, prefixes, prefix_tokens, prompt_tokens, wanted, seed):
    """Requests with Poisson arrivals. Each begins with one of `prefixes` prefixes."""
    draw = random.Random(seed)
    some = lambda tokens: [draw.randrange(shape.vocabulary) for _ in range(tokens)]
    known = [some(prefix_tokens) for _ in range(prefixes)]
    at, all = 0.0, []
    for number in range(count):
        at += draw.expovariate(rate)
        all.append(Request(number, at, draw.choice(known), some(prompt_tokens), wanted))
    return all


def shuffled(count, seed):
    """Free blocks, as after hours of requests."""
    all = list(range(count))
    random.Random(seed).shuffle(all)
    return all


class Server:
    """`offload`: the way of fetch.py, or "" for none. `gpu_blocks` and `host_blocks`: the pools' sizes."""

    def __init__(self, torch, device, shape, *, offload="layer", gpu_blocks=64, host_blocks=64, batch=8, threads=1, group=0, merge=True,
                 seed=1, weights="", evict=False, by_steps=False):  # fmt: skip
        if evict and not offload:
            raise ValueError("what is evicted has to be fetched back: use a way of --offload")
        self.torch, self.shape, self.batch, self.merge, self.by_steps, self.steps = torch, shape, batch, merge, by_steps, 0
        self.memory = pools.Memory(torch, device, shape, gpu_blocks, host_blocks)
        stream = None
        if device.kind == "cuda":
            torch.cuda.set_stream(torch.cuda.Stream())  # the default stream waits for others
            stream = torch.cuda.current_stream().cuda_stream
        self.stream = device.stream(stream)
        self.model = models.Model(torch, shape, self.memory.gpu.device, self.memory.dtype, seed, weights)
        self.fetcher = fetch.Fetcher(device, self.memory, offload, threads, group) if offload else None
        self.evictor = fetch.Evictor(device) if evict else None
        self.resident, self.evicted, self.fetched = {}, 0, 0  # prefix -> Resident, the one that was finished first before others
        self.free, self.free_host = shuffled(gpu_blocks, seed), shuffled(host_blocks, seed + 1)
        self.cached = {}  # prefix -> blocks of the host

    def close(self):
        """Gives back queues, then pools."""
        for queues in filter(None, (self.fetcher, self.evictor)):
            queues.close()
        self.model = None
        self.memory.free()

    def now(self):
        return self.steps if self.by_steps else time.perf_counter()

    def blocks_for(self, tokens):
        return (tokens + self.shape.block - 1) // self.shape.block

    def fits(self, blocks, what="the prefix"):
        if blocks > self.memory.blocks["gpu"]:
            has = self.memory.blocks["gpu"]
            raise ValueError(f"{what} needs {blocks} blocks, and the pool of the GPU has {has}: give it more (--gpu-blocks)")

    def take(self, count):
        taken, self.free = self.free[:count], self.free[count:]
        return taken

    def prefill(self, tokens, blocks, start, before=None):
        pages = models.Pages(self.model, self.memory.gpu, [blocks], [start], len(tokens))
        return self.model.run(self.torch.tensor([tokens], device=self.model.device), pages, before)

    def cache(self, prefix):
        """The host gets the blocks of a prefix, as if an earlier request had left them. Whole blocks only."""
        count = len(prefix) // self.shape.block
        if tuple(prefix) in self.cached:
            return
        if count > len(self.free_host):
            raise ValueError(f"the prefix has {count} blocks, and the host pool has {len(self.free_host)} free ones: give it more")
        self.fits(count)
        blocks, to = self.take(count), [self.free_host.pop() for _ in range(count)]
        self.prefill(prefix[: count * self.shape.block], blocks, 0)
        self.memory.host[:, :, to] = self.memory.gpu[:, :, blocks].to("cpu")
        self.memory.gpu[:, :, blocks] = 0  # what is fetched is not there by chance
        self.free += blocks
        self.cached[tuple(prefix)] = to

    def room(self, r):
        """Are there blocks for a request? Evicts what it takes."""
        here = self.resident.get(tuple(r.prefix))
        wanted = self.blocks_for(r.length()) - (len(here.blocks) if here else 0)
        for prefix, one in list(self.resident.items()):
            if wanted <= len(self.free):
                break
            if one.users == 0 and one is not here:
                self.evict(prefix, one.blocks)
        return wanted <= len(self.free)

    def evict(self, prefix, blocks):
        """Blocks that the host still has are not copied. If they do not fit there, the prefix is computed again."""
        if prefix not in self.cached:
            while self.cached and len(blocks) > len(self.free_host):
                self.free_host += self.cached.pop(next(iter(self.cached)))
            if len(blocks) <= len(self.free_host):
                to = [self.free_host.pop() for _ in blocks]
                self.evictor.evict(self.stream, fetch.copies_of(self.memory, to, blocks, self.merge))
                self.cached[prefix] = to
                self.evicted += 1
        del self.resident[prefix]
        self.free += blocks

    def admit(self, r):
        """Prefills a request; its first token is enqueued with it."""
        whole, prefix = r.prefix + r.prompt, tuple(r.prefix)
        here = self.resident.get(prefix)
        shared = list(here.blocks) if here else []
        r.blocks = shared + self.take(self.blocks_for(r.length()) - len(shared))
        have = self.cached.get(prefix, []) if self.fetcher and not here else []
        if self.evictor and len(prefix) >= self.shape.block:
            here = self.resident.setdefault(prefix, Resident(r.blocks[: len(prefix) // self.shape.block]))
            here.users += 1
            r.shared = len(here.blocks)
        start = len(have or shared) * self.shape.block
        if have:
            self.fetched += 1
            copies = self.fetcher.copies_of(have, r.blocks[: len(have)], self.merge)
            if self.fetcher.way == "prelaunched":
                self.fetcher.ahead(copies)
            self.fetcher.begin(self.stream, copies)
            token = self.prefill(whole[start:], r.blocks, start, lambda l: self.fetcher.before(l, self.stream))
            self.fetcher.end(self.stream)
        else:
            token = self.prefill(whole[start:], r.blocks, start)
        r.position = len(whole)
        r.tokens.append(int(token[0]))
        r.first = self.now()

    def release(self, r):
        self.free += r.blocks[r.shared :]
        if r.shared:
            here = self.resident.pop(tuple(r.prefix))  # and to the end: it was finished last
            here.users -= 1
            self.resident[tuple(r.prefix)] = here

    def decode(self, running):
        """A step for all."""
        pages = models.Pages(self.model, self.memory.gpu, [r.blocks for r in running], [r.position for r in running], 1)
        tokens = self.torch.tensor([[r.tokens[-1]] for r in running], device=self.model.device)
        for r, token in zip(running, self.model.run(tokens, pages).tolist()):
            r.tokens.append(token)
            r.position += 1
        self.steps += 1

    def serve(self, requests, finished=lambda r: None):
        """Serves all requests; calls `finished` with each."""
        for r in requests:
            self.fits(self.blocks_for(r.length()), f"request {r.number}")
        if self.fetcher and not self.evictor:
            for r in requests:
                self.cache(r.prefix)
        waiting, running, begin = list(requests), [], self.now()
        while waiting or running:
            while waiting and len(running) < self.batch and waiting[0].arrival <= self.now() - begin:
                r = waiting[0]
                if not self.room(r):
                    break
                self.admit(waiting.pop(0))
                running.append(r)
            for r in [r for r in running if len(r.tokens) >= r.wanted]:
                running.remove(r)
                self.release(r)
                finished(r)
            if running:
                self.decode(running)
            elif waiting and self.by_steps:
                self.steps += 1
            elif waiting:
                time.sleep(min(0.001, max(0.0, waiting[0].arrival - (self.now() - begin))))
