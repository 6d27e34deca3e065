#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The steps of the Containerfile in two Debian 12 that mmdebstrap makes, and what they leave: Debian's packages, installed.

  containerfile.py SOURCE [BUILD]

With BUILD, a finished build folder of SOURCE, the packages are made of what it has compiled, and the first Debian is this machine
itself, if it is of the same release; otherwise, the packages are built in the first Debian, without optimisation
(DEB_BUILD_OPTIONS=noopt), because the packaging is under test. Then lintian checks the packages, the commands of README.md
run with the installed programs, and the packages are removed again. Exit code 1 with the reason; 77, which Meson reports, where
mmdebstrap cannot work: not root, or no mirror of Debian in apt's sources.
"""
import os
import pathlib
import re
import shlex
import shutil
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "support"))
import prebuilt
import readme
import release
from debian import Root, bootstrapped, in_memory, mirror, run, same_release, say

SUITE = "bookworm"


def steps(text):
    """(instruction, arguments) of a Containerfile."""
    text = re.sub(r"\\\n", " ", text)
    return [tuple(line.split(None, 1)) for line in text.split("\n") if line.strip() and not line.startswith("#")]


def packed(source, build, work):
    """The steps of the first Debian on this machine, from what is compiled. Returns a folder in which /src has the packages."""
    options = ("-Dprefix=/usr", "-Dlibdir=lib/" + run("dpkg-architecture", "-qDEB_HOST_MULTIARCH").strip(), "-Drelocatable=false",
               "-Dpkgconfig.relocatable=false", "-Dtests=disabled", "-Dbench=disabled", "-Dtools=enabled", "-Dexamples=enabled",
               "-Dpython=enabled")  # fmt: skip
    with prebuilt.reconfigured(source, build, "packages", *options) as folder:
        run("ninja", "-C", folder)
        tree = release.unpacked(source, work / "packed/src/sdma")
        # Such packages are tested and thrown away. The package of the source is made for lintian.
        quick = {"DPKG_DEB_COMPRESSOR_TYPE": "gzip", "DPKG_DEB_COMPRESSOR_LEVEL": "1"}
        run("dpkg-buildpackage", "-us", "-uc", "--source-option=-Zgzip", "--source-option=-z1", cwd=tree,
            env=os.environ | quick | {"DEB_BUILD_OPTIONS": "noautodbgsym", "SDMA_BUILD": str(folder)})  # fmt: skip
    return Root(work / "packed")


def built(source, work, base, first):
    """Runs the steps. Returns the roots by name; the last one is ''. The first one is `first`, if there is one."""
    roots, root = {}, None
    text = (source / "Containerfile").read_text(encoding="utf-8")
    last = text.count("\nFROM ") - 1  # it has the base to itself
    for instruction, rest in steps(text):
        if instruction == "FROM":
            image, _, name = rest.partition(" AS ")
            if image != f"debian:{SUITE}":
                sys.exit(f"FROM {image}: only debian:{SUITE} can be made here")
            if first and not roots:
                roots[name] = first
                continue
            folder = work / f"root-{len(roots)}"
            if len(roots) == last:
                base.rename(folder)
            else:
                run("cp", "-a", base, folder)
            root = roots[name] = Root(folder)
            # Debug information would take as long to compress as the rest takes to build.
            root.environment |= {"DEB_BUILD_OPTIONS": f"noopt noautodbgsym parallel={os.cpu_count()}", "DEB_CXXFLAGS_STRIP": "-g", "DEB_CFLAGS_STRIP": "-g"}
        elif not root:
            continue  # a step of the first Debian
        elif instruction == "RUN":
            root.must(rest)
        elif instruction == "WORKDIR":
            (root.folder / rest.lstrip("/")).mkdir(parents=True, exist_ok=True)
            root.where = rest
        elif instruction == "COPY":
            words = rest.split()
            to = root.folder / words[-1].strip("/")
            to.mkdir(parents=True, exist_ok=True)
            if words[0].startswith("--from="):
                other = roots[words[0].removeprefix("--from=")].folder
                files = [file for word in words[1:-1] for file in other.glob(word.lstrip("/"))]
                if not files:
                    sys.exit(f"COPY {rest}: there is no such file")
                for file in files:
                    shutil.copy(file, to)
            else:
                release.unpacked(source, to)
        elif instruction == "ENTRYPOINT":
            program = re.findall(r'"([^"]*)"', rest)[0]
            root.must(f"{program} --version")
        else:
            sys.exit(f"{instruction}: this driver does not know the instruction")
    return roots


def shown_by_readme(source, root):
    """The commands of README.md run with the installed programs, where the packages put the examples."""

    def installed(command, folder):
        root.where = str(pathlib.Path("/usr/share/sdma", folder)) if folder else "/tmp"
        return root.sh(command)

    say(f"{readme.check(source, installed)} commands of README.md")


def files_of(root):
    """All files of a Debian but those that apt and dpkg keep for themselves."""
    own = ("var/lib/apt", "var/lib/dpkg", "var/cache", "var/log", "proc", "dev", "tmp", "root")
    found = set()
    for folder, folders, names in os.walk(root.folder):
        here = os.path.relpath(folder, root.folder)
        folders[:] = [f for f in folders if os.path.normpath(f"{here}/{f}") not in own and f != "__pycache__"]
        found |= {os.path.normpath(f"{here}/{name}") for name in names}
    return found


def main(arguments):
    if len(arguments) not in (1, 2):
        sys.exit(__doc__)
    (source, *build), archive = (pathlib.Path(a).resolve() for a in arguments), mirror()
    if os.geteuid() != 0 or not shutil.which("mmdebstrap") or not archive:
        print("skipped: needs root, mmdebstrap, and an archive of Debian among apt's sources")
        return 77
    if (tried := subprocess.run(["unshare", "--mount", "true"], capture_output=True, text=True)).returncode:
        print(f"skipped: may not mount: {tried.stderr}")
        return 77
    with tempfile.TemporaryDirectory(prefix="sdma-packages-", dir=in_memory()) as folder:
        work = pathlib.Path(folder)
        first = packed(source, *build, work) if build and same_release(SUITE) else None
        roots = built(source, work, bootstrapped(work, archive, SUITE), first)
        build, installed = roots["build"], roots[""]
        (changes,) = (build.folder / "src").glob("*.changes")
        say(run("lintian", "--allow-root", "--pedantic", "--fail-on", "error,warning,pedantic", "--tag-display-limit", "0", changes))
        shown_by_readme(source, installed)
        installed.where = "/"
        installed.must("man -w sdma-check || test -e /usr/share/man/man1/sdma-check.1.gz")
        # The test that Debian runs of the installed packages.
        release.unpacked(source, installed.folder / "tmp/source")
        depends = installed.must("dpkg-query -W -f '${Depends}' sdma-tools")
        if "mpi" in depends:
            sys.exit(f"the program depends on MPI: {depends}")
        installed.must("apt-get install -y --no-install-recommends g++ pkg-config")
        for name in ("sdma", "sdma-device", "sdma-runtime", "sdma-client"):
            if flags := re.findall(r"-[IL]\S+", installed.must(f"pkg-config --cflags --libs {name}")):
                sys.exit(f"pkg-config --cflags --libs {name} names folders that every compiler searches: {flags}")
        installed.must("cd /tmp/source && mkdir /tmp/client && AUTOPKGTEST_TMP=/tmp/client debian/tests/client")
        # Debian has what the packages are built with.
        shutil.copytree(source / "debian", installed.folder / "tmp/built/debian")
        installed.must("apt-get build-dep --simulate --no-install-recommends /tmp/built")
        packages = "libsdma-dev libsdma-runtime0.3 libsdma-device0.3 libsdma-client0 sdma-tools python3-sdma"
        before = {name for name in files_of(installed) if "sdma" in name.lower()}
        if not before:
            sys.exit("the packages have no files")
        installed.must(f"apt-get purge -y {packages}")
        if left := sorted(name for name in files_of(installed) if "sdma" in name.lower() or "collective_" in name):
            sys.exit(f"not removed: {left}")
        say(f"{len(before)} files installed and removed")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
