# SPDX-License-Identifier: MIT
"""An algorithm of one's own: an all-gather around a ring, built with loops of Python, then proved, predicted and run.

    PYTHONPATH=build/python python3 examples/python/own_algorithm.py

Each GPU has one piece. In each step, a GPU passes on to its neighbour the piece that it has received in the step before.
"""
# %% A ring of N GPUs. GPU i writes into GPU i + 1, and counts there what has arrived.
import sdma
from sdma.packets import Atomic, Fence, PollMem


def ring_all_gather(gpus, piece):
    s = sdma.Schedule(gpus)
    bufs = [s.add_buffer("buf", gpus * piece, place=i, init="random") for i in range(gpus)]
    arrived = [s.add_signal("arrived", place=i) for i in range(gpus)]
    done = s.add_signal("done")
    for i in range(gpus):
        to = (i + 1) % gpus
        q = s.add_queue("ring", place=i, peer=to)
        for step in range(gpus - 1):
            at = (i - step) % gpus * piece
            if step > 0:  # the piece has come from the GPU before
                q.put(PollMem(addr=arrived[i], func="ge", reference=step))
            q.copy(src=bufs[i] + at, dst=bufs[to] + at, bytes=piece).put(Fence(addr=arrived[to], value=step + 1))
        q.put(Atomic(op="add_64", addr=done, value=1))
    s.add_host("main").submit().wait(done, "eq", gpus)
    for i in range(gpus):
        for k in range(gpus):
            if k != i:
                s.expect_equal(bufs[i] + k * piece, bufs[k] + k * piece, piece, old=True)
    return s


s = ring_all_gather(gpus=4, piece=64 << 10)
print(s)

# %% Is it right in every execution? The checker proves it, or says what is missing.
verdict = sdma.check(s)
print(verdict["summary"])
assert verdict.proved

# %% Does it do what it should? All orders that the packets leave open, on a node in software.
for order in ("strict", "rocr", "adversarial"):
    assert sdma.run(s, order=order, seed=1)

# %% Without the poll, it is wrong, and the checker names the race.
broken = sdma.Schedule.parse("\n".join(line for line in str(s).split("\n") if "poll_mem" not in line))
race = sdma.check(broken)
assert race["verdict"] == "refuted"
print(race["findings"][0]["message"])

# %% Is it fast? Every GPU of this node has a link to every other, and a ring uses two of them.
direct = sdma.plan("all_gather", gpus=4, bytes=4 * (64 << 10), variant="pcpy").schedule
(found,) = sdma.speed_ups(direct, [s])
print(f"as fast as one copy per peer, times {found['value']:.2f} +- {found['uncertainty']:.2f}")
