#!/usr/bin/env python3
"""Tests of a program, sdma or another: files with a command and what it must say.

  run.py TOOL CASES...            runs the cases (files, or folders of *.test); exit code 1 and a diff for each that differs
  run.py --bless TOOL CASES...    writes down what the program says now

A case is `# RUN: command` (a shell command; the tool goes by its file's name; `# ENV: NAME=value` before it sets a
variable), comments, optionally `# STDIN:` and its text, then `--- stdout`, `--- stderr` and `--- exit N`. The command runs
in an empty folder, where the case's `# FILE: name` sections lie. Output that is no UTF-8 has \\xNN.
"""
import difflib
import os
import pathlib
import subprocess
import sys
import tempfile

BEGIN = "--- stdout\n"


def split(text):
    """The part that people write, and what is expected behind it."""
    head, mark, tail = text.partition(BEGIN)
    return head, mark + tail


def parse(head):
    run, env, files, name = None, {}, {}, None
    for line in head.splitlines(keepends=True):
        if line.startswith("# RUN: "):
            run = line[7:].strip()
        elif line.startswith("# ENV: "):
            key, _, value = line[7:].strip().partition("=")
            env[key] = value
        elif line.startswith("# STDIN:"):
            name = None
            files[name] = ""
        elif line.startswith("# FILE: "):
            name = line[8:].strip()
            files[name] = ""
        elif name in files:
            files[name] += line
    if run is None:
        sys.exit("a case without '# RUN: '")
    return run, env, files


def outcome(tool, head):
    run, env, files = parse(head)
    with tempfile.TemporaryDirectory() as folder:
        for name, text in files.items():
            if name is not None:
                pathlib.Path(folder, name).write_text(text, encoding="utf-8")
        os.symlink(pathlib.Path(tool).resolve(), pathlib.Path(folder, pathlib.Path(tool).name))
        done = subprocess.run(
            ["bash", "-c", run], cwd=folder, capture_output=True, input=files.get(None, "").encode(), timeout=60,
            env={"PATH": folder + ":/usr/bin:/bin", "LC_ALL": "C", "TERM": "dumb", **passed_on(), **env})
    out, err = (text.decode("utf-8", "backslashreplace") for text in (done.stdout, done.stderr))
    return f"--- stdout\n{ended(out)}--- stderr\n{ended(err)}--- exit {done.returncode}\n"


def passed_on():
    """Where shared libraries lie, and what sanitizers are told."""
    return {k: v for k, v in os.environ.items() if k.startswith("LD_") or k.endswith("SAN_OPTIONS")}


def ended(text):
    return text if not text or text.endswith("\n") else text + "\n(no newline at the end)\n"


def main(arguments):
    bless = arguments[:1] == ["--bless"]
    tool, *paths = arguments[bless:]
    cases = []
    for path in map(pathlib.Path, paths):
        cases += sorted(path.rglob("*.test")) if path.is_dir() else [path]
    if not cases:
        sys.exit("no cases")
    failed = 0
    for case in cases:
        text = case.read_text(encoding="utf-8")
        head, expected = split(text)
        actual = outcome(tool, head)
        if bless:
            case.write_text(head + actual, encoding="utf-8")
        elif actual != expected:
            failed += 1
            sys.stdout.writelines(difflib.unified_diff(expected.splitlines(True), actual.splitlines(True),
                                                       str(case), "what it says now"))
    print(f"{len(cases) - failed} of {len(cases)} cases " + ("blessed" if bless else "passed"))
    return failed > 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
