#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Information from Meson about its tests, for scripts/test.

  meson_tests.py count BUILD             passed, failed and skipped of the last `meson test`: three numbers
  meson_tests.py summary BUILD           the same for people, with the names of skipped tests
  meson_tests.py times BUILD STEP        the time of each test: seconds, step and name, one line per test
  meson_tests.py suites BUILD SUITE...   fails if a test belongs to none of these suites
  meson_tests.py record BUILD TREE DIR   notes in BUILD which tests of DIR have passed in this state of the source tree
  meson_tests.py left BUILD TREE SUITE...  the tests of these suites that have not passed in this state of the tree, one per line
  meson_tests.py targets BUILD SUITE...  the targets that the tests of these suites need, one per line; !SUITE: but not those of SUITE
"""
import hashlib
import json
import os
import pathlib
import subprocess
import sys

PASSED = {"OK", "EXPECTEDFAIL"}
SKIPPED = {"SKIP", "IGNORED"}


def log_of(build):
    """Meson's log of each test. If there is no log or it is empty, no test ran."""
    path = os.path.join(build, "meson-logs", "testlog.json")
    if not os.path.exists(path):
        return []
    with open(path, encoding="utf-8") as log:
        return [json.loads(line) for line in log]


def results(build):
    """(name, result) of each test."""
    return [(test["name"], test["result"]) for test in log_of(build)]


def counts(tests):
    passed = sum(result in PASSED for _, result in tests)
    skipped = sum(result in SKIPPED for _, result in tests)
    # Any unknown result of a newer Meson counts as a failure.
    return passed, len(tests) - passed - skipped, skipped


def introspect(build, what):
    out = subprocess.run(["meson", "introspect", what, build], check=True, capture_output=True, text=True)
    return json.loads(out.stdout)


def suites_of(test):
    # Meson writes suites as "project:suite".
    return {suite.split(":")[-1] for suite in test["suite"]}


def unlisted(build, suites):
    return [f"{test['name']}: none of its suites is listed: {', '.join(sorted(suites_of(test)))}"
            for test in introspect(build, "--tests") if not suites_of(test) & set(suites)]  # fmt: skip


def state(tree):
    """A hash of the names and contents of all files of a source tree. Build folders and hidden ones do not count."""
    total = hashlib.sha256()
    for folder, folders, names in os.walk(tree):
        folders[:] = sorted(f for f in folders if not f.startswith((".", "build", "__pycache__")))
        for name in sorted(names):
            path = pathlib.Path(folder, name)
            text = path.read_bytes() if path.is_file() else b""
            total.update(f"{path.relative_to(tree)} {len(text)}\n".encode() + text)
    return total.hexdigest()


def passed_in(build, now):
    """The tests that have passed in this state of the tree, by their names in the log."""
    path = pathlib.Path(build, "passed.json")
    kept = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    return set(kept["passed"]) if kept.get("state") == now else set()


def logged(test):
    """A test's name in the log: PROJECT:SUITE+SUITE / NAME."""
    suites = [suite.split(":")[-1] for suite in test["suite"]]
    return f"{test['suite'][0].split(':')[0]}:{'+'.join(suites)} / {test['name']}"


def record(build, tree, dir):
    now = state(tree)
    passed = passed_in(build, now) | {test["name"] for test in log_of(dir) if test["result"] in PASSED}
    pathlib.Path(build, "passed.json").write_text(json.dumps({"state": now, "passed": sorted(passed)}), encoding="utf-8")


def left(build, tree, suites):
    passed = passed_in(build, state(tree))
    return [test["name"] for test in introspect(build, "--tests") if suites_of(test) & set(suites) and logged(test) not in passed]


def targets(build, suites):
    without = {suite[1:] for suite in suites if suite.startswith("!")}
    wanted, tests = set(), [test for test in introspect(build, "--tests") if suites_of(test) & set(suites) and not suites_of(test) & without]
    if not tests:
        sys.exit(f"no test in {', '.join(suites)}")
    for test in tests:
        wanted |= set(test["depends"])
    files = []
    for target in introspect(build, "--targets"):
        if target["id"] in wanted:
            files += [os.path.relpath(name, build) for name in target["filename"]]
    return sorted(files)


def main(arguments):
    if len(arguments) < 2:
        sys.exit(__doc__)
    verb, build, *suites = arguments
    build = os.path.abspath(build)
    if verb == "count":
        print(*counts(results(build)))
    elif verb == "summary":
        tests = results(build)
        passed, failed, skipped = counts(tests)
        names = ", ".join(name for name, result in tests if result in SKIPPED)
        print(f"{passed} passed, {failed} failed" + (f", {skipped} skipped: {names}" if skipped else ""), end="")
    elif verb == "times" and len(suites) == 1:
        for test in log_of(build):
            print(f"{test['duration']:7.1f} s  {suites[0]}: {test['name']}")
    elif verb == "suites" and suites:
        if complaints := unlisted(build, suites):
            sys.exit("\n".join(complaints))
    elif verb == "record" and len(suites) == 2:
        record(build, *suites)
    elif verb == "left" and len(suites) > 1:
        for name in left(build, suites[0], suites[1:]):
            print(name)
    elif verb == "targets" and suites:
        print("\n".join(targets(build, suites)))
    else:
        sys.exit(__doc__)


if __name__ == "__main__":
    main(sys.argv[1:])
