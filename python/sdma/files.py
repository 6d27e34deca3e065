# SPDX-License-Identifier: MIT
"""What a file holds, for all that takes a path."""
from __future__ import annotations

import os


def contents(path: str | os.PathLike[str]) -> bytes:
    """A number is not a path, although `open` takes one: it would read, and close, a file of the caller."""
    with open(os.fspath(path), "rb") as file:
        return file.read()


def layout_or_contents(path: str | os.PathLike[str], example: str) -> bytes:
    """`example`: how to make such a file. For a word that is neither a file nor the name of a layout, the error lists layouts."""
    try:
        return contents(path)
    except FileNotFoundError as error:
        hint = f"name a file such as {example} prints, or a layout: mi300x:8, ring:8, switch:64x400G"
        raise FileNotFoundError(error.errno, f"{error.strerror} ({hint})", error.filename) from None
