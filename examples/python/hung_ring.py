# SPDX-License-Identifier: MIT
"""A hung ring: two queues wait for each other; why, and how to find it before it hangs.

    PYTHONPATH=build/python python3 examples/python/hung_ring.py
"""
# %% Each queue waits for the signal that the other would set after its own wait.
import sdma
from sdma.packets import Fence, PollMem


def two_queues(first_waits=True):
    s = sdma.Schedule(2)
    a, b = s.add_signal("a"), s.add_signal("b")
    left = s.add_queue("left", place=0, peer=1)
    right = s.add_queue("right", place=1, peer=0)
    if first_waits:
        left.put(PollMem(addr=b, func="eq", reference=1))
    left.put(Fence(addr=a, value=1))
    right.put(PollMem(addr=a, func="eq", reference=1), Fence(addr=b, value=1))
    s.add_host("main").submit(left, right).wait(b, "eq", 1)
    return s


# %% A run ends at its timeout, and says why its queues hang.
run = sdma.run(two_queues(), timeout=0.5)
assert not run and run.diagnosis["verdict"] == "hung"
print(run["findings"][0]["message"])
for finding in run.diagnosis["findings"]:
    for statement in finding["statements"]:
        print("-", statement["text"])

# %% The checker finds it without a run.
check = sdma.check(two_queues())
assert check["verdict"] == "refuted"
print(check["findings"][0]["message"])

# %% The packets that wait, from the dwords of a ring.
for packet in sdma.dis(two_queues().queues[1].dwords):
    print(repr(packet))

# %% Without the first wait, nothing hangs.
fixed = two_queues(first_waits=False)
assert sdma.check(fixed).proved and sdma.run(fixed)
