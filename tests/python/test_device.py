# SPDX-License-Identifier: MIT
"""Runs: arrays as buffers, what is refused, and devices that are used after close, by two threads or by another process."""
import os
import signal
import threading
import time

import numpy
import pytest
import sdma
from sdma import packets

BYTES = 65536


def copy_schedule(wait=1):
    """A copy from gpu0 to gpu1; with wait=2, one that never ends."""
    s = sdma.Schedule(2)
    a = s.add_buffer("a", BYTES, place=0, init="random")
    b = s.add_buffer("b", BYTES, place=1)
    done = s.add_signal("done")
    q = s.add_queue("push", place=0, peer=1)
    q.copy(src=a, dst=b, bytes=BYTES).put(packets.Atomic(op="add_64", addr=done, value=1))
    s.add_host("main").submit(q).wait(done, "eq", wait)
    s.expect_equal(b, a, BYTES)
    return s


@pytest.fixture
def device():
    with sdma.Device(gpus=2) as d:
        yield d


def test_a_run_is_an_answer():
    r = sdma.run(copy_schedule())
    assert r and r["passed"] and r["findings"] == [] and r.diagnosis is None and r.trace is None
    r = sdma.run(copy_schedule(wait=2), timeout=0.2)
    assert not r and "host.done is 1" in r["findings"][0]["message"]
    assert r.diagnosis["verdict"] in ("healthy", "undecided", "hung")
    assert "<table>" in r._repr_html_()


def test_every_order_and_a_trace():
    for order in ("strict", "rocr", "adversarial"):
        assert sdma.run(copy_schedule(), order=order, seed=3, gpus=[1, 0])
    r = sdma.run(copy_schedule(), trace=True)
    assert len(r.trace) > 5 and r.trace._repr_svg_().startswith("<svg") and r.trace.lost == 0
    many = "sdma 1\ngpus 1\nbuffer gpu0.b bytes=64\nsignal host.done value=0\nqueue gpu0.q engine=0\n"
    many += "fill unit=dword bytes=64 dst=gpu0.b data=7\n" * 50 + "fence addr=host.done value=1\nend\nhost main\nsubmit *\nwait host.done == 1\nend\n"
    few, whole = (sdma.run(sdma.Schedule.parse(many), trace=room).trace for room in (1, 1000))
    # Each fill has a begin and an end; those of the fence may come after the run.
    assert 0 < len(few) <= 16 and few.lost >= 100 - 16, (len(few), few.lost)
    assert len(whole) >= 100 and whole.lost == 0, (len(whole), whole.lost)


def test_inputs_and_outputs_are_copied():
    x = numpy.arange(BYTES // 4, dtype=numpy.uint32)
    y = numpy.zeros_like(x)
    y[:] = 9
    x.flags.writeable = False
    assert sdma.run(copy_schedule(), inputs={"gpu0.a": x}, outputs={"gpu1.b": y})
    assert (x == y).all()
    half = bytearray(100)
    assert sdma.run(copy_schedule(), inputs={"gpu0.a": b"\1" * 100}, outputs={"gpu1.b": half})
    assert half == b"\1" * 100


def test_arrays_of_a_device_are_the_buffers(device):
    a = device.array(BYTES // 4, "uint32", place=0)
    b = device.array((2, BYTES // 8), numpy.float32, place=1)
    for round in range(3):
        a[:] = numpy.arange(a.size) + round
        assert device.run(copy_schedule(), buffers={"gpu0.a": a, "gpu1.b": b})
        assert b.tobytes() == a.tobytes() and a[0] == round
    part = device.array(4 * BYTES, place=1)
    assert device.run(copy_schedule(), buffers={"gpu0.a": a, "gpu1.b": part[BYTES : 2 * BYTES]})
    assert part[BYTES : 2 * BYTES].tobytes() == a.tobytes()
    wrong = copy_schedule()
    wrong.expect_equal(wrong["gpu1.b"], wrong["gpu0.a"] + 4096, 64)
    answer = device.run(wrong, buffers={"gpu0.a": a, "gpu1.b": b})
    assert not answer and answer.diagnosis["findings"]


def arrays(device):
    good = device.array(BYTES, place=0)
    frozen = good.copy()
    frozen.flags.writeable = False
    view = good.view()
    view.flags.writeable = False
    return {
        "not bytes": ("inputs", {"gpu0.a": 7}, TypeError, r"inputs\['gpu0.a'\] is a int"),
        "a list": ("inputs", {"gpu0.a": [1, 2]}, TypeError, "is a list"),
        "strided input": ("inputs", {"gpu0.a": numpy.zeros(64)[::2]}, TypeError, "ascontiguousarray"),
        "strided output": ("outputs", {"gpu1.b": numpy.zeros((8, 8))[:, 1]}, TypeError, "not contiguous"),
        "read-only output": ("outputs", {"gpu1.b": frozen}, TypeError, "read-only"),
        "bytes as output": ("outputs", {"gpu1.b": b"abc"}, TypeError, "read-only"),
        "long input": ("inputs", {"gpu0.a": bytes(BYTES + 1)}, sdma.Error, "65537 bytes, but the buffer has 65536"),
        "long output": ("outputs", {"gpu1.b": bytearray(BYTES + 1)}, sdma.Error, "but the buffer has"),
        "no such buffer": ("inputs", {"gpu0.aa": b""}, sdma.Error, "did you mean 'gpu0.a'"),
        "no such output": ("outputs", {"gpu1.c": bytearray(1)}, sdma.Error, "no buffer 'gpu1.c'"),
        "other memory": ("buffers", {"gpu0.a": numpy.zeros(BYTES, numpy.uint8)}, sdma.Error, r"device.array\(\)"),
        "another length": ("buffers", {"gpu0.a": good[:64]}, sdma.Error, "64 bytes, but the buffer has 65536"),
        "another place": ("buffers", {"gpu1.b": good}, sdma.Error, "is memory of gpu0"),
        "read-only memory": ("buffers", {"gpu0.a": view}, TypeError, "read-only"),
    }


@pytest.mark.parametrize("case", ["not bytes", "a list", "strided input", "strided output", "read-only output", "bytes as output",
                                  "long input", "long output", "no such buffer", "no such output", "other memory", "another length",
                                  "another place", "read-only memory"])
def test_what_cannot_be_a_buffer(device, case):
    where, given, error, words = arrays(device)[case]
    with pytest.raises(error, match=words):
        device.run(copy_schedule(), **{where: given})
    assert device.run(copy_schedule())


@pytest.mark.parametrize("call, error, words", [
    (lambda: sdma.run(copy_schedule(), device="gpu"), ValueError, "soft, kfd, cuda or rocr"),
    (lambda: sdma.run(copy_schedule(), order="weak"), ValueError, "adversarial"),
    (lambda: sdma.run(copy_schedule(), timeout=0), ValueError, "seconds"),
    (lambda: sdma.run(copy_schedule(), timeout=float("nan")), ValueError, "seconds"),
    (lambda: sdma.run(copy_schedule(), gpus=[0]), sdma.Error, ""),
    (lambda: sdma.run(copy_schedule(), gpus=[0, 99]), sdma.Error, ""),
    (lambda: sdma.run(copy_schedule(), seed="x"), TypeError, ""),
    (lambda: sdma.run(copy_schedule(), device="kfd"), sdma.Error, ""),
    (lambda: sdma.run(copy_schedule(), device="cuda", trace=True), sdma.Error, "software device"),
    (lambda: sdma.run(7), TypeError, "pass a Schedule"),
    (lambda: sdma.Device("gpu"), ValueError, "soft, kfd, cuda or rocr"),
])
def test_what_a_run_refuses(call, error, words):
    with pytest.raises(error, match=words):
        call()


def test_a_schedule_that_expects_a_finding_is_not_run(schedules):
    r = sdma.run(schedules / "7_race.sdma")
    assert not r and len(r["findings"]) == 1


def test_after_close(device):
    a = device.array(BYTES, place=0)
    a[:] = 5
    device.close()
    device.close()
    assert device.closed
    with pytest.raises(sdma.Error, match="the device is closed"):
        device.run(copy_schedule())
    with pytest.raises(sdma.Error, match="the device is closed"):
        device.array(4)
    assert (a == 5).all()


def test_arrays_outlive_their_device():
    a = sdma.Device(gpus=1).array(4096, place=0)
    a[:] = 3
    assert a.sum() == 3 * 4096
    for shape in (0, (4, 0), -1):
        with pytest.raises((ValueError, sdma.Error)):
            sdma.Device(gpus=1).array(shape)


def test_a_second_thread_gets_an_error(device):
    answers, refused, refusal = [], threading.Event(), "another thread is using this device"

    def long_run():
        while not answers or not refused.is_set():
            try:
                answers.append(device.run(copy_schedule(wait=2), timeout=2))
            except sdma.Error as error:  # the other thread was first
                assert refusal in str(error)

    t = threading.Thread(target=long_run)
    t.start()
    while True:
        try:
            device.run(copy_schedule())
        except sdma.Error as error:
            assert refusal in str(error)
            break
    refused.set()
    t.join()
    assert answers and not any(answers)
    assert device.run(copy_schedule())


def test_a_fork_gets_an_error_and_leaves_the_device_as_it_is(device):
    a = device.array(BYTES, place=0)
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            device.run(copy_schedule())
        except sdma.Error as error:
            code = 0 if "has opened this device" in str(error) and "open a device in this process" in str(error) else 2
        del a, device
        code = code if sdma.run(copy_schedule()) else 3
        os._exit(code)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
    assert device.run(copy_schedule(), buffers={"gpu0.a": a})


def interrupted(work, after=0.3):
    """How long `work` takes that Ctrl-C ends."""
    timer = threading.Timer(after, lambda: signal.pthread_kill(threading.main_thread().ident, signal.SIGINT))
    begin = time.monotonic()
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        work()
    timer.join()
    return time.monotonic() - begin


def test_ctrl_c_ends_long_calls(schedules, root, device):
    path = schedules / "2_allgather_b2b.sdma"
    assert interrupted(lambda: device.run(copy_schedule(wait=2), timeout=60)) < 50
    assert device.run(copy_schedule())
    assert interrupted(lambda: sdma.run(copy_schedule(wait=2), timeout=60)) < 50
    values = ",".join(str(256 * i) for i in range(1, 5000))
    assert interrupted(lambda: sdma.sweep(path, f"chunk={values}", N=8)) < 50
    many = (schedules / "9_allgather_open.sdma").read_text() + "choose more in 0..4000\n"
    assert interrupted(lambda: sdma.explore(sdma.Schedule.parse(many, N=8), N=8, budget=60)) < 50
    assert interrupted(lambda: sdma.calibrate(root / "share/published/dma-latte.csv", limit=60)) < 50


def test_other_threads_run_during_a_long_call():
    for timeout in (0.5, 5, 50):  # a busy machine may start the other thread late
        seen = []
        t = threading.Timer(0.05, lambda: seen.extend(range(1000)))
        t.start()
        sdma.run(copy_schedule(wait=2), timeout=timeout)
        during = len(seen)
        t.join()
        if during:
            break
    assert during == 1000


def test_threads_calculate_with_one_schedule():
    s, answers = copy_schedule(), []
    threads = [threading.Thread(target=lambda: answers.extend((sdma.check(s).proved, sdma.simulate(s, sensitivity=False)["ns"])))
               for _ in range(4)]
    [t.start() for t in threads]
    for i in range(50):
        s.add_buffer(f"x{i}", 64, place=0)
    [t.join() for t in threads]
    assert len(answers) == 8 and len({a for a in answers if a is not True}) == 1
