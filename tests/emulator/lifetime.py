#!/usr/bin/env python3
"""However a program ends, nothing hangs and nothing is left: lifetime.py SDMA PROGRAM."""
import os
import signal
import subprocess
import sys
import tempfile
import time

sdma, program = map(os.path.abspath, sys.argv[1:])


def shared_memory():
    return sorted(os.listdir("/dev/shm"))


def start(how, folder, **more):
    # Whatever were written would lie in TMPDIR or in the working directory.
    return subprocess.Popen([sdma, "emulate", "--gpus=2", "--", program, how], cwd=folder,
                            env={**os.environ, "TMPDIR": folder}, **more)


before = shared_memory()
with tempfile.TemporaryDirectory() as folder:
    for how, code in (("fork", 0), ("children", 0), ("exit", 0), ("kill", -signal.SIGKILL)):
        for _ in range(3):
            assert start(how, folder).wait(timeout=60) == code, how
    for sig in (signal.SIGTERM, signal.SIGKILL, signal.SIGINT):
        p = start("wait", folder, start_new_session=True)
        time.sleep(0.3)
        assert p.poll() is None
        p.send_signal(sig)
        assert p.wait(timeout=10) == -sig
        # The process was the only one of its group: no helper outlives it.
        try:
            os.killpg(p.pid, 0)
            raise AssertionError("somebody is left")
        except ProcessLookupError:
            pass
    assert os.listdir(folder) == [], os.listdir(folder)
assert shared_memory() == before
