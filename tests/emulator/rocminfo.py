#!/usr/bin/env python3
"""rocminfo, as the distribution ships it, on a software node: rocminfo.py SDMA. Exit 77: there is no rocminfo."""
import shutil
import subprocess
import sys

sdma = sys.argv[1]
if not shutil.which("rocminfo"):
    sys.exit(77)


def agents(*options):
    run = subprocess.run([sdma, "emulate", *options, "--", "rocminfo"], capture_output=True, text=True, timeout=120)
    assert run.returncode == 0, run.stdout + run.stderr
    assert run.stdout.endswith("*** Done ***             \n"), run.stdout
    return run.stdout, run.stderr


for gpus in (1, 2, 8):
    out, _ = agents("--gpu=gfx90a", f"--gpus={gpus}")
    assert out.count("Device Type:             GPU") == gpus, out
    assert out.count("amdgcn-amd-amdhsa--gfx90a") == gpus, out

out, err = agents("--vram=16G")
assert out.count("Device Type:             GPU") == 1, out
assert "Compute Unit:            304" in out, out
assert "16777216(0x1000000) KB" in out, out
if "gfx942" not in out:  # a runtime that is older than the GPU is told so
    assert "HSA_OVERRIDE_GFX_VERSION" in err, err
