#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""docs/files.md: the files of lib whose names do not lead to a public header, each with the first sentence of its first comment.

  file_map.py ROOT            exit code 1 and a line each, if a file begins with no sentence or the page is out of date
  file_map.py --write ROOT    writes the page after its marker line; the text before is written by hand

lib/check/reduce.cpp implements include/sdma/check/reduce.hpp, whose manual says what it does: it has no line. X.hpp and X.cpp share one,
which X.hpp gives.
"""
import os
import pathlib
import re
import sys

import hygiene

PAGE = pathlib.PurePath("docs/files.md")
MARKER = "<!-- Made from the first comments of the files of lib from here on: python3 tests/hygiene/file_map.py --write . -->\n"
KINDS = (".hpp", ".h", ".hpp.in", ".cpp", ".c", ".js")  # the first of a pair speaks for both
COMMENT = re.compile(r"(?:^//.*\n)+", re.M)
# What may come before the first comment: the licence, and what a compiler or a browser has to read first.
BEFORE = re.compile(r"(?://+ SPDX.*\n|#.*\n|'use strict';\n|\s*\n)*")
SENTENCE = re.compile(r"(.+?[^.][.?!])(?= |$)")
# A table of Markdown reads these characters as its own, except in a code span.
MARKUP = re.compile(r"(`[^`]*`)|([|*<])")


def sentence(text):
    """The first sentence of the comment with which a file begins, or "": it has two words or more, and ends with a full stop."""
    comment = COMMENT.match(text, BEFORE.match(text).end())
    if not comment:
        return ""
    lines = [line.lstrip("/!").strip() for line in comment[0].splitlines()]
    paragraph = " ".join(lines[: lines.index("")] if "" in lines else lines)
    found = SENTENCE.match(re.sub(r":$", ".", paragraph))
    return found[1] if found and " " in found[1] else ""


def escaped(match):
    return match[1] or "\\" + match[2]


def order(folder):
    """The order of modules, and a folder before those below it."""
    room = folder.split("/")[0]
    return (hygiene.ORDER.index(room) if room in hygiene.ORDER else len(hygiene.ORDER), folder)


def listed(root):
    """{folder below lib: {stem: [path]}} of all files that need a line."""
    found = {}
    for path in sorted(p.relative_to(root / "lib") for kind in KINDS for p in (root / "lib").rglob(f"*{kind}")):
        stem = path.name.split(".")[0]
        if not (root / "include/sdma" / path.parent / f"{stem}.hpp").is_file():
            found.setdefault(str(path.parent), {}).setdefault(stem, []).append(path)
    return {folder: found[folder] for folder in sorted(found, key=order)}


def block(root):
    """The part of the page after its marker, and complaints about files that begin with no sentence."""
    text, bad = "", []
    for folder, stems in listed(root).items():
        text += f"\n## lib/{folder}\n\n| file | what it does |\n|---|---|\n"
        for stem, paths in sorted(stems.items()):
            paths.sort(key=lambda path: KINDS.index(path.name.removeprefix(stem)))
            said = sentence((root / "lib" / paths[0]).read_text(encoding="utf-8"))
            if not said:
                bad.append(f"lib/{paths[0]}:1: begins with no comment whose first sentence says what it does")
            ends = [path.name.removeprefix(f"{stem}.") for path in paths]
            name = f"{stem}.{ends[0]}" if len(ends) == 1 else f"{stem}.{{{','.join(ends)}}}"
            text += f"| `{name}` | {MARKUP.sub(escaped, said)} |\n"
    return text, bad


def file_map(root):
    """each file of lib begins with a sentence that says what it does, and docs/files.md has the sentences of those without a manual"""
    before, marker, have = hygiene.read(root, PAGE).partition(MARKER)
    made, bad = block(root)
    if not marker:
        return [*bad, f"{PAGE}:1: has no line {MARKER.strip()}"]
    if have == made:
        return bad
    number = (before + marker + os.path.commonprefix([have, made])).count("\n") + 1
    return [*bad, f"{PAGE}:{number}: is out of date: python3 tests/hygiene/file_map.py --write . (or ninja bless) writes it"]


def write(root):
    before, marker, _ = hygiene.read(root, PAGE).partition(MARKER)
    (root / PAGE).write_text(before + (marker or MARKER) + block(root)[0], encoding="utf-8")


if __name__ == "__main__":
    if len(sys.argv) < 2 or sys.argv[1:-1] not in ([], ["--write"]):
        sys.exit(__doc__)
    tree = pathlib.Path(sys.argv[-1]).resolve()
    if sys.argv[1:-1]:
        write(tree)
    sys.exit("\n".join(file_map(tree)) or 0)
