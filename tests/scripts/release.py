#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The source archive of scripts/release, in a small tree of its own: in its unpacked archive, the script makes the same bytes.

  release.py SOURCE
"""
import os
import pathlib
import shutil
import subprocess
import sys
import tarfile
import tempfile

TIME = 1700000000
OWN = {"GIT_AUTHOR_NAME": "a", "GIT_AUTHOR_EMAIL": "a@example.org", "GIT_COMMITTER_NAME": "a", "GIT_COMMITTER_EMAIL": "a@example.org",
       "GIT_AUTHOR_DATE": f"{TIME} +0000", "GIT_COMMITTER_DATE": f"{TIME} +0000", "GIT_CONFIG_NOSYSTEM": "1",
       "PATH": "/usr/local/bin:/usr/bin:/bin"}  # fmt: skip
FILES = {"meson.build": "project('sdma', 'cpp',\n  version: '1.2.3',\n", "CHANGELOG.md": "## [1.2.3] - unreleased\n", ".gitignore": "/build*/\n",
         "a file": "with a blank\n", "B": "sorted by bytes\n", "notes.local": "what a user's own list ignores\n"}  # fmt: skip
NAMES = ["sdma-1.2.3.tar.xz", "sdma.wrap"]
# In place of what compiles the program and the page: they write what they are asked for.
BUILDERS = {"scripts/release_binary.py": "pathlib.Path(sys.argv[3]).write_text(sys.argv[1])",
            "playground/build.py": "pathlib.Path(sys.argv[3]).write_text('|'.join(sys.argv[4:]))"}  # fmt: skip


def run(*command, cwd, code=0, home="/nonexistent"):
    done = subprocess.run(command, cwd=cwd, env=OWN | {"HOME": str(home)}, text=True, capture_output=True)
    if done.returncode != code:
        sys.exit(f"{command}: exit code {done.returncode}, not {code}: {done.stdout}{done.stderr}")
    return done.stdout + done.stderr


def check(what, found, expected):
    if found != expected:
        sys.exit(f"{what}: {found!r}, expected {expected!r}")


def published(tree, to, *options, home="/nonexistent"):
    """What scripts/release of the tree writes into the new folder `to`: {name: bytes}."""
    to.mkdir(parents=True)
    run("scripts/release", "--source", *options, to, cwd=tree, home=home)
    return {path.name: path.read_bytes() for path in sorted(to.iterdir())}


def repository(tree, script):
    """A tree with one commit."""
    (tree / "scripts").mkdir(parents=True)
    for name in ("release", "older_glibc.py"):
        shutil.copy(script.with_name(name), tree / "scripts")
    for name, text in FILES.items():
        (tree / name).write_text(text)
    for name, text in BUILDERS.items():
        (tree / name).parent.mkdir(exist_ok=True)
        (tree / name).write_text(f"#!/usr/bin/env python3\nimport pathlib, sys\n{text}\n")
        (tree / name).chmod(0o755)
    (tree / "link").symlink_to("a file")
    run("git", "init", "-q", cwd=tree)
    run("git", "add", "-A", cwd=tree)
    run("git", "commit", "-q", "-m", "a", cwd=tree)


def unpacked(archive, to):
    """Unpacks as a user does whose files are closed to others; then the tree is built, which leaves files."""
    to.mkdir(parents=True)
    subprocess.run(["tar", "--extract", "--file", archive, "--directory", to], check=True, umask=0o077)
    tree = to / "sdma-1.2.3"
    (tree / "build").mkdir()
    (tree / "build/object").write_text("built")
    return tree


def main(source):
    source = pathlib.Path(source).resolve()
    if (source / ".git").exists():
        command = ("git", "-c", "safe.directory=*", "ls-files", "--cached", "--ignored", "--exclude-per-directory=.gitignore")
        check("files of the tree that .gitignore names", run(*command, cwd=source), "")
    with tempfile.TemporaryDirectory() as folder:
        work = pathlib.Path(folder)
        repository(work / "tree", source / "scripts/release")
        first = published(work / "tree", work / "first")
        check("files", list(first), NAMES)
        with tarfile.open(work / "first" / NAMES[0]) as archive:
            check("times and owners", {(e.mtime, e.uid, e.gid) for e in archive}, {(TIME, 0, 0)})
            names = [*FILES, *BUILDERS, "link", "scripts/older_glibc.py", "scripts/release"]
            check("names", archive.getnames(), [f"sdma-1.2.3/{name}" for name in sorted(names)])
        # A user's own list of what git ignores has no say about the files of an archive.
        home = work / "home"
        (home / ".config/git").mkdir(parents=True)
        (home / ".config/git/ignore").write_text("*.local\n")
        tree = unpacked(work / "first" / NAMES[0], work / "a folder")
        check("the archive of the archive", published(tree, work / "second", home=home) == first, True)
        check("the archive, written into the tree", published(tree, tree / "build/out") == first, True)
        # The program and the page, too.
        (work / "bin").mkdir()
        (work / "bin/em++").write_text("")
        (work / "bin/em++").chmod(0o755)
        (work / "all").mkdir()
        words = (f"PATH={work}/bin:{OWN['PATH']}", "CXX=ccache g++")
        run("env", *words, "scripts/release", work / "all", cwd=tree)
        check("all files", sorted(path.name for path in (work / "all").iterdir()), [
            "sdma-1.2.3-playground.html", "sdma-1.2.3-x86_64.tar.gz", *NAMES])  # fmt: skip
        check("the program's time", (work / "all/sdma-1.2.3-x86_64.tar.gz").read_text(), f"--time={TIME}")
        check("the page's compilers", (work / "all/sdma-1.2.3-playground.html").read_text(), f"|{work}/bin/em++|ccache|g++")
        # A tree that lies in somebody's repository.
        (work / "outer").mkdir()
        run("git", "init", "-q", cwd=work / "outer")
        tree = unpacked(work / "first" / NAMES[0], work / "outer/sub")
        check("the archive in another repository", published(tree, work / "third") == first, True)
        # What somebody changes is in the archive, with its time.
        (tree / "B").write_text("changed")
        os.utime(tree / "B", (TIME + 7, TIME + 7))
        published(tree, work / "changed")
        with tarfile.open(work / "changed" / NAMES[0]) as archive:
            check("times after a change", {e.mtime for e in archive}, {TIME + 7})
            check("what was changed", archive.extractfile("sdma-1.2.3/B").read(), b"changed")
        for inside in (tree, work / "tree"):
            (inside / "out").mkdir()
            for name in ("out", "."):
                said = run("scripts/release", "--worktree", "--source", name, cwd=inside, code=1)
                check(f"a folder in the tree is refused: {said}", "lies in the tree" in said, True)
            check("what is left there", list((inside / "out").iterdir()), [])
        (work / "tree/B").write_text("changed")
        said = run("scripts/release", "--source", work / "home", cwd=work / "tree", code=1)
        check(f"a change is named: {said}", "not committed" in said, True)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
