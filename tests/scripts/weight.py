#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""scripts/weight counts code, and says what a commit had: in a tree of its own.

  weight.py SCRIPT
"""
import pathlib
import shutil
import subprocess
import sys
import tempfile

OWN = {"GIT_AUTHOR_NAME": "a", "GIT_AUTHOR_EMAIL": "a@example.org", "GIT_COMMITTER_NAME": "a", "GIT_COMMITTER_EMAIL": "a@example.org",
       "GIT_CONFIG_GLOBAL": "/dev/null", "PATH": "/usr/local/bin:/usr/bin:/bin"}  # fmt: skip
BEFORE = {"include/sdma/core/a.hpp": "// A comment.\n\nint a;\n", "lib/core/a.cpp": "int a = 1;\nint b = 2;\n", "share/a.cpp": "int no;\n"}
AFTER = {"lib/core/a.cpp": "int a = 1;\n", "tools/verbs/a.cpp": "int a;\nint b;\nint c;\n", "lib/core/table.json": '{\n"a": 1\n}\n'}


def main(script):
    with tempfile.TemporaryDirectory() as folder:
        tree = pathlib.Path(folder)
        (tree / "scripts").mkdir()
        weight = shutil.copy(script, tree / "scripts")

        def run(*command, code=0):
            ran = subprocess.run(command, cwd=tree, env=OWN, text=True, capture_output=True)
            if ran.returncode != code:
                sys.exit(f"{command}: exit code {ran.returncode}, not {code}: {ran.stderr}")
            return ran.stdout + ran.stderr

        def commit(files):
            for name, text in files.items():
                (tree / name).parent.mkdir(parents=True, exist_ok=True)
                (tree / name).write_text(text)
            run("git", "add", "-A")
            run("git", "commit", "-q", "-m", "a")

        run("git", "init", "-q")
        commit(BEFORE)
        commit(AFTER)
        rows = [line.split() for line in run(weight, "HEAD~1").splitlines() if line]
        expected = [["include/sdma/core", "1", "1", "+0"], ["lib/core", "1", "2", "-1"], ["tools/verbs", "3", "0", "+3"], ["=", "all", "5", "3", "+2"]]
        missing = [row for row in expected if row not in rows]
        if missing or ["=", "all", "5"] not in [line.split() for line in run(weight).splitlines()]:
            sys.exit(f"missing: {missing} in {rows}")
        if "there is no commit 'x'" not in run(weight, "x", code=2) or "unknown argument: --x" not in run(weight, "--x", code=2):
            sys.exit("a wrong argument is not named")


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
