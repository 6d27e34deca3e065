# SPDX-License-Identifier: MIT
"""DMA schedules for AMD Instinct MI300X, from Python. The manual of each function is in __init__.pyi, and docs/python.md is a tour."""
from functools import partial as _partial

from . import _sdma, packets, program
from .devices import Device
from .errors import Error
from .packets import Packet
from .program import contact, emulate, tool
from .results import Calibration, Check, Explore, Reduced, Run, Simulation, Sweep
from .schedules import EPOCH, Epoch, Queue, Sampled, Schedule, Script, sampled
from .traces import Trace
from .verbs import *

__version__ = _sdma.version
fmt = _sdma.fmt


def __getattr__(name):
    """The verbs of the program that have no function here."""
    if name.startswith("_") or name not in program.verbs():
        raise AttributeError(f"module 'sdma' has no attribute '{name}'")
    return _partial(tool, name)


def dis(data, *, generation=packets.DEFAULT):
    """The packets of a ring."""
    return [packets._restored(name, dwords, generation) for name, dwords in _sdma.split(data, generation)]


def as_(source, *, file="text", generation=packets.DEFAULT):
    """The bytes of a text, or of packets."""
    if isinstance(source, str):
        return _sdma.assemble(source, file, generation)
    if isinstance(source, Packet):
        return bytes(source)
    return b"".join(bytes(_packet(p)) for p in source)


def _packet(value):
    if not isinstance(value, Packet):
        raise TypeError(f"{value!r} is not a packet: pass text, or packets of sdma.packets")
    return value
