# SPDX-License-Identifier: MIT
"""DMA schedules for AMD Instinct MI300X, from Python: what the program `sdma` does, as functions.

    import sdma
    s = sdma.Schedule.read("all_gather.sdma", N=8, chunk="64K")
    assert sdma.check(s)["verdict"] == "proved"
    print(sdma.simulate(s)["ns"])

Each verb of the program is a function. Its answer is a dict with the members that `sdma VERB --json` prints, so that one description holds
for both (docs/json.md). Some answers also draw themselves in a notebook. Most functions work without the program. `emulate`, `contact`,
`tool`, and verbs that are not listed here, such as those of a newer program, start the `sdma` in PATH: sdma.VERB("file", option=value) is
sdma.tool("VERB", "file", option=value).

Errors are `Error`: a sentence, the place in the text (file, line, column) and a hint. A wrong type is a TypeError.

Threads: any thread may call any function, also with the same object: a calculation works on the schedule as it is at the call.
The interpreter's lock is free during a calculation, and Ctrl-C ends the call. A `Device` and what is bound to it belong to the process
that opened them; another process, or a second thread at the same time, gets an Error.
"""
import os
import subprocess
from typing import Any, Mapping, Sequence, Union

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

class Sampled:
    """What a thread has sampled, plus a number or a value that depends on the epoch: `sampled("n") + 4`."""
    sample: str
    factor: int
    constant: int
    def __init__(self, sample: str, factor: int = 0, constant: int = 0) -> None: ...
    def __add__(self, n: int | Epoch) -> Sampled: ...
    def __radd__(self, n: int | Epoch) -> Sampled: ...
    def __sub__(self, n: int | Epoch) -> Sampled: ...

def sampled(name: str) -> Sampled:
    """The value of the last `Script.sample` with this name, in the actions of the same thread after it."""

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
    def set(self, signal: int, value: Value | Sampled) -> Script: ...
    def add(self, signal: int, value: Value | Sampled) -> Script: ...
    def wait(self, signal: int, func: str, value: Value | Sampled) -> Script:
        """`func`: "eq", "ge", ..., as in a poll_mem packet."""
    def wait_rptr(self, queue: Queue) -> Script:
        """Until the engine has read all that was submitted to the queue, which completes nothing."""
    def sample(self, name: str, signal: int) -> Script:
        """Reads the signal now: `h.sample("n", count).submit(q).wait(count, "ge", sampled("n") + 4)`."""
    def compute(self, ns: int, hbm: int = 0) -> Script:
        """Only in a kernel."""
    def load(self, address: int, bytes: int) -> Script: ...
    def store(self, address: int, bytes: int, byte: int | None = None) -> Script: ...
    def store_sum(self, address: int, bytes: int, *parts: int, type: str = "f32", any_order: bool = False) -> Script:
        """Only in a kernel: adds ranges of `bytes` bytes that begin at `parts`, and stores the sum. `type`: "f32", "bf16" or "i32".
        `any_order`: the order of the additions is left open."""
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
        """Raises Error with all errors of the text. `file`: its name in errors, and the folder of the files that it names."""
    @staticmethod
    def read(path: str | os.PathLike[str], /, **params: Params) -> Schedule: ...
    def add_buffer(self, name: str, bytes: int, *, place: Place = "host", init: str = "poison", alignment: int = 1,
                   map: Sequence[Place] = ()) -> int:
        """`init`: "poison", "random" or "zero"."""
    def add_signal(self, name: str, *, place: Place = "host", value: int = 0, bits: int = 64) -> int: ...
    def add_queue(self, name: str, *, place: int, peer: Place | None = None, engine: int = 0, ring_bytes: int = 0,
                  from_host: bool = False, doorbell_each: bool = False, network: bool = False) -> Queue:
        """`peer`: use the engine that the node recommends for it; without a peer, `engine`."""
    def add_host(self, name: str = "main") -> Script: ...
    def add_kernel(self, name: str, *, place: int, share: int = 100) -> Script:
        """`share`: the percent of the GPU's compute units that it needs."""
    def expect_equal(self, left: int, right: int, bytes: int, *, old: bool = False) -> None:
        """A run expects equal bytes at the end. `old`: `right` as it was before the run."""
    def expect_sum(self, left: int, bytes: int, *parts: int, type: str = "f32", any_order: bool = False) -> None:
        """A run expects at `left`, at the end, the sum of what the ranges at `parts` held before the run."""
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
    def given(self) -> dict[str, str]:
        """The params that were given when it was read."""
    @property
    def buffers(self) -> list[dict[str, Any]]:
        """name, place, bytes and address of each."""
    @property
    def signals(self) -> list[dict[str, Any]]: ...
    @property
    def queues(self) -> list[Queue]: ...
    def problems(self) -> list[dict[str, Any]]:
        """What is wrong; empty for a schedule that was parsed. `str`, `check`, `simulate` and `run` raise it as an Error."""
    def fmt(self, *, flat: bool = False) -> str:
        """The source, formatted; with `flat`, or if there is no source, what `str` returns."""

def fmt(text: str) -> str:
    """The text of a schedule or of packets, formatted; comments stay."""

# --- Verbs --------------------------------------------------------------------------------------------------------
# A `schedule` is a Schedule, or the path of a file. A `machine` is a Machine, the name of a layout such as "ring:8", the path of a file,
# or None: eight MI300X.

AnySchedule = Union[Schedule, str, os.PathLike[str]]
AnyMachine = Union["Machine", str, os.PathLike[str], None]
Node = Union[str, os.PathLike[str], None]
"""The name of a layout, "kfd", "cuda", the path of a file, or None: eight MI300X."""

class Check(dict[str, Any]):
    """verdict, findings, what was assumed: the members of `sdma check --json`."""
    @property
    def proved(self) -> bool:
        """True only if no execution has a race, a deadlock or a missing wait."""

def check(schedule: AnySchedule, *, profile: str = "conservative", assume: Sequence[str] = (), topology: Node = None,
          max_findings: int = 20, open: bool = False, strict: bool = False) -> Check:
    """Finds races, deadlocks and missing waits, or proves that there are none.

    `profile` and `assume`: what is assumed about engines, as `sdma check` takes it: "rocr", ["poll=full"]. `open`: other programs
    may satisfy polls. The verdict is "proved", "unproved" or "refuted"; what was not examined is never "proved". Notes are advice,
    which changes no verdict; `strict` makes them errors. `exit_code` is that of `sdma check`.
    """

class Simulation(dict[str, Any]):
    """ns, uncertainty_ns, phases, path, busy, defaults: the members of `sdma simulate --json`. A notebook shows the timeline."""
    def trace(self) -> Trace: ...

def simulate(schedule: AnySchedule, machine: AnyMachine = None, *, sensitivity: bool = True, contents: bool = False,
             seed: int = 0) -> Simulation:
    """How long a schedule takes on a machine: a prediction, with its uncertainty.

    `sensitivity=False` leaves out the uncertainty, which takes many simulations. `contents`: also moves the bytes, and checks the
    expectations of the schedule.
    """

def speed_ups(baseline: AnySchedule, schedules: Sequence[AnySchedule], machine: AnyMachine = None) -> list[dict[str, Any]]:
    """How many times as fast each schedule is as the baseline, with the uncertainty; `tie` if the model cannot tell."""

class Sweep(dict[str, Any]):
    """param, files, points, defaults: the members of `sdma simulate --sweep --json`. A notebook shows the curves."""
    svg: str
    @property
    def rows(self) -> list[dict[str, Any]]:
        """One flat dict per point and schedule, for pandas.DataFrame(sweep.rows)."""

def sweep(schedules: AnySchedule | Sequence[AnySchedule], *axes: str, machine: AnyMachine = None, **params: Params) -> Sweep:
    """The times of schedules for each value of one parameter or two: "chunk=1K..1G", "engine.poll_ns=500,1000".

    Schedules are read again for each value, with the params that they were read with and those given here.
    """

class Explore(dict[str, Any]):
    """machine, defaults, searches: the members of `sdma explore --json`."""
    schedules: Sequence[Schedule]
    """The best, with nothing left open; the fastest first. All are proved."""

def explore(schedule: AnySchedule, *, machine: AnyMachine = None, tries: int = 0, budget: float | None = None, best: int = 5,
            seed: int = 0, **params: Params) -> Explore:
    """The fastest of the schedules that a text leaves open (docs/explore.md).

    `budget`: seconds; the default is 10, or no limit with `tries`, which makes the result repeatable.
    """

class Reduced(dict[str, Any]):
    """text, rule, before, after: the members of `sdma reduce --json`."""
    schedule: Schedule

def reduce(schedule: AnySchedule, *, rule: str = "", tries: int = 5000, profile: str = "conservative", assume: Sequence[str] = (),
           **params: Params) -> Reduced:
    """The smallest schedule in which the checker still finds this rule; "": the first error or warning (docs/check.md)."""

class Run(dict[str, Any]):
    """passed, findings, expectations, queues: what `sdma run --json` says of one run. True if everything holds."""
    diagnosis: dict[str, Any] | None
    """Why queues hang, as `sdma doctor --json` says it; None if everything holds."""
    trace: Trace | None

def run(schedule: AnySchedule, *, device: str = "soft", order: str = "strict", gpus: Sequence[int] = (), seed: int = 0,
        timeout: float = 10, inputs: Mapping[str, Bytes] | None = None, outputs: Mapping[str, Bytes] | None = None,
        trace: bool = False) -> Run:
    """Runs a schedule on a device of its own, and checks its expectations.

    `inputs`: the first bytes of buffers, by name: {"gpu0.in": array}. `outputs`: arrays that receive those of buffers after the run.
    `timeout`: seconds from the beginning of the run to its deadline. `trace`: record the run, on a software device. A run that fails is
    an answer, not an exception.
    """

class Device:
    """A device that stays open for several runs: "soft", "kfd", "cuda" or "rocr".

        with sdma.Device(gpus=2) as device:
            a = device.array(16384, "uint32", place=0)
            a[:] = 7
            device.run(schedule, buffers={"gpu0.a": a})

    One thread of one process uses it at a time. After `close`, its arrays still hold their bytes, but `run` raises an Error.
    """
    def __init__(self, kind: str = "soft", *, gpus: int = 8, order: str = "strict", seed: int = 0) -> None: ...
    def __enter__(self) -> Device: ...
    def __exit__(self, *exception: object) -> None: ...
    def close(self) -> None: ...
    @property
    def closed(self) -> bool: ...
    @property
    def topology(self) -> dict[str, Any]: ...
    def array(self, shape: int | Sequence[int], dtype: Any = "uint8", *, place: Place = "host") -> Any:
        """A NumPy array in memory of the device, where engines read and write it. `place`: the number of a GPU of the device."""
    def run(self, schedule: Schedule, *, buffers: Mapping[str, Any] | None = None, inputs: Mapping[str, Bytes] | None = None,
            outputs: Mapping[str, Bytes] | None = None, gpus: Sequence[int] = (), seed: int = 0, timeout: float = 10) -> Run:
        """As sdma.run. `buffers`: arrays of `array` that are the buffers themselves: nothing is filled or copied."""

class Trace:
    """A recording. A notebook shows its timeline."""
    @staticmethod
    def read(path: str | os.PathLike[str]) -> Trace: ...
    @staticmethod
    def parse(text: str, file: str = "trace.jsonl") -> Trace: ...
    @property
    def name(self) -> str: ...
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
    def to_svg(self, title: str = "") -> str: ...
    def save(self, path: str | os.PathLike[str]) -> None:
        """The form follows the suffix: NAME.jsonl, NAME.html, or any other name for ui.perfetto.dev."""

def trace(source: Trace | str | os.PathLike[str]) -> Trace:
    """The recording in a file that `sdma run --trace NAME.jsonl` or Trace.save has written."""

def compare(measured: Trace | str | os.PathLike[str], other: Schedule | Trace | str | os.PathLike[str], *,
            machine: AnyMachine = None) -> dict[str, Any]:
    """A recorded run beside the simulation of its Schedule, or beside another recording."""

class Machine:
    """What operations cost: m["engine.poll_ns"] = 1000. `str` lists the parameters with their sources."""
    def __init__(self, layout: str = "") -> None:
        """"": eight MI300X; or the name of a layout, such as "mi300x:4" or "ring:8"."""
    @staticmethod
    def read(path: str | os.PathLike[str]) -> Machine: ...
    @staticmethod
    def parse(text: str, file: str = "machine") -> Machine: ...
    def copy(self) -> Machine: ...
    def __getitem__(self, parameter: str) -> float: ...
    def __setitem__(self, parameter: str, value: float) -> None: ...
    def to_json(self) -> str:
        """The text of a file that `read` reads."""
    def to_dict(self) -> dict[str, Any]: ...
    @property
    def name(self) -> str: ...
    @property
    def gpus(self) -> int: ...

def topology(node: Node = None) -> dict[str, Any]:
    """The GPUs, engines and links of a node. `str` of it is a table."""

class Calibration(dict[str, Any]):
    """The members of `sdma calibrate --json`."""
    machine: Machine | None

def calibrate(table: str | os.PathLike[str], *, start: AnyMachine = None, predict: bool = False, limit: float = 600) -> Calibration:
    """Fits a machine to the measurements of a table, whose lines name the free parameters. `limit`: seconds.

    `predict`: fit nothing, and compare what `start` predicts with the table.
    """

def doctor(*sources: Trace | bytes | str | os.PathLike[str]) -> dict[str, Any]:
    """Why queues hang: from recordings, `.ring` files and dumps as text. `str` of it is the report. The verdict is "hung",
    "undecided", "waits" (for the host) or "healthy". After a run that failed, `Run.diagnosis` has the answer already. Core files,
    processes and the kernel's log are read by the program: `sdma doctor`.
    """

class Plan:
    """A collective: its schedule, the variant that was chosen, and notes about fallbacks."""
    schedule: Schedule
    variant: str
    notes: list[str]

def plan(collective: str, *, bytes: Params, gpus: int = 8, **options: Any) -> Plan:
    """The schedule of a collective (docs/collectives.md): plan("all_gather", bytes="1M", variant="b2b", prelaunch="shared")."""

def tool(verb: str, *words: str | os.PathLike[str], **options: Any) -> Any:
    """What the program `sdma`, which must be in PATH, answers with --json: the object, or a list of objects if it prints several.

        tool("check", "ring.bin", ring_bytes="1M", kernel=True)     # sdma check --json --ring-bytes=1M --kernel ring.bin

    True gives an option without a value, a list repeats it, None and False leave it out. Findings (exit codes 1, 4 and 5) are an answer;
    any other failure is an Error.
    """

def contact(folder: str | os.PathLike[str] = "contact", *, device: str = "soft", **options: Any) -> subprocess.CompletedProcess[Any]:
    """Runs `sdma contact`, which needs the installed tools: the folder then has contact.tar.gz. Options are those of subprocess.run."""

def emulate(command: Sequence[str], *, gpus: int | None = None, **options: Any) -> subprocess.CompletedProcess[Any]:
    """Runs a program on a software node, by the program `sdma`, which must be in PATH. `options`: as of subprocess.run."""
