"""DMA schedules for AMD Instinct MI300X, from Python: what the program `sdma` does, as functions.

    import sdma
    s = sdma.Schedule.read("all_gather.sdma", N=8, chunk="64K")
    print(s)

Errors are `Error`: a sentence, the place in the text (file, line, column) and a hint. A wrong type is a TypeError.

Threads: any thread may call any function, also with the same object: a calculation works on the schedule as it is at the call.
The interpreter's lock is free during a calculation, and Ctrl-C ends the call.
"""
import os
from typing import Any, Callable, Iterator, Mapping, Sequence, Union

from . import packets as packets
from .packets import Packet as Packet

__version__: str

Params = Union[int, str]
"""The value of a schedule's param: a number, or text such as "64K" or "4*chunk"."""
Place = Union[int, str]
"""The number of a GPU in the schedule, from 0, or "host"."""
Value = Union[int, "Epoch"]
Bytes = Any
"""What holds bytes: bytes, bytearray, memoryview, a NumPy array. It must be contiguous."""

class Error(Exception):
    """What is wrong, where, and what to do. `str` is what the program prints; `diagnostics` has all errors of a text."""
    message: str
    rule: str
    where: str
    hint: str
    file: str | None
    line: int | None
    column: int | None
    diagnostics: list[dict[str, Any]]

# --- Packets ------------------------------------------------------------------------------------------------------

def dis(data: Bytes | Sequence[int], *, generation: str = ...) -> list[Packet]:
    """The packets of a ring: bytes in the order of memory, an array of 32-bit numbers, or a sequence of dwords.

    `generation`: whose packets these are, as "4.4.2" or "gfx1100". Any dwords can be read: what is not a known packet becomes
    `packets.Unknown`. `sdma.as_` of the result is the input, bit for bit.
    """

def as_(source: str | Packet | Sequence[Packet], *, file: str = "text", generation: str = ...) -> bytes:
    """The bytes of a text in the language of docs/text.md, or of packets."""

# --- Schedules ----------------------------------------------------------------------------------------------------

class Epoch:
    """A value that depends on how often its queue was submitted, or on the round of a repeat: `EPOCH * 2 + 1`."""
    factor: int
    constant: int
    def __init__(self, factor: int = 1, constant: int = 0) -> None: ...
    def __mul__(self, n: int) -> Epoch: ...
    def __rmul__(self, n: int) -> Epoch: ...
    def __add__(self, n: int) -> Epoch: ...
    def __radd__(self, n: int) -> Epoch: ...
    def __sub__(self, n: int) -> Epoch: ...

EPOCH: Epoch
"""1 in the first submit of a queue, and in the first round of a repeat."""

class Queue:
    """The packets for one engine. Each method appends, and returns the queue."""
    @property
    def name(self) -> str: ...
    @property
    def dwords(self) -> list[int]: ...
    def put(self, *packets: Packet) -> Queue: ...
    def copy(self, *, src: int, dst: int, bytes: int) -> Queue:
        """A copy of any length: a long one becomes several packets."""

class Script:
    """The actions of a host thread or a kernel. Each method appends, and returns the script."""
    def submit(self, *queues: Queue) -> Script:
        """A doorbell for each of these queues, or for all queues that the schedule has now."""
    def set(self, signal: int, value: Value) -> Script: ...
    def add(self, signal: int, value: Value) -> Script: ...
    def wait(self, signal: int, func: str, value: Value) -> Script:
        """`func`: "eq", "ge", ..., as in a poll_mem packet."""
    def compute(self, ns: int, hbm: int = 0) -> Script:
        """Only in a kernel."""
    def load(self, address: int, bytes: int) -> Script: ...
    def store(self, address: int, bytes: int, byte: int | None = None) -> Script: ...
    def repeat(self, rounds: int) -> Script:
        """The actions of each round: `with host.repeat(8) as r: r.submit(q)`. The names `host` and `r` stay valid."""
    def __enter__(self) -> Script: ...
    def __exit__(self, *exception: object) -> None: ...

class Schedule:
    """Buffers, signals, queues and the actions of host threads: read from text, or built here.

        s = sdma.Schedule(gpus=2)
        a = s.add_buffer("a", 65536, place=0, init="random")
        b = s.add_buffer("b", 65536, place=1)
        done = s.add_signal("done")
        q = s.add_queue("push", place=0, peer=1)
        q.copy(src=a, dst=b, bytes=65536).put(sdma.packets.Atomic(op="add_64", addr=done, value=1))
        s.add_host("main").submit(q).wait(done, "eq", 1)
        s.expect_equal(b, a, 65536)

    `add_buffer` and `add_signal` return addresses: numbers, of which `b + 4096` is one, too. They are addresses of this schedule; a
    device has others. `str` is the schedule in the language of docs/schedules.md, without loops or params.
    """
    def __init__(self, gpus: int = 1) -> None: ...
    @staticmethod
    def parse(text: str, file: str = "text", /, **params: Params) -> Schedule:
        """Raises Error with all errors of the text. `file`: its name in errors, and the folder of the files that it names."""
    @staticmethod
    def read(path: str | os.PathLike[str], /, **params: Params) -> Schedule: ...
    def add_buffer(self, name: str, bytes: int, *, place: Place = "host", init: str = "poison", alignment: int = 1,
                   map: Sequence[Place] = ()) -> int:
        """`init`: "poison", "random" or "zero"."""
    def add_signal(self, name: str, *, place: Place = "host", value: int = 0, bits: int = 64) -> int: ...
    def add_queue(self, name: str, *, place: int, peer: Place | None = None, engine: int = 0, ring_bytes: int = 0,
                  from_host: bool = False, doorbell_each: bool = False) -> Queue:
        """`peer`: use the engine that the node recommends for it; without a peer, `engine`."""
    def add_host(self, name: str = "main") -> Script: ...
    def add_kernel(self, name: str, *, place: int) -> Script: ...
    def expect_equal(self, left: int, right: int, bytes: int, *, old: bool = False) -> None:
        """A run expects equal bytes at the end. `old`: `right` as it was before the run."""
    def expect_value(self, signal: int, value: int) -> None: ...
    def __getitem__(self, name: str) -> int:
        """The address of a buffer or a signal: s["gpu0.a"]."""
    @property
    def gpus(self) -> int: ...
    @property
    def file(self) -> str: ...
    @property
    def source(self) -> str | None:
        """The text that was read; None if the schedule was built or changed here."""
    @property
    def params(self) -> list[str]:
        """The params that the text has."""
    @property
    def buffers(self) -> list[dict[str, Any]]:
        """name, place, bytes and address of each."""
    @property
    def signals(self) -> list[dict[str, Any]]: ...
    @property
    def queues(self) -> list[Queue]: ...
    def problems(self) -> list[dict[str, Any]]:
        """What is wrong; empty for a schedule that was parsed. `str` raises it as an Error."""
    def fmt(self, *, flat: bool = False) -> str:
        """The source, formatted; with `flat`, or if there is no source, what `str` returns."""

def fmt(text: str) -> str:
    """The text of a schedule or of packets, formatted; comments stay."""
