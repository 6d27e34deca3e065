# SPDX-License-Identifier: MIT
"""What measuring needs of a machine: streams, graphs, times, energy. Cuda for an NVIDIA GPU, Host for a test without one."""
import ctypes
import os
import pathlib
import shutil
import subprocess
import time


def graph_of(torch, work, stream, pool=None):
    """`work`, captured on `stream`, as a graph."""
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph, pool=pool, stream=stream, capture_error_mode="thread_local"):
        work()
    return graph


class Energy:
    """Joules that a GPU has used, by NVML, or None."""

    def __init__(self):
        self.at = None
        try:
            nvml = ctypes.CDLL("libnvidia-ml.so.1")
            handle = ctypes.c_void_p()
            if nvml.nvmlInit_v2() == 0 and nvml.nvmlDeviceGetHandleByIndex_v2(0, ctypes.byref(handle)) == 0:
                self.at, self.nvml = handle, nvml
        except (OSError, AttributeError):
            pass

    def joules(self):
        value = ctypes.c_ulonglong()
        if self.at is None or self.nvml.nvmlDeviceGetTotalEnergyConsumption(self.at, ctypes.byref(value)) != 0:
            return None
        return value.value / 1000


class Host:
    """The calling thread is every stream, and nothing is captured."""

    def __init__(self, torch, device):
        self.torch, self.device, self.where = torch, device, "cpu"
        self.prefill_stream = device.stream()
        self.hand, self.why_no_hand = None, "no GPU"
        self.energy = self.issued = lambda: None

    name = "software"

    def synchronize(self):
        pass

    def captured(self, work, kind):
        return work

    def others(self, step, count):
        """Decodes `count` steps beside what follows; returns a function that gives the milliseconds of a step."""
        begin = time.perf_counter()
        step()
        took = time.perf_counter() - begin
        return lambda: took * 1e3

    def prefill(self, work):
        work()


class Cuda:
    def __init__(self, torch, device):
        self.torch, self.device, self.where = torch, device, "cuda"
        self.name = torch.cuda.get_device_name()
        # After the device: docs/stream_order.md says why.
        self.decoding, self.copying = torch.cuda.Stream(), torch.cuda.Stream()
        self.prefilling = torch.cuda.Stream(priority=-1)
        self.prefill_stream = device.stream(self.prefilling.cuda_stream)
        self.energy, self.issued = Energy().joules, device.issued
        self.pools, self.capturing = {}, {}
        self.hand, self.why_no_hand = self.compiled()

    def compiled(self):
        """hand.cu as a library, or the reason why there is none."""
        folder = pathlib.Path(os.environ.get("TMPDIR", "/tmp"))
        to, nvcc = folder / f"libhand-{os.getpid()}.so", shutil.which("nvcc") or "/usr/local/cuda/bin/nvcc"
        try:
            command = [nvcc, "-O2", "-shared", "-Xcompiler", "-fPIC", "-arch=native", str(pathlib.Path(__file__).with_name("hand.cu")), "-o", str(to)]
            subprocess.run(command, check=True, capture_output=True, text=True, timeout=120)
            return ctypes.CDLL(str(to)), ""
        except (OSError, subprocess.SubprocessError) as error:
            return None, f"hand.cu cannot be compiled: {getattr(error, 'stderr', '') or error}"

    def synchronize(self):
        self.torch.cuda.synchronize()

    def captured(self, work, kind):
        """`work` as a graph. Graphs of one kind share memory, so they do not run at once. A stream for each kind: cuBLAS
        has a workspace for a stream, which two graphs that run at once must not share."""
        torch = self.torch
        stream = self.capturing.setdefault(kind, torch.cuda.Stream())
        with torch.cuda.stream(stream):
            for _ in range(2):
                work()
        torch.cuda.synchronize()
        graph = graph_of(torch, work, stream, self.pools.get(kind))
        torch.cuda.synchronize()
        self.pools.setdefault(kind, graph.pool())
        return graph.replay

    def others(self, step, count):
        begin, end = (self.torch.cuda.Event(enable_timing=True) for _ in range(2))
        with self.torch.cuda.stream(self.decoding):
            begin.record()
            for _ in range(count):
                step()
            end.record()
        return lambda: begin.elapsed_time(end) / count

    def prefill(self, work):
        """Enqueues `work` in the stream of prefills, and waits for it."""
        with self.torch.cuda.stream(self.prefilling):
            work()
        self.prefilling.synchronize()
