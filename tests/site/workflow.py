#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The workflow in share/ci: its tag is this version, its packages are those of a build, and the commands of its steps do what it says.

  workflow.py SOURCE SDMA

Skipped where the module yaml is missing (Debian: python3-yaml, which mkdocs needs).
"""
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

PROVED = "sdma 1\ngpus 1\nbuffer gpu0.a bytes=4K\nhost main\nend\n"
WRONG = "gpus 1\n"

try:
    import yaml
except ImportError:
    yaml = None


def steps_of(path):
    workflow = yaml.safe_load(path.read_text(encoding="utf-8"))
    [job] = workflow["jobs"].values()
    return workflow["env"], job, {step["name"]: step for step in job["steps"] if "run" in step}


def main(source, sdma):
    source, wrong = pathlib.Path(source), []

    def need(true, what):
        if not true:
            wrong.append(what)

    env, job, steps = steps_of(source / "share/ci/github.yml")
    need(list(steps) == ["packages", "build", "check", "verdict"], f"its steps are {', '.join(steps)}")
    version = re.search(r"(?m)^  version: '([\d.]+)'", (source / "meson.build").read_text(encoding="utf-8"))[1]
    need(env["SDMA_TAG"] == f"v{version}", f"it builds {env['SDMA_TAG']}, and this is {version}")
    packages = re.search(r"(?m)^DEMO +\w+ +(.*)$", (source / "scripts/suites.txt").read_text(encoding="utf-8"))[1].split()
    named = [word for word in steps["packages"]["run"].split("install")[-1].split() if not word.startswith("-")]
    need(named == packages, f"it installs {named}, and a build needs {packages}")
    options = set(re.findall(r"(?m)^option\('(\w+)'", (source / "meson_options.txt").read_text(encoding="utf-8")))
    given = set(re.findall(r"-D(\w+)=", steps["build"]["run"]))
    need(given and given <= options, f"it sets options that this project lacks: {given - options}")
    need(job["permissions"].get("security-events") == "write", "it may not upload")
    for name, step in steps.items():
        done = subprocess.run(["bash", "-n"], input=step["run"], capture_output=True, text=True)
        need(done.returncode == 0, f"{name}: {done.stderr}")
    uploads = [step["with"]["sarif_file"] for step in job["steps"] if "upload-sarif" in step.get("uses", "")]
    need(uploads == ["sdma.sarif"], f"it uploads {uploads}")

    # The steps after the build, where it would have put the program.
    with tempfile.TemporaryDirectory() as folder:
        place = pathlib.Path(folder, ".sdma/build/tools")
        place.mkdir(parents=True)
        (place / "sdma").symlink_to(pathlib.Path(sdma).resolve())
        pathlib.Path(folder, "schedules").mkdir()
        for text, code, results in ((PROVED, 0, 0), (WRONG, 3, 1)):
            pathlib.Path(folder, "schedules/a.sdma").write_text(text, encoding="utf-8")
            done = subprocess.run(["bash", "-e", "-c", steps["check"]["run"]], cwd=folder, env=os.environ | env, capture_output=True, text=True)
            log = json.loads(pathlib.Path(folder, "sdma.sarif").read_text(encoding="utf-8"))
            need(done.returncode == code, f"check: exit code {done.returncode}, {code} expected: {done.stderr}")
            need(len(log["runs"][0]["results"]) == results, f"check: {len(log['runs'][0]['results'])} results, {results} expected")
        need(shutil.which("bash") and subprocess.run(["bash", "-c", steps["verdict"]["run"]]).returncode == 1, "verdict: does not fail")
    print(*wrong, sep="\n")
    print(f"{len(steps)} steps, {len(wrong)} complaints")
    return 1 if wrong else 0


if __name__ == "__main__":
    if yaml is None:
        print("skipped: it needs the module yaml")
        sys.exit(77)
    sys.exit(main(*sys.argv[1:]))
