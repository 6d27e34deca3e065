# SPDX-License-Identifier: MIT
"""Schedules: read, built and printed; a built one means what its text means; what is refused, and threads."""
import os
import pathlib
import sys
import threading

import pytest
import sdma
from sdma import EPOCH, packets


def two(gpus=2, bytes=65536):
    """A copy from one GPU to another."""
    s = sdma.Schedule(gpus=gpus)
    a = s.add_buffer("a", bytes, place=0, init="random")
    b = s.add_buffer("b", bytes, place=1)
    done = s.add_signal("done")
    q = s.add_queue("push", place=0, peer=1)
    q.copy(src=a, dst=b, bytes=bytes).put(packets.Atomic(op="add_64", addr=done, value=1))
    s.add_host("main").submit(q).wait(done, "eq", 1)
    s.expect_equal(b, a, bytes)
    return s


def test_built_and_read_are_the_same():
    text = """sdma 1
gpus 2
buffer gpu0.a bytes=64K init=random
buffer gpu1.b bytes=64K
signal host.done value=0
queue gpu0.push peer=gpu1
  copy_linear bytes=64K src=gpu0.a dst=gpu1.b
  atomic op=add_64 addr=host.done value=1
end
host main
  submit gpu0.push
  wait host.done == 1
end
expect gpu1.b == gpu0.a
"""
    assert str(two()) == text
    assert sdma.Schedule.parse(text) == two()
    assert two() != two(gpus=3)
    assert two() != "a text"


def test_everything_that_can_be_built():
    s = sdma.Schedule(2)
    a = s.add_buffer("a", 4096, place=0, init="zero", alignment=256, map=[0, "host"])
    go = s.add_signal("go", place="host", value=3, bits=32)
    word = s.add_signal("word", place=1)
    q = s.add_queue("q", place=0, engine=1, ring_bytes=4096, doorbell_each=True)
    h = s.add_queue("h", place=1, peer="host", from_host=True)
    q.put(packets.PollMem(addr=go, func="ge", reference=EPOCH * 2 + 1), packets.Fence(addr=word, value=EPOCH))
    h.put(packets.Nop())
    with s.add_host().repeat(8) as r:
        r.submit().set(go, 2 * EPOCH + 1).wait(word, "ge", EPOCH)
    k = s.add_kernel("gemm", place=0)
    k.compute(500, hbm=64).load(a, 64).store(a + 64, 64, byte=7).add(word, 1)
    s.expect_value(go, 17)
    s.expect_equal(a, a + 1024, 64, old=True)
    flat = str(s)
    for words in ("reference=2*epoch+1", "value=epoch", "repeat 8", "kernel gpu0.gemm", "doorbell", "engine=1", "ring=4K",
                  "align=256", "init=zero", "submit *", "compute", "old gpu0.a[1K..+64]"):
        assert words in flat, words
    assert sdma.Schedule.parse(flat) == s
    assert s["gpu0.a"] == a and s["host.go"] == go
    assert [q.name for q in s.queues] == ["gpu0.q", "gpu1.h"]
    assert s.buffers == [{"name": "gpu0.a", "place": 0, "bytes": 4096, "address": a}]
    assert [(g["name"], g["value"], g["bytes"]) for g in s.signals] == [("host.go", 3, 4), ("gpu1.word", 0, 8)]
    assert sdma.dis(s.queues[1].dwords) == [packets.Nop()]


def test_sums_are_built_proved_and_run():
    s = sdma.Schedule(1)
    a = s.add_buffer("a", 4096, place=0, init="random")
    b = s.add_buffer("b", 4096, place=0, init="random")
    out = s.add_buffer("out", 4096, place=0)
    done = s.add_signal("done")
    k = s.add_kernel("add", place=0, share=25)
    k.store_sum(out, 4096, a, b, type="bf16", any_order=True).add(done, 1)
    s.add_host().wait(done, "eq", 1)
    s.expect_sum(out, 4096, b, a, type="bf16", any_order=True)
    flat = str(s)
    assert "share=25" in flat and "order=free" in flat and sdma.Schedule.parse(flat) == s
    assert sdma.check(s).proved and sdma.run(s)
    wrong = s.copy()
    wrong.expect_sum(out, 4096, a, a, type="bf16", any_order=True)
    assert not sdma.check(wrong).proved
    with pytest.raises(ValueError, match="not a type of a sum"):
        k.store_sum(out, 4096, a, b, type="f64")
    with pytest.raises(ValueError, match="at least one part"):
        k.store_sum(out, 4096)
    assert str(s) == flat


def test_lifetimes_are_built_and_proved():
    def built(free_early):
        s = sdma.Schedule(2)
        a = s.add_buffer("a", 4096, place=0, init="random")
        b = s.add_buffer("b", 4096, place=1)
        done = s.add_signal("done")
        q = s.add_queue("q", place=0, peer=1)
        q.copy(src=a, dst=b, bytes=4096)
        q.put(packets.Fence(addr=done, value=1))
        h = s.add_host().alloc(b).export_handle(b).map(a, 1).submit(q)
        if free_early:
            h.free(b)
        h.wait(done, "eq", 1).unmap(a, 1)
        if not free_early:
            h.close_handle(b).free(b)
        return s

    good = built(False)
    for line in ("alloc gpu1.b", "export gpu1.b", "map gpu0.a gpu1", "unmap gpu0.a gpu1", "close gpu1.b", "free gpu1.b"):
        assert line in str(good)
    assert sdma.Schedule.parse(str(good)) == good and sdma.check(good).proved
    early = sdma.check(built(True))
    assert not early.proved and "use-after-free" in {f["rule"] for f in early["findings"]}


def test_reading_with_params(schedules):
    path = schedules / "2_allgather_b2b.sdma"
    s = sdma.Schedule.read(path, N=4, chunk="64K")
    assert (s.gpus, s.file, s.source) == (4, str(path), path.read_text())
    assert {"N", "chunk"} <= set(s.params)
    assert s == sdma.Schedule.read(str(path), N="2*2", chunk=65536)
    assert s != sdma.Schedule.read(path, N=4, chunk="32K")
    assert sdma.Schedule.parse(s.fmt(flat=True)) == s
    assert s.fmt() == sdma.fmt(s.source)
    s.add_host("another")
    assert s.source is None and "host another" in s.fmt()


def test_every_shipped_schedule_survives_its_text(schedules):
    found = 0
    for path in sorted(schedules.glob("*.sdma")):
        s = sdma.Schedule.read(path)
        assert sdma.Schedule.parse(str(s)) == s, path
        found += 1
    assert found >= 5


def test_formatting():
    assert sdma.fmt("sdma   1\ngpus 2   # two\n") == "sdma 1\ngpus 2   # two\n"


@pytest.mark.parametrize("make, error, words", [
    (lambda: sdma.Schedule.parse("sdma 1\ngpus 2\nbuff x", "x.sdma"), sdma.Error, "did you mean 'buffer'"),
    (lambda: sdma.Schedule.parse("sdma 1\ngpus 2", N=2), sdma.Error, "N"),
    (lambda: sdma.Schedule.parse("sdma 1\ngpus 2", N=1.5), TypeError, "param N"),
    (lambda: sdma.Schedule.parse(7), TypeError, ""),
    (lambda: sdma.Schedule.read("/nowhere/x.sdma"), FileNotFoundError, "/nowhere"),
    (lambda: sdma.Schedule(1025), ValueError, "at most 1024"),
    (lambda: sdma.Schedule(-1), TypeError, ""),
    (lambda: sdma.Schedule(2).add_buffer("a", 64, place="gpu0"), ValueError, 'or "host"'),
    (lambda: sdma.Schedule(2).add_buffer("a", 64, place=-1), ValueError, "is not a place"),
    (lambda: sdma.Schedule(2).add_buffer("a", 64, init="ones"), ValueError, "one of poison, random, zero"),
    (lambda: sdma.Schedule(2).add_buffer("a", -64), TypeError, ""),
    (lambda: sdma.Schedule(2)["gpu0.a"], KeyError, "no buffer and no signal"),
    (lambda: two()["gpu0.b"], KeyError, "did you mean"),
    (lambda: two().queues[0].copy(src=1, dst=2, bytes=0), sdma.Error, "at least one byte"),
    (lambda: two().queues[0].put("nop"), TypeError, "is not a packet"),
    (lambda: two().queues[0].put(packets.Unknown([3])), TypeError, "is not a packet"),
    (lambda: two().queues[0].put(packets.Nop(generation="6.0")), ValueError, "not of 6.0"),
    (lambda: two().add_host("b").submit(two().queues[0]), sdma.Error, "another schedule"),
    (lambda: two().add_host("b").wait(4, "==", 1), ValueError, "lt, le, eq"),
    (lambda: two().add_host("b").set(4, 2**64), ValueError, "64 bits"),
    (lambda: two().add_host("b").set(4, "one"), TypeError, ""),
])
def test_what_is_refused(make, error, words):
    with pytest.raises(error, match=words):
        make()


def test_problems_are_errors_where_the_schedule_is_used():
    s = two()
    s.add_buffer("a", 64, place=0)
    assert any("gpu0.a" in p["where"] + p["message"] for p in s.problems())
    with pytest.raises(sdma.Error, match="gpu0.a"):
        str(s)
    assert two().problems() == []


def test_threads_may_change_and_print_one_schedule():
    s, wrong = two(), []

    def use(i):
        try:
            for k in range(50):
                s.add_host(f"h{i}_{k}").submit(s.queues[0])
                assert "host main" in str(s)
        except Exception as error:  # reported by the thread of the test
            wrong.append(error)

    threads = [threading.Thread(target=use, args=(i,)) for i in range(4)]
    [t.start() for t in threads]
    [t.join() for t in threads]
    assert not wrong
    assert str(s).count("\nhost ") == 201


def test_a_sample_is_added_to_what_follows():
    s = sdma.Schedule(gpus=1)
    count = s.add_signal("count", value=7)
    q = s.add_queue("q", place=0, engine=2)
    q.put(packets.Atomic(op="add_rtn_64", addr=count, value=2))
    with s.add_host("main").repeat(3) as r:
        r.sample("n", count).submit(q).wait(count, "ge", sdma.sampled("n") + 2)
        r.wait(count, "ne", 1 + sdma.sampled("n") - EPOCH)
    assert "sample n = host.count" in str(s) and "wait host.count >= n+2" in str(s) and "!= n-epoch+1" in str(s)
    assert sdma.Schedule.parse(str(s)) == s
    assert sdma.sampled("n") + EPOCH * 2 - 3 == sdma.Sampled("n", 2, -3) != sdma.sampled("m")
    s.add_host("other").set(count, sdma.sampled("n"))
    with pytest.raises(sdma.Error, match="uses 'n', which it has not sampled before"):
        sdma.check(s)
    with pytest.raises(TypeError, match="cannot be a sample"):
        q.put(packets.Fence(addr=count, value=sdma.sampled("n")))


def xml_of(change=lambda program: None):
    sys.path.insert(0, str(pathlib.Path(os.environ["SDMA_SOURCE"], "tests/tools")))
    from msccl_programs import allgather_ring

    program = allgather_ring()
    change(program)
    return program.xml()


def test_xml_of_msccl_is_read_as_a_schedule(tmp_path):
    path = tmp_path / "ring.xml"
    path.write_text(xml_of())
    s = sdma.Schedule.read(path, bytes="64K", slots=2)
    assert s.params == ["bytes"] and s.given == {"bytes": "64K", "slots": "2"}
    assert s.source == path.read_text() and s.fmt().startswith("sdma 1\n# allgather of MSCCL")
    assert sdma.Schedule.parse(s.fmt(), bytes="64K") == s
    assert sdma.check(s, assume=["poll_yields=yes"]).proved and sdma.check(path).proved
    assert sdma.simulate(s, sensitivity=False)["ns"] != sdma.simulate(path, sensitivity=False)["ns"]
    times = [row["ns"] for row in sdma.sweep(path, "slots=0,2", bytes="64K").rows]
    assert times[1] == sdma.simulate(s, sensitivity=False)["ns"] != times[0]
    assert sdma.run(path)["passed"]
    with pytest.raises(sdma.Error, match="leaves nothing open"):
        sdma.explore(path)
    with pytest.raises(sdma.Error, match="'x' is not a number from 0 to 1024"):
        sdma.Schedule.read(path, slots="x")


def test_wrong_xml_of_msccl_has_its_lines(tmp_path):
    path = tmp_path / "race.xml"
    path.write_text(xml_of(lambda p: setattr(p.gpus[0].blocks[0].steps[1], "dep", None)))
    (finding,) = sdma.check(path)["findings"][:1]
    line = path.read_text().splitlines()[finding["line"] - 1]
    assert finding["rule"] == "race" and 'type="s"' in line and 'depid="-1"' in line
    assert sdma.reduce(path)["rule"] == "race"
    path.write_text(xml_of(lambda p: p.gpus[1].blocks[0].steps.clear()))
    with pytest.raises(sdma.Error, match="nothing sends it") as e:
        sdma.Schedule.read(path)
    assert e.value.rule == "wrong-algorithm" and 'type="' in path.read_text().splitlines()[e.value.line - 1]


def wait(signal="s", func="eq"):
    two().add_host("h").wait(signal, func, 1)


@pytest.mark.parametrize("wrong, words", [
    (lambda: sdma.Schedule(gpus=-1), "Schedule.__init__(): gpus cannot be negative: -1"),
    (lambda: sdma.Schedule(gpu=2), "Schedule.__init__(): there is no argument 'gpu'; did you mean 'gpus'?"),
    (lambda: two().add_buffer("c", -4, place=0), "Schedule.add_buffer(): bytes cannot be negative: -4"),
    (lambda: two().add_buffer("c", 4.0), "Schedule.add_buffer(): bytes is a whole number, not 4.0"),
    (lambda: two().add_buffer("c", 10**30), "Schedule.add_buffer(): bytes is too large: 1" + 30 * "0"),
    (lambda: two().add_buffer("c", 1 << 40, alignment="x"), "Schedule.add_buffer(): alignment is a whole number, not 'x'"),
    (lambda: two().add_buffer("c", 1 << 40, map=5),
     "Schedule.add_buffer(): bytes is too large: 1099511627776, or map has a type that this does not take"),
    (lambda: two().add_buffer(5, 64), "Schedule.add_buffer(): name is text, not 5"),
    (lambda: two().add_buffer("c", 64, align=4), "Schedule.add_buffer(): there is no argument 'align'; did you mean 'alignment'?"),
    (lambda: two().add_signal("c", xyz=4), "Schedule.add_signal(): there is no argument 'xyz': pass some of name, place, value, bits"),
    (lambda: two().queues[0].copy(0, 0, 1), "Queue.copy(): too many positional arguments: pass src=, dst=, bytes= with their names"),
    (lambda: two().add_buffer("c"), "Schedule.add_buffer(): missing a required argument: 'bytes'"),
    (wait, "Script.wait(): signal is a whole number, not 's'"),
    (lambda: two().add_host("h").submit("gpu0.push"), "submit(): pass queues, as add_queue returns them, not 'gpu0.push'"),
    (lambda: sdma.Schedule.read(0), "expected str, bytes or os.PathLike object, not int"),
    (lambda: sdma.Schedule.parse(5), "pass the text of a schedule, not int"),
])
def test_a_type_error_names_the_argument(wrong, words):
    with pytest.raises(TypeError) as raised:
        wrong()
    assert str(raised.value) == words
