# SPDX-License-Identifier: MIT
"""Devices that stay open, and arrays in their memory."""
from __future__ import annotations

from typing import Any, Mapping, Sequence

from . import _sdma, results
from .schedules import Schedule


class Device:
    """A device that stays open for several runs: "soft", "kfd", "cuda" or "rocr".

        with sdma.Device(gpus=2) as device:
            a = device.array(16384, "uint32", place=0)
            a[:] = 7
            device.run(schedule, buffers={"gpu0.a": a})

    One thread of one process uses it at a time. After `close`, its arrays still hold their bytes, but `run` raises an Error.
    """

    def __init__(self, kind: str = "soft", *, gpus: int = 8, order: str = "strict", seed: int = 0):
        self._opened = _sdma.Opened(kind, gpus, order, seed)

    def __enter__(self) -> Device:
        return self

    def __exit__(self, *exception):
        self.close()

    def close(self) -> None:
        """No run uses the device any more. Its memory stays while an array is in it."""
        self._opened.close()

    @property
    def closed(self) -> bool:
        """Has `close` been called?"""
        return self._opened.closed

    @property
    def topology(self) -> dict[str, Any]:
        """The GPUs, engines and links of the device, as sdma.topology has them."""
        return self._opened.topology

    def array(self, shape: int | Sequence[int], dtype: Any = "uint8", *, place: _sdma.Place = "host") -> Any:
        """A NumPy array in memory of the device, where engines read and write it. `place`: the number of a GPU of the device."""
        import numpy

        dtype = numpy.dtype(dtype)
        shape = (shape,) if hasattr(shape, "__index__") else tuple(shape)
        count = 1
        for n in shape:
            count *= n.__index__()
        if count <= 0:
            raise ValueError(f"an array of shape {shape} has no bytes")
        block = self._opened.allocate(count * dtype.itemsize, None if place == "host" else place)
        return numpy.frombuffer(block, dtype, count).reshape(shape)

    def run(self, schedule: Schedule, *, buffers: Mapping[str, Any] | None = None, inputs: Mapping[str, _sdma.Bytes] | None = None,
            outputs: Mapping[str, _sdma.Bytes] | None = None, gpus: Sequence[int] = (), seed: int = 0, timeout: float = 10) -> results.Run:
        """As sdma.run. `buffers`: arrays of `array` that are the buffers themselves: nothing is filled or copied."""
        words = [list((each or {}).items()) for each in (inputs, outputs, buffers)]
        report, diagnosis = self._opened.run(schedule, list(gpus), seed, timeout, *words)
        answer = results.Run(report)
        answer.diagnosis = diagnosis
        return answer

    def __repr__(self):
        return f"<Device {self._opened.kind}{', closed' if self.closed else ''}>"
