# SPDX-License-Identifier: MIT
"""sdma/client.h through ctypes.

  with sdma_client.Device("soft", "gpus=1") as device:
      pool = device.allocate(sdma_client.HOST, 1 << 20)          # pool.address, pool.bytes()
      queues = device.copies(0, "queues=1 parts=32")
      queues.round(); queues.publish(0, part, array); queues.release(device.stream()); queues.hold(part, device.stream())

The library is the file that SDMA_CLIENT names, or libsdma-client.so.0 of the system. An error of the library is an Error, whose text
says what to do. Closing the device gives back what was made with it.
"""
import ctypes
import os

import numpy as np

HOST = -1
TIMED_OUT = 1
# struct sdma_copy
COPY = np.dtype([(name, np.uint64) for name in ("src", "dst", "bytes", "rows", "src_pitch", "dst_pitch")])


class Error(Exception):
    """What the library's last error says."""


class Stream(ctypes.Structure):
    _fields_ = [("stream", ctypes.c_void_p), ("write", ctypes.c_void_p), ("hold", ctypes.c_void_p)]


class Issued(ctypes.Structure):
    _fields_ = [(name, ctypes.c_uint64) for name in ("calls", "copies", "batches", "boxes", "rows", "refused", "wakes")]


def load(path=None):
    path = path or os.environ.get("SDMA_CLIENT", "libsdma-client.so.0")
    try:
        library = ctypes.CDLL(path)
    except OSError as error:
        raise Error(f"the library {path} cannot be loaded: {error}\n  hint: set SDMA_CLIENT to the file libsdma-client.so.0") from None
    handle, text, number, size = ctypes.c_void_p, ctypes.c_char_p, ctypes.c_uint32, ctypes.c_uint64
    for name, result, *arguments in (
        ("version", text),
        ("error", text),
        ("open", handle, text, text),
        ("close", None, handle),
        ("gpus", number, handle),
        ("caveat", text, handle),
        ("issued_by", ctypes.c_int, handle, ctypes.POINTER(Issued)),
        ("allocate", handle, handle, ctypes.c_int32, size),
        ("adopt", handle, handle, handle, size),
        ("address", size, handle),
        ("host", handle, handle),
        ("free", None, handle),
        ("stream_of", ctypes.c_int, handle, handle, ctypes.POINTER(Stream)),
        ("bind_text", handle, handle, text, text, ctypes.POINTER(handle), ctypes.c_size_t),
        ("bind_file", handle, handle, text, text, ctypes.POINTER(handle), ctypes.c_size_t),
        ("bind_collective", handle, handle, text),
        ("buffer", ctypes.c_int, handle, text, ctypes.POINTER(size), ctypes.POINTER(size), ctypes.POINTER(handle)),
        ("enqueue", ctypes.c_int, handle, number, ctypes.POINTER(Stream)),
        ("wait", ctypes.c_int, handle, ctypes.c_double),
        ("graph", number, handle, number, number),
        ("pass", ctypes.c_int, handle, number, number, number, ctypes.POINTER(Stream)),
        ("replay", ctypes.c_int, handle, number, number),
        ("unbind", None, handle),
        ("copies_create", handle, handle, number, text),
        ("round", number, handle),
        ("publish", ctypes.c_int, handle, number, number, handle, ctypes.c_size_t, ctypes.c_int),
        ("release", ctypes.c_int, handle, ctypes.POINTER(Stream)),
        ("hold", ctypes.c_int, handle, number, ctypes.POINTER(Stream)),
        ("copies_wait", ctypes.c_int, handle, number, ctypes.c_double),
        ("copies_free", None, handle),
    ):
        function = getattr(library, f"sdma_{name}")
        function.restype, function.argtypes = result, arguments
    return library


class Device:
    def __init__(self, kind, settings="", library=None):
        self.library, self.kind, self.made = load(library), kind, []
        self.handle = self.good(self.library.sdma_open(kind.encode(), settings.encode()))

    def good(self, result):
        """A handle, or a number that has to be 0."""
        if result is None or (isinstance(result, int) and result in (TIMED_OUT, 2)):
            raise Error(self.library.sdma_error().decode())
        return result

    def caveat(self):
        return self.library.sdma_caveat(self.handle).decode()

    def issued(self):
        """What a cuda device has given to the driver so far, by name."""
        made = Issued()
        self.good(self.library.sdma_issued_by(self.handle, made))
        return {name: getattr(made, name) for name, _ in Issued._fields_}

    def stream(self, native=None):
        made = Stream()
        self.good(self.library.sdma_stream_of(self.handle, native, made))
        return made

    def keep(self, made):
        self.made.append(made)
        return made

    def allocate(self, where, bytes):
        return self.keep(Memory(self, self.good(self.library.sdma_allocate(self.handle, where, bytes)), bytes))

    def adopt(self, pointer, bytes):
        return self.keep(Memory(self, self.good(self.library.sdma_adopt(self.handle, pointer, bytes)), bytes))

    def copies(self, gpu, settings):
        return self.keep(Copies(self, self.good(self.library.sdma_copies_create(self.handle, gpu, settings.encode()))))

    def bind(self, text, settings="", lent=()):
        handles = (ctypes.c_void_p * len(lent))(*(m.handle for m in lent))
        made = self.library.sdma_bind_text(self.handle, text.encode(), settings.encode(), handles, len(lent))
        return self.keep(Work(self, self.good(made)))

    def collective(self, settings):
        return self.keep(Work(self, self.good(self.library.sdma_bind_collective(self.handle, settings.encode()))))

    def close(self):
        for made in reversed(self.made):  # queues after memory, so they go first
            made.free()
        self.made.clear()
        if self.handle:
            self.library.sdma_close(self.handle)
        self.handle = None

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()


class Handle:
    FREE = ""

    def __init__(self, device, handle):
        self.device, self.library, self.good, self.handle = device, device.library, device.good, handle

    def free(self):
        if self.handle:
            getattr(self.library, self.FREE)(self.handle)
        self.handle = None


class Memory(Handle):
    FREE = "sdma_free"

    def __init__(self, device, handle, length):
        super().__init__(device, handle)
        self.length, self.address = length, self.library.sdma_address(handle)

    def bytes(self):
        """The bytes as a ctypes array; do not use it after the memory has been given back."""
        at = self.library.sdma_host(self.handle)
        if not at:
            raise Error("the host cannot reach this memory")
        return (ctypes.c_ubyte * self.length).from_address(at)


class Work(Handle):
    FREE = "sdma_unbind"

    def buffer(self, name):
        """(address, bytes as a ctypes array)."""
        address, length, host = ctypes.c_uint64(), ctypes.c_uint64(), ctypes.c_void_p()
        self.good(self.library.sdma_buffer(self.handle, name.encode(), address, length, host))
        return address.value, (ctypes.c_ubyte * length.value).from_address(host.value)

    def enqueue(self, gpu, stream):
        self.good(self.library.sdma_enqueue(self.handle, gpu, stream))

    def wait(self, seconds):
        self.good(self.library.sdma_wait(self.handle, seconds))

    def lost(self):
        """Raises an Error if a rank has ended that this one waits for."""
        if self.library.sdma_wait(self.handle, 0) not in (0, TIMED_OUT):
            self.good(None)

    def graph(self, gpu, rounds):
        return self.library.sdma_graph(self.handle, gpu, rounds) or self.good(None)

    def pass_round(self, gpu, graph, round, stream):
        self.good(self.library.sdma_pass(self.handle, gpu, graph, round, stream))

    def replay(self, gpu, graph):
        self.good(self.library.sdma_replay(self.handle, gpu, graph))


class Copies(Handle):
    FREE = "sdma_copies_free"

    def round(self):
        number = self.library.sdma_round(self.handle)
        return number or self.good(None)

    def publish(self, queue, part, copies, each=False):
        self.good(self.library.sdma_publish(self.handle, queue, part, copies.ctypes.data, len(copies), each))

    def release(self, stream=None):
        self.good(self.library.sdma_release(self.handle, stream))

    def hold(self, part, stream):
        self.good(self.library.sdma_hold(self.handle, part, stream))

    def wait(self, part, seconds):
        self.good(self.library.sdma_copies_wait(self.handle, part, seconds))
