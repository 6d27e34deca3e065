#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""What scripts/as_nobody gives a command: another user, a copy of the build in its place, little else. Needs root; without, its refusal.

  as_nobody.py SOURCE
"""
import os
import pathlib
import subprocess
import sys
import tempfile

SEEN = """
id -un; umask; ulimit -n; cat file; echo more >own; ls -A /usr/local "$HOME" "$TMPDIR"; echo "$LANG $PATH"
touch ../mine 2>/dev/null && echo 'the tree can be written'
exit 7
"""


def check(what, found, expected):
    if found != expected:
        sys.exit(f"{what}: {found!r}, expected {expected!r}")


def main(source):
    script = pathlib.Path(source, "scripts/as_nobody").resolve()
    with tempfile.TemporaryDirectory() as folder:
        # A tree below a folder that is closed to others.
        tree = pathlib.Path(folder, "closed to others", "a tree")
        for name, text in {"build": "the build", "build-nobody": "the copy"}.items():
            (tree / name).mkdir(parents=True)
            (tree / name / "file").write_text(text + "\n")
        build, copy = tree / "build", tree / "build-nobody"
        tree.parent.chmod(0o700)
        possible = subprocess.run([script, "--check", build], capture_output=True, text=True)
        if possible.returncode:
            check("exit code of --check", possible.returncode, 1)
            check("what refuses", possible.stderr.startswith("as_nobody: "), True)
            if os.geteuid() == 0:
                print(f"skipped: {possible.stderr}")
                return 77
            return 0
        subprocess.run(["chown", "-R", "nobody:nogroup", copy], check=True)
        before = set(os.listdir("/tmp"))
        done = subprocess.run([script, build, copy, "sh", "-c", SEEN], capture_output=True, text=True)
        check("exit code", done.returncode, 7)
        lines = [line for line in done.stdout.split("\n") if line and not line.endswith(":")]
        check("what it sees", lines, ["nobody", "0077", "1024", "the copy", "C /usr/bin:/bin"])
        check("the build", sorted(os.listdir(build)), ["file"])
        check("the copy", sorted(os.listdir(copy)), ["file", "own"])
        left = {name for name in set(os.listdir("/tmp")) - before if name.startswith("sdma-nobody")}
        check("left in /tmp", left, set())
    return 0


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    sys.exit(main(sys.argv[1]))
