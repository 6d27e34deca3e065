# SPDX-License-Identifier: MIT
"""The manual of the extension's classes, with what modules of the package add to them, and the types that its functions take. The build
makes the docstrings of the classes from this file (python/module/manual.py). Of what else the extension has, the package is the only user."""
import os
from typing import Any, Sequence

from .packets import Packet
from .schedules import Epoch, Sampled

Params = int | str | Sequence[Any] | Any
"""The value of a schedule's param: a number; text such as "64K" or "4*chunk"; a list, or for a table a list of rows; or an array."""
Place = int | str
"""The number of a GPU in the schedule, from 0, or "host"."""
Value = int | Epoch
Bytes = Any
"""What holds bytes: bytes, bytearray, memoryview, a NumPy array. It must be contiguous."""
AnySchedule = Schedule | str | os.PathLike[str]
AnyMachine = Machine | str | os.PathLike[str] | None
Node = str | os.PathLike[str] | None

version: str

def __getattr__(name: str) -> Any: ...
def fmt(text: str) -> str:
    """The text of a schedule or of packets, formatted; comments stay."""

class Queue:
    """The packets for one engine. Each method appends, and returns the queue."""
    @property
    def name(self) -> str:
        """Its place and its name: "gpu0.push"."""
    @property
    def dwords(self) -> list[int]:
        """The packets that the queue has so far, as 32-bit numbers. Addresses are those of the schedule."""
    def put(self, *packets: Packet) -> Queue:
        """Appends packets of sdma.packets."""
    def copy(self, *, src: int, dst: int, bytes: int) -> Queue:
        """A copy of any length: a long one becomes several packets."""

class Script:
    """The actions of a host thread or a kernel. Each method appends, and returns the script."""
    def submit(self, *queues: Queue) -> Script:
        """A doorbell for each of these queues, or for all queues that the schedule has now."""
    def set(self, signal: int, value: Value | Sampled) -> Script:
        """Stores the value in the signal's word."""
    def add(self, signal: int, value: Value | Sampled) -> Script:
        """Adds the value to the signal's word."""
    def wait(self, signal: int, func: str, value: Value | Sampled) -> Script:
        """`func`: "eq", "ge", ..., as in a poll_mem packet."""
    def wait_rptr(self, queue: Queue) -> Script:
        """Until the engine has read all that was submitted to the queue, which completes nothing."""
    def sample(self, name: str, signal: int) -> Script:
        """Reads the signal now: `h.sample("n", count).submit(q).wait(count, "ge", sampled("n") + 4)`."""
    def compute(self, ns: int, hbm: int = 0) -> Script:
        """Only in a kernel."""
    def load(self, address: int, bytes: int) -> Script:
        """Reads these bytes. What they hold has no effect; `check` compares the access with their writers."""
    def store(self, address: int, bytes: int, byte: int | None = None) -> Script:
        """Writes these bytes. `byte`: the value of each; None: random ones."""
    def store_sum(self, address: int, bytes: int, *parts: int, type: str = "f32", any_order: bool = False) -> Script:
        """Only in a kernel: adds ranges of `bytes` bytes that begin at `parts`, and stores the sum. `type`: "f32", "bf16" or "i32".
        `any_order`: the order of the additions is left open."""
    def alloc(self, buffer: int) -> Script:
        """Only in a host thread, as are the next five: from here on the buffer at this address exists, and holds what its `init` says."""
    def free(self, buffer: int) -> Script:
        """The buffer no longer exists, and nothing may use it."""
    def map(self, buffer: int, gpu: int) -> Script:
        """The GPU may access the buffer."""
    def unmap(self, buffer: int, gpu: int) -> Script:
        """The GPU may no longer access the buffer."""
    def export_handle(self, buffer: int) -> Script:
        """GPUs other than its own may access the buffer."""
    def close_handle(self, buffer: int) -> Script:
        """Only its own GPU may."""
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
    def copy(self) -> Schedule:
        """Another schedule, which changes by itself."""
    @staticmethod
    def parse(text: str, file: str = "text", /, **params: Params) -> Schedule:
        """Raises Error with all errors of the text. `file`: its name in errors, and the folder of the files that it names. XML of MSCCL
        is a text, too, as for `read`."""
    @staticmethod
    def read(path: str | os.PathLike[str], /, **params: Params) -> Schedule:
        """The schedule in a file, with these params: read("all_gather.sdma", N=8, chunk="64K").

        A file whose first element is `algo` is XML of MSCCL (docs/msccl.md): read("ring.xml", bytes="1M", slots=2). What is said about
        its schedule has the lines of the XML. An algorithm that is wrong in every execution, such as one with a send that nothing receives, is
        an Error with the rule `wrong-algorithm` and its line."""
    def add_buffer(self, name: str, bytes: int, *, place: Place = "host", init: str = "poison", alignment: int = 1,
                   map: Sequence[Place] = ()) -> int:
        """`init`: "poison", "random" or "zero"."""
    def add_signal(self, name: str, *, place: Place = "host", value: int = 0, bits: int = 64) -> int:
        """A word of `bits` (32 or 64) bits, which holds `value` before the run. Returns its address."""
    def add_queue(self, name: str, *, place: int, peer: Place | None = None, engine: int = 0, ring_bytes: int = 0,
                  from_host: bool = False, doorbell_each: bool = False, network: bool = False) -> Queue:
        """`peer`: use the engine that the node recommends for it; without a peer, `engine`."""
    def add_host(self, name: str = "main") -> Script:
        """Another host thread. The schedule has no other order between threads than their waits."""
    def add_kernel(self, name: str, *, place: int, share: int = 100, workgroups: int = 0,
                   protocol: str = "plain") -> Script:
        """`share`: the percent of the GPU's compute units that it needs. `workgroups`: that move its bytes (0: not said).
        `protocol`: "plain", "simple", "ll" or "tracked"."""
    def expect_equal(self, left: int, right: int, bytes: int, *, old: bool = False) -> None:
        """A run expects equal bytes at the end. `old`: `right` as it was before the run."""
    def expect_sum(self, left: int, bytes: int, *parts: int, type: str = "f32", any_order: bool = False) -> None:
        """A run expects at `left`, at the end, the sum of what the ranges at `parts` held before the run."""
    def expect_value(self, signal: int, value: int) -> None:
        """A run expects this value of the signal at the end."""
    def __getitem__(self, name: str) -> int:
        """The address of a buffer or a signal: s["gpu0.a"]."""
    @property
    def gpus(self) -> int:
        """How many GPUs the schedule is for."""
    @property
    def file(self) -> str:
        """The name of the text in errors."""
    @property
    def source(self) -> str | None:
        """The text or the XML that was read; None if the schedule was built or changed here."""
    @property
    def params(self) -> list[str]:
        """The params that the text has."""
    @property
    def given(self) -> dict[str, str]:
        """The params that were given when it was read."""
    @property
    def buffers(self) -> list[dict[str, Any]]:
        """name, place, bytes and address of each."""
    @property
    def signals(self) -> list[dict[str, Any]]:
        """name, place, bytes, address and first value of each."""
    @property
    def queues(self) -> list[Queue]:
        """The queues, in the order in which they were added."""
    def problems(self) -> list[dict[str, Any]]:
        """What is wrong; empty for a schedule that was parsed. `str`, `check`, `simulate` and `run` raise it as an Error."""
    def fmt(self, *, flat: bool = False) -> str:
        """The source, formatted; of XML, the schedule that was made of it. With `flat`, or if there is no source, what `str` returns."""

class Trace:
    """A recording. A notebook shows its timeline."""
    @staticmethod
    def read(path: str | os.PathLike[str]) -> Trace:
        """The recording in a .jsonl file."""
    @staticmethod
    def parse(text: str, file: str = "trace.jsonl") -> Trace:
        """The recording in the text of a .jsonl file. `file`: its name in errors."""
    @property
    def name(self) -> str:
        """The name of the recording: that of its file or of its schedule."""
    @property
    def lost(self) -> int:
        """Events that the recorder had no room for."""
    @property
    def lines(self) -> list[dict[str, Any]]:
        """The header, lanes, texts and events, as a .jsonl file has them."""
    def __len__(self) -> int:
        """The number of events."""
    def to_string(self, form: str = "jsonl") -> str:
        """`form`: "jsonl", "perfetto" (for ui.perfetto.dev), "html" or "text"."""
    def to_svg(self, title: str = "", *, size: tuple[float, float] | None = None, beside: Sequence[Trace] = ()) -> str:
        """The timeline, as a picture in SVG. `size`: (width, height) in pixels; the picture is larger where its text needs that.
        `beside`: other recordings in the same picture, over the same axis; each begins at 0."""
    def save(self, path: str | os.PathLike[str]) -> None:
        """The form follows the suffix: NAME.jsonl, NAME.html, or any other name for ui.perfetto.dev."""

class Machine:
    """What operations cost: m["engine.poll_ns"] = 1000. `str` lists the parameters with their sources."""
    def __init__(self, layout: str = "") -> None:
        """"": eight MI300X; or the name of a layout, such as "mi300x:4" or "ring:8"."""
    @staticmethod
    def read(path: str | os.PathLike[str]) -> Machine:
        """The machine of a file: a machine file, or what `sdma topology --json` prints (docs/simulate.md)."""
    @staticmethod
    def parse(text: str, file: str = "machine") -> Machine:
        """The machine that the text of a file describes. `file`: its name in errors."""
    def copy(self) -> Machine:
        """Another machine, which changes by itself."""
    def __getitem__(self, parameter: str) -> float: ...
    def __setitem__(self, parameter: str, value: float) -> None: ...
    def to_json(self) -> str:
        """The text of a file that `read` reads."""
    def to_dict(self) -> dict[str, Any]:
        """What `to_json` writes, as a dict."""
    @property
    def name(self) -> str:
        """What the machine is called: "8 x MI300X, SPX"."""
    @property
    def gpus(self) -> int:
        """How many GPUs the machine has."""
