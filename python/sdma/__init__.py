# SPDX-License-Identifier: MIT
"""DMA schedules for AMD Instinct MI300X, from Python: what the program `sdma` does, as functions.

    import sdma
    s = sdma.Schedule.read("all_gather.sdma", N=8, chunk="64K")
    assert sdma.check(s)["verdict"] == "proved"
    print(sdma.simulate(s)["ns"])

Each subcommand of the program is a function. Its answer is a dict with the members that `sdma SUBCOMMAND --json` prints, so that one
description holds for both (docs/json.md). Some answers also draw themselves in a notebook. Most functions work without the program.
`emulate`, `contact`, `tool`, and subcommands that are not listed here, such as those of a newer program, start the `sdma` in PATH:
sdma.NAME("file", option=value) is sdma.tool("NAME", "file", option=value).

Errors are `Error`: a sentence, the place in the text (file, line, column) and a hint. A wrong type is a TypeError.

Threads: any thread may call any function, also with the same object: a calculation works on the schedule as it is at the call.
The interpreter's lock is free during a calculation, and Ctrl-C ends the call. A `Device` and what is bound to it belong to the process
that opened them; another process, or a second thread at the same time, gets an Error. docs/python.md is a tour.
"""
from __future__ import annotations as _annotations

import typing as _typing
from collections.abc import Iterable as _Iterable
from functools import partial as _partial

from . import _sdma, packets, program, verbs
from .devices import Device
from .errors import Error
from .packets import Packet
from .program import contact, emulate, tool
from .results import Calibration, Check, Explore, Reduced, Run, Simulation, Sweep
from .schedules import EPOCH, Epoch, Queue, Sampled, Schedule, Script, sampled
from .traces import Trace
from .verbs import *

__all__ = ["Calibration", "Check", "Device", "EPOCH", "Epoch", "Error", "Explore", "Packet", "Queue", "Reduced", "Run", "Sampled", "Schedule", "Script",
           "Simulation", "Sweep", "Trace", "as_", "contact", "dis", "emulate", "fmt", "packets", "sampled", "tool"]
__all__ += verbs.__all__
__version__ = _sdma.version
fmt = _sdma.fmt


if not _typing.TYPE_CHECKING:  # to which these would make every name one of the package

    def __getattr__(name):
        """The subcommands of the program that have no function here."""
        if name.startswith("_") or name not in program.verbs():
            raise AttributeError(f"module 'sdma' has no attribute '{name}'")
        return _partial(tool, name)


def dis(data: _sdma.Bytes | _typing.Sequence[int], *, generation: str = packets.DEFAULT) -> list[Packet]:
    """The packets of a ring: bytes in the order of memory, an array of 32-bit numbers, or a sequence of dwords.

    `generation`: whose packets these are, as "4.4.2" or "gfx1100". Any dwords can be read: what is not a known packet becomes
    `packets.Unknown`. `sdma.as_` of the result is the input, bit for bit.
    """
    return [packets._restored(name, dwords, generation) for name, dwords in _sdma.split(data, generation)]


def as_(source: str | Packet | _typing.Sequence[Packet], *, file: str = "text", generation: str = packets.DEFAULT) -> bytes:
    """The bytes of a text in the language of docs/text.md, or of packets."""
    if isinstance(source, str):
        return _sdma.assemble(source, file, generation)
    if not isinstance(source, (Packet, _Iterable)):
        raise TypeError(f"pass text, or packets of sdma.packets, not {type(source).__name__}")
    return b"".join(bytes(_packet(p)) for p in ([source] if isinstance(source, Packet) else source))


def _packet(value):
    if not isinstance(value, Packet):
        raise TypeError(f"{value!r} is not a packet: pass text, or packets of sdma.packets")
    return value
