#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The column "seen on hardware" of docs/ordering.md is what the files of share/contacts say.

  page.py PAGE FOLDER SDMA        checks the page, and that this program and SDMA read a made-up file alike
  page.py --bless PAGE FOLDER     fills the column

A cell names each product and what its programs for the rule have seen: refuted, weaker, or as assumed.
"""
import difflib
import io
import json
import pathlib
import re
import subprocess
import sys
import tarfile
import tempfile

# Worst first; the word that a cell has.
STATES = {"refuted": "**refuted**", "weaker": "weaker", "confirmed": "as assumed", "open": "as assumed"}
ROW = re.compile(r"^(\| ([QXHCE]\d+) \|[^|]*\|[^|]*\|)[^|]*\|$", re.M)


def load(path):
    with tarfile.open(path) as archive:
        answer = json.load(archive.extractfile("answer.json"))
    system, node = (answer["there"][i] for i in (0, -1))
    if answer["device"] not in ("kfd", "rocr") or system["emulated"]:
        sys.exit(f"{path}: error: it was not made on AMD hardware\n  hint: use --device=kfd or rocr, without sdma emulate")
    product = node["gpus"][0]["name"] if node.get("gpus") else node["topology"]["name"]
    return product, answer


def cells(answers):
    """What each rule's cell has."""
    found = {}
    for product, answer in answers:
        for result in answer.get("order", []):
            if result["state"] in STATES:
                found.setdefault(result["rule"], {}).setdefault(product, []).append(result["state"])
    worst = lambda states: STATES[min(states, key=list(STATES).index)]
    return {rule: "; ".join(f"{p}: {worst(s)}" for p, s in sorted(of.items())) for rule, of in found.items()}


def fill(text, answers):
    seen = cells(answers)
    unknown = set(seen) - {m[2] for m in ROW.finditer(text)}
    if unknown:
        sys.exit(f"the page has no rule {', '.join(sorted(unknown))}")
    return ROW.sub(lambda m: m[1] + (f" {seen[m[2]]} |" if m[2] in seen else " |"), text)


def made_up(path, **other):
    order = [("Q3", "fence-as-completion", "refuted"), ("Q3", "fence-after-write", "confirmed"), ("Q5", "copy-after-fence", "open")]
    answer = {"form": "sdma contact 1", "device": "kfd", "ended": "complete",
              "there": [{"id": "system", "state": "passed", "emulated": False},
                        {"id": "node", "state": "passed", "gpus": [{"name": "MI300X"}]}],
              "order": [{"rule": r, "id": i, "state": s, "runs": 1, "outcomes": {"a": 1}} for r, i, s in order]}  # fmt: skip
    text = json.dumps(answer | other).encode()
    with tarfile.open(path, "w:gz") as archive:
        info = tarfile.TarInfo("answer.json")
        info.size = len(text)
        archive.addfile(info, io.BytesIO(text))
    return path


def check_reading(text, sdma):
    with tempfile.TemporaryDirectory() as folder:
        path = made_up(pathlib.Path(folder) / "a.tar.gz")
        done = subprocess.run([sdma, "contact", "--read", path, "--json"], stdout=subprocess.PIPE, check=False)
        unseen, rules = json.loads(done.stdout)["never_seen"], [m[2] for m in ROW.finditer(text)]
        assert unseen == [r for r in rules if r not in ("Q3", "Q5")], f"the rules of {sdma} and of the page differ: {unseen}"
        filled = fill(text, [load(path)])
        assert "| MI300X: **refuted** |\n| Q4 " in filled, "Q3 is refuted, and the page does not say so"
        assert "| U | MI300X: as assumed |\n| Q6 " in filled, "Q5 is as assumed, and the page does not say so"
        assert fill(filled, []) == text, "the column is not emptied"
        for other in ({"device": "soft"}, {"there": [{"emulated": True}, {}]}):
            try:
                load(made_up(path, **other))
            except SystemExit:
                continue
            raise AssertionError(f"taken for hardware: {other}")


def main(words):
    bless = "--bless" in words
    page, folder, *sdma = [w for w in words if w != "--bless"]
    page = pathlib.Path(page)
    text = page.read_text(encoding="utf-8")
    right = fill(text, [load(p) for p in sorted(pathlib.Path(folder).glob("*.tar.gz"))])
    if bless:
        page.write_text(right, encoding="utf-8")
        return 0
    check_reading(re.sub(ROW, r"\1 |", text), sdma[0])
    sys.stdout.writelines(difflib.unified_diff(text.splitlines(True), right.splitlines(True), str(page), "share/contacts"))
    return text != right


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
