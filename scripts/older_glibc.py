#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The oldest glibc with which the program of a release runs, and the packages of Debian that hold it.

  older_glibc.py           prints its version
  older_glibc.py FOLDER    unpacks it into FOLDER, with what programs are linked with; installs nothing

A program that is linked with a glibc runs with every newer one. This file is the one place that names the version.
"""
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

# Debian 11 is the oldest release that mirrors of Debian still hold.
OLDEST = (2, 31)
SUITE = "bullseye"
KEYRING = pathlib.Path("/usr/share/keyrings/debian-archive-keyring.gpg")


class Unavailable(Exception):
    """Packages of Debian cannot be had here: why, and what to do."""


def text(version):
    return ".".join(map(str, version))


def mirror():
    """The archive of Debian that this machine's apt uses, or ''."""
    if not shutil.which("apt-get"):
        return ""
    done = subprocess.run(["apt-get", "indextargets", "--format", "$(SITE) $(REPO_URI)", "Created-By: Packages"],
                          capture_output=True, text=True)  # fmt: skip
    archives = [line.split()[1] for line in done.stdout.splitlines() if len(line.split()) == 2]
    return next((uri for uri in archives if uri.rstrip("/").endswith("/debian")), "")


def apt(folder, *arguments):
    """Runs apt-get with lists and settings of its own in `folder`, so that this machine's packages remain as they are."""
    options = {"Dir::State": folder / "state", "Dir::State::status": folder / "status", "Dir::Cache": folder / "cache",
               "Dir::Etc::SourceList": folder / "sources", "Dir::Etc::SourceParts": "/dev/null", "APT::Architecture": "amd64",
               "APT::Architectures": "amd64", "Acquire::Languages": "none", "APT::Sandbox::User": ""}  # fmt: skip
    command = ["apt-get", *(f"--option={name}={value}" for name, value in options.items()), *arguments]
    done = subprocess.run(command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if done.returncode:
        raise Unavailable(f"apt-get {' '.join(arguments)} failed: {done.stdout.strip()[-2000:]}")


def unpacked(folder):
    """Unpacks the oldest glibc and what programs are linked with into `folder`, and installs nothing. Returns `folder`."""
    archive = mirror()
    if not archive or not shutil.which("dpkg-deb") or not KEYRING.is_file():
        raise Unavailable("this needs Debian with a mirror among apt's sources, dpkg-deb and debian-archive-keyring")
    with tempfile.TemporaryDirectory(prefix="sdma-apt-") as state:
        state = pathlib.Path(state)
        for name in ("state/lists/partial", "cache/archives/partial"):
            (state / name).mkdir(parents=True)
        (state / "status").touch()
        (state / "sources").write_text(f"deb [signed-by={KEYRING}] {archive} {SUITE} main\n")
        apt(state, "update")
        apt(state, "download", "libc6", "libc6-dev")
        for package in state.glob("*.deb"):
            subprocess.run(["dpkg-deb", "--extract", package, folder], check=True)
    point_inside(folder)
    return folder


def point_inside(root):
    """Makes absolute links relative: as they are, they would lead a linker to this machine's own files."""
    for path in root.rglob("*"):
        if path.is_symlink() and os.path.isabs(to := os.readlink(path)):
            path.unlink()
            path.symlink_to(os.path.relpath(root / to.lstrip("/"), path.parent))


def main(arguments):
    if len(arguments) > 1 or any(word.startswith("-") or not pathlib.Path(word).is_dir() for word in arguments):
        sys.exit(__doc__)
    try:
        print(unpacked(pathlib.Path(arguments[0]).resolve()) if arguments else text(OLDEST))
    except Unavailable as why:
        sys.exit(f"older_glibc: {why}")


if __name__ == "__main__":
    main(sys.argv[1:])
