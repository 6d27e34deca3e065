# SPDX-License-Identifier: MIT
"""The tree as a release has it: without builds, and without files that git ignores."""
import pathlib
import subprocess
import tempfile


def unpacked(source, to):
    """Unpacks the archive that scripts/release makes of the files as they are now into the folder `to`. Returns `to`."""
    to.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([source / "scripts/release", "--worktree", "--source", folder], stdout=subprocess.DEVNULL, check=True)
        (archive,) = pathlib.Path(folder).glob("*.tar.xz")
        subprocess.run(["tar", "--extract", "--file", archive, "--directory", to, "--strip-components=1"], check=True)
    return to
