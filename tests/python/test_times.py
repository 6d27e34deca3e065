# SPDX-License-Identifier: MIT
"""What the package adds: time to import, and to a call beyond that of the library. A processor's time, because others use the machine."""
import subprocess
import sys
import time

import sdma


def least(times, work):
    found = []
    for _ in range(times):
        begin = time.process_time()
        work()
        found.append(time.process_time() - begin)
    return min(found)


def test_import():
    script = "import time; t = time.process_time(); import sdma; print(time.process_time() - t)"
    times = [float(subprocess.run([sys.executable, "-c", script], capture_output=True, check=True).stdout) for _ in range(5)]
    assert min(times) < 0.1  # seconds


def test_check_and_simulate_of_an_all_gather(schedules):
    s = sdma.Schedule.read(schedules / "2_allgather_b2b.sdma", N=8, chunk="64K")
    machine = sdma.Machine()
    # The whole call, of which the library takes about 0.1 and 0.2 ms. The bounds leave room for others that use the machine.
    assert least(100, lambda: sdma.check(s)) < 0.003
    assert least(100, lambda: sdma.simulate(s, machine, sensitivity=False)) < 0.003
