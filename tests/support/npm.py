# SPDX-License-Identifier: MIT
"""Packages that npm fetches for a test, once per folder."""
import json
import pathlib
import subprocess


def package(folder, name, version):
    """(its folder, ""); or (None, why it is not there). No script of the package runs."""
    place = pathlib.Path(folder, "node_modules", name)
    described = place / "package.json"
    if not (described.is_file() and json.loads(described.read_text())["version"] == version):
        pathlib.Path(folder).mkdir(parents=True, exist_ok=True)
        command = ["npm", "install", "--prefix", folder, "--ignore-scripts", "--no-audit", "--no-fund", "--fetch-retries=0", f"{name}@{version}"]
        try:
            done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=120)
        except (OSError, subprocess.TimeoutExpired) as e:
            return None, f"npm: {e}"
        if done.returncode != 0:
            return None, f"npm cannot fetch {name} {version}: {(done.stderr.strip().splitlines() or ['no reason given'])[0]}"
    return place, ""
