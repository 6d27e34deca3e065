# SPDX-License-Identifier: MIT
"""What a build folder has compiled, under other options that change no object: another prefix, fewer programs."""
import contextlib
import os
import shutil
import subprocess
import sys

# Folders of a build that hold no object of the library, its programs, or the package for Python.
APART = ("tests", "bench", "site", "playground", "meson-logs")


@contextlib.contextmanager
def reconfigured(source, build, name, *options):
    """A copy of `build` beside it, for the length of a with statement. Beside it, because its commands name sources as ../PATH."""
    to = build.with_name(f"{build.name}-{name}")
    shutil.rmtree(to, ignore_errors=True)
    try:
        shutil.copytree(build, to, symlinks=True, ignore=lambda folder, names: APART if folder == str(build) else ())
        # Meson writes groups of sources anew, because they name the build folder. They have the same sources.
        times = {path: path.stat() for path in to.rglob("*-unity*.cpp")}
        done = subprocess.run(["meson", "setup", "--reconfigure", *options, to, source], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, text=True)  # fmt: skip
        if done.returncode:
            sys.exit(f"meson setup of {to} failed:\n{done.stdout}")
        for path, stat in times.items():
            if path.exists():
                os.utime(path, ns=(stat.st_atime_ns, stat.st_mtime_ns))
        yield to
    finally:
        shutil.rmtree(to, ignore_errors=True)
