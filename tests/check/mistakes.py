#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Follows the hints of `sdma check` from mistakes that people make to proofs, and runs what is proved.

  mistakes.py SDMA FOLDER [--seeds=N] [FILE...]

Each .sdma file of FOLDER has one mistake, which its first line names. A chain takes the edits of the first finding that
has some, makes them, and checks again, until the schedule is proved or no finding has edits. The schedule after each link
runs in three orders, with N seeds. Fails if fewer than 80 % of the chains have one link, if a hint says what is not so, or
if a run ends with wrong bytes or not at all, although `check` has no error.
"""
import json
import pathlib
import subprocess
import sys
import tempfile

MOST_LINKS = 8
ORDERS = ("strict", "rocr", "adversarial")


def checked(sdma, path):
    """The findings of a schedule, errors first, and the answer."""
    run = subprocess.run([sdma, "check", "--json", "--max-findings=0", path], capture_output=True, text=True)
    lines = [json.loads(line) for line in run.stdout.splitlines()]
    if not lines or "verdict" not in lines[-1] or lines[-1]["verdict"] == "unread":
        sys.exit(f"{path}: {run.stdout}{run.stderr}")
    return lines[:-1], lines[-1]


def edited(text, edits):
    """The text after the edits, all of which count lines as they are before."""
    lines = text.splitlines()
    for e in reversed(edits):
        at = e["line"] - 1
        if e["do"] == "insert" and e["text"] in lines[max(at - 1, 0) : at + 1]:
            sys.exit(f"a hint repeats a line that is there: {e}")
        lines[at : at + (e["do"] != "insert")] = [] if e["do"] == "remove" else [e["text"]]
    return "\n".join(lines) + "\n"


def runs(sdma, path, seeds, proved):
    """How often a schedule has run, and what was wrong. One wrong run is enough to know one that is not proved."""
    done, wrong = 0, []
    for order in ORDERS:
        for seed in range(seeds):
            if wrong and not proved:
                return done, wrong
            run = subprocess.run([sdma, "run", f"--order={order}", f"--seed={seed}", path], capture_output=True, text=True)
            done += 1
            if run.returncode:
                wrong.append(f"{order} order, seed {seed}: {run.stderr}")
    return done, wrong


def chain(sdma, source, folder, seeds, counts):
    """Follows the hints from a file. Returns the number of links to a proof, None without one, and complaints."""
    path = folder / source.name
    path.write_text(source.read_text())
    findings, answer = checked(sdma, path)
    for link in range(1, MOST_LINKS + 1):
        hint = next((f for f in findings if "remaining" in f), None)
        if hint is None:
            return None, []
        path.write_text(edited(path.read_text(), hint["edits"]))
        findings, answer = checked(sdma, path)
        left = answer["errors"] + answer["warnings"]
        if left != hint["remaining"]:
            return None, [f"{source.name}: '{hint['hint']}', but {left} remain"]
        proved = answer["verdict"] == "proved"
        done, wrong = runs(sdma, path, seeds, proved)
        counts["links"] += 1
        counts["runs"] += done
        counts["refuted links with a wrong run"] += bool(wrong) and answer["verdict"] == "refuted"
        if wrong and answer["verdict"] != "refuted":
            return None, [f"{source.name}: {answer['verdict']} after {link} links, and {w}" for w in wrong]
        if proved:
            return link, []
    return None, []


def main(arguments):
    seeds = max((int(a[8:]) for a in arguments if a.startswith("--seeds=")), default=1)
    sdma, folder, *names = [a for a in arguments if not a.startswith("--seeds=")]
    files = sorted(pathlib.Path(folder).glob("*.sdma")) if not names else [pathlib.Path(folder) / name for name in names]
    first, complaints = 0, []
    counts = {"links": 0, "runs": 0, "refuted links with a wrong run": 0}
    with tempfile.TemporaryDirectory() as work:
        for source in files:
            links, wrong = chain(sdma, source, pathlib.Path(work), seeds, counts)
            print(f"{source.stem}: {'no proof' if links is None else f'proved after {links}'}")
            first += links == 1
            complaints += wrong
    print(f"the first hint proves {first} of {len(files)};", ", ".join(f"{n} {what}" for what, n in counts.items()))
    if first * 5 < len(files) * 4:
        complaints.append("that is less than 80 %")
    print(*complaints, sep="\n", file=sys.stderr)
    return bool(complaints)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
