# SPDX-License-Identifier: MIT
"""A decoder of Llama's shapes over a paged KV cache.

  pool     [layer, K or V, block, token of the block, KV head, element]
  table    the blocks of a request, in the order of its tokens: token t is in block table[t // block], at t % block

Weights come from a seed, or from a file of torch.save with the same names. Attention gathers the blocks of a table; if they are
neighbours, it reads them in place. torch 1.13 has no scaled_dot_product_attention: it is written out there.
"""
import dataclasses
import math


@dataclasses.dataclass
class Shape:
    layers: int = 2
    heads: int = 4
    kv_heads: int = 2
    head: int = 16
    ffn: int = 96
    vocabulary: int = 211
    block: int = 4  # tokens

    @property
    def hidden(self):
        return self.heads * self.head

    def block_bytes(self, element):
        """Bytes of a block's K, or V, of one layer."""
        return self.block * self.kv_heads * self.head * element


LLAMA_8B = Shape(layers=32, heads=32, kv_heads=8, head=128, ffn=14336, vocabulary=32000, block=16)


def add_options(parser):
    parser.add_argument("--model", default="tiny", choices=("tiny", "llama-8b"))
    for field in dataclasses.fields(Shape):
        parser.add_argument(f"--{field.name.replace('_', '-')}", type=int, help="instead of the model's")


def shape_of(o):
    """The shape that these options choose."""
    s = LLAMA_8B if o.model == "llama-8b" else Shape()
    s = dataclasses.replace(s, **{field.name: given for field in dataclasses.fields(s) if (given := getattr(o, field.name))})
    if s.heads % s.kv_heads or s.head % 2:
        raise ValueError("heads must be a multiple of KV heads, and the head size even")
    return s


class Model:
    def __init__(self, torch, shape, device, dtype, seed=1, weights=""):
        self.torch, self.shape, self.device, self.dtype = torch, shape, device, dtype
        s = shape
        sizes = {"embed": (s.vocabulary, s.hidden), "head": (s.hidden, s.vocabulary)}
        for l in range(s.layers):
            sizes[f"qkv{l}"] = (s.hidden, (s.heads + 2 * s.kv_heads) * s.head)
            sizes[f"out{l}"] = (s.hidden, s.hidden)
            sizes[f"up{l}"] = (s.hidden, 2 * s.ffn)
            sizes[f"down{l}"] = (s.ffn, s.hidden)
        if weights:
            self.w = {name: tensor.to(device, dtype) for name, tensor in torch.load(weights, map_location="cpu").items()}
            if wrong := [name for name, size in sizes.items() if name not in self.w or tuple(self.w[name].shape) != size]:
                raise ValueError(f"{weights}: {wrong[0]} is missing, or not of the shape {sizes[wrong[0]]}")
        else:
            random = torch.Generator(device=device).manual_seed(seed)
            self.w = {name: torch.randn(*size, device=device, dtype=dtype, generator=random) / math.sqrt(size[0]) for name, size in sizes.items()}
            self.w["embed"] *= math.sqrt(s.vocabulary)
        self.rate = 10000.0 ** (-torch.arange(0, s.head, 2, device=device, dtype=torch.float32) / s.head)

    def norm(self, x):
        return (x * self.torch.rsqrt(x.float().pow(2).mean(-1, keepdim=True) + 1e-5).to(x.dtype)).to(x.dtype)

    def turns(self, positions):
        """Cosines and sines of the rotary embedding, for [B, T] positions."""
        angle = positions[..., None].float() * self.rate
        return angle.cos()[:, :, None].to(self.dtype), angle.sin()[:, :, None].to(self.dtype)

    def turned(self, x, turns):
        cos, sin = turns
        a, b = x.chunk(2, -1)
        return self.torch.cat((a * cos - b * sin, a * sin + b * cos), -1)

    def attention(self, q, k, v, mask):
        """q [B, T, heads, head]; k, v [B, S, KV heads, head]; mask [B, T, S], true where a token sees another, or None: all do."""
        torch, s = self.torch, self.shape
        batch, tokens = q.shape[:2]
        group = s.heads // s.kv_heads
        q = q.view(batch, tokens, s.kv_heads, group, s.head).permute(0, 2, 1, 3, 4).reshape(batch, s.kv_heads, tokens * group, s.head)
        k, v = k.transpose(1, 2), v.transpose(1, 2)
        if mask is not None:
            mask = mask[:, None, :, None].expand(-1, -1, -1, group, -1).reshape(batch, 1, tokens * group, -1)
        if hasattr(torch.nn.functional, "scaled_dot_product_attention"):
            out = torch.nn.functional.scaled_dot_product_attention(q, k, v, attn_mask=mask)
        else:
            scores = q @ k.transpose(2, 3) / math.sqrt(s.head)
            if mask is not None:
                scores = scores.masked_fill(~mask, -math.inf)
            out = scores.float().softmax(-1).to(v.dtype) @ v
        return out.view(batch, s.kv_heads, tokens, group, s.head).permute(0, 2, 1, 3, 4).reshape(batch, tokens, s.hidden)

    def layer(self, l, x, pages):
        """One layer for the tokens of `pages` (Pages below)."""
        s, w = self.shape, self.w
        batch, tokens = x.shape[:2]
        qkv = (self.norm(x) @ w[f"qkv{l}"]).view(batch, tokens, s.heads + 2 * s.kv_heads, s.head)
        q, k, v = qkv.split((s.heads, s.kv_heads, s.kv_heads), 2)
        pages.store(l, self.turned(k, pages.turns), v)
        x = x + self.attention(self.turned(q, pages.turns), *pages.all(l), pages.mask) @ w[f"out{l}"]
        a, b = (self.norm(x) @ w[f"up{l}"]).chunk(2, -1)
        return x + (self.torch.nn.functional.silu(a) * b) @ w[f"down{l}"]

    def next_tokens(self, x):
        return (self.norm(x[:, -1]) @ self.w["head"]).argmax(-1)

    def run(self, tokens, pages, before=None):
        """The next token of each row of `tokens` [B, T]. `before(layer)` is called before a layer is enqueued."""
        x = self.w["embed"][tokens]
        for l in range(self.shape.layers):
            if before:
                before(l)
            x = self.layer(l, x, pages)
        return self.next_tokens(x)


class Pages:
    """What a step of some requests reads and writes: T new tokens each, from position starts[b] on, in the blocks of tables[b]."""

    def __init__(self, model, pool, tables, starts, tokens):
        torch, block = model.torch, model.shape.block
        self.pool = pool
        count = max((start + tokens + block - 1) // block for start in starts)
        tables = [list(t[:count]) for t in tables]
        flat = [b for t in tables for b in t]
        # Neighbours, all of the same number: they are read in place.
        self.range = flat[0] if flat == list(range(flat[0], flat[0] + count * len(tables))) else None
        self.shape = (len(tables), count * block)
        padded = torch.tensor([t + t[-1:] * (count - len(t)) for t in tables], device=model.device)
        self.table = padded
        positions = torch.tensor(starts, device=model.device)[:, None] + torch.arange(tokens, device=model.device)
        self.slots = (padded.gather(1, positions // block) * block + positions % block).reshape(-1)
        self.turns = model.turns(positions)
        keys = torch.arange(count * block, device=model.device)
        whole = tokens == 1 and all(start + 1 == count * block for start in starts)
        self.mask = None if whole else keys[None, None] <= positions[:, :, None]

    def store(self, l, k, v):
        for which, new in ((0, k), (1, v)):
            self.pool[l, which].flatten(0, 1)[self.slots] = new.reshape(-1, *new.shape[2:])

    def all(self, l):
        """K and V of all tokens, [B, S, KV heads, head]."""
        if self.range is not None:
            n = self.shape[0] * self.shape[1] // self.pool.shape[3]
            return tuple(self.pool[l, which, self.range : self.range + n].reshape(*self.shape, *self.pool.shape[4:]) for which in (0, 1))
        return tuple(self.pool[l, which][self.table].reshape(*self.shape, *self.pool.shape[4:]) for which in (0, 1))
