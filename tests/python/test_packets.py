# SPDX-License-Identifier: MIT
"""Packets: every class of the registry, dwords to values and back, and what is refused."""
import array
import pickle
import random

import numpy
import pytest
import sdma
from sdma import packets


def values_of(kind):
    """A value for each field that has no default, and for some that have one."""
    chosen = {}
    for name, (_, what, optional, _, names) in kind._described.items():
        if not optional:
            chosen[name] = {"flag": True, "payload": [1, 0xFFFFFFFF], "bytes": 64, "address": 0x7F0000001000}.get(what, 1)
            if names:
                chosen[name] = next(iter(names))
    return chosen


def described():
    return [k for k in packets._classes.values() if k._described and k.__name__ in packets.__all__]


def made(kind):
    """A packet of this class, of the first generation that has it."""
    for generation in (packets.DEFAULT, "6.0", "7.0", "5.0", "5.2", "4.0"):
        for required in (values_of(kind), {n: v for n, v in values_of(kind).items() if n not in ("dwords", "count")}):
            try:
                return kind(generation=generation, **required)
            except sdma.Error as error:
                last = error
    raise last


def test_there_are_many_classes():
    assert len(described()) > 25
    assert {"CopyLinear", "Fence", "Atomic", "PollMem", "Fill", "Trap"} <= set(packets.__all__)


def test_each_class_survives_text_bytes_repr_and_pickle():
    done = 0
    for kind in described():
        try:
            p = made(kind)
        except sdma.Error:
            continue
        done += 1
        assert sdma.as_(str(p), generation=p.generation) == bytes(p)
        assert sdma.dis(bytes(p), generation=p.generation) == [p]
        assert type(sdma.dis(bytes(p), generation=p.generation)[0]) is kind
        assert eval(repr(p), vars(packets)) == p
        assert pickle.loads(pickle.dumps(p)) == p
        assert set(p.fields) <= set(kind._described)
    assert done >= 25


def test_fields_are_values():
    p = packets.PollMem(addr=0x1000, func="ge", reference=5, retry="forever", hdp=True)
    assert (p.addr, p.func, p.reference, p.retry, p.hdp) == (0x1000, "ge", 5, "forever", True)
    assert packets.Write(dst=0x1000, data=[7, 8]).fields["data"] == [7, 8]
    assert "reference" in dir(p)
    assert str(p).startswith("poll_mem ")
    assert p != packets.PollMem(addr=0x1000, func="ge", reference=6, retry="forever", hdp=True)
    assert len({p, packets.PollMem(addr=0x1000, func="ge", reference=5, retry="forever", hdp=True)}) == 1


def test_any_dwords_can_be_read_and_come_back():
    words = random.Random(7)
    for _ in range(200):
        data = numpy.array([words.getrandbits(32) & 0xFFFF00FF for _ in range(words.randrange(40))], numpy.uint32)
        assert sdma.as_(sdma.dis(data)) == data.tobytes()


def test_forms_of_dwords():
    p = packets.Fence(addr=0x1000, value=1)
    for form in (bytes(p), bytearray(bytes(p)), memoryview(bytes(p)), p.dwords, tuple(p.dwords), array.array("I", p.dwords),
                 numpy.array(p.dwords, numpy.uint32), numpy.frombuffer(bytes(p), numpy.uint8)):
        assert sdma.dis(form) == [p]
    assert sdma.dis(b"") == []


def test_another_generation():
    text = "copy_linear bytes=4K src=0x1000 dst=0x2000"
    assert sdma.dis(sdma.as_(text, generation="gfx1100"), generation="6.0")[0].bytes == 4096
    with pytest.raises(sdma.Error, match="is not a generation") as e:
        sdma.dis(b"", generation="9.9")
    assert "4.4.2" in e.value.hint and "gfx942" in e.value.hint


@pytest.mark.parametrize("data, error, words", [
    ("fence", TypeError, "sdma.as_"),
    (b"abc", ValueError, "whole number of dwords"),
    (numpy.zeros(8, numpy.float64), TypeError, "uint32"),
    (numpy.zeros(8, numpy.uint32)[::2], TypeError, "not contiguous"),
    ([1.5], TypeError, "a dword is a number"),
    ([2**32], ValueError, "0xffffffff"),
    ([-1], ValueError, "0xffffffff"),
    (7, TypeError, "sequence of dwords"),
    (None, TypeError, "sequence of dwords"),
])
def test_what_holds_no_dwords(data, error, words):
    with pytest.raises(error, match=words):
        sdma.dis(data)


def test_errors_of_text_have_a_place_and_a_hint():
    with pytest.raises(sdma.Error) as e:
        sdma.as_("nop\nfense addr=1 value=1\nfence addr=1\n", file="mine.sdma")
    assert (e.value.file, e.value.line, e.value.column) == ("mine.sdma", 2, 1)
    assert "fence" in e.value.hint
    assert [d["line"] for d in e.value.diagnostics] == [2, 3]
    assert str(e.value).startswith("mine.sdma:2:1: error: ")
    assert str(pickle.loads(pickle.dumps(e.value))) == str(e.value)


@pytest.mark.parametrize("make, error, words", [
    (lambda: packets.CopyLinear(src=1, dst=2, byts=4), TypeError, "did you mean 'bytes'"),
    (lambda: packets.CopyLinear(src=1, dst=2), sdma.Error, "bytes"),
    (lambda: packets.CopyLinear(src=1, dst=2, bytes=2**40), sdma.Error, "must be from 1 to"),
    (lambda: packets.CopyLinear(src=1, dst=2, bytes=1.5), TypeError, "not float"),
    (lambda: packets.CopyLinear(src=1, dst="a b=3", bytes=4), TypeError, "number or a name"),
    (lambda: packets.CopyLinear(src=1, dst=2, bytes=4, tmz=3), TypeError, "True or False"),
    (lambda: packets.CopyLinear(src=sdma.EPOCH, dst=2, bytes=4), TypeError, "cannot depend on the epoch"),
    (lambda: packets.PollMem(addr=4, func="gee", reference=1), sdma.Error, "not a value of 'func'"),
    (lambda: packets.Fence(addr=4, value=1).adr, AttributeError, "did you mean 'addr'"),
    (lambda: setattr(packets.Fence(addr=4, value=1), "value", 2), AttributeError, "does not change"),
    (lambda: sdma.as_([1, 2]), TypeError, "is not a packet"),
])
def test_what_a_packet_refuses(make, error, words):
    with pytest.raises(error, match=words):
        make()
