#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Makes mistakes of one line in schedules that are proved, and counts how many the first hint of `sdma check` fixes.

  mutations.py SDMA [--seeds=N] FILE...

Every line that waits or posts is left out; its value becomes one too large and one too small; it changes places with the copy
next to it; and the word of one GPU becomes that of another. Of what `check` refutes, prints each mistake that no finding's
hint leads to a proof. What a hint proves runs in three orders, with N seeds; fails if such a run has wrong bytes.
"""
import pathlib
import re
import sys
import tempfile

from mistakes import checked, edited, runs

POSTS, WAITS, MOVES = ("fence", "atomic", "set", "add"), ("poll_mem", "wait"), ("copy", "fill", "store")


def mistakes(lines):
    """(number of the line, what was done, text) for each mistake."""
    for i, line in enumerate(lines):
        code = re.sub(r"^when [^:]*: ", "", line.split("#")[0].strip())
        word = code.split(" ")[0]
        if word not in POSTS + WAITS:
            continue
        before, after = lines[:i], lines[i + 1 :]
        yield i + 1, "left out", before + after
        if word in WAITS and (value := re.search(r"(reference=|>= |== )(\S+)$", code)):
            for change in ("+1", "-1"):
                yield i + 1, change, before + [line.replace(value[0], value[0] + change)] + after
        if word in POSTS and before[-1].strip().startswith(MOVES):
            yield i + 1, "early", before[:-1] + [line, before[-1]] + after
        if word in WAITS and after[0].strip().startswith(MOVES):
            yield i + 1, "late", before + [after[0], line] + after[1:]
        if place := re.search(r"gpu\{[^}]*\}\.", code):
            other = "gpu{i}." if "i+1" in place[0] else "gpu{(i+1)%N}."
            yield i + 1, "another GPU", before + [line.replace(place[0], other, 1)] + after


def main(arguments):
    seeds = max((int(a[8:]) for a in arguments if a.startswith("--seeds=")), default=1)
    sdma, *names = [a for a in arguments if not a.startswith("--seeds=")]
    refuted = fixed = 0
    complaints = []
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "mistake.sdma"
        for name in names:
            source = pathlib.Path(name).read_text()
            path.write_text(source)
            proved = "expect finding" not in source and checked(sdma, path)[1]["verdict"] == "proved"
            for number, what, lines in mistakes(source.split("\n")) if proved else ():
                path.write_text("\n".join(lines))
                findings, answer = checked(sdma, path)
                if answer["verdict"] != "refuted":
                    continue
                refuted += 1
                hint = next((f for f in findings if f.get("remaining") == 0), None)
                if hint is None:
                    print(f"{name}:{number}: {what}: {findings[0]['message']}")
                    continue
                fixed += 1
                path.write_text(edited(path.read_text(), hint["edits"]))
                complaints += [f"{name}:{number}: {what}: {w}" for w in runs(sdma, path, seeds, True)[1]]
    print(f"the first hint fixes {fixed} of {refuted}; {3 * seeds * fixed} runs")
    print(*complaints, sep="\n", file=sys.stderr)
    return bool(complaints)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
