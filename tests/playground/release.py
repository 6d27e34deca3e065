#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""A release has the playground's page: release.py SOURCE PAGE."""
import pathlib
import re
import subprocess
import sys
import tempfile


def main(source, page):
    source, page = pathlib.Path(source), pathlib.Path(page)
    version = re.search(r"^ *version: '([0-9.]+)',$", (source / "meson.build").read_text(encoding="utf-8"), re.M)[1]
    named = set(re.findall(r"sdma-VERSION-playground\.html", (source / "README.md").read_text(encoding="utf-8")))
    with tempfile.TemporaryDirectory() as folder:
        command = [source / "scripts/release", "--worktree", "--source"]
        done = subprocess.run([*command, f"--playground={page}", folder], capture_output=True, text=True, check=True)
        made = pathlib.Path(folder, f"sdma-{version}-playground.html")
        wrong = [] if made.is_file() and made.read_bytes() == page.read_bytes() else [f"{made.name} is not the page"]
        wrong += [] if str(made) in done.stdout.splitlines() else [f"it is not named: {done.stdout}"]
        wrong += [] if named else ["README.md does not name the file"]
        refused = subprocess.run([*command, "--playground=none.html", folder], capture_output=True, text=True)
        wrong += [] if refused.returncode == 3 and "none.html is not a file" in refused.stderr else [f"exit code {refused.returncode}: {refused.stderr}"]
        left = sorted(p.name for p in pathlib.Path(folder).iterdir())
        wrong += [] if left == sorted((f"sdma-{version}.tar.xz", f"sdma-{version}-playground.html", "sdma.wrap")) else [f"the folder has {left}"]
    print(*wrong, sep="\n")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
