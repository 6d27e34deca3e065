#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""What scripts/test and scripts/demo say where packages are missing: one sentence, with the command to type.

  packages.py SOURCE

Runs copies of the scripts as an ordinary user, on a machine whose dpkg, apt-get and sudo are programs of this test.
"""
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

SOURCE = pathlib.Path(sys.argv.pop(1)).resolve() if len(sys.argv) > 1 else None
# What the scripts call of a machine, besides the programs that a test replaces.
ORDINARY = ("bash", "env", "dirname", "nproc", "grep", "sed", "sort", "tr", "mkdir", "tail", "flock", "fmt", "true")
INSTALLED = '#!/bin/sh\nfor p; do case $p in -*|*Package*) ;; *) echo "installed $p" ;; esac; done\n'
NOTHING = "#!/bin/sh\necho \"dpkg-query: no packages found\" >&2\nexit 1\n"
ASKS_NOBODY = '#!/bin/sh\n[ "$1" = -n ] && shift\nexec "$@"\n'
REFUSES = "#!/bin/sh\necho 'sudo: a password is required' >&2\nexit 1\n"
# apt-get update ends with 0 also if it has fetched nothing.
NO_NETWORK = "#!/bin/sh\necho 'Err:1 http://archive.invalid stable InRelease'\necho 'W: Some index files failed to download.'\n"
NO_PACKAGE = "#!/bin/sh\ncase \"$*\" in *install*) echo 'E: Unable to locate package catch2'; exit 100 ;; esac\necho 'Hit:1 http://archive.invalid stable InRelease'\n"


class Machine:
    """A folder with copies of the scripts, and one with all programs that they find."""

    def __init__(self, folder, programs):
        self.tree = pathlib.Path(folder, "tree")
        shutil.copytree(SOURCE / "scripts", self.tree / "scripts")
        self.path = pathlib.Path(folder, "bin")
        self.path.mkdir()
        for name in ORDINARY:
            (self.path / name).symlink_to(shutil.which(name))
        for name, text in programs.items():
            (self.path / name).write_text(text)
            (self.path / name).chmod(0o755)
        for place in (pathlib.Path(folder), *self.tree.rglob("*"), self.tree):
            place.chmod(0o755)
        # The scripts write their logs into the tree.
        (self.tree / "build-logs").mkdir()
        (self.tree / "build-logs").chmod(0o777)
        self.ordinary = []
        if os.geteuid() == 0:
            self.ordinary = [shutil.which("setpriv"), "--reuid=nobody", "--regid=nogroup", "--clear-groups"]

    def run(self, script, *words):
        done = subprocess.run([*self.ordinary, self.path / "bash", self.tree / "scripts" / script, *words], env={"PATH": str(self.path)},
                              stdin=subprocess.DEVNULL, capture_output=True, text=True)  # fmt: skip
        return done.returncode, done.stdout + done.stderr


class Packages(unittest.TestCase):
    def ends(self, programs, expected, *words, script="test"):
        """The script ends with 1 and one last line, which has the expected words. Returns all that it printed."""
        # Not below TMPDIR, which other users may not enter.
        with tempfile.TemporaryDirectory(dir="/tmp") as folder:
            code, text = Machine(folder, programs).run(script, *words)
        self.assertEqual(code, 1, text)
        last = text.rstrip().split("\n")[-1]
        self.assertTrue(last.startswith(f"{script}: "), text)
        for each in expected:
            self.assertIn(each, last)
        return text

    by_hand = "as root, type: apt-get update && apt-get install -y --no-install-recommends "

    def test_another_distribution(self):
        self.ends({}, ["not a Debian system", " catch2 ", " libfmt-dev ", "then type: scripts/test --no-install"])
        text = self.ends({}, ["not a Debian system", "then type: scripts/demo --no-install"], script="demo")
        self.assertNotIn("catch2", text)

    def test_no_sudo(self):
        self.ends({"dpkg-query": NOTHING}, ["there is no sudo", self.by_hand, " catch2 "])

    def test_a_program_of_another_package(self):
        self.ends({"dpkg-query": NOTHING}, [" chromium ", " npm"], "browser")
        text = self.ends({"dpkg-query": NOTHING, "npm": ASKS_NOBODY}, [" chromium "], "browser")
        self.assertNotIn("npm", text)

    def test_no_rights(self):
        self.ends({"dpkg-query": NOTHING, "sudo": REFUSES}, ["sudo does not let", self.by_hand])

    def test_no_network(self):
        text = self.ends({"dpkg-query": NOTHING, "sudo": ASKS_NOBODY, "apt-get": NO_NETWORK}, ["cannot be fetched (no network?)", self.by_hand])
        self.assertRegex(text, r"apt-get update +FAILED")

    def test_no_such_package(self):
        text = self.ends({"dpkg-query": NOTHING, "sudo": ASKS_NOBODY, "apt-get": NO_PACKAGE}, ["not every package can be installed", self.by_hand])
        self.assertRegex(text, r"apt-get update +ok")
        self.assertIn("Unable to locate package catch2", text)

    def test_nothing_is_installed_unasked(self):
        for words in (["--no-install"], ["--no-install", "--all"], ["--no-install", "packets"]):
            text = self.ends({"dpkg-query": NOTHING, "sudo": ASKS_NOBODY, "apt-get": NO_PACKAGE}, ["with --no-install", self.by_hand], *words)
            self.assertEqual(text.count("\n"), 1)
        self.ends({"dpkg-query": NOTHING}, ["with --no-install", self.by_hand], "--no-install", script="demo")

    def test_a_suite_needs_its_own_packages(self):
        programs = {"dpkg-query": NOTHING}
        first = self.ends(programs, [self.by_hand])
        for suite, package in {"packets": None, "kernels": "clang-22", "tools": "zsh", "browser": "chromium"}.items():
            text = self.ends(programs, [self.by_hand], suite)
            if package is None:
                self.assertEqual(text, first)
            for name in ("clang-22", "zsh", "chromium", "emscripten"):
                (self.assertIn if name == package else self.assertNotIn)(f" {name}", text)
        self.assertIn(" emscripten", self.ends(programs, [self.by_hand], "--all"))

    def test_missing_programs_are_named(self):
        """All packages are there, and their programs are not, as on a machine whose PATH is wrong."""
        with tempfile.TemporaryDirectory(dir="/tmp") as folder:
            code, text = Machine(folder, {"dpkg-query": INSTALLED}).run("test")
        self.assertEqual(code, 1, text)
        for program in ("g++", "meson", "ninja", "pkg-config", "python3"):
            self.assertIn(f"test: there is no {program} in PATH", text)

    def test_limits_are_named_before_the_build(self):
        limits = {"ulimit -n 200": "200 descriptors are too few: ulimit -n 1024", "ulimit -f 1000": "the size of files is limited",
                  "export TMPDIR=/nonexistent": "TMPDIR is /nonexistent, which is not a folder", "true": None}  # fmt: skip
        for limit, expected in limits.items():
            with self.subTest(limit), tempfile.TemporaryDirectory(dir="/tmp") as folder:
                machine = Machine(folder, {"dpkg-query": INSTALLED})
                done = subprocess.run([machine.path / "bash", "-c", f'{limit}; exec bash "$0"', machine.tree / "scripts/test"],
                                      env={"PATH": str(machine.path)}, stdin=subprocess.DEVNULL, capture_output=True, text=True)  # fmt: skip
                self.assertEqual(done.returncode, 1)
                for each in filter(None, limits.values()):
                    (self.assertIn if each == expected else self.assertNotIn)(f"test: {each}", done.stderr)


if __name__ == "__main__":
    if SOURCE is None:
        sys.exit(__doc__)
    unittest.main()
