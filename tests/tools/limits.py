#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The numbers of docs/limits.md are those of the sources that its tables name.

  limits.py SOURCE
"""
import pathlib
import re
import sys

LEAST = 30  # rows with a source


def main(root):
    root, wrong, rows = pathlib.Path(root), [], 0
    for line in (root / "docs/limits.md").read_text(encoding="utf-8").splitlines():
        cells = [c.strip() for c in line.strip("|").split("|")] if line.startswith("| ") else []
        if len(cells) != 4 or cells[3] in ("", "source"):
            continue
        rows += 1
        named = re.fullmatch(r"`([^`]+)` in (\S+)", cells[3])
        if not named:
            wrong.append(f"this is not '`NAME = VALUE` in FILE': {cells[3]}")
            continue
        file = root / named[2]
        if not file.is_file() or not re.search(rf"\b{re.escape(named[1])}\b", file.read_text(encoding="utf-8")):
            wrong.append(f"{named[2]} has no '{named[1]}'")
        # The number that a reader sees is the one of the source.
        number = re.search(r"= *([0-9']+)\b(?! *<<)", named[1])
        if number and (digits := number[1].replace("'", "")) not in re.sub(r"[,.]", "", cells[1]):
            wrong.append(f"the limit is {digits}, and the page says {cells[1]}")
    if rows < LEAST:
        wrong.append(f"only {rows} rows have a source")
    print(*wrong, sep="\n")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
