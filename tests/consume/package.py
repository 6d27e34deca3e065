# SPDX-License-Identifier: MIT
"""A client of the package for Python: reads a schedule, proves it, predicts it and runs it.

  package.py SCHEDULE
"""
import sys

import sdma

s = sdma.Schedule.read(sys.argv[1], N=3, chunk="4K")
assert sdma.check(s).proved, sdma.check(s)["summary"]
assert sdma.simulate(s)["ns"] > 0
assert sdma.run(s), "the expectations do not hold"
(fence,) = sdma.dis(sdma.as_("fence addr=0x1000 value=7\n"))
assert (fence.name, fence.value) == ("fence", 7)
print("the package works, from", sdma.__file__)
