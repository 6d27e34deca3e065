#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""sdma/client.h through ctypes: that the binding of examples/serving has every function, and that it works.

  client.py HEADER EXPORTS soft|cuda|ranks

cuda is the libcuda that stands in for NVIDIA's: the stream is a CUstream, and memory is pinned. ranks: two processes on its GPUs.
"""
import ctypes
import os
import pathlib
import re
import signal
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent
for room in ("examples", "bench"):  # the binding; and processes for ranks
    sys.path.insert(0, str(HERE.parents[1] / room / "serving"))
import fetch  # noqa: E402
import numpy as np  # noqa: E402
import pools  # noqa: E402
import ranks  # noqa: E402
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
        assert getattr(library, name).argtypes is not None or name in ("sdma_version", "sdma_version_number", "sdma_error", "sdma_error_class"), name


class Cuda:
    """A stream of the stand-in, on a GPU."""

    def __init__(self, gpu=0):
        self.get = ctypes.CDLL("libcuda.so.1").cuGetProcAddress_v2
        self.get.argtypes = [ctypes.c_char_p, ctypes.POINTER(ctypes.c_void_p), ctypes.c_int, ctypes.c_uint64, ctypes.c_void_p]
        context, self.stream = ctypes.c_void_p(), ctypes.c_void_p()
        self.call(b"cuDevicePrimaryCtxRetain", ctypes.pointer(context), ctypes.c_int(gpu))
        self.call(b"cuCtxPushCurrent", context)
        self.call(b"cuStreamCreateWithPriority", ctypes.pointer(self.stream), ctypes.c_uint(1), ctypes.c_int(0))

    def status(self, name, *arguments):
        at = ctypes.c_void_p()
        assert self.get(name, at, 12000, 0, None) == 0 and at.value, name
        return ctypes.CFUNCTYPE(ctypes.c_int, *(type(a) for a in arguments))(at.value)(*arguments)

    def call(self, name, *arguments):
        status = self.status(name, *arguments)
        assert status == 0, (name, status)

    def copy(self, to, at, bytes):
        self.call(b"cuMemcpyAsync", ctypes.c_uint64(to), ctypes.c_uint64(at), ctypes.c_size_t(bytes), self.stream)


def of_two(rank, session, tell):
    """Two collectives that take turns in the stream of a rank: eager rounds, then launches of a graph, published after their launch."""
    with sdma_client.Device("cuda", f"rank={rank} ranks=2 session={session} patience=20") as device:
        cuda, sizes = Cuda(rank), (8192, 65536)
        stream = device.stream(cuda.stream.value)
        host = device.allocate(sdma_client.HOST, sum(sizes))
        at = (host.address, host.address + sizes[0])
        all = [device.collective(f"collective=all_gather gpus=2 bytes={n} engines={2 + i} ring_bytes=256K") for i, n in enumerate(sizes)]
        ctypes.memset(host.bytes(), rank + 1, sum(sizes))
        for work, n, mine in zip(all, sizes, at):
            cuda.copy(work.buffer(f"gpu{rank}.buf")[0], mine, n)
        for _ in range(50):
            for work in all:
                work.enqueue(rank, stream)
        graphs = [work.graph(rank, 96) for work in all]
        for launch in range(3):
            for round in range(96):
                for work, graph in zip(all, graphs):
                    work.pass_round(rank, graph, round, stream)
            for work, graph in zip(all, graphs):
                work.replay(rank, graph)
        for work, n, mine in zip(all, sizes, at):
            work.wait(20)
            cuda.copy(mine, work.buffer(f"gpu{rank}.buf")[0], n)
        end = time.monotonic() + 20
        while cuda.status(b"cuStreamQuery", cuda.stream) != 0:
            assert time.monotonic() < end
            time.sleep(0.001)
        found = bytes(host.bytes())
        for n, part in zip(sizes, (found[: sizes[0]], found[sizes[0] :])):
            assert part == bytes([1]) * (n // 2) + bytes([2]) * (n // 2), (rank, n, part[0], part[n // 2])
        return "good"


def of_two_killed(rank, session, tell):
    """The stream of rank 0 waits for rank 1, which is killed; the host of rank 0 notices."""
    device = sdma_client.Device("cuda", f"rank={rank} ranks=2 session={session} patience=20")  # it stays open: its stream waits
    stream = device.stream(Cuda(rank).stream.value)
    work = device.collective("collective=all_gather gpus=2 bytes=8K")
    work.enqueue(rank, stream)
    work.wait(20)
    work.lost()
    if rank == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    work.enqueue(rank, stream)
    end = time.monotonic() + 20
    try:
        while time.monotonic() < end:
            work.lost()
            time.sleep(0.01)
    except sdma_client.Error as error:
        tell(str(error))
        time.sleep(60)  # the caller ends what does not end by itself


def killed():
    heard, begin = [], time.monotonic()
    try:
        ranks.run(2, of_two_killed, lambda rank, text: heard.append(text), 50)
        raise AssertionError("the rank was not missed")
    except ranks.Failed as error:
        assert str(error) == "rank 1: its process was killed by signal 9 (Killed)", error
    assert len(heard) == 1 and "rank 1 does not answer: its process" in heard[0], heard
    assert time.monotonic() - begin < 40


def fetched(device, cuda, stream):
    """A fetch of examples/serving by one thread: what the driver is given for it, and that nobody is woken."""
    shape = type("Shape", (), {"layers": 16, "block_bytes": lambda self, element: 4096 * element})()
    host, gpu = device.allocate(sdma_client.HOST, 16 * 2 * 96 * 4096), device.allocate(0, 16 * 2 * 64 * 4096)
    of = pools.Pools(shape, 1, gpu.address, 64, host.address, 96)
    data = np.frombuffer(host.bytes(), np.uint32).reshape(16, 2, 96, 1024)
    data[:] = np.arange(16 * 2 * 96, dtype=np.uint32).reshape(16, 2, 96, 1)
    blocks = np.random.default_rng(1).permutation(96)[:64]
    back = device.allocate(sdma_client.HOST, gpu.length)
    seen = np.frombuffer(back.bytes(), np.uint32).reshape(16, 2, 64, 1024)
    for way in ("layer", "prelaunched", "batch"):
        f = fetch.Fetcher(device, of, way)
        copies, rows = f.copies_of(blocks, range(64)), 16 * 2 * 64
        assert len(copies) == 8 and sum(int(c["rows"].sum()) for c in copies) == rows, [len(c) for c in copies]
        before = device.issued()
        if way == "prelaunched":
            f.ahead(copies)
        f.begin(stream, copies)
        for layer in range(16):
            f.before(layer, stream)
        f.end(stream)
        f.queues.wait(len(f.parts) - 1, 30)
        n = {what: number - before[what] for what, number in device.issued().items()}
        # By hand, a batch by layer is 16 calls, and each takes 128 copies. Here, 64 copies at most are one call.
        assert n["copies"] + n["rows"] == rows and n["wakes"] == n["refused"] == 0, n
        assert n["calls"] <= 2 * (rows // 64 + n["boxes"]) + 4 * len(f.parts) + 8, n
        if way == "prelaunched":
            assert n["boxes"] == 0 and n["calls"] <= 2 * rows // 64 + 4 * len(f.parts), n
        f.close()
        cuda.copy(back.address, gpu.address, gpu.length)
        while cuda.status(b"cuStreamQuery", cuda.stream) != 0:
            time.sleep(0.001)
        assert (seen == data[:, :, blocks]).all(), way
        assert len(seen) == 16 and not (seen[:, :, 0] == seen[:, :, 1]).any()
    try:
        sdma_client.Device("soft").issued()
        raise AssertionError("the software device has a driver")
    except sdma_client.Error as error:
        assert "only a cuda device" in str(error)


def main(header, exports, kind):
    if kind == "ranks":
        assert ranks.run(2, of_two, seconds=60) == ["good", "good"]
        killed()
        return print("good")
    the_same_names(pathlib.Path(header).read_text(), pathlib.Path(exports).read_text())
    with sdma_client.Device(kind, "gpus=1") as device:
        cuda = Cuda() if kind == "cuda" else None
        stream = device.stream(cuda and cuda.stream.value)
        if cuda:
            fetched(device, cuda, stream)
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
