# SPDX-License-Identifier: MIT
"""A bare Debian in a folder, made by mmdebstrap from the archive that this machine's apt uses. It needs root."""
import os
import pathlib
import shlex
import shutil
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "scripts"))
from older_glibc import mirror  # noqa: E402, F401

BEGUN = time.monotonic()


def say(*words):
    print(f"[{time.monotonic() - BEGUN:5.0f} s]", *words, flush=True)


def run(*command, **options):
    command = [str(part) for part in command]
    say("+", shlex.join(command))
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace", **options)
    if done.returncode:
        print(done.stdout[-20000:], flush=True)
        sys.exit(f"exit code {done.returncode}: {shlex.join(command)}")
    return done.stdout


class Root:
    """A Debian in a folder. What is mounted in it is mounted for one command, in a namespace of its own."""

    def __init__(self, folder):
        self.folder, self.environment, self.where = folder, {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "LC_ALL": "C.UTF-8", "HOME": "/root"}, "/"
        self.environment |= {"DEBIAN_FRONTEND": "noninteractive"}

    def started(self, command, **options):
        """A process that runs this list of words in the folder, with its output as a pipe."""
        inside = ["unshare", "--mount", "sh", "-c",
                  'mount -t proc proc "$0/proc" && mount --rbind /dev "$0/dev" && exec chroot "$0" "$@"', str(self.folder)]  # fmt: skip
        return subprocess.Popen(inside + command, env=self.environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True,
                                errors="replace", **{"stderr": subprocess.STDOUT} | options)  # fmt: skip

    def sh(self, words, **options):
        process = self.started(["sh", "-c", f"cd {shlex.quote(self.where)} && {words}"], **options)
        out, _ = process.communicate()
        return subprocess.CompletedProcess(words, process.returncode, out)

    def must(self, words):
        say("#", words)
        done = self.sh(words)
        if done.returncode:
            print(done.stdout[-20000:], flush=True)
            sys.exit(f"exit code {done.returncode}: {words}")
        return done.stdout


def same_release(suite):
    """Is this machine of that release?"""
    return f"VERSION_CODENAME={suite}\n" in pathlib.Path("/etc/os-release").read_text(encoding="utf-8")


def in_memory():
    """A folder in memory if that has 4 GiB to spare: to write and remove two Debians takes a disk longer than all else takes."""
    shared = pathlib.Path("/dev/shm")
    return shared if shared.is_dir() and shutil.disk_usage(shared).free > 4 << 30 else None


def bootstrapped(work, archive, suite):
    """A folder with this release of Debian, which uses the settings of this machine's apt, and its sources if they are of the release."""
    root = work / "debian"
    # What is installed here, now and later, need not survive a power failure.
    run("mmdebstrap", "--variant=minbase", "--mode=root", "--dpkgopt=force-unsafe-io", "--skip=cleanup/apt/lists", suite, root, archive)
    names = ["apt.conf.d", "trusted.gpg.d"]
    if same_release(suite):
        (root / "etc/apt/sources.list").unlink(missing_ok=True)
        names += ["sources.list", "sources.list.d"]
    for name in names:
        path = pathlib.Path("/etc/apt", name)
        if path.is_dir():
            shutil.copytree(path, root / "etc/apt" / name, dirs_exist_ok=True)
        elif path.is_file():
            shutil.copy(path, root / "etc/apt" / name)
    for name in ("resolv.conf", "hosts"):
        shutil.copy(f"/etc/{name}", root / "etc" / name)
    return root
