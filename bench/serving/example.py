# SPDX-License-Identifier: MIT
"""Import this first: modules of examples/serving, which are measured here, can then be imported."""
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "examples" / "serving"))
