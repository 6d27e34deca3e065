#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""bench/serving/parallel.py on the software device: ranks are forks of this process.

  parallel.py PARALLEL CASE

two, four   tokens of as many ranks are those of one process, in each way and order, eager and as graphs
chosen      auto believes a table and completes it; tokens are different without the wait
errors      a sentence for each thing that cannot work; a rank that is killed is named, and the others end
measure     the measuring script fills its folder, and loses nothing else if a way fails
"""
import contextlib
import io
import json
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import time

PARALLEL = pathlib.Path(sys.argv[1])
sys.path.insert(0, str(PARALLEL.parent))
sys.dont_write_bytecode = True
import parallel  # noqa: E402
import ranks  # noqa: E402
import sdma_client  # noqa: E402

ORDERS = ("strict", "rocr", "adversarial")


def run(*arguments):
    """{(order, way): tokens}"""
    o = parallel.options(["--tokens=5", "--prompt=6", "--seconds=60", *arguments])
    return {(order, way): tokens for order, way, tokens in parallel.run(o)}


def equal(count, ways, in_graphs, *shape):
    (right,) = run("--ranks=1", f"--shards={count}", *shape).values()
    assert len({tuple(each) for each in right}) == len(right) and len(set(sum(right, []))) > 4, right
    all = [f"--ranks={count}", f"--order={','.join(ORDERS)}", *shape]
    for mode in ([f"--way={ways}"], [f"--way={in_graphs}", "--graphs"]):
        found = run(*all, *mode)
        assert len(found) == 3 * len(mode[0].split(","))
        for key, tokens in found.items():
            assert tokens == right, (key, mode, tokens, right)


def chosen():
    (right,) = run("--ranks=1", "--shards=2").values()
    with tempfile.TemporaryDirectory() as work:
        # A table that is there is believed, and what it lacks is measured and kept.
        table = pathlib.Path(work, "table.json")
        first = {"eager": {str(n): {"sdma": 1.0, "gloo": 2.0} for n in range(0, 4096, 4)}}
        del first["eager"]["384"]
        table.write_text(json.dumps(first))
        assert run("--way=auto", f"--table={table}") == {("strict", "auto"): right}
        kept = json.loads(table.read_text())["eager"]
        assert set(kept["384"]) == {"sdma", "carried", "gloo"} and min(kept["384"].values()) > 0 and kept["768"] == first["eager"]["768"], kept["384"]
    assert run("--way=missing") != {("strict", "missing"): right}


def two():
    equal(2, "sdma,carried,gloo,auto", "sdma,carried,auto")


def four():
    equal(4, "sdma,carried", "sdma,carried", "--kv-heads=4", "--layers=2")


def said(*arguments):
    err = io.StringIO()
    with contextlib.redirect_stderr(err):
        code = parallel.main(list(arguments), io.StringIO())
    return code, err.getvalue()


def errors():
    for arguments, why in (
        (["--device=cuda"], "parallel: libcuda"),
        (["--device=what"], "there is no device 'what'"),
        (["--ranks=3"], "heads=4 cannot be divided among 3 ranks"),
        (["--ranks=4"], "KV heads=2 cannot be divided among 4 ranks"),
        (["--way=what"], "there is no way 'what'"),
        (["--way=nccl"], "nccl is not for the device soft"),
        (["--tokens=1"], "tokens 2 or more"),
        (["--seconds=0"], "did not end within 0 s"),
    ):
        code, err = said(*arguments)
        assert code == 1 and why in err and "Traceback" not in err and len(err) < 600, (arguments, code, err)
    with tempfile.TemporaryDirectory() as work:
        pathlib.Path(work, "torch.py").write_text("raise ImportError('none')\n")
        done = subprocess.run([sys.executable, PARALLEL], env=os.environ | {"PYTHONPATH": work}, capture_output=True, text=True)
        assert done.returncode == 1 and done.stderr == "parallel: PyTorch is missing: install torch (Debian: python3-torch)\n", done.stderr
    killed()
    sessions()
    interrupted()
    silent()


def killed():
    """Rank 1 is killed between two rounds: the library of rank 0 says so, and the caller names rank 1."""
    heard = []

    def work(rank, session, tell):
        with sdma_client.Device("soft", f"gpus=2 rank={rank} ranks=2 session={session}") as device:
            all = device.collective("collective=all_gather gpus=2 bytes=4K")
            all.enqueue(rank, device.stream())
            if rank == 1:
                os.kill(os.getpid(), signal.SIGKILL)
            try:
                all.enqueue(rank, device.stream())
            except sdma_client.Error as error:
                tell(str(error))
            all.lost()
            raise AssertionError("it is not lost")

    begin = time.monotonic()
    try:
        ranks.run(2, work, lambda rank, text: heard.append((rank, text)), 60)
        raise AssertionError("the rank was not missed")
    except ranks.Failed as error:
        assert str(error) == "rank 1: its process was killed by signal 9 (Killed)", error
    assert len(heard) == 1 and heard[0][0] == 0 and "rank 1 does not answer: its process" in heard[0][1], heard
    assert time.monotonic() - begin < 50, "the hold of the other rank waited for its minute"


def sessions():
    """A session serves one run."""
    with tempfile.TemporaryDirectory() as work:
        pathlib.Path(work, "0").mkdir()
        pathlib.Path(work, "0", "rank0").write_text("of another run")
        with sdma_client.Device("soft", f"gpus=2 rank=0 ranks=2 session={work} patience=1") as device:
            for again, why in (("first", "give each run an empty folder"), ("second", "rank1 does not appear in time")):
                try:
                    device.collective("collective=all_gather gpus=2 bytes=4K")
                    raise AssertionError(again)
                except sdma_client.Error as error:
                    assert why in str(error), error


def interrupted():
    """Ctrl-C ends the ranks."""
    heard = []

    def work(rank, session, tell):
        tell(os.getpid())
        time.sleep(60)

    def told(rank, pid):
        heard.append(pid)
        if len(heard) == 2:
            os.kill(os.getpid(), signal.SIGINT)

    signal.signal(signal.SIGINT, signal.default_int_handler)
    begin = time.monotonic()
    try:
        ranks.run(2, work, told, 60)
        raise AssertionError("it was not interrupted")
    except KeyboardInterrupt:
        pass
    assert time.monotonic() - begin < 50
    for pid in heard:
        assert not pathlib.Path(f"/proc/{pid}").exists(), pid


def silent():
    """Ranks that say nothing for too long are killed; those that speak are not."""

    def work(rank, session, tell):
        for i in range(8):
            tell(i)
        time.sleep(60 if rank else 0)

    try:
        ranks.run(2, work, silent=1)
        raise AssertionError("nobody missed a word")
    except ranks.Failed as error:
        assert "1 said nothing for 1 s: all were killed" in str(error), error


def measure():
    with tempfile.TemporaryDirectory() as work:
        script = PARALLEL.with_name("measure_parallel.py")
        command = [sys.executable, script, work, "--small", "--rounds=3", "--seconds=60", "--ways=none;sdma;carried;auto;nccl"]
        done = subprocess.run(command, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        cells = [json.loads(line) for line in pathlib.Path(work, "cells.jsonl").read_text().splitlines()]
        by = {(c["way"], c["kind"], c["size"], c["mode"]): c for c in cells if "ms" in c}
        for kind, size in (("decode", 1), ("decode", 4), ("prefill", 16)):
            for mode in ("eager", "graphs"):
                one = by["one process", kind, size, "eager"]
                assert by["sdma", kind, size, mode]["bits"] == one["bits"] == by["auto", kind, size, mode]["bits"] == by["carried", kind, size, mode]["bits"], (kind, size, mode)
                assert by["none", kind, size, mode]["bits"] != one["bits"]
        failures = [c for c in cells if "error" in c]
        assert [c["way"] for c in failures] == ["nccl"] and "not for the device soft" in failures[0]["error"], failures
        text = pathlib.Path(work, "tables.md").read_text()
        assert "| sdma |" in text and "nccl is not for the device soft" in text, text


{"two": two, "chosen": chosen, "four": four, "errors": errors, "measure": measure}[sys.argv[2]]()
print("good")
