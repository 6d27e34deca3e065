#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""A page whose examples are commands: each must print what the page shows.

  page.py [--bless] PAGE SOURCE PROGRAM...

In a block of the page, a line that begins with `$ ` is a command for bash, and the lines up to the next command are what it prints, on
standard output and standard error. The commands of a page run in order in one empty folder, where PROGRAMs lie under their own names,
and `examples`, `include` and `tests` are those of SOURCE. A block with a title, ```sdma title="NAME", is a file of that folder, from
where it stands in the page. A time in ms before a bracket may differ from run to run: any number is right. Exit code 1, with a difference, if a command
prints something else; 77, which Meson reports, if the page uses jq and it is missing. With --bless, the page gets what its commands print
now.
"""
import difflib
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

SECONDS = 60  # for one command


BLOCK = re.compile(r'^```\n((?=\$ ).*?)^```\n|^```\w+ title="([\w.-]+)"\n(.*?)^```\n', flags=re.M | re.S)


def timeless(text):
    return re.sub(r"\b\d+(\.\d+)? ms\)", "# ms)", text)


def shell(command, folder, programs):
    """The process of a command that has ended, with both of its outputs in `stdout`. `programs`: the folder of ours."""
    env = {"PATH": f"{programs}:/usr/bin:/bin", "LC_ALL": "C", "TERM": "dumb"}
    return subprocess.run(["bash", "-c", command], cwd=folder, env=env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, timeout=SECONDS, text=True)  # fmt: skip


def run(command, folder):
    done = shell(command, folder, folder)
    return done.stdout if not done.stdout or done.stdout.endswith("\n") else done.stdout + "\n"


def now(text, source, programs):
    """The page with what its commands print now, and how many there are."""
    with tempfile.TemporaryDirectory() as folder:
        for program in programs:
            pathlib.Path(folder, program.name).symlink_to(program)
        for name in ("examples", "include", "tests"):
            pathlib.Path(folder, name).symlink_to(source / name)
        count = 0

        def block(match):
            nonlocal count
            if match[2]:
                pathlib.Path(folder, match[2]).write_text(match[3], encoding="utf-8")
                return match[0]
            commands = [line for line in match[1].splitlines() if line.startswith("$ ")]
            count += len(commands)
            printed = "```\n" + "".join(f"{line}\n{run(line[2:], folder)}" for line in commands) + "```\n"
            return match[0] if timeless(printed) == timeless(match[0]) else printed

        return BLOCK.sub(block, text), count


def main(arguments):
    bless = arguments[:1] == ["--bless"]
    page, source, *programs = (pathlib.Path(a).resolve() for a in arguments[bless:])
    text = page.read_text(encoding="utf-8")
    if re.search(r"\bjq\b", text) and not shutil.which("jq", path="/usr/bin:/bin"):
        print("skipped: there is no program jq")
        return 77
    current, count = now(text, source, programs)
    if bless:
        page.write_text(current, encoding="utf-8")
    elif current != text:
        sys.stdout.writelines(difflib.unified_diff(text.splitlines(True), current.splitlines(True), str(page), "what it prints now"))
        return 1
    print(f"{count} commands")
    return 0 if count else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
