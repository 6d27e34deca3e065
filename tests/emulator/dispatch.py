#!/usr/bin/env python3
"""A kernel dispatch fails loudly and is named: dispatch.py SDMA PROGRAM."""
import subprocess
import sys

run = subprocess.run([sys.argv[1], "emulate", "--", sys.argv[2]], capture_output=True, text=True, timeout=60)
assert run.returncode != 0, run.stdout + run.stderr
assert "has completed" not in run.stdout, run.stdout
assert "kernel dispatch #" in run.stderr and "cannot run" in run.stderr, run.stderr
