# SPDX-License-Identifier: MIT
"""Ways to gather among ranks in the order of a stream: each rank writes its part, and then has all.

  way       what moves the bytes
  sdma      engines, by sdma/client.h: examples/serving/gather.py
  carried   the same with the copies in the stream of the kernels, in two turns
  nccl      NCCL's kernels, by torch.distributed
  nccl-ce   NCCL's copy engines, by NCCL's own interface: a communicator without kernels on symmetric windows (NCCL 2.28 or later)
  gloo      torch.distributed on hosts
  auto      for each size, the fastest of the others in a table that is measured at the start, or kept in a file
  none      nothing: the compute alone; WRONG
  missing   sdma, and the stream does not wait; WRONG, to show what a test of the tokens finds

    part = way.part(bytes, lane)     a part of gather.py, with part.places on the device: of the next gather, part.places[part.turn] is
                                     [ranks, bytes], of which [rank] is this rank's
"""
import ctypes
import datetime
import json
import os
import pathlib
import statistics
import time

import example  # noqa: F401, I001
import gather
import gpu
import ranks
import sdma_client

WAYS = ("sdma", "carried", "nccl", "nccl-ce", "gloo", "auto", "none", "missing")


class Place:
    """A rank on its device: the software device, where the calling thread is the stream, or an NVIDIA GPU."""

    def __init__(self, torch, kind, rank, count, session, name, order="strict", seed=1):
        self.torch, self.rank, self.count = torch, rank, count
        self.gpu = kind == "cuda"
        settings = f"rank={rank} ranks={count} session={ranks.folder(session, name)} patience=20" if count > 1 else ""
        # Before torch makes streams: docs/stream_order.md says why.
        self.device = sdma_client.Device(kind, settings + ("" if self.gpu else f" gpus={max(count, 2)} order={order} seed={seed + rank}"))
        self.where, self.works, self.agreed = "cpu", [], 0
        if self.gpu:
            if not torch.cuda.is_available() or torch.cuda.device_count() < count:
                raise ValueError(f"{count} ranks need {count} GPUs, and PyTorch sees {torch.cuda.device_count()}")
            self.where = f"cuda:{rank}"
            torch.cuda.set_device(rank)
            self.current = torch.cuda.Stream()  # the default stream waits for others
            torch.cuda.set_stream(self.current)
            self.stream = self.device.stream(self.current.cuda_stream)
        else:
            self.stream = self.device.stream()
        self.store = torch.distributed.FileStore(str(pathlib.Path(ranks.folder(session, name), "store")), count) if count > 1 else None
        if self.store:
            self.store.set_timeout(datetime.timedelta(seconds=60))

    def view(self, address, bytes, host=None):
        """Memory of the device as a tensor."""
        if not self.gpu:
            return self.torch.frombuffer(host, dtype=self.torch.uint8)
        self.__cuda_array_interface__ = {"shape": (bytes,), "typestr": "|u1", "data": (address, False), "version": 2}
        made = self.torch.as_tensor(self, device=self.where)
        if made.data_ptr() != address:
            raise RuntimeError(f"PyTorch has copied memory of {self.where} instead of taking it as it is")
        return made

    def finish(self, seconds=60):
        """Waits until the stream is here, and for no longer once a rank has ended."""
        if not self.gpu:
            return
        event, begin, pause = self.torch.cuda.Event(), time.monotonic(), 1e-5
        event.record()
        while not event.query():
            time.sleep(pause)
            waited = time.monotonic() - begin
            pause = 0.5 if waited > 2 else pause
            for work in self.works if waited > 2 else []:
                work.lost()
            if waited > seconds:
                raise TimeoutError(f"the stream of rank {self.rank} is not here after {seconds} s")

    def agree(self, mine):
        """What each rank says, in their order. All make the same calls."""
        if not self.store:
            return [mine]
        self.agreed += 1
        self.store.set(f"{self.agreed}/{self.rank}", json.dumps(mine))
        return [json.loads(self.store.get(f"{self.agreed}/{r}")) for r in range(self.count)]

    def close(self):
        self.agree("done")  # no rank ends while others wait for words
        if self.torch.distributed.is_initialized():
            self.torch.distributed.destroy_process_group()
        self.device.close()

    def captured(self, work):
        """`work` as a graph; on the software device, which has none, the same calls again."""
        if not self.gpu:
            return work
        self.finish()
        return gpu.graph_of(self.torch, work, self.current).replay


class SdmaPart(gather.Part):
    CARRIED = False

    def __init__(self, place, bytes, lane):
        super().__init__(place.device, place.stream, place.rank, place.count, bytes, lane, self.CARRIED)
        whole = place.view(self.address, (self.turns - 1) * self.stride + place.count * bytes, self.host)
        self.place, at = place, [turn * self.stride for turn in range(self.turns)]
        self.places = [whole[a : a + place.count * bytes].view(place.count, bytes) for a in at]
        place.works.append(self.work)

    def free(self):
        self.places = None
        self.place.works.remove(self.work)
        super().free()


class CarriedPart(SdmaPart):
    CARRIED = True


class MissingPart(SdmaPart):
    """A stream that does not wait, and engines that are as late as they may be: a round begins before the next one, or at `free`."""

    def __init__(self, place, bytes, lane):
        super().__init__(place, bytes, lane)
        call, self.later = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_uint64, ctypes.c_uint32), []
        self.kept = call(lambda _, word, value: self.later.append((word, value)) or 0), call(lambda *_: 0)
        self.hasty = sdma_client.Stream(None, *(ctypes.cast(k, ctypes.c_void_p) for k in self.kept))
        self.write = call(place.stream.write)

    def gather(self):
        self.arrive()
        self.work.enqueue(self.place.rank, self.hasty)

    def arrive(self):
        for word, value in self.later:
            self.write(self.place.stream.stream, word, value)
        self.later.clear()
        self.work.wait(20)

    def free(self):
        self.arrive()
        super().free()


class OtherPart:
    """Of the other ways, for which a graph is nothing special. By itself, it gathers nothing: `none`."""

    def __init__(self, place, bytes):
        self.place, self.bytes, self.turn, self.turns = place, bytes, 0, 1
        self.all = self.memory(place.count, bytes)
        self.places = [self.all]

    def memory(self, count, bytes):
        return self.place.torch.zeros(count, bytes, dtype=self.place.torch.uint8, device=self.place.where)

    def gather(self, *_):
        pass

    begin = end = replay = free = lambda self, *_: None


class TorchPart(OtherPart):
    def gather(self):
        self.place.torch.distributed.all_gather_into_tensor(self.all.view(-1), self.all[self.place.rank])


class GlooPart(OtherPart):
    def gather(self):
        self.place.torch.distributed.all_gather(list(self.all.unbind()), self.all[self.place.rank].clone())


class Id(ctypes.Structure):
    _fields_ = [("bytes", ctypes.c_char * 128)]


class Config(ctypes.Structure):
    """ncclConfig_t of NCCL 2.28; a newer one takes what is missing as undefined."""

    _fields_ = [("size", ctypes.c_size_t), ("magic", ctypes.c_uint), ("version", ctypes.c_uint), ("before", ctypes.c_int * 4), ("net", ctypes.c_char_p),
                ("between", ctypes.c_int * 2), ("comm", ctypes.c_char_p), ("collnet", ctypes.c_int), ("cta_policy", ctypes.c_int), ("after", ctypes.c_int * 4)]  # fmt: skip


class Nccl:
    """A communicator whose collectives run on copy engines: NCCL_CTA_POLICY_ZERO, and buffers in symmetric windows."""

    UNDEFINED, NO_KERNELS, SYMMETRIC, BYTES, UNIT = -(2**31), 2, 1, 1, 2 << 20

    def __init__(self, place):
        self.place = place
        try:
            self.library = ctypes.CDLL(os.environ.get("SDMA_NCCL_LIBRARY", "libnccl.so.2"))
            self.library.ncclCommWindowRegister
        except (OSError, AttributeError) as error:
            raise ValueError(f"no NCCL with copy engines (2.28 or later): {error}; set SDMA_NCCL_LIBRARY to libnccl.so.2") from None
        number = ctypes.c_int()
        self.call("ncclGetVersion", ctypes.byref(number))
        if number.value < 22800:
            raise ValueError(f"NCCL {number.value} has no copy engines: use 2.28 or later")
        unique = Id()
        if place.rank == 0:
            self.call("ncclGetUniqueId", ctypes.byref(unique))
        unique = Id.from_buffer_copy(bytes.fromhex(place.agree(bytes(unique).hex())[0]))
        none = self.UNDEFINED
        config = Config(ctypes.sizeof(Config), 0xCAFEBEEF, 22800, (none,) * 4, None, (none,) * 2, None, none, self.NO_KERNELS, (none,) * 4)
        self.comm = ctypes.c_void_p()
        self.library.ncclCommInitRankConfig.argtypes = [ctypes.c_void_p, ctypes.c_int, Id, ctypes.c_int, ctypes.c_void_p]
        self.call("ncclCommInitRankConfig", ctypes.addressof(self.comm), place.count, unique, place.rank, ctypes.addressof(config))

    def call(self, name, *arguments):
        if status := getattr(self.library, name)(*arguments):
            for text in (self.library.ncclGetErrorString, self.library.ncclGetLastError):
                text.restype = ctypes.c_char_p
            raise RuntimeError(f"{name}: {self.library.ncclGetErrorString(status).decode()} ({self.library.ncclGetLastError(None).decode()})")


class NcclPart(OtherPart):
    """On the communicator of `nccl`."""

    def memory(self, count, bytes):
        nccl, place = self.place.nccl, self.place
        size = ctypes.c_size_t(-(-count * bytes // nccl.UNIT) * nccl.UNIT)
        self.to, window = ctypes.c_void_p(), ctypes.c_void_p()
        nccl.call("ncclMemAlloc", ctypes.byref(self.to), size)
        nccl.call("ncclCommWindowRegister", nccl.comm, self.to, size, ctypes.byref(window), nccl.SYMMETRIC)
        if not all(place.agree(bool(window.value))):
            raise RuntimeError("NCCL makes no symmetric windows on this machine: it would use kernels")
        self.mine = ctypes.c_void_p(self.to.value + place.rank * bytes)
        self.stream = ctypes.c_void_p(place.current.cuda_stream)
        return place.view(self.to.value, count * bytes).view(count, bytes)

    def gather(self):
        nccl = self.place.nccl
        nccl.call("ncclAllGather", self.mine, self.to, ctypes.c_size_t(self.bytes), nccl.BYTES, nccl.comm, self.stream)


class Way:
    """One way for all sizes."""

    PARTS = {"sdma": SdmaPart, "carried": CarriedPart, "missing": MissingPart, "nccl": TorchPart, "nccl-ce": NcclPart, "gloo": GlooPart, "none": OtherPart}

    def __init__(self, place, name):
        self.place, self.name = place, name
        if name in ("nccl", "gloo"):
            distributed = place.torch.distributed
            more = {"device_id": place.torch.device(place.where)} if name == "nccl" else {}
            store = distributed.PrefixStore(name, place.store)
            distributed.init_process_group(name, store=store, rank=place.rank, world_size=place.count, **more)
        if name == "nccl-ce":
            place.nccl = Nccl(place)

    def part(self, bytes, lane=0, mode="eager"):
        kind = self.PARTS[self.name]
        return kind(self.place, bytes, lane) if issubclass(kind, SdmaPart) else kind(self.place, bytes)


class Auto:
    """Chooses by a table {mode: {bytes of a part: {way: us}}}; what it lacks is measured, and kept in `path`, if that is given."""

    name, ROUNDS, REPEATS = "auto", 20, 5

    def __init__(self, place, names, path="", mistrusted=lambda text: None):
        self.place, self.path, self.ways, self.mistrusted = place, path, {}, mistrusted
        for name in names:
            try:
                self.ways[name] = Way(place, name)
            except (ValueError, RuntimeError) as error:  # the others can do it
                mistrusted(f"auto leaves out {name}: {error}")
        there = place.agree(sorted(self.ways))
        self.ways = {name: way for name, way in self.ways.items() if all(name in one for one in there)}
        text = pathlib.Path(path).read_text() if path and os.path.exists(path) else "{}"
        self.table = json.loads(place.agree(text)[0])

    def chosen(self, bytes, mode):
        row = self.table.setdefault(mode, {}).get(str(bytes))
        if not row or not any(name in self.ways for name in row):
            row = {}
            for name, way in list(self.ways.items()):
                try:
                    row[name] = self.time(way, bytes, mode)
                except RuntimeError as error:
                    del self.ways[name]
                    self.mistrusted(f"auto leaves out {name}: {error}")
            self.table[mode][str(bytes)] = row
            if self.path and self.place.rank == 0:
                pathlib.Path(self.path).write_text(json.dumps(self.table, indent=1) + "\n")
        return min((us, name) for name, us in row.items() if name in self.ways)[1]

    def time(self, way, bytes, mode):
        """Us of a gather, one after another, of the slowest rank."""
        part, place, took = way.part(bytes), self.place, []

        def rounds():  # as gathers stand in a layer: a kernel writes this rank's part, and the next reads all
            for _ in range(self.ROUNDS):
                all = part.places[part.turn]
                all[place.rank].add_(1)
                part.gather()
                place.torch.cat(all.unbind())

        rounds()
        place.finish()
        work = rounds
        if mode == "graphs":
            part.begin(self.ROUNDS)
            work = place.captured(rounds)
            part.end()
        for repeat in range(self.REPEATS + 1):
            begin = time.perf_counter()
            launch(place, [part], work, mode)
            place.finish()
            took.append((time.perf_counter() - begin) / self.ROUNDS * 1e6)
        us = max(place.agree(statistics.median(took[1:])))
        part.free()
        return us

    def part(self, bytes, lane=0, mode="eager"):
        return self.ways[self.chosen(bytes, mode)].part(bytes, lane)


def launch(place, parts, work, mode):
    """One launch of a graph, with the packets of its rounds; or the same calls again."""
    if mode == "graphs" and not place.gpu:
        for part in parts:
            part.replay()
    work()
    if mode == "graphs" and place.gpu:
        for part in parts:
            part.replay()


def way_of(place, name, table="", note=lambda text: None):
    if name != "auto":
        return Way(place, name)
    # Not nccl-ce: a communicator for it makes graphs with NCCL's kernels slower (docs/serving.md).
    return Auto(place, ("sdma", "carried", "nccl") if place.gpu else ("sdma", "carried", "gloo"), table, note)
