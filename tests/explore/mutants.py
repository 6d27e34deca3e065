#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Breaks the checker's rules, one at a time, and lets the explorer find the false proof.

  mutants.py check ROOT                      is each row of mutants.toml still about code that is there, and no entry left out?
  mutants.py run ROOT BUILD [--most=N] [ENTRY...]
                                             runs all rows, or those of some entries: up to N schedules each (default: 200000)

`run` copies lib/check, puts a choice in the place of each expression, builds one explore-check of the copy, and prints a table
of Markdown: the entry, its broken rule, and after how many schedules the explorer has seen a false proof of one that has the
entry. It needs BUILD/lib/libsdma-runtime.a and BUILD/tests/explore/libexplore-model.a. Exit code 1: a row is wrong, or a broken
rule has not been found.
"""
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tomllib

CHOICE = "#include <cstdlib>\ninline int sdma_mutant() noexcept {\n  static const int n = [] { const char* s = std::getenv(\"SDMA_MUTANT\"); return s ? std::atoi(s) : -1; }();\n  return n;\n}\n"


def pattern(code):
    """A pattern for an expression, however clang-format has broken it into lines."""
    return r"\s*".join(re.escape(word) for word in re.findall(r"\w+|\S", code))


def load(root):
    with open(root / "tests/explore/mutants.toml", "rb") as file:
        data = tomllib.load(file)
    return data["mutant"], data["reasons"]


def place(text, row):
    """Where a row's expression is, or what is wrong."""
    begin, end = 0, len(text)
    if "around" in row:
        found = list(re.finditer(pattern(row["around"]), text))
        if len(found) != 1:
            return f"{row['file']} has {len(found)} times: {row['around']}"
        begin, end = found[0].span()
    found = list(re.compile(pattern(row["code"])).finditer(text, begin, end))
    return found[0].span() if len(found) == 1 else f"{row['file']} has {len(found)} times: {row['code']}"


def entries(root):
    return re.findall(r'CoveredThing\{"([^"]*)"', (root / "lib/check/covered.cpp").read_text())


def edits(row):
    return [row, *row.get("also", [])]


def wrong(root, rows, reasons):
    """What is wrong with the rows."""
    out = [f"{', '.join(row['entries'])}: {at}" for row in rows for edit in edits(row)
           if isinstance(at := place((root / "lib/check" / edit["file"]).read_text(), edit), str)]
    named = [e for row in rows for e in row["entries"]] + list(reasons)
    known = entries(root)
    out += [f"'{e}' has no row, and no reason" for e in known if e not in named]
    out += [f"'{e}' is not an entry" for e in named if e not in known]
    return out + [f"'{e}' occurs twice" for e in set(named) if named.count(e) > 1]


def build(root, out, rows):
    """explore-check with a choice for each row, by its number in SDMA_MUTANT."""
    work = out / "mutants"
    shutil.rmtree(work, ignore_errors=True)
    (work / "lib").mkdir(parents=True)
    for folder in (root / "lib").iterdir():
        if folder.name != "check":
            (work / "lib" / folder.name).symlink_to(folder)
    shutil.copytree(root / "lib/check", work / "lib/check")
    (work / "lib/check/choice.hpp").write_text(CHOICE)
    by_place = {}
    for number, row in enumerate(rows):
        for edit in edits(row):
            text = (root / "lib/check" / edit["file"]).read_text()
            by_place.setdefault((edit["file"], place(text, edit)), []).append((number, edit["instead"]))
    for (file, (begin, end)), changes in sorted(by_place.items(), reverse=True):
        path = work / "lib/check" / file
        text = path.read_text()
        code = f"({text[begin:end]})"
        for number, instead in changes:
            code = f"(sdma_mutant() == {number} ? ({instead}) : {code})"
        path.write_text(text[:begin] + code + text[end:])
    sources = sorted((work / "lib/check").glob("*.cpp"))
    unit = work / "check.cpp"
    unit.write_text("".join(f'#include "{s}"\n' for s in sources))
    program = work / "explore-check"
    subprocess.run(["g++", "-std=c++20", "-O1", "-I", root / "include", "-include", work / "lib/check/choice.hpp",
                    unit, root / "tests/explore/main.cpp", out / "tests/explore/libexplore-model.a", out / "lib/libsdma-runtime.a",
                    "-Wl,-z,muldefs", "-lfmt", "-pthread", "-o", program], check=True)
    return program


def run(root, out, most, wanted):
    rows, _ = load(root)
    program = build(root, out, rows)
    missed = 0
    print("| entry | the rule, broken | a false proof after | seed |\n|---|---|---|---|")
    for number, row in enumerate(rows):
        for entry in row["entries"]:
            if wanted and entry not in wanted:
                continue
            found = subprocess.run([program, f"--family={row['families']}", f"--schedules={most}", "--mutations=3", "--seed=1000",
                                    f"--first={row.get('as', entry)}"], env=os.environ | {"SDMA_MUTANT": str(number)}, capture_output=True, text=True)
            said = re.search(r"false proof after (\d+) schedules: family (\w+), seed (\d+)", found.stdout)
            missed += said is None
            after = f"{said[1]} schedules, {said[2]} | {said[3]}" if said else f"not in {most} | "
            print(f"| `{entry}` | {row['what']} | {after} |", flush=True)
    return bool(missed)


def main(arguments):
    options = [a for a in arguments if a.startswith("--most=")]
    command, root, *rest = [a for a in arguments if a not in options]
    root = pathlib.Path(root).resolve()
    complaints = wrong(root, *load(root))
    print(*complaints, sep="\n", end="\n" if complaints else "")
    if complaints or command == "check":
        return bool(complaints)
    return run(root, pathlib.Path(rest[0]).resolve(), int(options[0][7:]) if options else 200000, rest[1:])


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
