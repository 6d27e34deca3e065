# SPDX-License-Identifier: MIT
"""What the measuring scripts share: cells that processes measure, each of which is kept as soon as it is there.

  record = Record(folder, seconds)
  record.measure({"way": "sdma"}, 2, lambda rank, session, tell: ..., seconds=60)
  record.report([*table("a title", ["way", "ms"], [["sdma", spread(cell, "ms")]])])

What ranks tell: {"current": key}, the cell that they begin; {"note": text}; and cells, dicts with that key and what was found. A failure is
a cell, too: the key and "error". FOLDER gets cells.jsonl, a line for each cell, and tables.md.
"""
import json
import math
import pathlib
import statistics
import time

import ranks


class Record:
    """Of a folder; what it holds from an earlier run is in `cells`, too."""

    def __init__(self, folder, seconds):
        self.folder, self.begin, self.seconds, self.notes, self.current = pathlib.Path(folder), time.monotonic(), seconds, [], {}
        self.folder.mkdir(parents=True, exist_ok=True)
        self.lines = self.folder / "cells.jsonl"
        self.cells = [json.loads(line) for line in self.lines.read_text().splitlines()] if self.lines.is_file() else []

    def left(self):
        return self.seconds - (time.monotonic() - self.begin)

    def add(self, cell):
        self.cells.append(cell)
        with open(self.lines, "a") as f:
            f.write(json.dumps(cell) + "\n")
        self.say({k: v for k, v in cell.items() if not isinstance(v, (dict, list))})

    def note(self, text):
        self.notes.append(text)
        self.say(text)

    def say(self, what):
        print(f"{time.monotonic() - self.begin:6.1f} s  {what}", flush=True)

    def told(self, rank, what):
        if "current" in what:
            self.current = what["current"]
        elif "note" in what:
            self.note(what["note"] + (f" (rank {rank})" if rank else ""))
        else:
            self.add(what)

    def measure(self, key, count, work, seconds, silent=math.inf):
        """Did all ranks end well? If not, the cell in which they failed is kept."""
        self.current = key
        try:
            ranks.run(count, work, self.told, seconds, silent)
            return True
        except ranks.Failed as error:
            self.add({**self.current, "error": str(error)})
            return False

    def report(self, lines):
        errors = [f"- {' '.join(str(c[k]) for k in c if k != 'error')}: {c['error']}" for c in self.cells if "error" in c]
        text = "\n".join([*lines, *errors, *(f"- {note}" for note in self.notes)]) + "\n"
        (self.folder / "tables.md").write_text(text)
        print(text)


def table(title, head, rows):
    return [title, "", f"| {' | '.join(head)} |", "|---" * len(head) + "|", *(f"| {' | '.join(row)} |" for row in rows), ""]


def of_all(name, values):
    """The median of a cell's rounds, the smallest and the largest."""
    return {name: statistics.median(values), f"{name}_min": min(values), f"{name}_max": max(values)}


def spread(cell, name):
    return f"{cell[name]:.2f} ({cell[name + '_min']:.2f}-{cell[name + '_max']:.2f})" if cell and name in cell else "-"
