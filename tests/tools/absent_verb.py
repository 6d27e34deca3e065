#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The playground's program, built natively: a verb that it lacks says so, whatever follows it, and the others are those of the tool.

  absent_verb.py PAGE_PROGRAM SDMA
"""
import json
import pathlib
import re
import subprocess
import sys
import tempfile

PRESENT = ("dis", "as", "check", "fmt", "simulate")
WORDS = ([], ["x"], ["schedule.sdma", "another"], ["--json"], ["--json", "x"], ["x"] * 500)


def run(program, *words, folder=None):
    done = subprocess.run([program, *words], cwd=folder, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60)
    return done.returncode, done.stdout, done.stderr


def main(page, native):
    page, native = (str(pathlib.Path(p).resolve()) for p in (page, native))
    wrong = []

    def need(true, what):
        if not true:
            wrong.append(what)

    code, listed, _ = run(page, "--help")
    need(code == 0 and listed == run(native, "--help")[1], "--help differs from the tool's")
    verbs = re.findall(r"^  ([a-z]+) ", listed.partition("Subcommands:\n")[2].partition("Exit codes:")[0], re.M)
    need(len(verbs) > len(PRESENT), f"--help lists {len(verbs)} subcommands")
    for verb in verbs:
        if verb in PRESENT:
            need(run(page, verb, "--help") == run(native, verb, "--help"), f"{verb} --help differs from the tool's")
            continue
        for words in WORDS:
            code, out, err = run(page, verb, *words)
            text = json.loads(err)["message"] if "--json" in words else err.split("\n")[0]
            need(code == 2 and not out and text.endswith(f"the playground has no sdma {verb}"), f"sdma {verb} {' '.join(words)[:30]}: {code}, {err[:200]}")
    with tempfile.TemporaryDirectory() as folder:
        packed = pathlib.Path(folder, "ring.bin.gz")
        packed.write_bytes(bytes.fromhex("1f8b0800000000000003") + bytes(10))
        code, _, err = run(page, "dis", packed.name, folder=folder)
        need(code == 3 and "does not unpack" in err, f"a packed file: {code}, {err[:200]}")
        text = "sdma 1\ngpus 1\nbuffer gpu0.a bytes=4K\nhost main\nend\n"
        pathlib.Path(folder, "a.sdma").write_text(text)
        for words in (["check", "a.sdma"], ["simulate", "a.sdma"], ["fmt", "--flat", "a.sdma"]):
            need(run(page, *words, folder=folder) == run(native, *words, folder=folder), f"sdma {' '.join(words)} differs from the tool's")
    print(*wrong, sep="\n")
    print(f"{len(verbs)} subcommands, {len(wrong)} complaints")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
