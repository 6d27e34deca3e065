#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The program of a release, for scripts/release: sdma and its software node, which need an older glibc and no other library.

  release_binary.py [--build=BUILD] [--glibc=ROOT] --time=SECONDS ARCHIVE BINARY

ARCHIVE is the source of a release, BINARY the archive to write, and SECONDS the time that its files have. With BUILD, the programs are
linked from a copy of that build folder of this tree; otherwise, the source in ARCHIVE is compiled in a temporary folder.
"""
import argparse
import contextlib
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests/support"))
import older_glibc
import prebuilt

MOST_BYTES = 30_000_000
# What glibc consists of, besides its loader.
GLIBC = {"libc.so.6", "libm.so.6", "libpthread.so.0", "libdl.so.2", "librt.so.1", "ld-linux-x86-64.so.2"}
# Where a build has the programs, and where the archive has them.
PROGRAMS = {"tools/sdma": "bin/sdma", "lib/emulator/libsdma-emulator.so": "lib/sdma/libsdma-emulator.so"}
# What the programs read, and what people read.
FILES = ("LICENSE", "docs", "examples/schedules", "share/machines", "share/schemas", "share/sdma")
# One file of each package that is compiled or linked into the programs, and the package that should have it.
INSIDE = {"libstdc++.a": "libstdc++-12-dev", "libarchive.a": "libarchive-dev", "libz.a": "zlib1g-dev", "libbz2.a": "libbz2-dev",
          "liblzma.a": "liblzma-dev", "libzstd.a": "libzstd-dev", "liblz4.a": "liblz4-dev", "/usr/include/fmt/format-inl.h": "libfmt-dev",
          "/usr/include/nlohmann/json.hpp": "nlohmann-json3-dev", "/usr/include/CLI/CLI.hpp": "libcli11-dev"}  # fmt: skip


def fail(message):
    sys.exit(f"release: {message}")


def run(*command, **options):
    """Runs a command. If it fails, so does this program, with what the command printed."""
    command = [str(part) for part in command]
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace", **options)
    if done.returncode:
        fail(f"exit code {done.returncode} of {' '.join(command)}\n{done.stdout[-10000:]}")
    return done.stdout


def packages():
    """{package: its files in /usr/share/doc} of what is inside."""
    found, missing = {}, set()
    for name, package in INSIDE.items():
        path = pathlib.Path(name if name.startswith("/") else run("g++", f"-print-file-name={name}").strip())
        if not path.is_absolute() or not path.is_file():
            missing.add(package)
            continue
        owner = run("dpkg-query", "--search", path.resolve()).partition(":")[0]
        found[owner] = pathlib.Path("/usr/share/doc", owner)
    if missing:
        fail(f"packages are missing: apt-get install --no-install-recommends {' '.join(sorted(missing))}")
    return found


@contextlib.contextmanager
def linked(source, build, glibc):
    """A build folder with the programs, for the length of a with statement."""
    options = (f"-Dstandalone={glibc}", "-Dtools=enabled", "-Demulator=enabled", "-Dkfd=enabled", "-Dtests=disabled", "-Dbench=disabled",
               "-Dexamples=disabled", "-Dpython=disabled", "-Drelocatable=false", "-Doptimization=2", "-Ddebug=false",
               "-Db_sanitize=none")  # fmt: skip
    if not build:
        folder = source / "build"
        run("meson", "setup", "-Dgrouped=true", *options, folder, source)
        run("ninja", "-C", folder, *PROGRAMS)
        yield folder
        return
    info = build / "meson-info/meson-info.json"
    if not info.is_file() or pathlib.Path(json.loads(info.read_text())["directories"]["source"]) != ROOT:
        fail(f"--build: {build} is not a build folder of {ROOT}; without --build, the program is compiled in a temporary folder")
    # The copy lies beside BUILD, where nothing else has its name.
    with prebuilt.reconfigured(ROOT, build, f"release-{os.getpid()}", *options) as folder:
        run("ninja", "-C", folder, *PROGRAMS)
        yield folder


def needed(path):
    """The libraries of a program, and the version of glibc that each symbol needs: {(2, 31): [symbol]}."""
    dynamic = run("readelf", "--wide", "--dynamic", path)
    if found := re.findall(r"\((?:RPATH|RUNPATH)\).*", dynamic):
        fail(f"{path.name} searches for libraries in a folder: {found[0]}")
    versions = {}
    for symbol, version in re.findall(r" UND (\S+)@GLIBC_([\d.]+)", run("readelf", "--wide", "--dyn-syms", path)):
        versions.setdefault(tuple(map(int, version.split("."))), []).append(symbol)
    return set(re.findall(r"\(NEEDED\).*\[(.*)\]", dynamic)), versions


def examine(path, trees):
    """Fails if a program needs more than the oldest glibc, or names a tree. Returns the newest version that it needs."""
    data = path.read_bytes()
    for tree in trees:
        if found := re.search(re.escape(f"{tree}/".encode()) + rb"[ -~]*", data):
            fail(f"{path.name} has a path of this machine, so its bytes differ from machine to machine: {found[0].decode()}")
    libraries, versions = needed(path)
    if more := libraries - GLIBC:
        fail(f"{path.name} needs {', '.join(sorted(more))}: link what it calls into it (lib/standalone/meson.build)")
    if not versions:
        fail(f"{path.name} needs no symbol of glibc, so it was not examined: readelf prints something else than expected")
    newest = max(versions)
    if newest > older_glibc.OLDEST:
        fail(f"{path.name} needs glibc {older_glibc.text(newest)} for {', '.join(sorted(versions[newest]))}, which is newer than "
             f"{older_glibc.text(older_glibc.OLDEST)}: define it in lib/standalone/glibc.cpp")  # fmt: skip
    return newest


def licences(to, documents):
    """The licences of what is inside, as Debian's packages have them, and the texts to which they refer."""
    to.mkdir()
    common = pathlib.Path("/usr/share/common-licenses")
    for package, folder in documents.items():
        if not (folder / "copyright").is_file():
            fail(f"{folder}/copyright is missing, which has the licence of what is inside: apt-get install --reinstall {package}")
        text = (folder / "copyright").read_text(encoding="utf-8", errors="replace")
        (to / f"{package}.txt").write_text(text, encoding="utf-8")
        for name in re.findall(rf"{common}/([\w.+-]*\w)", text):
            shutil.copyfile(common / name, to / f"{name}.txt")


def staged(stage, source, folder, glibc, documents, version):
    """Everything that the archive has, in the folder `stage`. Returns the newest glibc that is needed."""
    newest = []
    for built, name in PROGRAMS.items():
        (stage / name).parent.mkdir(parents=True)
        shutil.copy(folder / built, stage / name)
        newest.append(examine(stage / name, (ROOT, source)))
    for name in FILES:
        copy = shutil.copytree if (source / name).is_dir() else shutil.copy
        (stage / name).parent.mkdir(parents=True, exist_ok=True)
        copy(source / name, stage / name)
    for path in stage.rglob("meson.build"):
        path.unlink()
    # Of glibc, a program has the code that calls main, and functions such as stat.
    licences(stage / "licences", documents | {"libc6-dev": glibc / "usr/share/doc/libc6-dev"})
    text = (source / "share/release/README.txt").read_text(encoding="utf-8")
    text = text.replace("@VERSION@", version).replace("@GLIBC@", older_glibc.text(older_glibc.OLDEST))
    (stage / "README.txt").write_text(text, encoding="utf-8")
    return max(newest)


def pack(stage, binary, time):
    """The bytes depend on names and contents alone."""
    part = binary.with_name(f"{binary.name}.part")
    with open(part, "wb") as out:
        tar = subprocess.Popen(["tar", "--create", "--directory", stage.parent, "--sort=name", f"--mtime=@{time}", "--owner=0", "--group=0",
                                "--numeric-owner", "--mode=u+rw,go=rX", stage.name], stdout=subprocess.PIPE)  # fmt: skip
        packed = subprocess.run(["gzip", "--no-name", "--best"], stdin=tar.stdout, stdout=out)
    if tar.wait() or packed.returncode:
        part.unlink()
        fail(f"{binary} cannot be written")
    if (size := part.stat().st_size) >= MOST_BYTES:
        part.unlink()
        fail(f"{binary.name} would have {size:,} bytes; the most is {MOST_BYTES:,}")
    part.rename(binary)
    return size


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name in ("--build", "--glibc"):
        parser.add_argument(name, type=pathlib.Path)
    parser.add_argument("--time", required=True)
    parser.add_argument("archive", type=pathlib.Path)
    parser.add_argument("binary", type=pathlib.Path)
    o = parser.parse_args()
    documents = packages()
    with tempfile.TemporaryDirectory(prefix="sdma-release-") as work:
        work = pathlib.Path(work)
        source, stage = work / "source", work / o.binary.name.removesuffix(".tar.gz")
        for folder in (source, stage, work / "glibc"):
            folder.mkdir()
        run("tar", "--extract", "--file", o.archive, "--directory", source, "--strip-components=1")
        try:
            glibc = o.glibc or older_glibc.unpacked(work / "glibc")
        except older_glibc.Unavailable as why:
            fail(f"the program is linked with the glibc of Debian 11, which cannot be had: {why}. --source writes the rest")
        version = re.search(r"sdma-([\d.]+)\.tar", o.archive.name)[1]
        with linked(source, o.build, glibc) as folder:
            newest = staged(stage, source, folder, glibc, documents, version)
        size = pack(stage, o.binary, o.time)
    print(f"{o.binary} ({size / 1e6:.1f} MB; its symbols need glibc {older_glibc.text(newest)})")


if __name__ == "__main__":
    main()
