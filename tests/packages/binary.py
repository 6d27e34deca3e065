#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The program of a release in two roots that hold a glibc and nothing else: the one of this machine, and the oldest that is promised.

  binary.py SOURCE BUILD

scripts/release makes the archive of what BUILD has compiled. It is unpacked in a folder of another name. There, an ordinary user runs
the verbs of a first contact; what they print is compared with what the program of BUILD prints here. Exit code 1 with the reason; 77,
which Meson reports, where that cannot be done: not root, may not mount, or no mirror of Debian in apt's sources.
"""
import bz2
import ctypes
import io
import lzma
import os
import pathlib
import re
import shlex
import shutil
import subprocess
import sys
import tarfile
import tempfile

SOURCE = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path[:0] = [str(SOURCE / "scripts"), str(SOURCE / "tests/support")]
import older_glibc
from debian import run, say

USER = 12345
COPY = "00000001\n00000fff\n00000000\n55c00000\n00007f35\n66778000\n00007f55\n"
DWORDS = [*COPY.split(), "00000005", "00001000", "00007f00", "00000007", "00000000"]
MARKS = {0: "r..", 11: ".w."}
RING = "".join(f"aqua_vanjaram.sdma0.ring[{at:4}] == 0x{dword}    {MARKS.get(at, '...')}\n" for at, dword in enumerate(DWORDS))
LOG = """[  812.400123] amdgpu 0000:c1:00.0: amdgpu: [mmhub0] no-retry page fault (src_id:0 ring:157 vmid:8 pasid:32771)
[  812.400125] amdgpu 0000:c1:00.0: amdgpu:  Process trainer pid 4711 thread trainer pid 4720
[  812.400126] amdgpu 0000:c1:00.0: amdgpu:   in page starting at address 0x00007f3555c00000 from IH client 0x12 (VMC)
"""
# Each command, its exit code, and words that it prints. It prints the same here and there, and the second list, which measures times,
# the same words alone.
SAME = (
    ("sdma dis copy.txt", 0, "copy_linear bytes=4K src=0x7f3555c00000 dst=0x7f5566778000"),
    ("sdma check --set N=8 schedules/2_allgather_b2b.sdma", 0, "no race, no deadlock, no missing wait"),
    ("sdma check race.sdma", 1, "error[race]"),
    ("sdma check --json race.sdma", 1, '"rule":"race"'),
    ("sdma check --set N=8 share/sdma/collectives/all_gather.sdma", 0, "no race"),
    ("sdma simulate --set N=8 schedules/2_allgather_b2b.sdma", 0, "bottleneck"),
    ("sdma simulate --machine=share/machines/mi355x.json schedules/1_copy.sdma", 0, "bottleneck"),
    ("sdma doctor report.tar.gz", 1, "Hung: an access that faults"),
    ("sdma doctor ring.xz log.zst", 1, "Hung: an access that faults"),
    ("sdma doctor ring.bz2 log.zst", 1, "Hung: an access that faults"),
    ("sdma emulate --gpus=3 -- sdma topology --device=kfd --json", 0, '"MI300X"'),
    # Errors of the command line and of files are exceptions inside.
    ("sdma check --no-such-option", 2, "--no-such-option"),
    ("sdma simulate --machine=copy.txt schedules/1_copy.sdma", 3, "copy.txt:1:3: error: this is not JSON"),
)
TIMED = (
    ("sdma run --set N=8 --order=adversarial schedules/2_allgather_b2b.sdma", 0, "64 expectations hold (adversarial"),
    ("sdma emulate --gpus=2 -- sdma run schedules/1_copy.sdma", 0, "hold"),
    ("sdma contact --device=soft --gpus=2 --gentle --runs=3 out", 0, "out/contact.tar.gz is the file to send"),
    ("sdma contact --read out/contact.tar.gz", 0, "confirmed"),
    # Nothing but glibc: the message names the library that a node has.
    ("sdma emulate --gpus=2 -- sdma contact --device=kfd none", 3, "libhsakmt.so.1"),
)
# As on a node: libhsakmt is there, and KFD.
ON_KFD = (
    ("sdma emulate --gpus=2 -- sdma topology --device=kfd", 0, "gpu1: amdgpu"),
    ("sdma emulate --gpus=2 -- sdma contact --device=kfd --gentle --runs=3 kfd", 0, "kfd/contact.tar.gz is the file to send"),
    ("sdma contact --read kfd/contact.tar.gz", 0, "confirmed"),
)


def zstd(data):
    """Python 3.11 has no zstd; dpkg needs the library."""
    library = ctypes.CDLL("libzstd.so.1")
    library.ZSTD_compressBound.restype = library.ZSTD_compress.restype = ctypes.c_size_t
    library.ZSTD_compressBound.argtypes = [ctypes.c_size_t]
    library.ZSTD_compress.argtypes = [ctypes.c_char_p, ctypes.c_size_t, ctypes.c_char_p, ctypes.c_size_t, ctypes.c_int]
    room = ctypes.create_string_buffer(library.ZSTD_compressBound(len(data)))
    size = library.ZSTD_compress(room, len(room), data, len(data), 3)
    return room.raw[:size]


def inputs(folder, tree):
    """A user's folder, with what the commands read: archives, and files of the tree."""
    folder.mkdir(parents=True)
    packed = {"ring.xz": lzma.compress(RING.encode()), "ring.bz2": bz2.compress(RING.encode()), "log.zst": zstd(LOG.encode())}
    for name, data in packed.items():
        (folder / name).write_bytes(data)
    with tarfile.open(folder / "report.tar.gz", "w:gz") as report:
        for name in ("ring.xz", "log.zst"):
            entry = tarfile.TarInfo(name)
            entry.size = len(packed[name])
            report.addfile(entry, io.BytesIO(packed[name]))
    (folder / "copy.txt").write_text(COPY)
    shutil.copyfile(SOURCE / "tests/museum/exhibits/late_fill.bug.sdma", folder / "race.sdma")
    shutil.copytree(tree / "examples/schedules", folder / "schedules")
    shutil.copytree(tree / "share", folder / "share")


class Here:
    """The program of the build, on this machine."""

    def __init__(self, folder, build):
        self.folder, self.environment = folder, {"PATH": str(build / "tools"), "HOME": str(folder), "LC_ALL": "C"}
        inputs(folder, SOURCE)

    def run(self, words):
        return finished(shlex.split(words), cwd=self.folder, env=self.environment)


class Root:
    """A folder that is / for an ordinary user: a glibc, the archive of a release, and the user's own folder."""

    def __init__(self, folder, archive):
        self.folder = folder
        to = folder / "moved/elsewhere"
        to.mkdir(parents=True)
        run("tar", "--extract", "--file", archive, "--directory", to, "--strip-components=1")
        for name in ("proc", "sys", "dev", "tmp"):
            (folder / name).mkdir()
        (folder / "tmp").chmod(0o1777)
        inputs(folder / "user", to)
        run("chown", "--recursive", f"{USER}:{USER}", folder / "user")
        self.program = "/moved/elsewhere/bin/sdma"
        self.environment = {"PATH": "/moved/elsewhere/bin", "HOME": "/user", "LC_ALL": "C"}

    def run(self, words):
        """What is mounted is mounted for this command alone."""
        mounts = 'mount -t proc proc "$0/proc" && mount --rbind /sys "$0/sys" && mount --rbind /dev "$0/dev"'
        user = f'exec /usr/bin/unshare --root="$0" --wd=/user --setgid={USER} --setuid={USER} -- "$@"'
        command = [self.program, *shlex.split(words)[1:]]
        # The shell that mounts has a PATH of its own.
        shell = f'PATH=/usr/sbin:/usr/bin:/sbin:/bin; {mounts} && PATH={shlex.quote(self.environment["PATH"])} {user}'
        return finished(["/usr/bin/unshare", "--mount", "/bin/sh", "-c", shell, self.folder, *command], env=self.environment)


def finished(command, **options):
    """The exit code of a command, and what it prints. Meson ends the test if a command does not end."""
    done = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace",
                          **options)  # fmt: skip
    return done.returncode, done.stdout


def try_all(name, root, cases, here=None):
    """Runs the commands in a root. With `here`, they have to print the same there."""
    for words, expected, shown in cases:
        code, printed = root.run(words)
        say(f"{name}: {words}")
        if code != expected or shown not in printed:
            sys.exit(f"{name}: {words}: exit code {code}, expected {expected} and '{shown}':\n{printed[-10000:]}")
        if here and (code, printed) != (other := here.run(words)):
            sys.exit(f"{name}: {words} prints\n{printed}\nand the program of the build, with exit code {other[0]},\n{other[1]}")


def this_glibc(folder):
    """The files of the package libc6 that is installed here."""
    for name in run("dpkg-query", "--listfiles", "libc6").splitlines():
        path, to = pathlib.Path(name), folder / name.lstrip("/")
        if path.is_dir() and not path.is_symlink() or name in ("/lib", "/lib64"):
            to.mkdir(parents=True, exist_ok=True)
        else:
            shutil.copy(path, to, follow_symlinks=False)
    return folder


def add_libraries(root, name):
    """Adds a library of this machine with all that it needs, but glibc, to those of the root."""
    to = root.folder / "usr/lib/x86_64-linux-gnu"
    found = re.findall(rf"{re.escape(name)} .*=> (/\S+)", run("ldconfig", "--print-cache"))
    if not found:
        sys.exit(f"{name} is missing: apt-get install libhsakmt-dev")
    for path in [found[0], *re.findall(r"=> (/\S+)", run("ldd", found[0]))]:
        if not (root.folder / "lib/x86_64-linux-gnu" / pathlib.Path(path).name).exists():
            shutil.copy(path, to)


def examine(archive, source):
    """The archive has the time of the source's archive, and belongs to root; the page names the glibc."""
    with tarfile.open(source) as tar:
        time = tar.next().mtime
    with tarfile.open(archive) as tar:
        entries = tar.getmembers()
    if wrong := [e.name for e in entries if (e.mtime, e.uid, e.gid) != (time, 0, 0)]:
        sys.exit(f"{archive.name}: other times or owners than those of the source and root: {wrong[:5]}")
    names = [e.name.partition("/")[2] for e in entries]
    for name in ("bin/sdma", "lib/sdma/libsdma-emulator.so", "README.txt", "LICENSE", "licences/libfmt-dev.txt", "docs/first_contact.md"):
        if name not in names:
            sys.exit(f"{archive.name} lacks {name}")
    promise = f"glibc {older_glibc.text(older_glibc.OLDEST)}"
    if promise not in (SOURCE / "docs/first_contact.md").read_text(encoding="utf-8"):
        sys.exit(f"docs/first_contact.md does not name {promise}, the oldest (scripts/older_glibc.py)")


def main(arguments):
    if len(arguments) != 2:
        sys.exit(__doc__)
    build = pathlib.Path(arguments[1]).resolve()
    if os.geteuid() != 0 or subprocess.run(["unshare", "--mount", "true"], capture_output=True).returncode:
        print("skipped: needs root, and leave to mount")
        return 77
    with tempfile.TemporaryDirectory(prefix="sdma-binary-") as folder:
        work = pathlib.Path(folder)
        work.chmod(0o755)
        glibc = work / "glibc"
        glibc.mkdir()
        try:
            older_glibc.unpacked(glibc)
        except older_glibc.Unavailable as why:
            print(f"skipped: Debian 11's glibc cannot be had: {why}")
            return 77
        say(f"glibc {older_glibc.text(older_glibc.OLDEST)} is unpacked")
        print(run(SOURCE / "scripts/release", "--worktree", "--no-playground", f"--build={build}", f"--glibc={glibc}", work))
        (archive,), (source,) = work.glob("*.tar.gz"), work.glob("*.tar.xz")
        examine(archive, source)
        here = Here(work / "here", build)
        now = Root(this_glibc(work / "now"), archive)
        oldest = work / "oldest"
        for name in ("etc", "lib", "lib64"):
            shutil.copytree(glibc / name, oldest / name, symlinks=True)
        for name, root in (("this glibc", now), ("the oldest glibc", Root(oldest, archive))):
            try_all(name, root, SAME, here)
            try_all(name, root, TIMED)
        add_libraries(now, "libhsakmt.so.1")
        try_all("this glibc and libhsakmt", now, ON_KFD)
        say(f"{archive.name}: {archive.stat().st_size:,} bytes")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
