# SPDX-License-Identifier: MIT
"""DMA schedules for AMD Instinct MI300X, from Python. The manual of each function is in __init__.pyi, and docs/python.md is a tour."""
from . import _sdma, packets
from .devices import Device
from .errors import Error
from .packets import Packet
from .results import Calibration, Check, Explore, Reduced, Run, Simulation, Sweep
from .schedules import EPOCH, Epoch, Queue, Sampled, Schedule, Script, sampled
from .traces import Trace
from .verbs import (Machine, Plan, calibrate, check, compare, contact, doctor, emulate, explore, plan, reduce, run, simulate, speed_ups,
                    sweep, topology, trace)

__version__ = _sdma.version
fmt = _sdma.fmt


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
