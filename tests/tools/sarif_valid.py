#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Logs in SARIF, on every kind of finding of the museum and the examples and on every failure, pass the SARIF multitool.

  sarif_valid.py SOURCE SDMA FOLDER SITE_URL       FOLDER: where npm puts the multitool; SITE_URL: the option of the build, or empty

It runs the rules of the standard and those of GitHub, and permits no error and no warning. Without the option site_url, a log names no
address of this project, which is one warning of each log. Skipped, with the reason, where npm cannot fetch the package.
"""
import json
import os
import pathlib
import re
import stat
import subprocess
import sys
import tempfile
import tomllib

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
import npm  # noqa: E402
from msccl_programs import allgather_pairs, allreduce_ring  # noqa: E402

PACKAGE, VERSION = "@microsoft/sarif-multitool-linux", "5.7.0"
LEAST = 25  # rules that occur in the logs
NO_ADDRESS = re.compile(r"warning SARIF2005: .*'informationUri'")
# Texts and options whose findings no exhibit has.
UNMET = "sdma 1\ngpus 1\nhost main\nend\nexpect finding race\n"
FAILURES = {
    "unmet": ["unmet.sdma"], "unreadable": ["wrong.sdma"], "missing": ["no.sdma"], "missing_among_others": ["unmet.sdma", "no"],
    "absolute": ["/no/such file#1.sdma"], "option": ["--no-such", "unmet.sdma"], "value": ["--gpus=x", "unmet.sdma"], "usage": ["--sweep", "N=1..2", "unmet.sdma"],
    "topology": ["--topology=no.json", "unmet.sdma"], "odd_name": ["a b/ü #1.sdma"], "not_a_ring": ["nothing.bin"],
    "msccl": ["unmatched.xml"], "msccl_sums": ["sums.xml"],
}  # fmt: skip


def multitool(folder):
    """Its program; or why it is not there."""
    package, why = npm.package(folder, PACKAGE, VERSION)
    if package is None:
        return None, why
    program = package / "Sarif.Multitool"
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    return program, ""


def calls(source, sdma, place):
    """{name: words of sdma check}; the files that they name lie in `place`."""
    pathlib.Path(place, "unmet.sdma").write_text(UNMET)
    pathlib.Path(place, "wrong.sdma").write_text("gpus 1\n")
    pathlib.Path(place, "nothing.bin").write_bytes(b"\x01\x02\x03")
    odd = pathlib.Path(place, "a b/ü #1.sdma")
    odd.parent.mkdir()
    odd.write_text("sdma 1\nnonsense\n")
    unmatched, sums = allgather_pairs(), allreduce_ring()
    unmatched.gpus[1].blocks[0].steps.clear()
    for name, program in (("unmatched", unmatched), ("sums", sums)):
        pathlib.Path(place, f"{name}.xml").write_text(program.xml())
    found = dict(FAILURES)
    table = tomllib.loads((source / "tests/museum/museum.toml").read_text(encoding="utf-8"))
    options = {exhibit["name"]: exhibit.get("options", []) for room in table["room"] for exhibit in room["exhibit"]}
    exhibits = source / "tests/museum/exhibits"
    for file in exhibits.glob("*.json"):
        pathlib.Path(place, file.name).write_bytes(file.read_bytes())
    for file in sorted([*exhibits.glob("*.sdma"), *exhibits.glob("*.packets"), *source.glob("examples/schedules/*.sdma")]):
        pathlib.Path(place, file.name).write_bytes(file.read_bytes())
        name, given = file.name, options.get(file.name.split(".")[0], []) if file.parent == exhibits else []
        if file.suffix == ".packets":
            name = file.stem + ".bin"
            made = subprocess.run([sdma, "as", file.name, "-o", name, *[o for o in given if o.startswith(("--gfx", "--sdma"))]], cwd=place, capture_output=True)
            if made.returncode != 0:
                continue
        found[name] = [*given, name]
    return found


def main(source, sdma, folder, url):
    source, sdma = pathlib.Path(source), pathlib.Path(sdma).resolve()
    program, why = multitool(folder)
    if program is None:
        print(f"skipped: {why}")
        return 77
    wrong, rules = [], set()
    with tempfile.TemporaryDirectory() as place:
        logs = pathlib.Path(place, "logs")
        logs.mkdir()
        for name, words in calls(source, sdma, place).items():
            done = subprocess.run([sdma, "check", "--sarif", *words], cwd=place, capture_output=True, text=True, timeout=300)
            try:
                run = json.loads(done.stdout)["runs"][0]
            except ValueError:
                wrong.append(f"{name}: no log, exit code {done.returncode}: {done.stderr}")
                continue
            [invocation] = run["invocations"]
            if invocation["exitCode"] != done.returncode or invocation["executionSuccessful"] != (done.returncode in (0, 1, 4)):
                wrong.append(f"{name}: exit code {done.returncode}, and the log says {invocation}")
            errors = [r for r in run["results"] if r["level"] == "error"] + [n for n in invocation.get("toolExecutionNotifications", []) if n["level"] == "error"]
            if done.returncode in (1, 2, 3) and not errors:
                wrong.append(f"{name}: exit code {done.returncode}, and the log has no error")
            rules |= {r["ruleId"] for r in run["results"]}
            (logs / f"{re.sub(r'[^A-Za-z0-9_.]', '_', name)}.sarif").write_text(done.stdout, encoding="utf-8")
        count = len(list(logs.iterdir()))
        command = [program, "validate", f"{logs}/*.sarif", "--rule-kind", "Sarif;Ghas"]
        done = subprocess.run(command, env=os.environ | {"DOTNET_SYSTEM_GLOBALIZATION_INVARIANT": "1"}, capture_output=True, text=True, timeout=300)
        said = [line for line in (done.stdout + done.stderr).splitlines() if re.search(r"\b(error|warning)\b [A-Z]+\d+:", line)]
        addresses = [line for line in said if NO_ADDRESS.search(line)]
        wrong += [line for line in said if url or not NO_ADDRESS.search(line)]
        if f"{count} files scanned" not in done.stdout:
            wrong.append(f"the multitool has not read {count} logs: {done.stdout[-500:]}{done.stderr[-500:]}")
        if not url and len(addresses) != count:
            wrong.append(f"{len(addresses)} of {count} logs have no address, and none should have one")
    if len(rules) < LEAST:
        wrong.append(f"only {len(rules)} rules occur: {sorted(rules)}")
    print(*wrong[:60], sep="\n")
    print(f"{count} logs with {len(rules)} rules, {len(wrong)} complaints")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
