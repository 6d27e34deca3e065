#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""A ring that kernels write, as a step of a first contact: over ROCr, on the software node, with a HIP of the tests.

  kernels.py SDMA FOLDER      FOLDER: of the libamdhip64 whose kernels are functions of the host
"""
import json
import os
import pathlib
import subprocess
import sys
import tempfile

ITEM = "a ring that kernels write"


def contact(sdma, folder, module, device="rocr"):
    """The exit code, and the result of the item, of a contact with this module."""
    with tempfile.TemporaryDirectory() as out:
        path = pathlib.Path(out) / "module"
        path.write_bytes(module.encode() + b"\0")
        command = [sdma, "emulate", "--no-system-mem-limit", "--gpus=2", "--", sdma, "contact", f"--device={device}", "--gentle",
                   "--step=works", f"--module={path}", f"{out}/answer"]
        env = {**os.environ, "LD_LIBRARY_PATH": folder}
        done = subprocess.run(command, env=env, capture_output=True, text=True)
        if not pathlib.Path(f"{out}/answer/contact.tar.gz").exists():
            return done.returncode, done.stderr
        read = subprocess.run([sdma, "contact", "--read", f"{out}/answer/contact.tar.gz"], capture_output=True, text=True)
        return done.returncode, read.stdout


def main(sdma, folder):
    wrong = []  # exit code 4: one step was asked for
    for module, code, words in [("tiles", 4, ""), ("elsewhere", 1, "words of tiles are wrong"), ("deaf", 1, "a wave gave up"),
                                ("garbage", 4, "the module: error 200 of HIP")]:
        got, text = contact(sdma, folder, module)
        if got != code or words not in text or (ITEM in text) != bool(words):
            wrong.append(f"module {module}: exit code {got}, not {code}; looked for {words!r} in:\n{text}")
    got, text = contact(sdma, folder, "tiles", "kfd")
    if got != 2 or "kernels need --device=rocr or --device=cuda" not in text:
        wrong.append(f"--device=kfd: exit code {got}: {text}")
    print("\n".join(wrong))
    return int(bool(wrong))


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
