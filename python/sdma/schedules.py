# SPDX-License-Identifier: MIT
"""Schedules: the classes of the extension, with the parts that are easier in Python; _sdma.pyi is their manual."""
from __future__ import annotations

import os

from . import _sdma, arguments, manual
from ._sdma import Queue, Schedule, Script
from .files import contents
from .matrices import is_sequence, list_text


class Epoch:
    """A value that depends on how often its queue was submitted, or on the round of a repeat: `EPOCH * 2 + 1`."""

    __slots__ = {"factor": "What the epoch is multiplied by.", "constant": "What is added to the product."}

    def __init__(self, factor: int = 1, constant: int = 0):
        self.factor, self.constant = factor, constant

    def __mul__(self, n: int) -> Epoch:
        return Epoch(self.factor * n, self.constant * n)

    def __add__(self, n: int) -> Epoch:
        return Epoch(self.factor, self.constant + n)

    def __sub__(self, n: int) -> Epoch:
        return self + -n

    __rmul__, __radd__ = __mul__, __add__

    def __eq__(self, other):
        return isinstance(other, Epoch) and (self.factor, self.constant) == (other.factor, other.constant)

    def __hash__(self):
        return hash((self.factor, self.constant))

    def __repr__(self):
        return f"EPOCH * {self.factor} + {self.constant}"


EPOCH = Epoch()
"""1 in the first submit of a queue, and in the first round of a repeat."""


class Sampled:
    """What a thread has sampled, plus a number or a value that depends on the epoch: `sampled("n") + 4`."""

    __slots__ = {"sample": "The name of the sample.", "factor": "How often the epoch is added.", "constant": "What is added."}

    def __init__(self, sample: str, factor: int = 0, constant: int = 0):
        self.sample, self.factor, self.constant = sample, factor, constant

    def __add__(self, n: int | Epoch) -> Sampled:
        if isinstance(n, Epoch):
            return Sampled(self.sample, self.factor + n.factor, self.constant + n.constant)
        return Sampled(self.sample, self.factor, self.constant + n)

    def __sub__(self, n: int | Epoch) -> Sampled:
        return self + n * -1

    __radd__ = __add__

    def __eq__(self, other):
        return isinstance(other, Sampled) and repr(self) == repr(other)

    def __hash__(self):
        return hash(repr(self))

    def __repr__(self):
        return f"sampled({self.sample!r}) + EPOCH * {self.factor} + {self.constant}"


def sampled(name: str) -> Sampled:
    """The value of the last `Script.sample` with this name, in the actions of the same thread after it."""
    return Sampled(name)


def _text_of(name, value):
    if is_sequence(value):
        return list_text(f"param {name}", value)
    if isinstance(value, bool) or not isinstance(value, str) and not hasattr(value, "__index__"):
        raise TypeError(f"param {name}: pass a number or text such as '64K', not {type(value).__name__}")
    return value if isinstance(value, str) else str(value.__index__())


def settings(params):
    return [(name, _text_of(name, value)) for name, value in params.items()]


def _parse(text, file="text", /, **params):
    if not isinstance(text, (str, bytes)):
        raise TypeError(f"pass the text of a schedule, not {type(text).__name__}")
    return _sdma.parse(text, os.fspath(file), settings(params))


def _read(path, /, **params):
    return _sdma.parse(contents(path).removeprefix(b"\xef\xbb\xbf"), os.fspath(path), settings(params))


def _put(queue, *packets):
    for packet in packets:
        if getattr(packet, "name", None) is None:
            raise TypeError(f"{packet!r} is not a packet: pass one of sdma.packets")
        if packet.generation != _sdma.default_generation:
            raise ValueError(f"a schedule has packets of {_sdma.default_generation}, not of {packet.generation}")
        queue._append(bytes(packet), packet.epochs)
    return queue


_submit_queues = Script.submit


def _submit(self, *queues):
    for queue in queues:
        if not isinstance(queue, Queue):
            raise TypeError(f"submit(): pass queues, as add_queue returns them, not {queue!r}")
    return _submit_queues(self, *queues)


def _repr(schedule):
    counts = f"{schedule.gpus} GPUs, {len(schedule.buffers)} buffers, {len(schedule.signals)} signals, {len(schedule.queues)} queues"
    return f"<Schedule {schedule.file}: {counts}>"


manual.add(Schedule, "parse", _parse, static=True)
manual.add(Schedule, "read", _read, static=True)
Schedule.__repr__ = _repr
manual.add(Queue, "put", _put)
Queue.__repr__ = lambda queue: f"<Queue {queue.name}: {len(queue.dwords)} dwords>"
_init_schedule = Schedule.__init__


@arguments.explained
def _init(self, gpus: int = 1):
    _init_schedule(self, gpus)


manual.add(Schedule, "__init__", _init)
manual.add(Script, "submit", _submit)
arguments.explain_methods(Schedule, "add_buffer", "add_signal", "add_queue", "add_host", "add_kernel", "expect_equal", "expect_sum",
                          "expect_value")
arguments.explain_methods(Queue, "copy")
arguments.explain_methods(Script, "set", "add", "wait", "wait_rptr", "sample", "compute", "load", "store", "store_sum", "repeat")
