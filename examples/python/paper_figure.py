# SPDX-License-Identifier: MIT
"""A figure of the paper DMA-Latte: the speed-up of all-gather variants over one copy per peer, by size, as the simulator predicts it.

    PYTHONPATH=build/python python3 examples/python/paper_figure.py all_gather.csv

docs/reproduction.md compares such predictions with what the paper has measured. In a notebook, pandas draws the same rows:
pandas.DataFrame(rows).pivot(index="bytes", columns="variant", values="speed_up").plot(logx=True)
"""
# %% The variants of the paper, each as a schedule for each size.
import sys

import sdma

VARIANTS = ["pcpy", "bcst", "b2b", "pcpy+pl", "bcst+pl", "b2b+pl"]
SIZES = [2**k for k in range(10, 31, 4)]  # 1K to 1G, counted as RCCL counts them

# %% speed_ups moves each uncertain parameter of the machine in both simulations, so a ratio is more certain than a time.
rows = []
for size in SIZES:
    plans = [sdma.plan("all_gather", gpus=8, bytes=size, variant=v).schedule for v in VARIANTS]
    for variant, found in zip(VARIANTS, sdma.speed_ups(plans[0], plans)):
        rows.append({"bytes": size, "variant": variant, "speed_up": found["value"], "uncertainty": found["uncertainty"]})

# %% The table. "~" marks what the model cannot distinguish from pcpy.
print(f"{'bytes':>12}" + "".join(f"{v:>12}" for v in VARIANTS))
for size in SIZES:
    cells = [r for r in rows if r["bytes"] == size]
    tie = lambda r: "~" if abs(r["speed_up"] - 1) <= r["uncertainty"] else " "
    print(f"{size:>12}" + "".join(f"{r['speed_up']:>11.2f}{tie(r)}" for r in cells))

# %% The same rows for other programs.
if len(sys.argv) > 1:
    with open(sys.argv[1], "w", encoding="utf-8") as file:
        file.write(",".join(rows[0]) + "\n")
        file.writelines(",".join(str(value) for value in row.values()) + "\n" for row in rows)

small = {r["variant"]: r["speed_up"] for r in rows if r["bytes"] == SIZES[0]}
large = {r["variant"]: r["speed_up"] for r in rows if r["bytes"] == SIZES[-1]}
assert small["b2b+pl"] > 1.5, "back to back and prelaunched wins for small sizes"
assert abs(large["pcpy+pl"] - 1) < 0.05, "a prelaunch saves nothing where bytes take all the time"
