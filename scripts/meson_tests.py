#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Information from Meson about its tests, for scripts/test.

  meson_tests.py count BUILD             passed, failed and skipped of the last `meson test`: three numbers
  meson_tests.py summary BUILD           the same for people, with the names of skipped tests
  meson_tests.py times BUILD STEP        the time of each test: seconds, step and name, one line per test
  meson_tests.py suites BUILD SUITE...   fails if a test belongs to none of these suites
  meson_tests.py targets BUILD SUITE...  the targets that the tests of these suites need, one per line; !SUITE: but not those of SUITE
"""
import json
import os
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
    elif verb == "targets" and suites:
        print("\n".join(targets(build, suites)))
    else:
        sys.exit(__doc__)


if __name__ == "__main__":
    main(sys.argv[1:])
