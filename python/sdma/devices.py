# SPDX-License-Identifier: MIT
"""Devices that stay open, and arrays in their memory."""
from . import _sdma, results


class Device:
    """A node in software ("soft"), of the kernel driver ("kfd") or of NVIDIA GPUs ("cuda")."""

    def __init__(self, kind="soft", *, gpus=8, order="strict", seed=0):
        self._opened = _sdma.Opened(kind, gpus, order, seed)

    def __enter__(self):
        return self

    def __exit__(self, *exception):
        self.close()

    def close(self):
        self._opened.close()

    @property
    def closed(self):
        return self._opened.closed

    @property
    def topology(self):
        return self._opened.topology

    def array(self, shape, dtype="uint8", *, place="host"):
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

    def run(self, schedule, *, buffers=None, inputs=None, outputs=None, gpus=(), seed=0, timeout=10):
        words = [list((each or {}).items()) for each in (inputs, outputs, buffers)]
        report, diagnosis = self._opened.run(schedule, list(gpus), seed, timeout, *words)
        answer = results.Run(report)
        answer.diagnosis = diagnosis
        return answer

    def __repr__(self):
        return f"<Device {self._opened.kind}{', closed' if self.closed else ''}>"
