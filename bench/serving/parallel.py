#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Tensor parallel layers: a process for each GPU, whose outputs are all-gathered in the order of a stream. docs/serving.md.

  parallel.py --ranks=2                                   a tiny model on the software device
  parallel.py --ranks=2 --device=cuda --model=llama-8b    shapes of Llama 8B on two NVIDIA GPUs; random weights
  parallel.py --ranks=1                                   one process with the same weights: the same tokens
  parallel.py --ranks=2 --way=auto --graphs               each size by the fastest way; a decode step is a graph

Each rank has some columns of every matrix of a layer, some heads, and their KV cache. It never adds what others have computed, so no bit
depends on the way:

  norm(x) @ qkv -> attention of its heads -> gather -> @ out -> gather -> + x -> norm @ up, silu -> gather -> @ down -> gather -> + x

Embedding and head are whole in each rank. One process computes the columns of all ranks one after another.
"""
import argparse
import dataclasses
import math
import os
import signal
import sys
import tempfile
import zlib

# Before the driver is loaded: streams that wait must not share connections, and a kernel that is loaded when it is first wanted may wait
# for them.
os.environ.setdefault("CUDA_DEVICE_MAX_CONNECTIONS", "32")
os.environ.setdefault("CUDA_MODULE_LOADING", "EAGER")
for library in ("NCCL", "GLOO"):
    os.environ.setdefault(f"{library}_SOCKET_IFNAME", "lo")

import example  # noqa: E402, F401, I001
import model as models  # noqa: E402
import ranks  # noqa: E402
import sdma_client  # noqa: E402
import ways  # noqa: E402


def divided(shape, count):
    """The shape of a rank."""
    for what, n in (("heads", shape.heads), ("KV heads", shape.kv_heads), ("ffn", shape.ffn)):
        if n % count:
            raise ValueError(f"{what}={n} cannot be divided among {count} ranks: use a divisor")
    return dataclasses.replace(shape, heads=shape.heads // count, kv_heads=shape.kv_heads // count, ffn=shape.ffn // count)


class Shard(models.Model):
    """The columns of a rank. `shape` is that of the rank, `whole` that of the model."""

    def __init__(self, torch, whole, rank, count, device, dtype, seed=1):
        self.torch, self.whole, self.shape, self.device, self.dtype = torch, whole, divided(whole, count), device, dtype
        self.rank, self.last = rank, None
        s, hidden = self.shape, whole.hidden

        def weights(name, *size):
            draw = torch.Generator(device=device).manual_seed(seed * 1000003 + zlib.crc32(name.encode()))
            return torch.randn(*size, device=device, dtype=dtype, generator=draw) / math.sqrt(size[0])

        self.w = {"embed": weights("embed", whole.vocabulary, hidden) * math.sqrt(whole.vocabulary), "head": weights("head", hidden, whole.vocabulary)}
        for l in range(whole.layers):
            sizes = {"qkv": (hidden, (s.heads + 2 * s.kv_heads) * s.head), "out": (hidden, s.hidden), "up": (hidden, 2 * s.ffn), "down": (whole.ffn, s.hidden)}
            for name, size in sizes.items():
                self.w[f"{name}{l}"] = weights(f"{name}{l} of {rank}/{count}", *size)
        self.rate = 10000.0 ** (-torch.arange(0, s.head, 2, device=device, dtype=torch.float32) / s.head)

    def attention(self, q, k, v, mask):
        functional = self.torch.nn.functional
        if mask is not CAUSAL:
            return super().attention(q, k, v, mask)
        group = self.shape.heads // self.shape.kv_heads
        k, v = (t.transpose(1, 2).repeat_interleave(group, 1) for t in (k, v))
        return functional.scaled_dot_product_attention(q.transpose(1, 2), k, v, is_causal=True).transpose(1, 2)

    def run(self, tokens, pages, slot):
        """A generator. It yields the kind of a gather once this rank's columns are in slot(kind), is sent those of all ranks, and
        returns the next tokens."""
        torch, s, w = self.torch, self.shape, self.w
        batch, new = tokens.shape
        x = w["embed"][tokens].flatten(0, 1)
        for l in range(s.layers):
            qkv = (self.norm(x) @ w[f"qkv{l}"]).view(batch, new, s.heads + 2 * s.kv_heads, s.head)
            q, k, v = qkv.split((s.heads, s.kv_heads, s.kv_heads), 2)
            pages.store(l, self.turned(k, pages.turns), v)
            seen = self.attention(self.turned(q, pages.turns), *pages.all(l), pages.mask)
            slot("hidden").copy_(seen.reshape(batch * new, s.hidden))
            seen = yield "hidden"
            torch.matmul(seen, w[f"out{l}"], out=slot("hidden"))
            x = x + (yield "hidden")
            a, b = (self.norm(x) @ w[f"up{l}"]).chunk(2, -1)
            torch.mul(torch.nn.functional.silu(a), b, out=slot("ffn"))
            wide = yield "ffn"
            torch.matmul(wide, w[f"down{l}"], out=slot("hidden"))
            x = x + (yield "hidden")
        self.last = x
        return self.next_tokens(x.view(batch, new, -1))


CAUSAL = "causal"  # in place of a mask: the prompt begins at 0


class Prompt(models.Pages):
    """Prompts from their first token on."""

    def __init__(self, model, pool, tables, tokens):
        super().__init__(model, pool, tables, [0] * len(tables), tokens)
        if hasattr(model.torch.nn.functional, "scaled_dot_product_attention"):
            self.mask = CAUSAL

    def here(self):
        """Before a step."""

    def there(self, tokens):
        """After it."""


class Steps(models.Pages):
    """Decode steps, each of which moves on by one token. The tensors stay, so a graph can have them. `tables`: all blocks."""

    def __init__(self, model, pool, tables, start):
        super().__init__(model, pool, tables, [start] * len(tables), 1)
        torch, self.model = model.torch, model
        flat, count = [b for t in tables for b in t], len(tables[0])
        self.range = flat[0] if flat == list(range(flat[0], flat[0] + len(flat))) else None
        self.shape, self.table = (len(tables), count * model.shape.block), torch.tensor(tables, device=model.device)
        self.keys = torch.arange(self.shape[1], device=model.device)[None, None]
        self.positions = torch.full((len(tables), 1), start, device=model.device)
        self.tokens = torch.zeros(len(tables), 1, dtype=torch.int64, device=model.device)

    def here(self):
        block = self.model.shape.block
        self.slots = (self.table.gather(1, self.positions // block) * block + self.positions % block).reshape(-1)
        self.turns, self.mask = self.model.turns(self.positions), self.keys <= self.positions[:, :, None]

    def there(self, tokens):
        self.positions += 1
        self.tokens.copy_(tokens[:, None])


def widths(shape, count):
    """Columns of a rank, by the kind of a gather."""
    return {"hidden": shape.hidden // count, "ffn": shape.ffn // count}


class Columns:
    """Where the columns of a step's rows are gathered: by a way, or without one by a process that has all shards."""

    def __init__(self, place, shards, rows, way=None, mode="eager"):
        shape, dtype, self.place, self.mine = shards[0].whole, shards[0].dtype, place, place.rank
        count, size = place.count if way else len(shards), dtype.itemsize if hasattr(dtype, "itemsize") else 4
        wide = widths(shape, count)
        self.parts = {kind: way.part(rows * n * size, lane, mode) for lane, (kind, n) in enumerate(wide.items())} if way else {}
        new = lambda bytes: place.torch.zeros(count, bytes, dtype=place.torch.uint8, device=place.where)
        memory = {kind: self.parts[kind].places if way else [new(rows * n * size)] for kind, n in wide.items()}
        self.all = {kind: [m.view(dtype).view(count, rows, n) for m in memory[kind]] for kind, n in wide.items()}
        self.calls = dict.fromkeys(wide, 0)

    def slot(self, shard):
        return lambda kind: self.turn(kind)[self.mine if self.parts else shard]

    def turn(self, kind):
        """Where the next gather takes place."""
        return self.all[kind][self.parts[kind].turn if self.parts else 0]

    def gathered(self, kind):
        all = self.turn(kind)
        if self.parts:
            self.parts[kind].gather()
        self.calls[kind] += 1
        return self.place.torch.cat(all.unbind(), 1)

    def free(self):
        self.all = None
        for part in self.parts.values():
            part.free()


def step(shards, columns, tokens, pages):
    """A step of this rank, or of all shards of one process, side by side."""
    for p in pages:
        p.here()
    runs = [shard.run(tokens, p, columns.slot(i)) for i, (shard, p) in enumerate(zip(shards, pages))]
    try:
        kinds = [next(run) for run in runs]
        while True:
            full = columns.gathered(kinds[0])
            kinds = [run.send(full) for run in runs]
    except StopIteration as end:
        for p in pages:
            p.there(end.value)
        return end.value


class Repeated:
    """A step that runs again and again. With graphs, the first run is eager, and counts the gathers; then it is captured."""

    def __init__(self, place, columns, work, mode):
        self.place, self.columns, self.work, self.mode, self.first = place, columns, work, mode, True

    def run(self):
        parts = self.columns.parts
        if not self.first:
            return ways.launch(self.place, list(parts.values()), self.work, self.mode)
        self.work()
        self.first = False
        if self.mode == "graphs":
            for kind, part in parts.items():
                part.begin(self.columns.calls[kind])
            self.work = self.place.captured(self.work)
            for part in parts.values():
                part.end()


def pool_of(torch, shard, blocks):
    s = shard.shape
    return torch.zeros(s.layers, 2, blocks, s.block, s.kv_heads, s.head, dtype=shard.dtype, device=shard.device)


def generate(place, shards, o, way=None):
    """The tokens of `--batch` requests."""
    torch, shape, mode = place.torch, shards[0].shape, "graphs" if o.graphs else "eager"
    each = -(-(o.prompt + o.tokens) // shape.block)
    pools = [pool_of(torch, shard, o.batch * each) for shard in shards]
    tables = [list(range(i * each, (i + 1) * each)) for i in range(o.batch)]
    draw = torch.Generator().manual_seed(o.seed)
    prompts = torch.randint(shape.vocabulary, (o.batch, o.prompt), generator=draw).to(place.where)
    columns = Columns(place, shards, o.prompt, way, "eager")
    out = []
    for i in range(o.batch):
        out.append(step(shards, columns, prompts[i : i + 1], [Prompt(s, p, [tables[i]], o.prompt) for s, p in zip(shards, pools)]))
    place.finish()
    columns.free()
    columns, out = Columns(place, shards, o.batch, way, mode), [torch.cat(out)]
    steps = [Steps(s, p, tables, o.prompt) for s, p in zip(shards, pools)]
    for s in steps:
        s.tokens.copy_(out[0][:, None])
    again = Repeated(place, columns, lambda: step(shards, columns, steps[0].tokens, steps), mode)
    for i in range(o.tokens - 1):
        again.run()
        out.append(steps[0].tokens[:, 0].clone())
    place.finish()
    columns.free()
    return torch.stack(out, 1).tolist()


def suits(way, device):
    if way in ("gloo", "nccl", "nccl-ce") and (way == "gloo") == (device == "cuda"):
        raise ValueError(f"{way} is not for the device {device}: gloo is for soft, nccl and nccl-ce are for cuda")


def shards_of(torch, place, shape, count, seed=1):
    """This rank's, or of one process those of `count` ranks."""
    dtype = torch.bfloat16 if place.gpu else torch.float32
    mine = [place.rank] if place.count > 1 else range(count)
    return [Shard(torch, shape, r, count, place.where, dtype, seed) for r in mine]


def table_of(place, shape, count, path, cells, tell):
    """Measures what `auto` chooses by, and keeps it in the file. `cells`: [(rows, mode)]. Give it processes of its own: a graph of NCCL's
    kernels can become slower in a process that has measured."""
    auto = ways.way_of(place, "auto", path, tell)
    for rows, mode in cells:
        for columns in widths(shape, count).values():
            auto.chosen(rows * columns * (2 if place.gpu else 4), mode)
    place.agree("all are here")  # no rank ends before the others have read its words
    place.close()


def work_of(o, torch, count, rank, session, tell):
    """What a rank does: all ways and orders, one after another."""
    found = []
    with torch.no_grad():
        if o.device == "soft":
            torch.set_num_threads(1)
        for order in o.order.split(","):
            for name in o.way.split(",") if count > 1 else [""]:
                place = ways.Place(torch, o.device, rank, count, session, f"{order}-{name}", order, o.seed)
                if rank == 0 and (note := place.device.caveat()):
                    tell(note)
                way = ways.way_of(place, name, o.table, tell) if count > 1 else None
                shards = shards_of(torch, place, models.shape_of(o), o.shards, o.seed)
                found.append((order, name or "one process", generate(place, shards, o, way)))
                place.close()
    return found


def options(arguments):
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--ranks", type=int, default=2)
    p.add_argument("--shards", type=int, default=2, help="with --ranks=1: of as many ranks")
    p.add_argument("--device", default="soft", help="soft, cuda")
    p.add_argument("--way", default="sdma", help=", ".join(ways.WAYS) + "; or several")
    p.add_argument("--order", default="strict", help="of the software device: strict, rocr, adversarial; or several")
    p.add_argument("--graphs", action="store_true", help="decode steps are graphs; on the software device, their rounds are published as those of graphs")
    p.add_argument("--table", default="", help="of auto: a file; by default, other processes measure it at the start")
    models.add_options(p)
    p.add_argument("--batch", type=int, default=3)
    p.add_argument("--prompt", type=int, default=9, help="tokens")
    p.add_argument("--tokens", type=int, default=8, help="to generate for each request")
    p.add_argument("--seconds", type=float, default=600, help="then all are killed")
    p.add_argument("--seed", type=int, default=1)
    o = p.parse_args(arguments)
    o.shards = o.ranks if o.ranks > 1 else o.shards
    return o


def run(o):
    """[(order, way, tokens of each request)] of rank 0, which all ranks have."""
    for name in o.way.split(","):
        if name not in ways.WAYS:
            raise ValueError(f"there is no way '{name}': {', '.join(ways.WAYS)}")
        suits(name, o.device)
    if o.ranks < 1 or o.tokens < 2 or o.batch < 1 or o.prompt < 1:
        raise ValueError("ranks, batch and prompt are 1 or more, and tokens 2 or more")
    divided(models.shape_of(o), o.shards)
    try:
        import torch
    except ImportError:
        raise ValueError("PyTorch is missing: install torch (Debian: python3-torch)") from None
    note = lambda rank, text: print(f"rank {rank}: {text}", file=sys.stderr, flush=True)
    with tempfile.TemporaryDirectory() as folder:
        if "auto" in o.way.split(",") and o.ranks > 1 and not o.table:
            o.table = os.path.join(folder, "auto.json")
            rows = [(o.prompt, "eager"), (o.batch, "graphs" if o.graphs else "eager")]
            place = lambda rank, session: ways.Place(torch, o.device, rank, o.ranks, session, "table", o.order.split(",")[0], o.seed)
            measure = lambda rank, session, tell: table_of(place(rank, session), models.shape_of(o), o.ranks, o.table, rows, tell)
            ranks.run(o.ranks, measure, note, o.seconds)
        all = ranks.run(o.ranks, lambda rank, session, tell: work_of(o, torch, o.ranks, rank, session, tell), note, o.seconds)
    for rank, found in enumerate(all):
        for (order, way, mine), (_, _, first) in zip(found, all[0]):
            if mine != first and way not in ("none", "missing"):
                raise ranks.Failed(f"rank {rank} has other tokens than rank 0, by {way} in the order {order}")
    return all[0]


def main(arguments=None, out=sys.stdout):
    signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        for order, way, tokens in run(options(arguments)):
            for i, each in enumerate(tokens):
                print(f"{way}, {order}: request {i}: {' '.join(map(str, each))}", file=out, flush=True)
    except KeyboardInterrupt:
        print("interrupted: all ranks have been ended", file=sys.stderr)
        return 130
    except (ValueError, OSError, RuntimeError, ranks.Failed, sdma_client.Error) as error:
        print(f"parallel: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
