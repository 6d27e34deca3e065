# SPDX-License-Identifier: MIT
import os
import pathlib

import pytest


@pytest.fixture(scope="session")
def root():
    """The source tree."""
    return pathlib.Path(os.environ["SDMA_SOURCE"])


@pytest.fixture(scope="session")
def schedules(root):
    """The folder of the schedules that the project ships."""
    return root / "examples" / "schedules"
