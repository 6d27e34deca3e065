#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The one driver of command-line tests: files with a command and what it must print.

  cases.py [--bless|--without-needs] PROGRAM... CASES...

CASES are *.test files, or folders of them; they run in parallel, each in a folder of its own, where each PROGRAM (or another
file) lies under its own name. The exit code is 1, with a diff for each case that differs. With --bless each file gets what
its command prints now. --without-needs runs the cases without a line NEEDS, and no others; they find the commands of COMMANDS alone, so a case that
only this machine can run fails here, too.

A case has these lines, in any order, and ends with `--- stdout`, `--- stderr` and `--- exit N`:
  # RUN: command     for bash; several such lines are one script
  # ENV: NAME=value  sets a variable
  # FILE: name       the lines that follow are a file in the case's folder
  # STDIN:           the lines that follow are the command's input
  # NEEDS: program   skips the case where there is no such program; the driver then exits with 77, which Meson reports.
                     With arguments: where this command fails, such as one that takes rights
and comments. Output that is not UTF-8 has \\xNN.
"""
import concurrent.futures
import difflib
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile

BEGIN = "--- stdout\n"
SECONDS = 120  # for one case
# What a bare case may call without naming it in NEEDS: what every Debian has that builds this tree.
COMMANDS = """awk base64 basename bash cat chmod cmp comm cp cut date dd diff dirname echo env find getconf grep gunzip gzip head
id kill ldd ln ls mkdir mkfifo mktemp mv od paste printf ps python3 readlink realpath rm rmdir script sed seq
setpriv setsid sh sha256sum sleep sort split stat stty tac tail tar tee test timeout touch tr true truncate ulimit
uname uniq unshare wc xargs xz yes"""


def split(text):
    """The part that people write, and the output that they expect."""
    head, mark, tail = text.partition(BEGIN)
    return head, mark + tail


def parse(head):
    """The script, the variables, the files (standard input has the name None), and the programs that a case needs."""
    script, env, files, needs, name = "", {}, {}, [], ""
    for line in head.splitlines(keepends=True):
        if line.startswith("# RUN: "):
            script += line[7:]
        elif line.startswith("# ENV: "):
            key, _, value = line[7:].strip().partition("=")
            env[key] = value
        elif line.startswith("# NEEDS: "):
            needs.append(line[9:].strip())
        elif line.startswith("# STDIN:"):
            name = None
            files[name] = ""
        elif line.startswith("# FILE: "):
            name = line[8:].strip()
            files[name] = ""
        elif name in files:
            files[name] += line
    return script, env, files, needs


def present(need):
    """Is the program that a case needs there, and does its command, where one is given, succeed?"""
    program, *arguments = need.split()
    if not shutil.which(program):
        return False
    return not arguments or subprocess.run([program, *arguments], capture_output=True, timeout=SECONDS).returncode == 0


def link_commands(folder, names):
    """A folder for PATH with these programs, as far as they are there."""
    for name in names:
        if found := shutil.which(name):
            pathlib.Path(folder, name).symlink_to(found)


def outcome(programs, head, commands=""):
    """What the case prints, or None where a program that it needs is missing. `commands`: the folder with those of COMMANDS; "": all."""
    script, env, files, needs = parse(head)
    if not script:
        return "a case without '# RUN: '\n"
    if not all(map(present, needs)):
        return None
    with tempfile.TemporaryDirectory() as folder:
        for name, text in files.items():
            if name is not None:
                pathlib.Path(folder, name).write_text(text, encoding="utf-8")
        for program in programs:
            pathlib.Path(folder, program.name).symlink_to(program)
        if commands:
            link_commands(folder, {need.split()[0] for need in needs} - set(COMMANDS.split()))
        env = {"PATH": f"{folder}:{commands or '/usr/bin:/bin'}", "LC_ALL": "C", "TERM": "dumb", **passed_on(), **env}
        # In a session of its own: at a time-out what it has started must end, too.
        run = subprocess.Popen(["bash", "-c", script.strip()], cwd=folder, env=env, start_new_session=True,
                               stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)  # fmt: skip
        try:
            out, err = run.communicate(files.get(None, "").encode(), timeout=SECONDS)
        except subprocess.TimeoutExpired:
            os.killpg(run.pid, signal.SIGKILL)
            run.communicate()
            return f"still running after {SECONDS} seconds\n"
    out, err = (ended(text.decode("utf-8", "backslashreplace")) for text in (out, err))
    return f"{BEGIN}{out}--- stderr\n{err}--- exit {run.returncode}\n"


def passed_on():
    """Where shared libraries lie, and what sanitizers are told."""
    return {k: v for k, v in os.environ.items() if k.startswith("LD_") or k.endswith("SAN_OPTIONS")}


def ended(text):
    return text if not text or text.endswith("\n") else text + "\n(no newline at the end)\n"


def found_in(path):
    """The cases of a folder, or the one that is named."""
    return sorted(path.rglob("*.test")) if path.is_dir() else [path]


def run(programs, cases, bless=False, bare=False):
    """Runs the cases in parallel, prints a diff for each that differs, and returns the exit code."""
    heads, wanted = zip(*(split(case.read_text(encoding="utf-8")) for case in cases))
    with tempfile.TemporaryDirectory() as commands, concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        link_commands(commands, COMMANDS.split())
        found = list(pool.map(lambda head: outcome(programs, head, commands if bare else ""), heads))
    failed, skipped = 0, 0
    for case, head, expected, actual in zip(cases, heads, wanted, found):
        if actual is None:
            skipped += 1
            print(f"{case}: skipped: it needs {', '.join(parse(head)[3])}")
        elif bless and actual.startswith(BEGIN):
            case.write_text(head + actual, encoding="utf-8")
        elif actual != expected:
            failed += 1
            sys.stdout.writelines(difflib.unified_diff(expected.splitlines(True), actual.splitlines(True),
                                                       str(case), "what it prints now"))
    print(f"{len(cases) - failed - skipped} of {len(cases)} cases " + ("blessed" if bless else "passed"))
    return 1 if failed else 77 if skipped and not bless else 0


def main(arguments):
    bless, without_needs = arguments[:1] == ["--bless"], arguments[:1] == ["--without-needs"]
    programs, cases = [], []
    for path in map(pathlib.Path, arguments[bless or without_needs :]):
        if not path.exists():
            sys.exit(f"cases.py: {path}: there is no such file or folder")
        if path.is_dir() or path.suffix == ".test":
            cases += found_in(path)
        else:
            programs.append(path.resolve())
    if without_needs:
        cases = [case for case in cases if not parse(split(case.read_text(encoding="utf-8"))[0])[3]]
    if not cases or not programs:
        sys.exit(__doc__)
    return run(programs, cases, bless, bare=without_needs)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
