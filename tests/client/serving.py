#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""examples/serving on the software device, with a tiny model, and bench/serving/measure.py.

  serving.py SERVE MEASURE SDMA CASE

evict      equal while prefixes are evicted to host memory and fetched back, also where that is full
tokens     equal with and without offload, in each way and order; different without the wait
schedule   `sdma check` proves the fetch, and refutes it without the wait; the texts are those of the ways
errors     a sentence for each thing that cannot work, and memory that is given back
measure    the measuring script fills its folder, and continues after a child that ended
"""
import contextlib
import io
import json
import os
import pathlib
import re
import signal
import subprocess
import sys
import tempfile

SERVE, MEASURE, SDMA = map(pathlib.Path, sys.argv[1:4])
sys.path.insert(0, str(SERVE.parent))
sys.dont_write_bytecode = True
import fetch  # noqa: E402
import pools  # noqa: E402
import serve  # noqa: E402


def run(*arguments):
    """(exit code, output, errors) of the client."""
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stderr(err):
        code = serve.main(["--steps", *arguments], out)
    return code, out.getvalue(), err.getvalue()


def tokens_of(*arguments):
    code, out, err = run(*arguments)
    assert code == 0, err
    found = dict(re.findall(r"request (\d+): .*: ([\d ]+)\n", out))
    assert len(found) == 8, out
    return found


def tokens():
    right = tokens_of("--offload=none")
    assert len(set(right.values())) > 4, "the model says the same whatever it is asked"
    for order in ("strict", "rocr", "adversarial"):
        for way in fetch.WAYS[:-1]:
            assert tokens_of(f"--offload={way}", f"--order={order}", "--seed=1") == right, (way, order)
    for more in (["--threads=2"], ["--group=2"], ["--threads=2", "--group=4"], ["--offload=prelaunched", "--group=4"], ["--no-merge"], ["--offload=prelaunched", "--threads=2"], ["--batch=1"]):
        assert tokens_of("--order=adversarial", *more) == right, more
    assert tokens_of("--offload=missing") != right
    # Other shapes, with all blocks neighbours and at a stride.
    shape = ["--layers=3", "--heads=6", "--kv-heads=3", "--head=8", "--block=2", "--host-blocks=128", "--gpu-blocks=128"]
    assert tokens_of("--offload=none", *shape) == tokens_of(*shape)
    boxes()


def evict():
    more = ["--requests=24", "--prefixes=6", "--prefix=24", "--gpu-blocks=26", "--host-blocks=40", "--batch=2", "--rate=4"]

    def found(*arguments):
        code, out, err = run(*more, *arguments)
        assert code == 0, err
        moved = re.search(r"(\d+) prefixes were evicted, and (\d+) were fetched back\n", out)
        return dict(re.findall(r"request (\d+): .*: ([\d ]+)\n", out)), tuple(map(int, moved.groups())) if moved else None

    right, none = found("--offload=none")
    assert len(right) == 24 and none is None
    for order in ("strict", "rocr", "adversarial"):
        for way in fetch.WAYS[:-1] if order == "adversarial" else ("layer",):
            tokens, (evicted, fetched) = found("--evict", f"--offload={way}", f"--order={order}")
            assert tokens == right, (order, way)
            assert evicted >= 6 and fetched >= 4, (evicted, fetched)
    # Host memory is full, too: what was evicted first is computed again; and it has room for none.
    tokens, (evicted, fetched) = found("--evict", "--host-blocks=13")
    assert tokens == right and evicted > 6 and fetched >= 1, (evicted, fetched)
    tokens, moved = found("--evict", "--host-blocks=5")
    assert tokens == right and moved == (0, 0), moved
    # All prefixes fit: none moves.
    tokens, moved = found("--evict", "--gpu-blocks=64")
    assert tokens == right and moved == (0, 0), moved
    for arguments, why in ((["--gpu-blocks=9"], "request 0 needs 10 blocks, and the pool of the GPU has 9"), (["--offload=none"], "use a way of --offload")):
        code, _, err = run(*more, "--evict", *arguments)
        assert code == 1 and why in err and "Traceback" not in err, err


def boxes():
    """What merging makes of neighbours and strides."""
    of = pools.Pools(serve.models.Shape(), 4, 1 << 20, 64, 1 << 30, 128)
    one = lambda host, gpu: fetch.copies_of(of, host, gpu)[0]
    rows = one([3, 4, 5, 9], [1, 2, 3, 0])
    block = of.block
    assert rows["bytes"].tolist() == [3 * block, block] and rows["rows"].tolist() == [2, 2]
    assert rows["src_pitch"].tolist() == [128 * block] * 2 and rows["dst_pitch"].tolist() == [64 * block] * 2
    rows = one([2, 4, 6], [0, 3, 6])
    assert rows["rows"].tolist() == [3, 3] and rows["src_pitch"].tolist() == [2 * block] * 2 and rows["dst_pitch"].tolist() == [3 * block] * 2
    assert rows["src"].tolist() == [(1 << 30) + 2 * block, (1 << 30) + (128 + 2) * block]
    for host, gpu, why in (([1, 2], [3, 3], "two copies write block 3"), ([1, 200], [3, 4], "block 200 is outside of the host pool"), ([1], [1, 2], "1 blocks")):
        try:
            one(host, gpu)
            raise AssertionError(why)
        except ValueError as error:
            assert why in str(error), error


def schedule():
    with tempfile.TemporaryDirectory() as work:
        for way in fetch.WAYS:
            for threads in (1, 2):
                path = pathlib.Path(work, f"{way}{threads}.sdma")
                code, out, err = run("--schedule", f"--offload={way}", f"--threads={threads}")
                assert code == 0, err
                path.write_text(out)
                done = subprocess.run([SDMA, "check", path], capture_output=True, text=True)
                said = done.stdout + done.stderr
                if way == "missing":
                    assert done.returncode == 1 and "error[race]: kernel gpu0.prefill may read" in said, said
                else:
                    assert done.returncode == 0 and "no race" in said, said
        path = pathlib.Path(work, "layer1.sdma")
        assert subprocess.run([SDMA, "simulate", path], capture_output=True).returncode == 0
    code, _, err = run("--schedule", "--prefix=1")
    assert code == 1 and "no whole block" in err


def errors():
    for arguments, why in (
        (["--device=cuda"], "libcuda"),
        (["--device=what"], "there is no device 'what'"),
        (["--gpu-blocks=4"], "needs"),
        (["--gpu-blocks=9", "--tokens=20"], "request 0 needs"),
        (["--host-blocks=4"], "host pool has"),
        (["--heads=5"], "multiple of KV heads"),
        (["--gpu-blocks=1000000000000"], "serve: "),
        (["--weights=/nowhere"], "/nowhere"),
    ):
        code, out, err = run(*arguments)
        assert code == 1 and why in err and "Traceback" not in err and len(err) < 600, (arguments, code, err)
    # No torch.
    with tempfile.TemporaryDirectory() as work:
        pathlib.Path(work, "torch.py").write_text("raise ImportError('none')\n")
        environment = os.environ | {"PYTHONPATH": work}
        done = subprocess.run([sys.executable, SERVE], env=environment, capture_output=True, text=True)
        assert done.returncode == 1 and done.stderr == "serve: PyTorch is missing: install torch (Debian: python3-torch)\n", done.stderr
    # Ctrl-C in the middle: after the first answer, of many.
    process = subprocess.Popen([sys.executable, SERVE, "--steps", "--requests=100000"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert process.stdout.readline().startswith("request ")
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 130 and err == "interrupted: what was allocated has been given back\n", (process.returncode, err)
    # Memory is given back: the same run again and again does not need more address space.
    mapped = lambda: int(re.search(r"VmSize:\s+(\d+)", pathlib.Path("/proc/self/status").read_text())[1])
    big = ["--requests=1", "--gpu-blocks=40000", "--host-blocks=40000"]
    run(*big)
    before = mapped()
    for _ in range(3):
        assert run(*big)[0] == 0
    assert mapped() - before < 40000, (before, mapped())


def measure():
    with tempfile.TemporaryDirectory() as work:
        command = [sys.executable, MEASURE, work, "--small", "--rounds=1", "--ways=none;layer;hand: batch;block"]
        # What a child left that ended in the middle of a line is not there; what is there is not measured again.
        done = {"prefix": 32, "share": 0, "way": "none", "beside": False, "ms": 1.0, "ms_min": 1.0, "ms_max": 1.0}
        pathlib.Path(work, "cells.jsonl").write_text(json.dumps(done) + "\n")
        subprocess.run(command, check=True, capture_output=True, text=True)
        cells = [json.loads(line) for line in pathlib.Path(work, "cells.jsonl").read_text().splitlines()]
        assert cells[0] == done and sum(c["way"] == "none" and c["prefix"] == 32 and c["share"] == 0 and not c["beside"] for c in cells) == 1
        by = {(c["prefix"], c["share"], c["way"], c["beside"]): c for c in cells}
        assert by[32, 0, "layer", True]["wrong_blocks"] == 0 and by[32, 0, "layer", True]["step_ms"] > 0, by
        assert by[32, 0, "layer", False]["token"] == by[32, 0, "block", False]["token"]
        assert by[32, 0, "hand: batch", False]["error"] == "RuntimeError: no GPU"
        assert by[16, 0, "layer", "load"]["sum"] == by[16, 0, "none", "load"]["sum"]
        text = pathlib.Path(work, "tables.md").read_text()
        assert "prefix 32, 50 % neighbours" in text and "under load" in text, text
    killed()


def killed():
    """A process that is killed in a cell leaves it as failed, and another one goes on after it. One that does not begin is the last."""
    sys.path.insert(0, str(MEASURE.parent))
    import measure as script
    import torch

    class Bench:
        def __init__(self, small, rounds, note):
            self.torch = torch

        def measure(self, prefix, share, way, beside):
            if way == "batch":
                os.kill(os.getpid(), signal.SIGKILL)
            return {"ms": 1.0, "ms_min": 1.0, "ms_max": 1.0}

    class NoBench:
        def __init__(self, small, rounds, note):
            raise OSError("there is no such machine")

    def measured(kind, work):
        script.Bench, sys.argv = kind, ["measure.py", work, "--small", "--ways=none;batch;layer"]
        with contextlib.redirect_stdout(io.StringIO()):
            code = script.main()
        return code, [json.loads(line) for line in pathlib.Path(work, "cells.jsonl").read_text().splitlines()]

    with tempfile.TemporaryDirectory() as work:
        code, cells = measured(Bench, work)
        wanted = [c for c in script.cells(True) if c[2] in ("none", "batch", "layer")]
        assert code == 0 and [script.key(c) for c in cells] == wanted, cells
        for c in cells:
            assert c.get("error") == ("its process was killed by signal 9 (Killed)" if c["way"] == "batch" else None), c
    with tempfile.TemporaryDirectory() as work:
        assert measured(NoBench, work) == (1, [{"error": "there is no such machine"}])


{"tokens": tokens, "evict": evict, "schedule": schedule, "errors": errors, "measure": measure}[sys.argv[4]]()
print("good")
