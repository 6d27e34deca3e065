#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""sdma/client.h through ctypes: that the binding of examples/serving has every function, and that it works.

  client.py HEADER EXPORTS soft|cuda

cuda is the libcuda that stands in for NVIDIA's: the stream is a CUstream, and memory is pinned.
"""
import ctypes
import pathlib
import re
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parents[1] / "examples" / "serving"))
import numpy as np  # noqa: E402
import sdma_client  # noqa: E402

SCHEDULE = """sdma 1
param bytes = 4096
gpus 1
buffer host.in bytes=bytes init=zero
buffer gpu0.middle bytes=bytes
buffer host.out bytes=bytes init=zero
signal host.go value=0 bits=32
signal host.done value=0 bits=32
queue gpu0.there engine=1
  poll_mem addr=host.go func=eq reference=epoch
  copy_linear bytes=bytes src=host.in dst=gpu0.middle
  copy_linear bytes=bytes src=gpu0.middle dst=host.out
  fence addr=host.done value=epoch
end
"""


def the_same_names(header, exports):
    declared = set(re.findall(r"\b(sdma_\w+)\(", re.sub(r"/\*.*?\*/", "", header, flags=re.S)))
    exported = set(re.findall(r"\b(sdma_\w+);", exports))
    assert declared == exported, declared ^ exported
    library = sdma_client.load()
    for name in sorted(declared):
        assert getattr(library, name).argtypes is not None or name in ("sdma_version", "sdma_version_number", "sdma_error"), name


class Cuda:
    """A stream of the stand-in."""

    def __init__(self):
        self.driver = ctypes.CDLL("libcuda.so.1")
        get = self.driver.cuGetProcAddress_v2
        get.argtypes = [ctypes.c_char_p, ctypes.POINTER(ctypes.c_void_p), ctypes.c_int, ctypes.c_uint64, ctypes.c_void_p]

        def call(name, *arguments):
            at = ctypes.c_void_p()
            assert get(name, at, 12000, 0, None) == 0 and at.value, name
            status = ctypes.CFUNCTYPE(ctypes.c_int, *(type(a) for a in arguments))(at.value)(*arguments)
            assert status == 0, (name, status)

        context, self.stream = ctypes.c_void_p(), ctypes.c_void_p()
        call(b"cuDevicePrimaryCtxRetain", ctypes.pointer(context), ctypes.c_int(0))
        call(b"cuCtxPushCurrent", context)
        call(b"cuStreamCreateWithPriority", ctypes.pointer(self.stream), ctypes.c_uint(1), ctypes.c_int(0))


def main(header, exports, kind):
    the_same_names(pathlib.Path(header).read_text(), pathlib.Path(exports).read_text())
    with sdma_client.Device(kind, "gpus=1") as device:
        stream = device.stream(Cuda().stream.value if kind == "cuda" else None)
        work = device.bind(SCHEDULE, "bytes=8K")
        (_, source), (_, target) = work.buffer("host.in"), work.buffer("host.out")
        assert len(target) == 8192
        for round in range(1, 30):
            source[:] = bytes([round]) * 8192
            work.enqueue(0, stream)
            work.wait(30)
            assert bytes(target) == bytes(source), round

        # Parts of a list, out and back, held in stream order and waited for by the host.
        host, gpu = device.allocate(sdma_client.HOST, 1 << 16), device.allocate(0, 1 << 16)
        out = device.copies(0, "queues=2 parts=4")
        back = device.copies(0, "direction=to_host parts=1")
        data = np.frombuffer(host.bytes(), np.uint8)
        for round in range(1, 20):
            data[:] = 0
            data[: 1 << 15] = np.arange(1 << 15) // 1024 + round
            copies = np.zeros((4, 2), sdma_client.COPY)
            for part in range(4):  # two rows each, whose order is changed
                copies[part]["src"] = host.address + 4096 * part + np.array([0, 2048])
                copies[part]["dst"] = gpu.address + 4096 * part + np.array([2048, 0])
                copies[part]["bytes"], copies[part]["rows"] = 1024, 2
                copies[part]["src_pitch"] = copies[part]["dst_pitch"] = 1 << 14
            out.round()
            for part in range(4):
                out.publish(part % 2, part, copies[part], each=round % 2 == 0)
            out.release(stream)
            for part in range(4):
                out.hold(part, stream)
            whole = np.zeros(1, sdma_client.COPY)
            whole["src"], whole["dst"], whole["bytes"], whole["rows"] = gpu.address, host.address + (1 << 15), 1 << 15, 1
            back.round()
            back.publish(0, 0, whole)
            back.release(stream)
            back.wait(0, 30)
            for part in range(4):
                for row in range(2):
                    at = 4096 * part + (1 << 14) * row
                    for there, here in ((at, at + 2048), (at + 2048, at)):
                        assert (data[there : there + 1024] == data[(1 << 15) + here : (1 << 15) + here + 1024]).all(), (round, part, row)
        try:
            out.publish(9, 0, whole)
            raise AssertionError("queue 9 was taken")
        except sdma_client.Error as error:
            assert "queue 9" in str(error)
    try:
        sdma_client.load("/nowhere.so")
        raise AssertionError("/nowhere.so was loaded")
    except sdma_client.Error as error:
        assert "SDMA_CLIENT" in str(error)
    print("good")


main(*sys.argv[1:])
