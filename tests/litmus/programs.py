#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The texts of litmus programs, as `litmus` reads them.

  programs.py table LITMUS PAGE        the table of docs/litmus.md has the programs that LITMUS contains, and no others
  programs.py attack LITMUS TEXTS...   damaged texts are read, or each has an error with its line; LITMUS never crashes
"""
import pathlib
import random
import re
import subprocess
import sys
import tempfile


def table(litmus, page):
    listed = subprocess.run([litmus, "--list"], capture_output=True, text=True, check=True).stdout.splitlines()
    rows = [line for line in pathlib.Path(page).read_text(encoding="utf-8").splitlines() if re.match(r"\| [A-Z]\d+ \| [a-z]", line)]
    # The last two columns are what hardware has shown.
    written = ["|".join(row.split("|")[:5]) + "|" for row in rows]
    for row in sorted({*listed} ^ {*written}):
        print(f"{page}: {'lacks' if row in listed else 'has, and no program is like it:'} {row}")
    return listed == written and len(listed) > 0


def damaged(text, dice):
    """The text after one to three blows."""
    for _ in range(dice.randint(1, 3)):
        lines = text.split("\n")
        at, place = dice.randrange(len(lines)), dice.randrange(len(text) + 1)
        kind = dice.randrange(7)
        if kind == 0:
            del lines[at]
        elif kind == 1:
            lines.insert(at, dice.choice(lines))
        elif kind == 2:
            dice.shuffle(lines)
        elif kind == 3:
            words = lines[at].split(" ")
            words[dice.randrange(len(words))] = dice.choice(["", "q", "a", "0", "-1", "4294967296", "99999999999999999999", "\"", "\"x", "#", "=", "for", "end"])
            lines[at] = " ".join(words)
        text = "\n".join(lines)
        if kind == 4:
            text = text[:place]
        elif kind == 5:
            text = text[:place] + chr(dice.randrange(256)) + text[place:]
        elif kind == 6:
            text = text[:place] + text[place + dice.randint(1, 8) :]
    return text


def attack(litmus, *texts):
    litmus = pathlib.Path(litmus).resolve()  # it runs in another folder
    dice = random.Random(1)
    known = [pathlib.Path(t).read_text(encoding="utf-8") for t in texts]
    extremes = ["", "\n", "\0", "\"", "put", "put q\n" * 500, "word a\n" * 500, "x" * 100_000, "queue q engine=0\nput q\nnop times=99999999999\nend\n",
                "queue q engine=0\nput q\nfor i in 0..1000000000\nnop\nend\nend\n", "word a\n\rput a\n" + "for i in 0..9\n" * 200]
    texts = extremes + [damaged(dice.choice(known), dice) for _ in range(600)]
    with tempfile.TemporaryDirectory() as folder:
        for number, text in enumerate(texts):
            pathlib.Path(folder, f"{number}.litmus").write_text(text, encoding="latin-1", newline="")
        run = lambda numbers: subprocess.run([litmus, "--list", *(f"{n}.litmus" for n in numbers)], cwd=folder, capture_output=True, errors="replace")
        ran = run(range(len(texts)))
        rejected = {int(n) for n in re.findall(r"^(\d+)\.litmus:\d+:\d+: error: .+", ran.stderr, re.M)}
        # What has no error is read.
        good = [n for n in range(len(texts)) if n not in rejected]
        again = run(good)
    print(f"{len(rejected)} of {len(texts)} texts were rejected")
    if ran.returncode != 2 or again.returncode != 0 or again.stdout.count("\n") != len(good):
        print(f"exit codes {ran.returncode} and {again.returncode}; of {len(good)} texts without an error, not all are read\n{again.stderr}")
        return False
    return rejected >= set(range(len(extremes))) and len(good) > 0


if __name__ == "__main__":
    sys.exit(0 if {"table": table, "attack": attack}[sys.argv[1]](*sys.argv[2:]) else 1)
