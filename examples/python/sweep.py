# SPDX-License-Identifier: MIT
"""A sweep: the time of an all-gather by the size of its chunks, and what a faster poll would change.

    PYTHONPATH=build/python python3 examples/python/sweep.py curves.svg

Run it from the root of the source tree, or anywhere: the schedules are found beside this file.
"""
# %% Two schedules of the examples, the second prelaunched.
import pathlib
import sys

import sdma

FOLDER = pathlib.Path(__file__).resolve().parent.parent / "schedules"
FILES = [FOLDER / "2_allgather_b2b.sdma", FOLDER / "5_allgather_prelaunch.sdma"]

# %% In a notebook, the value of a sweep shows its curves.
by_chunk = sdma.sweep(FILES, "chunk=1K..16M*4", N=8)
if len(sys.argv) > 1:
    pathlib.Path(sys.argv[1]).write_text(by_chunk.svg, encoding="utf-8")

# %% One flat dict per point and schedule: pandas.DataFrame(by_chunk.rows)
for row in by_chunk.rows:
    print(f"{row['chunk']:>10} {row['file']:24} {row['ns'] / 1000:10.2f} us {row['speed_up']:6.2f}")

# %% What if engines polled faster? A parameter of the machine has a dot in its name.
by_poll = sdma.sweep(FILES[1], "engine.poll_ns=50,360,2000", N=8, chunk="4K")
times = [row["ns"] for row in by_poll.rows]
print("poll:", ", ".join(f"{ns / 1000:.2f} us" for ns in times))
assert times == sorted(times)
assert by_chunk.rows[1]["speed_up"] > 1, "the prelaunched schedule wins for small chunks"
